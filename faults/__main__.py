"""Faults by the thousand, and what comes of them.

    python -m faults [--n 1000] [--kills 20] [--seed 1] [--only clusters]

Prints how many faults of each kind were tried, and how many of them lost something, gave a wrong answer without a
word, hung, or ended in a traceback. Exits with 1 unless all of these are 0.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

from faults import (
    broken_off,
    clusters,
    commands,
    directories,
    edits,
    expanding,
    forgeries,
    kills,
    readers,
    stores,
    strangers,
)
from faults.count import Count

HARMS = ("lost", "wrong", "hung", "traceback")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=1000, help="mutations of each kind")
    parser.add_argument("--kills", type=int, default=20, help="of a run one by one, and as many of one in groups")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", metavar="CAMPAIGN", help="the name of a file of faults/")
    args = parser.parse_args()
    n, seed, start = args.n, args.seed, time.perf_counter()
    warnings.simplefilter("ignore")  # of NumPy, about what the mutations hold
    found: list[Count] = []
    print(f"{'fault':44}{'tried':>7}{'refused':>9}" + "".join(f"{harm:>11}" for harm in HARMS), flush=True)
    with tempfile.TemporaryDirectory(prefix="faults-") as name:
        scratch = Path(name)
        os.chdir(scratch)  # what a command writes by mistake
        run, named = stores.a_run(scratch / "run"), stores.a_run(scratch / "named", directories.NAME)
        campaigns: dict[str, Callable[[], list[Count]]] = {
            "stores": lambda: stores.campaign(n, seed, scratch),
            "forgeries": lambda: forgeries.campaign(n, seed, scratch),
            "readers": lambda: readers.campaign(n, seed, scratch),
            "commands": lambda: commands.campaign(n, seed, scratch, run),
            "directories": lambda: directories.campaign(run, named, scratch),
            "strangers": lambda: strangers.campaign(scratch),
            "expanding": lambda: expanding.campaign(scratch),
            "broken off": lambda: broken_off.campaign(n, seed, scratch),
            "edits": lambda: edits.campaign(seed, scratch),
            "kills": lambda: kills.campaign(args.kills, seed, scratch),
            "clusters": lambda: clusters.campaign(scratch),
        }
        if args.only not in (None, *campaigns):
            parser.error(f"--only must be one of {', '.join(campaigns)}, but got {args.only}")
        for campaign in campaigns.values() if args.only is None else [campaigns[args.only]]:
            for count in campaign():
                found.append(count)
                harms = "".join(f"{getattr(count, harm):11}" for harm in HARMS)
                print(f"{count.fault:44}{count.tried:7}{count.refused:9}{harms}", flush=True)
                for example in count.examples[:3]:
                    print(f"    {example}", flush=True)
    harms = "".join(f"{sum(getattr(count, harm) for count in found):11}" for harm in HARMS)
    tried, refused = sum(count.tried for count in found), sum(count.refused for count in found)
    print(f"{'in all':44}{tried:7}{refused:9}{harms}")
    print(f"seed {seed}, {time.perf_counter() - start:.0f} s; refused: with a sentence; the others changed no answer")
    return 0 if all(count.harmless for count in found) else 1


if __name__ == "__main__":
    sys.exit(main())
