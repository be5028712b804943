"""Files that other frameworks read: `.safetensors` and StableHLO."""

from __future__ import annotations

import sys

import jax
import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy

import dualmx as mx
from dualmx.contrib import safetensors as files
from dualmx.contrib import stablehlo
from dualmx.gluon import nn
from tests import jobs

TYPES = ["float32", "float64", "float16", "bfloat16", "int8", "uint8", "int32", "int64", "bool"]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(), (3,), (0, 2), (2, 3, 4)])
def test_arrays_come_back(tmp_path, dtype, shape) -> None:
    x = mx.nd.array(np.arange(np.prod(shape, dtype=int)).reshape(shape) % 2, dtype=dtype)
    files.save(tmp_path / "a.safetensors", {"x": x, "y": mx.nd.ones((2,))})
    found = files.load(tmp_path / "a.safetensors")
    assert sorted(found) == ["x", "y"] and found["x"].dtype == x.dtype and found["x"].shape == shape
    assert np.array_equal(found["x"].asnumpy().astype("f"), x.asnumpy().astype("f"))


def test_others_read_and_write_them(tmp_path) -> None:
    path = tmp_path / "a.safetensors"
    files.save(path, {"x": mx.nd.array([[1, 2], [3, 4]])}, {"made by": "test"})
    assert np.array_equal(safetensors.numpy.load_file(path)["x"], [[1, 2], [3, 4]])
    with safetensors.safe_open(path, "numpy") as file:
        assert file.metadata() == {"made by": "test"}
    safetensors.numpy.save_file({"b": np.arange(3), "a": np.ones(2, ml_dtypes.bfloat16)}, path)
    found = files.load(path)
    assert list(found) == ["a", "b"] and found["b"].asnumpy().tolist() == [0, 1, 2]


def test_blocks(tmp_path) -> None:
    def made() -> nn.HybridSequential:
        net = nn.HybridSequential()
        net.add(nn.Dense(4, in_units=3), nn.BatchNorm(in_channels=4), nn.Dense(2, in_units=4))
        net.initialize(mx.init.Normal(1), force_reinit=True)
        return net

    net, other, x = made(), made(), mx.nd.ones((2, 3))
    files.save(tmp_path / "net.safetensors", net)
    assert sorted(safetensors.numpy.load_file(tmp_path / "net.safetensors"))[0] == "0.bias"
    other.load_dict(files.load(tmp_path / "net.safetensors"))
    assert np.array_equal(other(x).asnumpy(), net(x).asnumpy())


def test_wrong_safetensors(tmp_path, monkeypatch) -> None:
    path = tmp_path / "a.safetensors"
    for data in (3, {"a": 3}, [mx.nd.ones((1,))]):
        with pytest.raises(mx.MXNetError, match="expected a dict of NDArrays, or a Block"):
            files.save(path, data)
    with pytest.raises(mx.MXNetError, match="cannot read .*a.safetensors"):
        files.load(path)
    files.save(path, {"a": mx.nd.ones((100,))})
    good = path.read_bytes()
    for bad in (b"", good[:9], good[:-1], b"\xff" * 8 + good[8:], good[:12] + b"?" + good[13:]):
        path.write_bytes(bad)
        with pytest.raises(mx.MXNetError, match="a.safetensors"):
            files.load(path)
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(mx.MXNetError, match=r"pip install 'dualmx\[safetensors\]'"):
        files.load(path)


def convolutional() -> nn.HybridSequential:
    net = nn.HybridSequential()
    net.add(nn.Conv2D(4, 3, padding=1, activation="relu"), nn.BatchNorm(), nn.MaxPool2D(), nn.Dropout(0.5), nn.Dense(3))
    net.initialize(mx.init.Xavier())
    return net


@pytest.mark.slow
def test_programs_run_where_there_is_only_jax(tmp_path) -> None:
    net, x = convolutional(), mx.nd.random.normal(shape=(2, 3, 8, 8))
    stablehlo.export_model(tmp_path / "net", net, x)
    expected = net(x).asnumpy()
    assert np.allclose(stablehlo.import_model(tmp_path / "net")(x).asnumpy(), expected, atol=1e-6)
    np.save(tmp_path / "x.npy", x.asnumpy())
    program = (
        "import sys, numpy as np, jax.export\n"
        "program = jax.export.deserialize(bytearray(open(sys.argv[1] + '/net', 'rb').read()))\n"
        "assert 'stablehlo.convolution' in program.mlir_module()\n"
        "np.save(sys.argv[1] + '/y.npy', program.call(np.load(sys.argv[1] + '/x.npy')))\n"
        "assert not any(name.startswith('dualmx') for name in sys.modules)\n"
    )
    jobs.run(jobs.PYTHON, "-c", program, tmp_path)
    assert np.allclose(np.load(tmp_path / "y.npy"), expected, atol=1e-6)


def test_programs_of_symbols_and_types(tmp_path) -> None:
    a, b, w = (mx.sym.var(n) for n in "abw")
    outputs = mx.sym.Group([a * w + b, mx.sym.sum(b)])
    x, y = mx.nd.array([1, 2], dtype="float64"), mx.nd.array([3, 4], dtype="float64")
    stablehlo.export_model(tmp_path / "s", outputs, x, y, params={"w": mx.nd.array([5, 6], dtype="float64")})
    first, second = stablehlo.import_model(tmp_path / "s")(x, y)
    assert first.dtype == np.float64 and first.asnumpy().tolist() == [8, 16] and second.asscalar() == 7
    assert jax.numpy.ones(1, float).dtype == np.float32


def test_programs_for_other_platforms(tmp_path) -> None:
    net = nn.Dense(2, in_units=3)
    net.initialize()
    stablehlo.export_model(tmp_path / "net", net, mx.nd.ones((1, 3)), platforms=("cpu", "cuda", "tpu"))
    program = jax.export.deserialize(bytearray((tmp_path / "net").read_bytes()))
    assert program.platforms == ("cpu", "cuda", "tpu")
    assert stablehlo.import_model(tmp_path / "net")(mx.nd.ones((1, 3))).shape == (1, 2)


def test_wrong_programs(tmp_path) -> None:
    net, path = nn.Dense(2, in_units=3), tmp_path / "net"
    net.initialize()
    with pytest.raises(mx.MXNetError, match="give example inputs"):
        stablehlo.export_model(path, net)
    with pytest.raises(mx.MXNetError, match="cannot read"):
        stablehlo.import_model(path)
    stablehlo.export_model(path, net, mx.nd.ones((1, 3)))
    with pytest.raises(mx.MXNetError, match=r"inputs \[\(\(2, 3\), 'float32'\)\]: the program is for \[\(\(1, 3\)"):
        stablehlo.import_model(path)(mx.nd.ones((2, 3)))
    with pytest.raises(mx.MXNetError, match="draws random numbers"):
        stablehlo.export_model(path, mx.sym.var("x") + mx.sym.random.normal(shape=(2,)), mx.nd.ones((2,)))
    path.write_bytes(b"no program at all")
    with pytest.raises(mx.MXNetError, match="a program that this JAX reads"):
        stablehlo.import_model(path)
