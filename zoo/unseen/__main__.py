"""What a run of the black box and its audit say of each: the best of its canaries, 1,000 models.

    python -m zoo.unseen [--only 01 13 …] [--out build/unseen]

Runs go on where they were stopped. Exits with 1 if a bug passes the gate or a twin does not. About an hour on two cores.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import epsgauge as eg
from epsgauge.auditing.gate import gate
from epsgauge.games.adversary import BLACK_BOX

HERE = Path(__file__).parent
KINDS = ("bug", "twin")


def audited(plan: Path, out: Path) -> eg.Audit:
    return eg.audit(eg.run(eg.Plan.read(plan).facing(BLACK_BOX), out=out))


def row(name: str, kind: str, audit: eg.Audit) -> str:
    v, probe = audit.verdict, audit.verdict.basis.probe
    claim = "" if v.claim is None else f"{v.claim.eps:.2f}"
    return f"| {name} | {kind} | {v.kind} | {v.bound:.2f} | {claim} | {'' if probe is None else probe.brief} |"


def table(names: list[str], out: Path) -> Iterator[tuple[str, bool]]:
    """A line for each, and whether its audit is as it should be."""
    for kind in KINDS:
        for name in names:
            audit = audited(HERE / name / kind / "plan.toml", out / f"{name}-{kind}")
            fails = bool(gate(audit, fail_on="violation").reasons)
            yield row(name, kind, audit), fails == (kind == "bug")


if __name__ == "__main__":
    every = sorted(folder.name for folder in HERE.iterdir() if (folder / "WHY.md").is_file())
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[""], metavar="NN", help="numbers of cases")
    parser.add_argument("--out", type=Path, default=Path("build/unseen"), help="where runs are kept")
    given = parser.parse_args()
    chosen = [name for name in every if name.startswith(tuple(given.only))]
    given.out.mkdir(parents=True, exist_ok=True)
    print("| case | | verdict | ε at least | claimed ε | probe |\n|---|---|---|---|---|---|")
    right = []
    for line, as_it_should_be in table(chosen, given.out):
        print(line, flush=True)
        right.append(as_it_should_be)
    print(f"as it should be: {sum(right)} of {len(right)}")
    sys.exit(not all(right))
