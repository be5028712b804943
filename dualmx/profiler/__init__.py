"""Profiler: a Chrome trace (chrome://tracing, Perfetto) of flushes, compilations and the program's own marks.

Example:
    >>> import dualmx as mx
    >>> mx.profiler.set_config(filename="/tmp/trace.json")
    >>> mx.profiler.set_state("run")
    >>> y = (mx.nd.ones((2, 2)) * 2).asnumpy()
    >>> mx.profiler.set_state("stop")
    >>> print(mx.profiler.dumps())  # doctest: +ELLIPSIS
    <BLANKLINE>
    Profile Statistics:...
    >>> mx.profiler.dump()
"""

from __future__ import annotations

from .annotations import Counter, Domain, Event, Frame, Marker, Task
from .profiler import (
    dump,
    dump_profile,
    dumps,
    pause,
    profiler_set_config,
    profiler_set_state,
    resume,
    set_config,
    set_kvstore_handle,
    set_state,
    start_with_process,
)

__all__ = [
    "Counter", "Domain", "Event", "Frame", "Marker", "Task", "dump", "dump_profile", "dumps", "pause",
    "profiler_set_config", "profiler_set_state", "resume", "set_config", "set_kvstore_handle", "set_state",
    "start_with_process",
]  # fmt: skip
