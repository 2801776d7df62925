"""Points without their labels: which of them are at the same place."""

from __future__ import annotations

from typing import Any

import numpy as np

from epsgauge.data.canaries.view import features_and_label
from epsgauge.data.content import SIZE, row_keys, thing_key
from epsgauge.data.points import Arrays, Keys, Points
from epsgauge.errors import InvalidInput


def unlabelled(points: Points) -> Keys:
    """A digest of each point's content, all but its label."""
    if isinstance(points, Arrays):
        label = _label({i: column[0] for i, column in enumerate(points.columns)})
        return row_keys(tuple(column for i, column in enumerate(points.columns) if i != label))
    items: list[Any] = [points.take(np.array([i]))[0] for i in range(len(points))]
    parts = [dict(item) if isinstance(item, dict) else dict(enumerate(item)) for item in items]
    label = _label(parts[0])
    keys = [thing_key(tuple(part for key, part in each.items() if key != label)) for each in parts]
    return np.array(keys, dtype=f"S{2 * SIZE}")


def _label(point: dict[Any, Any]) -> Any:
    label = features_and_label(point)[1]
    if label is None:
        raise InvalidInput(
            "a label-only game needs points with a label, a number beside the features, but these have none."
        )
    return label
