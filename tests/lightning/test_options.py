"""Lightning's hyperparameters, options, hooks and files, in one process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualmx as mx
import dualmx.lightning as L
from tests.lightning.test_training import Line, loader, quiet


class Tuned(Line):
    def __init__(self, rate: float = 0.1, sizes: Any = (1,), where: Any = None, **more: Any) -> None:
        super().__init__(rate)
        self.save_hyperparameters(ignore="where")

    def predict_step(self, batch: Any, batch_idx: int) -> Any:
        return self(batch[0])


def test_hyperparameters_travel_with_checkpoints(tmp_path: Path) -> None:
    model = Tuned(0.25, sizes=[3, 4], where=object(), note="x")
    assert dict(model.hparams) == {"rate": 0.25, "sizes": [3, 4], "note": "x"} and model.hparams.rate == 0.25
    with pytest.raises(AttributeError, match="there are rate, sizes, note"):
        model.hparams.missing  # noqa: B018
    trainer = quiet(max_epochs=1)
    trainer.fit(model, loader(8))
    trainer.save_checkpoint(str(tmp_path / "a.ckpt"))
    again = Tuned.load_from_checkpoint(str(tmp_path / "a.ckpt"), note="y")
    assert again.rate == 0.25 and again.hparams.note == "y" and again.hparams.sizes == [3, 4]
    assert np.array_equal(again.layer.weight.data().asnumpy(), model.layer.weight.data().asnumpy())

    class Some(Line):
        def __init__(self, rate: float = 0.1, other: int = 2) -> None:
            super().__init__(rate)
            self.save_hyperparameters("other", *([] if other else ["none"]))

    assert dict(Some().hparams) == {"other": 2}
    with pytest.raises(ValueError, match="'none': expected one of rate, other"):
        Some(other=0)


def test_the_module_of_before_and_the_best_checkpoint(tmp_path: Path) -> None:
    kept = L.ModelCheckpoint(tmp_path, monitor="val_loss", save_last=True)
    trainer = quiet(max_epochs=3, callbacks=[kept, L.LearningRateMonitor()], enable_checkpointing=True)
    model = Tuned(0.2)
    trainer.fit(model, loader(8), loader(8))
    assert trainer.callback_metrics["lr-Adam"] == pytest.approx(0.2)
    last = trainer.validate(dataloaders=loader(8), verbose=False)[0]["val_loss"]
    model.layer.weight.data()[:] = 0
    assert trainer.validate(dataloaders=loader(8))[0]["val_loss"] != pytest.approx(last)
    found = trainer.test(dataloaders=loader(8), ckpt_path="best")[0]["val_loss"]
    assert found == pytest.approx(kept.best_model_score, rel=1e-5)
    assert trainer.test(dataloaders=loader(8), ckpt_path="last")[0]["val_loss"] == pytest.approx(last, rel=1e-5)
    assert len(quiet(limit_predict_batches=2).predict(model, loader(8))) == 2
    with pytest.raises(ValueError, match="nothing was trained"):
        quiet().test(dataloaders=loader(8))
    with pytest.raises(ValueError, match="no ModelCheckpoint has saved one"):
        quiet().test(model, loader(8), ckpt_path="best")


@pytest.mark.usefixtures("one_tier")
def test_hooks_and_options() -> None:
    seen: list[str] = []

    class Told(Line):
        def setup(self, stage: str) -> None:
            seen.append(f"setup {stage}")

        def teardown(self, stage: str) -> None:
            seen.append(f"teardown {stage}")

        def configure_callbacks(self) -> Any:
            return L.EarlyStopping("val_loss", min_delta=1e9, patience=1)

        def on_train_batch_end(self, outputs: Any, batch: Any, batch_idx: int) -> None:
            seen.append(f"batch {batch_idx} {len(outputs)}")

        def training_step(self, batch: Any, batch_idx: int) -> Any:
            return None if batch_idx == 1 else super().training_step(batch, batch_idx)

        def validation_step(self, batch: Any, batch_idx: int) -> None:
            seen.append("sanity" if self.trainer.sanity_checking else "validation")
            super().validation_step(batch, batch_idx)

        def on_test_epoch_end(self) -> None:
            seen.append("tested")

        def configure_optimizers(self) -> Any:
            return [mx.optimizer.SGD(learning_rate=0.1)], []

    class Data(L.LightningDataModule):
        def prepare_data(self) -> None:
            seen.append("prepared")

        def setup(self, stage: str) -> None:
            seen.append(f"data {stage}")

        def train_dataloader(self) -> Any:
            return loader(12)

        def val_dataloader(self) -> Any:
            return loader(24)

        test_dataloader = val_dataloader

    trainer = quiet(max_epochs=9, min_epochs=4, num_sanity_val_steps=1, deterministic=True)
    trainer.fit(Told(), datamodule=Data())
    trainer.test(datamodule=Data())
    assert trainer.current_epoch == 4 and trainer.global_step == 4  # one batch of two has no loss
    assert seen[:6] == ["prepared", "data fit", "setup fit", "sanity", "batch 0 1", "batch 1 0"]
    assert seen.count("prepared") == 2
    assert seen[-5:] == ["prepared", "data test", "setup test", "tested", "teardown test"]
    assert seen.count("teardown fit") == 1 and seen.count("sanity") == 1
    model = trainer.lightning_module
    assert model is not None
    model.freeze()
    assert all(p.grad_req == "null" for p in model.collect_params().values())
    model.unfreeze()
    assert all(p.grad_req == "write" for p in model.collect_params().values())
    assert L.seed_everything(3) == 3
    a = mx.nd.random.normal(shape=(2,)).asnumpy()
    L.seed_everything(3)
    assert np.array_equal(a, mx.nd.random.normal(shape=(2,)).asnumpy())
