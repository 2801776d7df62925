"""Sensitivity: how far one record can move an update, whatever the record."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass

import numpy as np

from epsgauge.numbers import told_apart
from epsgauge.probing.ball import radius
from epsgauge.probing.company import ABOVE, Rung, among_alike, by_content, first_clipped
from epsgauge.probing.finding import Finding, consistent, not_tested, refuted
from epsgauge.probing.pipeline import Pipeline, Replay
from epsgauge.probing.records import Records
from epsgauge.probing.taking_part import TakingPart, moved_by
from epsgauge.stats.arrays import Floats

# In clipping norms: two clipped gradients are at most so far apart.
ALLOWED = {"replacing": 2.0, "adding": 1.0}
# Crafted records that are tried late in a training, and added, too.
LATE = [
    "huge",
    "huge, other label",
    "large-norm (z1)",
    "large-norm (z0)",
    "outlier (z1)",
    "opposite (z1)",
    "opposite (z0)",
]
# Seeds of which one draws the last record in the first step, and others do not; and how many do not, at least.
SEEDS, WITHOUT = 16, 2
# Sums in float32 are rounded.
ROUNDING = 1e-3
# Records of which it is seen when they take part in a whole training.
TARGETS = 3
ORDERED = "The training orders its records, so that one takes part in other steps if it is replaced."
Where = tuple[int, int, int | None]  # a model, a place in its training set, and a step


def sensitivity(
    pipeline: Pipeline, records: Records, seen: TakingPart, walk: float, *, quiet: bool, late: bool, stop: int
) -> Finding:
    """The same step with each of the crafted records in one place: all updates are within 2C of each other.

    At the first step at which a record takes part, and, if `late`, at the last one of a whole training, and with
    records of many lengths. `quiet` says whether the noise can be turned off without another change.
    """
    name, at = "sensitivity", seen.first
    if at is None:
        return not_tested(name, "No record that was replaced took part in a step that was seen.")
    if seen.norms is not None:
        text = "Replacing a record of a batch changed the clipping norm of its step from {} to {}."
        more = " Choose it from public numbers, or from noisy ones of the steps before."
        return refuted("P152", text.format(*told_apart(*seen.norms)) + more, "Ordinary records.")
    model, target, step = at
    first: Where = (model, int(seen.places[target]), step)
    last = _last(pipeline, records, seen, walk) if late and not seen.adapts else (0, 0, None)
    rung = first_clipped(pipeline, records, first[1], model, step, walk) if late else None
    (far, which), tried, reach = seen.farthest, 0, 0.0
    who, where, pair = "an ordinary record by another one", first, (records.targets[which], records.instead[which])
    for place, tries in (
        (first, records.crafted | _of_norm(rung)),
        (last, {n: records.crafted[n] for n in LATE if n in records.crafted}),
    ):
        updates = updates_with(pipeline, tries, place, walk)
        tried += len(updates)
        rests = f"One seed; {tried} crafted records, and {seen.direct.sum()} steps with ordinary ones."
        spoilt = [what for what, update in updates.items() if not np.isfinite(update).all()]
        if spoilt:
            text = f"Record {spoilt[0]} makes an update NaN or infinite, which clipping would not."
            return refuted("P106", text, rests, noise=0.0, where=f"record {spoilt[0]}")
        if updates:
            size = max(float(np.linalg.norm(update)) for update in updates.values())
            reach = max(reach, radius(list(updates.values())) - seen.unit * size)
        for (a, x), (b, y) in itertools.combinations(updates.items(), 2):
            moved = moved_by(x, y, seen.unit)
            if moved > far:
                far, who, where, pair = moved, f"record {a} by {b}", place, (tries[a], tries[b])
    allowed, added = ALLOWED["replacing"], _Added(0.0, "")
    two = {"measured": far, "allowed": allowed}
    if far > allowed * (1 + ROUNDING):
        if by_content(pipeline, seen, *pair, stop):
            return not_tested(name, ORDERED)
        here, most = told_apart(far, allowed)
        text = f"Replacing {who} moved an update by {here} clipping norms; clipped gradients allow {most}."
        return refuted("P104", text, rests, reach=far / allowed, where=_at(who, where), **two)
    text = f"Replacing {who} moved an update by {far:.3g} clipping norms, of {allowed:g} allowed."
    if pipeline.adjacency == "add-remove":
        added, allowed = adding(pipeline, records, quiet=quiet), ALLOWED["adding"]
        text += f" {added.said}"
        if added.far > allowed * (1 + ROUNDING):
            reach = min(added.far, ALLOWED["replacing"])
            text = f"{added.said} Clipped gradients allow {allowed:g}."
            two = {"measured": added.far, "allowed": allowed}
            return refuted("P105", text, rests, reach=reach, where="the last record, step 1", **two)
    together = 0.0 if seen.adapts else among_alike(pipeline, records, seen, rung, stop)
    if together > ALLOWED["replacing"] * (1 + ROUNDING):
        here, most = told_apart(together, ALLOWED["replacing"])
        others = "records that are alike" if rung is not None else "copies of the shortest record"
        by = "" if rung is not None else " by the longest"
        alike = f"Among {others}, replacing one{by} moved an update by {here} clipping norms"
        reach, more = together / ALLOWED["replacing"], "What a record adds depends on the others of its batch."
        two = {"measured": together, "allowed": ALLOWED["replacing"]}
        return refuted("P153", f"{alike}; clipped gradients allow {most}. {more}", rests, reach=reach, **two)
    spoils = _with_nan(pipeline, records, first, walk)
    farthest = max(max(far, together) / ALLOWED["replacing"], added.far, reach)
    return consistent(name, text + spoils, rests, measured=farthest, allowed=1.0)


def _of_norm(rung: Rung | None) -> dict[str, int]:
    """Records whose gradients are a little longer than the clipping norm, and one in the opposite direction."""
    if rung is None:
        return {}
    return {f"a little longer ({i + 1})": rung.up(i) for i in range(ABOVE)} | {"opposite to it": rung.ladder.opposite}


def _at(who: str, where: Where) -> str:
    model, place, step = where
    return f"{who}, place {place + 1}, model {model + 1}, step {(step or 0) + 1}"


@dataclass(frozen=True)
class _Added:
    far: float  # in clipping norms
    said: str


def adding(pipeline: Pipeline, records: Records, *, quiet: bool) -> _Added:
    """How far a record moves the first update when it comes last, compared with a training without it.

    With one number more to draw, batches and noise of later steps may be others, and so may be those of the first. So
    it is seen first that a last record that is not in a batch changes nothing.
    """
    last, q = len(pipeline.members) - 1, float(pipeline.privacy.sample_rate)
    other, no = int(records.instead[0]), "Adding a record was not tested:"
    idle, drawn = 0, -1
    for seed in range(SEEDS):
        usual, changed = (pipeline.replay(seed, put=put, stop=1, quiet=quiet) for put in (None, {last: other}))
        if usual.digests != changed.digests:
            drawn = seed if drawn < 0 else drawn
        elif idle < WITHOUT:
            without = pipeline.replayed(seed, leave_out=last, stop=1, quiet=quiet)
            if without is None or not _same(usual, without):
                return _Added(0.0, f"{no} with one record fewer, others are drawn.")
            idle += 1
        if drawn >= 0 and (idle == WITHOUT or (q == 1 and quiet)):
            break
    else:
        return _Added(0.0, f"{no} among {SEEDS} first steps, none was fit for it.")
    usual = pipeline.replay(drawn, stop=1, quiet=quiet)
    without = pipeline.replayed(drawn, leave_out=last, stop=1, quiet=quiet)
    moved = {}
    for what in LATE:
        put = {last: records.crafted.get(what, other)}
        there = pipeline.replayed(drawn, put=put, stop=1, quiet=quiet)
        if there is not None and without is not None and there.drew_like(usual) and there.updates and without.updates:
            moved[what] = moved_by(there.updates[0].astype(np.float64), without.updates[0], there.unit)
    if not moved:
        return _Added(0.0, f"{no} the training refuses such records.")
    far = max(moved.values())
    here = told_apart(far, ALLOWED["adding"])[0] if far > ALLOWED["adding"] * (1 + ROUNDING) else f"{far:.3g}"
    return _Added(far, f"Adding one moved an update by {here}.")


def _same(one: Replay, other: Replay) -> bool:
    """But for rounding, as sums are divided by the number of records, and multiplied by it again."""
    return all(
        np.allclose(a, b, atol=ROUNDING, rtol=ROUNDING) for a, b in zip(one.updates, other.updates, strict=False)
    )


def updates_with(pipeline: Pipeline, crafted: dict[str, int], at: Where, walk: float) -> dict[str, Floats]:
    """Of one step, with each of these records in a place of a model's training set.

    Without those that it refuses, and those for which it draws other random numbers than for most.
    """
    found: dict[str, Replay] = {}
    model, place, step = at
    if step is None:
        return {}
    for what, index in crafted.items():
        again = pipeline.replayed(model, put={place: index}, stop=step + 1, keep=[step], walk=walk)
        if again is not None and again.kept == [step]:
            found[what] = again
    usual = Counter(again.states[-1] for again in found.values()).most_common(1)
    return {
        what: again.updates[0].astype(np.float64) for what, again in found.items() if again.states[-1] == usual[0][0]
    }


def _last(pipeline: Pipeline, records: Records, seen: TakingPart, walk: float) -> Where:
    """The last step of a whole training at which one of some targets takes part, if it was not seen before."""
    usual = pipeline.replay(0, walk=walk, keep=[])
    found: Where = (0, 0, None)
    for place, other in zip(seen.places[:TARGETS].tolist(), records.instead.tolist(), strict=False):
        changed = pipeline.replay(0, put={place: other}, walk=walk, keep=[])
        steps = [i for i, (a, b) in enumerate(zip(usual.digests, changed.digests, strict=False)) if a != b]
        if steps and steps[-1] >= max(seen.steps.shape[2], (found[2] or 0) + 1):
            found = 0, place, steps[-1]
    return found


def _with_nan(pipeline: Pipeline, records: Records, at: Where, walk: float) -> str:
    updates = {} if records.spoilt is None else updates_with(pipeline, {"NaN": records.spoilt}, at, walk)
    if all(np.isfinite(update).all() for update in updates.values()):
        return ""
    return " A record with NaN would spoil the whole update: keep such records out."
