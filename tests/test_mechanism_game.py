"""Audits of any randomised mechanism: what is learned, what is judged, and that the bounds keep their level."""

import importlib
import itertools
import json
import math
import random
import re
import shlex
import sys
from dataclasses import replace

import numpy as np
import pytest
from command_line import ask, refused
from scipy import special, stats

import epsgauge as eg
from epsgauge.auditing.audit import audit
from epsgauge.auditing.replayed import sensitivity
from epsgauge.bounds.exact import exact_lower_bound
from epsgauge.bounds.foretold import foretold_lower_bound
from epsgauge.errors import InvalidInput
from epsgauge.mechanisms.curves import Curve
from epsgauge.methods.evidence import Evidence
from epsgauge.methods.table import BASELINE
from epsgauge.sampling.features import Atoms, digits
from epsgauge.sampling.game import MechanismGame
from epsgauge.sampling.learning import OnTheWay, Sample
from epsgauge.sampling.neighbours import pairs_of
from epsgauge.sampling.outputs import Outputs
from epsgauge.sampling.regions import REGIONS, Intervals
from epsgauge.sampling.trees import Trees, _binned, _edges, _gains
from epsgauge.scores.rules import Given, judge

NUMBERS = ("events", "linear", "trees", "hockey-stick", "mmd")
ANY = Curve.point(math.inf, 0.0)  # no claim, δ = 0
GRID = 2.0**-10


def response(data, rng, size):
    """ε = 1."""
    return np.where(rng.random(size) < special.expit(1.0), data, 1 - data)


def truncated_geometric(data, rng, size):
    """ε = 1, over 0, …, 5."""
    return np.clip(data + rng.geometric(1 - np.exp(-1.0), size) - rng.geometric(1 - np.exp(-1.0), size), 0, 5)


def laplace(data, rng, size):
    """ε = 1 in real numbers, and broken in floats."""
    return data + rng.laplace(0, 1, size)


def on_grid(data, rng, size):
    """ε = 1: a multiple of the grid is released."""
    return np.round(laplace(data, rng, size) / GRID) * GRID


def gaussian(data, rng, size):
    """μ = 1, on a grid."""
    return np.round((data + rng.normal(0, 1, size)) / GRID) * GRID


def noisy_max_value(data, rng, size):
    """Releases the noisy value, with the noise that its place alone needs."""
    noisy = np.round((np.asarray(data) + rng.laplace(0, 2, (size, len(data)))) / GRID) * GRID
    return noisy.max(axis=1)


def sparse_vector(data, rng):
    """Without noise on the answers, and without end (variant 5 of Lyu, Su and Li 2017)."""
    threshold = rng.laplace(0, 2)
    return [bool(answer >= threshold) for answer in data]


def between(data, rng, size):
    """In the middle if 1, at either end if 0: no single cut tells them apart."""
    middle = rng.uniform(-0.5, 0.5, size)
    return np.where(data == 1, middle, np.sign(rng.uniform(-1, 1, size)) * (0.6 + np.abs(middle)))


# Known mechanisms


def geometric_chances(data):
    """By a sum over both geometric draws."""
    p, out = 1 - math.exp(-1.0), np.zeros(6)
    for up, down in itertools.product(range(1, 60), repeat=2):
        out[min(max(data + up - down, 0), 5)] += p**2 * (1 - p) ** (up + down - 2)
    return out / out.sum()


def test_events_find_the_best_of_all_subsets():
    p0, p1 = geometric_chances(2), geometric_chances(3)
    subsets = [np.array(s, bool) for s in itertools.product([False, True], repeat=6)][1:]
    best = max(abs(math.log(p1[s].sum() / p0[s].sum())) for s in subsets)
    assert best == pytest.approx(1.0)
    played = MechanismGame(truncated_geometric, 2, 3, n_samples=40_000, regions=("events",)).play(ANY)
    said = dict.fromkeys(range(6), 0.0) | {
        int(k): float(s) for k, s in zip(*_scored(truncated_geometric, "events"), strict=True)
    }
    region = np.array([said[k] >= played.threshold for k in range(6)])
    shown = max(math.log(p1[region].sum() / p0[region].sum()), math.log(p0[~region].sum() / p1[~region].sum()))
    assert shown > best - 1e-9  # all outputs on one side of the data have this ratio


def _scored(mechanism, region):
    """What the first part of that game learns about each output."""
    game = MechanismGame(mechanism, 2, 3, n_samples=40_000)
    apart = game.draw(10_000, part=(1,))
    log_odds = REGIONS[region].learn(apart.outputs, apart.bits, np.random.default_rng(0), 0.0)
    return np.arange(6), log_odds(Outputs.of(np.arange(6)))


@pytest.mark.long
def test_judged_samples_know_nothing_of_what_was_learned():
    """Where nothing leaks, whatever was learned guesses fresh samples right half of the time."""

    def noise(data, rng, size):
        return rng.normal(size=(size, 3))

    z = []
    for seed in range(60):
        played = MechanismGame(noise, 0, 1, n_samples=400, seed=seed, regions=("trees",)).play(ANY)
        t = judge(played.scores, Given(played.threshold), delta=0.0).tally
        share = (t.tp + t.fp) / t.n_samples
        spread = share * (1 - share) * (1 / t.n_positive + 1 / t.n_negative)
        z += [(t.tp / t.n_positive - t.fp / t.n_negative) / math.sqrt(spread)] if 0 < share < 1 else []
    assert len(z) > 40
    assert abs(np.mean(z)) < 3.5 / math.sqrt(len(z))
    assert np.mean(np.square(z)) < 1 + 3.5 * math.sqrt(2 / len(z))


def test_a_bound_is_above_eps_no_more_often_than_its_level_says():
    n, low = 30, []
    for seed in range(n):
        played = MechanismGame(response, 0, 1, n_samples=800, seed=seed, regions=("events", "linear")).play(ANY)
        tally = judge(played.scores, Given(played.threshold), delta=0.0).tally
        low.append(exact_lower_bound(tally, delta=0.0, level=0.60, direction="right"))
    assert np.sum(np.array(low) > 1.0) <= stats.binom.ppf(0.999, n, 0.40)
    assert np.median(low) > 0.7  # and it shows something


def bound(game):
    """By Clopper-Pearson, at 99 %."""
    played = game.play(ANY)
    evidence = Evidence(judge(played.scores, Given(played.threshold), delta=0.0))
    return BASELINE.lower_bound(evidence, delta=0.0, level=0.99)


@pytest.mark.parametrize(
    ("mechanism", "d0", "d1", "least"),
    [
        (response, 0, 1, 0.9),
        (truncated_geometric, 2, 3, 0.9),
        (on_grid, 0, 1, 0.9),
        (noisy_max_value, [1.0] * 5, [2.0] * 5, 1.5),
        (sparse_vector, [0.0, 1.0] * 3, [1.0, 0.0] * 3, 4.0),
        (between, 0, 1, 6.0),
    ],
)
def test_what_leaks_is_shown(mechanism, d0, d1, least):
    assert bound(MechanismGame(mechanism, d0, d1, n_samples=30_000, regions=NUMBERS)) > least


@pytest.mark.parametrize("region", ["hockey-stick", "mmd"])
def test_regions_of_divergences_refute_by_themselves(region):
    """No single cut tells `between` apart."""
    found = eg.audit(MechanismGame(between, 0, 1, n_samples=2000, regions=(region,)), claimed_eps=1.0)
    assert (found.verdict.kind, found.sampled.region) == ("violation", region)


def test_a_hockey_stick_is_learned_for_the_claim():
    """Half of the outputs have odds of e^0.4, a fiftieth has e^4, and the claim is ε = 1: only the latter breaks it."""

    def rare(data, rng, size):
        kind = rng.random(size)
        often = rng.random(size) < special.expit(0.4 * (2 * data - 1))
        seldom = 2 + (rng.random(size) < special.expit(4.0 * (2 * data - 1)))
        return np.where(kind < 0.02, seldom, often) + rng.uniform(0, 0.5, size)

    sample = MechanismGame(rare, 0, 1).draw(20_000, part=(1,))
    log_odds = REGIONS["hockey-stick"].learn(sample.outputs, sample.bits, np.random.default_rng(0), 1.0)
    low, high, seldom, most = (log_odds(Outputs.of(np.full(1, x)))[0] for x in (0.2, 1.2, 2.2, 3.2))
    assert seldom < -1.0 < low < 0 < high < 1.0 < most
    found = eg.audit(MechanismGame(rare, 0, 1, n_samples=20_000, regions=("hockey-stick",)), claimed_eps=1.0)
    assert found.verdict.kind == "violation"


def test_an_audit_of_a_game():
    game = MechanismGame(truncated_geometric, 2, 3, n_samples=20_000)
    held, broken = eg.audit(game, claimed_eps=1.0), eg.audit(game, claimed_eps=0.8)
    assert held.verdict.kind == "no objection"
    assert 0.8 < held.verdict.bound.value <= 1.0
    assert (broken.verdict.kind, broken.verdict.promise) == ("violation", "guaranteed")
    assert broken.source == "mechanism"
    assert "the mechanism spends more" in broken.decision.meaning
    assert broken.decision.steps[0].text.startswith("Find out what the region sees")
    assert "10000 samples judged" in str(broken)
    assert not any("are equal" in text for text in broken.warnings)  # outputs that come again are as they should be


def test_a_claim_with_delta():
    """δ(ε = 1) of the Gaussian mechanism with μ = 1 is 0.127."""
    game = MechanismGame(gaussian, 0, 1, n_samples=20_000, regions=("linear",))
    assert eg.audit(game, claimed_eps=1.0, claimed_delta=0.08).verdict.kind == "violation"
    held = eg.audit(game, claimed_eps=1.0, claimed_delta=0.13)
    assert held.verdict.kind == "no objection"
    assert (held.settings.delta, held.verdict.delta) == (0.13, 0.13)
    assert not any("training set" in text for text in held.warnings)  # there is none


def test_a_claim_of_a_whole_curve():
    game = MechanismGame(gaussian, 0, 1, n_samples=8000, regions=("linear",))
    held, broken = (eg.audit(game, claimed_mu=mu) for mu in (1.0, 0.8))
    assert (held.verdict.kind, broken.verdict.kind) == ("no objection", "violation")
    assert 0.8 < broken.verdict.conditional_bound.mu <= 1.0
    assert broken.verdict.promise == "guaranteed"


def test_without_a_claim_there_is_a_bound():
    found = eg.audit(MechanismGame(response, 0, 1, n_samples=2000, regions=("events",)))
    assert (found.verdict.kind, found.settings.delta) == ("no claim", 0.0)
    assert found.verdict.bound.value > 0.5


def test_samples_are_called_samples_wherever_they_are_shown(tmp_path):
    game = MechanismGame(response, 0, 1, n_samples=400, regions=("events",))
    for claim in ({"claimed_eps": 1.0}, {"claimed_mu": 0.5}):
        found = eg.audit(game, **claim)
        said = [text for row in found.rows for text in row.assumptions] + [
            *found.verdict.decided_by.assumptions,
            *found.warnings,
        ]
        texts = {"said": " | ".join([*said, found.verdict.sentence]), "terminal": str(found)}
        for kind in ("md", "html"):
            file = eg.report(found, out=tmp_path / f"{found.verdict.kind}.{kind}")
            texts[kind] = re.sub(
                r"(?s)<style.*?</style>|<script.*?</script>|<[^>]*>", " ", file.read_text(encoding="utf-8")
            )
        for where, text in texts.items():
            assert not re.search(r"\b[Mm]odels?\b|training|judged pairs", text), where
            assert "samples" in text
    assert "each sample is drawn independently of the others" in texts["md"]


# Floats


def test_the_last_digits_of_floats_give_laplace_away():
    found = eg.audit(MechanismGame(laplace, 0.0, 1.0, n_samples=20_000), claimed_eps=1.0)
    assert found.verdict.kind == "violation"
    assert found.verdict.bound.value > 4
    assert found.sampled.region == "digits"
    assert "how floats are stored" in found.verdict.sentence
    assert "Round outputs to a grid" in found.decision.steps[0].text
    assert 0.8 < bound(MechanismGame(laplace, 0.0, 1.0, n_samples=20_000, regions=NUMBERS)) < 1.0
    assert (
        0.8
        < np.median([bound(MechanismGame(on_grid, 0.0, 1.0, n_samples=20_000, seed=seed)) for seed in range(3)])
        < 1.0
    )


def small_noise(data, rng, size):
    return data + rng.laplace(0, 0.4, size)


def test_too_little_noise_is_told_beside_the_last_digits():
    """Rounding would mend the one leak and not the other, which is judged and comes first."""
    found = eg.audit(MechanismGame(small_noise, 0, 1, n_samples=20_000), claimed_eps=1.0)
    assert found.verdict.kind == "violation"
    assert found.sampled.region != "digits" == found.sampled.also
    assert 1 < found.verdict.bound.value < 2.5  # the true one is 2.5; by the last digits it was above 6
    first, second = (step.text for step in found.decision.steps)
    assert first == f"Fix the mechanism: it leaks by region {found.sampled.region}, even if its outputs are rounded."
    assert second.startswith("Round outputs to a grid")
    assert any(text.startswith("The claim is broken in two ways") for text in found.warnings)


def test_of_a_game_until_a_violation_the_leak_that_rounding_leaves_is_named():
    found = eg.audit(MechanismGame(small_noise, 0, 1, n_samples=20_000, until="violation"), claimed_eps=1.0)
    assert found.verdict.kind == "violation"
    assert found.sampled.region != "digits"
    assert not any("Round outputs" in step.text for step in found.decision.steps[:1])


def test_digits_are_those_of_the_stored_float():
    values = np.array([1.0, 1.5, 0.1, -3.0, 2.0**-1030, 2.0**-53 + 1e-17, 0.0, np.inf, np.nan, 12345.678])
    seen = digits(values[:, None])
    for value, (place, trailing, own, last, sign) in zip(values, seen, strict=True):
        assert math.isnan(value) or bool(sign) is (math.copysign(1, value) < 0)
        if not math.isfinite(value) or value == 0:
            assert np.isnan([place, trailing, own, last]).all()
        elif abs(value) > 1e-300:
            fraction, exponent = math.frexp(abs(value))
            whole = int(fraction * 2**53)
            zeros = (whole & -whole).bit_length() - 1
            assert (own, trailing, place) == (exponent - 1, zeros, exponent - 53 + zeros)
            assert last == whole % 256


# What is learned


def test_one_cut_of_a_tree_gains_what_all_cuts_say():
    rng = np.random.default_rng(3)
    column, bits = rng.integers(0, 6, 80).astype(float), rng.integers(0, 2, 80)
    binned = _binned(column[:, None], [_edges(column)])
    slope = bits - 0.5
    found = _gains(np.zeros(80, np.int64), 1, binned[:, 0], slope, np.full(80, 0.25))[0]
    for cut in range(5):
        parts = [slope[column <= cut], slope[column > cut]]
        gain = sum(p.sum() ** 2 / (0.25 * len(p) + 1) for p in parts) - slope.sum() ** 2 / (0.25 * 80 + 1)
        assert found[cut + 1] == pytest.approx(gain if min(map(len, parts)) >= 4 else 0.0)


def test_trees_learn_log_odds_of_two_numbers_together():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (8000, 2))
    truth = 2.0 * np.sign(x[:, 0]) + np.sign(x[:, 1] - 0.5)
    bits = (rng.random(8000) < special.expit(truth)).astype(int)
    found = Trees.fit(x, bits).log_odds(x)
    assert np.mean(np.abs(found - truth)) < 0.25
    missing = Trees.fit(np.where(x > 0, x, np.nan), bits).log_odds(np.array([[np.nan, 0.9], [0.5, 0.9]]))
    assert missing[0] < 0 < missing[1]


def test_intervals_and_atoms_count():
    column, bits = np.repeat([0.0, 1.0, 2.0, 3.0], 25), np.tile([1, 1, 1, 1, 0], 20)
    log_odds = Intervals.of(column, bits).values(np.array([0.0, 1.0, 2.0, 3.0, np.nan]))
    assert log_odds == pytest.approx([math.log(20.5 / 5.5)] * 4 + [0.0])
    keys = Outputs.of([["a"], ["a"], ["b"], ["a"], ["a"], ["b"]]).keys
    atoms = Atoms.of(keys, np.array([1, 1, 0, 1, 0, 1]))
    assert atoms.values(keys)[:, 0] == pytest.approx([math.log(3.5 / 1.5)] * 2 + [0] + [math.log(3.5 / 1.5)] * 2 + [0])


def test_what_halves_say_of_each_other_does_not_know_its_own_bits():
    keys = np.arange(400, dtype=np.uint64).repeat(4)[:, None]
    bits = np.random.default_rng(0).integers(0, 2, 1600)
    assert np.abs(Atoms.across(keys, bits)).max() == 0  # each half has each key twice, which is too rarely
    column = np.random.default_rng(1).normal(size=1600)
    changed = np.where(np.arange(1600) == 7, 1 - bits, bits)
    assert Intervals.across(column, bits)[7] == Intervals.across(column, changed)[7]


# On the way


def test_a_sample_is_scored_before_it_is_learned_from():
    short, long = (MechanismGame(on_grid, 0, 1, n_samples=n, until="violation") for n in (400, 700))
    first, last = ([played.scores for played in game.watch(ANY)][-1] for game in (short, long))
    full = len(first) - 40  # the last batch of the short game may be cut
    assert np.array_equal(first.score[:full], last.score[:full])
    assert np.array_equal(first.bit[:full], last.bit[:full])
    sample = MechanismGame(on_grid, 0, 1).draw(200, part=(9,))
    turned = Sample(sample.outputs, 1 - sample.bits)
    one, other = (OnTheWay(sample[:64], ("events", "trees"), 0) for _ in range(2))
    assert np.array_equal(one.foretell(sample[64:100]), other.foretell(turned[64:100]))
    assert not np.array_equal(one.foretell(sample[100:]), other.foretell(sample[100:]))


def test_however_often_one_looks_a_true_claim_is_rarely_refuted():
    """At 80 %: of games at exactly ε = 1 at most a fifth may ever refute it."""
    n, above = 40, 0
    for seed in range(n):
        game = MechanismGame(response, 0, 1, n_samples=700, seed=seed, until="violation", regions=("events",))
        played = list(game.watch(ANY))[-1]
        above += foretold_lower_bound(replace(played.foretold, claimed=0.999), delta=0.0, level=0.80) > 0.999
    assert above <= stats.binom.ppf(0.999, n, 0.20)


def test_a_broken_mechanism_is_refuted_within_some_hundred_samples():
    for mechanism, d0, d1 in ((sparse_vector, [0.0, 1.0] * 3, [1.0, 0.0] * 3), (between, 0, 1)):
        found = eg.audit(MechanismGame(mechanism, d0, d1, n_samples=50_000, until="violation"), claimed_eps=1.0)
        assert found.verdict.kind == "violation"
        assert found.verdict.promise == "guaranteed"
        assert found.verdict.method == "anytime"
        assert found.sampled.drawn <= 600


def test_a_budget_that_is_spent_is_not_a_violation():
    game = MechanismGame(response, 0, 1, n_samples=600, until="violation", regions=("events",))
    found = eg.audit(game, claimed_eps=1.0)
    assert found.sampled.drawn == 600
    assert found.verdict.kind != "violation"


# Pairs


def test_families_have_neighbours():
    for d0, d1 in pairs_of("answers:5"):
        assert np.abs(d0 - d1).max() == 1
    for d0, d1 in pairs_of("records:4"):
        assert np.count_nonzero(d0 != d1) == 1
        assert {*d0, *d1} <= {0, 0.5, 1}
    assert len(pairs_of("answers:1")) == 8


def test_the_pair_that_shows_most_is_found_on_samples_of_its_own():
    """Only the last record has too little noise."""

    def uneven(data, rng, size):
        return np.round((np.asarray(data) + rng.laplace(0, [1.0, 0.2], (size, 2))) / GRID) * GRID

    pairs = [([0, 0], [1, 0]), ([0, 0], [0, 1])]
    found = eg.audit(MechanismGame(uneven, pairs=pairs, n_samples=8000, regions=("linear",)), claimed_eps=1.0)
    assert found.verdict.kind == "violation"
    assert "d1 = [0, 1], the best of 2 pairs" in found.sampled.pair
    assert found.sampled.drawn == 8000 + 4 * 1000


# Calls and outputs


def test_outputs_of_any_kind():
    mixed = Outputs.of([1, None, "a", [1.0, 2.0], {"x": True}, (np.float32(0.5), [None]), np.array([[1, 2]])])
    assert mixed.width == 2
    assert mixed.whole[0] != mixed.whole[1]
    assert len(np.unique(mixed.whole)) == 6  # [1.0, 2.0] is what the array is too
    assert np.isnan(mixed.numbers[1]).all()
    assert Outputs.of(["a", "b", "a"]).whole[0] == Outputs.of(["a"]).whole[0]
    assert Outputs.of([0.0]).whole != Outputs.of([-0.0]).whole
    assert Outputs.of([float("nan"), 1.0]).whole[0] == Outputs.of([[float("nan")]]).whole[0]
    assert Outputs.of([True, False]).numbers.ravel().tolist() == [1.0, 0.0]
    assert len(Outputs.of([[], [1]])) == 2


def test_texts_and_lists_of_any_length_are_judged():
    def lengths(data, rng):
        return ["x"] * int(rng.integers(1, 4)) if data else "none"

    found = eg.audit(MechanismGame(lengths, 0, 1, n_samples=1200), claimed_eps=1.0)
    assert found.verdict.kind == "violation"


def test_the_same_seed_gives_the_same_game():
    def by_numpy(data):
        return data + np.random.laplace() + random.random()  # noqa: NPY002

    for mechanism in (by_numpy, sparse_vector, laplace):
        data = ([0.0], [1.0]) if mechanism is sparse_vector else (0.0, 1.0)
        one, two, other = (
            MechanismGame(mechanism, *data, n_samples=400, seed=seed).draw(50, part=(1,)) for seed in (0, 0, 1)
        )
        assert np.array_equal(one.outputs.numbers, two.outputs.numbers)
        assert not np.array_equal(one.outputs.numbers, other.outputs.numbers)


def test_global_generators_are_left_as_they_were():
    random.seed(5)
    np.random.seed(5)  # noqa: NPY002
    before = random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002
    MechanismGame(lambda data: data + random.random(), 0, 1, n_samples=400).draw(20, part=(1,))
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before  # noqa: NPY002


def test_a_vectorised_mechanism_gets_each_output_to_its_bit():
    sample = MechanismGame(lambda data, size: np.full(size, data), 3, 4).draw(100, part=(1,))
    assert np.array_equal(sample.outputs.numbers[:, 0], 3 + sample.bits)


def test_an_error_is_an_output():
    def fails(data, rng):
        if data and rng.random() < 0.5:
            raise ValueError("too much")
        return 0

    found = eg.audit(MechanismGame(fails, 0, 1, n_samples=2000, seed=1), claimed_eps=1.0)
    assert found.verdict.kind == "violation"
    assert any("raised an error instead of returning" in text for text in found.warnings)


@pytest.mark.parametrize(
    ("args", "given", "said"),
    [
        ((3, 0, 1), {}, "a mechanism must be a function"),
        ((response, 0), {}, "a game needs two neighbouring data sets"),
        ((response, 0, 1), {"pairs": "answers:3"}, "Leave out one of both"),
        ((response,), {"pairs": "answers:0"}, 'pairs must be "answers:N"'),
        ((response,), {"pairs": []}, "pairs must be a list of pairs"),
        ((response, 0, 1), {"n_samples": 10}, "n_samples must be"),
        ((response, 0, 1), {"seed": -1}, "seed must be"),
        ((response, 0, 1), {"until": "never"}, 'until must be "violation"'),
        ((response, 0, 1), {"regions": ("tree",)}, 'Did you mean "trees"'),
        ((response, 0, 1), {"regions": ()}, "but got none"),
        ((response, 0, 1), {"adjacency": "near"}, "adjacency must be"),
        ((response, 0, 1), {"norm": 3}, "norm must be 1 or 2"),
        ((response, 0, 1), {"sensitivity": -1.0}, "sensitivity must be"),
        ((lambda data: data, 0, 1), {"sensitivity": 1.0}, "needs a mechanism that takes rng"),
        ((lambda data: 1 / data, 0, 1), {}, "the mechanism on d0 failed with ZeroDivisionError"),
        ((lambda data, size: data, 0, 1), {}, None),
    ],
)
def test_bad_games_are_refused_in_one_sentence(args, given, said):
    with pytest.raises(InvalidInput, match=said or "must return as many outputs, but got one value"):
        MechanismGame(*args, **given).play(ANY)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"rule": "split"}, "a game learns its region itself"),
        ({"attack": "loss"}, "goes with a run"),
        ({"seed": 1}, "a game has a seed of its own"),
        ({"claimed_eps": -1.0}, "claimed_eps"),
    ],
)
def test_settings_that_a_game_has_none_of(settings, said):
    with pytest.raises(InvalidInput, match=said):
        audit(MechanismGame(response, 0, 1, n_samples=400, regions=("events",)), **settings)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "needs a claim of ε to refute"),
        ({"claimed_mu": 1.0}, 'Use claimed_curve="gaussian:1"'),
        ({"claimed_eps": 1.0, "verdict_method": "exact"}, "Leave out verdict_method"),
        ({"claimed_curve": "laplace:1", "verdict_method": "exact"}, "Leave out verdict_method"),
    ],
)
def test_until_needs_a_claim_of_eps_and_brings_its_bound(settings, said):
    with pytest.raises(InvalidInput, match=said):
        audit(MechanismGame(response, 0, 1, n_samples=400, until="violation"), **settings)


# Frozen noise


def vector(data, rng):
    return np.asarray(data, float) + rng.laplace(0, 1, 3)


def far_from_zero(data, rng, size):
    """Seconds since 1970: floats there are 1e-7 apart."""
    return 1e9 + data + np.round(rng.laplace(0, 2, size))


def in_32_bits(data, rng, size):
    return np.float32(1e4) + np.float32(data) + np.round(rng.laplace(0, 2, size)).astype(np.float32)


@pytest.mark.parametrize(
    ("mechanism", "d0", "d1", "norm", "stated", "result"),
    [
        (laplace, 0.0, 1.0, 1, 1.0, "consistent"),
        (laplace, 0.0, 1.001, 1, 1.0, "refuted"),
        (on_grid, 0.0, 1.0, 1, 1.0, "consistent"),
        (far_from_zero, 0.0, 0.7, 1, 0.7, "consistent"),
        (far_from_zero, 0.0, 0.71, 1, 0.7, "refuted"),
        (in_32_bits, 0.0, 0.7, 1, 0.7, "consistent"),
        (vector, [0, 0, 0], [1, 1, 0], 2, 1.5, "consistent"),
        (vector, [0, 0, 0], [1, 1, 0], 1, 1.5, "refuted"),
        (lambda data, rng: data * rng.laplace(), 1.0, 2.0, 1, 1.0, "not tested"),
        (sparse_vector, [0.0], [1.0, 2.0], 1, 1.0, "not tested"),
    ],
)
def test_the_same_noise_shows_how_far_data_sets_are_apart(mechanism, d0, d1, norm, stated, result):
    found = sensitivity(MechanismGame(mechanism, d0, d1, sensitivity=stated, norm=norm))
    assert found.result == result


def test_what_is_refuted_is_shown_with_the_digits_that_refute_it():
    found = sensitivity(MechanismGame(laplace, 0.0, 0.7000001, sensitivity=0.7))
    assert (found.result, "are 0.7000001 apart in norm 1, where 0.7 is stated" in found.sentence) == ("refuted", True)


def test_a_sensitivity_that_is_refuted_leaves_the_claim_without_support():
    """The noise is that of sensitivity 1, and one record moves the sum by 1.1: too little to be seen in few samples."""
    game = MechanismGame(on_grid, 0.0, 1.1, n_samples=1000, regions=("linear",), sensitivity=1.0)
    found = eg.audit(game, claimed_eps=1.0)
    assert found.verdict.kind == "unsupported"
    assert "the mechanism is not what the stated claim" in found.verdict.sentence
    assert "are 1.1 apart in norm 1, where 1 is stated" in found.verdict.sentence
    assert "a different mechanism" in found.decision.meaning


# The command


MINE = """
import numpy as np
d0, d1 = [0.0, 0.0], [0.0, 1.0]
pairs = [(d0, d1)]
def noisy(data, rng, size):
    return np.round((sum(data) + rng.laplace(0, 0.25, size)) * 1024) / 1024
"""


@pytest.fixture
def beside(tmp_path, monkeypatch):
    (tmp_path / "own_noise.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", list(sys.path))
    monkeypatch.delitem(sys.modules, "own_noise", raising=False)
    return tmp_path


def test_the_command_judges_a_function(beside):
    few = ("--samples", 4000, "--regions", "events,linear")
    both = ("--d0", "[0, 0]", "--d1", "[0, 1]")
    found = json.loads(ask("mechanism", "own_noise:noisy", *both, "--eps", 1, *few, "--json"))
    assert found["source"] == "mechanism"
    assert found["verdict"]["kind"] == "violation"
    assert found["sampled"]["drawn"] == 4000
    assert found["sampled"]["command"].startswith("epsgauge mechanism own_noise:noisy --d0 '[0, 0]'")
    same = json.loads(ask(*_words(found["sampled"]["command"]), "--json"))
    assert same["verdict"]["bound"] == found["verdict"]["bound"]
    again = ("mechanism", "own_noise:noisy", "--d0", "own_noise:d0", "--d1", "own_noise:d1", "--eps", 1)
    out = ask(*again, "--until", "violation", "--fail-on", "violation", "--report", "out.html", code=1)
    assert "Violation" in out
    assert "samples" in (beside / "out.html").read_text(encoding="utf-8")
    out = ask("mechanism", "own_noise:noisy", "--pairs", "own_noise:pairs", "--eps", 5, *few)
    assert re.search(r"^next +[A-Z]", out, re.MULTILINE)  # one step has no number
    assert "No objection found" in out
    assert "seed 0: bits and noise are seeded" in " ".join(out.split())


def _words(command):
    return shlex.split(command)[1:]


OWN_GAMES = """
import functools
import numpy as np
def keep(data, rng, size):
    return np.where(rng.random(size) < 0.75, np.sum(data), 1 - np.sum(data))
class Kept:
    def __call__(self, data, rng, size):
        return keep(data, rng, size)
kept = Kept()
nameless, part = lambda data, rng, size: keep(data, rng, size), functools.partial(keep)
zeros, ones = np.zeros(1), np.ones(1)
curve = [(0.1, 0.5), (0.5, 0.2)]
def curve_of(eps):
    return max(0.0, 0.5 - eps)
"""
EXACT = math.log(3) / 2  # keep has ε = log 3


@pytest.mark.parametrize(
    ("function", "of_game", "settings"),
    [
        ("keep", {}, {"claimed_eps": EXACT, "claimed_adjacency": "add-remove"}),
        ("keep", {"adjacency": "add-remove", "seed": 3}, {"claimed_eps": 0.9, "verdict_level": 0.6}),
        ("keep", {"d0": -1, "d1": 1.5}, {"claimed_eps": 1, "claimed_delta": 1 - 1e-12, "level": 0.8}),
        ("keep", {"d0": [0.0, 0]}, {"delta": 0.1, "verdict_method": "clopper-pearson"}),
        ("keep", {"sensitivity": 1 / 3, "norm": 2}, {"claimed_mu": 0.7, "delta": 1e-3, "claimed_eps": None}),
        ("keep", {"until": "violation"}, {"claimed_curve": "gaussian:0.5"}),
        ("keep", {"d0": "zeros", "d1": "ones"}, {"claimed_curve": "curve"}),
        ("kept", {"name": "own_games:kept"}, {"claimed_curve": "curve_of"}),
        ("keep", {"pairs": "records:1", "d0": None, "d1": None}, {"claimed_eps": np.float64(0.1)}),
    ],
)
def test_the_command_plays_the_same_game_again(own_games, function, of_game, settings):
    game, settings = own_games(function, of_game), _looked_up(settings)
    found = eg.audit(game, **settings)
    again = json.loads(ask(*_words(found.sampled.command), "--json"))
    first = found.to_json()
    for key in ("kind", "bound", "level", "delta", "method"):
        assert again["verdict"][key] == first["verdict"][key]
    claims = [{k: v for k, v in (one["claim"] or {}).items() if k not in ("curve", "note")} for one in (again, first)]
    assert claims[0] == claims[1]
    assert again["sampled"]["command"] == found.sampled.command


@pytest.mark.parametrize(
    ("function", "of_game", "settings", "said"),
    [
        ("nameless", {}, {"claimed_eps": 0.1 + 0.2}, "MechanismGame(mechanism, d0=0, d1=1, n_samples=300"),
        ("part", {}, {"claimed_curve": lambda eps: max(0.0, 0.3 - eps)}, "claimed_curve=claimed_curve)"),
        ("keep", {"d0": (0,), "d1": np.ones(1)}, {"claimed_eps": 1.0}, "MechanismGame(keep, d0=(0,), d1=d1,"),
        ("keep", {}, {"claimed_eps": 1, "claimed_delta": 0.05, "delta": 0.0}, "claimed_delta=0.05, delta=0.0)"),
        ("keep", {}, {"claimed_curve": [(0.5, 0.1)]}, "claimed_curve=[(0.5, 0.1)])"),
    ],
)
def test_python_plays_the_same_game_again_where_words_cannot(own_games, function, of_game, settings, said):
    game = own_games(function, of_game)
    found = eg.audit(game, **settings)
    code = found.sampled.command
    assert said in code
    own = {"eg": eg, "mechanism": game.mechanism, "keep": game.mechanism, "d1": game.d1} | settings
    again = eval(code, own)
    assert (again.verdict.kind, again.verdict.bound.value) == (found.verdict.kind, found.verdict.bound.value)
    assert (again.verdict.claim, again.verdict.level) == (found.verdict.claim, found.verdict.level)


@pytest.fixture
def own_games(tmp_path, monkeypatch):
    """Games of functions and data in a module beside the command."""
    (tmp_path / "own_games.py").write_text(OWN_GAMES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)

    def game(function, given):
        values = {"d0": 0, "d1": 1, "n_samples": 300, "regions": ("events",)} | _looked_up(given)
        return MechanismGame(getattr(importlib.import_module("own_games"), function), **values)

    yield game
    sys.modules.pop("own_games", None)


def _looked_up(given):
    """With what the module has in place of its names."""
    held = vars(importlib.import_module("own_games"))
    return {name: held.get(value, value) if isinstance(value, str) else value for name, value in given.items()}


def test_the_command_refuses_what_it_cannot_use(beside):
    both = ("--d0", "0", "--d1", "1")
    assert 'must be named as "module:attr"' in refused("mechanism", "noisy", *both)
    assert "there is no module" in refused("mechanism", "no_such_thing:f", *both)
    assert "--d0 must be JSON" in refused("mechanism", "own_noise:noisy", "--d0", "[0", "--d1", "1")
    assert "a game needs two" in refused("mechanism", "own_noise:noisy")
