"""Names under which scripts written for MXNet find things, and modules that say what takes their place."""

from __future__ import annotations

import gzip
import importlib
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualmx
from dualmx import MXNetError

mx: Any = dualmx

PLACES = {
    "ndarray.ndarray": ("NDArray", "array", "add", "maximum", "imdecode", "from_numpy"),
    "ndarray.utils": ("array", "empty", "load", "load_frombuffer", "save", "zeros"),
    "ndarray.numpy": ("ones", "einsum"), "ndarray.numpy_extension": ("relu",),
    "symbol.symbol": ("Symbol", "Variable", "arange", "histogram", "maximum", "pow", "zeros"),
    "symbol.numpy": ("dot",), "symbol.numpy_extension": ("relu",),
    "io.io": ("DataIter", "NDArrayIter", "ImageRecordIter"), "image.image": ("imdecode", "ImageIter"),
    "kvstore.kvstore": ("KVStore",), "kvstore.kvstore_server": ("KVStoreServer",),
    "optimizer.optimizer": ("Optimizer", "SGD", "Updater", "get_updater"),
    "module.executor_group": ("DataParallelExecutorGroup",), "module.base_module": ("BaseModule",),
    "executor_manager": ("DataParallelExecutorGroup", "DataParallelExecutorManager", "_split_input_slice"),
    "error": ("InternalError", "MXNetError", "register"), "registry": ("get_registry", "get_create_func"),
    "base": ("NotImplementedForSymbol", "NotSupportedForSparseNDArray", "data_dir", "py_str", "classproperty"),
    "libinfo": ("find_lib_path",), "library": ("load",), "rtc": ("CudaModule",),
    "gluon.contrib.cnn.conv_layers": ("DeformableConvolution",),
    "contrib.svrg_optimization.svrg_optimizer": (),
}  # fmt: skip


def test_names_are_found_by_import_and_by_attribute():
    for path, names in PLACES.items():
        module: Any = importlib.import_module(f"dualmx.{path}")
        seen: Any = mx
        for part in path.split("."):
            seen = getattr(seen, part)
        for name in names:
            first, second = getattr(module, name), getattr(seen, name)
            # Functions of symbols are made whenever they are named.
            assert first is second or first.__name__ == second.__name__ == name, (path, name)
        assert not hasattr(module, "no_such_name")
    assert mx.np_shape is mx.util.np_shape
    assert mx.nd.ndarray.NDArray is mx.nd.NDArray


def test_registry_of_own_classes():
    class Layer:
        def __init__(self, size: int = 1):
            self.size = size

    register = mx.registry.get_register_func(Layer, "layer")
    alias, create = mx.registry.get_alias_func(Layer, "layer"), mx.registry.get_create_func(Layer, "layer")
    wide = register(type("Wide", (Layer,), {}))
    deep = alias("deep", "tall")(type("Deep", (Layer,), {}))
    assert mx.registry.get_registry(Layer) == {"wide": wide, "deep": deep, "tall": deep}
    assert create("wide", size=3).size == create('["wide", {"size": 3}]').size == 3
    assert create('{"layer": "tall", "size": 5}').size == create(layer="deep", size=5).size == 5
    made = wide()
    assert create(made) is made
    for bad, text in ((lambda: create("flat"), "not registered"), (lambda: register(int), "derived from Layer")):
        with pytest.raises(MXNetError, match=text):
            bad()
    with pytest.warns(UserWarning, match="replaces"):
        register(type("Wide", (Layer,), {}))


def test_errors_by_name():
    @mx.error.register
    class Broken(MXNetError):
        pass

    assert mx.base.error_types["Broken"] is Broken
    assert "asnumpy" in str(mx.base.NotImplementedForSymbol("asnumpy"))


def test_what_is_not_here_says_so(tmp_path: Path):
    for call, text in (
        (lambda: mx.rtc.CudaModule("source"), "pallas"),
        (mx.libinfo.find_include_path, "C headers"),
        (lambda: mx.library.load("nowhere.so"), "does not exist"),
        (lambda: mx.kv.KVStoreServer(None).run(), "role"),
    ):
        with pytest.raises(MXNetError, match=text):
            call()
    shared = tmp_path / "lib.so"
    shared.write_bytes(b"")
    with pytest.raises(MXNetError, match="binary interface"):
        mx.library.load(str(shared))
    extension = tmp_path / "more.py"
    extension.write_text("import dualmx as mx\nmx.test_utils.loaded_more = True\n")
    mx.library.load(str(extension), verbose=False)
    assert mx.test_utils.__dict__.pop("loaded_more")


def test_files_of_tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    source = tmp_path / "source.bin"
    source.write_bytes(b"abc")
    got = mx.test_utils.download(f"file://{source}", "copy.bin", str(tmp_path / "there"))
    assert Path(got).read_bytes() == b"abc"
    with pytest.raises(MXNetError, match="127.0.0.1:9/file.bin: Connection refused"):
        mx.test_utils.download("http://127.0.0.1:9/file.bin", dirname=str(tmp_path), retries=1)
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("inside.txt", "x")
    mx.test_utils.get_zip_data(str(tmp_path / "zip"), f"file://{tmp_path}/a.zip", "a.zip")
    assert (tmp_path / "zip" / "inside.txt").exists()
    places = {"net": {"symbol": f"file://{source}", "params": f"file://{source}"}}
    assert mx.test_utils.download_model("net", str(tmp_path), places) == (str(tmp_path / "net"), 0)
    assert (tmp_path / "net-0000.params").exists()
    monkeypatch.setenv("MXNET_HOME", str(tmp_path))
    monkeypatch.setenv("MXNET_GLUON_REPO", f"file://{tmp_path}/none")
    monkeypatch.chdir(tmp_path)
    room = tmp_path / "datasets" / "mnist"
    room.mkdir(parents=True)
    with pytest.raises(MXNetError, match="train-images"):
        mx.test_utils.get_mnist_ubyte()
    for name in ("train", "t10k"):
        images = np.array([2051, 2, 28, 28], ">i4").tobytes() + bytes(range(196)) * 8
        (room / f"{name}-images-idx3-ubyte.gz").write_bytes(gzip.compress(images))
        (room / f"{name}-labels-idx1-ubyte.gz").write_bytes(
            gzip.compress(np.array([2049, 2], ">i4").tobytes() + b"\x03\x05")
        )
    train, test = mx.test_utils.get_mnist_iterator(2, (784,))
    assert next(iter(train)).data[0].shape == (2, 784) and next(iter(test)).label[0].asnumpy().tolist() == [3, 5]
    found = mx.test_utils.get_mnist()
    assert found["train_data"].shape == (2, 1, 28, 28) and found["test_label"].tolist() == [3, 5]
    with mx.test_utils.discard_stderr():
        pass


def test_images_and_graphs_of_the_array_namespace(tmp_path: Path):
    picture = mx.nd.array(np.arange(72).reshape(4, 6, 3), dtype="uint8")
    record = mx.recordio.pack_img((0, 1.0, 0, 0), picture[:, :, ::-1], img_fmt=".png")
    content = mx.recordio.unpack(record)[1]
    found = mx.nd.imdecode(content, clip_rect=(1, 0, 4, 2), mean=mx.nd.ones((3, 2, 3)))
    np.testing.assert_array_equal(found.asnumpy(), picture.asnumpy()[0:2, 1:4].transpose(2, 0, 1).astype("float32") - 1)
    batch = mx.nd.zeros((2, 3, 4, 6))
    mx.nd.imdecode(content, out=batch, index=1)
    np.testing.assert_array_equal(batch.asnumpy()[1], picture.asnumpy().transpose(2, 0, 1))
    inner: Any = mx.nd._internal
    assert inner._cvimresize(picture, 3, 2).shape == (2, 3, 3)
    assert inner._cvcopyMakeBorder(picture, 1, 1, 0, 2).shape == (6, 8, 3)
    assert inner._cvimdecode(mx.nd.array(np.frombuffer(content, np.uint8), dtype="uint8")).shape == (4, 6, 3)
    double = mx.nd.CachedOp(mx.sym.var("x") * 2 + mx.sym.var("y"))
    x = mx.nd.ones(2)
    x.attach_grad()
    with mx.autograd.record():
        y = double(x, mx.nd.ones(2))
    y.backward()
    assert y.asnumpy().tolist() == [3, 3] and x.grad.asnumpy().tolist() == [2, 2]
    with pytest.raises(MXNetError, match="expected 2"):
        double(x)
    assert mx.nd.get_oshape_of_gather_nd_op((3, 4, 5), (2, 7)) == (7, 5)
