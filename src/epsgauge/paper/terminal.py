"""The reproduction for the terminal: what agrees is dim, what differs has a sign and the number of a note."""

from __future__ import annotations

from rich.console import Console
from rich.rule import Rule
from rich.table import Table as Grid
from rich.text import Text

from epsgauge.methods.table import METHODS
from epsgauge.paper.compare import Compared
from epsgauge.paper.examples import Example
from epsgauge.paper.reproduction import Reproduction
from epsgauge.paper.tables import Row, Table

SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
LABEL = 15  # Clopper-Pearson
# Of each pair: its name, and the widths of the printed and of the recomputed number.
PAIRS = (("low", 6, 8), ("high", 4, 6), ("width", 5, 6), ("vs CP, %", 5, 6))
SIGN = 3  # " ≠ "
ROOMY = 96  # columns from which the pairs stand further apart


def show(found: Reproduction, console: Console) -> None:
    """Print all of it."""
    _Page(found, console).show()


class _Page:
    def __init__(self, found: Reproduction, console: Console) -> None:
        self.found = found
        self.console = console
        self.gap = 4 if console.width >= ROOMY else 1

    def show(self) -> None:
        self._say(
            "Every printed number of the paper's tables (paper) beside the same number recomputed with one digit more "
            "(here). ≠ marks a difference beyond rounding; the small number is that of the note at the end. "
            f"The tables are at δ = {_short(self.found.delta)} and level {100 * self.found.level:g} %."
        )
        for table in (self.found.summary, *self.found.tables):
            self._table(table)
        self._title("Examples", "numbers of the text, outside the tables")
        for example in self.found.examples:
            self._example(example)
        self._notes()

    def _table(self, table: Table) -> None:
        self._title(f"Table {table.number}", table.title)
        self._print(self._head())
        for row in table.rows:
            t = row.tally
            line = Text(f"{row.label}   ", style="bold")
            line.append(f"TP {t.tp}  TN {t.tn}  FP {t.fp}  FN {t.fn}", style="not bold")
            self._print(line)
            self._methods(row)

    def _methods(self, row: Row) -> None:
        for name, cells in row.methods.items():
            line = Text(f"  {METHODS[name].label:<{LABEL}}")
            for cell, (_, printed, recomputed) in zip(cells.cells, PAIRS, strict=False):
                line.append(" " * self.gap)
                line.append_text(self._pair(cell, printed, recomputed))
            self._print(line)

    def _head(self) -> Text:
        above, below = " " * (2 + LABEL), " " * (2 + LABEL)
        for name, printed, recomputed in PAIRS:
            above += " " * self.gap + f"{name:^{printed + SIGN + recomputed}}"
            below += " " * self.gap + f"{'paper':>{printed}}{'':{SIGN}}{'here':<{recomputed}}"
        return Text(f"{above.rstrip()}\n{below.rstrip()}", style="dim")

    def _example(self, example: Example) -> None:
        self.console.print()
        heading = Text(example.where, style="bold")
        heading.append(f"  {example.title}", style="not bold")
        self.console.print(heading)
        room = max(len(item.label) for item in example.items)
        for item in example.items:
            line = Text(f"  {item.label:<{room}}")
            line.append(" " * min(2, self.gap))
            line.append_text(self._pair(item.compared, 6, 8))
            self._print(line)

    def _pair(self, cell: Compared, printed: int, recomputed: int) -> Text:
        """The printed number, the sign if they differ, and ours."""
        if cell.agrees:
            text = f"{cell.printed_text:>{printed}}{'':{SIGN}}{cell.recomputed_text:<{recomputed}}"
            return Text(text, style="" if cell.printed is None else "dim")
        mark = "" if cell.note is None else str(self.found.numbers[cell.note]).translate(SUPERSCRIPTS)
        pair = Text(f"{cell.printed_text:>{printed}}")
        pair.append(f"{'≠':^{SIGN}}{cell.recomputed_text + mark:<{recomputed}}", style="bold yellow")
        return pair

    def _notes(self) -> None:
        self._title("Notes", "why a number differs")
        grid = Grid.grid(padding=(0, 1, 0, 0))
        grid.add_column(justify="right", style="bold yellow", no_wrap=True)
        grid.add_column()
        for key, text in self.found.notes.items():
            grid.add_row(str(self.found.numbers[key]), Text(text))
        self.console.print(grid)
        self.console.print()
        for name, parts in (
            ("the summary", (self.found.summary,)),
            ("the six tables", self.found.tables),
            ("the examples", self.found.examples),
        ):
            cells = [cell for part in parts for cell in part.cells() if cell.printed is not None]
            differing = sum(cell.differs for cell in cells)
            self.console.print(
                Text(f"{len(cells)} numbers of {name}: {len(cells) - differing} agree, {differing} differ")
            )

    def _title(self, name: str, text: str) -> None:
        self.console.print()
        title = Text(f"{name}  ", style="bold")
        title.append(text, style="not bold")
        self.console.print(Rule(title, align="left", style="dim"))

    def _say(self, text: str) -> None:
        self.console.print(Text(text))

    def _print(self, line: Text) -> None:
        line.rstrip()
        self.console.print(line, no_wrap=True, overflow="ignore", crop=False)


def _short(number: float) -> str:
    """1e-5, where Python says 1e-05."""
    return f"{number:g}".replace("e-0", "e-")
