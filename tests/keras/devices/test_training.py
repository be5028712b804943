"""Training in Keras's words: on one device or several with equal results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualmx as mx
from dualmx import keras

RNG = np.random.RandomState(0)
X = RNG.randn(50, 4, 4).astype("float32")
Y = (X.reshape(50, -1)[:, :3].argmax(1)).astype("int64")


def classifier(strategy: Any, dtype: str = "float64", **settings: Any) -> keras.Sequential:
    with strategy.scope():
        model = keras.Sequential(
            [
                keras.layers.Flatten(input_shape=(4, 4)),
                keras.layers.Dense(16, activation="relu"),
                keras.layers.Dense(3),
            ]
        )
        model.cast(dtype)
        model.compile(
            optimizer=keras.optimizers.Adam(0.05),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=["accuracy"],
            **settings,
        )
    values = np.random.RandomState(1)
    model.set_weights([values.randn(*w.shape) * 0.3 for w in model.get_weights()])
    return model


@pytest.mark.parametrize("count", [4, pytest.param(8, marks=pytest.mark.slow)])
def test_devices_do_not_change_the_result(tmp_path: Path, count: int) -> None:
    found = []
    for devices in (1, count):
        np.random.seed(4)
        model = classifier(keras.distribute.MirroredStrategy(devices))
        history = model.fit(X, Y, epochs=3, batch_size=16, validation_data=(X[:32], Y[:32]), verbose=0)
        found.append((model, history.history))
        assert model.distribute_strategy.num_replicas_in_sync == devices
    one, whole = found[0]
    assert list(whole) == ["loss", "accuracy", "val_loss", "val_accuracy"]
    assert whole["loss"][2] < whole["loss"][0] and whole["accuracy"][2] > 0.6
    many, history = found[1]
    for name, values in whole.items():
        np.testing.assert_allclose(history[name], values, rtol=1e-10)
    for a, b in zip(many.get_weights(), one.get_weights(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(many.predict(X[:22], batch_size=11), one.predict(X[:22]), rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(many.evaluate(X, Y, verbose=0), one.evaluate(X, Y, verbose=0), rtol=1e-9)

    many.save_weights(str(tmp_path / "w.params"))
    one.load_weights(str(tmp_path / "w.params"))
    np.testing.assert_array_equal(one.get_weights()[0], many.get_weights()[0])
    plain = mx.gluon.nn.HybridSequential()
    plain.add(mx.gluon.nn.Flatten(), mx.gluon.nn.Dense(16, activation="relu"), mx.gluon.nn.Dense(3))
    plain.cast("float64")
    plain.load_parameters(str(tmp_path / "w.params"))
    np.testing.assert_allclose(plain(mx.nd.array(X, dtype="float64")).asnumpy(), one.predict(X), rtol=1e-9, atol=1e-10)


def test_formulas_of_losses_and_metrics() -> None:
    rng = np.random.RandomState(2)
    logits, y = rng.randn(5, 3), np.array([0, 2, 1, 1, 0])
    p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    hot, bits, q = np.eye(3)[y], rng.randint(0, 2, (5, 3)), rng.rand(5, 3)
    d = np.abs(bits - q)
    L = keras.losses
    cases = [
        (L.SparseCategoricalCrossentropy(True), y, logits, -np.log(p[range(5), y])),
        (L.SparseCategoricalCrossentropy(), y[:, None], p, -np.log(p[range(5), y])),
        (L.CategoricalCrossentropy(True), hot, logits, -np.log(p[range(5), y])),
        (L.CategoricalCrossentropy(False, 0.1), hot, p, -((hot * 0.9 + 0.1 / 3) * np.log(p)).sum(1)),
        (L.BinaryCrossentropy(), bits, q, -np.log(np.where(bits, q, 1 - q)).mean(1)),
        (L.BinaryCrossentropy(True), bits, np.log(q / (1 - q)), -np.log(np.where(bits, q, 1 - q)).mean(1)),
        (L.MeanSquaredError(), bits, q, (d**2).mean(1)),
        (L.MeanAbsoluteError(), bits, q, d.mean(1)),
        (L.Huber(0.3), bits, q, np.where(d <= 0.3, d**2 / 2, 0.3 * (d - 0.15)).mean(1)),
    ]
    for loss, label, pred, expected in cases:
        given = mx.nd.array(label, dtype="float64"), mx.nd.array(pred, dtype="float64")
        np.testing.assert_allclose(loss.rows(*given).asnumpy(), expected, rtol=1e-5, err_msg=type(loss).__name__)
        np.testing.assert_allclose(loss(*given).asscalar(), expected.mean(), rtol=1e-5, err_msg=type(loss).__name__)
    with pytest.raises(ValueError, match="expected the numbers of classes"):
        cases[0][0](mx.nd.ones((4,)), mx.nd.ones((5, 3)))

    model = keras.Model(mx.gluon.nn.Identity())
    model.compile(
        "sgd", L.BinaryCrossentropy(), ["accuracy", "mse", mx.metric.F1(), mx.metric.MAE(), lambda a, b: a[:, 0]]
    )
    got = model.evaluate(q[:, :1], bits[:, :1], verbose=0, return_dict=True)
    assert got["accuracy"] == pytest.approx(np.mean((q[:, 0] > 0.5) == bits[:, 0]))
    assert got["mse"] == pytest.approx(np.mean(d[:, 0] ** 2), rel=1e-5)
    assert got["mae"] == pytest.approx(np.mean(d[:, 0]), rel=1e-5)
    assert got["<lambda>"] == pytest.approx(bits[:, 0].mean())


@pytest.mark.slow
def test_convolutions_have_their_channels_last() -> None:
    layers = keras.layers
    with keras.distribute.MirroredStrategy(2).scope():
        model = keras.Sequential([keras.Input((8, 8, 1)), layers.Rescaling(0.5)])
        model.add(layers.Conv2D(4, 3, padding="same", activation="swish"))
        for layer in (
            layers.BatchNormalization(), layers.MaxPooling2D(), layers.Conv2D(3, 3, kernel_initializer="he_normal"),
            layers.AveragePooling2D(2), layers.GlobalAveragePooling2D(), layers.Reshape((3, 1)), layers.Flatten(),
            layers.Dropout(0.5), layers.LayerNormalization(), layers.Dense(2, activation="softmax"),
        ):  # fmt: skip
            model.add(layer)
        model.compile("rmsprop", "categorical_crossentropy", "categorical_accuracy")
    first: Any = model.layers[1]
    assert first.weight.shape == (4, 3, 3, 1)
    x = RNG.randn(10, 8, 8, 1)
    model.fit(x, np.eye(2)[RNG.randint(0, 2, 10)], epochs=1, batch_size=5, verbose=0)
    np.testing.assert_allclose(model.predict(x).sum(1), np.ones(10), rtol=1e-5)
    plain: Any = mx.gluon.nn.Conv2D(4, 3, padding=1, in_channels=1)
    plain.initialize()
    plain.weight.set_data(first.weight.data(mx.cpu(0)).transpose((0, 3, 1, 2)))
    plain.bias.set_data(first.bias.data(mx.cpu(0)))
    a = plain(mx.nd.array(x.transpose(0, 3, 1, 2))).asnumpy()
    b = first(mx.nd.array(x)).asnumpy().transpose(0, 3, 1, 2)
    np.testing.assert_allclose(a / (1 + np.exp(-a)), b, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_data_comes_in_many_forms() -> None:
    data = mx.gluon.data.ArrayDataset(X, Y)
    pairs = [(X[:20], Y[:20]), (X[20:], Y[20:])]
    strategy = keras.distribute.MirroredStrategy(2)

    def weights(*args: Any, **kwargs: Any) -> np.ndarray:
        model = classifier(strategy)
        model.fit(*args, epochs=2, verbose=0, shuffle=False, **kwargs)
        return model.get_weights()[0]

    expected = weights(X, Y, batch_size=20)
    assert np.allclose(weights(mx.nd.array(X), mx.nd.array(Y), batch_size=20), expected, rtol=1e-6)
    assert np.allclose(weights(data, batch_size=20), expected)
    assert np.allclose(weights(mx.gluon.data.DataLoader(data, 20)), expected)
    assert np.allclose(weights([(X[:20], Y[:20]), (X[20:40], Y[20:40]), (X[40:], Y[40:])]), expected)
    batches = mx.io.NDArrayIter(X, Y, 20)
    assert np.allclose(weights(batches), expected)

    def forever():
        while True:
            yield from pairs

    model = classifier(strategy)
    history = model.fit(forever(), epochs=2, steps_per_epoch=3, verbose=0, validation_data=pairs)
    assert history.params["steps"] == 3 and len(history.history["val_loss"]) == 2
    history = classifier(strategy).fit(X, Y, validation_split=0.2, verbose=0)
    assert "val_accuracy" in history.history


def test_callbacks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    C = keras.callbacks
    model = classifier(keras.distribute.MirroredStrategy(2))
    seen: list[Any] = []
    told = C.LambdaCallback(
        on_train_batch_end=lambda batch, logs: seen.append((batch, logs["loss"])),
        on_epoch_begin=lambda epoch, logs: seen.append(model.optimizer.learning_rate),
    )
    stop = C.EarlyStopping("loss", min_delta=100, patience=2, restore_best_weights=True)
    history = model.fit(
        X, Y, epochs=9, batch_size=25, verbose=2,
        callbacks=[
            C.LearningRateScheduler(lambda epoch, rate: 0.01 / (epoch + 1)), told, stop, C.TerminateOnNaN(),
            C.ModelCheckpoint(str(tmp_path / "at{epoch:02d}-{loss:.2f}.params"), "accuracy", save_best_only=True),
            C.CSVLogger(str(tmp_path / "log.csv")),
        ],
    )  # fmt: skip
    assert history.epoch == [0, 1, 2] and stop.stopped_epoch == 2
    assert seen[0] == 0.01 and seen[1][0] == 0 and seen[3] == 0.005 and len(seen) == 9
    best = next(tmp_path.glob("at01-*.params"))
    other = classifier(keras.distribute.MirroredStrategy(1))
    other.load_weights(str(best))
    assert all(np.array_equal(a, b) for a, b in zip(other.get_weights(), model.get_weights(), strict=True))
    lines = (tmp_path / "log.csv").read_text().splitlines()
    assert lines[0] == "epoch,loss,accuracy" and len(lines) == 4
    assert "Epoch 3/9" in capsys.readouterr().out
    model.fit(X, Y, epochs=3, verbose=0, callbacks=C.LearningRateScheduler(lambda epoch: 0.5**epoch))
    assert model.optimizer.learning_rate == 0.25
    model.optimizer.set_learning_rate(0.01 / 3)
    slow = C.ReduceLROnPlateau("loss", 0.5, patience=1, min_delta=100)
    model.fit(X, Y, epochs=4, verbose=0, callbacks=slow)
    assert model.optimizer.learning_rate == pytest.approx(0.01 / 3 / 8)


def test_moving_averages_are_the_mean_of_all_replicas() -> None:
    with keras.distribute.MirroredStrategy(2).scope():
        model = keras.Sequential(
            [keras.layers.BatchNormalization(momentum=0.5, input_shape=(4,)), keras.layers.Dense(3)]
        )
        model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    x = X.reshape(len(X), -1)[:, :4]
    model.fit(x, Y, epochs=1, batch_size=len(x), shuffle=False, verbose=0)
    half = len(x) // 2
    means = [0.5 * part.mean(0) for part in (x[:half], x[half:])]
    (moving,) = (p for name, p in model.collect_params().items() if name.endswith("running_mean"))
    for found in moving.list_data():
        np.testing.assert_allclose(found.asnumpy(), np.mean(means, 0), rtol=1e-4)


def test_misuse_is_told() -> None:
    strategy, other = keras.distribute.MirroredStrategy(2), keras.distribute.MirroredStrategy(1)
    model = keras.Sequential([keras.layers.Dense(2)])
    with pytest.raises(mx.base.MXNetError, match="not compiled"):
        model.fit(X, Y)
    with pytest.raises(mx.base.MXNetError, match="no weights yet"):
        model.get_weights()
    with strategy.scope():
        with pytest.raises(mx.base.MXNetError, match="outside of the scope of MirroredStrategy"):
            model.compile("sgd", "mse")
        inside = keras.Sequential([keras.layers.Dense(2)])
        with pytest.raises(mx.base.MXNetError, match="cannot be nested"), other.scope():
            pass
    with pytest.raises(mx.base.MXNetError, match="call compile inside it"):
        inside.compile("sgd", "mse")
    for wanted, said in (
        ({"optimizer": "adan"}, "adan.*did you mean.*adam"),
        ({"loss": "msa"}, "loss='msa'"),
        ({"loss": None}, "loss=None"),
        ({"metrics": ["acuracy"]}, "acuracy.*did you mean"),
    ):
        with pytest.raises(ValueError, match=said):
            model.compile(**{"optimizer": "sgd", "loss": "mse", **wanted})
    model.compile("sgd", "mse")
    for kwargs, said in (
        ({"x": X, "y": Y[:3]}, "50, 3 rows"),
        ({"x": X}, "no labels"),
        ({"x": [(X, Y)], "batch_size": 3}, "has batches already"),
        ({"x": mx.gluon.data.ArrayDataset(X, Y), "y": Y}, "has the labels itself"),
        ({"x": iter([]), "epochs": 1}, "no batches"),
        ({"x": X, "y": Y, "verbose": 7}, "verbose=7"),
    ):
        with pytest.raises(ValueError, match=said):
            model.fit(**{"verbose": 0, **kwargs})
    with pytest.raises(ValueError, match="there is no such device; this process has 8 cpu"):
        keras.distribute.MirroredStrategy(["gpu:0"])
    with pytest.raises(ValueError, match="'valid' or 'same'"):
        keras.layers.Conv2D(2, 3, padding="full")
    with pytest.raises(ValueError, match="depend on the input"):
        keras.layers.Conv2D(2, 3, strides=2, padding="same")
    with pytest.raises(ValueError, match="monitor='val_loss': not in the logs; there are loss"):
        model.fit(X, np.ones((50, 4, 2)), verbose=0, callbacks=keras.callbacks.EarlyStopping())


def test_a_model_by_subclass_and_a_wrapped_block() -> None:
    class Net(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.dense = keras.layers.Dense(1)

        def call(self, a: Any, b: Any) -> Any:
            return self.dense(a) + b

    model = Net()
    model.compile(keras.optimizers.SGD(0.1, momentum=0.9), "mse")
    a, b = RNG.randn(30, 3), RNG.randn(30, 1)
    history = model.fit([a, b], a[:, :1] * 2 + b, epochs=20, verbose=0)
    assert history.history["loss"][-1] < 0.2 * history.history["loss"][0]
    assert model.predict([a, b]).shape == (30, 1)
    assert model.train_on_batch([a, b], b) > 0 and model.test_on_batch([a, b], b) > 0
