"""The measured training loops, written against `mx`: dualmx or MXNet."""

from __future__ import annotations

from typing import Any

import numpy as np

from .networks import LEARNING_RATE, MOMENTUM, block, parameters, symbol


class GluonLoop:
    """record / backward / Trainer.step, hybridized or not."""

    def __init__(self, mx: Any, network: str, data: list, hybrid: bool, given: bool = True, contexts: Any = None):
        self.mx = mx
        self.data = self.loaded(data, contexts)
        self.net = block(mx, network, given, contexts)
        self.loss_of = mx.gluon.loss.SoftmaxCrossEntropyLoss()
        if hybrid:
            self.net.hybridize(static_alloc=True, static_shape=True)
            self.loss_of.hybridize(static_alloc=True, static_shape=True)
        sgd = {"learning_rate": LEARNING_RATE, "momentum": MOMENTUM}
        self.trainer = mx.gluon.Trainer(self.net.collect_params(), "sgd", sgd)
        self.value: Any = None
        self.at = 0
        mx.nd.waitall()

    def loaded(self, data: list, contexts: Any) -> list:
        """The batches as arrays."""
        return [(self.mx.nd.array(x), self.mx.nd.array(y)) for x, y in data]

    def step(self) -> None:
        """One training step, not waited for."""
        x, y = self.data[self.at % len(self.data)]
        self.at += 1
        with self.mx.autograd.record():
            self.value = self.loss_of(self.net(x), y)
        self.value.backward()
        self.trainer.step(x.shape[0])

    def sync(self) -> None:
        """Wait for everything."""
        self.mx.nd.waitall()

    def loss(self) -> float:
        """Mean loss of the last step."""
        return float(self.value.mean().asscalar())


class DevicesLoop(GluonLoop):
    """The same over several devices of one process: `split_and_load`, one loss per device."""

    def __init__(self, mx: Any, network: str, data: list, devices: int):
        super().__init__(mx, network, data, hybrid=True, contexts=[mx.cpu(k) for k in range(devices)])
        self.size = len(data[0][0])

    def loaded(self, data: list, contexts: Any) -> list:
        cut = self.mx.gluon.utils.split_and_load
        return [[cut(self.mx.nd.array(part), contexts) for part in batch] for batch in data]

    def step(self) -> None:
        """One training step, not waited for."""
        images, labels = self.data[self.at % len(self.data)]
        self.at += 1
        with self.mx.autograd.record():
            self.value = [self.loss_of(self.net(x), y) for x, y in zip(images, labels, strict=True)]
        self.mx.autograd.backward(self.value)
        self.trainer.step(self.size)

    def loss(self) -> float:
        """Mean loss of the last step."""
        return float(np.mean([v.mean().asscalar() for v in self.value]))


class ModuleLoop:
    """Module.forward_backward / update."""

    def __init__(self, mx: Any, network: str, data: list):
        self.mx = mx
        made = symbol(mx, network)
        self.batches = [mx.io.DataBatch([mx.nd.array(x)], [mx.nd.array(y)]) for x, y in data]
        self.module = mx.mod.Module(made, context=mx.cpu())
        self.module.bind([("data", data[0][0].shape)], [("softmax_label", data[0][1].shape)])
        values = {
            k.replace("_mean", "_moving_mean").replace("_var", "_moving_var"): v for k, v in parameters(network).items()
        }
        arrays = {name: mx.nd.array(value) for name, value in values.items()}
        auxiliary = set(made.list_auxiliary_states())
        self.module.init_params(
            arg_params={n: a for n, a in arrays.items() if n not in auxiliary},
            aux_params={n: a for n, a in arrays.items() if n in auxiliary},
        )
        sgd = {"learning_rate": LEARNING_RATE, "momentum": MOMENTUM}
        self.module.init_optimizer(optimizer="sgd", optimizer_params=sgd, kvstore=None)
        self.at = 0
        mx.nd.waitall()

    def step(self) -> None:
        """One training step, not waited for."""
        self.last = self.batches[self.at % len(self.batches)]
        self.at += 1
        self.module.forward_backward(self.last)
        self.module.update()

    def sync(self) -> None:
        """Wait for everything."""
        self.mx.nd.waitall()

    def loss(self) -> float:
        """Mean cross-entropy of the last step."""
        right = self.last.label[0].asnumpy().astype(int)
        shares = self.module.get_outputs()[0].asnumpy()
        return float(-np.log(shares[np.arange(len(right)), right] + 1e-12).mean())


class EagerChain:
    """A chain of small operators on one array, read at the end: x * 1.0001 + 0.5, or matrix products."""

    OPS = 100

    def __init__(self, framework: str, case: str):
        draw = np.random.RandomState(0)
        shape = {"small": (10,), "large": (1000, 1000), "matmul": (64, 64)}[case]
        start = (draw.rand(*shape) / 8).astype("float32")
        self.matmul = case == "matmul"
        if framework == "torch":
            import torch

            torch.set_num_threads(2)
            self.x = torch.from_numpy(start)
            self.product, self.read = torch.mm, lambda y: None
        else:
            mx = __import__(framework)
            self.x = mx.nd.array(start)
            self.product, self.read = mx.nd.dot, lambda y: y.wait_to_read()

    def step(self) -> None:
        """`OPS` operators."""
        y = self.x
        if self.matmul:
            for _ in range(self.OPS):
                y = self.product(y, self.x)
        else:
            for _ in range(self.OPS // 2):
                y = y * 1.0001 + 0.5
        self.read(y)
        self.last = y

    def sync(self) -> None:
        """Each step has waited already."""

    def loss(self) -> float:
        """No loss: the chain only moves numbers."""
        return 0.0
