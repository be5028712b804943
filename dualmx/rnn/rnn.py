"""Checkpoints of recurrent models, with weights by gate."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from ..checkpoint import load_checkpoint, save_checkpoint
from ..ndarray import NDArray
from .cell import BaseRNNCell

Cells = BaseRNNCell | Sequence[BaseRNNCell]


def _listed(cells: Cells) -> Sequence[BaseRNNCell]:
    return [cells] if isinstance(cells, BaseRNNCell) else cells


def rnn_unroll(
    cell: BaseRNNCell,
    length: int,
    inputs: Any = None,
    begin_state: Any = None,
    input_prefix: str = "",
    layout: str = "NTC",
) -> tuple[Any, Any]:
    """Deprecated: use `cell.unroll`."""
    warnings.warn("rnn_unroll is deprecated; use cell.unroll", DeprecationWarning, stacklevel=2)
    return cell.unroll(length, inputs, begin_state, layout)


def save_rnn_checkpoint(
    cells: Cells,
    prefix: str,
    epoch: int,
    symbol: Any,
    arg_params: dict[str, NDArray],
    aux_params: dict[str, NDArray],
) -> None:
    """Write a checkpoint with unpacked weights, which loads into fused and into unfused cells.

    Args:
        cells: the model's cells.
        prefix, epoch, symbol, arg_params, aux_params: see `mx.model.save_checkpoint`.
    """
    for cell in _listed(cells):
        arg_params = cell.unpack_weights(arg_params)
    save_checkpoint(prefix, epoch, symbol, arg_params, aux_params)


def load_rnn_checkpoint(cells: Cells, prefix: str, epoch: int) -> tuple[Any, dict[str, NDArray], dict[str, NDArray]]:
    """Read a checkpoint of `save_rnn_checkpoint` and pack the weights for `cells`.

    Returns:
        symbol, arg_params, aux_params.
    """
    symbol, arg_params, aux_params = load_checkpoint(prefix, epoch)
    for cell in _listed(cells):
        arg_params = cell.pack_weights(arg_params)
    return symbol, arg_params, aux_params


def do_rnn_checkpoint(cells: Cells, prefix: str, period: int = 1) -> Callable[..., None]:
    """Return an epoch-end callback that calls `save_rnn_checkpoint` every `period` epochs."""
    period = max(1, int(period))

    def at_epoch_end(iter_no: int, sym: Any = None, arg: Any = None, aux: Any = None) -> None:
        if (iter_no + 1) % period == 0:
            save_rnn_checkpoint(cells, prefix, iter_no + 1, sym, arg, aux)

    return at_epoch_end


__all__ = ["do_rnn_checkpoint", "load_rnn_checkpoint", "rnn_unroll", "save_rnn_checkpoint"]
