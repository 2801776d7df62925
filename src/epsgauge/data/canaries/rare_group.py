"""A record of a group that hardly has one: what a sampler that balances groups draws too often."""

from __future__ import annotations

import numpy as np

from epsgauge.data.canaries.canary import Canary, Pair
from epsgauge.data.canaries.view import View


class RareGroup(Canary):
    name = "rare-group"
    meaning = "the record of the rarest label that is least like the others, against a frequent one"
    needs_labels = True

    def made(self, view: View) -> Pair:
        rare, frequent = view.labels
        group, others = view.flat[view.y == rare], view.flat[view.y == frequent]
        least_alike = group[np.argmax(((group - group.mean(axis=0)) ** 2).sum(axis=1))]
        return view.at(others[0], frequent), view.at(least_alike, rare)
