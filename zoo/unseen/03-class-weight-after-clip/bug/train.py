"""DP logistic regression for an imbalanced table (fraud-like), NumPy."""

import numpy as np
from sklearn.datasets import make_classification

BATCH_SIZE = 80
CLIP = 1.0
LEARNING_RATE = 0.5
CLASS_WEIGHT = np.array([0.55, 6.0])  # from last year's published fraud rate


def load_data():
    return make_classification(
        2000, 12, n_informative=6, n_redundant=2, weights=[0.92], class_sep=1.2, flip_y=0.01, random_state=7
    )


def scores(model, x):
    return x @ model[:-1] + model[-1]


def sigmoid(z):
    return 0.5 * (1 + np.tanh(z / 2))


def fit_private(data, seed, noise_multiplier, epochs, watch=None):
    x, y = data
    rng = np.random.default_rng(seed)
    model = np.zeros(x.shape[1] + 1)
    if watch is not None:
        watch.start(model)
    for step in range(epochs * (len(x) // BATCH_SIZE)):
        rows = rng.random(len(x)) < BATCH_SIZE / len(x)
        xb, yb = x[rows], y[rows]
        grads = (sigmoid(scores(model, xb)) - yb)[:, None] * np.c_[xb, np.ones(len(xb))]
        grads *= np.minimum(1.0, CLIP / np.maximum(np.linalg.norm(grads, axis=1), 1e-12))[:, None]
        grads *= CLASS_WEIGHT[yb][:, None]
        update = grads.sum(axis=0) + rng.normal(0.0, noise_multiplier * CLIP, model.shape)
        if watch is not None:
            update = watch(step, update, max_grad_norm=CLIP)
        model = model - LEARNING_RATE * update / BATCH_SIZE
    if watch is not None:
        watch.end(model)
    return model


def example_losses(model, points):
    x, y = points
    z = scores(model, x)
    return np.logaddexp(0, z) - y * z
