"""Copies: trainings without noise on one record again and again, whose updates say how long its gradient is."""

from __future__ import annotations

import numpy as np

from epsgauge.probing.finding import SHARE, Finding, not_tested
from epsgauge.probing.pipeline import Pipeline
from epsgauge.probing.records import Records
from epsgauge.stats import special
from epsgauge.stats.arrays import Floats

# Crafted records that are tried.
TRIED = 12
# Lengths are rounded, too.
ROUNDING = 1e-3


def copies(pipeline: Pipeline, records: Records, stop: int) -> dict[str, Floats]:
    """The length of each sum of clipped gradients, in clipping norms: that of one, times the copies in a batch."""
    out: dict[str, Floats] = {}
    if pipeline.quiet is None:
        return out
    for name, index in list(records.crafted.items())[-TRIED:]:
        found = pipeline.replayed(put=dict.fromkeys(range(len(pipeline.members)), index), quiet=True, stop=stop)
        if found is not None and len(found.updates) > 1:
            out[name] = np.array([float(np.linalg.norm(update.astype(np.float64))) for update in found.updates])
    return out


def one_record(pipeline: Pipeline, sums: dict[str, Floats]) -> Finding:
    """A clipped gradient is no longer than C: all sums together have at most so many terms, but for a small chance."""
    name, q, n = "one record", float(pipeline.privacy.sample_rate), len(pipeline.members)
    if not sums:
        return not_tested(name, "A training without noise on copies of one record was not possible.")
    lengths = {}
    for what, found in sums.items():
        trials = n * len(found)
        terms = trials if q == 1 else int(special.bdtrik(1 - SHARE / len(sums), trials, q)) + 1
        lengths[what] = float(found.sum()) / terms
    longest = max(lengths, key=lambda what: lengths[what])
    length, rests = lengths[longest], f"{len(sums)} trainings without noise on copies of one record; batches by coins."
    text = f"The clipped gradient of record {longest} has a length of at least {length:.3g} clipping norms"
    if length > 1 + ROUNDING:
        return Finding(name, "refuted", f"{text}, where 1 is allowed.", rests, exact=False)
    return Finding(name, "consistent", f"{text}, of 1 allowed.", rests, exact=False)
