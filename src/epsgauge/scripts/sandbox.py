"""A sandbox for a user's script: its files are changed in a scratch folder only, and it is quiet."""

from __future__ import annotations

import contextlib
import multiprocessing.context
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from epsgauge.scripts import kernel, redirect, torch_on_cpu
from epsgauge.scripts.guard import Guard, guarded, replacements
from epsgauge.scripts.overlay import Overlay, real_files
from epsgauge.trainers.after_import import AfterImport

ENVIRONMENT = {
    "MPLBACKEND": "Agg",
    "WANDB_MODE": "disabled",
    "COMET_MODE": "disabled",
    "TQDM_DISABLE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "CUDA_VISIBLE_DEVICES": "",
    "JOBLIB_MULTIPROCESSING": "0",
}
_PRINTED = {2: "stderr.txt", 1: "stdout.txt"}


class Sandbox:
    """What keeps a script in, and what it changed for the script."""

    def __init__(self, scratch: Path) -> None:
        self.changes: list[str] = []  # sentences for the screen, as "CUDA was mapped to the CPU"
        self.overlay = Overlay(os.path.realpath(scratch))
        self.guard = Guard(self.overlay.scratch)
        self._pid = os.getpid()

    @property
    def refused(self) -> list[str]:
        """Sentences, also of refusals that the script caught."""
        return self.guard.refused

    def note(self, change: str) -> None:
        if change not in self.changes:
            self.changes.append(change)

    def child_of(self, folder: Path, *, network: bool = False) -> None:
        """To be called in a forked child: from here on, what it writes lies in `folder`, unseen by its siblings.

        Without `network` it connects to this machine only, because an upload would be made once per child.
        """
        if os.getpid() == self._pid:
            raise RuntimeError("child_of() is for a forked child: call it after os.fork(), in the child")
        self._pid, self.guard.network = os.getpid(), network
        with real_files():
            self.overlay.push(os.path.realpath(folder))
        self.guard.scratch = self.overlay.scratch
        self.enter()
        if board := sys.modules.get("tensorboard.summary.writer.event_file_writer"):
            for name in ("add_event", "flush", "close"):  # they wait for a thread that the fork has lost
                setattr(board.EventFileWriter, name, lambda *_: None)

    def enter(self) -> None:
        """Print into files of the scratch folder, and have temporary files there."""
        scratch = self.overlay.scratch
        with real_files():
            os.environ["TMPDIR"] = tempfile.tempdir = os.path.join(scratch, "tmp")
            _flush()
            _connect(0, os.devnull)
            for number, name in _PRINTED.items():
                _connect(number, os.path.join(scratch, name))


def last_lines(scratch: Path, lines: int = 5) -> str:
    """What a script printed last in a sandbox or child with this folder: on stderr if it did, else on stdout."""
    _flush()
    for name in _PRINTED.values():
        with real_files(), open(scratch / name, "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 10_000))
            text = [line for line in file.read().decode("utf-8", "replace").splitlines() if line.strip()]
        if text:
            return "\n".join(text[-lines:])
    return ""


@contextlib.contextmanager
def sandbox(scratch: Path, *, locked: bool = False) -> Iterator[Sandbox]:
    """Run a user's script inside: it reads the user's files, and what it writes lies in `scratch`.

    `locked` also has the kernel refuse writing outside of `scratch`, by compiled code too, until this process ends
    (Linux 6.2 or later; elsewhere it changes nothing).
    """
    scratch.mkdir(parents=True, exist_ok=True)
    if locked:
        kernel.lock(os.path.realpath(scratch))
    box = Sandbox(scratch)
    with contextlib.ExitStack() as stack:
        stack.enter_context(_restored())
        box.enter()
        os.environ.update(ENVIRONMENT)
        sys.dont_write_bytecode = True
        shutil._use_fd_functions = False  # type: ignore[attr-defined]
        contexts = multiprocessing.context._concrete_contexts  # type: ignore[attr-defined]
        for method in contexts:  # a process that begins from nothing would begin outside
            contexts[method] = contexts["fork"]
        trackers: Any = AfterImport({"wandb": _disable_wandb})
        trackers.start()
        stack.callback(sys.meta_path.remove, trackers)
        stack.enter_context(torch_on_cpu.patched(box.note, redirect.native))
        stack.enter_context(redirect.redirected(box.overlay, replacements(box.guard)))
        stack.enter_context(guarded(box.guard))
        yield box


def _disable_wandb(wandb: Any) -> None:
    """Also where the script asks for another mode, which starts a program."""
    init = wandb.init
    wandb.init = lambda *args, **named: init(*args, **{**named, "mode": "disabled"})


@contextlib.contextmanager
def _restored() -> Iterator[None]:
    """Streams, environment and settings are afterwards as before."""
    environment, temporary, bytecode = dict(os.environ), tempfile.tempdir, sys.dont_write_bytecode
    by_descriptor = shutil._use_fd_functions  # type: ignore[attr-defined]
    contexts = multiprocessing.context._concrete_contexts  # type: ignore[attr-defined]
    methods, streams = dict(contexts), [os.dup(number) for number in (0, 1, 2)]
    try:
        yield
    finally:
        _flush()
        for number, saved in enumerate(streams):
            os.dup2(saved, number)
            os.close(saved)
        contexts.update(methods)
        shutil._use_fd_functions, tempfile.tempdir = by_descriptor, temporary  # type: ignore[attr-defined]
        sys.dont_write_bytecode = bytecode
        os.environ.clear()
        os.environ.update(environment)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError, OSError):  # the script may have closed or replaced it
            stream.flush()


def _connect(number: int, path: str) -> None:
    file = os.open(path, os.O_RDWR | os.O_APPEND | (os.O_CREAT if number else 0), 0o600)
    os.dup2(file, number)
    os.close(file)
