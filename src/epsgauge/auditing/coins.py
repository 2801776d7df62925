"""coins(): canaries for one training, fair coins that say which go in, and what will be judged, before training."""

from __future__ import annotations

import csv
import hashlib
import io
import os
import secrets
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from epsgauge.adjacency import Adjacency
from epsgauge.auditing.beforehand import (
    Declared,
    content_of,
    declaration_of,
    direction_of,
    privacy_of,
    write_declaration,
)
from epsgauge.auditing.claim import NoClaim, promises
from epsgauge.data.planted.kind import Known, Row
from epsgauge.data.planted.numbers import pixels_of
from epsgauge.data.planted.own import read_own
from epsgauge.data.planted.table import KINDS, kinds_of, planted
from epsgauge.declaration import Declaration, digest_of
from epsgauge.errors import InvalidInput
from epsgauge.files import create, replace
from epsgauge.mechanisms.privacy import DPSGD, to_json
from epsgauge.methods.needs_of_one_run import MOST, fewest_of_one_run, largest_of_one_run
from epsgauge.scores.by_id import number_of, read_by_id
from epsgauge.scores.origin import Origin
from epsgauge.scores.said import Models
from epsgauge.scores.table import Scores
from epsgauge.settings import OF_A_RULE
from epsgauge.stats.arrays import Floats, Ints
from epsgauge.trainers.evenness import uneven

if TYPE_CHECKING:
    from epsgauge.trainers.watches import GradientCanaries

IN, OUT = "in", "out"
FIRST = ("id", "coin", "kind")  # columns of every file
NOISE = "noise"  # the column that a watch fills
FEWEST = 20
ADJACENCY: Adjacency = "add-remove"  # a canary is in, or is left out


@dataclass(frozen=True, eq=False, repr=False)
class Coins:
    """Canaries, each with its coin, and the declaration beside them. Train with those that are `included`."""

    rows: Sequence[Row]  # id, coin, kind, and what the canary is
    declaration: Declaration
    file: str

    @cached_property
    def ids(self) -> list[str]:
        return [row["id"] for row in self.rows]

    @cached_property
    def bits(self) -> Ints:
        """1 for a canary that goes in."""
        return np.array([int(row["coin"] == IN) for row in self.rows], np.int64)

    @property
    def included(self) -> list[Row]:
        """The canaries to train with."""
        return [row for row in self.rows if row["coin"] == IN]

    @property
    def excluded(self) -> list[Row]:
        """The canaries that training never sees. Score them too."""
        return [row for row in self.rows if row["coin"] == OUT]

    @property
    def array(self) -> Floats:
        """Canaries that are images or rows of a table, as numbers: one row each, in the order of `rows`."""
        shape, of_rows = self._said["shape"], [name for name in self.rows[0] if name[:1] == "x" and name[1:].isdigit()]
        if shape is not None and "pixels" in self.rows[0]:
            return np.stack([pixels_of(row["pixels"], tuple(shape)) for row in self.rows])
        if not of_rows:
            raise InvalidInput(f"array is for images and rows, but {self.file} has {', '.join(self.rows[0])}.")
        return np.array([[float(row[name]) for name in of_rows] for row in self.rows])

    def watch(self) -> GradientCanaries:
        """For canaries that are gradients: adds those that go in to every update, and keeps how the updates align."""
        from epsgauge.trainers.watches import GradientCanaries

        privacy = self._dpsgd
        if privacy is None or "coordinate" not in self.rows[0]:
            raise InvalidInput(f'a watch adds canaries of the kind "gradients", but {self.file} has other ones.')
        watch = GradientCanaries(
            directions=np.array([int(row["coordinate"]) for row in self.rows], np.int64),
            bits=self.bits,
            adjacency=ADJACENCY,
            privacy=privacy,
            sees="updates",
            seed=np.random.SeedSequence(_number("steps", self._said["seed"])),
        )
        self._watches.append(watch)
        return watch

    def scores(self, source: str | os.PathLike[str] | Mapping[str, float], *, score_column: str = "score") -> Scores:
        """Scores of all canaries, joined by id: from the columns id and score of a CSV file, or a mapping.

        What does not fit is refused: an id that is missing, unknown or there twice, and a coin that differs.
        """
        name = "scores" if isinstance(source, Mapping) else os.fspath(source)
        ids, values, noise = self._given(source, name, score_column)
        score = dict(zip(ids, values, strict=True))
        self._check_ids(ids, score, name)
        lower, n = direction_of(self.declaration) == "lower", len(self.rows)
        in_order = np.array([score[each] for each in self.ids])
        models: Models = self.declaration.content["models"]
        return Scores(
            model=np.zeros(n, np.int64),
            pair=np.arange(n),
            bit=self.bits,
            score=-in_order if lower else in_order,
            adjacency=ADJACENCY,
            id=np.array(self.ids, np.object_),
            group=np.array([row["kind"] for row in self.rows], np.object_),
            bits="coins",
            taken_as=models,
            origin=Origin(
                name, score_column=score_column, lower_is_in=lower, coins=self.file, uneven=self._uneven(noise)
            ),
        )

    def write_scores(self, values: Sequence[float] | Floats, path: str | os.PathLike[str]) -> None:
        """A file of scores that are in the order of `rows`, which `epsgauge scores PATH --coins FILE` judges.

        If `watch` was used, the noise that it saw goes with them, in the order of the parameters.
        """
        if len(values) != len(self.rows):
            raise InvalidInput(f"values must be {len(self.rows)}, one for each canary, but got {len(values)}.")
        rows = [{"id": each, "score": repr(float(value))} for each, value in zip(self.ids, values, strict=True)]
        if self._noise is not None:
            cells = (" ".join(f"{x:.6g}" for x in part) for part in np.array_split(self._noise, len(rows)))
            rows = [row | {NOISE: cell} for row, cell in zip(rows, cells, strict=True)]
        replace(Path(path), _text(rows))

    @cached_property
    def _watches(self) -> list[GradientCanaries]:
        return []

    @property
    def _noise(self) -> Floats | None:
        """That the last watch saw, in the order of the parameters."""
        return self._watches[-1].noise if self._watches else None

    @property
    def _dpsgd(self) -> DPSGD | None:
        privacy = privacy_of(self.declaration)
        return privacy if isinstance(privacy, DPSGD) else None

    def _uneven(self, noise: Floats | None) -> str | None:
        if noise is None or self._dpsgd is None or "coordinate" not in self.rows[0]:
            return None
        return uneven(noise, stated=float(self._dpsgd.noise_multiplier), steps=self._dpsgd.steps)

    @property
    def _said(self) -> dict[str, Any]:
        said: dict[str, Any] = self.declaration.content["coins"]
        return said

    def _given(
        self, source: str | os.PathLike[str] | Mapping[str, float], name: str, score_column: str
    ) -> tuple[list[str], list[float], Floats | None]:
        if isinstance(source, Mapping):
            return [str(each) for each in source], [float(value) for value in source.values()], self._noise
        table = read_by_id(source, score_column=score_column)
        ids, cells = table.get("id", []), table.get(score_column, [])
        coin = {row["id"]: row["coin"] for row in self.rows}
        for each, said in zip(ids, table.get("coin", []), strict=False):
            if coin.get(each, said) != said:
                raise InvalidInput(
                    f"{name} says that canary {each} is {said}, but its coin in {self.file} says {coin[each]}. Score "
                    "the model that was trained with these coins."
                )
        seen = dict(zip(ids, table.get(NOISE, []), strict=False))
        noise = [number_of(one, name, each) for each in self.ids for one in seen.get(each, "").split()]
        values = [number_of(cell, name, each) for each, cell in zip(ids, cells, strict=True)]
        return ids, values, np.array(noise) if noise else None

    def _check_ids(self, ids: list[str], score: Mapping[str, float], name: str) -> None:
        if len(score) < len(ids):
            each, times = Counter(ids).most_common(1)[0]
            raise InvalidInput(f"{name} must have each canary once, but {each} is there {times} times. Keep one.")
        known = set(self.ids)
        others, missing = [each for each in ids if each not in known], [each for each in self.ids if each not in score]
        if others:
            raise InvalidInput(
                f"{name} has {len(others)} ids that are no canary of {self.file}, the first is {others[0][:80]!r}. "
                "Give the scores of these canaries alone."
            )
        if missing:
            raise InvalidInput(
                f"{name} must have a score of all {len(self.rows)} canaries, in or out, but {len(missing)} are "
                f"missing, the first is {missing[0]}. Score these too: which ones are left out could tell their coins."
            )

    def __repr__(self) -> str:
        return f"<Coins: {len(self.rows)} canaries, {int(self.bits.sum())} in, {self.file}>"


def coins(
    path: str | os.PathLike[str],
    *,
    canaries: int | None = None,
    kind: str | Sequence[str] = "text",
    seed: int | None = None,
    corpus: str | os.PathLike[str] | Sequence[str] | None = None,
    labels: int | None = None,
    shape: Sequence[int] | None = None,
    features: int | None = None,
    parameters: int | None = None,
    own: str | os.PathLike[str] | None = None,
    privacy: DPSGD | None = None,
    direction: Declared = "higher",
    note: str | None = None,
    **settings: Any,
) -> Coins:
    """Make canaries for one training, draw by fair coins which go in, and declare what will be judged.

    Writes `path`, a CSV file with a row per canary, and beside it the declaration, a .json file with a digest of all
    of it. Neither replaces a file. `kind` is "text", "image", "row", "gradient", "own" or one of the kinds that
    docs/train-once.md lists, or several. `settings` are those of a plan's `[audit]` table: δ, levels, claim, guesses
    that count. `direction` says whether a "higher" or a "lower" score will mean that a canary was in.

    A claim that not even a perfect attack could refute with so few canaries is warned about, with how many would do.

    Coins come from the operating system's entropy. With a `seed` they can be drawn again, and are fair only if nobody
    picked the seed by what it draws.
    """
    file = Path(path)
    if file.suffix.lower() != ".csv":
        raise InvalidInput(f"coins are written to a .csv file, but got {str(path)!r}.")
    kinds = kinds_of([kind] if isinstance(kind, str) else list(kind)) if own is None else [KINDS["own"]]
    known = Known(
        corpus=_lines(corpus) if isinstance(corpus, str | os.PathLike) else corpus,
        labels=_positive("labels", labels),
        shape=None if shape is None else tuple(int(_positive("shape", side) or 0) for side in shape),
        features=_positive("features", features),
        parameters=_positive("parameters", parameters),
        own=None if own is None else read_own(Path(own)),
    )
    n = _wanted(canaries, known)
    orthogonal = kinds[0].orthogonal
    if orthogonal and privacy is None:
        raise InvalidInput(
            'kind = "gradients" needs what DP-SGD promises, which the watch adds them by. Pass privacy=eg.DPSGD(...) '
            "(--sample-rate, --noise-multiplier and --steps)."
        )
    drawn = secrets.randbits(128) if seed is None else seed
    content = content_of(
        adjacency=ADJACENCY,
        bits="coins",
        models="orthogonal" if orthogonal else "one",
        direction=direction,
        seed=0,
        note=note,
        settings=_settled(settings),
    )
    rows = _tossed(planted(n, kinds, np.random.default_rng(_number("contents", drawn)), known), drawn)
    content["privacy"] = to_json(privacy)
    content["coins"] = {
        "canaries": n,
        "kinds": [each.name for each in kinds],
        "shape": None if shape is None else list(shape),
        "seed": drawn,
        "seed_given": seed is not None,
        "digest": _digest(rows),
    }
    beside = Origin(str(file), coins=str(file)).declaration
    try:
        create(file, _text(rows))
    except FileExistsError:
        raise InvalidInput(f"{path} exists, and coins are never drawn again for a file. Use another name.") from None
    except OSError as error:
        raise InvalidInput(f"the coins could not be written to {str(path)!r}: {error.strerror}.") from None
    try:
        made = Coins(rows, write_declaration(Path(str(beside)), content), str(file))
    except InvalidInput:
        file.unlink(missing_ok=True)
        raise
    if hopeless := _hopeless(made.declaration, n):
        warnings.warn(hopeless, stacklevel=2)
    return made


def read_coins(path: str | os.PathLike[str]) -> Coins:
    """The canaries and coins of a file of `coins`; refused if they are not what was declared beside it."""
    file = os.fspath(path)
    if not file.lower().endswith(".csv"):
        raise InvalidInput(f"coins are in a .csv file, but got {file!r}. `epsgauge coins` writes one.")
    beside = str(Origin(file, coins=file).declaration)
    for each in (file, beside):
        if not Path(each).is_file():
            raise InvalidInput(
                f"there is no file {each}. Restore it; or, before you train, make new coins with: epsgauge coins -o "
                f"{file}"
            )
    declaration = declaration_of(beside)
    said = declaration.content.get("coins")
    if not isinstance(said, dict) or not {"digest", "seed", "shape"} <= set(said):
        raise InvalidInput(f"{declaration.file} declares no coins. `epsgauge coins` writes both files.")
    try:
        table = list(csv.reader(io.StringIO(Path(file).read_text(encoding="utf-8-sig"), newline=""), strict=True))
        rows = [dict(zip(table[0], row, strict=True)) for row in table[1:] if row]
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read: {error.strerror}.") from None
    except (csv.Error, ValueError, IndexError):
        rows = []
    if not rows or _digest(rows) != said["digest"]:
        raise InvalidInput(
            f"{file} is not what {declaration.file} declares: an id, a coin or a canary was changed since it was "
            "written. Restore it."
        )
    if any(row["coin"] != _coin(row["id"], said["seed"]) for row in rows):
        raise InvalidInput(
            f"the coins of {file} are not those that its seed draws: they were chosen and not drawn. Draw new ones "
            "with `epsgauge coins` and train again."
        )
    return Coins(rows, declaration, file)


def _hopeless(declared: Declaration, n: int) -> str | None:
    """What is said of a claim that so few canaries cannot refute, whatever the attack; None if they can.

    Gradient canaries are as good as models, and methods that are named are the user's choice.
    """
    ways = 2 if direction_of(declared) == "either" else 1
    settings = declared.audit.divided(ways)
    claim = promises(settings, None, ADJACENCY, trained=False).claim
    if declared.content["models"] != "one" or settings.verdict_method is not None or isinstance(claim, NoClaim):
        return None
    at = {"delta": claim.delta, "level": settings.verdict_level}
    largest = largest_of_one_run(n, **at, by_mu=settings.by_mu)
    if largest > claim.eps:
        return None
    fewest = fewest_of_one_run(claim.eps, **at, by_mu=settings.by_mu)
    would = f"{MOST:,} are too few too" if fewest is None else f"Use at least {fewest:,}"
    return (
        f"{n} canaries cannot decide this claim: a perfect attack shows at most ε = {largest:.3g}, and ε = "
        f"{claim.eps:.3g} is claimed. {would}, or state a smaller claim."
    )


def _settled(settings: Mapping[str, Any]) -> dict[str, Any]:
    """With what one training leaves open: pairs of its own choose a rule, and a claim is about canaries in or out."""
    out = dict(settings)
    if not {"rule", *OF_A_RULE} & set(out):
        out["rule"] = "split-pairs"
    if out.get("claimed_eps") is not None:
        out.setdefault("claimed_delta", out.get("delta", 1e-5))
    if out.get("claimed_eps") is not None or out.get("claimed_mu") is not None:
        out.setdefault("claimed_adjacency", ADJACENCY)
    return out


def _wanted(canaries: int | None, known: Known) -> int:
    if known.own is not None:
        if canaries not in (None, len(known.own)):
            raise InvalidInput(f"canaries must be {len(known.own)}, as many as your file has, but got {canaries}.")
        canaries = len(known.own)
    if canaries is None:
        raise InvalidInput("canaries must say how many to make, but got none. Pass canaries=1000 (--canaries 1000).")
    if isinstance(canaries, bool) or not isinstance(canaries, int) or canaries < FEWEST:
        raise InvalidInput(f"canaries must be at least {FEWEST}, but got {canaries!r}.")
    return canaries


def _positive(name: str, value: int | None) -> int | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise InvalidInput(f"{name} must be a whole number of at least 1, but got {value!r}.")
    return value


def _lines(path: str | os.PathLike[str]) -> list[str]:
    try:
        return Path(path).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise InvalidInput(f"corpus {os.fspath(path)} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise InvalidInput(f"corpus {os.fspath(path)} must be text in UTF-8, one text per line, but is not.") from None


def _tossed(made: list[tuple[str, Row]], seed: int) -> list[Row]:
    """With ids, coins and kinds, in the order of the columns."""
    width, ids = len(str(len(made) - 1)), Counter(row["id"] for _, row in made if "id" in row)
    if ids and (max(ids.values()) > 1 or "" in ids):
        raise InvalidInput(f"each canary must have an id of its own, but {ids.most_common(1)[0][0]!r} is there twice.")
    out = []
    for i, (kind, row) in enumerate(made):
        own = row.get("id", f"c{i:0{width}d}")
        out.append({"id": own, "coin": _coin(own, seed), "kind": kind} | {k: v for k, v in row.items() if k != "id"})
    return out


def _coin(name: str, seed: int) -> str:
    """A bit of a hash: whoever has seed and id draws it again, on every machine."""
    return IN if _number(f"coin {name}", seed) & 1 else OUT


def _number(what: str, seed: int) -> int:
    return int.from_bytes(hashlib.sha256(f"epsgauge {seed} {what}".encode()).digest(), "big")


def _digest(rows: Sequence[Row]) -> str:
    """Of all cells: how a spreadsheet quotes them does not matter."""
    return digest_of({"columns": list(rows[0]), "rows": [list(row.values()) for row in rows]})


def _text(rows: Sequence[Row]) -> str:
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(rows[0])
    writer.writerows(row.values() for row in rows)
    return out.getvalue()
