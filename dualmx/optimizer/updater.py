"""`Updater`: an optimizer with its states by index, as a KVStore or trainer calls it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.context import Context
from ..ndarray import NDArray
from ..ndarray.sharding import shard_like
from .hooks import is_asked, own_hooks
from .optimizer import Optimizer
from .rule_optimizer import UpdateReplay
from .state_file import dump_states, load_states


def in_one_call(optimizer: Optimizer) -> bool:
    """Whether an optimizer updates any number of parameters in one call, since no method of a user is to be called."""
    return not is_asked(optimizer)


def update_all(
    optimizer: Optimizer, indices: Sequence[Any], weights: Sequence[NDArray], grads: Sequence[NDArray],
    states: Sequence[Any],
) -> None:  # fmt: skip
    """Update several parameters: in one call if that may be, else as many of one dtype a call as the optimizer says."""
    if in_one_call(optimizer):
        optimizer.update_multi_precision(indices, weights, grads, states)
        return
    if optimizer.aggregate_num <= 0:
        for one in zip(indices, weights, grads, states, strict=True):
            optimizer.update_multi_precision(*one)
        return
    kinds: dict[Any, list[tuple[Any, NDArray, NDArray, Any]]] = {}
    for one in zip(indices, weights, grads, states, strict=True):
        kinds.setdefault(one[1].dtype, []).append(one)
    size = optimizer.aggregate_num
    for group in kinds.values():
        for at in range(0, len(group), size):
            i, w, g, s = zip(*group[at : at + size], strict=True)
            optimizer.update_multi_precision(i, w, g, list(s))


class Updater:
    """Applies an optimizer to weights by index, creating each state at first sight.

    Args:
        optimizer: the optimizer.

    Attributes:
        optimizer: replaced when states with an optimizer are loaded.
        states: state of every index (None, array, or tuples of them).
        state_axis: axis of a mesh along which states are cut beyond their weights, `""` for none.
        states_synced: False for indices whose loaded state may still live in another context.

    Example:
        >>> import dualmx as mx
        >>> updater = get_updater(mx.optimizer.SGD(learning_rate=0.5))
        >>> w = mx.nd.ones((2,))
        >>> updater(0, mx.nd.ones((2,)), w)
        >>> w.asnumpy()
        array([0.5, 0.5], dtype=float32)
    """

    _replay: UpdateReplay | None = None

    def __init__(self, optimizer: Optimizer):
        self.optimizer = optimizer
        self.states: dict[Any, Any] = {}
        self.states_synced: dict[Any, bool] = {}
        self.aggregate_updates = optimizer.aggregate_num > 0
        self.state_axis = ""

    @property
    def in_one_call(self) -> bool:
        """Whether the parameters of a step are best handed over together: no method of a user sees a difference."""
        return self.optimizer.is_joint or in_one_call(self.optimizer)

    def __call__(self, index: Any, grad: Any, weight: Any) -> None:
        """Update `weight` by `grad` in place; all three may be equally long lists."""
        several = isinstance(index, (list, tuple))
        indices, grads, weights = (index, grad, weight) if several else ([index], [grad], [weight])
        opt, states = self.optimizer, self.states
        if not indices:
            return
        opt._set_current_context(weights[0].context.device_id)
        is_synced = all(map(self.states_synced.get, indices))
        replay = self._replay
        if replay is not None and is_synced and replay.is_of(opt, indices, weights, grads, states):
            replay.run()
            return
        if not (is_synced and all(map(states.__contains__, indices))):
            self._prepare_states(indices, weights)
        if not several and not own_hooks(type(opt)):
            opt.update_multi_precision(index, weight, grad, states[index])
            return
        held = list(map(states.__getitem__, indices))
        if opt.is_joint:
            opt.update_multi_precision(indices, weights, grads, held)
        else:
            update_all(opt, indices, weights, grads, held)
        self._replay = UpdateReplay.of(opt, indices, weights, grads, held)

    def _prepare_states(self, indices: Sequence[Any], weights: Sequence[NDArray]) -> None:
        """Make the states that there are not, and bring loaded ones to the contexts of their weights."""
        opt, states = self.optimizer, self.states
        for i, w in zip(indices, weights, strict=True):
            if i not in states:
                states[i] = opt.create_state_multi_precision(i, w)
                if w.context.mesh is not None:
                    _shard_state_like(states[i], w, self.state_axis)
                self.states_synced[i] = True
            elif not self.states_synced[i]:
                states[i] = self.sync_state_context(states[i], w.context)
                if w.context.mesh is not None:
                    _shard_state_like(states[i], w, self.state_axis)
                self.states_synced[i] = True

    def sync_state_context(self, state: Any, context: Context) -> Any:
        """Return `state` with its arrays on `context`."""
        if isinstance(state, NDArray):
            return state.as_in_context(context)
        if isinstance(state, (tuple, list)):
            return type(state)(self.sync_state_context(s, context) for s in state)
        return state

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_replay": None}

    def get_states(self, dump_optimizer: bool = False) -> bytes:
        """Return the states, with the optimizer's settings if asked, in the file format of MXNet."""
        return dump_states(self.states, self.optimizer if dump_optimizer else None)

    def set_states(self, states: bytes) -> None:
        """Take over what `get_states` (of dualmx or MXNet) returned.

        Raises:
            FormatError: not such bytes, or they name a class that is no registered optimizer.
        """
        self._replay = None
        self.states, optimizer = load_states(states)
        if optimizer is not None:
            self.optimizer = optimizer
        self.states_synced = dict.fromkeys(self.states, False)


def _shard_state_like(state: Any, weight: NDArray, axis: str) -> None:
    """Cut a new state over the mesh of its weight as the weight is cut, and along `axis` too."""
    if isinstance(state, NDArray):
        shard_like(state, weight, axis)
    elif isinstance(state, (tuple, list)):
        for s in state:
            _shard_state_like(s, weight, axis)


def get_updater(optimizer: Optimizer) -> Updater:
    """Return the updater of `optimizer`, to be called as `updater(index, grad, weight)`."""
    return Updater(optimizer)
