"""The probe of a plan, and what its own randomness is worth: in a worker process, out of reach of a run's models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from epsgauge.adjacency import Adjacency
from epsgauge.errors import EpsgaugeError
from epsgauge.probing.intrinsic import Intrinsic, intrinsic
from epsgauge.probing.probe import probe
from epsgauge.probing.result import Probe, Unprobed
from epsgauge.references import beside, users_code
from epsgauge.runner.code import find_code
from epsgauge.runner.crew import Crew
from epsgauge.runner.limit import within
from epsgauge.runner.plan import Plan
from epsgauge.runner.play import trainer_of
from epsgauge.runner.results import apart

# With `execution.timeout`, a probe may take as long as so many models.
TRAININGS = 150


def probe_plan(
    plan: Plan,
    *,
    only: Sequence[str] = (),
    quick: bool = False,
    seed: int | None = None,
    progress: Callable[[str, int], None] = lambda name, count: None,
) -> Probe:
    """Its trainer and data, at the size of its training sets; the claim that it states, or the accountant's.

    `progress` is called every second with the name of the check and the number of trainings so far.
    """
    with TemporaryDirectory(prefix="epsgauge-probe-") as folder:
        note = Path(folder, "progress")

        def waiting() -> None:
            with suppress(OSError, ValueError):  # nothing is written yet
                name, count = note.read_text(encoding="utf-8").split("\n")
                progress(name, int(count))

        job = partial(_probed, claim=True, only=tuple(only), quick=quick, seed=seed, note=str(note))
        return apart(plan, job, waiting=waiting)


def probe_of_run(plan: Plan, crew: Crew) -> Probe | Unprobed:
    """The same for a run, whose claim is held against it later. What cannot be probed is trained all the same."""
    try:
        return apart(plan, partial(_probed, claim=False), crew)
    except EpsgaugeError as error:
        limit = "" if plan.execution.timeout is None else f" A probe may take {TRAININGS} times execution.timeout."
        return Unprobed(f"{error}{limit}")


def _probed(
    plan: Plan,
    *,
    claim: bool,
    only: Sequence[str] = (),
    quick: bool = False,
    seed: int | None = None,
    note: str | None = None,
) -> list[Probe]:
    audit, timeout = plan.audit, plan.execution.timeout
    find_code(plan)
    with beside(plan.folder), within(None if timeout is None else TRAININGS * timeout, [0]):
        asked: dict[str, Any] = {
            "delta": audit.delta if audit.claimed_delta is None else audit.claimed_delta,
            "adjacency": _of_records(audit.claimed_adjacency or plan.game.adjacency),
            "claimed_eps": audit.claimed_eps if claim else None,
            "seed": plan.seed if seed is None else seed,
            "only": tuple(only),
            "quick": quick,
            "progress": _untold if note is None else partial(_write, note),
        }
        if plan.trains_script:
            return [plan.trainer.build().probe(**asked)]
        trainer = trainer_of(plan, losses=False)
        with users_code(f"data {plan.data.use}"):
            data = plan.data.build()
        return [probe(trainer, data, train_size=plan.game.train_size, **asked)]


def _untold(name: str, count: int) -> None:
    pass


def _write(note: str, name: str, count: int) -> None:
    with suppress(OSError):
        Path(note).write_text(f"{name}\n{count}", encoding="utf-8")


def intrinsic_of_plan(plan: Plan, n_seeds: int, n_neighbours: int) -> Intrinsic:
    """What the own randomness of a plan's training is worth, as an estimate."""
    return apart(plan, partial(_intrinsic, n_seeds=n_seeds, n_neighbours=n_neighbours))


def _intrinsic(plan: Plan, *, n_seeds: int, n_neighbours: int) -> list[Intrinsic]:
    find_code(plan)
    with beside(plan.folder):
        with users_code(f"data {plan.data.use}"):
            data = plan.data.build()
        found = intrinsic(
            trainer_of(plan),
            data,
            n_seeds=n_seeds,
            n_neighbours=n_neighbours,
            adjacency=_of_records(plan.game.adjacency),
            delta=plan.audit.delta,
            train_size=plan.game.train_size,
            seed=plan.seed,
        )
    return [found]


def _of_records(adjacency: Adjacency) -> Adjacency:
    """A probe puts whole records in: what holds for these holds for their labels."""
    return "substitute" if adjacency == "label-only" else adjacency
