"""Backward passes that make activations again: the same numbers, in less memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dualmx as mx
from dualmx.compile.events import CompileEvent, Listener, listeners
from dualmx.core.errors import ArgumentError

WIDTH = 64


class Sizes(Listener):
    """Notes how many bytes the largest program needs for what it makes on the way."""

    def __enter__(self) -> Sizes:
        self.most = 0
        listeners.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        listeners.remove(self)

    def compiled(self, compilation: CompileEvent) -> None:
        self.most = max(self.most, compilation.compiled.memory_analysis().temp_size_in_bytes)


def layers(forced: bool = False) -> Any:
    """Nine products with what stands between them in networks."""
    x = mx.sym.var("data")
    for k in range(8):
        x = mx.sym.FullyConnected(x, num_hidden=WIDTH, no_bias=True, name=f"fc{k}")
        with mx.AttrScope(**({"force_mirroring": "True"} if forced else {})):
            x = mx.sym.BatchNorm(x, fix_gamma=False, name=f"bn{k}")
            x = mx.sym.Activation(x, act_type="tanh", name=f"tanh{k}")
            x = x * mx.sym.sigmoid(x) + mx.sym.exp(-x * x)
        if k == 4:
            x = mx.sym.Dropout(x, p=0.25, name="dropout")
    return mx.sym.FullyConnected(x, num_hidden=3, name="last")


def gradients(symbol: Any, rows: int) -> tuple[dict[str, np.ndarray], int]:
    """Outputs, gradients and new averages of one step, and the bytes it took."""
    rng = np.random.RandomState(0)
    shapes, _, _ = symbol.infer_shape(data=(rows, WIDTH))
    held = {
        n: mx.nd.array(rng.randn(*s) * 0.2, dtype="float64")
        for n, s in zip(symbol.list_arguments(), shapes, strict=True)
    }
    types = dict.fromkeys([*held, *symbol.list_auxiliary_states()], "float64")
    executor = symbol.simple_bind(mx.cpu(), type_dict=types, data=(rows, WIDTH))
    executor.copy_params_from(held)
    mx.random.seed(11)
    with Sizes() as sizes:
        executor.forward(is_train=True)
        executor.backward([mx.nd.array(rng.randn(rows, 3), dtype="float64")])
        found = {"out": executor.outputs[0], **executor.grad_dict, **executor.aux_dict}
        return {name: value.asnumpy() for name, value in found.items()}, sizes.most


def assert_alike(found: dict[str, np.ndarray], want: dict[str, np.ndarray]) -> None:
    assert found.keys() == want.keys()
    for name, value in want.items():
        scale = np.abs(value).max()
        np.testing.assert_allclose(found[name] / scale, value / scale, atol=1e-11, err_msg=name)


@pytest.mark.slow
@pytest.mark.usefixtures("xla_tier")
def test_the_environment_asks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    want, whole = gradients(layers(), 2048)
    monkeypatch.setenv("MXNET_BACKWARD_DO_MIRROR", "1")
    found, less = gradients(layers(), 2048)
    assert_alike(found, want)
    assert less < 0.7 * whole


@pytest.mark.usefixtures("xla_tier")
def test_an_attribute_asks_for_it() -> None:
    want, whole = gradients(layers(), 1536)
    found, less = gradients(layers(forced=True), 1536)
    assert_alike(found, want)
    assert less < 0.7 * whole


@pytest.mark.usefixtures("xla_tier")
def test_hybridized_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    def step() -> tuple[list[np.ndarray], int]:
        mx.random.seed(5)
        net = mx.gluon.nn.HybridSequential()
        for _ in range(6):
            net.add(mx.gluon.nn.Conv2D(8, 3, padding=1), mx.gluon.nn.BatchNorm(), mx.gluon.nn.Activation("relu"))
        net.initialize(mx.init.Xavier())
        net.hybridize()
        net.cast("float64")
        x = mx.nd.array(np.random.RandomState(1).rand(8, 3, 24, 24), dtype="float64")
        net(x)
        with Sizes() as sizes:
            for _ in range(2):
                with mx.autograd.record():
                    loss = (net(x) ** 2).mean()
                loss.backward()
                grads = [p.grad().asnumpy() for p in net.collect_params().values() if p.grad_req != "null"]
        return grads, sizes.most

    want, whole = step()
    monkeypatch.setenv("MXNET_BACKWARD_DO_MIRROR", "1")
    found, less = step()
    for a, b in zip(found, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-11)
    assert less < 0.8 * whole


def test_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    def step() -> list[np.ndarray]:
        x, w = mx.sym.var("data"), mx.sym.var("w")
        out, _ = mx.sym.contrib.foreach(lambda row, s: (mx.sym.tanh(row * w + s),) * 2, x, mx.sym.zeros((3,)))
        executor = mx.sym.MakeLoss(mx.sym.sum(mx.sym.relu(out))).simple_bind(mx.cpu(), data=(4, 3), w=(3,))
        executor.arg_dict["data"][:] = mx.nd.arange(12).reshape((4, 3)) * 0.1
        executor.arg_dict["w"][:] = 0.5
        executor.forward(is_train=True)
        executor.backward()
        return [executor.outputs[0].asnumpy(), *(g.asnumpy() for g in executor.grad_arrays)]

    want = step()
    monkeypatch.setenv("MXNET_BACKWARD_DO_MIRROR", "1")
    for a, b in zip(step(), want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_other_values_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MXNET_BACKWARD_DO_MIRROR", "yes")
    with pytest.raises(ArgumentError, match="MXNET_BACKWARD_DO_MIRROR='yes': expected one of 0, 1"):
        layers().simple_bind(mx.cpu(), data=(4, WIDTH)).forward(is_train=True)
