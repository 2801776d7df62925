"""The streams as a shell hands them over: closed, of an old encoding, or a pipe whose reader leaves."""

from __future__ import annotations

import io
import os
import sys
from typing import Any

ERRORS = 2  # the number of standard error


class _Stream(io.FileIO):
    """After an error all goes nowhere. A reader who has left is none: the command ends with the code that it has.

    Nor is it one if standard error cannot be written: there is nowhere left to say so.
    """

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError as error:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)
            if isinstance(error, BrokenPipeError) or self.fileno() == ERRORS:
                return super().write(data)
            raise


def prepare() -> None:
    """Before anything is written."""
    for number in range(3):  # the next file that is opened would get the number of a closed one
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # workers have these streams too
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115 (until the command ends)
    for number, name in ((1, "stdout"), (ERRORS, "stderr")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, _text(number))
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # an old terminal shows ? for ε, and no traceback
            raw = getattr(stream.buffer, "raw", stream.buffer)  # there is no buffer in between under PYTHONUNBUFFERED
            if stream is getattr(sys, f"__{name}__") and isinstance(raw, io.FileIO):
                lines = stream.line_buffering or stream.write_through
                setattr(sys, name, _text(number, stream.encoding, lines=lines))


def _text(number: int, encoding: str = "utf-8", *, lines: bool = False) -> io.TextIOWrapper:
    raw = io.BufferedWriter(_Stream(number, "w", closefd=False))
    return io.TextIOWrapper(raw, encoding=encoding, errors="replace", line_buffering=lines)
