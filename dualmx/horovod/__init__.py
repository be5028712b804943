"""Horovod's API: `import dualmx.horovod as hvd` replaces `import horovod.mxnet as hvd`.

Start the processes with `dualmx-launch`, `mpiexec` or Slurm. All processes make the same calls in the same order; names
and priorities of tensors are accepted, and not needed.

Example:
    >>> import dualmx as mx
    >>> import dualmx.horovod as hvd
    >>> hvd.init()
    >>> hvd.rank(), hvd.size()
    (0, 1)
    >>> hvd.allreduce(mx.nd.ones((2,))).asnumpy().tolist()
    [1.0, 1.0]
"""

from . import basics, distributed_optimizer, elastic, enqueue, mpi_ops, process_sets
from .basics import *
from .compression import Compression
from .distributed_optimizer import *
from .enqueue import *
from .mpi_ops import *
from .process_sets import *
from .timeline import start_timeline, stop_timeline

__all__ = ["Compression", "elastic", "start_timeline", "stop_timeline"]
__all__ += basics.__all__
__all__ += distributed_optimizer.__all__
__all__ += enqueue.__all__
__all__ += mpi_ops.__all__
__all__ += process_sets.__all__
