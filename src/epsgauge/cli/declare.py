"""`epsgauge declare`: how a file of scores will be judged, written down before the scores are seen."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

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
    SameData,
    VerdictLevel,
    VerdictMethod,
    given_settings,
    rule_of,
)
from epsgauge.cli.scores import EitherWay, Independent, LowerIsIn, OneModel, models_of
from epsgauge.cli.terminal import AsJson, print_json, say
from epsgauge.errors import InvalidInput


def declare(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File to write, say scores.plan.")],
    adjacency: Annotated[str, typer.Option(help="substitute, add-remove or label-only.")],
    bits: Annotated[str, typer.Option(help="Where the bits come from: coins, dealt or unknown.")] = "unknown",
    one_model: OneModel = False,
    independent: Independent = False,
    lower_is_in: LowerIsIn = False,
    either_way: EitherWay = False,
    note: Annotated[str | None, typer.Option(help="A note about the attack and its scores.")] = None,
    delta: Delta = None,
    level: Level = None,
    fit_models: Annotated[
        int | None, typer.Option(help="Use this many models to choose the threshold. [default: a sixth]")
    ] = None,
    fit_pairs: FitPairs = None,
    seed: Annotated[int, typer.Option(help="Decides which models or pairs are used to choose the threshold.")] = 0,
    threshold: Annotated[float | None, typer.Option(help="Use this threshold.")] = None,
    same_data: SameData = False,
    target_fpr: Annotated[float | None, typer.Option(help="Choose the threshold with this FPR.")] = None,
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
    """Write down how a file of scores will be judged, before you see the scores."""
    options: dict[str, Any] = dict(locals())
    from epsgauge.auditing.beforehand import declare as write

    given = given_settings(options)
    rule = {name: value for name, value in rule_of(given, same_data).items() if value is not None}
    said: dict[str, Any] = {"adjacency": adjacency, "bits": bits, "seed": seed, "note": note}
    said["models"] = models_of(one_model, independent)
    said["direction"] = direction_of(lower_is_in, either_way)
    written = write(file, **said, **given, **rule)
    if as_json:
        print_json({**written.to_json(), "declared": dict(written.content)})
    else:
        say(f"wrote {file}", f"digest {written.digest}", f"next: epsgauge scores SCORES --declared {file}")


def direction_of(lower_is_in: bool, either_way: bool) -> Literal["higher", "lower", "either"]:
    """Which scores will mean that b = 1."""
    if lower_is_in and either_way:
        raise InvalidInput("only one of --lower-is-in and --either-way can hold. Leave out the other.")
    return "lower" if lower_is_in else "either" if either_way else "higher"
