"""Lightning's API: a `LightningModule` defines the steps, a `Trainer` runs them.

Example:
    >>> import dualmx as mx
    >>> import dualmx.lightning as L
    >>> class Line(L.LightningModule):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.layer = mx.gluon.nn.Dense(1)
    ...     def training_step(self, batch, batch_idx):
    ...         x, y = batch
    ...         loss = ((self.layer(x) - y) ** 2).mean()
    ...         self.log("train_loss", loss, on_epoch=True)
    ...         return loss
    ...     def configure_optimizers(self):
    ...         return mx.optimizer.SGD(learning_rate=0.1)
    >>> data = mx.gluon.data.ArrayDataset(mx.nd.ones((8, 3)), mx.nd.ones((8, 1)))
    >>> trainer = L.Trainer(max_epochs=2, logger=False, enable_checkpointing=False, enable_progress_bar=False)
    >>> trainer.fit(Line(), mx.gluon.data.DataLoader(data, batch_size=4))
    >>> trainer.global_step
    4
"""

from .callbacks import Callback, EarlyStopping, LearningRateMonitor, ModelCheckpoint
from .loggers import CSVLogger, Logger
from .module import LightningDataModule, LightningModule, seed_everything
from .trainer import Trainer

__all__ = [
    "CSVLogger", "Callback", "EarlyStopping", "LearningRateMonitor", "LightningDataModule", "LightningModule", "Logger",
    "ModelCheckpoint", "Trainer", "seed_everything",
]  # fmt: skip
