"""PATE: its accountant against slow twins, what one record can do to the votes, and bugs that were shipped."""

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.special import ndtr

import epsgauge as eg
from epsgauge.mechanisms import pate
from epsgauge.mechanisms.privacy import KnownPrivacy
from epsgauge.trainers.label_pate import LabelPate
from epsgauge.trainers.pate import Pate
from zoo import pate as zoo

NEAREST = {"estimator": "zoo.pate:Nearest"}


def public():
    return np.random.default_rng(7).normal(size=(12, 2))


def data(n=24):
    rng = np.random.default_rng(1)
    return rng.normal(size=(n, 2)), rng.integers(0, 3, n)


def small(kind=Pate, **given):
    fields = {"n_classes": 3, "n_teachers": 4, "n_queries": 12, **NEAREST, **given}
    if kind is Pate:
        fields["public"] = f"{__name__}:public"
    return kind(**fields)


# The accountant


@pytest.mark.parametrize(("sigma", "queries", "delta"), [(40.0, 100, 1e-5), (5.0, 20, 1e-6), (100.0, 3000, 1e-5)])
def test_gaussian_noise(sigma, queries, delta):
    """δ(ε) of a shift by √(2Q), by the plain formula; and never more than Rényi's divergences Qλ/σ² give."""
    eps = pate.gaussian_eps(sigma, queries, delta=delta)
    mu = math.sqrt(2 * queries) / sigma
    assert ndtr(mu / 2 - eps / mu) - math.exp(eps) * ndtr(-mu / 2 - eps / mu) == pytest.approx(delta, rel=1e-6)
    orders = np.linspace(1.01, 200, 20_000)
    assert eps < np.min(queries * orders / sigma**2 - math.log(delta) / (orders - 1))


@pytest.mark.parametrize(("gamma", "queries"), [(0.05, 100), (0.001, 5000), (0.5, 2), (1.0, 1)])
def test_laplace_noise(gamma, queries):
    orders = np.geomspace(1e-3, 1e5, 400_001)
    moments = (2 * gamma**2 * queries * orders * (orders + 1) - math.log(1e-5)) / orders
    assert pate.laplace_eps(gamma, queries, delta=1e-5) == pytest.approx(
        min(2 * gamma * queries, moments.min()), rel=1e-6
    )
    assert pate.laplace_eps(gamma, queries, delta=0.0) == 2 * gamma * queries


def outcomes(votes, density, cdf, reach):
    """How likely each answer is, by the trapezium rule."""
    z = np.linspace(-reach, reach, 40_001)
    out = []
    for i, count in enumerate(votes):
        others = np.prod([cdf(z + count - other) for j, other in enumerate(votes) if j != i], axis=0)
        out.append(trapezoid(density(z) * others, z))
    return np.array(out)


def neighbours(votes):
    """One teacher says something else."""
    for i, j in itertools.permutations(range(len(votes)), 2):
        if votes[i]:
            other = list(votes)
            other[i] -= 1
            other[j] += 1
            yield other


def gnmax(votes, sigma):
    return outcomes(
        votes,
        lambda z: np.exp(-0.5 * (z / sigma) ** 2) / (sigma * math.sqrt(2 * math.pi)),
        lambda z: ndtr(z / sigma),
        9 * sigma,
    )


@pytest.mark.parametrize(
    ("votes", "sigma"), [((10, 2, 0), 2.0), ((30, 6, 4), 4.0), ((8, 7, 5), 3.0), ((20, 0, 0), 4.0)]
)
def test_what_one_query_really_spends(votes, sigma):
    """Rényi's divergences of the answers themselves, to every neighbour and back, are below both bounds."""
    orders = np.array([1.5, 2.0, 4.0, 8.0])
    bound = pate.gnmax_rdp(pate.log_q(np.array(votes, float), sigma), sigma, orders)
    p = gnmax(votes, sigma)
    assert p.sum() == pytest.approx(1.0, abs=1e-9)
    assert math.log(1 - p.max()) <= pate.log_q(np.array(votes, float), sigma)
    for other in neighbours(votes):
        q = gnmax(other, sigma)
        for order, at_most in zip(orders, bound, strict=True):
            assert math.log(np.sum(p**order * q ** (1 - order))) / (order - 1) <= at_most
            assert math.log(np.sum(q**order * p ** (1 - order))) / (order - 1) <= order / sigma**2


def test_a_laplace_query_is_2_gamma_dp():
    gamma, votes = 0.4, (5, 4, 1)

    def lnmax(counts):
        return outcomes(
            counts,
            lambda z: 0.5 * gamma * np.exp(-gamma * np.abs(z)),
            lambda z: np.where(
                z < 0, 0.5 * np.exp(gamma * np.minimum(z, 0)), 1 - 0.5 * np.exp(-gamma * np.maximum(z, 0))
            ),
            60.0,
        )

    p = lnmax(votes)
    worst = max(np.abs(np.log(p / lnmax(other))).max() for other in neighbours(votes))
    assert 0.5 * gamma < worst <= pate.laplace_eps(gamma, 1, delta=0.0)


# Votes, σ -> log q and Rényi's divergence at orders 2, 8 and 20, by the formulas of tensorflow/privacy,
# research/pate_2018/core.py (compute_logq_gaussian, rdp_gaussian)
REFERENCE = [
    ((200, 30, 20), 40.0, -6.185839427144275, (0.0005450645914614779, 0.0006810355557438695, 0.0013113537270363913)),
    ((90, 5, 5), 10.0, -20.10776990146971, (5.373883450513949e-09, 1.533986040147425e-07, 0.0028803186097275855)),
    ((240, 10, 0, 0), 20.0, -35.99495015929736, (3.832823709013353e-16, 2.416725656720434e-15, 1.148535500233772e-12)),
    ((34, 33, 33), 40.0, -0.4054651081081643, (0.00125, 0.005, 0.0125)),
]


@pytest.mark.parametrize(("votes", "sigma", "log_q", "spent"), REFERENCE)
def test_the_authors_numbers(votes, sigma, log_q, spent):
    assert pate.log_q(np.array(votes, float), sigma) == pytest.approx(log_q, rel=1e-12)
    assert pate.gnmax_rdp(log_q, sigma, np.array([2.0, 8.0, 20.0])) == pytest.approx(np.array(spent), rel=1e-9)


def test_the_data_dependent_one_says_what_it_is():
    agreed, divided = np.tile([250.0, 0, 0], (500, 1)), np.tile([84.0, 83, 83], (500, 1))
    sure, unsure = (pate.data_dependent(votes, 40.0, delta=1e-5) for votes in (agreed, divided))
    assert sure.eps < 0.7 * pate.gaussian_eps(40.0, 500, delta=1e-5) < unsure.eps
    assert "private data itself" in str(sure)
    with pytest.raises(eg.InvalidInput, match="a row per query and a column per class"):
        pate.data_dependent([1.0, 2.0], 1.0, delta=1e-5)
    for bad in (-1.0, math.inf):
        with pytest.raises(eg.InvalidInput, match="votes must be finite, 0 or more, but got"):
            pate.data_dependent([[3.0, bad]], 1.0, delta=1e-5)


# What one record can do


def moved(trainer, one, other):
    """By how much each teacher's say changes, one query at a time."""
    change = np.abs(trainer.votes(other, seed=5) - trainer.votes(one, seed=5))
    return int(change.sum(axis=1).max()), int(change.max())


def replaced(x, y, i):
    rng = np.random.default_rng(i)
    x, y = x.copy(), y.copy()
    x[i], y[i] = rng.normal(size=x.shape[1]), (y[i] + 1) % 3
    return x, y


def relabelled(x, y, i):
    y = y.copy()
    y[i] = (y[i] + 1 + i % 2) % 3
    return x, y


def removed(x, y, i):
    return np.delete(x, i, axis=0), np.delete(y, i)


@pytest.mark.parametrize(
    ("trainer", "change"),
    [
        (small(), replaced),
        (small(adjacency="add-remove"), removed),
        (small(LabelPate, settings={}), relabelled),
    ],
)
def test_one_record_moves_one_vote(trainer, change):
    """Every record in turn; some do move a vote, none moves two."""
    one = data()
    found = [moved(trainer, one, change(*one, i)) for i in range(len(one[0]))]
    assert max(found) == (2, 1)
    assert sorted(np.concatenate(trainer.parts(*one)).tolist()) == list(range(24))


def test_turns_are_not_for_records_that_leave():
    """In turns, all records after the one that is removed go to other teachers: more than one vote moves."""
    one = data()
    assert max(moved(small(), one, removed(*one, i)) for i in range(24)) > (2, 1)


def test_the_shipped_part_for_all_teachers_moves_all_votes():
    fields = {"n_classes": 3, "n_teachers": 4, "n_queries": 12, "public": f"{__name__}:public"}
    one = data()
    found = [moved(zoo.OnePart(**fields), one, replaced(*one, i)) for i in range(24)]
    assert max(found) == (8, 4)


def test_the_student_learns_from_answers_alone():
    trainer, one = small(scale=2.0), data()
    votes = trainer.votes(one, seed=3)
    assert votes.sum(axis=1).tolist() == [4.0] * 12
    said = trainer.answers(votes, seed=3)
    student = trainer.train(one, seed=3)
    assert np.array_equal(student.x, public())
    assert np.array_equal(student.y, said)
    best = votes == votes.max(axis=1, keepdims=True)
    assert best[np.arange(12), trainer.without_noise().answers(votes, seed=9)].all()


def test_noise_decides_as_often_as_it_should():
    trainer = small(scale=4.0)
    said = trainer.answers(np.tile([10.0, 6.0, 4.0], (20_000, 1)), seed=0)
    share = np.bincount(said, minlength=3) / len(said)
    assert np.abs(share - gnmax((10, 6, 4), 4.0)).max() < 5 * math.sqrt(0.25 / len(said))


def test_teachers_without_two_classes():
    x, y = data(3)
    votes = small(n_teachers=5).votes((x, 0 * y + 2), seed=0)
    assert votes[0].tolist() == [2.0, 0.0, 3.0]


def test_promises_and_what_is_refused():
    assert small(scale=5.0).privacy(9) == KnownPrivacy(
        eps=pate.gaussian_eps(5.0, 12, delta=1e-5), delta=1e-5, adjacency="substitute"
    )
    with_laplace = small(noise="laplace", scale=20.0, delta=0.0)
    assert with_laplace.privacy(9).eps == pytest.approx(2 * 12 / 20.0)
    assert small(LabelPate).privacy(9).adjacency == "label-only"
    for kind, given, said in (
        (Pate, {"adjacency": "label-only"}, "Use the trainer label-pate"),
        (LabelPate, {"adjacency": "substitute"}, "shows the features of all"),
        (Pate, {"delta": 0.0}, "above 0 for Gaussian noise"),
        (Pate, {"noise": "uniform"}, 'noise must be "gaussian" or "laplace"'),
        (Pate, {"n_teachers": 0}, "n_teachers must be a whole number, 1 or more"),
    ):
        with pytest.raises(eg.InvalidInput, match=said):
            small(kind, **given)
    with pytest.raises(eg.InvalidInput, match="public must have n_queries = 99 points"):
        small(n_queries=99).votes(data(), seed=0)
    with pytest.raises(eg.InvalidInput, match="n_queries must be at most the 24 training points"):
        small(LabelPate, n_queries=99).votes(data(), seed=0)
    with pytest.raises(eg.InvalidInput, match="below n_classes = 2"):
        small(n_classes=2).votes(data(), seed=0)


# Bugs that were shipped


@pytest.mark.parametrize("name", zoo.CASES)
def test_shipped_bugs_are_found_and_the_twin_is_not(name):
    verdict = zoo.audited(name, 120).verdict
    assert verdict.promise == "guaranteed"
    assert verdict.claim.eps == pytest.approx(1.76, abs=0.01)
    assert (verdict.kind == "violation") == (name != "correct")
