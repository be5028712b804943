"""Attention: products for interleaved heads, and ring attention over sequences sharded on a mesh."""

from __future__ import annotations

from functools import partial
from math import sqrt
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec

from ...core.errors import ArgumentError
from ..lowering_context import device_grid, mesh
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


_NAME = "_contrib_dot_product_attention"


@op()
def _contrib_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, *, causal: bool = False, axis: str = ""
) -> jax.Array:
    """softmax(query · keyᵀ / √D) · value for each head.

    Shapes: query (N, H, L, D), key (N, H, K, D), value (N, H, K, V) -> (N, H, L, V).

    Args:
        causal: each position sees itself and those before it only; L and K must be equal.
        axis: axis of the mesh along which sequences are cut. Keys and values travel once around its devices (ring
            attention), so that no device ever holds all of a sequence. Nothing changes off a mesh.

    Reference: Liu, Zaharia, Abbeel 2023, Ring Attention with Blockwise Transformers.

    Example:
        >>> import dualmx as mx
        >>> x = mx.nd.ones((1, 2, 3, 4))
        >>> mx.nd.contrib.dot_product_attention(x, x, x, causal=True).shape
        (1, 2, 3, 4)
    """
    shapes = [x.shape for x in (query, key, value)]
    if any(len(s) != 4 for s in shapes):
        raise ArgumentError(f"{_NAME}: shapes {shapes}: expected (batch, heads, length, width) each")
    (n, h, length, d), k, v = shapes
    if k[:2] != (n, h) or k[3] != d or v[:3] != k[:3]:
        raise ArgumentError(f"{_NAME}: key {k} and value {v} do not fit query {shapes[0]}")
    if causal and length != k[2]:
        raise ArgumentError(f"{_NAME}: causal=True: {length} queries and {k[2]} keys: expected as many")
    there = mesh()
    if not axis or there is None:
        return _attend_at_once(query, key, value, causal)
    spec = (None, None, axis)
    for what, shape in (("query", shapes[0]), ("key", k)):
        there.sharding(spec, shape, f"{_NAME}: {what}")
    parts = PartitionSpec(*spec)
    ring = jax.shard_map(
        partial(_ring, axis, there.axes[axis], causal),
        mesh=device_grid(),
        in_specs=(parts, parts, parts),
        out_specs=parts,
        axis_names={axis},
        check_vma=False,
    )
    return ring(query, key, value)


def _wide(x: jax.Array) -> jax.Array:
    return x.astype(jnp.promote_types(x.dtype, jnp.float32))


def _masked_scores(query: jax.Array, key: jax.Array, causal: bool, ahead: Any) -> jax.Array:
    """Scaled products; those of keys after their query, which stands `ahead` of the first key, are far below others."""
    query = _wide(query)
    out = jnp.einsum("nhqd,nhkd->nhqk", query * jnp.asarray(1 / sqrt(query.shape[-1]), query.dtype), _wide(key))
    if not causal:
        return out
    q, k = (lax.broadcasted_iota(jnp.int32, out.shape[2:], i) for i in (0, 1))
    return jnp.where(q + ahead >= k, out, jnp.asarray(jnp.finfo(out.dtype).min / 2, out.dtype))


def _attend_at_once(query: jax.Array, key: jax.Array, value: jax.Array, causal: bool) -> jax.Array:
    weights = jax.nn.softmax(_masked_scores(query, key, causal, 0), axis=-1)
    return jnp.einsum("nhqk,nhkd->nhqd", weights, _wide(value)).astype(query.dtype)


@partial(jax.custom_vjp, nondiff_argnums=(0, 1, 2))
def _ring(axis: str, size: int, causal: bool, query: jax.Array, key: jax.Array, value: jax.Array) -> jax.Array:
    return _ring_forward(axis, size, causal, query, key, value)[0]


def _turn(axis: str, size: int, values: Any) -> Any:
    """Hand values to the next device of the ring."""
    return lax.ppermute(values, axis, [(i, (i + 1) % size) for i in range(size)])


def _ahead(axis: str, size: int, step: Any, length: int) -> Any:
    """How far this device's queries stand ahead of the keys it holds at a step: those of `step` devices before it."""
    here = lax.axis_index(axis)
    return (here - (here - step) % size) * length


def _ring_forward(axis: str, size: int, causal: bool, query: Any, key: Any, value: Any) -> Any:
    """Softmax over blocks of keys: maximum, sum and weighted values are carried from block to block."""
    length = query.shape[2]

    def step(number: Any, carried: Any) -> Any:
        k, v, top, total, out = carried
        scores = _masked_scores(query, k, causal, _ahead(axis, size, number, length))
        new = jnp.maximum(top, scores.max(-1))
        weights = jnp.exp(scores - new[..., None])
        shrink = jnp.exp(top - new)
        out = out * shrink[..., None] + jnp.einsum("nhqk,nhkd->nhqd", weights, _wide(v))
        return *_turn(axis, size, (k, v)), new, total * shrink + weights.sum(-1), out

    wide = _wide(query)
    rows = wide[..., 0]
    start = (jnp.full_like(rows, -jnp.inf), jnp.zeros_like(rows), jnp.zeros((*rows.shape, value.shape[3]), wide.dtype))
    # A device begins with its own keys, of which each query sees one at least.
    _, _, top, total, out = lax.fori_loop(0, size, step, (key, value, *start))
    out = (out / total[..., None]).astype(query.dtype)
    return out, (query, key, value, out, top + jnp.log(total))


def _ring_backward(axis: str, size: int, causal: bool, saved: Any, gradient: Any) -> Any:
    """Keys, values and their gradients travel around the ring; the weights are computed again."""
    query, key, value, out, level = saved
    length, wide = query.shape[2], _wide(gradient)
    scale = jnp.asarray(1 / sqrt(query.shape[-1]), wide.dtype)
    mean = (wide * _wide(out)).sum(-1)

    def step(number: Any, carried: Any) -> Any:
        k, v, dq, dk, dv = carried
        weights = jnp.exp(_masked_scores(query, k, causal, _ahead(axis, size, number, length)) - level[..., None])
        dv = dv + jnp.einsum("nhqk,nhqd->nhkd", weights, wide)
        ds = weights * (jnp.einsum("nhqd,nhkd->nhqk", wide, _wide(v)) - mean[..., None]) * scale
        dq = dq + jnp.einsum("nhqk,nhkd->nhqd", ds, _wide(k))
        dk = dk + jnp.einsum("nhqk,nhqd->nhkd", ds, _wide(query))
        k, v, dk, dv = _turn(axis, size, (k, v, dk, dv))
        return k, v, dq, dk, dv

    start = [jnp.zeros_like(_wide(x)) for x in (query, key, value)]
    _, _, *found = lax.fori_loop(0, size, step, (key, value, *start))
    return tuple(g.astype(x.dtype) for g, x in zip(found, (query, key, value), strict=True))


_ring.defvjp(_ring_forward, _ring_backward)
