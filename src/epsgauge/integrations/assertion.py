"""assert_private: one assertion about a training, for a test suite. A probe first, then a membership game."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from epsgauge.adjacency import Adjacency
from epsgauge.adjacency import checked as checked_adjacency
from epsgauge.auditing.audit import Audit, audit
from epsgauge.auditing.basis import Basis, basis_of
from epsgauge.auditing.claim import Claim
from epsgauge.auditing.gate import gate
from epsgauge.auditing.reach import Reach
from epsgauge.data.points import Points, as_points
from epsgauge.errors import EpsgaugeError, InvalidInput
from epsgauge.integrations.hearing import HEARING
from epsgauge.mechanisms.privacy import DPSGD, judged_by_curve
from epsgauge.numbers import at_least, exactly
from epsgauge.probing.probe import probe
from epsgauge.probing.result import Probe, Unprobed
from epsgauge.runner.executors import InProcess
from epsgauge.runner.plan import Plan
from epsgauge.runner.play import promised
from epsgauge.runner.run import run
from epsgauge.stats import checks
from epsgauge.trainers.protocol import Observer, Trainer, as_trainer, observed

# A game of fewer models shows next to nothing; more than the most are not needed to refute what can be refuted.
FEWEST, MOST = 40, 5000
# Trainings of a game for each model that is judged: those of the rehearsal and the control come to that.
EACH = 1.4
# Seconds that it takes to keep what was seen of a model, and to judge it.
KEEPING = 0.003
# False alarms of a game: one in a thousand runs of a test, where the training is as claimed.
LEVEL = 0.999
REFERENCE = 200
# Records that may equal a canary, which a training set must not have: so many others stand in it twice.
SPARE = 64
NAME = "assert_private"


class NotPrivate(AssertionError):
    """A claim about a training does not hold, or nothing could have shown that it does not."""

    def __init__(self, message: str, checked: Checked) -> None:
        super().__init__(message)
        self.checked = checked


@dataclass(frozen=True, eq=False)
class Checked:
    """What an assertion rests on: the probe, the audit of the game, or why there is none."""

    eps: float
    delta: float
    adjacency: Adjacency
    probe: Probe | Unprobed
    audit: Audit | None
    unplayed: str = ""  # why there is no audit
    n_models: int | None = None  # of the game

    @property
    def basis(self) -> Basis:
        """What the probe leaves of the claim: it stands where the accountant, given what was found, says no more."""
        claim = Claim(eps=self.eps, delta=self.delta, adjacency=self.adjacency, source="stated")
        return basis_of(claim, self.probe.privacy if isinstance(self.probe, Probe) else None, self.probe)

    @property
    def finding(self) -> str | None:
        """What refutes the claim, in one sentence; None where nothing does."""
        if self.basis.broken:
            first, *others = self.basis.broken
            more = f" Also refuted: {', '.join(f.name for f in others)}." if others else ""
            spent = self.basis.eps
            least = "" if spent is None else f"; with what was found, it is at least {at_least(spent)}"
            claim = f"ε = {exactly(self.eps)} at δ = {self.delta:g} ({self.adjacency}) is claimed{least}."
            return f"{first.name}: {first.sentence}{more} {claim}"
        if self.audit is not None:
            reasons = gate(self.audit, fail_on="violation").reasons
            return reasons[0] if reasons else None
        return None

    @property
    def untested(self) -> str | None:
        """Why nothing could have refuted the claim, in one sentence; None where something could have."""
        idle = () if self.audit is None else gate(self.audit, fail_on="violation").idle
        if self.basis.tested or (self.audit is not None and not idle):
            return None
        tested = "the probe did not test all that the accountant assumes"
        probed = tested if isinstance(self.probe, Probe) else f"there was no probe ({self.probe.reason.rstrip('.')})"
        if self.audit is None:
            return f"Cannot decide: {probed}, and no game was played: {self.unplayed}"
        return f"Cannot decide: {probed}, and {'; '.join(idle)}."

    @property
    def sentence(self) -> str:
        """What came out, in one sentence."""
        if self.finding is not None:
            return self.finding
        if self.untested is not None:
            return self.untested
        game = self.unplayed if self.audit is None else self.audit.verdict.sentence
        return f"probe: {self.probe.brief}. game: {game}"

    def to_json(self) -> dict[str, Any]:
        failed = self.finding is not None
        return {
            "outcome": "refuted" if failed else "no objection" if self.untested is None else "cannot decide",
            "sentence": self.sentence,
            "claim": {"eps": self.eps, "delta": self.delta, "adjacency": self.adjacency},
            "models": self.n_models,
            "probe": self.probe.to_json(),
            "audit": None if self.audit is None else self.audit.to_json(),
        }


def assert_private(
    train: Any,
    data: Any,
    *,
    eps: float,
    delta: float = 1e-5,
    adjacency: Adjacency = "add-remove",
    seconds: float = 60.0,
    models: int | None = None,
    losses: Callable[[Any, Any], Any] | None = None,
    privacy: DPSGD | None = None,
    train_size: int | None = None,
    seed: int = 0,
    allow_undecided: bool = False,
) -> Checked:
    """Raise `NotPrivate`, an AssertionError, if a probe or a membership game refutes that `train` is (ε, δ)-private.

    `train` is a trainer, with `train(data, *, seed)` and `losses(model, points)`; or the function `train` alone, and
    then `losses` is one too. It is probed if it takes `watch` and says what is accounted: by `privacy(n)`, or here.
    The game has as many models as fit into what is left of `seconds`, or `models`. If neither probe nor game could have
    failed, the assertion fails as well, unless `allow_undecided`. A game that could not refute the claim even by a
    perfect attack is not played, and the sentence says how many models it needs.
    """
    __tracebackhide__ = True
    trainer, points = _trainer(train, losses, privacy), as_points(data, "data")
    budget = checks.positive("seconds", seconds)
    size = len(points) if train_size is None else int(checks.one("train_size", checks.counts("train_size", train_size)))
    hearing = HEARING.get()
    asked = hearing.models if hearing is not None and hearing.models is not None else models
    claim: dict[str, Any] = {
        "eps": checks.one("eps", checks.eps(eps)),
        "delta": checks.one("delta", checks.delta(delta)),
        "adjacency": checked_adjacency(adjacency),
    }
    start = time.perf_counter()
    try:
        probed: Probe | Unprobed = probe(
            trainer,
            data,
            delta=claim["delta"],
            adjacency=adjacency,
            train_size=size,
            seed=seed,
        )
    except EpsgaugeError as error:
        probed = Unprobed(str(error))
    checked = Checked(**claim, probe=probed, audit=None, unplayed="the probe refutes the claim already")
    if checked.finding is None:
        left = budget - (time.perf_counter() - start)
        n = _affordable(trainer, points, size, left, seed) if asked is None else int(asked)
        if n < FEWEST:
            why = f"{n} models fit into what is left of {budget:g} seconds, and {FEWEST} are the fewest. Allow more."
            checked = Checked(**claim, probe=probed, audit=None, unplayed=why)
        else:
            n = min(n, MOST)
            plan = _plan(trainer, points, claim, n, size, seed)
            hopeless = _hopeless(plan, trainer, claim)
            if hopeless is not None:
                checked = Checked(**claim, probe=probed, audit=None, unplayed=hopeless, n_models=n)
            else:
                found = _audited(plan, probed, None if hearing is None else hearing.folder())
                checked = Checked(**claim, probe=probed, audit=found, n_models=n)
    if hearing is not None:
        hearing.heard(checked)
    wrong = checked.finding or (None if allow_undecided else checked.untested)
    if wrong is not None:
        again = "" if hearing is None else f" To repeat it: {hearing.command(checked)}"
        raise NotPrivate(f"{wrong}{again}", checked) from None
    return checked


class Functions:
    """A trainer of functions."""

    def __init__(self, train: Callable[..., Any], losses: Callable[[Any, Any], Any]) -> None:
        self.train, self.losses = train, losses


class Accounted(Functions):
    """The same, with what is accounted for it."""

    def __init__(self, train: Callable[..., Any], losses: Callable[[Any, Any], Any], privacy: DPSGD) -> None:
        super().__init__(train, losses)
        self._privacy = privacy

    def privacy(self, n: int) -> DPSGD:
        return self._privacy


def _trainer(train: Any, losses: Any, privacy: DPSGD | None) -> Trainer | Observer:
    if losses is None and privacy is None:
        return as_trainer(train, NAME)
    how, says = getattr(train, "train", train), getattr(train, "losses", None) if losses is None else losses
    if not callable(how) or not callable(says):
        raise InvalidInput(
            f"{NAME} needs a trainer, or the functions train and losses=, but got {type(train).__name__}. Pass "
            "losses=losses, which takes a model and points and returns one loss per point."
        )
    return Functions(how, says) if privacy is None else Accounted(how, says, privacy)


def _affordable(trainer: Trainer | Observer, points: Points, size: int, left: float, seed: int) -> int:
    """How many models a game can have: as many as the time of the second training allows."""
    members, asked = points.take(np.arange(size)), points.take(np.arange(2))
    took = 0.0
    for each in range(2):  # the first may import and compile
        began = time.perf_counter()
        observed(trainer, members, asked, 2, seed=seed + each, size=size)
        took = time.perf_counter() - began
        left -= took
    return max(int(left / (EACH * (took + KEEPING))), 0)


def _plan(
    trainer: Trainer | Observer, points: Points, claim: dict[str, Any], n_models: int, size: int, seed: int
) -> Plan:
    """A game of the default adversary: the best of several canaries, and the losses of the last model."""
    n = len(points)
    spare = np.arange(max(size + SPARE - n, 0)) % n
    return Plan(
        name=NAME,
        seed=seed,
        n_models=n_models,
        probe=False,
        data=points.take(np.concatenate([np.arange(n), spare])),
        trainer=trainer,
        game={
            "train_size": size,
            "adjacency": claim["adjacency"],
            "reference_size": max(min(REFERENCE, n - size), 1),
        },
        audit={
            "delta": claim["delta"],
            "verdict_level": LEVEL,
            "claimed_eps": claim["eps"],
            "claimed_delta": claim["delta"],
            "claimed_adjacency": claim["adjacency"],
        },
    )


def _hopeless(plan: Plan, trainer: Trainer | Observer, claim: dict[str, Any]) -> str | None:
    """Why no game of so many models could refute the claim; None if one could."""
    reach = Reach(plan, judged_by_curve(promised(plan, trainer), claim["adjacency"]))
    why = reach.hopeless(plan.n_models, claim["eps"], claim["delta"])
    return None if why is None else f"{why} Pass models= or allow more seconds."


def _audited(plan: Plan, probed: Probe | Unprobed, kept: Path | None) -> Audit:
    """The audit of a game, which shows the probe that was made before it."""
    with TemporaryDirectory() as scratch:
        played = run(plan, out=kept or Path(scratch, "run"), executor=InProcess())
        return audit(replace(played, probe=probed))
