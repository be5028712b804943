"""Optimizer states between workers and servers, and snapshots of a store for any number of servers."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.dtypes import NAMES, as_dtype
from ..core.errors import ArgumentError, FormatError, MXNetError
from ..core.reader import Content, read_file
from ..core.rng import rng_streams
from ..ndarray import NDArray, array
from ..ndarray.serialize import write_file
from ..optimizer import Nadam
from ..optimizer.state_file import dump_states, load_states
from ..ps.protocol import LoadStates, StatesRequest, header
from ..sparse import with_storage

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


# -- between a distributed store and its servers


def gather_states(kv: DistKVStore, optimizer: Optimizer) -> dict[Any, Any]:
    """The states of all keys from all servers; the optimizer's counts are brought up to date."""
    found: dict[Any, dict[int, Any]] = {}
    counts: dict[Any, int] = {}
    for reply in kv._kv.wait(kv._kv.ask_all("kvstore.save_optimizer_states", header(StatesRequest(kv._number)))):
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
    step = kv._kv.next_setup_step(kv._number)
    return [
        kv._kv.ask(server, what, header(LoadStates(kv._number, trees, optimizer.num_update, step)), payload)
        for server, (trees, payload) in parts.items()
    ]


FORMAT = "dualmx snapshot 1"


def save(kv: DistKVStore, fname: str, extra: Any) -> None:
    """See `DistKVStore.save_snapshot`."""
    try:
        header = json.dumps(extra)
    except (TypeError, ValueError) as e:
        raise ArgumentError(f"kvstore.save_snapshot: extra={extra!r}: {e}; expected what JSON can hold") from None
    kv._wait_for_pushes(list(kv._pending_pushes))
    rounds = kv._restored + max((kv._kv.rounds[kv._number, k] for k in kv._specs), default=0)
    here = {"format": FORMAT, "rounds": rounds, "random": rng_streams.state()}
    if not kv._sync:
        kv.barrier()  # nobody pushes meanwhile; in synchronous stores no round ends without rank 0
    if kv.rank:
        write_file(f"{fname}.{kv.rank}", json.dumps(here).encode())
    else:
        _write(kv, fname, {**here, "extra": json.loads(header)})
    if not kv._sync:
        kv.barrier()


def _write(kv: DistKVStore, fname: str, meta: dict[str, Any]) -> None:
    values = kv._values(list(kv._specs))
    keys, parts = [], {}
    for i, (key, value) in enumerate(values.items()):
        keys.append([key, value.dtype.name, list(value.shape), kv._specs[key].stype])
        parts[f"value{i}"] = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
    optimizer = kv._optimizer
    if optimizer is not None:
        parts["states"] = np.frombuffer(dump_states(gather_states(kv, optimizer), optimizer), np.uint8)
    parts["meta"] = np.frombuffer(json.dumps({**meta, "keys": keys}).encode(), np.uint8)
    out = io.BytesIO()
    np.savez(out, **parts)
    write_file(fname, out.getvalue())


def restore(kv: DistKVStore, fname: str) -> Any:
    """See `DistKVStore.restore_snapshot`."""
    meta, values, states = _read(fname)
    fresh = [k for k in values if k not in kv._specs]
    if fresh:
        kv.init(fresh, [values[k] for k in fresh])
    for key in values.keys() - set(fresh):
        kv.reset(key, values[key])
    if states is not None:
        found, optimizer = states
        if kv._optimizer is not None:
            optimizer.param_dict = kv._optimizer.param_dict
        kv.set_optimizer(optimizer)
        if kv.rank == 0:
            kv._kv.wait(send_states(kv, found, optimizer))
    kv._setup_barrier("restore_snapshot")
    kv._restored = meta["rounds"]
    own = meta if kv.rank == 0 else _other_worker_file(f"{fname}.{kv.rank}")
    if own.get("rounds") == meta["rounds"]:
        rng_streams.restore(own["random"])
    return meta["extra"]


def _other_worker_file(fname: str) -> dict[str, Any]:
    """What another worker than the first wrote; nothing if there was none of this rank."""
    try:
        found = Content(read_file(fname), repr(fname), "random streams of a worker").json()
    except (OSError, FormatError):
        return {}
    return found if isinstance(found, dict) and found.get("format") == FORMAT else {}


def _read(fname: str) -> tuple[dict[str, Any], dict[Any, Any], tuple[dict[Any, Any], Optimizer] | None]:
    """What the store was, its values, and the states with their optimizer if it had one.

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
    return {"rounds": meta["rounds"], "random": random, "extra": extra}, values, states


__all__ = [
    "StateReader",
    "flatten",
    "gather_states",
    "join_slices",
    "on_device",
    "read_states",
    "restore",
    "save",
    "send_states",
    "slice_state",
]
