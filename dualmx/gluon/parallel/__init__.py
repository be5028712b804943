"""Networks on several devices or in several processes."""

from ...core.deprecated import former_names
from .accumulate import AccumulatingTrainer
from .data_parallel import DataParallel, devices, fully_shard, rest
from .distributed import DistributedDataParallel, sync_gradients, sync_initial_weights
from .divergence_check import DivergenceCheck
from .pipeline import Pipeline, StackedPipeline
from .remote_block import RemoteBlock
from .tensor_parallel import (
    ColumnParallelDense,
    ParallelSelfAttention,
    ParallelTransformerCell,
    RowParallelDense,
    VocabParallelEmbedding,
)

__all__ = [
    "AccumulatingTrainer", "ColumnParallelDense", "DataParallel", "DistributedDataParallel", "DivergenceCheck",
    "ParallelSelfAttention", "ParallelTransformerCell", "Pipeline", "RemoteBlock", "RowParallelDense",
    "StackedPipeline", "VocabParallelEmbedding", "devices", "fully_shard", "rest", "sync_gradients",
    "sync_initial_weights",
]  # fmt: skip

__getattr__ = former_names(
    __name__, {"DivergenceSentinel": "DivergenceCheck", "PeriodicTrainer": "AccumulatingTrainer"}
)
