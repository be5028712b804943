"""Gluon layers, losses and naming cases, run alike by `record.py` with MXNet and by the tests with dualmx.

Every function takes the package (`mxnet` or `dualmx`) as `mx`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

X = (2, 4, 5, 6)
SHAPES = {"x": X, "v": (2, 4, 7), "w": (2, 4, 4, 5, 6), "m": (3, 6), "i": (3, 2)}

# name -> (what makes the layer, kind of input, train mode)
LAYERS: dict[str, tuple[Callable[[Any], Any], str, bool]] = {
    "dense": (lambda nn: nn.Dense(3), "x", True),
    "dense_act": (lambda nn: nn.Dense(3, activation="tanh", in_units=6), "m", True),
    "dense_last": (lambda nn: nn.Dense(3, flatten=False, use_bias=False), "x", True),
    "dropout_predict": (lambda nn: nn.Dropout(0.5), "x", False),
    "dropout_zero": (lambda nn: nn.Dropout(0), "x", True),
    "embedding": (lambda nn: nn.Embedding(5, 4), "i", True),
    "batchnorm_train": (lambda nn: nn.BatchNorm(), "x", True),
    "batchnorm_predict": (lambda nn: nn.BatchNorm(epsilon=1e-3), "x", False),
    "batchnorm_axis": (lambda nn: nn.BatchNorm(axis=-1, momentum=0.5), "x", True),
    "batchnorm_plain": (lambda nn: nn.BatchNorm(center=False, scale=False), "m", True),
    "batchnorm_global": (lambda nn: nn.BatchNorm(use_global_stats=True), "x", True),
    "batchnormrelu": (lambda nn: nn.BatchNormReLU(), "x", True),
    "layernorm": (lambda nn: nn.LayerNorm(), "x", True),
    "layernorm_axis": (lambda nn: nn.LayerNorm(axis=1, center=False), "x", True),
    "instancenorm": (lambda nn: nn.InstanceNorm(scale=True), "x", True),
    "instancenorm_axis": (lambda nn: nn.InstanceNorm(axis=2), "x", True),
    "groupnorm": (lambda nn: nn.GroupNorm(num_groups=2), "x", True),
    "flatten": (lambda nn: nn.Flatten(), "x", True),
    "lambda": (lambda nn: nn.Lambda("tanh"), "x", True),
    "hybridlambda": (lambda nn: nn.HybridLambda(lambda F, x: F.sin(x)), "x", True),
    "activation": (lambda nn: nn.Activation("softrelu"), "x", True),
    "leakyrelu": (lambda nn: nn.LeakyReLU(0.1), "x", True),
    "prelu": (lambda nn: nn.PReLU(), "x", True),
    "prelu_channels": (lambda nn: nn.PReLU(in_channels=4), "x", True),
    "elu": (lambda nn: nn.ELU(0.7), "x", True),
    "selu": (lambda nn: nn.SELU(), "x", True),
    "gelu": (lambda nn: nn.GELU(), "x", True),
    "swish": (lambda nn: nn.Swish(1.5), "x", True),
    "conv1d": (lambda nn: nn.Conv1D(3, 2, activation="relu"), "v", True),
    "conv2d": (lambda nn: nn.Conv2D(3, (3, 2), strides=2, padding=(1, 0), use_bias=False), "x", True),
    "conv2d_groups": (lambda nn: nn.Conv2D(4, 2, groups=2, in_channels=4), "x", True),
    "conv3d": (lambda nn: nn.Conv3D(3, 2), "w", True),
    "conv1dt": (lambda nn: nn.Conv1DTranspose(3, 2), "v", True),
    "conv2dt": (lambda nn: nn.Conv2DTranspose(3, 2, strides=2, output_padding=1), "x", True),
    "conv2dt_groups": (lambda nn: nn.Conv2DTranspose(4, 3, groups=2, padding=1, in_channels=4), "x", True),
    "conv3dt": (lambda nn: nn.Conv3DTranspose(3, 2, use_bias=False), "w", True),
    "maxpool1d": (lambda nn: nn.MaxPool1D(), "v", True),
    "maxpool2d": (lambda nn: nn.MaxPool2D(3, 2, 1), "x", True),
    "maxpool2d_ceil": (lambda nn: nn.MaxPool2D(3, 2, ceil_mode=True), "x", True),
    "maxpool3d": (lambda nn: nn.MaxPool3D(), "w", True),
    "avgpool1d": (lambda nn: nn.AvgPool1D(3, 1, 1), "v", True),
    "avgpool2d": (lambda nn: nn.AvgPool2D(3, 2, 1, count_include_pad=False), "x", True),
    "avgpool3d": (lambda nn: nn.AvgPool3D(), "w", True),
    "globalmax1d": (lambda nn: nn.GlobalMaxPool1D(), "v", True),
    "globalmax2d": (lambda nn: nn.GlobalMaxPool2D(), "x", True),
    "globalmax3d": (lambda nn: nn.GlobalMaxPool3D(), "w", True),
    "globalavg1d": (lambda nn: nn.GlobalAvgPool1D(), "v", True),
    "globalavg2d": (lambda nn: nn.GlobalAvgPool2D(), "x", True),
    "globalavg3d": (lambda nn: nn.GlobalAvgPool3D(), "w", True),
    "reflectionpad": (lambda nn: nn.ReflectionPad2D(2), "x", True),
}

P, N1, D = (3, 4), (3, 1), (3,)
# name -> (what makes the loss, shapes of the inputs or lists of values)
LOSSES: dict[str, tuple[Callable[[Any], Any], tuple[Any, ...]]] = {
    "l1": (lambda loss: loss.L1Loss(), (P, P)),
    "l1_weighted": (lambda loss: loss.L1Loss(weight=0.5), (P, P, N1)),
    "l2": (lambda loss: loss.L2Loss(), (P, P)),
    "l2_weighted": (lambda loss: loss.L2Loss(weight=3.0, batch_axis=1), (P, P, P)),
    "softmaxce": (lambda loss: loss.SoftmaxCrossEntropyLoss(), (P, [0, 3, 1])),
    "softmaxce_weighted": (lambda loss: loss.SoftmaxCELoss(weight=2.0), (P, [0, 3, 1], N1)),
    "softmaxce_dense": (lambda loss: loss.SoftmaxCELoss(sparse_label=False), (P, P)),
    "softmaxce_axis": (lambda loss: loss.SoftmaxCELoss(axis=1), ((2, 3, 4), [[0, 1, 2, 0], [2, 2, 1, 0]])),
    "softmaxce_logits": (lambda loss: loss.SoftmaxCELoss(from_logits=True), (P, [0, 3, 1])),
    "sigmoidbce": (lambda loss: loss.SigmoidBCELoss(), (P, P)),
    "sigmoidbce_pos": (lambda loss: loss.SigmoidBCELoss(), (P, P, N1, (1, 4))),
    "sigmoidbce_sigmoid": (lambda loss: loss.SigmoidBCELoss(from_sigmoid=True), (P, P)),
    "sigmoidbce_sigmoid_pos": (lambda loss: loss.SigmoidBCELoss(from_sigmoid=True, weight=0.5), (P, P, N1, (1, 4))),
    "kldiv": (lambda loss: loss.KLDivLoss(), (P, P)),
    "kldiv_softmax": (lambda loss: loss.KLDivLoss(from_logits=False, weight=2.0), (P, P, N1)),
    "huber": (lambda loss: loss.HuberLoss(rho=0.3), (P, P)),
    "hinge": (lambda loss: loss.HingeLoss(margin=0.5), (P, [[1, -1, 1, 1], [-1, -1, 1, 1], [1, 1, 1, -1]])),
    "squaredhinge": (lambda loss: loss.SquaredHingeLoss(), (P, [[1, -1, 1, 1], [-1, -1, 1, 1], [1, 1, 1, -1]], N1)),
    "logistic": (lambda loss: loss.LogisticLoss(), (P, [[1, -1, 1, 1], [-1, -1, 1, 1], [1, 1, 1, -1]])),
    "logistic_binary": (
        lambda loss: loss.LogisticLoss(label_format="binary"),
        (P, [[1, 0, 1, 1], [0, 0, 1, 1], [1, 1, 1, 0]]),
    ),
    "triplet": (lambda loss: loss.TripletLoss(margin=0.4), (P, P, P)),
    "poisson": (lambda loss: loss.PoissonNLLLoss(), (P, P)),
    "poisson_rate": (lambda loss: loss.PoissonNLLLoss(from_logits=False, weight=2.0), (P, P, N1)),
    "cosine": (lambda loss: loss.CosineEmbeddingLoss(margin=0.1), (P, P, [1, -1, 1])),
    "sdml": (lambda loss: loss.SDMLLoss(), (P, P)),
    "ctc": (lambda loss: loss.CTCLoss(), ((2, 7, 5), [[1, 0, -1], [2, 1, 3]])),
    "ctc_lengths": (lambda loss: loss.CTCLoss("TNC", "TN"), ((7, 2, 5), [[1, 2], [0, 1], [3, 3]], [7, 5], [1, 2])),
}


def values(name: str, shape: tuple[int, ...], low: float = 0.05, high: float = 0.95) -> np.ndarray:
    """Float32 values of a name, the same in every run and NumPy version."""
    return np.random.RandomState(sum(map(ord, name))).uniform(low, high, shape).astype(np.float32)


def set_parameters(mx: Any, block: Any) -> None:
    """Give every parameter values that depend on its place among the block's parameters."""
    for k, param in enumerate(block.collect_params().values()):
        param.set_data(mx.nd.array(values(f"parameter {k}", param.shape)))


def run_layer(mx: Any, name: str, hybridize: bool = False) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Outputs, gradients and next states of a layer, and its names: repr before and after, prefix, parameters."""
    make, kind, train = LAYERS[name]
    with mx.name.NameManager():
        layer = make(mx.gluon.nn)
    facts: dict[str, Any] = {
        "repr": repr(layer),
        "prefix": layer.prefix,
        "declared": {k: list(p.shape) for k, p in layer.collect_params().items()},
        "grad_req": {k: p.grad_req for k, p in layer.collect_params().items()},
    }
    layer.initialize()
    data = values(name, SHAPES[kind], -1, 1)
    if kind == "i":
        data = np.array([[0, 4], [2, 2], [7, -1]], np.float32)
    x = mx.nd.array(data)
    layer(x)
    set_parameters(mx, layer)
    if hybridize:
        layer.hybridize()
    if kind != "i":
        x.attach_grad()
    with mx.autograd.record(train_mode=train):
        out = layer(x)
    out.backward(mx.nd.array(values("head " + name, out.shape)), train_mode=train)
    found = {"out": out.asnumpy()}
    if kind != "i":
        found["grad"] = x.grad.asnumpy()
    for k, (path, param) in enumerate(layer._collect_params_with_prefix().items()):
        found[f"{k}:{path}"] = param.data().asnumpy() if param.grad_req == "null" else param.grad().asnumpy()
    facts["repr_after"] = repr(layer)
    facts["paths"] = list(layer._collect_params_with_prefix())
    facts["shapes"] = {k: list(p.shape) for k, p in layer.collect_params().items()}
    return found, facts


def run_loss(mx: Any, name: str, hybridize: bool = False) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Value and gradient of a loss, and its repr and prefix."""
    make, shapes = LOSSES[name]
    with mx.name.NameManager():
        loss = make(mx.gluon.loss)
    inputs = [
        mx.nd.array(values(f"{name} {i}", s) if isinstance(s, tuple) else np.array(s, np.float32))
        for i, s in enumerate(shapes)
    ]
    if hybridize:
        loss.hybridize()
    inputs[0].attach_grad()
    with mx.autograd.record():
        out = loss(*inputs)
    out.backward()
    return (
        {"out": out.asnumpy(), "grad": inputs[0].grad.asnumpy()},
        {"repr": repr(loss), "prefix": loss.prefix},
    )


def naming(mx: Any) -> dict[str, Any]:
    """Names that nested blocks, shared parameters and prefixes lead to."""
    nn = mx.gluon.nn
    facts: dict[str, Any] = {}
    with mx.name.NameManager():

        class Net(mx.gluon.HybridBlock):
            def __init__(self, **kwargs: Any):
                super().__init__(**kwargs)
                with self.name_scope():
                    self.fc = nn.Dense(3, activation="relu")
                    self.bn = nn.BatchNorm()
                    self.body = nn.HybridSequential()
                    with self.body.name_scope():
                        self.body.add(nn.Dense(2, in_units=3), nn.Activation("tanh"))
                    self.scale = self.params.get("scale", shape=(1, 2))

            def hybrid_forward(self, F: Any, x: Any, scale: Any) -> Any:
                return F.broadcast_add(self.body(self.bn(self.fc(x))), scale)

        first, second = Net(), Net()
        shared = Net(prefix="copy_", params=first.collect_params())
        loose = nn.Sequential()
        loose.add(nn.Dense(3), nn.Conv2D(3, 2), nn.MaxPool2D(), nn.Dense(3))
        empty = nn.HybridSequential(prefix="")
        with empty.name_scope():
            empty.add(nn.Dense(1), nn.Dense(2))
        named = nn.HybridSequential(prefix="my_")
        with named.name_scope():
            named.add(nn.Dense(1), nn.Conv1D(2, 1), nn.Dense(2), nn.Dropout(0.5), nn.Activation("relu"))
        nets = {"first": first, "second": second, "shared": shared, "loose": loose, "empty": empty, "named": named}
        for key, net in nets.items():
            facts[key] = {
                "prefix": net.prefix,
                "name": net.name,
                "repr": repr(net),
                "params": list(net.collect_params().keys()),
                "paths": list(net._collect_params_with_prefix()),
                "children": [child.name for child in net._children.values()],
            }
        facts["select"] = list(first.collect_params(".*dense0_weight|net0_batch").keys())
        first.initialize()
        first(mx.nd.ones((2, 4)))
        facts["after"] = repr(first)
        facts["parameters"] = repr(first.collect_params()).replace("float32'>", "float32").replace("<class 'numpy.", "")
        x = mx.sym.var("data")
        facts["nodes"] = list(first(x).get_internals().list_outputs())
    return facts


def record(mx: Any) -> Any:
    """Arrays and names of every case."""
    arrays: dict[str, Any] = {}
    facts: dict[str, Any] = {"naming": naming(mx)}
    for table, run in ((LAYERS, run_layer), (LOSSES, run_loss)):
        for name in table:
            found, facts[name] = run(mx, name)
            arrays.update({f"{name}|{k}": v for k, v in found.items()})
    return {"facts": facts, "arrays": arrays}
