"""Records that were prepared with their own statistics, and records that only look like it."""

import numpy as np
import pytest

from epsgauge.probing.preparation import Prepared, preparation, standardised

RNG = np.random.default_rng(0)
ROWS = RNG.gamma(2.0, 3.0, (400, 6)) + np.arange(6)
IMAGES = RNG.gamma(2.0, 1.0, (150, 3, 4, 4)) + RNG.normal(size=(150, 1, 1, 1))


def scaled(x, axis):
    return ((x - x.mean(axis=axis, keepdims=True)) / x.std(axis=axis, keepdims=True)).astype(np.float32)


def whitened(x):
    u = np.linalg.svd(x - x.mean(axis=0), full_matrices=False)[0]
    return u * np.sqrt(len(x))


OWN = {
    "columns": scaled(ROWS, 0),
    "columns, n - 1": (ROWS - ROWS.mean(axis=0)) / ROWS.std(axis=0, ddof=1),
    "one column": np.column_stack([scaled(ROWS[:, 0], 0), ROWS[:, 1:]]),
    "whitened": whitened(ROWS),
    "all numbers": scaled(IMAGES, None),
    "channels first": scaled(IMAGES, (0, 2, 3)),
    "channels last": scaled(np.moveaxis(IMAGES, 1, -1), (0, 1, 2)),
    "targets": scaled(ROWS[:, 0], 0),
}


@pytest.mark.parametrize("name", OWN)
def test_records_with_their_own_statistics(name):
    assert standardised([OWN[name]])


SIGNS = np.tile([[-1.0, 1.0], [1.0, -1.0]], (50, 1))
RIGHT = {
    "as they are": ROWS,
    "in [0, 1]": (ROWS - ROWS.min(axis=0)) / np.ptp(ROWS, axis=0),
    "constants of two digits": (ROWS - ROWS.mean(axis=0).round(2)) / ROWS.std(axis=0).round(2),
    "published constants": (IMAGES - IMAGES.mean().round(4)) / IMAGES.std().round(4),
    "statistics of other records": (ROWS[:200] - ROWS[200:].mean(axis=0)) / ROWS[200:].std(axis=0),
    "normal numbers": RNG.normal(size=(400, 6)),
    "each record by itself": scaled(ROWS, 1),
    "each image by itself": scaled(IMAGES, (1, 2, 3)),
    "each channel of each image": scaled(IMAGES, (2, 3)),
    "plus and minus one": SIGNS,
    "constant": np.zeros((100, 3)),
    "a line": np.linspace(-1, 1, 301)[:, None],
    "tokens": RNG.integers(0, 9, (100, 5)),
    "not finite": np.where(ROWS > 10, np.nan, scaled(ROWS, 0)),
}


@pytest.mark.parametrize("name", RIGHT)
def test_records_without(name):
    assert not standardised([RIGHT[name]])


def test_findings():
    assert preparation(None).result == "not tested"
    assert preparation(Prepared(9)).result == "consistent"
    found = preparation(Prepared(400, columns=standardised([OWN["columns"]])))
    assert (found.code, found.where) == ("P160", "6 numbers of 6 in each record")
    assert found.sentence.startswith("6 numbers of 6 in each record have mean 0 and standard deviation 1")
    one = preparation(Prepared(400, columns=standardised([OWN["one column"]])))
    assert one.sentence.startswith("Number 1 of 6 in each record has mean 0")
    by_class = preparation(Prepared(400, fitted="StandardScaler in line 3 of train.py", changed="9 of 400 change"))
    assert (by_class.code, by_class.where) == ("P160", "StandardScaler in line 3 of train.py")
    assert "StandardScaler in line 3 of train.py was fitted to the records" in by_class.sentence
