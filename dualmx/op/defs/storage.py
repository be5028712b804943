"""Operators about storage types, as they act on dense values, and the second names that MXNet has for sparse arrays."""

from __future__ import annotations

from typing import Literal

import jax
import jax.numpy as jnp

from ...core.errors import ArgumentError
from ..registry import OPS, op
from ..schema import Free, Tensor


@op(aliases=("_sparse_cast_storage",))
def cast_storage(data: Tensor, *, stype: Literal["default", "row_sparse", "csr"]) -> jax.Array:
    """The same values in the storage type `stype`; from one sparse type to the other by way of the default one."""
    return data


@op(name="_sparse_retain")
def sparse_retain(data: Tensor, indices: Free) -> jax.Array:
    """The rows `indices` of the row_sparse array `data`; all other rows become zero."""
    if indices.ndim != 1:
        raise ArgumentError(f"indices has shape {indices.shape}: expected one axis")
    kept = jnp.zeros(data.shape[0], jnp.bool_).at[indices.astype(jnp.int32)].set(True, mode="drop")
    return jnp.where(kept.reshape(-1, *[1] * (data.ndim - 1)), data, 0)


# Operators that compute on stored elements without having a definition of their own here.
SPARSE_NAMES = (
    "Embedding", "FullyConnected", "LinearRegressionOutput", "LogisticRegressionOutput", "MAERegressionOutput",
    "adam_update", "dot", "ftrl_update", "sgd_mom_update", "sgd_update", "sigmoid", "slice", "where",
)  # fmt: skip


def name_again() -> None:
    """Register the names that begin with `_sparse_`; the operators must be there."""
    for name, known in (*((n, n) for n in SPARSE_NAMES), ("concat", "Concat")):
        again = f"_sparse_{name}"
        if again not in OPS:
            OPS[again] = OPS[known]
            OPS[known].aliases = (*OPS[known].aliases, again)


__all__ = ["SPARSE_NAMES", "cast_storage", "name_again", "sparse_retain"]
