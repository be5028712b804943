"""The Symbol API: outputs, names, attributes, composition, errors."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import dualmx as mx
from dualmx.symbol import NotImplementedForSymbol

sym = mx.sym


@pytest.fixture(autouse=True)
def own_names():
    with mx.name.NameManager():
        yield


@pytest.fixture
def x():
    return sym.var("x")


def test_outputs_by_number_name_and_slice(x):
    parts = sym.split(x, num_outputs=3, name="sp")
    assert len(parts) == 3 and parts.name == "sp"
    assert parts.list_outputs() == ["sp_output0", "sp_output1", "sp_output2"]
    assert parts[1].list_outputs() == parts["sp_output1"].list_outputs() == ["sp_output1"]
    assert parts[0:2].list_outputs() == ["sp_output0", "sp_output1"]
    assert [s.list_outputs()[0] for s in parts] == parts.list_outputs()
    with pytest.raises(IndexError, match=r"symbol\[3\]: it has 3 outputs"):
        parts[3]
    with pytest.raises(ValueError, match="nope"):
        parts["nope"]
    with pytest.raises(mx.MXNetError, match="3 outputs"):
        sym.relu(parts)


def test_groups(x):
    group = sym.Group([x, sym.relu(x, name="r")])
    assert group.name is None and group.list_outputs() == ["x", "r_output"]
    assert repr(group) == "<Symbol group [x, r]>" and repr(x) == "<Symbol x>"
    assert group.list_attr() == {}
    for wrong in ([], [x, 1]):
        with pytest.raises(TypeError, match="Group: expected a non-empty list of symbols, got"):
            sym.Group(wrong)


def test_internals_and_children(x):
    net = sym.FullyConnected(sym.relu(x, name="r"), num_hidden=2, name="fc")
    assert net.get_internals().list_outputs() == ["x", "r_output", "fc_weight", "fc_bias", "fc_output"]
    assert net.get_internals()["r_output"].list_arguments() == ["x"]
    assert net.get_children().list_outputs() == ["r_output", "fc_weight", "fc_bias"]
    assert x.get_children() is None
    assert net.list_inputs() == ["x", "fc_weight", "fc_bias"]


def test_names_count_by_kind(x):
    assert [sym.relu(x).name, sym.relu(x).name, sym.tanh(x).name, (x + x).name] == ["relu0", "relu1", "tanh0", "_plus0"]
    with mx.name.Prefix("net_"):
        assert sym.relu(x).name == "net_relu0"
        assert sym.relu(x, name="mine").name == "net_mine"
    assert sym.relu(x).name == "relu2"


def test_names_are_counted_per_thread(x):
    sym.relu(x)
    found = []
    thread = threading.Thread(target=lambda: found.append(sym.exp(x).name))
    thread.start()
    thread.join()
    assert sym.exp(x).name == "exp0" and found[0].startswith("exp")


def test_attributes():
    with mx.AttrScope(ctx_group="a", __n__="1"), mx.AttrScope(ctx_group="b"):
        w = sym.var("w", lr_mult=2)
    assert w.list_attr() == {
        "__ctx_group__": "b", "ctx_group": "b", "__n__": "1", "__lr_mult__": "2", "lr_mult": "2",
    }  # fmt: skip
    assert w.attr("lr_mult") == w.attr("__lr_mult__") == "2" and w.attr("nope") is None
    w._set_attr(__more__="x")
    assert w.attr("__more__") == "x"
    with mx.AttrScope(__a__="1", ctx_group="g"):  # what is said of a node wins over what its scope says
        w, r = sym.var("w", attr={"__a__": "2"}), sym.relu(w, attr={"ctx_group": "h"})
    assert (w.attr("__a__"), w.attr("ctx_group"), r.attr("__a__"), r.attr("ctx_group")) == ("2", "g", "1", "h")
    with pytest.raises(ValueError, match="strings"):
        w._set_attr(a=1)
    with pytest.raises(ValueError, match="strings"):
        mx.AttrScope(a=1)
    with pytest.raises(ValueError, match="foo"):
        sym.var("w", foo="1")
    with pytest.raises(TypeError, match="name=3: expected a string"):
        sym.var(3)


def test_operators_without_parameters_take_any_attribute():
    with mx.AttrScope(a="1"):
        assert mx.sym.relu(mx.sym.var("x"), attr={"b": "2"}).list_attr() == {"a": "1", "b": "2"}
        with pytest.raises(mx.MXNetError, match="'a'"):
            mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=2)


def test_an_attribute_that_is_a_parameter_changes_the_operator(x):
    net = sym.FullyConnected(x, num_hidden=2, name="fc")
    net._set_attr(num_hidden="5")
    assert net.infer_shape(x=(2, 3))[1] == [(2, 5)]
    with pytest.raises(mx.MXNetError, match="foo"):
        net._set_attr(foo="1")
    with pytest.raises(mx.MXNetError, match="num_hidden"):
        net._set_attr(num_hidden="many")
    assert net.list_attr() == {"num_hidden": "5"}


def test_multipliers_belong_on_the_variable(x):
    with pytest.raises(mx.MXNetError, match="weight"):
        sym.FullyConnected(x, num_hidden=2, weight_lr_mult="2")


@pytest.mark.parametrize(
    ("call", "error", "part"),
    [
        (lambda x: sym.FullyConnected(x), mx.MXNetError, "num_hidden"),
        (lambda x: sym.FullyConnected(x, num_hidden=0), mx.MXNetError, "num_hidden"),
        (lambda x: sym.FullyConnected(x, num_hiden=1), mx.MXNetError, "num_hidden"),
        (lambda x: sym.FullyConnected(x, num_hidden=1, nope=x), mx.MXNetError, "nope"),
        (lambda x: sym.FullyConnected(x, num_hidden=1, no_bias=True, bias=x), mx.MXNetError, "bias"),
        (lambda x: sym.FullyConnected(1, num_hidden=1), TypeError, "data"),
        (lambda x: sym.FullyConnected(x, data=x, num_hidden=1), TypeError, "data"),
        (lambda x: sym.Concat(x, 1), TypeError, "symbols"),
        (lambda x: sym.Concat(), mx.MXNetError, "num_args|Concat"),
        (lambda x: x + "a", TypeError, "str"),
        (lambda x: x + None, TypeError, "NoneType"),
        (lambda x: x + mx.nd.ones(1), TypeError, "NDArray"),
        (lambda x: sym.BatchNorm(x, moving_mean=sym.relu(x)), mx.MXNetError, "moving_mean"),
        (lambda x: sym.nope(x), AttributeError, "nope"),
        (lambda x: sym.relu(x, x), TypeError, "got 2 positional"),
        (lambda x: sym.FullyConnected(x, num_hidden=1, weight=1), TypeError, "input 'weight' must be a symbol, got 1"),
        (lambda x: sym.Concat(x, num_args=1, nope=x), mx.MXNetError, "no input 'nope'"),
        (lambda x: sym.FullyConnected(sym.Group([x, x]), num_hidden=1), mx.MXNetError, "2 outputs; pick one"),
        (lambda x: sym.reset_arrays(x, num_arrays=1), mx.MXNetError, "no output, so no symbol"),
        (lambda x: sym.SequenceMask(x, sym.relu(x)), mx.MXNetError, "no input 'sequence_length'"),
        (lambda x: sym.relu(x)(3), TypeError, "expected symbols as inputs, got 3"),
        (lambda x: sym.relu(x)(x, x), ValueError, "got 2 symbols for the 1 variables"),
        (lambda x: sym.relu(x)(x, x=x), TypeError, "either by position or by keyword"),
        (lambda x: sym.relu(x)(y=x), mx.MXNetError, "'y'"),
        (lambda x: sym.Group([]), TypeError, "expected a non-empty list of symbols"),
        (lambda x: sym.Group([x, 3]), TypeError, "expected a non-empty list of symbols"),
        (lambda x: sym.Group(x), TypeError, "expected a non-empty list of symbols"),
        (lambda x: x[1], IndexError, "it has 1 outputs"),
        (lambda x: x[-2], IndexError, "it has 1 outputs"),
        (lambda x: x[1:], IndexError, "is empty"),
        (lambda x: x[1.0], TypeError, "an output's number"),
        (lambda x: sym.Group([x, sym.relu(x)]).attr("a"), mx.MXNetError, "a symbol of one node, not a group"),
        (lambda x: x.list_attr(recursive=True), DeprecationWarning, "use attr_dict"),
        (lambda x: x.save(3), TypeError, "fname=3"),
        (lambda x: sym.load(3), TypeError, "fname=3"),
        (lambda x: x.infer_shape(y=(1,)), mx.MXNetError, "no variable 'y'"),
        (lambda x: (x + sym.var("x")).simple_bind(mx.cpu(), x=(1,)), mx.MXNetError, "two different variables"),
        (
            lambda x: x.simple_bind(mx.cpu(), x=(1,), stype_dict={"x": "dense"}),
            ValueError,
            "storage type 'dense' of 'x'",
        ),
    ],
)
def test_wrong_calls_say_what_is_wrong(x, call, error, part):
    with pytest.raises(error, match=part):
        call(x)


def test_what_needs_values_raises(x):
    for call in (bool, lambda s: s.asnumpy(), lambda s: s.asscalar(), lambda s: s.wait_to_read(), lambda s: s.detach()):
        with pytest.raises(NotImplementedForSymbol, match="is not implemented for Symbol: it has no values; bind it"):
            call(x)
    with pytest.raises(mx.MXNetError, match="use Executor.backward"):
        x.gradient(["x"])
    with pytest.raises(TypeError, match="unhashable type: 'Symbol'"):
        hash(x)


def test_composition(x):
    net = sym.FullyConnected(sym.var("data"), num_hidden=3, name="fc")
    act = sym.Activation(sym.var("z"), act_type="relu", name="act")
    assert act(z=net).list_arguments() == ["data", "fc_weight", "fc_bias"]
    assert act(net).list_arguments() == ["data", "fc_weight", "fc_bias"]
    assert act.list_arguments() == ["z"]
    assert act(z=net, name="new").list_outputs() == ["new_output"]
    assert sym.Group([net, act])(data=x, z=sym.var("y")).list_arguments() == ["x", "fc_weight", "fc_bias", "y"]
    with pytest.raises(mx.MXNetError, match="nope"):
        act(nope=net)
    with pytest.raises(TypeError, match="expected symbols as inputs, got 1"):
        act(1)
    with pytest.raises(TypeError, match="either by position or by keyword, not both"):
        act(net, z=net)
    with pytest.raises(mx.MXNetError, match="outputs"):
        act(z=sym.Group([x, x]))


def test_signatures_and_documentation():
    import inspect

    parameters = list(inspect.signature(sym.FullyConnected).parameters)
    assert parameters[:4] == ["data", "weight", "bias", "num_hidden"] and {"name", "attr"} <= set(parameters)
    assert sym.FullyConnected.__doc__ and sym.FullyConnected.__name__ == "FullyConnected"


def test_sub_namespaces():
    import sys

    assert sys.modules["dualmx.symbol.random"] is sym.random
    assert sym.linalg.gemm2(sym.var("a"), sym.var("b")).name == "gemm20"
    assert callable(sym._internal._plus_scalar) and callable(sym.op.relu)


def test_random_symbols_take_numbers_or_symbols(x):
    assert sym.random.normal(0, 1, shape=(2, 3)).infer_shape()[1] == [(2, 3)]
    assert sym.random.uniform(x, sym.var("y"), shape=(4,)).infer_shape(x=(2,))[1] == [(2, 4)]
    with pytest.raises(TypeError, match="low"):
        sym.random.uniform(0, x)


def test_shape_attributes_start_inference():
    s = sym.relu(sym.var("s", shape=(2, 3), dtype="float16"))
    assert s.infer_shape() == ([(2, 3)], [(2, 3)], [])
    assert s.infer_type() == ([np.float16], [np.float16], [])
    assert s.infer_type(s=np.float32) == ([np.float32], [np.float32], [])
    assert s.infer_shape(s=(4, 3))[1] == [(4, 3)]
    assert sym.relu(x_ := sym.var("x")).infer_shape((2, 3)) == x_.infer_shape((2, 3))


def test_what_is_missing_for_shapes_is_named_in_a_warning(x):
    with pytest.warns(UserWarning, match=r"Cannot decide shape .*:\n\tx: \(\)\n\tfc_weight: \(\)$"):
        assert sym.FullyConnected(x, num_hidden=3, name="fc").infer_shape(fc_bias=(3,)) == (None, None, None)


def test_contradictions_name_node_argument_and_both_shapes(x):
    net = sym.FullyConnected(x, num_hidden=3, name="fc")
    with pytest.raises(mx.MXNetError, match=r"'fc' .*'weight' has shape \(3, 5\), but \(3, 4\) follows"):
        net.infer_shape(x=(2, 4), fc_weight=(3, 5))
    with pytest.raises(mx.MXNetError, match="float32"):
        net.infer_type(x="float16", fc_bias="float32")


def test_lengths_have_the_type_of_the_data_unless_they_have_one(x):
    lengths = sym.var("n")
    net = sym.RNN(x, state_size=3, num_layers=1, mode="gru", use_sequence_length=True, sequence_length=lengths)
    masked = sym.SequenceMask(x, sequence_length=lengths, use_sequence_length=True)
    for symbol in (net, masked):
        assert set(symbol.infer_type(x="float64")[0]) == {np.float64}
        assert symbol.infer_type(x="float64", n="int32")[0][-1] == np.int32


def test_a_long_chain_needs_no_recursion(x):
    net = x
    for _ in range(5000):
        net = net + 1
    assert net.infer_shape(x=(2,)) == ([(2,)], [(2,)], [])
    assert net.infer_type(x="float32")[1] == [np.float32]
    text = net.tojson()
    assert sym.load_json(text).tojson() == text


def test_backward_inference_through_many_layers(x):
    h = sym.tanh(sym.relu(x) * 2 + 1)
    assert (h + sym.var("y")).infer_shape(y=(3, 4)) == ([(3, 4), (3, 4)], [(3, 4)], [])


def test_summary_and_drawing(capsys):
    net = sym.FullyConnected(sym.var("data"), num_hidden=3, name="fc")
    mx.viz.print_summary(net, shape={"data": (2, 4)})
    out = capsys.readouterr().out
    assert "fc(FullyConnected)" in out and "Total params: 15" in out
    with pytest.raises(TypeError, match="print_summary: expected a Symbol, got int"):
        mx.viz.print_summary(3)
    pytest.importorskip("graphviz")
    source = mx.viz.plot_network(net, shape={"data": (2, 4)}).source
    assert "FullyConnected" in source and "fc_weight" not in source
    assert "fc_weight" in mx.viz.plot_network(net, hide_weights=False).source
    typed = mx.viz.plot_network(net, shape={"data": (2, 4)}, dtype={"data": "float16"}).source
    assert 'label="4(float16)"' in typed
    with pytest.raises(TypeError, match="dtype='float16'"):
        mx.viz.plot_network(net, dtype="float16")


def test_shapes_under_numpy_semantics():
    """0 is a size and () a shape; -1 and None are unknown: as MXNet 1.9.1 gave it."""
    d, e = mx.sym.var("d"), mx.sym.var("e")
    dense = mx.sym.FullyConnected(d, num_hidden=3, name="f")
    with mx.util.np_shape(True):
        assert dense.infer_shape(d=(0, 4)) == ([(0, 4), (3, 4), (3,)], [(0, 3)], [])
        assert dense.infer_shape(d=(-1, 4)) == (None, None, None)
        assert dense.infer_shape_partial(d=(-1, 4)) == ([(-1, 4), (3, 4), (3,)], [(-1, 3)], [])
        assert (d + e).infer_shape(d=(2, -1), e=(2, 3)) == ([(2, 3), (2, 3)], [(2, 3)], [])
        assert (d + e).infer_shape(d=(2, 0), e=(2, 0))[1] == [(2, 0)]
        assert (d + e).infer_shape(d=(), e=()) == ([(), ()], [()], [])
        with pytest.raises(mx.MXNetError, match="shape"):
            (d + e).infer_shape(d=(2, 0), e=(2, 3))
        assert (mx.sym.var("v", shape=(2, 0)) * 1).infer_shape() == ([(2, 0)], [(2, 0)], [])
        assert (mx.sym.var("v", shape=(2, -1)) * 1).infer_shape_partial() == ([(2, -1)], [(2, -1)], [])
        assert mx.sym.concat(d, e, dim=0).infer_shape(d=(0, 3), e=(2, 3))[1] == [(2, 3)]
        assert mx.sym.zeros((2, 0)).infer_shape()[1] == [(2, 0)]
        assert mx.sym.dot(d, e).infer_shape(d=(2, 0), e=(0, 3))[1] == [(2, 3)]
        assert (d * 2).simple_bind(mx.cpu(), d=(0, 3)).forward()[0].shape == (0, 3)
        assert (d * 2).simple_bind(mx.cpu(), d=()).forward()[0].shape == ()
    assert dense.infer_shape(d=(0, 4)) == (None, None, None)


@pytest.mark.parametrize("op", ["LinearRegressionOutput", "MAERegressionOutput", "LogisticRegressionOutput"])
def test_labels_of_regressions_have_as_many_numbers(x, op):
    network = getattr(sym, op)(x, sym.var("l"))
    for label in ((4, 1), (4,), (4, 1, 1)):
        assert network.infer_shape(x=(4, 1), l=label)[0] == [(4, 1), label]
    assert network.infer_shape(x=(4, 1))[0] == [(4, 1), (4,)]
    assert network.infer_shape(x=(4, 6), l=(4, 2, 3))[1] == [(4, 6)]
    for label in ((5, 1), (4, 2), (2, 2)):
        with pytest.raises(mx.MXNetError, match="label"):
            network.infer_shape(x=(4, 1), l=label)


def test_outputs_of_operators_with_several_have_mxnets_names():
    x = mx.sym.var("x")
    assert mx.sym.sort(x, name="n").list_outputs() == ["n_output0"]
    assert mx.sym.moments(x, axes=(0,), name="n").list_outputs() == ["n_output0", "n_output1"]
    assert mx.sym.contrib.box_nms(x, name="n").list_outputs() == ["n_output0"]
    boxes = mx.sym.contrib.MultiBoxTarget(x, mx.sym.var("y"), mx.sym.var("z"), name="n")
    assert boxes.list_outputs() == ["n_loc_target", "n_loc_mask", "n_cls_target"]
    proposal = mx.sym.contrib.Proposal(x, mx.sym.var("y"), mx.sym.var("z"), output_score=True, name="n")
    assert proposal.list_outputs() == ["n_output", "n_score"]


def test_bilinear_up_sampling_makes_its_weight():
    up = mx.sym.UpSampling(mx.sym.var("x"), scale=2, sample_type="bilinear", num_filter=2, name="up")
    assert up.list_arguments() == ["x", "up_weight"]
    assert up.infer_shape(x=(1, 2, 3, 3)) == ([(1, 2, 3, 3), (2, 1, 4, 4)], [(1, 2, 6, 6)], [])
    assert up.attr_dict()["up_weight"]["__init__"] == '["bilinear", {}]'
    again = mx.sym.load_json(up.tojson())
    assert again.list_arguments() == ["x", "up_weight"]
    shared = mx.sym.UpSampling(data=mx.sym.var("x"), weight=mx.sym.var("w"), scale=2, sample_type="bilinear",
                               num_filter=2)  # fmt: skip
    assert shared.list_arguments() == ["x", "w"]


def test_batches_of_unknown_size_have_labels_of_unknown_size():
    net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=3, name="fc"), name="softmax")
    assert net.infer_shape_partial(data=(0, 7)) == ([(0, 7), (3, 7), (3,), (0,)], [(0, 3)], [])
    assert net.infer_shape(data=(0, 7)) == (None, None, None)


@pytest.mark.parametrize(
    ("op", "given", "want"),
    [
        ("LeakyReLU", {"act_type": "prelu"}, [(3,)]),
        ("Convolution", {"kernel": (2, 3), "num_filter": 6, "num_group": 3}, [(6, 1, 2, 3), (6,)]),
        ("Deconvolution", {"kernel": (2, 3), "num_filter": 6, "num_group": 3}, [(3, 2, 2, 3)]),
        ("BatchNorm", {}, [(3,), (3,)]),
        ("BatchNorm", {"axis": 2}, [(4,), (4,)]),
        ("BatchNorm", {"axis": -1}, [(5,), (5,)]),
        ("LayerNorm", {"axis": 1}, [(3,), (3,)]),
        ("LayerNorm", {}, [(5,), (5,)]),
        ("InstanceNorm", {}, [(3,), (3,)]),
        ("GroupNorm", {"num_groups": 1}, [(1,), (1,)]),
        ("GroupNorm", {"num_groups": 3}, [(3,), (3,)]),
        ("FullyConnected", {"num_hidden": 7}, [(7, 60), (7,)]),
        ("FullyConnected", {"num_hidden": 7, "flatten": False}, [(7, 5), (7,)]),
        ("Embedding", {"input_dim": 7, "output_dim": 6}, [(7, 6)]),
    ],
)
def test_shapes_of_parameters_where_no_two_lengths_are_equal(x, op, given, want):
    """As MXNet 1.9.1 completes them."""
    assert getattr(sym, op)(x, **given).infer_shape(x=(2, 3, 4, 5))[0][1:] == want
