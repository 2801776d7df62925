"""What a session asks of a script that is held at its training: a look, a probe, the training of a model."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from epsgauge.data.content import thing_key
from epsgauge.data.points import as_points
from epsgauge.errors import InvalidInput
from epsgauge.mechanisms.accounting import accountant_eps
from epsgauge.mechanisms.privacy import DPSGD
from epsgauge.numbers import duration
from epsgauge.probing.checks import IN_A_HURRY, NAMES, named
from epsgauge.probing.preparation import Prepared, Prepares
from epsgauge.probing.probe import probe
from epsgauge.probing.recorder import Enough, Recorder
from epsgauge.probing.result import Probe
from epsgauge.scripts.following import Following
from epsgauge.scripts.messages import Order, Progress
from epsgauge.scripts.preparation import prepared
from epsgauge.scripts.randomness import Seeding
from epsgauge.scripts.stage import Stage, Training
from epsgauge.trainers.protocol import seed_everything

if TYPE_CHECKING:
    from epsgauge.scripts.fork import Answer

# A script computes constants from the number of records before its training begins, which is not done again.
NOT_FOR_SCRIPTS = ("left out", "empty batches")
LEAST = "Its accountant counts several noise multipliers or rates: the smallest noise and the largest rate are tested."
BY_NUMBER = "Not tested of a script: left out, empty batches. Write a plan whose trainer takes `size` to test them."
# Records of a script by which its data are known again.
KNOWN_BY = 1000


@dataclass(frozen=True)
class Look:
    """Follow one whole training: what is accounted, and on which records."""

    def answer(self, stage: Stage, data: Any, *, private: bool) -> Seen:
        stage.say(Progress("the whole training", 0))
        order, start = stage.order, time.perf_counter()
        whole = stage.replay(Training(Following()))
        facts = whole.facts
        seconds = time.perf_counter() - start
        target, target_delta = facts.get("target", (None, None))
        spent, spent_delta = facts.get("spent"), facts.get("delta")
        delta = next((d for d in (order.delta, spent_delta, target_delta) if d is not None), 1e-5)
        claims = [eps for eps, d in ((spent, spent_delta), (target, target_delta)) if eps is not None and d == delta]
        several = len({(sigma, rate) for sigma, rate, _ in facts["history"]}) > 1
        return Seen(
            name=stage.name,
            privacy=accounted(facts, order, delta, stage.name),
            delta=delta,
            claims=() if several else tuple(claims),  # which are not those of the least noise
            spent=spent,
            spent_delta=spent_delta,
            records=Known().answer(stage, data, private=private),
            n_steps=facts["n_steps"],
            n_parameters=whole.watch["n_parameters"],
            seconds=seconds,
            private=private,
            changes=(*_changes(stage), *[LEAST] * several, *_same_noise(stage, whole)),
        )


@dataclass(frozen=True)
class Seen:
    """A script's training as it is, without a change."""

    name: str
    privacy: DPSGD  # what is accounted
    delta: float
    claims: tuple[float, ...]  # the ε at this δ that the script computes or aims at, for adding or removing a record
    spent: float | None  # the last ε that it computed, and its δ
    spent_delta: float | None
    records: tuple[int, str]  # how many, and their digest
    n_steps: int  # that were made
    n_parameters: int  # that are trained
    seconds: float
    private: bool  # whether it trains with Opacus
    changes: tuple[str, ...]  # what was changed for the script, and what it does, a sentence each

    @property
    def notes(self) -> list[str]:
        return [f"{self.name} trains on {self.records[0]:,} records, in {duration(self.seconds)}.", *self.changes]

    def said(self, replacing: float | None) -> str | None:
        """What the script prints, and what it would be for replacing a record."""
        if self.spent is None:
            return None
        at = "" if self.spent_delta is None else f" at δ = {self.spent_delta:g}"
        text = f"{self.name} computes ε = {self.spent:.3g}{at}, for adding or removing a record."
        if replacing is None or not self.claims:
            return text
        return f"{text} Replacing one costs {replacing:.3g}, by the PRV accountant."


def _changes(stage: Stage) -> list[str]:
    after = "Its weights change after the optimizer's step, as if by noise, so weights before and after are compared."
    return [*(f"{change}." for change in stage.box.changes), *([after] if stage.by_weights else [])]


def _same_noise(stage: Stage, whole: Answer) -> list[str]:
    """Which call makes the noise of all trainings the same, if one does."""
    seedings: dict[str, Seeding] = whole.facts["seedings"]
    if not seedings:
        return []
    again = stage.replay(Training(Following(), again=True, steps=1))
    if again.watch["first"] != whole.watch["first"]:
        return []
    return [next(iter(seedings.values())).said]


@dataclass(frozen=True)
class Known:
    """How many records there are, and their digest, by which they are known again.

    It is that of up to so many records, evenly spaced; empty if they have no content that can be compared.
    """

    def answer(self, stage: Stage, data: Any, *, private: bool) -> tuple[int, str]:
        return len(as_points(data, stage.name)), stage.apart(lambda: {"digest": _digest(data)}).get("digest", "")


@dataclass(frozen=True)
class ProbeIt:
    """Test what the accountant assumes."""

    def answer(self, stage: Stage, data: Any, *, private: bool) -> Probe:
        order, start = stage.order, time.perf_counter()
        seen = Look().answer(stage, data, private=private)
        claim = order.claimed_eps
        if claim is None and order.adjacency == "add-remove":
            claim = min(seen.claims, default=None)
        left = set(NOT_FOR_SCRIPTS)
        names = named(order.only) if order.only else list(IN_A_HURRY if order.quick else NAMES)
        tested = [name for name in names if name not in left]
        if not tested:
            raise InvalidInput(BY_NUMBER)
        found = probe(
            (OfOpacus if private else Script)(stage, seen.privacy, data),
            data,
            delta=seen.delta,
            adjacency=order.adjacency,
            claimed_eps=claim,
            seed=order.seed,
            only=tested,
            quick=order.quick,
            progress=lambda name, count: stage.say(Progress(name, count)),
        )
        replacing = {found.adjacency: found.accounted_eps, found.other_adjacency: found.other_eps}.get("substitute")
        notes = [*seen.notes, *filter(None, [seen.said(replacing)]), *([BY_NUMBER] if left & set(names) else [])]
        return replace(found, notes=tuple(notes), seconds=time.perf_counter() - start)


@dataclass(frozen=True)
class Scale:
    """Measure how far one record moves an update at least, which a loop without Opacus does not say."""

    def answer(self, stage: Stage, data: Any, *, private: bool) -> float | None:
        order = stage.order
        facts = stage.replay(Training(Following())).facts
        privacy = accounted(facts, order, 1e-5 if order.delta is None else order.delta, stage.name)
        found = probe(
            Script(stage, privacy, data),
            data,
            only=["scale"],
            seed=order.seed,
            progress=lambda name, count: stage.say(Progress(name, count)),
        )
        return next((finding.measured for finding in found.findings if finding.name == "scale"), None)


@dataclass(frozen=True)
class Train:
    """Train one model on the script's records, with this seed, and show the watch its steps."""

    training: Training

    def answer(self, stage: Stage, data: Any, *, private: bool) -> Answer:
        return stage.replay(self.training)


@dataclass(frozen=True, eq=False)
class Script(Prepares):
    """The script's training, as a trainer."""

    stage: Stage
    accounted: DPSGD
    records: Any  # of the script, as they are
    quiet: bool = False

    def __deepcopy__(self, memo: Any) -> Script:
        return self

    def train(self, data: Any, *, seed: int, watch: Recorder) -> Any:
        answer = self.stage.replay(Training(watch, data, seed, self.quiet))
        watch.restore(answer.watch)
        if answer.model is None:
            raise Enough
        return answer.model

    def privacy(self, n: int) -> DPSGD:
        return self.accounted

    def prepared(self) -> Prepared | None:
        """What was done to the records before the training."""
        found = self.stage.apart(lambda: {"found": prepared(self.records, self.stage.fits)})
        seen: Prepared | None = found["found"]
        return seen


class OfOpacus(Script):
    """One whose noise can be turned off."""

    def without_noise(self) -> OfOpacus:
        return replace(self, quiet=True)


def accounted(facts: dict[str, Any], order: Order, delta: float, name: str) -> DPSGD:
    """What was given, or what the script's accountant counted: with several noise multipliers, the least."""
    history = [(float(sigma), float(rate), int(steps)) for sigma, rate, steps in facts["history"]]
    sigmas, rates, steps = zip(*history, strict=True) if history else ((), (), ())
    sigma = order.noise_multiplier or min(sigmas, default=None)
    rate = order.sample_rate or max(rates, default=facts.get("rate"))
    n_steps = order.steps or sum(steps) or facts["n_steps"]
    if rate is None:
        raise InvalidInput(f"the sampling rate of {name} is not known. Give --sample-rate.")
    if sigma is None and order.claimed_eps is not None:
        sigma = _calibrated(order.claimed_eps, delta, order.adjacency, rate, n_steps)
    if sigma is None:
        raise InvalidInput(
            f"{name} has no accountant of Opacus, so its noise is not known. Give --noise-multiplier, or --claimed-eps."
        )
    return DPSGD(sample_rate=rate, noise_multiplier=sigma, steps=n_steps, norm_noise=facts.get("norm_noise"))


def _calibrated(eps: float, delta: float, adjacency: Any, rate: float, steps: int) -> float:
    """The noise multiplier at which the accountant says so much."""

    def above(sigma: float) -> bool:
        return (accountant_eps(DPSGD(rate, sigma, steps), delta=delta, adjacency=adjacency) or 0.0) > eps

    low, high = 0.25, 0.5
    while above(high):
        low, high = high, 2 * high
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (middle, high) if above(middle) else (low, middle)
    return low


def _digest(data: Any) -> str:
    n = len(data)
    seed_everything(0)  # for data that are augmented
    state = hashlib.sha256(str(n).encode())
    try:
        for index in np.unique(np.linspace(0, n - 1, min(n, KNOWN_BY)).astype(int)):
            state.update(thing_key(data[int(index)]).encode())
    except InvalidInput:
        return ""
    return state.hexdigest()
