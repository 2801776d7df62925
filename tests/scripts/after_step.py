"""A loop without Opacus that adds its noise to the weights, after the optimiser's step."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(120, 5)
y = (x.sum(dim=1) > 0).long()
C, SIGMA, BATCH, STEPS, RATE = 1.0, 1.5, 20, 20, 0.1


class Poisson:
    def __iter__(self):
        for _ in range(STEPS):
            yield torch.nonzero(torch.rand(len(x)) < BATCH / len(x)).flatten().tolist()

    def __len__(self):
        return STEPS


def batch_of(records):
    return [torch.stack([r[0] for r in records]), torch.stack([r[1] for r in records])] if records else [x[:0], y[:0]]


model = nn.Linear(5, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
for features, labels in DataLoader(TensorDataset(x, y), batch_sampler=Poisson(), collate_fn=batch_of):
    total = [torch.zeros_like(p) for p in model.parameters()]
    for feature, label in zip(features, labels, strict=True):
        model.zero_grad()
        nn.functional.cross_entropy(model(feature[None]), label[None]).backward()
        nn.utils.clip_grad_norm_(model.parameters(), C)
        for t, p in zip(total, model.parameters(), strict=True):
            t += p.grad
    for t, p in zip(total, model.parameters(), strict=True):
        p.grad = t / BATCH
    optimizer.step()
    with torch.no_grad():
        for p in model.parameters():
            p += RATE * SIGMA * C / BATCH * torch.randn_like(p)
