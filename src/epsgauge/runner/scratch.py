"""The scratch folder of a run: what its workers write for a while, and how all that they leave is found and removed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path

from epsgauge.errors import EpsgaugeError
from epsgauge.runner import lock
from epsgauge.trainers import reaper

_PREFIX = "epsgauge-scratch-"
_HELD = "held"  # a folder whose lock the run holds


class Scratch:
    """A folder for temporary files, and a process that removes it and all that the run started when this one ends."""

    def __init__(self, seconds: float | None = None, *, ends_parent: bool = False) -> None:
        """With `seconds`, workers are killed that take longer for a model and cannot end themselves, or are stopped
        for so long.

        With `ends_parent`, so is this process if it is stopped for so long.
        """
        sweep()
        made = Path(tempfile.mkdtemp(prefix=f".{_PREFIX}"))
        self._lock = ExitStack()
        with suppress(EpsgaugeError):  # without locks it keeps its hidden name, and nobody sweeps it
            self._lock.enter_context(lock.hold(made / _HELD))
            made = made.rename(made.with_name(made.name[1:]))
        self.folder = str(made)
        self._pipe: int | None = None
        self._reaper: subprocess.Popen[bytes] | None = None
        self._start(*("" if seconds is None else str(seconds), "1" if ends_parent else ""))

    @property
    def environment(self) -> dict[str, str]:
        """For all that the run starts."""
        return {reaper.MARK: reaper.BETWEEN.join(filter(None, [os.environ.get(reaper.MARK), self.folder]))}

    def end_marked(self) -> int:
        """Kill what the run has started; how many processes that were."""
        return reaper.end_marked(self.folder)

    def close(self) -> None:
        """Leave nothing."""
        if self._pipe is None or self._reaper is None:
            reaper.clear(self.folder)
        else:
            _pipes.discard(self._pipe)
            os.close(self._pipe)
            self._reaper.send_signal(signal.SIGCONT)  # it may have been stopped
            self._reaper.wait()
        self._lock.close()

    def _start(self, *words: str) -> None:
        reads, writes = os.pipe()
        try:
            self._reaper = subprocess.Popen(
                [sys.executable, "-I", "-S", reaper.__file__, self.folder, str(os.getpid()), *words],
                stdin=reads,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,  # a kill of this process's group is not for it
            )
        except OSError:
            os.close(writes)
        else:
            self._pipe = writes
            _pipes.add(writes)
        finally:
            os.close(reads)


_pipes: set[int] = set()


def _let_go() -> None:
    """A child that was forked must not seem to be the run."""
    for pipe in _pipes:
        os.close(pipe)
    _pipes.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)


def sweep() -> None:
    """Remove what is left of runs that were killed together with their reapers."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):
            mine = folder.is_dir() and not folder.is_symlink() and folder.stat().st_uid == os.getuid()
            if mine and (folder / _HELD / lock.FILE).is_file() and lock.holder(folder / _HELD) is None:
                reaper.end_marked(str(folder))
                shutil.rmtree(folder, ignore_errors=True)
