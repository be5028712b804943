"""Validation, tests and predictions of `Trainer`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .. import autograd
from ..context import Context
from ..core.errors import ArgumentError, MXNetError
from . import checkpoints
from .batches import rows_of
from .callbacks import ModelCheckpoint
from .module import LightningModule
from .results import LoggedMetrics


class Evaluation:
    """What a trainer does with a module without training it."""

    contexts: list[Context]
    callback_metrics: dict[str, float]
    _trained: Any
    _results: LoggedMetrics
    _prints: bool
    _rows: int

    def validate(
        self, model: LightningModule | None = None, dataloaders: Any = None, ckpt_path: str | None = None,
        verbose: bool = True, datamodule: Any = None,
    ) -> list[dict[str, float]]:  # fmt: skip
        """Call `validation_step` for all batches; returns the means of what was logged.

        Args:
            model: the module; the one of before by default.
            dataloaders, datamodule: see `fit`.
            ckpt_path: a checkpoint whose weights are taken, or `"best"` or `"last"` of the `ModelCheckpoint`.
            verbose: print the means, where `enable_progress_bar` lets it.
        """
        chosen = self._chosen("validate", model, ckpt_path)
        return self._whole(chosen, "validate", "val", dataloaders, datamodule, "validation_step", verbose)

    def test(
        self, model: LightningModule | None = None, dataloaders: Any = None, ckpt_path: str | None = None,
        verbose: bool = True, datamodule: Any = None,
    ) -> list[dict[str, float]]:  # fmt: skip
        """Call `test_step` for all batches; returns the means of what was logged; see `validate`."""
        chosen = self._chosen("test", model, ckpt_path)
        return self._whole(chosen, "test", "test", dataloaders, datamodule, "test_step", verbose)

    def _chosen(self, what: str, model: Any, ckpt_path: str | None) -> Any:
        """The module of a call, with the weights of a checkpoint if there is one."""
        model = self._trained if model is None else model
        if model is None:
            raise ArgumentError(f"Trainer.{what}: model=None: nothing was trained; give a module")
        if ckpt_path in ("best", "last"):
            kept = self.checkpoint_callback
            path = kept and (kept.best_model_path if ckpt_path == "best" else kept.last_model_path)
            if not path:
                raise ArgumentError(f"Trainer.{what}: ckpt_path={ckpt_path!r}: no ModelCheckpoint has saved one")
            ckpt_path = path
        if ckpt_path is not None:
            checkpoints.restore(model, checkpoints.read(ckpt_path))
        return model

    def _whole(
        self, model: LightningModule, what: str, kind: str, dataloaders: Any, datamodule: Any, step: str, verbose: bool
    ) -> list[dict[str, float]]:
        data = self._data(what, kind, model, dataloaders, datamodule)
        if data is None:
            raise ArgumentError(f"Trainer.{what}: there is no data; give dataloaders or a datamodule")
        self._begin(model)
        self._move(model)
        try:
            self._tell("setup", model, what)
            self._results = results = LoggedMetrics(False)
            self._evaluate(model, data, kind, getattr(model, step), 0)
            found = results.epoch_means()
            self._tell("teardown", model, what)
        finally:
            model.trainer = None
        self.callback_metrics.update(found)
        if verbose and self._prints:
            print(f"{what}: " + " - ".join(f"{k}: {v:.4g}" for k, v in found.items()), flush=True)
        return [found]

    def _move(self, model: LightningModule) -> None:
        params = model.collect_params()
        for p in params.values():
            if p._data is None and not p._deferred_init:
                raise MXNetError(f"Trainer: parameter {p.name!r} was never initialized; fit the module first")
        if any(p.list_ctx() != self.contexts for p in params.values()):
            params.reset_ctx(self.contexts)

    def _evaluate(self, model: LightningModule, data: Any, kind: str, step: Any, seed: int) -> None:
        name = {"val": "validation", "test": "test"}[kind]
        if kind == "val":
            self._tell("on_validation_start", model)
        self._tell(f"on_{name}_epoch_start", model)
        with autograd.predict_mode():
            for number, batch in enumerate(self._limited(kind, data, seed)):
                self._results.begin_batch()
                for part in self._parts(batch, self.contexts[: rows_of(batch)]):
                    self._rows = rows_of(part)
                    step(part, number)
        self._tell(f"on_{name}_epoch_end", model)
        if kind == "val":
            self._tell("on_validation_end", model)

    def predict(
        self, model: LightningModule | None = None, dataloaders: Any = None, datamodule: Any = None,
        return_predictions: bool = True, ckpt_path: str | None = None,
    ) -> list[Any]:  # fmt: skip
        """Return what `predict_step` returns for all batches, on the first device; every process computes all."""
        chosen = self._chosen("predict", model, ckpt_path)
        data = self._data("predict", "predict", chosen, dataloaders, datamodule)
        if data is None:
            raise ArgumentError("Trainer.predict: there is no data; give dataloaders or a datamodule")
        self._begin(chosen)
        self._move(chosen)
        try:
            with autograd.predict_mode():
                batches = self._limited("predict", data, 0)
                return [chosen.predict_step(self._parts(b, self.contexts[:1])[0], i) for i, b in enumerate(batches)]
        finally:
            chosen.trainer = None

    # -- what the trainer brings

    @property
    def checkpoint_callback(self) -> ModelCheckpoint | None:
        """The first callback that writes checkpoints."""
        raise NotImplementedError

    @staticmethod
    def _data(what: str, kind: str, model: Any, given: Any, datamodule: Any) -> Any:
        raise NotImplementedError

    def _begin(self, model: LightningModule) -> None:
        raise NotImplementedError

    def _tell(self, moment: str, model: LightningModule, *args: Any) -> None:
        raise NotImplementedError

    def _parts(self, batch: Any, contexts: Sequence[Context]) -> list[Any]:
        raise NotImplementedError

    def _limited(self, kind: str, loader: Any, seed: int) -> Iterator[Any]:
        raise NotImplementedError
