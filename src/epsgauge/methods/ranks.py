"""What methods share that hold guesses about one pair of each model, from the surest on, against a whole curve."""

from __future__ import annotations

import math

from epsgauge.bounds.guesses import Guesses
from epsgauge.bounds.ranked import MAIN
from epsgauge.methods.evidence import Evidence, Tallied
from epsgauge.methods.method import Method
from epsgauge.stats.sizing import MAX_SAMPLES


class OfRanks(Method):
    """They look at scores, not at the rule, and so judge models that chose it too; they have no upper end."""

    remark = "Guesses are made by the middle of all scores, whatever the rule."
    guessed_by = "the middle of the scores"
    needs_rule = False
    one_pair = True

    def rests_on(self, evidence: Evidence) -> Tallied:
        return evidence.whole.one_each if self.one_pair else evidence.whole.all_pairs

    def guesses(self, evidence: Evidence) -> Guesses:
        seen = evidence.whole.ranked
        return Guesses(seen.n - seen.n_wrong, seen.n, seen.n)

    def without_errors(self, wrong: float, level: float) -> float:
        """How many right guesses are too many, if each is wrong with this chance."""
        n = math.log((1.0 - level) * MAIN) / math.log1p(-wrong) if wrong > 0 else math.inf
        return math.ceil(n) if n <= MAX_SAMPLES else math.inf
