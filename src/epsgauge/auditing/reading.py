"""Reading: what evidence shows at one δ, level and threshold. It has no verdict: an audit adds one."""

from __future__ import annotations

from dataclasses import dataclass

from epsgauge.adjacency import Adjacency
from epsgauge.attacks.attack import Attack
from epsgauge.auditing.adversary import Adversary
from epsgauge.auditing.bound import Bound
from epsgauge.auditing.claim import Claim
from epsgauge.games.signals import Signals
from epsgauge.methods.evidence import Evidence
from epsgauge.methods.facts import Facts, Lost
from epsgauge.methods.rows import MethodRow
from epsgauge.methods.table import POSTERIOR
from epsgauge.runner.view import Run
from epsgauge.scores.rules import Judged
from epsgauge.scores.said import BITS, ROWS
from epsgauge.settings import AuditSettings
from epsgauge.stats.posterior import Posterior


@dataclass(frozen=True, eq=False, repr=False)
class Reading:
    """Evidence with its posterior, every method's row, and the bounds that are shown beside a claim."""

    settings: AuditSettings
    evidence: Evidence
    facts: Facts  # for bounds at the δ of the settings
    posterior: Posterior  # of all judged pairs; models that failed are left out
    rows: tuple[MethodRow, ...]
    bounds: tuple[Bound, ...]  # for any training first; none while they are computed
    claim: Claim | None  # that the bounds can be held against
    adversary: Adversary
    run: Run | None  # that was judged; None for a table of scores
    attack: Attack | None  # that made the scores of the run
    signals: Signals | None  # that it saw

    @property
    def judged(self) -> Judged:
        return self.evidence.judged

    @property
    def adjacency(self) -> Adjacency:
        return self.evidence.scores.adjacency

    @property
    def said_of_scores(self) -> tuple[str, ...]:
        """What was said of a table of scores, in words; nothing for a run, which says all by itself."""
        table = self.evidence.scores
        if self.run is not None:
            return ()
        said = [f"bits {table.bits}: {BITS[table.bits]}", *([ROWS[table.taken_as]] if table.taken_as else [])]
        if table.origin is not None and table.origin.lower_is_in:
            said.append("a lower score means that b = 1 is more likely")
        return tuple(said)

    @property
    def pairs_per_model(self) -> int:
        return self.facts.pairs_per_model

    @property
    def claimed_here(self) -> float | None:
        """ε of a claim at the δ of the settings; a claim at another δ cannot stand beside these numbers."""
        return self.claim.eps if self.claim is not None and self.claim.delta == self.settings.delta else None

    @property
    def credible(self) -> MethodRow:
        """The row of the posterior."""
        return self[POSTERIOR.name]

    @property
    def lost(self) -> Lost | None:
        """Where the level was not kept, and why."""
        return self.facts.lost

    def __getitem__(self, method: str) -> MethodRow:
        return {row.method: row for row in self.rows}[method]
