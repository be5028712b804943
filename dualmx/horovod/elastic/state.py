"""Elastic state: committed values, restored after failures and sent to processes that join."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any

from ... import parallel
from ...ndarray import NDArray
from ...parallel import world
from .run_loop import HostsUpdatedInterrupt


class State:
    """Base of states; subclasses define `save`, `restore` and `sync`.

    Example:
        >>> import dualmx.horovod as hvd
        >>> state = hvd.elastic.ObjectState(epoch=0)
        >>> state.register_reset_callbacks([lambda: print("other processes")])
        >>> state.on_reset()
        other processes
    """

    def __init__(self) -> None:
        self._reset_callbacks: list[Callable[[], Any]] = []

    def register_reset_callbacks(self, callbacks: Iterable[Callable[[], Any]]) -> None:
        """Add functions that are called when the processes have changed, before the state is handed out.

        Process sets are added again there, and learning rates that depend on `hvd.size()` are set.
        """
        self._reset_callbacks.extend(callbacks)

    def on_reset(self) -> None:
        """The processes have changed: call `reset`, and the callbacks."""
        self.reset()
        for callback in self._reset_callbacks:
            callback()

    def commit(self) -> None:
        """Save the state, and admit waiting processes; all processes call it at the same point.

        Raises:
            HostsUpdatedInterrupt: processes wait to take part. HorovodInternalError: one is gone.
        """
        self.save()
        self.check_host_updates()

    def check_host_updates(self) -> None:
        """Admit waiting processes without saving; all processes call it at the same point.

        Raises:
            HostsUpdatedInterrupt: processes wait to take part. HorovodInternalError: one is gone.
        """
        # The first process decides, since others may be told of newcomers earlier or later.
        if world.is_elastic() and parallel.broadcast_object(world.has_waiting_processes()):
            raise HostsUpdatedInterrupt

    def save(self) -> None:
        """Keep the current values for `restore`."""
        raise NotImplementedError

    def restore(self) -> None:
        """Go back to what was saved last."""
        raise NotImplementedError

    def sync(self) -> None:
        """Take over the state of the first process, and save it."""
        raise NotImplementedError

    def reset(self) -> None:
        """The processes have changed; subclasses may do something about it."""


class ObjectState(State):
    """Values that are attributes of the state: plain data, arrays, and what has `state_dict` and `load_state_dict`.

    What has a method `sync` besides, as an `ElasticSampler`, is handed out by that.

    Args:
        kwargs: names and first values; attributes that are added later do not belong to the state.

    Example:
        >>> import dualmx.horovod as hvd
        >>> hvd.init()
        >>> state = hvd.elastic.ObjectState(epoch=0, losses=[])
        >>> state.epoch, state.losses = 3, [0.5]
        >>> state.commit()
        >>> state.epoch = 4
        >>> state.losses.append(0.25)
        >>> state.restore()
        >>> state.epoch, state.losses
        (3, [0.5])
    """

    def __init__(self, **kwargs: Any):
        super().__init__()
        self._names = list(kwargs)
        for name, value in kwargs.items():
            setattr(self, name, value)
        self._saved: dict[str, Any] = {}
        self.save()

    def save(self) -> None:
        """Keep copies of the values, as soon as they are computed."""
        copies: dict[int, Any] = {}
        saved = copy.deepcopy({name: _state_of(getattr(self, name)) for name in self._names}, copies)
        for value in copies.values():
            if isinstance(value, NDArray):
                value.wait_to_read()  # what was not computed might fail later, by the loss of a process
        self._saved = saved

    def restore(self) -> None:
        """Go back to what was saved last."""
        self._load({name: copy.deepcopy(value) for name, value in self._saved.items()})

    def sync(self) -> None:
        """Take over the values of the first process, and save them.

        Raises:
            ArgumentTypeError: a value that cannot be sent; no code travels. HorovodInternalError: a process is gone.
        """
        current = {name: getattr(self, name) for name in self._names}
        plain = {name: _state_of(value) for name, value in current.items() if not hasattr(value, "sync")}
        found = parallel.broadcast_object(plain)
        if parallel.rank():
            self._load(found)
        for value in current.values():
            if hasattr(value, "sync"):
                value.sync()
        self.save()

    def _load(self, values: dict[str, Any]) -> None:
        for name, value in values.items():
            old = getattr(self, name)
            if _has_state_dict(old):
                old.load_state_dict(value)
            else:
                setattr(self, name, value)


def _has_state_dict(value: Any) -> bool:
    return hasattr(value, "state_dict") and hasattr(value, "load_state_dict")


def _state_of(value: Any) -> Any:
    return value.state_dict() if _has_state_dict(value) else value


__all__ = ["ObjectState", "State"]
