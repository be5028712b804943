"""Optimizers made of a formula: which operator of `op.defs.optimizer` updates a parameter, and with what numbers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from operator import is_
from typing import Any, NamedTuple

import numpy as np

from ..ndarray import NDArray
from ..ndarray.handle import realize
from ..op.registry import Call, get_op
from ..op.runtime_scalars import SharedScalars
from ..op.schema import AUX
from ..sparse import invoke_out
from .hooks import defines_update_alone, is_asked
from .optimizer import (
    HALF,
    Factor,
    Optimizer,
    as_lists,
    count_updates,
    counts_factors,
    fusible_indices,
    products,
    update_call,
    zeros_like,
)


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
        name: of the operator.
        settings: names of the hyperparameters that are compiled in and that the optimizer has as attributes.
        clip, decay, count: names of the bound of the gradient, the decay and the number of groups, `""` for none.
        runtime: names of the runtime hyperparameters.
        state_count: how many states a parameter has.
        is_multi: it updates many parameters.
    """

    name: str
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
    return Formula(name, tuple(known), clip, decay, count, op.runtime, states, op.variadic)


class RuleOptimizer(Optimizer):
    """An optimizer that updates each parameter by an operator made of one formula.

    A subclass names the operator in `formula`. Its attributes with names of hyperparameters are their values. What
    depends on a parameter's state or on how often it was updated is told by `formulas` and `rates`.
    """

    formula = ""
    multi = ""  # what stands before `formula` in the name of the operator for many parameters, if there is one
    has_float32_states = False  # also for 16-bit weights
    is_replayable = False  # whether updates of the same arrays differ by `rates` and settings alone

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
                return [self._several(name, [lrs], wds, range(len(names)))]
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
        known = self.formula_of_several(name)
        return Update(*self.call_of_several(known, wds)(self.runtime_scalars(known, columns)), which)

    def formula_of_several(self, name: str) -> Formula:
        """The operator for many parameters in place of that for one of them."""
        return get_formula(name if get_formula(name).is_multi else self.multi + name)

    def call_of_several(self, known: Formula, wds: Sequence[float]) -> SharedScalars:
        """The call that updates parameters with these decays."""
        settings = {**self.settings(known), "wds": tuple(wds), known.count: len(wds)}
        return shared_scalars(update_call(known.name, len(wds), **settings))

    def runtime_scalars(self, known: Formula, columns: Sequence[Sequence[float]]) -> dict[str, Any]:
        """The runtime hyperparameters by name, of rates in columns."""
        rest = iter(columns)
        return {r: self.rescale_grad if r == "rescale_grad" else next(rest) for r in known.runtime}

    def columns(self, indices: Sequence[Any], lrs: Sequence[float], states: Sequence[Any]) -> Sequence[Sequence[float]]:
        """The runtime hyperparameters of next updates, each of all parameters."""
        if type(self).rates is RuleOptimizer.rates:
            return [lrs]
        return list(zip(*self.rates(indices, lrs, states), strict=True))

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


class UpdateReplay:
    """An update of many parameters by one call, which is made again and again with other rates.

    Args:
        optimizer: a replayable one.
        indices, weights, grads, states: what it updates. The first two are tuples: nobody changes them.
        known: the operator that updates all of them.
        params: Gluon parameters, from which the optimizer has factors of its rate and decay.
    """

    def __init__(
        self,
        optimizer: RuleOptimizer,
        indices: tuple[Any, ...],
        weights: tuple[NDArray, ...],
        grads: Sequence[NDArray],
        states: Sequence[Any],
        known: Formula,
        params: Sequence[Any],
    ):
        self._optimizer, self._indices, self._weights, self._params = optimizer, indices, weights, params
        self._grads, self._states = list(grads), list(states)
        self._version = Factor.version
        self._lr_mults = [p.lr_mult for p in params]
        self._wd_mults = [p.wd_mult for p in params]
        self._formula = known
        own = optimizer.state_arrays(weights, states)
        self._inputs = list(chain.from_iterable([(w, g, *s) for w, g, s in zip(weights, grads, own, strict=True)]))
        self._settings: Any = None
        self._wd: Any = None
        self._shared: SharedScalars | None = None

    @classmethod
    def of(
        cls, optimizer: Any, indices: Any, weights: Any, grads: Sequence[NDArray], states: Sequence[Any]
    ) -> UpdateReplay | None:
        """Return an update as one that is made again and again; None if each must be made anew."""
        if not (type(indices) is type(weights) is tuple and len(indices) > 1 and optimizer.param_dict):
            return None
        if not (isinstance(optimizer, RuleOptimizer) and optimizer.is_replayable and not optimizer.multi_precision):
            return None
        kinds = fusible_indices(optimizer.formulas(states), weights, grads)
        params = list(map(optimizer.param_dict.get, indices))
        ((name, is_dense, _), *others) = kinds
        if others or not is_dense or is_asked(optimizer) or not all(map(counts_factors, set(map(type, params)))):
            return None
        return cls(optimizer, indices, weights, grads, states, optimizer.formula_of_several(name), params)

    def is_of(self, optimizer: Any, indices: Any, weights: Any, grads: Sequence[NDArray], states: Any) -> bool:
        """Whether an update of arrays, with states by index, is this one."""
        return (
            indices is self._indices
            and weights is self._weights
            and optimizer is self._optimizer
            and self._version == Factor.version
            and not optimizer.multi_precision
            and len(grads) == len(self._grads)
            and all(map(is_, grads, self._grads))
            and all(map(is_, map(states.get, indices), self._states))
            and all(map(is_, map(optimizer.param_dict.get, indices), self._params))
            and not is_asked(optimizer)
        )

    def run(self) -> None:
        """Count the update, and make it."""
        optimizer, known = self._optimizer, self._formula
        if self._weights[0].buffer is None:
            realize(self._weights[0])  # as `Optimizer.update` does
        count_updates(optimizer, self._indices)
        lrs = products(optimizer.learning_rate, self._lr_mults)
        settings, wd = optimizer.settings(known), optimizer.wd
        if self._shared is None or settings != self._settings or wd != self._wd:
            self._settings, self._wd = settings, wd
            self._shared = optimizer.call_of_several(known, products(wd, self._wd_mults))
        columns = optimizer.columns(self._indices, lrs, self._states)
        call, scalars = self._shared(optimizer.runtime_scalars(known, columns))
        invoke_out(call, self._inputs, self._weights, scalars)


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
