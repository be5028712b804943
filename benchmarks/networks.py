"""The measured networks, each written once as a list of layers and built as a Block, a Symbol or parameters.

Imports NumPy only, because the same file also runs under MXNet's interpreter.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Conv(NamedTuple):
    """Square convolution; without bias where a normalisation follows."""

    channels: int
    kernel: int
    stride: int = 1
    pad: int = 0
    bias: bool = True


class Norm(NamedTuple):
    """Batch normalisation over channels."""


class Relu(NamedTuple):
    """max(x, 0)."""


class Pool(NamedTuple):
    """2x2 max-pooling."""


class Mean(NamedTuple):
    """Average over all positions."""


class Dense(NamedTuple):
    """Fully connected layer on the flattened input."""

    units: int


class Residual(NamedTuple):
    """relu(body(x) + shortcut(x)); an empty shortcut is the identity."""

    body: tuple[Any, ...]
    shortcut: tuple[Any, ...]


def _residual(before: int, channels: int, stride: int) -> Residual:
    body = (Conv(channels, 3, stride, 1, False), Norm(), Relu(), Conv(channels, 3, 1, 1, False), Norm())
    same = stride == 1 and before == channels
    return Residual(body, () if same else (Conv(channels, 1, stride, 0, False), Norm()))


def _resnet18() -> tuple[Any, ...]:
    layers: list[Any] = [Conv(64, 3, 1, 1, False), Norm(), Relu()]
    before = 64
    for stage in range(4):
        for n in range(2):
            layers.append(_residual(before, 64 << stage, 2 if stage and not n else 1))
            before = 64 << stage
    return (*layers, Mean(), Dense(10))


NETWORKS: dict[str, tuple[Any, ...]] = {
    "mlp": (Dense(512), Relu(), Dense(512), Relu(), Dense(10)),
    "lenet": (Conv(20, 5), Relu(), Pool(), Conv(50, 5), Relu(), Pool(), Dense(500), Relu(), Dense(10)),
    "resnet18": _resnet18(),
}
INPUTS: dict[str, tuple[int, ...]] = {"mlp": (784,), "lenet": (1, 28, 28), "resnet18": (3, 32, 32)}
LEARNING_RATE = 2e-3
MOMENTUM = 0.9
BATCHES = {"mlp": 32, "lenet": 32, "resnet18": 4}  # distinct batches that a loop cycles through


def batches(network: str, size: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Random float32 images and int32 labels, the same in every process."""
    draw = np.random.RandomState(0)
    shape = (size, *INPUTS[network])
    return [
        (draw.randn(*shape).astype("float32"), draw.randint(0, 10, size).astype("int32"))
        for _ in range(BATCHES[network])
    ]


def parameters(network: str) -> dict[str, np.ndarray]:
    """Initial values by name, in the order of the layers; statistics end in `mean` and `var`."""
    draw = np.random.RandomState(1)
    found: dict[str, np.ndarray] = {}

    def weight(name: str, *shape: int) -> None:
        fan_in = int(np.prod(shape[1:]))
        found[name] = (draw.randn(*shape) * np.sqrt(2.0 / fan_in)).astype("float32")

    def walk(layers: tuple[Any, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
        for layer in layers:
            name = f"p{len(found)}_"
            if isinstance(layer, Conv):
                weight(name + "weight", layer.channels, shape[0], layer.kernel, layer.kernel)
                if layer.bias:
                    found[name + "bias"] = np.zeros(layer.channels, "float32")
                side = (shape[1] + 2 * layer.pad - layer.kernel) // layer.stride + 1
                shape = (layer.channels, side, side)
            elif isinstance(layer, Norm):
                for part, value in (("gamma", 1), ("beta", 0), ("mean", 0), ("var", 1)):
                    found[name + part] = np.full(shape[0], value, "float32")
            elif isinstance(layer, Pool):
                shape = (shape[0], shape[1] // 2, shape[2] // 2)
            elif isinstance(layer, Mean):
                shape = shape[:1]
            elif isinstance(layer, Dense):
                weight(name + "weight", layer.units, int(np.prod(shape)))
                found[name + "bias"] = np.zeros(layer.units, "float32")
                shape = (layer.units,)
            elif isinstance(layer, Residual):
                after = walk(layer.body, shape)
                walk(layer.shortcut, shape)
                shape = after
        return shape

    walk(NETWORKS[network], INPUTS[network])
    return found


def block(mx: Any, network: str, given: bool = True, contexts: Any = None) -> Any:
    """The network as a HybridBlock of `mx` (dualmx or MXNet) with the values of `parameters`, or drawn like them."""
    net = unsettled_block(mx, network)
    net.initialize(mx.init.Xavier("gaussian", "in", 2), ctx=contexts)
    net(mx.nd.zeros((2, *INPUTS[network])))
    values = parameters(network) if given else {}
    for name, parameter in net.collect_params().items():
        if given:
            parameter.set_data(mx.nd.array(values[name.replace("running_", "")]))
    return net


def unsettled_block(mx: Any, network: str) -> Any:
    """The network as a HybridBlock, whose parameters have neither sizes nor values."""
    nn = mx.gluon.nn
    count = [0]

    class Sum(mx.gluon.HybridBlock):
        def __init__(self, body: Any, shortcut: Any):
            super().__init__(prefix="")
            self.body, self.shortcut = body, shortcut

        def hybrid_forward(self, F: Any, x: Any) -> Any:
            other = x if self.shortcut is None else self.shortcut(x)
            return F.Activation(self.body(x) + other, act_type="relu")

    def build(layers: tuple[Any, ...]) -> Any:
        net = nn.HybridSequential(prefix="")
        with net.name_scope():
            for layer in layers:
                prefix = f"p{count[0]}_"
                if isinstance(layer, Conv):
                    made = nn.Conv2D(*layer[:4], use_bias=layer.bias, prefix=prefix)
                    count[0] += 1 + layer.bias
                elif isinstance(layer, Norm):
                    made = nn.BatchNorm(prefix=prefix)
                    count[0] += 4
                elif isinstance(layer, Dense):
                    made = nn.Dense(layer.units, prefix=prefix)
                    count[0] += 2
                elif isinstance(layer, Residual):
                    made = Sum(build(layer.body), build(layer.shortcut) if layer.shortcut else None)
                else:
                    made = {Relu: lambda: nn.Activation("relu"), Pool: nn.MaxPool2D, Mean: nn.GlobalAvgPool2D}[
                        type(layer)
                    ]()
                net.add(made)
        return net

    return build(NETWORKS[network])


def symbol(mx: Any, network: str) -> Any:
    """The network as a Symbol of `mx` with a SoftmaxOutput head."""
    sym = mx.sym
    count = [0]

    def build(layers: tuple[Any, ...], x: Any) -> Any:
        for layer in layers:
            name = f"p{count[0]}"
            if isinstance(layer, Conv):
                square = {
                    k: (v, v) for k, v in (("kernel", layer.kernel), ("stride", layer.stride), ("pad", layer.pad))
                }
                x = sym.Convolution(x, num_filter=layer.channels, no_bias=not layer.bias, name=name, **square)
                count[0] += 1 + layer.bias
            elif isinstance(layer, Norm):
                x = sym.BatchNorm(x, fix_gamma=False, eps=1e-5, name=name)
                count[0] += 4
            elif isinstance(layer, Relu):
                x = sym.Activation(x, act_type="relu")
            elif isinstance(layer, Pool):
                x = sym.Pooling(x, kernel=(2, 2), stride=(2, 2), pool_type="max")
            elif isinstance(layer, Mean):
                x = sym.Pooling(x, kernel=(1, 1), global_pool=True, pool_type="avg")
            elif isinstance(layer, Dense):
                x = sym.FullyConnected(x, num_hidden=layer.units, name=name)
                count[0] += 2
            else:
                body = build(layer.body, x)
                x = sym.Activation(body + build(layer.shortcut, x), act_type="relu")
        return x

    return sym.SoftmaxOutput(build(NETWORKS[network], sym.Variable("data")), name="softmax")
