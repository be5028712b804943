"""Names with an underscore that subclasses and training loops written for MXNet rely on."""

from collections.abc import Callable

import numpy as np
import pytest

import dualmx as mx
from dualmx import autograd, gluon, nd
from dualmx.gluon import nn


def dense(**kwargs):
    net = nn.HybridSequential(prefix="n_")
    with net.name_scope():
        net.add(nn.Dense(4, activation="relu", **kwargs), nn.Dense(2))
    return net


class Clipped(gluon.HybridBlock):
    """A detector's way of having settings: attributes that are read while tracing."""

    def __init__(self, most, **kwargs):
        super().__init__(**kwargs)
        self.most = most
        with self.name_scope():
            self.predictor = nn.Dense(2, in_units=2, use_bias=False, weight_initializer="ones")

    def set_most(self, most):
        self._clear_cached_op()
        self.most = most

    def reset_class(self, count):
        self._clear_cached_op()
        with self.name_scope():
            new = nn.Dense(count, in_units=2, use_bias=False, weight_initializer="ones", prefix=self.predictor.prefix)
            new.initialize(ctx=self.predictor.weight.list_ctx())
        self.predictor = new

    def hybrid_forward(self, F, x):
        return F.clip(self.predictor(x), 0, self.most)


def test_changed_attributes_take_effect_once_the_cache_is_cleared() -> None:
    net = Clipped(1.0)
    net.initialize()
    net.hybridize()
    x = nd.array([[1, 2]])
    assert net(x).asnumpy().tolist() == [[1, 1]]
    net.most = 2.0
    assert net(x).asnumpy().tolist() == [[1, 1]]  # what was traced stays, as in MXNet
    net.set_most(2.0)
    assert net._cached_graph == () and net._active
    assert net(x).asnumpy().tolist() == [[2, 2]]
    net.reset_class(3)
    assert net(x).shape == (1, 3)


@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize(
    ("layer", "attribute", "value", "want"),
    [
        (lambda: nn.Activation("relu"), "_act_type", "softsign", [-0.75, 0.5]),
        (lambda: nn.LeakyReLU(0.1), "_alpha", 0.5, [-1.5, 1]),
        (lambda: nn.ELU(1.0), "_alpha", 2.0, [2 * np.expm1(-3), 1]),
        (lambda: nn.LayerNorm(), "_epsilon", 12.0, [-0.5, 0.5]),
        (lambda: nn.GroupNorm(1), "_epsilon", 12.0, [-0.5, 0.5]),
        (lambda: nn.InstanceNorm(), "_epsilon", 12.0, [-0.5, 0.5]),
        (lambda: nn.Dense(1, flatten=False), "_flatten", True, [-2]),
    ],
)
def test_a_changed_attribute_of_a_layer_takes_effect(
    layer: Callable[[], gluon.HybridBlock], attribute: str, value: object, want: list, hybrid: bool
) -> None:
    net = layer()
    net.initialize(mx.init.One())
    x = nd.array([[[-3.0, 1.0]]])
    shape = net(x).shape
    setattr(net, attribute, value)
    net.hybridize(hybrid)
    y = net(x)
    np.testing.assert_allclose(y.asnumpy().ravel(), want, rtol=1e-5, atol=1e-6)
    assert y.shape == ((1, 1) if attribute == "_flatten" else shape)


def test_a_graph_can_be_made_read_and_replaced() -> None:
    net = dense()
    net.initialize()
    assert net._cached_graph == () and net._in_format is None and net._out_format is None
    net.hybridize(static_alloc=True, static_shape=True)
    assert net._flags == [("static_alloc", True), ("static_shape", True), ("inline_limit", 2)]
    x = nd.ones((4, 3))
    inputs, out = net._get_graph(x)
    assert [s.name for s in inputs] == ["data"] and out.list_outputs() == ["n_dense1_fwd_output"]
    assert net[0].weight.shape == (4, 0)
    net._build_cache(x)
    assert net[0].weight.shape == (4, 3)
    assert net._in_format == [0] and net._out_format == 0
    before = net(x).asnumpy()
    np.testing.assert_allclose(net._call_cached_op(x).asnumpy(), before)
    net._cached_graph = inputs, -out
    np.testing.assert_allclose(net(x).asnumpy(), -before)
    net._cached_graph = ()
    np.testing.assert_allclose(net(x).asnumpy(), before)


def test_formats_tell_how_arrays_are_nested() -> None:
    class Pairs(gluon.HybridBlock):
        def hybrid_forward(self, F, x, ys):
            return x + ys[0], [x, ys[1]]

    net = Pairs()
    net.hybridize()
    x = nd.ones(2)
    net(x, [x, x])
    assert net._in_format == [0, [0, 0]] and net._out_format == [0, [0, 0]]
    assert [s.name for s in net._cached_graph[0]] == ["data0", "data1", "data2"]


def test_all_outputs_of_an_operator_are_outputs_of_the_block(tmp_path) -> None:
    class Halves(gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return F.split(x, num_outputs=2, axis=1)

    class Nested(gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return F.split(x, num_outputs=2, axis=1), x, F.topk(x, ret_typ="both", k=2)

    x = nd.array([[1, 2, 3, 4]])
    halves, nested = Halves(), Nested()
    for block in (halves, nested):
        block.hybridize()
    assert [y.asnumpy().tolist() for y in halves(x)] == [[[1, 2]], [[3, 4]]] and halves._out_format == 2
    (left, right), same, (values, places) = nested(x)
    assert [y.asnumpy().tolist() for y in (left, right, same)] == [[[1, 2]], [[3, 4]], [[1, 2, 3, 4]]]
    assert values.asnumpy().tolist() == [[4, 3]] and places.asnumpy().tolist() == [[3, 2]]
    assert nested._out_format == [2, 0, 2]
    halves.export(str(tmp_path / "halves"))
    loaded = gluon.SymbolBlock.imports(str(tmp_path / "halves-symbol.json"), ["data"])
    assert [y.asnumpy().tolist() for y in loaded(x)] == [[[1, 2]], [[3, 4]]]


def test_a_block_may_infer_its_shapes_itself() -> None:
    class Flat(gluon.HybridBlock):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.asked = 0
            self.weight = self.params.get("weight", shape=(2, 0), allow_deferred_init=True)

        def _deferred_infer_shape(self, *args):
            self.asked += 1
            self._infer_attrs("infer_shape", "shape", *args)

        def hybrid_forward(self, F, x, weight):
            return F.FullyConnected(x, weight, num_hidden=2, no_bias=True)

    for hybrid in (False, True):
        net = Flat()
        net.initialize()
        net.hybridize(hybrid)
        net(nd.ones((4, 3)))
        assert net.weight.shape == (2, 3) and net.asked == 1
        net._infer_attrs("infer_type", "dtype", nd.ones((4, 3)))
        assert net.weight.data().dtype == np.float32
        with pytest.raises(ValueError, match="infer_type"):
            net._infer_attrs("infer_shape", "dtype", nd.ones((4, 3)))


# ---- Parameter


def test_a_parameter_tells_what_it_holds() -> None:
    weight = gluon.Parameter("w", shape=(2, 0), allow_deferred_init=True)
    assert weight._allow_deferred_init and weight._data is None and weight._grad is None and weight._ctx_list is None
    with pytest.raises(RuntimeError, match="not been initialized"):
        weight._check_and_get(weight._data, None)
    ctx = [mx.cpu(0), mx.cpu(1)]
    weight.initialize(ctx=ctx)
    assert weight._ctx_list is None and weight._deferred_init
    with pytest.raises(
        gluon.parameter.DeferredInitializationError,
        match="shape .* is not fully known and initialization was deferred.*Pass one batch",
    ):
        weight._check_and_get(weight._grad, list)
    weight.shape = (2, 3)
    weight._finish_deferred_init()
    assert weight._ctx_list == ctx and weight._deferred_init == ()
    assert weight._check_and_get(weight._data, mx.cpu(1)) is weight.data(mx.cpu(1))
    assert weight._check_and_get(weight._grad, mx.cpu(0)) is weight.grad(mx.cpu(0))
    assert weight._check_and_get(weight._data, list) is weight._data
    with pytest.raises(RuntimeError, match=r"cpu\(2\)"):
        weight._check_and_get(weight._data, mx.cpu(2))
    weight._grad_req = "null"
    weight._init_grad()
    assert weight._grad is None
    weight._grad_req = "add"
    weight._init_grad()
    assert [g.shape for g in weight._grad] == [(2, 3)] * 2
    weight._allow_deferred_init = False
    assert not weight.allow_deferred_init


def test_a_parameter_takes_values_on_contexts() -> None:
    weight = gluon.Parameter("w", shape=(2,))
    weight._init_impl(nd.array([1, 2]), [mx.cpu(1)])
    assert weight.data().context == mx.cpu(1) and weight.grad().asnumpy().tolist() == [0, 0]


class Halved(gluon.Parameter):
    """Computes what is read of it, as weight dropping does."""

    def __init__(self, like):
        late, differentiable = like._allow_deferred_init, like._differentiable
        super().__init__(like.name, like.grad_req, like._shape, like.dtype, 1.0, 1.0, like.init, late, differentiable)
        self.factor = 0.5

    def data(self, ctx=None):
        return self._check_and_get(self._data, ctx) * self.factor


@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize("layer", ["dense", "rnn"])
def test_data_that_a_subclass_computes_is_computed_at_each_call(layer: str, hybrid: bool) -> None:
    if layer == "dense":
        net, name = nn.Dense(2, use_bias=False, weight_initializer="ones"), "weight"
    else:
        net, name = gluon.rnn.RNNCell(2, i2h_weight_initializer="ones"), "i2h_weight"
    halved = Halved(net._reg_params[name])
    net._reg_params[name] = net.params._params[halved.name] = halved
    setattr(net, name, halved)
    net.initialize()
    net.hybridize(hybrid)

    def out():
        x = nd.array([[0.1, 0.2, 0.3]])
        return net(x) if layer == "dense" else net(x, [nd.zeros((1, 2))])[0]

    last = (lambda x: x) if layer == "dense" else np.tanh
    with autograd.record():
        y = out()
    y.backward()
    np.testing.assert_allclose(y.asnumpy(), last(np.float32([[0.3, 0.3]])), rtol=1e-6)
    slope = 1 if layer == "dense" else 1 - np.tanh(0.3) ** 2
    np.testing.assert_allclose(halved.grad().asnumpy(), [np.float32([0.05, 0.1, 0.15]) * slope] * 2, rtol=1e-5)
    halved.factor = 2.0
    np.testing.assert_allclose(out().asnumpy(), last(np.float32([[1.2, 1.2]])), rtol=1e-6)


# ---- Trainer


class Scaled(gluon.Trainer):
    """A step of one's own, made of the parts of `Trainer.step`; losses are scaled by 8."""

    def step(self, batch_size, ignore_stale_grad=False):
        if not self._kv_initialized:
            self._init_kvstore()
        if self._params_to_init:
            self._init_params()
        self._allreduce_grads()
        self._check_and_rescale_grad(self._scale / (8 * batch_size))
        self._update(ignore_stale_grad)


def trained(kind, contexts, factor, **options):
    mx.random.seed(3)
    net = dense(in_units=3)
    net.initialize(mx.init.Xavier(), ctx=contexts)
    trainer = kind(net.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": 0.9}, **options)
    data = nd.array(np.random.RandomState(0).randn(4, 3))
    for _ in range(3):
        with autograd.record():
            losses = [(net(x) ** 2).sum() * factor for x in gluon.utils.split_and_load(data, contexts)]
        autograd.backward(losses)
        trainer.step(4)
    return [p.data(c).asnumpy() for p in net.collect_params().values() for c in contexts], trainer


@pytest.mark.parametrize(
    "options", [{"kvstore": None}, {}, {"update_on_kvstore": False}, {"kvstore": "device"}], ids=str
)
@pytest.mark.parametrize("devices", [1, 2])
def test_a_step_made_of_its_parts_trains_like_the_whole(devices: int, options: dict) -> None:
    if devices == 2 and options == {"kvstore": None}:
        pytest.skip("contexts that are left to themselves differ")
    contexts = [mx.cpu(i) for i in range(devices)]
    plain, _ = trained(gluon.Trainer, contexts, 1, **options)
    # A store that updates does so when it is given gradients, so that the scale has to be known before.
    own = Scaled
    if devices == 2 and options.get("update_on_kvstore") is None:

        class own(Scaled):  # noqa: N801
            def _allreduce_grads(self):
                self._check_and_rescale_grad(self._scale / 32)
                super()._allreduce_grads()

    parts, trainer = trained(own, contexts, 8, **options)
    for a, b in zip(plain, parts, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)
    assert trainer._kv_initialized and trainer._params_to_init == [] and trainer._distributed is False
    in_store = devices == 2 and options.get("update_on_kvstore") is None
    assert bool(trainer._update_on_kvstore) is in_store and (trainer._kvstore is not None) is (devices == 2)


def test_replaced_parts_are_used_by_the_step() -> None:
    class Doubled(gluon.Trainer):
        given = ()

        def _init_params(self):
            self.given = [self._param2idx[p.name] for p in self._params_to_init]
            self._params_to_init = []

        def _allreduce_grads(self):
            for param in self._params:
                for grad in param.list_grad():
                    grad *= 2

    plain, _ = trained(gluon.Trainer, [mx.cpu()], 2)
    doubled, trainer = trained(Doubled, [mx.cpu()], 1)
    assert trainer.given == [0, 1, 2, 3]
    for a, b in zip(plain, doubled, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)


def test_a_trainer_tells_its_state() -> None:
    net = nn.Dense(2, in_units=3, prefix="d_")
    net.initialize(ctx=[mx.cpu(0), mx.cpu(1)])
    trainer = gluon.Trainer(net.collect_params(), "sgd")
    assert trainer._param2idx == {"d_bias": 0, "d_weight": 1}
    assert trainer._kvstore_params == {"kvstore": "device", "update_on_kvstore": None}
    assert not trainer._kv_initialized and trainer._kvstore is trainer._distributed is None
    assert trainer._params_to_init == trainer._params and len(trainer._updaters) == 2
    assert not trainer._contains_sparse_weight and not trainer._contains_sparse_grad
    with pytest.raises(AssertionError, match="_init_kvstore"):
        trainer._init_params()
    trainer._kvstore_params["update_on_kvstore"] = False
    trainer._init_kvstore()
    assert trainer._kv_initialized and trainer._update_on_kvstore is False and trainer._kvstore.type == "device"
    trainer._init_params()
    assert trainer._params_to_init == []
    trainer._reset_kvstore()
    assert not trainer._kv_initialized and trainer._params_to_init == trainer._params and trainer._kvstore is None
    table = nn.Embedding(4, 2, sparse_grad=True)
    table.initialize()
    assert gluon.Trainer(table.collect_params(), "sgd")._contains_sparse_grad


# ---- recurrent layers


def test_recurrent_layers_tell_their_gates_and_states() -> None:
    for kind, gates in ((gluon.rnn.LSTM, 4), (gluon.rnn.GRU, 3), (gluon.rnn.RNN, 1)):
        layer = kind(2, i2h_weight_initializer="ones")
        layer.initialize()
        assert layer._gates == gates and layer._i2h_weight_initializer == "ones"
        assert layer._h2h_weight_initializer is None and layer._h2h_bias_initializer == "zeros"
        assert layer.skip_states is None
        layer(nd.ones((3, 2, 5)))
        assert layer.skip_states is True
        layer(nd.ones((3, 2, 5)), layer.begin_state(2))
        assert layer.skip_states is False


def test_transposed_convolutions_tell_their_output_padding() -> None:
    assert nn.Conv1DTranspose(3, 3, strides=2, output_padding=1).outpad == (1,)
    assert nn.Conv2DTranspose(3, 3).outpad == (0, 0)
