"""A copy of this process that goes on by itself, and what it sends back when it has seen enough."""

from __future__ import annotations

import io
import os
import pickle
import select
import signal
import time
from dataclasses import dataclass, field
from typing import Any, NoReturn

_CHUNK = 1 << 20


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


def fork(seconds: float) -> Child | Answer:
    """In the copy a `Child`; in the original its answer, which must come within so many seconds."""
    reads, writes = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reads)
        return Child(writes)
    os.close(writes)
    try:
        data, late = _read(reads, time.monotonic() + seconds)
    finally:
        os.close(reads)
        _end(pid)
    if late:
        return Answer(error=f"a training took longer than {seconds:g} seconds. Allow more with --timeout.")
    if not data:
        return Answer(error="the process of a training died: it was killed, crashed or ran out of memory.")
    answer = pickle.loads(data)  # of a process of ours
    return answer if isinstance(answer, Answer) else Answer(error="the process of a training sent something else.")


def _read(pipe: int, deadline: float) -> tuple[bytes, bool]:
    data = io.BytesIO()
    while True:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([pipe], [], [], left)[0]:
            return b"", True
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
