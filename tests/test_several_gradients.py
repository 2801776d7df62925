"""Several gradient canaries in each model: they count as models of their own, once a probe found that noise is even."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.stats import binom

import epsgauge as eg
from epsgauge.auditing.basis import OF_DIRECTIONS
from epsgauge.methods.curve import CurveOfDirections
from epsgauge.methods.evidence import Evidence
from epsgauge.runner.executors import InProcess
from epsgauge.scores.rules import Given, judge
from epsgauge.scores.table import Scores
from epsgauge.trainers.watches import GradientCanaries

RATE, STEPS, SIZE, N = 0.2, 20, 60, 80
DATA = (np.random.default_rng(0).normal(size=(N, 4)),)


@dataclass(frozen=True)
class Loop:
    """DP-SGD in NumPy; record i pulls the weights towards its features."""

    noise_multiplier: float = 1.0
    said: float = 1.0

    def train(self, data, *, seed, size, watch=None):
        rng, weights = np.random.default_rng(seed), np.zeros(SIZE)
        for step in range(STEPS):
            x = data[0]
            rows = x[rng.random(len(x)) < RATE]
            gradients = weights - np.pad(rows, ((0, 0), (0, SIZE - rows.shape[1])))
            norms = np.linalg.norm(gradients, axis=1, keepdims=True)
            update = (gradients / np.maximum(norms, 1.0)).sum(axis=0)
            update += self.noise_multiplier * rng.normal(size=SIZE)
            weights = weights - 0.01 * (update if watch is None else watch(step, update, max_grad_norm=1.0))
        return weights

    def privacy(self, n):
        return eg.DPSGD(sample_rate=RATE, noise_multiplier=self.said, steps=STEPS)


def played(folder, *, probe, pairs=10, trainer=None):
    plan = eg.Plan(
        name="several",
        n_models=40,
        probe=probe,
        data=DATA,
        trainer=trainer or Loop(),
        game={"train_size": N - 2, "pairs_per_model": pairs, "adjacency": "substitute", "reference_size": 2},
        adversary={"preset": "white-box"},
    )
    return eg.run(plan, out=folder, executor=InProcess())


def test_a_probe_decides_what_they_are_worth(tmp_path):
    run = played(tmp_path / "r", probe=True)
    consistent = {finding.name for finding in run.probe.findings if finding.result == "consistent"}
    assert consistent >= set(OF_DIRECTIONS)
    audit, unprobed = eg.audit(run), eg.audit(replace(run, probe=None))
    assert audit.evidence.orthogonal
    assert not unprobed.evidence.orthogonal
    assert "if the training is DP-SGD" in repr(audit)
    assert "DP-SGD" not in repr(unprobed)

    # the same scores in the form that canaries of one training have
    scores = audit.evidence.whole.scores
    flat = Scores(
        np.zeros(len(scores), np.int64), np.arange(len(scores)), scores.bit, scores.score, "substitute", bits="coins",
        taken_as="orthogonal",
    )  # fmt: skip
    twin = Evidence(judge(flat, Given(0.0), delta=1e-5), privacy=audit.evidence.privacy)
    bounds = [CurveOfDirections().lower_bound(seen, delta=1e-5, level=0.99) for seen in (audit.evidence, twin)]
    assert bounds[0] == bounds[1]
    assert bounds[0] == audit.verdict.conditional_bound.value > 2 * audit.verdict.bound.value


def test_noise_that_is_too_low_is_refuted(tmp_path):
    run = played(tmp_path / "r", probe=False, trainer=Loop(noise_multiplier=0.5, said=1.0))
    run = replace(run, probe=played(tmp_path / "p", probe=True).probe)  # as if the probe had missed it
    assert eg.audit(run).verdict.kind == "violation"


@pytest.mark.long
def test_the_bound_holds_in_a_training_that_mixes_canaries():
    """Each canary's coordinate gets what the others moved: guesses about one model depend on each other."""
    privacy, m, n, runs, level = eg.DPSGD(sample_rate=0.5, noise_multiplier=1.0, steps=4), 8, 6, 150, 0.8
    rng, missed = np.random.default_rng(1), 0
    for k in range(runs):
        bits, found = rng.integers(0, 2, (n, m)), []
        for i in range(n):
            watch = GradientCanaries(
                directions=np.arange(m), bits=bits[i], adjacency="substitute", privacy=privacy, sees="updates",
                seed=np.random.SeedSequence([k, i]),
            )  # fmt: skip
            weights = np.zeros(m)
            for step in range(privacy.steps):
                pull = 0.3 * np.roll(np.sign(weights), 1)  # public: it depends on what was released
                weights = weights - watch(step, pull + rng.normal(size=m), max_grad_norm=1.0)
            found.append(watch.channels()["llr"])
        at = [axis.ravel() for axis in np.indices((n, m))]
        scores = Scores(*at, bits.ravel(), np.ravel(found), "substitute", bits="coins")
        seen = Evidence(judge(scores, Given(0.0), delta=1e-5), privacy=privacy, of_directions=True)
        missed += CurveOfDirections().noise(seen, level=level) < privacy.noise_multiplier
    assert missed <= binom.ppf(0.999, runs, 1 - level)
    assert missed > 0  # the bound is not so wide that nothing could be seen
