"""Noise that Opacus searches for an ε is searched once for all models of a process."""

from dataclasses import dataclass

import numpy as np
import pytest
from tiny_runs import plan, played

from epsgauge.probing.calibration import _once, calibrated_once

ARGUMENTS = {"target_epsilon": 3.0, "target_delta": 1e-5, "sample_rate": 0.1, "steps": 20, "accountant": "rdp"}


@pytest.mark.filterwarnings("ignore:Optimal order")
def test_a_search_is_made_once_for_the_same_arguments():
    engine = pytest.importorskip("opacus.privacy_engine")
    original = engine.get_noise_multiplier
    _once.cache_clear()
    with calibrated_once():
        first = engine.get_noise_multiplier(**ARGUMENTS)
    with calibrated_once():
        assert engine.get_noise_multiplier(**ARGUMENTS) == first
        assert engine.get_noise_multiplier(**{**ARGUMENTS, "target_epsilon": 4.0}) < first
    assert (_once.cache_info().hits, _once.cache_info().misses) == (1, 2)
    assert engine.get_noise_multiplier is original
    assert first == original(**ARGUMENTS)


@dataclass(frozen=True)
class Private:
    """Asks Opacus for noise, as `make_private_with_epsilon` does."""

    def train(self, data, *, seed):
        from opacus import privacy_engine

        return privacy_engine.get_noise_multiplier(**ARGUMENTS), seed

    def losses(self, model, points):
        noise, seed = model
        return np.random.default_rng(seed).normal(noise, size=len(points[0]))


def test_a_run_searches_once(tmp_path):
    pytest.importorskip("opacus.privacy_engine")
    _once.cache_clear()
    assert played(plan(Private(), n_models=8), tmp_path / "run").complete
    assert (_once.cache_info().hits, _once.cache_info().misses) == (7, 1)
