"""Optimizers by Keras's names and arguments: those of `mx.optimizer`, with Keras's `apply_gradients`."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from .. import optimizer
from ..core.errors import ArgumentError, ArgumentTypeError, MXNetError, suggest
from ..gluon.parameter import Parameter
from ..gluon.trainer import Trainer
from ..ndarray import NDArray
from ..optimizer import Optimizer
from ..optimizer.optimizer import registered_class
from . import schedules as schedules
from .distribute.strategy import get_replica_context, get_strategy


class KerasOptimizer(Optimizer):
    """What an optimizer made here has beyond its class in `mx.optimizer`."""

    __slots__ = ("_trainer",)  # no setting, so it is neither saved nor sent
    _trainer: Trainer

    def apply_gradients(self, grads_and_vars: Iterable[tuple[Any, Any]], name: str | None = None) -> None:
        """Update weights by gradients, which are added up over the replicas of the strategy.

        Inside of `Strategy.run` the weights change when all replicas have run.

        Args:
            grads_and_vars: pairs of a gradient and a weight; those without a gradient (None) are left out.
            name: accepted.

        Raises:
            ArgumentError: no gradients, or weights that differ from those of the first call. ArgumentTypeError:
                something else than arrays and weights. MXNetError: the weights are on several devices, and no replica
                runs; or they are about to change already.
        """
        pairs = [(g, p) for g, p in grads_and_vars if g is not None]
        for g, p in pairs:
            if not isinstance(p, Parameter) or not isinstance(g, NDArray):
                found = f"a {type(g).__name__} for a {type(p).__name__}"
                raise ArgumentTypeError(f"apply_gradients: {found}: expected an NDArray for a weight of a model")
        if not pairs:
            raise ArgumentError("apply_gradients: no weight has a gradient; was the loss computed inside of the tape?")
        replica, params = get_replica_context(), [p for _, p in pairs]
        contexts = params[0].list_ctx()
        if replica is None and len(contexts) > 1:
            raise MXNetError(
                "apply_gradients: the weights are on several devices; call it in a function for strategy.run"
            )
        trainer = self._trainer_of(params)
        ctx = contexts[0] if replica is None else replica.context
        for g, p in pairs:
            if replica is not None and id(p) in replica.changed:
                raise MXNetError(
                    f"apply_gradients: {p.name} is about to change already; call strategy.run once per update"
                )
            g.copyto(p.grad(ctx))
            p.data(ctx).has_fresh_grad = True
        if replica is None:
            trainer.step(1)
            return
        replica.changed |= {id(p) for p in params}
        replica.merges.append((self, lambda: trainer.step(1)))

    def _trainer_of(self, params: list[Parameter]) -> Trainer:
        """The trainer that applies this optimizer to its weights, made at the first call."""
        before = {id(p) for p in self.param_dict.values()}
        if before and before != {id(p) for p in params}:
            raise ArgumentError(
                f"apply_gradients: {len(params)} weights, which are not the {len(before)} of the first call; an "
                "optimizer updates the same weights each time, so make one for each set of them"
            )
        if not hasattr(self, "_trainer"):
            self._trainer = Trainer(params, self, kvstore=get_strategy().store)
        return self._trainer

    def __reduce__(self) -> Any:
        return _blank, (registered_class(type(self)),), self.__getstate__()


@cache
def _class_of(kind: type[Optimizer]) -> Any:
    """`kind` with Keras's methods."""
    return type(kind.__name__, (KerasOptimizer, kind), {"__module__": __name__, "__doc__": kind.__doc__})


def _blank(kind: type[Optimizer]) -> Optimizer:
    """An optimizer without settings, which a pickle has."""
    return object.__new__(_class_of(kind))


def SGD(learning_rate: Any = 0.01, momentum: float = 0.0, nesterov: bool = False, **kwargs: Any) -> Any:
    """Return gradient descent, with momentum if wanted.

    Example:
        >>> type(SGD(0.1, momentum=0.9, nesterov=True)).__name__
        'NAG'
    """
    kind = optimizer.NAG if nesterov and momentum else optimizer.SGD
    return _class_of(kind)(momentum=momentum, **_rate(learning_rate), **_rest(kwargs))


def Adam(
    learning_rate: Any = 0.001, beta_1: float = 0.9, beta_2: float = 0.999, epsilon: float = 1e-7, **kwargs: Any
) -> Any:
    """Return Adam."""
    return _class_of(optimizer.Adam)(
        beta1=beta_1, beta2=beta_2, epsilon=epsilon, **_rate(learning_rate), **_rest(kwargs)
    )


def RMSprop(
    learning_rate: Any = 0.001, rho: float = 0.9, momentum: float = 0.0, epsilon: float = 1e-7, centered: bool = False,
    **kwargs: Any,
) -> Any:  # fmt: skip
    """Return RMSProp; `momentum` is for the centered form."""
    if momentum and not centered:
        raise ArgumentError(f"RMSprop: momentum={momentum}: needs centered=True")
    settings = {**_rate(learning_rate), **_rest(kwargs)}
    return _class_of(optimizer.RMSProp)(gamma1=rho, gamma2=momentum, epsilon=epsilon, centered=centered, **settings)


def Adagrad(learning_rate: Any = 0.001, epsilon: float = 1e-7, **kwargs: Any) -> Any:
    """Return AdaGrad."""
    return _class_of(optimizer.AdaGrad)(eps=epsilon, **_rate(learning_rate), **_rest(kwargs))


def Adadelta(learning_rate: Any = 1.0, rho: float = 0.95, epsilon: float = 1e-7, **kwargs: Any) -> Any:
    """Return AdaDelta; `learning_rate` is 1, as in the paper."""
    if learning_rate != 1.0:
        raise ArgumentError(f"Adadelta: learning_rate={learning_rate}: expected 1.0")
    return _class_of(optimizer.AdaDelta)(rho=rho, epsilon=epsilon, **_rest(kwargs))


def Adamax(learning_rate: Any = 0.001, beta_1: float = 0.9, beta_2: float = 0.999, **kwargs: Any) -> Any:
    """Return AdaMax."""
    return _class_of(optimizer.Adamax)(beta1=beta_1, beta2=beta_2, **_rate(learning_rate), **_rest(kwargs))


def Nadam(
    learning_rate: Any = 0.001, beta_1: float = 0.9, beta_2: float = 0.999, epsilon: float = 1e-7, **kwargs: Any
) -> Any:
    """Return Nadam."""
    return _class_of(optimizer.Nadam)(
        beta1=beta_1, beta2=beta_2, epsilon=epsilon, **_rate(learning_rate), **_rest(kwargs)
    )


def Ftrl(learning_rate: Any = 0.001, l1_regularization_strength: float = 0.0, beta: float = 0.0, **kwargs: Any) -> Any:
    """Return FTRL."""
    return _class_of(optimizer.Ftrl)(
        lamda1=l1_regularization_strength, beta=beta, **_rate(learning_rate), **_rest(kwargs)
    )


_NAMES = {
    "sgd": SGD, "adam": Adam, "rmsprop": RMSprop, "adagrad": Adagrad, "adadelta": Adadelta, "adamax": Adamax,
    "nadam": Nadam, "ftrl": Ftrl,
}  # fmt: skip


def get(wanted: Any) -> optimizer.Optimizer:
    """Return an optimizer from an optimizer, or its Keras or MXNet name.

    Raises:
        ArgumentError: an unknown name. ArgumentTypeError: something else.

    Example:
        >>> get("adam").learning_rate
        0.001
    """
    if isinstance(wanted, optimizer.Optimizer):
        return wanted
    if not isinstance(wanted, str):
        raise ArgumentTypeError(f"compile: optimizer of type {type(wanted).__name__}: expected a name or an Optimizer")
    if wanted.lower() in _NAMES:
        return _NAMES[wanted.lower()]()
    if wanted.lower() in optimizer.Optimizer.opt_registry:
        return optimizer.create(_class_of(optimizer.Optimizer.opt_registry.get(wanted)))
    known = [*_NAMES, *optimizer.Optimizer.opt_registry]
    raise ArgumentError(f"compile: optimizer={wanted!r}: unknown; {suggest(wanted, known)}")


def _rate(learning_rate: Any) -> dict[str, Any]:
    """The arguments of a rate, which may be a schedule of `mx.lr_scheduler`."""
    if callable(learning_rate):
        return {"lr_scheduler": learning_rate, "learning_rate": learning_rate(0)}
    return {"learning_rate": learning_rate}


def _rest(kwargs: dict[str, Any]) -> dict[str, Any]:
    found = dict(kwargs)
    if "clipvalue" in found:
        found["clip_gradient"] = found.pop("clipvalue")
    found.pop("name", None)
    return found


apply_gradients = KerasOptimizer.apply_gradients

__all__ = ["apply_gradients"]
