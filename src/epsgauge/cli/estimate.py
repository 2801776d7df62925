"""`epsgauge estimate`: four counts in, a posterior out."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from epsgauge.cli.report import ReportFile
from epsgauge.cli.terminal import say
from epsgauge.errors import InvalidInput


class Quantity(StrEnum):
    eps = "eps"
    delta = "delta"
    mu = "mu"


def estimate(
    tp: Annotated[str, typer.Option(metavar="COUNT", help="Right guesses of b = 1.")],
    tn: Annotated[str, typer.Option(metavar="COUNT", help="Right guesses of b = 0.")],
    fp: Annotated[str, typer.Option(metavar="COUNT", help="Guesses of 1 where b = 0.")],
    fn: Annotated[str, typer.Option(metavar="COUNT", help="Guesses of 0 where b = 1.")],
    delta: Annotated[float | None, typer.Option(help="δ at which to estimate ε; optional with --quantity mu.")] = None,
    eps: Annotated[float | None, typer.Option(help="ε at which to estimate δ.")] = None,
    level: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.90,
    quantity: Annotated[Quantity, typer.Option(help="What to estimate: ε, δ, or μ of Gaussian DP.")] = Quantity.eps,
    claimed_eps: Annotated[
        float | None, typer.Option(help="Claimed ε: also print the probability that ε is above it.")
    ] = None,
    claimed_delta: Annotated[float | None, typer.Option(help="The same for --quantity delta.")] = None,
    claimed_mu: Annotated[float | None, typer.Option(help="The same for --quantity mu.")] = None,
    prior: Annotated[tuple[float, float], typer.Option(help="Shapes of the Beta prior of both rates.")] = (0.5, 0.5),
    figure: Annotated[Path | None, typer.Option(help="Also draw it to this .svg file.")] = None,
    report: ReportFile = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")] = False,
) -> None:
    """Estimate the ε, δ or μ that an attack with these counts shows."""
    from epsgauge.reporting.estimate import Answer, show, to_json
    from epsgauge.stats import checks
    from epsgauge.stats.posterior import Posterior, estimate_delta, estimate_mu
    from epsgauge.stats.posterior import estimate as estimate_eps
    from epsgauge.stats.tally import Tally

    tally = Tally(**{name: _number(name, text) for name, text in (("tp", tp), ("tn", tn), ("fp", fp), ("fn", fn))})
    claims = {Quantity.eps: claimed_eps, Quantity.delta: claimed_delta, Quantity.mu: claimed_mu}
    _refuse_unused(quantity, delta, eps, claims)
    claimed = claims[quantity]
    if claimed is not None:
        (checks.delta if quantity is Quantity.delta else checks.eps)(claimed, f"claimed_{quantity}")
    post: Posterior
    if quantity is Quantity.eps:
        post = estimate_eps(tally, delta=_needed("delta", delta, "--delta 1e-5"), prior=prior)
    elif quantity is Quantity.delta:
        post = estimate_delta(tally, eps=_needed("eps", eps, "--eps 1.0"), prior=prior)
    else:
        post = estimate_mu(tally, prior=prior)
    gaussian = post.eps_at(delta) if quantity is Quantity.mu and delta is not None else None
    answer = Answer(post, level, claimed, gaussian)

    if figure is not None:
        from epsgauge.figures.charts import chart

        chart("density", answer.intervals, claimed=claimed).save(figure)
    if report is not None:
        from epsgauge.reporting.report import report as write

        write(answer, out=report)
    if as_json:
        typer.echo(json.dumps(to_json(answer), indent=2, ensure_ascii=False))
        return
    from rich.console import Console

    show(answer, Console(highlight=False))
    if figure is not None:
        say(f"figure: {figure}", err=True)
    if report is not None:
        say(f"report: {report}", err=True)


def _number(name: str, text: str) -> float:
    try:
        return int(text) if text.lstrip("+-").isdigit() else float(text.replace("_", "?"))
    except ValueError:
        raise InvalidInput(f"{name} must be a whole number, 0 or more, but got {text!r}.") from None


def _needed(name: str, value: float | None, example: str) -> float:
    if value is None:
        raise InvalidInput(f"{name} is needed for this quantity, but was not given. Add for example {example}.")
    return value


def _refuse_unused(
    quantity: Quantity, delta: float | None, eps: float | None, claims: dict[Quantity, float | None]
) -> None:
    """An option that would be ignored is a misunderstanding: say so."""
    for other, value in claims.items():
        if other is not quantity and value is not None:
            raise InvalidInput(f"--claimed-{other} goes with --quantity {other}, but the quantity is {quantity}.")
    if quantity is Quantity.delta and delta is not None:
        raise InvalidInput("--delta is what --quantity delta estimates. Leave it out, and give --eps.")
    if quantity is not Quantity.delta and eps is not None:
        raise InvalidInput(f"--eps goes with --quantity delta, but the quantity is {quantity}.")
