"""Initializers: distributions, names, JSON, layouts."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

import dualmx as mx
from dualmx import init


def filled(initializer, name="x_weight", shape=(3, 4), dtype="float32", **desc):
    """The values that an initializer gives a variable."""
    arr = mx.nd.full(shape, 9, dtype=dtype)
    initializer(init.InitDesc(name, **desc), arr)
    return arr.asnumpy()


DUMPS = [
    (init.Zero(), '["zero", {}]'),
    (init.One(), '["one", {}]'),
    (init.Constant(3), '["constant", {"value": 3}]'),
    (init.Uniform(), '["uniform", {"scale": 0.07}]'),
    (init.Normal(0.5), '["normal", {"sigma": 0.5}]'),
    (init.Orthogonal(), '["orthogonal", {"scale": 1.414, "rand_type": "uniform"}]'),
    (init.Xavier(), '["xavier", {"rnd_type": "uniform", "factor_type": "avg", "magnitude": 3}]'),
    (init.MSRAPrelu(), '["msraprelu", {"factor_type": "avg", "slope": 0.25}]'),
    (init.Bilinear(), '["bilinear", {}]'),
    (init.LSTMBias(2.0), '["lstmbias", {"forget_bias": 2.0}]'),
    (
        init.FusedRNN(init.Xavier(), 4, 1, "lstm"),
        '["fusedrnn", {"init": "[\\"xavier\\", {\\"rnd_type\\": \\"uniform\\", \\"factor_type\\": \\"avg\\", '
        '\\"magnitude\\": 3}]", "num_hidden": 4, "num_layers": 1, "mode": "lstm", "bidirectional": false, '
        '"forget_bias": 1.0}]',
    ),
]


@pytest.mark.parametrize("made, text", DUMPS, ids=lambda v: type(v).__name__)
def test_json_is_that_of_mxnet_and_builds_an_equal_one(made, text):
    assert made.dumps() == text
    assert init.create(text) == made


def test_constant_array():
    want = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(filled(init.Constant(mx.nd.array(want)), shape=(2, 3)), want)
    np.testing.assert_array_equal(filled(init.Constant([1, 2, 3]), shape=(2, 3)), [[1, 2, 3]] * 2)
    assert init.Constant(mx.nd.array([1, 2])).dumps() == '["constant", {"value": [1.0, 2.0]}]'


@pytest.mark.parametrize(
    "name, value",
    [("x_bias", 0), ("x_beta", 0), ("x_min", 0), ("x_gamma", 1), ("x_max", 1), ("x_bias_quantize", 0)],
)
def test_the_ending_of_the_name_decides(name, value):
    assert (filled(init.Uniform(), name) == value).all()


@pytest.mark.parametrize("name", ["running_mean", "moving_var", "x_parameters", "weights"])
def test_unknown_endings_raise(name):
    with pytest.raises(mx.MXNetError, match=name):
        filled(init.Uniform(), name)


def test_plain_names_know_moving_statistics():
    arr = mx.nd.full((3,), 9)
    init.Uniform()("bn_moving_var", arr)
    assert (arr.asnumpy() == 1).all()
    init.Uniform()("bn_moving_mean", arr)
    assert (arr.asnumpy() == 0).all()


def test_plain_names_know_upsampling_and_affine_maps():
    kernel, same, weight, bias = (mx.nd.full(shape, 9) for shape in ((1, 1, 4, 4), (1, 1, 4, 4), (6, 2), (6,)))
    init.Bilinear()("x_weight", kernel)
    for name, arr in (("upsampling_weight", same), ("stn_loc_weight", weight), ("stn_loc_bias", bias)):
        init.One()(name, arr)
    assert same.asnumpy().tolist() == kernel.asnumpy().tolist() and not weight.asnumpy().any()
    assert bias.asnumpy().tolist() == [1, 0, 0, 0, 1, 0]
    assert (filled(init.One(), "stn_loc_weight") == 1).all()
    with pytest.raises(mx.MXNetError, match="6 numbers"):
        init.One()("stn_loc_bias", mx.nd.ones((8,)))


def test_own_initializer_of_a_variable_wins():
    assert (filled(init.Uniform(), "foo", attrs={"__init__": '["one", {}]'}) == 1).all()
    assert (filled(init.Uniform(), "x_weight", attrs={"__init__": "zeros"}) == 0).all()


@pytest.mark.parametrize(
    "made, deviation, bound",
    [
        (init.Uniform(0.2), 0.2 / math.sqrt(3), 0.2),
        (init.Normal(0.3), 0.3, math.inf),
        (init.Xavier(), math.sqrt(3 / 750) / math.sqrt(3), math.sqrt(3 / 750)),
        (init.Xavier("gaussian", "in", 2), math.sqrt(2 / 300), math.inf),
        (init.Xavier("uniform", "out", 1), math.sqrt(1 / 1200) / math.sqrt(3), math.sqrt(1 / 1200)),
        (init.MSRAPrelu(), math.sqrt(2 / (1 + 0.25**2) / 750), math.inf),
        (init.MSRAPrelu("in", 0), math.sqrt(2 / 300), math.inf),
    ],
)
def test_scale_of_random_weights(made, deviation, bound):
    mx.random.seed(5)
    values = filled(made, shape=(400, 100, 3))
    assert values.std() == pytest.approx(deviation, rel=0.02)
    assert abs(values.mean()) < 0.02 * deviation
    assert abs(values).max() <= bound * (1 + 1e-6)


@pytest.mark.parametrize("made", [init.Uniform(), init.Normal(), init.Xavier(), init.Orthogonal()])
def test_the_seed_governs(made):
    draws = []
    for seed in (1, 1, 2):
        mx.random.seed(seed)
        draws.append(filled(made))
    np.testing.assert_array_equal(draws[0], draws[1])
    assert (draws[0] != draws[2]).any()
    assert (filled(made) != draws[2]).any()


@pytest.mark.parametrize("rand_type", ["uniform", "normal"])
@pytest.mark.parametrize("shape", [(4, 2, 3), (6, 2)])
def test_orthogonal_vectors(rand_type, shape):
    m = filled(init.Orthogonal(scale=2, rand_type=rand_type), shape=shape).reshape(shape[0], -1)
    product = m @ m.T if m.shape[0] <= m.shape[1] else m.T @ m
    np.testing.assert_allclose(product, 4 * np.eye(len(product)), atol=1e-5)


def test_half_precision_weights():
    values = filled(init.Xavier(), dtype="float16")
    assert values.dtype == np.float16 and values.std() > 0


def test_bilinear():
    want = [[0.0625, 0.1875, 0.1875], [0.1875, 0.5625, 0.5625], [0.1875, 0.5625, 0.5625]]
    np.testing.assert_allclose(filled(init.Bilinear(), shape=(2, 1, 3, 3)), np.broadcast_to(want, (2, 1, 3, 3)))
    tall = [*want, want[0]]
    np.testing.assert_allclose(filled(init.Bilinear(), shape=(2, 1, 4, 3)), np.broadcast_to(tall, (2, 1, 4, 3)))
    wide = np.outer([1, 2, 3], [1, 2, 3, 2, 1]) / 9
    np.testing.assert_allclose(filled(init.Bilinear(), shape=(1, 1, 3, 5))[0, 0], wide, rtol=1e-6)


def test_lstm_bias():
    np.testing.assert_array_equal(filled(init.LSTMBias(), shape=(8,)), [0, 0, 1, 1, 0, 0, 0, 0])


def runs(values):
    return [(i, float(v)) for i, v in enumerate(values) if i == 0 or v != values[i - 1]]


def test_fused_lstm_layout():
    """Positions recorded from MXNet 1.9.1."""
    size = 2 * 4 * 4 * (3 + 4) + 2 * 4 * 4 * (8 + 4) + 4 * 4 * 4 * 2
    made = init.FusedRNN(init.One(), 4, 2, "lstm", bidirectional=True, forget_bias=7.0)
    got = filled(init.Zero(), "rnn_parameters", (size,), attrs={"__init__": made.dumps()})
    want = [(0, 1.0)]
    for start in range(608, size, 16):
        want += [(start, 0.0), (start + 4, 7.0), (start + 8, 0.0)]
    assert runs(got) == [w for i, w in enumerate(want) if i == 0 or w[1] != want[i - 1][1]]


def test_fused_gru_falls_back_on_the_models_initializer():
    size = 3 * 4 * 7 + 3 * 4 * 8 + 3 * 4 * 4
    made = init.FusedRNN(None, 4, 2, "gru")
    attrs = {"__init__": made.dumps()}
    assert runs(filled(init.Constant(2), "x_parameters", (size,), attrs=attrs)) == [(0, 2.0), (180, 0.0)]
    with pytest.raises(mx.MXNetError, match="do not fit"):
        filled(init.Constant(2), "x_parameters", (size + 1,), attrs=attrs)


def test_mixed_takes_the_first_match():
    mixed = init.Mixed(["x_bias", ".*"], [init.One(), init.Zero()])
    for name, value in (("x_bias", 0), ("x_weight", 0)):
        assert (filled(mixed, name) == value).all()
    mixed = init.Mixed([".*weight"], [init.One()])
    assert (filled(mixed) == 1).all()
    with pytest.raises(mx.MXNetError, match="matches no pattern"):
        filled(mixed, "x_bias")
    with pytest.raises(mx.MXNetError, match="1 patterns for 0"):
        init.Mixed(["a"], [])


def test_load(tmp_path):
    values = {"arg:a_weight": mx.nd.ones((3, 4)) * 5}
    loader = init.Load(values, default_init=init.Zero())
    assert (filled(loader, "a_weight") == 5).all() and (filled(loader, "b_weight") == 0).all()
    with pytest.raises(mx.MXNetError, match=r"\(2, 2\)"):
        filled(loader, "a_weight", (2, 2))
    with pytest.raises(mx.MXNetError, match="no default_init"):
        filled(init.Load({}), "z_weight")
    mx.nd.save(str(tmp_path / "p.params"), values)
    assert (filled(init.Load(str(tmp_path / "p.params")), "a_weight") == 5).all()


@pytest.mark.parametrize(
    "act, words",
    [
        (lambda: init.create("xavie"), "did you mean 'xavier'"),
        (lambda: init.Xavier(rnd_type="x"), "rnd_type='x'"),
        (lambda: init.Xavier(factor_type="x"), "factor_type='x'"),
        (lambda: filled(init.Xavier(), shape=(3,)), "two axes"),
        (lambda: init.Orthogonal(rand_type="x"), "rand_type='x'"),
        (lambda: init.FusedRNN(None, 4, 2, "elman"), "mode='elman'"),
        (lambda: init.register(int), "Initializer"),
        (lambda: filled(init.Constant(mx.nd.ones((3,))), shape=(2, 4)), "shape (3,) does not broadcast to (2, 4)"),
    ],
)
def test_errors_name_the_argument(act, words):
    with pytest.raises(mx.MXNetError, match=re.escape(words)):
        act()


def test_a_registered_class_is_found_and_reports(caplog):
    @init.register
    @init.alias("halves", "half")
    class Halves(init.Initializer):
        def _init_weight(self, name, arr):
            arr[:] = 0.5

    made = init.create("half").set_verbosity(True)
    with caplog.at_level("INFO"):
        assert (filled(made) == 0.5).all()
    assert "Initialized x_weight as weight: 0.5" in caplog.text


def test_verbosity_is_off_unless_asked_for(caplog):
    with caplog.at_level("INFO"):
        filled(init.One())
        filled(init.One().set_verbosity(True).set_verbosity())
    assert not caplog.records


def test_equal_are_initializers_of_one_class_and_the_same_arguments():
    assert init.Uniform(0.5) == init.Uniform(0.5) and hash(init.Uniform(0.5)) == hash(init.Uniform(0.5))
    assert init.Uniform(0.5) != init.Uniform(0.25) and init.Uniform(0.5) != init.Normal(0.5) and init.One() != "one"


@pytest.mark.parametrize(
    ("bidirectional", "mode"), [(b, m) for b in (False, True) for m in ("lstm", "gru", "rnn_relu")]
)
def test_fused_sizes_of_one_unit_one_layer_and_one_input(bidirectional, mode):
    ways, gates = 1 + bidirectional, {"lstm": 4, "gru": 3, "rnn_relu": 1}[mode]
    made = init.FusedRNN(init.One(), 1, 1, mode, bidirectional=bidirectional, forget_bias=0.0)
    size = ways * gates * (1 + 1 + 2)
    assert runs(filled(init.Zero(), "x_parameters", (size,), attrs={"__init__": made.dumps()}))[0] == (0, 1.0)
    for wrong in (size - ways * gates, *((size - 1, size + 1) if ways * gates > 1 else ())):
        with pytest.raises(mx.MXNetError, match="do not fit"):
            filled(init.Zero(), "x_parameters", (wrong,), attrs={"__init__": made.dumps()})


def test_a_list_of_arrays_names_no_variables(tmp_path):
    mx.nd.save(str(tmp_path / "p.params"), [mx.nd.ones((1,))])
    with pytest.raises(mx.MXNetError, match="holds a list: expected arrays with names"):
        init.Load(str(tmp_path / "p.params"))
