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
        bool, typer.Option("--try", help="Train one model three times to check seeds, losses and time.")
    ] = False,
    small: Small = False,
    as_json: AsJson = False,
) -> None:
    """Say what a plan would train and what the result could show. Without --try, nothing is loaded or trained."""
    from epsgauge.auditing.forecast import forecast
    from epsgauge.reporting.check import show, to_json
    from epsgauge.runner.plan import Plan

    plan = Plan.read(plan_file, small=small)
    trial = None
    if attempt:
        from epsgauge.runner.trial import try_out

        trial = try_out(plan)
    seen = forecast(plan, trial)
    if as_json:
        print_json(to_json(seen, trial))
    else:
        show(seen, trial, console())
