"""What an attack is: the base class of every attack, built in or your own."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from epsgauge.errors import InvalidInput
from epsgauge.games.signals import Signals
from epsgauge.references import users_code
from epsgauge.scores.table import Scores
from epsgauge.stats import checks
from epsgauge.stats.arrays import Floats


class Attack:
    """A way from signals to one score per pair, higher where b = 1 is more likely.

    A subclass needs a `name` and a `score`; what else it has goes into reports. It may be a frozen dataclass.

    >>> class Scaled(Attack):
    ...     name = "scaled"
    ...     meaning = "the difference of both losses, in units of the model's own spread"
    ...     needs = ("loss", "reference")
    ...
    ...     def score(self, signals):
    ...         return (signals["loss"][..., 0] - signals["loss"][..., 1]) / signals["reference"].std(axis=1)[:, None]
    """

    texts: ClassVar[tuple[str, ...]] = ("name", "axis")  # that every attack must have
    name: str = ""
    meaning: str = ""  # what it reads, in words
    needs: tuple[str, ...] = ("loss",)  # channels
    axis: str = "score"  # what a score is, for the axis of a picture
    learns: bool = False  # on models set apart, so that a plan with it trains some
    same_pairs: bool = True  # whether these must have the pairs that are judged
    has_percentiles: bool = False  # whether a rule is a percentile of the losses: see `threshold_at`

    def score(self, signals: Signals) -> Floats:
        """One score per pair, [n, m], without the bits. InvalidInput for a game that the attack cannot play."""
        raise NotImplementedError("an attack must define score(signals)")

    def candidates(self, signals: Signals) -> Floats | None:
        """The thresholds that a rule is chosen from; None: every score is one."""
        return None

    def sees(self, signals: Signals) -> str:
        """What the adversary has access to, in words."""
        return f"sees the channel{'s' if len(self.needs) > 1 else ''} {' and '.join(self.needs)}"

    def percentile_of(self, threshold: float, signals: Signals) -> float | None:
        """The percentile of the losses that a threshold stands for; None where a rule is no percentile."""
        return None

    def threshold_at(self, percentile: float, signals: Signals) -> float:
        """The threshold that stands for a percentile of the losses."""
        raise InvalidInput(
            f"percentile goes with an attack that has percentiles, which {self.name} has not, but got {percentile:g}. "
            "Use threshold."
        )

    def scores(self, signals: Signals) -> Scores:
        """The table of scores, checked."""
        signals.check_channels(self.needs, f"the attack {self.name}")
        n, m = signals.bits.shape
        return Scores(
            model=np.repeat(signals.models, m),
            pair=np.tile(np.arange(m), n),
            bit=signals.bits.ravel(),
            score=self._checked_score(signals.blind()).ravel(),
            adjacency=signals.adjacency,
            bits="coins",  # that the runner drew by its seeds
        )

    def _checked_score(self, signals: Signals) -> Floats:
        with users_code(f"the attack {self.name}"):
            score = checks.floats(f"the score of the attack {self.name}", self.score(signals))
        if score.shape != signals.bits.shape:
            raise InvalidInput(
                f"the attack {self.name} must give one score per pair, an array of shape {signals.bits.shape}, but "
                f"gave {score.shape}."
            )
        bad = np.argwhere(~np.isfinite(score))
        if len(bad) and "loss" in self.needs and (signals.pairs < 0).all():
            raise InvalidInput(
                f"the attack {self.name} needs the losses of records, but the canaries of this run are gradients, "
                "which have none. Use the attack updates or displacement."
            )
        if len(bad):
            row, pair = (int(place) for place in bad[0])
            raise InvalidInput(
                f"the attack {self.name} must give finite scores, but {len(bad)} of {score.size} are not (the first is "
                f"{score[row, pair]}, of model {signals.models[row]}, pair {pair}). Give each a finite score in its "
                "place of the order."
            )
        return score
