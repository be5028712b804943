"""Random graphs whose inferred shapes `record.py` records from MXNet."""

from __future__ import annotations

import random
from typing import Any

ELEMENTWISE = ("relu", "tanh", "sigmoid", "exp", "square", "softmax", "log_softmax", "BlockGrad", "identity")
PAIRS = ("elemwise_add", "elemwise_mul", "elemwise_sub", "broadcast_add", "broadcast_mul", "broadcast_maximum")


def grow(mx: Any, rng: random.Random, x: Any, shape: tuple[int, ...], others: list[Any]) -> tuple[Any, tuple[int, ...]]:
    """Put one random operator on `x` of `shape`; returns the result and its shape."""
    sym, n = mx.sym, len(shape)
    kind = rng.choice(("unary", "pair", "scalar", "layer", "layer", "axes", "join", "reduce"))
    if kind == "unary":
        return getattr(sym, rng.choice(ELEMENTWISE))(x), shape
    if kind == "scalar":
        return rng.choice((lambda: x * 2, lambda: 1 - x, lambda: x**2, lambda: x > 0.5))(), shape
    if kind == "pair":
        same = [o for o, s in others if s == shape]
        other = rng.choice(same) if same and rng.random() < 0.5 else sym.Variable(f"p{rng.randrange(10**6)}")
        return getattr(sym, rng.choice(PAIRS[:3] if len(same) == 0 else PAIRS))(x, other), shape
    if kind == "layer" and n == 4 and min(shape[2:]) >= 3:
        filters, stride, pad = rng.randrange(1, 5), rng.choice((1, 2)), rng.choice((0, 1))
        out = tuple((d + 2 * pad - 3) // stride + 1 for d in shape[2:])
        which = rng.randrange(4)
        window = {"kernel": (3, 3), "stride": (stride, stride), "pad": (pad, pad)}
        if which == 0:
            return sym.Convolution(x, num_filter=filters, no_bias=rng.random() < 0.5, **window), (
                shape[0],
                filters,
                *out,
            )
        if which == 1:
            return sym.Pooling(x, pool_type=rng.choice(("max", "avg")), **window), (*shape[:2], *out)
        if which == 2:
            back = tuple((d - 1) * stride + 3 - 2 * pad for d in shape[2:])
            return sym.Deconvolution(x, num_filter=filters, **window), (shape[0], filters, *back)
        return sym.BatchNorm(x, fix_gamma=False), shape
    if kind == "layer":
        which = rng.randrange(4)
        if which == 0:
            units = rng.randrange(1, 6)
            return sym.FullyConnected(x, num_hidden=units), (shape[0], units)
        if which == 1:
            units = rng.randrange(1, 6)
            return sym.FullyConnected(x, num_hidden=units, flatten=False, no_bias=True), (*shape[:-1], units)
        if which == 2:
            return sym.LayerNorm(x), shape
        return sym.LeakyReLU(x, act_type="leaky"), shape
    if kind == "axes":
        which = rng.randrange(4)
        if which == 0:
            return sym.transpose(x), shape[::-1]
        if which == 1 and n < 4:
            axis = rng.randrange(n + 1)
            return sym.expand_dims(x, axis=axis), (*shape[:axis], 1, *shape[axis:])
        if which == 2:
            return sym.Reshape(x, shape=(0, -1)) if n > 1 else x + 1, (shape[0], prod(shape[1:])) if n > 1 else shape
        axis = rng.randrange(n)
        if shape[axis] > 1:
            cut = (*shape[:axis], shape[axis] - 1, *shape[axis + 1 :])
            return sym.slice_axis(x, axis=axis, begin=1, end=None), cut
        return x + 1, shape
    if kind == "join":
        axis = rng.randrange(n)
        return sym.Concat(x, x, dim=axis), (*shape[:axis], 2 * shape[axis], *shape[axis + 1 :])
    axis = rng.randrange(n)
    reduced = (*shape[:axis], *shape[axis + 1 :]) or (1,)
    return getattr(sym, rng.choice(("sum", "max", "mean")))(x, axis=axis), reduced


def prod(shape: tuple[int, ...]) -> int:
    """Number of elements."""
    n = 1
    for d in shape:
        n *= d
    return n


def random_graph(mx: Any, seed: int) -> tuple[Any, dict[str, tuple[int, ...]]]:
    """A random graph and the shapes of some of its inputs, with some dimensions unknown."""
    rng = random.Random(seed)
    shape = tuple(rng.randrange(2, 9) for _ in range(rng.choice((2, 3, 4, 4))))
    x = mx.sym.Variable("x")
    given = {"x": shape}
    known = [(x, shape)]
    for _ in range(rng.randrange(2, 9)):
        known.append(grow(mx, rng, *known[-1], known))
    out = known[-1][0]
    if rng.random() < 0.3:
        out = mx.sym.Group([out, known[len(known) // 2][0]])
    if rng.random() < 0.3:
        unknown = rng.randrange(len(shape))
        given["x"] = tuple(0 if i == unknown else d for i, d in enumerate(shape))
    return out, given
