"""The `.params` container: MXNet's binary format of named dense and sparse arrays, in NumPy and bytes only.

Everything read is checked against the remaining bytes before memory is allocated: a truncated or altered file raises a
`FormatError` that names file, array, field and offset. Nothing in a file is executed.
"""

from __future__ import annotations

import contextlib
import math
import os
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core import np_mode
from ..core.dtypes import DTYPE_TO_FLAG, FLAG_TO_DTYPE
from ..core.errors import ArgumentError, ArgumentTypeError, MXNetError
from ..core.reader import Content, Cursor, read_file

LIST_MAGIC = 0x112
V1_MAGIC, V2_MAGIC, V3_MAGIC = 0xF993FAC8, 0xF993FAC9, 0xF993FACA
_STYPES = ("default", "row_sparse", "csr")
_AUX_NAMES = {"row_sparse": ("indices",), "csr": ("indptr", "indices")}
_MAX_NDIM, _MAX_SIZE = 32, 1 << 58
_OBJECT_BYTES = 512  # bytes of an array in Python, beside its values
_CPU0 = struct.pack("<ii", 1, 0)


@dataclass(frozen=True, eq=False)
class SparseBody:
    """A sparse array as the file stores it.

    Attributes:
        stype: `"row_sparse"` or `"csr"`.
        shape: logical shape.
        data: the stored values; (rows, \\*shape[1:]) for row_sparse, (nnz,) for csr.
        aux: `(indices,)` for row_sparse, `(indptr, indices)` for csr; int64 when MXNet wrote them.
    """

    stype: str
    shape: tuple[int, ...]
    data: np.ndarray
    aux: tuple[np.ndarray, ...]

    def todense(self) -> np.ndarray:
        """Return the array with all its zeros, of shape `shape`."""
        out = np.zeros(self.shape, self.data.dtype)
        if self.stype == "row_sparse":
            out[self.aux[0]] = self.data
        else:
            rows = np.repeat(np.arange(self.shape[0]), np.diff(self.aux[0]))
            out[rows, self.aux[1]] = self.data
        return out


Body = np.ndarray | SparseBody


def encode(arrays: Sequence[Body], names: Sequence[str] = ()) -> bytes:
    """Return the container of `arrays`; `names` is empty for a list, else one name per array.

    Arrays are written as MXNet 1.9.1 writes them, byte for byte: with NumPy shapes switched on, dense arrays have the
    later generation of the format, which MXNet reads in that mode only. Arrays without axes always have it, because no
    other can express them.

    Raises:
        ArgumentTypeError: an element type that the format has no flag for.

    Example:
        >>> arrays, names = decode(encode([np.ones(2, "float32")], ["w"]))
        >>> names, arrays[0]
        (['w'], array([1., 1.], dtype=float32))
    """
    parts = [struct.pack("<QQQ", LIST_MAGIC, 0, len(arrays))]
    for a in arrays:
        parts += encode_body(a)
    parts.append(struct.pack("<Q", len(names)))
    for name in names:
        text = name.encode()
        parts += [struct.pack("<Q", len(text)), text]
    return b"".join(parts)


def encode_body(array: Body) -> list[bytes | memoryview]:
    """Return the pieces of one array's body; joined they are what MXNet also keeps in optimizer-state files."""
    if isinstance(array, SparseBody):
        aux_heads = [struct.pack("<i", _flag(x.dtype)) + _dims(x.shape) for x in array.aux]
        head = struct.pack("<Ii", V2_MAGIC, _STYPES.index(array.stype)) + _dims(array.data.shape) + _dims(array.shape)
        head += _CPU0 + struct.pack("<i", _flag(array.data.dtype)) + b"".join(aux_heads)
        return [head, _raw(array.data), *map(_raw, array.aux)]
    magic = V3_MAGIC if np_mode.shape.get() or not array.ndim else V2_MAGIC
    head = struct.pack("<Ii", magic, 0) + _dims(array.shape) + _CPU0 + struct.pack("<i", _flag(array.dtype))
    return [head, _raw(array)]


def decode(data: bytes | bytearray | memoryview, source: str = "buffer") -> tuple[list[Body], list[str]]:
    """Return `(arrays, names)` of a container of any MXNet generation; `names` is empty for a saved list.

    Args:
        data: the bytes of the file.
        source: what error messages call them.

    Raises:
        FormatError: truncated or altered data, with field and offset.
    """
    r = _Reader(Content(data, source, "a .params file"))
    if (magic := r.number("Q", "list magic")) != LIST_MAGIC:
        r.fail(f"is {magic:#x}", f"{LIST_MAGIC:#x}, with which a .params file begins")
    if r.number("Q", "reserved word") != 0:
        r.fail("is another number", "0")
    count = r.count("number of arrays", least=4)
    r.content.reserve(_OBJECT_BYTES * count, "the arrays", r.start)
    arrays: list[Body] = []
    for i in range(count):
        r.context = f"array {i} of {count}: "
        arrays.append(_read_body(r))
    r.context = ""
    n_names = r.count("number of names", least=8)
    if n_names not in (0, count):
        r.fail(f"is {n_names}", f"0 or the number of arrays, {count}")
    names = []
    for i in range(n_names):
        r.context = f"name {i} of {n_names}: "
        size = r.count("length", least=1)
        raw = r.take(size, "text")
        try:
            names.append(bytes(raw).decode())
        except UnicodeDecodeError:
            r.fail("is no text", "UTF-8")
    r.context = ""
    r.end()
    return arrays, names


def decode_body(data: bytes | bytearray | memoryview, source: str = "array state") -> Body:
    """Return the one array whose body `data` is (see `encode_body`)."""
    r = _Reader(Content(data, source, "an array"))
    body = _read_body(r)
    r.end()
    return body


def dumps(data: Any) -> bytes:
    """Return the container of an NDArray-like, a list of them, or a dict of names to them.

    Array-likes offer `.asnumpy()`; sparse ones `.stype`, `.data`, `.indices` and, for csr, `.indptr` besides.

    Raises:
        ArgumentError: `data` is none of these. ArgumentTypeError: it holds something else.
    """
    names: list[str] = []
    if isinstance(data, Mapping):
        names = list(data)
        arrays: Iterable[Any] = data.values()
    else:
        arrays = data if isinstance(data, (list, tuple)) else [data]
    arrays = list(arrays)
    if not all(isinstance(n, str) for n in names) or not all(hasattr(a, "asnumpy") for a in arrays):
        holds = isinstance(data, (Mapping, list, tuple))
        raise (ArgumentTypeError if holds else ArgumentError)(
            f"save: got {type(data).__name__}: expected an NDArray, a list of NDArrays or a dict of str to NDArray"
        )
    return encode([_body_of(a) for a in arrays], names)


def save(fname: str | os.PathLike[str], data: Any) -> None:
    """Write `data` (see `dumps`) to the file `fname`; a reader never sees a half-written file."""
    write_file(fname, dumps(data))


def write_file(fname: str | os.PathLike[str], content: bytes) -> None:
    """Write `content` beside `fname`, then rename, so that a crash leaves the old file or the new one."""
    path = os.path.realpath(os.fspath(fname))
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as f:
            f.write(content)
        return
    part = f"{path}.{os.getpid()}.part"
    try:
        with open(part, "wb") as f:
            f.write(content)
        os.replace(part, path)
    except OSError as e:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise MXNetError(f"cannot write {os.fspath(fname)!r}: {e.strerror or e}") from e


def load(fname: str | os.PathLike[str], make: Callable[[Body], Any]) -> list[Any] | dict[str, Any]:
    """Read a `.params` file: a list if it was saved without names, else a dict in saved order.

    Args:
        fname: the file.
        make: turns each `numpy.ndarray` or `SparseBody` into what the caller wants.

    Raises:
        MXNetError: the file cannot be opened. FormatError: it is truncated or altered.
    """
    if not isinstance(fname, (str, os.PathLike)):
        raise ArgumentTypeError(f"load: fname={fname!r}: expected a file name")
    return load_frombuffer(read_file(fname), make, repr(os.fspath(fname)))


def load_frombuffer(
    data: bytes | bytearray | memoryview, make: Callable[[Body], Any], source: str = "buffer"
) -> list[Any] | dict[str, Any]:
    """Like `load`, from bytes already in memory."""
    arrays, names = decode(data, source)
    made = [make(a) for a in arrays]
    return dict(zip(names, made, strict=True)) if names else made


def _body_of(array: Any) -> Body:
    stype = getattr(array, "stype", "default")
    if stype == "default":
        return np.asarray(array.asnumpy())
    aux = tuple(np.asarray(getattr(array, n).asnumpy(), np.int64) for n in _AUX_NAMES[stype])
    return SparseBody(stype, tuple(array.shape), np.asarray(array.data.asnumpy()), aux)


def _flag(dtype: np.dtype) -> int:
    if dtype not in DTYPE_TO_FLAG:
        raise ArgumentTypeError(f"save: dtype {dtype} has no place in a .params file; cast the array first")
    return DTYPE_TO_FLAG[dtype]


def _dims(shape: Sequence[int]) -> bytes:
    return struct.pack(f"<i{len(shape)}q", len(shape), *shape)


def _raw(a: np.ndarray) -> bytes:
    if a.dtype.byteorder == ">":
        a = a.astype(a.dtype.newbyteorder("<"))
    return a.tobytes()


class _Reader(Cursor):
    """Takes the fields of arrays."""

    def shape(self, field: str, code: str = "q", ndim: int | None = None) -> tuple[int, ...]:
        if ndim is None:
            ndim = self.number("i", field)
        if not 0 <= ndim <= _MAX_NDIM:
            self.fail(f"has {ndim} axes", f"0 to {_MAX_NDIM}")
        dims = struct.unpack(f"<{ndim}{code}", self.take(struct.calcsize(f"<{ndim}{code}"), field))
        if any(d < 0 for d in dims):
            self.fail(f"is {dims}", "lengths of 0 or more")
        if math.prod(d for d in dims if d) > _MAX_SIZE:
            self.fail(f"is {dims}", f"at most {_MAX_SIZE} elements")
        return dims

    def dtype(self, field: str) -> np.dtype:
        flag = self.number("i", field)
        if flag not in FLAG_TO_DTYPE:
            self.fail(f"is {flag}", f"0 to {max(FLAG_TO_DTYPE)}")
        return FLAG_TO_DTYPE[flag]

    def values(self, shape: tuple[int, ...], dtype: np.dtype, field: str) -> np.ndarray:
        raw = self.take(math.prod(shape) * dtype.itemsize, field)
        if dtype == np.bool_:
            return (np.frombuffer(raw, np.uint8) != 0).reshape(shape)
        return np.frombuffer(raw, dtype).reshape(shape).copy()


def _read_body(r: _Reader) -> Body:
    magic = r.number("I", "magic")
    if magic not in (V1_MAGIC, V2_MAGIC, V3_MAGIC):
        # The oldest generation has no magic: the word is the number of axes.
        if not 1 <= magic <= _MAX_NDIM:
            r.fail(f"is {magic:#x}", "a known generation or a number of axes")
        return _read_dense(r, r.shape("shape", "I", magic))
    if magic == V1_MAGIC:
        return _read_dense(r, r.shape("shape"))
    kind = r.number("i", "storage type")
    if kind not in (0, 1, 2) or (kind and magic == V3_MAGIC):
        r.fail(f"is {kind}", "0 (dense)" + ("" if magic == V3_MAGIC else ", 1 (row_sparse) or 2 (csr)"))
    if kind:
        return _read_sparse(r, _STYPES[kind])
    shape = r.shape("shape")
    if magic == V2_MAGIC and not shape:
        return np.zeros((0,), np.float32)
    return _read_dense(r, shape)


def _read_context(r: _Reader) -> None:
    if (kind := r.number("i", "device type")) not in range(1, 7):
        r.fail(f"is {kind}", "1 to 6")
    if (index := r.number("i", "device index")) < 0:
        r.fail(f"is {index}", "0 or more")


def _read_dense(r: _Reader, shape: tuple[int, ...]) -> np.ndarray:
    _read_context(r)
    return r.values(shape, r.dtype("dtype flag"), "values")


def _read_sparse(r: _Reader, stype: str) -> SparseBody:
    stored = r.shape("storage shape")
    shape = r.shape("shape")
    names = _AUX_NAMES[stype]
    wanted = shape[1:] if stype == "row_sparse" else ()
    if not stored or stored[1:] != wanted or not shape or (stype == "csr" and len(shape) != 2):
        r.fail(f"is {shape} with stored values of shape {stored}", f"a {stype} array")
    if max(shape[: 1 if stype == "row_sparse" else 2]) >= 1 << 31:
        r.fail(f"is {shape}", "rows and columns that 32 bits can count")
    _read_context(r)
    dtype = r.dtype("dtype flag")
    kinds = []
    for name in names:
        kind = r.dtype(f"{name} dtype flag")
        if kind.kind not in "iu":
            r.fail(f"means {kind}", "an integer type")
        kinds.append((name, kind, r.shape(f"{name} shape")))
    expected = {"indices": stored[:1], "indptr": (shape[0] + 1,)}
    for name, _, got in kinds:
        if got != expected[name] and not (name == "indptr" and got == (0,) and stored == (0,)):
            r.fail(f"{name}: is {got}", str(expected[name]))
    data = r.values(stored, dtype, "values")
    aux = []
    for name, kind, got in kinds:
        aux.append(r.values(got, kind, name))
        _check_aux(r, name, aux[-1], shape[0] if stype == "row_sparse" else shape[1], stored[0])
    if stype == "csr" and not aux[0].size:
        r.content.reserve((shape[0] + 1) * aux[0].itemsize, "the ends of its rows", r.start)
        aux[0] = np.zeros(shape[0] + 1, aux[0].dtype)
    return SparseBody(stype, shape, data, tuple(aux))


def _check_aux(r: _Reader, name: str, values: np.ndarray, bound: int, stored: int) -> None:
    if not values.size:
        return
    if name == "indptr":
        if values[0] != 0 or values[-1] != stored or (values[1:] < values[:-1]).any():
            r.fail("does not rise", f"from 0 to the number of stored values, {stored}")
    elif values.min() < 0 or values.max() >= bound:
        r.fail("leaves the range", f"0 to {bound - 1}")
