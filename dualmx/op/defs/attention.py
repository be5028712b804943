"""Products of multi-head attention on projections whose heads lie side by side."""

from __future__ import annotations

from math import sqrt

import jax
import jax.numpy as jnp

from ...core.errors import ArgumentError
from ..registry import op
from ..schema import Positive, Tensor
from ..spatial import check_shape


def _heads(name: str, data: jax.Array, heads: int, parts: int) -> list[jax.Array]:
    """Split (length, batch, heads · parts · width) into `parts` arrays (length, batch, heads, width)."""
    if data.ndim != 3 or data.shape[2] % (heads * parts):
        raise ArgumentError(
            f"{name}: projections of shape {data.shape}: expected (length, batch, {heads} heads * {parts} * width)"
        )
    split = data.reshape(*data.shape[:2], heads, parts, -1)
    return [split[:, :, :, k] for k in range(parts)]


def _scores(queries: jax.Array, keys: jax.Array) -> jax.Array:
    """Scaled products (batch · heads, length of queries, length of keys)."""
    scaled = queries * jnp.asarray(1 / sqrt(queries.shape[-1]), queries.dtype)
    out = jnp.einsum("qbhd,kbhd->bhqk", scaled, keys)
    return out.reshape(-1, *out.shape[2:])


def _mix(name: str, attention: jax.Array, values: jax.Array) -> jax.Array:
    """Means of `values` (keys, batch, heads, width) weighted by `attention`: (queries, batch, heads · width)."""
    length, batch, heads, width = values.shape
    if attention.ndim != 3:
        raise ArgumentError(f"{name}: attention has shape {attention.shape}: expected (batch * heads, queries, keys)")
    wanted = (batch * heads, attention.shape[1], length)
    check_shape(name, "attention", attention.shape, wanted, "batch * heads, queries, keys")
    out = jnp.einsum("bhqk,kbhd->qbhd", attention.reshape(batch, heads, -1, length), values)
    return out.reshape(-1, batch, heads * width)


@op()
def _contrib_interleaved_matmul_selfatt_qk(queries_keys_values: Tensor, *, heads: Positive) -> jax.Array:
    """Attention scores q·kᵀ / √D of self-attention; each head's queries, keys, values lie side by side.

    Shapes: queries_keys_values (L, N, heads · 3 · D) -> (N · heads, L, L).
    """
    queries, keys, _ = _heads("_contrib_interleaved_matmul_selfatt_qk", queries_keys_values, heads, 3)
    return _scores(queries, keys)


@op()
def _contrib_interleaved_matmul_selfatt_valatt(
    queries_keys_values: Tensor, attention: Tensor, *, heads: Positive
) -> jax.Array:
    """Values weighted by the attention of self-attention.

    Shapes: queries_keys_values (L, N, heads · 3 · D), attention (N · heads, L, L) -> (L, N, heads · D).
    """
    name = "_contrib_interleaved_matmul_selfatt_valatt"
    return _mix(name, attention, _heads(name, queries_keys_values, heads, 3)[2])


@op()
def _contrib_interleaved_matmul_encdec_qk(queries: Tensor, keys_values: Tensor, *, heads: Positive) -> jax.Array:
    """Attention scores q·kᵀ / √D of a decoder's queries on an encoder's keys.

    Shapes: queries (Lq, N, heads · D), keys_values (Lk, N, heads · 2 · D) -> (N · heads, Lq, Lk).
    """
    name = "_contrib_interleaved_matmul_encdec_qk"
    (asked,), (keys, _) = _heads(name, queries, heads, 1), _heads(name, keys_values, heads, 2)
    check_shape(name, "queries", queries.shape[1:], (keys.shape[1], heads * keys.shape[3]), "batch, heads * width")
    return _scores(asked, keys)


@op()
def _contrib_interleaved_matmul_encdec_valatt(keys_values: Tensor, attention: Tensor, *, heads: Positive) -> jax.Array:
    """An encoder's values weighted by the attention of a decoder.

    Shapes: keys_values (Lk, N, heads · 2 · D), attention (N · heads, Lq, Lk) -> (Lq, N, heads · D).
    """
    name = "_contrib_interleaved_matmul_encdec_valatt"
    return _mix(name, attention, _heads(name, keys_values, heads, 2)[1])
