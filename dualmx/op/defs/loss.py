"""Softmax, cross entropy, output layers with the gradient of a loss, CTC, sparseness penalty, Hawkes likelihood."""

from __future__ import annotations

import math
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...core.dtypes import is_float
from ...core.errors import ArgumentError
from ..registry import op
from ..runtime_scalars import Params, define_runtime_form, faithful
from ..schema import ABSENT, Aux, Fraction, OptDType, Tensor, Train, UntypedTensor, When
from ..shape_rules import accumulator
from ..spatial import check_float, check_shape, known, widen
from ..traits import LOSS, Traits


def _axis(name: str, axis: int, data: jax.Array) -> int:
    # A 0-d array counts as one axis of length 1.
    span = max(data.ndim, 1)
    if not -span <= axis < span:
        raise ArgumentError(f"{name}: axis={axis}: expected a value in [{-span}, {span}) for {data.shape}")
    return axis % span


def _logits(name: str, data: jax.Array, temperature: float | None, dtype: str | None) -> jax.Array:
    """The scaled logits in the type they are accumulated in."""
    check_float(name, data)
    x = widen(data)
    if dtype == "float64":
        x = x.astype(jnp.float64)
    if temperature is not None:
        if isinstance(temperature, float) and temperature == 0:
            raise ArgumentError(f"{name}: temperature={temperature}: expected a number other than 0")
        x = x / temperature
    return x


def _length_shape(p: Any, shapes: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    data = shapes.get("data")
    if not p.use_length or not data or not -len(data) <= p.axis < len(data):
        return {}
    at = p.axis % len(data)
    rest = (*data[:at], *data[at + 1 :])
    return {"length": rest} if known(*rest) else {}


def _length_dtype(p: Any, dtypes: dict[str, str]) -> dict[str, str]:
    return {"length": "int32"} if p.use_length and "length" not in dtypes else {}


@op(aliases=("_npx_softmax",), complete=_length_shape, complete_dtype=_length_dtype, method="softmax")
def softmax(
    data: Tensor,
    length: Annotated[UntypedTensor, When("use_length", True)] = ABSENT,
    *,
    axis: int = -1,
    temperature: float | None = None,
    dtype: OptDType = None,
    use_length: bool = False,
) -> jax.Array:
    """`exp(x/t) / Σ exp(x/t)` along `axis`; with `use_length`, over the first `length` elements, 0 behind them.

    Shapes: data any, kept; length (integers): data's without `axis`. The result has data's dtype unless `dtype` says
    otherwise; 16-bit floats are computed in float32.
    """
    at = _axis("softmax", axis, data)
    x = _logits("softmax", data, temperature, dtype)
    keep = None
    if length is not None and data.ndim:
        rest = (*data.shape[:at], *data.shape[at + 1 :])
        if length.shape != rest:
            raise ArgumentError(f"softmax: length has shape {length.shape}: expected {rest}, whole numbers")
        places = jnp.arange(data.shape[at], dtype=jnp.int32).reshape(-1, *(1,) * (data.ndim - at - 1))
        keep = places < jnp.expand_dims(length, at).astype(jnp.int32)
    out = jax.nn.softmax(jnp.atleast_1d(x), at, where=keep)
    if keep is not None:
        out = jnp.where(keep, out, 0)
    return out.reshape(data.shape).astype(dtype or data.dtype)


def _no_length(name: str, use_length: bool) -> None:
    if use_length:
        raise ArgumentError(f"{name}: use_length=True: this operator takes no length; mask the data instead")


@op(aliases=("_npx_log_softmax",), method="log_softmax")
def log_softmax(
    data: Tensor,
    *,
    axis: int = -1,
    temperature: float | None = None,
    dtype: OptDType = None,
    use_length: bool = False,
) -> jax.Array:
    """`x/t − log Σ exp(x/t)` along `axis`. Shapes: any, kept."""
    _no_length("log_softmax", use_length)
    at = _axis("log_softmax", axis, data)
    out = jax.nn.log_softmax(jnp.atleast_1d(_logits("log_softmax", data, temperature, dtype)), at)
    return out.reshape(data.shape).astype(dtype or data.dtype)


@op(method="softmin")
def softmin(
    data: Tensor,
    *,
    axis: int = -1,
    temperature: float | None = None,
    dtype: OptDType = None,
    use_length: bool = False,
) -> jax.Array:
    """Softmax of the negated data along `axis`. Shapes: any, kept."""
    _no_length("softmin", use_length)
    at = _axis("softmin", axis, data)
    out = jax.nn.softmax(jnp.atleast_1d(-_logits("softmin", data, temperature, dtype)), at)
    return out.reshape(data.shape).astype(dtype or data.dtype)


def _temperature_fits(params: Params, shape: tuple[int, ...], dtype: np.dtype) -> bool:
    t, given = params["temperature"], params["dtype"]
    wide = np.dtype(np.float64) if given == "float64" else accumulator(dtype)
    return bool(t) and is_float(dtype) and faithful(t, wide)


for _made in (softmax, log_softmax, softmin):
    define_runtime_form(_made, "temperature", fits=_temperature_fits)


@op()
def SoftmaxActivation(data: Tensor, *, mode: Literal["instance", "channel"] = "instance") -> jax.Array:
    """Softmax over the last axis ("instance") or over axis 1 ("channel"). Shapes: any, kept."""
    x = _logits("SoftmaxActivation", data, None, None)
    if data.ndim < (3 if mode == "channel" else 1):
        raise ArgumentError(f"SoftmaxActivation: data has shape {data.shape}: too few axes for mode={mode!r}")
    return jax.nn.softmax(x, 1 if mode == "channel" else -1).astype(data.dtype)


def _label_rows(p: Any, shapes: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    data = shapes.get("data")
    return {"label": (data[0],)} if data and known(data[0]) else {}


@op(complete=_label_rows)
def softmax_cross_entropy(data: Tensor, label: UntypedTensor) -> jax.Array:
    """`−Σᵢ log softmax(dataᵢ)[labelᵢ]`, summed over the batch.

    Shapes: data (N, K), label (N,) of class numbers (clipped to [0, K)), result (1,). The label gets no gradient.
    """
    if data.ndim != 2:
        raise ArgumentError(f"softmax_cross_entropy: data has shape {data.shape}: expected (N, classes)")
    if label.shape != data.shape[:1]:
        raise ArgumentError(f"softmax_cross_entropy: label has shape {label.shape}: expected {data.shape[:1]}")
    logp = jax.nn.log_softmax(_logits("softmax_cross_entropy", data, None, None), 1)
    at = jnp.clip(jax.lax.stop_gradient(label).astype(jnp.int32), 0, data.shape[1] - 1)
    return -jnp.sum(jnp.take_along_axis(logp, at[:, None], 1)).reshape(1).astype(data.dtype)


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


@op(
    aliases=("Softmax",), complete=_softmax_label, traits=Traits(is_loss=True, keeps_result=True, has_named_output=True)
)
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
        n, _, positions = jax.eval_shape(lambda x: _rows(x, p), data).shape
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
    "mae": (lambda x: x, lambda out, label: jnp.where(out > label, 1, -1)),
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


@op(complete=_regression_shapes, traits=LOSS)
def LinearRegressionOutput(data: Tensor, label: Tensor, *, grad_scale: float = 1.0) -> jax.Array:
    """The data forward; backward `(data − label) · grad_scale / outputs per sample`, whatever the head gradient.

    Shapes: data (N, …), label the same (or (N,) for data (N, 1)). The label gets gradient 0.
    """
    return _regression("LinearRegressionOutput", data, label, "linear", grad_scale)


@op(complete=_regression_shapes, traits=LOSS)
def MAERegressionOutput(data: Tensor, label: Tensor, *, grad_scale: float = 1.0) -> jax.Array:
    """The data forward; backward `±1 · grad_scale / outputs per sample`, whatever the head gradient.

    The sign is that of `data − label`, and minus where they are equal.
    Shapes: data (N, …), label the same (or (N,) for data (N, 1)). The label gets gradient 0.
    """
    return _regression("MAERegressionOutput", data, label, "mae", grad_scale)


@op(complete=_regression_shapes, traits=LOSS)
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
    rows = max(math.prod(data.shape[:-1]), 1) if normalization == "batch" else 1
    return (jnp.full(data.shape, grad_scale / rows, data.dtype),)


_make_loss.defvjp(_make_loss_fwd, _make_loss_bwd)


@op(traits=LOSS)
def MakeLoss(
    data: Tensor,
    *,
    grad_scale: float = 1.0,
    valid_thresh: float = 0.0,
    normalization: Literal["null", "batch", "valid"] = "null",
) -> jax.Array:
    """The data forward; backward `grad_scale / z` for each element, whatever the head gradient.

    z is 1 ("null"), the number of rows ("batch": 1 for data (N,), N for (N, C), N·T for (N, T, C)) or the number of
    elements above valid_thresh ("valid"). Shapes: any, kept.
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


@op(complete=_svm_label, traits=LOSS)
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


_LOG_ZERO = -1e30  # log-probability of what cannot happen; finite, so that gradients stay finite


def _lengths(p: Any, shapes: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    data = shapes.get("data")
    if not data or len(data) != 3 or not known(data[1]):
        return {}
    names = ["data_lengths"] * p.use_data_lengths + ["label_lengths"] * p.use_label_lengths
    return dict.fromkeys(names, (data[1],))


@op(output_names=("output0",), aliases=("ctc_loss", "_contrib_CTCLoss", "_contrib_ctc_loss"), complete=_lengths)
def CTCLoss(
    data: Tensor,
    label: UntypedTensor,
    data_lengths: Annotated[UntypedTensor, When("use_data_lengths", True)] = ABSENT,
    label_lengths: Annotated[UntypedTensor, When("use_label_lengths", True)] = ABSENT,
    *,
    use_data_lengths: bool = False,
    use_label_lengths: bool = False,
    blank_label: Literal["first", "last"] = "first",
) -> jax.Array:
    """`−log P(label | softmax(data))`, summed over all alignments with blanks (Graves et al. 2006).

    Shapes: data (T, N, K) of unnormalized scores, label (N, L), result (N,). With blank_label "first" the blank is
    class 0 and labels are 1..K−1, padded with 0; with "last" the blank is class K−1, labels are 0..K−2, padded with −1.
    Lengths, (N,) each, override the sequence length T and the padding. The result and its gradient are 0 where no
    alignment fits, and where the sequence has no steps, so that such samples do not count.
    """
    check_float("CTCLoss", data)
    if data.ndim != 3 or label.ndim != 2 or label.shape[0] != data.shape[1]:
        raise ArgumentError(
            f"CTCLoss: data {data.shape}, label {label.shape}: expected (time, batch, classes) and (batch, labels)"
        )
    steps, batch, classes = data.shape
    for name, v in (("data_lengths", data_lengths), ("label_lengths", label_lengths)):
        if v is not None:
            check_shape("CTCLoss", name, v.shape, (batch,), f"batch of {batch}")
    if label.shape[1] > steps:
        raise ArgumentError(f"CTCLoss: label has shape {label.shape}: more labels than the {steps} time steps")
    logp = jax.nn.log_softmax(widen(data), 2)
    blank, padding = (0, 0) if blank_label == "first" else (classes - 1, -1)
    labels = lax.stop_gradient(label).astype(jnp.int32)
    if label_lengths is None:
        count = jnp.sum(jnp.cumprod((labels != padding).astype(jnp.int32), 1), 1)
    else:
        count = lax.stop_gradient(label_lengths).astype(jnp.int32)
    length = jnp.full((batch,), steps, jnp.int32)
    if data_lengths is not None:
        length = lax.stop_gradient(data_lengths).astype(jnp.int32)
    # States alternate: blank, label 1, blank, label 2, …, blank.
    states = 2 * labels.shape[1] + 1
    path = jnp.full((batch, states), blank, jnp.int32).at[:, 1::2].set(jnp.clip(labels, 0, classes - 1))
    before = jnp.pad(path, ((0, 0), (2, 0)), constant_values=blank)[:, :states]
    skips = (path != blank) & (path != before)
    emitted = jnp.take_along_axis(logp, jnp.broadcast_to(path, (steps, batch, states)), 2)
    index = jnp.arange(states, dtype=jnp.int32)
    first = jnp.where(index < 2, emitted[0], _LOG_ZERO)

    def advance(alpha: jax.Array, now: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        emit, t = now
        one = jnp.pad(alpha, ((0, 0), (1, 0)), constant_values=_LOG_ZERO)[:, :states]
        two = jnp.pad(alpha, ((0, 0), (2, 0)), constant_values=_LOG_ZERO)[:, :states]
        total = jnp.logaddexp(jnp.logaddexp(alpha, one), jnp.where(skips, two, _LOG_ZERO))
        new = jnp.maximum(total + emit, _LOG_ZERO)
        return jnp.where((t < length)[:, None], new, alpha), None

    alpha, _ = lax.scan(advance, first, (emitted[1:], jnp.arange(1, steps, dtype=jnp.int32)))
    at_blank = jnp.take_along_axis(alpha, (2 * count)[:, None], 1)[:, 0]
    at_label = jnp.take_along_axis(alpha, jnp.maximum(2 * count - 1, 0)[:, None], 1)[:, 0]
    total = jnp.logaddexp(at_blank, jnp.where(count > 0, at_label, _LOG_ZERO))
    return jnp.where((total < _LOG_ZERO / 2) | (length < 1), 0.0, -total).astype(data.dtype)


@jax.custom_vjp
def _attach(data: jax.Array, slope: jax.Array) -> jax.Array:
    return data


def _backward(slope: jax.Array, head: jax.Array) -> tuple[jax.Array, jax.Array]:
    return head + slope, jnp.zeros_like(slope)


_attach.defvjp(lambda data, slope: (data, slope), _backward)


def _complete(p: Any, shapes: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    data = shapes.get("data")
    return {"moving_avg": (data[1],)} if data and len(data) > 1 and known(data[1]) else {}


def _complete_dtype(p: Any, dtypes: dict[str, str]) -> dict[str, str]:
    return {"moving_avg": dtypes["data"]}


@op(complete=_complete, complete_dtype=_complete_dtype, writes_aux=lambda p, train: train)
def IdentityAttachKLSparseReg(
    data: Tensor,
    moving_avg: Aux,
    train: Train,
    *,
    sparseness_target: Fraction = 0.1,
    penalty: float = 0.001,
    momentum: Fraction = 0.9,
) -> tuple[jax.Array, jax.Array]:
    """The data unchanged; its gradient grows by that of a divergence which draws mean activations to a target.

    With ρ the target and m the moving average of each unit's mean over the batch, penalty · (-ρ/m + (1 - ρ)/(1 - m)) is
    added to the gradient. Meant for activations in (0, 1). Shapes: data (N, K, …), moving_avg (K,).
    """
    check_float("IdentityAttachKLSparseReg", data)
    axes = tuple(a for a in range(data.ndim) if a != 1)
    mean = jax.lax.stop_gradient(data).mean(axes)
    average = (momentum * moving_avg + (1 - momentum) * mean).astype(moving_avg.dtype) if train else moving_avg
    slope = penalty * (-sparseness_target / average + (1 - sparseness_target) / (1 - average))
    slope = jnp.broadcast_to(slope.reshape(-1, *(1,) * (data.ndim - 2)), data.shape).astype(data.dtype)
    return _attach(data, slope), average


@op(outputs=2, output_names=("output", "out_state"))
def _contrib_hawkesll(
    lda: Tensor,
    alpha: Tensor,
    beta: Tensor,
    state: Tensor,
    lags: Tensor,
    marks: UntypedTensor,
    valid_length: Tensor,
    max_time: Tensor,
) -> tuple[jax.Array, jax.Array]:
    """Log likelihood of Hawkes processes with exponential decay, one for each of K marks.

    The intensity of mark k is lda_k + alpha_k · beta_k · Σ exp(-beta_k (t - t_i)) over its earlier events; the result
    is Σ log(intensity at the events) - ∫ intensity up to max_time. `state` holds the sums at time 0, such as those
    returned for an earlier interval. The first `valid_length` of `lags` (times since the event before) and `marks`
    count.
    Shapes: lda, state (N, K), alpha, beta (K,), lags, marks (N, T), valid_length, max_time (N,) -> (N,), (N, K).
    Gradients go to lda, alpha and beta.
    """
    name = "_contrib_hawkesll"
    check_float(name, lda)
    if lda.ndim != 2 or lags.ndim != 2:
        raise ArgumentError(f"{name}: lda {lda.shape}, lags {lags.shape}: expected (N, K) and (N, T)")
    n, k = lda.shape
    for what, given, want in (
        ("alpha", alpha, (k,)), ("beta", beta, (k,)), ("state", state, (n, k)), ("lags", lags, (n, lags.shape[1])),
        ("marks", marks, lags.shape), ("valid_length", valid_length, (n,)), ("max_time", max_time, (n,)),
    ):  # fmt: skip
        check_shape(name, what, given.shape, want, f"lda {lda.shape}, lags {lags.shape}")
    state, lags, valid_length, max_time = map(lax.stop_gradient, (state, lags, valid_length, max_time))
    marks = marks.astype(jnp.int32)

    def one(
        mu: jax.Array, memory: jax.Array, lags: jax.Array, marks: jax.Array, length: jax.Array, end: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        def step(carry: Any, event: Any) -> tuple[Any, None]:
            total, memory, last, now = carry
            lag, mark, index = event
            then = now + lag
            gap = then - last[mark]
            decay = jnp.exp(-beta[mark] * gap)
            rate = mu[mark] + alpha[mark] * beta[mark] * memory[mark] * decay
            spent = mu[mark] * gap + alpha[mark] * memory[mark] * (1 - decay)
            live = index < length
            after = total + jnp.log(jnp.where(live, rate, 1)) - spent
            new = memory.at[mark].set(1 + memory[mark] * decay), last.at[mark].set(then)
            carry = jnp.where(live, after, total), jnp.where(live, new[0], memory), jnp.where(live, new[1], last)
            return (*carry, jnp.where(live, then, now)), None

        zero = jnp.zeros((), mu.dtype)
        order = jnp.arange(lags.shape[0], dtype=jnp.int32).astype(mu.dtype)
        start = zero, memory, jnp.zeros_like(memory), zero
        (total, memory, last, _), _ = lax.scan(step, start, (lags, marks, order))
        gap = end - last
        decay = jnp.exp(-beta * gap)
        return total - jnp.sum(mu * gap + alpha * memory * (1 - decay)), decay * memory

    return jax.vmap(one)(lda, state, lags, marks, valid_length, max_time)
