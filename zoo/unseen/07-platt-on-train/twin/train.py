"""DP logistic regression on a synthetic credit table, with Platt scaling of the scores. NumPy."""

from functools import cache

import numpy as np
from sklearn.datasets import make_classification

BATCH_SIZE = 40
CLIP = 1.5
LEARNING_RATE = 0.6


def table():
    return make_classification(1200, 10, n_informative=5, n_redundant=1, weights=[0.6], flip_y=0.05, random_state=3)


def load_data():  # the last 300 rows are public
    x, y = table()
    return x[:900], y[:900]


@cache
def public_data():
    x, y = table()
    return x[900:], y[900:]


def sigmoid(z):
    return 0.5 * (1 + np.tanh(z / 2))


def scores(weights, x):
    return x @ weights[:-1] + weights[-1]


def platt(z, y):
    """Slope and intercept that calibrate the scores, by a few damped Newton steps."""
    design, ab = np.c_[z, np.ones(len(z))], np.array([1.0, 0.0])
    for _ in range(15):
        p = sigmoid(design @ ab)
        hessian = (design * (p * (1 - p))[:, None]).T @ design + 0.1 * np.eye(2)
        ab = ab - np.clip(np.linalg.solve(hessian, design.T @ (p - y) + 0.1 * (ab - [1.0, 0.0])), -1, 1)
    return ab


def fit_private(data, seed, noise_multiplier, epochs, watch=None):
    x, y = data
    rng = np.random.default_rng(seed)
    weights = np.zeros(x.shape[1] + 1)
    if watch is not None:
        watch.start(weights)
    for step in range(epochs * (len(x) // BATCH_SIZE)):
        rows = rng.random(len(x)) < BATCH_SIZE / len(x)
        xb, yb = x[rows], y[rows]
        grads = (sigmoid(scores(weights, xb)) - yb)[:, None] * np.c_[xb, np.ones(len(xb))]
        factor = np.minimum(1.0, CLIP / np.maximum(np.linalg.norm(grads, axis=1), 1e-12))
        update = factor @ grads + rng.normal(0.0, noise_multiplier * CLIP, weights.shape)
        if watch is not None:
            update = watch(step, update, max_grad_norm=CLIP)
        weights = weights - LEARNING_RATE * update / BATCH_SIZE
    if watch is not None:
        watch.end(weights)
    calibration = public_data()
    return weights, platt(scores(weights, calibration[0]), calibration[1])


def example_losses(model, points):
    weights, (slope, intercept) = model
    x, y = points
    z = slope * scores(weights, x) + intercept
    return np.logaddexp(0, z) - y * z
