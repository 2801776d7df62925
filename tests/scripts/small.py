"""A private training as people write it: logistic regression on 200 records with Opacus."""

import argparse

import torch
from opacus import PrivacyEngine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--shuffled", action="store_true")
given = parser.parse_args()

torch.manual_seed(given.seed)
x = torch.randn(200, 6)
y = (x @ torch.randn(6) > 0).long()
loader = DataLoader(TensorDataset(x, y), batch_size=20, shuffle=True)
model = nn.Linear(6, 2)
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
engine = PrivacyEngine(accountant="rdp")
model, optimizer, loader = engine.make_private(
    module=model,
    optimizer=optimizer,
    data_loader=loader,
    noise_multiplier=1.0,
    max_grad_norm=1.0,
    poisson_sampling=not given.shuffled,
)
for epoch in range(given.epochs):
    for features, labels in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(features), labels).backward()
        optimizer.step()
    print(f"epoch {epoch + 1}: ε = {engine.get_epsilon(1e-5):.2f}")
torch.save(model.state_dict(), "model.pt")
