"""What traces of operators gave, kept on disk between processes.

There is a file for each call, dtypes and ranks, with what was traced for patterns of sizes. It holds data, which
readers verify: nothing of a file is evaluated. Names of files follow from the versions of JAX and NumPy and from the
sources of operators and kernels, so that an edited operator is traced anew. Entries of common operators come with the
package; they are programs on NumPy arrays, right with any version. Without an entry one traces, as the first process
did.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import logging
import math
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jax
import ml_dtypes
import numpy as np

from ..core import knobs
from .stored_source import FormatError
from .symbolic_sizes import Pattern, refinement

_logger = logging.getLogger(__name__)
PACKAGE = Path(__file__).parents[1]
SHIPPED = Path(__file__).with_name("shipped_traces.json")  # a product of the build
_SOURCES = ("op", "compile/cpu/kernels", "core/dtypes.py", "graph/vjp.py")
_OPERATORS = f"{__package__}.defs."
# Settings of JAX that change what a body computes.
_SETTINGS = ("jax_default_prng_impl", "jax_threefry_partitionable", "jax_numpy_dtype_promotion")
MAX_FILE_BYTES, _MAX_CONSTANT_BYTES = 4 << 20, 64 << 10
_CHECKSUM_BYTES = 16
_KEPT_SECONDS = 30 * 24 * 3600
_DTYPES = {
    name: np.dtype(getattr(np, name, None) or getattr(ml_dtypes, name))
    for name in (
        "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128 bfloat16"
    ).split()
}
_NUMBERS = frozenset({"ConvDimensionNumbers", "GatherDimensionNumbers", "ScatterDimensionNumbers"})  # of jax.lax

Entry = dict[str, Any]


def encode_dtype(dtype: Any) -> str:
    """Return the name of a dtype, if it is one that readers know."""
    name = np.dtype(dtype).name
    if name not in _DTYPES:
        raise FormatError(name)
    return name


def decode_dtype(name: Any) -> np.dtype:
    """Return the dtype of a name."""
    if type(name) is not str or name not in _DTYPES:
        raise FormatError(repr(name)[:200])
    return _DTYPES[name]


def encode_constant(value: Any) -> Any:
    """Return a constant of a kernel as data."""
    if isinstance(value, np.dtype):
        return {"dtype": encode_dtype(value)}
    if isinstance(value, (np.ndarray, np.generic)):
        if value.nbytes > _MAX_CONSTANT_BYTES:
            raise FormatError("a large constant")
        text = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
        return {"array": text, "of": encode_dtype(value.dtype), "shape": list(value.shape)}
    if type(value) in (bool, int, float):
        return {"number": value}
    if type(value).__name__ in _NUMBERS:
        return {type(value).__name__: {name: [*map(int, getattr(value, name))] for name in value._fields}}
    raise FormatError(repr(value)[:200])


def decode_constant(data: Any) -> Any:
    """Return the constant that data stands for."""
    match data:
        case {"dtype": name, **rest} if not rest:
            return decode_dtype(name)
        case {"array": str() as text, "of": name, "shape": list() as shape, **rest} if not rest:
            dtype, sizes = decode_dtype(name), _sizes(shape)
            raw = base64.b64decode(text, validate=True)
            if len(raw) > _MAX_CONSTANT_BYTES or math.prod(sizes) * dtype.itemsize != len(raw):
                raise FormatError(f"{len(raw)} bytes for {shape}")
            array = np.frombuffer(raw, dtype).reshape(sizes)
            return array if sizes else array[()]
        case {"number": bool() | int() | float() as number, **rest} if not rest:
            return number
        case dict() if len(data) == 1 and _NUMBERS.issuperset(data):
            ((name, fields),) = data.items()
            made = getattr(jax.lax, name)
            if type(fields) is not dict or set(fields) != set(made._fields):
                raise FormatError(repr(fields)[:200])
            return made(**{name: _sizes(value) for name, value in fields.items()})
    raise FormatError(repr(data)[:200])


def _sizes(data: Any) -> tuple[int, ...]:
    if type(data) is not list or len(data) > 64 or not all(type(n) is int and 0 <= n < 1 << 48 for n in data):
        raise FormatError(repr(data)[:200])
    return tuple(data)


# -- what a file is called


@cache
def source_digest() -> str:
    """Return what stands for the sources that a trace follows from."""
    return digest_of(_source_files())


@cache
def _folder_name() -> str:
    """Return what stands for the sources and the versions in use."""
    versions = [f"{module.__name__} {module.__version__}" for module in (jax, np, ml_dtypes)]
    text = "\n".join([source_digest(), *versions])
    return hashlib.blake2b(text.encode(), digest_size=_CHECKSUM_BYTES).hexdigest()


def digest_of(paths: Iterable[Path]) -> str:
    """Return what stands for the contents of files and the settings of JAX."""
    found = hashlib.blake2b(digest_size=_CHECKSUM_BYTES)
    for name in _SETTINGS:
        found.update(f"{name} {jax.config.values.get(name)}\n".encode())
    for path in paths:
        text = path.read_bytes()
        found.update(f"{path.relative_to(PACKAGE).as_posix()} {len(text)}\n".encode())
        found.update(text)
    return found.hexdigest()


def _source_files() -> Iterator[Path]:
    for name in _SOURCES:
        path = PACKAGE / name
        yield from sorted(path.rglob("*.py")) if path.is_dir() else [path]


def key_of(call: Any, pattern: Pattern) -> str | None:
    """Return a text that names a `Call`, dtypes and ranks in every process, None if there is none.

    Only operators of the package have one: of others no source is known.
    """
    if call.joint or call.op.dynamic or not call.op.fn.__module__.startswith(_OPERATORS):
        return None
    try:
        params = [f"{name}={_canonical(value)}" for name, value in sorted(call.static.items())]
        inputs = [f"{encode_dtype(dtype)}[{','.join(str(n) if n >= 0 else '' for n in row)}]" for row, dtype in pattern]
    except FormatError:
        return None
    runtime = [f"{n}[{len(call.params[n]) if call.op.params[n].vector else ''}]" for n in call.op.runtime]
    return " ".join([call.op.name, str(call.train), str(call.n_results), *runtime, *params]) + ": " + " ".join(inputs)


def _canonical(value: Any) -> str:
    if value is None or type(value) in (bool, int, float, str):
        return repr(value)
    if type(value) in (tuple, list):
        return f"({''.join(_canonical(v) + ',' for v in value)})"
    if isinstance(value, np.dtype):
        return f"dtype {encode_dtype(value)}"
    raise FormatError(repr(value)[:200])


def encode_pattern(pattern: Pattern) -> Any:
    """Return a pattern as data, without the dtypes, which are in the key."""
    return [list(row) for row, _ in pattern]


def decode_refinement(data: Any, pattern: Pattern) -> tuple[int, ...] | None:
    """Return which sizes of a pattern are those of a stored one; see `refinement`."""
    if type(data) is not list or len(data) != len(pattern):
        raise FormatError(repr(data)[:200])
    for row in data:
        if type(row) is not list or not all(type(n) is int for n in row):
            raise FormatError(repr(row)[:200])
    numbers = dict.fromkeys(n for row in data for n in row if n < 0)
    if list(numbers) != [-1 - k for k in range(len(numbers))]:
        raise FormatError(repr(data)[:200])
    return refinement(tuple((tuple(row), dtype) for row, (_, dtype) in zip(data, pattern, strict=True)), pattern)


# -- files


class TraceStore:
    """The entries of a folder, and those that came with the package."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}  # of this process, by key
        self._lock = threading.Lock()

    def read(self, key: str) -> Entry:
        """Return what is known of a key; empty if nothing is. It is not verified yet."""
        found = self._entries.get(key)
        if found is None:
            found = self._entries[key] = self._from_files(self._path(key), key)
        return found

    def _from_files(self, path: Path | None, key: str) -> Entry:
        found = _shipped().read(key)
        for part, values in ((read_entry(path, key) if path is not None else None) or {}).items():
            known = found.setdefault(part, [])
            known += [v for v in values if v not in known]
        return found

    def add(self, key: str, parts: dict[str, Any]) -> None:
        """Add a value to each of some lists of an entry, in this process and on disk."""
        with self._lock:
            path = self._path(key)
            # Another process may have added to it meanwhile; what is lost by writing at once is traced again.
            entry = self._from_files(path, key) if path is not None else self.read(key)
            for part, value in parts.items():
                known = entry.setdefault(part, [])
                if value not in known:
                    known.append(value)
            self._entries[key] = entry
            if path is not None:
                write_entry(path, key, entry)

    def forget(self) -> None:
        """Forget what this process has read."""
        self._entries.clear()

    def _path(self, key: str) -> Path | None:
        folder = knobs.CACHE.read()
        if not folder:
            return None
        return Path(os.path.expanduser(folder), "traces", _folder_name(), f"{_name_of(key)}.json")


class TraceFile:
    """The entries of common operators in one file, which was made with the package.

    Its first line is a JSON object: the digest of the sources, and where the entry of each key is.

    Args:
        path: the file; without it, or if it is of other sources, there are no entries.
    """

    def __init__(self, path: Path):
        self._path = path
        self._places: dict[str, Any] = {}
        self._start = 0
        try:
            with open(path, "rb") as file:
                line = file.readline(MAX_FILE_BYTES)
            head = json.loads(line)
            digest, places = read_fields(head, sources=str, places=dict)
            if digest != source_digest():
                raise FormatError("it was made from other sources")
            self._places, self._start = places, len(line)
        except FileNotFoundError:
            pass
        except (FormatError, OSError, ValueError, RecursionError) as e:
            _logger.debug("%s is not used: %s", path, e)

    @property
    def is_usable(self) -> bool:
        """Whether the file is there and was made from these sources."""
        return bool(self._places)

    def read(self, key: str) -> Entry:
        """Return the entry of a key, empty if there is none."""
        place = self._places.get(_name_of(key)) if self._places else None
        if type(place) is not list or len(place) != 2 or not all(type(n) is int and n >= 0 for n in place):
            return {}
        return read_entry(self._path, key, self._start + place[0], place[1]) or {}

    @staticmethod
    def write(path: Path, folder: Path) -> int:
        """Write the file of the entries of a cache's folder; returns how many they are."""
        files = sorted(Path(folder, "traces", _folder_name()).glob("*.json"))
        texts = [file.read_bytes() for file in files]
        starts = itertools.accumulate(map(len, texts), initial=0)
        places = {file.stem: [start, len(text)] for file, text, start in zip(files, texts, starts, strict=False)}
        head = json.dumps({"sources": source_digest(), "places": places}, separators=(",", ":")).encode()
        path.write_bytes(head + b"\n" + b"".join(texts))
        return len(files)


@cache
def _shipped() -> TraceFile:
    return TraceFile(SHIPPED)


def _name_of(key: str) -> str:
    return hashlib.blake2b(key.encode(), digest_size=_CHECKSUM_BYTES).hexdigest()


def read_entry(path: Path, key: str, start: int = 0, length: int = MAX_FILE_BYTES + 1) -> Entry | None:
    """Return the entry of a part of a file, None if it is missing or damaged, or belongs to another key."""
    try:
        with open(path, "rb") as file:
            file.seek(start)
            raw = file.read(min(length, MAX_FILE_BYTES + 1))
    except OSError:
        return None
    try:
        checksum, _, text = raw.partition(b"\n")
        if len(raw) > MAX_FILE_BYTES or checksum != checksum_of(text):
            raise FormatError("its checksum is wrong")
        entry = json.loads(text)
        if type(entry) is not dict or entry.pop("key", None) != key:
            raise FormatError("it is of another operator")
        if any(type(values) is not list for values in entry.values()):
            raise FormatError("it has no lists")
        return entry
    except (FormatError, ValueError, RecursionError) as e:
        _logger.debug("%s is not used: %s", path, e)
        return None


def write_entry(path: Path, key: str, entry: Entry) -> None:
    """Write a file, which others see whole or not at all."""
    text = json.dumps({"key": key, **entry}, separators=(",", ":")).encode()
    if len(text) > MAX_FILE_BYTES // 2:
        return
    try:
        if not path.parent.is_dir():
            path.parent.mkdir(parents=True, exist_ok=True)
            _remove_old_folders(path.parent.parent)
        descriptor, name = tempfile.mkstemp(dir=path.parent)
        try:
            with open(descriptor, "wb") as file:
                file.write(checksum_of(text) + b"\n" + text)
            os.replace(name, path)
        except BaseException:
            os.unlink(name)
            raise
    except OSError as e:
        _logger.debug("%s is not written: %s", path, e)


def _remove_old_folders(parent: Path) -> None:
    """Remove the folders of sources and versions that have added nothing for long."""
    oldest = time.time() - _KEPT_SECONDS
    for folder in parent.iterdir():
        if folder.is_dir() and folder.stat().st_mtime < oldest:
            shutil.rmtree(folder, ignore_errors=True)


def checksum_of(text: bytes) -> bytes:
    """Return the first line of a file."""
    return hashlib.blake2b(text, digest_size=_CHECKSUM_BYTES).hexdigest().encode()


def read_fields(data: Any, **types: type) -> list[Any]:
    """Return the values of a stored object that has these fields, of these types, and no others."""
    if type(data) is not dict or set(data) != set(types) or any(type(data[n]) is not t for n, t in types.items()):
        raise FormatError(repr(data)[:200])
    return [data[name] for name in types]


def describe_refusal(key: str, problem: Exception) -> None:
    """Tell those who debug why what is stored under a key is not used."""
    _logger.debug("what is stored for %s is not used: %s", key, problem)


store = TraceStore()

__all__ = [
    "TraceFile", "TraceStore", "decode_constant", "decode_dtype", "decode_refinement", "describe_refusal",
    "encode_constant", "encode_dtype", "encode_pattern", "key_of", "read_fields", "store",
]  # fmt: skip
