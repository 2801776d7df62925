"""How far several pairs a model can stand in for one: the paper's heuristic (Section 5), measured.

Runs every setting in order, resumes what was interrupted, and writes plans, scores and results beside this file.

    python studies/heuristic/study.py                 # everything
    python studies/heuristic/study.py --only dp1-average
"""

from __future__ import annotations

import argparse
import json
import math
import platform
from pathlib import Path
from typing import Any

import numpy as np

import epsgauge as eg
from epsgauge.attacks.table import attack_named
from epsgauge.auditing.compare import largest_difference
from epsgauge.auditing.forecast import forecast
from epsgauge.scores.search import tally_at

HERE = Path(__file__).parent
DELTA, LEVEL = 1e-5, 0.90
N = 1000  # samples of one estimate, as in the paper
FIT = 200  # models of the run with m = 1 that choose the percentile for every m
BLOCKS = 20  # independent estimates for m > 1
# The noise for ε near 1, 4 and 10 (add-remove, as Opacus reports it) at n = 1000, batch 100, 10 epochs.
NOISE = {"dp1": 3.94, "dp4": 1.39, "dp10": 0.84, "none": None}
PAIRS = (1, 10, 50)


def plan(privacy: str, challenge: str, m: int) -> eg.Plan:
    """n, the pool and the reference are the same for every m; the models are not."""
    trainer: dict[str, Any] = {"use": "sgd", "model": "mlp", "epochs": 10, "batch_size": 100, "learning_rate": 0.5}
    if NOISE[privacy] is not None:
        trainer |= {"use": "dpsgd", "noise_multiplier": NOISE[privacy], "max_grad_norm": 1.0}
    n_models = FIT + N if m == 1 else BLOCKS * N // m
    return eg.Plan(
        name=f"{privacy}-{challenge}-m{m}",
        seed=m,
        n_models=n_models,
        data="digits",
        trainer=trainer,
        game={
            "train_size": 1000,
            "pairs_per_model": m,
            "challenge": challenge,
            "pool_size": 200,
            "reference_size": 200,
            "points_seed": 0,
        },
        audit={"delta": DELTA, "level": LEVEL, "attack": "percentile", "fit_models": FIT if m == 1 else 1},
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="one setting, such as dp1-average")
    parser.add_argument(
        "--runs", type=Path, default=Path("build/studies/heuristic"), help="folder of the run directories"
    )
    args = parser.parse_args()
    for privacy in NOISE:
        for challenge in ("average", "worst"):
            name = f"{privacy}-{challenge}"
            if args.only in (None, name):
                print(f"{name} …", flush=True)
                result = measured(privacy, challenge, args.runs)
                file = HERE / "results" / f"{name}.json"
                file.parent.mkdir(exist_ok=True)
                file.write_text(json.dumps(result, indent=1) + "\n")
                show(result)


def measured(privacy: str, challenge: str, folder: Path) -> dict[str, Any]:
    """Train, choose the percentile on the first models with m = 1, and tally every m with it."""
    runs = {m: eg.run(plan(privacy, challenge, m), out=folder / f"{privacy}-{challenge}-m{m}") for m in PAIRS}
    first = eg.audit(runs[1])
    rows = []
    for m, run in runs.items():
        (HERE / "plans").mkdir(exist_ok=True)
        (HERE / "plans" / f"{run.plan.name}.json").write_text(json.dumps(run.plan.tables(), indent=1) + "\n")
        scores = attack_named("percentile").scores(run.signals())
        (HERE / "scores").mkdir(exist_ok=True)
        columns = {name: getattr(scores, name) for name in ("model", "pair", "bit", "score")}
        file = HERE / "scores" / f"{run.plan.name}.npz"  # which eg.Scores.read reads
        np.savez_compressed(file, adjacency=np.array(scores.adjacency), **columns)
        judged = scores[scores.model >= FIT] if m == 1 else scores
        rows.append(row(m, judged, first.judged.threshold, first.posterior))
    return {
        "setting": f"{privacy}-{challenge}",
        "percentile": first.verdict.adversary.percentile,
        "eps_add_remove": first.accountant.get("add-remove"),
        "eps_substitute": first.accountant.get("substitute"),
        "largest_verdict": forecast(runs[1].plan).largest_verdict,
        "platform": platform.platform(),
        "rows": rows,
    }


def row(m: int, scores: eg.Scores, threshold: float, baseline: eg.Posterior) -> dict[str, Any]:
    """The first N samples as one estimate, all blocks for its spread, and all samples for the bias."""
    at, per_block = np.asarray(threshold), N // m
    blocks = [
        tally_at(scores[(scores.model // per_block) == b] if m > 1 else scores, at)
        for b in range(BLOCKS if m > 1 else 1)
    ]
    post = eg.estimate(blocks[0], delta=DELTA)
    ends, everything = post.interval(LEVEL), tally_at(scores, at)
    advantage = [1 - float(t.fnr) - float(t.fpr) for t in blocks]
    pooled = 1 - float(everything.fnr) - float(everything.fpr)
    x, y = float(everything.fnr), float(everything.fpr)
    binomial = math.sqrt(x * (1 - x) / (N / 2) + y * (1 - y) / (N / 2))
    return {
        "m": m,
        "n_models": len(np.unique(scores.model)),
        "tally": {c: int(getattr(blocks[0], c)) for c in ("tp", "tn", "fp", "fn")},
        "low": float(ends.low),
        "median": float(post.median()),
        "high": float(ends.high),
        "cdf_difference": 0.0 if m == 1 else largest_difference(baseline, post)[0],
        "advantage": pooled,
        # of the advantage of one estimate, over what independent samples would have; None for m = 1, where they are
        "cdf_between_estimates": None if m == 1 else between(blocks),
        "spread_over_binomial": None if m == 1 else float(np.std(advantage, ddof=1)) / binomial,
        "standard_error": binomial if m == 1 else float(np.std(advantage, ddof=1)) / math.sqrt(BLOCKS),
        "medians": [float(eg.estimate(t, delta=DELTA).median()) for t in blocks],
    }


def between(blocks: list[eg.Tally]) -> float:
    """The median, over independent estimates with the same m, of the largest CDF difference to the first."""
    first, *others = (eg.estimate(t, delta=DELTA) for t in blocks)
    return float(np.median([largest_difference(first, other)[0] for other in others]))


def show(result: dict[str, Any]) -> None:
    print(f"{result['setting']}: percentile {result['percentile']:.3g}")
    print(f"{'m':>4}{'models':>8}{'ε 90 %':>20}{'ΔF':>8}{'TPR − FPR':>20}{'spread':>8}")
    for r in result["rows"]:
        spread = "" if r["spread_over_binomial"] is None else f"{r['spread_over_binomial']:.2f}"
        interval = f"[{r['low']:.3f}, {r['high']:.3f}]"
        advantage = f"{r['advantage']:.4f} ± {r['standard_error']:.4f}"
        print(f"{r['m']:>4}{r['n_models']:>8}{interval:>20}{r['cdf_difference']:>8.3f}{advantage:>20}{spread:>8}")


if __name__ == "__main__":
    main()
