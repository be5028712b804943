"""Snapshots of a distributed store: values, optimizer, states and positions in one file, for any number of servers."""

from __future__ import annotations

import io
import json
import zipfile
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.dtypes import NAMES, as_dtype
from ..core.errors import ArgumentError, FormatError, unreadable
from ..core.seeds import streams
from ..ndarray import array
from ..ndarray.serialize import write_file
from ..optimizer.states import dump_states, load_states
from ..sparse import with_storage
from .states import gathered, give

if TYPE_CHECKING:
    from .dist import DistKVStore

FORMAT = "dualmx snapshot 1"


def save(kv: DistKVStore, fname: str, extra: Any) -> None:
    """See `DistKVStore.save_snapshot`."""
    try:
        told = json.dumps(extra)
    except (TypeError, ValueError) as e:
        raise ArgumentError(f"kvstore.save_snapshot: extra={extra!r}: {e}; expected what JSON can hold") from None
    kv._settle(list(kv._under_way))
    rounds = kv._restored + max((kv._kv.rounds[kv._number, k] for k in kv._like), default=0)
    here = {"format": FORMAT, "rounds": rounds, "random": streams.state()}
    if not kv._sync:
        kv.barrier()  # nobody pushes meanwhile; in synchronous stores no round ends without rank 0
    if kv.rank:
        write_file(f"{fname}.{kv.rank}", json.dumps(here).encode())
    else:
        _write(kv, fname, {**here, "extra": json.loads(told)})
    if not kv._sync:
        kv.barrier()


def _write(kv: DistKVStore, fname: str, meta: dict[str, Any]) -> None:
    values = kv._values(list(kv._like))
    keys, parts = [], {}
    for i, (key, value) in enumerate(values.items()):
        keys.append([key, value.dtype.name, list(value.shape), kv._like[key].stype])
        parts[f"value{i}"] = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
    optimizer = kv._optimizer
    if optimizer is not None:
        parts["states"] = np.frombuffer(dump_states(gathered(kv, optimizer), optimizer), np.uint8)
    parts["meta"] = np.frombuffer(json.dumps({**meta, "keys": keys}).encode(), np.uint8)
    out = io.BytesIO()
    np.savez(out, **parts)
    write_file(fname, out.getvalue())


def restore(kv: DistKVStore, fname: str) -> Any:
    """See `DistKVStore.restore_snapshot`."""
    meta, values, states = _read(fname)
    fresh = [k for k in values if k not in kv._like]
    if fresh:
        kv.init(fresh, [values[k] for k in fresh])
    for key in values.keys() - set(fresh):
        kv.reset(key, values[key])
    if states is not None:
        found, optimizer = load_states(states)
        if optimizer is None:
            raise FormatError(f"{fname!r}: the snapshot lacks its optimizer")
        if kv._optimizer is not None:
            optimizer.param_dict = kv._optimizer.param_dict
        kv.set_optimizer(optimizer)
        if kv.rank == 0:
            kv._kv.wait(give(kv, found, optimizer))
    kv._prepared("restore_snapshot")
    kv._restored = meta["rounds"]
    own = meta if kv.rank == 0 else _beside(f"{fname}.{kv.rank}")
    if own.get("rounds") == meta["rounds"]:
        streams.restore(own["random"])
    return meta["extra"]


def _beside(fname: str) -> dict[str, Any]:
    """What another worker than the first wrote; nothing if there was none of this rank."""
    try:
        with open(fname, "rb") as f:
            found = json.loads(f.read())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) and found.get("format") == FORMAT else {}


def _read(fname: str) -> tuple[dict[str, Any], dict[Any, Any], bytes | None]:
    try:
        with open(fname, "rb") as f:
            if not zipfile.is_zipfile(f):
                raise ValueError("no archive of arrays")
        with np.load(fname, allow_pickle=False) as parts:
            held = {name: parts[name] for name in parts.files}
        meta = json.loads(held["meta"].tobytes())
        if meta["format"] != FORMAT:
            raise ValueError(f"format {meta['format']!r}")
        values = {}
        for i, (key, name, shape, stype) in enumerate(meta["keys"]):
            if name not in NAMES:
                raise ValueError(f"element type {name!r}")
            value = held[f"value{i}"].view(as_dtype(name)).reshape(shape)
            made = array(value, dtype=value.dtype)
            values[key] = with_storage(made, stype) if stype == "row_sparse" else made
        states = held["states"].tobytes() if "states" in held else None
    except OSError as e:
        raise unreadable(f"cannot read {fname!r}", e) from e
    except (ValueError, KeyError, TypeError, AttributeError, zipfile.BadZipFile, EOFError) as e:
        raise FormatError(f"{fname!r}: not a snapshot of a store: {e}") from None
    return meta, values, states


__all__ = ["restore", "save"]
