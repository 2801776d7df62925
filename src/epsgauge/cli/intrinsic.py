"""`epsgauge intrinsic`: the ε that a training's own randomness would give, as an estimate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from epsgauge.cli.run import Small
from epsgauge.cli.terminal import AsJson, console, print_json


def intrinsic(
    plan_file: Annotated[Path, typer.Argument(metavar="PLAN", help="A plan (TOML).")],
    seeds: Annotated[int, typer.Option(help="Number of models to train on one training set.")] = 20,
    neighbours: Annotated[int, typer.Option(help="Number of models to train on sets that differ in one record.")] = 20,
    small: Small = False,
    as_json: AsJson = False,
) -> None:
    """Estimate the ε that random initial weights and batches alone would give. Neither a guarantee nor a claim."""
    from epsgauge.reporting import layout
    from epsgauge.runner.plan import Plan
    from epsgauge.runner.probed import intrinsic_of_plan

    found = intrinsic_of_plan(Plan.read(plan_file, small=small), seeds, neighbours)
    if as_json:
        print_json(found.to_json())
        return
    for name, said in found.lines.items():
        console().print(layout.hanging(f"{name:<12}", layout.said(said), "bold" if name == "estimate" else "dim"))
