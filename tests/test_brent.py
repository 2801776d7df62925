"""Brent's method is SciPy's, step for step."""

import math

import pytest
from scipy import optimize, special

from epsgauge.stats import brent

FUNCTIONS = [
    (lambda x: x * x - 2.0, 0.0, 2.0),
    (lambda x: math.exp(-x) - 1e-3, 0.0, 64.0),
    (lambda x: float(special.betainc(5.5, 996.5, special.expit(-x))) - 0.95, 0.0, 8.0),
    (lambda x: math.atan(20.0 * (x - 1.0)), 0.0, 3.5),
    (lambda x: math.copysign(1.0, x - 0.3), 0.0, 1.0),
    (lambda x: x, 0.0, 1.0),
    (lambda x: x - 1.0, 0.0, 1.0),
]


@pytest.mark.parametrize("xtol", [2.5e-8, 1e-14])
@pytest.mark.parametrize(("f", "low", "high"), FUNCTIONS)
def test_asks_for_the_same_points_and_finds_the_same_root(f, low, high, xtol):
    asked = {"ours": [], "theirs": []}

    def noting(who):
        return lambda x: asked[who].append(x) or f(x)

    ours = brent.root(noting("ours"), low, high, xtol=xtol)
    assert ours == optimize.brentq(noting("theirs"), low, high, xtol=xtol)
    assert asked["ours"] == asked["theirs"]


def test_a_function_without_a_root_is_a_defect():
    with pytest.raises(ArithmeticError):
        brent.root(lambda x: x + 1.0, 0.0, 1.0, xtol=1e-9)
