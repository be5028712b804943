"""Memory that arrays share with other libraries: what those write is read here, and the other way round."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from ..compile.devices import accepts_numpy, aligned_copy, device_put
from ..core import process
from ..core.context import Context
from ..op.defs.index import kept, ranges
from ..op.registry import Call

# Whether reference counts tell who holds an object: on CPython with the GIL up to 3.13.
COUNTS = sys.version_info < (3, 14) and getattr(sys, "_is_gil_enabled", lambda: True)()
_OWN_REFERENCES = 3  # to the owner of the memory: from `Exposed`, from its view, and while they are counted


class _Export:
    """What keeps memory shared: alive as long as another library holds it."""

    __slots__ = ("__array_interface__", "__weakref__", "_memory")

    def __init__(self, memory: np.ndarray):
        self._memory, self.__array_interface__ = memory, memory.__array_interface__


class Exposed:
    """The memory of an array that other libraries may change at any time.

    Nothing is kept of what was read from it: each use of the array reads it again.

    Args:
        values: the memory, with the shape and dtype of the array.
        foreign: it belongs to somebody else, and stays shared as long as anybody else may hold it.

    Attributes:
        memory: the values.
        writable: whether it can be written to here.
        recorded: the value of an array that is on the tape; gradients flow on as long as the memory has it.
    """

    __slots__ = ("_exports", "_foreign", "_owner", "memory", "recorded", "writable")

    def __init__(self, values: np.ndarray, foreign: bool = True):
        self.memory, self.writable, self._foreign = values, values.flags.writeable, foreign
        self.recorded: Any = None
        base = values.base
        counted = COUNTS and type(base) is np.ndarray and base.flags.owndata
        self._owner = base if foreign and counted else None
        self._exports: list[weakref.ref[_Export]] = []

    @classmethod
    def copied(cls, values: np.ndarray) -> Exposed:
        """Begin with a copy of `values`, since others may hold them who rely on their not being changed."""
        copy = aligned_copy(values)
        copy.flags.writeable = True
        return cls(copy, False)

    def export(self, window: Sequence[Call]) -> np.ndarray:
        """Return what `window` shows of the memory; it stays shared as long as the result or a view of it is held.

        Raises:
            ValueError: the window shows a copy.
        """
        export = _Export(through(self.memory, window, False))
        self._exports = [r for r in self._exports if r() is not None]
        self._exports.append(weakref.ref(export))
        return np.asarray(export).view(self.memory.dtype)  # the interface knows the types of NumPy only

    def is_shared(self) -> bool:
        """Whether anybody else may hold the memory."""
        if any(r() is not None for r in self._exports):
            return True
        return self._foreign and (self._owner is None or sys.getrefcount(self._owner) > _OWN_REFERENCES)

    def read(self, window: Sequence[Call], ctx: Context) -> Any:
        """Return a copy, as programs on `ctx` take it, of what `window` shows."""
        shown = through(self.memory, window)
        return aligned_copy(shown) if accepts_numpy(shown, ctx) else device_put(shown, ctx)

    def is_as_recorded(self) -> bool:
        """Whether nobody has written to the memory since it got the value that the tape knows."""
        known = self.recorded
        return known is not None and np.ascontiguousarray(self.memory).tobytes() == np.asarray(known).tobytes()

    def taken_back(self, ctx: Context) -> Any:
        """Return the last values, as programs take them, when nobody else holds the memory any more."""
        values = self.read((), ctx)
        if process.poisons and not self._foreign:
            process.poison(self.memory.ctypes.data, self.memory.nbytes)
        return values

    def write(self, values: Any) -> None:
        """Overwrite the memory with an array of its shape and dtype."""
        np.copyto(self.memory, np.asarray(values))


def through(values: np.ndarray, window: Sequence[Call], may_copy: bool = True) -> np.ndarray:
    """Return what the lenses of a window (`_basic_slice` and `Reshape`) show of `values`, a view where that can be.

    Raises:
        ValueError: it cannot be a view, and may not be a copy.
    """
    for lens in window:
        if lens.op.traits.is_window:
            p = lens.params
            taken = ranges(values.shape, p["begin"], p["end"], p["step"])
            box = tuple(slice(r.start, r.stop, r.step) for r in taken)  # no step is negative
            shape = kept(taken, p["squeeze"], p["zero_dim"])
            values = values[box]
        else:
            shape = lens.infer(((values.shape, values.dtype),))[0][0]
        shown = values.reshape(shape)
        if not may_copy and shown.size and not np.may_share_memory(shown, values):
            raise ValueError("its elements do not lie in memory as its shape has them")
        values = shown
    return values


# Arrays of JAX that users hold, by identity: another array of theirs may share the buffer, so it is never taken over.
protected: dict[int, weakref.ref[Any]] = {}


def protect(array: jax.Array) -> jax.Array:
    """Return `array`, whose buffer no program takes over from now on."""
    key = id(array)
    if key not in protected:
        protected[key] = weakref.ref(array, lambda _: protected.pop(key, None))
    return array


__all__ = ["COUNTS", "Exposed", "protected", "protect", "through"]
