"""`optimizer.apply_gradients`, which optimizers have once `dualmx.keras` is imported."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..core.errors import ArgumentError, ArgumentTypeError, MXNetError
from ..gluon.parameter import Parameter
from ..gluon.trainer import Trainer
from ..ndarray import NDArray
from ..optimizer import Optimizer
from .distribute.replicas import get_replica_context
from .distribute.strategy import get_strategy


def apply_gradients(self: Optimizer, grads_and_vars: Iterable[tuple[Any, Any]], name: str | None = None) -> None:
    """Update weights by gradients, which are added up over the replicas of the strategy.

    Inside of `Strategy.run` the weights change when all replicas have run.

    Args:
        grads_and_vars: pairs of a gradient and a weight; those without a gradient (None) are left out.
        name: accepted.

    Raises:
        ArgumentError: no gradients, or weights that differ from those of the first call. ArgumentTypeError: something
            else than arrays and weights. MXNetError: the weights are on several devices, and no replica runs; or they
            are about to change already.
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
        raise MXNetError("apply_gradients: the weights are on several devices; call it in a function for strategy.run")
    trainer = _trainer(self, params)
    ctx = contexts[0] if replica is None else replica.context
    for g, p in pairs:
        if replica is not None and id(p) in replica.changed:
            raise MXNetError(f"apply_gradients: {p.name} is about to change already; call strategy.run once per update")
        g.copyto(p.grad(ctx))
        p.data(ctx)._fresh_grad = True
    if replica is None:
        trainer.step(1)
        return
    replica.changed |= {id(p) for p in params}
    replica.merges.append((self, lambda: trainer.step(1)))


def _trainer(optimizer: Optimizer, params: list[Parameter]) -> Trainer:
    """The trainer of an optimizer, which lives as long as the weights do."""
    before = {id(p) for p in optimizer.param_dict.values()}
    if before and before != {id(p) for p in params}:
        raise ArgumentError(
            f"apply_gradients: {len(params)} weights, which are not the {len(before)} of the first call; an optimizer "
            "updates the same weights each time, so make one for each set of them"
        )
    for p in params:
        for known in vars(p).get("_appliers", ()):
            if known.optimizer is optimizer:
                return known
    made = Trainer(params, optimizer, kvstore=get_strategy().store)
    vars(params[0]).setdefault("_appliers", []).append(made)
    return made


setattr(Optimizer, "apply_gradients", apply_gradients)  # noqa: B010  # a word of Keras, which MXNet's class lacks

__all__ = ["apply_gradients"]
