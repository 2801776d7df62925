"""What is done by hand to a finished or killed run: stores edited with SQL, logs with a turned bit, killed readers."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import epsgauge as eg
from epsgauge.errors import EpsgaugeError
from epsgauge.games.signals import Outcome
from epsgauge.runner import looks
from epsgauge.runner.executors import InProcess
from epsgauge.runner.progress import Progress, Watch
from epsgauge.runner.schema import PARTS, SCHEMA
from epsgauge.runner.store import FILE
from faults.count import Count
from faults.stores import Noisy, a_plan, a_run, everything

Edit = tuple[str, ...]
EDITS: dict[str, Edit] = {
    "an earlier schema": (
        "DROP TABLE sums",
        f"PRAGMA user_version = {SCHEMA - 2}",
        "UPDATE models SET signals = zeroblob(length(signals))",
    ),
    "no sums": ("DROP TABLE sums", "UPDATE models SET signals = zeroblob(length(signals))"),
    "models of another run": ("REPLACE INTO models SELECT * FROM other.models",),
    "models and sums of another run": tuple(
        f"REPLACE INTO {name} SELECT * FROM other.{name}" for name in ("models", "sums")
    ),
    "models, sums and identity of another run": (
        *(f"REPLACE INTO {name} SELECT * FROM other.{name}" for name in ("models", "sums")),
        "REPLACE INTO meta SELECT * FROM other.meta WHERE key = 'identity'",
    ),
    **{
        f"no {part}, with an edited sum": (
            f"DELETE FROM {part.partition(' ')[0]}" + (f" WHERE state = '{part.split()[1]}'" if " " in part else ""),
            f"UPDATE sums SET n = 0, total = zeroblob(32) WHERE part = '{part}'",
        )
        for part in PARTS
    },
}


def campaign(n: int, seed: int, scratch: Path) -> list[Count]:
    """Every edit, `n` turned bits of a log, and `n` readers that are killed."""
    run, other = a_run(scratch / "forged"), a_run(scratch / "other", trainer=Noisy(30.0))
    rng = np.random.default_rng(seed)
    return [_edits(run, other, scratch), _turned(n, rng, scratch), _killed(n, rng, run)]


def _edits(run: Path, other: Path, scratch: Path) -> Count:
    """Read as it is, and again when the run has gone on, which must not seal anew what was edited."""
    count, copy, expected = Count("stores edited with SQL, then resumed"), scratch / "edited", everything(run)
    for what, statements in EDITS.items():
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(run, copy)
        with closing(sqlite3.connect(copy / FILE, isolation_level=None)) as connection:
            connection.execute("ATTACH ? AS other", (str(other / FILE),))
            for statement in statements:
                connection.execute(statement)
        count.read(partial(everything, copy), expected, what)
        with suppress(EpsgaugeError):
            eg.run(a_plan().with_audit(delta=1e-6), out=copy, executor=InProcess())
        count.read(partial(everything, copy), expected, f"{what}, resumed")
        count.read(partial(_verified, copy, expected), True, f"{what}, verified")
    return count


def _verified(copy: Path, expected: str) -> bool:
    """Whether `verify` says the same of a run as those who read its results."""
    intact = eg.verify(copy).intact
    try:
        return intact == (everything(copy) == expected)
    except EpsgaugeError:
        return not intact


class _Copies(Watch):
    """Copies a run directory after its 30th model, with the log that its process would leave if it were killed."""

    def __init__(self, folder: Path, copy: Path) -> None:
        self.folder, self.copy = folder, copy

    def finished_one(self, outcome: Outcome, progress: Progress) -> None:
        if progress.n_done + progress.n_failed == 30:
            shutil.copytree(self.folder, self.copy, ignore=shutil.ignore_patterns("*-shm"))


def _turned(n: int, rng: np.random.Generator, scratch: Path) -> Count:
    """A log with a turned bit is refused, or cost the last write at most; the run then trains what is missing."""
    count, whole, killed, copy = Count("bits of a write-ahead log turned"), *(scratch / name for name in "wkc")
    expected = _losses(eg.run(a_plan(), out=whole, executor=InProcess(), watch=_Copies(whole, killed)).path)
    raw, before = (killed / f"{FILE}-wal").read_bytes(), _losses(killed)
    for i in range(n):
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(killed, copy)
        changed, at = bytearray(raw), int(rng.integers(len(raw)))
        changed[at] ^= 1 << int(rng.integers(8))
        (copy / f"{FILE}-wal").write_bytes(changed)
        count.read(partial(_all_but_one, copy, before), True, f"bit of byte {at} turned")
        if i % 10 == 0:
            again = eg.run(a_plan(), out=copy, executor=InProcess())
            if _losses(again.path) != expected or not eg.verify(copy).intact:
                count.bad("lost", f"bit of byte {at} turned, and the run did not train again what was lost")
    return count


def _all_but_one(copy: Path, before: dict[int, bytes]) -> bool:
    found = _losses(copy)
    return len(found) >= len(before) - 1 and all(before[index] == losses for index, losses in found.items())


def _losses(folder: Path) -> dict[int, bytes]:
    """Of each model that is done; one that failed has none."""
    run = eg.Run.open(folder)
    signals = run.signals()
    return {f.index: b"" for f in run.failed} | {
        int(index): losses.tobytes() for index, losses in zip(signals.models, signals["loss"], strict=True)
    }


def _killed(n: int, rng: np.random.Generator, run: Path) -> Count:
    """Readers that are killed while they log a look, at any line or with part of it written, lock nobody out."""
    count = Count("readers killed while they log a look")
    for i in range(n):
        before = [look["n_done"] for look in eg.Run.open(run).looks]
        _in_a_child(partial(_dies, run, int(rng.integers(1, 60)), float(rng.random()), written=bool(i % 2)))
        logged: Callable[[], object] = partial(_log_another, run, before, i)
        count.read(logged, True, f"reader {i}")
    return count


def _log_another(run: Path, before: list[int], number: int) -> bool:
    if not looks.log_look(run, {"kind": "view", "n_done": number, "n_models": 40}):
        return False
    now = [look["n_done"] for look in eg.Run.open(run).looks]
    return now[: len(before)] == before and now[-1] == number and len(now) <= len(before) + 2


def _in_a_child(die: Callable[[], object]) -> None:
    child = os.fork()
    if child == 0:
        with suppress(BaseException):
            die()
        os._exit(0)
    os.waitpid(child, 0)


def _dies(run: Path, step: int, share: float, *, written: bool) -> None:
    """Before line `step` of what it does; or when a `share` of its line is written, as a full disk leaves it."""
    left = step

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal left
        if event == "line" and frame.f_code.co_filename == looks.__file__:
            left -= 1
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace

    if written:
        whole = looks._line
        looks._line = lambda *args: whole(*args)[: int(share * len(whole(*args)))]
    else:
        sys.settrace(trace)
    looks.log_look(run, {"kind": "audit", "n_done": -1, "n_models": 40})
