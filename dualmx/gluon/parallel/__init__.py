"""Networks on several devices or in several processes: wrappers, exchanges, layers cut over a mesh."""

from .attention import ParallelSelfAttention, ParallelTransformerCell
from .data_parallel import DataParallel
from .devices import devices, rest
from .distributed import DistributedDataParallel
from .layers import ColumnParallelDense, RowParallelDense, VocabParallelEmbedding
from .periodic import PeriodicTrainer
from .pipeline import Pipeline
from .remote import RemoteBlock
from .sentinel import DivergenceSentinel
from .sharded import fully_shard
from .stacked import StackedPipeline
from .sync import sync_gradients, sync_initial_weights

__all__ = [
    "ColumnParallelDense", "DataParallel", "DistributedDataParallel", "DivergenceSentinel", "ParallelSelfAttention",
    "ParallelTransformerCell", "PeriodicTrainer", "Pipeline", "RemoteBlock", "RowParallelDense", "StackedPipeline",
    "VocabParallelEmbedding", "devices", "fully_shard", "rest", "sync_gradients", "sync_initial_weights",
]  # fmt: skip
