"""Keras' API: `Sequential`, `compile`, `fit`, and distribution strategies.

Layers are gluon blocks; training uses `autograd` and `gluon.Trainer`.

Example:
    >>> import numpy as np
    >>> from dualmx import keras
    >>> with keras.distribute.MirroredStrategy(["cpu:0"]).scope():
    ...     model = keras.Sequential([
    ...         keras.layers.Flatten(input_shape=(4, 4)),
    ...         keras.layers.Dense(8, activation="relu"),
    ...         keras.layers.Dense(3),
    ...     ])
    ...     model.compile(
    ...         optimizer=keras.optimizers.Adam(),
    ...         loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    ...         metrics=["accuracy"],
    ...     )
    >>> x, y = np.ones((20, 4, 4), "float32"), np.zeros(20)
    >>> history = model.fit(x, y, epochs=2, batch_size=8, verbose=0)
    >>> sorted(history.history)
    ['accuracy', 'loss']
    >>> model.predict(x, verbose=0).shape
    (20, 3)
"""

from . import callbacks, distribute, layers, losses, metrics, models, optimizers
from .gradient_tape import GradientTape
from .model import Model, Sequential

Input = layers.Input

__all__ = [
    "GradientTape",
    "Input",
    "Model",
    "Sequential",
    "callbacks",
    "distribute",
    "layers",
    "losses",
    "metrics",
    "models",
    "optimizers",
]
