"""Kills runs at random moments and resumes them; for `test_kill.py` and `tools/soak.py`."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from patience import until

from epsgauge.runner.schema import LOOKS, TABLES
from epsgauge.runner.store import FILE, Store
from epsgauge.runner.view import Run
from epsgauge.runner.wal import has_lost, log_of

Parts = dict[str, Any]
PIPELINES = Path(__file__).parent / "pipelines"
# A run that says each model that it has stored, and pauses after `limit`, so that it cannot end before it is killed.
CHILD = """
import json, sys, time
from epsgauge.runner.plan import Plan
from epsgauge.runner.progress import Watch
from epsgauge.runner.run import run

out, parts, n_models, workers, limit = sys.argv[1], json.loads(sys.argv[2]), *map(int, sys.argv[3:])

class Tell(Watch):
    def finished_one(self, outcome, progress):
        print(outcome.index, flush=True)
        if progress.n_here == limit:
            time.sleep(600)

run(Plan(name="kill", n_models=n_models, **parts), out=out, workers=workers, watch=Tell())
"""
# What is trained: one model at a time, or many together, so that a kill leaves a part of a group in the store.
ALONE = {
    "data": "fast:data",
    "trainer": {"use": "fast:Mean", "nap": 0.004},
    "game": {"train_size": 20, "pairs_per_model": 3, "reference_size": 15},
}
TOGETHER = {
    "data": "digits",
    "trainer": {
        "use": "dpsgd",
        "model": "logistic",
        "epochs": 2,
        "batch_size": 50,
        "noise_multiplier": 1.0,
        "engine": "stacked",
    },
    "game": {"train_size": 500, "pairs_per_model": 3, "reference_size": 15},
}


@dataclass(frozen=True)
class Kill:
    """One kill: whom it hit, and how many models the store had before the session and after it."""

    whole_group: bool
    workers: int
    before: int
    after: int
    n_models: int

    @property
    def in_the_middle(self) -> bool:
        return self.before < self.after < self.n_models


def start(out: Path, n_models: int, workers: int, limit: int = 0, parts: Parts = ALONE) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", CHILD, str(out), json.dumps(parts), str(n_models), str(workers), str(limit)]
    path = os.pathsep.join([str(PIPELINES), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    errors = subprocess.DEVNULL if limit else None  # after a kill loky says what it cleans up
    return subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=errors, encoding="utf-8", env=environment, start_new_session=True
    )


def uninterrupted(out: Path, n_models: int, workers: int, parts: Parts = ALONE) -> None:
    with start(out, n_models, workers, parts=parts) as child:
        child.communicate()
    if child.returncode:
        raise RuntimeError(f"the run ended with {child.returncode}")


def kill_once(
    out: Path, n_models: int, rng: random.Random, *, whole_group: bool, share: int, parts: Parts = ALONE
) -> Kill:
    """Start or resume the run and kill it a random moment after a random number of models, at most `share`."""
    workers, after, moment = rng.choice([1, 2]), rng.randint(0, share), rng.uniform(0, 0.01)
    before = n_done(out)
    with start(out, n_models, workers, limit=share, parts=parts) as child:
        if after:
            for _ in range(after):
                if not child.stdout.readline():
                    raise RuntimeError("the run ended by itself")
        else:
            moment = rng.uniform(0, 1)  # as it starts
        time.sleep(moment)
        if whole_group:
            os.killpg(child.pid, signal.SIGKILL)
        else:
            child.kill()
    wait_until_gone(child.pid)
    for left in Path("/dev/shm").glob(f"sem.loky-{child.pid}-*"):  # loky's janitor was killed too
        left.unlink(missing_ok=True)
    return Kill(whole_group, workers, before, n_done(out), n_models)


def n_done(out: Path) -> int:
    """What a reader finds after a kill, before any run could put it right."""
    if has_lost(log_of(out / FILE)):
        raise RuntimeError("a kill is taken for damage")
    if not Store.is_begun(out / FILE):
        return 0
    run = Run.open(out)
    if len(run.signals()) != run.n_done:
        raise RuntimeError("a model without signals")
    return run.n_done


def wait_until_gone(group: int) -> None:
    """Workers whose parent was killed end by themselves."""

    def gone() -> bool:
        listed = subprocess.run(["ps", "-eo", "pgid=,stat="], capture_output=True, encoding="utf-8", check=True).stdout
        rows = [line.split() for line in listed.splitlines()]
        return not any(int(pgid) == group and not stat.startswith("Z") for pgid, stat in rows)

    until(gone, "workers end after their parent")


def rows(out: Path) -> list[tuple[object, ...]]:
    """Every model with its signals as stored, bit for bit."""
    connection = sqlite3.connect(out / FILE)
    columns = "idx, state, seed, error, bits, pairs, signals"
    found = connection.execute(f"SELECT {columns} FROM models ORDER BY idx").fetchall()
    connection.close()
    return found


TIMES = {"seconds", "finished", "time"}
# entries of `meta` that say when, where and by which process a run was made, and what is random in its seals
SESSIONS = ("sessions", "identity", "machines")


def tables(out: Path) -> dict[str, list[tuple[object, ...]]]:
    """Every row of every table, without times and what follows from them: seals, and entries about sessions."""
    found = {}
    with closing(sqlite3.connect(out / FILE)) as connection:
        for table in (table for table in TABLES if table is not LOOKS):
            columns = [name for name in table.columns if name not in TIMES]
            rows = connection.execute(f"SELECT {', '.join(columns)} FROM {table.name} ORDER BY 1").fetchall()
            found[table.name] = [row for row in rows if row[0] not in SESSIONS]
    return found
