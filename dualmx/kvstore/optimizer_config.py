"""Optimizers as JSON configs: sent to servers, which validate them. No code is sent."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from .. import lr_scheduler as schedules
from ..core.errors import ArgumentError, suggest
from ..optimizer import Optimizer
from ..optimizer.optimizer import OPTIMIZERS, registered_class

# Each element's update depends on that element alone, so that slices of an array can be updated apart.
ELEMENTWISE = (
    "sgd", "ccsgd", "nag", "signum", "sgld", "dcasgd", "adam", "adagrad", "rmsprop", "adadelta", "adamax", "nadam",
    "ftrl", "ftml", "test",
)  # fmt: skip
_RUNTIME_FIELDS = {
    "lr_scheduler", "lr_mult", "wd_mult", "idx2name", "param_dict", "sym_info", "num_update", "allow_np_array",
    "_all_index_update_counts", "_index_update_count", "_products", "_update_positions", "cumgrads", "weight_previous",
}  # fmt: skip
_SCHEDULES: dict[str, tuple[type, tuple[Any, ...]]] = {
    "FactorScheduler": (schedules.FactorScheduler, (1,)),
    "MultiFactorScheduler": (schedules.MultiFactorScheduler, ([1],)),
    "PolyScheduler": (schedules.PolyScheduler, (1,)),
    "CosineScheduler": (schedules.CosineScheduler, (1,)),
}


def unsupported_reason(optimizer: Any) -> str:
    """Why servers cannot apply `optimizer`; empty if they can."""
    kind = registered_class(type(optimizer))
    if not isinstance(optimizer, Optimizer) or kind.__name__ not in OPTIMIZERS:
        return f"servers do not know the optimizer {kind.__name__}"
    package = __name__.split(".")[0]
    if OPTIMIZERS.get(kind.__name__) is not kind or kind.__module__.split(".")[0] != package:
        return f"the optimizer {kind.__name__} is your own, and no code is sent to servers"
    if not _is_known_schedule(optimizer.lr_scheduler):
        return _own_schedule(optimizer.lr_scheduler)
    odd = [k for k, v in vars(optimizer).items() if k not in _RUNTIME_FIELDS and not _is_plain(v)]
    return f"its setting {odd[0]!r} is no plain value" if odd else ""


def is_elementwise(optimizer: Optimizer) -> bool:
    """Whether slices of an array can be updated apart."""
    return type(optimizer).__name__.lower() in ELEMENTWISE


def updates_rows(optimizer: Optimizer, table: bool) -> bool:
    """Whether a gradient of some rows changes these rows only; `table`: the weight is row_sparse."""
    kind = type(optimizer).__name__.lower()
    if kind in ("sgd", "ccsgd", "adam"):
        return bool(getattr(optimizer, "lazy_update", False))
    return kind in ("adagrad", "groupadagrad") or (kind == "ftrl" and table)


def settings(optimizer: Optimizer) -> dict[str, Any]:
    """The plain settings of an optimizer."""
    return {k: v for k, v in vars(optimizer).items() if k not in _RUNTIME_FIELDS}


def schedule_of(optimizer: Optimizer) -> dict[str, Any] | None:
    """The schedule of an optimizer as JSON, None without one.

    Raises:
        ArgumentError: servers cannot follow it.
    """
    schedule = optimizer.lr_scheduler
    if not _is_known_schedule(schedule):
        raise ArgumentError(f"kvstore.push: {_own_schedule(schedule)}; set learning_rate before each step instead")
    if schedule is None:
        return None
    held = {k: list(v) if isinstance(v, list) else v for k, v in vars(schedule).items()}
    return {"name": type(schedule).__name__, "settings": held}


def to_config(optimizer: Optimizer) -> dict[str, Any]:
    """Return the optimizer as JSON: registry name, settings, schedule.

    Raises:
        ArgumentError: servers cannot apply it; see `unsupported_reason`.
    """
    why = unsupported_reason(optimizer)
    if why:
        raise ArgumentError(
            f"kvstore.set_optimizer: {why}; update on the workers instead (Trainer(..., update_on_kvstore=False))"
        )
    name = type(optimizer).__name__.lower()
    return {"name": name, "settings": settings(optimizer), "schedule": schedule_of(optimizer)}


def from_config(config: Any) -> Optimizer:
    """Return the optimizer that `to_config` described, checking every word.

    Raises:
        ArgumentError: an unknown optimizer, schedule or setting, or a setting of another kind.
    """
    if not isinstance(config, Mapping) or set(config) != {"name", "settings", "schedule"}:
        raise ArgumentError("optimizer: expected name, settings and schedule")
    name = config["name"]
    if not isinstance(name, str) or name not in OPTIMIZERS:
        raise ArgumentError(f"optimizer: unknown name {name!r}; {suggest(str(name), OPTIMIZERS)}")
    made = OPTIMIZERS.get(name)()
    update_settings(made, config["settings"])
    made.lr_scheduler = build_schedule(config["schedule"])
    return made


def update_settings(optimizer: Optimizer, changed: Any) -> None:
    """Set plain settings of an optimizer, each of which it must have.

    Raises:
        ArgumentError: an unknown setting, or one of another kind.
    """
    _check(type(optimizer).__name__, vars(optimizer), changed)
    for key, value in changed.items():
        setattr(optimizer, key, value)


def build_schedule(described: Any) -> Any:
    """Return the schedule that `schedule_of` described, checking every word.

    Raises:
        ArgumentError: an unknown schedule or setting, or a setting of another kind.
    """
    if described is None:
        return None
    if not isinstance(described, Mapping) or set(described) != {"name", "settings"}:
        raise ArgumentError("schedule: expected name and settings")
    name = described["name"]
    if not isinstance(name, str) or name not in _SCHEDULES:
        raise ArgumentError(f"schedule: unknown name {name!r}; {suggest(str(name), _SCHEDULES)}")
    kind, arguments = _SCHEDULES[name]
    made = kind(*arguments)
    _check(name, vars(made), described["settings"])
    vars(made).update(described["settings"])
    return made


def _is_known_schedule(schedule: Any) -> bool:
    return schedule is None or _SCHEDULES.get(type(schedule).__name__, (None,))[0] is type(schedule)


def _own_schedule(schedule: Any) -> str:
    return f"the schedule {type(schedule).__name__} is your own, and no code is sent to servers"


def _is_plain(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, (bool, int, str))


def _check(what: str, known: Mapping[str, Any], given: Any) -> None:
    if not isinstance(given, Mapping):
        raise ArgumentError(f"{what}: settings: expected names and values")
    settable = known.keys() - set(_RUNTIME_FIELDS)
    for key, value in given.items():
        if key not in settable:
            raise ArgumentError(f"{what}: unknown setting {key!r}; {suggest(str(key), settable)}")
        default = known[key]
        if isinstance(default, (list, tuple)):
            good = isinstance(value, list) and all(isinstance(v, int) for v in value)
        else:
            good = _is_plain(value) and isinstance(value, str) == isinstance(default, str)
        if not good:
            raise ArgumentError(f"{what}: {key}={value!r}: expected a value like {default!r}")


__all__ = [
    "ELEMENTWISE", "build_schedule", "from_config", "is_elementwise", "schedule_of", "settings",
    "to_config", "unsupported_reason", "update_settings", "updates_rows",
]  # fmt: skip
