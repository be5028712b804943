"""Keras's optimizers: those of `mx.optimizer` with a method more, which copies, pickles and stores respect."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import dualmx as mx
from dualmx import keras
from dualmx.kvstore.optimizer_config import from_config, to_config
from dualmx.kvstore.replicated_update import is_replica_deterministic
from dualmx.optimizer.optimizer import registered_class

MAKERS = [
    keras.optimizers.SGD, keras.optimizers.Adam, keras.optimizers.RMSprop, keras.optimizers.Adagrad,
    keras.optimizers.Adadelta, keras.optimizers.Adamax, keras.optimizers.Nadam, keras.optimizers.Ftrl,
]  # fmt: skip


def test_importing_keras_adds_no_method_to_mxnets_classes() -> None:
    assert not hasattr(mx.optimizer.Optimizer, "apply_gradients")
    assert not any(hasattr(kind, "apply_gradients") for kind in map(type, (mx.optimizer.SGD(), mx.optimizer.Adam())))
    assert all(hasattr(make(), "apply_gradients") for make in MAKERS)
    assert hasattr(keras.optimizers.get("adam"), "apply_gradients") and keras.optimizers.get("lamb").apply_gradients


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_copies_and_servers_get_the_same_optimizer(make: type) -> None:
    made = make(clipvalue=0.5)
    kind = registered_class(type(made))
    assert kind is getattr(mx.optimizer, type(made).__name__) and isinstance(made, kind)
    assert is_replica_deterministic(made)
    assert type(from_config(to_config(made))) is kind
    for twin in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert type(twin) is type(made) and vars(twin) == vars(made)


def test_a_class_that_updates_in_its_own_way_is_not_taken_for_the_one_it_comes_from() -> None:
    class Own(mx.optimizer.SGD):
        pass

    assert registered_class(Own) is Own
    assert registered_class(mx.optimizer.LARS) is mx.optimizer.LARS
    assert registered_class(mx.optimizer.ccSGD) is mx.optimizer.ccSGD
    assert not is_replica_deterministic(mx.optimizer.LBSGD())


def test_one_trainer_applies_the_gradients_of_an_optimizer() -> None:
    layer = keras.layers.Dense(1, input_shape=(2,))
    model = keras.Sequential([layer])
    first, second = keras.optimizers.SGD(0.5), keras.optimizers.SGD(0.25)
    weights = model.trainable_variables
    before = [w.data().asnumpy() for w in weights]
    for optimizer in (first, second, first):
        optimizer.apply_gradients([(w.data() * 0 + 1, w) for w in weights])
    for w, b in zip(weights, before, strict=True):
        np.testing.assert_allclose(w.data().asnumpy(), b - 1.25, rtol=1e-5, atol=1e-6)
    assert "_trainer" not in vars(first) and first.num_update == 2
