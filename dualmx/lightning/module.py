"""What a user writes: the network with its steps, and its data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..context import Context, current_context
from ..core.errors import ArgumentTypeError, MXNetError
from ..gluon.block import Block
from ..ndarray import NDArray


class LightningModule(Block):
    """A network that knows what a step of training, validation or test is.

    Subclasses define `training_step` and `configure_optimizers`, and what else they need. On several devices a step is
    called for each of them, with its part of the batch.

    Attributes:
        trainer: the `Trainer`, None outside of it.
    """

    trainer: Any = None

    def __init__(self) -> None:
        super().__init__(prefix="")

    # -- what subclasses define

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        """Return the loss of a batch, the mean over its rows: an array, or a dict with the key `"loss"`."""
        raise NotImplementedError(f"{type(self).__name__} must define training_step(batch, batch_idx)")

    def validation_step(self, batch: Any, batch_idx: int) -> Any:
        """Log what is to be known of a batch of validation."""
        raise NotImplementedError(f"{type(self).__name__} must define validation_step(batch, batch_idx)")

    def test_step(self, batch: Any, batch_idx: int) -> Any:
        """Log what is to be known of a batch of a test."""
        raise NotImplementedError(f"{type(self).__name__} must define test_step(batch, batch_idx)")

    def predict_step(self, batch: Any, batch_idx: int) -> Any:
        """Return the outputs for a batch; those of `forward` by default."""
        return self(batch[0] if isinstance(batch, (list, tuple)) else batch)

    def configure_optimizers(self) -> Any:
        """Return an optimizer of `mx.optimizer`, its name, or a dict with the key `"optimizer"`."""
        raise NotImplementedError(f"{type(self).__name__} must define configure_optimizers()")

    def on_fit_start(self) -> None:
        """Called before everything else."""

    def on_fit_end(self) -> None:
        """Called after everything else."""

    def on_train_start(self) -> None:
        """Called before the first epoch."""

    def on_train_end(self) -> None:
        """Called after the last epoch."""

    def on_train_epoch_start(self) -> None:
        """Called before an epoch."""

    def on_train_epoch_end(self) -> None:
        """Called after an epoch."""

    def on_validation_epoch_start(self) -> None:
        """Called before a validation."""

    def on_validation_epoch_end(self) -> None:
        """Called after a validation."""

    # -- what they use

    def log(
        self, name: str, value: Any, prog_bar: bool = False, on_step: bool | None = None, on_epoch: bool | None = None,
        batch_size: int | None = None, sync_dist: bool = False,
    ) -> None:  # fmt: skip
        """Report a number of this batch.

        Args:
            name: key, in `trainer.callback_metrics` and in the logger.
            value: a number, or an array with one element; nothing waits for it.
            prog_bar: show it at the end of the epoch.
            on_step: report the number itself; by default in training.
            on_epoch: report the mean over the epoch and all processes; by default in validation and test.
            batch_size: weight in that mean; the rows of the batch by default.
            sync_dist: accepted; means of epochs are always those of all processes.

        Raises:
            MXNetError: outside of a Trainer. ArgumentTypeError: not a number.
        """
        if self.trainer is None:
            raise MXNetError(f"{type(self).__name__}.log: {name!r}: there is no Trainer; it calls the steps")
        if isinstance(value, NDArray):
            if value.size != 1:
                raise ArgumentTypeError(f"log: {name!r} of shape {value.shape}: expected a single number")
        elif not isinstance(value, (int, float)) and getattr(value, "ndim", None) != 0:
            raise ArgumentTypeError(f"log: {name!r} of type {type(value).__name__}: expected a number")
        self.trainer._log(name, value, prog_bar, on_step, on_epoch, batch_size)

    def log_dict(self, dictionary: Mapping[str, Any], **kwargs: Any) -> None:
        """`log` several numbers."""
        for name, value in dictionary.items():
            self.log(name, value, **kwargs)

    @property
    def current_epoch(self) -> int:
        """Number of the epoch, from 0."""
        return self.trainer.current_epoch if self.trainer is not None else 0

    @property
    def global_step(self) -> int:
        """How many updates were made."""
        return self.trainer.global_step if self.trainer is not None else 0

    @property
    def global_rank(self) -> int:
        """Number of this process."""
        return self.trainer.global_rank if self.trainer is not None else 0

    @property
    def device(self) -> Context:
        """The first device."""
        return self.trainer.contexts[0] if self.trainer is not None else current_context()

    @property
    def logger(self) -> Any:
        """The Trainer's logger."""
        return self.trainer.logger if self.trainer is not None else None

    @classmethod
    def load_from_checkpoint(cls, checkpoint_path: str, **kwargs: Any) -> Any:
        """Return a module made with `kwargs` that has the weights of a checkpoint.

        Raises:
            FormatError: not a checkpoint. ArgumentError: of another network.
        """
        from .checkpoints import read, restore

        made = cls(**kwargs)
        restore(made, read(checkpoint_path))
        return made


class LightningDataModule:
    """Loaders in one place; subclasses define those that are needed."""

    def setup(self, stage: str) -> None:
        """Called before loaders are asked for; `stage` is `"fit"`, `"validate"`, `"test"` or `"predict"`."""

    def train_dataloader(self) -> Any:
        """Return the loader for training."""
        return None

    def val_dataloader(self) -> Any:
        """Return the loader for validation."""
        return None

    def test_dataloader(self) -> Any:
        """Return the loader for tests."""
        return None

    def predict_dataloader(self) -> Any:
        """Return the loader for predictions."""
        return None
