"""Train a classifier of digits with Lightning and Opacus."""

import argparse
import warnings

import pytorch_lightning as pl
import torch
import torch.nn.functional as F
from opacus import PrivacyEngine
from opacus.data_loader import DPDataLoader
from opacus.lightning import DPLightningDataModule
from sklearn.datasets import load_digits
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset, random_split

warnings.filterwarnings("ignore")


class DigitsDataModule(pl.LightningDataModule):
    def __init__(self, batch_size):
        super().__init__()
        self.batch_size = batch_size

    def setup(self, stage=None):
        x, y = load_digits(return_X_y=True)
        data = TensorDataset(torch.tensor(x / 16, dtype=torch.float32), torch.tensor(y))
        lengths = [1400, len(data) - 1400]
        self.train_set, self.test_set = random_split(data, lengths, generator=torch.Generator().manual_seed(0))

    def train_dataloader(self):
        return DataLoader(self.train_set, batch_size=self.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.test_set, batch_size=200)


class LitClassifier(pl.LightningModule):
    def __init__(self, lr, enable_dp, delta, noise_multiplier, max_grad_norm):
        super().__init__()
        self.lr, self.enable_dp, self.delta = lr, enable_dp, delta
        self.noise_multiplier, self.max_grad_norm = noise_multiplier, max_grad_norm
        self.layer1 = nn.Linear(64, 32)
        self.layer2 = nn.Linear(32, 10)
        if enable_dp:
            self.privacy_engine = PrivacyEngine()

    def forward(self, x):
        h = self.layer1(x)
        return self.layer2(F.relu(h))

    def training_step(self, batch, batch_idx):
        data, target = batch
        loss = F.cross_entropy(self(data), target)
        self.log("train_loss", loss, on_step=True, on_epoch=True, prog_bar=True)
        return loss

    def validation_step(self, batch, batch_idx):
        data, target = batch
        output = self(data)
        self.log("val_loss", F.cross_entropy(output, target), on_epoch=True)
        self.log("val_accuracy", (output.argmax(dim=1) == target).float().mean(), on_epoch=True)

    def configure_optimizers(self):
        optimizer = optim.SGD(self.parameters(), lr=self.lr, momentum=0)
        if self.enable_dp:
            self.trainer.fit_loop.setup_data()
            data_loader = self.trainer.train_dataloader
            if hasattr(self, "dp"):
                self.dp["model"].remove_hooks()
            # the data module has replaced the loader: here it stays as it is
            dp_model, optimizer, _ = self.privacy_engine.make_private(
                module=self,
                optimizer=optimizer,
                data_loader=data_loader,
                noise_multiplier=self.noise_multiplier,
                max_grad_norm=self.max_grad_norm,
                poisson_sampling=isinstance(data_loader, DPDataLoader),
            )
            self.dp = {"model": dp_model}
        return optimizer

    def on_train_epoch_end(self):
        if self.enable_dp:
            epsilon = self.privacy_engine.get_epsilon(self.delta)
            self.log("epsilon", epsilon, on_epoch=True, prog_bar=True)
            print(f"Finished epoch {self.current_epoch} with ε = {epsilon:.2f}, δ = {self.delta}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=50)
    parser.add_argument("--lr", type=float, default=0.5)
    parser.add_argument("--disable-dp", action="store_true")
    args = parser.parse_args()

    enable_dp = not args.disable_dp
    data = DigitsDataModule(args.batch_size)
    if enable_dp:
        data = DPLightningDataModule(data)
    model = LitClassifier(args.lr, enable_dp, delta=1e-5, noise_multiplier=1.2, max_grad_norm=1.0)
    trainer = pl.Trainer(max_epochs=args.epochs, accelerator="cpu", enable_model_summary=False)
    trainer.fit(model, data)


if __name__ == "__main__":
    main()
