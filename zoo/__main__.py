"""Who finds which bug: every pipeline of the zoo under the probe and under adversaries of growing power.

    python -m zoo [--only "no noise" …] [--models 1000]
    python -m zoo --probe [--seeds 20]

A pipeline meets the probe, then the audit of a plan whose adversary is the black box, and, until one refutes its
claim, adversaries who see more. With --probe it meets the probe alone; twins with so many seeds. Loops of
strangers meet no adversary unless they are named.
Exits with 1 if the probe misses a bug, other than those that are known, or refutes a twin.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import epsgauge as eg
from epsgauge.numbers import at_least
from epsgauge.probing.finding import LEVEL
from epsgauge.runner.executors import InProcess
from zoo.cases import CASES, DELTA, KNOWN_MISSES, STRANGER

# What is added to a plan, from the weakest adversary to the strongest
ADVERSARIES: dict[str, dict[str, Any]] = {
    "black box": {"adversary": {"preset": "black-box"}},
    "white box, records": {"adversary": {"sees": "updates"}},
    "white box, gradients": {"adversary": {"preset": "white-box"}},
    "iterates": {"trainer": {"path": True}, "audit": {"attack": "trajectory"}},
}
# The Opacus loops attach the watch as it is, without the model, and show no iterates.
NOT_WITH_OPACUS = ("white box, records", "iterates")
# Opacus finds its noise anew for each model, which takes a second or two.
PROBE_ALONE = "Opacus: calibrated"
WORKERS = 2


def probed(name: str, seed: int = 0) -> eg.Probe:
    case = CASES[name]
    module, source = case.data.split(":")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eg.probe(
            case.trainer(),
            getattr(sys.modules[module], source)(),
            adjacency=case.adjacency,
            claimed_eps=case.claimed_eps,
            delta=DELTA,
            train_size=case.train_size,
            seed=seed,
        )


def audited(name: str, adversary: str, n_models: int) -> tuple[eg.Audit, str, float]:
    """The audit of a pipeline under an adversary, the name of the canary, and seconds."""
    case, changes, start = CASES[name], ADVERSARIES[adversary], time.perf_counter()
    claim = {}
    if case.claimed_eps is not None:
        claim = {"claimed_eps": case.claimed_eps, "claimed_delta": DELTA, "claimed_adjacency": case.adjacency}
    plan = eg.Plan(
        name=name,
        n_models=n_models,
        probe=False,  # it has a column of its own
        data=case.data,
        trainer={"use": case.use, **changes.get("trainer", {})},
        game={"train_size": case.train_size, "adjacency": case.adjacency},
        adversary=changes.get("adversary", {"preset": "black-box"}),
        audit={**changes.get("audit", {}), **claim},
        folder=Path(__file__).parent.parent,
    )
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = eg.run(plan, out=Path(folder, "run"), executor=InProcess())
        canary = run.canary["name"] if run.canary else "gradient"
        return eg.audit(run), canary, time.perf_counter() - start


def row(n_models: int, name: str) -> str:
    """A line of the table; bold where the claim is refuted."""
    case, found = CASES[name], probed(name)
    said = ", ".join(finding.name for finding in found.refuted)
    eps = found.accounted_eps if case.claimed_eps is None else case.claimed_eps
    claimed = "unknown" if eps is None else f"{eps:.2f}"
    cells = [f"**{said}**, {found.seconds:.1f} s" if said else f"consistent, {found.seconds:.1f} s"]
    for adversary in ADVERSARIES:
        opacus = name.startswith("Opacus") and adversary in NOT_WITH_OPACUS
        done = any("**" in cell for cell in cells[1:]) or (len(cells) > 1 and not case.bug and name != "correct")
        if opacus or done or name == PROBE_ALONE:
            cells.append("")
            continue
        try:
            audit, canary, seconds = audited(name, adversary, n_models)
        except eg.EpsgaugeError:  # such as failing models, all of one bit
            cells.append("not possible")
            continue
        verdict = audit.verdict
        shown = at_least(verdict.bound.value) if verdict.kind != "cannot decide" else verdict.kind
        shown = f"**{shown}**" if verdict.kind == "violation" else shown
        cells.append(f"{shown} {canary}, {seconds:.0f} s")
    return f"| {case.meaning} | {claimed} | {' | '.join(cells)} |"


def table(n_models: int, names: list[str]) -> Iterator[str]:
    yield f"| pipeline | claimed ε | probe | {' | '.join(ADVERSARIES)} |"
    yield "|---" * (3 + len(ADVERSARIES)) + "|"
    with ProcessPoolExecutor(WORKERS) as pool:
        yield from pool.map(partial(row, n_models), names)


def of_probe(job: tuple[str, int]) -> tuple[str, bool, str, float]:
    found = probed(*job)
    return job[0], bool(found.refuted), ", ".join(f"{f.code} {f.name}" for f in found.refuted), found.seconds


def by_probe(names: list[str], n_seeds: int) -> bool:
    """Print what the probe finds of each bug, and how often it refutes a twin; whether all is as it should be."""
    bugs, twins = ([n for n in names if CASES[n].bug is bug and n not in KNOWN_MISSES] for bug in (True, False))
    known = [name for name in names if name in KNOWN_MISSES]
    jobs = [(name, 0) for name in [*bugs, *known]] + [(name, seed) for name in twins for seed in range(n_seeds)]
    rows, alarms = [], []
    with ProcessPoolExecutor(WORKERS) as pool:
        for name, refuted, said, seconds in pool.map(of_probe, jobs):
            if name in twins and refuted:
                alarms.append(name)
                print(f"FALSE ALARM: {name}: {said}", flush=True)
            elif name in known:
                why = f"now refuted by {said}" if refuted else KNOWN_MISSES[name]
                print(f"known miss: {name}: {why}", flush=True)
            elif name not in twins:
                rows.append((refuted, seconds))
                print(f"{name:<42}{seconds:5.1f} s  {said or 'MISSED'}", flush=True)
    caught = sum(refuted for refuted, _ in rows)
    longest = max((seconds for _, seconds in rows), default=0.0)
    print(f"bugs refuted: {caught} of {len(bugs)}, the longest in {longest:.1f} s")
    expected = LEVEL * n_seeds * len(twins)
    print(f"twins refuted: {len(alarms)} of {n_seeds * len(twins)}, where at most {expected:.2g} are expected")
    return caught == len(bugs) and not alarms


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=1000)
    parser.add_argument("--only", nargs="+", choices=list(CASES), metavar="NAME")
    parser.add_argument("--probe", action="store_true", help="the probe alone")
    parser.add_argument("--seeds", type=int, default=20, help="of twins, with --probe")
    given = parser.parse_args()
    if given.probe:
        sys.exit(not by_probe(given.only or list(CASES), given.seeds))
    for line in table(given.models, given.only or [name for name in CASES if not name.startswith(STRANGER)]):
        print(line, flush=True)
