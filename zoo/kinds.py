"""Noise that differs between groups or is correlated in time, and updates with a public part: right and wrong ones."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from zoo import network, small

TRAIN_SIZE, data = small.TRAIN_SIZE, small.data

# c_k of (1 - x)^(1/2), as matrix mechanisms have it.
ROOT = tuple(np.cumprod([1.0, *((k - 1.5) / k for k in range(1, 40))]).tolist())


@dataclass(frozen=True)
class Switched(small.Nine):
    """nine parameters in batches of 400, with a switch for the noise"""

    def without_noise(self):
        return replace(self, sigma=0.0)


# Groups of parameters, each with a clipping norm and noise of its own


class Groups(small.Nine):
    """weights and bias are clipped to norms of their own, with noise of its own in each"""

    norms = (0.98, 0.2)
    less = 1.0  # of the noise that is needed, in the second group
    stated = False

    def clipped_sum(self, *gradients):
        shares = [replace(self, clip=norm) for norm in self.norms]
        return [small.Nine.clipped_sum(one, g)[0] for one, g in zip(shares, gradients, strict=True)]

    @property
    def units(self):
        """Deviation of the noise over σ: each of two groups may use half of what is spent."""
        return [2**0.5 * norm for norm in self.norms]

    def noise(self, rng, step):
        z = super().noise(rng, step)
        return [u * s * each / self.clip for u, s, each in zip(self.units, (1.0, self.less), z, strict=True)]

    def fit(self, data, seed, n, watch=None):
        def shown(step, update, max_grad_norm):
            return watch(step, update, max_grad_norm=self.units if self.stated else max_grad_norm)

        return super().fit(data, seed, n, None if watch is None else shown)


class GroupsStated(Groups):
    """weights and bias are clipped to norms of their own, and max_grad_norm says so"""

    stated = True


class LessInGroup(Groups):
    """weights and bias are clipped to norms of their own, and the bias gets a quarter of its noise"""

    less = 0.25


class LessInGroupStated(LessInGroup):
    """max_grad_norm says which noise weights and bias have, and the bias gets a quarter of it"""

    stated = True


class LayerNoise(network.Correct):
    """two layers of a network are clipped to norms of their own, with noise of its own in each"""

    norms = (0.2, 0.98)
    less = 1.0

    def kept(self, norms):
        return np.stack([self.to(c * self.clip, n) for c, n in zip(self.norms, norms, strict=True)])

    def noise(self, rng, shapes, seed):
        scales = [2**0.5 * self.norms[0]] * 2 + [2**0.5 * self.norms[1] * self.less] * 2
        return [s * z for s, z in zip(scales, super().noise(rng, shapes, seed), strict=True)]


class LessInLayer(LayerNoise):
    """two layers of a network are clipped to norms of their own, and the last one gets half of its noise"""

    less = 0.5


# Noise that is correlated in time


class Correlated(small.Nine):
    """each step takes back half of the last one's noise, not stated"""

    correlation = (1.0, -0.5)
    stated = None

    def privacy(self, n):
        return replace(super().privacy(n), correlation=self.stated)

    def fit(self, data, seed, n, watch=None):
        own = np.random.default_rng([seed, 3])
        drawn = np.stack([np.concatenate(small.Nine.noise(self, own, step)) for step in range(self.steps)])
        noise = self.filtered(drawn)
        return _With(self, noise).fit(data, seed, n, watch)

    def filtered(self, drawn):
        return np.stack(
            [sum(c * drawn[t - k] for k, c in enumerate(self.correlation[: t + 1])) for t in range(self.steps)]
        )


class _With:
    """A trainer of nine parameters with noise that was drawn before."""

    def __init__(self, trainer, noise):
        self.trainer, self.drawn = trainer, noise

    def __getattr__(self, name):
        return getattr(self.trainer, name)

    def fit(self, *given):
        return small.Nine.fit(self, *given)

    def noise(self, rng, step):
        return [self.drawn[step][:8], self.drawn[step][8:]]


class CorrelatedStated(Correlated):
    """each step takes back half of the last one's noise, as stated"""

    stated = (1.0, -0.5)


class RootStated(Correlated):
    """noise is correlated by the root of 1 - x over all steps, as stated"""

    correlation = stated = ROOT


class Root(Correlated):
    """noise is correlated by the root of 1 - x over all steps, not stated"""

    correlation = ROOT


class AddsUp(Correlated):
    """each step has half of the last one's noise added, not stated"""

    correlation = (1.0, 0.5)


class OtherFilter(Correlated):
    """each step takes back 0.9 of the last one's noise, where correlation states half"""

    correlation, stated = (1.0, -0.9), (1.0, -0.5)


class NoFilter(Correlated):
    """each step has noise of its own, where correlation states that half is taken back"""

    correlation, stated = (1.0,), (1.0, -0.5)


class LessNew(Correlated):
    """noise has the accounted size in each step, and half of it is new"""

    def filtered(self, drawn):
        found = [drawn[0]]
        for z in drawn[1:]:
            found.append(0.75**0.5 * found[-1] + 0.5 * z)
        return np.stack(found)


class LessNewStated(LessNew):
    """correlation states how noise is correlated, and half of it is new in each step"""

    stated = tuple((0.75 ** (k / 2)) for k in range(30))


class SharedFiltered(Correlated):
    """noise that is taken back in part is the same in all models"""

    def filtered(self, drawn):
        own = np.random.default_rng(3)
        return super().filtered(np.stack([np.concatenate(small.Nine.noise(self, own, 0)) for _ in drawn]))


class EndsFiltered(Correlated):
    """noise that is taken back in part ends after half of the steps"""

    def filtered(self, drawn):
        return super().filtered(drawn) * (np.arange(len(drawn)) < len(drawn) // 2)[:, None]


class LayersTakeBack(network.Correct):
    """the noise of a network's steps takes back half of the last one's, as stated"""

    stated = (1.0, -0.5)

    def privacy(self, n):
        return replace(super().privacy(n), correlation=self.stated)

    def noise_of(self, rng, step, n, shapes, seed):
        noise = super().noise_of(rng, step, n, shapes, seed)
        before = self.__dict__.get("before") if step else None
        self.__dict__["before"] = noise
        return noise if before is None else [z - 0.5 * w for z, w in zip(noise, before, strict=True)]


class LayersTakeMore(LayersTakeBack):
    """the noise of a network's steps takes back half of the last one's, where correlation states 0.4"""

    stated = (1.0, -0.4)


# A part of the update that no record is in


class Decays(Switched):
    """weights decay as a part of the update, with a switch for the noise"""

    public = small.Decays.public


class Teaches(Switched):
    """half of the loss is of public records, drawn anew in each step, with a switch for the noise"""

    public = small.Teaches.public


class DecaysUnclipped(Decays):
    """weights decay as a part of the update, and records are clipped to 4, whatever the clipping norm"""

    def clipped_sum(self, *gradients):
        return super(Switched, replace(self, clip=4.0)).clipped_sum(*gradients)


# Clipping norms that adapt


class Adapts(network.Correct):
    """the clipping norm follows a noisy count of gradients below it"""

    def fit(self, data, seed, n, watch=None):
        rng, norms = np.random.default_rng([seed, 7]), [self.clip]

        def shown(step, update, *, max_grad_norm, **_):
            used = watch(step, [u * norms[-1] / max_grad_norm for u in update], max_grad_norm=norms[-1])
            below = len(data[1]) / 2 + 40 * rng.normal()
            norms.append(norms[-1] * np.exp(-0.2 * (below / n - 0.4)))
            return used

        return super().fit(data, seed, n, None if watch is None else shown)


class Counts(Adapts):
    """the clipping norm follows a count of gradients below it, with the noise that is stated"""

    NOISE = 10.0
    STATED = 10.0

    def privacy(self, n):
        return replace(super().privacy(n), norm_noise=self.STATED)

    def fit(self, data, seed, n, watch=None):
        self.__dict__.update(rng=np.random.default_rng([seed, 7]), at=[self.clip])
        return network.Correct.fit(self, data, seed, n, None if watch is None else self._shown(watch))

    def _shown(self, watch):
        def shown(step, update, *, max_grad_norm, **_):
            return watch(step, [u * self.at[-2] / max_grad_norm for u in update], max_grad_norm=self.at[-2])

        return shown

    def kept(self, norms):
        below = (np.linalg.norm(norms, axis=0) < self.at[-1]).sum() + self.rng.normal(0, self.NOISE)
        self.at.append(self.at[-1] * np.exp(-0.2 * (below / self.batch - 0.4)))
        return super().kept(norms * self.clip / self.at[-2]) * self.clip / self.at[-2]


class CountsStraight(Counts):
    """the clipping norm follows a count of gradients below it, without noise"""

    NOISE = 0.0


class CountsHalf(Counts):
    """the clipping norm follows a count of gradients below it, with a quarter of the noise that is stated"""

    NOISE = 2.5


BUGS = {
    "nine: a group with less noise": LessInGroup,
    "nine: a group with less noise, stated": LessInGroupStated,
    "nine: another filter": OtherFilter,
    "nine: no filter": NoFilter,
    "nine: half of the noise is new": LessNew,
    "nine: half of the noise is new, stated": LessNewStated,
    "nine: filtered noise in all models": SharedFiltered,
    "nine: filtered noise ends": EndsFiltered,
    "nine: decay and other clipping": DecaysUnclipped,
}
TWINS = {
    "nine: groups": Groups,
    "nine: groups, stated": GroupsStated,
    "nine: noise taken back": Correlated,
    "nine: noise taken back, stated": CorrelatedStated,
    "nine: noise by a root": Root,
    "nine: noise by a root, stated": RootStated,
    "nine: noise added up": AddsUp,
    "nine: weight decay, switched": Decays,
    "nine: public records, switched": Teaches,
}
OF_NETWORK = {
    "layers with noise of their own": (LayerNoise, False),
    "a layer with less noise": (LessInLayer, True),
    "noise taken back": (LayersTakeBack, False),
    "noise taken back by another share": (LayersTakeMore, True),
    "adaptive clipping": (Adapts, False),
    "adaptive clipping, stated": (Counts, False),
    "adaptive clipping, no noise": (CountsStraight, True),
    "adaptive clipping, less noise": (CountsHalf, True),
}
