"""Mutations of a store: bytes that turn, pages that move, files cut short, and rows that are edited by hand."""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import epsgauge as eg
from epsgauge.numbers import json_ready
from epsgauge.runner import looks
from epsgauge.runner.executors import InProcess
from epsgauge.runner.schema import TABLES
from epsgauge.runner.store import FILE
from epsgauge.runner.view import results_of
from faults.count import Count

Rng = np.random.Generator
PAGE = 4096


@dataclass(frozen=True)
class Noisy:
    """A sum of records with noise, some models of which fail."""

    noise_multiplier: float = 1.0

    def train(self, data: Any, *, seed: int, size: int) -> Any:
        if seed % 11 == 0:
            raise RuntimeError("this model fails")
        return data[0].sum(axis=0) + self.noise_multiplier * np.random.default_rng(seed).normal(size=3)

    def losses(self, model: Any, points: Any) -> Any:
        return -(points[0] @ model)


NOISY = Noisy()


def table() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(80, 3)), rng.integers(0, 2, 80)


def a_plan(name: str = "a", trainer: Noisy = NOISY) -> eg.Plan:
    game = {"train_size": 10, "reference_size": 19}
    return eg.Plan(name=name, n_models=40, data=table, trainer=trainer, game=game)


def a_run(folder: Path, name: str = "a", trainer: Noisy = NOISY) -> Path:
    """A run with everything in its store: models done and failed, a rehearsal, a control, declarations and looks.

    It goes on after each look, so that its store knows of all of them.
    """
    plan = a_plan(name, trainer)
    later = plan.with_audit(delta=1e-6)
    for each in (plan, later):
        eg.audit(eg.run(each, out=folder, executor=InProcess()))
    eg.run(later, out=folder, executor=InProcess())
    return folder


def everything(folder: Path) -> str:
    """A digest of all that an audit reads of a run."""
    run = eg.Run.open(folder)
    results = results_of(run)
    found = hashlib.sha256()
    for signals in (results.signals, results.signals.rehearsal, results.control):
        for array in (
            () if signals is None else (signals.models, signals.bits, signals.pairs, *signals.channels.values())
        ):
            found.update(array.tobytes())
    failed = [(f.index, f.bits.tolist(), f.seed, f.error) for f in run.failed]
    declared = [(d.content, d.digest, d.time, d.n_done, d.n_looks) for d in run.declarations]
    flags = (run.extended_after_look, run.refit_after_look, run.retried_after_look.tolist(), run.code_changed)
    rest = [run.plan.tables(), failed, declared, results.looks, flags, run.notes, run.canary, run.provenance, run.done]
    found.update(repr(json_ready([rest, str(run.privacy), run.stop_when])).encode())
    return found.hexdigest()


# Bytes


def one_bit(raw: bytearray, rng: Rng) -> None:
    raw[rng.integers(len(raw))] ^= 1 << int(rng.integers(8))


def one_byte(raw: bytearray, rng: Rng) -> None:
    raw[rng.integers(len(raw))] = int(rng.integers(256))


def a_stretch_of_zeros(raw: bytearray, rng: Rng) -> None:
    start, size = int(rng.integers(len(raw))), int(rng.integers(1, 600))
    raw[start : start + size] = bytes(len(raw[start : start + size]))


def noise(raw: bytearray, rng: Rng) -> None:
    start, size = int(rng.integers(len(raw))), int(rng.integers(1, 600))
    raw[start : start + size] = rng.bytes(len(raw[start : start + size]))


def two_pages_swapped(raw: bytearray, rng: Rng) -> None:
    a, b = (int(i) * PAGE for i in rng.choice(len(raw) // PAGE, 2, replace=False))
    raw[a : a + PAGE], raw[b : b + PAGE] = raw[b : b + PAGE], raw[a : a + PAGE]


def a_page_written_twice(raw: bytearray, rng: Rng) -> None:
    a, b = (int(i) * PAGE for i in rng.choice(len(raw) // PAGE, 2, replace=False))
    raw[a : a + PAGE] = raw[b : b + PAGE]


def cut_short(raw: bytearray, rng: Rng) -> None:
    del raw[rng.integers(len(raw)) :]


def grown(raw: bytearray, rng: Rng) -> None:
    raw += rng.bytes(int(rng.integers(1, 3 * PAGE)))


BYTES: tuple[Callable[[bytearray, Rng], None], ...] = (
    one_bit, one_bit, one_bit, one_byte, a_stretch_of_zeros, noise, two_pages_swapped, a_page_written_twice, cut_short,
    grown,
)  # fmt: skip


# Rows


def edited(file: Path, rng: Rng) -> str:
    """One change by SQL that a person might make; what it was."""
    with closing(sqlite3.connect(file)) as connection, connection:
        table = TABLES[rng.integers(len(TABLES))]
        key, *others = table.columns
        keys = [row[0] for row in connection.execute(f"SELECT {key} FROM {table.name}")]
        if not keys:
            return "nothing"
        at = keys[rng.integers(len(keys))]
        column = others[rng.integers(len(others))]
        kind = rng.choice(["delete", "turn", "swap", "move", "copy", "null"])
        value = connection.execute(f"SELECT {column} FROM {table.name} WHERE {key} = ?", (at,)).fetchone()[0]
        update = f"UPDATE {table.name} SET {column} = ? WHERE {key} = ?"
        with suppress(sqlite3.IntegrityError):  # SQLite sees to that
            if kind == "delete":
                connection.execute(f"DELETE FROM {table.name} WHERE {key} = ?", (at,))
            elif kind == "swap":
                other = keys[rng.integers(len(keys))]
                query = f"SELECT {column} FROM {table.name} WHERE {key} = ?"
                connection.execute(update, (connection.execute(query, (other,)).fetchone()[0], at))
                connection.execute(update, (value, other))
            elif kind == "move":
                to = f"{at}x" if isinstance(at, str) else at + 1000
                connection.execute(f"UPDATE {table.name} SET {key} = ? WHERE {key} = ?", (to, at))
            elif kind == "copy":
                to = f"{at}x" if isinstance(at, str) else at + 1000
                columns = ", ".join([*others, "seal"])
                copied = f"SELECT ?, {columns} FROM {table.name} WHERE {key} = ?"
                connection.execute(f"INSERT INTO {table.name} ({key}, {columns}) {copied}", (to, at))
            else:
                connection.execute(update, (None if kind == "null" else _turned(value, rng), at))
    return f"{kind} {table.name}.{column} of {at}"


def _turned(value: Any, rng: Rng) -> Any:
    """Nearly the same value."""
    if isinstance(value, bytes) and value:
        raw = bytearray(value)
        one_bit(raw, rng)
        return bytes(raw)
    if isinstance(value, str) and value:
        i = int(rng.integers(len(value)))
        return value[:i] + chr(48 + int(rng.integers(70))) + value[i + 1 :]
    if isinstance(value, (int, float)):
        return value + (1 if rng.integers(2) else -1)
    return 1


def campaign(n: int, seed: int, scratch: Path) -> list[Count]:
    """`n` mutations of the bytes of each file and as many of rows, each of a fresh copy."""
    original = a_run(scratch / "original")
    expected, rng, copy = everything(original), np.random.default_rng(seed), scratch / "copy"
    by_rows, by_bytes = Count("rows of a store edited"), Count("bytes of a store turned, moved or lost")
    by_looks = Count("bytes of its looks turned, moved or lost")
    for i in range(3 * n):
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(original, copy)
        count = (by_rows, by_bytes, by_looks)[i % 3]
        if count is by_rows:
            what = edited(copy / FILE, rng)
        else:
            file = copy / (FILE if count is by_bytes else looks.FILE)
            what = mutated(file, rng)
        count.read(partial(everything, copy), expected, f"{what} (seed {seed}, number {i})")
    return [by_bytes, by_looks, by_rows]


def mutated(file: Path, rng: Rng) -> str:
    """Change bytes of a file; how."""
    mutate, raw = BYTES[rng.integers(len(BYTES))], bytearray(file.read_bytes())
    if len(raw) >= 2 * PAGE or "page" not in mutate.__name__:
        mutate(raw, rng)
    file.write_bytes(raw)
    return mutate.__name__
