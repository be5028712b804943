"""Larger networks against MXNet: ResNet-50, an LSTM language model, a transformer, a wide table of embeddings.

Written against `mx`: dualmx or MXNet.
"""

from __future__ import annotations

from typing import Any

import numpy as np

WORKLOADS = ("resnet50", "lstm", "transformer", "widedeep")
SIZES = {"resnet50": 4, "lstm": 20, "transformer": 8, "widedeep": 512}  # samples of a batch
WORDS, PIECES, ROWS = 10_000, 8_000, 200_000
_OPTIMIZERS: dict[str, tuple[str, dict[str, Any]]] = {
    "resnet50": ("sgd", {"learning_rate": 1e-3, "momentum": 0.9, "wd": 1e-4}),
    "lstm": ("sgd", {"learning_rate": 1.0}),
    "transformer": ("adam", {"learning_rate": 1e-4}),
    "widedeep": ("sgd", {"learning_rate": 1.0, "lazy_update": True}),
}


def batches(workload: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """A few random batches, the same in every process."""
    draw, n = np.random.RandomState(0), SIZES[workload]

    def one() -> tuple[np.ndarray, np.ndarray]:
        if workload == "resnet50":
            return draw.randn(n, 3, 224, 224).astype("float32"), draw.randint(0, 1000, n).astype("int32")
        if workload == "lstm":
            return draw.randint(0, WORDS, (35, n)).astype("int32"), draw.randint(0, WORDS, (35, n)).astype("int32")
        if workload == "transformer":
            return draw.randint(0, PIECES, (n, 128)).astype("int32"), draw.randint(0, PIECES, (n, 128)).astype("int32")
        return draw.randint(0, ROWS, (n, 20)).astype("int32"), draw.randint(0, 2, n).astype("float32")

    return [one() for _ in range(2 if workload == "resnet50" else 8)]


def _language_model(mx: Any) -> Any:
    nn = mx.gluon.nn

    class Model(mx.gluon.HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(WORDS, 200)
            self.cells = mx.gluon.rnn.LSTM(200, 2, input_size=200)
            self.out = nn.Dense(WORDS, flatten=False, in_units=200)

        def hybrid_forward(self, F: Any, x: Any, h: Any, c: Any) -> Any:
            y, state = self.cells(self.words(x), [h, c])
            return self.out(y), state[0], state[1]

    return Model()


def _transformer(mx: Any, width: int = 256, heads: int = 8) -> Any:
    nn = mx.gluon.nn

    class Layer(mx.gluon.HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            self.before, self.between, self.act = nn.LayerNorm(), nn.LayerNorm(), nn.GELU()
            self.mixed, self.joined = nn.Dense(3 * width, flatten=False), nn.Dense(width, flatten=False)
            self.wide, self.narrow = nn.Dense(4 * width, flatten=False), nn.Dense(width, flatten=False)

        def hybrid_forward(self, F: Any, x: Any) -> Any:
            def by_head(t: Any) -> Any:
                return F.reshape(F.transpose(F.reshape(t, (0, 0, heads, -1)), (0, 2, 1, 3)), (-3, 0, 0))

            q, k, v = (by_head(t) for t in F.split(self.mixed(self.before(x)), 3, axis=2))
            scores = F.softmax(F.batch_dot(q * (width // heads) ** -0.5, k, transpose_b=True))
            seen = F.transpose(F.reshape(F.batch_dot(scores, v), (-4, -1, heads, 0, 0)), (0, 2, 1, 3))
            x = x + self.joined(F.reshape(seen, (0, 0, -3)))
            return x + self.narrow(self.act(self.wide(self.between(x))))

    class Model(mx.gluon.HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.layers = nn.Embedding(PIECES, width), nn.HybridSequential()
            self.places = self.params.get("places", shape=(1, 128, width), init=mx.init.Normal(0.02))
            for _ in range(4):
                self.layers.add(Layer())
            self.norm, self.out = nn.LayerNorm(), nn.Dense(PIECES, flatten=False)

        def hybrid_forward(self, F: Any, x: Any, places: Any) -> Any:
            return self.out(self.norm(self.layers(F.broadcast_add(self.words(x), places))))

    return Model()


def _wide(mx: Any) -> Any:
    nn = mx.gluon.nn

    class Model(mx.gluon.HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(ROWS, 64, sparse_grad=True, weight_initializer=mx.init.Normal(0.05))
            self.deep = nn.HybridSequential()
            self.deep.add(nn.Dense(256, activation="relu"), nn.Dense(128, activation="relu"), nn.Dense(1))

        def hybrid_forward(self, F: Any, x: Any) -> Any:
            return self.deep(F.mean(self.table(x), axis=1))

    return Model()


class WorkloadLoop:
    """record / backward / Trainer.step; the network predicts once before, unless sizes are to be found in a step."""

    def __init__(self, mx: Any, workload: str, hybrid: bool, is_settled: bool = True):
        mx.random.seed(0)
        self.mx, self.workload = mx, workload
        self.data = [(mx.nd.array(x, dtype=x.dtype), mx.nd.array(y, dtype=y.dtype)) for x, y in batches(workload)]
        make = {"lstm": _language_model, "transformer": _transformer, "widedeep": _wide}
        self.net = make[workload](mx) if workload in make else mx.gluon.model_zoo.vision.resnet50_v1()
        self.net.initialize(mx.init.Xavier())
        losses = mx.gluon.loss
        self.loss_of = losses.SigmoidBCELoss() if workload == "widedeep" else losses.SoftmaxCrossEntropyLoss()
        if hybrid:
            for block in (self.net, self.loss_of):
                block.hybridize(static_alloc=True, static_shape=True)
        self.state = [mx.nd.zeros((2, SIZES[workload], 200)) for _ in range(2)] if workload == "lstm" else []
        if is_settled:
            self.net(self.data[0][0], *self.state)
        name, params = _OPTIMIZERS[workload]
        self.trainer = mx.gluon.Trainer(self.net.collect_params(), name, params)
        self.value: Any = None
        self.at = 0
        mx.nd.waitall()

    def step(self) -> None:
        """One training step, not waited for."""
        x, y = self.data[self.at % len(self.data)]
        self.at += 1
        with self.mx.autograd.record():
            if self.workload == "lstm":
                out, *state = self.net(x, *self.state)
                self.state = [s.detach() for s in state]
                self.value = self.loss_of(out.reshape((-1, WORDS)), y.reshape((-1,)))
            elif self.workload == "transformer":
                self.value = self.loss_of(self.net(x).reshape((-1, PIECES)), y.reshape((-1,)))
            elif self.workload == "widedeep":
                self.value = self.loss_of(self.net(x), y.reshape((-1, 1)))
            else:
                self.value = self.loss_of(self.net(x), y)
        self.value.backward()
        if self.workload == "lstm":
            grads = [p.grad() for p in self.net.collect_params().values()]
            self.mx.gluon.utils.clip_global_norm(grads, 0.25 * self.value.size, check_isfinite=False)
        self.trainer.step(self.value.size)

    def sync(self) -> None:
        """Wait for everything."""
        self.mx.nd.waitall()

    def loss(self) -> float:
        """Mean loss of the last step."""
        return float(self.value.mean().asscalar())
