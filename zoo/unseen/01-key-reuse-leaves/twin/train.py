"""DP-SGD for a small network on the wine data, ported from a JAX code base."""

import numpy as np
from sklearn.datasets import load_wine

BATCH_SIZE = 22
CLIP = 1.0
LEARNING_RATE = 0.3
CENTRE = np.array([13, 2.3, 2.4, 19.5, 100, 2.3, 2, 0.36, 1.6, 5, 0.96, 2.6, 750])
SCALE = np.array([0.8, 1.1, 0.27, 3.3, 14, 0.6, 1, 0.12, 0.57, 2.3, 0.23, 0.7, 315])


def load_data():
    x, y = load_wine(return_X_y=True)
    return (x - CENTRE) / SCALE, y


def init_params(rng):
    return [rng.normal(0, 0.25, (13, 16)), np.zeros(16), rng.normal(0, 0.25, (16, 3)), np.zeros(3)]


def log_softmax(z):
    z = z - z.max(axis=1, keepdims=True)
    return z - np.log(np.exp(z).sum(axis=1, keepdims=True))


def forward(params, x):
    w1, b1, w2, b2 = params
    h = np.tanh(x @ w1 + b1)
    return h, log_softmax(h @ w2 + b2)


def per_example_grads(params, x, y):
    h, logp = forward(params, x)
    dz = np.exp(logp) - np.eye(3)[y]
    dh = (dz @ params[2].T) * (1 - h**2)
    return [x[:, :, None] * dh[:, None, :], dh, h[:, :, None] * dz[:, None, :], dz]


def clip(grads):
    norms = np.sqrt(sum((g.reshape(len(g), -1) ** 2).sum(axis=1) for g in grads))
    factor = np.minimum(1.0, CLIP / np.maximum(norms, 1e-12))
    return [np.tensordot(factor, g, axes=1) for g in grads]


def add_noise(sums, stddev, key):
    return [s + stddev * np.random.default_rng([key, i]).standard_normal(s.shape) for i, s in enumerate(sums)]


def fit_private(data, seed, noise_multiplier, epochs, watch=None):
    x, y = data
    rng = np.random.default_rng(seed)
    params = init_params(rng)
    if watch is not None:
        watch.start(params)
    for step in range(epochs * (len(x) // BATCH_SIZE)):
        rows = rng.random(len(x)) < BATCH_SIZE / len(x)
        key = int(rng.integers(2**62))
        update = add_noise(clip(per_example_grads(params, x[rows], y[rows])), noise_multiplier * CLIP, key)
        if watch is not None:
            update = watch(step, update, max_grad_norm=CLIP)
        params = [p - LEARNING_RATE * u / BATCH_SIZE for p, u in zip(params, update)]
    if watch is not None:
        watch.end(params)
    return params


def example_losses(params, points):
    x, y = points
    return -forward(params, x)[1][np.arange(len(y)), y]
