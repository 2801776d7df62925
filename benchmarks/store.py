"""Time and memory of every command on runs of many models, and how both grow.

Prints seconds and peak memory of each command in a process of its own, for stores of 10,000 models and of ten and a
hundred times as many. `benchmarks/README.md` says how to read the table.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from timing import machine, on_one_thread, peak_megabytes

from epsgauge.games.experiment import bits_of, pairs_of
from epsgauge.games.seeds import Branch, training_seed
from epsgauge.runner import play
from epsgauge.runner.channels import Layout
from epsgauge.runner.plan import Plan
from epsgauge.runner.resume import declares, first_entries
from epsgauge.runner.schema import CHANNELS, MODELS
from epsgauge.runner.store import FILE, Store

HERE = Path(__file__).resolve()
REFERENCE = 19
PLAN = """
name = "many"
n_models = {n}
data = {{ use = "zeros", size = 100 }}
trainer = {{ use = "laplace", eps = 1.0 }}
[game]
train_size = 10
reference_size = {reference}
challenge = "explicit"
canaries = "zeros"
[audit]
attack = "difference"
"""
COMMANDS: dict[str, list[str]] = {
    "status": ["status", "RUN"],
    "verify": ["verify", "RUN"],
    "audit": ["audit", "RUN"],
    "export": ["export", "RUN", "-o", "FOLDER/scores.npz"],
    "report": ["report", "RUN", "-o", "FOLDER/report.html"],
    "resume": ["run", "FOLDER/plan.toml", "-o", "RUN", "--workers", "1"],
}


def fill(folder: Path, n: int) -> Path:
    """A run with the bits, pairs and seeds that its plan gives; losses are made up."""
    (folder / "plan.toml").write_text(PLAN.format(n=n, reference=REFERENCE))
    plan = Plan.read(folder / "plan.toml")
    roles, rng = play.cut(plan, None)[0], np.random.default_rng(0)
    entries = first_entries(plan, play.prepare(plan)[0])
    layout = Layout({"loss": (1, 2), "reference": (REFERENCE,)})

    def rows() -> Iterator[tuple[object, ...]]:
        for i in range(n):
            bits, pairs = bits_of(plan.game, plan.seed, i), pairs_of(plan.game, roles, plan.seed, i)
            signals = rng.laplace(size=2 + REFERENCE)
            signals[1 - bits[0]] += 1.0
            blobs = (bits.astype("|u1").tobytes(), pairs.astype("<i8").tobytes(), signals.tobytes())
            yield (i, "done", training_seed(plan.seed, Branch.audited, i), 0.1, 1e9 + i / 100, None, *blobs)

    run = folder / "run"
    run.mkdir()
    with Store.create(run / FILE, entries, declares(plan, entries["fingerprint"])) as store:
        store.put_arrays(roles.to_arrays())
        with store._database.transaction():
            store._database.put_all(CHANNELS, layout.rows())
            store._database.put_all(MODELS, rows())
    return run


def command(words: list[str]) -> None:
    """In a fresh process: run a command, and say what it took."""
    from epsgauge.cli.main import app

    start = time.process_time()
    app(words, standalone_mode=False)
    print(json.dumps([time.process_time() - start, peak_megabytes()]), file=sys.stderr)


def measured(words: list[str], run: Path) -> tuple[float, float]:
    given = [word.replace("RUN", str(run)).replace("FOLDER", str(run.parent)) for word in words]
    done = subprocess.run([sys.executable, str(HERE), "--do", *given], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(given)} failed:\n{done.stderr}")
    seconds, megabytes = json.loads(done.stderr.splitlines()[-1])
    return seconds, megabytes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--do", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.do:
        command(args.do)
        return
    print("\n".join(f"{key:16} {value}" for key, value in machine().items()))
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in COMMANDS}
    sizes = []
    for n in args.models:
        with tempfile.TemporaryDirectory() as name:
            run = fill(Path(name), n)
            sizes.append((run / FILE).stat().st_size / 1e6)
            for what, words in COMMANDS.items():
                if what == "resume":  # to play one model more
                    (run.parent / "plan.toml").write_text(PLAN.format(n=n + 1, reference=REFERENCE))
                found[what].append(measured(words, run))
    print("\nCPU seconds and peak MB by the number of models" + (", and how often as much" if len(sizes) > 1 else ""))
    print(f"{'models':10}" + "".join(f"{n:>20,}" for n in args.models) + f"{'last two':>18}")
    print(f"{'store, MB':10}" + "".join(f"{size:20.0f}" for size in sizes))
    for what, rows in found.items():
        cells = "".join(f"{seconds:11.2f} s{megabytes:5.0f} MB" for seconds, megabytes in rows)
        last = "" if len(rows) < 2 else f"{rows[-1][0] / rows[-2][0]:10.1f}×{rows[-1][1] / rows[-2][1]:6.1f}×"
        print(f"{what:10}{cells}{last}")


if __name__ == "__main__":
    on_one_thread()
    main()
