"""Code and data that change while a run goes on: what is stored must be of one piece, or the run must say so."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import epsgauge as eg
from epsgauge.errors import EpsgaugeError
from faults.count import SECONDS, Count

N_MODELS = 30
PLAN = """
name = "edited"
n_models = {n}
data = "pipeline:data"
trainer = {trainer}
[game]
train_size = 10
reference_size = 19
challenge = "average"
control_models = 0
[execution]
workers = {workers}
"""
PIPELINE = """
import time
import numpy as np

SHIFT = 0.0

def data():
    rng = np.random.default_rng({seed})
    return rng.normal(size=(80, 3)), rng.integers(0, 2, 80)

class Mean:
    def train(self, data, *, seed):
        time.sleep(0.03)
        return data[0].mean(axis=0) + np.random.default_rng(seed).normal(size=3) + SHIFT

    def losses(self, model, points):
        return points[0] @ model
"""
PROGRAM = """
import pathlib, sys, time
SHIFT = 0.0
folder = pathlib.Path(sys.argv[1])
rows = [[float(x) for x in line.split(",")] for line in (folder / "train.csv").read_text().split()]
points = [[float(x) for x in line.split(",")] for line in (folder / "points.csv").read_text().split()]
model = [sum(column) + SHIFT for column in zip(*rows)]
(folder / "losses.csv").write_text("".join(f"{sum(a * b for a, b in zip(p, model))}\\n" for p in points))
"""
IN_PLACE = """
from torch.utils.data import Dataset
import torch

class Items(Dataset):
    def __init__(self):
        self.rows = [torch.tensor(r) for r in np.random.default_rng(0).normal(size=(80, 3))]
    def __len__(self):
        return len(self.rows)
    def __getitem__(self, i):
        return self.rows[i]

def items():
    return Items()

class Greedy:
    def train(self, data, *, seed):
        for i in range(len(data)):
            data[i].mul_(0.5)  # in place
        return sum(data[i] for i in range(len(data)))

    def losses(self, model, points):
        return np.array([float(points[i] @ model) for i in range(len(points))])
"""


def write(folder: Path, trainer: str, *, workers: int = 2, seed: str = "0", data: str = "pipeline:data") -> None:
    folder.mkdir(parents=True)
    (folder / "pipeline.py").write_text(PIPELINE.replace("{seed}", seed) + IN_PLACE)
    (folder / "program.py").write_text(PROGRAM)
    plan = PLAN.format(n=N_MODELS, trainer=trainer, workers=workers).replace("pipeline:data", data)
    (folder / "plan.toml").write_text(plan)


MODULE = '"pipeline:Mean"'
COMMAND = '{ use = "program", command = ["{python}", "program.py", "{folder}"] }'


def signals(folder: Path) -> dict[int, bytes]:
    """What is stored of each model."""
    try:
        found = eg.Run.open(folder / "run").signals()
    except EpsgaugeError:  # it was refused before it began
        return {}
    return {int(i): loss.tobytes() for i, loss in zip(found.models, found["loss"], strict=True)}


def started(folder: Path) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", "epsgauge", "run", "plan.toml", "-o", "run", "--blind"]
    return subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(folder: Path, n: int, child: subprocess.Popen[str]) -> None:
    until = time.monotonic() + SECONDS
    while time.monotonic() < until and child.poll() is None:
        try:
            if eg.Run.open(folder / "run").n_done >= n:
                return
        except EpsgaugeError:
            pass
        time.sleep(0.02)


def edit(name: str, folder: Path, child: subprocess.Popen[str]) -> None:
    file = folder / name
    file.write_text(file.read_text().replace("SHIFT = 0.0", "SHIFT = 9.0"))


def edit_and_kill(name: str, folder: Path, child: subprocess.Popen[str]) -> None:
    """A worker is replaced, and the new one imports what is there now."""
    edit(name, folder, child)
    children = Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split()
    for pid in children:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
        if b"loky" in command and b"tracker" not in command:
            os.kill(int(pid), signal.SIGKILL)
            return


def campaign(seed: int, scratch: Path, repeats: int = 3) -> list[Count]:
    counts = []
    rng = np.random.default_rng(seed)
    for fault, trainer, name, change in (
        ("a program edited during a run", COMMAND, "program.py", edit),
        ("a module edited, a worker replaced", MODULE, "pipeline.py", edit_and_kill),
    ):
        count = Count(fault)
        clean = scratch / f"clean {name}"
        write(clean, trainer)
        started(clean).communicate(timeout=SECONDS)
        expected = signals(clean)
        for i in range(repeats):
            _changed(count, scratch / f"{name} {i}", trainer, name, change, int(rng.integers(2, 20)), expected)
        counts.append(count)
    return [*counts, _unseeded(scratch), _in_place(scratch)]


def _changed(
    count: Count,
    folder: Path,
    trainer: str,
    name: str,
    change: Callable[[str, Path, subprocess.Popen[str]], None],
    after: int,
    expected: dict[int, bytes],
) -> None:
    """What is stored is of the code that the run began with, and it was not called a success."""
    count.tried += 1
    write(folder, trainer)
    child = started(folder)
    wait_for(folder, after, child)
    change(name, folder, child)
    _, said = _ended(count, child, f"{name} after {after} models")
    found = signals(folder)
    if any(expected[i] != loss for i, loss in found.items()):
        count.bad("wrong", f"{name} after {after} models: models of other code are stored")
    if child.returncode == 0 and len(found) == N_MODELS:
        return  # all were trained before the change
    count.refused += child.returncode == 2
    shutil.copy(folder.parent / f"clean {name}" / name, folder / name)  # restored, it goes on
    again = started(folder)
    _ended(count, again, f"{name} restored")
    if signals(folder) != expected:
        count.bad("lost", f"{name} after {after} models: restored, it did not end as it should: {said[-300:]}")


def _unseeded(scratch: Path) -> Count:
    """Data that are other data in each worker."""
    count = Count("data that are not seeded", tried=1)
    write(scratch / "unseeded", MODULE, seed="")
    child = started(scratch / "unseeded")
    _ended(count, child, "data that are not seeded")
    if child.returncode == 0:
        count.bad("wrong", "it ended as if nothing were")
    count.refused += child.returncode == 2
    return count


def _in_place(scratch: Path) -> Count:
    """Items that a trainer changes must not be those of the next model."""
    count, found = Count("data changed in place", tried=1), []
    for workers in (1, 2):
        folder = scratch / f"in place {workers}"
        write(folder, '"pipeline:Greedy"', workers=workers, data="pipeline:items")
        child = started(folder)
        _ended(count, child, "data changed in place")
        found.append(signals(folder))
    if found[0] != found[1]:
        count.bad("wrong", "one worker and two give other signals")
    return count


def _ended(count: Count, child: subprocess.Popen[str], example: str) -> tuple[str, str]:
    try:
        out, said = child.communicate(timeout=2 * SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
        count.bad("hung", example)
        return child.communicate()
    if "\nTraceback" in f"\n{said}":
        count.bad("traceback", f"{example}\n{said[-800:]}")
    return out, said
