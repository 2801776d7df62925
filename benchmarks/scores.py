"""How long a file of a million scores takes to load, beside what NumPy needs for the same numbers."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import epsgauge as eg

ROWS = 10**6
ROUNDS = 5


def main() -> None:
    rng = np.random.default_rng(0)
    columns = (np.arange(ROWS), np.zeros(ROWS, np.int64), rng.integers(0, 2, ROWS), rng.normal(size=ROWS))
    ids = np.array([f"canary-{i}" for i in range(ROWS)])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        eg.Scores(*columns, "substitute").write(folder / "plain.csv")
        eg.Scores(*columns, "substitute", id=ids).write(folder / "ids.csv")
        eg.Scores(*columns, "substitute").write(folder / "plain.npz")
        readers: dict[str, Callable[[], Any]] = {
            "epsgauge, CSV": lambda: eg.Scores.read(folder / "plain.csv"),
            "epsgauge, CSV with ids": lambda: eg.Scores.read(folder / "ids.csv"),
            "epsgauge, npz": lambda: eg.Scores.read(folder / "plain.npz"),
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


if __name__ == "__main__":
    main()
