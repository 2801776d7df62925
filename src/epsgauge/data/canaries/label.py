"""Two labels at one place: in a direction that no record uses, and as ClipBKD places them."""

from __future__ import annotations

from epsgauge.data.canaries.canary import Canary, Pair
from epsgauge.data.canaries.directions import least_used, unused
from epsgauge.data.canaries.view import View


class Label(Canary):
    name = "label"
    meaning = "a long record in a direction that the data do not use, with one label or another"
    needs_labels = True

    def made(self, view: View) -> Pair:
        along, (rare, frequent) = 4.0 * view.size * unused(view), view.labels
        return view.at(along, frequent), view.at(along, rare)


class ClipBkd(Canary):
    """Jagielski, Ullman and Oprea, "Auditing Differentially Private Machine Learning" (2020), §4."""

    name = "clipbkd"
    meaning = "ClipBKD: a record in the direction that the data use least, with one label or another"
    needs_labels = True

    def made(self, view: View) -> Pair:
        along, (rare, frequent) = view.size * least_used(view), view.labels
        return view.at(along, frequent), view.at(along, rare)


class Blank(Canary):
    name = "blank"
    meaning = "a record of zeros with one label or another"
    kinds = ("numbers", "tokens")
    needs_labels = True

    def made(self, view: View) -> Pair:
        rare, frequent = view.labels
        zeros = 0.0 * view.mean
        return view.at(zeros, frequent), view.at(zeros, rare)


class Mislabelled(Canary):
    name = "mislabelled"
    meaning = "an ordinary record with a label that is not its own"
    kinds = ("numbers", "tokens")
    needs_labels = True

    def made(self, view: View) -> Pair:
        rare, frequent = view.labels
        own = view.flat[view.y == frequent][0]
        return view.at(own, frequent), view.at(own, rare)
