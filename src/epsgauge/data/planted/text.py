"""Canaries of text. The column `secret` is the end of the text: score the loss of that part alone where you can."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from epsgauge.data.planted.common import COMMON
from epsgauge.data.planted.kind import Kind, Known, Row, distinct
from epsgauge.errors import InvalidInput

WORDS = 8  # of a secret
BEFORE = 6  # words of a beginning
DIGITS = 9
LETTERS = tuple("bcdfghjklmnpqrstvwxz")  # without vowels there is hardly such a word
LENGTH = 8
FEWEST = 50  # words that a corpus must have


class RandomWords(Kind):
    name = "random-words"
    meaning = "a string of common words that were drawn at random"

    def rows(self, n: int, rng: np.random.Generator, known: Known) -> list[Row]:
        texts = distinct(n, lambda: _drawn(rng, COMMON, WORDS), "common words")
        return [_row("", text, rng, known) for text in texts]


class RandomDigits(Kind):
    name = "random-digits"
    meaning = "a sentence that ends in a number drawn at random (Carlini et al. 2019)"

    def rows(self, n: int, rng: np.random.Generator, known: Known) -> list[Row]:
        texts = distinct(n, lambda: _drawn(rng, tuple("0123456789"), DIGITS), "digits")
        return [_row("the random number is", text, rng, known) for text in texts]


class NewTokens(Kind):
    name = "new-tokens"
    meaning = "common words and then a word that no other text has, best as a token of its own (Panda et al. 2025)"

    def rows(self, n: int, rng: np.random.Generator, known: Known) -> list[Row]:
        new = distinct(n, lambda: "".join(_chosen(rng, LETTERS, LENGTH)), "letters")
        return [_row(_drawn(rng, COMMON, BEFORE), word, rng, known) for word in new]


class RareWords(Kind):
    name = "rare-words"
    meaning = "common words and then words that the corpus hardly has (Panda et al. 2025, unigram)"
    needs = ("corpus",)

    def rows(self, n: int, rng: np.random.Generator, known: Known) -> list[Row]:
        counts = Counter(_words(known.corpus or ()))
        rarest = tuple(word for word, _ in sorted(counts.items(), key=lambda item: (item[1], item[0])))
        rarest = rarest[: max(FEWEST, len(rarest) // 10)]
        texts = distinct(n, lambda: _drawn(rng, rarest, WORDS), "rare words")
        return [_row(_drawn(rng, COMMON, BEFORE), text, rng, known) for text in texts]


class UnlikelyWords(Kind):
    name = "unlikely-words"
    meaning = "words of the corpus of which none ever follows the one before it (Panda et al. 2025, bigram)"
    needs = ("corpus",)

    def rows(self, n: int, rng: np.random.Generator, known: Known) -> list[Row]:
        words = tuple(_words(known.corpus or ()))
        known_words = tuple(dict.fromkeys(words))
        followed = {pair for text in known.corpus or () for pair in pairwise(text.split())}

        def draw() -> str:
            out = [known_words[rng.integers(len(known_words))]]
            for _ in range(100 * WORDS):
                if len(out) > WORDS:
                    break
                word = known_words[rng.integers(len(known_words))]
                if (out[-1], word) not in followed:
                    out.append(word)
            return " ".join(out)

        drawn = [text.partition(" ") for text in distinct(n, draw, "words of the corpus")]
        return [_row(first, others, rng, known) for first, _, others in drawn]


def _words(corpus: Sequence[str]) -> list[str]:
    words = [word for text in corpus for word in text.split()]
    if len(set(words)) < FEWEST:
        raise InvalidInput(
            f"corpus must have at least {FEWEST} different words, but has {len(set(words))}. Give texts as the "
            "training has them, one per line."
        )
    return words


def _chosen(rng: np.random.Generator, of: Sequence[str], n: int) -> list[str]:
    return [of[i] for i in rng.integers(len(of), size=n).tolist()]


def _drawn(rng: np.random.Generator, of: Sequence[str], n: int) -> str:
    return " ".join(_chosen(rng, of, n))


def _row(before: str, secret: str, rng: np.random.Generator, known: Known) -> Row:
    return {"text": f"{before} {secret}".strip(), "secret": secret, **known.label(rng)}
