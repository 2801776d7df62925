"""What attacks share that learn how models with a point and models without it see that point."""

from __future__ import annotations

from epsgauge.attacks.attack import Attack
from epsgauge.errors import InvalidInput
from epsgauge.games.signals import Signals
from epsgauge.stats.arrays import Bools, Floats


class OfPoints(Attack):
    """One number per point, higher where it is a member. A pair's score is that of z1 minus that of z0, if there is z0.

    Where the number is a log-likelihood ratio, so is the score: with b = 1 the member is z1, with b = 0 it is z0.
    """

    learns = True

    def of_point(self, signals: Signals, apart: Signals, side: int) -> Floats:
        """The number of each z0 (side 0) or z1 (side 1), [n, m]; `apart` are the models that it learns on."""
        raise NotImplementedError

    def score(self, signals: Signals) -> Floats:
        apart = self._apart(signals)
        one = self.of_point(signals, apart, 1)
        return one if signals.adjacency == "add-remove" else one - self.of_point(signals, apart, 0)

    def sees(self, signals: Signals) -> str:
        points = "z1" if signals.adjacency == "add-remove" else "z0 and z1"
        n = 0 if signals.rehearsal is None else len(signals.rehearsal)
        return f"black box: the losses of {points}, here and in {n} models that it learned on"

    def _apart(self, signals: Signals) -> Signals:
        """The models set apart, with the pairs that are judged."""
        apart = signals.rehearsal
        if apart is None or not len(apart):
            raise InvalidInput(
                f"the attack {self.name} learns on models set apart, but this run has none. Declare attack = "
                f'"{self.name}" in [audit] of the plan, or rehearsal_models in [game], and run with a new --out.'
            )
        pairs = apart.pairs[:1]
        if self.same_pairs and ((apart.pairs != pairs).any() or (signals.pairs != pairs).any()):
            raise InvalidInput(
                f"the attack {self.name} learns how models see a pair, so all models must have the same, but the pairs "
                'of this run differ. Set pairs = "fixed" in [game], and run with a new --out.'
            )
        for had in (0, 1):
            if not (apart.bits == had).any(axis=0 if self.same_pairs else None).all():
                raise InvalidInput(
                    f"the attack {self.name} needs models set apart with and without each point, but of the "
                    f"{len(apart)} of this run none has b = {had} for some pair. Set rehearsal_models in [game] to 2 "
                    "or more, and run with a new --out."
                )
        return apart


def members(apart: Signals, side: int) -> Bools:
    """Which models set apart were trained on each z0 (side 0) or z1 (side 1), [k, m]."""
    found: Bools = apart.bits == side
    return found
