"""Scale: how far one record moves an update, where the training does not say, or not correctly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from epsgauge.errors import InvalidInput
from epsgauge.probing.ball import radius
from epsgauge.probing.copies import ROUNDING, STRAIGHT, Copied, apart, copied, length, long_ones
from epsgauge.probing.finding import Finding, consistent, not_tested, refuted
from epsgauge.probing.pipeline import Pipeline
from epsgauge.probing.recorder import Update
from epsgauge.probing.records import Records

NAME = "scale"
UNSTATED = "how far one record moves an update cannot be measured, as"
STATE = "state the clipping norm: watch(step, update, max_grad_norm=...) or eg.watching(watch, max_grad_norm=...)"
# Findings that see how far one record moves an update, and those that need to know it.
SEEN_BY = ("sensitivity", "one record")
OF_NOISE = ("noise", "fresh noise", "independence")
# Whole trainings in which a record is replaced.
WHOLE = 3
# Places in which a record is replaced, until one takes part.
PLACES = 8
# Crafted records of a first measurement.
FEW = 6
# A stated clipping norm or divisor that is off by less is left to other findings.
CLEARLY = 2.0
# Lengths in two steps that differ by more are not rounded.
SAME = 1e-2
# Batches whose sizes are compared.
BATCHES = 4
# Standard deviations of the number of records in a batch that no batch exceeds.
DEVIATIONS = 6


@dataclass(frozen=True)
class Scale:
    """How far one record moves an update at least, in the update's own unit, and how that is known."""

    unit: float
    stated: float | None = None  # the clipping norm over the divisor, if the training states them
    varies: tuple[float, float] | None = None  # the least and the most, where the batch size divides an update
    changes: float = 1.0  # how many times as far it is in some steps as in others, with the model standing still


def measured(pipeline: Pipeline, records: Records, stop: int) -> Scale:
    """By crafted records in one place, among copies of an ordinary one: noise cancels, as the seeds are the same.

    Updates with each of them lie in a ball around the one without any, so that its radius is no larger than what one
    record can do, and noise over this radius is no less than the true multiplier.
    """
    pipeline.scale[:] = [1.0]
    usual = copied(pipeline, records, 0, stop=stop)
    again = usual.again(pipeline, [], usual.ordinary, 0, stop)
    if again is not None and (not again.drew_like(usual.replay) or again.digests != usual.replay.digests):
        raise InvalidInput(
            f"{UNSTATED} two trainings with one seed differ. Derive every generator from it, or {STATE}."
        )
    found: list[list[Update]] = []
    for place in range(min(PLACES, len(pipeline.members))):
        for index in long_ones(records)[:FEW]:
            moves = _moves(pipeline, usual, [place], index, stop)
            if any(length(update) > ROUNDING * usual.apart for update in moves):
                found.append(moves)
            elif not found:  # it is not in a batch
                break
        if found:
            break
    found = [moves for moves in found if len(moves) == len(usual.replay.updates)]
    reach = [radius([np.zeros_like(at[0]), *at]) for at in zip(*found, strict=True)]
    reach = [one for one in reach if math.isfinite(one)]
    if not reach or not max(reach):
        return Scale(1.0)
    counts = _batches(pipeline, usual, stop)
    expected = len(pipeline.members) * float(pipeline.privacy.sample_rate)
    spread = DEVIATIONS * math.sqrt(expected)
    if len(counts) < 2 or max(counts) < (1 + SAME) * min(counts) or abs(min(counts) - expected) > spread:
        return Scale(max(reach))
    in_smallest, least, most = max(reach), min(counts), max(counts)  # at least
    return Scale(in_smallest * least / (expected + spread), varies=(in_smallest * least / most, in_smallest))


def _moves(pipeline: Pipeline, usual: Copied, places: list[int], index: int, stop: int) -> list[Update]:
    """What it changes to have another record in these places; none if the training refuses it."""
    other = usual.again(pipeline, places, index, 0, stop)
    if other is None:
        return []
    if not other.drew_like(usual.replay):
        raise InvalidInput(
            f"{UNSTATED} other random numbers are drawn when a record is replaced. Give noise, batches and layers "
            f"generators of their own, or {STATE}."
        )
    return apart(usual.replay, other)


def _batches(pipeline: Pipeline, usual: Copied, stop: int) -> list[float]:
    """Numbers of records in batches, if an update is divided by it: all of them together move it as far in each batch,
    and one by its share, in the same direction."""
    found: list[float] = []
    line: Update | None = None
    for place in range(min(PLACES, len(pipeline.members)) if usual.constant else 0):
        for update in _moves(pipeline, usual, [place], usual.other, stop):
            far = length(update)
            if far <= ROUNDING * usual.apart / len(pipeline.members):
                continue
            line = update / far if line is None else line
            if float(line @ update) < (1 - STRAIGHT) * far:
                return []
            found.append(usual.apart / far)
        if len(found) >= BATCHES:
            break
    return found


def change(pipeline: Pipeline, whole: Copied, seed: int) -> float:
    """How many times as far one record moves some updates of a whole training as others."""
    lengths: list[float] = []
    everywhere = dict.fromkeys(range(len(pipeline.members)), whole.ordinary)
    for place in range(min(WHOLE, len(pipeline.members))):
        other = pipeline.replayed(seed, put=everywhere | {place: whole.other}, keep=whole.replay.kept)
        moves = [] if other is None else apart(whole.replay, other)
        lengths += [far for far in map(length, moves) if far > ROUNDING * whole.apart / len(pipeline.members)]
        if len(lengths) >= BATCHES:
            break
    ratio = max(lengths) / min(lengths) if lengths else 1.0
    return ratio if ratio > 1 + SAME else 1.0


def steady(scale: Scale, finding: Finding) -> Finding:
    """Noise that is too little for the farthest record may be enough in its own step, if it is not far from that.

    Steps that were not seen may differ by more, so that the square is allowed for.
    """
    if scale.changes == 1 or finding.result != "refuted" or finding.name not in OF_NOISE:
        return finding
    if finding.measured is not None and finding.allowed and finding.measured * scale.changes**2 < finding.allowed:
        return finding
    return not_tested(finding.name, "How far one record moves an update changes during the training: see scale.")


def reach_of(findings: Sequence[Finding]) -> float:
    """How far one record moved an update, in units of the scale."""
    both = [(f.measured, f.allowed) for f in findings if f.name in SEEN_BY]
    return max((m / a for m, a in both if m is not None and a), default=0.0)


def is_off(scale: Scale, reach: float, noise: Finding, accounted: float) -> bool:
    """Whether a scale has to be corrected by what was seen.

    A measured one grows with it. A stated one may be wrong if noise and records are both larger, or both smaller.
    """
    if scale.varies is not None or not 0 < reach < math.inf:
        return False
    if scale.stated is None:
        return reach > 1
    if noise.measured is None:
        return False
    smaller = noise.measured > 0 and CLEARLY * max(reach, noise.measured / accounted) < 1
    return smaller or (reach > CLEARLY and noise.measured >= accounted * reach)


def scale_of(pipeline: Pipeline, scale: Scale, reach: float, noise: Finding) -> Finding:
    """`reach` is in units of the scale."""
    rests = "Crafted records in one place of a training set."
    if scale.varies is not None:
        least, most = scale.varies
        text = f"One record moves an update by {least:.3g} to {most:.3g}: it is divided by the number of records drawn."
        return not_tested(NAME, f"{text} Divide by the expected number, or state watch(..., max_grad_norm=, divisor=).")
    size = len(pipeline.members) * float(pipeline.privacy.sample_rate)
    text = f"One record moves an update by {scale.unit * reach:.3g}"
    if scale.stated is None:
        norm = f"{scale.unit * size:.3g}"
        more = f"as a clipping norm of {scale.unit:.3g} does, or one of {norm} and a divisor of {size:.3g}"
        if scale.changes > 1:
            more += (
                f". In some steps it is {scale.changes:.3g} times as far as in others: state max_grad_norm at each step"
            )
        return consistent(NAME, f"{text}, {more}.", rests, measured=scale.unit)
    text = f"{text}; the stated clipping norm and divisor allow {scale.stated:.3g}"
    if not pipeline.scale or noise.result == "refuted":  # the noise is sure to be too little, and this is not sure
        return consistent(NAME, f"{text}.", rests)
    smaller = scale.unit < scale.stated
    more = ", or the noise is, and no record that was tried shows it" if smaller else ""
    text = f"{text}. The noise is {'smaller' if smaller else 'larger'}, too. The stated numbers are wrong{more}."
    return refuted("P140", text, rests, exact=False, measured=scale.unit, allowed=scale.stated)


def without_scale(scale: Scale, finding: Finding) -> Finding:
    """What one record moves an update by is no finding where it is measured only."""
    if finding.measured is None or finding.name not in SEEN_BY:
        return finding
    if scale.varies is not None:
        return not_tested(finding.name, "How far one record moves an update varies with its batch: see scale.")
    return consistent(finding.name, "The scale is as far as any record moved an update.", finding.rests_on)
