"""assert_private: one assertion about a training, for a test suite. A probe first, then a membership game."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from epsgauge.adjacency import Adjacency
from epsgauge.adjacency import checked as checked_adjacency
from epsgauge.auditing.audit import Audit, audit
from epsgauge.auditing.basis import Basis, basis_of
from epsgauge.auditing.claim import Claim
from epsgauge.auditing.gate import gate
from epsgauge.auditing.reach import Reach
from epsgauge.errors import EpsgaugeError
from epsgauge.integrations.asserted import Asserted, OfScript, asserted
from epsgauge.integrations.hearing import HEARING
from epsgauge.mechanisms.privacy import DPSGD, Privacy, judged_by_curve
from epsgauge.numbers import at_least, exactly
from epsgauge.probing.result import Probe, Unprobed
from epsgauge.runner.executors import InProcess
from epsgauge.runner.plan import Plan
from epsgauge.runner.run import run
from epsgauge.stats import checks

# A game of fewer models shows next to nothing; more than the most are not needed to refute what can be refuted.
FEWEST, MOST = 40, 5000


class NotPrivate(AssertionError):
    """A claim about a training does not hold, or nothing could have shown that it does not."""

    def __init__(self, message: str, checked: Checked) -> None:
        super().__init__(message)
        self.checked = checked


@dataclass(frozen=True, eq=False)
class Checked:
    """What an assertion rests on: the probe, the audit of the game, or why there is none."""

    claim: Claim
    probe: Probe | Unprobed
    audit: Audit | None
    unplayed: str = ""  # why there is no audit
    n_models: int | None = None  # of the game

    @property
    def basis(self) -> Basis:
        """What the probe leaves of the claim: it stands where the accountant, given what was found, says no more."""
        return basis_of(self.claim, self.probe.privacy if isinstance(self.probe, Probe) else None, self.probe)

    @property
    def finding(self) -> str | None:
        """What refutes the claim, in one sentence; None where nothing does."""
        if self.basis.broken:
            first, *others = self.basis.broken
            more = f" Also refuted: {', '.join(f.name for f in others)}." if others else ""
            spent = self.basis.eps
            least = "" if spent is None else f"; with what was found, it is at least {at_least(spent)}"
            claimed = (
                f"ε = {exactly(self.claim.eps)} at δ = {self.claim.delta:g} ({self.claim.adjacency}) is claimed{least}."
            )
            return f"{first.name}: {first.sentence}{more} {claimed}"
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
            "claim": {name: getattr(self.claim, name) for name in ("eps", "delta", "adjacency")},
            "models": self.n_models,
            "probe": self.probe.to_json(),
            "audit": None if self.audit is None else self.audit.to_json(),
        }


def assert_private(
    train: Any,
    data: Any = None,
    *,
    eps: float,
    delta: float = 1e-5,
    adjacency: Adjacency = "add-remove",
    seconds: float = 60.0,
    models: int | None = None,
    args: Sequence[str] = (),
    losses: Callable[[Any, Any], Any] | None = None,
    privacy: DPSGD | None = None,
    train_size: int | None = None,
    seed: int = 0,
    allow_undecided: bool = False,
) -> Checked:
    """Raise `NotPrivate`, an AssertionError, if a probe or a membership game refutes that `train` is (ε, δ)-private.

    `train` is a trainer, with `train(data, *, seed)` and `losses(model, points)`; or the function `train` alone, and
    then `losses` is one too. It is probed if it takes `watch` and says what is accounted: by `privacy(n)`, or here.

    Or `train` is the path of a script, as in `assert_private("train.py", args=["--epochs", "3"], eps=3)`. It is run as
    it is, on its own data, in the current folder; give `privacy` if it has no accountant of Opacus.

    The game has as many models as fit into what is left of `seconds`, or `models`. If neither probe nor game could have
    failed, the assertion fails as well, unless `allow_undecided`. A game that could not refute the claim even by a
    perfect attack is not played, and the sentence says how many models it needs.
    """
    __tracebackhide__ = True
    budget, hearing = checks.positive("seconds", seconds), HEARING.get()
    wanted = hearing.models if hearing is not None and hearing.models is not None else models
    claim = Claim(
        eps=checks.one("eps", checks.eps(eps)),
        delta=checks.one("delta", checks.delta(delta)),
        adjacency=checked_adjacency(adjacency),
        source="stated",
    )
    about = asserted(train, data, claim, args=args, losses=losses, privacy=privacy, train_size=train_size, seed=seed)
    start = time.perf_counter()
    try:
        probed: Probe | Unprobed = about.probe()
    except EpsgaugeError as error:
        if isinstance(about, OfScript):
            raise  # no game could be played either
        probed = Unprobed(str(error))
    checked = Checked(claim, probe=probed, audit=None, unplayed="the probe refutes the claim already")
    if checked.finding is None:
        try:
            left = budget - (time.perf_counter() - start)
            n = about.affordable(left) if wanted is None else int(wanted)
            checked = _played(about, checked, n, budget, None if hearing is None else hearing.folder)
        finally:
            about.close()
    if hearing is not None:
        hearing.heard(checked)
    wrong = checked.finding or (None if allow_undecided else checked.untested)
    if wrong is not None:
        again = "" if hearing is None else f" To repeat it: {hearing.command(checked)}"
        raise NotPrivate(f"{wrong}{again}", checked) from None
    return checked


def _played(
    about: Asserted, checked: Checked, n: int, budget: float, kept: Callable[[], Path | None] | None
) -> Checked:
    """With the audit of a game of n models, or why there is none."""
    if n < FEWEST:
        why = f"{n} models fit into what is left of {budget:g} seconds, and {FEWEST} are the fewest. Allow more."
        return replace(checked, unplayed=why)
    n = min(n, MOST)
    plan = about.plan(n)
    hopeless = _hopeless(plan, about.privacy(plan), checked.claim)
    if hopeless is not None:
        return replace(checked, unplayed=hopeless, n_models=n)
    found = _audited(plan, checked.probe, None if kept is None else kept())
    return replace(checked, audit=found, n_models=n)


def _hopeless(plan: Plan, privacy: Privacy | None, claim: Claim) -> str | None:
    """Why no game of so many models could refute the claim, after a probe that found nothing; None if one could."""
    reach = Reach(plan.changed(probe=True), judged_by_curve(privacy, claim.adjacency))
    why = reach.hopeless(plan.n_models, claim.eps, claim.delta)
    return None if why is None else f"{why} Pass models= or allow more seconds."


def _audited(plan: Plan, probed: Probe | Unprobed, kept: Path | None) -> Audit:
    """The audit of a game, which shows the probe that was made before it."""
    with TemporaryDirectory() as scratch:
        played = run(plan, out=kept or Path(scratch, "run"), executor=InProcess())
        return audit(replace(played, probe=probed))
