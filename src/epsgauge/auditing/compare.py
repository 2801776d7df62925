"""Runs side by side: distribution functions of ε on one grid, intervals, and how far each is from the first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from epsgauge.adjacency import Adjacency
from epsgauge.auditing.audit import Audit, audit_run, logged
from epsgauge.auditing.family import Family
from epsgauge.auditing.one_rule import NoOneRule, check_one_rule, same, with_one_rule
from epsgauge.auditing.setup import setup_of
from epsgauge.display import Plotted
from epsgauge.errors import InvalidInput
from epsgauge.plain import plain
from epsgauge.runner.view import Run
from epsgauge.scores.rules import Given
from epsgauge.stats.arrays import Floats
from epsgauge.stats.posterior import Posterior

POINTS = 300
Rule = Literal["auto", "shared", "best"]
RULES: tuple[Rule, ...] = get_args(Rule)
# Where curves are compared first: at so many quantiles of each, with tails this small.
QUANTILES = 200
TAIL = 1e-4


@dataclass(frozen=True, eq=False)
class Compared:
    """One run of a comparison."""

    label: str
    audit: Audit
    cdf: Floats  # along the grid of the comparison
    low: float
    high: float
    median: float
    difference: float  # the largest |F − F of the first|
    at: float  # the ε where it is


@dataclass(frozen=True, eq=False)
class Comparison(Plotted):
    """Runs with one adjacency, one δ and one level."""

    adjacency: Adjacency
    delta: float
    level: float
    asked: Rule
    rule: str  # how the rules were chosen, in words
    notes: tuple[str, ...]  # which runs have a rule of their own after all, and why
    grid: Floats
    runs: tuple[Compared, ...]
    family: Family  # what the verdicts promise together

    @property
    def of_adversaries(self) -> bool:
        """Whether the runs differ in what their adversaries may do."""
        return len({str(run.audit.adversary.powers) for run in self.runs}) > 1

    @property
    def warnings(self) -> tuple[str, ...]:
        """The notes, and the warnings of each run with its label."""
        of_runs = (f"{run.label}: {text}" for run in self.runs for text in run.audit.warnings)
        return tuple(dict.fromkeys((*self.notes, *of_runs)))

    def to_json(self) -> dict[str, Any]:
        """Plain values; infinite numbers are floats still."""
        return {
            "adjacency": self.adjacency,
            "delta": self.delta,
            "level": self.level,
            "rule": self.rule,
            "notes": list(self.notes),
            "family": self.family.to_json(),
            "grid": self.grid.tolist(),
            "runs": [
                {
                    "label": run.label,
                    "median": run.median,
                    "low": run.low,
                    "high": run.high,
                    "largest_cdf_difference": run.difference,
                    "at": run.at,
                    "cdf": run.cdf.tolist(),
                    "audit": run.audit.to_json(),
                }
                for run in self.runs
            ],
        }


def compare(
    runs: Sequence[Run],
    *,
    rule: Rule = "auto",
    percentile: float | None = None,
    target_fpr: float | None = None,
    family_wise: bool = False,
    **settings: Any,
) -> Comparison:
    """Audit each run and set their posteriors side by side; `settings` are those of a plan's `[audit]` table.

    "shared": the models of the first run that choose its rule choose for all runs. In a run with the same seed, models
    of these numbers are not judged: they share bits and noise. The others did not declare that rule, so what is said of
    them is an estimate. "best": each run has the attack and rule that it declared, and runs may have different
    adversaries: then a page of them begins with what each adversary shows. Both choose the largest lower bound, or the
    FPR `target_fpr`. A `percentile` is that of all runs, fixed beforehand.

    "auto": shared where runs can share a rule, except for a run whose own rule proves what the shared one does not
    show; `notes` says which. No rule is chosen by that: a run's own is the one that it declared.

    Each verdict holds by itself. With `family_wise` what verdicts and intervals may miss is divided by the number of
    runs. Then all hold together at the level that each had, if this set of runs was fixed before results were seen.
    """
    if len(runs) < 2:
        raise InvalidInput(f"a comparison needs two runs or more, but got {len(runs)}.")
    if rule not in RULES:
        raise InvalidInput(f'rule must be "auto", "shared" or "best", but got {rule!r}.')
    if percentile is not None:
        settings |= {"rule": "given", "percentile": percentile, "threshold": None}
    if target_fpr is not None:
        settings["target_fpr"] = target_fpr
    used = [setup_of(run.plan.audit, settings) for run in runs]
    adjacency = same("adjacency", [run.plan.game.adjacency for run in runs], "They are different promises.")
    delta = same("delta", [s.settings.delta for s in used], "Pass one delta for all.")
    same("level", [s.settings.level for s in used], "Pass one level for all.")
    labels, notes, shares = _labels(runs), [], rule != "best"
    if shares:
        try:
            check_one_rule(runs, used)
        except NoOneRule as reason:
            if rule == "shared":
                raise
            shares = False
            notes.append(f"{reason.why}, so each run is judged by the attack and rule of its own.")
    among = len(runs) if family_wise else 1
    if shares:
        said, audits, own = with_one_rule(runs, labels, settings, among, strictly=rule == "shared")
        notes += own
    else:
        said, audits = "each run chooses its own rule", [audit_run(run, settings, among=among) for run in runs]
        if isinstance(audits[0].judged.choice, Given) and not notes:
            said = f"one rule for all: {audits[0].adversary.rule}"
    audits = [logged(found, using, "compare") for found, using in zip(audits, used, strict=True)]
    posteriors = [found.posterior for found in audits]
    right = max(float(p.isf(0.005)) for p in posteriors)
    grid = np.unique(np.concatenate([np.linspace(0.0, right, POINTS), *(_quantiles(p) for p in posteriors)]))
    grid = grid[grid <= right]
    compared = [_compared(label, a, audits[0], grid) for label, a in zip(labels, audits, strict=True)]
    levels = tuple(found.verdict.level for found in audits if found.verdict.promise == "guaranteed")
    family, level = Family(len(runs), levels, family_wise), audits[0].settings.level
    return Comparison(adjacency, delta, level, rule, said, tuple(notes), grid, tuple(compared), family)


def largest_difference(first: Posterior, second: Posterior) -> tuple[float, float]:
    """sup |F − G|, and where; both may jump at 0, which then is a quantile, and are smooth above it."""
    x = np.unique(np.concatenate([_quantiles(first), _quantiles(second)]))
    for _ in range(3):  # the quantiles of both, then ever finer around the largest
        gap = np.abs(first.cdf(x) - second.cdf(x))
        best = int(np.argmax(gap))
        value, at = float(gap[best]), float(x[best])
        x = np.linspace(x[max(best - 1, 0)], x[min(best + 1, len(x) - 1)], 65)
    return value, at


def _compared(label: str, found: Audit, first: Audit, grid: Floats) -> Compared:
    posterior = found.posterior
    ends = posterior.interval(found.settings.level)
    difference, at = (0.0, 0.0) if found is first else largest_difference(first.posterior, posterior)
    return Compared(
        label,
        found,
        np.asarray(posterior.cdf(grid)),
        float(ends.low),
        float(ends.high),
        float(posterior.median()),
        difference,
        at,
    )


def _quantiles(posterior: Posterior) -> Floats:
    return np.asarray(posterior.quantile(np.linspace(TAIL, 1.0 - TAIL, QUANTILES)))


def _labels(runs: Sequence[Run]) -> list[str]:
    """The names of the plans where they differ, else the folders."""
    names = [plain(run.plan.name) for run in runs]
    paths = [plain(str(run.path)) for run in runs]
    return names if len(set(names)) == len(names) else paths
