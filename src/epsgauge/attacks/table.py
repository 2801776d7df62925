"""The one table of attacks: what each is called, what it reads and how it scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from epsgauge.attacks import difference, loss, percentile
from epsgauge.errors import InvalidInput
from epsgauge.games.signals import Signals
from epsgauge.references import nearest
from epsgauge.scores.table import Scores
from epsgauge.stats.arrays import Floats


def _any_score(signals: Signals) -> None:
    """The scores themselves are the candidates."""


@dataclass(frozen=True)
class Attack:
    """A way from signals to one score a pair, higher where b = 1 is more likely."""

    name: str
    meaning: str
    score: Callable[[Signals], Floats]  # [n, m]
    candidates: Callable[[Signals], Floats | None] = _any_score  # thresholds to choose among; None: any score

    def scores(self, signals: Signals) -> Scores:
        n, m = signals.bits.shape
        return Scores(
            model=np.repeat(signals.models, m),
            pair=np.tile(np.arange(m), n),
            bit=signals.bits.ravel(),
            score=self.score(signals).ravel(),
            adjacency=signals.adjacency,
        )


ATTACKS: dict[str, Attack] = {
    attack.name: attack
    for attack in (
        Attack(
            "percentile",
            "the rank of the point's loss among the model's own losses on reference points",
            percentile.score,
            percentile.candidates_of,
        ),
        Attack("loss", "the point's loss, with one threshold for all models", loss.score),
        Attack("difference", "the difference of both losses of the pair", difference.score),
    )
}


def attack_named(name: str) -> Attack:
    if name not in ATTACKS:
        raise InvalidInput(f"attack must be one of {', '.join(ATTACKS)}, but got {name!r}.{nearest(name, ATTACKS)}")
    return ATTACKS[name]
