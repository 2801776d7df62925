"""The time that a model may take: a worker that takes longer is ended from outside Python, even if it holds the GIL.

One that is stopped cannot end itself: the watchdog of its run does (trainers/reaper.py).
"""

from __future__ import annotations

import faulthandler
import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from epsgauge.trainers import leaving
from epsgauge.trainers.reaper import LATE

_LINES = 20  # of where it was


@contextmanager
def within(seconds: float | None, indices: Sequence[int]) -> Iterator[None]:
    """End this process if the block takes longer than so many seconds for each model; in workers of a run alone."""
    folder = leaving.scratch()
    if seconds is None or folder is None or not leaving.in_worker:
        yield
        return
    file, allowed = Path(folder, f"{LATE}{os.getpid()}"), seconds * len(indices)
    with file.open("w") as out:
        print(json.dumps([[int(index) for index in indices], time.monotonic() + allowed]), file=out, flush=True)
        faulthandler.dump_traceback_later(allowed, exit=True, file=out)
        try:
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()
            file.unlink(missing_ok=True)


def late(folder: str, seconds: float) -> dict[tuple[int, ...], str]:
    """Which jobs took too long in workers that have ended since this was last asked, each with a sentence."""
    found = {}
    for file in Path(folder).glob(f"{LATE}*"):
        first, _, where = file.read_text(errors="replace").partition("\n")
        if where:
            main = where.split("\n\n")[-1].splitlines()[:_LINES]  # the thread that trains comes last
            found[tuple(json.loads(first)[0])] = "\n".join(main) + (
                f"\nit took longer than execution.timeout = {seconds:g} seconds and was ended. Set a longer timeout, "
                "or see above where it was."
            )
        file.unlink(missing_ok=True)
    return found
