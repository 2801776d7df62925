"""The audit of any randomised mechanism: a game is played, and its scores are judged as those of models are."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np

from epsgauge.auditing.adversary import Adversary
from epsgauge.auditing.again import again
from epsgauge.auditing.audit import Audit, Case, Models, assemble
from epsgauge.auditing.beforehand import check_of_scores
from epsgauge.auditing.claim import Claim, Promises, promises
from epsgauge.auditing.replayed import sensitivity
from epsgauge.auditing.setup import Setup, setup_of
from epsgauge.bounds.foretold import Wealth, first_above, wanted
from epsgauge.errors import InvalidInput
from epsgauge.mechanisms.curves import Curve
from epsgauge.methods.evidence import Evidence
from epsgauge.methods.facts import Lost
from epsgauge.methods.foretelling import Foretelling
from epsgauge.methods.table import SHARPEST
from epsgauge.numbers import number
from epsgauge.sampling.game import MechanismGame, Played, Sampled
from epsgauge.sampling.learning import broken_by
from epsgauge.sampling.memory import ENOUGH
from epsgauge.sampling.regions import REGIONS
from epsgauge.scores.rules import Given, SameData, judge
from epsgauge.settings import OF_A_RULE, AuditSettings

STOPPED = "samples were to be drawn until a violation is proven"
ACCESS = "it sees the whole output of the mechanism"


def audit_game(game: MechanismGame, changes: Mapping[str, Any]) -> Audit:
    """Play a game and judge it; `changes` are settings of an audit, and `claimed_curve`."""
    given, changes = changes, {name: value for name, value in changes.items() if name != "claimed_curve"}
    claimed = given.get("claimed_curve")
    curve = None if claimed is None else Curve.of(claimed)
    if curve is not None:
        changes = _beside_curve(game, changes)
    using = _setup(game, changes)
    claim = promises(using.settings, None, game.adjacency, trained=False)
    aim = curve or _aim(claim)
    if game.until is None:
        played = game.play(aim)
        using, claim = (using, claim) if curve is None else _at_point(game, changes, curve, played.point)
        return assemble(_case(game, using, claim, played, _evidence(game, played, claim.delta), again(game, given)))
    if using.settings.by_mu:
        mu = f"{using.settings.claimed_mu:g}"
        raise InvalidInput(
            f'until="violation" judges one point of a curve, not μ. Use claimed_curve="gaussian:{mu}" (--curve '
            f"gaussian:{mu}), of which samples set apart choose the point."
        )
    if aim.eps[0] == math.inf:
        raise InvalidInput('until="violation" needs a claim of ε to refute. State claimed_eps and claimed_delta.')
    if using.settings.verdict_method is not None:
        raise InvalidInput('until="violation" is judged by a bound for every moment. Leave out verdict_method.')
    watched = game.watch(aim)
    first = next(watched)
    using, claim = (using, claim) if curve is None else _at_point(game, changes, curve, first.point)
    assert isinstance(claim.claim, Claim)
    played = _until_refuted(chain([first], watched), claim.claim, claim.delta, using.settings.verdict_level)
    played = _both_ways(game, played, claim.claim, claim.delta)
    evidence = _evidence(game, played, claim.delta)
    return assemble(_case(game, replace(using, method=Foretelling()), claim, played, evidence, again(game, given)))


def _aim(claim: Promises) -> Curve:
    """What a region is learned for."""
    if not isinstance(claim.claim, Claim):
        return Curve.point(math.inf, claim.delta)
    if claim.claim.mu:
        return Curve.of(f"gaussian:{claim.claim.mu!r}")
    return Curve.point(claim.claim.eps, claim.delta)


def _beside_curve(game: MechanismGame, changes: Mapping[str, Any]) -> dict[str, Any]:
    """The other settings; what would state the claim again is refused."""
    values = {name: value for name, value in changes.items() if value is not None}
    for name in ("claimed_eps", "claimed_delta", "claimed_mu", "delta"):
        if name in values:
            raise InvalidInput(f"claimed_curve states a claim of its own, but {name} is given too. Leave out one.")
    if values.pop("claimed_adjacency", game.adjacency) != game.adjacency:
        raise InvalidInput(f"claimed_curve is for the adjacency of the game, {game.adjacency}. Claim a curve for that.")
    return values


def _at_point(game: MechanismGame, changes: Mapping[str, Any], curve: Curve, at: int) -> tuple[Setup, Promises]:
    """The claim of one point, which was chosen on samples that are not judged."""
    eps, delta = float(curve.eps[at]), float(curve.delta[at])
    using = _setup(game, {**changes, "claimed_eps": eps, "claimed_delta": delta})
    found = promises(using.settings, None, game.adjacency, trained=False)
    assert isinstance(found.claim, Claim)
    note = (
        f"One point of the claimed curve {curve.name} is judged: ε = {number(eps)} at δ = {delta:.3g}. It was chosen "
        "on samples set apart."
    )
    claim = replace(found.claim, curve=curve.name, note=note)
    return using, replace(found, claim=claim, notes=(*found.notes, note))


def _setup(game: MechanismGame, changes: Mapping[str, Any]) -> Setup:
    """δ is that of the claim, and 0 without one; the claim is for the game's adjacency; the region is the rule."""
    check_of_scores(changes)
    for name in ("rule", *OF_A_RULE, "search"):
        if name in changes:
            raise InvalidInput(f"{name} goes with a run or scores, but a game learns its region itself. Leave it out.")
    values = dict(changes)
    if values.get("claimed_eps") is not None:
        values.setdefault("claimed_delta", values.get("delta", 0.0))
    if values.get("claimed_eps") is not None or values.get("claimed_mu") is not None:
        values.setdefault("claimed_adjacency", game.adjacency)
    if values.get("claimed_mu") is None:
        values.setdefault("delta", values.get("claimed_delta", 0.0))
    using = setup_of(AuditSettings(), values)
    return using if using.method is not None or using.settings.by_mu else replace(using, method=SHARPEST)


def _evidence(game: MechanismGame, played: Played, delta: float) -> Evidence:
    """Of a game that goes on until a violation no sample is left to choose a threshold; its bound needs none."""
    rule = SameData() if played.foretold is not None else Given(played.threshold)
    if len(played.series) < ENOUGH:
        more = game.draw(ENOUGH, part=(5,), pair=played.pair)
        played.series.add(more.outputs, more.bits)
    dependent = played.series.dependent(game.mechanism, game.all_pairs[played.pair])
    return Evidence(judge(played.scores, rule, delta=delta), foretold=played.foretold, dependent=dependent)


def _until_refuted(watched: Iterable[Played], claim: Claim, delta: float, level: float) -> Played:
    """By bets against the claim, after each batch."""
    wealth = None
    for played in watched:
        seen = played.foretold
        assert seen is not None
        wealth = wealth or Wealth(seen.weights, first_above(claim.eps), delta)
        new = seen.ends[-1] - (seen.ends[-2] if len(seen.ends) > 1 else 0)
        if wealth.add(seen.log_odds[-new:], seen.bits[-new:], np.array([new]))[-1] >= wanted(level):
            break
    return played


def _both_ways(game: MechanismGame, played: Played, claim: Claim, delta: float) -> Played:
    """If a region with a remedy foretold most, one without comes first where it breaks the claim too."""
    seen = played.foretold
    assert seen is not None
    broken = [
        name
        for name, odds in zip(game.regions, seen.log_odds.T[1:], strict=True)
        if not REGIONS[name].remedy and broken_by(seen.bits, odds, claim.eps, delta, game.adjacency)
    ]
    return replace(played, region=broken[0], also=played.region) if REGIONS[played.region].remedy and broken else played


def _case(game: MechanismGame, using: Setup, claim: Promises, played: Played, evidence: Evidence, command: str) -> Case:
    region = REGIONS[played.region]
    on_the_way = game.until is not None
    how = "learned anew on all samples before" if on_the_way else "learned on samples set apart"
    who = Adversary(f"region {region.name}", f"{region.meaning}, {how}", ACCESS)
    lost = Lost(STOPPED, stopping=True) if on_the_way else None
    found = sensitivity(game)
    broken = () if found is None or found.result != "refuted" else (found,)
    n, judged = len(played.scores.models), evidence.judged.n_models
    sampled = Sampled(
        mechanism=game.title,
        region=region.name,
        pair=_pair(game, played.pair),
        drawn=played.n_drawn,
        apart=played.n_drawn - judged,
        raised=played.n_raised,
        seed=game.seed,
        seeded=game.call.seeded,
        command=command,
        sensitivity=None if found is None else f"{found.result}. {found.sentence}",
        cautions=game.cautions(played.pair),
        also=played.also,
    )
    return Case(game.title, using, evidence, 1, claim, Models(n, n, 0), lost, who=who, sampled=sampled, broken=broken)


def _pair(game: MechanismGame, at: int) -> str:
    d0, d1 = game.all_pairs[at]
    n = len(game.all_pairs)
    which = "" if n == 1 else f", the best of {n} pairs, chosen on samples set apart"
    return f"d0 = {_short(d0)} and d1 = {_short(d1)}{which}"


def _short(data: Any) -> str:
    text = " ".join(repr(data.tolist() if isinstance(data, np.ndarray) else data).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
