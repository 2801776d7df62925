"""Claims of a whole curve of (ε, δ): its points, which one is judged, and that a curve that holds is not refuted."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from command_line import ask
from scipy import integrate, special, stats

import epsgauge as eg
from epsgauge.bounds.exact import exact_lower_bound
from epsgauge.errors import InvalidInput
from epsgauge.mechanisms.curves import FAMILIES, Curve
from epsgauge.sampling.game import MechanismGame
from epsgauge.sampling.learning import _surely, _with_share
from epsgauge.scores.rules import Given, judge
from epsgauge.stats.region import gaussian_eps
from epsgauge.stats.tally import Tally

GRID = 2.0**-10


def response(data, rng, size):
    """ε = 1.5."""
    return np.where(rng.random(size) < special.expit(1.5), data, 1 - data)


def gaussian(sigma):
    return lambda data, rng, size: np.round((data + rng.normal(0, sigma, size)) / GRID) * GRID


def own_curve(eps):
    """Of `response`, exactly."""
    p = special.expit(1.5)
    return max(0.0, p - math.exp(eps) * (1 - p))


# Points


@pytest.mark.parametrize("eps", [0.0, 0.4, 1.1])
def test_families_are_hockey_sticks_of_their_densities(eps):
    for name, noise in (("laplace:1.3", stats.laplace(scale=1 / 1.3)), ("gaussian:1.3", stats.norm(scale=1 / 1.3))):
        more = lambda x, n=noise: max(0.0, n.pdf(x - 1) - math.exp(eps) * n.pdf(x))  # noqa: E731
        found = integrate.quad(more, -8, 30, points=[0, 0.5, 1, 2], limit=400)[0]
        family, _, number = name.partition(":")
        assert FAMILIES[family](float(number))(eps) == pytest.approx(found, abs=1e-6)


def test_renyi_curves_are_those_of_an_accountant():
    from dp_accounting.rdp.rdp_privacy_accountant import compute_delta

    orders = np.linspace(1.01, 80, 4000)
    for eps in (0.5, 1.5, 3.0):
        theirs, _ = compute_delta(orders, 0.3 * orders, eps)
        assert FAMILIES["zcdp"](0.3)(eps) == pytest.approx(theirs, rel=1e-3)
        assert FAMILIES["rdp"](2.0, 0.6)(eps) == pytest.approx(compute_delta([2.0], [0.6], eps)[0], rel=1e-9)
        assert FAMILIES["zcdp"](0.3)(eps) >= FAMILIES["gaussian"](math.sqrt(0.6))(eps)  # which has this ρ


def test_points_of_a_curve_are_on_it(tmp_path):
    for name in ("laplace:1", "gaussian:0.7", "zcdp:0.2", "rdp:3,0.5"):
        curve, family = Curve.of(name), FAMILIES[name.partition(":")[0]]
        delta = family(*map(float, name.partition(":")[2].split(",")))
        assert curve.delta == pytest.approx([delta(e) for e in curve.eps])
        assert curve.delta.min() <= 1e-12
        assert (curve.delta < 1).all()
    file = tmp_path / "curve.csv"
    file.write_text("# ours\neps, delta\n0.5, 0.1\n1, 0.01\n2, 1\n")
    for given in (str(file), [(0.5, 0.1), (1, 0.01), (2, 1)]):
        found = Curve.of(given)
        assert (found.eps.tolist(), found.delta.tolist()) == ([0.5, 1.0], [0.1, 0.01])  # δ = 1 promises nothing
    assert len(Curve.of(own_curve)) == 60


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("zcpd:1", 'must be such as "gaussian:1"'),
        ("zcdp:x", 'must be such as "gaussian:1"'),
        ("rdp:2", 'must be such as "gaussian:1"'),
        ("rdp:1,1", "order of rdp must be above 1"),
        ("zcdp:-1", "number of zcdp must be"),
        ("none.csv", "could not be read"),
        ([], "must have 1 to 10000 points"),
        ([(1, 2)], "delta must be"),
        ([(1, 1)], "promises nothing"),
        ([(1, 0.1), (2, 0.2)], "must fall as ε grows"),
        (3, 'must be such as "gaussian:1"'),
        (lambda eps: eps, "must fall as ε grows"),
        (lambda eps: float("nan"), "must give δ of at least 0"),
        (lambda eps: 1 / 0, "failed with ZeroDivisionError"),
    ],
)
def test_curves_that_are_none_are_refused_in_one_sentence(given, said):
    with pytest.raises(InvalidInput, match=said):
        Curve.of(given)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b\n1,2\n", "must have one column eps and one delta"),
        ("eps,delta,eps\n1,0.1,9\n", "must have one column eps and one delta"),
        ("eps,delta\n1,x\n", r"must have numbers, but line 2 has eps = '1' and delta = 'x'\. Write"),
        ("eps,delta\n1\n", "must have numbers"),
        ("eps,delta\n1,0,0,1\n", r"has 4 instead of 2\. Write decimals with a point"),
        ("eps,delta\n1,0.1,7\n", "has 3 instead of 2"),
        ("eps,delta\n2.0,0.3\n1.0,0.1\n", "must fall as ε grows, but it is 0.1 at ε = 1 and 0.3 at ε = 2"),
        ("eps,delta\n1,0.2\n2,0.05\n1,0.1\n", "it is 0.1 at ε = 1 and 0.2 at ε = 1"),
    ],
)
def test_tables_that_are_none_are_refused(tmp_path, text, said):
    (tmp_path / "c.csv").write_text(text)
    with pytest.raises(InvalidInput, match=said):
        Curve.of(str(tmp_path / "c.csv"))


def test_points_of_a_table_come_in_any_order_and_with_other_columns(tmp_path):
    (tmp_path / "c.csv").write_text("eps,delta,by\n1,0.1,us\n0.5,0.2,us\n1,0.1,them\n")
    assert Curve.of(str(tmp_path / "c.csv")).eps.tolist() == [1.0, 0.5, 1.0]


# Which point is judged


def test_standard_errors_are_those_of_the_difference():
    tally = Tally(tp=np.array([60]), fn=np.array([40]), fp=np.array([10]), tn=np.array([90]))
    p, q, r, s = 61 / 102, 11 / 102, 91 / 102, 41 / 102
    one = (0.6 - math.e * 0.1 - 0.05) / math.sqrt(p * (1 - p) / 100 + math.e**2 * q * (1 - q) / 100)
    other = (0.9 - math.e * 0.4 - 0.05) / math.sqrt(r * (1 - r) / 100 + math.e**2 * s * (1 - s) / 100)
    assert _surely(tally, 1.0, 0.05) == pytest.approx(max(one, other))


def test_a_mean_of_scores_guesses_1_as_often_as_each():
    score = np.repeat([-1.0, 0.0, 1.0, 2.0], [40, 30, 20, 10])
    assert [_with_share(score, share) for share in (1.0, 0.58, 0.3, 0.11)] == [-1.0, 0.0, 1.0, 2.0]
    assert _with_share(score, 0.01) > 2.0  # never


def test_a_curve_is_refuted_where_its_point_at_a_small_delta_holds():
    """At δ = 1e-5 this Gaussian curve allows ε = 1.99, and the mechanism has 1.5. At a larger δ it allows less."""
    game = MechanismGame(response, 0, 1, n_samples=4000, regions=("events",))
    at = float(gaussian_eps(0.5, delta=1e-5))
    assert eg.audit(game, claimed_eps=at, claimed_delta=1e-5).verdict.kind == "no objection"
    found = eg.audit(game, claimed_curve="gaussian:0.5")
    claim = found.verdict.claim
    assert (found.verdict.kind, found.verdict.promise) == ("violation", "guaranteed")
    assert claim.delta == pytest.approx(FAMILIES["gaussian"](0.5)(claim.eps))
    assert claim.delta > 0.01
    assert (found.settings.delta, found.verdict.delta) == (claim.delta, claim.delta)
    assert "of the curve gaussian:0.5" in found.verdict.sentence
    assert any("chosen on samples set apart" in text for text in found.warnings)
    assert found.to_json()["claim"]["curve"] == "gaussian:0.5"


def test_a_renyi_claim_is_refuted():
    game = MechanismGame(gaussian(0.6), 0, 1, n_samples=12_000, regions=("linear",))
    assert eg.audit(game, claimed_curve="zcdp:0.5").verdict.kind == "violation"
    held = eg.audit(replace(game, n_samples=48_000), claimed_curve=f"zcdp:{0.5 / 0.36}")
    assert held.verdict.kind == "no objection"
    assert held.verdict.bound.value > 0.6 * held.verdict.claim.eps  # a point where the bound comes near


@pytest.mark.long
def test_a_curve_that_holds_is_refuted_no_more_often_than_the_level_says():
    """The claimed curve is exactly that of the mechanism, and its worst-looking point is judged, at 60 %."""
    n, above, curve = 40, 0, Curve.of(own_curve)
    for seed in range(n):
        played = MechanismGame(response, 0, 1, n_samples=400, seed=seed, regions=("events",)).play(curve)
        eps, delta = float(curve.eps[played.point]), float(curve.delta[played.point])
        tally = judge(played.scores, Given(played.threshold), delta=delta).tally
        above += exact_lower_bound(tally, delta=delta, level=0.60, direction="right") > eps
    assert above <= stats.binom.ppf(0.999, n, 0.40)


def test_until_a_point_of_the_curve_is_refuted():
    game = MechanismGame(response, 0, 1, n_samples=10_000, until="violation", regions=("events",))
    found = eg.audit(game, claimed_curve="gaussian:0.5")
    assert (found.verdict.kind, found.verdict.promise) == ("violation", "guaranteed")
    assert 1000 < found.sampled.drawn < 2500  # the first 1000 choose the point


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"claimed_eps": 1.0}, "claimed_eps is given too"),
        ({"delta": 0.1}, "delta is given too"),
        ({"claimed_adjacency": "add-remove"}, "is for the adjacency of the game"),
    ],
)
def test_a_curve_is_all_of_the_claim(more, said):
    with pytest.raises(InvalidInput, match=said):
        eg.audit(MechanismGame(response, 0, 1, n_samples=400), claimed_curve="laplace:1", **more)


def test_no_curve_is_none():
    found = eg.audit(MechanismGame(response, 0, 1, n_samples=400, regions=("events",)), claimed_curve=None)
    assert found.verdict.kind == "no claim"


def test_the_command_takes_a_curve(tmp_path, monkeypatch):
    (tmp_path / "own_response.py").write_text(
        "import numpy as np\ndef keep(data, rng, size):\n    return np.where(rng.random(size) < 0.8, data, 1 - data)\n"
        "pairs = [(0.1, 0.5), (0.5, 0.2)]\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", list(__import__("sys").path))
    words = ("mechanism", "own_response:keep", "--d0", 0, "--d1", 1, "--samples", 2000, "--regions", "events")
    found = json.loads(ask(*words, "--curve", "laplace:0.5", "--json"))
    assert found["verdict"]["kind"] == "violation"
    assert "--curve laplace:0.5 --samples 2000" in found["sampled"]["command"]
    found = json.loads(ask(*words, "--curve", "own_response:pairs", "--json"))
    assert (found["claim"]["eps"], found["claim"]["delta"]) in ((0.1, 0.5), (0.5, 0.2))
    assert found["claim"]["curve"] == "own_response:pairs"
