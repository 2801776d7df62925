"""`epsgauge probe`: what the accountant assumes of a plan's training, tested by a few short trainings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from epsgauge.cli.run import Small
from epsgauge.cli.terminal import AsJson, console, print_json

REFUTED = 1


def probe(
    plan_file: Annotated[Path, typer.Argument(metavar="PLAN", help="A plan (TOML).")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Also write JSON, for `report --probe`.")
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="CHECK", help="Make only this check, such as noise, or that of a code such as P101."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Make a few short trainings: for loops whose steps take seconds.")
    ] = False,
    seed: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Seed of the trainings. [default: the plan's]")
    ] = None,
    small: Small = False,
    as_json: AsJson = False,
) -> None:
    """Test noise, clipping, sampling and steps directly. Exits with 1 if they are not what the accountant assumes."""
    from epsgauge.errors import InvalidInput
    from epsgauge.probing.checks import named
    from epsgauge.reporting.probe import Line, show
    from epsgauge.runner.plan import Plan
    from epsgauge.runner.probed import probe_plan

    plan = Plan.read(plan_file, small=small)
    if out is not None and not out.parent.is_dir():  # before the trainings, and not after
        raise InvalidInput(f"the folder of --out must exist, but got {str(out.parent)!r}. Make it first.")
    named(only or ())
    with Line(console(err=True)) as line:
        found = probe_plan(plan, only=only or (), quick=quick, seed=seed, progress=line)
    if as_json:
        print_json(found.to_json())
    else:
        show(found, console(), str(plan_file))
    if out is not None:
        found.save(out)
    if found.refuted:
        raise typer.Exit(REFUTED)
