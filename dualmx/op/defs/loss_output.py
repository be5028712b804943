"""Output layers: predictions in the forward pass, the gradient of a loss in the backward pass."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp

from ...core.errors import ArgumentError
from ..registry import op
from ..schema import Fraction, Tensor, UntypedTensor
from ..spatial import check_float, known, widen


class _Softmax(NamedTuple):
    """Static parameters of SoftmaxOutput."""

    grad_scale: float
    ignore_label: float
    multi_output: bool
    use_ignore: bool
    preserve_shape: bool
    normalization: str
    out_grad: bool
    smooth_alpha: float


def _rows(x: jax.Array, p: _Softmax) -> jax.Array:
    """View of data-shaped x as (samples, classes, positions)."""
    if p.multi_output:
        return x.reshape(x.shape[0], x.shape[1], math.prod(x.shape[2:]))
    if p.preserve_shape:
        return x.reshape(math.prod(x.shape[:-1]), x.shape[-1], 1)
    return x.reshape(x.shape[0], math.prod(x.shape[1:]), 1)


def _softmax_rows(data: jax.Array, p: _Softmax) -> jax.Array:
    return jax.nn.softmax(widen(_rows(data, p)), 1).reshape(data.shape).astype(data.dtype)


@partial(jax.custom_vjp, nondiff_argnums=(2,))
def _softmax_output(data: jax.Array, label: jax.Array, p: _Softmax) -> jax.Array:
    return _softmax_rows(data, p)


def _softmax_fwd(data: jax.Array, label: jax.Array, p: _Softmax) -> tuple[jax.Array, Any]:
    out = _softmax_rows(data, p)
    return out, (out, label)


def _softmax_bwd(p: _Softmax, res: tuple[jax.Array, jax.Array], head: jax.Array) -> tuple[jax.Array, None]:
    out, label = res
    prob = widen(out)
    if label.shape == out.shape:
        grad = (prob - label.astype(prob.dtype)) * p.grad_scale
    else:
        rows = _rows(prob, p)
        n, classes, positions = rows.shape
        wanted = label.astype(jnp.int32).reshape(n, 1, positions)
        hit = jnp.arange(classes, dtype=jnp.int32)[:, None] == wanted
        other = p.smooth_alpha / (classes - 1) if classes > 1 else 0.0
        grad = rows - jnp.where(hit, 1 - p.smooth_alpha, other).astype(rows.dtype)
        ignored = wanted == int(p.ignore_label)
        if p.use_ignore:
            grad = jnp.where(ignored, 0, grad)
        scale: Any = p.grad_scale
        if p.normalization == "valid":
            scale = scale / jnp.maximum(jnp.sum(~ignored, dtype=jnp.int32), 1).astype(rows.dtype)
        else:
            scale = scale / (positions * (n if p.normalization == "batch" else 1))
        grad = (grad * scale).reshape(out.shape)
    if p.out_grad:
        grad = grad * head
    return grad.astype(out.dtype), None


_softmax_output.defvjp(_softmax_fwd, _softmax_bwd)


def _softmax_label(p: Any, shapes: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    data = shapes.get("data")
    if not data or shapes.get("label") == data:
        return {}
    if p.multi_output:
        label = (data[0], math.prod(data[2:]))
    else:
        label = data[:-1] if p.preserve_shape else data[:1]
    return {"label": label} if known(*label) else {}


@op(aliases=("Softmax",), complete=_softmax_label)
def SoftmaxOutput(
    data: Tensor,
    label: UntypedTensor,
    *,
    grad_scale: float = 1.0,
    ignore_label: float = -1.0,
    multi_output: bool = False,
    use_ignore: bool = False,
    preserve_shape: bool = False,
    normalization: Literal["null", "batch", "valid"] = "null",
    out_grad: bool = False,
    smooth_alpha: Fraction = 0.0,
) -> jax.Array:
    """Softmax forward; backward the gradient of its cross entropy with the label, whatever the head gradient.

    Gradient: `(p − t) · grad_scale / z`, with t one-hot (1 − smooth_alpha on the class, smooth_alpha/(K − 1) elsewhere)
    and z = 1 ("null"), the batch size ("batch") or the number of labels other than ignore_label ("valid"). With
    `use_ignore`, positions labelled `ignore_label` get gradient 0; with `out_grad`, it is multiplied by the head
    gradient. The label gets no gradient.

    Shapes: data (N, K) and label (N,); with `multi_output` data (N, K, …), label (N, …) or (N, positions), and z is
    also multiplied by the positions unless "valid"; with `preserve_shape` data (…, K), label (…,). A label with
    data's shape is a probability distribution, whose gradient is `(p − label) · grad_scale`.
    """
    check_float("SoftmaxOutput", data)
    if data.ndim < 1 or (multi_output and data.ndim < 2):
        raise ArgumentError(f"SoftmaxOutput: data has shape {data.shape}: expected (N, classes, …)")
    p = _Softmax(
        grad_scale, ignore_label, multi_output, use_ignore, preserve_shape, normalization, out_grad, smooth_alpha
    )
    if label.shape != data.shape:
        n, _, positions = (int(v) for v in jax.eval_shape(lambda x: _rows(x, p), data).shape)
        if math.prod(label.shape) != n * positions or label.ndim == 0:
            raise ArgumentError(
                f"SoftmaxOutput: label has shape {label.shape}: expected {n * positions} class numbers for data "
                f"{data.shape}; set multi_output (classes on axis 1) or preserve_shape (classes last) for one class "
                "per position"
            )
    return _softmax_output(data, label, p)


def _regression_shapes(p: Any, shapes: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    data, label = shapes.get("data"), shapes.get("label")
    if not data or not known(*data):
        return {}
    if label and known(*label) and label[0] == data[0] and math.prod(label) == math.prod(data):
        return {}  # as many numbers for each sample, in whatever shape
    return {"label": data[:1] if len(data) == 2 and data[1] == 1 else data}


_REGRESSIONS: dict[str, tuple[Any, Any]] = {
    "linear": (lambda x: x, lambda out, label: out - label),
    "mae": (lambda x: x, lambda out, label: jnp.sign(out - label)),
    "logistic": (jax.nn.sigmoid, lambda out, label: out - label),
}


@partial(jax.custom_vjp, nondiff_argnums=(2, 3))
def _regress(data: jax.Array, label: jax.Array, kind: str, grad_scale: float) -> jax.Array:
    return _REGRESSIONS[kind][0](data)


def _regress_fwd(data: jax.Array, label: jax.Array, kind: str, grad_scale: float) -> tuple[jax.Array, Any]:
    out = _REGRESSIONS[kind][0](data)
    return out, (out, label)


def _regress_bwd(kind: str, grad_scale: float, res: Any, head: jax.Array) -> tuple[jax.Array, jax.Array]:
    out, label = res
    scale = grad_scale * out.shape[0] / max(out.size, 1)
    grad = _REGRESSIONS[kind][1](out, label.reshape(out.shape)) * scale
    return grad.astype(out.dtype), jnp.zeros_like(label)


_regress.defvjp(_regress_fwd, _regress_bwd)


def _regression(name: str, data: jax.Array, label: jax.Array, kind: str, grad_scale: float) -> jax.Array:
    check_float(name, data)
    if data.ndim == 0 or label.shape[:1] != data.shape[:1] or label.size != data.size:
        raise ArgumentError(f"{name}: label has shape {label.shape}: expected the data's, {data.shape}")
    return _regress(data, label, kind, grad_scale)


@op(complete=_regression_shapes)
def LinearRegressionOutput(data: Tensor, label: Tensor, *, grad_scale: float = 1.0) -> jax.Array:
    """The data forward; backward `(data − label) · grad_scale / outputs per sample`, whatever the head gradient.

    Shapes: data (N, …), label the same (or (N,) for data (N, 1)). The label gets gradient 0.
    """
    return _regression("LinearRegressionOutput", data, label, "linear", grad_scale)


@op(complete=_regression_shapes)
def MAERegressionOutput(data: Tensor, label: Tensor, *, grad_scale: float = 1.0) -> jax.Array:
    """The data forward; backward `sign(data − label) · grad_scale / outputs per sample`, whatever the head gradient.

    Shapes: data (N, …), label the same (or (N,) for data (N, 1)). The label gets gradient 0.
    """
    return _regression("MAERegressionOutput", data, label, "mae", grad_scale)


@op(complete=_regression_shapes)
def LogisticRegressionOutput(data: Tensor, label: Tensor, *, grad_scale: float = 1.0) -> jax.Array:
    """`sigmoid(data)` forward; backward `(sigmoid(data) − label) · grad_scale / outputs per sample`.

    The head gradient is ignored. Shapes: data (N, …), label the same (or (N,) for data (N, 1)). The label gets
    gradient 0.
    """
    return _regression("LogisticRegressionOutput", data, label, "logistic", grad_scale)


@partial(jax.custom_vjp, nondiff_argnums=(1, 2, 3))
def _make_loss(data: jax.Array, grad_scale: float, valid_thresh: float, normalization: str) -> jax.Array:
    return data


def _make_loss_fwd(
    data: jax.Array, grad_scale: float, valid_thresh: float, normalization: str
) -> tuple[jax.Array, jax.Array]:
    return data, data


def _make_loss_bwd(
    grad_scale: float, valid_thresh: float, normalization: str, data: jax.Array, head: jax.Array
) -> tuple[jax.Array]:
    if normalization == "valid":
        count = jnp.maximum(jnp.sum(data > valid_thresh, dtype=jnp.int32), 1)
        return (jnp.broadcast_to(grad_scale / count.astype(data.dtype), data.shape),)
    share = data.shape[0] if normalization == "batch" and data.ndim else 1
    return (jnp.full(data.shape, grad_scale / share, data.dtype),)


_make_loss.defvjp(_make_loss_fwd, _make_loss_bwd)


@op()
def MakeLoss(
    data: Tensor,
    *,
    grad_scale: float = 1.0,
    valid_thresh: float = 0.0,
    normalization: Literal["null", "batch", "valid"] = "null",
) -> jax.Array:
    """The data forward; backward `grad_scale / z` for each element, whatever the head gradient.

    z is 1 ("null"), the batch size ("batch") or the number of elements above valid_thresh ("valid"). Shapes: any, kept.
    """
    check_float("MakeLoss", data)
    return _make_loss(data, grad_scale, valid_thresh, normalization)


@partial(jax.custom_vjp, nondiff_argnums=(2, 3, 4))
def _svm(data: jax.Array, label: jax.Array, margin: float, weight: float, linear: bool) -> jax.Array:
    return data


def _svm_fwd(data: jax.Array, label: jax.Array, margin: float, weight: float, linear: bool) -> tuple[jax.Array, Any]:
    return data, (data, label)


def _svm_bwd(margin: float, weight: float, linear: bool, res: Any, head: jax.Array) -> tuple[jax.Array, None]:
    data, label = res
    x = data.reshape(label.size, -1)
    hit = jnp.arange(x.shape[1], dtype=jnp.int32) == label.astype(jnp.int32).reshape(-1, 1)
    sign = jnp.where(hit, -1, 1).astype(x.dtype)
    lack = margin + sign * x
    grad = sign * weight * (jnp.where(lack > 0, 1, 0).astype(x.dtype) if linear else 2 * jnp.maximum(lack, 0))
    return grad.reshape(data.shape).astype(data.dtype), None


_svm.defvjp(_svm_fwd, _svm_bwd)


def _svm_label(p: Any, shapes: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    data = shapes.get("data")
    return {"label": data[:-1]} if data and len(data) > 1 and known(*data[:-1]) else {}


@op(complete=_svm_label)
def SVMOutput(
    data: Tensor,
    label: UntypedTensor,
    *,
    margin: float = 1.0,
    regularization_coefficient: float = 1.0,
    use_linear: bool = False,
) -> jax.Array:
    """The data forward; backward the gradient of one-versus-all hinge losses, whatever the head gradient.

    With y = 1 for the labelled class and −1 for the others and h = max(0, margin − y·x), the loss is
    regularization_coefficient · h² (h with `use_linear`). Shapes: data (…, K), label (…,) of class numbers.
    """
    check_float("SVMOutput", data)
    if data.ndim < 2 or label.shape != data.shape[:-1]:
        raise ArgumentError(f"SVMOutput: label has shape {label.shape}: expected {data.shape[:-1]} for {data.shape}")
    return _svm(data, label, margin, regularization_coefficient, use_linear)
