"""Optimizers for large batches: layer-wise rates from the norms of weights and gradients."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from ..core.knobs import AGGREGATION
from ..ndarray import NDArray
from ..sparse import invoke_out
from .hooks import defines_update_alone, is_asked
from .optimizer import Optimizer, register, update_call, zeros_like
from .rule_optimizer import ImplOptimizer
from .sgd import SGD


@register
class LAMB(ImplOptimizer):
    """Adam's direction with a trust ratio `‖w‖ / ‖u‖` per layer (You et al., 2020); see `lamb_update_phase1`.

    Args:
        learning_rate: the rate.
        beta1, beta2, epsilon: as in `Adam`.
        lower_bound, upper_bound: limits of the weight's norm in the ratio, None for none.
        bias_correction: correct mean and variance for their start at 0.
        **kwargs: see `Optimizer`.
    """

    formula = multi = "_multi_lamb_update"

    def __init__(
        self,
        learning_rate: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-6,
        lower_bound: float | None = None,
        upper_bound: float | None = None,
        bias_correction: bool = True,
        **kwargs: Any,
    ):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon
        self.lower_bound = lower_bound
        self.upper_bound = upper_bound
        self.bias_correction = bias_correction
        # MXNet takes this from a file of states, and its LAMB fails where it is 0.
        several = max(1, min(45, AGGREGATION.integer())) if AGGREGATION.is_set() else 45
        self.aggregate_num = 0 if defines_update_alone(type(self)) else several

    def create_state(self, index: Any, weight: NDArray) -> tuple[NDArray, NDArray]:
        """`(mean, variance)` of the weight's shape and dtype."""
        return zeros_like(weight), zeros_like(weight)

    def _update_impl(self, index: Any, weight: Any, grad: Any, state: Any, multi_precision: bool = False) -> None:
        if multi_precision:
            self._on_copies(self._change, index, weight, grad, state)
        else:
            self._change(index, weight, grad, state)

    def _count_and_ask(self, index: Any) -> tuple[Sequence[float], Sequence[float]]:
        if not isinstance(index, (list, tuple)) or not is_asked(self):
            return super()._count_and_ask(index)
        each = [super(LAMB, self)._count_and_ask(i) for i in index]
        return [lr for (lr,), _ in each], [wd for _, (wd,) in each]

    def rates(self, indices: Sequence[Any], lrs: Sequence[float], states: Sequence[Any]) -> list[tuple[float, ...]]:
        """The rates and the numbers of the next updates."""
        return [(lr, self._index_update_count[i]) for i, lr in zip(indices, lrs, strict=True)]


@register
class LARS(SGD):
    """SGD with momentum at the rate `lr * eta * ‖w‖ / (‖g‖ + wd * ‖w‖ + eps)` per layer (You et al., 2017).

    Parameters that `param_idx2name` names with gamma, beta or bias at the end keep the plain rate, and of the named
    ones only weights decay; `gluon.Trainer` names none.

    Args:
        momentum: 0 for none.
        lazy_update: see `SGD`.
        eta: trust coefficient.
        eps: added to the denominator.
        momentum_correction: multiply the momentum by the change of the rate since the last update.
        **kwargs: see `Optimizer`.
    """

    multi, is_replayable = "", False

    def __init__(
        self,
        momentum: float = 0.0,
        lazy_update: bool = True,
        eta: float = 0.001,
        eps: float = 0,
        momentum_correction: bool = True,
        **kwargs: Any,
    ):
        super().__init__(momentum, lazy_update, **kwargs)
        self.momentum_correction = momentum_correction
        self.eta = eta
        self.eps = eps
        self.skip = 0
        self.last_lr: float | None = None
        self.cur_lr: float | None = None

    _weight_decay_names = ("_weight",)

    def _get_lrs(self, indices: Sequence[Any]) -> list[float]:
        lr = self.learning_rate
        self.last_lr = lr if self.cur_lr is None else self.cur_lr
        self.cur_lr = lr
        return self._rates_from(lr, indices)

    def formulas(self, states: Sequence[Any]) -> list[str]:
        """Names of the operators that update parameters with these states."""
        return ["_mp_lars_update" if isinstance(s, (tuple, list)) else "_lars_update" for s in states]

    def state_arrays(self, weights: Sequence[NDArray], states: Sequence[Any]) -> list[Sequence[NDArray]]:
        """Momentum and float32 copy of each; without momentum a passing array of zeros serves as one."""
        found = []
        for weight, state in zip(weights, states, strict=True):
            mom, *master = state if isinstance(state, (tuple, list)) else (state,)
            found.append([zeros_like(master[0] if master else weight) if mom is None else mom, *master])
        return found

    def rates(self, indices: Sequence[Any], lrs: Sequence[float], states: Sequence[Any]) -> list[tuple[float, ...]]:
        """The rates and the momenta, which are corrected for the change of the rate."""
        change = self.cur_lr / self.last_lr if self.momentum_correction and self.last_lr and self.cur_lr else 1.0
        moms = [s[0] if isinstance(s, (tuple, list)) else s for s in states]
        return [(lr, self.momentum * change if m is not None else 0.0) for lr, m in zip(lrs, moms, strict=True)]

    def own_settings(self, indices: Sequence[Any]) -> list[tuple[tuple[str, Any], ...]]:
        """Whether each parameter has a rate of its own, by its name."""
        # As in MXNet, the names of gluon's parameters (`param_dict`) are not asked.
        names = [str(self.idx2name.get(i, i)) for i in indices]
        return [(("layerwise", not name.endswith(("gamma", "beta", "bias"))),) for name in names]


@register
class LBSGD(Optimizer):
    """SGD that applies the mean of `batch_scale` gradients at once, with a warm-up of the rate to `batch_scale` times.

    Args:
        momentum: 0 for none.
        multi_precision: see `Optimizer`.
        warmup_strategy: growth of the rate's factor from 1: `"linear"`, `"power2"`, `"sqrt"`; `"lars"` derives the
            factor from the norms of weight and gradient instead.
        warmup_epochs, updates_per_epoch: their product is the length of the warm-up.
        batch_scale: gradients per update.
        begin_epoch, num_epochs: first epoch (for resuming) and number of epochs.
        **kwargs: see `Optimizer`.
    """

    def __init__(
        self,
        momentum: float = 0.0,
        multi_precision: bool = False,
        warmup_strategy: str = "linear",
        warmup_epochs: int = 5,
        batch_scale: float = 1,
        updates_per_epoch: int = 32,
        begin_epoch: int = 0,
        num_epochs: int = 60,
        **kwargs: Any,
    ):
        super().__init__(multi_precision=multi_precision, **kwargs)
        self.momentum = momentum
        self.warmup_strategy = warmup_strategy
        self.warmup_epochs = warmup_epochs
        self.batch_scale = batch_scale
        self.updates_per_epoch = updates_per_epoch
        self.init_updates = begin_epoch * updates_per_epoch
        self.num_epochs = num_epochs
        self.lbmult = 1
        self.cumgrads: dict[Any, Any] = {}
        self.adaptive = False
        self.admult = 1
        logging.info("Running Large-Batch SGD Algorithm")
        logging.info(
            "(Batch_scale=%f, warmup_epochs=%d, warmup_strategy=%s, updates_per_epoch=%d)",
            batch_scale,
            warmup_epochs,
            warmup_strategy,
            updates_per_epoch,
        )

    def create_state(self, index: Any, weight: NDArray) -> NDArray | None:
        """Momentum of the weight's shape and dtype, or None."""
        return zeros_like(weight) if self.momentum != 0.0 else None

    def _count_and_ask(self, index: Any) -> tuple[Sequence[float], Sequence[float]]:
        # Each index is counted after it was asked: the first one of a step sees the schedule one update behind.
        rates: list[float] = []
        decays: list[float] = []
        for i in index if isinstance(index, (list, tuple)) else (index,):
            rates += self._rates(i)
            decays += self._decays(i)
            self._update_count(i)
        return rates, decays

    def _warmup_factor(self, done: int) -> float:
        length = self.warmup_epochs * self.updates_per_epoch
        if done >= length:
            return self.batch_scale
        powers = {"linear": 1.0, "power2": 2.0, "sqrt": 0.5}
        if length <= 1 or self.warmup_strategy not in powers:
            return 1.0
        return 1.0 + (self.batch_scale - 1) * (done / length) ** powers[self.warmup_strategy]

    def _trust_factor(self, weight: NDArray, grad: NDArray, wd: float) -> float:
        w2, g2 = float((weight * weight).sum().asscalar()), float((grad * grad).sum().asscalar())
        return min(max((w2 / (g2 + wd * w2 + 1e-18)) ** 0.5, 0.01), 100.0)

    def _step(self, index: Any, weight: NDArray, grad: NDArray, state: Any, lr: float, wd: float) -> None:
        gathered = self.cumgrads.get(index)
        if gathered and gathered["num_cums"] % self.batch_scale > 0:
            total, done = gathered["cum_grad"] + grad, gathered["num_cums"] + 1
        else:
            total, done = grad.copy(), (gathered["num_cums"] if gathered else self.init_updates) + 1
        self.cumgrads[index] = {"cum_grad": total, "num_cums": done}
        if done % self.batch_scale:
            return
        grad = total / self.batch_scale
        lars = self.warmup_strategy == "lars"
        lr *= self._trust_factor(weight, grad, wd) if lars else self._warmup_factor(done)
        if state is None:
            call = update_call("sgd_update", wd=wd, clip_gradient=self._clip)
            invoke_out(call, (weight, grad), (weight,), (lr, self.rescale_grad))
        else:
            call = update_call("sgd_mom_update", momentum=self.momentum, wd=wd, clip_gradient=self._clip)
            invoke_out(call, (weight, grad, state), (weight,), (lr, self.rescale_grad))
