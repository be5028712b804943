"""Writes the kernels and shapes of common operators, which come with the package: `python -m dualmx.tools.traces`.

With them the first process of a user traces no operator that is listed here. They are a product of the build and not
under version control: the build hook runs this file in a process of its own, with `--unless-current`. It trains small
networks on NumPy arrays.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
# Sizes that are equal nowhere else: what was traced for different sizes serves for equal ones, not the reverse.
_SAMPLES, _CHANNELS, _SIDE = 11, 13, 9
_OPTIMIZERS: dict[str, list[dict[str, Any]]] = {
    "sgd": [{}, {"momentum": 0.9}, {"momentum": 0.9, "wd": 1e-4}],
    "nag": [{"momentum": 0.9}],
    "adam": [{}, {"wd": 1e-4}],
    "adagrad": [{}],
    "rmsprop": [{}],
}


def train(mx: Any, net: Any, x: Any, optimizer: str = "sgd", options: dict[str, Any] | None = None) -> None:
    """Predict with a network, and take steps: of a first layer, and of a later one, whose input has a gradient."""
    net.initialize(mx.init.Xavier())
    net(x).wait_to_read()
    parameters = net.collect_params()
    trainer = mx.gluon.Trainer(parameters, optimizer, {"learning_rate": 0.01, **(options or {})})
    for is_first in (True, False) if parameters else (False,):
        if not is_first:
            x.attach_grad()
        with mx.autograd.record():
            loss = mx.nd.square(net(x)).sum()
        loss.backward()
        trainer.step(_SAMPLES)
        loss.asscalar()


def layers(mx: Any) -> Iterator[tuple[Any, tuple[int, ...]]]:
    """Layers, and the shapes of their inputs."""
    nn = mx.gluon.nn
    flat, image = (_SAMPLES, _CHANNELS), (_SAMPLES, _CHANNELS, _SIDE, _SIDE + 1)
    even = (_SAMPLES, _CHANNELS, 12, 14)
    for bias in (True, False):
        yield nn.Dense(17, use_bias=bias), flat
        yield nn.Dense(17, use_bias=bias), image
        yield nn.Dense(17, use_bias=bias), (_SAMPLES, _CHANNELS, 1, 1)
        yield nn.Dense(17, use_bias=bias, flatten=False), (_SAMPLES, 5, _CHANNELS)
    for name in ("relu", "sigmoid", "tanh", "softrelu", "softsign"):
        for shape in (flat, image):
            yield nn.Activation(name), shape
    for layer in (nn.LeakyReLU(0.1), nn.ELU(), nn.SELU(), nn.GELU(), nn.Swish(), nn.PReLU(), nn.Dropout(0.5)):
        yield layer, flat
        yield type(layer)(*([0.1] if isinstance(layer, (nn.LeakyReLU, nn.Dropout)) else [])), image
    for kernel, stride, padding in (
        (1, 1, 0),
        (1, 2, 0),
        (3, 1, 1),
        (3, 2, 1),
        (3, 1, 0),
        (5, 1, 0),
        (5, 1, 2),
        (7, 2, 3),
    ):
        for bias in (True, False):
            yield nn.Conv2D(17, kernel, stride, padding, use_bias=bias), image
            yield nn.Conv2D(17, kernel, stride, padding, use_bias=bias), even
            yield nn.Conv2D(17, kernel, stride, padding, use_bias=bias), (_SAMPLES, 1, _SIDE, _SIDE + 1)
    yield nn.Conv2D(_CHANNELS, 3, 1, 1, groups=_CHANNELS), image
    for pool in (nn.MaxPool2D, nn.AvgPool2D):
        for size, stride, padding in ((2, 2, 0), (3, 2, 0), (3, 2, 1), (3, 1, 1)):
            yield pool(size, stride, padding), image
            yield pool(size, stride, padding), even
    for layer in (nn.GlobalAvgPool2D(), nn.GlobalMaxPool2D(), nn.Flatten(), nn.BatchNorm(), nn.InstanceNorm()):
        yield layer, image
    yield nn.BatchNorm(), flat
    for shape in (flat, (_SAMPLES, 5, _CHANNELS)):
        yield nn.LayerNorm(), shape


def operators(mx: Any) -> Iterator[Callable[..., Any]]:
    """Functions of two arrays of one shape."""
    nd = mx.nd
    yield from (lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y, lambda x, y: x / y, nd.maximum, nd.minimum)
    for scalar in (2, 0.5):
        yield from (
            lambda x, y, s=scalar: x + s, lambda x, y, s=scalar: x - s, lambda x, y, s=scalar: s - x,
            lambda x, y, s=scalar: x * s, lambda x, y, s=scalar: x / s, lambda x, y, s=scalar: s / x,
            lambda x, y, s=scalar: x**s,
        )  # fmt: skip
    for fn in (
        nd.relu, nd.sigmoid, nd.tanh, nd.exp, nd.log, nd.sqrt, nd.square, nd.abs, nd.sign, nd.negative, nd.softmax,
        nd.log_softmax, nd.sum, nd.mean, nd.max, nd.min, nd.norm, nd.transpose, nd.flatten, nd.zeros_like, nd.ones_like,
    ):  # fmt: skip
        yield lambda x, y, f=fn: f(x)
    for fn in (nd.sum, nd.mean, nd.max, nd.min, nd.argmax):
        for axis in (0, 1, -1):
            yield lambda x, y, f=fn, a=axis: f(x, axis=a)
    for axis in (0, 1, -1):
        yield lambda x, y, a=axis: nd.concat(x, y, dim=a)
    yield lambda x, y: nd.clip(x, 0, 1)
    yield lambda x, y: nd.where(x > y, x, y)


def run(mx: Any) -> None:
    """Compute with all of it."""
    nd, gluon = mx.nd, mx.gluon
    for net, shape in layers(mx):
        train(mx, net, nd.random.uniform(shape=shape))
    for function in operators(mx):
        for shape in ((_SAMPLES,), (_SAMPLES, _CHANNELS), (_SAMPLES, _CHANNELS, _SIDE, _SIDE + 1)):
            try:
                x, y = nd.random.uniform(shape=shape), nd.random.uniform(shape=shape)
                x.attach_grad()
                for _ in range(2):
                    with mx.autograd.record():
                        total = (function(x, y) * 2).sum()
                    total.backward()
                    x.grad.wait_to_read()
                    y.attach_grad()
            except mx.MXNetError:
                pass  # it takes other shapes
    classes, labels = nd.random.uniform(shape=(_SAMPLES, _CHANNELS)), nd.zeros((_SAMPLES,))
    classes.attach_grad()
    for loss, given in (
        (gluon.loss.SoftmaxCrossEntropyLoss(), labels),
        (gluon.loss.L2Loss(), nd.zeros_like(classes)),
        (gluon.loss.L1Loss(), nd.zeros_like(classes)),
        (gluon.loss.SigmoidBinaryCrossEntropyLoss(), nd.zeros_like(classes)),
    ):
        for reduced in (False, True):
            with mx.autograd.record():
                value = loss(classes, given)
                value = value.mean() if reduced else value
            value.backward()
            classes.grad.wait_to_read()
            value.mean().asscalar()
    words = nd.array([[1, 2, 3]] * _SAMPLES)
    for ids in (words, words.astype("int32")):
        gluon.loss.SoftmaxCrossEntropyLoss()(nd.one_hot(ids, 19), ids).wait_to_read()
        embedding = gluon.nn.Embedding(19, 17)
        embedding.initialize()
        with mx.autograd.record():
            total = embedding(ids).sum()
        total.backward()
        embedding.weight.grad().wait_to_read()
    for cell in (gluon.rnn.LSTM, gluon.rnn.GRU, gluon.rnn.RNN):
        for depth in (1, 2):
            train(mx, cell(17, depth), nd.random.uniform(shape=(5, _SAMPLES, _CHANNELS)))
    for name, choices in _OPTIMIZERS.items():
        for options in choices:
            net = gluon.nn.HybridSequential()
            net.add(gluon.nn.Conv2D(17, 3), gluon.nn.BatchNorm(), gluon.nn.Dense(19))
            train(mx, net, nd.random.uniform(shape=(_SAMPLES, _CHANNELS, 9, 8)), optimizer=name, options=options)


def main(unless_current: bool = False) -> None:
    """Write the file; if asked so, only if it is missing or of other sources."""
    path = ROOT / "dualmx" / "op" / "shipped_traces.json"
    if unless_current and path.exists():
        from dualmx.op.trace_store import TraceFile

        if TraceFile(path).is_usable:
            return
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"DUALMX_CACHE_DIR": folder, "DUALMX_TIER": "numpy", "JAX_PLATFORMS": "cpu"}
        path.unlink(missing_ok=True)
        import dualmx as mx
        from dualmx.op.trace_store import TraceFile

        run(mx)
        count = TraceFile.write(path, Path(folder))
    print(f"{path}: {count} entries, {path.stat().st_size / 2**20:.2f} MiB")


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":
        # JAX's caches compare some sizes by chance of their hashes, and each comparison is a guard.
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, "PYTHONHASHSEED": "0"})
    sys.path.insert(0, str(ROOT))
    main(unless_current="--unless-current" in sys.argv)
