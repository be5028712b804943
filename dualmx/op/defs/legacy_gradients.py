"""Gradients of four operators under the names that MXNet gives them in `contrib`."""

from __future__ import annotations

from typing import Any

import jax

from ..registry import OPS, op
from ..schema import Tensor, UntypedTensor


def _pulled(name: str, heads: tuple[jax.Array, ...], inputs: tuple[jax.Array, ...], **params: Any) -> tuple[Any, ...]:
    call = OPS[name].call(**params)
    _, back = jax.vjp(lambda *given: call.apply(given), *inputs)
    return back(heads)


@op()
def _contrib_backward_gradientmultiplier(data: Tensor, *, scalar: float = 1.0, is_int: bool = True) -> jax.Array:
    """The gradient of `gradientmultiplier`: data · scalar. Shapes: any."""
    return data * jax.numpy.asarray(scalar, data.dtype)


@op()
def _contrib_backward_quadratic(
    ograd: Tensor, data: Tensor, *, a: float = 0.0, b: float = 0.0, c: float = 0.0
) -> jax.Array:
    """The gradient of `quadratic`: ograd · (2 · a · data + b). Shapes: ograd and data equal."""
    return _pulled("_contrib_quadratic", (ograd,), (data,), a=a, b=b, c=c)[0]


@op(outputs=2)
def _contrib_backward_index_copy(
    ograd: Tensor, old_tensor: Tensor, index_vector: UntypedTensor, new_tensor: Tensor
) -> tuple[jax.Array, jax.Array]:
    """The gradients of `index_copy` with respect to the old and the new tensor. Shapes: as `index_copy`."""

    def copy(old: jax.Array, new: jax.Array) -> tuple[jax.Array, ...]:
        return OPS["_contrib_index_copy"].call().apply((old, index_vector, new))

    _, back = jax.vjp(copy, old_tensor, new_tensor)
    return back((ograd,))


@op(outputs=3)
def _contrib_backward_hawkesll(
    ograd: Tensor,
    lda: Tensor,
    alpha: Tensor,
    beta: Tensor,
    state: Tensor,
    lags: Tensor,
    marks: UntypedTensor,
    valid_length: Tensor,
    max_time: Tensor,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The gradients of `hawkesll`'s log likelihood with respect to lda, alpha and beta. Shapes: as `hawkesll`."""
    rest = (state, lags, marks, valid_length, max_time)

    def likelihood(*given: jax.Array) -> jax.Array:
        return OPS["_contrib_hawkesll"].call().apply((*given, *rest))[0]

    _, back = jax.vjp(likelihood, lda, alpha, beta)
    return back(ograd)
