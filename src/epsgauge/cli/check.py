"""`epsgauge check`: what a plan would do, before anything is trained."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from epsgauge.cli.run import Small
from epsgauge.cli.terminal import AsJson, console, print_json


def check(
    plan_file: Annotated[Path, typer.Argument(metavar="PLAN", help="A plan (TOML).")],
    attempt: Annotated[
        bool, typer.Option("--try", help="Train one model a few times to check seeds, losses and time.")
    ] = False,
    small: Small = False,
    run: Annotated[
        Path | None,
        typer.Option(
            "--run", metavar="RUN", help="Recommend a number of models, based on what the attack saw in this run."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say what a plan would train and what the result could show. Without --try, nothing is loaded or trained."""
    from epsgauge.auditing.forecast import forecast
    from epsgauge.games.adversary import BLACK_BOX, FOUND
    from epsgauge.reporting.check import show, to_json
    from epsgauge.runner.plan import Plan

    plan = Plan.read(plan_file, small=small)
    trial = None
    if attempt:
        from epsgauge.runner.trial import try_out

        trial = try_out(plan)
        plan = plan.facing(trial.adversary)
    before = None
    if run is not None:
        from epsgauge.runner.view import Run

        before = Run.open(run)
        plan = plan.facing(before.plan.adversary if before.plan.adversary in FOUND else BLACK_BOX)
    seen = forecast(plan, trial, before)
    if as_json:
        print_json(to_json(seen, trial))
    else:
        show(seen, trial, console())
