"""Which claim an audit judges: a stated one, else what the accountant or a proof says of the trainer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from epsgauge.adjacency import ADJACENCIES, LABEL_DP, Adjacency, check_implied
from epsgauge.errors import InvalidInput, MissingExtra
from epsgauge.mechanisms.accounting import accountant_eps, substituted
from epsgauge.mechanisms.privacy import DPSGD, UNKNOWN, KnownPrivacy, Privacy
from epsgauge.numbers import at_most, exactly
from epsgauge.settings import AuditSettings
from epsgauge.stats import region

Source = Literal["stated", "accountant", "known"]

CONTROL = "This is a control run without noise: it shows what the attack can find, not what the pipeline spends."
_COVERED = "The claim is about replacing a record, which covers a change of its label."


@dataclass(frozen=True)
class Claim:
    """(ε, δ) for the adjacency of the game, and where it comes from."""

    eps: float
    delta: float
    adjacency: Adjacency
    source: Source
    note: str | None = None  # how it was taken, where that is not plain
    mu: float | None = None  # where it is one of Gaussian DP: ε is what it is worth at δ
    curve: str | None = None  # where it is one point of a curve that is claimed

    @property
    def is_curve(self) -> bool:
        """Whether more than one point is claimed: DP-SGD as accounted, or Gaussian DP."""
        return self.source == "accountant" or self.mu is not None

    @property
    def given(self) -> bool:
        """Whether ε is as it was stated; else it was computed, and is rounded up."""
        return self.source == "stated" and self.mu is None and self.note is None

    @property
    def eps_text(self) -> str:
        return exactly(self.eps) if self.given else at_most(self.eps)

    @property
    def text(self) -> str:
        return f"ε = {self.eps_text} at δ = {self.delta:.3g}"


@dataclass(frozen=True)
class NoClaim:
    """There is nothing to judge, and why."""

    reason: str


@dataclass(frozen=True)
class Promises:
    """What is judged, and ε at the audit's δ under each adjacency; None where it is not known."""

    claim: Claim | NoClaim
    accountant: dict[Adjacency, float | None]
    source: Source | None  # of the numbers in `accountant`
    delta: float  # at which the claim is judged; without one, of the audit
    notes: tuple[str, ...] = ()


def promises(
    settings: AuditSettings,
    privacy: Privacy | None,
    adjacency: Adjacency,
    *,
    control: bool = False,
    trained: bool = True,
) -> Promises:
    """The claim to judge in a game with this adjacency; a stated one wins over the accountant's.

    `trained` is False where nothing is known of a trainer: of a table of scores.
    """
    shown = [a for a in ADJACENCIES if a == adjacency or a != "label-only"]
    eps: dict[Adjacency, float | None] = dict.fromkeys(shown)
    if control:
        return Promises(
            NoClaim("a control run has no noise, so nothing is promised."),
            eps,
            None,
            settings.delta,
            (CONTROL,),
        )
    source: Source = "known" if isinstance(privacy, KnownPrivacy) else "accountant"
    missing: tuple[str, ...] = ()
    try:
        if privacy is not None:
            eps = {a: accountant_eps(privacy, delta=settings.delta, adjacency=a) for a in shown}
    except MissingExtra as error:
        missing = (f"The accountant's ε is not shown: {error}.",)
    if settings.claimed_adjacency is not None:
        claim = stated(settings, adjacency)
    elif missing:
        claim = NoClaim(missing[0])
    elif not trained:
        claim = NoClaim("none was given.")
    else:
        claim = _computed(privacy, source, eps[adjacency], settings.delta, adjacency)
    notes = (*missing, *([claim.note] if isinstance(claim, Claim) and claim.note else []))
    notes += (LABEL_DP,) if adjacency == "label-only" else ()
    delta = claim.delta if isinstance(claim, Claim) else settings.delta
    return Promises(claim, eps, None if privacy is None else source, delta, notes)


def stated(settings: AuditSettings, adjacency: Adjacency) -> Claim | NoClaim:
    """The claim that the settings state, for the adjacency of the game."""
    if settings.claimed_mu is not None:
        return _stated_mu(settings.claimed_mu, settings, adjacency)
    eps, delta = settings.claimed_eps, settings.claimed_delta
    if eps is None or delta is None or settings.claimed_adjacency is None:
        raise InvalidInput("a claim needs all of claimed_eps, claimed_delta and claimed_adjacency.")
    check_implied(settings.claimed_adjacency, adjacency)
    if math.isinf(eps):
        return NoClaim("the stated ε is infinite: nothing is promised that could be refuted.")
    if settings.claimed_adjacency == adjacency:
        return Claim(eps, delta, adjacency, "stated")
    if settings.claimed_adjacency == "substitute":
        return Claim(eps, delta, adjacency, "stated", _COVERED)
    as_eps, as_delta = substituted(eps, delta)
    if as_delta >= 1:
        return NoClaim(
            f"the stated add-remove claim (ε = {eps:g}, δ = {delta:g}) means (2ε, (1 + e^ε)δ) under substitution, and "
            f"that δ of {as_delta:.3g} is not below 1: it promises nothing. State a claim for substitution."
        )
    note = (
        f"The stated add-remove claim (ε = {eps:g}, δ = {delta:g}) is judged in a game of substitution, where it means "
        f"(2ε, (1 + e^ε)δ) = (ε = {as_eps:g}, δ = {as_delta:.3g})."
    )
    return Claim(as_eps, as_delta, adjacency, "stated", note)


def _stated_mu(mu: float, settings: AuditSettings, adjacency: Adjacency) -> Claim | NoClaim:
    """Replacing a point is removing one and adding one, and two steps of μ-Gaussian DP are one of 2μ."""
    if settings.claimed_adjacency is not None:
        check_implied(settings.claimed_adjacency, adjacency)
    if math.isinf(mu):
        return NoClaim("the stated μ is infinite: nothing is promised that could be refuted.")
    note = _COVERED if settings.claimed_adjacency == "substitute" and adjacency == "label-only" else None
    if settings.claimed_adjacency == "add-remove" and adjacency != "add-remove":
        note = (
            f"The stated add-remove claim (μ = {mu:g}) is judged in a game of substitution, where it means 2μ = "
            f"{2 * mu:g}."
        )
        mu = 2.0 * mu
    eps = float(region.gaussian_eps(mu, delta=settings.delta))
    return Claim(eps, settings.delta, adjacency, "stated", note, mu)


def _computed(
    privacy: Privacy | None, source: Source, eps: float | None, delta: float, adjacency: Adjacency
) -> Claim | NoClaim:
    if privacy is None:
        return NoClaim("none was given, and the trainer does not say what it promises (privacy).")
    if eps is None and isinstance(privacy, KnownPrivacy):
        return NoClaim(
            f"what is known of the mechanism (ε = {privacy.eps:g} at δ = {privacy.delta:g}, {privacy.adjacency}) "
            f"implies nothing at δ = {delta:g} for the adjacency {adjacency}."
        )
    if isinstance(privacy, DPSGD) and privacy.correlation:
        return NoClaim(f"{UNKNOWN}. State the ε that was proven for it as claimed_eps.")
    if eps is None or math.isinf(eps):
        return NoClaim(f"the accountant's ε at δ = {delta:g} is infinite: nothing is promised that could be refuted.")
    if not isinstance(privacy, KnownPrivacy):
        return Claim(eps, delta, adjacency, source, _COVERED if adjacency == "label-only" else None)
    if privacy.adjacency == adjacency:
        return Claim(eps, delta, adjacency, source)
    if privacy.adjacency == "substitute":
        return Claim(eps, delta, adjacency, source, _COVERED)
    note = (
        f"The mechanism's ε = {privacy.eps:g} is known for {privacy.adjacency}; under {adjacency} it is taken as "
        "(2ε, (1 + e^ε)δ)."
    )
    return Claim(eps, delta, adjacency, source, note)
