"""Fourier transforms in MXNet's interleaved form, and sketches."""

from __future__ import annotations

from typing import Annotated

import jax
import jax.numpy as jnp

from ...core.errors import ArgumentError
from ..registry import op
from ..schema import Ignored, Positive, Tensor
from ..spatial import check_float, widen


def _rows(name: str, data: jax.Array) -> None:
    check_float(name, data)
    if data.ndim not in (2, 4):
        raise ArgumentError(f"{name}: data has shape {data.shape}: expected 2 or 4 axes, the last one transformed")


@op()
def _contrib_fft(data: Tensor, *, compute_size: Annotated[int, Ignored] = 128) -> jax.Array:
    """Discrete Fourier transform of the last axis, real and imaginary parts interleaved.

    out[2k] and out[2k + 1] are the parts of Σ xⱼ e^(-2πijk/d).
    Shapes: data (N, d) or (N, C, H, d) -> the same with 2d. Example: `nd.contrib.fft(nd.array([[1.0, 2.0]]))` is
    `[[3, 0, -1, 0]]`.
    """
    _rows("_contrib_fft", data)
    found = jnp.fft.fft(widen(data), axis=-1)
    parts = jnp.stack([found.real, found.imag], -1)
    return parts.reshape(*data.shape[:-1], 2 * data.shape[-1]).astype(data.dtype)


@op()
def _contrib_ifft(data: Tensor, *, compute_size: Annotated[int, Ignored] = 128) -> jax.Array:
    """Real part of the inverse transform of interleaved real and imaginary parts, times the length d.

    Shapes: data (N, 2d) or (N, C, H, 2d) -> the same with d. `ifft(fft(x)) / d` is x. Example:
    `nd.contrib.ifft(nd.array([[3.0, 0, -1, 0]]))` is `[[2, 4]]`.
    """
    _rows("_contrib_ifft", data)
    if data.shape[-1] % 2:
        raise ArgumentError(f"_contrib_ifft: data has shape {data.shape}: expected pairs of real and imaginary part")
    d = data.shape[-1] // 2
    parts = widen(data).reshape(*data.shape[:-1], d, 2)
    found = jnp.fft.ifft(parts[..., 0] + 1j * parts[..., 1], axis=-1)
    return (found.real * d).astype(data.dtype)


@op()
def _contrib_count_sketch(
    data: Tensor, h: Tensor, s: Tensor, *, out_dim: Positive, processing_batch_size: Annotated[int, Ignored] = 32
) -> jax.Array:
    """Count sketch: out[:, h[i]] += s[i] · data[:, i].

    Shapes: data (N, d), h (1, d) or (d,) with values in [0, out_dim), s like h, of 1 and -1 -> (N, out_dim). `h` and
    `s` get no gradient. Reference: Charikar et al., "Finding Frequent Items in Data Streams".
    """
    name = "_contrib_count_sketch"
    if data.ndim not in (2, 4):
        raise ArgumentError(f"{name}: data has shape {data.shape}: expected 2 or 4 axes, the last one sketched")
    d = data.shape[-1]
    for what, given in (("h", h), ("s", s)):
        if given.size != d:
            raise ArgumentError(f"{name}: {what} has shape {given.shape}: expected (1, {d}), one number per column")
    at = jax.lax.stop_gradient(h).ravel().astype(jnp.int32)
    signed = data * jax.lax.stop_gradient(s).ravel()
    out = jnp.zeros((*data.shape[:-1], out_dim), data.dtype)
    return out.at[..., at].add(signed, mode="drop")
