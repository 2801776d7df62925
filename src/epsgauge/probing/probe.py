"""`eg.probe`: what the accountant assumes of a pipeline, tested by a few short trainings."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from epsgauge.adjacency import Adjacency
from epsgauge.adjacency import checked as checked_adjacency
from epsgauge.data.points import as_points
from epsgauge.errors import InvalidInput
from epsgauge.mechanisms.privacy import DPSGD, Privacy
from epsgauge.probing.checks import FULL, IN_A_HURRY, NAMES, QUICK, Checks, findings, named
from epsgauge.probing.pipeline import Pipeline
from epsgauge.probing.records import records
from epsgauge.probing.result import Probe
from epsgauge.probing.spent import accounted, accounting, found_eps
from epsgauge.references import users_code
from epsgauge.stats import checks
from epsgauge.trainers.known_start import with_known_start
from epsgauge.trainers.opacus_patches import counted, counting
from epsgauge.trainers.protocol import (
    Accountable,
    Observer,
    Trainer,
    as_trainer,
    has_noise_switch,
    trains_with,
    without_noise,
)

UNKNOWN = DPSGD(1.0, 1.0, 1)  # of a pipeline of which it is not asked
READ = "Rate, noise and steps are what the accountant of Opacus counted in one whole training."
_OTHER: dict[Adjacency, Adjacency] = {"substitute": "add-remove", "add-remove": "substitute"}


def probe(
    trainer: Any,
    data: Any,
    *,
    privacy: DPSGD | None = None,
    delta: float = 1e-5,
    adjacency: Adjacency = "add-remove",
    claimed_eps: float | None = None,
    train_size: int | None = None,
    seed: int = 0,
    only: Sequence[str] = (),
    quick: bool = False,
    progress: Callable[[str, int], None] | None = None,
) -> Probe:
    """Test what the accountant assumes of a training, without a membership game.

    Parameters
    ----------
    trainer
        Its `train` takes `watch` and calls it at every step.
    data
        An array, a tuple of arrays, or a map-style dataset.
    privacy
        The accounted rate, noise and steps; `trainer.privacy(n)` unless given, or what an accountant of Opacus counts
        in one whole training.
    claimed_eps
        An ε that is compared with these.
    train_size
        The number of records to train on; all of them unless given.
    only
        Names of checks to make, such as "noise" or "Poisson batches", or codes of findings; all unless given.
    quick
        Make a few short trainings: for loops that take seconds for one step.
    progress
        Called with the name of the check and the number of trainings so far, after each training.

    Returns
    -------
    Probe
        A finding for each check; `Probe.refuted` are those that contradict the accountant.
    """
    started = time.perf_counter()
    d = checks.one("delta", checks.delta(delta))
    pipeline_seed = int(checks.one("seed", checks.counts("seed", seed)))
    wanted = checked_adjacency(adjacency)
    if wanted == "label-only":
        raise InvalidInput(
            "adjacency must be substitute or add-remove, but got label-only: a probe is about whole records. What it "
            "finds for substitute holds for labels too."
        )
    name = getattr(trainer, "__name__", type(trainer).__name__)
    made = as_trainer(trainer, name, losses=False)
    if not trains_with(made, "watch"):
        raise InvalidInput(
            f"a probe needs to see updates, but the training of {name} takes no watch. Add the argument watch=None "
            "and train inside eg.watching(watch), or call update = watch(step, update, ...) at every step."
        )
    names = named(only) if only else IN_A_HURRY if quick else NAMES
    rng = np.random.default_rng(pipeline_seed)
    points = as_points(data, "data")
    n = len(points) if train_size is None else int(checks.one("train_size", checks.counts("train_size", train_size)))
    if not 2 <= n <= len(points):
        raise InvalidInput(f"train_size must be from 2 to the {len(points)} points of the data, but got {n}.")
    stated = _stated(made, privacy, n)
    found = records(data, points, rng, n)
    others = np.setdiff1d(np.arange(len(points)), found.targets)
    members = rng.permutation(np.concatenate([found.targets, rng.permutation(others)])[:n])
    for place, target in zip((0, n - 1), found.targets[::-1][:2], strict=False):  # loops may treat the ends differently
        there = int(np.flatnonzero(members == target)[0])
        members[[place, there]] = members[[there, place]]
    known = with_known_start(made)
    with users_code("the trainer without its noise"):
        quiet = without_noise(known, "the trainer") if has_noise_switch(known) else None
    untold = Pipeline(known, None, found.points, members, UNKNOWN, wanted, pipeline_seed)
    promised = stated or _counted(untold)
    doing, told = ["replays"], progress or (lambda name, count: None)
    pipeline = Pipeline(
        known,
        quiet,
        found.points,
        members,
        promised,
        wanted,
        pipeline_seed,
        told=lambda count: told(doing[0], count),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tested = findings(Checks(pipeline, found, d, QUICK if quick else FULL), names, partial(doing.__setitem__, 0))
    claim = None if claimed_eps is None else checks.one("claimed_eps", checks.eps(claimed_eps, "claimed_eps"))
    all_found = [*([] if claim is None else [accounting(promised, d, wanted, claim)]), *tested]
    return Probe(
        privacy=promised,
        delta=d,
        adjacency=wanted,
        accounted_eps=accounted(promised, d, wanted),
        other_eps=accounted(promised, d, _OTHER[wanted]),
        claimed_eps=claim,
        found_eps=found_eps(promised, all_found, d, wanted),
        findings=tuple(all_found),
        seed=pipeline_seed,
        n_trainings=pipeline.count[0],
        seconds=time.perf_counter() - started,
        notes=() if stated else (READ,),
    )


def _stated(trainer: Trainer | Observer, privacy: Privacy | None, n: int) -> DPSGD | None:
    """What is stated of the training; None if nothing is."""
    if privacy is None and isinstance(trainer, Accountable):
        with users_code("privacy(n) of the trainer"):
            privacy = trainer.privacy(n)
    if privacy is None or isinstance(privacy, DPSGD):
        return privacy
    raise InvalidInput(f"{_NEEDED} but got {privacy!r}. {_GIVE}")


def _counted(pipeline: Pipeline) -> DPSGD:
    """What an accountant of Opacus counts in one whole training."""
    with counting() as accountants:
        pipeline.replay()
    if len(accountants) != 1:
        which = f"{len(accountants)} accountants of Opacus count steps" if accountants else "nothing is stated"
        raise InvalidInput(f"{_NEEDED} but {which}. {_GIVE}")
    return counted(accountants[0].history)


_NEEDED = "a probe needs what is accounted, the rate, the noise and the steps of DP-SGD,"
_GIVE = "Give the trainer a method privacy(n) that returns eg.DPSGD(...), or pass privacy=eg.DPSGD(...)."
