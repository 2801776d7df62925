"""Any program in any language as a trainer: it finds points and a seed in a folder and writes losses there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO, Any, Literal, get_args

from epsgauge.errors import EpsgaugeError, InvalidInput
from epsgauge.references import plan_folder
from epsgauge.stats.arrays import Floats
from epsgauge.stats.checks import positive
from epsgauge.trainers import exchange
from epsgauge.trainers.leaving import before_abrupt_end, scratch
from epsgauge.trainers.points import arrays

Format = Literal["csv", "npy"]
# Characters of a program's output that an error shows.
SHOWN = 2000


class ProgramFailed(EpsgaugeError):
    """A program ended badly, ran too long, or wrote no losses."""


@dataclass(frozen=True, kw_only=True)
class Program:
    """Runs `command`, a list of arguments and never a shell, in the folder of the plan, once for each model.

    In the arguments {folder} is the folder, {seed} the seed, {size} the nominal number of training points and
    {python} this Python. The folder holds
    - train.csv and points.csv: one row per point, no header, the numbers of its first array, then of the second and so
      on; or with format = "npy" one file an array: train_0.npy, train_1.npy, points_0.npy, …
    - seed.txt and size.txt, also as EPSGAUGE_SEED and EPSGAUGE_SIZE in the environment.
    The program trains on the first, and writes its loss on each of `points`, in order: losses.csv with one number a
    line, or losses.npy. A constant such as a sampling rate is to be computed from the size, and not from the rows of
    train.csv: in an add-remove game there is one less where the point is left out.
    """

    command: Sequence[str]
    timeout: float = 600.0  # seconds; then it is killed with all that it started
    format: Format = "csv"

    def __post_init__(self) -> None:
        given = self.command
        if isinstance(given, str):
            raise InvalidInput(f"command must be a list of arguments, as no shell reads it, but got {given!r}.")
        if not isinstance(given, (list, tuple)) or not given or not all(isinstance(a, str) and a for a in given):
            raise InvalidInput(f"command must be a list of arguments, the program first, but got {given!r}.")
        object.__setattr__(self, "command", tuple(given))
        positive("timeout", self.timeout)
        if self.format not in get_args(Format):
            raise InvalidInput(f'format must be "csv" or "npy", but got {self.format!r}.')

    def observe(self, data: Any, points: Any, *, seed: int, size: int | None = None) -> Floats:
        train, asked = arrays(data), arrays(points)
        place = tempfile.TemporaryDirectory(prefix="epsgauge-", dir=scratch())
        with place as name, tempfile.TemporaryFile() as output:
            folder = Path(name)
            exchange.write(folder, "train", train, self.format)
            exchange.write(folder, "points", asked, self.format)
            notes = {"seed": str(seed), "size": str(len(train[0]) if size is None else size)}
            for key, text in notes.items():
                (folder / f"{key}.txt").write_text(text + "\n")
            arguments = self._arguments(folder=name, python=sys.executable, **notes)
            environment = os.environ | {f"EPSGAUGE_{key.upper()}": text for key, text in notes.items()}
            code = self._run(arguments, environment, output)
            said = _tail(output)
            if code != 0:
                names = {s.value: s.name for s in signal.Signals}  # real-time signals have none
                how = f"exit code {code}" if code > 0 else f"signal {names.get(-code, -code)}"
                raise ProgramFailed(f"program {arguments[0]} must end with exit code 0, but it ended with {how}.{said}")
            try:
                return exchange.read_losses(folder, len(asked[0]), self.format)
            except InvalidInput as error:
                raise ProgramFailed(f"program {arguments[0]}: {error}{said}") from error

    def _arguments(self, **values: str) -> list[str]:
        """Only the known names are replaced: an argument may have braces of its own, as awk's programs do."""
        out = []
        for argument in self.command:
            for key, text in values.items():
                argument = argument.replace("{" + key + "}", text)
            out.append(argument)
        return out

    def _run(self, arguments: list[str], environment: dict[str, str], output: IO[bytes]) -> int:
        """The exit code. Nothing that the program started outlives this call, however it ends.

        Output goes to a file and not to a pipe: a pipe that a stray process holds open is never at its end.
        """
        process: subprocess.Popen[bytes] | None = None
        code: int | None = None
        try:
            with _ctrl_c_waits(), _starting:  # a program that runs is one that is known
                process = _started(arguments, environment, output)
                _running.add(process.pid)
            with suppress(subprocess.TimeoutExpired):
                code = process.wait(self.timeout)
        finally:  # Ctrl-C comes here too
            if process is not None:
                _kill_group(process)
                _running.discard(process.pid)
        if code is None:
            raise ProgramFailed(
                f"program {arguments[0]} must end within timeout = {self.timeout:g} seconds, but it was still running "
                f"and has been killed. Set a longer timeout.{_tail(output)}"
            )
        return code


def _started(arguments: list[str], environment: dict[str, str], output: IO[bytes]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            # as a plan has them: in an old locale Python would refuse letters beyond ASCII
            [argument.encode("utf-8", "surrogateescape") for argument in arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            cwd=plan_folder(),
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise InvalidInput(f"command must be a program that can be started, but {arguments[0]!r}: {error}.") from None


_running: set[int] = set()  # leaders of process groups that this process has started
_starting = threading.Lock()


@contextmanager
def _ctrl_c_waits() -> Iterator[None]:
    """Hold Ctrl-C back until the block has ended; it comes to the main thread alone."""
    usual = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(usual):
        yield
        return
    came: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda *what: came.append(what))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
        if came:
            usual(*came[0])


@before_abrupt_end
def stop_all_programs() -> None:
    """Kill every program that this process has started."""
    with _starting:
        for leader in list(_running):
            _kill(leader)


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """The program and its children."""
    _kill(process.pid)
    process.wait()


def _kill(leader: int) -> None:
    """A group that is empty is gone, and that is what is wanted."""
    with suppress(ProcessLookupError, PermissionError):  # macOS answers the latter for a group of zombies
        os.killpg(leader, signal.SIGKILL)


def _tail(output: IO[bytes]) -> str:
    """The end of what the program said."""
    end = output.seek(0, os.SEEK_END)
    output.seek(max(0, end - 4 * SHOWN))  # a character has at most 4 bytes
    text = output.read().decode("utf-8", errors="replace").strip()[-SHOWN:]
    return f" Its output ends with:\n{text}" if text else " It wrote no output."
