"""A session with an unmodified script: its stage is started, and answers requests until the session is closed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from epsgauge.errors import EpsgaugeError, InvalidInput
from epsgauge.probing.result import Probe
from epsgauge.scripts.messages import Failed, Held, Order, Progress
from epsgauge.scripts.requests import ProbeIt
from epsgauge.scripts.sandbox import last_lines
from epsgauge.trainers.leaving import scratch

Told = Callable[[str, int], None]  # the name of what is done, and the number of trainings so far

# One thread, so that a process can be forked; sets in one order, so that models are reproducible.
_SAME = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMEXPR")} | {"PYTHONHASHSEED": "0"}


def probe_script(order: Order, progress: Told = lambda name, count: None, folder: Path | None = None) -> Probe:
    """Run a script up to its private training, and test what its accountant assumes. It is not edited."""
    with Session(order, folder) as session:
        found: Probe = session.ask(ProbeIt(), progress)
        return found


class Session:
    """A script that is held at its private training. Used as a block, it ends with it."""

    def __init__(self, order: Order, folder: Path | None = None) -> None:
        """The script runs in this folder; in the current one unless it is given."""
        if not hasattr(os, "fork"):
            raise InvalidInput("a script needs processes that fork, which this system has not. Write a plan.")
        here = Path() if folder is None else folder
        order.command.check(here)
        self.order = order
        self._place = tempfile.TemporaryDirectory(prefix="epsgauge-script-", dir=scratch(), ignore_cleanup_errors=True)
        self._folder = Path(self._place.name)
        ours, theirs = socket.socketpair()
        with theirs, open(self._folder / "output", "wb") as output:
            self._stage = subprocess.Popen(
                [sys.executable, "-W", "ignore", "-m", "epsgauge.scripts", str(theirs.fileno()), self._scratch],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=here,
                env={**os.environ, **_SAME},
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # to end it with the trainings that it has forked
            )
        self._connection = Connection(ours.detach())
        self._held = False

    @property
    def is_over(self) -> bool:
        """Whether the process is gone."""
        return self._stage.poll() is not None

    @property
    def _scratch(self) -> Path:
        return self._folder / "scratch"

    def ask(self, request: Any, progress: Told = lambda name, count: None) -> Any:
        """What the script answers, which it does from its training on."""
        name, seconds = self.order.command.name, self.order.timeout
        try:
            if not self._held:
                self._connection.send(self.order)
                if not self._connection.poll(seconds):
                    raise EpsgaugeError(
                        f"{name} began no training within {seconds:g} seconds. Allow more with --timeout."
                    )
                self._received(progress)
                self._held = True
            self._connection.send(request)
            return self._received(progress)
        except (EOFError, OSError):
            raise EpsgaugeError(
                f"the process that ran {name} died: it was killed, crashed or ran out of memory.{self._last_line()}"
            ) from None

    def _received(self, progress: Told) -> Any:
        while isinstance(message := self._connection.recv(), Progress):
            progress(message.name, message.count)
        if isinstance(message, Failed):
            raise EpsgaugeError(message.sentence)
        return None if isinstance(message, Held) else message

    def _last_line(self) -> str:
        """Of what the script printed, or the process before it ran the script."""
        said = last_lines(self._scratch, 1) if self._scratch.is_dir() else ""
        output = self._folder / "output"
        said = said or output.read_text(encoding="utf-8", errors="replace").strip().rpartition("\n")[2]
        return f" It printed last: {said}" if said else ""

    def close(self) -> None:
        self._connection.close()
        with suppress(ProcessLookupError):
            os.killpg(self._stage.pid, signal.SIGKILL)
        self._stage.wait()
        self._place.cleanup()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
