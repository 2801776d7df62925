"""Empty batches: a step that draws no record is a step all the same, and adds its noise."""

from __future__ import annotations

import math

import numpy as np

from epsgauge.probing.finding import Finding, consistent, not_tested, refuted
from epsgauge.probing.pipeline import Pipeline, Replay
from epsgauge.stats import special
from epsgauge.trainers.protocol import knows_size

# Records that are left, so that most batches are empty and the others tiny.
LEFT = 2
# So rarely do steps have no record in a training on enough of them.
RARELY = 1e-4


def can_be_empty(pipeline: Pipeline) -> bool:
    """Only if the trainer takes `size`: else its rate would be another one with so few records."""
    return knows_size(pipeline.trainer) and pipeline.privacy.sample_rate <= 0.5


def empty(pipeline: Pipeline, base: list[Replay], stop: int, delta: float) -> Finding:
    """What happens less often than δ is no violation."""
    q, n, steps = float(pipeline.privacy.sample_rate), len(pipeline.members), int(pipeline.privacy.steps)
    name, rests = "empty batches", f"A training on {LEFT} records, sampled as if there were {n}."
    found = pipeline.replayed(only=LEFT, stop=stop)
    if found is None:
        return not_tested(name, "The training fails on so few records, or on batches without any.")
    if found.n_steps < base[0].n_steps:
        if _by_records(pipeline):
            why = "The number of steps comes from the number of records, although train takes size."
            return not_tested(name, f"{why} Compute it from size.")
        code, what = "P113", "Steps are left out for batches without records"
    elif not all(np.isfinite(update).all() for update in found.updates):
        code, what = "P114", "A batch without records, or with one, gives an update of NaN"
    else:
        return consistent(name, "A batch without records makes a step with noise, as any other.", rests)
    often = -math.expm1(steps * math.log1p(-((1 - q) ** n)))  # Pr[any batch of a training is empty]
    text = f"{what}; the chance of an empty batch is {often:.2g}."
    return refuted(code, text, rests) if often > delta else consistent(name, text, rests)


def _by_records(pipeline: Pipeline) -> bool:
    """Whether fewer records give fewer steps than batches without records would, if these were left out."""
    q, steps, n = float(pipeline.privacy.sample_rate), int(pipeline.privacy.steps), len(pipeline.members)
    enough = math.ceil(math.log(RARELY / steps) / math.log1p(-q))  # for a record in every batch
    left = enough if enough < n else n // 2
    fewer, usual = pipeline.replayed(only=left, keep=[]), pipeline.replay(keep=[]).n_steps
    return fewer is not None and float(special.bdtr(fewer.n_steps, usual, 1 - (1 - q) ** left)) < 2 * RARELY
