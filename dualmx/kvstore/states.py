"""Optimizer states on their way between workers and servers: a tree in JSON, and the numbers of its arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.dtypes import NAMES, as_dtype
from ..core.errors import FormatError, MXNetError
from ..core.reader import read_file
from ..ndarray import NDArray, array
from ..optimizer import Nadam
from ..optimizer.states import load_states

if TYPE_CHECKING:
    from ..optimizer import Optimizer
    from ..ps.customer import Request
    from .dist import DistKVStore

DEPTH = 8


def flatten(state: Any, payload: list[np.ndarray]) -> Any:
    """Return `state` (None, arrays, tuples of them) as JSON; its arrays are appended to `payload`."""
    if state is None:
        return None
    if isinstance(state, (tuple, list)):
        return [flatten(s, payload) for s in state]
    values = np.ascontiguousarray(state.asnumpy() if isinstance(state, NDArray) else state)
    payload.append(values.reshape(-1).view(np.uint8))
    return {"dtype": values.dtype.name, "shape": list(values.shape)}


class StateReader:
    """Takes the arrays of trees out of a payload, in order."""

    def __init__(self, data: memoryview):
        self._data, self._at = data, 0

    def unflatten(self, tree: Any, depth: int = 0) -> Any:
        """Return the state of a tree, with NumPy arrays.

        Raises:
            FormatError: no tree, or numbers are missing.
        """
        if tree is None:
            return None
        if isinstance(tree, list) and depth < DEPTH:
            return tuple(self.unflatten(t, depth + 1) for t in tree)
        given: dict[str, Any] = tree if isinstance(tree, dict) else {}
        shape, name = given.get("shape"), given.get("dtype")
        if (
            not isinstance(shape, list)
            or len(shape) > 32
            or not all(type(n) is int and 0 <= n < 1 << 31 for n in shape)
        ):
            raise FormatError("optimizer state: neither an array nor a list of states")
        if name not in NAMES:
            raise FormatError(f"optimizer state: dtype={name!r}: not a supported element type")
        dtype = as_dtype(name)
        end = self._at + math.prod(shape) * dtype.itemsize
        if end > self._data.nbytes:
            raise FormatError("optimizer state: the numbers are missing")
        piece = self._data[self._at : end]
        self._at = end
        try:
            return np.frombuffer(bytes(piece), dtype).reshape(shape)
        except ValueError as e:  # an empty array with other lengths that no array can have
            raise FormatError(f"optimizer state: shape {shape}: {e}") from None


def on_device(state: Any) -> Any:
    """A state with NumPy arrays as one with NDArrays."""
    if isinstance(state, tuple):
        return tuple(on_device(s) for s in state)
    return None if state is None else array(state, dtype=state.dtype)


def join_slices(pieces: Sequence[Any], sizes: Sequence[int], shape: tuple[int, ...]) -> Any:
    """The state of a whole key from the states of its slices, of `sizes` elements."""
    if len(pieces) == 1 or pieces[0] is None:
        return pieces[0]
    if isinstance(pieces[0], tuple):
        return tuple(join_slices([p[i] for p in pieces], sizes, shape) for i in range(len(pieces[0])))
    if all(p.size == n for p, n in zip(pieces, sizes, strict=True)):
        return np.concatenate([p.reshape(-1) for p in pieces]).reshape(shape)
    return pieces[0]


def slice_state(state: Any, start: int, stop: int, size: int) -> Any:
    """The part of a key's state that belongs to elements `start` to `stop` of its `size`."""
    if isinstance(state, (tuple, list)):
        return tuple(slice_state(s, start, stop, size) for s in state)
    if state is None:
        return None
    values = state.asnumpy() if isinstance(state, NDArray) else state
    if (start, stop) == (0, size) or values.size != size:
        return values
    return values.reshape(-1)[start:stop]


def read_states(fname: str) -> tuple[dict[Any, Any], Optimizer | None]:
    """Read a file of states, with the optimizer if it has one.

    Raises:
        FormatError: a damaged file. MXNetError: it cannot be read.
    """
    return load_states(read_file(fname), repr(fname))


# -- between a distributed store and its servers


def gather_states(kv: DistKVStore, optimizer: Optimizer) -> dict[Any, Any]:
    """The states of all keys from all servers; the optimizer's counts are brought up to date."""
    found: dict[Any, dict[int, Any]] = {}
    counts: dict[Any, int] = {}
    for reply in kv._kv.wait(kv._kv.ask_all("kvstore.save_optimizer_states", kv._meta("states"))):
        reader = StateReader(reply.data())
        for key, number, count, tree in reply.field("states", list):
            found.setdefault(key, {})[number] = reader.unflatten(tree)
            counts[key] = max(count, counts.get(key, 0))
        optimizer.num_update = max(optimizer.num_update, reply.field("num_update", int))
    optimizer._index_update_count.update(counts)
    if isinstance(optimizer, Nadam) and kv._push_order and counts:
        optimizer.m_schedule = optimizer._product(max(counts.values()), len(kv._push_order) - 1, len(kv._push_order))
    states = {}
    for key, pieces in found.items():
        known = kv._kv.keys[kv._number, key]
        sizes = [s.stop - s.start for s in known.slices]
        states[key] = on_device(join_slices([pieces[s.number] for s in known.slices], sizes, known.shape))
    return states


def send_states(kv: DistKVStore, states: dict[Any, Any], optimizer: Optimizer) -> list[Request]:
    """Send states to the servers that keep their keys.

    Raises:
        MXNetError: a key is not in the store.
    """
    parts: dict[int, tuple[list[Any], list[np.ndarray]]] = {}
    for key, state in states.items():
        if key not in kv._specs:
            raise MXNetError(f"kvstore.load_optimizer_states: key {key!r} of the file is not in the store")
        known = kv._kv.keys[kv._number, key]
        for s in known.slices:
            trees, payload = parts.setdefault(s.server, ([], []))
            tree = flatten(slice_state(state, s.start, s.stop, known.slices[-1].stop), payload)
            trees.append([key, s.number, optimizer._index_update_count.get(key, 0), tree])
    what = "kvstore.load_optimizer_states"
    more = {"num_update": optimizer.num_update, "step": kv._kv.next_setup_step(kv._number)}
    return [
        kv._kv.ask(server, what, kv._meta("load", states=trees, **more), payload)
        for server, (trees, payload) in parts.items()
    ]


__all__ = [
    "StateReader", "flatten", "gather_states", "join_slices", "on_device", "read_states", "send_states", "slice_state",
]  # fmt: skip
