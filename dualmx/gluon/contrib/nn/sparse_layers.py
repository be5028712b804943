"""`SparseEmbedding`: an embedding with row_sparse weight and gradient."""

from __future__ import annotations

from typing import Any

from ....namespace import nd
from ...base_block import Block


class SparseEmbedding(Block):
    """An embedding of which, with a store on several hosts, a worker stores only the rows it uses.

    The parameter is read with `row_sparse_data`, so it needs a Trainer before the first call. On one host
    `gluon.nn.Embedding(sparse_grad=True)` does the same and can be hybridized.

    Args:
        input_dim: number of rows.
        output_dim: length of a row.
        dtype: of the table and the output.
        weight_initializer: of the table.

    Shapes: input (\\*) of row numbers in [0, input_dim); output (\\*, output_dim).

    Example:
        >>> import dualmx as mx
        >>> layer = mx.gluon.contrib.nn.SparseEmbedding(10, 4)
        >>> layer.initialize()
        >>> trainer = mx.gluon.Trainer(layer.collect_params(), "sgd")
        >>> layer(mx.nd.array([1, 2])).shape
        (2, 4)
    """

    def __init__(
        self, input_dim: int, output_dim: int, dtype: Any = "float32", weight_initializer: Any = None, **kwargs: Any
    ):
        super().__init__(**kwargs)
        self._kwargs = {"input_dim": input_dim, "output_dim": output_dim, "dtype": dtype, "sparse_grad": True}
        self.weight = self.params.get(
            "weight",
            shape=(input_dim, output_dim),
            init=weight_initializer,
            dtype=dtype,
            grad_stype="row_sparse",
            stype="row_sparse",
        )

    def forward(self, x: Any) -> Any:
        """Look up."""
        return nd.Embedding(x, self.weight.row_sparse_data(x), **self._kwargs)

    def __repr__(self) -> str:
        values = self._kwargs
        return f"{type(self).__name__}({values['input_dim']} -> {values['output_dim']}, {values['dtype']})"
