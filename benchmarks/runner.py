"""Time the runner against a bare loop over the same models, and the opening of a store with a million signals.

Prints times and ratios and judges nothing. `benchmarks/README.md` says how to read the tables.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import tracemalloc
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from timing import machine, on_one_thread, peak_megabytes

from epsgauge.auditing.live import Live
from epsgauge.games.signals import Outcome
from epsgauge.runner import play
from epsgauge.runner.plan import Plan
from epsgauge.runner.play import Prepared
from epsgauge.runner.resume import declares, first_entries
from epsgauge.runner.run import run
from epsgauge.runner.store import FILE, Store
from epsgauge.runner.view import Run

HERE = Path(__file__).resolve()
SIZE = 160  # of the matrices that a model multiplies
LEAST = 0.25  # seconds of a bare loop that can be compared
N_STORED, PAIRS, REFERENCE = 10_000, 100, 200


def data() -> tuple[np.ndarray, np.ndarray]:
    return np.random.default_rng(0).normal(size=(500, 4)), np.arange(500)


@dataclass(frozen=True)
class Work:
    """Multiplies matrices `rounds` times and waits; a stand-in for a training of a known length, here or elsewhere."""

    rounds: int = 0
    wait: float = 0.0

    def train(self, data: Any, *, seed: int) -> Any:
        matrix = turn = np.linalg.qr(np.random.default_rng(seed).normal(size=(SIZE, SIZE)))[0]
        for _ in range(self.rounds):
            matrix = matrix @ turn
        time.sleep(self.wait)
        return data[0].mean(axis=0) + matrix[0, 0]

    def losses(self, model: Any, points: Any) -> Any:
        return np.square(points[0] - model).sum(axis=1)


def plan(n_models: int, work: Work) -> Plan:
    trainer = {"use": "runner:Work", **asdict(work)}
    game = {"train_size": 100, "reference_size": 100, "challenge": "average"}
    rule = {"attack": "loss", "rule": "given", "threshold": 0.0}
    return Plan(
        name="b", n_models=n_models, data="runner:data", trainer=trainer, game=game, audit=rule, folder=HERE.parent
    )


def bare(n_models: int, work: Work, first: int, step: int) -> None:
    """The loop that one would write by hand: train and look at each model of the plan, keep nothing."""
    roles, points = play.cut(plan(n_models, work), None)[0], data()
    for index in range(first, n_models, step):
        training = np.concatenate([roles.base, roles.pool[:1]])
        model = work.train(tuple(column[training] for column in points), seed=index)
        work.losses(model, tuple(column[roles.reference] for column in points))


def calibrated(seconds: float) -> int:
    """How many rounds a model of about so many seconds has."""
    rounds = 100
    while True:
        start = time.process_time()
        Work(rounds).train(data(), seed=0)
        spent = time.process_time() - start
        if spent > 0.2:
            return max(1, round(rounds * seconds / spent))
        rounds *= 2


@dataclass(frozen=True)
class Spent:
    wall: float
    cpu: float


def timed(*commands: list[str]) -> Spent:
    """Seconds that some processes of this script take, side by side, with all that they start."""
    before, start = os.times(), time.perf_counter()
    children = [subprocess.Popen([sys.executable, str(HERE), "--do", *words]) for words in commands]
    if any(child.wait() for child in children):
        raise SystemExit("a process of the benchmark failed")
    after = os.times()
    cpu = sum(getattr(after, name) - getattr(before, name) for name in ("children_user", "children_system"))
    return Spent(time.perf_counter() - start, cpu)


@dataclass(frozen=True)
class Round:
    """A bare loop and a run of the same models, and both with next to nothing to do: what it costs to start them."""

    bare: Spent
    run: Spent
    bare_start: Spent
    run_start: Spent

    def ratio(self, what: str, *, after_start: bool = False) -> float:
        """NaN where there is too little to compare."""
        bare, run = getattr(self.bare, what), getattr(self.run, what)
        if after_start:
            bare, run = bare - getattr(self.bare_start, what), run - getattr(self.run_start, what)
        return float(run / bare) if bare > LEAST else np.nan


def both(n_models: int, work: Work, workers: int) -> tuple[Spent, Spent]:
    words = [str(n_models), str(work.rounds), str(work.wait)]
    loops = [["bare", *words, str(first), str(workers)] for first in range(workers)]
    with tempfile.TemporaryDirectory() as out:
        return timed(*loops), timed(["run", *words, out, str(workers)])


def measure_overhead(n_models: int, work: Work, n_rounds: int) -> dict[int, list[Round]]:
    """For 1 and for 2 workers; all of them take turns."""
    found: dict[int, list[Round]] = {1: [], 2: []}
    for _ in range(n_rounds):
        for workers, rounds in found.items():
            rounds.append(Round(*both(n_models, work, workers), *both(workers, Work(), workers)))
    return found


def print_overhead(found: dict[int, list[Round]], n_models: int) -> None:
    print(f"{'':12}{'bare loop':>20}{'epsgauge':>20}{'ratio of wall':>24}{'ratio of CPU':>24}")
    print(f"{'workers':12}" + f"{'wall s':>10}{'models/s':>10}" * 2 + f"{'all':>12}{'after start':>12}" * 2)
    for workers, rounds in found.items():
        cells = ""
        for name in ("bare", "run"):
            wall = float(np.median([getattr(r, name).wall for r in rounds]))
            cells += f"{wall:10.2f}{n_models / wall:10.2f}"
        for what in ("wall", "cpu"):
            for after in (False, True):
                ratio = np.median([r.ratio(what, after_start=after) for r in rounds])
                cells += f"{'–':>12}" if np.isnan(ratio) else f"{ratio:11.3f}×"
        print(f"{workers:<12}{cells}")
    speedup = np.median([one.run.wall / two.run.wall for one, two in zip(found[1], found[2], strict=True)])
    print(f"2 workers over 1: {speedup:.2f}× the models per second")


def fill(folder: Path, n_stored: int, m: int = PAIRS) -> dict[str, np.ndarray]:
    """A run of `n_stored` models with `m` pairs each, written as the runner writes it."""
    rng = np.random.default_rng(0)
    game = {"train_size": 1000, "pairs_per_model": m, "reference_size": REFERENCE, "challenge": "average"}
    plan = Plan(name="b", n_models=n_stored, data="digits", trainer="sgd", game=game)
    arrays = {
        "bits": rng.integers(0, 2, size=(n_stored, m)),
        "pairs": rng.integers(0, 10**5, size=(n_stored, m, 2)),
        "loss": rng.normal(size=(n_stored, m, 2)),
        "reference": np.sort(rng.normal(size=(n_stored, REFERENCE)), axis=1),
    }
    entries = first_entries(plan, Prepared("", None, (), None))
    with Store.create(folder / FILE, entries, declares(plan, entries["fingerprint"])) as store:
        for i in range(n_stored):
            a = {name: array[i] for name, array in arrays.items()}
            store.add(Outcome(i, i, a["bits"], a["pairs"], 1.0, {name: a[name] for name in ("loss", "reference")}))
    return arrays


def open_store(path: str) -> None:
    """In a fresh process: open, read all signals, and say what it took."""
    before = peak_megabytes()
    start = time.perf_counter()
    if path.endswith(".npz"):
        with np.load(path) as loaded:
            size = sum(loaded[name].nbytes for name in loaded)
    else:
        signals = Run.open(path).signals()
        size = signals["loss"].nbytes
    print(json.dumps([time.perf_counter() - start, peak_megabytes(), before, size]))


def measure_store(n_stored: int, n_rounds: int) -> dict[str, list[list[float]]]:
    found: dict[str, list[list[float]]] = {"epsgauge, Run.open and signals": [], "np.load of the same arrays": []}
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        arrays = fill(Path(folder), n_stored)
        per_model = (time.perf_counter() - start) / n_stored * 1e3
        size = (Path(folder) / FILE).stat().st_size / 1e6
        print(f"\nA store of {n_stored:,} models × {PAIRS} pairs: {size:.0f} MB, written at {per_model:.2f} ms a model")
        np.savez(Path(folder, "peer.npz"), **arrays)
        for _ in range(n_rounds):
            for name, path in zip(found, (folder, str(Path(folder, "peer.npz"))), strict=True):
                words = [sys.executable, str(HERE), "--do", "open", path]
                found[name].append(json.loads(subprocess.run(words, capture_output=True, check=True).stdout))
    return found


def print_store(found: dict[str, list[list[float]]]) -> None:
    print(f"{'':36}{'seconds':>9}{'peak MB':>9}{'before MB':>11}{'time ratio':>12}")
    base = np.median([row[0] for row in found["np.load of the same arrays"]])
    for name, rows in found.items():
        seconds, peak, before, _ = np.median(np.array(rows), axis=0)
        print(f"{name:36}{seconds:9.3f}{peak:9.0f}{before:11.0f}{seconds / base:11.2f}×")


def live(folder: Path, n_models: int) -> float:
    """Bytes that the progress bar keeps of each model while every one of them chooses the rule."""
    fill(folder, 2, m=1)
    a_run, rng = Run.open(folder), np.random.default_rng(0)
    shown = Live(replace(a_run, plan=a_run.plan.with_audit(rule="same-data", fit_models=None)))
    tracemalloc.start()
    for i in range(2, n_models):
        channels = {"loss": rng.normal(size=(1, 2)), "reference": np.sort(rng.normal(size=REFERENCE))}
        shown.add(Outcome(i, i, rng.integers(0, 2, size=1), rng.integers(0, 10**5, size=(1, 2)), 1.0, channels))
    shown.posterior()
    kept = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return kept / n_models


def print_live(n_models: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        kept = live(Path(folder), n_models)
    print(f"\nThe live posterior of {n_models:,} models that all choose the rule keeps {kept:,.0f} bytes of each")


def do(words: list[str]) -> None:
    """What this script's own child processes do."""
    match words:
        case ["bare", n_models, rounds, wait, first, step]:
            bare(int(n_models), Work(int(rounds), float(wait)), int(first), int(step))
        case ["run", n_models, rounds, wait, out, workers]:
            run(plan(int(n_models), Work(int(rounds), float(wait))), out=out, workers=int(workers))
        case ["open", path]:
            open_store(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a smoke test: few, short models and a small store")
    parser.add_argument("--rounds", type=int, help="of everything (3; quick 1)")
    parser.add_argument("--models", type=int, help="models a run (40; quick 4)")
    parser.add_argument("--seconds", type=float, help="that a model takes (1; quick 0.1)")
    parser.add_argument("--json", type=Path, help="write every measurement to this file too")
    parser.add_argument("--do", nargs="+", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.do:
        do(args.do)
        return
    quick = args.quick
    rounds, models = args.rounds or (1 if quick else 3), args.models or (4 if quick else 40)
    seconds = args.seconds or (0.1 if quick else 1.0)
    print("\n".join(f"{key:16} {value}" for key, value in machine().items()))
    many = 100 if quick else 2000
    tables = {
        f"{models} models that compute for about {seconds:g} s": (models, Work(rounds=calibrated(seconds))),
        f"{models} models that wait for {seconds:g} s, as for a GPU: wall time that a busy machine disturbs less": (
            models,
            Work(wait=seconds),
        ),
        f"{many} models that take no time: what the runner costs when there is nothing to do": (many, Work()),
    }
    spent = {}
    print(f"\nMedians of {rounds} rounds; `all` includes the start of all processes")
    for title, (n, work) in tables.items():
        print(f"\n{title}")
        spent[title] = measure_overhead(n, work, rounds)
        print_overhead(spent[title], n)
    opened = measure_store(200 if quick else N_STORED, rounds)
    print_store(opened)
    print_live(500 if quick else 5000)
    if args.json:
        found = {"machine": machine(), "overhead": spent, "store": opened}
        args.json.write_text(json.dumps(found, default=asdict, indent=1) + "\n")


if __name__ == "__main__":
    on_one_thread()
    main()
