"""diffprivlib: LogisticRegression has a row of weights for each label that it finds in the private data.

If one record alone has a label, the model tells whether that record is there. The claim is the argument `epsilon`; the
truth is that no ε holds. The twin adds one public record of each class to the data, so that the classes are always the
same.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from diffprivlib.models import LogisticRegression

from zoo.shipped import membership

EPS = 1.0
RNG = np.random.default_rng(0)
X = RNG.normal(size=(100, 2)) / 4
Y = (X[:, 0] > 0).astype(int)
PUBLIC = np.zeros((3, 2)), np.arange(3)
RARE = 2


def judge(twin: bool, seed: int) -> dict[str, Any]:
    def score(bit: int, one: int) -> float:
        """How likely the model finds the rare label for that record."""
        x, y = X, Y.copy()
        if bit:
            y[0] = RARE
        if twin:
            x, y = np.vstack([x, PUBLIC[0]]), np.concatenate([y, PUBLIC[1]])
        model = LogisticRegression(epsilon=EPS, data_norm=1.0, random_state=one).fit(x, y)
        found = dict(zip(model.classes_, model.predict_proba(X[:1])[0], strict=True))
        return float(found.get(RARE, 0.0))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what scikit-learn deprecates, and a solver that did not converge
        return membership.judge(score, n=400, seed=seed, eps=EPS, adjacency="substitute")
