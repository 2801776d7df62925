"""What a sandboxed script must not do: change what lies outside, start programs, end processes of others."""

from __future__ import annotations

import _posixsubprocess
import builtins
import fcntl
import os
import stat
import sys
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from epsgauge.errors import InvalidInput
from epsgauge.scripts.overlay import real_files
from epsgauge.scripts.redirect import CHANGED, WRITING

# Events of the interpreter at which files change, and which of their arguments are paths.
_OF_NAMES = ("os.remove", "os.rmdir", "os.rename", "os.link", "os.symlink", "os.mkdir")
_CHANGES = {
    **{f"os.{name}": slice(1) for name in (*CHANGED, "mkdir", "remove", "rmdir")},
    "os.rename": slice(2),
    "os.link": slice(2),
    "os.symlink": slice(1, 2),
    "sqlite3.connect": slice(1),
}
_PROGRAMS = {"os.system": 0, "pty.spawn": 0, "subprocess.Popen": 1, "os.exec": 1, "os.posix_spawn": 1, "os.spawn": 2}
# Programs that only read: `platform`, `uuid`, `ctypes.util` and libraries ask them about the machine.
_READERS = ("uname", "arch", "lscpu", "ldconfig", "sysctl", "nvidia-smi", "sw_vers", "getconf")
_OPEN = "open for writing"
_TRACKER = "resource_tracker import main"  # of multiprocessing and loky: it removes what they left


class Refused(InvalidInput, PermissionError):
    """The script does what could touch something outside of its sandbox."""


class NeedsTerminal(InvalidInput, EOFError):
    """The script reads what a user types."""


class Guard:
    """Refuses by Python's audit events, and remembers what it refused."""

    def __init__(self, scratch: str) -> None:
        self.scratch, self.network = scratch, True
        self.refused: list[str] = []

    def refuse(self, sentence: str) -> Refused:
        self.refused.append(sentence)
        return Refused(sentence)

    def on_event(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            if args[2] & WRITING and not isinstance(args[0], int):
                self._check(args[0], _OPEN)
        elif event in _CHANGES:
            for path in args[_CHANGES[event]]:
                self._check(path, event)
        elif event in _PROGRAMS:
            self.check_program(args[_PROGRAMS[event]])
        elif event in ("os.kill", "os.killpg") and args[0] != os.getpid() and args[1]:
            if not _is_own(args[0], os.killpg if event == "os.killpg" else os.kill):
                raise self.refuse(f"the script sends signal {args[1]} to process {args[0]}, which it did not start")
        elif event in ("socket.bind", "socket.connect") and isinstance(args[1], tuple):
            host, port = args[1][:2]
            is_local = str(host).startswith("127.") or host in ("localhost", "::1")
            if not is_local and (port if event == "socket.bind" else not self.network):
                raise self.refuse(f"the script uses the network ({event} {host}:{port})")

    def _check(self, path: Any, event: str) -> None:
        if isinstance(path, int):  # a descriptor: one that can be written was opened in the scratch folder
            allowed = fcntl.fcntl(path, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY
        else:
            text = os.fsdecode(path)
            if event == "sqlite3.connect":
                if "mode=ro" in text or "mode=memory" in text or text in ("", ":memory:"):
                    return
                text = urllib.parse.unquote(text.removeprefix("file:").partition("?")[0])
            with real_files():
                parent, name = os.path.split(os.path.abspath(text))
                real = os.path.join(os.path.realpath(parent), name) if event in _OF_NAMES else os.path.realpath(text)
                allowed = real.startswith(self.scratch + "/") or (event == _OPEN and _is_device(real))
        if not allowed:
            raise self.refuse(f"the script would change {path!r} outside of its sandbox ({event})")

    def check_program(self, command: Any) -> None:
        """Refuse programs: what they write cannot be kept in."""
        words = [os.fsdecode(word) for word in (command if isinstance(command, list | tuple) else [command])]
        name = os.path.basename(words[0].split(" ")[0])
        if name not in _READERS and words[:2] != ["git", "rev-parse"] and not any(_TRACKER in word for word in words):
            text = " ".join(words)
            raise self.refuse(f"the script starts a program, which cannot be kept in a sandbox: {text[:80]}")


def _is_own(number: int, signals: Callable[[int, int], None]) -> bool:
    """A child, or the group that it leads; also true if there is no such process or group, as the call then reports.

    A group may have lost the process with its number.
    """
    try:
        os.waitid(os.P_PID, number, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except OSError:
        try:
            signals(number, 0)
        except ProcessLookupError:
            return True
        except OSError:
            return False
        return False
    return True


def _is_device(path: str) -> bool:
    mode = os.stat(path).st_mode if os.path.exists(path) else 0
    is_open = stat.S_ISCHR(mode) or stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or path.startswith("/proc/")
    return is_open and path != "/dev/tty"


_guard: Guard | None = None
_is_hooked = False


@contextmanager
def guarded(guard: Guard) -> Iterator[None]:
    """Meanwhile the guard is active. Python cannot remove its hook, which does nothing afterwards."""
    global _guard, _is_hooked
    if not _is_hooked:
        sys.addaudithook(lambda event, args: None if _guard is None else _guard.on_event(event, args))
        _is_hooked = True
    _guard = guard
    try:
        yield
    finally:
        _guard = None


def replacements(guard: Guard) -> dict[Any, Any]:
    """Functions without an audit event, each with its replacement."""
    fork_exec = _posixsubprocess.fork_exec

    def refuse_input(prompt: object = "") -> str:
        guard.refused.append("the script calls input(), but has no terminal: give it the answer as an argument")
        raise NeedsTerminal(guard.refused[-1])

    def program(args: Any, *more: Any) -> int:
        guard.check_program(args)
        return fork_exec(args, *more)

    return {builtins.input: refuse_input, fork_exec: program}
