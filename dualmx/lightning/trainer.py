"""`Trainer`: fit, validate, test and predict with a `LightningModule`, on chosen devices and processes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .. import autograd, initializer, optimizer, parallel
from ..context import Context, num_gpus
from ..contrib import amp
from ..core.errors import ArgumentError, ArgumentTypeError, MXNetError
from ..gluon.batch_split import clip_global_norm
from ..gluon.parallel import devices as listed_devices
from ..gluon.parallel import rest, sync_initial_weights
from ..gluon.trainer import Trainer as GluonTrainer
from . import checkpoint
from .callbacks import Callback, ModelCheckpoint
from .dataloading import batches_of, rows_of, split_over_devices
from .logged_metrics import LoggedMetrics
from .loggers import CSVLogger, Logger
from .module import LightningDataModule, LightningModule

_STRATEGIES = ("auto", "ddp", "dp")
_KINDS = ("auto", "cpu", "gpu", "cuda", "tpu")


def resolve_devices(accelerator: str, devices: Any, num_nodes: int, strategy: str) -> list[Context]:
    """Return this process's devices, after joining the job's processes unless the strategy is `"dp"`.

    Raises:
        ArgumentError: an unknown name, or a device that is not there. MXNetError: another number of processes.
    """
    if strategy not in _STRATEGIES:
        raise ArgumentError(f"Trainer: strategy={strategy!r}: expected one of {', '.join(_STRATEGIES)}")
    if accelerator not in _KINDS:
        raise ArgumentError(f"Trainer: accelerator={accelerator!r}: expected one of {', '.join(_KINDS)}")
    if not isinstance(num_nodes, int) or num_nodes < 1:
        raise ArgumentError(f"Trainer: num_nodes={num_nodes!r}: expected a number of 1 or more")
    if strategy != "dp":
        parallel.init()
    size = parallel.size()
    if strategy == "dp" or (size == 1 and strategy == "auto" and num_nodes == 1):
        if num_nodes > 1:
            raise ArgumentError(f"Trainer: strategy='dp' with num_nodes={num_nodes}: one process is on one node")
        return _here(accelerator, devices)
    each = len(devices) if isinstance(devices, (list, tuple)) else devices if isinstance(devices, int) else 0
    wanted = num_nodes * (each or parallel.local_size())
    if size != wanted:
        raise MXNetError(
            f"Trainer: num_nodes={num_nodes}, devices={devices!r}: expected {wanted} processes, one for each device, "
            f"but there are {size}; start the script by dualmx-launch -n {wanted} -s 0 python ..., or take "
            "strategy='dp' for several devices in one process"
        )
    number = devices[parallel.local_rank()] if isinstance(devices, (list, tuple)) else parallel.local_rank()
    kind = _kind(accelerator)
    return listed_devices([f"{kind}:{number}" if kind != "cpu" else Context("cpu", 0)], "Trainer: devices")


def _kind(accelerator: str) -> str:
    if accelerator == "auto":
        return "gpu" if num_gpus() else "cpu"
    return accelerator.replace("cuda", "gpu")


def _here(accelerator: str, devices: Any) -> list[Context]:
    kind = _kind(accelerator)
    if devices in ("auto", -1, "-1"):
        count = len(listed_devices()) if listed_devices()[0].device_type == kind and kind != "cpu" else 1
        return [Context(kind, i) for i in range(count)]
    if isinstance(devices, (list, tuple)):
        wanted = [f"{kind}:{d}" if isinstance(d, int) else d for d in devices]
    elif isinstance(devices, int) and devices > 0:
        wanted = [f"{kind}:{i}" for i in range(devices)]
    else:
        raise ArgumentError(f"Trainer: devices={devices!r}: expected 'auto', a number, or a list of numbers")
    return listed_devices(wanted, "Trainer: devices")


# Dtype of the parameters, and what operators cast to.
_PRECISIONS: dict[str, tuple[str, str]] = {
    "32-true": ("float32", ""), "32": ("float32", ""), "64-true": ("float64", ""), "64": ("float64", ""),
    "16-true": ("float16", ""), "bf16-true": ("bfloat16", ""), "16-mixed": ("float32", "float16"),
    "16": ("float32", "float16"), "bf16-mixed": ("float32", "bfloat16"), "bf16": ("float32", "bfloat16"),
}  # fmt: skip


class Trainer:
    """Train, validate and test `LightningModule`s.

    Args:
        accelerator: `"auto"`, `"cpu"`, `"gpu"` or `"tpu"`.
        strategy: `"ddp"`: one process per device, as started by `dualmx-launch -n`; `"dp"`: several devices in this
            process; `"auto"`: the first in a job of several processes, the second otherwise.
        devices: a number or a list of numbers, on each node; `"auto"` for all accelerators, or one CPU device.
        num_nodes: hosts of the job.
        precision: `"32-true"`, `"64-true"`, `"16-true"`, `"bf16-true"`, `"16-mixed"` or `"bf16-mixed"`. The mixed ones
            change operators for the whole process; see `contrib.amp`.
        logger: a `Logger`, a list of them, True for a `CSVLogger`, False for none.
        callbacks: callbacks.
        max_epochs, max_steps: when training ends, -1 for no such end; 1000 epochs if neither is given.
        limit_train_batches, limit_val_batches, limit_test_batches: most batches of an epoch, or a share of them.
        check_val_every_n_epoch: epochs from one validation to the next.
        log_every_n_steps: steps from one report of numbers of a batch to the next.
        enable_checkpointing: add a `ModelCheckpoint` if there is none.
        enable_progress_bar: print a line per epoch.
        accumulate_grad_batches: batches of one update.
        gradient_clip_val: bound of the norm of all gradients together, or of each element.
        gradient_clip_algorithm: `"norm"` or `"value"`.
        fast_dev_run: one batch (or so many) of everything, without logs and checkpoints.
        default_root_dir: where logs and checkpoints go; the working directory by default.
        min_epochs: epochs before which `should_stop` does not count.
        limit_predict_batches: most batches of a prediction, or a share of them.
        num_sanity_val_steps: batches of validation before training, whose numbers nobody sees.
        enable_model_summary: print the module's parameters before training.
        deterministic, benchmark, inference_mode, use_distributed_sampler: accepted.

    Raises:
        ArgumentError: an unknown name, or a device that is not there. MXNetError: another number of processes.

    Attributes:
        callback_metrics: what was logged last, by name.
        current_epoch, global_step: numbers of the epoch, after `fit` of how many there were, and of updates.
        should_stop: set it to end training after the epoch.
    """

    contexts: list[Context]
    callback_metrics: dict[str, float]
    _trained: Any
    _results: LoggedMetrics
    _prints: bool
    _rows: int

    def __init__(
        self, *, accelerator: str = "auto", strategy: str = "auto", devices: Any = "auto", num_nodes: int = 1,
        precision: Any = "32-true", logger: Any = True, callbacks: Any = None, max_epochs: int | None = None,
        max_steps: int = -1, limit_train_batches: Any = 1.0, limit_val_batches: Any = 1.0,
        limit_test_batches: Any = 1.0, check_val_every_n_epoch: int = 1, log_every_n_steps: int = 50,
        enable_checkpointing: bool = True, enable_progress_bar: bool = True, accumulate_grad_batches: int = 1,
        gradient_clip_val: float | None = None, gradient_clip_algorithm: str = "norm", fast_dev_run: Any = False,
        default_root_dir: Any = None, min_epochs: int = 0, limit_predict_batches: Any = 1.0,
        num_sanity_val_steps: int = 0, deterministic: Any = None, benchmark: Any = None, inference_mode: bool = True,
        enable_model_summary: bool = False, use_distributed_sampler: bool = True,
    ):  # fmt: skip
        if str(precision) not in _PRECISIONS:
            raise ArgumentError(f"Trainer: precision={precision!r}: expected one of {', '.join(_PRECISIONS)}")
        if not isinstance(accumulate_grad_batches, int) or accumulate_grad_batches < 1:
            raise ArgumentError(
                f"Trainer: accumulate_grad_batches={accumulate_grad_batches!r}: expected a number of 1 or more"
            )
        if gradient_clip_algorithm not in ("norm", "value"):
            raise ArgumentError(
                f"Trainer: gradient_clip_algorithm={gradient_clip_algorithm!r}: expected 'norm' or 'value'"
            )
        self.contexts = resolve_devices(accelerator, devices, num_nodes, strategy)
        self.global_rank, self.world_size, self.num_nodes = parallel.rank(), parallel.size(), num_nodes
        self._dtype, self._mixed = _PRECISIONS[str(precision)]
        self.precision = str(precision)
        self.max_epochs = 1000 if max_epochs is None and max_steps < 0 else max_epochs
        self.max_steps = max_steps
        self.default_root_dir = os.getcwd() if default_root_dir is None else str(default_root_dir)
        self._limits = {"train": limit_train_batches, "val": limit_val_batches, "test": limit_test_batches,
                        "predict": limit_predict_batches}  # fmt: skip
        self.min_epochs, self._sanity, self._summarizes = min_epochs, num_sanity_val_steps, enable_model_summary
        self.sanity_checking = self.training = False
        if fast_dev_run:
            self._limits = dict.fromkeys(self._limits, int(fast_dev_run))
            self.max_epochs, logger, enable_checkpointing = 1, False, False
            self.min_epochs = 0
        self.check_val_every_n_epoch, self.log_every_n_steps = check_val_every_n_epoch, log_every_n_steps
        self.accumulate_grad_batches = accumulate_grad_batches
        self.gradient_clip_val, self.gradient_clip_algorithm = gradient_clip_val, gradient_clip_algorithm
        made = CSVLogger(self.default_root_dir) if logger is True else logger
        self.loggers: list[Logger] = list(made) if isinstance(made, (list, tuple)) else [made] if made else []
        self.callbacks = list(callbacks) if isinstance(callbacks, (list, tuple)) else [callbacks] if callbacks else []
        for one in self.callbacks:
            if not isinstance(one, Callback):
                raise ArgumentTypeError(f"Trainer: callbacks: a {type(one).__name__}: expected lightning.Callback")
        if enable_checkpointing and not any(isinstance(c, ModelCheckpoint) for c in self.callbacks):
            self.callbacks.append(ModelCheckpoint())
        # Checkpoints hold what the other callbacks have done.
        self.callbacks.sort(key=lambda c: isinstance(c, ModelCheckpoint))
        self._prints = enable_progress_bar and self.global_rank == 0
        self.callback_metrics: dict[str, float] = {}
        self.current_epoch = self.global_step = 0
        self._epoch = -1  # the one that was trained last
        self.should_stop = False
        self._updates: GluonTrainer | None = None
        self._results = LoggedMetrics(True)
        self._rows = 0
        self._trained: Any = None

    @property
    def is_global_zero(self) -> bool:
        """Whether this is the first process."""
        return self.global_rank == 0

    @property
    def logger(self) -> Logger | None:
        """The first logger."""
        return self.loggers[0] if self.loggers else None

    @property
    def checkpoint_callback(self) -> ModelCheckpoint | None:
        """The first `ModelCheckpoint`."""
        return next((c for c in self.callbacks if isinstance(c, ModelCheckpoint)), None)

    @property
    def optimizers(self) -> list[Any]:
        """The optimizer, in a list."""
        return [] if self._updates is None else [self._updates.optimizer]

    @property
    def num_devices(self) -> int:
        """How many devices this process uses."""
        return len(self.contexts)

    @property
    def local_rank(self) -> int:
        """Number of this process on its host."""
        return parallel.local_rank()

    @property
    def node_rank(self) -> int:
        """Number of this host."""
        return parallel.cross_rank()

    @property
    def lightning_module(self) -> LightningModule | None:
        """The module of the latest call."""
        return self._trained

    model = lightning_module

    @property
    def logged_metrics(self) -> dict[str, float]:
        """What was reported to the loggers."""
        return self.callback_metrics

    @property
    def progress_bar_metrics(self) -> dict[str, float]:
        """What was reported for the progress bar."""
        return {k: v for k, v in self.callback_metrics.items() if k in self._results.shown}

    @property
    def log_dir(self) -> str:
        """Where logs and checkpoints go."""
        return self._folder("")

    def print(self, *args: Any, **kwargs: Any) -> None:
        """Print in the first process."""
        if self.is_global_zero:
            print(*args, **kwargs)

    # -- training

    def fit(
        self, model: LightningModule, train_dataloaders: Any = None, val_dataloaders: Any = None,
        datamodule: LightningDataModule | None = None, ckpt_path: str | None = None,
    ) -> None:  # fmt: skip
        """Train.

        Args:
            model: the module.
            train_dataloaders, val_dataloaders: a `DataLoader` each, or any iterable of batches. With several processes
                batches are dealt out to them.
            datamodule: instead of loaders.
            ckpt_path: a checkpoint to go on from.

        Raises:
            ArgumentError: there is no data, or a step returns no loss. ArgumentTypeError: not a LightningModule.
        """
        train = self._data("fit", "train", model, train_dataloaders, datamodule)
        val = self._data("fit", "val", model, val_dataloaders, datamodule)
        if train is None:
            raise ArgumentError("Trainer.fit: there is no data for training; give train_dataloaders or a datamodule")
        self._begin(model)
        start = 0
        wanted = model.configure_callbacks()
        self.callbacks.extend(wanted if isinstance(wanted, (list, tuple)) else [wanted])
        self.callbacks.sort(key=lambda c: isinstance(c, ModelCheckpoint))
        self.training = True
        try:
            self._tell("setup", model, "fit")
            self._tell("on_fit_start", model)
            first = next(batches_of(train, 0, 1, 0), None)
            if first is None:
                raise ArgumentError("Trainer.fit: the loader for training has no batches")
            self._make_weights(model, first)
            found = None if ckpt_path is None else checkpoint.read(ckpt_path)
            if found is not None:
                checkpoint.restore(model, found)
            self._updates = self._make_updates(model)
            if found is not None:
                checkpoint.restore_optimizer(self._updates, found)
                progress = checkpoint.progress_of(found)
                start, self.global_step = progress["epoch"] + 1, progress["step"]
            seed = int(parallel.broadcast_object(int(np.random.randint(2**31 - 1))))
            if self._summarizes:
                for name, p in model.collect_params().items():
                    self.print(f"{name:<60}{p.shape}")
            if val is not None and self._sanity:
                self._check_validation(model, val, seed)
            self.current_epoch, self._epoch = start, start - 1
            self._tell("on_train_start", model)
            for epoch in range(start, 2**31 if self.max_epochs in (None, -1) else self.max_epochs):
                if (self.should_stop and epoch >= self.min_epochs) or 0 <= self.max_steps <= self.global_step:
                    break
                self.current_epoch = self._epoch = epoch
                self._train_epoch(model, train, val, seed + epoch)
            self.current_epoch = self._epoch + 1
            self._tell("on_train_end", model)
            self._tell("on_fit_end", model)
            self._tell("teardown", model, "fit")
        finally:
            model.trainer, self.training = None, False

    def _check_validation(self, model: LightningModule, val: Any, seed: int) -> None:
        """Call the step of validation for some batches, so that its mistakes show before training."""
        before, self.sanity_checking = self._limits["val"], True
        self._limits["val"] = self._sanity
        try:
            self._results = LoggedMetrics(False)
            self._evaluate(model, val, "val", model.validation_step, seed)
        finally:
            self._limits["val"], self.sanity_checking = before, False

    def _begin(self, model: Any) -> None:
        if not isinstance(model, LightningModule):
            raise ArgumentTypeError(f"Trainer: a {type(model).__name__}: expected a LightningModule")
        self._trained = model
        model.trainer = self
        self.should_stop = False
        if self._mixed:
            amp.init(self._mixed)
        if self._dtype != "float32":
            model.cast(self._dtype)

    def _make_weights(self, model: LightningModule, batch: Any) -> None:
        """Initialize what is not, on this Trainer's devices, and let all processes have the same values."""
        params = model.collect_params()
        for p in params.values():
            if not p.is_initialized and not p.is_deferred:
                p.initialize(None, self.contexts, initializer.Xavier())
        if any(p.list_ctx() != self.contexts for p in params.values()):
            params.reset_ctx(self.contexts)
        if any(not p.is_initialized for p in params.values()):
            with autograd.pause():  # a pass that nobody sees tells the shapes
                part = self._parts(batch, self.contexts[:1])[0]
                self._results = LoggedMetrics(True)
                model.training_step(part, 0)
        sync_initial_weights(model)

    def _make_updates(self, model: LightningModule) -> GluonTrainer:
        chosen: Any = model.configure_optimizers()
        if isinstance(chosen, tuple) and len(chosen) == 2 and isinstance(chosen[0], list) and not chosen[1]:
            chosen = chosen[0]
        while isinstance(chosen, (list, tuple, dict)):
            if not isinstance(chosen, dict) and len(chosen) != 1:
                raise ArgumentError(
                    f"Trainer: configure_optimizers returned {len(chosen)} things; expected one optimizer, whose "
                    "lr_scheduler is an argument of it"
                )
            chosen = chosen.get("optimizer") if isinstance(chosen, dict) else chosen[0]
        if isinstance(chosen, str):
            chosen = optimizer.create(chosen)
        if not isinstance(chosen, optimizer.Optimizer):
            raise ArgumentTypeError(
                f"Trainer: configure_optimizers returned a {type(chosen).__name__}; expected an optimizer of "
                "mx.optimizer, or its name"
            )
        grads_seen = self.gradient_clip_val is not None or self._mixed == "float16"
        made = GluonTrainer(
            model.collect_params(),
            chosen,
            kvstore="collective" if self.world_size > 1 else "device",
            update_on_kvstore=False if grads_seen else None,
        )
        if self._mixed == "float16":
            amp.init_trainer(made)
        if self.accumulate_grad_batches > 1:
            for p in model.collect_params().values():
                if p.grad_req != "null":
                    p.grad_req = "add"
        return made

    def _train_epoch(self, model: LightningModule, train: Any, val: Any, seed: int) -> None:
        self._results = results = LoggedMetrics(True)
        self._tell("on_train_epoch_start", model)
        waiting = 0
        for number, batch in enumerate(self._limited("train", train, seed)):
            for one in self.callbacks:
                one.on_train_batch_start(self, model, batch, number)
            model.on_train_batch_start(batch, number)
            losses = self._backward(model, batch, number)
            waiting += bool(losses)
            if waiting == self.accumulate_grad_batches:
                self._step(model)
                waiting = 0
            for one in self.callbacks:
                one.on_train_batch_end(self, model, losses, batch, number)
            model.on_train_batch_end(losses, batch, number)
            if not waiting and self.global_step % self.log_every_n_steps == 0:
                self._report(results.step_values())
            if 0 <= self.max_steps <= self.global_step:
                break
        if waiting:
            self._step(model)
        numbers = results.step_values()
        if val is not None and (self.current_epoch + 1) % self.check_val_every_n_epoch == 0:
            self._results = checked = LoggedMetrics(False)
            self._evaluate(model, val, "val", model.validation_step, seed)
            numbers |= checked.epoch_means()
            results.shown += checked.shown
        # Hooks of the module may log numbers of the epoch.
        self._results = results
        model.on_train_epoch_end()
        numbers |= results.epoch_means()
        self._report({**numbers, "epoch": self.current_epoch})
        for one in self.callbacks:
            one.on_train_epoch_end(self, model)
        self.should_stop = any(parallel.all_gather_object(self.should_stop))
        for logger in self.loggers if self.is_global_zero else ():
            logger.save()
        if self._prints:
            there = self.callback_metrics
            shown = "".join(f" - {name}: {there[name]:.4g}" for name in results.shown if name in there)
            print(f"Epoch {self.current_epoch}: {self.global_step} steps{shown}", flush=True)

    def _backward(self, model: LightningModule, batch: Any, number: int) -> list[Any]:
        rows = rows_of(batch)
        used = self.contexts[:rows]
        losses, heads = [], []
        self._results.begin_batch()
        with autograd.record():
            for part in self._parts(batch, used):
                self._rows = rows_of(part)
                loss: Any = model.training_step(part, number)
                loss = loss.get("loss") if isinstance(loss, dict) else loss
                if loss is None and self.world_size == len(used) == 1:
                    return []
                if loss is None or not hasattr(loss, "backward") or loss.size != 1:
                    raise ArgumentError(
                        f"Trainer: training_step returned {_described(loss)}; expected the loss, an array with one "
                        "element, or a dict with it under 'loss'"
                    )
                losses.append(loss)
                heads.append(loss * (self._rows / rows / self.accumulate_grad_batches))
            if self._mixed == "float16":
                with amp.scale_loss(heads, self._updates) as scaled:
                    heads = list(scaled)
        rest(model.collect_params().values(), self.contexts[len(used) :])
        autograd.backward(heads)
        return losses

    def _step(self, model: LightningModule) -> None:
        updates = self._updates
        assert updates is not None
        if self.gradient_clip_val is None:
            updates.step(self.world_size)
        else:
            updates.allreduce_grads()
            if self._mixed == "float16":
                amp.unscale(updates)
            bound = self.gradient_clip_val * self.world_size  # of sums over processes
            for ctx in self.contexts:
                grads = [p.grad(ctx) for p in model.collect_params().values() if p.grad_req != "null"]
                if self.gradient_clip_algorithm == "norm":
                    clip_global_norm(grads, bound, check_isfinite=False)
                else:
                    for g in grads:
                        g[:] = g.clip(-bound, bound)
            updates.update(self.world_size)
        if self.accumulate_grad_batches > 1:
            model.collect_params().zero_grad()
        self.global_step += 1

    # -- data, logs, files

    @staticmethod
    def _data(what: str, kind: str, model: Any, given: Any, datamodule: Any) -> Any:
        if isinstance(given, LightningDataModule):
            given, datamodule = None, given
        if given is not None:
            return given
        if datamodule is None:
            return None
        if kind != "val" or what != "fit":  # once for the two loaders of fit
            if parallel.local_rank() == 0:
                datamodule.prepare_data()
            parallel.barrier()
            datamodule.setup(what)
        return getattr(datamodule, f"{kind}_dataloader")()

    def _parts(self, batch: Any, contexts: Sequence[Context]) -> list[Any]:
        return split_over_devices(batch, contexts, self._dtype)

    def _limited(self, kind: str, loader: Any, seed: int) -> Iterator[Any]:
        limit = self._limits[kind]
        if isinstance(limit, float) and limit < 1.0:
            if not hasattr(loader, "__len__"):
                raise ArgumentError(f"Trainer: limit_{kind}_batches={limit}: a share of a loader without length")
            limit = int(limit * len(loader) / self.world_size)
        share = (0, 1) if kind == "predict" else (self.global_rank, self.world_size)
        for number, batch in enumerate(batches_of(loader, *share, seed, kind == "train")):
            if isinstance(limit, int) and not isinstance(limit, bool) and number >= limit:
                return
            yield batch

    def _tell(self, moment: str, model: LightningModule, *args: Any) -> None:
        for one in self.callbacks:
            getattr(one, moment)(self, model, *args)
        getattr(model, moment)(*args)

    def _log(self, name: str, value: Any, shown: bool, on_step: Any, on_epoch: Any, rows: int | None) -> None:
        self._results.add(name, value, self._rows or 1 if rows is None else rows, shown, on_step, on_epoch)

    def _report(self, numbers: dict[str, float]) -> None:
        """Let the callbacks and the loggers know numbers."""
        self.callback_metrics.update({k: v for k, v in numbers.items() if k != "epoch"})
        for logger in self.loggers if self.is_global_zero else ():
            logger.log_metrics(numbers, self.global_step)

    def _folder(self, name: str) -> str:
        folder = self.logger.log_dir if isinstance(self.logger, CSVLogger) else self.default_root_dir
        return os.path.join(folder, name)

    def save_checkpoint(self, filepath: str) -> None:
        """Write parameters, states of the optimizer, epoch and step; all processes call it, the first one writes.

        Raises:
            MXNetError: nothing was trained.
        """
        if self._updates is None:
            raise MXNetError("Trainer.save_checkpoint: nothing was trained; call fit first")
        if self.is_global_zero:
            progress = {"epoch": self._epoch, "step": self.global_step}
            checkpoint.write(str(filepath), self._trained, self._updates, progress)

    def _remove(self, path: str) -> None:
        if self.is_global_zero and os.path.exists(path):
            os.remove(path)

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
        return self._evaluate_all(chosen, "validate", "val", dataloaders, datamodule, "validation_step", verbose)

    def test(
        self, model: LightningModule | None = None, dataloaders: Any = None, ckpt_path: str | None = None,
        verbose: bool = True, datamodule: Any = None,
    ) -> list[dict[str, float]]:  # fmt: skip
        """Call `test_step` for all batches; returns the means of what was logged; see `validate`."""
        chosen = self._chosen("test", model, ckpt_path)
        return self._evaluate_all(chosen, "test", "test", dataloaders, datamodule, "test_step", verbose)

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
            checkpoint.restore(model, checkpoint.read(ckpt_path))
        return model

    def _evaluate_all(
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
            if not p.is_initialized and not p.is_deferred:
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


def _described(value: Any) -> str:
    shape = getattr(value, "shape", None)
    return f"a {type(value).__name__}" + (f" of shape {shape}" if shape is not None else "")
