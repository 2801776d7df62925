"""A private training with Lightning and Opacus, and the one line that shows it to epsgauge.

epsgauge probe examples/callbacks/with_lightning.toml
"""

import logging
import warnings
from dataclasses import dataclass

import lightning.pytorch as pl
import torch
from opacus import PrivacyEngine
from sklearn.datasets import load_digits
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

import epsgauge as eg
from epsgauge.integrations.lightning import WatchCallback

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore", module="opacus|torch|lightning")
BATCH_SIZE = 50


def data():
    x, y = load_digits(return_X_y=True)
    return (x / 16).astype("float32"), y


class Classifier(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(64, 10)

    def training_step(self, batch, index):
        x, y = batch
        return cross_entropy(self.net(x), y)


class Private(pl.LightningModule):
    """The classifier with Opacus' model, optimizer and batches in it."""

    def __init__(self, plain, loader, noise_multiplier):
        super().__init__()
        self.plain, self.engine = plain, PrivacyEngine()
        self.net, self.optimizer, self.loader = self.engine.make_private(
            module=plain.net,
            optimizer=torch.optim.SGD(plain.net.parameters(), lr=0.5),
            data_loader=loader,
            noise_multiplier=noise_multiplier,
            max_grad_norm=1.0,
        )

    def training_step(self, batch, index):
        x, y = batch
        return cross_entropy(self.net(x), y)

    def configure_optimizers(self):
        return self.optimizer

    def train_dataloader(self):
        return self.loader


@dataclass(frozen=True)
class MyTrainer:
    noise_multiplier: float = 2.0
    epochs: int = 2

    def train(self, data, *, seed, watch=None):
        x, y = (torch.as_tensor(part) for part in data)
        model = Private(Classifier(), DataLoader(TensorDataset(x, y), batch_size=BATCH_SIZE), self.noise_multiplier)
        quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
        pl.Trainer(
            max_epochs=self.epochs,
            accelerator="cpu",
            callbacks=[WatchCallback(watch)],  # the one line
            enable_model_summary=False,
            **quiet,
        ).fit(model)
        return model.plain.net

    def losses(self, model, points):
        x, y = (torch.as_tensor(part) for part in points)
        with torch.no_grad():
            return cross_entropy(model(x), y, reduction="none").numpy()

    def privacy(self, n):
        steps = -(-n // BATCH_SIZE)
        return eg.DPSGD(sample_rate=1 / steps, noise_multiplier=self.noise_multiplier, steps=self.epochs * steps)
