"""DP-SGD of a linear classifier in JAX, which calls `watch` itself; its arrays cannot be written in place."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

import epsgauge as eg


def loss(weights, x, y):
    w, b = weights
    return -jax.nn.log_softmax(x @ w + b)[y]


@jax.jit
def clipped_sum(weights, x, y, mask, clip):
    """Of the gradients of the records that `mask` has."""
    gradients = jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))(weights, x, y)
    norms = jnp.sqrt(sum((g.reshape(len(g), -1) ** 2).sum(axis=1) for g in gradients))
    kept = mask * jnp.minimum(1.0, clip / jnp.maximum(norms, 1e-12))
    return [jnp.tensordot(kept, g, axes=1) for g in gradients]


@dataclass(frozen=True)
class Jax:
    """JAX, with a loop of its own"""

    noise_multiplier: float = 1.5
    clip: float = 1.0
    epochs: int = 2
    batch: int = 50
    rate: float = 0.5

    def privacy(self, n):
        return eg.DPSGD(self.batch / n, self.noise_multiplier, self.epochs * (n // self.batch))

    def train(self, data, *, seed, size=None, watch=None):
        x, y = (jnp.asarray(column) for column in data)
        n = size or len(y)
        weights = [jnp.zeros((x.shape[1], 10)), jnp.zeros(10)]
        key = jax.random.key(seed % 2**32)
        for step in range(self.epochs * (n // self.batch)):
            key, of_batch, *of_noise = jax.random.split(key, 4)
            mask = jax.random.uniform(of_batch, (len(y),)) < self.batch / n
            update = self.noisy(clipped_sum(weights, x, y, mask, self.clip), of_noise)
            if watch is not None:
                update = watch(step, update, max_grad_norm=self.clip)
            weights = [w - self.rate * u / self.batch for w, u in zip(weights, update, strict=True)]
        return weights

    def losses(self, model, points):
        x, y = (jnp.asarray(column) for column in points)
        return np.clip(np.asarray(jax.vmap(loss, in_axes=(None, 0, 0))(model, x, y)), 0.0, 1e6)

    def noisy(self, sums, keys):
        noise = self.noise_multiplier * self.clip
        return [g + noise * jax.random.normal(key, g.shape) for g, key in zip(sums, keys, strict=True)]


class SameKey(Jax):
    """JAX: one key is used for the noise of all arrays, and is never split"""

    def noisy(self, sums, keys):
        return super().noisy(sums, [jax.random.key(0)] * 2)
