"""The rehearsal of a run: the canary that is taken, what the attack learns on, and what it sees without noise."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import groupby

from epsgauge.data.canaries.table import CANARIES
from epsgauge.errors import InvalidInput
from epsgauge.games.adversary import GRADIENT
from epsgauge.games.rehearsal import STRIDE, is_quiet, number_of
from epsgauge.games.roles import Roles
from epsgauge.games.signals import Signals
from epsgauge.runner import play
from epsgauge.runner.choosing import Choice
from epsgauge.runner.crew import Crew
from epsgauge.runner.hopeless import FIRST, First, no_control, uncontrolled
from epsgauge.runner.plan import Plan
from epsgauge.runner.progress import Clock, Progress, Watch
from epsgauge.runner.results import results, single
from epsgauge.runner.resume import note
from epsgauge.runner.store import Store
from epsgauge.runner.view import taken_canary
from epsgauge.trainers.protocol import Group

MEANING = "a gradient of full norm in a coordinate that the records hardly use"
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

    def choose(self) -> None:
        """Keep the canary that the attack distinguishes best, and how that was decided."""
        able = single(self.crew, play.rehearsable)
        names = able.names
        choice = Choice(len(names), self.plan.n_models, self.plan.audit.attack, able.quiet, names[-1] == GRADIENT)
        asked = set[int]()

        def seen(numbers: list[int]) -> Signals:
            asked.update(numbers)
            return self._seen(numbers)

        try:
            strengths = choice.strengths(self.plan.game, seen)
        except _NoneQuiet:
            choice = replace(choice, quiet=False)
            strengths = choice.strengths(self.plan.game, seen)
        if not strengths:
            error = next(text for text in self.store.rehearsed().values() if text)
            raise InvalidInput(
                f"no canary could be tried, as every model failed. The first error: {error.splitlines()[-1]} Mend it, "
                'or give canaries of your own as "module:attr".'
            )
        best = next(iter(strengths))
        meaning = MEANING if names[best] == GRADIENT else CANARIES[names[best]].meaning
        entry = {"number": best, "name": names[best], "meaning": meaning, "tried": list(names)}
        decided = {"best": {names[c]: strength for c, strength in strengths.items()}, "choice": asdict(choice)}
        for text in able.gradient if names[best] == GRADIENT else ():
            note(self.store, text)
        self.store.put({"canary": entry | decided | {"held_out": len(asked)}})

    def _seen(self, numbers: list[int]) -> Signals:
        """The signals of all models of the rehearsal, those with these numbers included."""
        if not is_quiet(numbers[0]):
            self.train(numbers)
        elif not self._train_quiet(numbers):
            raise _NoneQuiet
        return self.store.signals(self.plan.game, rehearsal=True)

    def learn(self) -> None:
        """Train models that the attack learns on, with the canary that was taken."""
        numbers = [number_of(self._canary, i, quiet=False) for i in range(self.plan.n_learning)]
        self.train(numbers)
        errors = [error for number, error in self.store.rehearsed().items() if number in numbers and error]
        if numbers and len(errors) == len(numbers):
            raise InvalidInput(
                f"the attack has nothing to learn on, as all {len(numbers)} models set apart for it failed. The first "
                f"error: {errors[0].splitlines()[-1]} Mend it, and run with a new --out."
            )

    def control(self) -> None:
        """Train models without noise, on which an audit sees whether its attack finds anything at all."""
        n, missed = self.plan.game.n_control(self.plan.n_models), uncontrolled(self.store.get("notes") or [])
        if self.plan.control or not n or missed or not single(self.crew, play.rehearsable).quiet:
            return
        self._train_quiet([number_of(self._canary, i, quiet=True) for i in range(n)])

    def _train_quiet(self, numbers: list[int]) -> bool:
        """Train models without noise. If the first ones all fail, the run goes on without them, and a note says so."""
        first = numbers if self.keep_going else sorted(numbers, key=lambda number: number % STRIDE)[:FIRST]
        begun = self.train(first, total=len(numbers))
        errors = [error for number, error in self.store.rehearsed().items() if number in first and error]
        if len(errors) == len(first):
            note(self.store, no_control(self.plan.trainer.use, errors[0]))
            return False
        self.train(numbers, begun=begun)
        return True

    def train(self, numbers: list[int], *, total: int | None = None, begun: bool = False) -> bool:
        """Train the models with these numbers that the store lacks, the first of `total`; whether there were any.

        `begun`: others of them were trained just now, and the stage was announced.
        """
        have = self.store.rehearsed()
        missing = [number for number in numbers if number not in have]
        if missing and not begun:
            self.watch.stage("rehearsing")
        clock, size, before = Clock(), 1 if self.group is None else self.group.size, len(numbers) - len(missing)
        jobs = [list(some) for _, some in groupby(missing, lambda number: (number // STRIDE, number // size))]
        jobs.sort(key=lambda some: some[0] % STRIDE)  # canaries in turn: what fails with all of them is seen soon
        kinds = len({number // STRIDE for number in numbers})
        first = First(REMEDY, watching=not (self.keep_going or before or total), models=max(FIRST, kinds + 1))

        lost = partial(play.lost_rehearsal, self.plan, self.roles)
        args, waiting = (self.roles, self.group), self.watch.waiting
        for here, outcome in enumerate(results(self.crew, play.rehearse, args, jobs, lost, waiting), 1):
            self.store.add(outcome, rehearsal=True)
            self.watch.rehearsed_one(Progress(total or len(numbers), before + here, 0, here, clock.seconds()))
            first.told(outcome.error, more=here < len(missing))
        return bool(missing)

    @property
    def _canary(self) -> int:
        """The number of the canary that was taken; 0 if there is no choice."""
        return taken_canary(self.store) or 0


class _NoneQuiet(Exception):
    """Models cannot be trained without noise."""
