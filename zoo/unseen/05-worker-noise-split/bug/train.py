"""Data-parallel DP-SGD: every worker clips and adds its share of the noise, the server sums up. NumPy, digits."""

import numpy as np
from sklearn.datasets import load_digits

BATCH_SIZE = 48
WORLD_SIZE = 6
CLIP = 1.0
LEARNING_RATE = 0.8


def load_data():
    images, labels = load_digits(return_X_y=True)
    return images / 16, labels


def log_softmax(z):
    z = z - z.max(axis=1, keepdims=True)
    return z - np.log(np.exp(z).sum(axis=1, keepdims=True))


def with_bias(x):
    return np.c_[x, np.ones(len(x))]


def worker_update(weights, x, y, noise_multiplier, rng):
    """The sum of the worker's clipped gradients with its share of the noise."""
    residual = np.exp(log_softmax(x @ weights)) - np.eye(10)[y]
    norms = np.linalg.norm(residual, axis=1) * np.linalg.norm(x, axis=1)
    residual *= np.minimum(1.0, CLIP / np.maximum(norms, 1e-12))[:, None]
    stddev = noise_multiplier * CLIP / WORLD_SIZE
    return x.T @ residual + rng.normal(0.0, stddev, weights.shape)


def fit_private(data, seed, noise_multiplier, epochs, watch=None):
    x, y = with_bias(data[0]), data[1]
    rng = np.random.default_rng(seed)
    shards = np.array_split(np.arange(len(x)), WORLD_SIZE)
    weights = np.zeros((65, 10))
    if watch is not None:
        watch.start(weights)
    for step in range(epochs * (len(x) // BATCH_SIZE)):
        update = np.zeros_like(weights)
        for shard in shards:
            rows = shard[rng.random(len(shard)) < BATCH_SIZE / len(x)]
            update += worker_update(weights, x[rows], y[rows], noise_multiplier, rng)
        if watch is not None:
            update = watch(step, update, max_grad_norm=CLIP)
        weights = weights - LEARNING_RATE * update / BATCH_SIZE
    if watch is not None:
        watch.end(weights)
    return weights


def example_losses(weights, points):
    x, y = points
    return -log_softmax(with_bias(x) @ weights)[np.arange(len(y)), y]
