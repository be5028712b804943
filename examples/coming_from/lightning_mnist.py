"""Train a digit classifier as a script for Lightning does.

python examples/coming_from/lightning_mnist.py
dualmx-launch -n 2 -s 0 python examples/coming_from/lightning_mnist.py --devices 2 --strategy ddp
"""

import argparse
from pathlib import Path

import dualmx as mx
import dualmx.lightning as L

DIGITS = Path(__file__).parents[1] / "digits"


class Classifier(L.LightningModule):
    """Two dense layers."""

    def __init__(self, rate=0.05):
        super().__init__()
        self.rate = rate
        self.net = mx.gluon.nn.HybridSequential()
        self.net.add(mx.gluon.nn.Flatten(), mx.gluon.nn.Dense(128, activation="relu"), mx.gluon.nn.Dense(10))
        self.net.hybridize()
        self.loss_of = mx.gluon.loss.SoftmaxCrossEntropyLoss()

    def training_step(self, batch, batch_idx):
        """The mean loss."""
        x, y = batch
        loss = self.loss_of(self.net(x), y).mean()
        self.log("train_loss", loss, on_step=True, on_epoch=True, prog_bar=True)
        return loss

    def validation_step(self, batch, batch_idx):
        """Loss and share of right answers."""
        x, y = batch
        out = self.net(x)
        right = (out.argmax(axis=1).astype("float32") == y.astype("float32")).mean()
        self.log_dict({"val_loss": self.loss_of(out, y).mean(), "val_acc": right}, prog_bar=True)

    def configure_optimizers(self):
        """Momentum."""
        return mx.optimizer.SGD(learning_rate=self.rate, momentum=0.9)


class Digits(L.LightningDataModule):
    """The digits that come with the source."""

    def __init__(self, batch_size):
        self.batch_size = batch_size

    def _loader(self, train):
        data = mx.gluon.data.vision.MNIST(root=str(DIGITS), train=train)
        data = data.transform_first(mx.gluon.data.vision.transforms.ToTensor())
        return mx.gluon.data.DataLoader(data, batch_size=self.batch_size, shuffle=train)

    def train_dataloader(self):
        """The training set, shuffled."""
        return self._loader(True)

    def val_dataloader(self):
        """The test set."""
        return self._loader(False)


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--devices", type=int, default=1)
parser.add_argument("--num-nodes", type=int, default=1)
parser.add_argument("--strategy", default="auto")
parser.add_argument("--precision", default="32-true")
parser.add_argument("--accumulate", type=int, default=1)
parser.add_argument("--root", default=".", help="folder of logs and checkpoints")
args = parser.parse_args()

checkpoint = L.ModelCheckpoint(monitor="val_acc", mode="max", filename="{epoch}-{val_acc:.3f}")
trainer = L.Trainer(
    max_epochs=args.epochs,
    devices=args.devices,
    num_nodes=args.num_nodes,
    strategy=args.strategy,
    precision=args.precision,
    accumulate_grad_batches=args.accumulate,
    gradient_clip_val=5.0,
    callbacks=[L.EarlyStopping("val_loss", patience=2), checkpoint],
    default_root_dir=args.root,
)
trainer.fit(Classifier(), datamodule=Digits(batch_size=32))
if trainer.is_global_zero:
    best = Classifier.load_from_checkpoint(checkpoint.best_model_path)
    print(f"best: {checkpoint.best_model_path}, {checkpoint.best_model_score:.4f} right", flush=True)
