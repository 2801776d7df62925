"""Scores: one row for each guess that an attack has to make.

A HIGHER SCORE MEANS THAT b = 1 IS MORE LIKELY. A rule guesses 1 where the score is at or above a threshold, and
nothing in epsgauge turns a score round: one that points the wrong way gives an attack that is worse than chance.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from epsgauge.adjacency import Adjacency, checked
from epsgauge.errors import InvalidInput
from epsgauge.scores.origin import Origin
from epsgauge.scores.said import Bits, Models, checked_bits, checked_models
from epsgauge.scores.size import LONGEST
from epsgauge.stats import checks
from epsgauge.stats.arrays import Bools, Floats, Ints

WHOLE = ("model", "pair", "bit")
NUMBERS = (*WHOLE, "score")
TEXTS = ("id", "group")
COLUMNS = (*NUMBERS, *TEXTS)
HALVES = re.compile("[\ud800-\udfff]")  # of a character: UTF-8 has none
TOGETHER = 1_000  # texts that are checked at once
SAID = ("adjacency", "bits", "taken_as", "origin")

Texts = NDArray[np.object_]
Kind = TypeVar("Kind", bound=np.generic)
ById = Mapping[Any, float] | tuple[ArrayLike, ArrayLike]


@dataclass(frozen=True, eq=False, repr=False)
class Scores:
    """A table of scores; pairs of one model share its training and are not independent of each other.

    `bits` says where the bits come from. "coins": each is a fair coin of its own, drawn before training. "dealt": how
    many are 1 was fixed beforehand, say half. "unknown": they were found, or nobody knows. Bounds that need coins are
    guaranteed for these alone.

    >>> Scores.from_in_out([2.0, 1.5], [0.5, 1.0], adjacency="substitute", models="independent")
    <Scores: 4 rows of 4 models, adjacency substitute>
    """

    model: Ints  # which model the guess is about
    pair: Ints  # which challenge pair of that model
    bit: Ints  # what was true: 1 if z1 was trained on
    score: Floats  # what the attack saw
    adjacency: Adjacency
    id: Texts | None = None  # the user's own name of a row
    group: Texts | None = None
    bits: Bits = "unknown"  # where they come from
    taken_as: Models | None = None  # the rows of a file without the column model
    origin: Origin | None = None  # the file that it was read from

    def __post_init__(self) -> None:
        checked(self.adjacency)
        checked_bits(self.bits)
        columns: dict[str, Any] = {
            "model": checks.counts("model", self.model),
            "pair": checks.counts("pair", self.pair),
            "bit": _bits(self.bit),
            "score": _finite(self.score),
        }
        for name in TEXTS:
            if getattr(self, name) is not None:
                columns[name] = _texts(name, getattr(self, name))
        shapes = {name: column.shape for name, column in columns.items()}
        if len(set(shapes.values())) > 1 or columns["score"].ndim != 1:
            said = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
            raise InvalidInput(f"the columns of scores must be lists of one length, but got the shapes {said}.")
        for name, column in columns.items():
            own = column if name in WHOLE else np.array(column)  # whole numbers have been copied by their check
            object.__setattr__(self, name, _locked(own))
        self._check_unique()

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        *,
        adjacency: str | None = None,
        bits: str | None = None,
        models: str | None = None,
        bit_column: str = "bit",
        score_column: str = "score",
        lower_is_in: bool = False,
    ) -> Scores:
        """From a CSV file, standard input ("-", CSV), NumPy's .npz or .parquet (with the extra parquet).

        The adjacency that a file states must be the one that is passed, and a file that states none needs one. The
        same holds of `bits`, which are "unknown" where nobody says. A file without the column model needs `models`:
        "one" (all rows are of one model) or "independent" (each row is of a model of its own).

        `bit_column` and `score_column` are the names of columns that the file calls otherwise. Bits may be 0 and 1,
        in/out, true/false, member/non-member or yes/no. With `lower_is_in` a lower score means that b = 1 is more
        likely, as with losses: scores are then negated. Decide that before you see the scores.
        """
        from epsgauge.scores.files import read  # it needs this class

        return read(
            path,
            adjacency=adjacency,
            bits=bits,
            models=models,
            bit_column=bit_column,
            score_column=score_column,
            lower_is_in=lower_is_in,
        )

    def write(self, path: str | os.PathLike[str]) -> None:
        """To a .csv, a .npz or a .parquet file, which `read` gives back bit by bit."""
        from epsgauge.scores.files import write  # it needs this class

        write(self, path)

    @classmethod
    def from_in_out(
        cls,
        ins: ArrayLike,
        outs: ArrayLike,
        *,
        adjacency: Adjacency,
        models: Models | None = None,
        bits: Bits = "unknown",
    ) -> Scores:
        """From scores of what was trained on (b = 1) and of what was not (b = 0).

        `models` says which scores share a model: "independent" (each is of a model of its own) or "one" (all are of one
        model). Nothing else can tell, so it must be said.

        Rows are numbered so that ins and outs alternate as evenly as can be: the first ones of the table, which
        may choose a rule, are then a fair part of both. Within each list the order is kept, and it must not depend on
        the scores (a sorted list needs a `Split` with a seed).
        """
        lists = [_list("ins", ins), _list("outs", outs)]
        when = np.concatenate([(np.arange(len(part)) + 0.5) / max(len(part), 1) for part in lists])
        order = np.argsort(when, kind="stable")
        bit = np.repeat(np.array([1, 0]), [len(part) for part in lists])[order]
        rows = _numbered("from_in_out", len(order), models)
        return cls(*rows, bit, np.concatenate(lists)[order], adjacency, bits=bits, taken_as=models)

    @classmethod
    def joined(cls, scores: ById, bits: ById, *, adjacency: Adjacency, models: Models | None = None) -> Scores:
        """From scores and bits that carry ids, in the order of the scores; `models` as of `from_in_out`.

        Both are mappings id -> value, or tuples (ids, values). Every id must stand exactly once on both sides. For
        bits that are coins, use `dataclasses.replace` on what it gives.

        >>> scores, bits = {"a": 0.3, "b": 1.2}, {"b": 1, "a": 0}
        >>> Scores.joined(scores, bits, adjacency="add-remove", models="independent").bit.tolist()
        [0, 1]
        """
        score, bit = _by_id("scores", scores), _by_id("bits", bits)
        for one, other, name, of in ((score, bit, "bits", "scores"), (bit, score, "scores", "bits")):
            missing = [key for key in one if key not in other]
            if missing:
                raise InvalidInput(
                    f"{name} must have every id of {of}, but {len(missing)} of {len(one)} are missing, the first is "
                    f"{missing[0]!r}. Give both sides the same ids."
                )
        rows, in_order = _numbered("joined", len(score), models), _bits([bit[key] for key in score])
        values, ids = np.array(list(score.values())), _texts("ids", list(score))
        return cls(*rows, in_order, values, adjacency, ids, taken_as=models)

    @cached_property
    def by_model(self) -> Ints:
        """The rows in the order of model and pair."""
        if _ascending(self.model, self.pair):  # as most files are
            return _locked(np.arange(len(self)))
        return _locked(np.lexsort((self.pair, self.model)))

    @cached_property
    def starts(self) -> Ints:
        """Where each model's rows begin in `by_model`."""
        model = self.model[self.by_model]
        new = np.ones(len(self), bool)
        new[1:] = model[1:] != model[:-1]
        return _locked(np.flatnonzero(new))

    @cached_property
    def models(self) -> Ints:
        """The numbers of the models, each once, ascending."""
        return _locked(self.model[self.first_pairs])

    @property
    def first_pairs(self) -> Ints:
        """The row of each model's lowest pair, in the order of the models."""
        return self.by_model[self.starts]

    @property
    def pairs(self) -> Ints:
        """How many rows each model has, in the order of the models."""
        return np.diff(self.starts, append=len(self))

    def per_model(self, rows: Bools) -> Ints:
        """How many of these rows each model has, in the order of the models."""
        if not len(self):
            return np.zeros(0, np.int64)
        return np.add.reduceat(rows[self.by_model].astype(np.int64), self.starts)

    def __len__(self) -> int:
        return len(self.score)

    def __getitem__(self, rows: Bools | Ints | slice) -> Scores:
        """Some of the rows, as a table."""
        columns: dict[str, Any] = {name: getattr(self, name) for name in COLUMNS if getattr(self, name) is not None}
        some = {name: column[rows] for name, column in columns.items()}
        if isinstance(rows, slice) or (isinstance(rows, np.ndarray) and rows.dtype == bool):  # no row comes twice
            return self._part(some)
        return Scores(**some, **self._said)

    def with_score(self, score: Floats) -> Scores:
        """The same rows with other scores, which are finite."""
        columns = {name: getattr(self, name) for name in COLUMNS if getattr(self, name) is not None}
        return self._part({**columns, "score": score})

    def _part(self, columns: dict[str, Any]) -> Scores:
        """A table of columns that have been checked."""
        out = object.__new__(Scores)
        for name, value in {**dict.fromkeys(TEXTS), **columns, **self._said}.items():
            object.__setattr__(out, name, _locked(value) if name in columns else value)
        return out

    @property
    def _said(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in SAID}

    def _check_unique(self) -> None:
        model, pair = self.model, self.pair
        if _ascending(model, pair):
            return
        order = self.by_model
        m, p = model[order], pair[order]
        twice = np.flatnonzero((m[1:] == m[:-1]) & (p[1:] == p[:-1]))
        if twice.size:
            first, second = sorted(int(row) for row in order[twice[0] : twice[0] + 2])
            raise InvalidInput(
                f"each pair of a model must stand once in scores, but model {m[twice[0]]}, pair {p[twice[0]]} is in "
                f"the rows {first} and {second}. Number the pairs of a model."
            )

    def __repr__(self) -> str:
        return f"<Scores: {len(self)} rows of {len(self.models)} models, adjacency {self.adjacency}>"


def _numbered(name: str, n: int, models: Models | None) -> tuple[Ints, Ints]:
    """Model and pair of each row."""
    if models is None:
        raise InvalidInput(
            f"Scores.{name} does not know which scores share a model. If each has a model of its own, pass "
            'models="independent". If all are guesses about one model, pass models="one".'
        )
    none = np.zeros(n, np.int64)
    return (np.arange(n), none) if checked_models(models) == "independent" else (none, np.arange(n))


def _bits(value: ArrayLike) -> Ints:
    array = checks.numbers("bit", value)
    checks.within("bit", value, "0 or 1", (array == 0) | (array == 1))
    return array.astype(np.int64)


def _finite(value: ArrayLike) -> Floats:
    array = checks.floats("score", value)
    bad = ~np.isfinite(array)
    if bad.any() and array.ndim == 1:
        row = int(np.flatnonzero(bad)[0])
        raise InvalidInput(
            f"score must be finite, but row {row} (the first is 0) has {array[row]}. Give it a finite score in its "
            "place of the order: leaving the row out would make the attack look better than it is."
        )
    return array


def _texts(name: str, value: ArrayLike) -> Texts:
    """Each with the room that it needs: in an array of one width every row would have that of the longest."""
    if checks.masked(value):
        raise InvalidInput(f"{name} must have a text everywhere, but some are masked. Fill them in.")
    array = np.asarray(checks.detached(value), dtype=np.object_)
    texts = array.ravel().tolist()
    if set(map(type, texts)) != {str}:
        texts = [each.decode(errors="backslashreplace") if isinstance(each, bytes) else str(each) for each in texts]
    lengths = list(map(len, texts))
    if max(lengths, default=0) > LONGEST:
        row = next(i for i, length in enumerate(lengths) if length > LONGEST)
        raise InvalidInput(
            f"{name} must be texts of at most {LONGEST:,} characters, but row {row} (the first is 0) has "
            f"{lengths[row]:,}. Give shorter names."
        )
    for start in range(0, len(texts), TOGETHER):
        together = texts[start : start + TOGETHER]
        if _unwritable("".join(together)):
            text = next(text for text in together if _unwritable(text))
            raise InvalidInput(f"{name} must be texts that a file can hold, but got {text[:80]!r}. Give other names.")
    out = np.empty(len(texts), np.object_)
    out[:] = texts
    return out.reshape(array.shape)


def _unwritable(text: str) -> bool:
    return "\0" in text or (not text.isascii() and HALVES.search(text) is not None)


def _ascending(model: Ints, pair: Ints) -> bool:
    """Whether every row comes after the one before it, by model and then by pair."""
    step = np.diff(model)
    if (step > 0).all():
        return True
    return bool(((step > 0) | ((step == 0) & (np.diff(pair) > 0))).all())


def _locked(array: NDArray[Kind]) -> NDArray[Kind]:
    array.flags.writeable = False
    return array


def _list(name: str, value: ArrayLike) -> Floats:
    array = checks.numbers(name, value)
    if array.ndim != 1:
        raise InvalidInput(f"{name} must be one list of scores, but got an array of shape {array.shape}.")
    return array


def _by_id(name: str, table: ById) -> dict[str, float]:
    """id -> value, from a mapping or two lists; ids are compared as text."""
    if isinstance(table, Mapping):
        ids, values = [str(key) for key in table], _list(name, list(table.values()))
    elif isinstance(table, tuple) and len(table) == 2:
        ids, values = _texts(f"the ids of {name}", table[0]).ravel().tolist(), _list(name, table[1])
    else:
        raise InvalidInput(f"{name} must be a mapping id -> value or a tuple (ids, values), but got {table!r}.")
    if len(ids) != len(values):
        raise InvalidInput(f"{name} must have as many ids as values, but got {len(ids)} and {len(values)}.")
    out = dict(zip(ids, values.tolist(), strict=True))
    if len(out) < len(ids):
        key, times = Counter(ids).most_common(1)[0]
        raise InvalidInput(f"{name} must have every id once, but {key!r} stands there {times} times.")
    return out
