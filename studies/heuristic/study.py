"""How far several pairs a model can stand in for one: the paper's heuristic (Section 5), measured.

Runs every setting of a family of data set and network, resumes what was interrupted, and writes plans, scores and
results beside this file.

    python studies/heuristic/study.py digits                   # all settings
    python studies/heuristic/study.py fashion --only dp4-worst
"""

from __future__ import annotations

import argparse
import json
import math
import platform
from pathlib import Path
from typing import Any

import numpy as np
from families import DELTA, FAMILIES, FIT, HERE, LEVEL, Family, N

import epsgauge as eg
from epsgauge.attacks.table import ATTACKS
from epsgauge.auditing.compare import largest_difference
from epsgauge.auditing.forecast import forecast
from epsgauge.scores.search import tally_at


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("family", choices=FAMILIES)
    parser.add_argument("--only", help="one setting, such as dp1-average")
    parser.add_argument("--workers", type=int, help="processes; one for each core if not given")
    parser.add_argument(
        "--runs", type=Path, default=Path("build/studies/heuristic"), help="folder of the run directories"
    )
    args = parser.parse_args()
    family = FAMILIES[args.family]
    for privacy, challenge in family.settings:
        if args.only in (None, f"{privacy}-{challenge}"):
            print(f"{family.name} {privacy} {challenge} …", flush=True)
            result = measured(family, privacy, challenge, args.runs, args.workers)
            write(HERE / "results" / f"{result['setting']}.json", result)
            show(result)


def measured(family: Family, privacy: str, challenge: str, folder: Path, workers: int | None) -> dict[str, Any]:
    """Train, choose the percentile on the first models with m = 1, and tally every m with it."""
    runs = {}
    for m in family.estimates:
        plan = family.plan(privacy, challenge, m)
        runs[m] = eg.run(plan, out=folder / plan.name, workers=workers)
    first = eg.audit(runs[1])
    rows: list[dict[str, Any]] = []
    seconds, baseline = 0.0, None
    for m, run in runs.items():
        write(HERE / "plans" / f"{run.plan.name}.json", run.plan.tables())
        scores = ATTACKS["percentile"].scores(run.signals())
        keep(scores, HERE / "scores" / f"{run.plan.name}.npz")
        judged = scores[scores.model >= FIT] if m == 1 else scores
        shift = FIT if m == 1 else 0
        found, posterior = row(m, family.estimates[m], judged, shift, first.judged.threshold, baseline)
        baseline = posterior if baseline is None else baseline  # the first is m = 1
        rows.append(found)
        seconds += run.plan.n_models * (run.status()["seconds_per_model"] or 0.0)
    return {
        "setting": f"{family.name}-{privacy}-{challenge}",
        "percentile": first.verdict.adversary.percentile,
        "eps_add_remove": first.accountant.get("add-remove"),
        "eps_substitute": first.accountant.get("substitute"),
        "largest_verdict": forecast(runs[1].plan).largest_verdict,
        "models": sum(run.plan.n_models for run in runs.values()),
        "core_seconds": round(seconds),
        "platform": platform.platform(),
        "rows": rows,
    }


def keep(scores: eg.Scores, file: Path) -> None:
    """As `eg.Scores.read` reads it, small enough to be committed."""
    file.parent.mkdir(exist_ok=True)
    columns = {name: getattr(scores, name) for name in ("model", "pair", "bit", "score")}
    np.savez_compressed(file, adjacency=np.array(scores.adjacency), bits=np.array(scores.bits), **columns)


def write(file: Path, content: Any) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(content, indent=1) + "\n")


def row(
    m: int, estimates: int, scores: eg.Scores, shift: int, threshold: float, baseline: eg.Posterior | None
) -> tuple[dict[str, Any], eg.Posterior]:
    """The first N samples as one estimate, all of them for its spread and for the bias; and the first posterior."""
    at, per_estimate = np.asarray(threshold), N // m
    number = (scores.model - shift) // per_estimate
    tallies = [tally_at(scores[number == i], at) for i in range(estimates)]
    posteriors = [eg.estimate(tally, delta=DELTA) for tally in tallies]
    ends, everything = posteriors[0].interval(LEVEL), tally_at(scores, at)
    advantages = [1 - float(t.fnr) - float(t.fpr) for t in tallies]
    x, y = float(everything.fnr), float(everything.fpr)
    binomial = math.sqrt(x * (1 - x) / (N / 2) + y * (1 - y) / (N / 2))  # of N independent samples
    spread = float(np.std(advantages, ddof=1)) if estimates > 1 else None
    found = {
        "m": m,
        "n_models": len(np.unique(scores.model)),
        "estimates": estimates,
        "tally": {c: int(getattr(tallies[0], c)) for c in ("tp", "tn", "fp", "fn")},
        "low": float(ends.low),
        "median": float(posteriors[0].median()),
        "high": float(ends.high),
        "cdf_difference": 0.0 if baseline is None else largest_difference(baseline, posteriors[0])[0],
        "cdf_between_estimates": None if estimates < 5 else between(posteriors),
        "advantage": 1 - x - y,
        # fewer estimates say little about their own spread, and with m = 1 the samples are independent
        "standard_error": (binomial if m == 1 or spread is None or estimates < 10 else spread) / math.sqrt(estimates),
        "spread_over_binomial": None if spread is None or estimates < 10 else spread / binomial,
        "medians": [float(p.median()) for p in posteriors],
    }
    return found, posteriors[0]


def between(posteriors: list[eg.Posterior]) -> float:
    """The median, over independent estimates with the same m, of the largest CDF difference to the first."""
    first, *others = posteriors
    return float(np.median([largest_difference(first, other)[0] for other in others]))


def show(result: dict[str, Any]) -> None:
    print(f"{result['setting']}: percentile {result['percentile']:.3g}, {result['core_seconds']} core-seconds")
    print(f"{'m':>5}{'models':>8}{'ε 90 %':>20}{'ΔF':>8}{'TPR − FPR':>20}{'spread':>8}")
    for r in result["rows"]:
        spread = "" if r["spread_over_binomial"] is None else f"{r['spread_over_binomial']:.2f}"
        interval = f"[{r['low']:.3f}, {r['high']:.3f}]"
        advantage = f"{r['advantage']:.4f} ± {r['standard_error']:.4f}"
        print(
            f"{r['m']:>5}{r['n_models']:>8}{interval:>20}{r['cdf_difference']:>8.3f}{advantage:>20}{spread:>8}",
            flush=True,
        )


if __name__ == "__main__":
    main()
