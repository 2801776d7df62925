"""Canaries of text: words and tokens that hardly any record has, with one label or another."""

from __future__ import annotations

import numpy as np

from epsgauge.data.canaries.canary import Canary, Pair
from epsgauge.data.canaries.view import Record, View

STRANGE = "zqxjk"


class StrangeWords(Canary):
    name = "strange-words"
    meaning = "a text of one word that no record has, with one label or another"
    kinds = ("text",)
    needs_labels = True

    def made(self, view: View) -> Pair:
        rare, frequent = view.labels
        text = " ".join([STRANGE] * max(1, round(float(np.median(np.char.count(view.x.astype(str), " ")))) + 1))
        return Record(text, frequent), Record(text, rare)


class EmptyText(Canary):
    name = "empty-text"
    meaning = "an empty text with one label or another"
    kinds = ("text",)
    needs_labels = True

    def made(self, view: View) -> Pair:
        rare, frequent = view.labels
        return Record("", frequent), Record("", rare)


class RareToken(Canary):
    name = "rare-token"
    meaning = "the rarest token over and over, with one label or another"
    kinds = ("tokens",)
    needs_labels = True

    def made(self, view: View) -> Pair:
        found, counts = np.unique(view.x, return_counts=True)
        rare, frequent = view.labels
        same = np.full(view.x.shape[1], float(found[np.argmin(counts)]))
        return view.at(same, frequent), view.at(same, rare)
