"""Whole trainings that follow one script: how many steps they make, and what reaches the model past the updates.

Every update is replaced by the same random one, so that two models differ only by what bypasses them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from epsgauge.numbers import told_apart
from epsgauge.probing.finding import SHARE, Finding, consistent, not_tested, refuted
from epsgauge.probing.pipeline import Pipeline, Replay
from epsgauge.probing.records import Records
from epsgauge.probing.sampling import Rates

# Of the crafted records, those that show most in statistics of data, in order.
TELLING = ("huge", "outlier (z1)", "large-norm (z1)", "mislabelled (z1)", "strange-words (z1)", "rare-token (z1)")
TRIED = 3
ADAPTIVE = "The clipping norm changes. If the data choose it, account for that, too."
# Further whole trainings, where one makes fewer steps than are accounted.
MORE = 4


def scripted(pipeline: Pipeline, walk: float) -> Replay:
    """A whole training, and which parts of its model differ in another one on the same data."""
    return _lasting(pipeline.replay(walk=walk), pipeline.replay(walk=walk))


def _lasting(one: Replay, again: Replay) -> Replay:
    """Parts of a model that differ from training to training, such as times and ids, say nothing of the data."""
    a, b = one.model or {}, again.model or {}
    return replace(one, fleeting=frozenset(part for part in {**a, **b} if a.get(part) != b.get(part)))


def steps(pipeline: Pipeline, usual: Replay, late: Replay, walk: float) -> Finding:
    """No more steps than are accounted, and the same number whatever is drawn. `late` is another whole training."""
    name, accounted, counts = "steps", int(pipeline.privacy.steps), [usual.n_steps, late.n_steps]
    if min(counts) < accounted:
        counts += [pipeline.replay(MORE + seed, walk=walk, keep=[]).n_steps for seed in range(MORE)]
    most, least, rests = max(counts), min(counts), f"{len(counts)} whole trainings."
    if most > accounted:
        text = f"The training made {most} steps, where {accounted} are accounted."
        return refuted("P115", text, rests, steps=most, measured=most, allowed=accounted)
    if most > least:
        text = f"Trainings with other seeds made from {least} to {most} steps; {accounted} are accounted."
        more = " If batches without records are left out, make them steps with noise."
        return refuted("P116", text + more, rests, measured=least, allowed=accounted)
    return consistent(name, f"The training made {most} steps; {accounted} are accounted.", rests)


def bypass(pipeline: Pipeline, records: Records, usual: Replay, walk: float) -> Finding:
    """Replace one record, or all: the same updates must give the same model.

    If it changes when all are replaced, one after the other, then it changes with one of them.
    """
    name, everywhere = "bypass", range(len(pipeline.members))
    place = int(np.flatnonzero(pipeline.members == records.targets[0])[0])
    names = [*(n for n in TELLING if n in records.crafted), *(n for n in records.crafted if n not in TELLING)]
    tries = [(f"record {what}", {place: records.crafted[what]}) for what in names]
    copies = [(f"copies of record {what} alone", dict.fromkeys(everywhere, records.crafted[what])) for what in names]
    tried = 0
    others = (_first_of(pipeline, each, walk) for each in (tries, copies))
    for what, other in itertools.chain.from_iterable(others):
        if not usual.clipped_like(other):
            return not_tested(name, ADAPTIVE)
        tried += 1
        found = _difference(usual, other)
        rests = f"A whole training whose updates are scripted, and the same with {what}."
        if found is not None:
            text = f"The model depends on the data other than through its updates: {found}."
            return refuted("P117", text, rests, where=what)
    if not tried:
        return not_tested(name, "The training refuses the records that were tried.")
    text = "With the same updates, the model is the same whatever the data."
    return consistent(name, text, f"Whole trainings whose updates are scripted, with {tried} other data sets.")


def _first_of(pipeline: Pipeline, tries: list[tuple[str, dict[int, int]]], walk: float) -> Iterator[tuple[str, Replay]]:
    """The first trainings that are not refused."""
    made = ((what, pipeline.replayed(put=put, walk=walk)) for what, put in tries)
    return itertools.islice(((what, other) for what, other in made if other is not None), TRIED)


def left_out(pipeline: Pipeline, usual: Replay, walk: float, rates: Rates | None) -> Finding:
    """Leave one record out: nothing but the updates may tell. Leave half of them out: batches have half as many."""
    name = "left out"
    other = pipeline.replayed(leave_out=len(pipeline.members) - 1, walk=walk)
    if other is None:
        return not_tested(name, "The training refuses a data set with one record fewer.")
    if len(usual.norms) > 1:
        return not_tested(name, ADAPTIVE)
    rests = "A whole training whose updates are scripted, and the same with one record left out."
    code, found = "P118", _difference(usual, other)
    if found is not None and _counts(usual) == _counts(other) and _drawn_late(pipeline):
        return not_tested(name, "The start is drawn after the batches: draw it first, or from a seed of its own.")
    if usual.divisors != other.divisors:
        sizes = " and ".join(told_apart(*(next(iter(each.divisors)) for each in (usual, other))))
        code, found = (
            "P119",
            f"sums of gradients are divided by a batch size that comes from the number of records ({sizes})",
        )
    if found is not None:
        more = "Under adding and removing that must not show: compute rate, steps and batch size from a public number."
        return refuted(code, f"With one record fewer, {found}. {more}", rests, where="the last record")
    if rates is not None and rates.chance < SHARE:
        found = f"batches have about {rates.fewer:.3g} of {rates.of} records, where {rates.usual:.3g} are expected"
        more = "The sampling rate comes from the number of records, which must not show: use a public number."
        return refuted("P120", f"With half of the records, {found}. {more}", rests, exact=False)
    return consistent(name, "With one record fewer, nothing changes but the updates.", rests, exact=False)


def _counts(each: Replay) -> tuple[object, ...]:
    return each.n_steps, each.norms, each.divisors, each.shapes


def _drawn_late(pipeline: Pipeline) -> bool:
    """Whether a model that stands still is another one with another seed, and with one record less: only chance is."""
    still = _lasting(pipeline.replay(), pipeline.replay())
    other, less = pipeline.replay(1), pipeline.replayed(leave_out=len(pipeline.members) - 1)
    return less is not None and _difference(still, less) is not None and _difference(still, other) is not None


def _difference(one: Replay, other: Replay) -> str | None:
    if one.n_steps != other.n_steps:
        return f"{one.n_steps} steps became {other.n_steps}"
    if one.norms != other.norms:
        return "the clipping norm changed"
    if one.shapes != other.shapes:
        return "the parameters have other shapes"
    a, b = one.model or {}, other.model or {}
    parts = [part for part in {**a, **b} if part not in one.fleeting and a.get(part) != b.get(part)]
    if not parts:
        return None
    return f"{parts[0]} changed" + (f", and {len(parts) - 1} more of its parts" if len(parts) > 1 else "")
