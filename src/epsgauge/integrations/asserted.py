"""What `assert_private` is asked about: a trainer with its data, or a script that is not edited."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from epsgauge.auditing.claim import Claim
from epsgauge.data.points import Points, as_points
from epsgauge.errors import InvalidInput
from epsgauge.mechanisms.privacy import DPSGD, Privacy
from epsgauge.probing.probe import probe
from epsgauge.probing.result import Probe
from epsgauge.references import beside
from epsgauge.runner.plan import Plan
from epsgauge.runner.play import promised
from epsgauge.runner.script_plan import script_plan
from epsgauge.scripts.messages import Order
from epsgauge.scripts.session import probe_script
from epsgauge.scripts.trainer import close
from epsgauge.stats import checks
from epsgauge.trainers.protocol import Observer, Trainer, as_trainer, observed
from epsgauge.trainers.watches import Survey

NAME = "assert_private"
# Trainings of a game for each model that is judged: those of the rehearsal and the control come to that.
EACH = 1.4
# Seconds that it takes to keep what was seen of a model, and to judge it.
KEEPING = 0.003
# False alarms of a game: one in a thousand runs of a test, where the training is as claimed.
LEVEL = 0.999
REFERENCE = 200
# Records that may equal a canary, which a training set must not have: so many others stand in it twice.
SPARE = 64


class Asserted(Protocol):
    """A training about which something is claimed."""

    def probe(self) -> Probe: ...

    def affordable(self, left: float) -> int:
        """How many models a game can have in so many seconds."""

    def plan(self, n_models: int) -> Plan:
        """Of the game."""

    def privacy(self, plan: Plan) -> Privacy | None:
        """What is accounted for it."""

    def close(self) -> None:
        """After the game."""


@dataclass(frozen=True)
class OfTrainer:
    """On these records; a game of the default adversary."""

    trainer: Trainer | Observer
    data: Any
    points: Points
    size: int
    claim: Claim
    seed: int

    def probe(self) -> Probe:
        claim = self.claim
        at: dict[str, Any] = {"delta": claim.delta, "adjacency": claim.adjacency, "seed": self.seed}
        return probe(self.trainer, self.data, train_size=self.size, **at)

    def affordable(self, left: float) -> int:
        members, asked = self.points.take(np.arange(self.size)), self.points.take(np.arange(2))
        return _affordable(
            lambda seed: observed(self.trainer, members, asked, 2, seed=seed, size=self.size), self.seed, left
        )

    def plan(self, n_models: int) -> Plan:
        n = len(self.points)
        spare = np.arange(max(self.size + SPARE - n, 0)) % n
        return Plan(
            name=NAME,
            seed=self.seed,
            n_models=n_models,
            probe=False,
            data=self.points.take(np.concatenate([np.arange(n), spare])),
            trainer=self.trainer,
            game={
                "train_size": self.size,
                "adjacency": self.claim.adjacency,
                "reference_size": max(min(REFERENCE, n - self.size), 1),
            },
            audit=_audit(self.claim),
        )

    def privacy(self, plan: Plan) -> Privacy | None:
        return promised(plan, self.trainer)

    def close(self) -> None:
        pass


@dataclass(frozen=True)
class OfScript:
    """All that it trains on; a game of gradient canaries, as that of `epsgauge run SCRIPT`."""

    order: Order
    claim: Claim

    def probe(self) -> Probe:
        return probe_script(self.order)

    @cached_property
    def _plan(self) -> Plan:
        return script_plan(self.order, folder=Path.cwd(), probe=False)

    def affordable(self, left: float) -> int:
        began, size = time.perf_counter(), self._plan.game.train_size
        left -= time.perf_counter() - began
        trainer = self._plan.trainer.build()
        with beside(self._plan.folder):
            return _affordable(
                lambda seed: trainer.train(None, seed=seed, size=size, watch=Survey()), self.order.seed, left
            )

    def plan(self, n_models: int) -> Plan:
        return self._plan.changed(name=NAME, n_models=n_models, audit=_audit(self.claim))

    def privacy(self, plan: Plan) -> Privacy | None:
        return promised(plan, plan.trainer.build())

    def close(self) -> None:
        close()


def asserted(
    train: Any,
    data: Any,
    claim: Claim,
    *,
    args: Sequence[str],
    losses: Callable[[Any, Any], Any] | None,
    privacy: DPSGD | None,
    train_size: int | None,
    seed: int,
) -> Asserted:
    if not isinstance(train, str | Path):
        if args:
            raise InvalidInput(f"args are for a script, but got a {type(train).__name__}. Leave them out.")
        points = as_points(data, "data")
        size = (
            len(points)
            if train_size is None
            else int(checks.one("train_size", checks.counts("train_size", train_size)))
        )
        return OfTrainer(_trainer(train, losses, privacy), data, points, size, claim, seed)
    for name, given in (("data", data), ("losses", losses), ("train_size", train_size)):
        if given is not None:
            raise InvalidInput(f"{name} is in the script {str(train)!r} already. Leave it out.")
    stated: dict[str, Any] = {}
    if privacy is not None:
        stated = {name: getattr(privacy, name) for name in ("sample_rate", "noise_multiplier", "steps")}
    order = Order(
        str(train),
        tuple(map(str, args)),
        delta=claim.delta,
        adjacency=claim.adjacency,
        seed=seed,
        claimed_eps=claim.eps,
        **stated,
    )
    return OfScript(order, claim)


def _audit(claim: Claim) -> dict[str, Any]:
    return {
        "delta": claim.delta,
        "verdict_level": LEVEL,
        "claimed_eps": claim.eps,
        "claimed_delta": claim.delta,
        "claimed_adjacency": claim.adjacency,
    }


def _affordable(train: Callable[[int], object], seed: int, left: float) -> int:
    """As many models as the time of the second training allows."""
    took = 0.0
    for each in range(2):  # the first may import and compile
        began = time.perf_counter()
        train(seed + each)
        took = time.perf_counter() - began
        left -= took
    return max(int(left / (EACH * (took + KEEPING))), 0)


class Functions:
    """A trainer of functions."""

    def __init__(self, train: Callable[..., Any], losses: Callable[[Any, Any], Any]) -> None:
        self.train, self.losses = train, losses


class Accounted(Functions):
    """The same, with what is accounted for it."""

    def __init__(self, train: Callable[..., Any], losses: Callable[[Any, Any], Any], privacy: DPSGD) -> None:
        super().__init__(train, losses)
        self._privacy = privacy

    def privacy(self, n: int) -> DPSGD:
        return self._privacy


def _trainer(train: Any, losses: Any, privacy: DPSGD | None) -> Trainer | Observer:
    if losses is None and privacy is None:
        return as_trainer(train, NAME)
    how, says = getattr(train, "train", train), getattr(train, "losses", None) if losses is None else losses
    if not callable(how) or not callable(says):
        raise InvalidInput(
            f"{NAME} needs a trainer, or the functions train and losses=, but got {type(train).__name__}. Pass "
            "losses=losses, which takes a model and points and returns one loss per point."
        )
    return Functions(how, says) if privacy is None else Accounted(how, says, privacy)
