"""The .params container: golden bytes, round trips, altered files, exchange with MXNet."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dualmx.core.dtypes import DTYPE_TO_FLAG
from dualmx.core.errors import ArgumentTypeError, FormatError, MXNetError
from dualmx.ndarray import serialize as s
from dualmx.util import np_shape

HEAD = "1201000000000000 0000000000000000 0100000000000000 "
DICT = """1201000000000000 0000000000000000 0200000000000000
 c9fa93f9 00000000 02000000 0100000000000000 0200000000000000 01000000 00000000 00000000 0000803f 00000040
 c9fa93f9 00000000 01000000 0100000000000000 01000000 00000000 06000000 0700000000000000
 0200000000000000 0100000000000000 77 0100000000000000 69"""
ROW_SPARSE = (
    HEAD
    + """c9fa93f9 01000000 02000000 0100000000000000 0200000000000000  02000000 0500000000000000 0200000000000000
 01000000 00000000 00000000  06000000 01000000 0100000000000000  0000803f 00000040  0300000000000000
 0000000000000000"""
)
CSR = (
    HEAD
    + """c9fa93f9 02000000 01000000 0100000000000000  02000000 0200000000000000 0300000000000000
 01000000 00000000 00000000  06000000 01000000 0300000000000000  06000000 01000000 0100000000000000
 0000a040  0000000000000000 0000000000000000 0100000000000000  0100000000000000  0000000000000000"""
)
V1 = "c8fa93f9 02000000 0100000000000000 0200000000000000 01000000 00000000 00000000 0000c03f 00002040"
V0 = "02000000 01000000 02000000 01000000 00000000 00000000 0000c03f 00002040"
BOOL = "c9fa93f9 00000000 01000000 0200000000000000 01000000 00000000 07000000 0100"
EMPTY = "c9fa93f9 00000000 01000000 0000000000000000 01000000 00000000 00000000"

ARRAYS = [np.array([[1, 2]], "float32"), np.array([7], "int64")]
ROWS = s.SparseBody("row_sparse", (5, 2), np.array([[1, 2]], "float32"), (np.array([3]),))
CELLS = s.SparseBody("csr", (2, 3), np.array([5], "float32"), (np.array([0, 0, 1]), np.array([1])))


def raw(text: str) -> bytes:
    return bytes.fromhex("".join(text.split()))


def test_golden_dict():
    assert s.encode(ARRAYS, ["w", "i"]) == raw(DICT)
    arrays, names = s.decode(raw(DICT))
    assert names == ["w", "i"]
    for got, want in zip(arrays, ARRAYS, strict=True):
        assert got.dtype == want.dtype and np.array_equal(got, want)


@pytest.mark.parametrize("text, body", [(ROW_SPARSE, ROWS), (CSR, CELLS)], ids=["row_sparse", "csr"])
def test_golden_sparse(text, body):
    assert s.encode([body]) == raw(text)
    (got,), names = s.decode(raw(text))
    assert names == [] and got.stype == body.stype and got.shape == body.shape
    assert np.array_equal(got.data, body.data)
    assert all(np.array_equal(a, b) and a.dtype == np.int64 for a, b in zip(got.aux, body.aux, strict=True))


def test_sparse_to_dense():
    assert ROWS.todense().tolist() == [[0, 0]] * 3 + [[1, 2], [0, 0]]
    assert CELLS.todense().tolist() == [[0, 0, 0], [0, 5, 0]]


@pytest.mark.parametrize("text", [V0, V1], ids=["V0", "V1"])
def test_old_generations(text):
    (got,), _ = s.decode(raw(HEAD + text + " 0000000000000000"))
    assert got.dtype == np.float32 and got.tolist() == [[1.5, 2.5]]


def test_bool_and_empty_bodies():
    assert b"".join(s.encode_body(np.array([True, False]))) == raw(BOOL)
    assert s.decode_body(raw(BOOL)).tolist() == [True, False]
    assert b"".join(s.encode_body(np.zeros(0, "float32"))) == raw(EMPTY)
    assert s.decode_body(raw(EMPTY)).shape == (0,)


def test_scalar_uses_third_generation():
    body = b"".join(s.encode_body(np.array(5, "float32")))
    assert body[:4] == raw("cafa93f9")
    got = s.decode_body(body)
    assert got.shape == () and got == 5


def test_third_generation_under_numpy_shapes():
    """MXNet writes it in this mode, and reads nothing else in it; bytes of MXNet 1.9.1."""
    with np_shape(True):
        assert s.encode([np.ones(2, "bool")], ["a"]) == raw(
            HEAD + "cafa93f9 00000000 01000000 0200000000000000 01000000 00000000 07000000 0101"
            "0100000000000000 0100000000000000 61"
        )
        empty = b"".join(s.encode_body(np.ones((0, 2), "float32")))
        assert s.encode([ROWS]) == raw(ROW_SPARSE)
    assert empty[:4] == raw("cafa93f9") and s.decode_body(empty).shape == (0, 2)
    assert b"".join(s.encode_body(np.zeros(0, "float32"))) == raw(EMPTY)


@pytest.mark.parametrize("dtype", list(DTYPE_TO_FLAG), ids=str)
def test_every_dtype_round_trips(dtype):
    a = np.array([[0, 1, 2], [3, 1, 0]]).astype(dtype)
    (got,), _ = s.decode(s.encode([a]))
    assert got.dtype == dtype and np.array_equal(got, a)


def test_bfloat16_bytes():
    body = b"".join(s.encode_body(np.array([1.0], ml_dtypes.bfloat16)))
    assert body.endswith(raw("0c000000 803f"))


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(
        st.text(max_size=8),
        hnp.arrays(st.sampled_from([d for d in DTYPE_TO_FLAG if d.kind in "fiub"]), hnp.array_shapes(max_dims=4)),
        max_size=4,
    )
)
def test_any_dict_round_trips(data):
    arrays, names = s.decode(s.encode(list(data.values()), list(data)))
    assert names == list(data)
    for got, want in zip(arrays, data.values(), strict=True):
        assert got.dtype == want.dtype and got.shape == want.shape and got.tobytes() == want.tobytes()


@pytest.mark.parametrize("text", [DICT, ROW_SPARSE, CSR], ids=["dict", "row_sparse", "csr"])
def test_every_truncation_is_refused(text):
    data = raw(text)
    for n in range(len(data)):
        with pytest.raises(FormatError, match="at byte"):
            s.decode(data[:n])


@pytest.mark.parametrize("text", [DICT, ROW_SPARSE, CSR], ids=["dict", "row_sparse", "csr"])
def test_altered_bytes_never_surprise(text):
    data = raw(text)
    for i in range(len(data)):
        for flip in (0x01, 0x80, 0xFF):
            bad = bytearray(data)
            bad[i] ^= flip
            try:
                arrays, _ = s.decode(bytes(bad))
            except FormatError:
                continue
            # Without a checksum altered values pass; the structure must still be sound.
            for a in arrays:
                if isinstance(a, s.SparseBody) and np.prod(a.shape) < 10_000:
                    a.todense()


@pytest.mark.parametrize(
    "offset, value, complaint",
    [
        (0, 0x113, "list magic"),
        (8, 1, "reserved"),
        (16, 2**60, "number of arrays"),
        (36, 2**50, "values"),
        (36, -3, "shape"),
    ],
)
def test_errors_name_the_field(offset, value, complaint):
    bad = bytearray(raw(DICT))
    bad[offset : offset + 8] = (value % 2**64).to_bytes(8, "little")
    with pytest.raises(FormatError, match=complaint):
        s.decode(bad, "model.params")


def test_names_of_unknown_or_huge_length_are_refused():
    body = s.encode([np.zeros(1)], ["ab"])
    for tail in (raw("ffffffffffffff7f") + b"ab", raw("0200000000000000") + b"\xff\xfe"):
        with pytest.raises(FormatError, match="name 0 of 1"):
            s.decode(body[:-10] + tail)


def test_trailing_bytes_are_refused():
    with pytest.raises(FormatError, match="unexpected bytes"):
        s.decode(raw(DICT) + b"x")


class Fake:
    def __init__(self, a):
        self.a = a

    def asnumpy(self):
        return self.a


def test_save_and_load_files(tmp_path: Path):
    f = tmp_path / "a.params"
    s.save(f, {"w": Fake(ARRAYS[0]), "i": Fake(ARRAYS[1])})
    assert f.read_bytes() == raw(DICT)
    got = s.load(f, lambda a: a)
    assert isinstance(got, dict) and list(got) == ["w", "i"]
    s.save(str(f), Fake(ARRAYS[0]))
    assert isinstance(s.load(f, lambda a: a), list)
    assert os.listdir(tmp_path) == ["a.params"]


@pytest.mark.parametrize("bad", [3, [1], {"a": 3}, {1: Fake(ARRAYS[0])}, None])
def test_save_refuses_other_things(tmp_path, bad):
    with pytest.raises(TypeError if isinstance(bad, (list, dict)) else ValueError, match="expected an NDArray"):
        s.save(tmp_path / "x", bad)
    with pytest.raises(ArgumentTypeError, match="object"):
        s.save(tmp_path / "x", Fake(np.array([None])))
    assert not os.listdir(tmp_path)


def test_load_of_missing_or_corrupt_file_names_it(tmp_path):
    with pytest.raises(MXNetError, match=r"nope\.params"):
        s.load(tmp_path / "nope.params", lambda a: a)
    (tmp_path / "cut.params").write_bytes(raw(DICT)[:-1])
    with pytest.raises(FormatError, match=r"cut\.params.*name 1 of 2"):
        s.load(tmp_path / "cut.params", lambda a: a)
    with pytest.raises(ArgumentTypeError, match="load: fname=3: expected a file name"):
        s.load(3, lambda a: a)


@pytest.mark.oracle
def test_exchange_with_mxnet(tmp_path):
    ask = Path(os.environ.get("DUALMX_ORACLE", "")) / "bin" / "python"
    if not ask.is_file():
        pytest.skip("DUALMX_ORACLE names no MXNet")
    bodies = [np.arange(6, dtype=d).reshape(2, 3) for d in ("float32", "float64", "float16", "uint8", "int32", "int64")]
    (tmp_path / "ours").write_bytes(s.encode([*bodies, ROWS, CELLS], [f"n{i}" for i in range(8)]))
    code = "import sys, mxnet as mx; mx.nd.save(sys.argv[2], mx.nd.load(sys.argv[1]))"
    files = [str(tmp_path / "ours"), str(tmp_path / "theirs")]
    subprocess.run([str(ask), "-W", "ignore", "-c", code, *files], check=True, timeout=120)
    assert (tmp_path / "theirs").read_bytes() == (tmp_path / "ours").read_bytes()
