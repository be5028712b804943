"""Environment variables of MXNet, its launcher and Horovod that change nothing here, and what is so in their place."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable

from .knobs import KNOBS

_PREFIXES = ("MXNET_", "NNVM_", "DMLC_", "PS_", "HOROVOD_", "DUALMX_")
_OWN_PREFIXES = ("MXNET_", "DMLC_", "PS_", "DUALMX_")  # Horovod has many more that are none of ours
# Of ps(1), of the tests of dualmx, and between its launchers and their processes.
_OTHERS = ("PS_FORMAT", "PS_PERSONALITY", "PS_COLORS", "PS_SYSMAP", "PS_SYSTEM_MAP", "DUALMX_LAUNCH")
_TESTS = ("DUALMX_ORACLE", "DUALMX_TEST_")
_REASONS = "told by launchers to their processes"
_XLA = "XLA plans memory, threads and fusion by itself"
_TREE = "sums over devices of one process are made by one program"
_LIBRARY = "which operators run by oneDNN is measured, not set; see MXNET_MKLDNN_ENABLED"
_CUDA = "XLA decides how a GPU computes"
_WORKERS = "workers of a DataLoader run nothing on threads of their own"
_LOGS = "DUALMX_DEBUG prints what is recorded and compiled"
_MXNETS_TESTS = "read by the tests of MXNet"

_ACCEPTED = {
    "DMLC_LOCAL": "processes of one host use unix sockets and shared memory by themselves; see DUALMX_TCP",
    "DMLC_PS_VAN_TYPE": "arrays travel in slices, by priority, whatever the type",
    "DMLC_PS_WATER_MARK": "a worker waits for its last push of a key before the next one",
    "DMLC_LOG_STACK_TRACE_DEPTH": "errors are exceptions of Python with their tracebacks",
    **dict.fromkeys(("DMLC_JOB_CLUSTER", "DMLC_RANK", "DMLC_SERVER_ID", "DMLC_WORKER_ID"), _REASONS),
    **dict.fromkeys(("DMLC_TRACKER_URI", "DMLC_TRACKER_PORT"), _REASONS),
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
         "MXNET_EXEC_VERBOSE_LOGGING", "MXNET_MEM_PLAN_VERBOSE_LOGGING", "MXNET_USE_NUM_CORES_OPERATOR_TUNING",
         "MXNET_OUTPUT_TUNING_DATA", "MXNET_TUNING_WEIGHT_SCALE", "MXNET_VERBOSE_TUNING_INFO",
         "MXNET_CPU_PARALLEL_RAND_COPY", "MXNET_GPU_PARALLEL_RAND_COPY", "MXNET_CPU_NNPACK_NTHREADS",
         "MXNET_EXEC_BULK_EXEC_INFERENCE", "MXNET_EXEC_BULK_EXEC_MAX_NODE_TRAIN_FWD",
         "MXNET_EXEC_BULK_EXEC_MAX_NODE_TRAIN_BWD", "NNVM_AUTO_SEARCH_MATCH_RANGE", "MXNET_GPU_MEM_POOL_PAGE_SIZE",
         "MXNET_GPU_MEM_POOL_ROUND_LINEAR_CUTOFF", "MXNET_GPU_MEM_LARGE_ALLOC_ROUND_SIZE"),
        _XLA,
    ),
    **dict.fromkeys(
        ("MXNET_DISABLE_MKLDNN_CONV_OPT", "MXNET_DISABLE_MKLDNN_FC_OPT", "MXNET_DISABLE_MKLDNN_FUSE_CONV_BN",
         "MXNET_DISABLE_MKLDNN_FUSE_CONV_RELU", "MXNET_DISABLE_MKLDNN_FUSE_CONV_SUM",
         "MXNET_DISABLE_MKLDNN_FUSE_FC_ELTWISE", "MXNET_DISABLE_MKLDNN_QEM_FLOAT_OUTPUT",
         "MXNET_DISABLE_MKLDNN_QEM_FUSE_ALL", "MXNET_DISABLE_MKLDNN_QFC_FLOAT_OUTPUT",
         "MXNET_DISABLE_MKLDNN_QFC_FUSE_ALL", "MXNET_DISABLE_MKLDNN_QTRANSFORMER_FLOAT_OUTPUT",
         "MXNET_DISABLE_MKLDNN_QTRANSFORMER_FUSE_ALL", "MXNET_DISABLE_MKLDNN_TRANSFORMER_OPT", "MXNET_MKLDNN_DEBUG",
         "MXNET_MKLDNN_FORCE_FC_AB_FORMAT", "MXNET_MKLDNN_QFC_DYNAMIC_PARAMS"),
        _LIBRARY,
    ),
    **dict.fromkeys(
        ("MXNET_CUDA_ALLOW_TENSOR_CORE", "MXNET_CUDA_TENSOR_OP_MATH_ALLOW_CONVERSION", "MXNET_FC_TRUE_FP16",
         "MXNET_CUDA_LIB_CHECKING", "MXNET_CUDNN_LIB_CHECKING", "MXNET_RTC_VERBOSE"),
        _CUDA,
    ),
    **dict.fromkeys(("MXNET_MP_WORKER_NTHREADS", "MXNET_MP_OPENCV_NUM_THREADS"), _WORKERS),
    **dict.fromkeys(
        ("MXNET_INFER_STORAGE_TYPE_VERBOSE_LOGGING", "MXNET_SUBGRAPH_VERBOSE", "MXNET_QUANTIZATION_VERBOSE"), _LOGS
    ),
    **dict.fromkeys(
        ("MXNET_ENABLE_CYTHON", "MXNET_ENFORCE_CYTHON", "MXNET_LIBRARY_PATH"), "there is no compiled library of MXNet"
    ),
    **dict.fromkeys(("MXNET_TEST_SEED", "MXNET_MODULE_SEED", "MXNET_TEST_COUNT"), _MXNETS_TESTS),
}  # fmt: skip


def ignored_variables() -> dict[str, str]:
    """Return the variables that are set and that dualmx does not read, each with the reason."""
    read = {knob.name for knob in KNOBS}
    found = sorted(name for name in os.environ if name.startswith(_PREFIXES) and name not in read)
    return {name: _ACCEPTED.get(name) or _unknown(name, read) for name in found if not _is_foreign(name)}


def warn_unknown() -> None:
    """Warn about each variable that is set, begins like those of dualmx, and is none; called when it is imported."""
    unknown = [name for name in os.environ if name.startswith(_OWN_PREFIXES) and name not in _ACCEPTED]
    if unknown:
        read = {knob.name for knob in KNOBS}
        for name in sorted(unknown):
            if name not in read and not _is_foreign(name):
                text = f"the environment variable {name} changes nothing: {_unknown(name, read)}"
                warnings.warn(f"{text} (dualmx doctor lists those that do)", stacklevel=3)


def _is_foreign(name: str) -> bool:
    return name in _OTHERS or name.startswith(_TESTS)


def _unknown(name: str, read: Iterable[str]) -> str:
    near = _nearest(name, read)
    return f"not known; did you mean {near}?" if near else "not known"


def _nearest(name: str, read: Iterable[str]) -> str:
    """Return the variable with the most similar name behind the prefix; empty if there is none."""
    import difflib

    prefix = name.partition("_")[0]
    for group in (read, _ACCEPTED):
        likely = [known for known in group if not known.startswith("HOROVOD_") or prefix == "HOROVOD"]
        # Of two with the same rest, that of the same prefix is meant.
        stems = {_stem(known): known for known in sorted(likely, key=lambda known: known.startswith(prefix))}
        near = difflib.get_close_matches(_stem(name), stems, 1, 0.6)
        if near:
            return stems[near[0]]
    return ""


def _stem(name: str) -> str:
    return name.partition("_")[2].replace("ONEDNN", "MKLDNN")  # the library was renamed


__all__ = ["ignored_variables", "warn_unknown"]
