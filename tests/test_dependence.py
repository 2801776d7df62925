"""The interval for dependent guesses: coverage on simulated models, and what it costs where there is no dependence."""

import sys
from pathlib import Path

import numpy as np
import pytest

import epsgauge as eg
from epsgauge.bounds import dependence
from epsgauge.bounds.dependence import cluster_interval
from epsgauge.errors import InvalidInput
from epsgauge.stats.region import eps_of_rates

sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))

from clusters import simulate


def plain(fn, n1, fp, n0, level=0.9):
    cells = {"fn": fn.sum(), "tp": (n1 - fn).sum(), "fp": fp.sum(), "tn": (n0 - fp).sum()}
    return eg.estimate(eg.Tally(**cells), delta=1e-5).interval(level)


@pytest.mark.parametrize(
    ("n_models", "m", "x", "y", "rho", "correlation"),
    [
        (10, 100, 0.3, 0.5, 0.05, 0.0),
        (100, 10, 0.4, 0.4, 0.2, -0.8),
        pytest.param(10, 100, 0.1, 0.6, 0.2, 0.8, marks=pytest.mark.long),
    ],
)
def test_covers_where_the_plain_posterior_does_not(n_models, m, x, y, rho, correlation):
    """A few cells of the table that tools/clusters.py prints."""
    rng, runs, eps = np.random.default_rng(1), 50, float(eps_of_rates(x, y, delta=1e-5))
    covers = plain_covers = 0
    for _ in range(runs):
        models = simulate(rng, n_models, m, x, y, rho, correlation)
        found, beside = cluster_interval(*models, delta=1e-5, level=0.9), plain(*models)
        covers += found.low <= eps <= found.high
        plain_covers += beside.low <= eps <= beside.high
    assert covers >= 0.82 * runs  # 0.88 wanted, less two deviations of so few runs
    assert covers > plain_covers


def test_one_pair_a_model_is_the_plain_posterior():
    rng = np.random.default_rng(2)
    models = simulate(rng, 400, 1, 0.3, 0.4, 0.0, 0.0)
    found, beside = cluster_interval(*models, delta=1e-5), plain(*models)
    assert (found.low, found.high) == pytest.approx((beside.low, beside.high), abs=0.02 * beside.width)
    assert found.rho == (0, 0)
    assert found.design_effect == pytest.approx((1, 1))


@pytest.mark.parametrize(("n_models", "m", "most"), [(10, 100, 1.7), (100, 10, 1.15), (1000, 4, 1.06)])
def test_independent_guesses_cost_little(n_models, m, most):
    rng, ratios = np.random.default_rng(3), []
    for _ in range(10):
        models = simulate(rng, n_models, m, 0.3, 0.5, 0.0, 0.0)
        found, beside = cluster_interval(*models, delta=1e-5), plain(*models)
        ratios.append((found.high - found.low) / beside.width)
    assert 1.0 < np.mean(ratios) < most


@pytest.mark.parametrize("correlation", [-0.8, 0.0, 0.8])
def test_finds_rho_and_the_correlation(correlation):
    models = simulate(np.random.default_rng(4), 2000, 20, 0.3, 0.4, 0.2, correlation)
    found = cluster_interval(*models, delta=1e-5)
    assert found.rho == pytest.approx((0.2, 0.2), abs=0.03)
    # of the pooled errors: ρ times the correlation times √(n1 n0), over both design effects
    want = correlation * 0.2 * 10 / (1 + 9.5 * 0.2)  # a copula's correlation is a little more than that of the rates
    assert found.correlation == pytest.approx(want, abs=0.1)


def test_the_weights_are_those_of_a_plain_normal_likelihood():
    """The slow twin: both means integrated on a grid, determinants and inverses by NumPy, one model at a time."""
    rng = np.random.default_rng(5)
    fn, n1, fp, n0 = (a.astype(float) for a in simulate(rng, 12, 8, 0.3, 0.5, 0.1, -0.5))
    n1[3], fn[3] = 0, 0  # a model without b = 1
    grid, got = dependence._posterior(fn, n1, fp, n0)
    x, y = (fn.sum() + 0.5) / (n1.sum() + 1), (fp.sum() + 0.5) / (n0.sum() + 1)
    rates = np.stack(np.meshgrid(x + np.linspace(-0.7, 0.7, 141), y + np.linspace(-0.7, 0.7, 141)), -1).reshape(-1, 2)
    points, logs = np.arange(0, len(got), 97), []
    for p in points:
        total = np.zeros(len(rates))
        for j in range(12):
            cov = np.zeros((2, 2))
            cov[0, 0] = x * (1 - x) * n1[j] * (1 + (n1[j] - 1) * grid.rho_fnr[p])
            cov[1, 1] = y * (1 - y) * n0[j] * (1 + (n0[j] - 1) * grid.rho_fpr[p])
            both = np.sqrt(grid.rho_fnr[p] * grid.rho_fpr[p] * x * (1 - x) * y * (1 - y))
            cov[0, 1] = cov[1, 0] = grid.correlation[p] * both * n1[j] * n0[j]
            keep = np.flatnonzero([n1[j] > 0, n0[j] > 0])
            cov = cov[np.ix_(keep, keep)]
            off = (np.array([fn[j], fp[j]]) - rates * [n1[j], n0[j]])[:, keep]
            total -= 0.5 * np.linalg.slogdet(cov)[1] + 0.5 * np.einsum("ri,ij,rj->r", off, np.linalg.inv(cov), off)
        logs.append(np.logaddexp.reduce(total) + grid.log_prior[p])
    assert np.log(got[points] / got[points[0]]) == pytest.approx(np.array(logs) - logs[0], abs=1e-3)


def test_same_input_same_output_and_finer_points_change_little(monkeypatch):
    models = simulate(np.random.default_rng(6), 20, 30, 0.3, 0.4, 0.1, -0.5)
    once, again = (cluster_interval(*models, delta=1e-5) for _ in range(2))
    assert once == again
    monkeypatch.setattr(dependence, "POINTS", 2**16)
    monkeypatch.setattr(dependence, "EFFECTS", 20)
    fine = cluster_interval(*models, delta=1e-5)
    assert (once.low, once.high) == pytest.approx((fine.low, fine.high), abs=0.02 * (fine.high - fine.low))


def test_no_wrong_guesses_at_all():
    found = cluster_interval([0] * 10, 5, [0] * 10, 5, delta=1e-5)
    assert 0 < found.low < found.high < np.inf


def test_too_few_models_show_none():
    assert cluster_interval([1] * 9, 5, [2] * 9, 5, delta=1e-5) is None
    assert cluster_interval([1] * 10, 5, [2] * 10, 5, delta=1e-5) is not None


@pytest.mark.parametrize(
    "call",
    [
        lambda: cluster_interval([6] * 10, 5, [0] * 10, 5, delta=0),
        lambda: cluster_interval([0] * 10, 5, [6] * 10, 5, delta=0),
        lambda: cluster_interval([0] * 10, 0, [1] * 10, 5, delta=0),
        lambda: cluster_interval(1, 5, 1, 5, delta=0),
        lambda: cluster_interval([1] * 10, 5, [1] * 9, 5, delta=0),
        lambda: cluster_interval([1] * 10, 5, [1] * 10, 5, delta=2),
    ],
)
def test_bad_input(call):
    with pytest.raises(InvalidInput, match="must"):
        call()
