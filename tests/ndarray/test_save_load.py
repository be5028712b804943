"""`mx.nd.save` and `mx.nd.load`: MXNet's bytes, every dtype, damaged files, exchange with the real MXNet."""

import os
import pickle
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dualmx as mx
from dualmx import nd
from tests import jobs

HEAD = "1201000000000000 0000000000000000 0100000000000000 "
DICT = """1201000000000000 0000000000000000 0200000000000000
 c9fa93f9 00000000 02000000 0100000000000000 0200000000000000 01000000 00000000 00000000 0000803f 00000040
 c9fa93f9 00000000 01000000 0100000000000000 01000000 00000000 06000000 0700000000000000
 0200000000000000 0100000000000000 77 0100000000000000 69"""
V1 = "c8fa93f9 02000000 0100000000000000 0200000000000000 01000000 00000000 00000000 0000c03f 00002040"
V0 = "02000000 01000000 02000000 01000000 00000000 00000000 0000c03f 00002040"
BOOL = "c9fa93f9 00000000 01000000 0200000000000000 01000000 00000000 07000000 0100"
GPU = V1.replace("01000000 00000000 00000000 0000c03f", "02000000 03000000 00000000 0000c03f")
DTYPES = ["float32", "float64", "float16", "uint8", "int32", "int8", "int64", "bool", "int16", "uint16", "uint32",
          "uint64", "bfloat16"]  # fmt: skip


def raw(text: str) -> bytes:
    return bytes.fromhex("".join(text.split()))


def test_golden_bytes_of_a_dict(tmp_path):
    file = str(tmp_path / "a.params")
    nd.save(file, {"w": nd.array([[1, 2]]), "i": nd.array([7], dtype="int64")})
    assert Path(file).read_bytes() == raw(DICT)
    got = nd.load(file)
    assert list(got) == ["w", "i"]
    assert got["w"].dtype == np.float32 and got["w"].asnumpy().tolist() == [[1.0, 2.0]]
    assert got["i"].dtype == np.int64 and got["i"].asnumpy().tolist() == [7]
    assert all(isinstance(a, nd.NDArray) and a.context == mx.cpu() for a in got.values())


@pytest.mark.parametrize("body, dtype, values", [
    (V0, "float32", [[1.5, 2.5]]),
    (V1, "float32", [[1.5, 2.5]]),
    (GPU, "float32", [[1.5, 2.5]]),
    (BOOL, "bool", [True, False]),
], ids=["V0", "V1", "written on a GPU", "bool"])  # fmt: skip
def test_golden_bytes_of_every_generation(tmp_path, body, dtype, values):
    file = tmp_path / "old.params"
    file.write_bytes(raw(HEAD + body + " 0000000000000000"))
    (got,) = nd.load(file)
    assert got.dtype == np.dtype(dtype) and got.asnumpy().tolist() == values and got.context == mx.cpu()


def test_containers(tmp_path):
    file = tmp_path / "x"
    x, y = nd.array([1.0]), nd.array([[2], [3]], dtype="uint8")
    nd.save(file, x)
    assert [a.asnumpy().tolist() for a in nd.load(file)] == [[1.0]]
    nd.save(file, [x, y])
    assert [a.asnumpy().tolist() for a in nd.load(file)] == [[1.0], [[2], [3]]]
    nd.save(file, {"ключ": x, "": y})
    assert list(nd.load(file)) == ["ключ", ""]
    nd.save(file, [])
    assert nd.load(file) == []
    assert nd.load_frombuffer(nd.save_tobuffer({"a": x}))["a"].asnumpy().tolist() == [1.0]


def test_pending_values_views_and_variables_are_saved(tmp_path):
    x = nd.array([[1.0, 2.0], [3.0, 4.0]])
    x.attach_grad()
    view = x[1]
    with mx.autograd.record():
        z = (x * 3).sum()
    nd.save(tmp_path / "f", {"pending": x + 1, "view": view, "recorded": z})
    got = nd.load(tmp_path / "f")
    assert got["pending"].asnumpy().tolist() == [[2, 3], [4, 5]]
    assert got["view"].asnumpy().tolist() == [3, 4] and got["recorded"].asscalar() == 30
    z.backward()
    assert x.grad.asnumpy().tolist() == [[3, 3], [3, 3]]


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype(tmp_path, dtype):
    x = nd.array([[0, 1, 2], [3, 1, 0]], dtype=dtype)
    nd.save(tmp_path / "x", x)
    (got,) = nd.load(tmp_path / "x")
    assert got.dtype == x.dtype and got.asnumpy().tobytes() == x.asnumpy().tobytes()
    assert (got if dtype == "bool" else got + got).shape == (2, 3)


def attempt(data: bytes):
    """Load damaged bytes: an error of the format, or arrays that can be used."""
    try:
        found = nd.load_frombuffer(data)
    except mx.MXNetError as e:
        assert "byte" in str(e) or "truncated" in str(e) or "array" in str(e), e
        return None
    for a in found.values() if isinstance(found, dict) else found:
        assert a.asnumpy().shape == a.shape
    return found


def test_every_flipped_byte_is_an_error_or_another_value():
    good = raw(DICT)
    for at in range(len(good)):
        for flip in (0x01, 0x10, 0x80, 0xFF):
            attempt(good[:at] + bytes([good[at] ^ flip]) + good[at + 1 :])
    assert list(attempt(good)) == ["w", "i"]


def test_every_truncation_is_an_error(tmp_path):
    good = raw(DICT)
    file = tmp_path / "cut.params"
    for n in range(len(good)):
        file.write_bytes(good[:n])
        with pytest.raises(mx.MXNetError, match=r"cut\.params"):
            nd.load(file)
    assert (nd.ones((2,)) + 1).asnumpy().tolist() == [2.0, 2.0]


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=200), st.integers(0, 3))
def test_arbitrary_bytes_never_surprise(noise, kind):
    start = (b"", raw(HEAD), raw(HEAD + "c9fa93f9"), raw(HEAD + "c9fa93f9 01000000"))[kind]
    attempt(start + noise)


def test_a_pickle_is_not_executed(tmp_path):
    class Trap:
        def __reduce__(self):
            return (open, (str(tmp_path / "sprung"), "w"))

    file = tmp_path / "trap.params"
    file.write_bytes(pickle.dumps(Trap()))
    with pytest.raises(mx.MXNetError, match="trap"):
        nd.load(file)
    assert not (tmp_path / "sprung").exists()


def test_a_failed_save_leaves_the_old_file(tmp_path):
    file = tmp_path / "x"
    nd.save(file, nd.ones((2,)))
    with pytest.raises(
        mx.MXNetError, match="save: got dict: expected an NDArray, a list of NDArrays or a dict of str to NDArray"
    ):
        nd.save(file, {"a": nd.ones((2,)), "b": "text"})
    assert nd.load(file)[0].asnumpy().tolist() == [1.0, 1.0]
    assert os.listdir(tmp_path) == ["x"]


ORACLE = os.environ.get("DUALMX_ORACLE_PYTHON") or (
    str(Path(os.environ["DUALMX_ORACLE"]) / "bin" / "python") if os.environ.get("DUALMX_ORACLE") else ""
)
BOTH = ["float32", "float64", "float16", "uint8", "int8", "int32", "int64"]
COPY = "import sys, mxnet as mx; mx.nd.save(sys.argv[2], mx.nd.load(sys.argv[1]))"
WRITE = """
import sys, numpy as np, mxnet as mx
mx.nd.save(sys.argv[1], {d: mx.nd.array(np.arange(6).reshape(2, 3), dtype=d) for d in sys.argv[2:]})
"""


@pytest.mark.oracle
@pytest.mark.skipif(not ORACLE, reason="DUALMX_ORACLE_PYTHON names no Python with MXNet 1.9.1")
def test_exchange_with_mxnet(tmp_path):
    ours, back, theirs = (str(tmp_path / n) for n in ("ours", "back", "theirs"))
    nd.save(ours, {d: nd.array(np.arange(6).reshape(2, 3), dtype=d) for d in BOTH})
    subprocess.run([ORACLE, "-W", "ignore", "-c", COPY, ours, back], check=True, timeout=120)
    subprocess.run([ORACLE, "-W", "ignore", "-c", WRITE, theirs, *BOTH], check=True, timeout=120)
    assert Path(ours).read_bytes() == Path(back).read_bytes() == Path(theirs).read_bytes()
    for name, got in nd.load(theirs).items():
        assert got.dtype == np.dtype(name) and got.asnumpy().tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.slow
def test_loading_in_a_fresh_process_sets_nothing_else_up(tmp_path):
    nd.save(tmp_path / "w", {"w": nd.ones((2, 2))})
    code = f"import dualmx as mx; print(mx.nd.load({str(tmp_path / 'w')!r})['w'].asnumpy().sum())"
    done = jobs.run(jobs.PYTHON, "-c", code)
    assert done.stdout.split() == ["4.0"] and done.stderr == ""
