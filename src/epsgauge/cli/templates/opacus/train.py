"""Your own training code. This is a small example with Opacus, to be replaced."""

import torch
from opacus import PrivacyEngine
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

BATCH_SIZE = 100


def load_data():
    images, labels = load_digits(return_X_y=True)
    return TensorDataset(torch.tensor(images / 16, dtype=torch.float32), torch.tensor(labels))


def build_model():
    return nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 10))


def fit_private(model, data, noise_multiplier, epochs, watch=None):
    model, optimizer, loader = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.5),
        data_loader=DataLoader(data, batch_size=BATCH_SIZE),
        noise_multiplier=noise_multiplier,
        max_grad_norm=1.0,
    )
    if watch is not None:  # shows every step to the adversary and to the probe
        optimizer.attach_step_hook(watch.of(model))
    for _ in range(epochs):
        for images, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
    return model


@torch.no_grad()
def example_losses(model, data):
    images, labels = next(iter(DataLoader(data, batch_size=len(data))))
    return nn.functional.cross_entropy(model.eval()(images), labels, reduction="none")
