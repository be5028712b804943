"""`Model` and `Sequential`: compile, fit, evaluate, predict."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import autograd, initializer
from ..core.argcheck import integer
from ..core.errors import ArgumentError, ArgumentTypeError, MXNetError
from ..core.job_status import report_metric
from ..gluon import nn
from ..gluon.base_block import list_children
from ..gluon.batch_split import split_and_load
from ..gluon.block import Block, HybridBlock
from ..gluon.parallel import rest
from ..gluon.parameter import Constant, Parameter
from ..gluon.trainer import Trainer
from ..namespace import nd
from ..ndarray import NDArray
from . import callbacks as cb
from . import losses, metrics, optimizers
from .data_adapter import WeightedLabels, batches_of, by_class, host
from .distribute import get_replica_context, get_strategy
from .distribute.strategy import Strategy, in_scope, replica_context
from .functional import Graph, Placeholder, placeholders
from .layers import Input, as_block

if TYPE_CHECKING:
    pass


class _CompileArgs:
    """What `compile` chose."""

    def __init__(self, model: Model, optimizer: Any, loss: Any, wanted: Sequence[Any]):
        self.optimizer = optimizers.get(optimizer)
        self.loss = losses.get(loss)
        self.mean = metrics.MeanMetricWrapper(self.loss, "loss")
        self.metrics = [metrics.get(m, self.loss, model._strategy.workers) for m in wanted]
        self.trainer: Trainer | None = None

    @property
    def all(self) -> list[Any]:
        """The loss and the metrics."""
        return [self.mean, *self.metrics]


def is_non_trainable(p: Parameter) -> bool:
    """Whether a weight is computed by forward passes, such as a moving average, and not trained."""
    return not p.is_differentiable and not isinstance(p, Constant) and np.dtype(p.dtype).kind not in "iub"


def _weighted(values: NDArray, weights: NDArray | None) -> NDArray:
    return values if weights is None else values * weights


def _run_callbacks(listed: list[cb.Callback], moment: str, *args: Any) -> None:
    for one in listed:
        getattr(one, moment)(*args)


def _line(logs: dict[str, float]) -> str:
    return " - ".join(f"{name}: {value:.4f}" for name, value in logs.items())


class _ProgressPrinter:
    """What `fit` prints."""

    def __init__(self, verbose: Any, epochs: int, steps: int | None, first: bool):
        if verbose not in (0, 1, 2, True, False, "auto"):
            raise ArgumentError(f"fit: verbose={verbose!r}: expected 0, 1, 2 or 'auto'")
        self._level = 0 if not first else 1 if verbose == "auto" else int(verbose)
        self._epochs, self._steps = epochs, steps
        self._bar = self._level == 1 and sys.stdout.isatty()
        self._began = self._shown = 0.0

    def begin(self, epoch: int) -> None:
        """An epoch begins."""
        self._began = self._shown = time.monotonic()
        if self._level:
            print(f"Epoch {epoch + 1}/{self._epochs}", flush=True)

    def batch(self, count: int, values: Any) -> None:
        """A batch is done; reading the values waits for it, which happens twice a second."""
        if self._bar and time.monotonic() - self._shown > 0.5:
            self._shown = time.monotonic()
            print(f"\r{count}/{self._steps or '?'} - {_line(values())}", end="", flush=True)

    def end(self, count: int, logs: dict[str, float]) -> None:
        """An epoch is over."""
        if self._level:
            took = time.monotonic() - self._began
            print(f"{chr(13) if self._bar else ''}{count}/{count} - {took:.1f}s - {_line(logs)}", flush=True)


class Model(Block):
    """A network with `compile`, `fit`, `evaluate` and `predict`, under the strategy in whose scope it was created.

    Args:
        net: a gluon Block; or nothing in a subclass that defines `call`; or `inputs`.
        outputs: what layers made of the inputs, one or a list.
        inputs: what `keras.Input` returned, one or a list.
        name: accepted.

    Raises:
        ArgumentTypeError: not a Block. ArgumentError: outputs that depend on other inputs.

    Attributes:
        row_shapes: of the inputs, without the axis of rows; None where nothing tells them.

    Example:
        >>> import numpy as np
        >>> import dualmx as mx
        >>> model = Model(mx.gluon.nn.Dense(1))
        >>> model.compile("sgd", "mse")
        >>> len(model.fit(np.ones((8, 3)), np.ones(8), verbose=0).history["loss"])
        1
    """

    _strategy: Strategy
    _compiled: _CompileArgs | None
    stop_training = False

    row_shapes: list[tuple[int, ...]] | None = None

    def __init__(self, net: Any = None, outputs: Any = None, inputs: Any = None, name: str | None = None):
        super().__init__(prefix="")
        inputs = net if inputs is None and outputs is not None else inputs
        if inputs is not None:
            net = Graph(inputs, outputs)
        self._strategy: Strategy = get_strategy()
        self._compiled = None
        if net is not None and not isinstance(net, Block):
            raise ArgumentTypeError(f"Model: net of type {type(net).__name__}: expected a gluon Block")
        if net is not None:
            self.net = net
        if inputs is not None:
            self.row_shapes = [one.input_shape for one in placeholders([inputs])]  # type: ignore[attr-defined]
            self.build(*[nd.zeros((1, *shape), ctx=self._strategy.contexts[0]) for shape in self.row_shapes])

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_compiled": None}  # the copy is trained by itself

    @property
    def distribute_strategy(self) -> Strategy:
        """The strategy in whose scope the model was created."""
        return self._strategy

    @distribute_strategy.setter
    def distribute_strategy(self, strategy: Strategy) -> None:
        self._strategy = strategy

    def call(self, *inputs: Any) -> Any:
        """Compute the outputs; subclasses without a `net` define it."""
        if "net" not in self.__dict__:
            raise NotImplementedError(f"{type(self).__name__} must define call(), or be given a net")
        return self.net(*inputs)

    def __call__(self, *args: Any, training: bool | None = None) -> Any:
        """Compute the outputs of arrays; NumPy's are copied to the first device of the strategy.

        Args:
            *args: inputs; placeholders of `keras.Input` make this model a layer of another one.
            training: compute as in training, or not; as `autograd` says by default.
        """
        if any(placeholders(args)):
            return Placeholder(self, args)
        replica = get_replica_context()
        if replica is not None and any(id(p) in replica.changed for p in self.collect_params().values()):
            what = f"{type(self).__name__}: its weights change when all replicas have run"
            raise MXNetError(f"{what}; call strategy.run once per update")
        ctx = replica_context(self._strategy.contexts)
        args = tuple(nd.array(a, ctx=ctx, dtype=self._dtype()) if isinstance(a, np.ndarray) else a for a in args)
        if training is None or training == autograd.is_training():
            return super().__call__(*args)
        with autograd.train_mode() if training else autograd.predict_mode():
            return super().__call__(*args)

    def forward(self, *inputs: Any) -> Any:
        """Compute the outputs; weights are created at the first call."""
        if self._missing():
            self.build(*inputs)
        return self.call(*inputs)

    def _missing(self) -> bool:
        params = self.collect_params().values()
        return not all(p.is_initialized or p.is_deferred for p in params)

    def build(self, *inputs: Any) -> None:
        """Make the weights, with the shapes that inputs call for.

        Args:
            *inputs: arrays.
        """
        contexts = self._strategy.contexts
        params = self.collect_params()
        for p in params.values():
            if not p.is_initialized and not p.is_deferred:
                p.initialize(None, contexts, initializer.Xavier("uniform", "avg", 3))
        if any(p.list_ctx() != contexts for p in params.values()):
            params.reset_ctx(contexts)
        if any(not p.is_initialized for p in params.values()):
            with autograd.pause():
                self.call(*[a.as_in_context(contexts[0]) for a in inputs])

    # -- weights

    @property
    def layers(self) -> list[Block]:
        """The layers."""
        return list_children(self.net if "net" in self.__dict__ else self)

    @property
    def weights(self) -> list[Any]:
        """All parameters."""
        return list(self.collect_params().values())

    @property
    def trainable_weights(self) -> list[Any]:
        """The parameters that are learned."""
        return [p for p in self.weights if p.grad_req != "null"]

    trainable_variables, variables = trainable_weights, weights

    def summary(self, *inputs: Any) -> None:
        """Print the layers and their parameters."""
        self._require_weights("summary")
        print(f'Model: "{type(self).__name__.lower()}"')
        for layer in self.layers:
            count = sum(int(np.prod(p.shape)) for p in layer.collect_params().values())
            print(f"{layer.name + ' (' + type(layer).__name__ + ')':<48}{count:>12}")
        print(f"Total params: {self.count_params()}")

    def get_weights(self) -> list[np.ndarray]:
        """Return the values of all parameters, in the shapes of gluon.

        Raises:
            MXNetError: the model has no weights yet.
        """
        self._require_weights("get_weights")
        return [p.reduce().asnumpy() for p in self.collect_params().values()]

    def set_weights(self, weights: Any) -> None:
        """Overwrite the values of all parameters.

        Raises:
            ArgumentError: another number of arrays, or other shapes. MXNetError: the model has no weights yet.
        """
        self._require_weights("set_weights")
        params = list(self.collect_params().values())
        if len(weights) != len(params):
            raise ArgumentError(f"set_weights: {len(weights)} arrays; expected {len(params)}")
        for p, value in zip(params, weights, strict=True):
            p.set_data(value if isinstance(value, NDArray) else nd.array(value, dtype=p.dtype))

    def save_weights(self, filepath: str) -> None:
        """Write all parameters to a `.params` file, which `load_weights` and `load_parameters` of the network read.

        Raises:
            MXNetError: the model has no weights yet.
        """
        self._require_weights("save_weights")
        self._network().save_parameters(str(filepath))

    def load_weights(self, filepath: str) -> None:
        """Read what `save_weights` wrote.

        Raises:
            ArgumentError: the file is of another network.
        """
        self._network().load_parameters(str(filepath), ctx=self._strategy.contexts)

    def _network(self) -> Block:
        return self.__dict__.get("net", self)

    def _require_weights(self, what: str) -> None:
        if any(not p.is_initialized for p in self.collect_params().values()):
            raise MXNetError(
                f"{what}: the model has no weights yet; call it on a batch, or give its first layer an input_shape"
            )

    def count_params(self) -> int:
        """Return how many numbers the parameters have together."""
        self._require_weights("count_params")
        return sum(int(np.prod(p.shape)) for p in self.collect_params().values())

    def compile(
        self, optimizer: Any = "rmsprop", loss: Any = None, metrics: Any = None, run_eagerly: bool = False
    ) -> None:
        """Configure training, in the scope in which the model was created.

        Args:
            optimizer: a name, or an optimizer of `keras.optimizers` or `mx.optimizer`.
            loss: a name, a loss of `keras.losses` or gluon, or a function of labels and predictions.
            metrics: a list of names, metrics of `keras.metrics` or `mx.metric`, or functions of labels and predictions.
            run_eagerly: do not hybridize the network.

        Raises:
            MXNetError: outside of the scope in which the model was made. ArgumentError: an unknown name.
        """
        here = in_scope()
        if here is not self._strategy and not (here is None and type(self._strategy) is Strategy):
            if here is None:
                said = f"the model was made in the scope of {self._strategy!r}; call compile inside it"
            else:
                said = f"the model was made outside of the scope of {here!r}; make it inside as well"
            raise MXNetError(f"compile: {said}: with strategy.scope(): ...")
        if loss is None:
            raise ArgumentError("compile: loss=None: expected a name, a loss or a function of labels and predictions")
        wanted = [] if metrics is None else list(metrics) if isinstance(metrics, (list, tuple)) else [metrics]
        self._compiled = _CompileArgs(self, optimizer, loss, wanted)
        self.hybridize(not run_eagerly)

    def _finish_deferred(self, what: str) -> _CompileArgs:
        if self._compiled is None:
            raise MXNetError(f"{what}: the model is not compiled; call compile(optimizer, loss) first")
        return self._compiled

    @property
    def optimizer(self) -> Any:
        """The optimizer, an `mx.optimizer.Optimizer`."""
        chosen = self._finish_deferred("optimizer")
        return chosen.optimizer if chosen.trainer is None else chosen.trainer.optimizer

    @property
    def gluon_trainer(self) -> Trainer | None:
        """What applies the optimizer; `None` before the first step."""
        return self._finish_deferred("gluon_trainer").trainer

    @gluon_trainer.setter
    def gluon_trainer(self, trainer: Trainer) -> None:
        self._finish_deferred("gluon_trainer").trainer = trainer

    @property
    def metrics_names(self) -> list[str]:
        """Names of what `evaluate` returns."""
        return [m.name for m in self._finish_deferred("metrics_names").all]

    def fit(
        self, x: Any, y: Any = None, batch_size: int | None = None, epochs: int = 1, verbose: Any = "auto",
        callbacks: Any = None, validation_split: float = 0.0, validation_data: Any = None, shuffle: bool = True,
        initial_epoch: int = 0, steps_per_epoch: int | None = None, validation_steps: int | None = None,
        validation_batch_size: int | None = None, validation_freq: int = 1, class_weight: Any = None,
        sample_weight: Any = None,
    ) -> cb.History:  # fmt: skip
        """Train.

        Args:
            x, y: arrays (NumPy or `mx.nd`; several inputs in a list); or in `x` alone a `gluon.data.Dataset` of pairs,
                a `DataLoader`, an iterator of `mx.io`, or any iterable of pairs.
            batch_size: rows of a batch of all devices and workers together; 32 by default.
            epochs: number of the last epoch.
            verbose: 0 prints nothing, 1 or `"auto"` a bar, 2 a line per epoch.
            callbacks: callbacks.
            validation_split: share of the arrays, at their end, that is kept for validation.
            validation_data: a pair of arrays, or a loader, for validation after epochs.
            shuffle: draw the order of arrays and data sets anew in each epoch, by NumPy's random numbers.
            initial_epoch: number of the first epoch.
            steps_per_epoch, validation_steps: batches of an epoch, for iterables without end.
            validation_batch_size: rows of a batch of validation.
            validation_freq: epochs from one validation to the next.
            class_weight: factors of the losses of rows, by the number of their class.
            sample_weight: factors of the losses, one for each row of `x`; an iterable may have them as third elements.

        Returns:
            A `History`, whose `history` has the values of all epochs by name.

        Raises:
            MXNetError: not compiled. ArgumentError: arguments that do not belong together.
        """
        chosen, strategy = self._finish_deferred("fit"), self._strategy
        if not 0 <= validation_split < 1:
            raise ArgumentError(f"fit: validation_split={validation_split}: expected 0 or more, below 1")
        if sample_weight is not None:
            y = WeightedLabels(host(y), host(sample_weight))
        if validation_split:
            if validation_data is not None or y is None or isinstance(x, (list, tuple)):
                raise ArgumentError("fit: validation_split is for one array x with y, without validation_data")
            cut = int(len(x) * (1 - validation_split))
            validation_data, x, y = (host(x)[cut:], host(y)[cut:]), host(x)[:cut], host(y)[:cut]
        data = batches_of("fit", x, y, batch_size, shuffle, steps_per_epoch)
        epochs = integer("fit", "epochs", epochs, 0)
        show = _ProgressPrinter(verbose, epochs, data.steps, strategy.rank == 0)
        history = cb.History()
        listed = [*cb.listed(callbacks), history]
        for one in listed:
            one.set_model(self)
            one.set_params({"epochs": epochs, "steps": data.steps, "verbose": verbose})
        self.stop_training = False
        each_batch = any(type(one).on_train_batch_end is not cb.Callback.on_train_batch_end for one in listed)
        each_batch |= any("on_train_batch_end" in vars(one) for one in listed)
        seed = strategy.agreed(int(np.random.randint(2**31 - 1)))
        _run_callbacks(listed, "on_train_begin", {})
        logs: dict[str, float] = {}
        for epoch in range(initial_epoch, epochs):
            self.reset_metrics()
            show.begin(epoch)
            _run_callbacks(listed, "on_epoch_begin", epoch, {})
            count = 0
            for xs, labels in data.epoch((seed + epoch) % 2**32):
                _run_callbacks(listed, "on_train_batch_begin", count, {})
                self._train(chosen, xs, labels if class_weight is None else by_class(labels, class_weight), count)
                if each_batch:
                    _run_callbacks(listed, "on_train_batch_end", count, self._values(strategy))
                count += 1
                show.batch(count, lambda: self._values(None))
                if self.stop_training:
                    break
            if not count:
                raise ArgumentError(f"fit: epoch {epoch + 1} had no batches; a generator can be used up only once")
            strategy.average([p for p in self.collect_params().values() if is_non_trainable(p)])
            logs = self._values(strategy)
            if validation_data is not None and (epoch + 1) % validation_freq == 0:
                found = self._validate(validation_data, validation_batch_size or batch_size, validation_steps)
                logs.update({f"val_{k}": v for k, v in found.items()})
            show.end(count, logs)
            for name, value in logs.items():
                report_metric(name, value)
            _run_callbacks(listed, "on_epoch_end", epoch, logs)
            if self.stop_training:
                break
        _run_callbacks(listed, "on_train_end", logs)
        return history

    def _validate(self, data: Any, batch_size: int | None, steps: int | None) -> dict[str, float]:
        if isinstance(data, (tuple, list)) and len(data) in (2, 3) and hasattr(data[0], "shape"):
            y = data[1] if len(data) == 2 else WeightedLabels(host(data[1]), host(data[2]))
            return self.evaluate(data[0], y, batch_size=batch_size, verbose=0, return_dict=True, steps=steps)
        return self.evaluate(data, verbose=0, return_dict=True, steps=steps)

    def evaluate(
        self, x: Any, y: Any = None, batch_size: int | None = None, verbose: Any = "auto",
        steps: int | None = None, return_dict: bool = False, sample_weight: Any = None,
    ) -> Any:  # fmt: skip
        """Return the loss and the metrics of data; see `fit` for the arguments.

        Returns:
            The loss alone if there are no metrics, otherwise a list in the order of `metrics_names`, or a dict.
        """
        chosen, strategy = self._finish_deferred("evaluate"), self._strategy
        if sample_weight is not None:
            y = WeightedLabels(host(y), host(sample_weight))
        self.reset_metrics()
        for xs, labels in batches_of("evaluate", x, y, batch_size, False, steps).epoch(0):
            begin, end = strategy.part(len(xs[0]))
            if begin < end:
                self._test(chosen, [a[begin:end] for a in xs], labels[begin:end])
        found = self._values(strategy)
        if verbose and strategy.rank == 0:
            print(_line(found), flush=True)
        if return_dict:
            return found
        return list(found.values()) if chosen.metrics else found["loss"]

    def predict(self, x: Any, batch_size: int | None = None, verbose: Any = 0, steps: int | None = None) -> Any:
        """Return the outputs for all rows, a NumPy array or a list of them; every worker computes all."""
        found: list[Any] = []
        for xs, _ in batches_of("predict", x, None, batch_size, False, steps).epoch(0):
            found.append(self.predict_on_batch(xs if len(xs) > 1 else xs[0]))
        if isinstance(found[0], list):
            return [np.concatenate(parts) for parts in zip(*found, strict=True)]
        return np.concatenate(found)

    def train_on_batch(self, x: Any, y: Any) -> Any:
        """Train on one batch; returns its loss, or a list of loss and metrics."""
        return self._on_batch("train_on_batch", x, y, lambda chosen, xs, labels: self._train(chosen, xs, labels, 0))

    def test_on_batch(self, x: Any, y: Any) -> Any:
        """Return the loss of one batch, or a list of loss and metrics."""
        return self._on_batch("test_on_batch", x, y, self._test)

    def _on_batch(self, what: str, x: Any, y: Any, act: Any) -> Any:
        chosen = self._finish_deferred(what)
        self.reset_metrics()
        for xs, labels in batches_of(what, x, y, len(y)).epoch(0):
            act(chosen, xs, labels)
        found = self._values(self._strategy)
        return list(found.values()) if chosen.metrics else found["loss"]

    def predict_on_batch(self, x: Any) -> Any:
        """Return the outputs for one batch, a NumPy array or a list of them."""
        parts = self._loaded(list(x) if isinstance(x, (list, tuple)) else [x])
        with autograd.predict_mode():
            outs = [self(*own) for own in parts]
        if isinstance(outs[0], (list, tuple)):
            return [np.concatenate([o.asnumpy() for o in group]) for group in zip(*outs, strict=True)]
        return np.concatenate([o.asnumpy() for o in outs])

    def reset_metrics(self) -> None:
        """Reset the loss and the metrics."""
        for metric in self._finish_deferred("reset_metrics").all:
            metric.reset()

    def _values(self, strategy: Strategy | None) -> dict[str, float]:
        """Return the loss and the metrics so far, over all workers of a strategy."""
        chosen = self._compiled
        assert chosen is not None
        states = [m.state() for m in chosen.all]
        if strategy is not None and strategy.workers > 1:
            flat = strategy.added_up([v for state in states for v in state])
            rest_of = iter(flat)
            states = [[next(rest_of) for _ in state] for state in states]
        return {m.name: m.value(s) for m, s in zip(chosen.all, states, strict=True)}

    def _loaded(self, arrays: Sequence[Any], dtype: Any = None) -> list[tuple[NDArray, ...]]:
        """Split arrays over the devices; return the arrays of each device that gets rows."""
        dtype = self._dtype() if dtype is None else dtype
        rows = len(arrays[0])
        contexts = self._strategy.contexts[:rows]
        parts = [
            split_and_load(
                a.astype(dtype, copy=False) if isinstance(a, NDArray) else nd.array(a, dtype=dtype),
                contexts,
                even_split=False,
            )
            for a in arrays
        ]
        if self._missing() or any(not p.is_initialized for p in self.collect_params().values()):
            self.build(*[p[0] for p in parts])
        return list(zip(*parts, strict=True))

    def _dtype(self) -> Any:
        return next((p.dtype for p in self.collect_params().values()), "float32")

    def _labels(self, labels: Any) -> list[NDArray]:
        if labels is None:
            raise ArgumentError("fit: there are no labels; give y, or data of pairs")
        labels = labels.labels if isinstance(labels, WeightedLabels) else labels
        dtype = "float64" if np.dtype(self._dtype()) == np.float64 else "float32"
        return [part for (part,) in self._loaded([labels], dtype)]

    def _weights(self, labels: Any) -> list[Any]:
        """Factors of the losses for each device, None without."""
        if not isinstance(labels, WeightedLabels):
            return [None] * len(self._strategy.contexts)
        return [w for (w,) in self._loaded([labels.weights])]

    def _train(self, chosen: _CompileArgs, xs: Sequence[Any], labels: Any, number: int) -> None:
        strategy = self._strategy
        begin, end, rows = strategy.share(number, len(xs[0]))
        if self._missing() or any(not p.is_initialized for p in self.collect_params().values()):
            self._loaded([a[:1] for a in xs])
        if chosen.trainer is None:
            chosen.trainer = Trainer(self.collect_params(), chosen.optimizer, kvstore=strategy.store)
        if not rows:
            return
        params = self.collect_params().values()
        pairs: list[Any] = []
        if begin < end:
            labels = None if labels is None else labels[begin:end]
            own = zip(self._labels(labels), self._weights(labels), strict=False)
            pairs = list(zip(self._loaded([a[begin:end] for a in xs]), own, strict=True))
        values = []
        with autograd.record():
            for own, (label, weight) in pairs:
                out = self(*own)
                values.append((_weighted(chosen.loss.rows(label, out), weight), label, out))
        self._count(chosen, values)
        rest(params, strategy.contexts[len(pairs) :])
        if values:
            autograd.backward([v for v, _, _ in values])
        chosen.trainer.step(rows)

    def _test(self, chosen: _CompileArgs, xs: Sequence[Any], labels: Any) -> None:
        with autograd.predict_mode():
            pairs = zip(self._loaded(xs), self._labels(labels), self._weights(labels), strict=False)
            outs = [(label, self(*own), weight) for own, label, weight in pairs]
            self._count(chosen, [(_weighted(chosen.loss.rows(y, out), weight), y, out) for y, out, weight in outs])

    @staticmethod
    def _count(chosen: _CompileArgs, values: list[tuple[NDArray, NDArray, NDArray]]) -> None:
        for value, label, out in values:
            chosen.mean.add(value)
            for metric in chosen.metrics:
                metric.update(label, out)


class Sequential(Model):
    """Layers one after the other.

    Args:
        layers: of `keras.layers`, or gluon Blocks; the first may be an `Input`.
        name: accepted, for those who write it.

    Raises:
        ArgumentTypeError: something else among the layers.

    Example:
        >>> from dualmx import keras
        >>> model = Sequential([keras.layers.Dense(4, activation="relu", input_shape=(3,)), keras.layers.Dense(2)])
        >>> model.count_params()
        26
    """

    def __init__(self, layers: Any = (), name: str | None = None):
        listed = list(layers)
        self._rows_like = next((s for s in (getattr(one, "input_shape", None) for one in listed[:1]) if s), None)
        blocks = [as_block(one) for one in listed if not isinstance(one, Input)]
        kind = nn.HybridSequential if all(isinstance(b, HybridBlock) for b in blocks) else nn.Sequential
        net = kind(prefix="")
        net.add(*blocks)
        super().__init__(net)
        self._build_early()

    def add(self, layer: Any) -> None:
        """Append a layer.

        Raises:
            MXNetError: the model is compiled already.
        """
        if self._compiled is not None:
            raise MXNetError("Sequential.add: the model is compiled already; add layers before")
        if isinstance(layer, Input):
            self._rows_like = layer.input_shape
            return
        first = not len(self.net)  # type: ignore[arg-type]
        block = as_block(layer)
        if not isinstance(block, HybridBlock) and isinstance(self.net, HybridBlock):
            others = list_children(self.net)
            self._children.pop("net")
            del self.net
            self.net = nn.Sequential(prefix="")
            self.net.add(*others)
        self.net.add(block)  # type: ignore[union-attr]
        if first and self._rows_like is None:
            self._rows_like = getattr(layer, "input_shape", None)
        self._build_early()

    def _build_early(self) -> None:
        self.row_shapes = None if self._rows_like is None else [self._rows_like]
        if self._rows_like is not None and self.layers:
            self.build(nd.zeros((1, *self._rows_like), ctx=self._strategy.contexts[0]))
