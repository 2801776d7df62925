"""DP-Adam for logistic regression on the breast cancer data, NumPy."""

import numpy as np
from sklearn.datasets import load_breast_cancer

BATCH_SIZE = 30
CLIP = 1.0
LEARNING_RATE = 0.05
BETA1, BETA2, EPSILON = 0.9, 0.99, 1e-3

# rounded published means and standard deviations of the features (UCI WDBC)
CENTRE = np.array([14, 19, 92, 650, 0.1, 0.1, 0.09, 0.05, 0.18, 0.06, 0.4, 1.2, 2.9, 40, 0.007, 0.025, 0.03, 0.012, 0.02, 0.004,
                   16, 26, 107, 880, 0.13, 0.25, 0.27, 0.11, 0.29, 0.08])
SCALE = np.array([3.5, 4.3, 24, 350, 0.014, 0.05, 0.08, 0.04, 0.03, 0.007, 0.28, 0.55, 2, 45, 0.003, 0.018, 0.03, 0.006, 0.008,
                  0.003, 4.8, 6, 34, 570, 0.023, 0.16, 0.2, 0.066, 0.06, 0.018])


def load_data():
    x, y = load_breast_cancer(return_X_y=True)
    return (x - CENTRE) / SCALE, y


def scores(model, x):
    return x @ model[:-1] + model[-1]


def sigmoid(z):
    return 0.5 * (1 + np.tanh(z / 2))


class Adam:
    def __init__(self, shape):
        self.t, self.m, self.v = 0, np.zeros(shape), np.zeros(shape)

    def step(self, model, private, grad):
        self.t += 1
        self.m = BETA1 * self.m + (1 - BETA1) * private
        self.v = BETA2 * self.v + (1 - BETA2) * grad**2
        m, v = self.m / (1 - BETA1**self.t), self.v / (1 - BETA2**self.t)
        return model - LEARNING_RATE * m / (np.sqrt(v) + EPSILON)


def fit_private(data, seed, noise_multiplier, epochs, watch=None):
    x, y = data
    rng = np.random.default_rng(seed)
    model = np.zeros(x.shape[1] + 1)
    adam = Adam(model.shape)
    if watch is not None:
        watch.start(model)
    for step in range(epochs * (len(x) // BATCH_SIZE)):
        rows = rng.random(len(x)) < BATCH_SIZE / len(x)
        xb, yb = x[rows], y[rows]
        grads = (sigmoid(scores(model, xb)) - yb)[:, None] * np.c_[xb, np.ones(len(xb))]
        factor = np.minimum(1.0, CLIP / np.maximum(np.linalg.norm(grads, axis=1), 1e-12))
        update = factor @ grads + rng.normal(0.0, noise_multiplier * CLIP, model.shape)
        if watch is not None:
            update = watch(step, update, max_grad_norm=CLIP)
        model = adam.step(model, update / BATCH_SIZE, grads.sum(axis=0) / BATCH_SIZE)  # no noise in the denominator
    if watch is not None:
        watch.end(model)
    return model


def example_losses(model, points):
    x, y = points
    z = scores(model, x)
    return np.logaddexp(0, z) - y * z
