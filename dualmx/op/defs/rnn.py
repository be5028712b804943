"""The fused recurrent operator: layers, directions and gates in one flat parameter vector."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Annotated, Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from ...core.errors import ArgumentError
from ..registry import op
from ..schema import ABSENT, Fraction, Ignored, Key, Positive, Tensor, Train, UntypedTensor, When
from ..spatial import check_float, check_shape, known, widen
from ..traits import Traits

Step = Callable[[jax.Array, jax.Array, jax.Array, Any], tuple[jax.Array, Any]]
_GATES = {"rnn_relu": 1, "rnn_tanh": 1, "lstm": 4, "gru": 3}


class _Weights(NamedTuple):
    """Parameters of one layer in one direction; h2r projects the output, None without projection."""

    i2h: jax.Array
    h2h: jax.Array
    h2r: jax.Array | None
    i2h_bias: jax.Array
    h2h_bias: jax.Array


def _shapes(p: Any, width: int) -> tuple[list[list[tuple[int, int]]], int]:
    """Weight matrices (rows, columns) per layer and direction in their order in the vector, and the vector's length."""
    rows, out = _GATES[p.mode] * p.state_size, p.projection_size or p.state_size
    directions = 2 if p.bidirectional else 1
    made = []
    for layer in range(p.num_layers):
        matrices = [(rows, width if layer == 0 else out * directions), (rows, out)]
        if p.projection_size:
            matrices.append((out, p.state_size))
        made += [matrices] * directions
    return made, sum(r * c for m in made for r, c in m) + len(made) * 2 * rows


def _unpack(vector: jax.Array, p: Any, width: int) -> list[_Weights]:
    made, _ = _shapes(p, width)
    rows = _GATES[p.mode] * p.state_size
    at = 0

    def take(*shape: int) -> jax.Array:
        nonlocal at
        size = shape[0] * (shape[1] if len(shape) > 1 else 1)
        at += size
        return vector[at - size : at].reshape(shape)

    matrices = [[take(*shape) for shape in m] for m in made]
    biases = [(take(rows), take(rows)) for _ in made]
    return [_Weights(m[0], m[1], m[2] if len(m) > 2 else None, *b) for m, b in zip(matrices, biases, strict=True)]


def _cell(p: Any, h2r: jax.Array | None) -> Step:
    """Return `step(input gates, hidden gates, h, c) -> (next h, next c)`, biases included in the gates."""

    def step(x: jax.Array, gates: jax.Array, h: jax.Array, c: Any) -> tuple[jax.Array, Any]:
        if p.mode == "lstm":
            i, f, g, o = jnp.split(x + gates, 4, 1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            if p.lstm_state_clip_min is not None and p.lstm_state_clip_max is not None:
                c = jnp.clip(c, p.lstm_state_clip_min, p.lstm_state_clip_max)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h if h2r is None else h @ h2r.T), c
        if p.mode == "gru":
            xr, xz, xn = jnp.split(x, 3, 1)
            hr, hz, hn = jnp.split(gates, 3, 1)
            z = jax.nn.sigmoid(xz + hz)
            return (1 - z) * jnp.tanh(xn + jax.nn.sigmoid(xr + hr) * hn) + z * h, None
        total = x + gates
        return (jnp.where(total > 0, total, 0) if p.mode == "rnn_relu" else jnp.tanh(total)), None

    return step


def _swept(
    step: Step, reverse: bool, lengths: jax.Array | None, h2h: jax.Array, x: jax.Array, bias: Any, h: jax.Array, c: Any
) -> tuple[jax.Array, jax.Array, Any]:
    """Run `step` over time; returns outputs (T, N, H), last h, last c."""

    def advance(carry: Any, now: Any) -> Any:
        old_h, old_c = carry
        x_t, bias_t, t = now
        gates = old_h @ h2h.T
        new_h, new_c = step(x_t, gates if bias_t is None else gates + bias_t, old_h, old_c)
        if lengths is None:
            return (new_h, new_c), new_h
        live = (t < lengths)[:, None]
        kept = jnp.where(live, new_h, old_h), None if new_c is None else jnp.where(live, new_c, old_c)
        return kept, jnp.where(live, new_h, 0)

    times = jnp.arange(x.shape[0], dtype=jnp.int32)
    (h, c), out = lax.scan(advance, (h, c), (x, bias, times), reverse=reverse)
    return out, h, c


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _sweep(
    step: Step, reverse: bool, x: jax.Array, bias: Any, h: jax.Array, c: Any, h2h: jax.Array
) -> tuple[jax.Array, jax.Array, Any]:
    """`_swept` whose gradient of `h2h` is one product over all times, not a sum of small ones.

    The gradient of the hidden gates at each time is that of `bias` (T, N, G), or without it that of `x`, to which they
    are added.
    """
    return _swept(step, reverse, None, h2h, x, bias, h, c)


def _sweep_forward(step: Step, reverse: bool, x: jax.Array, bias: Any, h: jax.Array, c: Any, h2h: jax.Array) -> Any:
    made, back = jax.vjp(partial(_swept, step, reverse, None, h2h), x, bias, h, c)
    return made, (back, made[0], h)


def _sweep_backward(step: Step, reverse: bool, kept: Any, grads: Any) -> Any:
    back, out, first = kept
    x, bias, h, c = back(grads)
    before = jnp.concatenate([out[1:], first[None]] if reverse else [first[None], out[:-1]])
    h2h = jnp.tensordot(x if bias is None else bias, before, ((0, 1), (0, 1)))
    return x, bias, h, c, h2h


_sweep.defvjp(_sweep_forward, _sweep_backward)


def _layer(
    x: jax.Array, h: jax.Array, c: jax.Array | None, w: _Weights, p: Any, reverse: bool, lengths: jax.Array | None
) -> tuple[jax.Array, jax.Array, Any]:
    """Run one layer in one direction over (T, N, I); returns outputs, last h, last c."""
    apart = p.mode == "gru"  # elsewhere both biases are simply added
    gates = x @ w.i2h.T + (w.i2h_bias if apart else w.i2h_bias + w.h2h_bias)
    bias = jnp.broadcast_to(w.h2h_bias, gates.shape) if apart else None
    step = _cell(p, w.h2r)
    if lengths is None and w.h2r is None:
        return _sweep(step, reverse, gates, bias, h, c, w.h2h)
    return _swept(step, reverse, lengths, w.h2h, gates, bias, h, c)


def _complete(p: Any, shapes: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    data = shapes.get("data")
    if not data or len(data) != 3:
        return {}
    out = {}
    if known(data[2]):
        out["parameters"] = (_shapes(p, data[2])[1],)
    if known(data[1]):
        count = p.num_layers * (2 if p.bidirectional else 1)
        out["state"] = (count, data[1], p.projection_size or p.state_size)
        if p.mode == "lstm":
            out["state_cell"] = (count, data[1], p.state_size)
        if p.use_sequence_length:
            out["sequence_length"] = (data[1],)
    return out


@op(
    aliases=("_npx_rnn",),
    outputs=lambda p: 1 + (p.state_outputs and (2 if p.mode == "lstm" else 1)),
    output_names=("output", "state_output", "statecell_output"),
    complete=_complete,
    traits=Traits(keeps_result=True, stated_sizes={"state_size": (2, 2)}),
)
def RNN(
    data: Tensor,
    parameters: Tensor,
    state: Tensor,
    state_cell: Annotated[Tensor, When("mode", "lstm")] = ABSENT,
    sequence_length: Annotated[UntypedTensor, When("use_sequence_length", True)] = ABSENT,
    key: Key = ABSENT,
    train: Train = False,
    *,
    state_size: Positive,
    num_layers: Positive,
    bidirectional: bool = False,
    mode: Literal["rnn_relu", "rnn_tanh", "lstm", "gru"],
    p: Fraction = 0.0,
    state_outputs: bool = False,
    projection_size: int | None = None,
    lstm_state_clip_min: float | None = None,
    lstm_state_clip_max: float | None = None,
    lstm_state_clip_nan: Annotated[bool, Ignored] = False,
    use_sequence_length: bool = False,
) -> Any:
    """A stack of recurrent layers over a whole sequence.

    rnn_tanh, rnn_relu: h' = f(W x + b + U h + d). lstm (gates i, f, g, o; Hochreiter & Schmidhuber 1997):
    c' = σ(f) c + σ(i) tanh(g), h' = σ(o) tanh(c'), projected to `projection_size` if given. gru (gates r, z, n;
    Cho et al. 2014): n = tanh(Wx + b + r (U h + d)), h' = (1 − z) n + z h. Dropout with probability p acts between
    layers when training. With `use_sequence_length`, states stop at each length and outputs behind it are 0.

    Shapes: data (T, N, I); state (layers · directions, N, H), and state_cell for lstm; result (T, N, H · directions),
    then with `state_outputs` the last state and, for lstm, the last state_cell. `parameters` is flat: the weights of
    each layer and direction (i2h, h2h, projection), then the biases of each (i2h, h2h).
    """
    check_float("RNN", data)
    if data.ndim != 3:
        raise ArgumentError(f"RNN: data has shape {data.shape}: expected (time, batch, features)")
    if projection_size and mode != "lstm":
        raise ArgumentError(f"RNN: projection_size={projection_size}: expected None with mode={mode!r}")
    q = SimpleNamespace(
        state_size=state_size,
        num_layers=num_layers,
        bidirectional=bidirectional,
        mode=mode,
        projection_size=projection_size,
        use_sequence_length=use_sequence_length,
        lstm_state_clip_min=lstm_state_clip_min,
        lstm_state_clip_max=lstm_state_clip_max,
    )
    given = {"parameters": parameters, "state": state, "state_cell": state_cell, "sequence_length": sequence_length}
    for name, want in _complete(q, {"data": data.shape}).items():
        check_shape("RNN", name, given[name].shape, want, f"data {data.shape}, {num_layers} layers, mode={mode!r}")
    weights = _unpack(widen(parameters), q, data.shape[2])
    h0, c0 = widen(state), None if state_cell is None else widen(state_cell)
    lengths = None if sequence_length is None else lax.stop_gradient(sequence_length).astype(jnp.int32)
    directions = 2 if bidirectional else 1
    x = widen(data)
    last_h, last_c = [], []
    for layer in range(num_layers):
        if layer and p > 0 and train:
            keep = jax.random.bernoulli(jax.random.fold_in(key, layer), jnp.float32(1 - p), x.shape)
            x = jnp.where(keep, x / max(1 - p, 1e-30), 0)
        outs = []
        for d in range(directions):
            k = layer * directions + d
            out, h, c = _layer(x, h0[k], None if c0 is None else c0[k], weights[k], q, d == 1, lengths)
            outs.append(out)
            last_h.append(h)
            last_c.append(c)
        x = outs[0] if directions == 1 else jnp.concatenate(outs, 2)
    found = [x]
    if state_outputs:
        found.append(jnp.stack(last_h))
        if mode == "lstm":
            found.append(jnp.stack(last_c))
    return tuple(v.astype(data.dtype) for v in found)
