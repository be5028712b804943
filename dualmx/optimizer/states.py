"""Optimizer-state files: MXNet's format (a pickle of arrays and settings), read without running anything from them.

A file holds `{index: state}` or `({index: state}, optimizer)`. Classes in it are looked up among the registered
optimizers and the known schedules by name; any other class is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..core.errors import FormatError
from ..lr_scheduler import LRScheduler
from ..ndarray import NDArray, array
from ..ndarray.serialize import SparseBody, decode_body, encode_body
from .optimizer import OPTIMIZERS, Optimizer
from .pickle_format import MAX_DEPTH, Record, read, write

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


def load_states(data: bytes) -> tuple[dict[Any, Any], Optimizer | None]:
    """Decode what `dump_states` or MXNet wrote into `(states by index, optimizer or None)`.

    Raises:
        FormatError: damaged data, or a class that is neither array, registered optimizer nor known schedule.
    """
    value = _Loader().build(read(data), 0)
    states, optimizer = value if isinstance(value, tuple) and len(value) == 2 else (value, None)
    if not isinstance(states, dict) or not (optimizer is None or isinstance(optimizer, Optimizer)):
        raise FormatError("optimizer states: expected a dictionary of states, or a pair of it and an optimizer")
    return states, optimizer


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


class _Loader:
    def __init__(self) -> None:
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
            made: Any = _array(record)
        elif record.module.split(".")[0] == "numpy" and record.name == "scalar":
            made = _numpy_scalar(record)
        else:
            cls = _find(record)
            state = self.build(record.state, depth + 1)
            if not isinstance(state, dict) or not all(isinstance(k, str) for k in state):
                raise FormatError(f"optimizer states: {record.name} has no settings")
            made = object.__new__(cls)
            if isinstance(made, Optimizer):
                Optimizer.__init__(made)
                state = {**vars(made), **state, "param_dict": {}}
            made.__dict__.update(state)
        self.done[id(record)] = made
        return made


def _array(record: Record) -> NDArray:
    handle = record.state.get("handle") if isinstance(record.state, dict) else None
    if not isinstance(handle, bytes):
        raise FormatError("optimizer states: an array without data")
    body = decode_body(handle, "optimizer states")
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
