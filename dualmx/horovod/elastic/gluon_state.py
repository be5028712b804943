"""Elastic state of a network and its trainer."""

from __future__ import annotations

import copy
import functools
from collections.abc import Mapping
from typing import Any

from ... import autograd, parallel
from ...core.errors import ArgumentError, ArgumentTypeError
from ...gluon.block import Block
from ...gluon.contrib.nn import SyncBatchNorm
from ...gluon.hybrid import HybridBlock
from ...gluon.parameter import Parameter, ParameterDict
from ...gluon.trainer import Trainer
from ...ndarray import NDArray
from ..distributed_optimizer import _broadcast_into
from .state import ObjectState

_PLAIN = (type(None), bool, int, float, str)


class MXNetState(ObjectState):
    """A network, its trainer, and further values as of `ObjectState`.

    Parameters, those of moving averages included, are kept with the states of the optimizer, its counts of updates,
    its learning rate, and its schedule.

    Args:
        net: a `Block`, or what `collect_params()` returns, initialized; shapes may be unknown.
        trainer: a `DistributedTrainer`, or another `Trainer` that updates by itself.
        kwargs: see `ObjectState`.

    Raises:
        ArgumentTypeError: `net` or `trainer` is something else.

    Example:
        >>> import dualmx as mx
        >>> import dualmx.horovod as hvd
        >>> hvd.init()
        >>> net = mx.gluon.nn.Dense(1, in_units=1)
        >>> net.initialize(mx.init.One())
        >>> trainer = hvd.DistributedTrainer(net.collect_params(), "sgd", {"learning_rate": 0.5})
        >>> state = hvd.elastic.MXNetState(net=net, trainer=trainer, epoch=0)
        >>> trainer.set_learning_rate(0.25)
        >>> net.weight.set_data(mx.nd.zeros((1, 1)))
        >>> state.restore()
        >>> trainer.learning_rate, net.weight.data().asscalar().item()
        (0.5, 1.0)
    """

    def __init__(self, net: Any = None, trainer: Trainer | None = None, **kwargs: Any):
        if not (net is None or isinstance(net, (Block, ParameterDict, Mapping))):
            raise ArgumentTypeError(f"hvd.elastic.MXNetState: net of type {type(net).__name__}: expected a Block")
        if not (trainer is None or isinstance(trainer, Trainer)):
            kind = type(trainer).__name__
            raise ArgumentTypeError(f"hvd.elastic.MXNetState: trainer of type {kind}: expected a Trainer")
        self.net, self.trainer = net, trainer
        self._weights: dict[str, NDArray] = {}
        self._training: dict[str, Any] = {}
        super().__init__(**kwargs)

    def _params(self) -> dict[str, Parameter]:
        found = self.net.collect_params() if isinstance(self.net, Block) else self.net or {}
        return {name: found[name] for name in sorted(found.keys())}

    def save(self) -> None:
        """Keep copies of all values, as soon as they are computed."""
        with autograd.pause():
            weights = {name: _dense(p).copy() for name, p in self._params().items() if p.is_initialized}
            training = {} if self.trainer is None else _trainer_state(self.trainer)
        for array in (*weights.values(), *_arrays(training.get("states"))):
            array.wait_to_read()  # what was not computed might fail later, by the loss of a process
        super().save()
        self._weights, self._training = weights, training

    def restore(self) -> None:
        """Go back to what was saved last; gradients that are added up begin at zero."""
        for name, p in self._params().items():
            if name in self._weights:
                _set(p, self._weights[name])
            if p.grad_req == "add":
                p.zero_grad()  # of a step that did not end
        if self.trainer is not None:
            _load_trainer_state(self.trainer, self._training)
        super().restore()

    def sync(self) -> None:
        """Take over the values of the first process, and save them.

        Raises:
            ArgumentTypeError: a value that cannot be sent. ArgumentError: the processes have other parameters.
            HorovodInternalError: a process is gone.
        """
        params = self._params()
        initialized = parallel.all_gather_object({name: p.is_initialized for name, p in params.items()})
        if any(h.keys() != initialized[0].keys() for h in initialized):
            odd = sorted(set().union(*initialized) - set(initialized[0]).intersection(*initialized))
            raise ArgumentError(f"hvd.elastic.MXNetState: not all processes have the parameters {', '.join(odd)}")
        for name, p in params.items():
            # One that joins may not know shapes, and a first process that goes back may have forgotten them.
            p.on_initialized = None
            root = next((r for r, h in enumerate(initialized) if h[name]), None)
            if root is None:
                p.on_initialized = functools.partial(self._made, name)
                continue
            value = parallel.broadcast_object(_dense(p) if root == parallel.rank() else None, root)
            if root != parallel.rank():
                _set(p, value)
        if self.trainer is not None:
            training = parallel.broadcast_object(_trainer_state(self.trainer))
            if parallel.rank():
                _load_trainer_state(self.trainer, training)
        super().sync()

    def reset(self) -> None:
        """Trace a network again if it runs collectives: it may have been traced in a single process."""
        blocks: list[Block] = []
        if isinstance(self.net, Block):
            self.net.apply(blocks.append)
        if any(isinstance(block, SyncBatchNorm) for block in blocks):
            for block in blocks:
                if isinstance(block, HybridBlock):
                    block.clear_cached_op()

    def _made(self, name: str, p: Parameter) -> None:
        """A parameter has got its first values, to which `restore` goes back if nothing is saved until then."""
        _broadcast_into([p], 0)
        with autograd.pause():
            value = _dense(p).copy()
        value.wait_to_read()  # else it would be computed with the first step, which may fail
        self._weights[name] = value


def _dense(p: Parameter) -> NDArray:
    array = p.arrays()[0]
    return array if array.stype == "default" else array.tostype("default")


def _set(p: Parameter, value: NDArray) -> None:
    p.set_data(value)
    if not p.is_initialized:  # its shape was not known before
        p.finish_deferred_init()


def _trainer_state(trainer: Trainer) -> dict[str, Any]:
    """A copy of what a trainer knows: states of the optimizer, and the plain settings of it and of its schedule."""
    if trainer.update_on_kvstore:
        raise ArgumentError(
            "hvd.elastic.MXNetState: the store updates the trainer's parameters; take a DistributedTrainer, or "
            "update_on_kvstore=False"
        )
    optimizer = trainer.optimizer
    schedule = optimizer.lr_scheduler
    return {
        "states": {i: _copy_states(state) for i, state in trainer.updaters[0].states.items()},
        "optimizer": _settings(optimizer),
        "schedule": None if schedule is None else _settings(schedule),
    }  # fmt: skip


def _load_trainer_state(trainer: Trainer, training: dict[str, Any]) -> None:
    """Let a trainer be where another one was."""
    for updater in trainer.updaters:
        updater.states = {i: _copy_states(state) for i, state in training["states"].items()}
        updater.states_synced = dict.fromkeys(updater.states, False)
    optimizer = trainer.optimizer
    for thing, settings in ((optimizer, training["optimizer"]), (optimizer.lr_scheduler, training["schedule"])):
        if thing is not None and settings is not None:
            known = _settings(thing).keys()
            vars(thing).update({k: v for k, v in copy.deepcopy(settings).items() if k in known})


def _settings(thing: Any) -> dict[str, Any]:
    return copy.deepcopy({k: v for k, v in vars(thing).items() if _is_plain(v)})


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(_is_plain(k) and _is_plain(v) for k, v in value.items())
    return all(map(_is_plain, value)) if isinstance(value, (list, tuple)) else isinstance(value, _PLAIN)


def _copy_states(state: Any) -> Any:
    if isinstance(state, NDArray):
        return state.copy()
    return type(state)(map(_copy_states, state)) if isinstance(state, (list, tuple)) else state


def _arrays(state: Any) -> list[NDArray]:
    """All arrays in states."""
    if isinstance(state, NDArray):
        return [state]
    if isinstance(state, dict):
        state = list(state.values())
    return [a for s in state for a in _arrays(s)] if isinstance(state, (list, tuple)) else []


__all__ = ["MXNetState"]
