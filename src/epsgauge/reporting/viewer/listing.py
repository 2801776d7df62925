"""Which runs a list shows and in which order: all of it is in the address, so that a link shows the same."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, get_args
from urllib.parse import urlencode

from epsgauge.auditing.verdict import Ruling
from epsgauge.numbers import exactly
from epsgauge.reporting.viewer.cache import Known
from epsgauge.reporting.viewer.standing import Standing

RULINGS: tuple[str, ...] = get_args(Ruling)
LONGEST = 200  # characters of a text in an address


@dataclass(frozen=True)
class Row:
    """A run of the list. `standing` is None until it was read, `verdict` until it was judged and the look logged."""

    id: str
    standing: Standing | None
    verdict: Known | None = None
    trouble: str | None = None  # why there is no verdict
    pending: bool = False  # there will be more
    unlogged: bool = False

    @property
    def name(self) -> str:
        return self.id if self.standing is None else self.standing.name

    @property
    def claimed(self) -> float | None:
        """As the verdict has it, which knows the accountant; until then as the plan states it."""
        if self.verdict is not None:
            return self.verdict.claimed
        return None if self.standing is None else self.standing.facts.claimed

    @property
    def claimed_text(self) -> str:
        if self.verdict is not None:
            return self.verdict.claimed_text
        return "" if self.claimed is None else exactly(self.claimed)

    @property
    def tags(self) -> tuple[str, ...]:
        return () if self.standing is None else self.standing.facts.tags

    @property
    def words(self) -> str:
        """What a text is looked for in."""
        facts = None if self.standing is None else self.standing.facts
        return "\n".join((self.id, *(() if facts is None else (facts.name, facts.attack or "", *facts.tags)))).lower()


def _of_standing(pick: Callable[[Standing], Any]) -> Callable[[Row], Any]:
    return lambda row: None if row.standing is None or row.standing.trouble else pick(row.standing)


def _natural(name: str) -> list[tuple[int, int, str]]:
    """So that run 9 comes before run 10."""
    return [(0, int(p[:18]), p) if p.isdecimal() else (1, 0, p) for p in re.split(r"([0-9]+)", name.lower()) if p]


# Columns in their order: the title, what rows are sorted by, and whether a first click sorts the largest to the top.
COLUMNS: dict[str, tuple[str, Callable[[Row], Any], bool]] = {
    "name": ("Run", lambda row: (_natural(row.name), row.id), False),
    "date": ("Begun", _of_standing(lambda s: s.facts.begun), True),
    "state": ("State", _of_standing(lambda s: s.state), False),
    "models": ("Models", _of_standing(lambda s: s.n_models), True),
    "attack": ("Attack", _of_standing(lambda s: s.facts.attack), False),
    "verdict": ("Verdict", lambda row: None if row.verdict is None else RULINGS.index(row.verdict.kind), False),
    "bound": ("ε at least", lambda row: None if row.verdict is None else row.verdict.bounds[0].value, True),
    "claim": ("Claimed ε", lambda row: row.claimed, True),
}
NUMBERS = ("models", "bound", "claim")


@dataclass(frozen=True)
class Wanted:
    """What an address asks for; what it does not know of it leaves out."""

    text: str = ""
    verdict: str = ""
    tags: tuple[str, ...] = ()
    sort: str = "name"
    down: bool = False

    @classmethod
    def parse(cls, query: Mapping[str, str], tags: Iterable[str] = ()) -> Wanted:
        sort, verdict = query.get("sort", ""), query.get("verdict", "")
        return cls(
            query.get("q", "").strip()[:LONGEST],
            verdict if verdict in RULINGS else "",
            tuple(dict.fromkeys(tag[:LONGEST] for tag in tags if tag)),
            sort if sort in COLUMNS else "name",
            query.get("down") == "1",
        )

    @property
    def narrows(self) -> bool:
        return bool(self.text or self.verdict or self.tags)

    def may_show(self, row: Row) -> bool:
        """By what is known without a result: what is not shown needs no verdict, and is no look."""
        words = row.words
        return all(word in words for word in self.text.lower().split()) and set(self.tags) <= set(row.tags)

    def shown(self, rows: Iterable[Row]) -> list[Row]:
        """Those that are asked for, in order; whatever has no value comes last, upwards and downwards."""
        key = COLUMNS[self.sort][1]
        chosen = [row for row in rows if not self.verdict or (row.verdict and row.verdict.kind == self.verdict)]
        chosen.sort(key=COLUMNS["name"][1])
        known = sorted((row for row in chosen if key(row) is not None), key=key, reverse=self.down)
        return known + [row for row in chosen if key(row) is None]

    def sorted_by(self, column: str) -> Wanted:
        """What a click on a column asks for: a second one turns the order round."""
        first = COLUMNS[column][2]
        return replace(self, sort=column, down=not self.down if column == self.sort else first)

    def toggled(self, tag: str) -> Wanted:
        left = tuple(t for t in self.tags if t != tag)
        return replace(self, tags=left if tag in self.tags else (*self.tags, tag))

    @property
    def address(self) -> str:
        pairs = [("q", self.text), ("verdict", self.verdict), *(("tag", tag) for tag in self.tags)]
        pairs += [("sort", "" if self.sort == "name" else self.sort), ("down", "1" if self.down else "")]
        query = urlencode([pair for pair in pairs if pair[1]])
        return f"/?{query}" if query else "/"
