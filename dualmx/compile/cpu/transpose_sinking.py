"""Transpose sinking: layers that compute channels-last meet without copies between them.

Operators such as convolution transpose to channels-last and back on the CPU. XLA:CPU cancels adjacent transposes, but
not those with an activation or a residual sum between them. Here each transpose is carried along lazily through
elementwise operations, reductions, broadcasts, pads, slices and concatenations, until it meets its inverse or something
that needs the real order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import jax
import numpy as np
from jax import lax

from .two_stage_reductions import two_stage_reduction

ELEMENTWISE = frozenset(
    """abs add add_any and atan2 cbrt ceil clamp convert_element_type copy cos div eq erf erf_inv erfc exp exp2 expm1
    floor ge gt integer_pow is_finite le log log1p logistic lt max min mul ne neg not or pow reduce_precision rem round
    rsqrt select_n sign sin sqrt square sub tanh xor""".split()
)
_REDUCTIONS = frozenset("reduce_sum reduce_max reduce_min reduce_prod reduce_and reduce_or".split())
_CALLS = {"jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "custom_jvp_call": "call_jaxpr"}

Axes = tuple[int, ...]
Library = Mapping[str, Callable[..., Any]]


class _LazyTranspose:
    """The value `transpose(base, axes)`, not yet computed."""

    def __init__(self, base: Any, axes: Axes):
        self.base, self.axes = base, axes
        self.made: Any = None

    def materialize(self) -> Any:
        if self.made is None:
            self.made = lax.transpose(self.base, self.axes)
        return self.made


class _LazyBroadcast:
    """The value `broadcast_in_dim(base, shape, dims)`, not yet computed; cheap in any order of axes."""

    def __init__(self, base: Any, shape: Axes, dims: Axes):
        self.base, self.shape, self.dims = base, shape, dims
        self.made: Any = None

    def materialize(self) -> Any:
        if self.made is None:
            self.made = lax.broadcast_in_dim(self.base, self.shape, self.dims)
        return self.made

    def under(self, axes: Axes) -> Any:
        """The x for which `transpose(x, axes)` is this value."""
        place = [axes[d] for d in self.dims]
        order = sorted(range(len(place)), key=place.__getitem__)
        base = self.base if order == list(range(len(order))) else lax.transpose(self.base, order)
        return lax.broadcast_in_dim(base, _unpermute(self.shape, axes), sorted(place))


def _unpermute(values: Sequence[Any], axes: Axes) -> tuple[Any, ...]:
    """Per-axis values of `transpose(base, axes)` in the order of base's axes."""
    out: list[Any] = [None] * len(axes)
    for i, a in enumerate(axes):
        out[a] = values[i]
    return tuple(out)


def _lazy_transpose(base: Any, axes: Axes) -> Any:
    return base if axes == tuple(range(len(axes))) else _LazyTranspose(base, axes)


def _materialized(v: Any) -> Any:
    return v.materialize() if isinstance(v, (_LazyTranspose, _LazyBroadcast)) else v


class _TransposedCopies:
    """Plain values that some equation has already transposed: these can join a computation in that order for free.

    Attributes:
        turned: by the identity of a value, the value and what it holds in reverse along some axes.
        library: what computes an equation instead of XLA, by the name of its primitive.
        keep: returns a value that XLA computes only once.
        alone: the program runs on one device, which XLA does not divide among others.
    """

    def __init__(self, library: Library, keep: Callable[[Any], Any], alone: bool) -> None:
        self._found: dict[tuple[int, Axes], tuple[Any, _LazyTranspose]] = {}
        self.turned: dict[int, tuple[Any, Any, Axes]] = {}
        self.library, self.keep, self.alone = library, keep, alone

    def add(self, value: Any, moved: _LazyTranspose) -> None:
        inverse = tuple(int(i) for i in np.argsort(moved.axes))
        self._found.setdefault((id(value), inverse), (value, moved))

    def get(self, value: Any, axes: Axes) -> Any:
        """Return the x for which `transpose(x, axes)` is `value`, None if there is none."""
        found = self._found.get((id(value), axes))
        return found[1].materialize() if found else None


def _common_axis_order(values: Sequence[Any], size: int, twins: _TransposedCopies) -> tuple[Axes, list[Any]] | None:
    """The order of axes that takes no new transpose of `size` elements for any value, and the values in it."""
    orders = {v.axes for v in values if isinstance(v, _LazyTranspose)}
    if len(orders) != 1:
        return None
    axes = orders.pop()
    under = []
    for v in values:
        if isinstance(v, _LazyTranspose):
            v = v.base
        elif isinstance(v, _LazyBroadcast):
            v = v.under(axes)
        elif np.ndim(v) > 0:
            v = lax.transpose(v, np.argsort(axes)) if np.size(v) < size else twins.get(v, axes)
            if v is None:
                return None
        under.append(v)
    return axes, under


def _bind(eqn: Any, values: Sequence[Any], **changed: Any) -> list[Any]:
    bound = eqn.primitive.get_bind_params({**eqn.params, **changed})
    functions, params = bound if isinstance(bound, tuple) else ((), bound)  # JAX before 0.10 returns a pair
    with eqn.ctx.manager:
        out = eqn.primitive.bind(*functions, *values, **params)
    return list(out) if eqn.primitive.multiple_results else [out]


def _reduce(eqn: Any, v: Any, twins: _TransposedCopies) -> list[Any]:
    base, order = _as_transpose(v)
    axes = tuple(sorted(order[a] for a in eqn.params["axes"]))
    kept = [a for i, a in enumerate(order) if i not in eqn.params["axes"]]
    rank = {a: i for i, a in enumerate(sorted(kept))}
    made = two_stage_reduction(eqn.primitive.name, base, axes) if twins.alone else None
    out = _bind(eqn, [base], axes=axes) if made is None else [made]
    return [_lazy_transpose(r, tuple(rank[a] for a in kept)) for r in out]


def _slice(eqn: Any, v: _LazyTranspose) -> list[Any]:
    p = eqn.params
    changed = {
        k: None if p[k] is None else _unpermute(p[k], v.axes) for k in ("start_indices", "limit_indices", "strides")
    }
    return [_lazy_transpose(r, v.axes) for r in _bind(eqn, [v.base], **changed)]


def _as_transpose(v: Any) -> tuple[Any, Axes]:
    """An array and the axes by which transposing it gives the value `v`."""
    if isinstance(v, _LazyTranspose):
        return v.base, v.axes
    v = _materialized(v)
    return v, tuple(range(np.ndim(v)))


def _try_library(eqn: Any, values: list[Any], twins: _TransposedCopies) -> list[Any] | None:
    """Evaluate an equation by the library; None if XLA should."""
    turned = twins.turned.get(id(values[1]))
    source = (*_as_transpose(turned[1]), turned[2]) if turned else None
    made = twins.library[eqn.primitive.name](eqn, _as_transpose(values[0]), _as_transpose(values[1]), source)
    return None if made is None else [_lazy_transpose(*made)]


def _step(eqn: Any, values: list[Any], twins: _TransposedCopies) -> list[Any]:
    """Evaluate one equation, keeping transposes lazy where its primitive allows."""
    name, first = eqn.primitive.name, values[0] if values else None
    if name in twins.library:
        made = _try_library(eqn, values, twins)
        if made:
            return made
    if name == "rev" and twins.library:
        out = _bind(eqn, [_materialized(first)])
        twins.turned[id(out[0])] = (out[0], first, tuple(sorted(eqn.params["dimensions"])))
        return out
    if name == "transpose" and np.ndim(_shape_source(first)) >= 3:
        axes = tuple(eqn.params["permutation"])
        if isinstance(first, _LazyTranspose):
            return [_lazy_transpose(first.base, tuple(first.axes[a] for a in axes))]
        made = _lazy_transpose(_materialized(first), axes)
        if isinstance(made, _LazyTranspose):
            twins.add(made.base, made)
        return [made]
    if name == "broadcast_in_dim" and len(values) == 1 and len(eqn.params["shape"]) >= 3:
        base, shape = _materialized(first), tuple(eqn.params["shape"])
        if np.size(base) < np.prod(shape) and eqn.params.get("sharding") is None:
            return [_LazyBroadcast(base, shape, tuple(eqn.params["broadcast_dimensions"]))]
    if name in _CALLS and _plain_call(eqn):
        inner = eqn.params[_CALLS[name]]
        return _run(inner.jaxpr, inner.consts, values, twins)
    if name in _REDUCTIONS:
        return _reduce(eqn, first, twins)
    if any(isinstance(v, _LazyTranspose) for v in values):
        if name in ELEMENTWISE:
            joined = _common_axis_order(values, eqn.outvars[0].aval.size, twins)
            if joined:
                return [_lazy_transpose(r, joined[0]) for r in _bind(eqn, joined[1])]
        elif name == "slice" and isinstance(first, _LazyTranspose):
            return _slice(eqn, first)
        elif name == "pad" and isinstance(first, _LazyTranspose):
            config = _unpermute(eqn.params["padding_config"], first.axes)
            return [
                _lazy_transpose(r, first.axes)
                for r in _bind(eqn, [first.base, _materialized(values[1])], padding_config=config)
            ]
        elif name == "concatenate":
            joined = _common_axis_order(values, 0, twins)
            if joined:
                at = joined[0][eqn.params["dimension"]]
                return [_lazy_transpose(r, joined[0]) for r in _bind(eqn, joined[1], dimension=at)]
    return _bind(eqn, [_materialized(v) for v in values])


def _shape_source(v: Any) -> Any:
    return v.base if isinstance(v, _LazyTranspose) else _materialized(v)


def _plain_call(eqn: Any) -> bool:
    """True for calls that only group equations, without shardings."""
    shardings = (*eqn.params.get("in_shardings", ()), *eqn.params.get("out_shardings", ()))
    return all(type(s).__name__ == "UnspecifiedValue" for s in shardings)


def _run(jaxpr: Any, consts: Sequence[Any], args: Sequence[Any], twins: _TransposedCopies) -> list[Any]:
    env: dict[Any, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))

    def read(v: Any) -> Any:
        return v.val if hasattr(v, "val") else env[v]

    readers = Counter(v for eqn in jaxpr.eqns for v in {v for v in eqn.invars if not hasattr(v, "val")})
    for eqn in jaxpr.eqns:
        found = _step(eqn, [read(v) for v in eqn.invars], twins)
        if eqn.primitive.name == "add_any" and readers[eqn.outvars[0]] > 1:  # a sum of cotangents
            base, axes = _as_transpose(found[0])
            found = [_lazy_transpose(twins.keep(base), axes)]
        env.update(zip(eqn.outvars, found, strict=True))
    return [read(v) for v in jaxpr.outvars]


def sink_transposes(
    fn: Callable[..., Any],
    library: Library = MappingProxyType({}),
    keep: Callable[[Any], Any] = lambda x: x,
    single_device: bool = True,
) -> Callable[..., list[Any]]:
    """Return a function equal to `fn` (arrays in, list of arrays out) with fewer transposes, for use under a trace.

    `library` has functions that may compute an equation, by the name of its primitive; the others are left to XLA.
    `keep` is given the sums of cotangents that several equations read, which XLA would compute for each of them.
    `alone` says that the program runs on one device, so that reductions may be cut in two.

    Example:
        >>> f = sink_transposes(lambda x: [lax.transpose(jax.numpy.exp(lax.transpose(x, (0, 2, 1))), (0, 2, 1))])
        >>> "transpose" in str(jax.make_jaxpr(f)(np.ones((2, 3, 4))))
        False
    """

    def run(*args: Any) -> list[Any]:
        closed = jax.make_jaxpr(fn)(*args)
        return [
            _materialized(v)
            for v in _run(closed.jaxpr, closed.consts, args, _TransposedCopies(library, keep, single_device))
        ]

    return run
