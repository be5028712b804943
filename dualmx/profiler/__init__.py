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

from . import annotations, profiler
from .annotations import *
from .profiler import *

__all__: list[str] = []
__all__ += annotations.__all__
__all__ += profiler.__all__
