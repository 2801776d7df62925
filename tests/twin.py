"""Slow, obvious twins of the kernel: the definition in plain variables, one number at a time."""

import itertools

import numpy as np
from scipy import integrate, stats


def region_mass(tally, eps, delta, prior=(0.5, 0.5)):
    """Pr[(FNR, FPR) ∈ R(eps, delta)]: over FNR, the probability that FPR lies between the bounds of R (Eq. 3)."""
    a, b = prior
    x_law = stats.beta(int(tally.fn) + a, int(tally.tp) + b)
    y_law = stats.beta(int(tally.fp) + a, int(tally.tn) + b)

    def allowed(x):
        grow = np.exp(eps)
        low = max(0.0, 1 - delta - grow * x, (1 - delta - x) / grow)
        high = min(1.0, 1 + (delta - x) / grow, delta + grow * (1 - x))
        return y_law.cdf(high) - y_law.cdf(low)

    # x = sin²t removes the infinite ends of a Beta(½, ·) density
    def integrand(t):
        s, c = np.sin(t), np.cos(t)
        log_x_density = x_law.logpdf(np.clip(s * s, 1e-300, 1 - 1e-16))
        return np.exp(log_x_density) * 2 * s * c * allowed(s * s)

    v = (1 - delta) / (1 + np.exp(eps))
    kinks = {0.0, 1.0, v, 1 - v, delta, 1 - delta, *np.clip(x_law.ppf([1e-9, 1e-3, 0.5, 1 - 1e-3, 1 - 1e-9]), 0, 1)}
    cuts = np.arcsin(np.sqrt(sorted(kinks)))
    return sum(
        integrate.quad(integrand, lo, hi, epsabs=1e-11, epsrel=1e-9, limit=400)[0]
        for lo, hi in itertools.pairwise(cuts)
        if hi > lo
    )


def gaussian_mass(tally, mu, prior=(0.5, 0.5)):
    """Pr[|Φ⁻¹(1 − FPR) − Φ⁻¹(FNR)| ≤ mu]."""
    a, b = prior
    x_law = stats.beta(int(tally.fn) + a, int(tally.tp) + b)
    y_law = stats.beta(int(tally.fp) + a, int(tally.tn) + b)

    def integrand(z):
        x = stats.norm.cdf(z)
        between = y_law.cdf(stats.norm.cdf(mu - z)) - y_law.cdf(stats.norm.cdf(-mu - z))
        return np.exp(x_law.logpdf(x) + stats.norm.logpdf(z)) * between

    cuts = [-12, *stats.norm.ppf(x_law.ppf([1e-6, 0.1, 0.9, 1 - 1e-6])), 8]
    return sum(
        integrate.quad(integrand, lo, hi, epsabs=1e-11, epsrel=1e-9, limit=400)[0]
        for lo, hi in itertools.pairwise(cuts)
        if hi > lo
    )
