"""Softmax family and the softmax cross entropy."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from ...core.dtypes import is_float
from ...core.errors import ArgumentError
from ..registry import op
from ..schema import ABSENT, OptDType, Tensor, UntypedTensor, When
from ..spatial import check_float, known, widen
from .rules import accumulator
from .varying import Params, define_runtime_form, faithful


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


@op(aliases=("_npx_softmax",), complete=_length_shape, complete_dtype=_length_dtype)
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


@op(aliases=("_npx_log_softmax",))
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


@op()
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
