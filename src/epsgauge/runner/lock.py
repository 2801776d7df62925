"""One process per run directory: a lock that the kernel frees however its holder ends."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from epsgauge.errors import EpsgaugeError, InvalidInput
from epsgauge.runner.plain_files import open_plain

FILE = "run.lock"
# `holder` takes the lock for an instant to see whether it is free, and must not turn a run away by that.
_TRIES, _PAUSE = 5, 0.02


@contextmanager
def hold(folder: Path) -> Iterator[None]:
    """Hold the lock of a run directory, which is made if it is not there."""
    fcntl = file_locks()
    if fcntl is None:
        raise EpsgaugeError(
            "a run needs the file locks of Linux or macOS, which this system lacks. Run it there: its folder can be "
            "audited here."
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = open_plain(folder / FILE, os.O_RDWR | os.O_CREAT, 0o666)
    except (FileExistsError, NotADirectoryError):
        raise InvalidInput(f"out must be a folder, but {folder} is not. Use a new --out.") from None
    except OSError as error:
        what = f"the folder {folder}" if error.filename in (None, str(folder)) else error.filename
        raise InvalidInput(f"{what} cannot be written: {error.strerror}. Use another --out.") from None
    _held.add(descriptor)
    try:
        if not _taken(fcntl, folder, descriptor):
            pid = os.pread(descriptor, 32, 0).decode(errors="replace").strip()
            who = f"process {pid}" if pid.isdigit() else "another process"
            raise InvalidInput(f"{folder} is in use by {who}. Wait for it, stop it, or use a new --out.")
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield
    finally:
        _held.discard(descriptor)
        os.close(descriptor)  # frees the lock; the file stays, since to delete it would race with the next holder


_held: set[int] = set()


def _let_go() -> None:
    """A child that was forked has the lock too, and must not keep it when its parent is killed."""
    for descriptor in _held:
        os.close(descriptor)
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)


def holder(folder: Path) -> int | None:
    """The process that holds the lock of a run directory now, or None."""
    fcntl = file_locks()
    if fcntl is None:
        return None  # nothing can be running here
    try:
        descriptor = open_plain(folder / FILE, os.O_RDONLY)
    except (OSError, InvalidInput):
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        pid = os.pread(descriptor, 32, 0).decode(errors="replace").strip()
        return int(pid) if pid.isdigit() else 0
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return None


def file_locks() -> ModuleType | None:
    """The module that locks files, where there is one: only running needs it."""
    try:
        import fcntl
    except ImportError:
        return None
    return fcntl


def _taken(fcntl: ModuleType, folder: Path, descriptor: int) -> bool:
    for _ in range(_TRIES):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            time.sleep(_PAUSE)
        except OSError as error:
            raise EpsgaugeError(
                f"{folder} cannot be locked: {error.strerror}. Use a folder on a file system with locks."
            ) from None
    return False
