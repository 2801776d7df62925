"""The results as the tables of docs/heuristic.md: `python studies/heuristic/table.py` writes them there."""

from __future__ import annotations

import json
import math
import re
import sys
from typing import Any

from families import FAMILIES, HERE, Family

PAGE = HERE.parent.parent / "docs" / "heuristic.md"
PRIVACY = {"dp1": "ε ≈ 1", "dp4": "ε ≈ 4", "dp10": "ε ≈ 10", "none": "no DP"}
HEAD = ("", "points", "m", "models", "90 % credible, N = 1000", "ΔF to m = 1", "ΔF at this m", "TPR − FPR", "spread")


def main() -> None:
    page = PAGE.read_text()
    made = filled(page)
    if "--check" in sys.argv:
        sys.exit(0 if made == page else f"{PAGE} is not what the results say: run {sys.argv[0]}")
    PAGE.write_text(made)


def filled(page: str) -> str:
    """The page with the table of each family between its two marks."""
    for family in FAMILIES.values():
        marks = re.compile(f"(<!-- {family.name} -->\n).*?(<!-- end -->)", re.DOTALL)
        page = marks.sub(lambda found, family=family: found[1] + table(family) + found[2], page)
    return page


def table(family: Family) -> str:
    """Markdown; settings that were not run are left out and named below it."""
    lines = ["| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD)]
    models, seconds, missing, found = 0, 0, [], []
    for privacy, challenge in family.settings:
        file = HERE / "results" / f"{family.name}-{privacy}-{challenge}.json"
        if not file.exists():
            missing.append(f"{PRIVACY[privacy]} {challenge}")
            continue
        result = json.loads(file.read_text())
        models, seconds = models + result["models"], seconds + result["core_seconds"]
        found.append(result)
        for i, row in enumerate(result["rows"]):
            names = (PRIVACY[privacy], challenge) if i == 0 else ("", "")
            lines.append("| " + " | ".join((*names, *cells(row))) + " |")
    note = summary(found)
    note += f" {models:,} models, {seconds / 3600:.1f} hours of training, one process on a core that others used too."
    if missing:
        note += f" Not run: {', '.join(missing)}."
    return "\n".join([*lines, "", note, ""])


def summary(results: list[dict[str, Any]]) -> str:
    """By how many standard errors TPR − FPR differs from that with m = 1, and how far the spread is from 1."""
    said = []
    for m in [row["m"] for row in results[0]["rows"][1:]] if results else []:
        pairs = [(result["rows"][0], row) for result in results for row in result["rows"] if row["m"] == m]
        off = sorted(
            (row["advantage"] - one["advantage"]) / math.hypot(row["standard_error"], one["standard_error"])
            for one, row in pairs
        )
        text = f"m = {m}: TPR − FPR is off by {off[0]:.1f} to {off[-1]:.1f} standard errors"
        square = sum(z * z for z in off)
        text += f" (χ² = {square:.1f} of {len(off)})"
        spreads = [row["spread_over_binomial"] for _, row in pairs if row["spread_over_binomial"] is not None]
        if spreads:
            text += f", spread {min(spreads):.2f} to {max(spreads):.2f}, in the mean {sum(spreads) / len(spreads):.2f}"
        said.append(text + ".")
    return " ".join(said)


def cells(row: dict[str, Any]) -> tuple[str, ...]:
    between, spread = row["cdf_between_estimates"], row["spread_over_binomial"]
    return (
        str(row["m"]),
        str(row["n_models"]),
        f"[{row['low']:.2f}, {row['high']:.2f}]",
        "" if row["m"] == 1 else f"{row['cdf_difference']:.2f}",
        "" if between is None else f"{between:.2f}",
        f"{row['advantage']:.3f} ± {row['standard_error']:.3f}",
        "" if spread is None else f"{spread:.2f}",
    )


if __name__ == "__main__":
    main()
