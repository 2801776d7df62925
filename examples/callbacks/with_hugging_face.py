"""A private training with the Trainer of Hugging Face and Opacus, and the one line that shows it to epsgauge.

epsgauge probe examples/callbacks/with_hugging_face.toml
"""

import tempfile
import warnings
from dataclasses import dataclass

import torch
from opacus import PrivacyEngine
from sklearn.datasets import load_digits
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset
from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments

import epsgauge as eg
from epsgauge.integrations.hugging_face import WatchCallback

warnings.filterwarnings("ignore", module="opacus|torch|transformers|accelerate")
BATCH_SIZE = 50


def data():
    x, y = load_digits(return_X_y=True)
    return (x / 16).astype("float32"), y


class Clears(TrainerCallback):
    """The Trainer clears the model's gradients, and Opacus wants the optimizer's to be cleared."""

    def on_optimizer_step(self, args, state, control, optimizer=None, **_):
        optimizer.zero_grad()


class PrivateTrainer(Trainer):
    """Trains with Opacus' batches, which are drawn at random, and its loss is that of a batch of (x, y)."""

    def get_train_dataloader(self):
        return self.private_loader

    def compute_loss(self, model, inputs, return_outputs=False, **_):
        x, y = inputs
        outputs = model(x)
        loss = cross_entropy(outputs, y)
        return (loss, outputs) if return_outputs else loss


@dataclass(frozen=True)
class MyTrainer:
    noise_multiplier: float = 2.0
    epochs: int = 2

    def train(self, data, *, seed, watch=None):
        x, y = (torch.as_tensor(part) for part in data)
        points, plain = TensorDataset(x, y), torch.nn.Linear(64, 10)
        model, optimizer, loader = PrivacyEngine().make_private(
            module=plain,
            optimizer=torch.optim.SGD(plain.parameters(), lr=0.5),
            data_loader=DataLoader(points, batch_size=BATCH_SIZE),
            noise_multiplier=self.noise_multiplier,
            max_grad_norm=1.0,
        )
        with tempfile.TemporaryDirectory() as folder:
            trainer = PrivateTrainer(
                model=model,
                args=TrainingArguments(
                    output_dir=folder,
                    num_train_epochs=self.epochs,
                    max_grad_norm=0.0,  # Opacus clips
                    save_strategy="no",
                    logging_strategy="no",
                    report_to="none",
                    disable_tqdm=True,
                    use_cpu=True,
                    seed=seed % 2**32,
                ),
                train_dataset=points,
                optimizers=(optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0)),
                callbacks=[Clears(), WatchCallback(watch)],  # the last is the one line
            )
            trainer.remove_callback(PrinterCallback)
            trainer.private_loader = loader
            trainer.train()
        return plain

    def losses(self, model, points):
        x, y = (torch.as_tensor(part) for part in points)
        with torch.no_grad():
            return cross_entropy(model(x), y, reduction="none").numpy()

    def privacy(self, n):
        steps = -(-n // BATCH_SIZE)
        return eg.DPSGD(sample_rate=1 / steps, noise_multiplier=self.noise_multiplier, steps=self.epochs * steps)
