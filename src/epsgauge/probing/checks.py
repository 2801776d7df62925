"""The checks of a probe, in the order in which they are shown, and the replays that they share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from epsgauge.errors import InvalidInput
from epsgauge.probing.adaptive import NAME as ADAPTIVE
from epsgauge.probing.adaptive import adaptive
from epsgauge.probing.clipping import Clips, clipping
from epsgauge.probing.codes import RULES
from epsgauge.probing.company import by_content
from epsgauge.probing.copies import Copied, copied, copies, one_record
from epsgauge.probing.empty import can_be_empty, empty
from epsgauge.probing.finding import Finding, not_tested
from epsgauge.probing.fresh import there_is
from epsgauge.probing.in_time import correlated, first_steps
from epsgauge.probing.kinds import Seen, independent
from epsgauge.probing.movements import movements
from epsgauge.probing.noise import Drawn, drawn, noise
from epsgauge.probing.pipeline import Pipeline, Replay
from epsgauge.probing.preparation import NAME as PREPARATION
from epsgauge.probing.preparation import Prepares, preparation
from epsgauge.probing.records import Records
from epsgauge.probing.sampling import Rates, batches, one_copy, rate_of_half, sampling_rate, sizes, steps_needed
from epsgauge.probing.scale import NAME as SCALE
from epsgauge.probing.scale import SEEN_BY, Scale, change, is_off, measured, reach_of, scale_of, steady, without_scale
from epsgauge.probing.sensitivity import ORDERED, adding, sensitivity
from epsgauge.probing.taking_part import TakingPart, taking_part
from epsgauge.probing.whole import bypass, left_out, scripted, steps
from epsgauge.stats.arrays import Floats
from epsgauge.trainers.protocol import Unasked

UNSEEDED = (
    "Two trainings with one seed differ: some randomness is not seeded, or seeded by the clock. Derive every generator "
    "from `seed`; in a script, np.random.default_rng() without a seed will do."
)
SHIFTED = "Which random numbers are drawn depends on the record: give noise, batches and layers their own generators."
COPIES_UNKNOWN = "How many copies of a record are in a batch is not known: see the sampling rate."


@dataclass(frozen=True)
class Effort:
    """How much is replayed."""

    models: int = 3  # whose steps are compared
    late: int = 64  # steps of one more, from its first to its last; with 0, no training is followed to its end
    noises: int = 16  # first steps that are made with noise and without
    steps: int = 200  # of a short training, at most


# Whole trainings that are compared where noise has a stated filter.
FILTERED = 3
FULL, QUICK = Effort(), Effort(models=1, late=0, noises=4, steps=12)


class Checks:
    """Every check is made once, and what it needs is observed when it is first asked for."""

    def __init__(self, pipeline: Pipeline, records: Records, delta: float, effort: Effort) -> None:
        self.pipeline, self.records, self.delta, self.effort = pipeline, records, delta, effort
        self.stop = min(steps_needed(pipeline.privacy.sample_rate), effort.steps)
        first = pipeline.replay(stop=1)  # imports on the way may draw numbers
        stated = float(np.mean(first.norm_at[0])) / max(first.divisors) if first.n_steps else 1.0
        self.scale = Scale(stated, stated=stated)
        if first.n_steps and not first.stated:
            self.scale = measured(pipeline, records, self.stop)
            pipeline.scale[:] = [self.scale.unit]

    # Observations

    @cached_property
    def base(self) -> list[Replay]:
        found = [self.pipeline.replay(model, stop=self.stop) for model in range(self.effort.models)]
        if not all(each.n_steps for each in found):
            raise InvalidInput(
                "a trainer that takes watch must call it at every step, but it was never called. Train inside "
                "eg.watching(watch), or call watch(step, update) at every step."
            )
        return found

    @cached_property
    def seeded(self) -> bool:
        return self.pipeline.replay(0, stop=self.stop).digests == self.base[0].digests

    @cached_property
    def alike(self) -> list[Copied]:
        """Short trainings on copies of one record."""
        return [copied(self.pipeline, self.records, model, stop=self.stop) for model in range(self.effort.models)]

    @cached_property
    def late(self) -> list[Copied]:
        """A whole one; some, and all of their steps, if a stated filter goes from step to step."""
        if not self.effort.late:
            return []
        steps = np.linspace(0, int(self.pipeline.privacy.steps) - 1, self.effort.late).astype(np.int64)
        keep, n = (None, FILTERED) if self.pipeline.privacy.correlation else (np.unique(steps).tolist(), 1)
        return [copied(self.pipeline, self.records, self.effort.models + i, keep=keep) for i in range(n)]

    @cached_property
    def noisy(self) -> Seen:
        return Seen(self.base, self.alike, self.late).undone(self.pipeline)

    @cached_property
    def drawn(self) -> Drawn | None:
        found = drawn(self.pipeline, self.noisy.alike, seeded=self.seeded, seeds=self.effort.noises)
        refuted = self.pipeline.quiet is None and self._amount(found).result == "refuted"
        return first_steps(self.noisy.every) if refuted and self.correlated else found

    @cached_property
    def correlated(self) -> Finding | None:
        """Of noise that is correlated in time, where no filter is stated."""
        return None if self.pipeline.privacy.correlation else correlated(self.pipeline, self.noisy.every)

    @property
    def quiet(self) -> bool:
        """Whether the noise can be turned off without another change."""
        return self.drawn is not None and not self.drawn.mixed

    @cached_property
    def there(self) -> float:
        return there_is(self.pipeline, self.drawn, enough=self.noise.result != "refuted")

    @cached_property
    def walk(self) -> float:
        one = self.base[0]
        norm = float(np.mean(next(iter(one.norms))))
        return self.pipeline.privacy.noise_multiplier * norm / next(iter(one.divisors))

    @cached_property
    def seen(self) -> TakingPart:
        return taking_part(self.pipeline, self.records, self.effort.models, stop=self.stop, walk=self.walk)

    @cached_property
    def sums(self) -> dict[str, Floats]:
        return copies(self.pipeline, self.records, self.stop)

    @cached_property
    def usual(self) -> Replay:
        return scripted(self.pipeline, self.walk)

    @cached_property
    def rates(self) -> Rates | None:
        if (
            self.seen.shifted
            or not self.clips.counts
            or "refuted" in (self.sampling_rate.result, self.poisson_batches.result, self.sensitivity.result)
        ):
            return None
        return rate_of_half(self.pipeline, self.records, self.alike[0], self.ones[0], self.stop)

    def applies(self, name: str) -> bool:
        if name == SCALE:
            return False
        if name == PREPARATION:
            return self._prepares is not None
        if name == "empty batches":
            return can_be_empty(self.pipeline)
        if name == ADAPTIVE:
            return self.scale.stated is not None and len(self.base[0].norms) > 1
        return name != "left out" or self.pipeline.adjacency == "add-remove"

    def untestable(self, name: str) -> str:
        """Why a check that compares trainings on other records cannot be made; empty if it can."""
        if name in (*BY_RECORDS, *BY_SEED) and not self.seeded:
            return UNSEEDED
        return SHIFTED if name in BY_DRAWS and self.seen.shifted else ""

    def correct_scale(self) -> bool:
        """Divide what was observed by the farthest that a record moved an update, if the scale is off by that."""
        if self.untestable(SEEN_BY[0]) or any(isinstance(norm, tuple) for norm in self.base[0].norms):
            return False
        reach = reach_of([self.sensitivity, self.one_record])
        drawn = self.pipeline.privacy.sample_rate < 1  # else replacing a record is all that counts
        if self.scale.stated is None and self.pipeline.adjacency == "substitute" and drawn:
            reach = max(reach, adding(self.pipeline, self.records, quiet=self.quiet).far)
        if self.scale.stated is None and self.late:
            self.scale = replace(self.scale, changes=change(self.pipeline, self.late[0], self.effort.models))
        off = is_off(self.scale, reach, self.noise, self.pipeline.privacy.noise_multiplier)
        if off or self.scale.stated is None:
            self.sensitivity, self.one_record = (
                without_scale(self.scale, f) for f in (self.sensitivity, self.one_record)
            )
        if not off:
            return False
        self.scale = replace(self.scale, unit=self.scale.unit * reach)
        self.pipeline.scale[:] = [self.scale.unit]
        own = vars(self)  # what was not observed yet will be in the new unit
        for name in {"base", "alike", "late"} & set(own):
            own[name] = [each.over(reach) for each in own[name]]
        self.seen = replace(self.seen, moves=self.seen.moves / reach)
        self.drawn = None if self.drawn is None else replace(self.drawn, vectors=self.drawn.vectors / reach)
        if "sums" in own:
            self.sums = {what: lengths / reach for what, lengths in self.sums.items()}
        changed = ("there", "rates", "noise", "noisy", "correlated", "fresh_noise", "independence", "clips", "ones")
        for name in (*changed, "poisson_batches"):
            own.pop(name, None)
        return True

    # Findings

    @cached_property
    def noise(self) -> Finding:
        return self._amount(self.drawn)

    def _amount(self, found: Drawn | None) -> Finding:
        seeded = self.seeded
        return noise(self.pipeline, found, lambda: movements(self.pipeline, self.records, self.stop) if seeded else ())

    @cached_property
    def fresh_noise(self) -> Finding:
        found = self.noisy.fresh(self.pipeline, self.drawn, self.there)
        return self.correlated or found if found.result == "refuted" else found

    @cached_property
    def independence(self) -> Finding:
        return independent(self.pipeline, self.drawn, self.there)

    @cached_property
    def sensitivity(self) -> Finding:
        late = bool(self.effort.late)
        return sensitivity(
            self.pipeline, self.records, self.seen, self.walk, quiet=self.quiet, late=late, stop=self.stop
        )

    @cached_property
    def clips(self) -> Clips:
        if self.sampling_rate.result == "refuted":
            return Clips(not_tested("clipping", COPIES_UNKNOWN), counts=True)
        return clipping(self.pipeline, self.records, self.seen, self.alike, self.stop)

    @property
    def clipping(self) -> Finding:
        return self.clips.finding

    @cached_property
    def one_record(self) -> Finding:
        if self.sampling_rate.result != "consistent":
            return not_tested("one record", COPIES_UNKNOWN)
        if not self.sums and self.sensitivity.result == "refuted":
            return not_tested("one record", "The training has no switch for its noise: see sensitivity.")
        moved = self.sensitivity.measured if self.sensitivity.result == "consistent" else None
        return one_record(self.pipeline, self.records, self.sums, self.stop, moved)

    @cached_property
    def sampling_rate(self) -> Finding:
        if self.seen.shifted:
            return not_tested("sampling rate", SHIFTED)
        found = sampling_rate(self.pipeline, self.seen)
        if found.result == "refuted":
            most = int(np.argmax(self.seen.steps.sum(axis=(0, 2))))
            pair = self.records.targets[most], self.records.instead[most]
            if by_content(self.pipeline, self.seen, *pair, self.stop):
                return not_tested("sampling rate", ORDERED)
        return found

    @cached_property
    def ones(self) -> list[float]:
        """How far one copy moves an update, of each of the trainings on copies."""
        return [one_copy(self.pipeline, self.seen, one, i, self.stop) for i, one in enumerate(self.alike)]

    @cached_property
    def poisson_batches(self) -> Finding:
        each = self.clips.counts and "refuted" not in (self.sensitivity.result, self.one_record.result)
        counts = sizes(self.pipeline, self.alike, self.ones) if each else None
        return batches(self.pipeline, self.seen, counts, own=self.sampling_rate.result == "consistent")

    @cached_property
    def empty_batches(self) -> Finding:
        return empty(self.pipeline, self.base, self.stop, self.delta)

    @cached_property
    def adaptive_norm(self) -> Finding:
        return adaptive(self.pipeline, self.records, self.effort.models, self.stop)

    @cached_property
    def steps(self) -> Finding:
        return steps(self.pipeline, self.usual, self.late[0].replay, self.walk)

    @cached_property
    def bypass(self) -> Finding:
        return bypass(self.pipeline, self.records, self.usual, self.walk)

    @cached_property
    def preparation(self) -> Finding:
        return preparation(None if self._prepares is None else self._prepares.prepared())

    @property
    def _prepares(self) -> Prepares | None:
        trainer: object = self.pipeline.trainer
        trainer = trainer.given if isinstance(trainer, Unasked) else trainer
        return trainer if isinstance(trainer, Prepares) else None

    @cached_property
    def left_out(self) -> Finding:
        return left_out(self.pipeline, self.usual, self.walk, self.rates)


# What is seen by replacing records, and by trainings with one seed.
BY_RECORDS = ("sensitivity", "clipping", "one record", "sampling rate", "Poisson batches", "empty batches")
BY_DRAWS = ("sensitivity", "one record", "sampling rate")
BY_SEED = ("adaptive norm", "steps", "bypass", "left out")
NAMES = (SCALE, "noise", "fresh noise", "independence", *BY_RECORDS, *BY_SEED, PREPARATION)
# Without a training that is followed to its end, and without many steps.
IN_A_HURRY = (SCALE, "noise", "fresh noise", "independence", "sensitivity", "clipping", PREPARATION)


def named(only: Sequence[str]) -> list[str]:
    """Names of checks, in their order, that are given by name or by the code of a finding."""
    plain = {name.lower().replace(" ", "-"): name for name in NAMES}
    by_code = {code: rule.finding for code, rule in RULES.items() if rule.finding in NAMES}
    wanted = []
    for given in only:
        name = plain.get(given.lower().replace(" ", "-")) or by_code.get(given.upper())
        if name is None:
            raise InvalidInput(f"only must name checks ({', '.join(plain)}) or codes of findings, but got {given!r}.")
        wanted.append(name)
    return [name for name in NAMES if name in wanted]


def findings(checks: Checks, names: Sequence[str], doing: Callable[[str], None]) -> list[Finding]:
    """One for each check that applies to the training, and what one record moves an update by, if that is not clear."""
    if checks.scale.stated is None:
        doing(SCALE)
        checks.correct_scale()
    found = _made(checks, names, doing)
    if checks.scale.stated is not None and {SCALE, SEEN_BY[0]} & set(names) and checks.correct_scale():
        found = _made(checks, names, doing)
    if not checks.pipeline.scale and list(names) != [SCALE]:
        return found
    reach = 1.0 if checks.pipeline.scale else reach_of([checks.sensitivity, checks.one_record])
    return [scale_of(checks.pipeline, checks.scale, reach, checks.noise), *found]


def _made(checks: Checks, names: Sequence[str], doing: Callable[[str], None]) -> list[Finding]:
    found = []
    for name in filter(checks.applies, names):
        doing(name)
        why = checks.untestable(name)
        finding = not_tested(name, why) if why else getattr(checks, name.lower().replace(" ", "_"))
        found.append(steady(checks.scale, finding))
    return found
