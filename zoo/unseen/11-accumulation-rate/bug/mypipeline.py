"""What epsgauge needs to know of train.py: how to train on some data, and the loss of each of some points."""

from dataclasses import dataclass

import train

import epsgauge as eg

data = train.load_data


@dataclass(frozen=True)
class MyTrainer:
    noise_multiplier: float = 1.0  # 0 for the control
    epochs: int = 10

    def train(self, data, *, seed, watch=None):  # torch, NumPy and random are already seeded
        return train.fit_private(train.build_model(), data, self.noise_multiplier, self.epochs, watch)

    def losses(self, model, points):  # one float per point
        return train.example_losses(model, points)

    def privacy(self, n):
        batches = -(-n // train.BATCH_SIZE)  # Opacus samples each point with probability 1 / (batches in an epoch)
        steps = self.epochs * (batches // train.ACCUMULATION)
        return eg.DPSGD(sample_rate=1 / batches, noise_multiplier=self.noise_multiplier, steps=steps)
