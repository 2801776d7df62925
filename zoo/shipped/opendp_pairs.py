"""OpenDP: Theil-Sen regression pairs records, and drops the last one where their number is odd.

So a record that is added to an even number drops another: it replaces it, and two pairs differ instead of one. The
stability map says one. Here all records are on a line y = 77 but the last, which pulls predictions below it; the
record that is added at the front drops that one and pulls them above. The claim is `measurement.map(1)`. The twin
states `measurement.map(2)`. OpenDP's noise cannot be seeded, so numbers differ a little from run to run.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import opendp.prelude as dp

from zoo.shipped import membership

LINE = 77.0
CUTS = np.array([25.0, 75.0])  # where predictions are made
WITHOUT = np.array([*([i / 2, LINE] for i in range(19)), [12.0, 0.0]])
WITH = np.vstack([[12.0, 100.0], WITHOUT])


def judge(twin: bool, seed: int) -> dict[str, Any]:
    dp.enable_features("contrib", "honest-but-curious", "idealized-numerics")
    model = dp.sklearn.linear_model.LinearRegression(
        dp.max_divergence(), x_bounds=[(0.0, 100.0)], y_bounds=(0.0, 100.0), scale=1.0
    )

    def score(bit: int, one: int) -> float:
        slope, intercept = model.measurement(WITH if bit else WITHOUT)
        return float((slope * CUTS + intercept > LINE).all())

    np.random.seed(seed)  # noqa: NPY002  OpenDP shuffles by it
    eps = model.measurement.map(2 if twin else 1)
    return membership.judge(score, n=8000, seed=seed, eps=eps, adjacency="add-remove", threshold=0.5)
