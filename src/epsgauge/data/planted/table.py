"""The one table of kinds of planted canaries, and as many canaries of one or several of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from epsgauge.data.planted.kind import Kind, Known, Row
from epsgauge.data.planted.numbers import CornerRows, Gradients, NoiseImages
from epsgauge.data.planted.own import Own
from epsgauge.data.planted.text import NewTokens, RandomDigits, RandomWords, RareWords, UnlikelyWords
from epsgauge.errors import InvalidInput
from epsgauge.references import nearest

KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        *(RandomWords(), NewTokens(), RandomDigits(), RareWords(), UnlikelyWords()),
        *(NoiseImages(), CornerRows(), Gradients(), Own()),
    )
}
SHORT = {"text": "random-words", "image": "noise-images", "row": "corner-rows", "gradient": "gradients"}


def kinds_of(names: Sequence[str]) -> list[Kind]:
    """Each by its name or the short one; gradients go with no other."""
    long = list(dict.fromkeys(SHORT.get(name, name) for name in names))
    for name in long:
        if name not in KINDS:
            known = [*SHORT, *KINDS]
            raise InvalidInput(f"kind must be one of {', '.join(known)}, but got {name!r}.{nearest(name, known)}")
    found = [KINDS[name] for name in long]
    if len(found) > 1 and any(kind.orthogonal or isinstance(kind, Own) for kind in found):
        alone = next(kind.name for kind in found if kind.orthogonal or isinstance(kind, Own))
        raise InvalidInput(f'kind = "{alone}" goes with no other kind, but got {", ".join(long)}. Use two files.')
    return found


def planted(n: int, kinds: Sequence[Kind], rng: np.random.Generator, known: Known) -> list[tuple[str, Row]]:
    """The kind and the columns of each canary; several kinds have equal parts, in turns."""
    each = [kind.made(len(range(i, n, len(kinds))), rng, known) for i, kind in enumerate(kinds)]
    columns = {column: None for rows in each for row in rows[:1] for column in row}
    of_all = [dict.fromkeys(columns, "") | each[i % len(kinds)][i // len(kinds)] for i in range(n)]
    return [(kinds[i % len(kinds)].name, row) for i, row in enumerate(of_all)]
