"""Families of neighbouring inputs for mechanisms on vectors of numbers, to be searched on samples set apart."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from epsgauge.errors import InvalidInput

Pair = tuple[Any, Any]
LONGEST = 1000
FAMILIES = ("answers", "records")


def pairs_of(text: str) -> list[Pair]:
    """Of a family and a length, such as "answers:5" or "records:5".

    "answers" are those of queries, each of which changes by at most 1: one above or below the others, one against the
    rest, halves, all, and a cross (Ding et al. 2018, table 2; Bichsel et al. 2021, section V). "records" are in [0, 1],
    and one of them changes.

    >>> [(d0.tolist(), d1.tolist()) for d0, d1 in pairs_of("records:2")]
    [([0.0, 0.0], [1.0, 0.0]), ([1.0, 0.0], [1.0, 1.0]), ([0.5, 0.5], [1.0, 0.5]), ([1.0, 1.0], [0.0, 1.0])]
    """
    found = re.fullmatch(r"(\w+):([0-9]{1,4})", text)
    if found is None or found[1] not in FAMILIES or not 1 <= int(found[2]) <= LONGEST:
        raise InvalidInput(
            f'pairs must be "answers:N" or "records:N" with N from 1 to {LONGEST}, such as "answers:5", or a list of '
            f"pairs (d0, d1), but got {text!r}."
        )
    n = int(found[2])
    zeros, ones, first, last = np.zeros(n), np.ones(n), np.eye(n)[0], np.eye(n)[-1]
    if found[1] == "records":
        return [(zeros, first), (ones - last, ones), (0.5 * ones, 0.5 * (ones + first)), (ones, ones - first)]
    half = (np.arange(n) < (n + 1) // 2).astype(float)
    others = (ones + first, ones - first, 2 * first, 2 * (ones - first), 2 * half, 2 * ones, zeros)
    return [*((ones, other) for other in others), (half, ones - half)]
