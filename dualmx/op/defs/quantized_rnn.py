"""The fused recurrent operator on 8-bit data."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import jax
import jax.numpy as jnp

from ...core.errors import ArgumentError, DtypeError
from ..quantized import single
from ..registry import op
from ..schema import ABSENT, Fraction, Ignored, Positive, UntypedTensor, When
from .rnn import RNN, _complete, _shapes


def _needed(p: Any, shapes: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    return {"data_scale": (1,), "data_shift": (1,), **_complete(p, shapes)}


def _dtypes(p: Any, dtypes: dict[str, str]) -> dict[str, str]:
    names = ("parameters", "state", "state_cell", "data_scale", "data_shift")
    return {"data": "uint8", **dict.fromkeys(names, "float32")}


def _stepped(vector: jax.Array, p: Any, width: int) -> jax.Array:
    """The parameters with every weight matrix rounded to 255 steps of its largest absolute value."""
    made, _ = _shapes(p, width)
    parts, at = [], 0
    for rows, columns in (shape for matrices in made for shape in matrices):
        matrix = vector[at : at + rows * columns]
        step = jnp.maximum(jnp.max(jnp.abs(matrix)), jnp.float32(1e-30)) / 127
        parts.append(jnp.round(matrix / step) * step)
        at += rows * columns
    return jnp.concatenate([*parts, vector[at:]])


class _Params:
    def __init__(self, **values: Any):
        self.__dict__.update(values)


@op(
    outputs=lambda p: 3 if p.state_outputs else 1,
    output_names=("output", "state_output", "statecell_output"),
    complete=_needed,
    complete_dtype=_dtypes,
)
def _contrib_quantized_rnn(
    data: UntypedTensor,
    parameters: UntypedTensor,
    state: UntypedTensor,
    state_cell: Annotated[UntypedTensor, When("mode", "lstm")] = ABSENT,
    data_scale: UntypedTensor = ABSENT,
    data_shift: UntypedTensor = ABSENT,
    *,
    state_size: Positive,
    num_layers: Positive,
    bidirectional: bool = False,
    mode: Literal["rnn_relu", "rnn_tanh", "lstm", "gru"],
    p: Annotated[Fraction, Ignored] = 0.0,
    state_outputs: bool = False,
    projection_size: int | None = None,
    lstm_state_clip_min: float | None = None,
    lstm_state_clip_max: float | None = None,
    lstm_state_clip_nan: Annotated[bool, Ignored] = False,
    use_sequence_length: bool = False,
) -> Any:
    """A stack of LSTM layers over uint8 data, with weights rounded to 8 bits; states and results are float32.

    An element of the data stands for (data − data_shift) / data_scale, as `contrib.quantize_asym` makes them. For
    inference only; `mode` is "lstm".
    Shapes: as `RNN`; data_scale and data_shift (1,).
    """
    name = "_contrib_quantized_rnn"
    if mode != "lstm" or projection_size or use_sequence_length:
        raise ArgumentError(f"{name}: mode={mode!r}: expected 'lstm', without projection and sequence lengths")
    if data.dtype != jnp.uint8:
        raise DtypeError(f"{name}: data has dtype {data.dtype}: expected uint8")
    if data.ndim != 3:
        raise ArgumentError(f"{name}: data has shape {data.shape}: expected (time, batch, features)")
    scale, shift = single(name, data_scale=data_scale, data_shift=data_shift)
    sizes: dict[str, Any] = {"state_size": state_size, "num_layers": num_layers, "bidirectional": bidirectional}
    q = _Params(mode=mode, projection_size=None, **sizes)
    parameters, state, state_cell = (a.astype(jnp.float32) for a in (parameters, state, state_cell))
    if parameters.shape == (_shapes(q, data.shape[2])[1],):  # RNN refuses others
        parameters = _stepped(parameters, q, data.shape[2])
    real = (data.astype(jnp.float32) - shift) / scale
    clip = {"lstm_state_clip_min": lstm_state_clip_min, "lstm_state_clip_max": lstm_state_clip_max}
    return RNN.fn(real, parameters, state, state_cell, mode=mode, state_outputs=state_outputs, **sizes, **clip)
