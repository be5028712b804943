"""Update rules: an optimizer's formula `(weight, grad, *states, hyperparameters) -> (weight, *states)`, written once.

From one formula come the operator for one weight, the one that updates a float32 master copy (`mp_`), those for many
weights in one call (`multi_`, `multi_mp_`), and those that read rates from arrays (`preloaded_`).

A formula sees the weight in the type that updates compute in (16-bit floats as float32, or the master copy), the
states in at least float32, and runtime hyperparameters in the weight's type. What it returns is rounded once, at the
end, to the types of weight and states. `g' = clip(rescale_grad * grad, ±clip_gradient)`, clipping unless
`clip_gradient < 0`.
"""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np

from ..core.dtypes import is_float
from ..core.errors import ArgumentError
from .registry import Call, Op, Part, op
from .schema import Aux, Floats, Ignored, Positive, Runtime, RuntimeFloat, RuntimeFloats, Tensor, UntypedTensor
from .traits import BY_ROW, NO_TRAITS, RowUpdate, Traits

Array = jax.Array
# What a formula gets as its gradient: the operator's input as it is; scaled; `g'`; `g' + wd * weight` ("decoupled",
# since the decay is outside of the clip); or `clip(rescale_grad * grad + wd * weight)` ("coupled").
GradientForm = Literal["raw", "scaled", "clipped", "decoupled", "coupled"]
_FORM_PARAMS = {
    "raw": (),
    "scaled": ("rescale_grad",),
    "clipped": ("rescale_grad", "clip_gradient"),
    "decoupled": ("wd", "rescale_grad", "clip_gradient"),
    "coupled": ("wd", "rescale_grad", "clip_gradient"),
}
_COMMON_PARAMS = {"wd": (float, 0.0), "rescale_grad": (RuntimeFloat, 1.0), "clip_gradient": (float, -1.0)}
_LAZY = {"lazy_update": (Annotated[bool, Ignored], True)}
_REQUIRED = inspect.Parameter.empty
Params = dict[str, tuple[Any, Any]]  # annotation and default of each hyperparameter


def wide(x: Array) -> Array:
    """`x` in the type that updates compute in: 16-bit floats become float32."""
    return x.astype(jnp.float32) if x.dtype.itemsize < 4 else x


def as_rate(rate: Array | float, like: Array) -> Array:
    """A runtime scalar in the dtype of `like`."""
    return jnp.asarray(rate, dtype=like.dtype)


def scaled(grad: Array, rate: Array | float, like: Array) -> Array:
    """`rate * grad` in the dtype of `like`, the weight; their shapes must be equal."""
    if grad.shape != like.shape:
        raise ArgumentError(f"grad has shape {grad.shape}, expected the weight's {like.shape}")
    return grad.astype(like.dtype) * as_rate(rate, like)


def clipped(grad: Array, bound: float) -> Array:
    """`grad` limited to ±`bound` unless `bound` is negative."""
    return jnp.clip(grad, -bound, bound) if bound >= 0 else grad


def rest(beta: float) -> float:
    """1 - beta as float32 arithmetic has it, so that bias corrections in float32 cancel exactly."""
    return 1 - float(np.float32(beta))


def decayed(g: Array, weight: Array, wd: Array | float) -> Array:
    """`g + wd * weight`, or `g` itself when `wd` is the constant 0."""
    return g if isinstance(wd, (int, float)) and wd == 0 else g + wd * weight


def require_float_arrays(arrays: Mapping[str, Array]) -> None:
    """Require floating-point arrays of one shape, that of the first, the weight."""
    weight = next(iter(arrays.values()))
    for name, x in arrays.items():
        if not is_float(np.dtype(x.dtype)):
            raise ArgumentError(f"{name} is {x.dtype}: expected floating-point; cast with .astype()")
        if x.shape != weight.shape:
            raise ArgumentError(f"{name} has shape {x.shape}, expected the weight's {weight.shape}")


def same_shapes(equal: Sequence[str]) -> Callable[..., dict[str, tuple[int, ...]]]:
    """`complete=` of an op whose inputs `equal` have one shape."""

    def complete(p: Any, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
        known = next((shapes[n] for n in equal if n in shapes), None)
        return {} if known is None else dict.fromkeys(equal, known)

    return complete


class UpdateRule:
    """A formula with the names of its states and the kinds of its hyperparameters.

    Args:
        formula: takes the weight, its gradient and the states by position, hyperparameters by keyword; their
            annotations and defaults are those of the operators. A keyword `stored` is the weight without a master copy.
        gradient: what the formula gets as its gradient; hyperparameters that this needs and the formula does not name
            follow those of the formula.
        inputs: keywords of the formula that are further inputs of the operators, with their annotations.
        unlike: states and inputs that need not have the weight's shape.
        order: names of all hyperparameters, where the operators have them in another order.
        lazy: the operators for one weight have `lazy_update`, which concerns row_sparse gradients.
        clip: name that the operators give to `clip_gradient`.
        rows: how the operators for one weight update it by a row_sparse gradient.
    """

    def __init__(
        self,
        formula: Callable[..., tuple[Array, ...]],
        gradient: GradientForm,
        *,
        inputs: Mapping[str, Any] | None = None,
        unlike: Sequence[str] = (),
        order: str = "",
        lazy: bool = False,
        clip: str = "clip_gradient",
        rows: RowUpdate = RowUpdate.DENSE,
    ):
        code = formula.__code__
        positional, keywords = code.co_varnames[: code.co_argcount], code.co_varnames[code.co_argcount :]
        self.formula, self.gradient, self.clip = formula, gradient, clip
        self.keywords = keywords[: code.co_kwonlyargcount]
        self.states = positional[2:]
        self.inputs, self.unlike = dict(inputs or {}), unlike
        self._names = positional
        defaults = formula.__kwdefaults__ or {}
        params: Params = {
            n: (formula.__annotations__[n], defaults.get(n, _REQUIRED))
            for n in self.keywords
            if n not in self.inputs and n != "stored"
        }
        params.update((n, _COMMON_PARAMS[n]) for n in _FORM_PARAMS[gradient] if n not in params)
        # The gradient's own come last, in one order in all operators.
        params |= {n: params.pop(n) for n in ("rescale_grad", "clip_gradient") if n in params}
        self.params = {n: params[n] for n in order.split()} if order else params
        self._lazy, self._rows = _LAZY if lazy else {}, rows
        self.name = ""

    @functools.cached_property
    def _runtime(self) -> frozenset[str]:
        """Hyperparameters of the formula that are numbers at run time."""
        hints = typing.get_type_hints(self.formula, include_extras=True)
        return frozenset(n for n in self.keywords if Runtime in get_args(hints.get(n))[1:])

    def step(
        self, weight: Array, grad: Array, states: Sequence[Array], master: Array | None, params: Mapping[str, Any]
    ) -> tuple[Array, ...]:
        """The next weight, its states and its master copy, if there is one; the weight is not rounded yet."""
        w = wide(weight) if master is None else master
        own = {n: as_rate(params[n], w) if n in self._runtime else params[n] for n in self.keywords if n != "stored"}
        if "stored" in self.keywords:
            own["stored"] = wide(weight)
        new, *after = self.formula(w, self._gradient_of(w, grad, params), *map(wide, states), **own)
        kept = [a.astype(s.dtype) for a, s in zip(after, states, strict=True)]
        return (new, *kept, *([] if master is None else [new]))

    def _gradient_of(self, weight: Array, grad: Array, params: Mapping[str, Any]) -> Array:
        """What the formula gets as its gradient."""
        if self.gradient == "raw":
            return grad
        g = scaled(grad, params["rescale_grad"], weight)
        if self.gradient == "scaled":
            return g
        if self.gradient == "coupled":
            return clipped(decayed(g, weight, params["wd"]), params["clip_gradient"])
        g = clipped(g, params["clip_gradient"])
        return decayed(g, weight, params["wd"]) if self.gradient == "decoupled" else g

    def operator(self, name: str) -> None:
        """Register the operator for one weight: inputs `weight, grad, states…`."""
        self._define(name, self.formula.__doc__ or "", master=None)
        self.name = name

    def master_operator(self, name: str, doc: str = "", master: Any = Aux) -> None:
        """Register the operator that updates a float32 copy `weight32` and returns its rounding.

        With an annotation other than `Aux` the copy is only read, and the result is not rounded.
        """
        doc = doc or f"`{self.name}` of the float32 master copy `weight32`; the output is its rounding."
        self._define(name, doc, master)

    def _define(self, name: str, doc: str, master: Any) -> None:
        arrays = {**dict.fromkeys(self._names[:2], Tensor), **dict.fromkeys(self.states, Aux)}
        arrays |= {} if master is None else {"weight32": master}
        equal = [n for n in arrays if n not in self.unlike]
        params = {self.clip if n == "clip_gradient" else n: p for n, p in self.params.items()} | self._lazy

        def body(**given: Any) -> tuple[Array, ...]:
            require_float_arrays({n: given[n] for n in equal})
            weight, grad, *states = (given[n] for n in self._names)
            copy = given.get("weight32")
            new, *after = self.step(weight, grad, states, copy, {"clip_gradient": given.get(self.clip), **given})
            if master is UntypedTensor:
                return new, *after[:-1]
            return new.astype(weight.dtype), *after

        traits = NO_TRAITS
        if self._rows is not RowUpdate.DENSE:
            # What a rounded weight gains is not the scaled gradient.
            traits = Traits(row_update=self._rows) if master is None else BY_ROW
        define_operator(
            name, doc, arrays | self.inputs, params, body, self.formula, complete=same_shapes(equal), traits=traits
        )

    def multi_operator(
        self,
        name: str,
        doc: str,
        lists: Mapping[str, str],
        *,
        master: bool = False,
        preloaded: bool = False,
        count: str = "num_weights",
        order: str = "",
    ) -> None:
        """Register an operator for `count` weights, with inputs group by group: `w0, g0, m0, w1, g1, m1, …`.

        Outputs are the next weights; everything after weight and gradient in each group is written back.

        Args:
            name, doc: of the operator.
            lists: hyperparameters of each weight, by the names under which the operator has them as lists.
            master: each group ends with its float32 copy.
            preloaded: the lists are arrays, which follow the groups.
            count: name of the hyperparameter that tells the number of groups.
            order: names of all hyperparameters but the last, where they are in another order than the formula's.
        """
        size = 2 + len(self.states) + master
        own = {lists.get(n, n): (n, p) for n, p in self.params.items()}
        params: Params = {}
        for n in order.split() or own:
            of, kind = own[n]
            if of not in lists:
                params[n] = kind
            elif not preloaded:
                params[n] = (Floats if of == "wd" else RuntimeFloats, _REQUIRED)  # decays are compiled in
        params[count] = (Positive, 1)
        extra = list(self.inputs) + (list(lists) if preloaded else [])

        def body(*data: Array, **given: Any) -> tuple[Array, ...]:
            end = len(data) - len(extra)
            given.update(zip(extra, data[end:], strict=True))
            columns = [given[n if preloaded else lists[n]] for n in lists]
            weights, after = [], []
            for (weight, grad, *held), *values in groups(data[:end], given[count], size, *columns):
                copy = held.pop() if master else None
                new, *rest = self.step(weight, grad, held, copy, {**given, **dict(zip(lists, values, strict=True))})
                weights.append(new.astype(weight.dtype))
                after += rest
            return (*weights, *after)

        define_operator(
            name, doc, {"*data": UntypedTensor}, params, body, self.formula, outputs=lambda p: getattr(p, count),
            mutates=lambda p: [g * size + i for g in range(getattr(p, count)) for i in range(2, size)],
            parts=None if preloaded else lambda call: list(_parts(call, count, size, len(extra), lists.values())),
        )  # fmt: skip


def update_rule(
    gradient: GradientForm, name: str = "", *, mp: str = "", **options: Any
) -> Callable[[Callable[..., tuple[Array, ...]]], UpdateRule]:
    """Make an `UpdateRule` of the decorated formula, see its arguments, and the operators `name` and `mp` from it."""

    def make(formula: Callable[..., tuple[Array, ...]]) -> UpdateRule:
        made = UpdateRule(formula, gradient, **options)
        if name:
            made.operator(name)
        if mp:
            made.master_operator(mp)
        return made

    return make


def define_operator(
    name: str, doc: str, inputs: Mapping[str, Any], params: Params, body: Any, formula: Any, **options: Any
) -> Op:
    """Register `body` as an operator with the signature of `inputs` (one may be `*name`) and keyword-only `params`."""
    kinds = inspect.Parameter
    found = [
        kinds(n.lstrip("*"), kinds.VAR_POSITIONAL if n[0] == "*" else kinds.POSITIONAL_OR_KEYWORD, annotation=kind)
        for n, kind in inputs.items()
    ]
    found += [kinds(n, kinds.KEYWORD_ONLY, default=default, annotation=kind) for n, (kind, default) in params.items()]
    functools.update_wrapper(body, formula)  # names in annotations are looked up where the formula is
    body.__doc__ = doc
    body.__signature__ = inspect.Signature(found)
    body.__annotations__ = {p.name: p.annotation for p in found}
    return op(name=name, **options)(body)


def _parts(call: Call, count: str, size: int, n_extra: int, lists: Collection[str]) -> Iterator[Part]:
    """Yield the calls for one group each, with the inputs that follow the groups."""
    params, n, states = call.params, call.params[count], size - 2
    if n == 1 or any(len(params[name]) != n for name in lists):
        return  # it is one itself, or wrong
    # Where the scalars of the first group are, and how far those of the next one are from each.
    first, steps = [], []
    at = 0
    for name in call.op.runtime:
        first.append(at)
        steps.append(int(name in lists))
        at += n if name in lists else 1
    for g in range(n):
        one = call.op.bind({**params, count: 1, **{name: params[name][g : g + 1] for name in lists}})
        scalars = tuple([a + g * step for a, step in zip(first, steps, strict=True)])
        outs = (g, *range(n + g * states, n + (g + 1) * states))
        ins = (*range(g * size, (g + 1) * size), *range(n * size, n * size + n_extra))
        # Formulas go element by element, or take norms of all elements.
        yield Part(one, ins, scalars, outs, is_flat=not n_extra)


def groups(
    data: Sequence[Array], count: int, size: int, *per_weight: Sequence[Any] | Array
) -> Iterator[tuple[Any, ...]]:
    """Yield `(inputs of one group, its entry of every `per_weight` list…)`."""
    if len(data) != count * size:
        raise ArgumentError(f"got {len(data)} arrays, expected {size} for each of the {count} weights")
    for values in per_weight:
        if len(values) != count:
            raise ArgumentError(f"got {len(values)} rates or decays, expected one for each of the {count} weights")
    for i in range(count):
        group = tuple(data[i * size : (i + 1) * size])
        names = ("weight", "grad", *(f"state {n}" for n in range(size - 2)))
        require_float_arrays({f"{name} of group {i}": x for name, x in zip(names, group, strict=True)})
        yield (group, *(values[i] for values in per_weight))


__all__ = [
    "UpdateRule",
    "require_float_arrays",
    "clipped",
    "decayed",
    "rest",
    "same_shapes",
    "scaled",
    "update_rule",
    "wide",
]
