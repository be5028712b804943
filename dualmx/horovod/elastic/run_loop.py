"""`run`: restore the state and call the training function again when the membership changes."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import Any, TypeVar

from ...core.errors import MXNetError
from ...parallel import world
from ...ps import PeerLost
from ..basics import rank, reinitialize, require_init, size

_log = logging.getLogger("dualmx.horovod")
T = TypeVar("T")

# What an exchange raises if another process is gone.
HorovodInternalError = PeerLost


class HostsUpdatedInterrupt(RuntimeError):
    """Processes wait to take part; raised by `State.commit` in all processes at once.

    Args:
        skip_sync: the states of all processes are alike, so that `State.sync` need not be called.

    Example:
        >>> HostsUpdatedInterrupt().skip_sync
        False
    """

    def __init__(self, skip_sync: bool = False):
        super().__init__("other processes wait to take part")
        self.skip_sync = skip_sync


def run(func: Callable[..., T]) -> Callable[..., T]:
    """Return a function that calls `func(state, ...)` until it returns, across changes of the membership.

    First all processes get the state of the first one. When one of them dies, its exchanges raise
    `HorovodInternalError` in the others: they go back to what was committed last. When one wants to join, `commit`
    raises `HostsUpdatedInterrupt`: the state is kept. In both cases those who are there form a new group, with new
    ranks, reset callbacks are called, all get the state of the new first process, which is the one that is there for
    the longest time, and `func` is called again.

    Args:
        func: trains; its first argument is a `State`.

    Raises:
        HorovodInternalError: a process is gone, and the job is not elastic. MXNetError: the processes that are there
            could not form a new group. All that `func` raises otherwise.

    Example:
        >>> import dualmx.horovod as hvd
        >>> hvd.init()
        >>> @hvd.elastic.run
        ... def train(state, more):
        ...     return state.epoch + more
        >>> train(hvd.elastic.ObjectState(epoch=1), more=2)
        3
    """

    @functools.wraps(func)
    def elastic(state: Any, *args: Any, **kwargs: Any) -> T:
        require_init("elastic.run")
        reinitialized = skip_sync = False
        while True:
            try:
                if reinitialized:
                    state.on_reset()
                if not skip_sync:
                    state.sync()
                return func(state, *args, **kwargs)
            except HostsUpdatedInterrupt as e:
                broken, skip_sync = False, e.skip_sync
            except MXNetError as e:
                # An error that tells of a lost process may have gone through a compiled program.
                if not (isinstance(e, HorovodInternalError) or (world.is_elastic() and world.lost_reason())):
                    raise
                if world.is_initialized() and not world.is_elastic():
                    text = "the job is not elastic; start it by dualmx-launch -s 0 --on-worker-death elastic"
                    raise HorovodInternalError(f"{e}; {text}") from e
                _log.warning("process %d of %d goes back to the last commit: %s", rank(), size(), e)
                broken, skip_sync = True, False
                state.restore()
            reinitialize(broken)
            _log.warning("process %d of %d: a new group has begun", rank(), size())
            reinitialized = True

    return elastic


__all__ = ["HorovodInternalError", "HostsUpdatedInterrupt", "run"]
