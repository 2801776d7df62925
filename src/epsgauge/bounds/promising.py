"""Which threshold promises the lowest bound of DP-SGD's noise: what a search on models set apart maximises."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import special

from epsgauge.adjacency import Adjacency
from epsgauge.bounds.noise import LARGEST, SMALLEST, by_central_limit
from epsgauge.bounds.subsampled import curve
from epsgauge.mechanisms.privacy import DPSGD
from epsgauge.stats.arrays import Floats
from epsgauge.stats.tally import Tally

# How far from each rate its limit is taken, in standard errors of the models that choose: more than the luckiest of
# many thresholds gains. Settled by simulation (docs/guarantees.md).
AWAY = 3.5
# No rate is taken to be nearer to 0 or 1.
TINY = 1e-9
# Noise multipliers whose curves are looked at, around that of the central limit.
TRIED = np.exp(np.linspace(-0.7, 0.7, 9))


def promising(tallies: Tally, privacy: DPSGD, adjacency: Adjacency) -> Floats:
    """Minus the logarithm of the noise that other models are likely to refute, for the tally at each threshold.

    Of few models the best of many thresholds is the luckiest. So both rates are smoothed first: their probits as
    parabolas in the probit of the share that is guessed 0. Where that flatters, the rates themselves count. How many
    models will be judged is not asked, as the rule must stay when a run grows.
    """
    n1, n0 = float(tallies.n_positive[0]), float(tallies.n_negative[0])
    share = special.ndtri((tallies.fn + tallies.tn + 0.5) / (n1 + n0 + 1.0))
    fn, fp = (np.asarray(k, np.float64) for k in (tallies.fn, tallies.fp))
    x, y = (_above(_smooth(share, (k + 0.5) / (n + 1.0)), n) for k, n in ((fn, n1), (fp, n0)))
    mu = -special.ndtri(x) - special.ndtri(y)
    if privacy.sample_rate == 1 or not mu.max() > 0:
        out: Floats = mu
        return out
    noise = np.clip(by_central_limit(float(mu.max()), privacy, adjacency) * TRIED, SMALLEST, LARGEST)
    least = np.stack([curve(replace(privacy, noise_multiplier=s), adjacency).least(y) for s in noise.tolist()])
    return _crossing(special.ndtri(np.maximum(least, TINY)) - special.ndtri(x), -np.log(noise))


def _smooth(at: Floats, rate: Floats) -> Floats:
    z = special.ndtri(rate)
    weight = np.sqrt(np.exp(-z * z) / (rate * (1.0 - rate)))  # one over the standard error of a probit
    fitted = np.polynomial.Polynomial.fit(at, z, min(2, len(at) - 1), w=weight) if np.ptp(at) > 0 else None
    out: Floats = rate if fitted is None else np.maximum(rate, special.ndtr(fitted(at)))
    return out


def _above(rate: Floats, n: float) -> Floats:
    out: Floats = np.clip(rate + AWAY * np.sqrt(rate * (1.0 - rate) / n), TINY, 1.0 - TINY)
    return out


def _crossing(room: Floats, value: Floats) -> Floats:
    """The value where room, which grows from row to row, becomes positive in each column; before and after by order."""
    last = len(value) - 1
    after = np.clip((room <= 0).sum(axis=0), 1, last)
    column = np.arange(room.shape[1])
    low, high = room[after - 1, column], room[after, column]
    part = np.clip(-low / np.maximum(high - low, 1e-300), -1.0, 2.0)
    out: Floats = value[after - 1] + part * (value[after] - value[after - 1])
    return out
