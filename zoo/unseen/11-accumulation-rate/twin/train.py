"""Logistic regression on a synthetic table with Opacus and gradient accumulation (the GPU is small)."""

import torch
from opacus import PrivacyEngine
from opacus.utils.batch_memory_manager import BatchMemoryManager
from sklearn.datasets import make_classification
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

BATCH_SIZE = 40  # what fits
ACCUMULATION = 4  # so many times as large is the batch of an optimiser step


def load_data():
    x, y = make_classification(1800, 20, n_informative=8, n_classes=3, class_sep=1.5, random_state=11)
    return TensorDataset(torch.tensor(x / 3, dtype=torch.float32), torch.tensor(y))


def build_model():
    return nn.Sequential(nn.Linear(20, 3))


def fit_private(model, data, noise_multiplier, epochs, watch=None):
    model, optimizer, loader = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=1.0),
        data_loader=DataLoader(data, batch_size=ACCUMULATION * BATCH_SIZE),
        noise_multiplier=noise_multiplier,
        max_grad_norm=1.0,
    )
    if watch is not None:  # shows every step to an adversary who sees more than losses
        optimizer.attach_step_hook(watch)
    for _ in range(epochs):
        with BatchMemoryManager(data_loader=loader, max_physical_batch_size=BATCH_SIZE, optimizer=optimizer) as batches:
            for inputs, labels in batches:
                nn.functional.cross_entropy(model(inputs), labels).backward()
                optimizer.step()
                optimizer.zero_grad()
    return model


@torch.no_grad()
def example_losses(model, data):
    inputs, labels = next(iter(DataLoader(data, batch_size=len(data))))
    return nn.functional.cross_entropy(model.eval()(inputs), labels, reduction="none")
