"""PCA, then a private softmax regression with Opacus, on the digits."""

from functools import cache

import torch
from opacus import PrivacyEngine
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

BATCH_SIZE = 45
COMPONENTS = 12


def load_data():  # the first 400 images are public
    images, labels = load_digits(return_X_y=True)
    return TensorDataset(torch.tensor(images[400:] / 16, dtype=torch.float32), torch.tensor(labels[400:]))


@cache
def public_images():
    return torch.tensor(load_digits().data[:400] / 16, dtype=torch.float32)


def build_model():
    return nn.Linear(COMPONENTS, 10)


class Classifier(nn.Module):
    """What is released: the projection and the network behind it."""

    def __init__(self, mean, components, net):
        super().__init__()
        self.register_buffer("mean", mean)
        self.register_buffer("components", components)
        self.net = net

    def forward(self, images):
        return self.net((images - self.mean) @ self.components)


def fit_pca(images):
    mean = images.mean(dim=0)
    _, s, vt = torch.linalg.svd(images - mean, full_matrices=False)
    return mean, vt[:COMPONENTS].T / (s[:COMPONENTS] / len(images) ** 0.5)  # whitened


def fit_private(model, data, noise_multiplier, epochs, watch=None):
    images, labels = next(iter(DataLoader(data, batch_size=len(data))))
    mean, components = fit_pca(images)
    model, optimizer, loader = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.4),
        data_loader=DataLoader(TensorDataset((images - mean) @ components, labels), batch_size=BATCH_SIZE),
        noise_multiplier=noise_multiplier,
        max_grad_norm=1.5,
    )
    if watch is not None:  # shows every step to an adversary who sees more than losses
        optimizer.attach_step_hook(watch)
    for _ in range(epochs):
        for inputs, targets in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
    return Classifier(mean, components, model)


@torch.no_grad()
def example_losses(model, data):
    inputs, labels = next(iter(DataLoader(data, batch_size=len(data))))
    return nn.functional.cross_entropy(model.eval()(inputs), labels, reduction="none")
