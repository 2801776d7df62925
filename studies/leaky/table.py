"""The results as the tables of docs/heuristic.md: `python studies/leaky/table.py` writes them there."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

from settings import HERE, SETTINGS, Setting

PAGE = HERE.parent.parent / "docs" / "heuristic.md"
HEAD = (
    *("", "n", "m", "m/n", "models", "TPR − FPR", "to m = 1", "design effect"),
    *("ε at 0", "cover", "ε at the audit's", "cover"),
)
PRIVACY = {"none": "no DP", "dp4": "ε ≈ 4", "dp10": "ε ≈ 10"}
# The tables: their marks, and which settings and attack each has.
TABLES = {
    "leaky-none": ("none", "record", "difference"),
    "leaky-updates-dp10": ("dp10", "record", "updates"),
    "leaky-updates-dp4": ("dp4", "record", "updates"),
    "leaky-losses-dp10": ("dp10", "record", "difference"),
    "leaky-losses-dp4": ("dp4", "record", "difference"),
    "leaky-gradients-dp10": ("dp10", "gradient", "updates"),
    "leaky-gradients-dp4": ("dp4", "gradient", "updates"),
}
FAR = 3.0  # standard errors


def main() -> None:
    page = PAGE.read_text()
    made = filled(page)
    if "--check" in sys.argv:
        sys.exit(0 if made == page else f"{PAGE} is not what the results say: run {sys.argv[0]}")
    PAGE.write_text(made)


def filled(page: str) -> str:
    """The page with each table between its two marks."""
    for name, (privacy, inserts, attack) in TABLES.items():
        some = [s for s in SETTINGS if (s.privacy, s.inserts) == (privacy, inserts)]
        marks = re.compile(f"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        page = marks.sub(lambda found, some=some, attack=attack: found[1] + table(some, attack) + found[2], page)
    return page


def table(settings: list[Setting], attack: str) -> str:
    """Markdown, and a line that says from which m on TPR − FPR is off, and which n was not run."""
    lines = ["| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD)]
    notes, spent, models = [], 0, 0
    for setting in settings:
        file = HERE / "results" / f"{setting.name}.json"
        if not file.exists():
            notes.append(f"n = {setting.train_size}: not run.")
            continue
        result = json.loads(file.read_text())
        zero, audit = (result["rows"][f"{attack}-{which}"] for which in ("zero", "audit"))
        for i, (row, other) in enumerate(zip(zero, audit, strict=True)):
            names = (PRIVACY[setting.privacy], str(setting.train_size)) if i == 0 else ("", "")
            lines.append("| " + " | ".join((*names, *cells(row, other, setting.train_size))) + " |")
        notes.append(f"n = {setting.train_size}: {beginning(zero)}")
        spent, models = spent + result["core_seconds"], models + result["models"]
    note = f"{' '.join(notes)} {models:,} models, {spent / 60:.0f} minutes of training on a core that others used too."
    return "\n".join([*lines, "", note, ""])


def beginning(rows: list[dict[str, Any]]) -> str:
    """From which m on the difference to m = 1 is more than FAR standard errors."""
    far = [row for row in rows[1:] if abs(row["off"]) > FAR * row["off_error"]]
    if not far:
        return f"no m is off by more than {FAR:g} standard errors."
    one, first, last = rows[0], far[0], rows[-1]
    text = f"off by more than {FAR:g} standard errors from m = {first['m']} on"
    return (
        f"{text}; at m = {last['m']} TPR − FPR is {100 * last['advantage'] / one['advantage']:.0f} % of that at m = 1."
    )


def cells(row: dict[str, Any], other: dict[str, Any], n: int) -> tuple[str, ...]:
    one = row["m"] == 1
    return (
        str(row["m"]),
        f"{row['m'] / n:.4g}",
        str(row["models"]),
        f"{row['advantage']:.3f} ± {row['standard_error']:.3f}",
        "" if one else f"{row['off']:+.3f} ± {row['off_error']:.3f}",
        "" if one else f"{row['design_effect']:.2f}",
        *interval(row),
        *interval(other),
    )


def interval(row: dict[str, Any]) -> tuple[str, str]:
    """The median ends of an estimate's interval, and how many of them hold the ε of m = 1."""
    return f"[{row['low']:.2f}, {row['high']:.2f}]", f"{row['cover']} of {row['estimates']}"


if __name__ == "__main__":
    main()
