"""An MLP on the breast cancer data with Opacus."""

import numpy as np
import torch
from opacus import PrivacyEngine
from sklearn.datasets import load_breast_cancer
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

BATCH_SIZE = 30

# rounded published means and standard deviations of the features (UCI WDBC)
CENTRE = np.array([14, 19, 92, 650, 0.1, 0.1, 0.09, 0.05, 0.18, 0.06, 0.4, 1.2, 2.9, 40, 0.007, 0.025, 0.03, 0.012, 0.02, 0.004,
                   16, 26, 107, 880, 0.13, 0.25, 0.27, 0.11, 0.29, 0.08])
SCALE = np.array([3.5, 4.3, 24, 350, 0.014, 0.05, 0.08, 0.04, 0.03, 0.007, 0.28, 0.55, 2, 45, 0.003, 0.018, 0.03, 0.006, 0.008,
                  0.003, 4.8, 6, 34, 570, 0.023, 0.16, 0.2, 0.066, 0.06, 0.018])


def load_data():
    x, y = load_breast_cancer(return_X_y=True)
    return TensorDataset(torch.tensor((x - CENTRE) / SCALE, dtype=torch.float32), torch.tensor(y))


def build_model():
    return nn.Sequential(nn.Linear(30, 12), nn.Tanh(), nn.Linear(12, 2))


def fit_private(model, data, noise_multiplier, epochs, watch=None):
    model, optimizer, loader = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.3),
        data_loader=DataLoader(data, batch_size=BATCH_SIZE, shuffle=False),
        noise_multiplier=noise_multiplier,
        max_grad_norm=0.7,
        poisson_sampling=True,
    )
    if watch is not None:  # shows every step to an adversary who sees more than losses
        optimizer.attach_step_hook(watch)
    for _ in range(epochs):
        for inputs, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs), labels).backward()
            optimizer.step()
    return model


@torch.no_grad()
def example_losses(model, data):
    inputs, labels = next(iter(DataLoader(data, batch_size=len(data))))
    return nn.functional.cross_entropy(model.eval()(inputs), labels, reduction="none")
