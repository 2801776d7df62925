"""Randomness of a run: streams are children of (run seed, branch, model index), so order and place change nothing."""

from __future__ import annotations

from enum import IntEnum

import numpy as np


class Branch(IntEnum):
    """Models of different purpose never share a stream. The numbers are part of what a seed means: keep them."""

    shared = 0  # what all models of a run have in common: reference, pool, fixed base and pairs
    audited = 1  # models that are judged, or that choose the rule
    ranking = 2  # models that find the worst-case points
    rehearsal = 3  # models on which canaries are tried or an attack learns, and those without noise
    survey = 4  # the model that shows which coordinates the base hardly uses
    look = 5  # the training that ends at its first step, to see what the trainer shows


class Stream(IntEnum):
    bits = 0
    pairs = 1
    base = 2
    training = 3  # a trainer has children of this one for initialisation, batches and noise
    points = 4
    watch = 5  # when a gradient canary takes part


def generator(run_seed: int, branch: Branch, stream: Stream, index: int = 0) -> np.random.Generator:
    return np.random.default_rng(child(run_seed, branch, stream, index))


def training_seed(run_seed: int, branch: Branch, index: int) -> int:
    """The one number that a trainer gets: below 2^63, so that every library takes it."""
    high, low = child(run_seed, branch, Stream.training, index).generate_state(2, np.uint32)
    return (int(high) << 32 | int(low)) >> 1


def child(run_seed: int, branch: Branch, stream: Stream, index: int = 0) -> np.random.SeedSequence:
    return np.random.SeedSequence(run_seed, spawn_key=(int(branch), index, int(stream)))
