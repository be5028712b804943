"""Executors of several contexts as objects of their own, as scripts from before modules use them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dualmx as mx
from dualmx import MXNetError
from dualmx.module.executor_group import DataParallelExecutorGroup

sym: Any = mx.sym


def network() -> Any:
    return sym.SoftmaxOutput(sym.FullyConnected(sym.var("data"), num_hidden=3, name="fc"), name="softmax")


def parameters() -> dict[str, Any]:
    return {"fc_weight": mx.nd.array(np.arange(6).reshape(3, 2) / 6), "fc_bias": mx.nd.array([0.0, 0.1, 0.2])}


def test_group_computes_what_one_executor_does():
    shapes = [("data", (4, 2))], [("softmax_label", (4,))]
    batch = mx.io.DataBatch([mx.nd.array(np.arange(8).reshape(4, 2))], [mx.nd.array([0, 1, 2, 1])])
    found = []
    for contexts in ([mx.cpu()], [mx.cpu(0), mx.cpu(0)]):
        group = DataParallelExecutorGroup(network(), contexts, None, *shapes, ["fc_weight", "fc_bias"], True, True)
        group.set_params(parameters(), {})
        group.forward(batch, is_train=True)
        group.backward()
        grads = [sum(g.asnumpy() for g in per if g is not None) for per in group.grad_arrays[: len(contexts)]]
        found.append((group.get_outputs()[0].asnumpy(), group.get_input_grads()[0].asnumpy()))
        assert group.get_output_shapes() == [("softmax_output", (4, 3))]
        assert len(grads) and group.batch_size == 4
        metric = mx.metric.Accuracy()
        group.update_metric(metric, batch.label)
        assert metric.get()[1] == (found[0][0].argmax(1) == [0, 1, 2, 1]).mean()
    for one, two in zip(*found, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-6)


def test_manager_trains_on_the_batches_of_an_iterator():
    data = mx.io.NDArrayIter(np.arange(8).reshape(4, 2).astype("float32"), np.array([0, 1, 2, 1]), 2)
    net = network()
    names = net.list_arguments()
    weights = [n for n in names if n.startswith("fc")]
    manager = mx.executor_manager.DataParallelExecutorManager(net, [mx.cpu()], data, names, weights, [])
    manager.set_params(parameters(), {})
    for batch in data:
        manager.load_data_batch(batch)
        manager.forward(is_train=True)
        manager.backward()
        for (weight,), (grad,) in zip(manager.param_arrays, manager.grad_arrays, strict=True):
            assert grad is not None
            weight -= 0.1 * grad
    kept: dict[str, Any] = {}
    manager.copy_to(kept, {})
    assert sorted(kept) == sorted(weights)
    assert not np.allclose(kept["fc_weight"].asnumpy(), parameters()["fc_weight"].asnumpy())


def test_wrong_uses():
    with pytest.raises(MXNetError, match="several arguments called 'a'"):
        mx.executor_manager._check_arguments(sym.var("a") + sym.var("a"))
    group = DataParallelExecutorGroup(
        network(), [mx.cpu()], None, [("data", (4, 2))], None, ["fc_weight"], False, False
    )
    with pytest.raises(MXNetError, match="for_training"):
        group.backward()
    with pytest.raises(MXNetError, match="inputs_need_grad"):
        group.get_input_grads()
