"""All shipped bugs and their twins, each in a process of its own, as a table.

    python -m zoo.shipped [--only opendp-pairs …] [--seed 1] [--seeds 20] [--twins] [--json]

Exits with 1 if a bug was missed or a twin was called one. Wheels that pip cannot get are skipped, with the reason.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from zoo.shipped.cases import CASES, MISSES
from zoo.shipped.one import run

WORKERS = 2


def found(row: dict[str, Any]) -> str:
    if "skipped" in row:
        return f"skipped: {row['skipped']}"
    if "bound" in row:
        return f"ε ≥ {row['bound']:.2f}, claimed {row['claim']:.2f}"
    return ", ".join(row["findings"]) or "nothing"


def table(rows: Sequence[dict[str, Any]]) -> str:
    lines = [("case", "wheel", "found", "by", "N", "seconds", "caught")]
    for row in rows:
        name = f"{row['name']}, twin" if row["twin"] else row["name"]
        wheel = f"{row['library']} {row['version']}"
        said = [str(row.get(key, "")) for key in ("judged_by", "n", "seconds")]
        caught = {True: "yes", False: "no"}.get(row.get("caught"), "")
        lines.append((name, wheel, found(row), *said, caught))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(f"{c:<{w}}" for c, w in zip(line, widths, strict=True)).rstrip() for line in lines)


def summary(rows: Sequence[dict[str, Any]]) -> str:
    """How often bugs were found and twins taken for one, beside what chance allows."""
    judged = [row for row in rows if "caught" in row]
    bugs, twins = ([row for row in judged if row["twin"] is twin] for twin in (False, True))
    by_chance = MISSES * len(twins)
    return (
        f"bugs caught: {sum(row['caught'] for row in bugs)} of {len(bugs)}; false alarms of twins: "
        f"{sum(row['caught'] for row in twins)} of {len(twins)}, where chance allows {by_chance:.2g}; "
        f"skipped: {len(rows) - len(judged)}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--seeds", type=int, default=1, help="how many")
    parser.add_argument("--twins", action="store_true", help="twins alone")
    parser.add_argument("--json", action="store_true", help="one line per run, as it is done")
    given = parser.parse_args()
    kinds = (True,) if given.twins else (False, True)
    jobs = [(name, twin, given.seed + i) for i in range(given.seeds) for name in given.only for twin in kinds]
    rows = []
    with ThreadPoolExecutor(WORKERS) as pool:
        for row in pool.map(lambda job: run(job[0], twin=job[1], seed=job[2]), jobs):
            rows.append(row)
            if given.json:
                print(json.dumps(row, ensure_ascii=False), flush=True)
    if not given.json:
        print(table(rows))
    print(summary(rows), file=sys.stderr if given.json else sys.stdout)
    sys.exit(any(row["caught"] == row["twin"] for row in rows if "caught" in row))


if __name__ == "__main__":
    main()
