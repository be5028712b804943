"""Saving and loading parameters, exporting and importing, also with the real MXNet."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualmx as mx
from dualmx import gluon, nd
from dualmx.gluon import nn
from tests.gluon.oracle import ask


def make(prefix: str = "net_", units: int = 3, dtype: str = "float32") -> nn.HybridSequential:
    net = nn.HybridSequential(prefix=prefix)
    with net.name_scope():
        net.add(nn.Dense(units, in_units=2, activation="relu", dtype=dtype))
        net.add(nn.BatchNorm(in_channels=units))
        net.add(nn.Dense(1, in_units=units))
    return net


@pytest.fixture
def net() -> nn.HybridSequential:
    made = make()
    made.initialize(mx.init.Uniform(0.7))
    return made


X = np.array([[1, 2], [3, -4], [0.5, 0.25]], np.float32)


def test_keys(net: nn.HybridSequential, tmp_path: Path) -> None:
    path = str(tmp_path / "a.params")
    net.save_parameters(path)
    paths = ["0.weight", "0.bias", "1.gamma", "1.beta", "1.running_mean", "1.running_var", "2.weight", "2.bias"]
    assert list(nd.load(path)) == paths
    net.collect_params().save(path)
    assert list(nd.load(path))[0] == "net_dense0_weight"
    net.collect_params().save(path, strip_prefix="net_")
    assert list(nd.load(path))[0] == "dense0_weight"
    with pytest.raises(ValueError, match="strip_prefix='xx_'"):
        net.collect_params().save(path, strip_prefix="xx_")


@pytest.mark.usefixtures("one_tier")
def test_all_kinds_of_files_load(net: nn.HybridSequential, tmp_path: Path) -> None:
    expected = net(nd.array(X)).asnumpy()
    net.save_parameters(str(tmp_path / "paths"))
    net.collect_params().save(str(tmp_path / "full"))
    net.collect_params().save(str(tmp_path / "bare"), strip_prefix="net_")
    net.hybridize()
    net(nd.array(X))
    net.export(str(tmp_path / "exported"))
    for name in ("paths", "full", "bare", "exported-0000.params"):
        other = make()
        other.load_parameters(str(tmp_path / name))
        np.testing.assert_array_equal(other(nd.array(X)).asnumpy(), expected, err_msg=name)
    other = make("other_")
    other.load_parameters(str(tmp_path / "bare"))
    np.testing.assert_array_equal(other(nd.array(X)).asnumpy(), expected)


def test_single_layer(tmp_path: Path) -> None:
    a, b = nn.Dense(2, in_units=3), nn.Dense(2)
    a.initialize()
    a.save_parameters(str(tmp_path / "p"))
    b.load_parameters(str(tmp_path / "p"))
    np.testing.assert_array_equal(b.weight.data().asnumpy(), a.weight.data().asnumpy())


def test_missing_and_extra(net: nn.HybridSequential, tmp_path: Path) -> None:
    path = str(tmp_path / "p")
    net.save_parameters(path)
    small = nn.HybridSequential()
    small.add(nn.Dense(3, in_units=2))
    with pytest.raises(ValueError, match=r"'1.gamma' .* belongs to nothing here.*ignore_extra=True"):
        small.load_parameters(path)
    small.load_parameters(path, ignore_extra=True)
    large = make()
    large.add(nn.Dense(1))
    with pytest.raises(ValueError, match=r"'3.weight' is missing in file .*allow_missing=True"):
        large.load_parameters(path)
    large.load_parameters(path, allow_missing=True)
    np.testing.assert_array_equal(small[0].weight.data().asnumpy(), large[0].weight.data().asnumpy())


def test_shape_and_dtype_must_fit(net: nn.HybridSequential, tmp_path: Path) -> None:
    path = str(tmp_path / "p")
    net.save_parameters(path)
    with pytest.raises(ValueError, match=r"saved shape \(3, 2\) does not fit the expected shape \(5, 2\)"):
        make(units=5).load_parameters(path)
    half = make(dtype="float16")
    with pytest.raises(ValueError, match="expected dtype float16, saved float32; set cast_dtype=True"):
        half.load_parameters(path)
    half.load_parameters(path, cast_dtype=True)
    assert half[0].weight.data().dtype == np.float16
    half.load_parameters(path, cast_dtype=True, dtype_source="saved")
    assert half[0].weight.data().dtype == np.float32
    with pytest.raises(ValueError, match="dtype_source='foo'"):
        half.load_parameters(path, cast_dtype=True, dtype_source="foo")


def test_contexts(net: nn.HybridSequential, tmp_path: Path) -> None:
    path = str(tmp_path / "p")
    net.save_parameters(path)
    two = [mx.cpu(0), mx.cpu(1)]
    other = make()
    other.load_parameters(path, ctx=two)
    assert other.collect_params().list_ctx() == two
    with pytest.raises(ValueError, match="cannot load on"):
        other.load_parameters(path, ctx=mx.cpu(3))


def test_unready_parameters_are_not_saved(tmp_path: Path) -> None:
    layer = nn.Dense(2)
    with pytest.raises(mx.MXNetError, match="has not been initialized"):
        layer.save_parameters(str(tmp_path / "p"))
    layer.initialize()
    with pytest.raises(
        gluon.DeferredInitializationError,
        match="shape .* is not fully known and initialization was deferred.*Pass one batch",
    ):
        layer.save_parameters(str(tmp_path / "p"))


def test_deduplicate(tmp_path: Path) -> None:
    path = str(tmp_path / "p")
    a = nn.Dense(2, in_units=2)
    net = nn.Sequential()
    net.add(a, nn.Dense(2, in_units=2, params=a.params))
    net.initialize()
    net.save_parameters(path)
    assert list(nd.load(path)) == ["0.weight", "0.bias", "1.weight", "1.bias"]
    net.save_parameters(path, deduplicate=True)
    assert list(nd.load(path)) == ["1.weight", "1.bias"]
    net.load_parameters(path)


def test_export_needs_a_trace(net: nn.HybridSequential, tmp_path: Path) -> None:
    with pytest.raises(mx.MXNetError, match=r"call hybridize\(\)"):
        net.export(str(tmp_path / "x"))
    net.hybridize()
    with pytest.raises(mx.MXNetError, match="once on example data"):
        net.export(str(tmp_path / "x"))


def test_export_and_import(net: nn.HybridSequential, tmp_path: Path) -> None:
    net.hybridize()
    expected = net(nd.array(X)).asnumpy()
    net.export(str(tmp_path / "x"), epoch=3)
    graph = json.loads((tmp_path / "x-symbol.json").read_text())
    assert [n["name"] for n in graph["nodes"]] == [
        "data", "net_dense0_weight", "net_dense0_bias", "net_dense0_fwd", "net_dense0_relu_fwd", "net_batchnorm0_gamma",
        "net_batchnorm0_beta", "net_batchnorm0_running_mean", "net_batchnorm0_running_var", "net_batchnorm0_fwd",
        "net_dense1_weight", "net_dense1_bias", "net_dense1_fwd",
    ]  # fmt: skip
    assert set(nd.load(str(tmp_path / "x-0003.params"))) == {
        "arg:net_dense0_weight", "arg:net_dense0_bias", "arg:net_batchnorm0_gamma", "arg:net_batchnorm0_beta",
        "aux:net_batchnorm0_running_mean", "aux:net_batchnorm0_running_var", "arg:net_dense1_weight",
        "arg:net_dense1_bias",
    }  # fmt: skip
    block = gluon.SymbolBlock.imports(str(tmp_path / "x-symbol.json"), ["data"], str(tmp_path / "x-0003.params"))
    np.testing.assert_allclose(block(nd.array(X)).asnumpy(), expected, rtol=1e-6)
    assert repr(block) == "SymbolBlock(\n<Symbol net_dense1_fwd> : 1 -> 1\n)"
    assert block.prefix == ""
    assert "dense0_weight" in block.collect_params_with_prefix()
    block.export(str(tmp_path / "again"))
    block.save_parameters(str(tmp_path / "p"))
    fresh = gluon.SymbolBlock.imports(str(tmp_path / "again-symbol.json"), "data")
    with pytest.raises(mx.MXNetError, match="has not been initialized"):
        fresh(nd.array(X))
    fresh.load_parameters(str(tmp_path / "p"))
    np.testing.assert_allclose(fresh(nd.array(X)).asnumpy(), expected, rtol=1e-6)
    fresh.cast("float16")
    kinds = {name: np.dtype(param.dtype).name for name, param in fresh.collect_params().items()}
    assert kinds["net_dense0_weight"] == "float16" and fresh(nd.array(X, dtype="float16")).dtype == np.float16
    assert {kind for name, kind in kinds.items() if "batchnorm" in name} == {"float32"}
    with pytest.raises(ValueError, match="'data' is missing"):
        gluon.SymbolBlock.imports(str(tmp_path / "x-symbol.json"), ["wrong"], str(tmp_path / "x-0003.params"))


def test_symbol_block_trains_and_composes() -> None:
    x = mx.sym.var("data")
    block = gluon.SymbolBlock(mx.sym.FullyConnected(x, num_hidden=2, name="fc"), x)
    block.initialize(mx.init.One())
    data = nd.ones((4, 3))
    with mx.autograd.record():
        y = block(data)
    y.backward()
    assert block.params["fc_weight"].grad().asnumpy().tolist() == [[4, 4, 4], [4, 4, 4]]
    net = nn.HybridSequential()
    net.add(block, nn.Dense(1))
    net[1].initialize()
    plain = net(data).asnumpy()
    net.hybridize()
    np.testing.assert_allclose(net(data).asnumpy(), plain, rtol=1e-6)


def test_symbol_block_takes_parameters_whose_shapes_were_always_known() -> None:
    params = gluon.ParameterDict()
    for name, shape in (("fc_weight", (3, 4)), ("fc_bias", (3,))):
        params.get(name, shape=shape).initialize(init="ones")
    data = mx.sym.var("data")
    block = gluon.SymbolBlock(mx.sym.FullyConnected(data, num_hidden=3, name="fc"), data, params=params)
    assert block(nd.ones((1, 4))).asnumpy().tolist() == [[5, 5, 5]]


def test_symbol_block_needs_symbols() -> None:
    with pytest.raises(TypeError, match="expected symbols"):
        gluon.SymbolBlock(nd.ones((1,)), mx.sym.var("data"))
    with pytest.raises(TypeError, match="not a variable"):
        y = mx.sym.relu(mx.sym.var("data"))
        gluon.SymbolBlock(y, y)


@pytest.mark.oracle
def test_mxnet_reads_ours(net: nn.HybridSequential, tmp_path: Path) -> None:
    net.hybridize()
    expected = net(nd.array(X)).asnumpy()
    net.export(str(tmp_path / "x"), epoch=1)
    net.save_parameters(str(tmp_path / "p"))
    script = """
from mxnet.gluon import nn
x = mx.nd.array(json.loads(sys.argv[2]))
block = mx.gluon.SymbolBlock.imports(sys.argv[1] + "/x-symbol.json", ["data"], sys.argv[1] + "/x-0001.params")
net = nn.HybridSequential(prefix="net_")
with net.name_scope():
    net.add(nn.Dense(3, activation="relu"), nn.BatchNorm(), nn.Dense(1))
net.load_parameters(sys.argv[1] + "/p")
symbol, args, aux = mx.model.load_checkpoint(sys.argv[1] + "/x", 1)
module = mx.mod.Module(symbol, data_names=["data"], label_names=None)
module.bind([("data", x.shape)], for_training=False)
module.set_params(args, aux)
module.forward(mx.io.DataBatch([x]))
print(json.dumps([block(x).asnumpy().tolist(), net(x).asnumpy().tolist(), module.get_outputs()[0].asnumpy().tolist()]))
"""
    for found in ask(script, str(tmp_path), json.dumps(X.tolist())):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.oracle
def test_we_read_mxnets(tmp_path: Path) -> None:
    script = """
from mxnet.gluon import nn
x = mx.nd.array(json.loads(sys.argv[2]))
net = nn.HybridSequential(prefix="net_")
with net.name_scope():
    net.add(nn.Dense(3, activation="relu"), nn.BatchNorm(), nn.Dense(1))
net.initialize(mx.init.Uniform(0.7))
net.hybridize()
out = net(x)
net.export(sys.argv[1] + "/x")
net.save_parameters(sys.argv[1] + "/p")
print(json.dumps(out.asnumpy().tolist()))
"""
    expected: Any = ask(script, str(tmp_path), json.dumps(X.tolist()))
    block = gluon.SymbolBlock.imports(str(tmp_path / "x-symbol.json"), ["data"], str(tmp_path / "x-0000.params"))
    np.testing.assert_allclose(block(nd.array(X)).asnumpy(), expected, rtol=1e-5, atol=1e-6)
    net = make()
    net.load_parameters(str(tmp_path / "p"))
    np.testing.assert_allclose(net(nd.array(X)).asnumpy(), expected, rtol=1e-5, atol=1e-6)


def test_save_and_load_whole_model(net: nn.HybridSequential, tmp_path: Path) -> None:
    expected = net(nd.array(X)).asnumpy()
    net.save(str(tmp_path / "plain"))
    net.hybridize()
    net(nd.array(X))
    net.save(str(tmp_path / "traced"))
    for name in ("plain", "traced"):
        other = make("other_")
        other.load(str(tmp_path / name))
        assert (other._graph is not None) == (name == "traced")
        np.testing.assert_allclose(other(nd.array(X)).asnumpy(), expected, rtol=1e-6)
    wrong = nn.HybridSequential()
    wrong.add(nn.Dense(3), nn.Dense(1), nn.Dense(1), nn.Dense(1))
    with pytest.raises(mx.MXNetError, match="another structure"):
        wrong.load(str(tmp_path / "plain"))
    (tmp_path / "bad-model.json").write_text("[]")
    with pytest.raises(ValueError, match="not a description of a block"):
        make().load(str(tmp_path / "bad"))


@pytest.mark.oracle
def test_whole_models_of_mxnet(net: nn.HybridSequential, tmp_path: Path) -> None:
    net.hybridize()
    expected = net(nd.array(X)).asnumpy()
    net.save(str(tmp_path / "ours"))
    script = """
from mxnet.gluon import nn
x = mx.nd.array(json.loads(sys.argv[2]))
net = nn.HybridSequential(prefix="other_")
with net.name_scope():
    net.add(nn.Dense(3, activation="relu"), nn.BatchNorm(), nn.Dense(1))
net.load(sys.argv[1] + "/ours")
out = net(x)
net.save(sys.argv[1] + "/theirs")
print(json.dumps(out.asnumpy().tolist()))
"""
    np.testing.assert_allclose(ask(script, str(tmp_path), json.dumps(X.tolist())), expected, rtol=1e-5, atol=1e-6)
    again = make("again_")
    again.load(str(tmp_path / "theirs"))
    assert again._graph is not None
    np.testing.assert_allclose(again(nd.array(X)).asnumpy(), expected, rtol=1e-5, atol=1e-6)


def test_missing_files_are_errors_of_both_kinds(tmp_path: Path) -> None:
    missing = str(tmp_path / "none")
    net = make()
    net.initialize()
    trainer = gluon.Trainer(net.collect_params(), "sgd")
    net_of = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=1)
    module = mx.mod.Module(net_of, label_names=None)
    module.bind([("data", (1, 1))])
    module.init_params()
    module.init_optimizer()
    for kind in (FileNotFoundError, mx.MXNetError):
        for read in (
            trainer.load_states,
            module.load_optimizer_states,
            gluon.data.vision.ImageFolderDataset,
            lambda path: mx.image.ImageIter(1, (3, 2, 2), path_imglist=path, path_root="."),
        ):
            with pytest.raises(kind, match="cannot read .*none.*No such file"):
                read(missing)
