"""Optimizer-state files in MXNet's pickle format, read without running code from them.

A file holds `{index: state}` or `({index: state}, optimizer)`. Its classes are looked up by name among registered
optimizers and known schedules; any other class is refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..core.errors import FormatError
from ..core.reader import Content
from ..lr_scheduler import LRScheduler
from ..ndarray import NDArray, array
from ..ndarray.serialize import SparseBody, decode_body, encode_body
from .optimizer import OPTIMIZERS, Optimizer
from .safe_pickle import MAX_DEPTH, Record, read, write

_PACKAGE = __name__.split(".")[0]
_ARRAYS = {"NDArray", "RowSparseNDArray", "CSRNDArray"}


def dump_states(states: dict[Any, Any], optimizer: Optimizer | None = None) -> bytes:
    """Encode states by index, and the optimizer's settings if given, as MXNet 1.9.1 reads them.

    Raises:
        ArgumentTypeError: a state or setting that is no array or plain value.
    """
    seen: dict[int, tuple[Any, Any]] = {}
    plain = _plain(states, seen)
    if optimizer is None:
        return write(plain, "states")
    return write((plain, _plain(optimizer, seen)), "states")


def load_states(data: bytes, source: str = "optimizer states") -> tuple[dict[Any, Any], Optimizer | None]:
    """Decode what `dump_states` or MXNet wrote into `(states by index, optimizer or None)`.

    Args:
        data: the bytes.
        source: what errors call them.

    Raises:
        FormatError: damaged data, or a class that is neither array, registered optimizer nor known schedule.
    """
    content = Content(data, source, "what `save_states` writes")
    with content.parsing(RecursionError):
        value = _Loader(content).build(read(data, source), 0)
    states, optimizer = value if isinstance(value, tuple) and len(value) == 2 else (value, None)
    if not isinstance(states, dict) or not (optimizer is None or isinstance(optimizer, Optimizer)):
        raise content.error("something else", None, "a dictionary of states, or a pair of it and an optimizer")
    if _parts(states, len(data)) < 0:
        raise content.error("parts that occur in each other, or in very many places", None, "trees of arrays")
    return states, optimizer


def _parts(value: Any, most: int, depth: int = 0) -> int:
    """Return what is left of `most` after the parts of a value, each counted wherever it occurs; negative: too many.

    Whoever walks through a state would otherwise never end, if a small file names the same tuple again and again.
    """
    if not isinstance(value, (tuple, list, dict)):
        return most - 1
    if depth > MAX_DEPTH:
        return -1
    for part in value.values() if isinstance(value, dict) else value:
        most = _parts(part, most, depth + 1)
        if most < 0:
            return most
    return most - 1


def _plain(value: Any, seen: dict[int, tuple[Any, Any]]) -> Any:
    """`value` in terms of plain values and records; shared lists, dicts and objects stay shared."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple):
        return tuple(_plain(v, seen) for v in value)
    if not isinstance(value, (NDArray, Optimizer, LRScheduler, list, dict)):
        return value
    if id(value) in seen:
        return seen[id(value)][1]
    made: Any
    if isinstance(value, NDArray):
        body = b"".join(encode_body(np.asarray(value.asnumpy())))
        made = Record("mxnet.ndarray.ndarray", "NDArray", (None,), {"handle": bytearray(body)})
        seen[id(value)] = (value, made)
    elif isinstance(value, list):
        made = []
        seen[id(value)] = (value, made)
        made.extend(_plain(v, seen) for v in value)
    elif isinstance(value, dict):
        made = {}
        seen[id(value)] = (value, made)
        made.update((_plain(k, seen), _plain(v, seen)) for k, v in value.items())
    else:
        made = Record(*_home(type(value)))
        seen[id(value)] = (value, made)
        state = value.__getstate__() if isinstance(value, Optimizer) else vars(value)
        made.state = _plain(state, seen)
    return made


def _home(cls: type) -> tuple[str, str]:
    """Module and name under which MXNet knows `cls`; its own for a user's class."""
    if cls.__module__.split(".")[0] != _PACKAGE:
        return cls.__module__, cls.__qualname__
    if issubclass(cls, LRScheduler):
        return "mxnet.lr_scheduler", cls.__name__
    return ("mxnet.optimizer.contrib" if cls.__name__ == "GroupAdaGrad" else "mxnet.optimizer.optimizer"), cls.__name__


def _schedules(cls: type = LRScheduler) -> Iterator[type]:
    yield cls
    for sub in cls.__subclasses__():
        yield from _schedules(sub)


def _find(record: Record) -> type:
    """The optimizer or schedule class that `record` names."""
    wanted, name = (record.module, record.name), record.name.rpartition(".")[2]
    registered = [OPTIMIZERS.get(name)] if name in OPTIMIZERS else []
    for cls in (*registered, *_schedules()):
        if wanted in (_home(cls), (cls.__module__, cls.__qualname__)):
            return cls
    raise FormatError(
        f"optimizer states: class {record.module}.{record.name} is no registered optimizer and no known schedule; "
        "if it is yours, import and register it before loading"
    )


def _check_settings(content: Content, name: str, cls: type, known: dict[str, Any], state: Any) -> dict[str, Any]:
    """Settings of an optimizer or schedule: none in the place of a method, numbers where it has numbers."""
    if not isinstance(state, dict) or not all(isinstance(k, str) for k in state):
        raise content.error(f"{name} has no settings")
    for key, value in state.items():
        default = known.get(key)
        number = isinstance(default, (int, float)) and not isinstance(value, (int, float, type(None), LRScheduler))
        if number or (isinstance(default, dict) and not isinstance(value, dict)):
            raise content.error(f"{name}: {key}={value!r:.80}", None, f"a value like {default!r}")
        if callable(getattr(cls, key, None)) or isinstance(getattr(cls, key, None), property):
            raise content.error(f"{name}: a setting with the name of the method {key!r}")
    schedule = state.get("lr_scheduler")
    if issubclass(cls, Optimizer) and not (schedule is None or callable(schedule)):
        raise content.error(f"{name}: lr_scheduler={schedule!r:.80}", None, "a schedule or None")
    return state


class _Loader:
    def __init__(self, content: Content) -> None:
        self.content = content
        self.done: dict[int, Any] = {}

    def build(self, value: Any, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise FormatError("optimizer states: nested too deeply")
        if not isinstance(value, (tuple, list, dict, Record)):
            if value is None or isinstance(value, (bool, int, float, str, bytes)):
                return value
            raise FormatError(f"optimizer states: a {type(value).__name__} where a value was expected")
        key = id(value)
        if key in self.done:
            return self.done[key]
        if isinstance(value, Record):
            return self.record(value, depth)
        if isinstance(value, tuple):
            made: Any = tuple(self.build(v, depth + 1) for v in value)
            self.done[key] = made
        elif isinstance(value, list):
            made = self.done[key] = []
            made.extend(self.build(v, depth + 1) for v in value)
        else:
            made = self.done[key] = {}
            made.update((k, self.build(v, depth + 1)) for k, v in value.items())
        return made

    def record(self, record: Record, depth: int) -> Any:
        if record.module.startswith(("mxnet.ndarray.", "mxnet.numpy.")) and record.name in _ARRAYS | {"ndarray"}:
            made: Any = _array(record, self.content)
        elif record.module.split(".")[0] == "numpy" and record.name == "scalar":
            made = _numpy_scalar(record)
        else:
            cls = _find(record)
            state = self.build(record.state, depth + 1)
            made = object.__new__(cls)
            if isinstance(made, Optimizer):
                Optimizer.__init__(made)
            known = dict(vars(made))
            state = _check_settings(self.content, record.name, cls, known, state)
            made.__dict__.update({**known, **state, "param_dict": {}} if isinstance(made, Optimizer) else state)
        self.done[id(record)] = made
        return made


def _array(record: Record, content: Content) -> NDArray:
    handle = record.state.get("handle") if isinstance(record.state, dict) else None
    if not isinstance(handle, bytes):
        raise FormatError("optimizer states: an array without data")
    body = decode_body(handle, "optimizer states")
    if isinstance(body, SparseBody):
        content.reserve(math.prod(body.shape) * body.data.itemsize, "a sparse state")
    values = body.todense() if isinstance(body, SparseBody) else body
    return array(values, dtype=values.dtype)


def _numpy_scalar(record: Record) -> Any:
    try:
        dtype, raw = record.args
        code = dtype.args[0]
        if not isinstance(raw, bytes) or code not in ("f8", "f4", "f2", "i8", "i4", "i2", "i1", "u1", "b1"):
            raise ValueError(code)
        return np.frombuffer(raw, "<" + code, 1)[0].item()
    except (ValueError, TypeError, AttributeError, IndexError):
        raise FormatError("optimizer states: a NumPy scalar of an unsupported kind") from None
