"""Loops and branches over symbols: MXNet's files and values, gradients, states, inference, blocks, bad input."""

from __future__ import annotations

import json

import numpy as np
import pytest

import dualmx as mx
from dualmx.core.errors import ArgumentError, ArgumentTypeError, FormatError
from tests.goldens.control_cases import CASES, inputs
from tests.goldens.store import load

GOLDEN = load("control")
sym, nd = mx.sym, mx.nd


def built(name):
    from dualmx.symbol import control

    control._counters.clear()
    with mx.name.NameManager():
        return CASES[name](sym)


def run(symbol, arrays):
    args = {k: nd.array(v) for k, v in arrays.items()}
    grads = {k: nd.zeros(v.shape) for k, v in args.items()}
    exe = symbol.bind(mx.cpu(), args, grads)
    outs = exe.forward(is_train=True)
    exe.backward([nd.full(o.shape, i + 1) for i, o in enumerate(outs)])
    return outs, grads


@pytest.mark.parametrize("name", [n for n in CASES if GOLDEN[n]["outputs"]])
def test_values_and_gradients_of_mxnet(name):
    outs, grads = run(built(name), inputs(name))
    for got, want in zip(outs, GOLDEN[name]["outputs"], strict=True):
        want = np.array(want)
        steps = 3 if name == "while_loop" and want.ndim == 2 else None  # MXNet leaves the rows after the last step
        np.testing.assert_allclose(got.asnumpy()[:steps], want[:steps], rtol=1e-5, atol=1e-6)
    for key, want in GOLDEN[name]["grads"].items():
        np.testing.assert_allclose(grads[key].asnumpy(), want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_json_is_that_of_mxnet_and_reads_back(name):
    want = json.loads(GOLDEN[name]["json"])
    if name in ("foreach", "cond"):
        assert json.loads(built(name).tojson()) == want
    loaded = sym.load_json(GOLDEN[name]["json"])
    assert json.loads(loaded.tojson()) == want
    outs, _ = run(loaded, inputs(name))
    again, _ = run(built(name), inputs(name))
    for a, b in zip(outs, again, strict=True):
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-6)


def test_gradients_of_a_loop_are_those_of_its_steps():
    arrays = inputs("while_loop")
    _, grads = run(built("while_loop"), arrays)
    i, a, w = (nd.array(arrays[k]) for k in "iaw")
    for x in (i, a, w):
        x.attach_grad()
    with mx.autograd.record():
        outs, last = nd.contrib.while_loop(lambda i, a: i < w, lambda i, a: ([i * a, a], [i + 1, a * w + i]), [i, a], 5)
        sum(((n + 1) * o).sum() for n, o in enumerate([*outs, *last])).backward()
    for name, x in zip("iaw", (i, a, w), strict=True):
        np.testing.assert_allclose(grads[name].asnumpy(), x.grad.asnumpy(), rtol=1e-5)


def test_nested_graphs_agree_with_their_steps():
    arrays = inputs("nested")
    outs, grads = run(built("nested"), arrays)
    d, s = nd.array(arrays["d"]), nd.array(arrays["s"])
    d.attach_grad()

    def outer(row, state):
        out, t = nd.contrib.foreach(lambda x, t: (x * t, nd.sin(x + t)), row, state)
        return nd.contrib.cond(nd.sum(row) > 2, lambda: out * 2, lambda: out + row), t

    with mx.autograd.record():
        out, last = nd.contrib.foreach(outer, d, s)
        (out.sum() + 2 * last.sum()).backward()
    np.testing.assert_allclose(outs[0].asnumpy(), out.asnumpy(), rtol=1e-5)
    np.testing.assert_allclose(grads["d"].asnumpy(), d.grad.asnumpy(), rtol=1e-5)


def test_inference_through_the_graphs():
    symbol = built("foreach")
    assert symbol.infer_shape(d=(4, 2, 3))[0] == [(4, 2, 3), (2, 3), (3, 3), (3,), (2, 3)]
    assert symbol.infer_shape(d=(4, 2, 3))[1] == [(4, 2, 3), (4, 2, 3), (2, 3)]
    assert set(symbol.infer_type(d="float64")[0]) == set(symbol.infer_type(d="float64")[1]) == {np.float64}
    d, s = sym.var("d"), sym.var("s")
    _, last = sym.contrib.foreach(lambda x, st: (x, st + x), d, s)
    assert last.infer_shape(s=(2,), d=(3, 0))[0] == [(3, 2), (2,)]


def test_states_inside_are_updated():
    d, s = sym.var("d"), sym.var("s")
    norm = dict(name="bn", fix_gamma=False, momentum=0.5)
    outs, last = sym.contrib.foreach(lambda x, st: (sym.BatchNorm(x, **norm), st + x), d, s)
    symbol = sym.Group([outs, last])
    assert symbol.list_auxiliary_states() == [] and "bn_moving_mean" in symbol.list_arguments()
    x = np.arange(12, dtype="f").reshape(2, 3, 2)
    exe = symbol.simple_bind(mx.cpu(), grad_req="null", d=x.shape, s=(3, 2))
    exe.arg_dict["bn_moving_var"][:] = 1
    exe.arg_dict["bn_gamma"][:] = 1
    exe.forward(is_train=False, d=x)
    assert exe.arg_dict["bn_moving_mean"].asnumpy().tolist() == [0, 0]
    exe.forward(is_train=True, d=x)
    mean = np.zeros(2)
    for step in x:
        mean = mean / 2 + step.mean(0) / 2
    np.testing.assert_allclose(exe.arg_dict["bn_moving_mean"].asnumpy(), mean, rtol=1e-6)


def test_inputs_that_a_graph_does_not_read():
    d, s = sym.var("d"), sym.var("s")
    outs, last = sym.contrib.foreach(lambda x, st: (st * 2, st + 1), d, s)
    outs, last = sym.Group([outs, last]).eval(d=nd.zeros((3, 1)), s=nd.ones((1,)))
    assert outs.asnumpy().ravel().tolist() == [2, 4, 6] and last.asscalar() == 4
    outs, last = sym.contrib.while_loop(lambda i, a: i < 3, lambda i, a: (i, (i + 1, i * 2)), [d, s], 4)
    values = sym.Group([outs, *last]).eval(d=nd.zeros((1,)), s=nd.ones((1,)))
    assert [v.asnumpy().ravel().tolist() for v in values] == [[0, 1, 2, 0], [3], [4]]


def test_random_steps_differ():
    outs, _ = sym.contrib.foreach(lambda x, st: (sym.Dropout(x, p=0.5, mode="always"), st), sym.var("d"), [])
    kept = outs.eval(d=nd.ones((8, 32)))[0].asnumpy()
    assert len({tuple(row) for row in kept}) > 4 and set(np.unique(kept)) == {0, 2}


class Scan(mx.gluon.HybridBlock):
    def __init__(self):
        super().__init__()
        with self.name_scope():
            self.dense = mx.gluon.nn.Dense(3, activation="tanh")

    def hybrid_forward(self, F, x, state):
        outs, last = F.contrib.foreach(lambda step, s: ((o := self.dense(F.concat(step, s, dim=1))), o), x, state)
        return F.contrib.cond(F.sum(last) > 100, lambda: outs * 0, lambda: outs), last


def test_hybridized_blocks(tmp_path):
    net, x, state = Scan(), nd.array(np.random.rand(4, 2, 5)), nd.zeros((2, 3))
    net.initialize(mx.init.Normal(0.5))
    results = []
    for active in (False, True):
        net.hybridize(active)
        with mx.autograd.record():
            outs, last = net(x, state)
            (outs.sum() + last.sum()).backward()
        results.append([outs.asnumpy(), last.asnumpy(), net.dense.weight.grad().asnumpy()])
    for eager, compiled in zip(*results, strict=True):
        np.testing.assert_allclose(compiled, eager, rtol=1e-4, atol=1e-6)
    net.export(str(tmp_path / "scan"))
    files = str(tmp_path / "scan-symbol.json"), ["data0", "data1"], str(tmp_path / "scan-0000.params")
    loaded = mx.gluon.SymbolBlock.imports(*files)
    np.testing.assert_allclose(loaded(x, state)[0].asnumpy(), results[0][0], rtol=1e-4, atol=1e-6)


def test_module_fits_a_loop():
    w = sym.var("w", shape=(1,), init=mx.init.One())
    data = sym.transpose(sym.var("data"))
    _, last = sym.contrib.foreach(lambda x, s: ([], s + sym.broadcast_mul(x, w)), data, sym.sum(data, axis=0) * 0)
    net = sym.LinearRegressionOutput(last, sym.var("label"))
    x = np.random.RandomState(0).rand(64, 4).astype("f")
    feed = mx.io.NDArrayIter(x, 3 * x.sum(1), batch_size=16, label_name="label")
    module = mx.mod.Module(net, label_names=["label"])
    module.fit(feed, num_epoch=4, eval_metric="mse", optimizer_params={"learning_rate": 0.2})
    np.testing.assert_allclose(module.get_params()[0]["w"].asscalar(), 3, atol=0.01)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda a: sym.contrib.foreach(lambda x, s: (x, s), 3, []), ArgumentTypeError, "data is 3"),
        (lambda a: sym.contrib.foreach(lambda x, s: x, a, []), ArgumentError, "body returned"),
        (lambda a: sym.contrib.foreach(lambda x, s: (x, [s, s]), a, a), ArgumentError, "nested"),
        (lambda a: sym.contrib.while_loop(lambda i: i, lambda i: (i, i), a), ArgumentError, "max_iterations"),
        (lambda a: sym.contrib.while_loop(lambda: a, lambda: 1, [], 3), ArgumentError, "at least one"),
        (lambda a: sym.contrib.while_loop(lambda i: 1, lambda i: (i, i), a, 3), ArgumentTypeError, "cond returned 1"),
        (lambda a: sym.contrib.while_loop(lambda i: i, lambda i: (i, [i, i]), a, 3), ArgumentError, "nested"),
        (lambda a: sym.contrib.cond(3, lambda: a, lambda: a), ArgumentTypeError, "pred is 3"),
        (lambda a: sym.contrib.cond(a, list, list), ArgumentError, "no output"),
        (lambda a: sym.contrib.foreach(lambda x, s: (x, s), [], a), ArgumentError, "at least one symbol"),
        (lambda a: sym.contrib.cond(a, lambda: [a, a], lambda: a), ArgumentError, "2 outputs and else_func 1"),
    ],
)
def test_bad_arguments(call, error, text):
    with pytest.raises(error, match=text):
        call(sym.var("a"))


def test_bad_shapes_name_the_node():
    d, s = sym.var("d"), sym.var("s")
    _, last = sym.contrib.foreach(lambda x, st: (x, sym.concat(st, st, dim=0)), d, s)
    with pytest.raises(mx.MXNetError, match="_foreach"):
        last.infer_shape(d=(2, 3), s=(3,))
    _, last = sym.contrib.foreach(lambda x, st: (x, st), [d, sym.var("e")], s)
    with pytest.raises(mx.MXNetError, match=r"\[2, 3\] steps|_foreach"):
        last.eval(d=nd.ones((2, 1)), e=nd.ones((3, 1)), s=nd.ones((1,)))


@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        (["subgraphs"], [], "0 subgraphs"),
        (["attrs", "num_args"], "9", "num_args=9"),
        (["attrs", "in_data_locs"], "[7]", "wired|name every"),
        (["attrs", "num_outputs"], "2", "outputs"),
        (["subgraphs"], [3], "a subgraph"),
    ],
)
def test_damaged_files(path, value, text):
    doc = json.loads(GOLDEN["foreach"]["json"])
    node = next(n for n in doc["nodes"] if n["op"] == "_foreach")
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    with pytest.raises(FormatError, match=text):
        sym.load_json(json.dumps(doc))
