"""Probes: what the accountant assumes, tested by short trainings, on pipelines whose bugs are known."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import re
import shutil
import uuid

import numpy as np
import pytest
from command_line import refused, told
from scipy import stats
from tiny_runs import played, responses, small_plan

import epsgauge as eg
from epsgauge.errors import InvalidInput
from epsgauge.probing import copies, fresh, noise, sampling
from epsgauge.probing.contents import contents
from epsgauge.probing.finding import BY_CHANCE, LEVEL, SHARE, Finding
from epsgauge.probing.generators import held
from epsgauge.probing.recorder import Recorder
from epsgauge.probing.spent import accounted, accounting, found_eps
from zoo import network as bugs
from zoo import small

# Which findings must be refuted; what else is refuted may be a consequence.
FOUND_BY = {
    "no noise": "noise",
    "noise shared out wrongly": "noise",
    "noise without the clipping norm": "noise",
    "a layer without noise": "noise",
    "same noise in all models": "fresh noise",
    "same noise in all epochs": "fresh noise",
    "same noise in all steps": "fresh noise",
    "same noise in all rows": "independence",
    "no clipping": "sensitivity",
    "mean clipped": "sensitivity",
    "means of microbatches clipped": "sensitivity",
    "batch clipped": "clipping",
    "mean of the batch clipped": "clipping",
    "divided before clipping": "one record",
    "clipped to 1": "one record",
    "unclipped part": "sensitivity",
    "layers clipped": "one record",
    "biases unclipped": "sensitivity",
    "shuffled batches": "Poisson batches",
    "batches of fixed size": "Poisson batches",
    "drawn with replacement": "sensitivity",
    "balanced batches": "sampling rate",
    "classes weighted": "sampling rate",
    "records repeated": "sampling rate",
    "records augmented": "sampling rate",
    "steps from the data": "left out",
    "epochs counted as steps": "steps",
    "rate of one worker": "sampling rate",
    "twice the noise accounted": "noise",
    "standardised": "bypass",
    "scaled by the largest": "bypass",
    "batch statistics": "sensitivity",
    "best of ten": "bypass",
    "best step": "bypass",
    "rate tuned on the data": "bypass",
    "data saved": "bypass",
    "start fitted to the data": "bypass",
}


def probed(trainer, **more):
    return eg.probe(trainer, bugs.data(), **{"train_size": 500, **more})


@functools.cache
def found_in(bug):
    """Of a pipeline of the zoo as it is: several tests read the same probe, which is frozen."""
    return probed(bug())


def result_of(probe, name):
    return next(f for f in probe.findings if f.name == name)


FIRST = {by: name for name, by in reversed(FOUND_BY.items())}  # of the bugs that each finding refutes


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in FIRST.values() else pytest.mark.long) for name in bugs.BUGS]
)
def test_every_bug_is_refuted(name):
    found = found_in(bugs.BUGS[name])
    assert FOUND_BY[name] in [f.name for f in found.refuted], str(found)


@pytest.mark.parametrize(
    ("name", "adjacency"),
    [
        pytest.param(name, ("substitute", "add-remove")[i % 2], marks=() if i < 2 else pytest.mark.long)
        for i, name in enumerate(bugs.TWINS)
    ],
)
def test_no_twin_is_refuted(name, adjacency):
    found = probed(bugs.TWINS[name](), adjacency=adjacency, claimed_eps=9.0)
    assert not found.refuted, str(found)
    untested = {f.name for f in found.findings if f.result == "not tested"}
    assert untested == ({"Poisson batches"} if name == "all at once" else set())  # at rate 1 there is nothing to test
    assert found.found_eps is None
    assert "never verify" in found.sentence


@pytest.mark.long
def test_nothing_is_refuted_over_seeds():
    """Of the level one expects 0.0003 of these; `make zoo` has 20 seeds of every twin."""
    assert not [seed for seed in range(1, 4) if probed(bugs.Correct(), seed=seed).refuted]


def test_the_noise_is_bounded_closely_from_above():
    found = result_of(found_in(bugs.Correct), "noise")
    assert found.noise is None  # nothing else than what is accounted
    assert "at most 2.0" in found.sentence
    less = result_of(found_in(bugs.NoiseWithoutClip), "noise")
    assert 0.5 < less.noise < 0.52  # σ = 2, of clipping norm 4


def test_what_is_spent_with_what_was_found():
    """Half the noise is accounted for as all of it; the accountant would say what it says of the half."""
    found = found_in(bugs.Workers)
    half = accounted(bugs.Correct(noise_multiplier=1.0).privacy(500), 1e-5, "add-remove")
    assert found.accounted_eps == pytest.approx(1.48, abs=0.01)
    assert 0.95 * half < found.found_eps < half
    assert f"at least {found.found_eps:.3g}" in found.sentence
    assert found_in(bugs.NoNoise).found_eps == math.inf


def test_a_claim_that_does_not_follow_from_the_stated_numbers():
    wrong = probed(bugs.Correct(), claimed_eps=1.0)
    assert [f.name for f in wrong.refuted] == ["accounting"]
    assert "at least 1.48" in wrong.refuted[0].sentence
    promised = bugs.Correct().privacy(500)
    assert accounting(promised, 1e-5, "add-remove", 1.6).result == "consistent"
    assert accounting(promised, 1e-5, "substitute", 1.6).result == "refuted"  # right under add-remove alone


# What happens late, or over several steps


class LateNoNoise(bugs.Correct):
    """No noise in the last third."""

    def noise_of(self, rng, step, n, shapes, seed):
        late = step > 2 * self.steps(n) / 3
        return [z * (not late) for z in super().noise_of(rng, step, n, shapes, seed)]


class LateNoClip(bugs.Correct):
    """Clipped to five times the norm in the last third."""

    def sample(self, rng, y, n, step, seed):
        self.__dict__["late"] = step > 2 * self.steps(n) / 3
        return super().sample(rng, y, n, step, seed)

    def to(self, clip, norms):
        return super().to(clip * (5 if self.late else 1), norms)


@pytest.mark.parametrize(
    ("trainer", "finding"),
    [(LateNoNoise(), "fresh noise"), (LateNoClip(), "sensitivity")],
)
def test_what_happens_late_or_over_several_steps(trainer, finding):
    assert finding in [f.name for f in probed(trainer).refuted]


# Few parameters and large batches, without a switch for the noise

SMALL = {
    "nine: noise in step 1": "fresh noise",
    "nine: last epoch without noise": "fresh noise",
    "nine: one number for an array": "independence",
    "nine: bias without noise": "noise",
    "nine: empty batches skipped": "steps",
    "nine: a group drawn more often": "sampling rate",
}


@pytest.mark.parametrize("name", small.BUGS)
def test_noise_among_large_batches(name):
    """The record that is copied is projected out, so that what a batch of 400 contributes hides nothing."""
    found = eg.probe(small.BUGS[name](), small.data(), train_size=small.TRAIN_SIZE)
    assert SMALL[name] in [f.name for f in found.refuted], str(found)
    assert (result_of(found, SMALL[name]).noise or 0.0) < 1e-4


@pytest.mark.parametrize("name", small.TWINS)
def test_right_noise_among_large_batches(name):
    found = eg.probe(small.TWINS[name](), small.data(), train_size=small.TRAIN_SIZE)
    assert not found.refuted, str(found)


# A batch that is clipped as one


def test_a_clipped_batch_is_named():
    """One record outweighs all others; with no switch for the noise and with all records in each batch, too."""

    class NoSwitch:
        inner = bugs.ClipsTheBatch()
        privacy, losses, train = inner.privacy, inner.losses, inner.train

    assert not found_in(bugs.Projects).refuted
    for trainer in (bugs.ClipsTheBatch(), NoSwitch(), bugs.ClipsAllAtOnce()):
        found = probed(trainer)
        refuted = [f.name for f in found.refuted]
        assert refuted == (["clipping"] if trainer.__class__ is NoSwitch else ["sensitivity", "clipping"]), str(found)
        assert "The batch is clipped, not each record: one record of about" in found.refuted[-1].sentence
        assert 1 < found.refuted[-1].reach <= 2
        assert found.found_eps > found.accounted_eps
    assert not probed(bugs.ClipsAllAtOnce(), adjacency="substitute").refuted  # 2C are accounted there


class SwitchedMicrobatches(small.Microbatches):
    """The same with a switch for its noise."""

    def without_noise(self):
        return dataclasses.replace(self, sigma=0.0)


def test_records_that_are_clipped_in_groups():
    """Replacing one moves an update by 2C, as it may. Adding one may move it by C."""
    more = {"train_size": small.TRAIN_SIZE}
    found = eg.probe(small.Microbatches(), small.data(), **more)
    assert [f.name for f in found.refuted] == ["clipping"]
    assert "Groups of about 3.8 records are clipped" in found.refuted[0].sentence
    assert "Adding a record was not tested" in result_of(found, "sensitivity").sentence  # noise moves with the batch
    found = eg.probe(SwitchedMicrobatches(), small.data(), **more)
    assert [f.name for f in found.refuted] == ["sensitivity", "clipping"]
    assert 1.1 < found.refuted[0].reach < 2
    assert re.match(r"Adding one moved an update by 1\.\d+\. Clipped gradients allow 1\.", found.refuted[0].sentence)
    found = eg.probe(small.MicrobatchesOfOne(), small.data(), **more)
    assert not found.refuted, str(found)
    assert "Adding one moved an update by 1." in result_of(found_in(bugs.Correct), "sensitivity").sentence


def test_fixed_batches_of_clipped_records_are_no_clipped_batch():
    assert [f.name for f in found_in(bugs.FixedSize).refuted] == ["Poisson batches"]


# Batches without records


class SkipsEmpty(bugs.Correct):
    """A batch without records is no step."""

    def fit(self, data, seed, n, watch=None):
        rng, weights = np.random.default_rng(seed), self.start(*data)
        for step in range(self.steps(n)):
            rows = self.sample(rng, data[1], n, step, seed)
            noise = self.noise(rng, [w.shape for w in weights], seed)
            if len(rows):
                sums = self.clipped_sum(bugs.factors(weights, data[0][rows], data[1][rows]))
                update = [g + z for g, z in zip(sums, noise, strict=True)]
                update = watch(step, update, max_grad_norm=self.clip)
        return bugs.Model(weights, lambda x: x)


class FailsOnEmpty(bugs.Correct):
    """A batch without records is an error."""

    def sample(self, rng, y, n, step, seed):
        rows = super().sample(rng, y, n, step, seed)
        if not len(rows):
            raise ValueError("no records")
        return rows


class EmptyIsNan(bugs.Correct):
    """The mean over a batch without records."""

    def clipped_sum(self, layers):
        found = super().clipped_sum(layers)
        return found if len(layers[0][0]) else [g * np.nan for g in found]


def test_batches_without_records():
    """Where they can come, they must be steps like others."""
    skips = probed(SkipsEmpty(batch=5, epochs=2), adjacency="substitute")
    assert [f.name for f in skips.refuted] == ["empty batches", "steps"]  # as many as have records
    assert "5.3e-22" in result_of(probed(SkipsEmpty()), "empty batches").sentence  # never, in practice
    assert result_of(probed(FailsOnEmpty()), "empty batches").result == "not tested"
    assert "NaN" in result_of(probed(EmptyIsNan(batch=20, epochs=2)), "empty batches").sentence


class AdaptiveClipping(bugs.Correct):
    """The clipping norm follows a noisy share of gradients below it (Andrew et al. 2021)."""

    def fit(self, data, seed, n, watch=None):
        rng, noisy, clip = np.random.default_rng([seed, 7]), watch, self.clip

        def adapts(step, update, *, max_grad_norm, **_):
            used = noisy(step, [u * norms[-1] / max_grad_norm for u in update], max_grad_norm=norms[-1])
            below = len(data[1]) / 2 + 40 * rng.normal()
            norms.append(norms[-1] * math.exp(-0.2 * (below / n - 0.4)))
            return used

        norms = [clip]
        return super().fit(data, seed, n, None if watch is None else adapts)


def test_a_clipping_norm_that_adapts_is_not_a_record_that_is_left_out():
    probe = probed(AdaptiveClipping(), adjacency="add-remove")
    assert [f.name for f in probe.refuted] == []
    assert "The clipping norm changes" in result_of(probe, "left out").sentence


class StepsByRecords(bugs.Correct):
    """Takes `size`, and computes its steps from the records that are there."""

    def fit(self, data, seed, n, watch=None):
        self.__dict__["n"] = len(data[1])
        return super().fit(data, seed, n, watch)

    def steps(self, n):
        return super().steps(self.__dict__.get("n", n))


def test_fewer_steps_on_fewer_records_are_not_steps_that_are_left_out():
    """Nor is what happens less often than δ a violation."""
    found = result_of(probed(StepsByRecords(), adjacency="substitute"), "empty batches")
    assert (found.result, "comes from the number of records" in found.sentence) == ("not tested", True)
    rarely = SkipsEmpty(batch=20, epochs=2)
    assert result_of(probed(rarely), "empty batches").result == "consistent"
    assert result_of(probed(rarely, delta=1e-9), "empty batches").result == "refuted"


def test_a_number_of_steps_that_varies_with_the_seed():
    """Also where the trainer takes no size, so that it cannot be trained on few records."""

    class NoSize:
        inner = small.SkipsEmpty()
        privacy, losses = inner.privacy, inner.losses

        def train(self, data, *, seed, watch=None):
            return self.inner.train(data, seed=seed, size=small.TRAIN_SIZE, watch=watch)

    found = eg.probe(NoSize(), small.data(), train_size=small.TRAIN_SIZE)
    assert [f.name for f in found.refuted] == ["steps"]
    assert "made from 36 to" in found.refuted[0].sentence


def test_a_sampling_rate_from_the_number_of_records():
    more = {"train_size": small.TRAIN_SIZE}
    found = eg.probe(small.RateOfData(), small.data(), **more)
    assert [f.name for f in found.refuted] == ["left out"]
    assert "batches have about 402 of 1000 records, where 200 are expected" in found.refuted[0].sentence
    assert not eg.probe(small.RateOfData(), small.data(), adjacency="substitute", **more).refuted


def test_the_finding_says_which_part_of_a_model_holds_data():
    assert "model.examples" in result_of(found_in(bugs.SavesData), "bypass").sentence


def test_the_number_of_records_must_not_show_where_they_are_left_out():
    found = result_of(probed(bugs.SizeOfData(), adjacency="add-remove"), "left out")
    assert found.result == "refuted"
    assert "40 steps became 39" in found.sentence
    assert not probed(bugs.SizeOfData(), adjacency="substitute").refuted  # there it is the same in both


# No false alarms


class Dated(bugs.Correct):
    """A model with an id of its own, and with the watch that saw it."""

    def fit(self, data, seed, n, watch=None):
        model = super().fit(data, seed, n, watch)
        model.id, model.watch = str(uuid.uuid4()), watch
        return model


class Remembers(bugs.Correct):
    """The trainer keeps a list of its trainings, and gives it to the model."""

    def fit(self, data, seed, n, watch=None):
        model = super().fit(data, seed, n, watch)
        self.__dict__.setdefault("trained", []).append(seed)
        model.trained = list(self.trained)
        return model


class Half(bugs.Correct):
    """Updates in half precision."""

    def clipped_sum(self, layers):
        return [g.astype(np.float16) for g in super().clipped_sum(layers)]

    def noise(self, rng, shapes, seed):
        return [z.astype(np.float16) for z in super().noise(rng, shapes, seed)]


class QuietUnclipped(bugs.Correct):
    """Without noise it does not clip either: what the switch changes is not the noise alone."""

    def kept(self, norms):
        return super().kept(norms) if self.noise_multiplier else np.ones_like(norms)


class DrawnLate(bugs.Correct):
    """The start is drawn after numbers of which there is one for each record."""

    def fit(self, data, seed, n, watch=None):
        rng = np.random.default_rng(seed)
        rng.random(len(data[0]))
        first = bugs.Correct.start(self, *data)
        late = [w + 0.01 * rng.normal(size=w.shape) for w in first]
        return Started(**vars(self), late=late).fit(data, seed, n, watch)


@dataclasses.dataclass(frozen=True)
class Started(bugs.Correct):
    late: list | None = None

    def start(self, x, y):
        return [w.copy() for w in self.late]


class Thaws(bugs.Correct):
    """The last layer is frozen at first: it has neither gradients nor noise then."""

    def noise_of(self, rng, step, n, shapes, seed):
        found = super().noise_of(rng, step, n, shapes, seed)
        self.__dict__["frozen"] = step < 8
        return [*found[:2], *(z * (step >= 8) for z in found[2:])]

    def fit(self, data, seed, n, watch=None):
        thawing = None if watch is None else Thawing(self, watch)
        return super().fit(data, seed, n, thawing)


class Thawing:
    """Shows the update as it is applied."""

    def __init__(self, trainer, watch):
        self.trainer, self.watch = trainer, watch

    def __call__(self, step, update, **more):
        kept = [*update[:2], *(u * (not self.trainer.frozen) for u in update[2:])]
        return self.watch(step, kept, **more)


class SubsetOfRows(bugs.Correct):
    """Each step trains some of the numbers, which are drawn without a look at the data."""

    def fit(self, data, seed, n, watch=None):
        rng = np.random.default_rng([seed, 9])

        def seen(step, update, **more):
            return watch(step, [u * (rng.random(u.shape) < 0.5) for u in update], **more)

        return super().fit(data, seed, n, None if watch is None else seen)


class DrawsByContent(bugs.Correct):
    """How many numbers are drawn depends on the records: an augmentation of dark ones."""

    def in_batch(self, x):
        dark = x.mean(axis=1) < 0.3
        x = x.copy()
        x[dark] += 0.01 * np.random.normal(size=x[dark].shape)  # noqa: NPY002
        return x

    def noise(self, rng, shapes, seed):
        return [np.random.normal(0, self.noise_multiplier * self.clip, shape) for shape in shapes]  # noqa: NPY002


@pytest.mark.parametrize(
    "trainer", [Dated(), Remembers(), Half(), DrawnLate(), Thaws(), SubsetOfRows(), DrawsByContent()]
)
def test_a_correct_training_of_an_odd_kind_is_not_refuted(trainer):
    found = probed(trainer, adjacency="add-remove")
    assert not found.refuted, str(found)


def test_a_switch_that_changes_more_than_the_noise():
    """What else differs can only make bounds larger."""
    found = probed(QuietUnclipped())
    assert result_of(found, "independence").result == "consistent"
    assert [f.name for f in found.refuted] in ([], ["one record"])  # the control does not clip, and that shows


# What cannot be tested is said


def test_without_a_switch_for_the_noise_differences_of_steps_bound_it():
    class NoSwitch:
        inner = bugs.Correct()
        privacy, losses = inner.privacy, inner.losses

        def train(self, data, *, seed, size=None, watch=None):
            return self.inner.train(data, seed=seed, size=size, watch=watch)

    found = probed(NoSwitch())
    assert not found.refuted
    assert "no switch" in result_of(found, "noise").rests_on
    assert result_of(found, "independence").result == "consistent"

    class Less(NoSwitch):
        inner = bugs.NoiseWithoutClip()
        privacy, losses = inner.privacy, inner.losses

    assert "noise" in [f.name for f in probed(Less()).refuted]


def test_seeds_that_are_not_followed():
    class Unseeded(bugs.Correct):
        def train(self, data, *, seed, size=None, watch=None):
            return super().train(data, seed=int(np.random.default_rng().integers(2**31)), size=size, watch=watch)

    found = probed(Unseeded())
    assert not found.refuted
    assert "not seeded" in result_of(found, "sensitivity").sentence
    assert result_of(found, "noise").result == "consistent"


def test_bad_input_is_one_sentence():
    class Blind(bugs.Correct):
        def train(self, data, *, seed):
            return None

    class Silent(bugs.Correct):
        def fit(self, data, seed, n, watch=None):
            return super().fit(data, seed, n)

    class Raises(bugs.Correct):
        def sample(self, rng, y, n, step, seed):
            raise KeyError("x")

    class Promises(bugs.Correct):
        def privacy(self, n):
            return None

    for trainer, words, more in (
        (Blind(), "takes no watch", {}),
        (Silent(), "never called", {}),
        (Raises(), "the trainer failed with KeyError", {}),
        (Promises(), "privacy=eg.DPSGD", {}),
        (bugs.Correct(), "train_size must be from 2", {"train_size": 10**6}),
        (bugs.Correct(), "delta", {"delta": 2.0}),
        (bugs.Correct(), "adjacency", {"adjacency": "other"}),
    ):
        with pytest.raises(InvalidInput, match=words):
            probed(trainer, **more)


def test_what_is_accounted_can_be_given():
    class Promises(bugs.Correct):
        privacy = None

    given = probed(Promises(), privacy=bugs.Correct().privacy(500))
    assert not given.refuted


# The statistics, against slow twins


@pytest.mark.parametrize("count", [1, 10, 1000])
def test_the_bound_of_the_noise_is_that_of_chi_square(count):
    for chance in (1e-6, 1e-2, 0.3):
        assert noise.most(7.0, count, chance) == pytest.approx(math.sqrt(7 / stats.chi2.ppf(chance, count)), rel=1e-9)


def test_the_bound_holds_whatever_else_is_in_the_difference():
    """Noise plus anything that does not depend on it is further from 0: the bound fails even less often."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(20_000, 5))
    for shift in (0.0, 1.0):
        wrong = np.mean([noise.most(float(s), 5, 0.1) < 1 for s in ((z + shift) ** 2).sum(axis=1)])
        assert wrong < 0.1 + 4 * math.sqrt(0.09 / 20_000)


def test_what_is_left_without_the_copied_record_is_noise_alone():
    """Sums over steps are χ² with a degree less, of each step with one for each parameter, and without size as well."""
    rng = np.random.default_rng(0)
    sizes, record = np.array([3.0, 0.0, 5.0, 4.0]), 100 * rng.normal(size=20_000)
    updates = sizes[:, None] * record + rng.normal(size=(4, 20_000))
    rest, free = fresh.residuals(updates, sizes)
    assert free.sum(axis=0) == pytest.approx(3)
    assert stats.kstest((rest**2).sum(axis=0), "chi2", args=(3,)).pvalue > 1e-3
    for step in range(4):
        assert stats.kstest(rest[step] / np.sqrt(free[step]), "norm").pvalue > 1e-3
    apart = copies.without_copies(updates[0], 3.0, updates[2], 5.0)
    assert stats.kstest(apart, "norm").pvalue > 1e-3
    updates[2:, :10] = 0.0  # not trained in these steps
    rest, free = fresh.residuals(updates, sizes)
    assert not rest[2:, :10].any()
    assert free[:, :10].sum(axis=0) == pytest.approx(1)


def test_correlated_noise_has_less_in_a_sum_or_a_difference():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 4000))
    for of, least in (((x, y), 1.0), ((x, x), 0.0), ((x, -x), 0.0), ((x, 0.6 * x + 0.8 * y), math.sqrt(0.4))):
        assert fresh._least_of_two(*of, 1e-6) == pytest.approx(least, abs=0.1)
    wrong = np.mean([fresh._least_of_two(*rng.normal(size=(2, 12)), 0.1) < 1 for _ in range(5000)])
    assert wrong < 0.1


def test_the_rate_is_bounded_as_by_enumeration():
    """Clopper and Pearson: at the bound, so many hits or more have just this chance."""
    for hits, n in ((1, 5), (7, 60), (60, 60)):
        bound = sampling._least(hits, n, 0.01)
        assert sum(stats.binom.pmf(k, n, bound) for k in range(hits, n + 1)) == pytest.approx(0.01)
    assert sampling._least(0, 9, 0.01) == 0
    assert sampling._at_least(3, 9, 0.2) == pytest.approx(1 - stats.binom.cdf(2, 9, 0.2))
    assert sampling._at_least(0, 9, 0.2) == 1


def test_all_tests_share_one_level():
    assert len(BY_CHANCE) * SHARE == pytest.approx(LEVEL)
    by_chance = {f.name for f in found_in(bugs.Correct).findings if not f.exact}
    assert by_chance == set(BY_CHANCE) - {"adaptive norm"}  # its norm stays what it is


# What a model holds


def test_contents_of_a_model():
    torch = pytest.importorskip("torch")
    layer = torch.nn.BatchNorm1d(3)
    layer.note = [1, {"a": np.arange(3)}]
    mean = np.zeros(2)
    held = contents({"layer": layer, "scale": lambda x: x - mean})
    assert "model['layer'].running_mean" in held
    assert "model['layer'].note[1]['a']" in held
    assert "model['scale'] uses mean" in held
    layer.running_mean += 1
    other = contents({"layer": layer, "scale": lambda x: x - mean})
    assert [name for name in held if held[name] != other[name]] == ["model['layer'].running_mean"]


# Engines and libraries


@pytest.mark.parametrize("engine", ["stacked", pytest.param("opacus", marks=pytest.mark.long)])
def test_our_own_engines_are_what_they_say(engine):
    pytest.importorskip("opacus")
    from epsgauge.trainers.dpsgd import DpSgd

    found = probed(DpSgd(model="logistic", epochs=2, batch_size=50, noise_multiplier=1.5, engine=engine))
    assert not found.refuted, str(found)
    assert {f.result for f in found.findings} == {"consistent"}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("ghost", marks=pytest.mark.long),
        pytest.param("per layer", marks=pytest.mark.long),
        pytest.param("in pieces", marks=pytest.mark.long),
        pytest.param("seeded in the loop", marks=pytest.mark.long),
        "bias from labels",
    ],
)
def test_loops_of_opacus(name):
    pytest.importorskip("opacus")
    from zoo import opacus_loops

    every = {**opacus_loops.BUGS, **opacus_loops.TWINS}
    found = eg.probe(every[f"Opacus: {name}"](), opacus_loops.data(), train_size=300, adjacency="substitute")
    expected = {"seeded in the loop": ["fresh noise"], "bias from labels": ["sampling rate", "bypass"]}
    assert [f.name for f in found.refuted] == expected.get(name, []), str(found)


# On the command line, to keep and to show

PLAN = """
name = "probed"
n_models = 20

[data]
use = "probed_bugs:data"

[trainer]
use = "probed_bugs:{trainer}"

[game]
train_size = 300
reference_size = 50

[audit]
claimed_eps = 9.0
claimed_delta = 1e-5
claimed_adjacency = "substitute"
"""


def test_probe_of_a_plan(tmp_path):
    shutil.copy(bugs.__file__, tmp_path / "probed_bugs.py")
    file = tmp_path / "plan.toml"
    file.write_text(PLAN.format(trainer="NoNoise"))
    out = tmp_path / "probe.json"
    done = told("probe", file, "--out", out, "--json")
    assert done.returncode == 1, done.stderr
    said = json.loads(done.stdout)
    assert said["refuted"] is True
    assert said["found_eps"] == "inf"
    assert said["level"] == 1 - LEVEL
    assert {f["result"] for f in said["findings"]} == {"refuted", "consistent", "not tested"}
    again = eg.Probe.read(out)
    assert again.found_eps == math.inf
    assert again.refuted[0].sentence.startswith("The noise is 0; 2 is accounted.")
    assert "folder of --out must exist" in refused("probe", file, "--out", tmp_path / "none" / "p.json")
    file.write_text(PLAN.format(trainer="Correct"))
    done = told("probe", file)
    assert done.returncode == 0, done.stderr
    assert "Consistent" in done.stdout
    assert "accounting        consistent" in done.stdout


def test_a_report_shows_the_probe(tmp_path):
    audit, found = eg.audit(responses(1.0, 60), rule="split", delta=0.0), found_in(bugs.NoNoise)
    for kind, words in (("html", "what the accountant assumes?"), ("md", "## Probe"), ("json", '"probe"')):
        page = eg.report(audit, out=tmp_path / f"r.{kind}", probe=found).read_text(encoding="utf-8")
        assert words in page
        assert "The noise is 0; 2 is accounted." in page
    with pytest.raises(InvalidInput, match="goes with the report of an audit"):
        eg.report(eg.estimate(eg.Tally(tp=1, tn=1, fp=1, fn=1), delta=0.0), out=tmp_path / "c.html", probe=found)


def test_a_report_shows_no_probe_of_another_training(tmp_path):
    audit = eg.audit(played(small_plan(), tmp_path / "run"))
    with pytest.raises(InvalidInput, match="must be of the run's training"):
        eg.report(audit, out=tmp_path / "r.html", probe=found_in(bugs.Correct))


def test_a_probe_is_kept_and_read_again(tmp_path):
    found = found_in(bugs.Correct)
    assert eg.Probe.read(found.save(tmp_path / "p.json")) == found
    (tmp_path / "bad.json").write_text('{"privacy": 3}')
    for name, words in (("bad.json", "must be what"), ("none.json", "could not be read")):
        with pytest.raises(InvalidInput, match=words):
            eg.Probe.read(tmp_path / name)
    assert "sensitivity" in str(found)
    assert "<table" in found._repr_html_()
    assert repr(found).startswith("Probe(0 of 12 findings refuted")


def test_objects_that_fail_at_unknown_attributes_hold_no_generators():
    class Summary:
        def __getattr__(self, name):
            raise KeyError(name)

    summary, rng = Summary(), np.random.default_rng(0)
    assert [each for each in held() if each is rng or each is summary] == [rng]


@pytest.mark.parametrize(("name", "refuted"), [("Jax", []), ("SameKey", ["fresh noise", "independence"])])
def test_a_loop_in_jax(name, refuted):
    pytest.importorskip("jax")
    from zoo import jax_loop

    found = eg.probe(getattr(jax_loop, name)(), bugs.data(), train_size=300)
    assert [f.name for f in found.refuted] == refuted, str(found)
    assert not [f for f in found.findings if f.result == "not tested"]


def test_the_white_box_sees_a_loop_in_jax(tmp_path):
    """Its arrays cannot be written, so that the loop goes on with what `watch` returns."""
    pytest.importorskip("jax")
    plan = eg.Plan(
        name="jax",
        n_models=40,
        data="zoo.network:data",
        trainer={"use": "zoo.jax_loop:Jax", "noise_multiplier": 0.5},
        game={"train_size": 300, "control_models": 0},
        adversary={"preset": "white-box"},
        audit={"rule": "given", "threshold": 0.0},
    )
    scores = eg.audit(played(plan, tmp_path / "run")).judged
    assert scores.tally.tp + scores.tally.tn > 0.75 * scores.tally.n_samples


def test_an_update_may_be_a_dict_and_comes_back_as_one():
    """As JAX holds gradients: the arrays in the order of the keys."""
    parts = {"weight": np.ones((2, 2)), "bias": (np.full(3, 2.0), [np.full(1, 3.0)])}
    as_dict, as_list = (Recorder(walk=1.0, stop=None, keep=None) for _ in range(2))
    found = as_dict(0, parts, max_grad_norm=1.0)
    first, second, third = as_list(0, [np.full(3, 2.0), np.full(1, 3.0), np.ones((2, 2))], max_grad_norm=1.0)
    assert as_dict.digests == as_list.digests
    assert list(found) == ["weight", "bias"]
    np.testing.assert_array_equal(found["weight"], third)
    np.testing.assert_array_equal(found["bias"][0], first)
    np.testing.assert_array_equal(found["bias"][1][0], second)


@pytest.mark.parametrize("rate", [0.1, 0.9, 0.99])
def test_a_very_far_reach_is_a_large_eps(rate):
    """Also where e^ε overflows."""
    found = Finding("clipping", "refuted", "The batch is clipped.", reach=250.0)
    assert 700 < found_eps(eg.DPSGD(rate, 1.5, 16), [found], 1e-5, "add-remove") < 1500
