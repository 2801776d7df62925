"""Sampling: how often a record takes part, and whether each step draws it anew."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from epsgauge.probing.copies import Copied, copied
from epsgauge.probing.copies import length as length_of
from epsgauge.probing.finding import SHARE, Finding, consistent, not_tested, refuted
from epsgauge.probing.pipeline import Pipeline
from epsgauge.probing.records import Records
from epsgauge.probing.taking_part import TakingPart
from epsgauge.stats import special
from epsgauge.stats.arrays import Ints

POISSON = "Poisson batches"
# Lengths of gradients that differ by less are equal, and counts that are so near to whole numbers are right.
SAME, NEAR = 1e-3, 0.1
# Steps that are so far apart are compared, and how often a batch may be used again: always, or in half of the cases.
LAGS, AGAIN = 64, (0.98, 0.5)
# Updates after a record's first one, from which on it is seen whether it shows in all of them.
STAYING = 20
# Places in which a record is replaced, until one is in a batch, where none is known to be.
PLACES = 3


def steps_needed(rate: float) -> int:
    """Two rounds in which a record is expected once, and no more than a probe has time for."""
    return int(np.clip(math.ceil(2 / rate), 12, 200))


def sampling_rate(pipeline: Pipeline, seen: TakingPart) -> Finding:
    """An exact binomial lower bound, of all records together and of each."""
    name, q = "sampling rate", float(pipeline.privacy.sample_rate)
    models, targets, steps = seen.steps.shape
    counts, direct, trials = (which.sum(axis=(0, 2)) for which in (seen.steps, seen.direct, seen.tried))
    tests = [(int(counts.sum()), int(trials.sum())), *zip(counts.tolist(), trials.tolist(), strict=True)]
    # Trials that end with a hit: any number of hits up to that of trainings
    chance = SHARE / len(tests) / (models * targets if seen.adapts else 1)
    bounds = [_least(hits, n, chance) for hits, n in tests]
    best = int(np.argmax(bounds))
    hits, n = tests[best]
    rests = f"{targets} records, each replaced in {models} trainings of {steps} steps; an exact binomial bound."
    if bounds[best] > q:
        whom = "a record" if best == 0 else "one of the records"
        text = f"eplacing {whom} changed {hits} of {n} updates: it shows in at least {100 * bounds[best]:.3g} % of the"
        text += f" steps; {100 * q:.3g} % is accounted."
        more: dict[str, Any] = {"measured": bounds[best], "allowed": q}
        which = [best - 1] if best else range(targets)
        if _stays(seen):
            stays = (
                "A record changes all updates after the first batch that it is in: something without noise carries it "
            )
            return refuted("P150", f"{stays}on, such as a second optimizer. R{text}", rests, exact=False, **more)
        if _least(int(direct[which].sum()), n, chance) <= q:
            few, far = seen.idle(which)
            idle = f"A record moves updates of batches that it is not in, by {few:.2g} to {far:.2g} clipping norms."
            return refuted("P150", f"{idle} R{text}", rests, exact=False, **more)
        same = [i for i in which if i % 2 == 0]  # another label may show by gradients of others
        own = _least(int(direct[same].sum()), int(trials[same].sum()), chance)
        # else it shows by gradients of others: no accountant has a number for that
        return refuted("P110", f"R{text}", rests, exact=False, rate=own if own > q else None, **more)
    hits, n = tests[0]
    text = f"Replacing a record changed {hits} of {n} updates; {100 * q:.3g} % is accounted."
    return consistent(name, text, rests, exact=False)


def _stays(seen: TakingPart) -> bool:
    """Whether every update after the first one that a record changed is another one, too."""
    shows = seen.steps[:, :, 1:][np.logical_or.accumulate(seen.steps, axis=2)[:, :, :-1]]
    return len(shows) > STAYING and bool(shows.all()) and not bool(seen.steps.all())


def batches(pipeline: Pipeline, seen: TakingPart, counts: Ints | None, *, own: bool) -> Finding:
    """`counts` are those of records in batches; None where they are not known. Does a record move its `own` only?"""
    found = _poisson(pipeline, seen) if not (seen.shifted or seen.adapts) else None
    if found is not None and found.result == "refuted":
        return found
    of_sizes = _by_sizes(pipeline, counts)
    if of_sizes is not None and of_sizes.result == "refuted":  # with a number, if batches are larger
        return of_sizes
    again = None if found is None or not own else _used_again(pipeline, seen)
    why = "When a record takes part is not known, and neither are the sizes of batches."
    return again or of_sizes or found or not_tested(POISSON, why)


@dataclass(frozen=True)
class Rates:
    """How many records a batch has on average in a training on half of them, and with what chance as many."""

    of: int
    fewer: float
    usual: float
    chance: float


def one_copy(pipeline: Pipeline, seen: TakingPart, alike: Copied, model: int, stop: int) -> float:
    """How far one copy of a record among others moves an update that it is in; 0 if that is not known."""
    if not alike.straight or pipeline.privacy.sample_rate == 1:
        return 0.0
    often = seen.direct[model].sum(axis=1)
    places = [int(seen.places[np.argmax(often)])] if often.any() else range(PLACES)
    for place in places:
        moved = [length_of(update) for update in alike.apart_from(pipeline, [place], alike.other, model, stop)]
        there = [far for far in moved if far > SAME * alike.apart]
        if there:
            return float(np.median(there)) if np.ptp(there) <= SAME * max(there) else 0.0
    return 0.0


def sizes(pipeline: Pipeline, alike: list[Copied], ones: list[float]) -> Ints | None:
    """How many records there are in each batch of copies; None where that is not known, or norms change.

    If it is not known how far one copy moves an update, batches that are all alike have the expected size.
    """
    if any(len(each.replay.norms) > 1 for each in alike):
        return None
    expected = max(1.0, len(pipeline.members) * float(pipeline.privacy.sample_rate))
    units = ones if any(ones) else [each.apart / expected if each.constant else 0.0 for each in alike]
    found = [np.abs(each.sizes) / unit for each, unit in zip(alike, units, strict=True) if unit]
    counts = np.concatenate([np.empty(0), *found])
    whole = np.rint(counts).astype(np.int64)
    return whole if len(whole) and bool((np.abs(counts - whole) <= NEAR).all()) else None


def rate_of_half(pipeline: Pipeline, records: Records, alike: Copied, one: float, stop: int) -> Rates | None:
    """By copies of one record: how much farther a batch of them moves an update than one of them. None if unknown."""
    q, half = float(pipeline.privacy.sample_rate), len(pipeline.members) // 2
    if not one:
        return None
    fewer = copied(pipeline, records, 0, only=half, stop=stop)
    if not fewer.straight or fewer.other != alike.other or fewer.replay.n_steps < stop:
        return None
    counts = np.rint(fewer.sizes / one)
    return Rates(half, float(counts.mean()), q * half, _at_least(int(counts.sum()), half * len(counts), q))


def _least(hits: int, n: int, chance: float) -> float:
    """Clopper and Pearson's lower bound of a rate."""
    return float(special.betaincinv(hits, n - hits + 1, chance)) if hits else 0.0


def _poisson(pipeline: Pipeline, seen: TakingPart) -> Finding:
    """In rounds of 1/q steps a record that is drawn anew at each step takes part once in about 37 % of them."""
    name, q = POISSON, float(pipeline.privacy.sample_rate)
    steps = seen.steps.shape[2]
    lengths = {length for length in (math.floor(1 / q), math.ceil(1 / q)) if 2 <= length <= steps}
    found = []
    for length in lengths:
        rounds = seen.direct[:, :, : steps - steps % length].reshape(*seen.steps.shape[:2], -1, length).sum(axis=3)
        seen_at = min(q, 1 / length)  # a record may show in fewer steps than it takes part in
        once = length * seen_at * (1 - seen_at) ** (length - 1)
        found.append(
            (_at_least(int((rounds == 1).sum()), rounds.size, once), int((rounds == 1).sum()), rounds.size, once)
        )
    if not lengths or min(once**n for _, _, n, once in found) > SHARE / 4 / len(lengths):
        return not_tested(
            name,
            f"A record is expected once in {1 / q:.3g} steps, which is too few or too many to tell in {steps} steps.",
        )
    chance, hits, n, once = min(found)
    rests = f"{n} rounds of about {1 / q:.3g} steps; if each step draws anew, {100 * once:.0f} % have a record once."
    if chance < SHARE / 4 / len(lengths):
        text = f"Batches are not drawn by coins: in {hits} of {n} rounds of 1/q steps a record took part exactly once."
        more = " That is shuffling, or nearly so. The accountant's ε is for Poisson batches, and does not hold here."
        return refuted("P111", text + more, rests, exact=False, measured=hits / n, allowed=once)
    return consistent(name, f"In {hits} of {n} rounds a record took part exactly once.", rests, exact=False)


def _used_again(pipeline: Pipeline, seen: TakingPart) -> Finding | None:
    """Refuted where a record that took part in a step takes part in another one, so many steps later, too often.

    A bet on each such step, whose odds are fair if it draws the record with a chance of q or less: the mean of all
    bets' products exceeds 1/α with a probability of α at most (Ville).
    """
    q, took = float(pipeline.privacy.sample_rate), seen.steps
    lags = range(1, min(LAGS, took.shape[2] - 1) + 1)
    if q == 1 or not lags:
        return None
    visits = np.array([took[:, :, :-lag].sum() for lag in lags])
    hits = np.array([(took[:, :, :-lag] & took[:, :, lag:]).sum() for lag in lags])
    gains = [
        hits * math.log(p / q) + (visits - hits) * math.log((1 - p) / (1 - q))
        for p in (max(q, AGAIN[0]), q + AGAIN[1] * (1 - q))
    ]
    if float(special.logsumexp(np.array(gains))) <= math.log(len(gains) * len(lags) * 4 / SHARE):
        return None
    lag = int(np.argmax(np.max(gains, axis=0)))
    later = "the next step" if lag == 0 else f"the step {lag + 1} steps later"
    text = f"A record that took part in a step took part in {later} in {hits[lag]} of {visits[lag]} cases, where "
    text += f"{100 * q:.3g} % are expected: batches are used more than once. The accountant's ε is for batches that "
    rests = (
        f"{took.shape[1]} records in {took.shape[0]} trainings of {took.shape[2]} steps; steps up to {lags[-1]} apart."
    )
    two = {"measured": float(hits[lag] / visits[lag]), "allowed": q}
    return refuted("P155", text + "each step draws anew.", rests, exact=False, **two)


def _by_sizes(pipeline: Pipeline, counts: Ints | None) -> Finding | None:
    """Refuted where batches are too large, or many have one size, more than could at any rate."""
    n, q = len(pipeline.members), float(pipeline.privacy.sample_rate)
    if counts is None or q == 1:
        return None
    values, often = np.unique(counts, return_counts=True)
    size, times, total = int(values[np.argmax(often)]), int(often.max()), len(counts)
    rests = f"{total} batches of copies of one record."
    if not 0 < size < n:
        return None
    rate = _least(int(counts.sum()), n * total, SHARE / 4)
    if rate > q:
        text = f"Batches have {counts.mean():.3g} records on average, where {n * q:.3g} are expected."
        return refuted("P154", text, rests, exact=False, rate=rate, measured=rate, allowed=q)
    likely = _chance_of_size(size, n)
    if total * _at_least(times, total, likely) > SHARE / 4:  # as many sizes as batches, at most
        return None
    more = "They are not drawn by coins, one for each record. The accountant's ε is for Poisson batches."
    two: dict[str, Any] = {"measured": times / total, "allowed": likely}
    if times == total:
        return refuted("P112", f"All batches have {size} records. {more}", rests, exact=False, **two)
    text = f"{times} of {total} batches have {size} records, where {100 * likely:.2g} % may. {more}"
    return refuted("P151", text, rests, exact=False, **two)


def _chance_of_size(k: int, n: int) -> float:
    """The chance that k of n coins show heads, at the rate at which it is largest."""
    of_any = special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)
    return math.exp(of_any + special.xlogy(k, k / n) + special.xlog1py(n - k, -k / n))


def _at_least(hits: int, n: int, rate: float) -> float:
    """Pr[Binomial(n, rate) ≥ hits]."""
    return float(special.bdtrc(hits - 1, n, rate)) if hits else 1.0
