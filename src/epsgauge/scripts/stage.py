"""The process in which a script runs up to its private training, and from which its trainings are forked.

`python -m epsgauge.scripts SOCKET SCRATCH` gets an `Order` and then requests, each of which it answers.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import shutil
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from copy import copy
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NoReturn, Protocol

from epsgauge.errors import EpsgaugeError, InvalidInput
from epsgauge.probing.contents import contents
from epsgauge.references import is_users
from epsgauge.scripts import jax_training, opacus_training, torch_training
from epsgauge.scripts.after_step import LOOKED
from epsgauge.scripts.command import Command
from epsgauge.scripts.following import Following
from epsgauge.scripts.fork import Answer, Child, fork
from epsgauge.scripts.frames import line_of
from epsgauge.scripts.messages import Failed, Held, Order
from epsgauge.scripts.overlay import real_files
from epsgauge.scripts.preparation import Fits
from epsgauge.scripts.randomness import Randomness
from epsgauge.scripts.sandbox import Sandbox, last_lines, sandbox
from epsgauge.trainers.protocol import seed_everything
from epsgauge.trainers.watch import Watch

# Files that hold a model.
MODELS = (".pt", ".pth", ".bin", ".safetensors", ".npz", ".npy", ".pkl", ".joblib")


class Go(BaseException):
    """In a child: leave the request, and go on with the script."""


@dataclass(frozen=True)
class Training:
    """What a child is to do: train on these records with this seed, and show the watch each step."""

    watch: Watch
    data: Any = None  # None: those of the script
    seed: int | None = None  # None: what the script has seeded
    quiet: bool = False  # without noise
    steps: int | None = None  # after which the child ends; None: the script does
    max_grad_norm: float | None = None  # of a loop without Opacus
    again: bool = False  # as the script would train if it were started at another time


class Request(Protocol):
    """What a session asks of a script that is held at its training."""

    def answer(self, stage: Stage, data: Any, *, private: bool) -> Any: ...


@dataclass(eq=False)
class Stage:
    """One script, before its training in this process, and in its training in each child."""

    order: Order
    session: Connection
    box: Sandbox
    scratch: Path
    randomness: Randomness
    task: tuple[Child, Training] | None = None  # of a child
    model: Any = None
    accountant: Any = None
    facts: dict[str, Any] = field(default_factory=dict)
    fits: Fits = field(default_factory=Fits)
    scouting: bool = False  # a child that goes on to the first step
    by_weights: bool = False  # whether noise is added after the optimiser's step
    last: Callable[[], None] = lambda: None  # of a child, at the end of its training
    modules: frozenset[str] = frozenset()  # that a child had from the beginning
    open: ExitStack = field(default_factory=ExitStack)  # what is never closed

    @property
    def name(self) -> str:
        return self.command.name

    @property
    def command(self) -> Command:
        return self.order.command

    def run(self) -> NoReturn:
        """The script from its first line."""
        error: str | None = None
        try:
            self.command.run()
        except SystemExit as left:
            error = self._exited(left.code) if left.code not in (None, 0) else None
        except EpsgaugeError as wrong:
            self.end(str(wrong))
        except BaseException as wrong:
            place = line_of(wrong)
            error = f"{self.name} failed with {type(wrong).__name__}: {wrong}".rstrip(".")
            error += "." if place is None else f", {place}."
        self.end(error)

    def _exited(self, code: Any) -> str:
        """As argparse does it, for options that are ours."""
        said = last_lines(Path(self.box.overlay.scratch), 1).rstrip(".")
        before = " Options for epsgauge come before the script." if "unrecognized arguments" in said else ""
        return f"{self.name} ended with {code}{f': {said}' if said else ''}.{before}"

    def end(self, error: str | None) -> NoReturn:
        """The script is at its end."""
        if self.task is not None:
            if error is None:
                self.last()
            if error is None and not self.task[1].watch.n_steps:
                error = f"{self.name} ends before it has made a step."
            self.leave(error=error)
        if error is None:
            error = (
                f"{self.name} makes no training that can be probed: it neither calls make_private of Opacus nor steps "
                "an optimiser of torch on records of a DataLoader. Name its tensors with --data, or write a plan."
            )
        self.say(Failed(error))
        os._exit(0)

    def say(self, message: Any) -> None:
        with suppress(OSError):
            self.session.send(message)

    def leave(self, *, error: str | None = None, enough: bool = False) -> NoReturn:
        """End this child."""
        child, training = self._task()
        model = None
        if not (enough or error is not None or self.model is None):
            try:
                model = contents(self.model) | self._saved()
            except Exception as wrong:
                error = f"the model of {self.name} cannot be read: {type(wrong).__name__}: {wrong}"
        history = [] if self.accountant is None else [tuple(entry) for entry in self.accountant.history]
        facts = {**self.facts, "history": history, "n_steps": training.watch.n_steps, "imported": self._imported()}
        child.send(Answer(training.watch.state(), model, facts, error))

    def replay(self, training: Training) -> Answer:
        """A training in a child, which never comes back from here: it goes on with the script."""
        sys.stdout.flush()
        sys.stderr.flush()
        answer = self._fork()
        if isinstance(answer, Child):
            self.task = answer, training
            raise Go
        if answer.error is not None:
            raise InvalidInput(answer.error)
        for name in answer.facts["imported"]:
            with suppress(Exception):
                importlib.import_module(name)
        return answer

    def _imported(self) -> list[str]:
        """Parts of libraries that a training imports when it first needs them: other children have them from here."""
        new = {name: module for name, module in list(sys.modules.items()) if name not in self.modules}
        files = {name: getattr(module, "__dict__", {}).get("__file__") for name, module in new.items()}
        return [name for name, file in files.items() if file is not None and not is_users(Path(file))]

    def _fork(self) -> Child | Answer:
        """A child writes into a folder that is deleted after it."""
        folder = self.scratch / "child"
        answer = fork(self.order.timeout, self.session.fileno())
        if isinstance(answer, Child):
            self.modules = frozenset(sys.modules)
            self.session.close()
            self.box.child_of(folder)
        else:
            with real_files():
                shutil.rmtree(folder, ignore_errors=True)
        return answer

    def apart(self, compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Facts that a child computes, so that nothing of it is left here."""
        answer = self._fork()
        if isinstance(answer, Child):
            try:
                answer.send(Answer(facts=compute()))
            except Exception as wrong:
                answer.send(Answer(error=f"{self.name}: {wrong}"))
        return answer.facts

    def _saved(self) -> dict[str, bytes]:
        """Digests of the models that the script has saved."""
        found = {}
        with real_files():
            for file in sorted((self.scratch / "child" / "files").rglob("*")):
                if file.suffix in MODELS and file.is_file():
                    found[f"the file {file.name}"] = hashlib.sha256(file.read_bytes()).digest()
        return found

    def _task(self) -> tuple[Child, Training]:
        if self.task is None:
            raise RuntimeError("only a child has a task")
        return self.task

    @property
    def held(self) -> bool:
        """Whether this is a child that trains."""
        return self.task is not None and not self.scouting

    def scout(self, begin: Callable[[Stage], None]) -> int | None:
        """What a child finds that goes on from here, and leaves at the first step or private training."""
        answer = self._fork()
        if isinstance(answer, Child):
            self.task, self.scouting = (answer, Training(Following())), True
            begin(self)
            return None
        return answer.facts.get("entry")

    def hold(self, data: Any, make: Callable[[Training], Any], *, private: bool = False) -> Any:
        """At the private training: answer requests here, and in a child go on with what `make` gives."""
        if self.scouting:
            self.facts.pop("entry", None)
            self.leave(enough=True)
        if self.task is None:
            with suppress(Go):
                self._serve(copy(data), private=private)  # children change the data set in place
        elif private and self.model is not None:
            self.leave(error=f"{self.name} makes two private trainings. Probe a script with one of them.")
        return make(self._task()[1])

    def _serve(self, data: Any, *, private: bool) -> NoReturn:
        """Until the session is over."""
        try:
            _check_indexed(data, self.name)
            self.randomness.hold()
            if not private:
                self.by_weights = "by_weights" in self.replay(Training(Following(), steps=LOOKED)).facts
        except EpsgaugeError as error:
            self.say(Failed(str(error)))
            os._exit(0)
        self.say(Held())
        while True:
            try:
                request: Request = self.session.recv()
                self.say(request.answer(self, data, private=private))
            except EpsgaugeError as error:
                self.say(Failed(str(error)))
            except EOFError:
                os._exit(0)


def _check_indexed(data: Any, name: str) -> None:
    try:
        data[0], len(data)
    except Exception:
        raise InvalidInput(
            f"the records of {name} must be indexed, but its data set is {_a(type(data).__name__)}, whose records are "
            "not. Give the loader a map-style data set, with __getitem__ and __len__."
        ) from None


def _a(noun: str) -> str:
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"


def main() -> None:
    session, scratch = Connection(int(sys.argv[1])), Path(sys.argv[2])
    order = session.recv()
    with sandbox(scratch, locked=True) as box:
        words = f"{order.command.text} {' '.join(order.arguments)}"
        stage = Stage(order, session, box, scratch, Randomness(words))
        opacus_training.install(stage)
        torch_training.install(stage)
        jax_training.install(stage)
        seed_everything(0)  # first weights that the script does not seed are the same in every session
        stage.randomness.install()
        stage.fits.install()
        stage.run()
