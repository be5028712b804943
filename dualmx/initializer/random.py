"""Random initializers; they draw from the stream that `mx.random.seed` sets."""

from __future__ import annotations

import math

import numpy as np

from ..compile.devices import aligned_empty
from ..core.argcheck import number
from ..core.errors import ArgumentError
from ..core.rng import rng_streams
from ..ndarray import NDArray, array
from ..ndarray.interop import assign_numpy
from .base import Initializer, register

_FLOAT32 = np.dtype(np.float32)


def fill(arr: NDArray, values: np.ndarray) -> None:
    """Overwrite `arr` with host `values`: drawing on the host compiles nothing."""
    arr[:] = array(values, ctx=arr.context, dtype=arr.dtype)


def fill_uniform(arr: NDArray, bound: float) -> None:
    """Overwrite `arr` with draws from [-bound, bound)."""
    draws = aligned_empty(arr.shape, _FLOAT32)
    rng_streams.generator(arr.context).random(out=draws, dtype=np.float32)
    draws *= 2 * bound
    draws -= np.float32(bound)
    _take_over(arr, draws)


def fill_normal(arr: NDArray, sigma: float) -> None:
    """Overwrite `arr` with draws from N(0, sigma ** 2)."""
    draws = aligned_empty(arr.shape, _FLOAT32)
    rng_streams.generator(arr.context).standard_normal(out=draws, dtype=np.float32)
    draws *= np.float32(sigma)
    _take_over(arr, draws)


def _take_over(arr: NDArray, draws: np.ndarray) -> None:
    """Overwrite `arr` with draws, by their own memory if it can: a table of embeddings may need most that there is."""
    draws.flags.writeable = False
    assign_numpy(arr, draws)


@register
class Uniform(Initializer):
    """Weights from the uniform distribution over [-scale, scale].

    Args:
        scale: the bound.
    """

    def __init__(self, scale: float = 0.07):
        super().__init__(scale=scale)
        self.scale = number("Uniform", "scale", scale)

    def _init_weight(self, name: str, arr: NDArray) -> None:
        fill_uniform(arr, self.scale)


@register
class Normal(Initializer):
    """Weights from the normal distribution N(0, sigma ** 2).

    Args:
        sigma: standard deviation.
    """

    def __init__(self, sigma: float = 0.01):
        super().__init__(sigma=sigma)
        self.sigma = number("Normal", "sigma", sigma)

    def _init_weight(self, name: str, arr: NDArray) -> None:
        fill_normal(arr, self.sigma)


@register
class Orthogonal(Initializer):
    """Weights whose rows (or columns, if fewer) are orthogonal, of length `scale` (Saxe et al., 2013).

    Args:
        scale: length of the vectors.
        rand_type: distribution of the matrix that is orthogonalised, `"uniform"` or `"normal"`.
    """

    def __init__(self, scale: float = 1.414, rand_type: str = "uniform"):
        super().__init__(scale=scale, rand_type=rand_type)
        if rand_type not in ("uniform", "normal"):
            raise ArgumentError(f"Orthogonal: rand_type={rand_type!r}: expected 'uniform' or 'normal'")
        self.scale = number("Uniform", "scale", scale)
        self.rand_type = rand_type

    def _init_weight(self, name: str, arr: NDArray) -> None:
        rows, cols = arr.shape[0], math.prod(arr.shape[1:])
        draw = rng_streams.generator(arr.context)
        raw = draw.uniform(-1.0, 1.0, (rows, cols)) if self.rand_type == "uniform" else draw.normal(size=(rows, cols))
        u, _, v = np.linalg.svd(raw, full_matrices=False)
        made = self.scale * (u if u.shape == raw.shape else v)
        fill(arr, made.reshape(arr.shape))


@register
class Xavier(Initializer):
    """Weights whose scale keeps the variance of signals (Glorot & Bengio, 2010): `sqrt(magnitude / fan)`.

    `fan_in = shape[1] * prod(shape[2:])`, `fan_out = shape[0] * prod(shape[2:])`.

    Args:
        rnd_type: `"uniform"` over ±scale, or `"gaussian"` with the scale as standard deviation.
        factor_type: the fan: `"avg"` of both, `"in"` or `"out"`.
        magnitude: see the formula.

    Raises:
        ArgumentError: unknown `rnd_type` or `factor_type`; on use, a weight of fewer than two axes.

    Example:
        >>> import dualmx as mx
        >>> w = mx.nd.zeros((10, 20))
        >>> Xavier()("fc_weight", w)
        >>> bool(abs(w.asnumpy()).max() <= (3 / 15) ** 0.5)
        True
    """

    def __init__(self, rnd_type: str = "uniform", factor_type: str = "avg", magnitude: float = 3):
        super().__init__(rnd_type=rnd_type, factor_type=factor_type, magnitude=magnitude)
        if rnd_type not in ("uniform", "gaussian"):
            raise ArgumentError(f"Xavier: rnd_type={rnd_type!r}: expected 'uniform' or 'gaussian'")
        if factor_type not in ("avg", "in", "out"):
            raise ArgumentError(f"Xavier: factor_type={factor_type!r}: expected 'avg', 'in' or 'out'")
        self.rnd_type = rnd_type
        self.factor_type = factor_type
        self.magnitude = float(magnitude)

    def _init_weight(self, name: str, arr: NDArray) -> None:
        shape = arr.shape
        if len(shape) < 2:
            raise ArgumentError(
                f"{type(self).__name__}: {str(name)!r} has shape {shape}: expected two axes or more; "
                "initialize vectors with another initializer"
            )
        window = math.prod(shape[2:])
        fans = {"in": shape[1] * window, "out": shape[0] * window, "avg": (shape[0] + shape[1]) * window / 2.0}
        scale = math.sqrt(self.magnitude / fans[self.factor_type])
        if self.rnd_type == "uniform":
            fill_uniform(arr, scale)
        else:
            fill_normal(arr, scale)


@register
class MSRAPrelu(Xavier):
    """`Xavier` for layers followed by a (leaky) rectifier (He et al., 2015): gaussian, magnitude `2 / (1 + slope**2)`.

    Args:
        factor_type: see `Xavier`.
        slope: slope of the rectifier for negative values.
    """

    def __init__(self, factor_type: str = "avg", slope: float = 0.25):
        super().__init__("gaussian", factor_type, 2.0 / (1 + slope**2))
        self._kwargs = {"factor_type": factor_type, "slope": slope}


__all__ = ["MSRAPrelu", "Normal", "Orthogonal", "Uniform", "Xavier"]
