"""Every way through an audit, a forecast, a comparison and a calibration says what was recorded, field by field."""

import re
import sys
from pathlib import Path

import pytest

from epsgauge.methods.method import Method
from epsgauge.methods.table import METHODS

sys.path.insert(0, str(Path(__file__).parent / "recorded"))
import cases

RECORDED = cases.recorded()


def differences(found, expected, *, by_mu=False, path="", close=Method.resolution):
    """The fields that differ, with both values: numbers by more than the resolution of the method that gave them."""
    if isinstance(expected, dict) and isinstance(found, dict):
        close = resolution(expected["method"], by_mu) if "method" in expected else close
        names = dict.fromkeys((*expected, *found))
        fields = [(f"{path}/{name}", found.get(name), expected.get(name)) for name in names]
        return [d for at, *both in fields for d in differences(*both, by_mu=by_mu, path=at, close=close)]
    if isinstance(expected, list) and isinstance(found, list) and len(found) == len(expected):
        fields = [(f"{path}/{i}", *both) for i, both in enumerate(zip(found, expected, strict=True))]
        return [d for at, *both in fields for d in differences(*both, by_mu=by_mu, path=at, close=close)]
    if isinstance(expected, float) and isinstance(found, float):
        return [] if abs(found - expected) <= close * (1.0 + abs(expected)) else [(path, found, expected)]
    return [] if found == expected else [(path, found, expected)]


def resolution(name, by_mu):
    """Of a method, or of the form that it takes for a claim stated as μ."""
    forms = type(METHODS[name]).__subclasses__() if by_mu else ()
    return max(form.resolution for form in (METHODS[name], *forms))


# Cases that take seconds, and whose path another case goes too.
LONG = (
    "calibrate bayes exactly",
    "calibrate pooled exactly",
    "dealt.csv bits=dealt claimed_mu=0.3 claimed_adjacency=substitute",
    "four.csv claimed_mu=0.3 claimed_adjacency=substitute",
    "four.csv verdict_method=simultaneous claimed_eps=0.3 claimed_delta=1e-05 claimed_adjacency=substitute",
    "one.csv verdict_method=simultaneous claimed_eps=0.3 claimed_delta=1e-05 claimed_adjacency=substitute",
    "pairs-failed claimed_mu=0.3 claimed_adjacency=substitute",
    "pairs-failed verdict_method=simultaneous",
)


def marks(name):
    return pytest.mark.long if name in LONG else ()


@pytest.mark.parametrize(("name", "result"), [pytest.param(n, r, id=n, marks=marks(n)) for n, r in cases.results()])
def test_what_it_says_is_what_was_recorded(name, result):
    by_mu = re.search(r"(\b|_)mu\b", name) is not None  # as the claim is stated
    assert differences(cases.said(result), RECORDED[name], by_mu=by_mu) == []


def test_every_recorded_case_is_still_played():
    assert [name for name, _ in cases.results()] == list(RECORDED)


def test_the_long_cases_exist():
    assert set(LONG) <= set(RECORDED)


def test_a_number_may_differ_by_what_its_method_resolves_and_by_no_more():
    recorded = {"method": "exact", "low": 1.0, "of": {"method": "one-run", "low": 1.0}, "text": ["ε ≥ 1"]}
    near = {"method": "exact", "low": 1.0 + 1e-9, "of": {"method": "one-run", "low": 1.0 + 1e-9}, "text": ["ε ≥ 1"]}
    assert differences(near, recorded) == []
    off = {"method": "exact", "low": 1.0 + 1e-8, "of": {"method": "one-run", "low": 1.0 + 1e-5}, "text": ["ε ≥ 2"]}
    assert [path for path, *_ in differences(off, recorded)] == ["/low", "/of/low", "/text/0"]
    assert [path for path, *_ in differences(off, recorded, by_mu=True)] == ["/low", "/text/0"]
