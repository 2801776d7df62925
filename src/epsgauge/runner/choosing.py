"""Which canary is taken: the one that the attack distinguishes best in the signals of models set apart for that."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from epsgauge.attacks.attack import Attack
from epsgauge.attacks.rehearsed import Rehearsed, effect, spread_of
from epsgauge.attacks.table import ATTACKS
from epsgauge.games.rehearsal import number_of, rounds
from epsgauge.games.settings import GameSettings
from epsgauge.games.signals import Signals

# Models without noise of each of the last canaries.
QUIET = 8


@dataclass(frozen=True)
class Choice:
    """What decides which canary is taken, beside the signals. A run keeps it, so that `verify` can decide again."""

    n_canaries: int
    n_models: int  # of the plan at that moment: a run may grow later
    attack: str | None  # of the plan at that moment
    quiet: bool  # whether models can be trained without noise

    def strengths(self, game: GameSettings, seen: Callable[[list[int]], Signals]) -> dict[int, float]:
        """How well the attack distinguishes each of the last canaries, the best first; none if every model failed.

        Every canary is tried, then the better half of them on more models, and so on. `seen` gives the signals of all
        models of the rehearsal, once it has those with the numbers that it is asked for.

        Of the last ones some models without noise are trained too: the difference that the bit makes there, in units
        of the spread with noise, is known better than that in noise, but may mislead. So both count, by their product.
        """
        left, numbers, found, models = list(range(self.n_canaries)), dict[int, None](), dict[int, float](), 0
        for each in rounds(game, self.n_models, self.n_canaries):
            left, models = sorted(left, key=lambda canary: -found.get(canary, 0.0))[: each.canaries], each.models
            numbers |= dict.fromkeys(number_of(c, i, quiet=False) for c in left for i in range(models))
            signals = seen(list(numbers))
            noisy = {canary: _part(signals, canary, models, quiet=False) for canary in left}
            found = {canary: self._with_noise(part) for canary, part in noisy.items() if len(part)}
        if found and self.quiet:
            signals = seen([number_of(canary, i, quiet=True) for canary in found for i in range(QUIET)])
            for canary, with_noise in found.items():
                product = with_noise * self._without_noise(signals, canary, models)
                found[canary] = 0.0 if math.isnan(product) else math.sqrt(product)
        return {canary: found[canary] for canary in sorted(found, key=lambda canary: -found[canary])}

    def _with_noise(self, noisy: Signals) -> float:
        return abs(effect(self._attack.score(replace(noisy, rehearsal=noisy)), noisy.bits))

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
        attack = ATTACKS.get(self.attack or "")
        return Rehearsed() if attack is None or attack.learns else attack


def _part(signals: Signals, canary: int, models: int, *, quiet: bool) -> Signals:
    """The first models of a canary; there may be more of them, of a later round that was interrupted."""
    first = number_of(canary, 0, quiet=quiet)
    return signals[(signals.models >= first) & (signals.models < first + models)]
