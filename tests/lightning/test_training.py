"""Training in the words of Lightning: on one device or several, in one process or two, with equal results."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualmx as mx
import dualmx.lightning as L
from tests import jobs

RNG = np.random.RandomState(0)
X = RNG.randn(24, 4)
Y = X[:, :1] * 2 - 1


class Line(L.LightningModule):
    def __init__(self, rate: float = 0.1) -> None:
        super().__init__()
        self.rate = rate
        self.seen: list[Any] = []
        self.layer = mx.gluon.nn.Dense(1)

    def forward(self, x: Any) -> Any:
        return self.layer(x)

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        x, y = batch
        loss = ((self(x) - y) ** 2).mean()
        self.log("loss", loss, on_epoch=True, prog_bar=True)
        return {"loss": loss}

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        x, y = batch
        self.log_dict({"val_loss": ((self.layer(x) - y) ** 2).mean(), "one": 1})

    test_step = validation_step

    def on_train_epoch_end(self) -> None:
        self.seen.append((self.current_epoch, self.global_step, self.global_rank, str(self.device)))

    def configure_optimizers(self) -> Any:
        return {"optimizer": mx.optimizer.Adam(self.rate)}


def loader(batch_size: int, rows: int = 24) -> mx.gluon.data.DataLoader:
    data = mx.gluon.data.ArrayDataset(X[:rows].astype("float32"), Y[:rows].astype("float32"))
    return mx.gluon.data.DataLoader(data, batch_size)


def quiet(**kwargs: Any) -> L.Trainer:
    return L.Trainer(**{"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, **kwargs})


def weights(model: L.LightningModule) -> list[np.ndarray]:
    return [p.list_data()[0].asnumpy() for p in model.collect_params().values()]


def trained(batch_size: int = 8, epochs: int = 2, **kwargs: Any) -> tuple[Line, L.Trainer]:
    mx.random.seed(3)
    model = Line()
    trainer = quiet(max_epochs=epochs, precision="64-true", **kwargs)
    trainer.fit(model, loader(batch_size), loader(8))
    return model, trainer


def test_fit_is_the_loop_that_one_would_write() -> None:
    model, trainer = trained()
    mx.random.seed(3)
    net = mx.gluon.nn.Dense(1, in_units=4)
    net.cast("float64")
    net.initialize(mx.init.Xavier())
    steps = mx.gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.1})
    for _ in range(2):
        for i in range(0, 24, 8):
            x, y = (mx.nd.array(a[i : i + 8].astype("float32"), dtype="float64") for a in (X, Y))
            with mx.autograd.record():
                loss = ((net(x) - y) ** 2).mean()
            loss.backward()
            steps.step(1)
    for a, b in zip(weights(model), [p.data().asnumpy() for p in net.collect_params().values()], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)
    assert trainer.global_step == 6 and model.seen == [(0, 3, 0, "cpu(0)"), (1, 6, 0, "cpu(0)")]
    assert set(trainer.callback_metrics) == {"loss", "loss_step", "loss_epoch", "val_loss", "one"}
    assert trainer.callback_metrics["one"] == 1 and model.trainer is None
    found = trainer.test(model, loader(5))[0]
    out = weights(model)[0] @ X.T + weights(model)[1][:, None]
    assert found["val_loss"] == pytest.approx(np.mean((out.T - Y) ** 2), rel=1e-5)
    assert len(trainer.predict(model, loader(8))) == 3


def test_accumulated_batches_are_one() -> None:
    for a, b in zip(weights(trained(12)[0]), weights(trained(4, accumulate_grad_batches=3)[0]), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-14)


def test_epochs_without_an_end_stop_at_the_last_step() -> None:
    for options in ({"max_epochs": -1}, {}):
        trainer = quiet(max_steps=5, **options)
        trainer.fit(Line(), loader(24))
        assert trainer.global_step == 5


def test_gradients_are_clipped() -> None:
    class Plain(Line):
        def configure_optimizers(self) -> Any:
            return mx.optimizer.SGD(learning_rate=1.0)

    moved = []
    for how, bound in (("norm", 0.25), ("value", 0.125)):
        model = Plain()
        model.layer.initialize()
        model.layer(mx.nd.ones((1, 4)))
        before = weights(model)
        quiet(max_steps=1, gradient_clip_val=bound, gradient_clip_algorithm=how).fit(model, loader(24))
        moved.append(np.concatenate([(a - b).ravel() for a, b in zip(weights(model), before, strict=True)]))
    assert np.linalg.norm(moved[0]) == pytest.approx(0.25, rel=1e-4)
    assert np.abs(moved[1]).max() == pytest.approx(0.125, rel=1e-4)


def test_checkpoints_logs_and_early_stopping(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keep = L.ModelCheckpoint(monitor="val_loss", save_top_k=2, save_last=True, filename="{epoch}-{val_loss:.2f}")
    stop = L.EarlyStopping("one", patience=3)
    trainer = L.Trainer(max_epochs=9, callbacks=[keep, stop], default_root_dir=tmp_path, log_every_n_steps=2)
    first = Line()
    trainer.fit(first, loader(8), loader(8))
    assert trainer.current_epoch == 4 and stop.stopped_epoch == 3
    assert "Epoch 3: 12 steps - loss:" in capsys.readouterr().out
    folder = tmp_path / "lightning_logs" / "version_0"
    names = sorted(os.listdir(folder / "checkpoints"))
    assert len(names) == 3 and names[2] == "last.ckpt" and re.fullmatch(r"epoch=2-val_loss=\d\.\d\d\.ckpt", names[0])
    assert keep.best_model_path.endswith(names[1])
    header, *rows = (folder / "metrics.csv").read_text().splitlines()
    assert header.split(",")[:2] == ["loss_step", "step"] and len(rows) == 4 + 6

    again = Line.load_from_checkpoint(str(folder / "checkpoints" / "last.ckpt"), rate=0.5)
    assert all(np.array_equal(a, b) for a, b in zip(weights(again), weights(first), strict=True))
    # Going on from a checkpoint is as going on.
    quiet(max_epochs=6).fit(again, loader(8), ckpt_path=str(folder / "checkpoints" / "last.ckpt"))
    assert [seen[:2] for seen in again.seen] == [(4, 15), (5, 18)]
    longer, whole = Line(), quiet(max_epochs=6)
    longer.layer.initialize()
    longer.layer(mx.nd.ones((1, 4)))
    start = weights(longer)
    whole.fit(longer, loader(8))
    part = Line()
    part.layer.initialize()
    part.layer(mx.nd.ones((1, 4)))
    for p, value in zip(part.collect_params().values(), start, strict=True):
        p.set_data(mx.nd.array(value))
    half = quiet(max_epochs=2)
    half.fit(part, loader(8))
    half.save_checkpoint(str(tmp_path / "half.ckpt"))
    other = Line()
    quiet(max_epochs=6).fit(other, loader(8), ckpt_path=str(tmp_path / "half.ckpt"))
    for a, b in zip(weights(other), weights(longer), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    with pytest.raises(mx.base.MXNetError, match="not a checkpoint"):
        mx.nd.save(str(tmp_path / "x"), {"a": mx.nd.ones((1,))})
        Line.load_from_checkpoint(str(tmp_path / "x"))


def test_misuse_is_told() -> None:
    for wanted, said in (
        ({"strategy": "ddpp"}, "strategy='ddpp': expected one of auto, ddp, dp"),
        ({"accelerator": "gpus"}, "accelerator='gpus'"),
        ({"accelerator": "gpu", "devices": 1}, "there is no such device; this process has"),
        ({"devices": 0}, "devices=0"),
        ({"precision": "8-true"}, "precision='8-true': expected one of 32-true"),
        ({"num_nodes": 0}, "num_nodes=0"),
        ({"accumulate_grad_batches": 0}, "accumulate_grad_batches=0"),
        ({"gradient_clip_algorithm": "l2"}, "expected 'norm' or 'value'"),
    ):
        with pytest.raises(ValueError, match=said):
            quiet(**wanted)
    with pytest.raises(mx.base.MXNetError, match=r"expected 4 processes.*there are 1; start .* dualmx-launch -n 4"):
        quiet(num_nodes=2, devices=2)
    with pytest.raises(mx.base.MXNetError, match="there is no Trainer"):
        Line().log("x", 1)
    with pytest.raises(TypeError, match="expected a LightningModule"):
        quiet(max_epochs=1).fit(mx.gluon.nn.Dense(1), loader(8))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no data for training"):
        quiet(max_epochs=1).fit(Line())

    class Wrong(Line):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            return self.layer(batch[0])

    with pytest.raises(ValueError, match=r"returned a NDArray of shape \(8, 1\); expected the loss"):
        quiet(max_epochs=1).fit(Wrong(), loader(8))

    class Two(Line):
        def configure_optimizers(self) -> Any:
            return ["sgd"], ["plateau"]

    with pytest.raises(ValueError, match="returned 2 things; expected one optimizer"):
        quiet(max_epochs=1).fit(Two(), loader(8))
    with pytest.raises(ValueError, match="monitor='acc' was not logged; there are loss"):
        quiet(max_epochs=1, callbacks=L.EarlyStopping("acc")).fit(Line(), loader(8))


def test_on_several_contexts_and_a_data_module() -> None:
    class Data(L.LightningDataModule):
        def train_dataloader(self) -> Any:
            return [(X[:7], Y[:7]), {"x": X[7:9], "y": Y[7:9]}]

    class ByName(Line):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            return super().training_step(tuple(batch.values()) if isinstance(batch, dict) else batch, batch_idx)

    found = []
    for count in (1, 3):
        mx.random.seed(3)
        model = ByName()
        trainer = quiet(max_epochs=2, precision="64-true")
        trainer.contexts = [mx.cpu(i) for i in range(count)]
        trainer.fit(model, datamodule=Data())
        found.append((weights(model), trainer.callback_metrics["loss_epoch"]))
    for a, b in zip(found[0][0], found[1][0], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-14)
    assert found[0][1] == pytest.approx(found[1][1], rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["32-true", "16-mixed"])
def test_example_in_two_processes(tmp_path: Path, precision: str) -> None:
    script = ["examples/coming_from/lightning_mnist.py", "--epochs", 2, "--root", tmp_path]
    options = ["--devices", 2, "--strategy", "ddp", "--precision", precision]
    done = jobs.run(*jobs.launcher(2), jobs.PYTHON, *script, *options)
    right = re.findall(r"([\d.]+) right", done.stdout)
    assert len(right) == 1 and float(right[0]) > 0.85 and done.stdout.count("Epoch 1") == 1
