"""`epsgauge probe`: what the accountant assumes of a script's or a plan's training, tested by short trainings."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from epsgauge.cli.run import Small
from epsgauge.cli.script import order_of, with_options
from epsgauge.cli.terminal import AsJson, console, print_json

REFUTED = 1


@with_options
def probe(
    ctx: typer.Context,
    target: Annotated[
        str, typer.Argument(metavar="TARGET", help="A script (.py, .ipynb or -m MODULE) with its options, or a plan.")
    ],
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
        int | None, typer.Option(min=0, metavar="N", help="Seed of the trainings. [default: the plan's, or 0]")
    ] = None,
    small: Small = False,
    as_json: AsJson = False,
) -> None:
    """Test noise, clipping, sampling and steps of a training script, which is not edited, or of a plan.

    Options for epsgauge come before the script: `epsgauge probe --quick train.py --epochs 3`. Exits with 1 if anything
    is not what the accountant assumes.
    """
    from epsgauge.errors import InvalidInput
    from epsgauge.probing.checks import named
    from epsgauge.probing.result import Probe
    from epsgauge.reporting.probe import Line, show

    if out is not None and not out.parent.is_dir():  # before the trainings, and not after
        raise InvalidInput(f"the folder of --out must exist, but got {str(out.parent)!r}. Make it first.")
    named(only or ())
    order = order_of(ctx, small=small, only=tuple(only or ()), quick=quick, seed=seed or 0)

    def probed(line: Line) -> Probe:
        if order is not None:
            from epsgauge.scripts.session import probe_script

            return probe_script(order, line)
        from epsgauge.runner.plan import Plan
        from epsgauge.runner.probed import probe_plan

        plan = Plan.read(Path(target), small=small)
        return probe_plan(plan, only=only or (), quick=quick, seed=seed, progress=line)

    with Line(console(err=True)) as line:
        found = probed(line)
    if as_json:
        print_json(found.to_json())
    else:
        show(found, console(), shlex.join([target] if order is None else order.words))
    if out is not None:
        found.save(out)
    if found.refuted:
        raise typer.Exit(REFUTED)
