"""Two labels at one place: z0 has the frequent one, z1 the rare one."""

from __future__ import annotations

from abc import abstractmethod

from epsgauge.data.canaries.canary import Canary, Pair
from epsgauge.data.canaries.directions import least_used, unused
from epsgauge.data.canaries.view import Record, View


class TwoLabels(Canary):
    needs_labels = True
    of_label = True

    def made(self, view: View) -> Pair:
        rare, frequent = view.labels
        x = self.place(view).x
        return Record(x, frequent), Record(x, rare)

    @abstractmethod
    def place(self, view: View) -> Record:
        """The features of both; its label does not count."""


class Label(TwoLabels):
    name = "label"
    meaning = "a long record in a direction that the data do not use, with one label or another"

    def place(self, view: View) -> Record:
        return view.at(4.0 * view.size * unused(view), None)


class ClipBkd(TwoLabels):
    """Jagielski, Ullman and Oprea, "Auditing Differentially Private Machine Learning" (2020), §4."""

    name = "clipbkd"
    meaning = "ClipBKD: a record in the direction that the data use least, with one label or another"

    def place(self, view: View) -> Record:
        return view.at(view.size * least_used(view), None)


class Blank(TwoLabels):
    name = "blank"
    meaning = "a record of zeros with one label or another"
    kinds = ("numbers", "tokens")

    def place(self, view: View) -> Record:
        return view.at(0.0 * view.mean, None)


class Mislabelled(TwoLabels):
    name = "mislabelled"
    meaning = "an ordinary record with a label that is not its own"
    kinds = ("numbers", "tokens")

    def place(self, view: View) -> Record:
        return view.at(view.flat[view.y == view.labels[1]][0], None)
