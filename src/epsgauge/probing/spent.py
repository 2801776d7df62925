"""What is spent: by the numbers that are accounted, and by those that were found."""

from __future__ import annotations

import math
from collections.abc import Sequence

from epsgauge.adjacency import Adjacency
from epsgauge.bounds.noise import SMALLEST
from epsgauge.bounds.subsampled import least_eps
from epsgauge.errors import MissingExtra
from epsgauge.mechanisms.accounting import accountant_eps
from epsgauge.mechanisms.privacy import DPSGD, UNKNOWN
from epsgauge.numbers import told_apart
from epsgauge.probing.finding import Finding, consistent, not_tested, refuted

# With so little noise, so many steps show that ε is huge, and more would take long.
LITTLE, FEW = 0.2, 20


def accounting(privacy: DPSGD, delta: float, adjacency: Adjacency, claimed: float) -> Finding:
    """Whether the claim follows from the numbers that the pipeline states."""
    name, rests = "accounting", "Sampling rate, noise and steps as stated; ε is rounded down."
    if privacy.correlation:
        return not_tested(name, f"{UNKNOWN[0].upper()}{UNKNOWN[1:]}: what such noise spends was proven elsewhere.")
    least = _least(privacy, delta, adjacency)
    said = f"rate {privacy.sample_rate:.3g}, noise {privacy.noise_multiplier:.3g} and {privacy.steps} steps"
    if least > claimed:
        here, more = told_apart(claimed, least)
        text = f"ε = {here} is claimed, but {said} spend at least {more} ({adjacency}, δ = {delta:g})."
        return refuted("P100", text, rests, measured=least, allowed=claimed)
    return consistent(name, f"ε = {claimed:.3g} is claimed; {said} spend about {least:.3g}.", rests)


def accounted(privacy: DPSGD, delta: float, adjacency: Adjacency) -> float | None:
    try:
        return accountant_eps(privacy, delta=delta, adjacency=adjacency)
    except MissingExtra:
        return None


def found_eps(privacy: DPSGD, findings: Sequence[Finding], delta: float, adjacency: Adjacency) -> float | None:
    """ε with what was found, where that is something else than what is accounted; never above the true one.

    None for noise that is correlated in time, of which it is not known.
    """
    noises, reaches, rates, steps = (
        [getattr(f, name) for f in findings if getattr(f, name) is not None]
        for name in ("noise", "reach", "rate", "steps")
    )
    if privacy.correlation or not (noises or reaches or rates or steps):
        return None
    sigma = min([privacy.noise_multiplier, *noises]) / max([1.0, *reaches])
    really = DPSGD(max([privacy.sample_rate, *rates]), sigma, max([privacy.steps, *steps]))
    return _least(really, delta, adjacency)


def _least(privacy: DPSGD, delta: float, adjacency: Adjacency) -> float:
    """Never above the true ε; infinite without noise."""
    if privacy.noise_multiplier == 0 or delta == 0:
        return float("inf")
    noise = max(privacy.noise_multiplier, SMALLEST)  # less noise would only spend more
    steps = min(privacy.steps, FEW) if noise < LITTLE else privacy.steps
    while True:  # fewer steps spend less, and a number that is too large cannot be had
        eps = least_eps(DPSGD(privacy.sample_rate, noise, steps), delta=delta, adjacency=adjacency)
        if eps < math.inf or steps == 1:
            return eps
        steps = (steps + 1) // 2
