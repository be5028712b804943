"""Optimizers by Keras's names and arguments; each returns one of `mx.optimizer`."""

from __future__ import annotations

from typing import Any

from .. import optimizer
from ..core.errors import ArgumentError, ArgumentTypeError, suggest
from . import schedules as schedules


def SGD(learning_rate: Any = 0.01, momentum: float = 0.0, nesterov: bool = False, **kwargs: Any) -> Any:
    """Return gradient descent, with momentum if wanted.

    Example:
        >>> type(SGD(0.1, momentum=0.9, nesterov=True)).__name__
        'NAG'
    """
    kind = optimizer.NAG if nesterov and momentum else optimizer.SGD
    return kind(momentum=momentum, **_rate(learning_rate), **_rest(kwargs))


def Adam(
    learning_rate: Any = 0.001, beta_1: float = 0.9, beta_2: float = 0.999, epsilon: float = 1e-7, **kwargs: Any
) -> Any:
    """Return Adam."""
    return optimizer.Adam(beta1=beta_1, beta2=beta_2, epsilon=epsilon, **_rate(learning_rate), **_rest(kwargs))


def RMSprop(
    learning_rate: Any = 0.001, rho: float = 0.9, momentum: float = 0.0, epsilon: float = 1e-7, centered: bool = False,
    **kwargs: Any,
) -> Any:  # fmt: skip
    """Return RMSProp; `momentum` is for the centered form."""
    if momentum and not centered:
        raise ArgumentError(f"RMSprop: momentum={momentum}: needs centered=True")
    settings = {**_rate(learning_rate), **_rest(kwargs)}
    return optimizer.RMSProp(gamma1=rho, gamma2=momentum, epsilon=epsilon, centered=centered, **settings)


def Adagrad(learning_rate: Any = 0.001, epsilon: float = 1e-7, **kwargs: Any) -> Any:
    """Return AdaGrad."""
    return optimizer.AdaGrad(eps=epsilon, **_rate(learning_rate), **_rest(kwargs))


def Adadelta(learning_rate: Any = 1.0, rho: float = 0.95, epsilon: float = 1e-7, **kwargs: Any) -> Any:
    """Return AdaDelta; `learning_rate` is 1, as in the paper."""
    if learning_rate != 1.0:
        raise ArgumentError(f"Adadelta: learning_rate={learning_rate}: expected 1.0")
    return optimizer.AdaDelta(rho=rho, epsilon=epsilon, **_rest(kwargs))


def Adamax(learning_rate: Any = 0.001, beta_1: float = 0.9, beta_2: float = 0.999, **kwargs: Any) -> Any:
    """Return AdaMax."""
    return optimizer.Adamax(beta1=beta_1, beta2=beta_2, **_rate(learning_rate), **_rest(kwargs))


def Nadam(
    learning_rate: Any = 0.001, beta_1: float = 0.9, beta_2: float = 0.999, epsilon: float = 1e-7, **kwargs: Any
) -> Any:
    """Return Nadam."""
    return optimizer.Nadam(beta1=beta_1, beta2=beta_2, epsilon=epsilon, **_rate(learning_rate), **_rest(kwargs))


def Ftrl(learning_rate: Any = 0.001, l1_regularization_strength: float = 0.0, beta: float = 0.0, **kwargs: Any) -> Any:
    """Return FTRL."""
    return optimizer.Ftrl(lamda1=l1_regularization_strength, beta=beta, **_rate(learning_rate), **_rest(kwargs))


_NAMES = {
    "sgd": SGD, "adam": Adam, "rmsprop": RMSprop, "adagrad": Adagrad, "adadelta": Adadelta, "adamax": Adamax,
    "nadam": Nadam, "ftrl": Ftrl,
}  # fmt: skip


def get(wanted: Any) -> optimizer.Optimizer:
    """Return an optimizer, which may be given by Keras's or MXNet's name.

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
        return optimizer.create(wanted)
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
