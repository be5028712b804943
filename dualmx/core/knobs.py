"""Every environment variable that dualmx reads, with default, doc and the only reader; `dualmx doctor` prints them.

Variables of MXNet, its launcher and Horovod that have no effect here are listed with the reason.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from .errors import ArgumentError

_N = TypeVar("_N", int, float)


@dataclass(frozen=True)
class Knob:
    """One environment variable.

    Attributes:
        name: the variable.
        default: its value when unset.
        doc: what it does, in one sentence.
        choices: the accepted values; empty for any.
    """

    name: str
    default: str
    doc: str
    choices: tuple[str, ...] = ()

    def read(self) -> str:
        """Return the current value; `ArgumentError` names the variable if the value is not accepted."""
        value = os.environ.get(self.name, self.default)
        if self.choices and value not in self.choices:
            raise ArgumentError(
                f"environment variable {self.name}={value!r}: expected one of {', '.join(self.choices)}"
            )
        return value

    def is_set(self) -> bool:
        """Whether the variable is set."""
        return self.name in os.environ

    def integer(self, low: int = 0, high: int | None = None) -> int:
        """Return the current value as an integer of at least `low`, and at most `high`."""
        found = self._at_least(low, int, f"an integer of {low}")
        if high is not None and found > high:
            raise ArgumentError(f"environment variable {self.name}={found}: expected an integer from {low} to {high}")
        return found

    def port(self, low: int = 0) -> int:
        """Return the current value as a port of at least `low`."""
        found = self.integer(low)
        if found >= 1 << 16:
            raise ArgumentError(f"environment variable {self.name}={found}: expected a port from {low} to 65535")
        return found

    def number(self, low: float = 0.0) -> float:
        """Return the current value as a number of at least `low`."""
        return self._at_least(low, float, f"a number of {low:g}")

    def _at_least(self, low: _N, parse: Callable[[str], _N], expected: str) -> _N:
        value = os.environ.get(self.name, self.default)
        try:
            found = parse(value)
        except ValueError:
            found = low - 1
        if not found >= low:  # NaN is not
            raise ArgumentError(f"environment variable {self.name}={value!r}: expected {expected} or more")
        return found


ENGINE = Knob(
    "MXNET_ENGINE_TYPE",
    "ThreadedEnginePerDevice",
    "NaiveEngine runs every operation at once; the others record and compile lazily.",
    ("NaiveEngine", "ThreadedEngine", "ThreadedEnginePerDevice"),
)
DEBUG = Knob(
    "DUALMX_DEBUG", "0", "1 flushes and compiles with reasons, 2 the program, 3 its jaxpr, 4 its HLO.", tuple("01234")
)
BULK = Knob("MXNET_EXEC_BULK_EXEC_MAX_NODE_TRAIN", "2000", "Most operations recorded before they are executed.")
BULK_ON = Knob("MXNET_EXEC_BULK_EXEC_TRAIN", "1", "0 executes every operation at once, as NaiveEngine.", ("0", "1"))
MIRROR = Knob(
    "MXNET_BACKWARD_DO_MIRROR",
    "0",
    "1 lets backward passes of graphs make activations again instead of keeping them: less memory, more time.",
    ("0", "1"),
)
CACHE = Knob(
    "DUALMX_CACHE_DIR",
    "~/.cache/dualmx",
    "Folder of compiled programs, and of what traces of operators gave, kept between processes; empty for none.",
)
DONATE = Knob(
    "DUALMX_DONATE",
    "1",
    "0 copies the buffers of overwritten arrays instead of letting programs take them over; to look for faults.",
    ("0", "1"),
)
POISON = Knob(
    "DUALMX_POISON",
    "0",
    "1 fills memory with NaN (all bits 1) when it is released to be used again, so that who still reads it notices; "
    "slow.",
    ("0", "1"),
)
KEEP_MEMORY = Knob(
    "DUALMX_KEEP_MEMORY",
    "some",
    "Freed memory that is kept for the next arrays on the CPU; with all, programs run faster and compile slower.",
    ("0", "some", "all"),
)
HOME = Knob("MXNET_HOME", "~/.mxnet", "Root of data sets and models on disk.")
READ_LIMIT = Knob(
    "DUALMX_READ_LIMIT_MB",
    "64",
    "MiB that a file or message from elsewhere may take beyond 8 times its size; more is refused.",
)
REPO = Knob(
    "MXNET_GLUON_REPO",
    "https://apache-mxnet.s3-accelerate.dualstack.amazonaws.com/",
    "Base URL of data sets, pretrained models and word vectors.",
)
MIRRORS = Knob(
    "DUALMX_MIRRORS",
    "",
    "Places, with spaces between, that are asked first for every download: MIRROR in place of any host, or "
    "ORIGIN=MIRROR for addresses that begin with ORIGIN.",
)
DOWNLOAD_MAX = Knob("DUALMX_DOWNLOAD_MAX_MB", "16384", "Most MiB of one downloaded or unpacked file.")
DOWNLOAD_TIMEOUT = Knob(
    "DUALMX_DOWNLOAD_TIMEOUT", "30", "Seconds without a byte after which a download's connection counts as dead."
)
PROFILER_AUTOSTART = Knob("MXNET_PROFILER_AUTOSTART", "0", "1 starts the profiler at import.", ("0", "1"))
PROFILER_MODE = Knob(
    "MXNET_PROFILER_MODE", "0", "1 lets an autostarted profiler run and measure each operation by itself.", ("0", "1")
)
UPDATE_ON_KVSTORE = Knob("MXNET_UPDATE_ON_KVSTORE", "1", "Default of Trainer's update_on_kvstore.", ("0", "1"))
AGGREGATION = Knob(
    "MXNET_OPTIMIZER_AGGREGATION_SIZE",
    "4",
    "Parameters in one update of an SGD, LARS or LAMB with hooks of your own; others fuse all.",
)
TIER = Knob(
    "DUALMX_TIER",
    "auto",
    "auto runs programs on the CPU operator by operator, without compiling them, until they have run often enough to "
    "be worth it; numpy always does, where all operators have kernels; operators runs them on any one device by an "
    "executable for each operator, as does auto on a GPU or TPU, if you set it, until they are compiled; xla compiles "
    "each before its first run, as do GPUs and TPUs, servers, and jobs in which workers are replaced or exchange "
    "arrays by collectives, for which nothing is set.",
    ("auto", "numpy", "operators", "xla"),
)
PROMOTE_AT = Knob(
    "DUALMX_PROMOTE_AT",
    "",
    "The run from which each program is used compiled; by default it follows from counts. In a synchronous job the "
    "round from which all programs are; by default 50.",
)
ONEDNN = Knob(
    "MXNET_MKLDNN_ENABLED",
    "1",
    "0 leaves convolutions on the CPU to XLA and NumPy where oneDNN is installed.",
    ("0", "1"),
)
STORAGE_FALLBACK = Knob(
    "MXNET_STORAGE_FALLBACK_LOG_VERBOSE",
    "1",
    "0 keeps silent when sparse arrays are converted to dense ones for an operator.",
    ("0", "1"),
)

ROLE = Knob(
    "DMLC_ROLE",
    "worker",
    "Role in a distributed job; a server or scheduler serves when dualmx is imported, and then exits.",
    ("worker", "server", "scheduler"),
)
ROOT_URI = Knob("DMLC_PS_ROOT_URI", "", "Host of the job's scheduler; set in distributed jobs only.")
ROOT_PORT = Knob("DMLC_PS_ROOT_PORT", "", "Port of the job's scheduler.")
NUM_WORKER = Knob("DMLC_NUM_WORKER", "", "Workers of the job.")
NUM_SERVER = Knob("DMLC_NUM_SERVER", "", "Servers of the job.")
NODE_HOST = Knob("DMLC_NODE_HOST", "", "Host name or address that this process tells the others; empty: found out.")
INTERFACE = Knob(
    "DMLC_INTERFACE",
    "",
    "Network interface whose address this process tells the others; several: the first that has one.",
)
NODE_PORT = Knob("PORT", "0", "Port that a server of a distributed job listens on if it is free; 0 for any.")
ADVERTISED_PORT = Knob(
    "DUALMX_ADVERTISED_PORT",
    "0",
    "Port of a server that the others connect to, if it is not the one it listens on (NAT); 0 for the same one.",
)
KUBERNETES = Knob("DMLC_USE_KUBERNETES", "0", "1 makes the scheduler and servers listen on all addresses.", ("0", "1"))
TASK_ID = Knob("DMLC_TASK_ID", "", "Wished rank among the processes of the same role.")
ATTEMPT = Knob("DMLC_NUM_ATTEMPT", "0", "How often the local launcher restarts the whole job after a failure.")
CLUSTER = Knob(
    "DMLC_SUBMIT_CLUSTER",
    "local",
    "Default of dualmx-launch --launcher.",
    ("local", "ssh", "mpi", "slurm", "ray", "sge", "kubernetes", "k8s", "yarn"),
)
VERBOSE = Knob(
    "PS_VERBOSE",
    "0",
    "1 logs the members of a distributed job and their coming and going, 2 every message as well.",
    ("0", "1", "2", ""),
)
HEARTBEAT_INTERVAL = Knob("PS_HEARTBEAT_INTERVAL", "1", "Seconds between signs of life on idle connections.")
HEARTBEAT_TIMEOUT = Knob("PS_HEARTBEAT_TIMEOUT", "4", "Seconds of silence after which a peer is dead; 0 for never.")
DROP_MSG = Knob(
    "PS_DROP_MSG", "0", "Percent of the requests and answers of a distributed job that are lost on purpose, for tests."
)
RESEND_TIMEOUT = Knob(
    "PS_RESEND_TIMEOUT", "1000", "Milliseconds until a request that was not answered is repeated, with PS_DROP_MSG."
)
BIGARRAY_BOUND = Knob(
    "MXNET_KVSTORE_BIGARRAY_BOUND", "1000000", "Elements from which arrays are split over all servers."
)
DETERMINISM = Knob(
    "MXNET_ENFORCE_DETERMINISM",
    "0",
    "1 makes the sums of synchronous distributed stores independent of how devices are spread over workers.",
    ("0", "1"),
)
SECRET = Knob(
    "DUALMX_SECRET", "", "Secret of a distributed job, of 16 characters or more; its processes prove to know it."
)
INSECURE = Knob("DUALMX_INSECURE", "0", "1 lets a distributed job on several hosts run without a secret.", ("0", "1"))
DIST_TIMEOUT = Knob(
    "DUALMX_DIST_TIMEOUT", "1800", "Most seconds that a worker waits for others in one call; 0 for ever."
)
ON_WORKER_DEATH = Knob(
    "DUALMX_ON_WORKER_DEATH",
    "fail",
    "When a worker dies: fail ends the job, wait lets another process take its place, continue goes on without it, "
    "elastic too, and lets others join.",
    ("fail", "wait", "continue", "elastic"),
)
ON_SERVER_DEATH = Knob(
    "DUALMX_ON_SERVER_DEATH",
    "fail",
    "When a server or the scheduler dies: fail, or wait for another in its place (needs DUALMX_JOURNAL).",
    ("fail", "wait"),
)
MIN_WORKERS = Knob(
    "DUALMX_MIN_WORKERS", "1", "Workers of an elastic job that exchange arrays, at least: fewer wait for others."
)
MAX_WORKERS = Knob("DUALMX_MAX_WORKERS", "0", "The same, at most: more wait until one is gone; 0 for any number.")
RESTART_TIMEOUT = Knob("DUALMX_RETURN_TIMEOUT", "120", "Most seconds that a job waits for the return of a process.")
JOURNAL = Knob("DUALMX_JOURNAL", "", "Folder where servers and scheduler write down what they know; empty for none.")
JOURNAL_SYNC = Knob(
    "DUALMX_JOURNAL_SYNC", "0", "1 flushes each record to the disk, so that it outlives the host.", ("0", "1")
)
SHARED_MEMORY = Knob(
    "DUALMX_SHARED_MB", "4096", "Most MiB that a process shares with others of its host to send arrays; 0 for none."
)
TCP = Knob("DUALMX_TCP", "0", "1 connects processes of one host over TCP, as those of several hosts.", ("0", "1"))
ENCRYPT = Knob(
    "DUALMX_ENCRYPT",
    "auto",
    "What the processes of a job encrypt (TLS 1.3): auto what leaves a host, 1 all that goes over TCP, 0 nothing.",
    ("auto", "0", "1"),
)
COLLECTIVES = Knob(
    "DUALMX_COLLECTIVES",
    "auto",
    "How processes exchange arrays: host by sockets and shared memory, xla by XLA; auto: xla on accelerators.",
    ("auto", "host", "xla"),
)
START_TIMEOUT = Knob("DUALMX_START_TIMEOUT", "120", "Most seconds until all processes of a job have found each other.")

FUSION_THRESHOLD = Knob(
    "HOROVOD_FUSION_THRESHOLD",
    str(64 << 20),
    "Most bytes of arrays that dualmx.horovod adds up together; 0 for none.",
)
CYCLE_TIME = Knob(
    "HOROVOD_CYCLE_TIME", "1", "Milliseconds for which exchanges of dualmx.horovod that nobody waits for are collected."
)
HIERARCHICAL = Knob(
    "HOROVOD_HIERARCHICAL_ALLREDUCE",
    "auto",
    "1 adds up on each host before hosts exchange, 0 does not; auto: if several hosts have several processes.",
    ("auto", "0", "1"),
)
TIMELINE = Knob("HOROVOD_TIMELINE", "", "File into which process 0 writes when what was exchanged (Chrome's format).")
TIMELINE_CYCLES = Knob("HOROVOD_TIMELINE_MARK_CYCLES", "0", "1 marks cycles in HOROVOD_TIMELINE.", ("0", "1"))
STALL_DISABLE = Knob("HOROVOD_STALL_CHECK_DISABLE", "0", "1 does not log which processes are waited for.", ("0", "1"))
STALL_TIME = Knob(
    "HOROVOD_STALL_CHECK_TIME_SECONDS", "60", "Seconds after which it is logged which processes an exchange waits for."
)
STALL_SHUTDOWN = Knob(
    "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS",
    "0",
    "Seconds after which it is an error; 0: DUALMX_DIST_TIMEOUT.",
)
AUTOTUNE = Knob("HOROVOD_AUTOTUNE", "0", "1 lets dualmx.horovod try out what it is not told by HOROVOD_*.", ("0", "1"))
AUTOTUNE_LOG = Knob("HOROVOD_AUTOTUNE_LOG", "", "File into which process 0 writes what was tried out (CSV).")
AUTOTUNE_WARMUP = Knob("HOROVOD_AUTOTUNE_WARMUP_SAMPLES", "3", "Samples that do not count.")
AUTOTUNE_STEPS = Knob("HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE", "10", "Cycles with exchanges that make a sample.")
AUTOTUNE_SAMPLES = Knob("HOROVOD_AUTOTUNE_BAYES_OPT_MAX_SAMPLES", "20", "Samples after which the best one stays.")
AUTOTUNE_NOISE = Knob(
    "HOROVOD_AUTOTUNE_GAUSSIAN_PROCESS_NOISE", "0.8", "Variance of the noise of a sample, relative to that of all."
)

KNOBS: tuple[Knob, ...] = tuple(knob for knob in list(globals().values()) if isinstance(knob, Knob))


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
    """Return the variable with the most similar name after the prefix; empty if there is none."""
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
