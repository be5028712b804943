"""Operators about storage types, as they act on dense values, and the second names that MXNet has for sparse arrays."""

from __future__ import annotations

from typing import Literal

import jax
import jax.numpy as jnp

from ...core.errors import ArgumentError
from ..registry import OPS, op
from ..schema import Tensor, UntypedTensor


@op(aliases=("_sparse_cast_storage",))
def cast_storage(data: Tensor, *, stype: Literal["default", "row_sparse", "csr"]) -> jax.Array:
    """The same values in the storage type `stype`; from one sparse type to the other by way of the default one."""
    return data


@op(name="_sparse_retain")
def sparse_retain(data: Tensor, indices: UntypedTensor) -> jax.Array:
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


# Names under which graphs of `mx.np` and `mx.npx` hold operators: new name -> known one.
NUMPY_NAMES = {
    "_np_amax": "_np_max", "_np_amin": "_np_min", "_np_copy": "_copy", "_np_product": "_np_prod",
    "_np_sometrue": "_np_any", "_npi_abs": "_npi_absolute", "_npi_boolean_mask": "_contrib_boolean_mask",
    "_npi_nonzero": "_npx_nonzero", "_npi_reshape": "_npx_reshape", "_npi_rnn_param_concat": "_rnn_param_concat",
    "_npx_multibox_detection": "_contrib_MultiBoxDetection", "_npx_multibox_prior": "_contrib_MultiBoxPrior",
    "_npx_multibox_target": "_contrib_MultiBoxTarget", "_npx_relu": "relu", "_npx_roi_pooling": "ROIPooling",
    "_npx_sigmoid": "sigmoid",
}  # fmt: skip


def name_again() -> None:
    """Register further names of operators, which must be there."""
    images = {f"_npx_{n}": n for n in OPS if n.startswith("_image_")}
    sparse = {f"_sparse_{n}": n for n in SPARSE_NAMES} | {"_sparse_concat": "Concat"}
    for again, known in (NUMPY_NAMES | images | sparse).items():
        if again not in OPS:
            OPS[again] = OPS[known]
            OPS[known].aliases = (*OPS[known].aliases, again)


__all__ = ["NUMPY_NAMES", "SPARSE_NAMES", "cast_storage", "name_again", "sparse_retain"]
