"""diffprivlib: LinearRegression computes the sensitivity of Σ x² from the lower bound, taken twice.

With bounds (0, 1) that is 0, and Σ x² gets no noise. Here a feature is almost always near 0. One record with 1 makes
Σ x² a hundred times as large, and the slope is divided by it. The claim is the argument `epsilon`. The twin states the
bounds (−1, 1), for which the lower one gives the right sensitivity.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from diffprivlib.models import LinearRegression

from zoo.shipped import membership

EPS = 1.0
X = np.full((100, 1), 0.01)
Y = np.zeros(100)


def judge(twin: bool, seed: int) -> dict[str, Any]:
    bounds = (-1.0, 1.0) if twin else (0.0, 1.0)

    def score(bit: int, one: int) -> float:
        x = X.copy()
        x[0] = bit
        model = LinearRegression(
            epsilon=EPS, bounds_X=bounds, bounds_y=(0.0, 1.0), fit_intercept=False, random_state=one
        )
        return -abs(float(model.fit(x, Y).coef_[0]))

    return membership.judge(score, n=400, seed=seed, eps=EPS, adjacency="substitute")
