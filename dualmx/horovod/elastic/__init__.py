"""Elastic training, `hvd.elastic`: training continues while processes die, return or join.

Start the job with `dualmx-launch -n 4 -s 0 --on-worker-death elastic python script.py`.

Example:
    >>> import dualmx as mx
    >>> import dualmx.horovod as hvd
    >>> hvd.init()
    >>> state = hvd.elastic.ObjectState(step=0)
    >>> @hvd.elastic.run
    ... def train(state):
    ...     while state.step < 3:
    ...         state.step += 1
    ...         state.commit()
    ...     return state.step
    >>> train(state)
    3
"""

from .gluon_state import MXNetState
from .run_loop import HorovodInternalError, HostsUpdatedInterrupt, run
from .sampler import ElasticSampler
from .state import ObjectState, State

__all__ = [
    "ElasticSampler", "HorovodInternalError", "HostsUpdatedInterrupt", "MXNetState", "ObjectState", "State", "run",
]  # fmt: skip
