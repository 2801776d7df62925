"""The heuristic where the pipeline leaks: runs every setting, and writes plans, counts and results beside this file.

The same command goes on where it was stopped.

    python studies/leaky/study.py                          # all settings
    python studies/leaky/study.py --only dp10-record-n2000
"""

from __future__ import annotations

import argparse
import json
import platform
from pathlib import Path
from typing import Any

import numpy as np
from counts import Counts, row
from settings import FIT, HERE, SETTINGS, Setting

import epsgauge as eg
from epsgauge.attacks.table import ATTACKS
from epsgauge.runner.executors import InProcess


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = {setting.name: setting for setting in SETTINGS}
    parser.add_argument("--only", nargs="+", default=[*names], choices=names, metavar="SETTING", help="some settings")
    parser.add_argument("--plans", action="store_true", help="write the plans alone")
    parser.add_argument("--workers", type=int, help="processes; without it, models are trained in this one")
    parser.add_argument("--runs", type=Path, default=Path("build/studies/leaky"), help="folder of the run directories")
    args = parser.parse_args()
    for setting in (names[name] for name in args.only):
        for m in setting.judged:
            plan = setting.plan(m)
            write(HERE / "plans" / f"{plan.name}.json", plan.tables())
        if not args.plans:
            print(f"{setting.name} …", flush=True)
            result = measured(setting, args.runs, args.workers)
            write(HERE / "results" / f"{setting.name}.json", result)
            show(result)


def measured(setting: Setting, folder: Path, workers: int | None) -> dict[str, Any]:
    """Train, and count the guesses of every attack at 0 and at the threshold that an audit with m = 1 chooses."""
    runs = {}
    for m in setting.judged:
        plan, here = setting.plan(m), InProcess() if workers is None else None
        runs[m] = eg.run(plan, out=folder / plan.name, executor=here, workers=workers)
    thresholds = {name: [0.0, eg.audit(runs[1], attack=name).judged.threshold] for name in setting.attacks}
    kept: dict[str, Any] = {}
    for m, run in runs.items():
        signals = run.signals()
        for name, at in thresholds.items():
            scores = ATTACKS[name].scores(signals)
            judged = scores[scores.model >= FIT] if m == 1 else scores
            for which, threshold in zip(("zero", "audit"), at, strict=True):
                kept[f"{name}-{which}-m{m}"] = Counts.of(judged, threshold, m).cells.astype(np.int16)
    file = HERE / "counts" / f"{setting.name}.npz"
    file.parent.mkdir(exist_ok=True)
    np.savez_compressed(file, **kept)
    first = eg.audit(runs[1])
    return {
        "setting": setting.name,
        "eps_add_remove": first.accountant.get("add-remove"),
        "eps_substitute": first.accountant.get("substitute"),
        "models": sum(run.plan.n_models for run in runs.values()),
        "core_seconds": round(sum(r.plan.n_models * (r.status()["seconds_per_model"] or 0.0) for r in runs.values())),
        "platform": platform.platform(),
        "thresholds": {name: at[1] for name, at in thresholds.items()},
        "rows": rows(setting, file),
    }


def rows(setting: Setting, file: Path) -> dict[str, list[dict[str, Any]]]:
    """Of each attack and threshold, one row per m; computed from the counts alone."""
    names = [f"{attack}-{which}" for attack in setting.attacks for which in ("zero", "audit")]
    found = {name: {m: Counts.read(file, f"{name}-m{m}", m) for m in setting.judged} for name in names}
    return {name: [row(counts, of[1]) for counts in of.values()] for name, of in found.items()}


def write(file: Path, content: Any) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(content, indent=1) + "\n")


def show(result: dict[str, Any]) -> None:
    print(f"{result['setting']}: {result['models']} models, {result['core_seconds']} core-seconds")
    for name, some in result["rows"].items():
        print(f"  {name}")
        for r in some:
            advantage = f"{r['advantage']:.3f} ± {r['standard_error']:.3f}"
            print(
                f"  {r['m']:>5}{r['models']:>6}{advantage:>16}  deff {r['design_effect']:.2f}  ε {r['eps']:.2f} "
                f"[{r['low']:.2f}, {r['high']:.2f}] covers {r['cover']}/{r['estimates']}, below {r['below']}",
                flush=True,
            )


if __name__ == "__main__":
    main()
