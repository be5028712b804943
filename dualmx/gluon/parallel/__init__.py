"""Networks on several devices or in several processes: wrappers, exchanges, layers cut over a mesh."""

from .attention import ParallelSelfAttention, ParallelTransformerCell
from .data_parallel import DataParallel
from .devices import devices, rest
from .distributed import DistributedDataParallel
from .layers import ColumnParallelDense, RowParallelDense, VocabParallelEmbedding
from .pipeline import Pipeline
from .remote import RemoteBlock
from .sharded import fully_shard
from .stacked import StackedPipeline
from .sync import sync_gradients, sync_initial_weights

__all__ = [
    "ColumnParallelDense", "DataParallel", "DistributedDataParallel", "ParallelSelfAttention",
    "ParallelTransformerCell", "Pipeline", "RemoteBlock", "RowParallelDense", "StackedPipeline",
    "VocabParallelEmbedding", "devices", "fully_shard", "rest", "sync_gradients", "sync_initial_weights",
]  # fmt: skip
