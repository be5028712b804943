"""Checkpoint files: parameters, optimizer states, epoch and step."""

from __future__ import annotations

import json
import os
import tempfile
from typing import Any

import numpy as np

from ..core.errors import ArgumentError
from ..core.reader import Content
from ..gluon.block import Block
from ..gluon.trainer import Trainer
from ..namespace import nd

_PARAM, _OPTIMIZER, _PROGRESS, _SETTINGS = "param:", "optimizer", "progress", "hyperparameters"


def write(path: str, module: Block, trainer: Trainer | None, progress: dict[str, Any]) -> None:
    """Write a checkpoint atomically."""
    found = {_PARAM + name: p.reduce() for name, p in module.collect_params_with_prefix().items()}
    found[_PROGRESS] = _bytes(json.dumps(progress).encode())
    plain = {k: v for k, v in getattr(module, "hparams", {}).items() if _is_plain(v)}
    found[_SETTINGS] = _bytes(json.dumps(plain).encode())
    folder = os.path.dirname(os.path.abspath(path))
    os.makedirs(folder, exist_ok=True)
    if trainer is not None:
        with tempfile.TemporaryDirectory() as scratch:
            states = os.path.join(scratch, "states")
            trainer.save_states(states)
            with open(states, "rb") as f:
                found[_OPTIMIZER] = _bytes(f.read())
    draft = f"{path}.{os.getpid()}"
    nd.save(draft, found)
    os.replace(draft, path)


def _is_plain(value: Any) -> bool:
    """Whether a value is data that JSON gives back as it was."""
    if isinstance(value, dict):
        return all(isinstance(k, str) and _is_plain(v) for k, v in value.items())
    return (
        all(map(_is_plain, value))
        if isinstance(value, list)
        else isinstance(value, (bool, int, float, str, type(None)))
    )


def hyperparameters_of(found: dict[str, Any]) -> dict[str, Any]:
    """Return the hyperparameters that are plain data."""
    return _json(found, _SETTINGS) if _SETTINGS in found else {}


def _json(found: dict[str, Any], name: str) -> dict[str, Any]:
    """The JSON object in one of the arrays of a checkpoint."""
    content = Content(found[name].asnumpy().tobytes(), f"checkpoint, {name}", "a JSON object")
    value = content.json()
    if not isinstance(value, dict):
        raise content.error(f"a {type(value).__name__}")
    return value


def _bytes(content: bytes) -> Any:
    return nd.array(np.frombuffer(content, np.uint8), dtype="uint8")


def read(path: str) -> dict[str, Any]:
    """Return the arrays of a checkpoint.

    Raises:
        FormatError: the file is no checkpoint.
    """
    found, content = nd.load(path), Content(b"", repr(path), "a checkpoint of a Trainer")
    if not isinstance(found, dict) or _PROGRESS not in found:
        raise content.error(f"no array {_PROGRESS!r}")
    with content.parsing():
        progress_of(found)
        hyperparameters_of(found)
    return found


def progress_of(found: dict[str, Any]) -> dict[str, Any]:
    """Return the numbers of epoch and step."""
    return _json(found, _PROGRESS)


def restore(module: Block, found: dict[str, Any]) -> None:
    """Overwrite the parameters of a module.

    Raises:
        ArgumentError: the checkpoint is of another network.
    """
    params = module.collect_params_with_prefix()
    values = {name.removeprefix(_PARAM): v for name, v in found.items() if name.startswith(_PARAM)}
    if set(params) != set(values):
        other = sorted(set(params) ^ set(values))
        raise ArgumentError(f"checkpoint of another network: {other[0]!r} is in one of them only")
    for name, p in params.items():
        p.load_init(values[name], None)


def restore_optimizer(trainer: Trainer, found: dict[str, Any]) -> None:
    """Overwrite the states of the optimizer, if the checkpoint has some."""
    if _OPTIMIZER in found:
        with tempfile.TemporaryDirectory() as scratch:
            states = os.path.join(scratch, "states")
            with open(states, "wb") as f:
                f.write(found[_OPTIMIZER].asnumpy().tobytes())
            trainer.load_states(states)
