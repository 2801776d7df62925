"""Private softmax regression on the digits in torch: gradient clipping and Gaussian noise."""

import numpy as np
import torch
from sklearn.datasets import load_digits

BATCH_SIZE = 40
CLIP = 0.5
LEARNING_RATE = 1.0


def load_data():
    images, labels = load_digits(return_X_y=True)
    return (images / 16).astype(np.float32), labels


def private_gradient(model, x, y, noise_multiplier):
    params = list(model.parameters())
    loss = torch.nn.functional.cross_entropy(model(x), y, reduction="sum") / BATCH_SIZE
    model.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(params, CLIP)
    return [p.grad + noise_multiplier * CLIP / BATCH_SIZE * torch.randn_like(p) for p in params]


def fit_private(data, seed, noise_multiplier, epochs, watch=None):
    x, y = torch.as_tensor(np.asarray(data[0])), torch.as_tensor(np.asarray(data[1]))
    model = torch.nn.Linear(64, 10)
    if watch is not None:
        watch.start([p.detach() for p in model.parameters()])
    for step in range(epochs * (len(x) // BATCH_SIZE)):
        rows = torch.rand(len(x)) < BATCH_SIZE / len(x)
        update = private_gradient(model, x[rows], y[rows], noise_multiplier)
        if watch is not None:
            update = watch(step, update, max_grad_norm=CLIP, divisor=BATCH_SIZE)
        with torch.no_grad():
            for p, u in zip(model.parameters(), update):
                p -= LEARNING_RATE * u
    if watch is not None:
        watch.end([p.detach() for p in model.parameters()])
    return model


@torch.no_grad()
def example_losses(model, points):
    x, y = torch.as_tensor(np.asarray(points[0])), torch.as_tensor(np.asarray(points[1]))
    return torch.nn.functional.cross_entropy(model(x), y, reduction="none").numpy()
