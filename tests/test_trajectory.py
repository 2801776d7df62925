"""The trajectory attack: losses at each iterate, by the statistic that told most on models set apart."""

from dataclasses import replace

import numpy as np
import pytest
from tiny_runs import played

import epsgauge as eg
from epsgauge.attacks.trajectory import Trajectory
from epsgauge.games.signals import Signals

RNG = np.random.default_rng(0)


def signals(path, bits=None, **changes):
    """Of one pair per model: losses of z0 and z1 at each iterate, [n, 2, steps]."""
    n = len(path)
    bits = np.tile([0, 1], n)[:n] if bits is None else bits
    channels = {"trajectory": path[:, None], "loss": path[:, None, :, -1]}
    seen = Signals(np.arange(n), bits[:, None], np.zeros((n, 1, 2), int), channels, "substitute", "pair")
    return replace(seen, **changes)


def shared_noise(n):
    """The same noise in all steps of a model drowns the losses, but not the step in which the record was used."""
    bits, steps = RNG.integers(0, 2, n), np.arange(8.0)
    path = RNG.normal(0, 1, (n, 2, 1)) * steps + RNG.normal(0, 0.01, (n, 2, 8))
    path[np.arange(n), bits, 4:] -= 0.5
    return signals(path, bits)


def order(attack, seen):
    """Mean scores of both bits, in units of their spread."""
    scores = attack.scores(seen)
    ones, zeros = (scores.score[scores.bit == b] for b in (1, 0))
    return (ones.mean() - zeros.mean()) / scores.score.std()


def test_without_a_rehearsal_it_is_the_mean_over_all_iterates():
    path = RNG.normal(size=(6, 2, 5))
    score = Trajectory().score(signals(path))[:, 0]
    np.testing.assert_allclose(score, (path[:, 0] - path[:, 1]).mean(axis=-1))
    alone = Trajectory().score(signals(path, adjacency="add-remove"))[:, 0]
    np.testing.assert_allclose(alone, -path[:, 1].mean(axis=-1))
    other = Trajectory().score(signals(path, sees="z0"))[:, 0]
    np.testing.assert_allclose(other, path[:, 0].mean(axis=-1))


def test_models_set_apart_say_that_jumps_tell_more():
    judged, apart = shared_noise(200), shared_noise(60)
    assert order(Trajectory(), judged) < 0.5
    taught = replace(judged, rehearsal=apart)
    assert order(Trajectory(), taught) > 1.8
    assert Trajectory().sees(taught).endswith("the losses of the pair, their jumps from step to step")


def test_a_sign_is_learned_too():
    bits = np.tile([0, 1], 20)
    path = RNG.normal(size=(40, 2, 5))
    path[bits == 1, 1] += 9.0  # the trained-on record has the larger loss
    seen = signals(path, bits)
    assert order(Trajectory(), replace(seen, rehearsal=seen)) > 1.5
    assert "lower speaks for b = 1" in Trajectory().sees(replace(seen, rehearsal=seen))


@pytest.mark.parametrize("shape", [(6, 2, 3), (6, 2, 5, 2)])
def test_what_is_no_trajectory_is_refused(shape):
    with pytest.raises(
        eg.InvalidInput, match="losses of each point at 4 iterates or more, but its channel has the shape"
    ):
        Trajectory().scores(signals(np.zeros(shape)))


def test_a_run_without_the_channel_says_who_gives_it():
    seen = signals(np.zeros((6, 2, 5)))
    with pytest.raises(eg.InvalidInput, match=r"needs the channel 'trajectory', .* Let the trainer give it"):
        Trajectory().scores(replace(seen, channels={"loss": seen["loss"]}))


@pytest.mark.long
def test_a_rehearsal_teaches_it_to_find_noise_that_all_steps_share(tmp_path):
    plan = eg.Plan(
        name="same noise",
        n_models=400,
        probe=False,  # which finds it, too
        data="zoo.network:data",
        trainer={"use": "zoo.network:SeedOfSteps", "path": True},
        game={"train_size": 250, "control_models": 0},
        audit={"attack": "trajectory"},
    )
    found = eg.audit(played(plan, tmp_path / "run"))
    assert found.verdict.kind == "violation"
    assert "their jumps from step to step" in found.adversary.access
