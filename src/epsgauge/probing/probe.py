"""`eg.probe`: what the accountant assumes of a pipeline, tested by a few short trainings."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np

from epsgauge.adjacency import Adjacency
from epsgauge.adjacency import checked as checked_adjacency
from epsgauge.data.points import as_points
from epsgauge.errors import InvalidInput
from epsgauge.mechanisms.privacy import DPSGD, Privacy
from epsgauge.probing.clipping import Clips, clipping
from epsgauge.probing.copies import copied, copies, one_record
from epsgauge.probing.empty import empty
from epsgauge.probing.finding import Finding, not_tested
from epsgauge.probing.fresh import between, there_is, within
from epsgauge.probing.noise import drawn, noise
from epsgauge.probing.pipeline import Pipeline
from epsgauge.probing.records import Records, records
from epsgauge.probing.result import Probe
from epsgauge.probing.sampling import batches, rate_of_half, sampling_rate, steps_needed
from epsgauge.probing.sensitivity import sensitivity
from epsgauge.probing.spent import accounted, accounting, found_eps
from epsgauge.probing.taking_part import taking_part
from epsgauge.probing.whole import whole
from epsgauge.references import users_code
from epsgauge.stats import checks
from epsgauge.trainers.known_start import with_known_start
from epsgauge.trainers.protocol import (
    Accountable,
    Observer,
    Trainer,
    as_trainer,
    has_noise_switch,
    trains_with,
    without_noise,
)

# Models whose steps are compared, and steps of one more, from its first to its last.
MODELS, LATE = 3, 64
# What is seen by replacing records.
BY_RECORDS = ("sensitivity", "clipping", "one record", "sampling rate", "Poisson batches")


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
) -> Probe:
    """Hold a trainer against what is accounted for it, without a membership game.

    `trainer.train` takes `watch` and calls it at every step. What is accounted is `trainer.privacy(n)`, or `privacy`.
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
    made = as_trainer(trainer, type(trainer).__name__)
    if not trains_with(made, "watch"):
        raise InvalidInput(
            f"a probe needs to see updates, but the training of {type(trainer).__name__} takes no watch. Add the "
            "argument watch=None; then call optimizer.attach_step_hook(watch) with Opacus, or at every step update = "
            "watch(step, update, max_grad_norm=...)."
        )
    rng = np.random.default_rng(pipeline_seed)
    points = as_points(data, "data")
    n = len(points) if train_size is None else int(checks.one("train_size", checks.counts("train_size", train_size)))
    if not 2 <= n <= len(points):
        raise InvalidInput(f"train_size must be from 2 to the {len(points)} points of the data, but got {n}.")
    promised = _promised(made, privacy, n)
    found = records(data, points, rng, n)
    others = np.setdiff1d(np.arange(len(points)), found.targets)
    members = rng.permutation(np.concatenate([found.targets, rng.permutation(others)])[:n])
    known = with_known_start(made)
    with users_code("the trainer without its noise"):
        quiet = without_noise(known, "the trainer") if has_noise_switch(known) else None
    pipeline = Pipeline(known, quiet, found.points, members, promised, wanted, pipeline_seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        findings = _findings(pipeline, found, d)
    claim = None if claimed_eps is None else checks.one("claimed_eps", checks.eps(claimed_eps, "claimed_eps"))
    findings = [accounting(promised, d, wanted, claim), *findings] if claim is not None else findings
    return Probe(
        privacy=promised,
        delta=d,
        adjacency=wanted,
        accounted_eps=accounted(promised, d, wanted),
        claimed_eps=claim,
        found_eps=found_eps(promised, findings, d, wanted),
        findings=tuple(findings),
        n_trainings=pipeline.count[0],
        seconds=time.perf_counter() - started,
    )


def _promised(trainer: Trainer | Observer, privacy: Privacy | None, n: int) -> DPSGD:
    if privacy is None and isinstance(trainer, Accountable):
        with users_code("privacy(n) of the trainer"):
            privacy = trainer.privacy(n)
    if not isinstance(privacy, DPSGD):
        raise InvalidInput(
            f"a probe needs what is accounted, the rate, the noise and the steps of DP-SGD, but got {privacy!r}. "
            "Give the trainer a method privacy(n) that returns eg.DPSGD(...), or pass privacy=eg.DPSGD(...)."
        )
    return privacy


def _findings(pipeline: Pipeline, found: Records, delta: float) -> list[Finding]:
    stop, steps = steps_needed(pipeline.privacy.sample_rate), int(pipeline.privacy.steps)
    pipeline.replay(stop=1)  # what is imported on the way may draw numbers
    base = [pipeline.replay(model, stop=stop) for model in range(MODELS)]
    if not all(each.n_steps for each in base):
        raise InvalidInput(
            "a trainer that takes watch must call it at every step, but it was never called. Call "
            "watch(step, update, max_grad_norm=...), or optimizer.attach_step_hook(watch) with Opacus."
        )
    alike = [copied(pipeline, found, model, stop=stop) for model in range(MODELS)]
    kept = np.unique(np.linspace(0, steps - 1, LATE).astype(np.int64)).tolist()
    late = copied(pipeline, found, MODELS, keep=kept)
    seeded = pipeline.replay(0, stop=stop).digests == base[0].digests
    of_noise = drawn(pipeline, alike, seeded=seeded)
    amount = noise(pipeline, of_noise)
    there = there_is(pipeline, of_noise, enough=amount.result != "refuted")
    out = [amount, between(base, [*alike, late], there), within(of_noise, there)]
    if not seeded:
        why = "Two trainings with one seed differ: some randomness is not seeded. Derive every generator from `seed`."
        return [*out, *(not_tested(name, why) for name in (*BY_RECORDS, "steps", "bypass"))]
    walk = pipeline.privacy.noise_multiplier * next(iter(base[0].norms)) / next(iter(base[0].divisors))
    seen = taking_part(pipeline, found, MODELS, stop=stop, walk=walk)
    if seen.shifted:
        why = (
            "Which random numbers are drawn depends on the record: give noise, batches and layers their own generators."
        )
        out += [not_tested(name, why) for name in BY_RECORDS]
        return [*out, *whole(pipeline, found, seen, late.replay, walk=walk)]
    apart, rate, sums = (
        sensitivity(pipeline, found, seen, walk, quiet=of_noise is not None and not of_noise.mixed),
        sampling_rate(pipeline, seen),
        copies(pipeline, found, stop),
    )
    why = "How many copies of a record are in a batch is not known: see the sampling rate."
    one, clips = not_tested("one record", why), Clips(not_tested("clipping", why), counts=True)
    if rate.result == "consistent":
        one, clips = one_record(pipeline, sums), clipping(pipeline, found, seen, alike, stop)
    clipped = clips.counts and "refuted" not in (apart.result, one.result)
    of_batches = batches(pipeline, seen, next(iter(sums.values()), None) if clipped else None)
    out += [apart, clips.finding, one, rate, of_batches, *empty(pipeline, base, stop, delta)]
    halved = pipeline.adjacency == "add-remove" and clips.counts and "refuted" not in (rate.result, of_batches.result)
    rates = rate_of_half(pipeline, found, alike[0], stop) if halved else None
    return [*out, *whole(pipeline, found, seen, late.replay, walk=walk, rates=rates)]
