"""The posterior of ε against values in ball arithmetic: tests/reference/README.md says where they come from."""

import json
from pathlib import Path

import numpy as np
import pytest

import epsgauge as eg

FOLDER = Path(__file__).parent / "reference"
REFERENCE, HARD = (
    json.loads((FOLDER / name).read_text(encoding="utf-8"))["cases"] for name in ("posterior.json", "hard.json")
)
CASES = REFERENCE + HARD


def column(rows, key):
    return np.array([float(row[key]) for row in rows])


def posterior_of(cases):
    return eg.estimate(
        eg.Tally(**{c: column(cases, c) for c in ("tp", "tn", "fp", "fn")}), delta=column(cases, "delta")
    )


@pytest.fixture(scope="module")
def points():
    """One row for each case and point."""
    return [case | point for case in CASES for point in case["points"]]


def test_there_are_173_cases():
    assert len(REFERENCE) == len({case["id"] for case in REFERENCE}) == 173


def test_cdf_and_sf(points):
    post, eps = posterior_of(points), column(points, "eps")
    assert np.abs(post.cdf(eps) - column(points, "F")).max() <= 1e-11
    assert np.abs(post.sf(eps) - column(points, "S")).max() <= 1e-11


def test_pdf(points):
    rows = [p for p in points if float(p["F"]) > 1e-12 and float(p["S"]) > 1e-12]
    assert len(rows) > 300
    pdf = posterior_of(rows).pdf(column(rows, "eps"))
    assert np.abs(pdf / column(rows, "pdf") - 1).max() <= 1e-8


@pytest.mark.parametrize("end", ["eps_lo", "eps_hi"])
def test_interval_ends(end):
    post, tail, want = posterior_of(CASES), column(CASES, "alpha") / 2, column(CASES, end)
    got = post.quantile(tail) if end == "eps_lo" else post.isf(tail)
    error = np.abs(got - want) / np.maximum(1.0, want)  # absolute or relative, whichever is smaller
    assert (error <= np.where(tail < 1e-9, 1e-6, 1e-8)).all()


def test_one_at_a_time_equals_all_at_once():
    together = posterior_of(CASES).interval(0.9)
    for i, case in list(enumerate(CASES))[::9]:
        alone = eg.estimate(eg.Tally(**{c: case[c] for c in ("tp", "tn", "fp", "fn")}), delta=case["delta"]).interval(
            0.9
        )
        assert alone.low == pytest.approx(together.low[i], rel=1e-9, abs=1e-11)
        assert alone.high == pytest.approx(together.high[i], rel=1e-9, abs=1e-11)
