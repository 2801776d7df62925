"""Many records of the data with two wrong labels each: the canaries of Malek et al. 2021, "Antipodes of Label DP"."""

from __future__ import annotations

from typing import Any

import numpy as np

from epsgauge.data.canaries.view import Record, view_of
from epsgauge.errors import InvalidInput

MOST = 1000  # as in the paper; half of the data where that is less


def wrong_labels(data: Any) -> tuple[Any, Any]:
    """All z0 and all z1: one record each, with two labels that are not its own; of two classes, with both.

    Which records and labels these are is drawn once, with a seed of its own. No training set has the record itself.
    """
    view = view_of(data)
    classes = [] if view.y is None else np.unique(view.y).tolist()
    if view.y is None or len(classes) < 2:
        raise InvalidInput('canaries = "wrong-labels" needs data with two labels or more, but got fewer.')
    rng = np.random.default_rng([2021, len(view.x)])
    zeros, ones = [], []
    for i in rng.permutation(len(view.x))[: min(MOST, len(view.x) // 2)]:
        wrong = [each for each in classes if each != view.y[i]]
        two = rng.choice(wrong, 2, replace=False) if len(wrong) > 1 else (view.y[i], wrong[0])
        zeros.append(Record(view.x[i], view.y.dtype.type(two[0])))
        ones.append(Record(view.x[i], view.y.dtype.type(two[1])))
    return view.write(zeros), view.write(ones)
