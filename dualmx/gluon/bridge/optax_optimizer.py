"""`OptaxOptimizer`: an Optax gradient transformation as the optimizer of a Trainer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from ...core.errors import ArgumentTypeError, MXNetError
from ...ndarray import NDArray, array, invoke, invoke_out
from ...op.registry import Call
from ...optimizer.optimizer import Optimizer, as_lists, register
from .functional import pure_call


class OptaxOptimizer(Optimizer):
    """Update parameters by an Optax gradient transformation, all together: `w + tx.update(g, state, w)`.

    The transformation sees the parameters of one Trainer as one tree, so that transformations over all of them, such
    as `optax.clip_by_global_norm`, mean what they say. Gradients are rescaled (1 / batch size) before.
    `Trainer(params, tx)` makes one by itself.

    The learning rate is fixed in most transformations; `set_learning_rate` works with one made by
    `optax.inject_hyperparams`.

    Args:
        tx: the gradient transformation.
        rescale_grad: factor of the gradients.

    Raises:
        ArgumentTypeError: `tx` is no gradient transformation.

    Example:
        >>> import dualmx as mx, optax
        >>> net = mx.gluon.nn.Dense(1, in_units=2)
        >>> net.initialize()
        >>> trainer = mx.gluon.Trainer(net.collect_params(), optax.adam(1e-3))
        >>> with mx.autograd.record():
        ...     loss = net(mx.nd.ones((4, 2)))
        >>> loss.backward()
        >>> trainer.step(4)
    """

    is_joint = True

    def __init__(self, tx: Any, rescale_grad: float = 1.0):
        super().__init__(rescale_grad=rescale_grad)
        if not (callable(getattr(tx, "init", None)) and callable(getattr(tx, "update", None))):
            raise ArgumentTypeError(f"expected an optimizer or an Optax gradient transformation, got {tx!r}")
        self._tx = tx
        self._calls: dict[Any, Call] = {}
        self._rate: NDArray | None = None
        self.aggregate_num = 1

    def create_state(self, index: Any, weight: NDArray) -> list[NDArray]:
        """An empty list; the first parameter's receives the state of all at the first update."""
        return []

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Change all weights and the state in place."""
        indices, weights, grads, states = as_lists(index, weight, grad, state)
        self._update_count(indices)
        order = sorted(range(len(indices)), key=lambda k: str(indices[k]))
        weights, grads = [weights[k] for k in order], [grads[k] for k in order]
        held = next((s for s in states if s), None)
        if held is None:
            held = states[0]
            held.extend(self._first_state(weights))
        key = (len(weights), len(held))
        call = self._calls.get(key)
        if call is None:
            call = self._calls[key] = self._lower(weights)
        self._rate = held[self._rate_at] if self._rate_at is not None else None
        n = len(weights)
        if len(held) != call.n_outputs - n:
            raise MXNetError(
                f"OptaxOptimizer: the state belongs to other parameters; every step must update the same {n} parameters"
            )
        invoke_out(call, [*weights, *grads, *held], [*weights, *held], (self.rescale_grad,))

    def _first_state(self, weights: Sequence[NDArray]) -> list[NDArray]:
        structs = _structs(weights)
        leaves, _ = jax.tree_util.tree_flatten(jax.eval_shape(self._tx.init, structs))
        call = pure_call("optax init", lambda *w: jax.tree_util.tree_leaves(self._tx.init(list(w))), len(leaves))
        return invoke(call, list(weights))

    def _lower(self, weights: Sequence[NDArray]) -> Call:
        n = len(weights)
        paths, treedef = jax.tree_util.tree_flatten_with_path(jax.eval_shape(self._tx.init, _structs(weights)))
        self._rate_at = _rate_position(paths)

        def body(*data: Any, rescale_grad: Any) -> tuple[Any, ...]:
            ws, gs = list(data[:n]), [g * rescale_grad.astype(g.dtype) for g in data[n : 2 * n]]
            state = jax.tree_util.tree_unflatten(treedef, data[2 * n :])
            with jax.enable_x64(False):
                updates, after = self._tx.update(gs, state, ws)
                after_leaves = jax.tree_util.tree_leaves(after)
                moved = [(w + u).astype(w.dtype) for w, u in zip(ws, updates, strict=True)]
            return (*moved, *after_leaves)

        return pure_call("optax update", body, n + len(paths), runtime=("rescale_grad",))

    @property
    def learning_rate(self) -> float:
        """The injected learning rate; raises `MXNetError` when the transformation has a fixed one."""
        return float(self._injected().asscalar())

    def set_learning_rate(self, lr: float) -> None:
        """Change the injected learning rate."""
        rate = self._injected()
        array(lr, ctx=rate.context, dtype=rate.dtype).copyto(rate)

    def _injected(self) -> NDArray:
        if self._rate is None:
            raise MXNetError(
                "OptaxOptimizer: the learning rate is part of the transformation; make it with "
                "optax.inject_hyperparams(...)(learning_rate=...) and take one step first"
            )
        return self._rate

    def adopt(self, other: Optimizer) -> None:
        """Keep the transformation of the current optimizer, since state files do not store it."""
        if isinstance(other, OptaxOptimizer):
            self._tx, self._calls, self._rate, self._rate_at = other._tx, other._calls, None, other._rate_at

    _rate_at: int | None = None

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        for name in ("_tx", "_calls", "_rate", "_rate_at"):
            state.pop(name, None)
        return state


register(OptaxOptimizer)


def _structs(weights: Sequence[NDArray]) -> list[jax.ShapeDtypeStruct]:
    return [jax.ShapeDtypeStruct(w.shape, np.dtype(w.dtype)) for w in weights]


def _rate_position(paths: Sequence[Any]) -> int | None:
    """Where `hyperparams["learning_rate"]` is among the leaves of a state."""
    for at, (path, leaf) in enumerate(paths):
        if [str(getattr(p, "key", "")) for p in path[-1:]] == ["learning_rate"] and leaf.shape == ():
            return at
    return None
