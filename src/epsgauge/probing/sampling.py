"""Sampling: how often a record takes part, and whether each step draws it anew."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from epsgauge.probing.copies import Copied, copied
from epsgauge.probing.finding import SHARE, Finding, consistent, not_tested, refuted
from epsgauge.probing.pipeline import Pipeline
from epsgauge.probing.records import Records
from epsgauge.probing.taking_part import TakingPart
from epsgauge.stats import special
from epsgauge.stats.arrays import Floats

POISSON = "Poisson batches"
# Norms of sums of equal gradients that differ by less have as many terms.
SAME = 1e-3
# Places in which a record is replaced, until one is in a batch.
PLACES = 3


def steps_needed(rate: float) -> int:
    """Two rounds in which a record is expected once, and no more than a probe has time for."""
    return int(np.clip(math.ceil(2 / rate), 12, 200))


def sampling_rate(pipeline: Pipeline, seen: TakingPart) -> Finding:
    """An exact binomial lower bound, of all records together and of each."""
    name, q = "sampling rate", float(pipeline.privacy.sample_rate)
    models, targets, steps = seen.steps.shape
    counts, direct = (which.sum(axis=(0, 2)) for which in (seen.steps, seen.direct))
    tests = [(int(counts.sum()), models * targets * steps), *((int(c), models * steps) for c in counts)]
    bounds = [_least(hits, n, SHARE / len(tests)) for hits, n in tests]
    best = int(np.argmax(bounds))
    hits, n = tests[best]
    rests = f"{targets} records, each replaced in {models} trainings of {steps} steps; an exact binomial bound."
    if bounds[best] > q:
        whom = "a record" if best == 0 else "one of the records"
        text = f"Replacing {whom} changed {hits} of {n} updates: it shows in at least {100 * bounds[best]:.3g} % of the"
        same = [i for i in range(0, targets, 2) if best in (0, i + 1)]  # another label may show by gradients of others
        own = _least(int(direct[same].sum()), models * steps * len(same), SHARE / len(tests))
        found = own if own > q else None  # else it shows by gradients of others: no accountant has a number for that
        more: dict[str, Any] = {"rate": found, "measured": bounds[best], "allowed": q}
        return refuted("P110", f"{text} steps; {100 * q:.3g} % is accounted.", rests, exact=False, **more)
    hits, n = tests[0]
    text = f"Replacing a record changed {hits} of {n} updates; {100 * q:.3g} % is accounted."
    return consistent(name, text, rests, exact=False)


def batches(pipeline: Pipeline, seen: TakingPart, sums: Floats | None) -> Finding:
    """`sums` are the lengths of the sums of copies of one record; None where they do not show how many there are."""
    found = _poisson(pipeline, seen)
    return found if found.result == "refuted" else _one_size(pipeline, sums) or found


@dataclass(frozen=True)
class Rates:
    """How many records a batch has on average in a training on half of them, and with what chance as many."""

    of: int
    fewer: float
    usual: float
    chance: float


def rate_of_half(pipeline: Pipeline, records: Records, alike: Copied, stop: int) -> Rates | None:
    """By copies of one record: how much farther a batch of them moves an update than one of them. None if unknown."""
    q, half = float(pipeline.privacy.sample_rate), len(pipeline.members) // 2
    if q == 1 or not alike.straight:
        return None
    changes = [alike.apart_from(pipeline, [place], alike.other, 0, stop) for place in range(PLACES)]
    one = max((float(np.linalg.norm(update)) for each in changes for update in each), default=0.0)
    fewer = copied(pipeline, records, 0, only=half, stop=stop)
    if not one or not fewer.straight or fewer.other != alike.other or fewer.replay.n_steps < stop:
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
    if not lengths or min(once**n for _, _, n, once in found) > SHARE / 2 / len(lengths):
        return not_tested(
            name,
            f"A record is expected once in {1 / q:.3g} steps, which is too few or too many to tell in {steps} steps.",
        )
    chance, hits, n, once = min(found)
    rests = f"{n} rounds of about {1 / q:.3g} steps; if each step draws anew, {100 * once:.0f} % have a record once."
    if chance < SHARE / 2 / len(lengths):
        text = f"Batches are not drawn by coins: in {hits} of {n} rounds of 1/q steps a record took part exactly once."
        more = " That is shuffling, or nearly so. The accountant's ε is for Poisson batches, and does not hold here."
        return refuted("P111", text + more, rests, exact=False, measured=hits / n, allowed=once)
    return consistent(name, f"In {hits} of {n} rounds a record took part exactly once.", rests, exact=False)


def _one_size(pipeline: Pipeline, sums: Floats | None) -> Finding | None:
    """Refuted where all batches have one size."""
    q, n = float(pipeline.privacy.sample_rate), len(pipeline.members)
    likeliest = math.floor((n + 1) * q)
    same = min(SAME, 0.5 / max(likeliest, 1))
    if sums is None or q == 1 or not sums.min() > 0 or np.ptp(sums) > same * sums.max():
        return None
    chance = math.exp(
        special.gammaln(n + 1)
        - special.gammaln(likeliest + 1)
        - special.gammaln(n - likeliest + 1)
        + special.xlogy(likeliest, q)
        + special.xlog1py(n - likeliest, -q)
    )  # of the likeliest size
    if chance ** (len(sums) - 1) > SHARE / 2:
        return None
    text = "All batches have the same size, so they are not drawn by coins, one for each record. The accountant's ε "
    rests = f"{len(sums)} steps without noise on copies of one record."
    return refuted("P112", text + "is for Poisson batches, and does not hold here.", rests, exact=False)


def _at_least(hits: int, n: int, rate: float) -> float:
    """Pr[Binomial(n, rate) ≥ hits]."""
    return float(special.bdtrc(hits - 1, n, rate)) if hits else 1.0
