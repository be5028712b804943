"""Networks on several devices or in several processes: wrappers, exchanges, layers cut over a mesh."""

from ...core.deprecated import former_names
from .attention import ParallelSelfAttention, ParallelTransformerCell
from .data_parallel import DataParallel
from .devices import devices, rest
from .distributed import DistributedDataParallel
from .layers import ColumnParallelDense, RowParallelDense, VocabParallelEmbedding
from .periodic import AccumulatingTrainer
from .pipeline import Pipeline
from .remote import RemoteBlock
from .sentinel import DivergenceCheck
from .sharded import fully_shard
from .stacked import StackedPipeline
from .sync import sync_gradients, sync_initial_weights

__all__ = [
    "AccumulatingTrainer", "ColumnParallelDense", "DataParallel", "DistributedDataParallel", "DivergenceCheck",
    "ParallelSelfAttention", "ParallelTransformerCell", "Pipeline", "RemoteBlock", "RowParallelDense",
    "StackedPipeline", "VocabParallelEmbedding", "devices", "fully_shard", "rest", "sync_gradients",
    "sync_initial_weights",
]  # fmt: skip

__getattr__ = former_names(
    __name__, {"DivergenceSentinel": "DivergenceCheck", "PeriodicTrainer": "AccumulatingTrainer"}
)
