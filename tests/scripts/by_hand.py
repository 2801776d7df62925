"""DP-SGD by hand: one record at a time, a loader with Poisson batches, and no accountant."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
C, SIGMA, BATCH, STEPS = 1.0, 1.5, 20, int(sys.argv[1]) if len(sys.argv) > 1 else 20
x = torch.randn(120, 5)
y = (x @ torch.randn(5) > 0).long()


class Poisson:
    def __iter__(self):
        for _ in range(STEPS):
            yield torch.nonzero(torch.rand(len(x)) < BATCH / len(x)).flatten().tolist()

    def __len__(self):
        return STEPS


def batch_of(records):
    return [torch.stack([r[0] for r in records]), torch.stack([r[1] for r in records])] if records else [x[:0], y[:0]]


print("records:", sum(len(features) for features, _ in DataLoader(TensorDataset(x, y), batch_size=50)))
model = nn.Linear(5, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
loader = DataLoader(TensorDataset(x, y), batch_sampler=Poisson(), collate_fn=batch_of)
for features, labels in loader:
    total = [torch.zeros_like(p) for p in model.parameters()]
    for feature, label in zip(features, labels, strict=True):
        model.zero_grad()
        nn.functional.cross_entropy(model(feature[None]), label[None]).backward()
        nn.utils.clip_grad_norm_(model.parameters(), C)
        for t, p in zip(total, model.parameters(), strict=True):
            t += p.grad
    for t, p in zip(total, model.parameters(), strict=True):
        p.grad = (t + SIGMA * C * torch.randn_like(t)) / BATCH
    optimizer.step()
