"""Every way through an audit, a forecast, a comparison and a calibration says what was recorded, field by field."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "recorded"))
import cases

RECORDED = cases.recorded()
# Numbers may differ in their last digits between machines; words may not.
CLOSE = 1e-9


def differences(found, expected, path=""):
    """The fields that differ, with both values."""
    if isinstance(expected, dict) and isinstance(found, dict):
        names = dict.fromkeys((*expected, *found))
        return [d for n in names for d in differences(found.get(n), expected.get(n), f"{path}/{n}")]
    if isinstance(expected, list) and isinstance(found, list) and len(found) == len(expected):
        pairs = enumerate(zip(found, expected, strict=True))
        return [d for i, (one, other) in pairs for d in differences(one, other, f"{path}/{i}")]
    if isinstance(expected, float) and isinstance(found, float):
        return [] if found == pytest.approx(expected, rel=CLOSE, abs=CLOSE) else [(path, found, expected)]
    return [] if found == expected else [(path, found, expected)]


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
    assert differences(cases.said(result), RECORDED[name]) == []


def test_every_recorded_case_is_still_played():
    assert [name for name, _ in cases.results()] == list(RECORDED)


def test_the_long_cases_exist():
    assert set(LONG) <= set(RECORDED)
