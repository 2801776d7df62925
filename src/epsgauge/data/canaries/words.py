"""Canaries of text: words and tokens that hardly any record has, with one label or another."""

from __future__ import annotations

import numpy as np

from epsgauge.data.canaries.label import TwoLabels
from epsgauge.data.canaries.view import Record, View

STRANGE = "zqxjk"


class StrangeWords(TwoLabels):
    name = "strange-words"
    meaning = "a text of one word that no record has, with one label or another"
    kinds = ("text",)

    def place(self, view: View) -> Record:
        words = round(float(np.median(np.char.count(view.x.astype(str), " ")))) + 1
        return Record(" ".join([STRANGE] * words), None)


class EmptyText(TwoLabels):
    name = "empty-text"
    meaning = "an empty text with one label or another"
    kinds = ("text",)

    def place(self, view: View) -> Record:
        return Record("", None)


class RareToken(TwoLabels):
    name = "rare-token"
    meaning = "the rarest token over and over, with one label or another"
    kinds = ("tokens",)

    def place(self, view: View) -> Record:
        found, counts = np.unique(view.x, return_counts=True)
        return view.at(np.full(view.x.shape[1], float(found[np.argmin(counts)])), None)
