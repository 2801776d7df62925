"""How a file is written: all of it or nothing, and never through a link to another file."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from pathlib import Path

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_OLD = os.O_WRONLY | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_FIXED = (errno.EBUSY, errno.EXDEV, errno.EACCES, errno.EPERM, errno.EROFS)  # no other file may take its place
_STREAMS = ("/proc/self/fd/1", "/proc/self/fd/2")  # where /dev/stdout and /dev/stderr lead


def replace(file: Path, content: bytes | str) -> None:
    """Written beside it and then put in its place: a link is replaced, and what it leads to is left alone.

    A file that is replaced keeps who may read it. A device or a pipe is written to as it is, and so is a file that
    cannot be replaced: one that is mounted by itself, as containers do, or stands in a folder that cannot be written.
    """
    mode = _mode(file)
    if _is_stream(file, mode):
        file.write_bytes(_bytes(content))
        return
    spare = file.parent / f".epsgauge-{secrets.token_hex(8)}"
    try:
        create(spare, content, 0o600 if stat.S_ISREG(mode) else 0o666)
        if stat.S_ISREG(mode):
            if not os.access(file, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            spare.chmod(stat.S_IMODE(mode))
        os.replace(spare, file)
    except OSError as error:
        if not stat.S_ISREG(mode) or error.errno not in _FIXED:
            raise
        with os.fdopen(os.open(file, _OLD), "wb") as out:
            out.write(_bytes(content))
    finally:
        spare.unlink(missing_ok=True)


def create(file: Path, content: bytes | str, mode: int = 0o666) -> None:
    """A new one; FileExistsError where there is one, or a link, and nothing is left where it cannot be finished."""
    with os.fdopen(os.open(file, _NEW, mode), "wb") as out:
        try:
            out.write(_bytes(content))
            out.flush()
            os.fsync(out.fileno())  # a name must not be there before what it stands for, whenever the power fails
        except BaseException:
            file.unlink(missing_ok=True)
            raise


def _bytes(content: bytes | str) -> bytes:
    """In UTF-8; the name of a folder may hold what has none."""
    return content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content


def _mode(file: Path) -> int:
    """What it is and who may do what with it; 0 where there is none."""
    try:
        return file.lstat().st_mode
    except OSError:
        return 0


def _is_stream(file: Path, mode: int) -> bool:
    """A device, a pipe or what the shell calls standard output: nothing may be put in its place."""
    if stat.S_ISLNK(mode):
        return os.readlink(file) in _STREAMS
    return bool(mode) and not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))
