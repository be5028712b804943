"""SGD and relatives with one rate per parameter."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.knobs import AGGREGATION
from ..ndarray import NDArray
from .hooks import defines_update_alone
from .optimizer import HALF, ByImpl, Optimizer, fusible_indices, register, update_call, zeros_like


class MasterCopy(ByImpl):
    """Keeps the state of 16-bit weights as `(momentum or None, float32 copy)`, for ops that update both at once."""

    momentum: float

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

    is_pure_formula = has_constant_scalars = True

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

    def _steps(
        self,
        indices: Sequence[Any],
        weights: Sequence[NDArray],
        grads: Sequence[NDArray],
        states: Sequence[Any],
        lrs: Sequence[float],
        wds: Sequence[float],
    ) -> None:
        names = []
        for state in states:
            master = isinstance(state, (tuple, list))
            mom = state[0] if master else state
            names.append(("mp_sgd" if master else "sgd") + ("_update" if mom is None else "_mom_update"))
        for (name, dense, _), which in fusible_indices(names, weights, grads).items():
            if dense and len(which) > 1:
                self._fused_step(name, which, weights, grads, states, lrs, wds)
            else:
                for i in which:
                    self._single_step(name, weights[i], grads[i], states[i], lrs[i], wds[i])

    def _static(self, name: str) -> dict[str, Any]:
        return {"momentum": self.momentum} if "_mom_" in name else {}

    def _fused_step(
        self,
        name: str,
        which: Sequence[int],
        weights: Sequence[NDArray],
        grads: Sequence[NDArray],
        states: Sequence[Any],
        lrs: Sequence[float],
        wds: Sequence[float],
    ) -> None:
        inputs: list[NDArray] = []
        for i in which:
            inputs += (weights[i], grads[i], *_arrays(states[i]))
        call = update_call(
            "multi_" + name,
            len(which),
            num_weights=len(which),
            wds=tuple([wds[i] for i in which]),
            clip_gradient=self._clip,
            **self._static(name),
        )
        self._apply(call, inputs, [weights[i] for i in which], (*[lrs[i] for i in which], self.rescale_grad))

    def _single_step(self, name: str, weight: NDArray, grad: NDArray, state: Any, lr: float, wd: float) -> None:
        call = update_call(name, wd=wd, clip_gradient=self._clip, lazy_update=self.lazy_update, **self._static(name))
        self._apply(call, (weight, grad, *_arrays(state)), (weight,), (lr, self.rescale_grad))


def _arrays(state: Any) -> tuple[NDArray, ...]:
    if state is None:
        return ()
    return tuple(s for s in state if s is not None) if isinstance(state, (tuple, list)) else (state,)


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

    is_pure_formula = has_constant_scalars = True

    def __init__(self, momentum: float = 0.0, **kwargs: Any):
        super().__init__(**kwargs)
        self.momentum = momentum

    def _step(self, index: Any, weight: NDArray, grad: NDArray, state: Any, lr: float, wd: float) -> None:
        arrays, prefix = _arrays(state), "mp_" if isinstance(state, (tuple, list)) else ""
        if state is None or (prefix and state[0] is None):
            call = update_call(prefix + "sgd_update", wd=wd, clip_gradient=self._clip)
        else:
            call = update_call(prefix + "nag_mom_update", momentum=self.momentum, wd=wd, clip_gradient=self._clip)
        self._apply(call, (weight, grad, *arrays), (weight,), (lr, self.rescale_grad))


@register
class Signum(Optimizer):
    """Sign of the momentum; see `signum_update`, and `signsgd_update` without momentum.

    Args:
        learning_rate: step of every element.
        momentum: weight of the old momentum.
        wd_lh: decay outside the momentum, times the rate.
        **kwargs: see `Optimizer`.
    """

    is_pure_formula = has_constant_scalars = True

    def __init__(self, learning_rate: float = 0.01, momentum: float = 0.9, wd_lh: float = 0.0, **kwargs: Any):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.momentum = momentum
        self.wd_lh = wd_lh

    def create_state(self, index: Any, weight: NDArray) -> NDArray | None:
        """Momentum of the weight's shape and dtype, or None."""
        return zeros_like(weight) if self.momentum != 0.0 else None

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Change `weight` and `state` in place by `grad`; all four may be equally long lists."""
        self._update_impl(index, weight, grad, state)

    def _update_impl(self, index: Any, weight: Any, grad: Any, state: Any, multi_precision: bool = False) -> None:
        self._change(index, weight, grad, state)

    def _step(self, index: Any, weight: NDArray, grad: NDArray, state: Any, lr: float, wd: float) -> None:
        if state is None:
            self._apply(update_call("signsgd_update", wd=wd), (weight, grad), (weight,), (lr,))
            return
        call = update_call("signum_update", momentum=self.momentum, wd=wd, wd_lh=self.wd_lh, clip_gradient=self._clip)
        self._apply(call, (weight, grad, *_arrays(state)), (weight,), (lr, self.rescale_grad))


@register
class SGLD(Optimizer):
    """Stochastic gradient Langevin dynamics: half a descent step plus noise of variance `lr` (Welling & Teh, 2011)."""

    def _step(self, index: Any, weight: NDArray, grad: NDArray, state: Any, lr: float, wd: float) -> None:
        call = update_call("_sgld_update", wd=wd, clip_gradient=self._clip)
        self._apply(call, (weight, grad), (weight,), (lr, self.rescale_grad))


@register
class DCASGD(Optimizer):
    """SGD for asynchronous training, compensating for stale gradients (Zheng et al., 2017).

    Args:
        momentum: 0 keeps only the previous weight as state.
        lamda: strength of the compensation.
        **kwargs: see `Optimizer`.
    """

    def __init__(self, momentum: float = 0.0, lamda: float = 0.04, **kwargs: Any):
        super().__init__(**kwargs)
        self.momentum = momentum
        self.weight_previous: dict[Any, Any] = {}
        self.lamda = lamda

    def create_state(self, index: Any, weight: NDArray) -> tuple[NDArray | None, NDArray]:
        """`(momentum or None, previous weight)`."""
        return zeros_like(weight) if self.momentum != 0.0 else None, weight.copy()

    def _step(self, index: Any, weight: NDArray, grad: NDArray, state: Any, lr: float, wd: float) -> None:
        mom, previous = state
        call = update_call("_dcasgd_update", momentum=self.momentum, lamda=self.lamda, wd=wd, clip_gradient=self._clip)
        # Without momentum a passing array of zeros serves as one.
        mom = zeros_like(weight) if mom is None else mom
        self._apply(call, (weight, grad, mom, previous), (weight,), (lr, self.rescale_grad))
