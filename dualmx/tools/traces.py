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
    "sgd": [{}, {"momentum": 0.9}, {"momentum": 0.9, "wd": 1e-4}, {"momentum": 0.9, "wd": 5e-4}],
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
    # Strides divide sizes with a remainder of their own, and products of pixels may be large.
    even, odd, large = (_SAMPLES, _CHANNELS, 12, 14), (_SAMPLES, _CHANNELS, _SIDE, 15), (_SAMPLES, 61, 62, 64)
    for bias in (True, False):
        yield nn.Dense(17, use_bias=bias), flat
        yield nn.Dense(1, use_bias=bias), flat
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
            yield nn.Conv2D(17, kernel, stride, padding, use_bias=bias), odd
            yield nn.Conv2D(17, kernel, stride, padding, use_bias=bias), (_SAMPLES, 1, _SIDE, _SIDE + 1)
            if kernel == 1:
                yield nn.Conv2D(59, kernel, stride, padding, use_bias=bias), large
    yield nn.Conv2D(_CHANNELS, 3, 1, 1, groups=_CHANNELS), image
    for pool in (nn.MaxPool2D, nn.AvgPool2D):
        for size, stride, padding in ((2, 2, 0), (3, 2, 0), (3, 2, 1), (3, 1, 1)):
            yield pool(size, stride, padding), image
            yield pool(size, stride, padding), even
            yield pool(size, stride, padding), odd
    for layer in (nn.GlobalAvgPool2D(), nn.GlobalMaxPool2D(), nn.Flatten(), nn.BatchNorm(), nn.InstanceNorm()):
        yield layer, image
    yield nn.BatchNorm(), flat
    for shape in (flat, (_SAMPLES, 5, _CHANNELS)):
        yield nn.LayerNorm(), shape


def predictions(mx: Any) -> None:
    """Predict for one sample, by the layers of networks on images."""
    for layer, shape in layers(mx):
        if len(shape) == 4:
            layer.initialize()
            layer(mx.nd.random.uniform(shape=(1, *shape[1:]))).wait_to_read()


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
    yield lambda x, y: nd.expand_dims(x, 1)
    yield lambda x, y: nd.batch_dot(x, y, transpose_b=True)
    yield lambda x, y: nd.transpose(x, (0, 2, 1, 3))
    yield lambda x, y: nd.clip(x, 0, 1)
    yield lambda x, y: nd.where(x > y, x, y)


def symbols(mx: Any) -> None:
    """Train networks of symbols on sequences, and measure how well they do."""
    length, words, width = 5, 19, 17
    for uses_ignore in (False, True):
        cells = mx.rnn.SequentialRNNCell()
        for cell in (mx.rnn.LSTMCell(width, prefix="lstm_"), mx.rnn.GRUCell(width, prefix="gru_")):
            cells.add(cell)
        x, labels = mx.sym.Variable("data"), mx.sym.Variable("softmax_label")
        x, _ = cells.unroll(length, mx.sym.Embedding(x, input_dim=words, output_dim=13), merge_outputs=True)
        x = mx.sym.FullyConnected(mx.sym.Reshape(x, shape=(-1, width)), num_hidden=words)
        more = {"use_ignore": True, "ignore_label": 0} if uses_ignore else {}
        net = mx.sym.SoftmaxOutput(x, mx.sym.Reshape(labels, shape=(-1,)), name="softmax", **more)
        module = mx.mod.Module(net)
        data = mx.io.NDArrayIter(mx.nd.ones((2 * _SAMPLES, length)), mx.nd.ones((2 * _SAMPLES, length)), _SAMPLES)
        metrics = [mx.metric.Perplexity(0), mx.metric.Accuracy(), mx.metric.CrossEntropy()]
        module.fit(data, eval_metric=mx.metric.CompositeEvalMetric(metrics), num_epoch=1)


def run(mx: Any) -> None:
    """Compute with all of it."""
    nd, gluon = mx.nd, mx.gluon
    for net, shape in layers(mx):
        train(mx, net, nd.random.uniform(shape=shape))
    predictions(mx)
    for function in operators(mx):
        for shape in (
            (1,), (_SAMPLES,), (_SAMPLES, 1), (_SAMPLES, _CHANNELS), (5, _SAMPLES, _CHANNELS),
            (_SAMPLES, _CHANNELS, _SIDE, _SIDE + 1),
        ):  # fmt: skip
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
    for width in (_CHANNELS, 1):
        for loss, is_of_classes in (
            (gluon.loss.SoftmaxCrossEntropyLoss(), True),
            (gluon.loss.L2Loss(), False),
            (gluon.loss.L1Loss(), False),
            (gluon.loss.SigmoidBinaryCrossEntropyLoss(), False),
        ):
            scores = nd.random.uniform(shape=(_SAMPLES, width))
            scores.attach_grad()
            labels = nd.zeros((_SAMPLES,)) if is_of_classes else nd.zeros_like(scores)
            for given in (labels, labels.astype("int32")) if is_of_classes else (labels,):
                for is_reduced in (False, True):
                    with mx.autograd.record():
                        value = loss(scores, given)
                        value = value.mean() if is_reduced else value
                    value.backward()
                    scores.grad.wait_to_read()
                    value.mean().asscalar()
    symbols(mx)
    words = nd.array([[1, 2, 3]] * _SAMPLES)
    for ids in (words, words.astype("int32")):
        gluon.loss.SoftmaxCrossEntropyLoss()(nd.one_hot(ids, 19), ids).wait_to_read()
        embedding = gluon.nn.Embedding(19, 17)
        embedding.initialize()
        embedding(ids).wait_to_read()
        with mx.autograd.record():
            total = embedding(ids).sum()
        total.backward()
        embedding.weight.grad().wait_to_read()
    for cell in (gluon.rnn.LSTM, gluon.rnn.GRU, gluon.rnn.RNN):
        for depth in (1, 2):
            for width in (17, _CHANNELS):  # or as wide as its input
                train(mx, cell(width, depth), nd.random.uniform(shape=(5, _SAMPLES, _CHANNELS)))
    for shape in ((_SAMPLES,), (_SAMPLES, _CHANNELS), (_SAMPLES, _CHANNELS, 5), (_SAMPLES, _CHANNELS, 5, 7)):
        arrays = [nd.random.uniform(shape=shape) for _ in range(2)]
        gluon.utils.clip_global_norm(arrays, 1.5)
        nd.BlockGrad(arrays[0]).wait_to_read()
        for dtype in ("int32", "float32"):
            arrays[1] = arrays[1].astype(dtype)
            arrays[1].wait_to_read()
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
    sys.path.insert(0, str(ROOT))
    main(unless_current="--unless-current" in sys.argv)
