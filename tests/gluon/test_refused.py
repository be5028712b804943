"""What layers, datasets and trainers refuse when they are made, by the words that name the fault."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualmx as mx
from dualmx import gluon, nd
from dualmx.gluon import nn, rnn
from dualmx.gluon.contrib import estimator
from dualmx.gluon.data.vision import transforms

DATA = gluon.data.SimpleDataset(list(range(4)))
REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: nn.Dense(0), ValueError, "num_hidden=0"),
    (lambda: nn.Conv2D(1, (3, 3, 3)), ValueError, "kernel_size"),
    (lambda: nn.MaxPool2D((2, 2, 2)), ValueError, "expected a number or 2 numbers"),
    (lambda: nn.AvgPool1D(2, strides=(1, 1)), ValueError, "expected a number or 1 numbers"),
    (lambda: nn.Lambda("no_such"), ValueError, "no function 'no_such'"),
    (lambda: nn.HybridLambda(3), ValueError, "expected a function or its name"),
    (lambda: rnn.LSTM(2, layout="NCT"), ValueError, "layout='NCT': expected 'TNC' or 'NTC'"),
    (lambda: rnn.LSTMCell(2).unroll(2, nd.ones((1, 3, 4))), ValueError, "expected length=2 steps along axis 1"),
    (lambda: rnn.LSTMCell(2).unroll(2, nd.ones((2, 1, 4)), layout="NTC"), ValueError, "expected length=2 steps"),
    (lambda: rnn.LSTMCell(2).unroll(3, [nd.ones((1, 4))] * 2), ValueError, "2 steps in inputs: expected length=3"),
    (lambda: rnn.LSTMCell(2).unroll(1, nd.ones((1, 1, 4)), layout="NXC"), ValueError, "a layout with T and N"),
    (lambda: rnn.LSTMCell(2).unroll(1, 3), TypeError, "expected arrays or symbols"),
    (
        lambda: gluon.contrib.rnn.Conv2DRNNCell((1, 4, 4), 1, i2h_kernel=3, h2h_kernel=(2, 3)),
        ValueError,
        "h2h_kernel=.2, 3.: expected odd numbers",
    ),
    (
        lambda: gluon.contrib.rnn.Conv2DRNNCell((1, 4, 4), 1, i2h_kernel=(3, 3, 3), h2h_kernel=3),
        ValueError,
        "i2h_kernel=.3, 3, 3.: expected an int or 2 ints",
    ),
    (lambda: gluon.model_zoo.vision.VGG([1, 1], [8]), ValueError, "2 layers, 1 filters"),
    (lambda: DATA.shard(2, 2), ValueError, "index=2: expected 0 to num_shards-1 = 1"),
    (lambda: DATA.shard(2, -1), ValueError, "index=-1"),
    (lambda: DATA.sample([1, 2]), TypeError, "expected a gluon.data.Sampler"),
    (lambda: gluon.data.ArrayDataset([1, 2], [1]), ValueError, "."),
    (lambda: transforms.RandomFlipLeftRight(p=1.5), ValueError, "p=1.5: expected 0 to 1"),
    (lambda: transforms.RandomApply(transforms.Cast(), p=-0.5), ValueError, "-0.5: expected 0 to 1"),
    (lambda: gluon.parallel.devices(0), ValueError, "0: expected a number of 1 or more"),
    (lambda: gluon.parallel.devices([]), ValueError, "at least one device"),
    (lambda: gluon.parallel.devices(1.5), TypeError, "1.5: expected contexts, numbers or names"),
    (lambda: gluon.parallel.devices([1.5]), TypeError, "1.5: expected a context, a number or a name"),
    (lambda: gluon.parallel.devices([mx.cpu(0), "cpu:0"]), ValueError, "named twice"),
    (lambda: gluon.parallel.devices(["cpu-0"]), ValueError, "'cpu-0': expected a name such as"),
    (lambda: gluon.Trainer(3, "sgd"), ValueError, "expected parameters in a dict or a list, got"),
    (lambda: gluon.Trainer([3], "sgd"), ValueError, "expected Parameters, got a"),
    (lambda: gluon.Trainer([], mx.optimizer.SGD(), {"wd": 1}), ValueError, "go with an optimizer's name"),
    (lambda: gluon.ParameterDict().get_constant("c"), KeyError, "no constant named 'c'"),
    (lambda: gluon.Parameter("w", grad_req="sub"), ValueError, "grad_req"),
    (lambda: gluon.Parameter("w", stype="dense"), ValueError, "stype"),
    (lambda: gluon.Parameter("w", shape=(1,)).initialize(ctx=[]), ValueError, "at least one context"),
    (lambda: estimator.CheckpointHandler("x", mode="most", save_best=True), ValueError, "."),
    (lambda: gluon.utils.split_data(nd.ones((4, 2)), 2, batch_axis=2), ValueError, "batch_axis=2: expected an axis"),
    (lambda: gluon.utils.split_data(nd.ones((4, 2)), 2, batch_axis=-3), ValueError, "batch_axis=-3: expected an axis"),
    (lambda: gluon.utils.split_data(nd.ones((4, 2)), 0), ValueError, "num_slice=0"),
    (lambda: gluon.utils.split_and_load([1, 2], []), ValueError, "at least one context"),
]


@pytest.mark.parametrize(("call", "error", "said"), REFUSED, ids=[str(i) for i in range(len(REFUSED))])
def test_the_fault_is_named(call: Callable[[], Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        call()


def test_two_parameters_of_one_name_do_not_merge() -> None:
    first, second = gluon.ParameterDict(), gluon.ParameterDict()
    first.get("w", shape=(1,))
    second.get("w", shape=(1,))
    with pytest.raises(ValueError, match="both dictionaries have a parameter 'w'"):
        first.update(second)
    first.update({"w": first["w"]})
    first.get_constant("c", np.ones(2))
    with pytest.raises(ValueError, match="'c' exists with another value"):
        first.get_constant("c", np.zeros(2))
    with pytest.raises(ValueError, match="is not a constant"):
        first.get_constant("w", np.ones(1))
