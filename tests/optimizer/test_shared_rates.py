"""Rates of many parameters in one call: equal ones are one number of the program, others stay apart."""

from __future__ import annotations

import numpy as np

import dualmx as mx
from dualmx import nd
from dualmx.op.registry import get_op
from dualmx.op.runtime_scalars import SharedScalars


def step(optimizer, weights, states):
    grads = [nd.ones((3,)) for _ in weights]
    optimizer.update(list(range(len(weights))), weights, grads, states)
    return np.array([w.asnumpy()[0] for w in weights])


def test_equal_numbers_are_one_input_and_different_ones_stay_apart():
    call = get_op("multi_sgd_update").call(lrs=(1.0,) * 4, wds=(0.0,) * 4, num_weights=4)
    shared = SharedScalars(call)
    same, numbers = shared({"lrs": (0.5,) * 4, "rescale_grad": 2.0})
    assert numbers == (0.5, 2.0) and same.n_runtime == 2
    assert shared({"lrs": (0.25,) * 4, "rescale_grad": 1.0}) == (same, (0.25, 1.0))
    parted, numbers = shared({"lrs": (0.5, 0.1, 0.5, 0.1), "rescale_grad": 1.0})
    assert parted is not same and numbers == (0.5, 0.1, 1.0)
    assert shared({"lrs": (0.0,) * 4, "rescale_grad": 1.0}) == (parted, (0.0, 0.0, 1.0))
    finer, numbers = shared({"lrs": (3.0, 2.0, 1.0, 2.0), "rescale_grad": 1.0})
    assert finer.n_runtime == 4 and numbers == (3.0, 2.0, 1.0, 1.0)


def test_each_list_of_numbers_is_shared_by_itself():
    lists = {"learning_rates": (0.1, 0.1), "step_count": (3.0, 4.0)}
    call = get_op("_multi_lamb_update").call(**lists, wds=(0.0, 0.0), num_tensors=2)
    _, numbers = SharedScalars(call)({**lists, "rescale_grad": 1.0})
    assert sorted(numbers) == [0.1, 1.0, 3.0, 4.0]


def test_weights_follow_their_own_rates():
    optimizer = mx.optimizer.SGD(learning_rate=0.5)
    weights = [nd.zeros((3,)) for _ in range(4)]
    held = step(optimizer, weights, [None] * 4)
    assert held.tolist() == [-0.5] * 4
    optimizer.set_lr_mult({1: 0.5, 2: 0.0})
    assert step(optimizer, weights, [None] * 4).tolist() == [-1.0, -0.75, -0.5, -1.0]
    optimizer.set_learning_rate(0.25)
    with mx.debug.assert_compiles(0):
        assert step(optimizer, weights, [None] * 4).tolist() == [-1.25, -0.875, -0.5, -1.25]
        optimizer.set_lr_mult({})
        assert step(optimizer, weights, [None] * 4).tolist() == [-1.5, -1.125, -0.75, -1.5]
