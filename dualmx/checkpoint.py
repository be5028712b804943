"""Checkpoints of a symbol and its parameters: `prefix-symbol.json` and `prefix-0001.params`."""

from __future__ import annotations

import logging
from typing import Any, NamedTuple

from .core.errors import ArgumentTypeError
from .ndarray import NDArray, load, save
from .symbol import load as load_symbol


class BatchEndParam(NamedTuple):
    """What callbacks at the end of a batch receive.

    Attributes:
        epoch: number of the epoch, from 0.
        nbatch: number of the batch, from 0.
        eval_metric: the metric so far, or `None`.
        locals: local variables of the loop that calls.
    """

    epoch: int
    nbatch: int
    eval_metric: Any
    locals: Any


def join_params(arg_params: dict[str, NDArray], aux_params: dict[str, NDArray]) -> dict[str, NDArray]:
    """Return one dict with the names `arg:…` and `aux:…` under which checkpoints keep parameters."""
    named = {f"arg:{k}": v for k, v in (arg_params or {}).items()}
    return {**named, **{f"aux:{k}": v for k, v in (aux_params or {}).items()}}


def split_params(saved: dict[str, NDArray] | list[Any], fname: str) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
    """Return `(arg_params, aux_params)` of what a parameter file holds; names without a prefix are arguments.

    Raises:
        ArgumentTypeError: the file holds a list without names.
    """
    if not saved:
        logging.warning("Params file '%s' is empty", fname)
        return {}, {}
    if not isinstance(saved, dict):
        raise ArgumentTypeError(f"{fname!r} holds arrays without names: expected parameters saved with their names")
    arg_params, aux_params = {}, {}
    for name, value in saved.items():
        (aux_params if name.startswith("aux:") else arg_params)[name.removeprefix("arg:").removeprefix("aux:")] = value
    return arg_params, aux_params


def save_checkpoint(
    prefix: str,
    epoch: int,
    symbol: Any,
    arg_params: dict[str, NDArray],
    aux_params: dict[str, NDArray],
    remove_amp_cast: bool = True,
) -> None:
    """Write `prefix-symbol.json` (if there is a symbol) and `prefix-%04d.params`.

    Args:
        prefix: beginning of the file names.
        epoch: number in the name of the parameter file.
        symbol: the network, or `None`.
        arg_params: parameters by name.
        aux_params: auxiliary states by name.
        remove_amp_cast: leave casts of mixed precision out of the JSON.
    """
    if symbol is not None:
        symbol.save(f"{prefix}-symbol.json", remove_amp_cast=remove_amp_cast)
    fname = f"{prefix}-{epoch:04d}.params"
    save(fname, join_params(arg_params, aux_params))
    logging.info('Saved checkpoint to "%s"', fname)


def load_params(prefix: str, epoch: int) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
    """Return `(arg_params, aux_params)` of the file `prefix-%04d.params`."""
    fname = f"{prefix}-{epoch:04d}.params"
    return split_params(load(fname), fname)


def load_checkpoint(prefix: str, epoch: int) -> tuple[Any, dict[str, NDArray], dict[str, NDArray]]:
    """Return `(symbol, arg_params, aux_params)` of a checkpoint.

    Raises:
        MXNetError: a file cannot be read. FormatError: a file is truncated or altered.

    Example:
        >>> symbol, arg_params, aux_params = load_checkpoint("model", 10)  # doctest: +SKIP
    """
    return load_symbol(f"{prefix}-symbol.json"), *load_params(prefix, epoch)
