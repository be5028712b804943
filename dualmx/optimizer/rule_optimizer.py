"""Optimizers made of a formula: which operator of `op.defs.optimizer` updates a parameter, and with what numbers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from ..ndarray import NDArray
from ..op.registry import Call, get_op
from ..op.runtime_scalars import SharedScalars
from ..op.schema import AUX
from ..sparse import invoke_out
from .hooks import defines_update_alone
from .optimizer import HALF, Optimizer, as_lists, fusible_indices, update_call, zeros_like


class Update(NamedTuple):
    """A call that updates one parameter or several.

    Attributes:
        call: the operator with the hyperparameters that are compiled in.
        scalars: its runtime hyperparameters.
        positions: which of the parameters it updates.
    """

    call: Call
    scalars: tuple[float, ...]
    positions: Sequence[int]


class Formula(NamedTuple):
    """What an optimizer must know of the operator of a formula.

    Attributes:
        settings: names of the hyperparameters that are compiled in and that the optimizer has as attributes.
        clip, decay, count: names of the bound of the gradient, the decay and the number of groups, `""` for none.
        runtime: names of the runtime hyperparameters.
        state_count: how many states a parameter has.
        is_multi: it updates many parameters.
    """

    settings: tuple[str, ...]
    clip: str
    decay: str
    count: str
    runtime: tuple[str, ...]
    state_count: int
    is_multi: bool


shared_scalars = lru_cache(maxsize=1024)(SharedScalars)


@lru_cache(maxsize=256)
def get_formula(name: str) -> Formula:
    """Return the description of operator `name`."""
    op = get_op(name)
    static = [f.name for f in op.params.values() if not f.runtime]
    known = {n: n for n in static if n != "rescale_grad" and not (n.startswith("clip_grad") and op.params[n].ignored)}
    clip = known.pop("clip_gradient", "") or known.pop("clip_grad", "")
    decay = known.pop("wd", "") or known.pop("wds", "")
    count = known.pop("num_weights", "") or known.pop("num_tensors", "")
    states = sum(i.role is AUX for i in op.inputs)
    return Formula(tuple(known), clip, decay, count, op.runtime, states, op.variadic)


class RuleOptimizer(Optimizer):
    """An optimizer that updates each parameter by an operator made of one formula.

    A subclass names the operator in `formula`. Its attributes with names of hyperparameters are their values. What
    depends on a parameter's state or on how often it was updated is told by `formulas` and `rates`.
    """

    formula = ""
    multi = ""  # what stands before `formula` in the name of the operator for many parameters, if there is one
    has_float32_states = False  # also for 16-bit weights

    def create_state(self, index: Any, weight: NDArray) -> Any:
        """A tuple of zeros of the weight's shape, one for each state of the formula; None if it has no states."""
        dtype = np.float32 if self.has_float32_states and weight.dtype in HALF else None
        count = get_formula(self.formulas([None])[0]).state_count
        return tuple(zeros_like(weight, dtype) for _ in range(count)) or None

    def formulas(self, states: Sequence[Any]) -> list[str]:
        """Names of the operators that update parameters with these states."""
        return [self.formula] * len(states)

    def rates(self, indices: Sequence[Any], lrs: Sequence[float], states: Sequence[Any]) -> list[tuple[float, ...]]:
        """The runtime hyperparameters of each parameter's next update, in the operator's order, but `rescale_grad`."""
        return list(zip(lrs))

    def settings(self, known: Formula) -> dict[str, Any]:
        """The hyperparameters that are compiled in, but the decay."""
        found = {n: v for n in known.settings if (v := getattr(self, n, None)) is not None}
        if known.clip:
            found[known.clip] = self._clip
        return found

    @property
    def draws_random(self) -> bool:
        """Whether its formula draws random numbers."""
        return get_op(self.formulas([None])[0]).has_key

    @property
    def has_constant_rates(self) -> bool:
        """Whether each update has the same numbers until the settings change."""
        return self.lr_scheduler is None and type(self).rates is RuleOptimizer.rates

    def next_updates(
        self, indices: Sequence[Any], weights: Sequence[NDArray], grads: Sequence[NDArray], states: Sequence[Any]
    ) -> list[Update]:
        """Count an update of parameters, and return the calls that make it."""
        return self._updates(indices, weights, grads, states, *self._count_and_ask(indices))

    def _updates(
        self,
        indices: Sequence[Any],
        weights: Sequence[NDArray],
        grads: Sequence[NDArray],
        states: Sequence[Any],
        lrs: Sequence[float],
        wds: Sequence[float],
    ) -> list[Update]:
        names = self.formulas(states)
        kinds = fusible_indices(names, weights, grads) if self.multi else {}
        if len(kinds) == 1 and len(names) > 1 and type(self).rates is RuleOptimizer.rates:
            ((name, dense, _),) = kinds
            if dense or get_formula(name).is_multi:
                return [self._several(name, [tuple(lrs)], wds, range(len(names)))]
        rates = self.rates(indices, lrs, states)
        if not self.multi:
            return self._singles(names, range(len(names)), indices, rates, wds)
        found: list[Update] = []
        for (name, dense, _), which in kinds.items():
            if get_formula(name).is_multi or (dense and len(which) > 1):
                columns = list(zip(*[rates[k] for k in which], strict=True))
                found.append(self._several(name, columns, [wds[k] for k in which], which))
            else:
                found += self._singles(names, which, indices, rates, wds)
        return found

    def _singles(
        self, names: Sequence[str], which: Sequence[int], indices: Sequence[Any], rates: Any, wds: Sequence[float]
    ) -> list[Update]:
        calls: dict[Any, tuple[Call, bool, tuple[float, ...]]] = {}
        found = []
        own = self.own_settings(indices)
        for k in which:
            key: Any = (names[k], wds[k], own[k]) if own else (names[k], wds[k])
            call, has_rate, rescale = calls.get(key) or calls.setdefault(key, self._single(*key))
            found.append(Update(call, (*rates[k], *rescale) if has_rate else rescale, (k,)))
        return found

    def _single(
        self, name: str, wd: float, more: Sequence[tuple[str, Any]] = ()
    ) -> tuple[Call, bool, tuple[float, ...]]:
        """The call of the operator for one parameter, whether it has a rate, and its `rescale_grad`, if it has one."""
        known = get_formula(name)
        settings = {**self.settings(known), **dict(more)}
        if known.decay:
            settings["wd"] = wd
        rescale = (self.rescale_grad,) if "rescale_grad" in known.runtime else ()
        return update_call(name, **settings), "lr" in known.runtime, rescale

    def own_settings(self, indices: Sequence[Any]) -> list[tuple[tuple[str, Any], ...]]:
        """Names and values of settings that each parameter has for itself; an empty list if there are none."""
        return []

    def _several(
        self, name: str, columns: Sequence[Sequence[float]], wds: Sequence[float], which: Sequence[int]
    ) -> Update:
        """The call that updates several parameters, by each one's rates in columns and decay."""
        name = name if get_formula(name).is_multi else self.multi + name
        known, n = get_formula(name), len(which)
        settings = {**self.settings(known), "wds": tuple(wds), known.count: n}
        rest = iter(columns)
        scalars = {r: self.rescale_grad if r == "rescale_grad" else next(rest) for r in known.runtime}
        return Update(*shared_scalars(update_call(name, n, **settings))(scalars), which)

    def state_arrays(self, weights: Sequence[NDArray], states: Sequence[Any]) -> list[Sequence[NDArray]]:
        """The arrays of each state, in the order in which the operator has them."""
        return [(s,) if isinstance(s, NDArray) else s or () for s in states]

    def _steps(
        self,
        indices: Sequence[Any],
        weights: Sequence[NDArray],
        grads: Sequence[NDArray],
        states: Sequence[Any],
        lrs: Sequence[float],
        wds: Sequence[float],
    ) -> None:
        updates = self._updates(indices, weights, grads, states, lrs, wds)
        if len(updates) == 1 and set(map(type, states)) == {NDArray}:
            call, scalars, _ = updates[0]
            invoke_out(call, list(chain.from_iterable(zip(weights, grads, states, strict=True))), weights, scalars)
            return
        arrays = self.state_arrays(weights, states)
        groups = [(w, g, *own) for w, g, own in zip(weights, grads, arrays, strict=True)]
        for call, scalars, which in updates:
            inputs = list(chain.from_iterable(map(groups.__getitem__, which)))
            invoke_out(call, inputs, list(map(weights.__getitem__, which)), scalars)


class ImplOptimizer(RuleOptimizer):
    """Both ways to update lead to `_update_impl`, as in those of MXNet's optimizers that have it."""

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Change `weight` and `state` in place by `grad`; all four may be equally long lists."""
        self._update_impl(index, weight, grad, state, multi_precision=False)

    def update_multi_precision(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Like `update`, with the float32 copies in the states of 16-bit weights when `multi_precision` is set."""
        if defines_update_alone(type(self)):
            self._by_update(index, weight, grad, state)
        else:
            half = self.multi_precision and any(w.dtype in HALF for w in as_lists(weight)[0])
            self._update_impl(index, weight, grad, state, multi_precision=half)

    def _by_update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Update by a user's `update`, of which `_update_impl` knows nothing."""
        super().update_multi_precision(index, weight, grad, state)

    def _update_impl(self, index: Any, weight: Any, grad: Any, state: Any, multi_precision: bool = False) -> None:
        raise NotImplementedError
