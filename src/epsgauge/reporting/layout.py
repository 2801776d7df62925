"""Pieces that the answers in the terminal share: rows of methods, lettered assumptions, hanging lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from epsgauge.plain import SENTENCE, plain
from epsgauge.stats.interval import Kind

if TYPE_CHECKING:
    from epsgauge.auditing.audit import Audit

NARROWEST = 10  # columns of a text
PROMISE_STYLE = {"credible": "cyan", "estimate": "yellow", "guaranteed": "green"}


class Promising(Protocol):
    """What a row of any table of methods has."""

    @property
    def label(self) -> str: ...

    @property
    def meaning(self) -> str: ...

    @property
    def promise(self) -> Kind: ...

    @property
    def assumptions(self) -> tuple[str, ...]: ...


def letters(rows: Iterable[Promising]) -> dict[str, str]:
    """A letter for each assumption, in the order in which they are met."""
    found: dict[str, str] = {}
    for row in rows:
        for assumption in row.assumptions:
            found.setdefault(assumption, chr(ord("a") + len(found)))
    return found


def meanings(rows: Sequence[Promising]) -> list[tuple[Kind, str]]:
    """What each promise means, and of which methods where it means different things; those of one promise together."""
    owners: dict[Kind, dict[str, list[str]]] = {}
    for row in rows:
        owners.setdefault(row.promise, {}).setdefault(row.meaning, []).append(row.label)
    return [
        (promise, meaning if len(each) == 1 else f"{meaning} ({', '.join(dict.fromkeys(labels))})")
        for promise, each in owners.items()
        for meaning, labels in each.items()
    ]


def notes(rows: Sequence[Promising], console: Console) -> None:
    """What the promises mean, each word once, and which assumptions the letters stand for."""
    last = None
    for promise, meaning in meanings(rows):
        console.print(hanging(f"{'' if promise == last else promise:<11}", meaning, PROMISE_STYLE[promise]))
        last = promise
    for assumption, letter in letters(rows).items():
        console.print(hanging(f"{letter:<11}", assumption, "dim"))


def warnings(texts: Iterable[str], console: Console) -> None:
    for text in texts:
        console.print(hanging("! ", text, "bold yellow"))


def title(text: Text, console: Console) -> None:
    """A line that begins with a name: where it goes on in the next one, that is indented, as no line of ours is."""
    first, *others = text.wrap(console, max(console.width - 2, 1))
    console.print(first, *(Text("  ").append(line) for line in others), sep="\n")


def said(text: str, style: str = "") -> Text:
    """A sentence, whatever names are in it."""
    return Text(plain(text, SENTENCE), style=style)


def hanging(head: str, text: str | Text, style: str) -> RenderableType:
    """A head, and text that keeps clear of it on further lines; what came from a file is one line of letters."""
    return _Hanging(Text(plain(head), style=style), text if isinstance(text, Text) else said(text))


@dataclass(frozen=True)
class _Hanging:
    """Lines end where their text does."""

    head: Text
    text: Text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = self.head.cell_len
        for number, line in enumerate(self.text.wrap(console, max(options.max_width - width, NARROWEST)) or [Text()]):
            line.rstrip()
            yield Text.assemble(Text(" " * width) if number else self.head, line)


def counted(audit: Audit) -> tuple[str, ...]:
    """What the verdict's bound counts, where that is not what the threshold judged."""
    n = int(audit.verdict.tally.n_samples)
    same = n == int(audit.judged.tally.n_samples)
    return () if same else (f"the verdict's bound counts N = {n}, {audit.verdict.decided_by.counts}",)
