"""Reads files by PyArrow in a child process: one that crashes it, or unpacks without end, harms nothing else.

The child sends plain arrays and JSON, and never a pickle.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from typing import IO, Any, cast

import numpy as np

from epsgauge.errors import EpsgaugeError, InvalidInput, MissingExtra
from epsgauge.processes import python_words
from epsgauge.scores import arrow, size
from epsgauge.scores.arrow import Words

CPU_SECONDS = 600  # of the child
ROOM = 2**30  # bytes of address space for Python and its libraries; they take a third of it
READERS: dict[str, Callable[..., Any]] = {"parquet": arrow.parquet, "stream": arrow.stream}


def read(reader: str, raw: bytes, name: str, **arguments: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """What a function of READERS gives, with texts as arrays; its errors, or one sentence where its process ended."""
    arrow.check_installed()
    asked = {"reader": reader, "name": name, "arguments": arguments, "limit": asdict(size.limit()), "size": len(raw)}
    child = subprocess.Popen(
        python_words(f"{__name__}:main", json.dumps(asked)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system"},
    )
    to_child, from_child = cast(IO[bytes], child.stdin), cast(IO[bytes], child.stdout)
    with child:
        try:
            for send in (lambda: to_child.write(raw), to_child.close):
                with suppress(BrokenPipeError):  # it has ended
                    send()
            answer = _received(from_child)
        except BaseException:  # also Ctrl-C
            child.kill()
            raise
    if answer is None:
        raise _ended(child.returncode, name)
    return answer


def _ended(code: int, name: str) -> Exception:
    """What a child that sent no answer died of."""
    if code >= 0:
        return InvalidInput(f"{name} cannot be read: the process that reads it ended with exit code {code}. Try again.")
    killed = signal.Signals(-code).name
    if killed == "SIGKILL":  # by a system that is out of memory
        return MemoryError()
    if killed == "SIGXCPU":
        return InvalidInput(f"{name} takes longer than {CPU_SECONDS // 60} minutes to read. Write it again, or as CSV.")
    return InvalidInput(
        f"{name} makes PyArrow crash ({killed}): it is damaged, or was made to do that. Write it again, or as CSV."
    )


def _received(source: IO[bytes]) -> tuple[dict[str, Any], dict[str, str]] | None:
    """What a child sent; None where it ended before it was done."""
    try:
        head = json.loads(source.readline())
        if "error" in head:
            raise ERRORS[head["kind"]](head["error"])
        columns: dict[str, Any] = {}
        for key, (kind, n, words) in head["columns"].items():
            array = np.frombuffer(source.read(n * np.dtype(kind).itemsize), kind, n)
            columns[key] = array if words is None else Words(words, array).array()
        return columns, head["stated"]
    except EpsgaugeError:
        raise
    except (ValueError, TypeError, KeyError):
        return None


ERRORS = {"InvalidInput": InvalidInput, "MissingExtra": MissingExtra, "MemoryError": MemoryError}


def main(question: str) -> None:
    """The child: reads the file from standard input, and writes its columns to standard output."""
    asked = json.loads(question)
    with os.fdopen(os.dup(1), "wb") as out:
        os.dup2(2, 1)  # a library may print
        raw = sys.stdin.buffer.read()
        if len(raw) != asked["size"]:  # who asked is gone
            return
        most = size.Limit(**asked["limit"])
        _limit_process(ROOM + 3 * most.n_bytes + 2 * len(raw))
        name = asked["name"]
        try:
            with size.limited(most):
                columns, stated = READERS[asked["reader"]](raw, name, **asked["arguments"])
        except (EpsgaugeError, MemoryError) as error:
            kind = next(kind for kind, each in ERRORS.items() if isinstance(error, each))
            _send(out, {"error": str(error), "kind": kind})
            return
        except Exception as error:  # whatever PyArrow makes of strange bytes
            why = f"{name} is damaged: it cannot be read ({type(error).__name__}: {error}). Write it again."
            _send(out, {"error": why, "kind": "InvalidInput"})
            return
        texts = {key: column.words for key, column in columns.items() if isinstance(column, Words)}
        arrays = {key: np.ascontiguousarray(c.indices if key in texts else c) for key, c in columns.items()}
        heads = {key: (array.dtype.str, len(array), texts.get(key)) for key, array in arrays.items()}
        _send(out, {"columns": heads, "stated": stated})
        for array in arrays.values():
            out.write(array.tobytes())


def _send(out: IO[bytes], head: dict[str, Any]) -> None:
    out.write(json.dumps(head).encode() + b"\n")


def _limit_process(n_bytes: int) -> None:
    """Memory and time of this process; systems differ in what they let a process limit."""
    try:
        import resource
    except ImportError:  # Windows
        return
    limits = {
        resource.RLIMIT_AS: (n_bytes, n_bytes),
        resource.RLIMIT_CPU: (CPU_SECONDS, CPU_SECONDS + 5),
        resource.RLIMIT_CORE: (0, 0),
    }
    for what, soft_and_hard in limits.items():
        with suppress(OSError, ValueError):
            resource.setrlimit(what, soft_and_hard)
