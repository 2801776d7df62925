"""Which adversary a plan that names none gets: one who sees updates, if the trainer shows those of DP-SGD.

The trainer is asked once, before a run begins: by a training that ends at its first step, with a record as the canary
and, if that cannot be had, with a gradient. The run's plan names the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from epsgauge.errors import EpsgaugeError
from epsgauge.games.adversary import BEST, BLACK_BOX, GRADIENTS, AdversarySettings
from epsgauge.games.experiment import draw
from epsgauge.games.roles import assign
from epsgauge.games.seeds import Branch
from epsgauge.mechanisms.privacy import DPSGD
from epsgauge.probing.calibration import calibrated_once
from epsgauge.probing.recorder import Enough
from epsgauge.references import beside, text_of
from epsgauge.runner.code import find_code
from epsgauge.runner.crew import Cluster
from epsgauge.runner.executors import crew_for
from epsgauge.runner.hopeless import last_line
from epsgauge.runner.limit import within
from epsgauge.runner.plan import Plan
from epsgauge.runner.play import promised, quietly, split, table, trainer_of
from epsgauge.runner.results import apart, single
from epsgauge.runner.store import Store
from epsgauge.runner.view import stored_plan
from epsgauge.stats.arrays import Floats
from epsgauge.trainers.leaving import is_users_own
from epsgauge.trainers.protocol import names, observed
from epsgauge.trainers.watch import Watch
from epsgauge.trainers.watches import RecordCanaries

OPEN = "open"  # the entry of a store whose plan named no adversary
UNWATCHED = "The adversary sees losses, although train takes watch: "
NO_RECORDS = "Only a gradient was tried as the canary, as the trainer gives no gradients of records: "


@dataclass(frozen=True)
class Faced:
    """The adversary that was found, and what a reader should know of it."""

    adversary: AdversarySettings
    notes: tuple[str, ...] = ()


def faced(plan: Plan, file: Path, executor: Executor | Cluster | None) -> tuple[Plan, dict[str, Any]]:
    """The plan of a run with its adversary, and what a new store keeps of how that was found.

    A run that goes on keeps the adversary that it began with.
    """
    if not plan.adversary.is_open:
        return plan, {}
    if Store.is_begun(file):
        with Store.read(file) as store:
            return resumed(store, plan), {}
    found = asked(plan, executor)
    return plan.facing(found.adversary), {OPEN: True, "notes": list(found.notes)}


def resumed(store: Store, plan: Plan) -> Plan:
    """A plan that names no adversary, with that of the run."""
    return plan.facing(stored_plan(store).adversary) if plan.adversary.is_open and store.get(OPEN) else plan


def asked(plan: Plan, executor: Executor | Cluster | None = None) -> Faced:
    """What the trainer says, in a worker process or where the executor works; for a cluster, in one of this machine.

    Whatever is wrong with the plan's code, a run finds and names it.
    """
    try:
        if executor is None or isinstance(executor, Cluster):
            return apart(plan, look)
        crew = crew_for(plan, executor, None)
        try:
            return single(crew, look)
        finally:
            crew.leave(at_once=True)
    except EpsgaugeError as error:
        return Faced(BLACK_BOX, (f"{UNWATCHED}{error}",))


def look(plan: Plan) -> list[Faced]:
    """Ask the trainer."""
    find_code(plan)
    with beside(plan.folder):
        trainer = trainer_of(plan, losses=False)
        if not names(trainer, "watch"):
            return [Faced(BLACK_BOX)]
        if not isinstance(promised(plan, trainer), DPSGD):
            why = "privacy(n) gives no eg.DPSGD(...), whose claims cover an adversary who sees updates."
            return [Faced(BLACK_BOX, (f"{UNWATCHED}{why}",))]
    watched = plan.facing(BEST)
    records = _failed(watched, record=True)
    if not records:
        return [Faced(BEST)]
    gradients = _failed(watched, record=False)
    if gradients:
        return [Faced(BLACK_BOX, (f"{UNWATCHED}{gradients}",))]
    return [Faced(GRADIENTS, (f"{NO_RECORDS}{records}",))]


def _failed(plan: Plan, *, record: bool) -> str:
    """Why the first step of a training cannot be seen, as a sentence; nothing if it can."""
    on, game = table(plan), plan.game
    reference, others = split(plan)
    drawn = draw(game, assign(game, reference, others, on.canaries, None).taking(0), plan.seed, 0, Branch.look)
    watch: Watch = _Any()
    if record:
        own = on.points.take(drawn.pairs[0, ::-1][drawn.pairs[0, ::-1] >= 0])
        watch = _First(records=own, pairs=1, adjacency=game.adjacency, privacy=on.privacy)
    data, some = on.points.take(drawn.training), on.points.take(reference[:1])
    how: dict[str, Any] = {"seed": drawn.seed, "size": game.train_size, "known_start": plan.start == "known"}
    try:
        with quietly(plan), calibrated_once(), within(plan.execution.timeout, [0]):
            observed(on.trainer, data, some, 1, watch=watch, **how)
            watch.channels()  # which says that it was never called
    except Enough:
        return ""
    except BaseException as error:  # a training script may call sys.exit
        if is_users_own(error):
            raise
        raised = "" if isinstance(error, EpsgaugeError) else f"it raised {type(error).__name__}: "
        return last_line(f"{raised}{text_of(error)}")
    return ""


class _Any(Watch):
    """Ends the training at the first step that it is shown."""

    def _see(
        self, arrays: list[Any], max_grad_norm: float, divisor: float, gradients: Sequence[Any] | None
    ) -> list[Any]:
        raise Enough


class _First(RecordCanaries):
    """The same, if there are gradients of the records."""

    def saw(self, products: Floats, squares: Floats) -> None:
        raise Enough
