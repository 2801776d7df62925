"""`epsgauge size`: how many samples an audit needs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from epsgauge.cli.terminal import AsJson, console, print_json
from epsgauge.errors import InvalidInput


def size(
    delta: Annotated[float, typer.Option(help="δ at which to estimate ε.")],
    accuracy: Annotated[float | None, typer.Option(help="The attack's balanced accuracy.")] = None,
    fnr: Annotated[float | None, typer.Option(help="The attack's FNR, with --fpr, instead of --accuracy.")] = None,
    fpr: Annotated[float | None, typer.Option(help="The attack's FPR.")] = None,
    half_width: Annotated[float | None, typer.Option(help="Half-width of the interval that you want.")] = None,
    lower_bound: Annotated[float | None, typer.Option(help="One-sided lower bound that you want.")] = None,
    level: Annotated[float, typer.Option(help="Level of the interval or bound.")] = 0.90,
    one_run: Annotated[
        bool, typer.Option("--one-run", help="Count canaries of one training, for --lower-bound.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Compute how many samples each method needs. With one pair per model, a sample is a trained model."""
    from epsgauge.methods.needs import needs_of_verdicts
    from epsgauge.methods.table import QUICK
    from epsgauge.reporting.size import Plan, show
    from epsgauge.stats.sizing import largest_eps, sample_size

    wanted: dict[str, Any] = {"delta": delta, "level": level, "half_width": half_width, "lower_bound": lower_bound}
    rates: dict[str, Any] = {"accuracy": accuracy, "fnr": fnr, "fpr": fpr}
    if one_run:
        _of_one_run(wanted, rates, as_json)
        return
    one_sided = level if half_width is None else (1 + level) / 2  # the level of the interval's lower end
    plans = []
    for name, method in QUICK.items():
        n = sample_size(**wanted, **rates, method=name)
        most = None if n is None else largest_eps(n, delta=delta, level=one_sided, method=name)
        plans.append(Plan(name, method.label, method.promise, n, most))
    for need in needs_of_verdicts(**wanted, **rates):
        judge = need.method
        plans.append(Plan(judge.name, judge.label, judge.promise, need.n_samples, need.largest_eps, need.judges))
    if as_json:
        print_json({"delta": delta, "level": level, "methods": [asdict(plan) for plan in plans]})
        return
    alone = largest_eps(0, delta=delta, level=level)
    reached = lower_bound is not None and lower_bound <= alone
    show(plans, console(), prior_alone=alone if reached else None)


def _of_one_run(wanted: dict[str, Any], rates: dict[str, Any], as_json: bool) -> None:
    from epsgauge.methods.needs_of_one_run import needs_of_one_run
    from epsgauge.reporting.size import Plan, show_one_run

    if wanted.pop("half_width") is not None or wanted["lower_bound"] is None:
        raise InvalidInput(
            "--one-run needs --lower-bound, the ε that the bound is to exceed, and no --half-width: bounds from one "
            "training have no upper end."
        )
    plans = [
        Plan(need.method.name, need.method.label, need.method.promise, need.n_samples, need.largest_eps, need.judges)
        for need in needs_of_one_run(**wanted, **rates)
    ]
    if as_json:
        print_json({"delta": wanted["delta"], "level": wanted["level"], "methods": [asdict(plan) for plan in plans]})
        return
    show_one_run(plans, console())
