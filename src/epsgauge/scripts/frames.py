"""Lines of a user's code: the one that runs, and the one where an error came from."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from types import FrameType

_OURS = os.path.dirname(os.path.dirname(__file__))
_LIBRARIES = (os.path.dirname(os.__file__), _OURS, "<frozen", "site-packages")


@dataclass(frozen=True)
class Place:
    """A call in a line of a user's file."""

    call: str  # the name of what is called there
    line: int
    file: str

    def __str__(self) -> str:
        return f"in line {self.line} of {self.file}"


def calling(name: str) -> Place | None:
    """What the user's code calls at this moment: `name`, or what calls that. None if a function of ours calls it."""
    frame: FrameType | None = sys._getframe(2)
    if frame is not None and _OURS in frame.f_code.co_filename:
        return None
    while frame is not None:
        code = frame.f_code
        if _is_users(code.co_filename):
            return Place(name, frame.f_lineno, os.path.basename(code.co_filename))
        name = code.co_qualname.removesuffix(".__init__").rpartition(">.")[2]
        frame = frame.f_back
    return None


def line_of(error: BaseException) -> Place | None:
    """The innermost line of the user's code, if there is one."""
    trace, found = error.__traceback__, None
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if _is_users(file):
            found = Place("", trace.tb_lineno, os.path.basename(file))
        trace = trace.tb_next
    return found


def _is_users(file: str) -> bool:
    return not any(part in file for part in _LIBRARIES)
