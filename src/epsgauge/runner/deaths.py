"""Why a worker process died, as far as it left a sign."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence
from pathlib import Path

from epsgauge.references import is_users

CRASH = "crash"  # files in a scratch folder, in which the interpreter writes where it crashed
_CODES = re.compile(r"exit codes of the workers are \{(.*?)\}")
_FRAME = re.compile(r'File "(.+)", line (\d+) in (\S+)')
MEMORY = "Most often that is for want of memory: probe or try with less data, or on a machine with more"


def crashes(folder: str) -> list[str]:
    """What crashed workers wrote since this was last asked."""
    found = []
    for file in sorted(Path(folder).glob(f"{CRASH}*")):
        text = file.read_text(errors="replace")
        if text.strip():
            found.append(text)
            file.unlink(missing_ok=True)
    return found


def why_died(error: BaseException, traces: Sequence[str]) -> str:
    """A sentence of what is known, with a remedy."""
    text, cause = str(error), error.__cause__
    if why := getattr(error, "why", None):
        return str(why)
    if "un-serialize" in text:
        last = (
            str(cause).strip().splitlines()[-1] if cause is not None and str(cause).strip() else "it is not known why"
        )
        return f"what it was sent, or what it sent back, could not be read ({last})."
    if traces:
        return f"it crashed in compiled code{_place(traces[-1])}. Run that line in a script, outside epsgauge."
    codes = _CODES.search(text)
    first = codes[1].split(",")[0].strip() if codes else ""
    number = re.search(r"-?\d+", first)
    if number is None:
        return "it was killed, crashed or ran out of memory."
    return _of_code(int(number[0]))


def _of_code(code: int) -> str:
    if code >= 0:
        return f"it ended with exit code {code}, as by os._exit. Let the code return, or raise an error, instead."
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    if name == "SIGKILL":
        return f"it was killed ({name}). {MEMORY}."
    if name in ("SIGSEGV", "SIGBUS", "SIGABRT", "SIGILL", "SIGFPE"):
        return f"it crashed ({name}) in compiled code. Run the code in a script, outside epsgauge."
    return f"it was ended by {name}, from the code itself or from outside."


def _place(trace: str) -> str:
    """' (train.py, line 3, in step)', the innermost line of the user's own code in what faulthandler wrote."""
    current = trace.partition("Current thread")[2] or trace
    frames = _FRAME.findall(current.partition("\n\n")[0])
    own = next(((Path(path).name, line, name) for path, line, name in frames if is_users(Path(path))), None)
    return "" if own is None else f" ({own[0]}, line {own[1]}, in {own[2]})"
