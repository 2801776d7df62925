"""Time one 90 % credible interval of ε: epsgauge, the authors' package and plain SciPy, on the same tallies.

Prints times and ratios and judges nothing. `benchmarks/README.md` says how to read the table.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import authors
import by_scipy
import numpy as np
import startup
from numpy.typing import NDArray
from scipy import special
from tallies import DELTA, LEVEL, PAPER, Cells, random_tallies
from timing import Job, Timing, interleave, machine, on_one_thread, peak_megabytes

import epsgauge as eg

SINGLE = "epsgauge, one at a time"
UNIT = "scipy.special.betainc, one value"
TIGHT, USUAL = (f"SciPy quad + brentq, to {t.name}" for t in (by_scipy.TIGHT, by_scipy.USUAL))
POINTS = 16  # values of betainc for each shape
BIG, BIG_ROUNDS = 10_000, 3  # a batch from BIG on takes part in so many rounds only


def ours(cells: Cells | NDArray[np.int64]) -> eg.Interval:
    """A fresh posterior and its interval, for one tally or for rows of them."""
    tp, tn, fp, fn = np.asarray(cells).T
    return eg.estimate(eg.Tally(tp=tp, tn=tn, fp=fp, fn=fn), delta=DELTA).interval(LEVEL)


def one_by_one(rows: Iterable[Cells]) -> list[eg.Interval]:
    return [ours(cells) for cells in rows]


def with_scipy(rows: Iterable[Cells], tolerance: by_scipy.Tolerance) -> list[tuple[float, float]]:
    return [by_scipy.interval(cells, delta=DELTA, level=LEVEL, tolerance=tolerance) for cells in rows]


def betainc_job(rows: NDArray[np.int64]) -> Job:
    """Values of the incomplete beta function over the bulk of each rate's posterior, all in one call."""
    tp, tn, fp, fn = rows.T
    a, b = (np.concatenate(pair)[:, None] + 0.5 for pair in ((fn, fp), (tp, tn)))
    x = special.betaincinv(a, b, (np.arange(POINTS) + 0.5) / POINTS)
    return Job(UNIT, x.size, lambda: special.betainc(a, b, x))


def batch_name(n: int) -> str:
    return f"epsgauge, batch of {n:,}"


def largest_gap(rows: Iterable[Cells], tolerance: by_scipy.Tolerance) -> float:
    """The largest difference of an end between SciPy's way and ours."""
    gaps = [
        np.abs(np.array(theirs) - np.array([mine.low, mine.high])).max()
        for theirs, mine in zip(with_scipy(rows, tolerance), one_by_one(rows), strict=True)
    ]
    return float(max(gaps))


def measure_paper(rounds: int) -> dict[str, Timing]:
    """All competitors on the 24 rows of the paper's tables."""
    rows = np.array(PAPER)
    jobs = [
        Job(SINGLE, len(PAPER), partial(one_by_one, PAPER)),
        Job(batch_name(len(PAPER)), len(PAPER), partial(ours, rows)),
        Job(TIGHT, len(PAPER), partial(with_scipy, PAPER, by_scipy.TIGHT)),
        Job(USUAL, len(PAPER), partial(with_scipy, PAPER, by_scipy.USUAL)),
        betainc_job(rows),
    ]
    return interleave(jobs, rounds)


def measure_random(rounds: int, sizes: list[int], seed: int) -> tuple[dict[str, Timing], dict[str, float]]:
    """Batches of random tallies; one at a time and SciPy work on the tallies of the smallest batch."""
    rows = random_tallies(sizes[-1], seed=seed)
    few = [(int(tp), int(tn), int(fp), int(fn)) for tp, tn, fp, fn in rows[: sizes[0]]]
    jobs = [
        Job(SINGLE, len(few), partial(one_by_one, few)),
        *(Job(batch_name(n), n, partial(ours, rows[:n]), BIG_ROUNDS if n >= BIG else None) for n in sizes),
        Job(TIGHT, len(few), partial(with_scipy, few, by_scipy.TIGHT)),
        betainc_job(rows[: sizes[1]]),
    ]
    before = peak_megabytes()
    return interleave(jobs, rounds), {"before": before, "after": peak_megabytes()}


def print_table(title: str, timings: dict[str, Timing], base: str) -> None:
    print(f"\n{title}")
    print(f"{'':36}{'ms per interval':>16}{'quartiles':>21}{'ratio':>10}")
    for name, timing in timings.items():
        if name != UNIT:
            low, high = timing.quartiles
            spread = f"{low:.4g} to {high:.4g}"
            print(f"{name:36}{timing.median:16.4g}{spread:>21}{_ratio(timing.over(timings[base])):>10}")
    unit = timings[UNIT]
    print(f"{UNIT}: {unit.median * 1e6:.0f} ns; in this unit an interval costs")
    for name, timing in timings.items():
        if name.startswith("epsgauge"):
            print(f"  {name:34}{timing.over(unit):16,.0f}")


def print_authors(answers: list[authors.Answer]) -> None:
    print(f"\n{authors.PACKAGE}, each call in its own process")
    print(f"{'tp, tn, fp, fn':20}{'CPU seconds':>12}{'ends':>17}{'ours':>17}{'difference':>19}{'ratio':>11}")
    for answer in answers:
        mine = ours(answer.cells)
        cells = ", ".join(map(str, answer.cells))
        theirs, gap, ratio = "none", "", ""
        if answer.ends:
            low, high = answer.ends
            theirs, gap = f"{low:.4f}, {high:.4f}", f"{low - mine.low:+.4f}, {high - mine.high:+.4f}"
            again = interleave([Job(cells, 1, partial(ours, answer.cells))], 25)[cells]
            ratio = _ratio(answer.seconds * 1e3 / again.median)
        both = f"{mine.low:.4f}, {mine.high:.4f}"
        print(f"{cells:20}{answer.seconds:12.1f}{theirs:>17}{both:>17}{gap:>19}{ratio:>11}")
        if answer.failure:
            print(f"    fails: {answer.failure}")


def print_starts(starts: dict[str, startup.Start | None]) -> None:
    print("\nStart of the command line, in ms")
    print(f"{'':42}{'CPU':>7}{'quartiles':>14}{'ratio':>8}{'wall clock':>13}{'ratio':>8}")
    for command, start in starts.items():
        if start is None:
            print(f"{command:42}{'not available':>21}")
            continue
        spread = "{:.0f} to {:.0f}".format(*start.cpu_quartiles)
        print(
            f"{command:42}{start.cpu:7.0f}{spread:>14}{start.cpu_ratio:7.2f}×{start.wall:13.0f}{start.wall_ratio:7.2f}×"
        )


def print_figures(paper: dict[str, Timing], random: dict[str, Timing], starts: dict[str, startup.Start | None]) -> None:
    """The two figures that are watched: one interval alone, and one answer of the command line."""
    print("\nIn short")
    for what, timings in (("the paper's tallies", paper), ("random tallies", random)):
        one, unit = timings[SINGLE], timings[UNIT]
        print(f"one interval, {what}: {one.median:.2f} ms, or {one.over(unit):,.0f} values of betainc")
    if start := starts[startup.ANSWER]:
        print(f"{startup.ANSWER}: {start.cpu_ratio:.2f} times the CPU time of {startup.BASE}")


def _ratio(value: float) -> str:
    return f"{value:,.2f}×" if value < 100 else f"{value:,.0f}×"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a smoke test: few rounds, small batches, no peers")
    parser.add_argument("--rounds", type=int, help="rounds of everything in this process (7; quick 2)")
    parser.add_argument("--peers", type=int, default=2, help="tallies for the authors' package (2, at most 4)")
    parser.add_argument("--no-peers", action="store_true", help="leave the authors' package out")
    parser.add_argument("--peer-env", type=Path, default=authors.HOME, help="its virtual environment, made if missing")
    parser.add_argument("--limit", type=float, default=900.0, help="seconds for each of its calls (900)")
    parser.add_argument("--seed", type=int, default=0, help="of the random tallies")
    parser.add_argument("--json", type=Path, help="write every measurement to this file too")
    return parser.parse_args()


def main() -> None:
    args = _arguments()
    rounds = args.rounds or (2 if args.quick else 7)
    sizes = [10, 100, 1_000] if args.quick else [10, 1_000, 100_000]
    found: dict[str, Any] = {"machine": machine(), "rounds": rounds, "seed": args.seed}
    print("\n".join(f"{key:16} {value}" for key, value in found["machine"].items()))
    print(f"A {LEVEL:.0%} credible interval of ε at δ = {DELTA:g}; CPU time, medians of {rounds} interleaved rounds")

    one_by_one(PAPER)  # caches and lazy imports are not what is measured
    paper = measure_paper(rounds)
    print_table("The 24 rows of the paper's tables", paper, SINGLE)
    gaps = {t.name: largest_gap(PAPER, t) for t in (by_scipy.TIGHT, by_scipy.USUAL)}
    print("largest difference from epsgauge: " + ", ".join(f"SciPy to {name}: {gap:.0e}" for name, gap in gaps.items()))

    random, memory = measure_random(rounds, sizes, args.seed)
    print_table(f"Random tallies; {SINGLE.split(', ')[1]} and SciPy on the first {sizes[0]}", random, SINGLE)
    print(f"peak memory: {memory['before']:.0f} MB before the batches, {memory['after']:.0f} MB after them")

    answers: list[authors.Answer] = []
    if not (args.no_peers or args.quick):
        python = authors.prepare(args.peer_env)
        ask = partial(authors.interval, python, delta=DELTA, level=LEVEL, limit=args.limit)
        answers = [ask(cells) for cells in authors.TALLIES[: args.peers]]
        print_authors(answers)

    starts = startup.measure(3 if args.quick else 9)
    print_starts(starts)
    print_figures(paper, random, starts)

    if args.json:
        found |= {"paper": paper, "random": random, "memory_mb": memory, "difference": gaps}
        found |= {"authors": answers, "startup": starts}
        args.json.write_text(json.dumps(found, default=asdict, indent=1) + "\n")


if __name__ == "__main__":
    on_one_thread()
    main()
