"""`epsgauge mechanism`: audits any randomised function of a data set."""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from epsgauge.cli.audit import Explain, Level, VerdictLevel, VerdictMethod, given_settings, judged
from epsgauge.cli.gates import AllowUndecided, CountEstimates, FailAbove, FailOn, Gates
from epsgauge.cli.report import ReportFile
from epsgauge.cli.terminal import AsJson, say
from epsgauge.errors import InvalidInput

DATA = "JSON, or module:attr."


def mechanism(
    function: Annotated[
        str, typer.Argument(metavar="MODULE:ATTR", help="A function f(data), f(data, rng) or f(data, rng, size).")
    ],
    d0: Annotated[str | None, typer.Option(help=f"A data set: {DATA}")] = None,
    d1: Annotated[str | None, typer.Option(help=f"A neighbouring data set: {DATA}")] = None,
    pairs: Annotated[
        str | None, typer.Option(help="Search neighbouring vectors instead: answers:N or records:N, or module:attr.")
    ] = None,
    eps: Annotated[float | None, typer.Option(help="Claimed ε.")] = None,
    delta: Annotated[
        float | None,
        typer.Option(help="δ of the claim; with --mu, the δ at which ε is shown. [default: 0; with --mu: 1e-5]"),
    ] = None,
    mu: Annotated[
        float | None, typer.Option(help="Claimed μ of Gaussian DP, instead of ε and δ: a whole curve.")
    ] = None,
    curve: Annotated[
        str | None,
        typer.Option(
            help="Claimed curve of (ε, δ), instead of ε and δ: gaussian:MU, laplace:EPS, zcdp:RHO, rdp:ORDER,EPS, a "
            "CSV file with columns eps and delta, or module:attr."
        ),
    ] = None,
    claimed_adjacency: Annotated[
        str | None, typer.Option(help="Adjacency of the claim, if it is not that of the data sets: add-remove.")
    ] = None,
    samples: Annotated[int, typer.Option(help="Number of samples to draw; with --until, the most to draw.")] = 100_000,
    until: Annotated[str | None, typer.Option(help="violation: draw samples until one is proven.")] = None,
    regions: Annotated[
        str | None,
        typer.Option(
            help="Kinds of regions to learn: some of events,linear,trees,hockey-stick,mmd,digits. [default: all]"
        ),
    ] = None,
    adjacency: Annotated[
        str, typer.Option(help="How the two data sets differ: substitute or add-remove.")
    ] = "substitute",
    sensitivity: Annotated[
        float | None,
        typer.Option(help="Stated sensitivity, tested by replaying noise; the function must take rng."),
    ] = None,
    norm: Annotated[int, typer.Option(help="Norm of the sensitivity: 1 or 2.")] = 1,
    seed: Annotated[int, typer.Option(help="Seed of the bits, and of the noise if that can be seeded.")] = 0,
    level: Level = None,
    verdict_method: VerdictMethod = None,
    verdict_level: VerdictLevel = None,
    fail_above: FailAbove = None,
    fail_on: FailOn = None,
    count_estimates: CountEstimates = False,
    allow_undecided: AllowUndecided = False,
    report: ReportFile = None,
    explain: Explain = False,
    as_json: AsJson = False,
) -> None:
    """Audit a randomised function on two neighbouring data sets. No training is involved."""
    options = dict(locals())
    from epsgauge.auditing.audit import audit
    from epsgauge.references import beside, search_in
    from epsgauge.sampling.game import MechanismGame
    from epsgauge.sampling.regions import REGIONS

    search_in(Path.cwd())
    with beside(Path.cwd()), redirect_stdout(sys.stderr):  # what the mechanism prints is no part of the answer
        game = MechanismGame(
            _loaded(function, "the mechanism"),
            None if d0 is None else _data(d0, "--d0"),
            None if d1 is None else _data(d1, "--d1"),
            pairs=_pairs(pairs),
            n_samples=samples,
            until=until,  # type: ignore[arg-type]  # it is checked there
            adjacency=adjacency,  # type: ignore[arg-type]
            seed=seed,
            sensitivity=sensitivity,
            norm=norm,  # type: ignore[arg-type]
            regions=tuple(REGIONS) if regions is None else tuple(name.strip() for name in regions.split(",")),
            name=function,
        )
        settings = given_settings({**options, "claimed_eps": eps, "claimed_mu": mu})
        claimed = {} if curve is None else {"claimed_curve": _curve(curve)}
        found = audit(game, **settings, **claimed)
    if report is not None:
        from epsgauge.reporting.report import report as write

        say(f"report: {write(found, out=report)}", err=True)
    gates = Gates(fail_above, fail_on, count_estimates, allow_undecided)
    judged(found, gates, as_json, explain=explain)


def _loaded(reference: str, name: str) -> Any:
    from epsgauge.references import is_reference, load

    if not is_reference(reference):
        raise InvalidInput(f'{name} must be named as "module:attr", such as mymodule:noisy_sum, but got {reference!r}.')
    return load(reference, name)


def _data(text: str, name: str) -> Any:
    from epsgauge.references import is_reference, load

    if is_reference(text):
        return load(text, name)
    try:
        return json.loads(text)
    except ValueError:
        raise InvalidInput(f'{name} must be JSON, such as "[0, 1]", or module:attr, but got {text!r}.') from None


def _pairs(text: str | None) -> Any:
    """The name of a family is left as it is."""
    from epsgauge.references import is_reference, load

    return load(text, "--pairs") if text is not None and is_reference(text) else text


def _curve(text: str) -> Any:
    """A function or pairs by "module:attr"; what else it may be is left as it is."""
    from epsgauge.mechanisms.curves import FAMILIES, Curve
    from epsgauge.references import is_reference, load

    if text.partition(":")[0] in FAMILIES or not is_reference(text):
        return text
    return replace(Curve.of(load(text, "--curve")), name=text)
