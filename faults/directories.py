"""Run directories that somebody else made: pipes, links, tables without end, names that speak to the terminal."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

from epsgauge.runner.store import FILE
from faults.count import SECONDS, Count

VICTIM = b"of somebody else"
BESIDE = (FILE, "run.lock", "looks.jsonl", f"{FILE}-wal", f"{FILE}-shm", f"{FILE}-journal")
COMMANDS = (["status"], ["verify"], ["audit"], ["audit", "--json"], ["export", "-o", "e.csv"], ["report", "-o", "r.md"])
# A name that sets the clipboard, turns the line around, opens markup, and adds a line that looks like ours.
NAME = "a\x1b]52;c;aGk=\x07\u202e[/x]\nverdict   not refuted\r\x9b31m"
ENDLESS = (
    "CREATE VIEW {0} AS WITH RECURSIVE more(key) AS (SELECT 'plan' UNION ALL SELECT key FROM more) "
    "SELECT key, '{{}}' AS value, x'' AS seal FROM more"
)


def pipe(name: str, run: Path, victim: Path) -> None:
    (run / name).unlink(missing_ok=True)
    os.mkfifo(run / name)


def link(name: str, run: Path, victim: Path) -> None:
    (run / name).unlink(missing_ok=True)
    (run / name).symlink_to(victim)


def folder(name: str, run: Path, victim: Path) -> None:
    (run / name).unlink(missing_ok=True)
    (run / name).mkdir()


def noise(name: str, run: Path, victim: Path) -> None:
    (run / name).write_bytes(bytes(range(256)) * 64)


def sql(statements: tuple[str, ...], run: Path, victim: Path) -> None:
    with closing(sqlite3.connect(run / FILE)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def linked_outputs(run: Path, victim: Path) -> None:
    for name in ("e.csv", "r.md"):
        (run / name).symlink_to(victim)


CASES: dict[str, Callable[[Path, Path], None]] = {
    **{f"{name} is a pipe": partial(pipe, name) for name in BESIDE},
    **{f"{name} is a link": partial(link, name) for name in BESIDE},
    **{f"{name} is a folder": partial(folder, name) for name in BESIDE},
    **{f"{name} is noise": partial(noise, name) for name in BESIDE},
    "what is written is a link": linked_outputs,
    "meta never ends": partial(sql, ("DROP TABLE meta", ENDLESS.format("meta"))),
    "looks never end": partial(sql, ("DROP TABLE looks", ENDLESS.format("looks"))),
    "a trigger deletes models": partial(sql, ("CREATE TRIGGER t AFTER INSERT ON looks BEGIN DELETE FROM models; END",)),
    "an index of nonsense": partial(sql, ("CREATE INDEX i ON models (hex(zeroblob(length(bits) * 100000000)))",)),
    "no tables": partial(sql, ("DROP TABLE models", "DROP TABLE sums")),
    "a later schema": partial(sql, ("PRAGMA user_version = 99",)),
    "no schema": partial(sql, ("PRAGMA user_version = 0",)),
}


def campaign(original: Path, named: Path, scratch: Path) -> list[Count]:
    """Every command on every directory; `named` is a run whose name is NAME."""
    count, shown = Count("hostile run directories"), Count("names that speak to the terminal")
    victim = scratch / "victim"
    for what, harm in CASES.items():
        run = scratch / "hostile"
        shutil.rmtree(run, ignore_errors=True)
        shutil.copytree(original, run)
        victim.write_bytes(VICTIM)
        harm(run, victim)
        for words in COMMANDS:
            _answer(count, words, run, f"{what}: epsgauge {' '.join(words)}")
            if victim.read_bytes() != VICTIM:
                count.bad("lost", f"{what}: {' '.join(words)} wrote through a link")
                victim.write_bytes(VICTIM)
    for words in COMMANDS[:4]:
        said = _answer(shown, words, named, f"epsgauge {' '.join(words)}")
        loud = sorted({c for c in said if c != "\n" and unicodedata.category(c) in ("Cc", "Cf")})
        forged = [line for line in said.splitlines() if line.startswith("verdict   not refuted")]
        if loud or (forged and words != ["audit", "--json"]):
            shown.bad("wrong", f"epsgauge {' '.join(words)} printed {loud} {forged}")
    return [count, shown]


def _answer(count: Count, words: list[str], run: Path, example: str) -> str:
    """In a process of its own, as what hangs in C hears no signal."""
    count.tried += 1
    command, *options = words
    line = [sys.executable, "-m", "epsgauge", command, str(run), *options]
    environment = {**os.environ, "COLUMNS": "100"}
    try:
        done = subprocess.run(
            line, cwd=run, capture_output=True, timeout=SECONDS, env=environment, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        count.bad("hung", example)
        return ""
    said = (done.stdout + done.stderr).decode(errors="replace")
    if "\nTraceback" in f"\n{said}":
        count.bad("traceback", f"{example}\n{said[-600:]}")
    count.refused += done.returncode == 2
    return said
