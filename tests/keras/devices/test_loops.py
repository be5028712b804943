"""Training loops of one's own: tapes, and functions that replicas run."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import dualmx as mx
from dualmx import keras
from dualmx.core.errors import ArgumentError, ArgumentTypeError, MXNetError, OrderError

RNG = np.random.RandomState(0)
X = RNG.randn(48, 6)
Y = X[:, :3].argmax(1)
ReduceOp = keras.distribute.ReduceOp


def network(strategy: Any) -> keras.Sequential:
    with strategy.scope():
        model = keras.Sequential([keras.layers.Dense(8, activation="tanh", input_shape=(6,)), keras.layers.Dense(3)])
        model.cast("float64")
    values = np.random.RandomState(1)
    model.set_weights([values.randn(*w.shape) * 0.3 for w in model.get_weights()])
    return model


def batches(size: int = 16) -> list[Any]:
    cuts = range(0, len(X), size)
    return [(mx.nd.array(X[i : i + size], dtype="float64"), mx.nd.array(Y[i : i + size])) for i in cuts]


def trained(devices: int, optimizer: Any, size: int = 16) -> tuple[list[np.ndarray], list[float]]:
    strategy = keras.distribute.MirroredStrategy(devices)
    model = network(strategy)
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")

    def step(inputs: Any) -> Any:
        x, y = inputs
        with keras.GradientTape() as tape:
            values = loss_of(y, model(x, training=True))
            loss = keras.losses.compute_average_loss(values, global_batch_size=size)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    losses = []
    for _ in range(2):
        for inputs in strategy.experimental_distribute_dataset(batches(size)):
            losses.append(strategy.reduce(ReduceOp.SUM, strategy.run(step, args=(inputs,)), axis=None).asscalar())
    return model.get_weights(), losses


@pytest.mark.parametrize("make", [lambda: keras.optimizers.Adam(0.05), lambda: keras.optimizers.SGD(0.1, momentum=0.9)])
def test_replicas_do_not_change_the_result(make: Any) -> None:
    one, first = trained(1, make())
    many, losses = trained(4, make())
    np.testing.assert_allclose(losses, first, rtol=1e-11)
    for a, b in zip(many, one, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
    assert first[-1] < first[0]
    model = network(keras.distribute.Strategy())
    model.compile(make(), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(X, Y, batch_size=16, epochs=2, shuffle=False, verbose=0)
    for a, b in zip(model.get_weights(), one, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def test_rows_are_dealt_out_and_values_put_together() -> None:
    strategy = keras.distribute.MirroredStrategy(4)
    seen: list[tuple[int, int, str]] = []

    def look(batch: Any) -> Any:
        replica = keras.distribute.get_replica_context()
        assert replica is not None and replica.strategy is strategy and replica.num_replicas_in_sync == 4
        x = batch["x"]
        seen.append((replica.replica_id_in_sync_group, x.shape[0], str(x.context)))
        return {"sum": x.sum(), "rows": x}

    assert keras.distribute.get_replica_context() is None
    data = strategy.experimental_distribute_dataset([{"x": np.arange(10.0)}])
    assert len(data) == 1
    found: Any = None
    for _ in range(2):  # read again for each epoch
        (batch,) = data
        found = strategy.run(look, args=(batch,))
    assert seen[:4] == [(i, n, f"cpu({i})") for i, n in enumerate((2, 3, 2, 3))]
    assert len(strategy.experimental_local_results(found["sum"])) == 4
    assert strategy.reduce("SUM", found["sum"], axis=None).asscalar() == 45
    assert strategy.reduce(ReduceOp.MEAN, found["rows"], axis=0).asscalar() == 4.5
    assert strategy.reduce("mean", found["sum"]).asscalar() == 45 / 4

    def pieces(context: Any) -> Any:
        assert context.get_per_replica_batch_size(16) == 4
        return (np.full((2, 3), i) for i in range(6))

    parts = [strategy.experimental_local_results(b) for b in strategy.distribute_datasets_from_function(pieces)]
    assert [[p.shape[0] for p in group] for group in parts] == [[2, 2, 2, 2], [2, 2, 0, 0]]
    assert parts[1][1].asnumpy().tolist() == [[5, 5, 5], [5, 5, 5]]


def test_wrong_loops_are_told() -> None:
    strategy = keras.distribute.MirroredStrategy(2)
    model, optimizer = network(strategy), keras.optimizers.SGD(0.1)
    x = keras.distribute.PerReplica(tuple(mx.nd.ones((2, 6), ctx=c, dtype="float64") for c in strategy.contexts))

    def step(a: Any, times: int = 1, who: Any = (0, 1)) -> Any:
        loss = None
        for _ in range(times):
            with keras.GradientTape() as tape:
                loss = model(a).sum()
            if keras.distribute.get_replica_context().replica_id_in_sync_group in who:  # type: ignore[union-attr]
                weights = model.trainable_variables
                optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return loss

    before = model.get_weights()
    for text, act in {
        "weights change when all replicas have run": lambda: strategy.run(step, (x, 2)),
        "applied gradients 0, 1 times": lambda: strategy.run(step, (x,), {"who": (1,)}),
        "a replica runs already": lambda: strategy.run(lambda a: strategy.run(step, (a,)), (x,)),
        "several devices": lambda: optimizer.apply_gradients([(mx.nd.ones((8, 6)), model.trainable_variables[0])]),
        "expected a multiple": lambda: keras.distribute.InputContext(1, 0, 3).get_per_replica_batch_size(4),
        "axis=1": lambda: strategy.reduce("sum", 1.0, axis=1),
        "reduce_op='max'": lambda: strategy.reduce("max", 1.0),
        "has a gradient": lambda: optimizer.apply_gradients([(None, model.trainable_variables[0])]),
        "equally many": lambda: next(iter(strategy.experimental_distribute_dataset([(np.ones(3), np.ones(2))]))),
        "expected an NDArray for a weight": lambda: optimizer.apply_gradients([(mx.nd.ones((1,)), mx.nd.ones((1,)))]),
        "expected a positive": lambda: keras.losses.compute_average_loss(mx.nd.ones((1,)), global_batch_size=0),
        "expected one of": lambda: keras.losses.Huber(reduction="median"),
    }.items():
        with pytest.raises(MXNetError, match=text):
            act()
    assert all(np.array_equal(a, b) for a, b in zip(before, model.get_weights(), strict=True))
    strategy.run(step, (x,))
    assert not np.array_equal(before[0], model.get_weights()[0])
    other = network(strategy).trainable_variables[:1]
    with pytest.raises(ArgumentError, match="not the 4 of the first call"):
        strategy.run(lambda a: optimizer.apply_gradients([(p.data(a.context) * 0, p) for p in other]), (x,))


def test_gradients_of_tapes() -> None:
    x, w = mx.nd.array([3.0]), mx.nd.array([2.0])
    with keras.GradientTape(persistent=True) as tape:
        tape.watch([x, w])
        y = x * x
        with tape.stop_recording():
            aside = y * 5
        z = y * y * w + aside
    assert tape.gradient(z, {"x": x, "more": (y, w)})["x"].asscalar() == 4 * 27 * 2
    assert [g.asscalar() for g in tape.gradient(z, [y, w])] == [36, 81]
    assert tape.gradient(y, [x, w])[1] is None and tape.gradient(y, w, unconnected_gradients="zero").asscalar() == 0
    assert tape.gradient([y, z], x, output_gradients=[mx.nd.array([1.0]), mx.nd.array([0.0])]).asscalar() == 6
    assert len(tape.watched_variables()) == 2
    with keras.GradientTape() as outer:
        outer.watch(x)
        with keras.GradientTape() as inner:
            inner.watch(x)
            y = x**3
        first = inner.gradient(y, x)
    assert first.asscalar() == 27 and outer.gradient(first, x).asscalar() == 18
    with pytest.raises(OrderError, match="persistent=True"):
        outer.gradient(first, x)
    with pytest.raises(OrderError, match="recording already"), tape, tape:
        pass
    for bad in (lambda: tape.gradient(z, 3), lambda: tape.watch("x")):
        with pytest.raises(ArgumentTypeError, match="expected NDArrays"):
            bad()
    with pytest.raises(ArgumentError, match="'none' or 'zero'"):
        tape.gradient(z, x, unconnected_gradients="ones")


def test_tapes_record_inference_unless_told_otherwise() -> None:
    model = keras.Sequential([keras.layers.Dropout(0.5)])
    x = mx.nd.ones((4, 50))
    for training, same in ((None, True), (False, True), (True, False)):
        with keras.GradientTape():
            y = model(x) if training is None else model(x, training=training)
        assert np.array_equal(y.asnumpy(), x.asnumpy()) == same
    layer = keras.Sequential([keras.layers.Dense(1, input_shape=(2,))])
    with keras.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(layer.trainable_variables[0])
        loss = layer(mx.nd.ones((1, 2))).sum()
    weight, bias = tape.gradient(loss, layer.trainable_variables)
    assert weight.asnumpy().tolist() == [[1, 1]] and bias is None


def test_losses_may_be_one_number() -> None:
    weights = []
    for loss in ("mse", lambda y, p: ((y.reshape(p.shape) - p) ** 2).mean()):
        strategy = keras.distribute.MirroredStrategy(2)
        model = network(strategy)
        with strategy.scope():
            model.compile(keras.optimizers.SGD(0.1), loss)
        labels = np.random.RandomState(2).randn(48, 3)
        history = model.fit(X, labels, batch_size=14, epochs=2, shuffle=False, verbose=0)
        weights.append([*model.get_weights(), history.history["loss"]])
    for a, b in zip(*weights, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13)


def test_trainers_end_with_their_weights() -> None:
    strategy = keras.distribute.MirroredStrategy(1)
    model, optimizer = network(strategy), keras.optimizers.SGD(0.1)
    weights = model.trainable_variables
    for _ in range(2):
        optimizer.apply_gradients([(p.data() * 0, p) for p in weights])
    assert optimizer.num_update == 2
    gone = weakref.ref(weights[0])
    del model, weights, optimizer
    gc.collect()
    assert gone() is None
