"""Model parallelism by `ctx_group`: operators run on the contexts of their groups."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dualmx as mx
from dualmx.compile.events import Listener, listeners

RNG = np.random.RandomState(0)


def chain(classes: int = 3):
    """Three layers in two groups, the third back on the first group, with a shared bias."""
    x, shared = mx.sym.var("x"), mx.sym.var("shared")
    with mx.AttrScope(ctx_group="one"):
        h = mx.sym.FullyConnected(x, num_hidden=4, no_bias=True, name="a")
        h = mx.sym.Activation(mx.sym.broadcast_add(h, shared), act_type="tanh")
    with mx.AttrScope(ctx_group="two"):
        h = mx.sym.FullyConnected(h, num_hidden=4, no_bias=True, name="b")
        h = mx.sym.BatchNorm(mx.sym.broadcast_add(h, shared), fix_gamma=False, name="bn")
    with mx.AttrScope(ctx_group="one"):
        h = mx.sym.FullyConnected(h, num_hidden=classes, name="c")
    return mx.sym.SoftmaxOutput(h, mx.sym.var("label"), name="softmax")


def run(group2ctx: dict | None, req: str = "write") -> tuple[Any, Any, Any, Any]:
    exe = chain().simple_bind(
        mx.cpu(0), grad_req=req, group2ctx=group2ctx, x=(6, 5), shared=(1, 4), label=(6,),
        type_dict={"x": np.float64},
    )  # fmt: skip
    values = np.random.RandomState(1)
    for name in sorted(exe.arg_dict):
        a = exe.arg_dict[name]
        a[:] = mx.nd.array(values.randint(0, 3, a.shape) if name == "label" else values.randn(*a.shape), dtype=a.dtype)
    outs = []
    for _ in range(2):
        outs.append(exe.forward(is_train=True)[0].asnumpy())
        exe.backward()
    outs.append(exe.forward()[0].asnumpy())
    return (
        outs,
        {n: g.asnumpy() for n, g in exe.grad_dict.items() if g is not None},
        {n: a.asnumpy() for n, a in exe.aux_dict.items()},
        exe,
    )


@pytest.mark.parametrize("req", ["write", "add"])
def test_results_equal_those_of_one_context(req: str) -> None:
    placed, plain = run({"one": mx.cpu(1), "two": mx.cpu(2)}, req), run(None, req)
    for a, b in zip(placed[0], plain[0], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)
    for k in (1, 2):
        for n in plain[k]:
            np.testing.assert_allclose(placed[k][n], plain[k][n], rtol=1e-11, atol=1e-13, err_msg=n)


@pytest.mark.usefixtures("xla_tier")  # whose results tell their devices
def test_operators_and_their_arrays_are_where_their_group_is() -> None:
    seen: list[tuple[str, int]] = []

    class Note(Listener):
        def executed(self, state, began, started, results, how) -> None:
            devices = {d.id for r in results for d in r.devices()}
            step = state
            while step.parent is not None:
                if step.call is not None:
                    seen.extend((repr(step.call), d) for d in devices)
                step = step.parent

    note = Note()
    listeners.append(note)
    try:
        *_, exe = run({"one": mx.cpu(1), "two": mx.cpu(2)})
    finally:
        listeners.remove(note)
    assert exe.arg_dict["a_weight"].context == exe.grad_dict["c_weight"].context == mx.cpu(1)
    assert exe.arg_dict["b_weight"].context == exe.aux_dict["bn_moving_mean"].context == mx.cpu(2)
    assert {d for name, d in seen if name.startswith("symbol a ")} == {1}
    assert {d for name, d in seen if name.startswith("symbol b ")} == {2}
    assert {d for name, d in seen if name.startswith("symbol c ")} == {1}


def test_head_gradients_and_several_outputs() -> None:
    def run(group2ctx: dict | None) -> list[np.ndarray]:
        x = mx.sym.var("x")
        with mx.AttrScope(ctx_group="g"):
            y = mx.sym.exp(x)
        z = y * x
        exe = mx.sym.Group([y, z, y]).bind(
            mx.cpu(0), {"x": mx.nd.array([1.0, 2.0])}, {"x": mx.nd.zeros((2,))}, group2ctx=group2ctx
        )
        outs = exe.forward(is_train=True)
        exe.backward([mx.nd.array([1, 2]), mx.nd.array([3, 4]), mx.nd.array([5, 6])])
        grads: Any = exe.grad_dict
        return [*(o.asnumpy() for o in outs), grads["x"].asnumpy()]

    for a, b in zip(run({"g": mx.cpu(3)}), run(None), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_unrolled_lstm_over_two_devices_trains_as_on_one() -> None:
    steps, layers, hidden = 3, 2, 4

    def net():
        seq = mx.sym.split(mx.sym.var("data"), num_outputs=steps, axis=1, squeeze_axis=True)
        seq = [seq[t] for t in range(steps)]
        for k in range(layers):
            with mx.AttrScope(ctx_group=f"layer{k}"):
                wx, wh, b = (mx.sym.var(f"l{k}_{n}") for n in ("wx", "wh", "b"))
                h, c, out = None, None, []
                for t in range(steps):
                    gates = mx.sym.FullyConnected(seq[t], wx, b, num_hidden=4 * hidden)
                    if h is not None:
                        gates = gates + mx.sym.FullyConnected(h, wh, num_hidden=4 * hidden, no_bias=True)
                    i, f, g, o = (s for s in mx.sym.split(gates, num_outputs=4, axis=1))
                    c_new = mx.sym.sigmoid(i) * mx.sym.tanh(g)
                    c = c_new if c is None else c_new + mx.sym.sigmoid(f) * c
                    h = mx.sym.sigmoid(o) * mx.sym.tanh(c)
                    out.append(h)
                seq = out
        with mx.AttrScope(ctx_group=f"layer{layers - 1}"):
            return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(seq[-1], num_hidden=3, name="out"), name="softmax")

    x, y = RNG.randn(4, steps, 5), RNG.randint(0, 3, 4)

    def train(groups: dict | None) -> tuple[dict, Any]:
        mod = mx.mod.Module(net(), context=mx.cpu(0), group2ctxs=groups)
        mod.bind([mx.io.DataDesc("data", x.shape)], [mx.io.DataDesc("softmax_label", y.shape)])
        values = np.random.RandomState(5)
        shapes = dict(zip(mod.symbol.list_arguments(), mod.symbol.infer_shape(data=x.shape)[0], strict=True))
        names = sorted(set(shapes) - {"data", "softmax_label"})
        mod.init_params(arg_params={n: mx.nd.array(values.randn(*shapes[n]) * 0.3) for n in names})
        mod.init_optimizer("local", "sgd", {"learning_rate": 0.1, "momentum": 0.9})
        for _ in range(3):
            mod.forward_backward(mx.io.DataBatch([mx.nd.array(x)], [mx.nd.array(y)]))
            mod.update()
        return {n: a.asnumpy() for n, a in mod.get_params()[0].items()}, mod

    placed, mod = train({"layer0": mx.cpu(0), "layer1": mx.cpu(1)})
    plain, _ = train(None)
    for n in plain:
        np.testing.assert_allclose(placed[n], plain[n], rtol=2e-5, atol=1e-6, err_msg=n)
    exe = mod._group.execs[0] if hasattr(mod, "_group") else mod._exec_group.execs[0]
    assert exe.arg_dict["l1_wx"].context == mx.cpu(1) and exe.arg_dict["l0_wx"].context == mx.cpu(0)


def test_groups_may_be_meshes_and_differ_per_context() -> None:
    with mx.AttrScope(ctx_group="p"):
        h = mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=4, name="a")
    with mx.AttrScope(ctx_group="q"):
        y = mx.sym.FullyConnected(h, mx.sym.var("b_weight", shard=("model", None)), num_hidden=4, name="b")
    mesh = mx.parallel.Mesh({"model": 2}, [mx.cpu(2), mx.cpu(3)])

    def run(groups: dict | None) -> tuple[list[np.ndarray], Any]:
        exe = y.simple_bind(mx.cpu(0), group2ctx=groups, x=(2, 2))
        values = np.random.RandomState(0)
        for name in sorted(exe.arg_dict):
            exe.arg_dict[name][:] = mx.nd.array(values.randn(*exe.arg_dict[name].shape))
        outs = exe.forward(is_train=True)
        exe.backward(mx.nd.ones((2, 4)))
        return [outs[0].asnumpy(), *(g.asnumpy() for _, g in sorted(exe.grad_dict.items()) if g is not None)], exe

    (placed, exe), (plain, _) = run({"p": "cpu(1)", "q": mesh}), run(None)
    assert exe.arg_dict["b_weight"].sharding == ("model", None)
    for a, b in zip(placed, plain, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)
    mod = mx.mod.Module(h, ["x"], None, context=[mx.cpu(0), mx.cpu(1)], group2ctxs={"p": [mx.cpu(2), mx.cpu(3)]})
    mod.bind([("x", (4, 2))])
    assert [e.arg_dict["a_weight"].context for e in mod._group.execs] == [mx.cpu(2), mx.cpu(3)]


def test_operators_without_a_group_stay_where_their_first_input_is() -> None:
    def run(groups: dict | None) -> tuple[dict, list[np.ndarray]]:
        with mx.AttrScope(ctx_group="p"):
            a = mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=3, name="a")
        n = mx.sym.BatchNorm(a, fix_gamma=False, name="n")
        with mx.AttrScope(ctx_group="q"):
            b = mx.sym.exp(mx.sym.var("y"), name="b")
        net = mx.sym.Group([n, b, mx.sym.elemwise_mul(b, n, name="c"), mx.sym.tanh(mx.sym.var("z"), name="d")])
        exe = net.simple_bind(mx.cpu(0), group2ctx=groups, x=(4, 2), y=(4, 3), z=(1,))
        values = np.random.RandomState(0)
        for name in sorted(exe.arg_dict):
            exe.arg_dict[name][:] = mx.nd.array(values.randn(*exe.arg_dict[name].shape))
        outs = exe.forward(is_train=True)
        exe.backward([mx.nd.ones(o.shape) for o in outs])
        places = {n: o.context for n, o in exe.output_dict.items()}
        states = [a for _, a in sorted(exe.aux_dict.items())]
        grads = [g for _, g in sorted(exe.grad_dict.items()) if g is not None]
        return places, [v.asnumpy() for v in (*outs, *states, *grads)]

    (places, placed), (_, plain) = run({"p": mx.cpu(1), "q": mx.cpu(2)}), run(None)
    assert {n: c.device_id for n, c in places.items()} == {"n_output": 1, "b_output": 2, "c_output": 2, "d_output": 0}
    for x, y in zip(placed, plain, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)
    held = mx.nd.ones(2, ctx=mx.cpu(3))
    exe = mx.sym.exp(mx.sym.var("x")).bind(mx.cpu(0), {"x": held}, group2ctx={"p": mx.cpu(1)})
    assert exe.outputs[0].context == exe.forward()[0].context == mx.cpu(3)


@pytest.mark.parametrize("groups", [None, {"p": mx.cpu(1), "q": mx.cpu(2)}], ids=["plain", "placed"])
def test_outputs_stay_the_same_arrays(groups: dict | None) -> None:
    with mx.AttrScope(ctx_group="p"):
        x = mx.sym.var("x")
        a = mx.sym.square(x, name="a")
    with mx.AttrScope(ctx_group="q"):
        b = mx.sym.square(a, name="b")
    exe = mx.sym.Group([a, b, x, a]).simple_bind(mx.cpu(0), group2ctx=groups, x=(1,))
    assert [o.context.device_id for o in exe.outputs] == ([1, 2, 1, 1] if groups else [0] * 4)
    first, heads = exe.outputs, [mx.nd.ones(1), mx.nd.ones(1), mx.nd.zeros(1), mx.nd.zeros(1)]
    for value, train in ((2.0, True), (3.0, False), (4.0, True)):
        outs = exe.forward(is_train=train, x=mx.nd.array([value]))
        for found in (outs, first, exe.outputs):
            assert [o.asscalar() for o in found] == [value**2, value**4, value, value**2]
        if train:
            exe.backward(heads)
            grads: Any = exe.grad_dict
            assert grads["x"].asscalar() == 2 * value + 4 * value**3


def test_wrong_groups() -> None:
    with mx.AttrScope(ctx_group="p"):
        h = mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=4, name="a")
    wrong: list[tuple[Any, str]] = [({"p": [mx.cpu(1)]}, "group 'p'"), (mx.cpu(1), "group2ctx")]
    for groups, text in wrong:
        with pytest.raises(TypeError, match=text):
            h.simple_bind(mx.cpu(0), group2ctx=groups, x=(2, 2))
    for groups in ({"q": mx.cpu(1)}, {"P": mx.cpu(1), "q": mx.cpu(0)}):
        with pytest.raises(mx.base.MXNetError, match="is in ctx_group 'p': not in group2ctx"):
            h.simple_bind(mx.cpu(0), group2ctx=groups, x=(2, 2))
    assert h.simple_bind(mx.cpu(0), group2ctx={}, x=(2, 2)).forward()[0].context == mx.cpu(0)
    with pytest.raises(mx.base.MXNetError, match="group 'p' has 2 contexts for 3"):
        mx.mod.Module(h, ["x"], None, context=[mx.cpu(k) for k in range(3)], group2ctxs={"p": [mx.cpu(1), mx.cpu(2)]})
