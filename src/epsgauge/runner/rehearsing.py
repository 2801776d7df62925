"""The rehearsal of a run: the canary that is taken, what the attack learns on, and what it sees without noise."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import groupby

from epsgauge.attacks.attack import Attack
from epsgauge.attacks.rehearsed import Rehearsed, effect, spread_of
from epsgauge.attacks.table import ATTACKS
from epsgauge.data.canaries.table import CANARIES
from epsgauge.errors import InvalidInput
from epsgauge.games.rehearsal import STRIDE, number_of, rounds
from epsgauge.games.roles import Roles
from epsgauge.games.signals import Outcome, Signals
from epsgauge.runner import play
from epsgauge.runner.crew import Crew
from epsgauge.runner.hopeless import FIRST, First
from epsgauge.runner.plan import Plan
from epsgauge.runner.progress import Clock, Progress, Watch
from epsgauge.runner.results import results, single
from epsgauge.runner.store import Store
from epsgauge.trainers.protocol import Group

# Models without noise of each of the last canaries.
QUIET = 8
REMEDY = "`epsgauge check PLAN --try` shows where. Fix it, and run again with a new --out."


@dataclass(frozen=True)
class Rehearsal:
    """A run's models set apart: trained here where the store lacks them."""

    store: Store
    plan: Plan
    roles: Roles  # with all canaries that are tried
    crew: Crew
    watch: Watch
    group: Group | None
    keep_going: bool = False  # also where the first models all fail the same way

    def choose(self) -> Roles:
        """Try every canary, then the better half of them further, and keep the one that the attack tells best.

        Of the last ones some models without noise are trained too: the difference that the bit makes there, in units
        of the spread with noise, is known better than that in noise, but may mislead. So both count, by their product.
        """
        names, quiet = single(self.crew, play.rehearsable)
        left, numbers, told = list(range(len(names))), dict[int, None](), dict[int, float]()
        for each in rounds(self.plan.game, self.plan.n_models, len(names)):
            left = sorted(left, key=lambda canary: -told.get(canary, 0.0))[: each.canaries]
            numbers |= dict.fromkeys(number_of(c, i, quiet=False) for c in left for i in range(each.models))
            self.train(list(numbers))
            told = self._told(left, each.models)
        if not told:
            error = next(text for text in self.store.rehearsed().values() if text)
            raise InvalidInput(
                f"no canary could be tried, as every model failed. The first error: {error.splitlines()[-1]} Mend it, "
                'or give canaries of your own as "module:attr".'
            )
        if quiet:
            self.train([number_of(canary, i, quiet=True) for canary in told for i in range(QUIET)])
            told = {canary: math.sqrt(of * self._without_noise(canary, each.models)) for canary, of in told.items()}
        best = sorted(told, key=lambda canary: -told[canary])
        entry = {"number": best[0], "name": names[best[0]], "meaning": CANARIES[names[best[0]]].meaning}
        self.store.put({"canary": {**entry, "best": {names[c]: told[c] for c in best}, "tried": list(names)}})
        return replace(self.roles, canaries=self.roles.canaries[[best[0]]])

    def learn(self) -> None:
        """Train models that the attack learns on, with the canary that was taken."""
        numbers = [number_of(self._taken, i, quiet=False) for i in range(self.plan.n_learning)]
        self.train(numbers)
        errors = [error for number, error in self.store.rehearsed().items() if number in numbers and error]
        if numbers and len(errors) == len(numbers):
            raise InvalidInput(
                f"the attack has nothing to learn on, as all {len(numbers)} models set apart for it failed. The first "
                f"error: {errors[0].splitlines()[-1]} Mend it, and run with a new --out."
            )

    def control(self) -> None:
        """Train models without noise, on which an audit sees whether its attack finds anything at all."""
        n = self.plan.game.n_control(self.plan.n_models)
        if self.plan.control or not n or not single(self.crew, play.rehearsable)[1]:
            return
        self.train([number_of(self._taken, i, quiet=True) for i in range(n)])

    def train(self, numbers: list[int]) -> None:
        """Train the models with these numbers that the store lacks."""
        have = self.store.rehearsed()
        missing = [number for number in numbers if number not in have]
        if missing:
            self.watch.stage("rehearsing")
        clock, size, before = Clock(), 1 if self.group is None else self.group.size, len(numbers) - len(missing)
        jobs = [list(some) for _, some in groupby(missing, lambda number: (number // STRIDE, number // size))]
        jobs.sort(key=lambda some: some[0] % STRIDE)  # canaries in turn: what fails with all of them is seen soon
        kinds = len({number // STRIDE for number in numbers})
        first = First(REMEDY, watching=not (self.keep_going or before), models=max(FIRST, kinds + 1))

        def lost(number: int, why: str) -> Outcome:
            bits, pairs, seed = play.rehearsal_bits(self.plan, self.roles, number)
            return Outcome(number, seed, bits, pairs, 0.0, error=why)

        args, waiting = (self.roles, self.group), self.watch.waiting
        for here, outcome in enumerate(results(self.crew, play.rehearse, args, jobs, lost, waiting), 1):
            self.store.add(outcome, rehearsal=True)
            self.watch.rehearsed_one(Progress(len(numbers), before + here, 0, here, clock.seconds()))
            first.told(outcome.error, more=here < len(missing))

    def _told(self, canaries: Iterable[int], models: int) -> dict[int, float]:
        """How well the attack tells each pair apart, by its first models with noise; the store may have more of them,
        of a later round that was interrupted.
        """
        told = {}
        for canary in canaries:
            noisy = self._signals(number_of(canary, 0, quiet=False), models)
            if len(noisy):
                told[canary] = abs(effect(self._attack.score(replace(noisy, rehearsal=noisy)), noisy.bits))
        return told

    def _without_noise(self, canary: int, models: int) -> float:
        """How far apart scores are without noise, in units of their spread with noise."""
        noisy = self._signals(number_of(canary, 0, quiet=False), models)
        quiet = self._signals(number_of(canary, 0, quiet=True), QUIET)
        if not len(quiet):  # all of them failed
            return abs(effect(self._attack.score(replace(noisy, rehearsal=noisy)), noisy.bits))
        with_noise, without = (self._attack.score(replace(s, rehearsal=noisy)) for s in (noisy, quiet))
        return abs(effect(without, quiet.bits, spread_of(with_noise, noisy.bits)))

    def _signals(self, first: int, models: int) -> Signals:
        signals = self.store.signals(self.plan.game, rehearsal=True)
        return signals[(signals.models >= first) & (signals.models < first + models)]

    @property
    def _taken(self) -> int:
        """The number of the canary that was taken; 0 where there is no choice."""
        number: int = (self.store.get("canary") or {}).get("number", 0)
        return number

    @property
    def _attack(self) -> Attack:
        """Canaries are tried on the models that an attack would learn on, so that one which has to learn cannot try."""
        attack = ATTACKS.get(self.plan.audit.attack or "")
        return Rehearsed() if attack is None or attack.learns else attack
