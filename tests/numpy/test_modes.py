"""The switches of NumPy semantics."""

from __future__ import annotations

import threading

import pytest

import dualmx as mx
from dualmx import util


@pytest.fixture(autouse=True)
def classic():
    yield
    util.reset_np()


def modes():
    return util.is_np_shape(), util.is_np_array()


def test_switching():
    assert modes() == (False, False)
    util.set_np()
    assert modes() == (True, True)
    seen = []
    worker = threading.Thread(target=lambda: seen.append(modes()))
    worker.start()
    worker.join()
    assert seen == [(True, True)]
    util.set_np(array=False)
    assert modes() == (True, False)
    util.reset_np()
    assert modes() == (False, False)
    assert util.set_np_shape(True) is False
    assert util.set_np_shape(False) is True
    with pytest.raises(ValueError, match="shape"):
        util.set_np(shape=False, array=True)


def test_scopes():
    with util.np_shape(), util.np_array():
        assert modes() == (True, True)
        with util.np_array(False):
            assert modes() == (True, False)
        seen = []
        worker = threading.Thread(target=lambda: seen.append(modes()))
        worker.start()
        worker.join()
        assert seen == [(False, False)]
    assert modes() == (False, False)


def test_decorators():
    @util.use_np
    def both(x):
        return x, modes()

    @util.use_np_shape
    def shapes():
        return modes()

    @util.use_np
    class Thing:
        def __init__(self):
            self.made = modes()

        def method(self):
            return modes()

        @staticmethod
        def fixed():
            return modes()

    assert both(3) == (3, (True, True))
    assert both.__name__ == "both"
    assert shapes() == (True, False)
    assert (Thing().made, Thing().method(), Thing.fixed()) == ((True, True), (True, True), (False, False))
    assert modes() == (False, False)
    with pytest.raises(TypeError, match="use_np: 3: expected a function or a class"):
        util.use_np(3)


def test_options_of_ufuncs():
    assert util.np_ufunc_legal_option("where", True)
    assert not util.np_ufunc_legal_option("where", False)
    assert not util.np_ufunc_legal_option("nonsense", True)
    checked = util.wrap_np_unary_func(lambda x, out=None: x)
    assert checked(3, where=True) == 3
    with pytest.raises(TypeError, match="where=False is not supported"):
        checked(3, where=False)
    assert util.wrap_np_binary_func(mx.np.add)(1, 2) == 3


@pytest.mark.parametrize("known", [True, False], ids=["at once", "later"])
@pytest.mark.parametrize("numpy", [True, False])
def test_an_initializer_of_ones_own_fills_arrays_of_the_chosen_kind(numpy: bool, known: bool) -> None:
    seen = []

    class Thresholded(mx.init.Initializer):
        def _init_weight(self, name, data):
            seen.append(type(data))
            space = mx.np if numpy else mx.nd
            data[:] = space.random.uniform(-10, 10, data.shape)
            data *= space.abs(data) >= 5

    with util.np_shape(numpy), util.np_array(numpy):
        layer = mx.gluon.nn.Dense(8, in_units=4 if known else 0)
        layer.initialize(Thresholded())
        layer((mx.np if numpy else mx.nd).ones((1, 4)))
        values = layer.weight.data()
    assert seen == [type(values)] == [mx.np.ndarray if numpy else mx.nd.NDArray]
    found = abs(values.asnumpy())
    assert ((found >= 5) | (found == 0)).all() and found.any()


def test_what_comes_as_a_numpy_array_comes_back_as_one(tmp_path) -> None:
    util.set_np()
    np, nn, kind = mx.np, mx.gluon.nn, mx.np.ndarray
    picture = np.random.uniform(0, 255, (20, 30, 3)).astype("uint8")
    assert type(mx.image.imresize(picture, 10, 8)) is type(mx.image.fixed_crop(picture, 2, 3, 10, 8)) is kind
    draws = mx.gluon.data.vision.transforms
    chain = [
        draws.RandomResizedCrop((8, 8)),
        draws.RandomFlipLeftRight(),
        draws.RandomColorJitter(0.5),
        draws.ToTensor(),
    ]
    for step in (*chain, draws.Compose(chain)):
        assert type(step(picture)) is kind
    file = tmp_path / "picture.png"
    file.write_bytes(mx.recordio.unpack(mx.recordio.pack_img((0, 1.0, 0, 0), picture.asnumpy(), img_fmt=".png"))[1])
    assert type(mx.image.imread(str(file))) is kind
    assert [type(a) for a in mx.gluon.data.ArrayDataset(np.ones((3, 2)), np.ones((3, 2)).as_nd_ndarray())[0]] == [
        kind,
        mx.nd.NDArray,
    ]
    net = nn.HybridSequential()
    net.add(nn.Dense(3, activation="relu"), nn.Dense(2))
    net.initialize()
    net.hybridize()
    x = np.ones((1, 4))
    y = net(x)
    net.export(str(tmp_path / "net"))
    block = mx.gluon.SymbolBlock.imports(str(tmp_path / "net-symbol.json"), ["data"], str(tmp_path / "net-0000.params"))
    assert type(block(x)) is kind and (block(x) == y).all()


def test_a_function_on_numpy_arrays_gets_their_gradients() -> None:
    class Sigmoid(mx.autograd.Function):
        def forward(self, x):
            y = 1 / (1 + mx.np.exp(-x))
            self.save_for_backward(y)
            return y

        def backward(self, dy):
            assert type(dy) is mx.np.ndarray
            (y,) = self.saved_tensors
            return dy * y * (1 - y)

    x = mx.np.array([0.0, 1.0])
    x.attach_grad()
    with mx.autograd.record():
        y = (Sigmoid()(x) * 2).sum()
    y.backward()
    assert type(x.grad) is mx.np.ndarray
    assert abs(x.grad.asnumpy() - [0.5, 0.39322388]).max() < 1e-6


def test_unknown_lengths_are_minus_one_with_the_shapes_of_numpy() -> None:
    layer = mx.gluon.nn.Dense(3, prefix="d_")
    assert layer.weight.shape == (3, 0) and repr(layer) == "Dense(None -> 3, linear)"
    with util.np_shape():
        assert layer.weight.shape == (3, -1) and repr(layer) == "Dense(-1 -> 3, linear)"
        assert repr(layer.weight) == "Parameter d_weight (shape=(3, -1), dtype=float32)"
    layer.initialize()
    layer(mx.nd.ones((1, 2)))
    assert layer.weight.shape == (3, 2)
