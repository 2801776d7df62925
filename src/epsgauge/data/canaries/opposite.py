"""A record in a direction that no other uses, against its opposite: their gradients are as far apart as can be."""

from __future__ import annotations

from epsgauge.data.canaries.canary import Canary, Pair
from epsgauge.data.canaries.directions import least_used, unused
from epsgauge.data.canaries.view import View


class Opposite(Canary):
    name = "opposite"
    meaning = "a record in a direction that the data do not use, against its negative"
    times = 1.0  # of the median length of a point

    def made(self, view: View) -> Pair:
        along = self.times * view.size * unused(view)
        return view.at(-along, view.labels[0]), view.at(along, view.labels[0])


class FarOpposite(Opposite):
    name = "far-opposite"
    meaning = "the same, four times as long as other records"
    times = 4.0


class RareOpposite(Canary):
    name = "rare-opposite"
    meaning = "a long record in the direction that the data use least, against its negative"

    def made(self, view: View) -> Pair:
        along = 4.0 * view.size * least_used(view)
        return view.at(-along, view.labels[0]), view.at(along, view.labels[0])
