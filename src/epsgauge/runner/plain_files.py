"""Files of a run directory, which may have come from anywhere: plain files only, and never through a link."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from epsgauge.errors import InvalidInput

# A pipe is not waited for, and a link is not followed; systems without these have neither.
_FLAGS = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


def open_plain(path: Path, flags: int, mode: int = 0o600) -> int:
    """A descriptor as `os.open` gives it; OSError where it cannot be opened, InvalidInput for what is no plain file."""
    check_plain(path)
    descriptor = os.open(path, flags | _FLAGS, mode)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _no_plain_file(path)
    return descriptor


def check_plain(path: Path, *, linked: bool = False) -> None:
    """The same for a file that something else opens, if it is there; `linked`: what a link leads to will do."""
    try:
        mode = path.stat(follow_symlinks=linked).st_mode
    except OSError:
        return
    if not stat.S_ISREG(mode):
        raise _no_plain_file(path)


def _no_plain_file(path: Path) -> InvalidInput:
    return InvalidInput(f"{path} must be a plain file, not a link, pipe or folder. Remove it, or use another folder.")
