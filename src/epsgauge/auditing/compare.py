"""Runs side by side: distribution functions of ε on one grid, intervals, and how far each is from the first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np

from epsgauge.adjacency import Adjacency
from epsgauge.auditing.audit import Audit, audit_run, logged
from epsgauge.auditing.family import Family
from epsgauge.auditing.setup import Setup, setup_of
from epsgauge.display import Plotted
from epsgauge.errors import InvalidInput
from epsgauge.plain import plain
from epsgauge.runner.view import Run
from epsgauge.scores.rules import Given
from epsgauge.settings import OF_A_RULE
from epsgauge.stats.arrays import Floats
from epsgauge.stats.posterior import Posterior

POINTS = 300
T = TypeVar("T")
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
    rule: str  # how the rules were chosen, in words
    grid: Floats
    runs: tuple[Compared, ...]
    family: Family  # what the verdicts promise together

    @property
    def of_adversaries(self) -> bool:
        """Whether the runs differ in what their adversaries may do."""
        return len({str(run.audit.adversary.powers) for run in self.runs}) > 1

    def to_json(self) -> dict[str, Any]:
        """Plain values; infinite numbers are floats still."""
        return {
            "adjacency": self.adjacency,
            "delta": self.delta,
            "level": self.level,
            "rule": self.rule,
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
    rule: Literal["shared", "best"] = "shared",
    percentile: float | None = None,
    target_fpr: float | None = None,
    family_wise: bool = False,
    **settings: Any,
) -> Comparison:
    """Audit each run and set their posteriors side by side; `settings` are those of a plan's `[audit]` table.

    Runs may have different adversaries with "best": then a page of them begins with what each adversary shows.

    "shared": the models of the first run that choose its rule choose for all runs. In a run with the same seed, models
    of these numbers are not judged: they share bits and noise. The others did not declare that rule, so what is said of
    them is an estimate. "best": each run chooses its own. Both choose the largest lower bound, or the FPR `target_fpr`.
    A `percentile` is that of all runs, fixed beforehand.

    Each verdict holds by itself. With `family_wise` what verdicts and intervals may miss is divided by the number of
    runs. Then all hold together at the level that each had, if this set of runs was fixed before results were seen.
    """
    if len(runs) < 2:
        raise InvalidInput(f"a comparison needs two runs or more, but got {len(runs)}.")
    if rule not in ("shared", "best"):
        raise InvalidInput(f'rule must be "shared" or "best", but got {rule!r}.')
    if percentile is not None:
        settings |= {"rule": "given", "percentile": percentile, "threshold": None}
    if target_fpr is not None:
        settings["target_fpr"] = target_fpr
    used = [setup_of(run.plan.audit, settings) for run in runs]
    adjacency = _same("adjacency", [run.plan.game.adjacency for run in runs], "They are different promises.")
    delta = _same("delta", [s.settings.delta for s in used], "Pass one delta for all.")
    _same("level", [s.settings.level for s in used], "Pass one level for all.")
    if rule == "shared":
        _check_one_rule(runs, used)
    if rule == "shared" and used[0].settings.rule == "split-pairs":
        raise InvalidInput(
            'one rule for all cannot be chosen by rule = "split-pairs": pairs of every model choose it, and no model '
            'is left that it has not seen. Use rule="best", a percentile, or rule = "split".'
        )
    said, audits = _audits(runs, rule, settings, len(runs) if family_wise else 1)
    audits = [logged(found, using, "compare") for found, using in zip(audits, used, strict=True)]
    posteriors = [found.posterior for found in audits]
    right = max(float(p.isf(0.005)) for p in posteriors)
    grid = np.unique(np.concatenate([np.linspace(0.0, right, POINTS), *(_quantiles(p) for p in posteriors)]))
    grid = grid[grid <= right]
    labels = _labels(runs)
    compared = [_compared(label, a, audits[0], grid) for label, a in zip(labels, audits, strict=True)]
    levels = tuple(found.verdict.level for found in audits if found.verdict.promise == "guaranteed")
    family, level = Family(len(runs), levels, family_wise), audits[0].settings.level
    return Comparison(adjacency, delta, level, said, grid, tuple(compared), family)


def _check_one_rule(runs: Sequence[Run], used: Sequence[Setup]) -> None:
    """Scores of different attacks have no threshold in common."""
    each = 'They are different adversaries. With rule="best" each has a rule of its own, and their ε are one picture.'
    _same("attack", [s.settings.attack for s in used], "Pass one for all: --attack (attack=). Or " + each)
    _same("sees", [run.plan.game.sees for run in runs], each)
    _same("adversary", [str(run.plan.adversary) for run in runs], each)
    _same("challenge", [run.plan.game.challenge for run in runs], each)
    _same("pool_size", [run.plan.game.pool_size for run in runs], "Set one for every m of a comparison.")
    if used[0].attack.has_percentiles:
        _same("reference_size", [run.plan.game.reference_size for run in runs], "The rule counts reference losses.")


def largest_difference(first: Posterior, second: Posterior) -> tuple[float, float]:
    """sup |F − G|, and where; both may jump at 0, which then is a quantile, and are smooth above it."""
    x = np.unique(np.concatenate([_quantiles(first), _quantiles(second)]))
    for _ in range(3):  # the quantiles of both, then ever finer around the largest
        gap = np.abs(first.cdf(x) - second.cdf(x))
        best = int(np.argmax(gap))
        value, at = float(gap[best]), float(x[best])
        x = np.linspace(x[max(best - 1, 0)], x[min(best + 1, len(x) - 1)], 65)
    return value, at


def _audits(runs: Sequence[Run], rule: str, settings: dict[str, Any], among: int) -> tuple[str, list[Audit]]:
    first = audit_run(runs[0], settings, among=among)
    if rule == "best" or isinstance(first.judged.choice, Given):
        given = f"one rule for all: {first.adversary.rule}"
        said = given if isinstance(first.judged.choice, Given) else "each run chooses its own rule"
        return said, [first, *(audit_run(run, settings, among=among) for run in runs[1:])]
    others = {name: value for name, value in settings.items() if name not in OF_A_RULE}
    others |= {"rule": "given", "threshold": first.judged.threshold}
    rest = [audit_run(run, others, skipped=_had_a_say(first, run), among=among) for run in runs[1:]]
    return f"one rule for all: {first.adversary.rule} of the first run", [first, *rest]


def _had_a_say(first: Audit, run: Run) -> int:
    """How many models of a run, from the first on, share bits and noise with those that chose the rule."""
    same_seed = first.run is not None and run.plan.seed == first.run.plan.seed
    shared = int(first.judged.fit_models.max()) + 1 if same_seed else 0
    if not (run.done >= shared).any():
        raise InvalidInput(
            f"{run.path} has no model that is independent of the {shared} used to pick the threshold: its seed is "
            "theirs. Give the runs different seeds, and one points_seed so that they share their points; or "
            'let each run choose its own rule, with rule="best".'
        )
    return shared


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


def _same(name: str, values: list[T], remedy: str) -> T:
    if any(value != values[0] for value in values):
        found = ", ".join(dict.fromkeys(str(value) for value in values))
        raise InvalidInput(f"runs that are compared must have one {name}, but have {found}. {remedy}")
    return values[0]
