"""Keras's words in one process: metrics and losses against NumPy, placeholders, weights of rows, schedules."""

from __future__ import annotations

import numpy as np
import pytest

import dualmx as mx
from dualmx import keras

DRAW = np.random.RandomState(0)
X, Y = DRAW.rand(64, 8).astype("float32"), DRAW.randint(0, 3, 64)


def compiled(metrics: object = ("accuracy",), rate: object = 0.1) -> keras.Model:
    model = keras.models.Sequential(
        [keras.layers.Dense(16, activation="relu", input_shape=(8,)), keras.layers.Dense(3)]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(learning_rate=rate), loss, metrics)
    return model


def shares(scores: np.ndarray) -> np.ndarray:
    e = np.exp(scores - scores.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def test_metrics_agree_with_numpy() -> None:
    m = keras.metrics
    model = compiled(
        [
            m.SparseCategoricalAccuracy(name="right"),
            m.SparseTopKCategoricalAccuracy(k=2),
            m.SparseCategoricalCrossentropy(from_logits=True),
        ]
    )
    found = model.evaluate(X, Y, batch_size=10, verbose=0, return_dict=True)
    p = shares(model.predict(X))
    assert list(found) == ["loss", "right", "sparse_top_k_categorical_accuracy", "sparse_categorical_crossentropy"]
    order = np.argsort(-p, 1)
    assert found["right"] == pytest.approx((order[:, 0] == Y).mean())
    assert found["sparse_top_k_categorical_accuracy"] == pytest.approx((order[:, :2] == Y[:, None]).any(1).mean())
    assert found["loss"] == pytest.approx(-np.log(p[np.arange(64), Y]).mean(), rel=1e-5)
    y, q = DRAW.randint(0, 2, 200), DRAW.rand(200).round(2)
    pairs = q[y == 1][:, None] - q[y == 0]
    for metric, expected in (
        (m.Precision(), y[q > 0.5].mean()),
        (m.Recall(0.3), (q > 0.3)[y == 1].mean()),
        (m.AUC(num_thresholds=1001), ((pairs > 0) + 0.5 * (pairs == 0)).mean()),
        (m.BinaryAccuracy(threshold=0.7), ((q > 0.7) == y).mean()),
        (m.RootMeanSquaredError(), np.sqrt(((y - q) ** 2).mean())),
        (m.MeanAbsoluteError(), np.abs(y - q).mean()),
    ):
        for k in range(0, 200, 50):
            metric.update_state(y[k : k + 50], q[k : k + 50])
        assert metric.result() == pytest.approx(expected, rel=1e-4), metric.name
        metric.reset_state()
        assert not metric.result() > 0, metric.name  # 0, or no number


def test_metrics_of_ones_own() -> None:
    class Largest(keras.metrics.Metric):
        def __init__(self) -> None:
            super().__init__("largest")
            self.most = 0.0

        def update_state(self, y_true: object, y_pred: mx.nd.NDArray, sample_weight: object = None) -> None:
            self.most = max(self.most, float(y_pred.max().asscalar()))

        def result(self) -> float:
            return self.most

        def reset_state(self) -> None:
            self.most = 0.0

    model = compiled([Largest()])
    assert model.evaluate(X, Y, verbose=0)[1] == pytest.approx(max(model.predict(X).max(), 0.0), rel=1e-6)


@pytest.mark.usefixtures("one_tier")
def test_weights_of_rows() -> None:
    model = compiled()
    scores = model.predict(X)
    row = -np.log(shares(scores))[np.arange(64), Y]
    w = DRAW.rand(64).astype("float32")
    for given in ((X, Y, w), (X, Y)):
        extra = {} if len(given) == 3 else {"sample_weight": w}
        found = (
            model.evaluate([given], verbose=0) if len(given) == 3 else model.evaluate(*given, verbose=0, **extra)
        )  # fmt: skip
        assert found[0] == pytest.approx((row * w).mean(), rel=1e-5)
    before = model.get_weights()
    model.fit(X, Y, class_weight={0: 0.0, 1: 0.0, 2: 0.0}, verbose=0)
    assert all(np.array_equal(a, b) for a, b in zip(before, model.get_weights(), strict=True))
    by_class, one_by_one = compiled(), compiled()
    for one, settings in (
        (by_class, {"class_weight": {1: 3.0}}), (one_by_one, {"sample_weight": np.where(Y == 1, 3.0, 1.0)}),
    ):  # fmt: skip
        one.set_weights(before)
        one.fit(X, Y, batch_size=16, shuffle=False, verbose=0, **settings)
    for a, b in zip(by_class.get_weights(), one_by_one.get_weights(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    with pytest.raises(ValueError, match="3 weights for 64 rows"):
        model.fit(X, Y, sample_weight=np.ones(3), verbose=0)


def test_models_of_placeholders() -> None:
    L = keras.layers
    image, number = keras.Input(shape=(6, 6, 2)), keras.Input(shape=(3,))
    a = L.ReLU()(L.Conv2D(4, 3, padding="same")(image))
    b = L.Conv2D(4, 3)(L.ZeroPadding2D(1)(image))
    merged = L.GlobalMaxPooling2D()(L.MaxPool2D()(L.UpSampling2D()(L.Add()([a, b]))))
    shared = L.Dense(4)
    out = L.Dense(2)(L.Concatenate()([shared(merged), shared(L.Dense(4)(number))]))
    model = keras.Model(inputs=[image, number], outputs=out)
    assert model.count_params() == 76 + 76 + 20 + 16 + 18
    x = [DRAW.rand(10, 6, 6, 2), DRAW.rand(10, 3)]
    model.compile("sgd", "mse")
    assert model.predict(x).shape == (10, 2)
    losses = model.fit(x, np.ones((10, 2)), epochs=5, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    outer = keras.Model(number, L.Dense(1)(keras.Sequential([L.Dense(5, input_shape=(3,))])(number)))
    assert outer(np.ones((2, 3), "float32")).shape == (2, 1)
    with pytest.raises(ValueError, match="not among the inputs"):
        keras.Model(number, out)


def test_sequences_and_schedules() -> None:
    L = keras.layers
    model = keras.Sequential([L.Embedding(20, 4), L.LSTM(8, return_sequences=True), L.GRU(5), L.Dense(1)])
    model.compile(keras.optimizers.Nadam(), keras.losses.LogCosh())
    x = DRAW.randint(0, 20, (12, 7))
    assert np.isfinite(model.fit(x, np.ones(12), verbose=0).history["loss"][0])
    assert model.predict(x).shape == (12, 1)
    rate = keras.optimizers.schedules.ExponentialDecay(0.1, decay_steps=2, decay_rate=0.5)
    model = compiled(rate=rate)
    model.fit(X, Y, batch_size=16, verbose=0)
    assert model.optimizer.learning_rate == pytest.approx(0.025)
    model = compiled()
    model.optimizer.learning_rate = 0.5
    assert model.optimizer.learning_rate == 0.5
    with keras.distribute.OneDeviceStrategy("cpu:0").scope():
        assert keras.distribute.has_strategy() and compiled().distribute_strategy.num_replicas_in_sync == 1


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("hinge", lambda y, p: np.maximum(1 - (2 * y - 1) * p, 0).mean(-1)),
        ("squared_hinge", lambda y, p: (np.maximum(1 - (2 * y - 1) * p, 0) ** 2).mean(-1)),
        ("kl_divergence", lambda y, p: (np.clip(y, 1e-7, 1) * np.log(np.clip(y, 1e-7, 1) / p)).sum(-1)),
        ("poisson", lambda y, p: (p - y * np.log(p + 1e-7)).mean(-1)),
        ("log_cosh", lambda y, p: np.log(np.cosh(p - y)).mean(-1)),
        ("cosine_similarity", lambda y, p: -(y * p).sum(-1) / np.linalg.norm(p, axis=-1)),
        ("mean_absolute_percentage_error", lambda y, p: (100 * abs(y - p) / np.maximum(y, 1e-7)).mean(-1)),
        ("mean_squared_logarithmic_error", lambda y, p: ((np.log1p(y) - np.log1p(p)) ** 2).mean(-1)),
    ],
)
def test_losses_agree_with_numpy(name: str, expected: object) -> None:
    y, p = np.eye(4)[[0, 2, 3]], DRAW.rand(3, 4) * 0.9 + 0.05
    loss = keras.losses.get(name)
    given, want = [mx.nd.array(a, dtype="float64") for a in (y, p)], expected(y, p)  # type: ignore[operator]
    np.testing.assert_allclose(loss.rows(*given).asnumpy(), want, rtol=1e-5)
    np.testing.assert_allclose(loss(*given).asscalar(), want.mean(), rtol=1e-5)
    each = type(loss)(reduction="none")(y, given[1], sample_weight=np.array([1, 0, 2])).asnumpy()
    np.testing.assert_allclose(each, want * [1, 0, 2], rtol=1e-5)
    np.testing.assert_allclose(type(loss)(reduction="sum")(*given).asscalar(), want.sum(), rtol=1e-5)
