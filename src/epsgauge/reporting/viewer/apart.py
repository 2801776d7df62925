"""Processes that audit runs: a page that shares an interpreter with a long audit would answer late."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from queue import LifoQueue
from typing import Any

from epsgauge.errors import EpsgaugeError, InvalidInput
from epsgauge.methods.table import METHODS
from epsgauge.processes import safe_path
from epsgauge.reporting.viewer.audits import Declared, judged

PROCESSES = 2  # so that one large run holds up no other
BEHIND = 5  # how much they stand back behind what else this machine does
ENDED = "the process that judged this run ended before it was done; the system may have been out of memory. Try again."


class Apart:
    """As many processes as audit at the same time, each made when it is first needed; they end with this one."""

    def __init__(self, count: int = PROCESSES) -> None:
        self._idle: LifoQueue[Connection | None] = LifoQueue()
        for _ in range(count):
            self._idle.put(None)

    def __call__(self, key: tuple[Any, ...], path: Path) -> Declared:
        """What `judged` returns or raises, from another process."""
        connection = self._idle.get()
        try:
            connection = _begun() if connection is None else connection
            connection.send((key, path))
            found, in_table = connection.recv()
        except (EOFError, OSError):
            connection = None
            raise InvalidInput(ENDED) from None
        finally:
            self._idle.put(connection)
        if isinstance(found, EpsgaugeError):
            raise found
        if isinstance(found, Exception):
            raise RuntimeError(f"{type(found).__name__}: {found}") from found
        # a method of the table is known by what it is, and not by a copy
        audited: Declared = found
        judge = METHODS[audited.audit.judge.name] if in_table else audited.audit.judge
        return replace(audited, audit=replace(audited.audit, judge=judge))


def _begun() -> Connection:
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs,), daemon=True, name="audits runs")
    with _without_ctrl_c(), safe_path():
        process.start()
    theirs.close()
    return ours


@contextmanager
def _without_ctrl_c() -> Iterator[None]:
    """Ctrl-C is for the viewer, also before the process ignores it. Windows has no masks."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def _serve(asked: Connection) -> None:
    """Until whoever asks is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(OSError):
        os.nice(BEHIND)
    with suppress(EOFError, OSError):
        while True:
            asked.send(_answer(*asked.recv()))


def _answer(key: tuple[Any, ...], path: Path) -> tuple[Declared | Exception, bool]:
    try:
        found = judged(key, path)
    except Exception as error:
        return error if isinstance(error, EpsgaugeError) else RuntimeError(f"{type(error).__name__}: {error}"), False
    judge = found.audit.judge
    return found, METHODS.get(judge.name) is judge
