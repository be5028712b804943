"""Optimizers made of a formula: which operator of `op.defs.optimizer` updates a parameter, and with what numbers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..ndarray import NDArray
from ..op.registry import Call, get_op
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
    depends on the parameter's state or on how often it was updated is told by `formula_of` and `rates`.
    """

    formula = ""
    multi = ""  # what stands before `formula` in the name of the operator for many parameters, if there is one
    has_float32_states = False  # also for 16-bit weights

    def create_state(self, index: Any, weight: NDArray) -> Any:
        """A tuple of zeros of the weight's shape, one for each state of the formula; None if it has no states."""
        dtype = np.float32 if self.has_float32_states and weight.dtype in HALF else None
        return tuple(zeros_like(weight, dtype) for _ in range(get_formula(self.formula_of(None)).state_count)) or None

    def formula_of(self, state: Any) -> str:
        """Name of the operator that updates a parameter with this state."""
        return self.formula

    def rates(self, index: Any, lr: float, state: Any) -> tuple[float, ...]:
        """The runtime hyperparameters of a parameter's next update, in the operator's order, but `rescale_grad`."""
        return (lr,)

    def settings(self, known: Formula, index: Any) -> dict[str, Any]:
        """The hyperparameters of a parameter that are compiled in, but its decay."""
        found = {n: getattr(self, n, None) for n in known.settings}
        found = {n: v for n, v in found.items() if v is not None}
        if known.clip:
            found[known.clip] = self._clip
        return found

    @property
    def draws_random(self) -> bool:
        """Whether its formula draws random numbers."""
        return get_op(self.formula_of(None)).has_key

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
        names = [self.formula_of(s) for s in states]
        rates = [self.rates(*one) for one in zip(indices, lrs, states, strict=True)]
        if not self.multi:
            return [self._single(n, indices, rates, wds, k) for k, n in enumerate(names)]
        found = []
        for (name, dense, _), which in fusible_indices(names, weights, grads).items():
            if get_formula(name).is_multi:
                found.append(self._several(name, indices, rates, wds, which))
            elif dense and len(which) > 1:
                found.append(self._several(self.multi + name, indices, rates, wds, which))
            else:
                found += [self._single(name, indices, rates, wds, k) for k in which]
        return found

    def _single(self, name: str, indices: Sequence[Any], rates: Any, wds: Sequence[float], k: int) -> Update:
        known = get_formula(name)
        settings = self.settings(known, indices[k])
        if known.decay:
            settings["wd"] = wds[k]
        scalars = rates[k] if "lr" in known.runtime else ()
        if "rescale_grad" in known.runtime:
            scalars = (*scalars, self.rescale_grad)
        return Update(update_call(name, **settings), scalars, (k,))

    def _several(
        self, name: str, indices: Sequence[Any], rates: Any, wds: Sequence[float], which: Sequence[int]
    ) -> Update:
        known, n = get_formula(name), len(which)
        settings = self.settings(known, indices[which[0]])
        settings["wds"], settings[known.count] = tuple([wds[k] for k in which]), n
        columns = iter(zip(*[rates[k] for k in which], strict=True))
        scalars: list[float] = []
        for runtime in known.runtime:
            scalars += (self.rescale_grad,) if runtime == "rescale_grad" else next(columns)
        return Update(update_call(name, n, **settings), tuple(scalars), which)

    def state_arrays(self, weight: NDArray, state: Any) -> tuple[NDArray, ...]:
        """The arrays of a state, in the order in which the operator has them."""
        if state is None:
            return ()
        return tuple([s for s in state if s is not None]) if isinstance(state, (tuple, list)) else (state,)

    def _steps(
        self,
        indices: Sequence[Any],
        weights: Sequence[NDArray],
        grads: Sequence[NDArray],
        states: Sequence[Any],
        lrs: Sequence[float],
        wds: Sequence[float],
    ) -> None:
        for call, scalars, which in self._updates(indices, weights, grads, states, lrs, wds):
            inputs: list[NDArray] = []
            for k in which:
                inputs += (weights[k], grads[k], *self.state_arrays(weights[k], states[k]))
            invoke_out(call, inputs, [weights[k] for k in which], scalars)


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
