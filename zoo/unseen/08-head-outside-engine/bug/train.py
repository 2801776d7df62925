"""Private feature extractor with a classification head, on the digits (Opacus)."""

import torch
from opacus import PrivacyEngine
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

BATCH_SIZE = 84


def load_data():
    images, labels = load_digits(return_X_y=True)
    return TensorDataset(torch.tensor(images / 16, dtype=torch.float32), torch.tensor(labels))


def build_model():
    body = nn.Sequential(nn.Linear(64, 24), nn.ReLU())
    return nn.Sequential(body, nn.Linear(24, 10))


def fit_private(model, data, noise_multiplier, epochs, watch=None):
    body, head = model
    body, optimizer, loader = PrivacyEngine().make_private(
        module=body,
        optimizer=torch.optim.SGD(body.parameters(), lr=0.5),
        data_loader=DataLoader(data, batch_size=BATCH_SIZE),
        noise_multiplier=noise_multiplier,
        max_grad_norm=1.2,
    )
    head_optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    model = nn.Sequential(body, head)
    if watch is not None:  # shows every step to an adversary who sees more than losses
        optimizer.attach_step_hook(watch)
    for _ in range(epochs):
        for images, labels in loader:
            optimizer.zero_grad()
            head_optimizer.zero_grad()
            nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
            head_optimizer.step()
    return model


@torch.no_grad()
def example_losses(model, data):
    inputs, labels = next(iter(DataLoader(data, batch_size=len(data))))
    return nn.functional.cross_entropy(model.eval()(inputs), labels, reduction="none")
