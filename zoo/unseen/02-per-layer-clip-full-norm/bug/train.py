"""DP-SGD in plain torch with per-layer clipping, on the digits."""

import numpy as np
import torch
from sklearn.datasets import load_digits

BATCH_SIZE = 60
CLIP = 0.8
LEARNING_RATE = 0.6
SIZES = (64, 24, 16, 10)


def load_data():
    images, labels = load_digits(return_X_y=True)
    return (images / 16).astype(np.float32), labels


def build_model():
    return torch.nn.Sequential(
        torch.nn.Linear(64, 24), torch.nn.Tanh(), torch.nn.Linear(24, 16), torch.nn.Tanh(), torch.nn.Linear(16, 10)
    )


@torch.no_grad()
def per_example_grads(model, x, y):
    acts, h = [x], x
    for layer in model:
        h = layer(h)
        if isinstance(layer, torch.nn.Tanh):
            acts.append(h)
    delta = torch.softmax(h, dim=1) - torch.nn.functional.one_hot(y, 10)
    grads = []
    for k, layer in reversed(list(enumerate([model[0], model[2], model[4]]))):
        grads = [delta[:, :, None] * acts[k][:, None, :], delta] + grads
        if k:
            delta = (delta @ layer.weight) * (1 - acts[k] ** 2)
    return grads  # in the order of model.parameters()


def clip_layer(g, bound):
    norms = g.flatten(1).norm(dim=1)
    return torch.tensordot((bound / norms.clamp(min=1e-12)).clamp(max=1.0), g, dims=1)


@torch.no_grad()
def fit_private(data, seed, noise_multiplier, epochs, watch=None):
    x, y = torch.as_tensor(np.asarray(data[0])), torch.as_tensor(np.asarray(data[1]))
    model = build_model()
    params = list(model.parameters())
    if watch is not None:
        watch.start([p.detach() for p in params])
    for step in range(epochs * (len(x) // BATCH_SIZE)):
        rows = torch.rand(len(x)) < BATCH_SIZE / len(x)
        bound = CLIP
        update = [
            clip_layer(g, bound) + noise_multiplier * CLIP * torch.randn(g.shape[1:])
            for g in per_example_grads(model, x[rows], y[rows])
        ]
        if watch is not None:
            update = watch(step, update, max_grad_norm=CLIP)
        for p, u in zip(params, update):
            p -= LEARNING_RATE * u / BATCH_SIZE
    if watch is not None:
        watch.end([p.detach() for p in params])
    return model


@torch.no_grad()
def example_losses(model, points):
    x, y = torch.as_tensor(np.asarray(points[0])), torch.as_tensor(np.asarray(points[1]))
    return torch.nn.functional.cross_entropy(model(x), y, reduction="none").numpy()
