"""`LightningModule` and `LightningDataModule`, which users subclass."""

from __future__ import annotations

import inspect
import random as stdlib_random
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from .. import parallel
from ..context import Context, current_context
from ..core.errors import ArgumentError, ArgumentTypeError, MXNetError
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
    hparams: Hyperparameters

    def __init__(self) -> None:
        super().__init__(prefix="")
        self.hparams = Hyperparameters()

    def save_hyperparameters(self, *names: Any, ignore: Any = ()) -> None:
        """Keep the arguments of `__init__` in `hparams` and in checkpoints; to be called there.

        Args:
            *names: which arguments; all by default. Or one dict of values.
            ignore: a name, or several, to be left out.

        Raises:
            ArgumentError: no such argument.
        """
        frame: Any = sys._getframe(1)
        given = inspect.signature(type(self).__init__).parameters if not names or isinstance(names[0], str) else {}
        found = dict(names[0]) if names and isinstance(names[0], Mapping) else {}
        for name, parameter in list(given.items())[1:]:
            if parameter.kind is parameter.VAR_KEYWORD:
                found.update(frame.f_locals.get(name, {}))
            elif parameter.kind is not parameter.VAR_POSITIONAL:
                found[name] = frame.f_locals[name]
        wanted = [n for n in names if isinstance(n, str)]
        for name in wanted:
            if name not in found:
                raise ArgumentError(f"save_hyperparameters: {name!r}: expected one of {', '.join(found)}")
        left = {ignore} if isinstance(ignore, str) else set(ignore)
        self.hparams.update({k: v for k, v in found.items() if k not in left and (not wanted or k in wanted)})

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

    def setup(self, stage: str) -> None:
        """Called before everything else; `stage` is `"fit"`, `"validate"`, `"test"` or `"predict"`."""

    def teardown(self, stage: str) -> None:
        """Called after everything else."""

    def configure_callbacks(self) -> Any:
        """Return callbacks that the module adds to `fit`."""
        return []

    def on_train_batch_start(self, batch: Any, batch_idx: int) -> None:
        """Called before a batch."""

    def on_train_batch_end(self, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Called after a batch."""

    def on_validation_start(self) -> None:
        """Called before a validation."""

    def on_validation_end(self) -> None:
        """Called after a validation."""

    def on_test_epoch_start(self) -> None:
        """Called before a test."""

    def on_test_epoch_end(self) -> None:
        """Called after a test."""

    def on_fit_start(self) -> None:
        """Called before training, after `setup`."""

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
        batch_size: int | None = None, sync_dist: bool = False, logger: bool = True, rank_zero_only: bool = False,
    ) -> None:  # fmt: skip
        """Report a number of this batch.

        Args:
            name: key, in `trainer.callback_metrics` and in the logger.
            value: a number, or an array with one element; nothing waits for it.
            prog_bar: show it at the end of the epoch.
            on_step: report the number itself; by default in training.
            on_epoch: report the mean over the epoch and all processes; by default in validation and test.
            batch_size: weight in that mean; the rows of the batch by default.
            sync_dist, logger, rank_zero_only: accepted; means of epochs are always those of all processes, and go to
                the loggers of the first one.

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
        """Number of updates so far."""
        return self.trainer.global_step if self.trainer is not None else 0

    @property
    def global_rank(self) -> int:
        """Number of this process."""
        return self.trainer.global_rank if self.trainer is not None else 0

    @property
    def local_rank(self) -> int:
        """Number of this process on its host."""
        return parallel.local_rank() if self.trainer is not None else 0

    def optimizers(self) -> Any:
        """Return the optimizer."""
        return self.trainer.optimizers[0] if self.trainer is not None and self.trainer.optimizers else None

    def all_gather(self, data: NDArray) -> NDArray:
        """Return the arrays of all processes, stacked."""
        return parallel.all_gather(data)

    def print(self, *args: Any, **kwargs: Any) -> None:
        """Print in the first process."""
        if self.global_rank == 0:
            print(*args, **kwargs)

    def freeze(self) -> None:
        """Let no parameter learn."""
        self.collect_params().setattr("grad_req", "null")

    def unfreeze(self) -> None:
        """Let all parameters learn, but for auxiliary states."""
        for p in self.collect_params().values():
            if p.is_differentiable:
                p.grad_req = "write"

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
        """Return a module with the weights of a checkpoint, constructed from its hyperparameters and `kwargs`.

        Raises:
            FormatError: not a checkpoint. ArgumentError: of another network.
        """
        from .checkpoint import hyperparameters_of, read, restore

        found = read(checkpoint_path)
        taken = inspect.signature(cls.__init__).parameters
        anything = any(p.kind is p.VAR_KEYWORD for p in taken.values())
        kept = {k: v for k, v in hyperparameters_of(found).items() if anything or k in taken}
        made = cls(**{**kept, **kwargs})
        restore(made, found)
        return made


class Hyperparameters(dict):
    """A dict whose values are attributes as well.

    Example:
        >>> h = Hyperparameters(lr=0.1)
        >>> h.lr, h["lr"]
        (0.1, 0.1)
    """

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(
                f"there is no hyperparameter {name!r}; there are {', '.join(self) or 'none'}"
            ) from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value


class LightningDataModule:
    """Loaders in one place; subclasses define those that are needed."""

    def prepare_data(self) -> None:
        """Called first, in one process of each host: to download, for example."""

    def teardown(self, stage: str) -> None:
        """Called at the end."""

    def setup(self, stage: str) -> None:
        """Called before loaders are requested; `stage` is `"fit"`, `"validate"`, `"test"` or `"predict"`."""

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


def seed_everything(seed: int = 0, workers: bool = False, verbose: bool = False) -> int:
    """Seed the random numbers of Python, NumPy and dualmx; returns the seed.

    Args:
        seed: the number.
        workers, verbose: accepted.

    Example:
        >>> seed_everything(7)
        7
    """
    from ..random import seed as seed_all

    stdlib_random.seed(seed)
    np.random.seed(seed)
    seed_all(seed)
    return seed
