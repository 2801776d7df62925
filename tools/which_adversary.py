"""Which adversary finds which bug: the broken pipelines of zoo/network.py and their correct twins, audited.

    python tools/which_adversary.py [--models 1000] [--only "no noise" …]

Each is audited as a plan that names neither a challenge nor an attack. A bug that is not found there meets the
adversaries who see more, in turn, until one refutes the claim. The correct pipeline meets all of them.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

import epsgauge as eg
from epsgauge.runner.executors import InProcess

FOLDER = Path(__file__).parent.parent / "tests" / "pipelines"
sys.path.insert(0, str(FOLDER))
import bugs  # noqa: E402

PIPELINES = {**bugs.BUGS, **bugs.TWINS}
# What is added to a plan, from the weakest adversary to the strongest
ADVERSARIES: dict[str, dict[str, Any]] = {
    "black box": {},
    "white box, records": {"adversary": {"sees": "updates"}},
    "white box, gradients": {"adversary": {"preset": "white-box"}},
    "iterates": {"trainer": {"path": True}, "audit": {"attack": "trajectory"}},
}


def audited(name: str, adversary: str, n_models: int) -> tuple[eg.Audit, str]:
    """The audit of a pipeline under an adversary, and the name of the canary."""
    changes = ADVERSARIES[adversary]
    plan = eg.Plan(
        name=name,
        n_models=n_models,
        data="bugs:data",
        trainer={"use": f"bugs:{PIPELINES[name].__name__}", **changes.get("trainer", {})},
        game={"train_size": 250},
        adversary=changes.get("adversary", {}),
        audit=changes.get("audit", {}),
        folder=FOLDER,
    )
    with tempfile.TemporaryDirectory() as folder:
        run = eg.run(plan, out=Path(folder, "run"), executor=InProcess())
        canary = run.canary["name"] if run.canary else plan.game.canaries or "gradient"
        return eg.audit(run), canary


def row(n_models: int, name: str) -> str:
    """A line of the table: the ε that each adversary showed whom the pipeline met, bold where it refutes the claim."""
    claim, cells = "", dict.fromkeys(ADVERSARIES, "")
    for adversary in ADVERSARIES:
        if "adversary" in ADVERSARIES[adversary] and "watch" not in signature(PIPELINES[name].train).parameters:
            continue
        audit, canary = audited(name, adversary, n_models)
        verdict = audit.verdict
        shown = f"{verdict.bound:.2f} {canary}" if verdict.kind != "inconclusive" else f"inconclusive, {canary}"
        cells[adversary] = f"**{shown}**" if verdict.kind == "violation" else shown
        claim = "" if verdict.claim is None else f"{verdict.claim.eps:.2f}"
        if verdict.kind == "violation" or (name in bugs.TWINS and name != "correct"):
            break
    return f"| {PIPELINES[name].__doc__} | {claim} | {' | '.join(cells.values())} |"


def table(n_models: int, names: list[str]) -> Iterator[str]:
    yield f"| pipeline | claimed ε | {' | '.join(ADVERSARIES)} |"
    yield "|---" * (2 + len(ADVERSARIES)) + "|"
    with ProcessPoolExecutor(2) as pool:
        yield from pool.map(partial(row, n_models), names)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", type=int, default=1000)
    parser.add_argument("--only", nargs="+", choices=list(PIPELINES), default=list(PIPELINES))
    given = parser.parse_args()
    for line in table(given.models, given.only):
        print(line, flush=True)
