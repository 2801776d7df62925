"""Probes of noise that differs between groups or is correlated in time, and of updates with a public part."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

import epsgauge as eg
from epsgauge.auditing.basis import basis_of
from epsgauge.auditing.claim import Claim, NoClaim, promises
from epsgauge.errors import InvalidInput
from epsgauge.mechanisms import privacy as privacies
from epsgauge.mechanisms.accounting import accountant_eps
from epsgauge.mechanisms.privacy import DPSGD, judged_by_curve
from epsgauge.probing import fresh, in_time, noise
from epsgauge.probing.copies import Copied
from epsgauge.probing.pipeline import Replay
from epsgauge.probing.recorder import Recorder
from epsgauge.probing.spent import accounting, found_eps
from epsgauge.settings import AuditSettings
from epsgauge.trainers.watches import GradientCanaries
from zoo import kinds, network, small
from zoo.__main__ import probed
from zoo.cases import CASES

FILTERED = DPSGD(0.1, 1.0, 100, correlation=(1.0, -0.5))
# What refutes each wrong one.
REFUTED_BY = {
    "nine: a group with less noise": "noise",
    "nine: a group with less noise, stated": "noise",
    "nine: another filter": "fresh noise",
    "nine: no filter": "fresh noise",
    "nine: half of the noise is new": "noise",
    "nine: half of the noise is new, stated": "noise",
    "nine: filtered noise in all models": "fresh noise",
    "nine: filtered noise ends": "fresh noise",
    "nine: decay and other clipping": "one record",
    "a layer with less noise": "noise",
    "noise taken back by another share": "fresh noise",
}
RIGHT = [*kinds.TWINS, *(name for name, (_, bug) in kinds.OF_NETWORK.items() if not bug)]


def of(probe, name):
    return next(f for f in probe.findings if f.name == name)


@pytest.mark.parametrize("name", REFUTED_BY)
def test_wrong_noise_of_an_unusual_kind_is_refuted(name):
    found = probed(name)
    assert REFUTED_BY[name] in [f.name for f in found.refuted], str(found)


@pytest.mark.parametrize("name", RIGHT)
def test_right_noise_of_an_unusual_kind_is_not(name):
    found = probed(name)
    assert not found.refuted, str(found)


# Groups


def test_an_array_may_have_less_noise_if_records_move_it_less():
    found = of(probed("layers with noise of their own"), "noise")
    assert "clipping norms, and a record moves it by" in found.sentence
    assert found.result == "consistent"
    wrong = of(probed("a layer with less noise"), "noise")
    assert "16×10" in wrong.where
    assert 1.5 < wrong.noise < 2  # 1.26 if a record moved the layer by its whole share


def test_noise_in_units_of_each_array():
    class Dicts(kinds.GroupsStated):
        def fit(self, data, seed, n, watch=None):
            def shown(step, update, max_grad_norm):
                used = watch(
                    step, dict(zip("ab", update, strict=True)), max_grad_norm=dict(zip("ab", self.units, strict=True))
                )
                return list(used.values())

            return small.Nine.fit(self, data, seed, n, None if watch is None else shown)

    for trainer in (kinds.GroupsStated(), Dicts()):
        found = eg.probe(trainer, small.data(), train_size=small.TRAIN_SIZE, only=["noise", "sensitivity"])
        assert not found.refuted, str(found)
        assert "record" not in of(found, "noise").sentence


def test_units_that_do_not_fit():
    recorder = Recorder(walk=0.0, stop=None, keep=None)
    recorder(0, [np.ones(2), np.ones(1)], max_grad_norm=[2.0, 0.5])
    assert recorder.updates[0].tolist() == [0.5, 0.5, 2.0]
    recorder(1, [np.ones(2), np.ones(1)], max_grad_norm=np.array([2.0, 0.5]))
    with pytest.raises(InvalidInput, match=r"one for each of the 2 arrays of the update, but got 3"):
        recorder(2, [np.ones(2), np.ones(1)], max_grad_norm=[1.0, 1.0, 1.0])
    with pytest.raises(InvalidInput, match="max_grad_norm must be above 0"):
        recorder(2, [np.ones(2), np.ones(1)], max_grad_norm=[1.0, 0.0])
    watch = GradientCanaries(
        directions=np.array([0]),
        bits=np.array([1]),
        adjacency="substitute",
        privacy=DPSGD(0.1, 1.0, 10),
        sees="updates",
        seed=np.random.SeedSequence(0),
    )
    with pytest.raises(InvalidInput, match="must be one number for an adversary who sees updates, but got 2"):
        watch(0, [np.ones(2), np.ones(1)], max_grad_norm=[2.0, 0.5])


def test_noise_that_is_the_same_is_taken_as_different_rarely():
    rng = np.random.default_rng(0)
    wrong = 0
    for _ in range(2000):
        arrays = [(rng.normal(size=(4, n)), np.ones((4, n), dtype=bool)) for n in (50, 3, 10)]
        wrong += not noise._alike(arrays)
    assert wrong < 2000 * noise.ALIKE + 4 * math.sqrt(2000 * noise.ALIKE)
    other = [(rng.normal(0, s, (16, 100)), np.ones((16, 100), dtype=bool)) for s in (1.0, 1.2)]
    assert not noise._alike(other)


# Correlation in time


class TakesBack(kinds.LayersTakeBack):
    """0.5 of the last step's noise is taken back, and nothing says so."""

    stated = None


class LateLess(network.Correct):
    """A tenth of the noise is missing at the end: that is no correlation."""

    def noise_of(self, rng, step, n, shapes, seed):
        share = 0.9 if step > 2 * self.steps(n) / 3 else 1.0
        return [share * z for z in super().noise_of(rng, step, n, shapes, seed)]


def test_correlated_noise_is_not_tested_until_it_is_stated():
    """Shared or missing noise stays refuted."""
    found = eg.probe(TakesBack(), network.data(), train_size=250)
    assert [f.name for f in found.findings if f.result == "not tested"] == ["fresh noise"]
    assert "a filter like (1, -0.5" in of(found, "fresh noise").sentence
    assert "correlation=(1, c_1, …)" in of(found, "fresh noise").sentence
    assert "Not tested: fresh noise." in found.sentence
    claim = Claim(10.0, 1e-5, "add-remove", "stated")
    assert not basis_of(claim, found.privacy, found).tested
    assert basis_of(claim, found.privacy, eg.probe(network.Correct(), network.data(), train_size=250)).tested
    assert [f.name for f in eg.probe(LateLess(), network.data(), train_size=250).refuted] == ["fresh noise"]


def test_stated_correlation_is_undone():
    """Twin: by the inverse of the matrix of the filter."""
    rng = np.random.default_rng(0)
    c = (1.0, -0.5, 0.2)
    w = rng.normal(size=(9, 4))
    matrix = sum(ck * np.eye(9, k=-k) for k, ck in enumerate(c))
    replay = Replay(list(matrix @ w), list(range(9)), [], [1.0] * 9, {1.0}, [(4,)], 9, None, [], 0.0)
    sizes = rng.random(9)
    found = in_time.undone(Copied(replay, 0, 0, sizes, straight=True, apart=1.0), c)
    np.testing.assert_allclose(found.replay.updates, w, atol=1e-12)
    np.testing.assert_allclose(found.sizes, np.linalg.solve(matrix, sizes), atol=1e-12)


def test_slow_and_fast_changes_of_noise():
    """Squares have a χ² each, whatever the record that is copied adds; correlation takes from one of them."""
    rng = np.random.default_rng(0)
    z, sizes = rng.normal(size=(31, 3000)), 5 + rng.random(31)

    def of_noise(z):
        updates = list(z + sizes[:, None] * 100 * rng.normal(size=3000))
        replay = Replay(updates, list(range(len(z))), [], [], set(), [(3000,)], len(z), None, [], 0.0)
        tests = fresh.bands([Copied(replay, 0, 0, sizes, straight=True, apart=1.0)], np.arange(3000))
        return [squares / count for squares, count, _ in tests]

    assert of_noise(z) == pytest.approx([1.0] * 4, abs=0.05)
    taken_back, added = (np.vstack([z[:1], z[1:] + c * z[:-1]]) for c in (-0.9, 0.9))
    assert of_noise(taken_back)[0] < 0.2 < 2 < of_noise(taken_back)[2]
    assert of_noise(added)[2] < 0.2 < 2 < of_noise(added)[0]


# What nobody computes: the ε of correlated noise


def test_the_eps_of_correlated_noise_is_not_computed():
    assert accountant_eps(FILTERED, delta=1e-5, adjacency="add-remove") is None
    assert judged_by_curve(FILTERED, "substitute") is None
    found = promises(AuditSettings(), FILTERED, "add-remove")
    assert isinstance(found.claim, NoClaim)
    assert "claimed_eps" in found.claim.reason
    assert set(found.accountant.values()) == {None}
    from epsgauge.bounds.subsampled import curve, least_eps

    for ask in (lambda: least_eps(FILTERED, delta=1e-5, adjacency="substitute"), lambda: curve(FILTERED, "add-remove")):
        with pytest.raises(InvalidInput, match=r"not for noise correlated in time, but got DPSGD\(.*State the ε"):
            ask()
    assert accounting(FILTERED, 1e-5, "substitute", 3.0).result == "not tested"
    assert found_eps(FILTERED, [of(probed("nine: a group with less noise"), "noise")], 1e-5, "substitute") is None


def test_correlation_is_kept_and_printed():
    assert repr(FILTERED) == "DPSGD(sample_rate=0.1, noise_multiplier=1.0, steps=100, correlation=(1.0, -0.5))"
    assert repr(DPSGD(0.1, 1.0, 100)) == "DPSGD(sample_rate=0.1, noise_multiplier=1.0, steps=100)"
    said = privacies.to_json(FILTERED)
    assert said["correlation"] == [1.0, -0.5]
    assert privacies.from_json(said) == FILTERED
    assert "correlation" not in privacies.to_json(DPSGD(0.1, 1.0, 100))  # as in stores that were written before
    assert DPSGD(0.1, 1.0, 100, correlation=(1.0,)) == DPSGD(0.1, 1.0, 100)
    for wrong in ((), (0.5, 1.0), (1.0, math.inf), "x"):
        with pytest.raises(InvalidInput, match="correlation must be"):
            DPSGD(0.1, 1.0, 100, correlation=wrong)


def test_a_probe_of_stated_correlation_is_kept(tmp_path):
    found = probed("nine: noise taken back, stated")
    assert found.accounted_eps is None
    assert of(found, "fresh noise").result == "consistent"
    assert eg.Probe.read(found.save(tmp_path / "p.json")) == found
    wrong = probed("nine: another filter")
    assert wrong.found_eps is None
    broken = basis_of(Claim(10.0, 1e-5, "substitute", "stated"), None, wrong).broken
    assert [f.name for f in broken] == ["fresh noise"]


# A public part of the update


class Far(kinds.Decays):
    """A part that no record is in, longer than all sums."""

    far = 1000.0

    def public(self, rng, weights):
        return [self.far + 3 * w for w in weights]


class FarByChance(Far):
    def public(self, rng, weights):
        return [rng.normal(0, self.far, w.shape) for w in weights]


class OnlyPublic(network.Correct):
    """The last bias is moved by a public part alone, and has no noise."""

    def clipped_sum(self, layers):
        return [*super().clipped_sum(layers)[:3], np.ones(10)]

    def noise(self, rng, shapes, seed):
        return [*super().noise(rng, shapes, seed)[:3], np.zeros(10)]


@pytest.mark.parametrize("adjacency", ["substitute", "add-remove"])
@pytest.mark.parametrize("trainer", [Far(), FarByChance(), OnlyPublic()])
def test_a_public_part_of_updates_is_no_record(trainer, adjacency):
    data, size = (network.data(), 250) if isinstance(trainer, network.Correct) else (small.data(), small.TRAIN_SIZE)
    found = eg.probe(trainer, data, train_size=size, adjacency=adjacency)
    assert not found.refuted, str(found)


def test_records_beside_a_public_part():
    found = of(eg.probe(kinds.DecaysUnclipped(), small.data(), train_size=small.TRAIN_SIZE), "one record")
    assert found.code == "P109"


# Steps and clipping norms that follow something else


@dataclasses.dataclass(frozen=True)
class StepsByRecords(network.Correct):
    """Batches of 12, and as many as the records give."""

    batch: int = 12

    def fit(self, data, seed, n, watch=None):
        self.__dict__["n"] = len(data[1])
        return super().fit(data, seed, n, watch)

    def steps(self, n):
        return super().steps(self.__dict__.get("n", n))


def test_steps_by_records_where_batches_can_be_empty():
    found = eg.probe(StepsByRecords(), network.data(), train_size=250, adjacency="substitute", only=["empty batches"])
    assert "comes from the number of records" in found.findings[0].sentence


@pytest.mark.parametrize("seed", [0, 1])
def test_a_clipping_norm_of_opacus_that_adapts(seed):
    """A record that took part changes the norm, and so updates of later steps: it is not drawn more often."""
    pytest.importorskip("opacus")
    found = probed("Opacus: adaptive clipping", seed)
    assert not found.refuted, str(found)
    assert "The clipping norm changes" in of(found, "clipping").sentence


# Clipping norms that adapt


@pytest.mark.parametrize(
    ("name", "result", "words"),
    [
        ("adaptive clipping, stated", "consistent", "10 is stated"),
        ("adaptive clipping, no noise", "refuted", "with noise of at most 0; 10 is stated"),
        ("adaptive clipping, less noise", "refuted", "10 is stated"),
        ("adaptive clipping", "not tested", "no record that was tried changed it"),
    ],
)
def test_the_noise_of_a_norm_that_adapts(name, result, words):
    case = CASES[name]
    found = eg.probe(case.trainer(), network.data(), adjacency=case.adjacency, train_size=250)
    (norm,) = [f for f in found.findings if f.name == "adaptive norm"]
    assert norm.result == result, str(found)
    assert words in norm.sentence
    assert [f.code for f in found.refuted] == (["P131"] if result == "refuted" else []), str(found)


def test_noise_of_a_norm_that_is_not_stated():
    class Unstated(kinds.Counts):
        def privacy(self, n):
            return dataclasses.replace(super().privacy(n), norm_noise=None)

    found = eg.probe(Unstated(), network.data(), adjacency="substitute", train_size=250)
    (norm,) = [f for f in found.findings if f.name == "adaptive norm"]
    assert (norm.result, "State it as eg.DPSGD(..., norm_noise=...)" in norm.sentence) == ("not tested", True)
    with pytest.raises(InvalidInput, match="norm_noise must be"):
        eg.DPSGD(0.1, 1.0, 10, norm_noise=-1.0)
