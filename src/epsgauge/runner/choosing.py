"""Which canary is taken: the one that the attack distinguishes best in the signals of models set apart for that."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from epsgauge.attacks.attack import Attack
from epsgauge.attacks.rehearsed import Rehearsed, effect, spread_of
from epsgauge.attacks.table import ATTACKS
from epsgauge.attacks.updates import Updates
from epsgauge.games.rehearsal import number_of, rounds
from epsgauge.games.settings import GameSettings
from epsgauge.games.signals import Signals

# Models without noise of each of the last canaries.
QUIET = 8
# Standard errors by which a record must show more than a gradient, of each of both.
SURE = 2.0


@dataclass(frozen=True)
class Choice:
    """What decides which canary is taken, beside the signals. A run keeps it, so that `verify` can decide again."""

    n_canaries: int
    n_models: int  # of the plan at that moment: a run may grow later
    attack: str | None  # of the plan at that moment
    quiet: bool  # whether models can be trained without noise
    gradient: bool = False  # whether the last canary is a gradient, and the others are records

    def strengths(self, game: GameSettings, seen: Callable[[list[int]], Signals]) -> dict[int, float]:
        """How well the attack distinguishes each of the last canaries, the best first; none if every model failed.

        Every canary is tried, then the better half of them on more models, and so on. A gradient is tried to the end,
        beside the best records. A canary of which every model failed is tried no further. `seen` gives the signals of
        all models of the rehearsal, once it has those with the numbers that it is asked for.

        Of the last ones some models without noise are trained too: the difference that the bit makes there, in units
        of the spread with noise, is known better than that in noise, but may mislead. So both count, by their product.
        Where a gradient is one of them, the strength is what is sure: see `_surely`.
        """
        left, numbers, found, models = list(range(self.n_canaries)), dict[int, None](), dict[int, float](), 0
        for each in rounds(game, self.n_models, self.n_canaries):
            left = sorted(left, key=lambda canary: (not self._is_gradient(canary), -found.get(canary, 0.0)))
            left, models = left[: each.canaries], each.models
            numbers |= dict.fromkeys(number_of(c, i, quiet=False) for c in left for i in range(models))
            signals = seen(list(numbers))
            noisy = {canary: _part(signals, canary, models, quiet=False) for canary in left}
            found = {canary: self._with_noise(part) for canary, part in noisy.items() if len(part)}
            left = list(found)
        if found and self.quiet:
            signals = seen([number_of(canary, i, quiet=True) for canary in found for i in range(QUIET)])
        if found and self.gradient:
            found = {canary: self._surely(signals, canary, models) for canary in found}
        elif found and self.quiet:
            for canary, with_noise in found.items():
                product = with_noise * self._without_noise(signals, canary, models)
                found[canary] = 0.0 if math.isnan(product) else math.sqrt(product)
        return {canary: found[canary] for canary in sorted(found, key=lambda canary: -found[canary])}

    def _is_gradient(self, canary: int) -> bool:
        return self.gradient and canary == self.n_canaries - 1

    def _with_noise(self, noisy: Signals) -> float:
        told = effect(self._attack.score(replace(noisy, rehearsal=noisy)), noisy.bits)
        return told if self.gradient else abs(told)  # a ratio has a direction of its own

    def _surely(self, signals: Signals, canary: int, models: int) -> float:
        """How far apart scores are in units of their spread with noise: of a record at least, of a gradient at most.

        Where the accountant is right, nothing shows more than a gradient in a coordinate of its own. So a record is
        taken if it surely shows more, by two standard errors of each, and not because it was the luckiest of several.
        Models without noise count by how well they know the difference: other records move the ratio of a record.
        """
        noisy, quiet = (_part(signals, canary, n, quiet=q) for n, q in ((models, False), (QUIET, True)))
        scores = self._attack.score(noisy)
        apart, error, spread = effect(scores, noisy.bits), _error(noisy), spread_of(scores, noisy.bits)
        if math.isfinite(_error(quiet)) and self.quiet and spread > 0:
            without = self._attack.score(quiet)
            also = spread_of(without, quiet.bits) / spread * _error(quiet)
            share = error**2 / (error**2 + also**2)
            apart = (1.0 - share) * apart + share * effect(without, quiet.bits, spread)
            error *= math.sqrt(1.0 - share)
        return max(apart + (SURE if self._is_gradient(canary) else -SURE) * error, 0.0)

    def _without_noise(self, signals: Signals, canary: int, models: int) -> float:
        """How far apart scores are without noise, in units of their spread with noise."""
        noisy = _part(signals, canary, models, quiet=False)
        quiet = _part(signals, canary, QUIET, quiet=True)
        if not len(quiet):  # all of them failed
            return self._with_noise(noisy)
        with_noise, without = (self._attack.score(replace(s, rehearsal=noisy)) for s in (noisy, quiet))
        return abs(effect(without, quiet.bits, spread_of(with_noise, noisy.bits)))

    @property
    def _attack(self) -> Attack:
        """Canaries are tried on the models that an attack would learn on, so that one which has to learn cannot try."""
        attack = Updates() if self.gradient else ATTACKS.get(self.attack or "")
        return Rehearsed() if attack is None or attack.learns else attack


def _error(signals: Signals) -> float:
    """The standard error of the difference of both bits' means, in units of the spread; infinite without both."""
    ones = int(signals.bits.sum()) if len(signals) else 0
    zeros = signals.bits.size - ones if len(signals) else 0
    return math.sqrt(1.0 / ones + 1.0 / zeros) if ones and zeros else math.inf


def _part(signals: Signals, canary: int, models: int, *, quiet: bool) -> Signals:
    """The first models of a canary; there may be more of them, of a later round that was interrupted."""
    first = number_of(canary, 0, quiet=quiet)
    return signals[(signals.models >= first) & (signals.models < first + models)]
