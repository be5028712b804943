"""Networks to quantize, by MXNet when recorded and by dualmx when replayed: `mx` is either."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

import numpy as np

SHAPE = (2, 4, 8, 8)


def networks(mx: Any) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Name, network, and arguments of `quantize_model`."""
    S = mx.sym
    d = S.var("data")

    def conv(x: Any, name: str, **params: Any) -> Any:
        return S.Convolution(x, kernel=(3, 3), pad=(1, 1), num_filter=4, name=name, no_bias=True, **params)

    def relu(x: Any, name: str = "r") -> Any:
        return S.Activation(x, act_type="relu", name=name)

    def pool(x: Any, name: str, kind: str = "max", **params: Any) -> Any:
        return S.Pooling(x, kernel=(2, 2), pool_type=kind, name=name, **params)

    flat = S.Flatten(
        pool(relu(S.Convolution(d, kernel=(3, 3), num_filter=4, name="c")), "p", stride=(2, 2)), name="flat"
    )
    lenet = S.FullyConnected(relu(S.FullyConnected(flat, num_hidden=5, name="f"), "r2"), num_hidden=3, name="f2")
    full = {"quantize_mode": "full"}
    for dtype in ("int8", "uint8", "auto"):
        yield f"lenet {dtype}", lenet, {"quantized_dtype": dtype}
    yield "lenet none", lenet, {"calib_mode": "none"}
    residual = relu(S.elemwise_add(conv(conv(d, "a"), "b"), d, name="add"))
    yield "residual", residual, {}
    yield "residual full", residual, full
    two = S.elemwise_add(conv(conv(d, "a"), "b"), conv(d, "e"), name="add")
    yield "residual between", conv(relu(two), "z"), {}
    yield "residual with another", conv(relu(S.elemwise_add(conv(d, "a"), S.exp(d, name="x"), name="add")), "z"), {}
    yield "norm", relu(S.BatchNorm(conv(d, "a"), name="bn")), {}
    yield "norm between", conv(relu(S.BatchNorm(conv(d, "a"), name="bn")), "b"), {}
    concat = S.concat(conv(d, "a"), conv(d, "b"), dim=1, name="cat")
    yield "concat", concat, {}
    yield "concat full", concat, full
    yield "product full", S.elemwise_mul(conv(d, "a"), conv(d, "b"), name="m"), full
    yield "tanh", conv(S.Activation(conv(d, "a"), act_type="tanh", name="t"), "b"), {}
    chain = conv(relu(conv(d, "a")), "b")
    yield "without b", chain, {"excluded_sym_names": ["b"]}
    yield "without activations", chain, {"excluded_op_names": ["Activation"]}
    yield "pools", pool(pool(conv(d, "a"), "p1", "avg"), "p2", "sum"), {}
    yield "pool", pool(d, "p1"), {}
    yield "pool full", pool(d, "p1"), full
    yield "pool first", conv(pool(d, "p1"), "z"), {}
    yield "exp first", conv(S.exp(d, name="x"), "z"), {}
    shared = pool(conv(d, "q"), "p1")
    yield "fork", S.Group([conv(shared, "z"), S.exp(shared, name="ex")]), {}
    yield "dropout", conv(S.Dropout(conv(d, "a"), p=0.5, name="dr"), "b"), {}
    yield "groups", conv(d, "a", num_group=2), {}
    yield "dense", S.FullyConnected(d, num_hidden=3, flatten=False, name="f"), {}
    yield "reshape", S.FullyConnected(S.reshape(conv(d, "a"), shape=(0, -1), name="rs"), num_hidden=3, name="f"), {}


def values(network: Any, mx: Any) -> tuple[dict[str, Any], dict[str, Any], np.ndarray]:
    """Arguments, states and data of a network, the same everywhere."""
    shapes, _, aux = network.infer_shape(data=SHAPE)
    args = {}
    for name, shape in zip(network.list_arguments(), shapes, strict=True):
        if name != "data":
            args[name] = mx.nd.array(np.sin(np.arange(np.prod(shape)) + len(name)).reshape(shape) / 3)
    states = {n: mx.nd.ones(s) * 0.3 for n, s in zip(network.list_auxiliary_states(), aux, strict=True)}
    return args, states, np.cos(np.arange(np.prod(SHAPE))).reshape(SHAPE).astype(np.float32)


def described(mx: Any, quantize: Any, network: Any, params: dict[str, Any]) -> list[Any]:
    """Nodes, heads, and parameters (dtype, shape, sum) of a quantized network."""
    args, states, data = values(network, mx)
    given = {"calib_mode": "naive", **params}
    if given["calib_mode"] != "none":
        given["calib_data"] = mx.io.NDArrayIter(data, batch_size=2)
    symbol, qargs, qaux = quantize(network, args, states, ctx=mx.cpu(), label_names=None, **given)
    graph = json.loads(symbol.tojson())
    nodes = [[n["op"], n["name"], n.get("attrs", {}), [i[:2] for i in n["inputs"]]] for n in graph["nodes"]]
    kept = {
        n: [np.dtype(a.dtype).name, list(a.shape), float(a.asnumpy().astype(np.float64).sum())]
        for n, a in sorted({**qargs, **qaux}.items())
    }
    return [nodes, [h[:2] for h in graph["heads"]], kept]


def record(mx: Any) -> Any:
    """The quantized networks."""
    from mxnet.contrib.quantization import quantize_model  # pyright: ignore[reportMissingImports]

    logging.disable(logging.CRITICAL)
    return {name: described(mx, quantize_model, network, params) for name, network, params in networks(mx)}
