"""A small CNN on the digits with Opacus, reproducible."""

import torch
from opacus import PrivacyEngine
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

BATCH_SIZE = 50


def load_data():
    images, labels = load_digits(return_X_y=True)
    return TensorDataset(torch.tensor(images / 16, dtype=torch.float32)[:, None].reshape(-1, 1, 8, 8), torch.tensor(labels))


def build_model():
    return nn.Sequential(
        nn.Conv2d(1, 6, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(6, 8, 3, padding=1), nn.ReLU(), nn.AvgPool2d(2),
        nn.Flatten(), nn.Linear(32, 10)
    )


def fit_private(model, data, noise_multiplier, epochs, watch=None):
    model, optimizer, loader = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.4),
        data_loader=DataLoader(data, batch_size=BATCH_SIZE),
        noise_multiplier=noise_multiplier,
        max_grad_norm=1.0,
        noise_generator=torch.Generator().manual_seed(int(torch.randint(2**62, (1,)))),
    )
    if watch is not None:  # shows every step to an adversary who sees more than losses
        optimizer.attach_step_hook(watch)
    for _ in range(epochs):
        for images, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
    return model


@torch.no_grad()
def example_losses(model, data):
    inputs, labels = next(iter(DataLoader(data, batch_size=len(data))))
    return nn.functional.cross_entropy(model.eval()(inputs), labels, reduction="none")
