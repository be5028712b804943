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

from . import elastic
from .basics import (
    ccl_built,
    cross_rank,
    cross_size,
    cuda_built,
    ddl_built,
    gloo_built,
    gloo_enabled,
    init,
    is_homogeneous,
    is_initialized,
    local_rank,
    local_size,
    mpi_built,
    mpi_enabled,
    mpi_threads_supported,
    nccl_built,
    rank,
    rocm_built,
    shutdown,
    size,
)
from .compression import Compression
from .distributed_optimizer import DistributedOptimizer, DistributedTrainer, broadcast_parameters
from .enqueue import Adasum, Average, Max, Min, Product, Sum
from .mpi_ops import (
    allgather,
    allgather_async,
    allgather_object,
    allreduce,
    allreduce_,
    allreduce_async,
    allreduce_async_,
    alltoall,
    alltoall_async,
    barrier,
    broadcast,
    broadcast_,
    broadcast_async,
    broadcast_async_,
    broadcast_object,
    grouped_allgather,
    grouped_allgather_async,
    grouped_allreduce,
    grouped_allreduce_,
    grouped_allreduce_async,
    grouped_allreduce_async_,
    grouped_reducescatter,
    grouped_reducescatter_async,
    join,
    poll,
    reducescatter,
    reducescatter_async,
    synchronize,
)
from .process_sets import ProcessSet, add_process_set, global_process_set, remove_process_set
from .timeline import start_timeline, stop_timeline

__all__ = [
    "Adasum", "Average", "Compression", "DistributedOptimizer", "DistributedTrainer", "Max", "Min", "ProcessSet",
    "Product", "Sum", "add_process_set", "allgather", "allgather_async", "allgather_object", "allreduce",
    "allreduce_", "allreduce_async", "allreduce_async_", "alltoall", "alltoall_async", "barrier", "broadcast",
    "broadcast_", "broadcast_async", "broadcast_async_", "broadcast_object", "broadcast_parameters", "ccl_built",
    "cross_rank", "cross_size", "cuda_built", "ddl_built", "elastic", "global_process_set", "gloo_built",
    "gloo_enabled", "grouped_allgather", "grouped_allgather_async", "grouped_allreduce", "grouped_allreduce_",
    "grouped_allreduce_async", "grouped_allreduce_async_", "grouped_reducescatter", "grouped_reducescatter_async",
    "init", "is_homogeneous", "is_initialized", "join", "local_rank", "local_size", "mpi_built", "mpi_enabled",
    "mpi_threads_supported", "nccl_built", "poll", "rank", "reducescatter", "reducescatter_async",
    "remove_process_set", "rocm_built", "shutdown", "size", "start_timeline", "stop_timeline", "synchronize",
]  # fmt: skip
