"""Loops and branches over symbols, built alike with dualmx and with MXNet: `CASES[name](sym)` and their inputs."""

from __future__ import annotations

from typing import Any

import numpy as np


def foreach(sym):
    d, s, w = map(sym.Variable, "dsw")
    fc = dict(num_hidden=3, name="fc")
    outs, states = sym.contrib.foreach(
        lambda x, st: ([sym.FullyConnected(x, **fc) + st[0] * w, x], [sym.tanh(st[0] + x * w)]), d, [s]
    )
    return sym.Group([*outs, *states])


def while_loop(sym):
    i, a, w = map(sym.Variable, "iaw")
    outs, last = sym.contrib.while_loop(
        lambda i, a: i < w, lambda i, a: ([i * a, a], [i + 1, a * w + i]), [i, a], max_iterations=5
    )
    return sym.Group([*outs, *last])


def cond(sym):
    i, a, w = map(sym.Variable, "iaw")
    return sym.Group(sym.contrib.cond(w > 0.5, lambda: [i * 2, a * i], lambda: [a + w, w * w]))


def nested(sym):
    d, s = map(sym.Variable, "ds")

    def outer(row, state):
        out, t = sym.contrib.foreach(lambda x, t: (x * t, sym.sin(x + t)), row, state)
        return sym.contrib.cond(sym.sum(row) > 2, lambda: out * 2, lambda: out + row), t

    return sym.Group(list(sym.contrib.foreach(outer, d, s)))


CASES = {"foreach": foreach, "while_loop": while_loop, "cond": cond, "cond_false": cond, "nested": nested}


def inputs(name):
    """Arrays by name."""
    rng = np.random.RandomState(0)
    if name in ("foreach", "nested"):
        d, s, w = (rng.rand(*shape).astype("f") for shape in ((4, 2, 3), (2, 3), (2, 3)))
        if name == "nested":
            return {"d": d, "s": s[0]}
        weight = np.linspace(-0.5, 0.5, 9, dtype="f").reshape(3, 3)
        return {"d": d, "s": s, "w": w, "fc_weight": weight, "fc_bias": np.array([-0.5, 0, 0.5], "f")}
    if name == "while_loop":
        return {"i": np.zeros(1, "f"), "a": np.array([2], "f"), "w": np.array([2.5], "f")}
    return {"i": np.array([3], "f"), "a": np.array([4], "f"), "w": np.array([name == "cond"], "f")}


def record(mx: Any) -> Any:
    """JSON text, outputs and gradients of every case."""
    recorded = {}
    for name, build in CASES.items():
        with mx.name.NameManager():
            symbol = build(mx.sym)
        args = {k: mx.nd.array(v) for k, v in inputs(name).items()}
        grads = {k: mx.nd.zeros(v.shape) for k, v in args.items()}
        outs = []
        # 1.9.1 cannot differentiate some graphs, as when a loop reads a weight twice, and cannot run some nested ones.
        for train in (True, False):
            try:
                exe = symbol.bind(mx.cpu(), args, grads if train else None)
                outs = exe.forward(is_train=train)
                if train:
                    exe.backward([mx.nd.full(o.shape, i + 1) for i, o in enumerate(outs)])
                outs = [o.asnumpy().tolist() for o in outs]
                grads = {k: g.asnumpy().tolist() for k, g in grads.items()} if train else {}
                break
            except mx.base.MXNetError:
                outs = []
        recorded[name] = {"json": symbol.tojson(), "outputs": outs, "grads": grads if outs else {}}
    return recorded
