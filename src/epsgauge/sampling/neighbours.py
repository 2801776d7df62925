"""Neighbouring inputs of mechanisms: families that are searched on samples set apart, and whether a pair is one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from epsgauge.adjacency import Adjacency
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


def lengths(pair: Pair, adjacency: Adjacency) -> tuple[str, ...]:
    """A caution where the lengths of both data sets are not those of neighbours."""
    n0, n1 = (_n_records(data) for data in pair)
    if n0 is None or n1 is None or abs(n0 - n1) == (adjacency == "add-remove"):
        return ()
    has = f"d0 has {n0} and d1 {n1} records, but adjacency is {adjacency}, under which"
    if adjacency == "add-remove":
        return (
            f"{has} one of both has exactly one more. State substitute, or add a record to one of them. If they are "
            "counts or answers to queries, not records, this does not matter.",
        )
    return (f"{has} both have as many. State add-remove, or give two data sets of the same length.",)


def _n_records(data: Any) -> int | None:
    try:
        return None if isinstance(data, str | bytes | Mapping) else len(data)
    except TypeError:
        return None
