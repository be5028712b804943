"""Snapshots of a distributed store: values, optimizer, states and positions in one file, for any number of servers."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.dtypes import NAMES, as_dtype
from ..core.errors import ArgumentError, FormatError
from ..core.reader import Content, read_file
from ..core.seeds import rng_streams
from ..ndarray import array
from ..ndarray.serialize import write_file
from ..optimizer.states import dump_states, load_states
from ..sparse import with_storage
from .states import gather_states, send_states

if TYPE_CHECKING:
    from ..optimizer import Optimizer
    from .dist import DistKVStore

FORMAT = "dualmx snapshot 1"


def save(kv: DistKVStore, fname: str, extra: Any) -> None:
    """See `DistKVStore.save_snapshot`."""
    try:
        told = json.dumps(extra)
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
        _write(kv, fname, {**here, "extra": json.loads(told)})
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
    held = content.npz()
    if "meta" not in held:
        raise content.error("no description of the store")
    described = held["meta"].tobytes()
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
            value = held[f"value{i}"].view(as_dtype(name)).reshape(shape)
            made = array(value, dtype=value.dtype)
            values[key] = with_storage(made, stype) if stype == "row_sparse" else made
        try:
            rng_streams.parse(random)
        except ArgumentError as e:
            raise content.error(f"random streams: {e}") from e
    states = None
    if "states" in held:
        with content.parsing():
            found, optimizer = load_states(held["states"].tobytes())
        if optimizer is None:
            raise content.error("the snapshot lacks its optimizer")
        states = found, optimizer
    return {"rounds": meta["rounds"], "random": random, "extra": extra}, values, states


__all__ = ["restore", "save"]
