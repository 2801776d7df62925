"""How long scores take: every estimator on 1e3 to 1e6 of them, and files of a million beside NumPy's reader."""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import by_jax_privacy
import numpy as np
from timing import machine, on_one_thread

import epsgauge as eg
from epsgauge.bounds import bands, exact
from epsgauge.bounds.anytime import anytime_interval
from epsgauge.bounds.dependence import cluster_interval
from epsgauge.bounds.exact import exact_lower_bound
from epsgauge.bounds.guesses import all_guesses
from epsgauge.bounds.one_run import one_run_fdp_eps
from epsgauge.bounds.pooled import pooled_bound
from epsgauge.bounds.simultaneous import Rules, simultaneous_lower_bound
from epsgauge.methods.table import QUICK
from epsgauge.scores.rules import Given, judge
from epsgauge.scores.search import search
from epsgauge.scores.table import Scores
from epsgauge.stats.arrays import Floats

ROWS = 10**6
ROUNDS = 5
SIZES = (10**3, 10**4, 10**5, 10**6)
DELTA, LEVEL = 1e-5, 0.95
M = 100
BASE = "simultaneous"
Jobs = dict[str, Callable[[], Any]]


def drawn(n: int) -> tuple[Floats, Floats]:
    """Scores with b = 1 and with b = 0: Gaussian, μ = 1."""
    rng = np.random.default_rng(0)
    return rng.normal(1.0, 1.0, n // 2), rng.normal(0.0, 1.0, n // 2)


def jobs(n: int) -> Jobs:
    ins, outs = drawn(n)
    scores = Scores.from_in_out(ins, outs, adjacency="add-remove", models="independent")
    several = Scores(np.arange(n) // M, np.arange(n) % M, scores.bit, scores.score, "add-remove")
    rules: dict[str, dict[str, Any]] = {
        "split": {},
        "same-data": {"rule": "same-data"},
        "given": {"rule": "given", "threshold": 0.5},
    }
    tally = judge(scores, Given(0.5), delta=DELTA).tally
    wrong = several.bit != (several.score >= 0.5)
    fn, n1, fp, n0 = (
        np.add.reduceat(part.astype(int), several.starts)
        for part in (wrong & (several.bit == 1), several.bit == 1, wrong & (several.bit == 0), several.bit == 0)
    )
    return {
        "Scores, from arrays": partial(
            Scores, *(getattr(scores, c) for c in ("model", "pair", "bit", "score")), "substitute"
        ),
        **{f"audit, {name}, m = 1": partial(_audit, scores, rule) for name, rule in rules.items()},
        **{f"audit, {name}, m = {M}": partial(_audit, several, rule) for name, rule in rules.items()},
        **{f"search, all thresholds, {q}": partial(_search, scores, q) for q in QUICK},
        BASE: partial(_simultaneous, ins, outs, "one-sided"),
        f"{BASE}, two cuts": partial(_simultaneous, ins, outs, "two-sided"),
        "pooled": lambda: pooled_bound(all_guesses(tally), delta=DELTA, level=LEVEL),
        "one run f-DP": lambda: one_run_fdp_eps(all_guesses(tally), delta=DELTA, level=LEVEL),
        "anytime": lambda: anytime_interval(tally, delta=DELTA),
        "exact": lambda: (_forget(), exact_lower_bound(tally, delta=DELTA, level=LEVEL)),
        f"clusters, m = {M}": lambda: cluster_interval(fn, n1, fp, n0, delta=DELTA),
    }


def _forget() -> None:
    """The limits that are kept for the next call with as many scores."""
    bands.band.cache_clear()
    bands._local_level.cache_clear()
    exact._of_counts.cache_clear()


def _audit(scores: Scores, rule: dict[str, Any]) -> None:
    """Of a new table, and with nothing kept from the last one."""
    _forget()
    fresh = Scores(scores.model, scores.pair, scores.bit, scores.score, scores.adjacency)
    eg.audit(fresh, delta=DELTA, **rule)


def _search(scores: Scores, method: str) -> None:
    search(scores, delta=DELTA, level=0.9, method=method)


def _simultaneous(ins: Floats, outs: Floats, rules: Rules) -> None:
    _forget()
    simultaneous_lower_bound(ins, outs, delta=DELTA, level=LEVEL, rules=rules)


def estimators(peers: Path, sizes: tuple[int, ...], rounds: int, limit: float) -> None:
    """Seconds of each at each size, and the ratio to `simultaneous` at the largest."""
    for run in jobs(1000).values():  # imports and caches
        run()
    every = [jobs(n) for n in sizes]
    base = _median(every[-1][BASE], rounds)
    print(
        f"CPU seconds, medians of {rounds}; half of the scores with b = 1, Gaussian, μ = 1. The ratio is to {BASE!r},"
    )
    print(f"the search over all thresholds with a proof, at {sizes[-1]:,} scores.")
    print(f"{'':42}" + "".join(f"{n:>11,}" for n in sizes) + f"{'ratio':>9}")
    for name in every[0]:
        _print_row(name, [_median(one[name], rounds) for one in every], base)
    if not by_jax_privacy.available(peers):
        print(f"jax-privacy is not in {peers}: left out")
        return
    for name in by_jax_privacy.NAMES:
        row: list[float | str] = []
        for n in sizes:
            late = bool(row) and isinstance(row[-1], str)  # more scores would take longer still
            ask = partial(by_jax_privacy.seconds, peers, name, *drawn(n), delta=DELTA, level=LEVEL)
            row.append(row[-1] if late else ask(rounds=rounds, limit=limit))
        _print_row(f"jax-privacy: {name}", row, base)


def _print_row(name: str, values: Sequence[float | str], base: float) -> None:
    cells = "".join(f"{v:>11}" if isinstance(v, str) else f"{v:>11.4f}" for v in values)
    ratio = "" if isinstance(values[-1], str) else f"{values[-1] / base:.2f}×"
    print(f"{name:42}{cells}{ratio:>9}", flush=True)


def _median(run: Callable[[], Any], rounds: int) -> float:
    taken = []
    for _ in range(rounds):
        start = time.process_time()
        run()
        taken.append(time.process_time() - start)
    return statistics.median(taken)


def files() -> None:
    rng = np.random.default_rng(0)
    columns = (np.arange(ROWS), np.zeros(ROWS, np.int64), rng.integers(0, 2, ROWS), rng.normal(size=ROWS))
    ids = np.array([f"canary-{i}" for i in range(ROWS)])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        eg.Scores(*columns, "substitute").write(folder / "plain.csv")
        eg.Scores(*columns, "substitute", id=ids).write(folder / "ids.csv")
        eg.Scores(*columns, "substitute").write(folder / "plain.npz")
        eg.Scores(*columns, "substitute").write(folder / "plain.parquet")
        readers: dict[str, Callable[[], Any]] = {
            "epsgauge, CSV": lambda: eg.Scores.read(folder / "plain.csv"),
            "epsgauge, CSV with ids": lambda: eg.Scores.read(folder / "ids.csv"),
            "epsgauge, npz": lambda: eg.Scores.read(folder / "plain.npz"),
            "epsgauge, parquet": lambda: eg.Scores.read(folder / "plain.parquet"),
            "np.loadtxt of the same CSV": lambda: np.loadtxt(folder / "plain.csv", delimiter=",", skiprows=2),
        }
        times: dict[str, list[tuple[float, float]]] = {label: [] for label in readers}
        for _ in range(ROUNDS):
            for label, read in readers.items():
                wall, cpu = time.perf_counter(), time.process_time()
                read()
                times[label].append((time.perf_counter() - wall, time.process_time() - cpu))
    print(f"{ROWS:,} rows, medians of {ROUNDS} rounds\n{'':30}{'wall s':>8}{'CPU s':>8}{'CPU ratio':>11}")
    base = statistics.median(cpu for _, cpu in times["np.loadtxt of the same CSV"])
    for label, taken in times.items():
        wall, cpu = (statistics.median(column) for column in zip(*taken, strict=True))
        print(f"{label:30}{wall:8.2f}{cpu:8.2f}{cpu / base:10.2f}×")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer-env", type=Path, default=by_jax_privacy.HOME, help="an environment with jax-privacy")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for each of its estimators (300)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="a smoke test: up to 10,000 scores, no files")
    args = parser.parse_args()
    print("\n".join(f"{key:16} {value}" for key, value in machine().items()))
    estimators(args.peer_env, SIZES[:2] if args.quick else SIZES, args.rounds, args.limit)
    if not args.quick:
        files()


if __name__ == "__main__":
    on_one_thread()
    main()
