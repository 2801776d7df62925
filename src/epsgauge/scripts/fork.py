"""A copy of this process that goes on by itself, and what it sends back when it has seen enough."""

from __future__ import annotations

import ctypes
import io
import os
import pickle
import select
import signal
import sys
import time
from dataclasses import dataclass, field
from typing import Any, NoReturn

_CHUNK = 1 << 20
_DIES_WITH_PARENT = 1  # of prctl


@dataclass(frozen=True)
class Answer:
    """What a child sent."""

    watch: dict[str, Any] = field(default_factory=dict)  # the state of its watch
    model: dict[str, bytes] | None = None  # what the model holds; None if the training was ended early
    facts: dict[str, Any] = field(default_factory=dict)
    error: str | None = None  # one sentence


@dataclass(frozen=True)
class Child:
    """This process is the copy."""

    pipe: int

    def send(self, answer: Answer) -> NoReturn:
        """And end, without what the script left to be done at its exit."""
        with open(self.pipe, "wb", closefd=False) as file:
            pickle.dump(answer, file, protocol=pickle.HIGHEST_PROTOCOL)
        os._exit(0)


def fork(seconds: float, session: int) -> Child | Answer:
    """In the copy a `Child`; in the original its answer, which must come within so many seconds.

    Both end if the socket of the session is closed meanwhile.
    """
    reads, writes = os.pipe()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        os.close(reads)
        _end_with(parent)
        return Child(writes)
    os.close(writes)
    try:
        data, late = _read(reads, session, time.monotonic() + seconds)
    except EOFError:
        _end(pid)
        os._exit(1)
    finally:
        os.close(reads)
        _end(pid)
    if late:
        return Answer(error=f"a training took longer than {seconds:g} seconds. Allow more with --timeout.")
    if not data:
        return Answer(error="the process of a training died: it was killed, crashed or ran out of memory.")
    answer = pickle.loads(data)  # of a process of ours
    return answer if isinstance(answer, Answer) else Answer(error="the process of a training sent something else.")


def _end_with(parent: int) -> None:
    """This process is killed when its parent ends, which otherwise would leave it behind (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DIES_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)


def _read(pipe: int, session: int, deadline: float) -> tuple[bytes, bool]:
    """All that comes through the pipe, and whether it came too late. Nothing is asked meanwhile: a session that can be
    read is over.
    """
    data = io.BytesIO()
    while True:
        left = deadline - time.monotonic()
        ready = select.select([pipe, session], [], [], left)[0] if left > 0 else []
        if not ready:
            return b"", True
        if session in ready:
            raise EOFError
        chunk = os.read(pipe, _CHUNK)
        if not chunk:
            return data.getvalue(), False
        data.write(chunk)


def _end(pid: int) -> None:
    """It has sent all it had, or is to be stopped."""
    try:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    except (ProcessLookupError, ChildProcessError):
        pass
