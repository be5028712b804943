"""Environment variables of MXNet, its launcher and Horovod that change nothing here, and what is so in their place."""

from __future__ import annotations

import difflib
import os

from .knobs import KNOBS

_PREFIXES = ("MXNET_", "NNVM_", "DMLC_", "PS_", "HOROVOD_", "DUALMX_")
_TOLD = "told by launchers to their processes"
_XLA = "XLA plans memory, threads and fusion by itself"
_TREE = "sums over devices of one process are made by one program"

_ACCEPTED = {
    "DMLC_LOCAL": "processes of one host use unix sockets and shared memory by themselves; see DUALMX_TCP",
    "DMLC_PS_VAN_TYPE": "arrays travel in slices, by priority, whatever the type",
    "DMLC_PS_WATER_MARK": "a worker waits for its last push of a key before the next one",
    "DMLC_LOG_STACK_TRACE_DEPTH": "errors are exceptions of Python with their tracebacks",
    **dict.fromkeys(("DMLC_JOB_CLUSTER", "DMLC_RANK", "DMLC_SERVER_ID", "DMLC_WORKER_ID"), _TOLD),
    **dict.fromkeys(("DMLC_TRACKER_URI", "DMLC_TRACKER_PORT"), _TOLD),
    "MXNET_SAFE_ACCUMULATION": "numbers of 16 bits are always added up in 32 bits",
    "PS_RESEND": "nothing is lost but with a connection, and is then sent again; see PS_RESEND_TIMEOUT",
    "MXNET_KVSTORE_REDUCTION_NTHREADS": _XLA,
    "MXNET_KVSTORE_SERIAL_PUSH": "sums are made in the order of devices and ranks",
    "MXNET_KVSTORE_SLICE_THRESHOLD": "slices have 4 MB at most",
    "MXNET_KVSTORE_DIST_ROW_SPARSE_VERBOSE": "PS_VERBOSE=2 logs every message",
    **dict.fromkeys(
        ("MXNET_KVSTORE_USETREE", "MXNET_KVSTORE_LOGTREE", "MXNET_KVSTORE_TREE_ARRAY_BOUND",
         "MXNET_KVSTORE_TREE_BACKTRACK", "MXNET_KVSTORE_TREE_LINK_USAGE_PENALTY", "MXNET_UPDATE_AGGREGATION_SIZE"),
        _TREE,
    ),
    **dict.fromkeys(
        ("MXNET_EXEC_ENABLE_INPLACE", "MXNET_EXEC_NUM_TEMP", "MXNET_EXEC_INPLACE_GRAD_SUM_CAP", "MXNET_USE_FUSION",
         "MXNET_FUSION_VERBOSE", "MXNET_ELIMINATE_COMMON_EXPR", "NNVM_EXEC_MATCH_RANGE", "NNVM_EXEC_NUM_TEMP",
         "MXNET_CPU_WORKER_NTHREADS", "MXNET_GPU_WORKER_NTHREADS", "MXNET_CPU_PRIORITY_NTHREADS",
         "MXNET_CPU_PARALLEL_SIZE", "MXNET_CPU_TEMP_COPY", "MXNET_GPU_TEMP_COPY", "MXNET_GPU_COPY_NTHREADS",
         "MXNET_OMP_MAX_THREADS", "MXNET_GPU_MEM_POOL_TYPE", "MXNET_GPU_MEM_POOL_RESERVE", "MXNET_SUBGRAPH_BACKEND",
         "MXNET_ENABLE_GPU_P2P", "MXNET_ENABLE_CUDA_GRAPHS", "MXNET_CUDNN_AUTOTUNE_DEFAULT", "MXNET_MKLDNN_CACHE_NUM",
         "MXNET_USE_MKLDNN_RNN", "MXNET_USE_OPERATOR_TUNING", "MXNET_RNN_USE_WEIGHT_CACHE", "MXNET_ENGINE_INFO",
         "MXNET_EXEC_VERBOSE_LOGGING", "MXNET_MEM_PLAN_VERBOSE_LOGGING"),
        _XLA,
    ),
}  # fmt: skip


def accepted() -> dict[str, str]:
    """Return the variables that are set and that dualmx does not read, each with the reason."""
    read = [knob.name for knob in KNOBS]
    found = sorted(name for name in os.environ if name.startswith(_PREFIXES) and name not in read)
    return {name: _ACCEPTED.get(name) or _unknown(name, read) for name in found}


def _unknown(name: str, read: list[str]) -> str:
    near = difflib.get_close_matches(name, read, 1, 0.85)
    return f"not known; did you mean {near[0]}?" if near else "not known"


__all__ = ["accepted"]
