"""`epsgauge coins`: canaries for one training, coins that say which go in, and what will be judged."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from epsgauge.cli.audit import (
    ClaimedAdjacency,
    ClaimedDelta,
    ClaimedEps,
    ClaimedMu,
    Delta,
    FitPairs,
    Level,
    PooledGuesses,
    PooledNumber,
    VerdictLevel,
    VerdictMethod,
    given_settings,
    rule_of,
)
from epsgauge.cli.declare import direction_of
from epsgauge.cli.scores import EitherWay, LowerIsIn
from epsgauge.cli.terminal import AsJson, print_json, say
from epsgauge.errors import InvalidInput


def coins(
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="CSV file to write, say coins.csv.")],
    canaries: Annotated[int | None, typer.Option(help="How many canaries to make.")] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(help="text, image, row, gradient, or a kind of docs/train-once.md; several in equal parts."),
    ] = None,
    own: Annotated[
        Path | None, typer.Option("--from", metavar="FILE", help="Canaries of your own: a CSV file or JSON Lines.")
    ] = None,
    corpus: Annotated[Path | None, typer.Option(help="Texts as in your training, one per line.")] = None,
    labels: Annotated[int | None, typer.Option(help="Classes: each canary gets a random label.")] = None,
    shape: Annotated[str | None, typer.Option(help="Shape of an image, say 28x28 or 3x32x32.")] = None,
    features: Annotated[int | None, typer.Option(help="Columns of a table.")] = None,
    parameters: Annotated[int | None, typer.Option(help="Numbers in an update, for gradient canaries.")] = None,
    sample_rate: Annotated[float | None, typer.Option(help="Sampling rate of DP-SGD.")] = None,
    noise_multiplier: Annotated[float | None, typer.Option(help="Noise multiplier that DP-SGD claims.")] = None,
    steps: Annotated[int | None, typer.Option(help="Steps of DP-SGD.")] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed of the coins. [default: drawn by the operating system]")
    ] = None,
    lower_is_in: LowerIsIn = False,
    either_way: EitherWay = False,
    note: Annotated[str | None, typer.Option(help="What to remember of the training and its attack.")] = None,
    delta: Delta = None,
    level: Level = None,
    fit_pairs: FitPairs = None,
    threshold: Annotated[float | None, typer.Option(help="Use this threshold.")] = None,
    verdict_method: VerdictMethod = None,
    verdict_level: VerdictLevel = None,
    pooled_guesses: PooledGuesses = None,
    pooled_number: PooledNumber = None,
    claimed_eps: ClaimedEps = None,
    claimed_delta: ClaimedDelta = None,
    claimed_mu: ClaimedMu = None,
    claimed_adjacency: ClaimedAdjacency = None,
    as_json: AsJson = False,
) -> None:
    """Make canaries for one training, draw by fair coins which go in, and declare what will be judged."""
    options: dict[str, Any] = dict(locals())
    from epsgauge.auditing.coins import coins as make

    given = given_settings(options)
    rule = {name: value for name, value in rule_of(given, False).items() if value is not None}
    made = make(
        out,
        canaries=canaries,
        kind=kind or ["text"],
        seed=seed,
        corpus=corpus,
        labels=labels,
        shape=None if shape is None else _shape(shape),
        features=features,
        parameters=parameters,
        own=own,
        privacy=_privacy(sample_rate, noise_multiplier, steps),
        direction=direction_of(lower_is_in, either_way),
        note=note,
        **given,
        **rule,
    )
    declared = made.declaration
    if as_json:
        print_json({**declared.to_json(), "coins": str(out), "declared": dict(declared.content)})
        return
    say(
        f"wrote {out}: {len(made.rows)} canaries, {len(made.included)} of them in",
        f"wrote {declared.file}: what will be judged",
        f"digest {declared.digest}",
        "next: train once with the canaries whose coin is in, score all of them,",
        f"      and epsgauge scores SCORES --coins {out}",
    )


def _shape(text: str) -> list[int]:
    if not re.fullmatch(r"\d+(x\d+)*", text):
        raise InvalidInput(f"shape must be numbers with x between them, say 28x28, but got {text!r}.")
    return [int(side) for side in text.split("x")]


def _privacy(sample_rate: float | None, noise_multiplier: float | None, steps: int | None) -> Any:
    given = (sample_rate, noise_multiplier, steps)
    if all(each is None for each in given):
        return None
    if sample_rate is None or noise_multiplier is None or steps is None:
        raise InvalidInput("DP-SGD is stated by all of --sample-rate, --noise-multiplier and --steps, or by none.")
    from epsgauge.mechanisms.privacy import DPSGD

    return DPSGD(sample_rate, noise_multiplier, steps)
