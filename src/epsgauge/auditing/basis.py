"""What a claim rests on: the accountant's numbers, and what a probe found of the training that they are about."""

from __future__ import annotations

from dataclasses import dataclass

from epsgauge.auditing.claim import Claim
from epsgauge.mechanisms.privacy import DPSGD, Privacy
from epsgauge.numbers import at_least
from epsgauge.probing.finding import Finding
from epsgauge.probing.result import Probe, Unprobed
from epsgauge.probing.spent import accounted, accounting, found_eps
from epsgauge.runner.view import Run

# What a probe must have found consistent to stand for a game: noise, clipping, sampling, steps and bypass.
TESTED = {"noise", "fresh noise", "sensitivity", "sampling rate", "steps", "bypass"}


# And for each of several gradient canaries of one model to count as a model of its own.
OF_DIRECTIONS = ("noise", "fresh noise", "independence", "sensitivity")


def orthogonal(run: Run) -> bool:
    """Whether its models have several gradient canaries, and a probe found that each meets its own noise."""
    found = run.probe.findings if isinstance(run.probe, Probe) else ()
    consistent = {finding.name for finding in found if finding.result == "consistent"}
    return run.plan.orthogonal and consistent.issuperset(OF_DIRECTIONS)


@dataclass(frozen=True)
class Basis:
    """What is known of it. Where anything is `broken`, the claim has lost its support, though it is not refuted."""

    probe: Probe | Unprobed | None = None  # None: the run made none
    broken: tuple[Finding, ...] = ()
    of: str = "training"  # what was tested
    eps: float | None = None  # with what was found the accountant would say at least this; None where no number says so

    @property
    def refuted(self) -> bool:
        """Whether a probe found that the training is not DP-SGD as stated."""
        return isinstance(self.probe, Probe) and bool(self.probe.refuted)

    @property
    def tested(self) -> bool:
        """Whether a probe tested all that the accountant assumes and left the claim its support."""
        if not isinstance(self.probe, Probe) or self.broken:
            return False
        return {finding.name for finding in self.probe.findings if finding.result != "not tested"} >= TESTED

    @property
    def said(self) -> str:
        """What is broken, in a sentence for each."""
        found = [f"{finding.name.capitalize()}: {finding.sentence}" for finding in self.broken]
        if self.eps is not None:
            found.append(f"With what was found, the accountant would say at least ε = {at_least(self.eps)}.")
        return " ".join(found)


def basis_of(claim: Claim, privacy: Privacy | None, probe: Probe | Unprobed | None) -> Basis:
    """Hold a claim against what was found. It stands if the accountant, given what was found, says no more than it."""
    if isinstance(probe, Probe) and probe.privacy.correlation:  # no curve is known of it
        privacy = probe.privacy
    if not isinstance(privacy, DPSGD):
        return Basis(probe)
    broken = [f for f in probe.refuted if _concerns(f, claim)] if isinstance(probe, Probe) else []
    eps = found_eps(privacy, broken, claim.delta, claim.adjacency)
    if eps is not None and eps <= claim.eps and all(finding.numbered for finding in broken):
        broken, eps = [], None
    if not any(finding.name == "accounting" for finding in broken):
        broken += _accounting(claim, privacy)
    return Basis(probe, tuple(broken), eps=eps)


def _concerns(finding: Finding, claim: Claim) -> bool:
    """Whoever replaces records may know how many there are."""
    return finding.name != "left out" or claim.adjacency == "add-remove"


def _accounting(claim: Claim, privacy: DPSGD) -> list[Finding]:
    """A stated claim may promise more than the numbers of the training do."""
    says = accounted(privacy, claim.delta, claim.adjacency) if claim.source == "stated" else None
    if says is None or says <= claim.eps:
        return []
    found = accounting(privacy, claim.delta, claim.adjacency, claim.eps)
    return [found] if found.result == "refuted" else []
