"""Optimizer states between workers and servers, and snapshots of a store for any number of servers."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.dtypes import NAMES, as_dtype
from ..core.errors import ArgumentError, FormatError
from ..core.reader import Content, read_file
from ..core.rng import rng_streams
from ..ndarray import NDArray, array
from ..ndarray.serialize import write_file
from ..optimizer.state_file import dump_states, load_states
from ..sparse import with_storage

if TYPE_CHECKING:
    from ..optimizer import Optimizer

MAX_DEPTH = 8


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
        if isinstance(tree, list) and depth < MAX_DEPTH:
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
    """Return the state of a complete key from the states of its slices, of `sizes` elements."""
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


FORMAT = "dualmx snapshot 1"


@dataclass
class Snapshot:
    """What a file holds of a distributed store: its values, its optimizer with the states, and where it stood.

    Attributes:
        rounds: rounds that were complete.
        random: where the random streams of a worker were.
        extra: what the caller keeps with it.
        values: arrays by key, in their storage types.
        states: states by key, and their optimizer; None without an optimizer.
    """

    rounds: int
    random: Any
    extra: Any
    values: dict[Any, Any]
    states: tuple[dict[Any, Any], Optimizer] | None

    def write(self, fname: str, stypes: Mapping[Any, str]) -> None:
        """Write it to a file; `values` are NumPy arrays then, of storage types `stypes`."""
        keys, parts = [], {}
        for i, (key, value) in enumerate(self.values.items()):
            keys.append([key, value.dtype.name, list(value.shape), stypes[key]])
            parts[f"value{i}"] = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
        if self.states is not None:
            parts["states"] = np.frombuffer(dump_states(*self.states), np.uint8)
        meta = {**_description(self.rounds, self.random), "extra": self.extra, "keys": keys}
        parts["meta"] = np.frombuffer(json.dumps(meta).encode(), np.uint8)
        out = io.BytesIO()
        np.savez(out, **parts)
        write_file(fname, out.getvalue())


def _description(rounds: int, random: Any) -> dict[str, Any]:
    return {"format": FORMAT, "rounds": rounds, "random": random}


def write_random_streams(fname: str, rounds: int) -> None:
    """Write where the random streams of this worker are, for workers other than the first."""
    write_file(fname, json.dumps(_description(rounds, rng_streams.state())).encode())


def restore_random_streams(snapshot: Snapshot, fname: str | None) -> None:
    """Go on with the random streams of the first worker, or of another one by its file if it is of that snapshot."""
    own = _description(snapshot.rounds, snapshot.random) if fname is None else _other_worker_file(fname)
    if own.get("rounds") == snapshot.rounds:
        rng_streams.restore(own["random"])


def _other_worker_file(fname: str) -> dict[str, Any]:
    """What another worker than the first wrote; nothing if there was none of this rank."""
    try:
        found = Content(read_file(fname), repr(fname), "random streams of a worker").json()
    except (OSError, FormatError):
        return {}
    return found if isinstance(found, dict) and found.get("format") == FORMAT else {}


def read_snapshot(fname: str) -> Snapshot:
    """Read what `Snapshot.write` wrote; the values are NDArrays.

    Raises:
        FormatError: no snapshot, or a damaged one. MXNetError: the file cannot be read.
    """
    content = Content.of_file(fname, "a snapshot of a store")
    arrays = content.npz()
    if "meta" not in arrays:
        raise content.error("no description of the store")
    described = arrays["meta"].tobytes()
    meta = Content(described, f"{content.source}, description", content.kind).json()
    values = {}
    with content.parsing():
        if meta["format"] != FORMAT:
            raise content.error(f"format {meta['format']!r}", None, repr(FORMAT))
        if type(meta["rounds"]) is not int or meta["rounds"] < 0:
            raise content.error(f"{meta['rounds']!r} rounds", None, "0 or more")
        random, extra = meta["random"], meta["extra"]
        for i, (key, name, shape, stype) in enumerate(meta["keys"]):
            if name not in NAMES or not isinstance(key, (int, str)):
                raise content.error(f"key {key!r} of {name!r}")
            value = arrays[f"value{i}"].view(as_dtype(name)).reshape(shape)
            made = array(value, dtype=value.dtype)
            values[key] = with_storage(made, stype) if stype == "row_sparse" else made
        try:
            rng_streams.parse(random)
        except ArgumentError as e:
            raise content.error(f"random streams: {e}") from e
    states = None
    if "states" in arrays:
        with content.parsing():
            found, optimizer = load_states(arrays["states"].tobytes())
        if optimizer is None:
            raise content.error("the snapshot lacks its optimizer")
        states = found, optimizer
    return Snapshot(meta["rounds"], random, extra, values, states)


__all__ = [
    "Snapshot", "StateReader", "flatten", "join_slices", "on_device", "read_snapshot", "read_states",
    "restore_random_streams", "slice_state", "write_random_streams",
]  # fmt: skip
