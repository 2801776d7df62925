"""A run that is killed again and again ends with the signals of one that was left alone."""

from __future__ import annotations

import random

import killing

from epsgauge.runner.view import Run

KILLS = 4  # a hundred: make soak
N_MODELS = 140


def test_kill_9_at_random_moments_changes_no_signal(tmp_path):
    rng = random.Random(3)
    killed = tmp_path / "killed"
    share = N_MODELS // (KILLS + 1)
    # every other time only the parent, so that its workers are left alone
    kills = [killing.kill_once(killed, N_MODELS, rng, whole_group=bool(i % 2), share=share) for i in range(KILLS)]
    assert sum(kill.in_the_middle for kill in kills) >= KILLS // 2
    assert 0 < kills[-1].after < N_MODELS
    assert all(kill.before <= kill.after for kill in kills)  # nothing is lost
    killing.uninterrupted(killed, N_MODELS, workers=2)
    assert Run.open(killed).complete

    killing.uninterrupted(tmp_path / "alone", N_MODELS, workers=1)
    assert killing.rows(tmp_path / "alone") == killing.rows(killed)
    assert len(killing.rows(killed)) == N_MODELS
