"""A clipping norm that adapts: how much noise is in the count of gradients that it follows (Andrew et al. 2021)."""

from __future__ import annotations

import numpy as np

from epsgauge.probing.finding import SHARE, Finding, consistent, not_tested, refuted
from epsgauge.probing.noise import most
from epsgauge.probing.pipeline import Pipeline, Replay
from epsgauge.probing.records import Records
from epsgauge.stats.arrays import Floats

NAME = "adaptive norm"
# Places in which a record is replaced, until it takes part.
PLACES = 4
# Differences of logarithms that are rounding, of numbers and of the first one.
ROUNDING, FAR = 1e-6, 0.1


def adaptive(pipeline: Pipeline, records: Records, models: int, stop: int) -> Finding:
    """How the logarithm of the norm scatters, over how far one record moves it.

    In trainings on copies of a huge record all gradients are above the norm, or none is, so changes of its logarithm
    vary by the noise of the count, or by more. The same training with one short gradient shows how far one record moves
    them: the noise is the same. The learning rate of the norm and the size of a batch cancel.
    """
    huge = next((records.crafted[name] for name in ("huge", "large-norm (z1)") if name in records.crafted), None)
    if huge is None or not records.ladders:
        return not_tested(NAME, "The norm adapts. No records with gradients of very different lengths could be made.")
    everywhere, short = dict.fromkeys(range(len(pipeline.members)), huge), records.ladders[0].rungs[0]
    usual = [pipeline.replayed(model, put=everywhere, stop=stop, keep=[]) for model in range(models)]
    if _scheduled(pipeline, usual, short, stop):
        text = "The clipping norm changes in the same way, whatever the data and the seed."
        return consistent(NAME, text, f"{models} trainings on copies of a huge record, one of a short one.", exact=True)
    changes = [_changes(each) for each in usual if each is not None]
    scatter = [change[change != 0] for change in changes]  # a norm that is at its limit stays there
    squares = sum(float(((part - part.mean()) ** 2).sum()) for part in scatter if len(part))
    free = sum(len(part) - 1 for part in scatter if len(part))
    if len(changes) < models or free < 1:
        return not_tested(NAME, "The norm adapts, but it does not change in trainings on copies of a huge record.")
    moved = np.empty(0)
    for place in range(min(PLACES, len(pipeline.members))):
        other = pipeline.replayed(0, put=everywhere | {place: short}, stop=stop, keep=[])
        if other is not None and usual[0] is not None and other.drew_like(usual[0]):
            size = min(len(changes[0]), other.n_steps - 1)
            apart = np.abs(_changes(other)[:size] - changes[0][:size])
            first = next((far for far in apart if far > ROUNDING), 0.0)  # later norms differ, and what they clip may
            moved = np.append(moved, apart[apart > max(ROUNDING, FAR * first)])
        if len(moved):
            break
    if not len(moved):
        return not_tested(NAME, "The norm changes, but no record that was tried changed it.")
    bound = most(squares, free, SHARE) / float(moved.min())
    bound = 0.0 if bound < ROUNDING else bound
    text = f"The norm follows a count of records with noise of at most {bound:.3g}"
    rests = f"{free} changes of the norm in {models} trainings on copies of a huge record; Gaussian noise."
    stated = pipeline.privacy.norm_noise
    if bound < (stated or ROUNDING):
        text = f"{text}; {stated:.3g} is stated" if stated is not None else "The norm follows the data without noise"
        two = {"measured": bound, "allowed": stated}
        return refuted("P131", f"{text}.", rests, exact=False, where=f"place {place + 1}", **two)
    if stated is None:
        return not_tested(NAME, f"{text}. State it as eg.DPSGD(..., norm_noise=...), the noise that you account for.")
    return consistent(NAME, f"{text}; {stated:.3g} is stated.", rests, exact=False)


def _scheduled(pipeline: Pipeline, huge: list[Replay | None], short: int, stop: int) -> bool:
    """Whether the norm is the same in trainings with other seeds, and on copies of a record with a short gradient."""
    copies = pipeline.replayed(0, put=dict.fromkeys(range(len(pipeline.members)), short), stop=stop, keep=[])
    first, *others = *huge, copies
    return first is not None and all(each is not None and each.clipped_like(first) for each in others)


def _changes(replay: Replay) -> Floats:
    """Of the logarithm of the norm, from step to step."""
    norms = np.array([np.max(np.atleast_1d(norm)) for norm in replay.norm_at], dtype=np.float64)
    return np.diff(np.log(norms))
