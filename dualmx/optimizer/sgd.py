"""SGD and relatives with one rate per parameter."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.knobs import AGGREGATION
from ..ndarray import NDArray
from .hooks import defines_update_alone
from .optimizer import HALF, register, zeros_like
from .rule_optimizer import ImplOptimizer, RuleOptimizer


class MasterCopy(ImplOptimizer):
    """Keeps the state of 16-bit weights as `(momentum or None, float32 copy)`, for ops that update both at once."""

    momentum: float

    def formulas(self, states: Sequence[Any]) -> list[str]:
        """Names of the operators that update parameters with these states."""
        if set(map(type, states)) == {NDArray}:
            return [self.formula] * len(states)
        found = []
        for state in states:
            if isinstance(state, (tuple, list)):
                found.append("mp_sgd_update" if state[0] is None else "mp_" + self.formula)
            else:
                found.append("sgd_update" if state is None else self.formula)
        return found

    def state_arrays(self, weights: Sequence[NDArray], states: Sequence[Any]) -> list[Sequence[NDArray]]:
        """Momentum, if there is one, and float32 copy of each."""
        found = super().state_arrays(weights, states)
        return [a[1:] if a and a[0] is None else a for a in found]

    def create_state(self, index: Any, weight: NDArray) -> NDArray | None:
        """Momentum of the weight's shape and dtype, or None."""
        return zeros_like(weight) if self.momentum != 0.0 else None

    def create_state_multi_precision(self, index: Any, weight: NDArray) -> Any:
        """`(momentum, float32 copy)` for a 16-bit weight with `multi_precision`, else the momentum."""
        if weight.dtype in HALF:
            if self.multi_precision:
                master = weight.astype("float32")
                return self.create_state(index, master), master
            warnings.warn(
                f"{type(self).__name__}: accumulating in {np.dtype(weight.dtype).name} loses accuracy; "
                "consider multi_precision=True",
                stacklevel=2,
            )
        return self.create_state(index, weight)

    def _by_update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        self.update(index, weight, grad, state)

    def _update_impl(self, index: Any, weight: Any, grad: Any, state: Any, multi_precision: bool = False) -> None:
        self._change(index, weight, grad, state)  # a tuple as state tells that the weight has a float32 copy


@register
class SGD(MasterCopy):
    """`m = momentum * m - lr * (g' + wd * w); w + m`, with `g' = clip(rescale_grad * g)`.

    The learning rate is inside the momentum, so a change of the rate does not rescale what has accumulated. Lists of
    parameters are updated by one operator call.

    Args:
        momentum: 0 for plain descent, which keeps no state.
        lazy_update: for row_sparse gradients, leave absent rows alone (no decay, no momentum).
        **kwargs: see `Optimizer`.

    Example:
        >>> import dualmx as mx
        >>> opt = SGD(learning_rate=0.1, momentum=0.9)
        >>> w, g = mx.nd.ones((2,)), mx.nd.ones((2,))
        >>> opt.update(0, w, g, opt.create_state(0, w))
        >>> w.asnumpy()
        array([0.9, 0.9], dtype=float32)
    """

    formula, multi, is_replayable = "sgd_mom_update", "multi_", True

    def __init__(self, momentum: float = 0.0, lazy_update: bool = True, **kwargs: Any):
        super().__init__(**kwargs)
        self.momentum = momentum
        self.lazy_update = lazy_update
        # A subclass that defines update() for one parameter gets them one by one.
        self.aggregate_num = 0 if defines_update_alone(type(self)) else AGGREGATION.integer()

    def _count_and_ask(self, index: Any) -> tuple[Sequence[float], Sequence[float]]:
        indices = index if isinstance(index, (list, tuple)) else [index]
        self._update_count(indices)
        return self._get_lrs(indices), self._get_wds(indices)


@register
class ccSGD(SGD):  # noqa: N801
    """Old name of `SGD`."""


@register
class NAG(MasterCopy):
    """Nesterov's accelerated gradient; see `nag_mom_update`. Without momentum it is `SGD`.

    Args:
        momentum: 0 for plain descent.
        **kwargs: see `Optimizer`.
    """

    formula = "nag_mom_update"

    def __init__(self, momentum: float = 0.0, **kwargs: Any):
        super().__init__(**kwargs)
        self.momentum = momentum


@register
class Signum(RuleOptimizer):
    """Sign of the momentum; see `signum_update`, and `signsgd_update` without momentum.

    Args:
        learning_rate: step of every element.
        momentum: weight of the old momentum.
        wd_lh: decay outside the momentum, times the rate.
        **kwargs: see `Optimizer`.
    """

    def __init__(self, learning_rate: float = 0.01, momentum: float = 0.9, wd_lh: float = 0.0, **kwargs: Any):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.momentum = momentum
        self.wd_lh = wd_lh

    def formulas(self, states: Sequence[Any]) -> list[str]:
        """Names of the operators that update parameters with these states."""
        return ["signsgd_update" if state is None else "signum_update" for state in states]

    def create_state(self, index: Any, weight: NDArray) -> NDArray | None:
        """Momentum of the weight's shape and dtype, or None."""
        return zeros_like(weight) if self.momentum != 0.0 else None

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Change `weight` and `state` in place by `grad`; all four may be equally long lists."""
        self._update_impl(index, weight, grad, state)

    def _update_impl(self, index: Any, weight: Any, grad: Any, state: Any, multi_precision: bool = False) -> None:
        self._change(index, weight, grad, state)


@register
class SGLD(RuleOptimizer):
    """Stochastic gradient Langevin dynamics: half a descent step plus noise of variance `lr` (Welling & Teh, 2011)."""

    formula = "_sgld_update"


@register
class DCASGD(RuleOptimizer):
    """SGD for asynchronous training, compensating for stale gradients (Zheng et al., 2017).

    Args:
        momentum: 0 keeps only the previous weight as state.
        lamda: strength of the compensation.
        **kwargs: see `Optimizer`.
    """

    formula = "_dcasgd_update"

    def __init__(self, momentum: float = 0.0, lamda: float = 0.04, **kwargs: Any):
        super().__init__(**kwargs)
        self.momentum = momentum
        self.weight_previous: dict[Any, Any] = {}
        self.lamda = lamda

    def create_state(self, index: Any, weight: NDArray) -> tuple[NDArray | None, NDArray]:
        """`(momentum or None, previous weight)`."""
        return zeros_like(weight) if self.momentum != 0.0 else None, weight.copy()

    def state_arrays(self, weights: Sequence[NDArray], states: Sequence[Any]) -> list[Sequence[NDArray]]:
        """Momentum and previous weight of each; without momentum a passing array of zeros serves as one."""
        return [
            (zeros_like(w) if mom is None else mom, previous)
            for w, (mom, previous) in zip(weights, states, strict=True)
        ]
