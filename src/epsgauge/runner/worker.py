"""What runs in a worker process: it gets the plan once, and then does jobs until its run is gone."""

from __future__ import annotations

import faulthandler
import gc
import multiprocessing
import os
import pickle
import signal
import threading
import time
from collections.abc import Callable
from functools import cache
from typing import IO, Any, TypeVar

from epsgauge.errors import InvalidInput
from epsgauge.processes import restore_path
from epsgauge.references import line_of, text_of
from epsgauge.runner.deaths import CRASH
from epsgauge.trainers import leaving

T = TypeVar("T")
Opener = Callable[[bytes], Any]  # a plan from what was sent

_ORPHAN_SECONDS = 0.25  # how often a worker looks whether the process that started it is still there

_payload = b""
_opener: Opener | None = None
_crash: IO[str] | None = None  # kept open
_heads: dict[str, tuple[Any, ...]] = {}


def begin(payload: bytes, opener: Opener, parent: int, path_setting: str | None) -> None:
    """Set up a worker."""
    global _payload, _opener
    _payload, _opener = payload, opener
    leaving.in_worker = True
    restore_path(path_setting)
    os.dup2(2, 1)  # what training code prints is no answer of ours
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all processes: the parent decides what it means
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    multiprocessing.set_start_method(None, force=True)  # loky's own would be that of the user's processes, too
    _note_crashes()
    threading.Thread(target=_leave_with, args=(parent,), daemon=True).start()


def _note_crashes() -> None:
    """A crash in compiled code says where it was in a file, and not on the screen."""
    global _crash
    folder = leaving.scratch()
    if folder is not None:
        _crash = open(os.path.join(folder, f"{CRASH}{os.getpid()}"), "w")  # noqa: SIM115  as long as the process
        faulthandler.enable(_crash)


def _leave_with(parent: int) -> None:
    """End when the process that started this one is gone: killed, it cannot say so, and loky's workers would stay."""
    while os.getppid() == parent:
        time.sleep(_ORPHAN_SECONDS)
    leaving.end_all()
    os._exit(1)


def unpickled(payload: bytes) -> Any:
    """The plan, where all that it needs is on this machine."""
    import cloudpickle  # type: ignore[import-untyped]  # comes with loky; it can send what a notebook defined

    return cloudpickle.loads(payload)


@cache
def _plan() -> Any:
    try:
        return None if _opener is None else _opener(_payload)
    except Exception as error:
        raise InvalidInput(f"a worker process could not build the plan ({type(error).__name__}: {error}).") from error


def with_plan(job: Callable[..., list[T]], *args: Any) -> list[T]:
    try:
        done = job(_plan(), *args)
    except Exception:
        raise
    except BaseException as error:  # Ctrl-C does not come here: the user's code raised it
        what = f"{type(error).__name__}: {text_of(error)}{line_of(error)}"
        raise InvalidInput(f"the plan's code raised {what}. Raise an Exception, or return.") from None
    _settle()
    return done


def learn(name: str, head: bytes) -> None:
    """Keep a job with its arguments, all but the batches, which then come by themselves."""
    _plan()  # puts the user's modules where they are found
    _heads[name] = unpickled(head)


def do(name: str, batches: list[list[int]] | None) -> bytes:
    """What a job that was learnt gives, as bytes that are passed on without being read."""
    job, *args = _heads[name]
    return pickle.dumps(with_plan(job, *args, *(() if batches is None else (batches,))), pickle.HIGHEST_PROTOCOL)


@cache
def _settle() -> None:
    """Once: loky collects garbage after jobs of a second or more, and need not walk through all that was imported."""
    gc.collect()
    gc.freeze()
