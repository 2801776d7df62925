"""Cohorts: what an attack shows of each group of challenge points, at levels that hold together, and how they differ.

Groups that are attacked unequally: Yaghini, Kulynych, Cherubin and Troncoso, "Disparate vulnerability to membership
inference attacks" (arXiv:1906.00389), where the vulnerability of a group is the attack's advantage TPR − FPR on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from epsgauge.auditing.audit import Audit, audit_scores
from epsgauge.auditing.direction import check_direction
from epsgauge.auditing.family import Family
from epsgauge.errors import InvalidInput
from epsgauge.methods.facts import INDEPENDENT, NUMBER_FIXED, RULE_FIXED
from epsgauge.numbers import level_percent, short
from epsgauge.scores.table import Scores
from epsgauge.stats.arrays import Floats, Ints
from epsgauge.stats.interval import Kind
from epsgauge.stats.rates import clopper_pearson

FEWEST = 10  # rows of either bit in a group that is separated by chance hardly ever
OF_RATES = {INDEPENDENT, RULE_FIXED, NUMBER_FIXED}  # what limits of two rates assume


@dataclass(frozen=True, eq=False)
class Cohort:
    """One group: its audit, and the attack's advantage TPR − FPR on it within limits that hold for all cohorts."""

    name: str
    audit: Audit
    advantage: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Cohorts:
    """The groups of a table of scores, in the order of their names."""

    cohorts: tuple[Cohort, ...]
    level: float  # at which all advantages are within their limits
    promise: Kind  # of that level
    family: Family  # what the verdicts promise together

    @property
    def disparity(self) -> float:
        """By how much the attack's advantage on some group is larger than on another, at least."""
        return max(0.0, self._most.low - self._least.high)

    @property
    def sentence(self) -> str:
        """What the groups show about each other."""
        at = f"at {level_percent(self.level)} for all groups together, {self.promise}"
        if not self.disparity:
            return f"No group is shown to be attacked better than another (TPR − FPR, {at})."
        return (
            f"Group {self._most.name} is attacked better than group {self._least.name}: TPR − FPR is larger by "
            f"{short(self.disparity)} or more ({at})."
        )

    @property
    def _most(self) -> Cohort:
        return max(self.cohorts, key=lambda cohort: cohort.low)

    @property
    def _least(self) -> Cohort:
        return min(self.cohorts, key=lambda cohort: cohort.high)

    def to_json(self) -> dict[str, Any]:
        """Plain values; infinite numbers are floats still."""
        return {
            "cohorts": [
                {
                    "name": cohort.name,
                    "advantage": cohort.advantage,
                    "low": cohort.low,
                    "high": cohort.high,
                    "audit": cohort.audit.to_json(),
                }
                for cohort in self.cohorts
            ],
            "level": self.level,
            "promise": self.promise,
            "disparity": self.disparity,
            "sentence": self.sentence,
            "family": self.family.to_json(),
        }


def cohorts(
    scores: Scores, *, seed: int | None = None, direction: Literal["kept"] | None = None, **settings: Any
) -> Cohorts:
    """Audit each group of a table by itself; `settings` are those of a plan's `[audit]` table.

    What verdicts and intervals may miss is divided by the number of groups, so that all of them hold together at the
    level that each would have. That is so if a group is a property of the challenge point, fixed before results were
    seen, and says nothing about the bit.
    """
    if not isinstance(scores, Scores):
        raise InvalidInput(
            f"cohorts are those of Scores, but got {type(scores).__name__}. `epsgauge export` writes those of a run."
        )
    if scores.group is None:
        raise InvalidInput("cohorts need scores with the column group. Add it, with a name in each row.")
    names = sorted(set(scores.group.tolist()))
    if len(names) < 2:
        raise InvalidInput(f"cohorts need two groups or more, but all rows are of {names[0]!r}.")
    _check_groups(scores, names)
    if direction is None:
        check_direction(scores)
    audits = []
    for name in names:
        try:
            part = scores[np.asarray(scores.group == name, dtype=bool)]
            audits.append(audit_scores(part, seed, None, settings, among=len(names)))
        except InvalidInput as error:
            raise InvalidInput(f"group {name[:80]!r}: {error}") from None
    asked = 1.0 - (1.0 - audits[0].settings.level) * len(names)
    found = tuple(_cohort(name, audit) for name, audit in zip(names, audits, strict=True))
    kept = all(any(row.promise == "guaranteed" and {*row.assumptions} <= OF_RATES for row in a.rows) for a in audits)
    levels = tuple(audit.verdict.level for audit in audits if audit.verdict.bound.promise == "guaranteed")
    return Cohorts(
        found, asked, "guaranteed" if kept else "estimate", Family(len(names), levels, divided=True, of="groups")
    )


def _check_groups(scores: Scores, names: list[str]) -> None:
    """Refuse groups that are cut by the bits, or by whether guesses were right: they would tell what is guessed."""
    of_each = [scores[np.asarray(scores.group == name, dtype=bool)] for name in names]
    ones = [part.score[part.bit == 1] for part in of_each]
    zeros = [part.score[part.bit == 0] for part in of_each]
    if min(len(scores.bit[scores.bit == bit]) for bit in (0, 1)) and not any(map(_both, ones, zeros)):
        raise InvalidInput(f"a group must not tell the bit, but each group has rows of one bit only. {_MAY_BE}")
    ways = [_apart(*both) for both in zip(ones, zeros, strict=True)]
    if {-1, 1} <= set(ways):
        one, other = (names[ways.index(way)][:80] for way in (1, -1))
        raise InvalidInput(
            f"a group must not depend on guesses, but all scores of ones are above those of zeros in group {one!r} "
            f"and below them in group {other!r}. {_MAY_BE}"
        )


def _apart(ones: Floats, zeros: Floats) -> int:
    """1 if all ones are above all zeros, -1 if all are below, 0 else."""
    if min(len(ones), len(zeros)) < FEWEST:
        return 0
    return int(ones.min() > zeros.max()) - int(ones.max() < zeros.min())


def _both(ones: Floats, zeros: Floats) -> bool:
    return bool(len(ones) and len(zeros))


_MAY_BE = "Groups may depend on the points alone, such as their class or region: not on bits, scores or guesses."


def cohorts_of(audit: Audit, groups: Mapping[int, str]) -> Cohorts:
    """Of the run that was audited, with the groups of its points; judged against the audit's claim at its δ."""
    run = audit.run
    if run is None or audit.attack is None or audit.signals is None:
        raise InvalidInput(
            "groups of points are those of a run, but this audit is of scores. Add a column group to them."
        )
    if not run.complete or run.n_failed or run.extended_after_look:
        raise InvalidInput(
            f"groups need a run whose {run.plan.n_models} models are done and that was not extended after a look, but "
            f"{run.path} has {run.n_done} done and {run.n_failed} failed. Finish it, or begin a new one."
        )
    scores = grouped(audit.attack.scores(audit.signals), audit.signals.pairs, groups)
    settings = {name: getattr(audit.settings, name) for name in ("delta", "level", "verdict_level")}
    if audit.claim is not None:
        claim = {"eps": audit.claim.eps, "delta": audit.claim.delta, "adjacency": audit.claim.adjacency}
        settings |= {f"claimed_{name}": value for name, value in claim.items()}
    return cohorts(scores, direction="kept", **settings)


def grouped(scores: Scores, pairs: Ints, groups: Mapping[int, str]) -> Scores:
    """With the group of each pair's z1, by the index of that point; `pairs` is that of the signals, [n, m, 2]."""
    ones = pairs[..., 1].ravel()
    for missing in (point for point in np.unique(ones).tolist() if point not in groups):
        raise InvalidInput(f"every z1 must have a group, but point {missing} has none. Add it to the file of groups.")
    return replace(scores, group=np.array([groups[point] for point in ones.tolist()], dtype=np.object_))


def _cohort(name: str, audit: Audit) -> Cohort:
    """What the cohort may miss is divided between both rates, so that their difference is within these limits.

    Of several rows of a model one is counted, as the others are not independent of it.
    """
    tally = audit.guaranteed_tally
    level = 1.0 - (1.0 - audit.settings.level) / 2.0
    n_one, n_zero = int(tally.tp + tally.fn), int(tally.fp + tally.tn)
    hits = clopper_pearson(int(tally.tp), n_one, level=level)
    alarms = clopper_pearson(int(tally.fp), n_zero, level=level)
    advantage = float(1.0 - tally.fnr - tally.fpr)
    return Cohort(name, audit, advantage, float(hits.low - alarms.high), float(hits.high - alarms.low))
