"""Ends what a run has started once the run itself is gone, however it ended, and before that what stands still.

A process of its own runs this file, with nothing but the standard library.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import sys
import time
from collections import Counter
from contextlib import suppress

# In the environment of all that a run starts: the run's scratch folder, after those of runs that it is a part of.
MARK = "EPSGAUGE_SCRATCH"
BETWEEN = "\n"  # two of them: a folder may have a colon in its name
_GRACE = 1.0  # seconds in which what is marked may end by itself
_PATIENCE = 10.0  # seconds after which a process that cannot be killed is left alone
_PAUSE = 0.02

# A worker that trains has a file in the scratch folder with this name and its number. In the first line are the models
# and the time until which they must be trained; more lines say where a training was that took longer.
LATE = "late-"
STOOD_STILL = "Its process stood still: it was stopped (SIGSTOP), or could not run."
_LOOK = 0.5  # seconds between two looks at workers
_STOPPED_LOOKS = 2  # after its time, at a worker that is stopped and cannot end itself
_OVERDUE_LOOKS = 60  # at one that could, but has not


def marked(folder: str) -> list[int]:
    """Processes that have this folder in their environment; none where there is no /proc."""
    try:
        numbers = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []
    return [pid for pid in numbers if pid != os.getpid() and os.fsencode(folder) in _marks(pid)]


def _starting() -> bool:
    """Whether a young process has no environment yet: the kernel sets it a moment after a call that starts one returns.

    One that was started without any is waited for as long as it is young.
    """
    ticks = os.sysconf("SC_CLK_TCK")
    try:
        with open("/proc/uptime") as file:
            now = float(file.read().split()[0])
        numbers = [name for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return False
    for number in numbers:
        with suppress(OSError, IndexError):  # gone, of another user, of the kernel or a zombie
            os.readlink(f"/proc/{number}/exe")
            with open(f"/proc/{number}/stat", "rb") as stat, open(f"/proc/{number}/environ", "rb") as environment:
                since = int(stat.read().rpartition(b")")[2].split()[19]) / ticks
                if now - since < _GRACE and not environment.read(1):
                    return True
    return False


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
    while (found or _starting()) and time.monotonic() < deadline:
        for pid in found:
            _kill(pid)
        time.sleep(_PAUSE)
        found = marked(folder)
        first = first or found
    return len(first)


def clear(folder: str) -> None:
    """Leave nothing of a run."""
    deadline = time.monotonic() + _GRACE
    while marked(folder) and time.monotonic() < deadline:
        time.sleep(_PAUSE)
    end_marked(folder)
    shutil.rmtree(folder, ignore_errors=True)


class Watchdog:
    """Kills workers that take longer than they may and cannot end themselves, which one that is stopped cannot.

    One that is stopped while it trains nothing is killed after `seconds`, too: it would keep a job for ever. Processes
    that workers have started are left alone. Looks are counted and not seconds: if the whole machine was stopped, so
    was this process. While the parent is stopped nothing is late, as Ctrl-Z stops all of a run. A parent that works for
    a cluster is killed after `seconds`.
    """

    def __init__(self, folder: str, parent: int, seconds: float, *, ends_parent: bool) -> None:
        self.folder, self.parent, self.ends_parent = folder, parent, ends_parent
        self._allowed = seconds / _LOOK + _STOPPED_LOOKS  # looks at one that is stopped and trains nothing
        self._late: Counter[int] = Counter()
        self._parent_stopped = 0

    def look(self) -> None:
        if _is_stopped(self.parent):
            self._parent_stopped += 1
            if self.ends_parent and self._parent_stopped > self._allowed:
                _kill(self.parent)
            return
        self._parent_stopped = 0
        until = self._until()
        idle = {pid for pid in _children(self.parent) if pid not in until and _is_stopped(pid) and self._is_ours(pid)}
        late = {pid for pid, end in until.items() if time.monotonic() > end and self._is_ours(pid)}
        for pid in self._late.keys() - late - idle:
            del self._late[pid]
        for pid in late | idle:
            self._late[pid] += 1
            stopped = self._allowed if pid in idle else _STOPPED_LOOKS
            if self._late[pid] > (stopped if _is_stopped(pid) else _OVERDUE_LOOKS):
                if pid in late:
                    with suppress(OSError), open(os.path.join(self.folder, f"{LATE}{pid}"), "a") as file:
                        file.write(f"\n\n{STOOD_STILL}\n")
                _kill(pid)

    def _until(self) -> dict[int, float]:
        """When the models should have been trained that workers train now."""
        found = {}
        for name in os.listdir(self.folder):
            if name.startswith(LATE):
                with suppress(OSError, ValueError), open(os.path.join(self.folder, name)) as file:
                    _, found[int(name[len(LATE) :])] = json.loads(file.readline())
        return found

    def _is_ours(self, pid: int) -> bool:
        return not os.path.isdir("/proc/self") or os.fsencode(self.folder) in _marks(pid)


def _children(pid: int) -> list[int]:
    """Processes that any of its threads has started; none where there is no /proc."""
    found: list[int] = []
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with suppress(OSError), open(f"/proc/{pid}/task/{thread}/children") as file:
                found += map(int, file.read().split())
    return found


def _is_stopped(pid: int) -> bool:
    """By a signal; not known where there is no /proc."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] == b"T"
    except (OSError, IndexError):
        return False


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


def main(folder: str, parent: str, seconds: str, ends_parent: str) -> None:
    """Until standard input is at its end, which it is when the process that holds the other one is gone."""
    if seconds:
        dog = Watchdog(folder, int(parent), float(seconds), ends_parent=bool(ends_parent))
        while not select.select([sys.stdin], [], [], _LOOK)[0]:
            with suppress(OSError):
                dog.look()
    sys.stdin.buffer.read()
    clear(folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
