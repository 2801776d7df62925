"""Probes of code that they have never seen: bugs of public training loops, and right loops of unusual kinds."""

from __future__ import annotations

import random
import sys

import numpy as np
import pytest
from scipy import stats

import epsgauge as eg
from epsgauge.probing import sampling
from epsgauge.probing.generators import held, state
from zoo import strangers, strangers_models, strangers_right, strangers_steps
from zoo.strangers import NoSwitch

CODES = {
    "clipped to the median": "P153",
    "median norm": "P152",
    "window of norms": "P104",
    "masks from records": "P104",
    "class weights after clipping": "P150",
    "labels smoothed": "P150",
    "noise by labels": "P150",
    "outliers of the data dropped": "P110",
    "batches used again": "P154",
    "drawn by length": "P110",
    "padded": "P104",
    "cut off": "P151",
    "two epochs shuffled": "P112",
    "one size with fakes": "P112",
    "rate from clean sums": "P117",
}
BUGS = {**strangers.BUGS, **strangers_steps.BUGS}
TWINS = {**strangers_right.TWINS, **strangers_models.TWINS}
# Twins that were refuted once, and what is not tested of them now.
ALARMS = {
    "some records altered": ("sensitivity", "depends on the record"),
    "sorted records": ("sensitivity", "orders its records"),
    "drawn label by label": ("sampling rate", "orders its records"),
    "adaptive clipping": ("bypass", "The clipping norm changes"),
}


def probed(trainer, **more):
    data = getattr(sys.modules[type(trainer).__module__], getattr(trainer, "source", "data"), strangers.data)()
    return eg.probe(trainer, data, **{"train_size": strangers.TRAIN_SIZE, **more})


def result_of(probe, name):
    return next(f for f in probe.findings if f.name == name)


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name in CODES else pytest.mark.long) for name in BUGS])
def test_bugs_of_strangers(name):
    found = probed(BUGS[name]())
    if name in ("uniform noise", "Laplace noise"):  # known misses
        assert not found.refuted
        return
    assert CODES.get(name, found.refuted and found.refuted[0].code) in [f.code for f in found.refuted], str(found)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in ALARMS else pytest.mark.long) for name in TWINS]
)
def test_unusual_loops_are_not_refuted(name):
    found = probed(TWINS[name]())
    assert not found.refuted, str(found)
    if name in ALARMS:
        finding, why = ALARMS[name]
        assert why in result_of(found, finding).sentence


# Where a loop draws by content, the checks that do without places still work


class AltersAndShares(strangers_right.AltersSome):
    """Numbers are drawn by content, and the noise of a step is used again."""

    def noise(self, rng, size):
        fresh = super().noise(rng, size)
        self.drawn = fresh if self.step % 2 == 0 else self.drawn
        return self.drawn


class SortsAndFixes(strangers_right.Sorts):
    """Records are sorted, and batches have a fixed size."""

    def sample(self, rng, x, y, n):
        return rng.choice(len(x), self.batch, replace=False)


def test_loops_that_draw_by_content_are_still_tested():
    assert {"P101", "P102"} <= {f.code for f in probed(AltersAndShares()).refuted}
    assert [f.code for f in probed(SortsAndFixes()).refuted] == ["P112"]


# What is said


def test_a_record_outside_its_batch_is_named():
    found = probed(strangers_steps.ClassWeights())
    (rate,) = [f for f in found.refuted if f.code == "P150"]
    assert "A record moves updates of batches that it is not in, by 0.0" in rate.sentence
    assert rate.rate is None  # no accountant has a number for that


def test_the_size_of_batches_is_counted_without_a_switch_for_the_noise():
    found = probed(strangers_steps.TwoEpochs())
    assert "All batches have 40 records" in result_of(found, "Poisson batches").sentence
    cut = result_of(probed(strangers_steps.CutsOff()), "Poisson batches")
    assert "batches have 40 records, where 6.6 % may" in cut.sentence
    again = result_of(probed(strangers_steps.BatchAgain()), "Poisson batches")
    assert 0.13 < again.rate < 0.155  # of 1 − 0.92² = 0.154


# Statistics


@pytest.mark.parametrize(("k", "n"), [(1, 10), (40, 500), (499, 500)])
def test_the_likeliest_rate_of_a_size(k, n):
    rates = np.linspace(0.0005, 0.9995, 1999)
    assert sampling._chance_of_size(k, n) == pytest.approx(stats.binom.pmf(k, n, k / n))
    assert sampling._chance_of_size(k, n) >= stats.binom.pmf(k, n, rates).max() - 1e-12


def test_batches_drawn_by_coins_are_seldom_of_one_size():
    """The bound on the chance that many batches have one size holds at any rate."""
    rng = np.random.default_rng(0)
    for rate in (0.004, 0.08, 0.5):
        wrong = 0
        for _ in range(2000):
            counts = rng.binomial(500, rate, 40)
            values, often = np.unique(counts, return_counts=True)
            size = int(values[np.argmax(often)])
            if 0 < size < 500:
                chance = 40 * sampling._at_least(int(often.max()), 40, sampling._chance_of_size(size, 500))
                wrong += chance < 0.05
        assert wrong < 0.05 * 2000


# Generators


class Holder:
    def __init__(self, rng):
        self.kept = {"noise": rng}


def test_generators_in_variables_attributes_and_dicts_are_found():
    mine, other, third = (np.random.default_rng(i) for i in range(3))
    holder, listed = Holder(other), [third]
    found = held()
    assert {id(each) for each in (mine, holder.kept["noise"], listed[0])} <= {id(each) for each in found}
    before = state([other])
    assert state([other]) == before
    other.random()
    assert state([other]) != before


def test_the_states_of_other_generators():
    torch = pytest.importorskip("torch")
    of_torch, of_random, old = torch.Generator().manual_seed(1), random.Random(1), np.random.RandomState(1)
    draws = (lambda: torch.rand(1, generator=of_torch), of_random.random, old.rand)
    for made, draw in zip((of_torch, of_random, old), draws, strict=True):
        before = state([made])
        draw()
        assert state([made]) != before


def test_generators_are_found_in_a_replay():
    """Of a loop that has its own, and gives it to another object."""

    class Nested(NoSwitch):
        def sample(self, rng, x, y, n):
            self.holder = Holder(rng)
            return super().sample(rng, x, y, n)

        def gradients(self, x, y):
            self.holder.kept["noise"].random(int((x[:, 0] > 0.5).sum()))
            return super().gradients(x, y)

    assert "depends on the record" in result_of(probed(Nested()), "sensitivity").sentence
