"""Ends what a run has started once the run itself is gone, however it ended.

A process of its own runs this file, with nothing but the standard library.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from contextlib import suppress

# In the environment of all that a run starts: the run's scratch folder, after those of runs that it is a part of.
MARK = "EPSGAUGE_SCRATCH"
BETWEEN = "\n"  # two of them: a folder may have a colon in its name
_GRACE = 1.0  # seconds in which what is marked may end by itself
_PATIENCE = 10.0  # seconds after which a process that cannot be killed is left alone
_PAUSE = 0.02


def marked(folder: str) -> list[int]:
    """Processes that have this folder in their environment; none where there is no /proc."""
    try:
        numbers = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []
    return [pid for pid in numbers if pid != os.getpid() and os.fsencode(folder) in _marks(pid)]


def _marks(pid: int) -> list[bytes]:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            entries = file.read().split(b"\0")
    except OSError:  # gone, or of another user
        return []
    name = MARK.encode() + b"="
    return [part for entry in entries if entry.startswith(name) for part in entry[len(name) :].split(BETWEEN.encode())]


def end_marked(folder: str) -> int:
    """Kill them all, those that they start meanwhile included; how many there were at first."""
    first = found = marked(folder)
    deadline = time.monotonic() + _PATIENCE
    while found and time.monotonic() < deadline:
        for pid in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_PAUSE)
        found = marked(folder)
    return len(first)


def clear(folder: str) -> None:
    """Leave nothing of a run."""
    deadline = time.monotonic() + _GRACE
    while marked(folder) and time.monotonic() < deadline:
        time.sleep(_PAUSE)
    end_marked(folder)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.stdin.buffer.read()  # is at its end when the process that holds the other one is gone
    clear(sys.argv[1])
