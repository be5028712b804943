"""`torch.distributed` on dualmx arrays: `import dualmx.distributed as dist`.

Collectives write in place, as torch's do. `mx.parallel` has the same ones with returned results.

Example:
    >>> import dualmx as mx
    >>> import dualmx.distributed as dist
    >>> dist.init_process_group("gloo", rank=0, world_size=1)
    >>> x = mx.nd.ones((2,))
    >>> dist.all_reduce(x)
    >>> dist.get_rank(), dist.get_world_size(), x.asnumpy().tolist()
    (0, 1, [1.0, 1.0])
    >>> dist.destroy_process_group()
"""

from .collectives import (
    ReduceOp,
    Work,
    all_gather,
    all_gather_into_tensor,
    all_reduce,
    all_to_all,
    all_to_all_single,
    barrier,
    broadcast,
    gather,
    monitored_barrier,
    reduce,
    reduce_op,
    reduce_scatter,
    reduce_scatter_tensor,
    scatter,
)
from .p2p import (
    P2POp,
    all_gather_object,
    batch_isend_irecv,
    broadcast_object_list,
    gather_object,
    irecv,
    isend,
    recv,
    recv_object_list,
    scatter_object_list,
    send,
    send_object_list,
)
from .process_groups import (
    BeginningError,
    DistBackendError,
    DistError,
    DistNetworkError,
    DistStoreError,
    destroy_process_group,
    get_backend,
    get_global_rank,
    get_group_rank,
    get_node_local_rank,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    init_process_group,
    is_available,
    is_backend_available,
    is_gloo_available,
    is_initialized,
    is_mpi_available,
    is_nccl_available,
    is_torchelastic_launched,
    new_group,
    new_subgroups,
    new_subgroups_by_enumeration,
)
from .store import FileStore, HashStore, PrefixStore, Store, TCPStore

__all__ = [
    "BeginningError", "DistBackendError", "DistError", "DistNetworkError", "DistStoreError", "FileStore", "HashStore",
    "P2POp", "PrefixStore", "ReduceOp", "Store", "TCPStore", "Work", "all_gather", "all_gather_into_tensor",
    "all_gather_object", "all_reduce", "all_to_all", "all_to_all_single", "barrier", "batch_isend_irecv", "broadcast",
    "broadcast_object_list", "destroy_process_group", "gather", "gather_object", "get_backend", "get_global_rank",
    "get_group_rank", "get_node_local_rank", "get_process_group_ranks", "get_rank", "get_world_size", "group",
    "init_process_group", "irecv", "is_available", "is_backend_available", "is_gloo_available", "is_initialized",
    "is_mpi_available", "is_nccl_available", "is_torchelastic_launched", "isend", "monitored_barrier", "new_group",
    "new_subgroups", "new_subgroups_by_enumeration", "recv", "recv_object_list", "reduce", "reduce_op",
    "reduce_scatter", "reduce_scatter_tensor", "scatter", "scatter_object_list", "send", "send_object_list",
]  # fmt: skip
