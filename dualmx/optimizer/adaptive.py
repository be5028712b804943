"""Optimizers with a step size per element: Adam, AdaGrad, RMSProp and others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.errors import ArgumentError
from ..ndarray import NDArray, zeros
from .optimizer import register
from .rule_optimizer import Formula, RuleOptimizer, Update


@register
class Adam(RuleOptimizer):
    """Adam (Kingma & Ba, 2015) with coupled decay: `w - lr_t * m / (sqrt(v) + epsilon)`.

    `lr_t = lr * sqrt(1 - beta2**t) / (1 - beta1**t)`, `t` counting the updates of the parameter from 1.

    Args:
        learning_rate: the rate.
        beta1, beta2: weights of the old mean and the old variance.
        epsilon: added to the root of the variance, after bias correction.
        lazy_update: for row_sparse gradients, leave absent rows alone.
        **kwargs: see `Optimizer`.

    Example:
        >>> import dualmx as mx
        >>> opt = Adam(learning_rate=0.1)
        >>> w = mx.nd.ones((2,))
        >>> opt.update(0, w, mx.nd.ones((2,)), opt.create_state(0, w))
        >>> w.asnumpy().round(4)
        array([0.9, 0.9], dtype=float32)
    """

    formula, multi, is_replayable = "adam_update", "_multi_", True

    def __init__(
        self,
        learning_rate: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        lazy_update: bool = True,
        **kwargs: Any,
    ):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon
        self.lazy_update = lazy_update

    def rates(self, indices: Sequence[Any], lrs: Sequence[float], states: Sequence[Any]) -> list[tuple[float, ...]]:
        """The rates, with the bias correction of the next update."""
        counts = [self._index_update_count[i] for i in indices]
        factors = {t: (1.0 - self.beta2**t) ** 0.5 / (1.0 - self.beta1**t) for t in set(counts)}
        return [(lr * factors[t],) for lr, t in zip(lrs, counts, strict=True)]


@register
class AdaGrad(RuleOptimizer):
    """AdaGrad (Duchi et al., 2011): `h = h + g'**2; w - lr * (g' / sqrt(h + eps) + wd * w)`.

    Args:
        eps: inside the root.
        **kwargs: see `Optimizer`.
    """

    formula, has_float32_states = "_sparse_adagrad_update", True

    def __init__(self, eps: float = 1e-7, **kwargs: Any):
        super().__init__(**kwargs)
        self.float_stable_eps = eps

    def create_state(self, index: Any, weight: NDArray) -> NDArray:
        """The history, a float32 array at least."""
        return super().create_state(index, weight)[0]

    def settings(self, known: Formula) -> dict[str, Any]:
        """The hyperparameters that are compiled in, but the decay."""
        return {**super().settings(known), "epsilon": self.float_stable_eps}


@register
class GroupAdaGrad(RuleOptimizer):
    """AdaGrad with one history value per row, for embeddings; it has no weight decay.

    Args:
        eps: inside the root.
        **kwargs: see `Optimizer`.
    """

    formula = "_contrib_group_adagrad_update"

    def __init__(self, eps: float = 1e-5, **kwargs: Any):
        super().__init__(**kwargs)
        self.float_stable_eps = eps

    def create_state(self, index: Any, weight: NDArray) -> NDArray:
        """The history, of shape (rows, 1)."""
        if len(weight.shape) != 2:
            raise ArgumentError(f"GroupAdaGrad: weight {index!r} has shape {weight.shape}: expected 2 axes")
        return zeros((weight.shape[0], 1), ctx=weight.context)

    def settings(self, known: Formula) -> dict[str, Any]:
        """The hyperparameters that are compiled in, but the decay."""
        return {**super().settings(known), "epsilon": self.float_stable_eps}

    def _updates(
        self, indices: Sequence[Any], weights: Any, grads: Any, states: Any, lrs: Any, wds: Sequence[float]
    ) -> list[Update]:
        for index, wd in zip(indices, wds, strict=True):
            if wd != 0:
                raise ArgumentError(
                    f"GroupAdaGrad: wd={wd} for parameter {index!r}: this optimizer has no weight decay"
                )
        return super()._updates(indices, weights, grads, states, lrs, wds)


@register
class RMSProp(RuleOptimizer):
    """RMSProp (Tieleman & Hinton, 2012), or with `centered` Graves' form with momentum; both with coupled decay.

    Args:
        learning_rate: the rate.
        gamma1: weight of the old squared gradient.
        gamma2: momentum of the centred form.
        epsilon: inside the root.
        centered: subtract the squared mean of the gradient from its second moment.
        clip_weights: bound of the weights, None for none.
        **kwargs: see `Optimizer`.
    """

    has_float32_states = True

    def __init__(
        self,
        learning_rate: float = 0.001,
        gamma1: float = 0.9,
        gamma2: float = 0.9,
        epsilon: float = 1e-8,
        centered: bool = False,
        clip_weights: float | None = None,
        **kwargs: Any,
    ):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.gamma1 = gamma1
        self.gamma2 = gamma2
        self.centered = centered
        self.epsilon = epsilon
        self.clip_weights = clip_weights

    def formulas(self, states: Sequence[Any]) -> list[str]:
        """Names of the operators that update parameters with these states."""
        return ["rmspropalex_update" if self.centered else "rmsprop_update"] * len(states)

    def settings(self, known: Formula) -> dict[str, Any]:
        """The hyperparameters that are compiled in, but the decay."""
        return {**super().settings(known), "clip_weights": self.clip_weights or -1.0}


@register
class AdaDelta(RuleOptimizer):
    """AdaDelta (Zeiler, 2012), which uses no learning rate: `w - d - wd * w`; see `_adadelta_update`.

    Args:
        rho: weight of the old averages.
        epsilon: inside the roots.
        **kwargs: see `Optimizer`.
    """

    formula, has_float32_states = "_adadelta_update", True

    def __init__(self, rho: float = 0.90, epsilon: float = 1e-5, **kwargs: Any):
        super().__init__(**kwargs)
        self.rho = rho
        self.epsilon = epsilon

    def _count_and_ask(self, index: Any) -> tuple[Sequence[float], Sequence[float]]:
        wds = self._decays(index)  # no rate is in the formula
        self._update_count(index)
        return [0.0] * len(wds), wds


@register
class Adamax(RuleOptimizer):
    """Adam by the infinity norm (Kingma & Ba, 2015, section 7.1): `w - lr / (1 - beta1**t) * m / u`.

    Args:
        learning_rate: the rate.
        beta1, beta2: weight of the old mean, decay of the peak `u`.
        **kwargs: see `Optimizer`.
    """

    formula = "_adamax_update"

    def __init__(self, learning_rate: float = 0.002, beta1: float = 0.9, beta2: float = 0.999, **kwargs: Any):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1 = beta1
        self.beta2 = beta2

    def rates(self, indices: Sequence[Any], lrs: Sequence[float], states: Sequence[Any]) -> list[tuple[float, ...]]:
        """The rates, with the bias correction of the next update."""
        counts = self._index_update_count
        return [(lr / (1.0 - self.beta1 ** counts[i]),) for i, lr in zip(indices, lrs, strict=True)]


@register
class Nadam(RuleOptimizer):
    """Adam with Nesterov momentum (Dozat, 2016); momentum at t: `beta1 * (1 - 0.5 * 0.96**(t * schedule_decay))`.

    Args:
        learning_rate: the rate.
        beta1, beta2, epsilon: as in `Adam`.
        schedule_decay: speed at which the momentum rises to `beta1`.
        **kwargs: see `Optimizer`.
    """

    formula = "_nadam_update"
    # By index, the number of its last update and `m_schedule` after that.
    _products: dict[Any, tuple[int, float]] | None = None
    # Where updates come in any order: by index, its turn, from 0, among how many arrays; see `schedule_product`.
    _update_positions: dict[Any, tuple[int, int]] | None = None

    def __init__(
        self,
        learning_rate: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        schedule_decay: float = 0.004,
        **kwargs: Any,
    ):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon
        self.schedule_decay = schedule_decay
        self.m_schedule = 1.0

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        state.pop("_products", None)
        return state

    def set_update_positions(self, positions: dict[Any, tuple[int, int]]) -> None:
        """Take updates in any order: the position, from 0, of each index among how many arrays an update comes."""
        self._update_positions = positions

    def _momentum(self, t: int) -> float:
        return self.beta1 * (1.0 - 0.5 * 0.96 ** (t * self.schedule_decay))

    def schedule_product(self, t: int, turn: int, count: int) -> float:
        """`m_schedule` in the update number `t` of array `turn` of `count`, each of which is updated in every round."""
        product, s = 1.0, 1
        while s < t and product > 1e-20:  # of less, 1 - product knows nothing
            product *= self._momentum(s) ** count
            s += 1
        return product * self._momentum(t) ** (turn + 1)

    def rates(self, indices: Sequence[Any], lrs: Sequence[float], states: Sequence[Any]) -> list[tuple[float, ...]]:
        """The rates, and the factors of gradient, mean and variance in the next updates."""
        return [self._factors(i, lr) for i, lr in zip(indices, lrs, strict=True)]

    def _factors(self, index: Any, lr: float) -> tuple[float, ...]:
        t = self._index_update_count[index]
        now, then = self._momentum(t), self._momentum(t + 1)
        if self._products is None:
            self._products = {}
        number, product = self._products.get(index, (0, 0.0))
        if self._update_positions is not None:
            self.m_schedule = self.schedule_product(t, *self._update_positions.get(index, (0, 1)))
        else:  # copies of a weight on other contexts are updated alike: the first of them makes the product longer
            self.m_schedule = product if number == t else self.m_schedule * now
        self._products[index] = t, self.m_schedule
        return (
            lr,
            (1.0 - now) / (1.0 - self.m_schedule),
            then / (1.0 - self.m_schedule * then),
            1.0 / (1.0 - self.beta2**t),
        )


@register
class Ftrl(RuleOptimizer):
    """Follow the regularised leader (McMahan et al., 2013), for sparse solutions; see `ftrl_update`.

    Args:
        lamda1: L1 regularisation.
        learning_rate: the rate.
        beta: added to the root of the accumulated squares.
        **kwargs: see `Optimizer`.
    """

    formula, has_float32_states = "ftrl_update", True

    def __init__(self, lamda1: float = 0.01, learning_rate: float = 0.1, beta: float = 1, **kwargs: Any):
        super().__init__(**kwargs)
        self.lamda1 = lamda1
        self.beta = beta
        self.lr = learning_rate

    def _count_and_ask(self, index: Any) -> tuple[Sequence[float], Sequence[float]]:
        self._update_count(index)
        wds = self._decays(index)  # asked first, as in MXNet
        return self._rates(index), wds


@register
class FTML(RuleOptimizer):
    """Follow the moving leader (Zheng & Kwok, 2017); see `ftml_update`.

    Args:
        beta1, beta2: weights of the old leader and the old variance.
        epsilon: added to the root of the variance.
        **kwargs: see `Optimizer`.
    """

    formula = "ftml_update"

    def __init__(self, beta1: float = 0.6, beta2: float = 0.999, epsilon: float = 1e-8, **kwargs: Any):
        super().__init__(**kwargs)
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon

    def rates(self, indices: Sequence[Any], lrs: Sequence[float], states: Sequence[Any]) -> list[tuple[float, ...]]:
        """The rates and the numbers of the next updates."""
        return [(lr, self._index_update_count[i]) for i, lr in zip(indices, lrs, strict=True)]
