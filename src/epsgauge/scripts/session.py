"""Probe an unmodified script: start its stage, and read what it says."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from epsgauge.errors import EpsgaugeError, InvalidInput
from epsgauge.probing.result import Probe, from_json
from epsgauge.scripts.command import Command
from epsgauge.scripts.sandbox import last_lines
from epsgauge.scripts.stage import Order

# One thread, so that a process can be forked.
_ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMEXPR")}


def probe_script(order: Order, progress: Callable[[str, int], None] = lambda name, count: None) -> Probe:
    """Run a script up to its private training, and test what its accountant assumes. It is not edited."""
    if not hasattr(os, "fork"):
        raise InvalidInput("probing a script needs processes that fork, which this system has not. Write a plan.")
    Command(order.target, order.arguments, order.module).check()
    with tempfile.TemporaryDirectory(prefix="epsgauge-script-") as folder:
        return _staged(order, progress, Path(folder))


def _staged(order: Order, progress: Callable[[str, int], None], folder: Path) -> Probe:
    reads, writes = os.pipe()
    with open(folder / "output", "wb") as output:
        stage = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "epsgauge.scripts.stage", str(writes), str(folder / "scratch")],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            env={**os.environ, **_ONE_THREAD},
            pass_fds=[writes],
            start_new_session=True,  # to end it with the trainings that it has forked
        )
    os.close(writes)
    name = Command(order.target, order.arguments, order.module).name
    try:
        with suppress(BrokenPipeError), stage.stdin as given:  # type: ignore[union-attr]
            given.write((json.dumps(asdict(order)) + "\n").encode())
        for line in _lines(reads, order.seconds, name):
            said = json.loads(line)
            if "progress" in said:
                progress(*said["progress"])
            elif "error" in said:
                raise EpsgaugeError(said["error"])
            else:
                found = from_json(said["probe"])
                assert isinstance(found, Probe)
                return found
    finally:
        os.close(reads)
        with suppress(ProcessLookupError):
            os.killpg(stage.pid, signal.SIGKILL)
        stage.wait()
    raise EpsgaugeError(
        f"the process that ran {name} died: it was killed, crashed or ran out of memory.{_last_line(folder)}"
    )


def _lines(pipe: int, seconds: float, name: str) -> Iterator[bytes]:
    """What the stage says, of which the first line must come within so many seconds."""
    left = b""
    if not select.select([pipe], [], [], seconds)[0]:
        raise EpsgaugeError(f"{name} began no training within {seconds:g} seconds. Allow more with --timeout.")
    while chunk := os.read(pipe, 1 << 16):
        *whole, left = (left + chunk).split(b"\n")
        yield from whole


def _last_line(folder: Path) -> str:
    """Of what the script printed, or the process before it ran the script."""
    said = last_lines(folder / "scratch", 1) if (folder / "scratch").is_dir() else ""
    said = said or (folder / "output").read_text(encoding="utf-8", errors="replace").strip().rpartition("\n")[2]
    return f" It printed last: {said}" if said else ""
