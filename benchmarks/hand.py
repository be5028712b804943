"""The reference: a hand-written JAX training step, one donated `jax.jit` over forward, gradients and momentum update.

`plain` uses what JAX offers, channels-last. `kernels` uses the operator bodies, layout pass and compiler options of
dualmx, so that a ratio against it shows the cost of recording, flushing and calling alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec

from .networks import LEARNING_RATE, MOMENTUM, NETWORKS, Conv, Dense, Mean, Norm, Pool, Relu, parameters


class Plain:
    """Layers by `jax.numpy` and `lax`, images as (N, H, W, C)."""

    channels_last = True
    compiler_options = None

    @staticmethod
    def conv(layer: Conv, x: jax.Array, w: jax.Array, b: jax.Array | None) -> jax.Array:
        pad = [(layer.pad, layer.pad)] * 2
        dims = ("NHWC", "HWIO", "NHWC")
        y = lax.conv_general_dilated(x, w, (layer.stride, layer.stride), pad, dimension_numbers=dims)
        return y if b is None else y + b

    @staticmethod
    def norm(x: jax.Array, gamma: jax.Array, beta: jax.Array, mean: jax.Array, var: jax.Array) -> tuple[jax.Array, ...]:
        mean_now, var_now = x.mean((0, 1, 2)), x.var((0, 1, 2))
        y = (x - mean_now) * lax.rsqrt(var_now + 1e-5) * gamma + beta
        return y, 0.9 * mean + 0.1 * mean_now, 0.9 * var + 0.1 * var_now

    @staticmethod
    def pool(x: jax.Array) -> jax.Array:
        return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

    @staticmethod
    def mean(x: jax.Array) -> jax.Array:
        return x.mean((1, 2))

    @staticmethod
    def dense(x: jax.Array, w: jax.Array, b: jax.Array) -> jax.Array:
        return x.reshape(x.shape[0], -1) @ w + b

    relu = staticmethod(jax.nn.relu)

    @staticmethod
    def through(step: Any) -> Any:
        """The step as it is."""
        return step


class Kernels:
    """The same layers by dualmx's operator bodies, images as (N, C, H, W)."""

    channels_last = False

    def __init__(self) -> None:
        import dualmx  # noqa: F401  (fills the registry)
        from dualmx.compile.cpu.onednn.ffi_handlers import available
        from dualmx.compile.cpu.onednn.rewrite import REWRITE_RULES
        from dualmx.compile.cpu.transpose_sinking import sink_transposes
        from dualmx.compile.executable import compiler_options
        from dualmx.op.lowering_context import lowering_on_platform
        from dualmx.op.registry import get_op

        self._op = get_op
        self._sink = partial(sink_transposes, library=REWRITE_RULES)
        self._lowering = partial(lowering_on_platform, "cpu", available)
        self.compiler_options = compiler_options("cpu")

    def through(self, step: Any) -> Any:
        """The step after the layout pass, which works on flat lists of arrays."""

        def run(*args: Any) -> Any:
            leaves, tree = jax.tree.flatten(args)
            shapes = []

            def flat(*leaves: Any) -> list[Any]:
                results, shape = jax.tree.flatten(step(*jax.tree.unflatten(tree, leaves)))
                shapes.append(shape)
                return results

            with self._lowering():
                results = self._sink(flat)(*leaves)
            return jax.tree.unflatten(shapes[0], results)

        return run

    def _apply(self, name: str, *inputs: Any, train: bool = False, **params: Any) -> tuple[Any, ...]:
        return self._op(name).call(train, **params).apply(inputs)

    def conv(self, layer: Conv, x: jax.Array, w: jax.Array, b: jax.Array | None) -> jax.Array:
        inputs = (x, w) if b is None else (x, w, b)
        square = dict(kernel=(layer.kernel,) * 2, stride=(layer.stride,) * 2, pad=(layer.pad,) * 2)
        return self._apply("Convolution", *inputs, num_filter=layer.channels, no_bias=b is None, **square)[0]

    def norm(self, *inputs: jax.Array) -> tuple[jax.Array, ...]:
        out = self._apply("BatchNorm", *inputs, train=True, fix_gamma=False, eps=1e-5)
        return out[0], out[-2], out[-1]

    def pool(self, x: jax.Array) -> jax.Array:
        return self._apply("Pooling", x, kernel=(2, 2), stride=(2, 2), pool_type="max")[0]

    def mean(self, x: jax.Array) -> jax.Array:
        return self._apply("Pooling", x, kernel=(1, 1), global_pool=True, pool_type="avg")[0]

    def dense(self, x: jax.Array, w: jax.Array, b: jax.Array) -> jax.Array:
        return self._apply("FullyConnected", x, w, b, num_hidden=w.shape[0])[0]

    def relu(self, x: jax.Array) -> jax.Array:
        return self._apply("Activation", x, act_type="relu")[0]


def forward(
    kernels: Any, layers: Any, x: jax.Array, weights: Iterator[Any], stats: Iterator[Any], new: list
) -> jax.Array:
    """Apply the layers; weights and statistics are taken from the iterators, next statistics appended to `new`."""
    for layer in layers:
        if isinstance(layer, Conv):
            x = kernels.conv(layer, x, next(weights), next(weights) if layer.bias else None)
        elif isinstance(layer, Norm):
            x, *later = kernels.norm(x, next(weights), next(weights), next(stats), next(stats))
            new += later
        elif isinstance(layer, Dense):
            x = kernels.dense(x, next(weights), next(weights))
        elif isinstance(layer, (Relu, Pool, Mean)):
            x = {Relu: kernels.relu, Pool: kernels.pool, Mean: kernels.mean}[type(layer)](x)
        else:
            y = forward(kernels, layer.body, x, weights, stats, new)
            x = kernels.relu(y + forward(kernels, layer.shortcut, x, weights, stats, new))
    return x


def loss_of(kernels: Any, layers: Any, weights: list, stats: list, x: jax.Array, y: jax.Array) -> tuple[jax.Array, Any]:
    """Mean softmax cross-entropy, and the next statistics."""
    new: list[jax.Array] = []
    logits = forward(kernels, layers, x, iter(weights), iter(stats), new)
    picked = jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], axis=1)
    return -picked.mean(), new


def initial(network: str, channels_last: bool) -> tuple[list[jax.Array], list[jax.Array]]:
    """(weights, statistics) of the shared initial values, in the layout of the kernels."""
    weights, stats = [], []
    flat = None
    for name, value in parameters(network).items():
        if channels_last and value.ndim == 4:
            flat = value.shape[0]
            value = value.transpose(2, 3, 1, 0)
        elif channels_last and value.ndim == 2:
            rows, columns = value.shape
            if network == "lenet" and flat is not None:  # the first dense layer sees (H, W, C), not (C, H, W)
                side = int((columns // flat) ** 0.5)
                value = value.reshape(rows, flat, side, side).transpose(0, 2, 3, 1).reshape(rows, columns)
                flat = None
            value = value.T
        (stats if name.endswith(("mean", "var")) else weights).append(jnp.asarray(value))
    return weights, stats


class Hand:
    """The training loop around the jitted step.

    Args:
        network: name in `NETWORKS`.
        data: (images, labels) in (N, C, H, W).
        same_kernels: use dualmx's operator bodies.
        devices: cut each batch over this many devices, by `shard_map`; weights on all of them, gradients averaged.
    """

    def __init__(self, network: str, data: list, same_kernels: bool = False, devices: int = 1):
        kernels = Kernels() if same_kernels else Plain()
        layers = NETWORKS[network]
        weights, stats = initial(network, kernels.channels_last)
        if kernels.channels_last and network != "mlp":
            data = [(x.transpose(0, 2, 3, 1), y) for x, y in data]
        self.data = [(jnp.asarray(x), jnp.asarray(y)) for x, y in data]
        self.state = (weights, [jnp.zeros_like(w) for w in weights], stats)
        self.value: Any = None
        self.at = 0

        def step(weights: list, momenta: list, stats: list, x: jax.Array, y: jax.Array, rate: float) -> Any:
            grad = jax.value_and_grad(partial(loss_of, kernels, layers), has_aux=True)
            (loss, stats), slopes = grad(weights, stats, x, y)
            if devices > 1:
                loss, slopes = lax.pmean((loss, slopes), "device")
            momenta = [MOMENTUM * m - rate * g for m, g in zip(momenta, slopes, strict=True)]
            return [w + m for w, m in zip(weights, momenta, strict=True)], momenta, stats, loss

        run = kernels.through(step)
        if devices > 1:
            mesh = jax.make_mesh((devices,), ("device",))
            everywhere, cut = PartitionSpec(), PartitionSpec("device")
            rows = (everywhere, everywhere, everywhere, cut, cut, everywhere)
            run = jax.shard_map(run, mesh=mesh, in_specs=rows, out_specs=everywhere, check_vma=False)
            self.data = jax.device_put(self.data, NamedSharding(mesh, cut))
            self.state = jax.device_put(self.state, NamedSharding(mesh, everywhere))
        options = kernels.compiler_options
        self.compiled = jax.jit(run, donate_argnums=(0, 1, 2), compiler_options=options)

    def step(self) -> None:
        """One training step, not waited for."""
        x, y = self.data[self.at % len(self.data)]
        self.at += 1
        *state, self.value = self.compiled(*self.state, x, y, LEARNING_RATE)
        self.state = tuple(state)

    def sync(self) -> None:
        """Wait for everything."""
        jax.block_until_ready((self.state, self.value))

    def loss(self) -> float:
        """Mean loss of the last step."""
        return float(self.value)
