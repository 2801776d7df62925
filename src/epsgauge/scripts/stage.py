"""The process in which a script runs up to its private training, and from which its trainings are forked.

`python -m epsgauge.scripts.stage PIPE SCRATCH` reads its order from standard input and writes messages as JSON.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn

from epsgauge.data.points import as_points
from epsgauge.errors import EpsgaugeError, InvalidInput
from epsgauge.mechanisms.accounting import accountant_eps
from epsgauge.mechanisms.privacy import DPSGD
from epsgauge.numbers import duration, json_ready
from epsgauge.probing.checks import IN_A_HURRY, NAMES, named
from epsgauge.probing.contents import contents
from epsgauge.probing.probe import probe
from epsgauge.probing.recorder import Enough, Recorder
from epsgauge.probing.result import Probe
from epsgauge.scripts import opacus_training, torch_training
from epsgauge.scripts.command import Command
from epsgauge.scripts.fork import Answer, Child, fork
from epsgauge.scripts.overlay import real_files
from epsgauge.scripts.sandbox import Sandbox, sandbox
from epsgauge.trainers.watch import Watch

# Files that hold a model.
MODELS = (".pt", ".pth", ".bin", ".safetensors", ".npz", ".npy", ".pkl", ".joblib")
# A script computes constants from the number of records before its training begins, which is not done again.
NOT_FOR_SCRIPTS = ("left out", "empty batches")


class Go(BaseException):
    """In a child: leave the probe, and go on with the script."""


class Following(Watch):
    """Counts the steps of a training and changes nothing."""

    measures = True

    def _see(self, arrays: list[Any], max_grad_norm: float, divisor: float, gradients: Any) -> list[Any]:
        self.n_steps += 1
        return arrays


@dataclass(frozen=True)
class Training:
    """What a child is to do: train on these records with this seed, and show the watch each step."""

    watch: Watch
    data: Any = None  # None: those of the script
    seed: int | None = None  # None: what the script has seeded
    quiet: bool = False  # without noise


@dataclass(frozen=True)
class Order:
    """What the command line asks of a stage."""

    target: str
    arguments: tuple[str, ...] = ()
    module: bool = False
    delta: float | None = None
    adjacency: Any = "add-remove"
    only: tuple[str, ...] = ()
    quick: bool = False
    seed: int = 0
    seconds: float = 600.0  # of one training
    # of a loop without an accountant of Opacus
    data: str = ""
    noise_multiplier: float | None = None
    sample_rate: float | None = None
    steps: int | None = None
    claimed_eps: float | None = None


@dataclass(eq=False)
class Stage:
    """One script, before its training in this process, and in its training in each child."""

    order: Order
    pipe: int  # for messages
    box: Sandbox
    scratch: Path
    task: tuple[Child, Training] | None = None  # of a child
    model: Any = None
    accountant: Any = None
    facts: dict[str, Any] = field(default_factory=dict)
    scouting: bool = False  # a child that goes on to the first step
    open: ExitStack = field(default_factory=ExitStack)  # what is never closed

    @property
    def name(self) -> str:
        return self.command.name

    @property
    def command(self) -> Command:
        return Command(self.order.target, self.order.arguments, self.order.module)

    def run(self) -> NoReturn:
        """The script from its first line."""
        error: str | None = None
        try:
            self.command.run()
        except SystemExit as left:
            error = f"{self.name} ended with {left.code}" if left.code not in (None, 0) else None
        except EpsgaugeError as wrong:
            self.end(str(wrong))
        except BaseException as wrong:
            error = f"{self.name} failed with {type(wrong).__name__}: {wrong}".rstrip(".") + f"{_line(wrong)}."
        self.end(error)

    def end(self, error: str | None) -> NoReturn:
        """The script is at its end."""
        if self.task is not None:
            if error is None and not self.task[1].watch.n_steps:
                error = f"{self.name} ends before it has made a step."
            self.leave(error=error)
        if error is None:
            error = (
                f"{self.name} makes no training that can be probed: it neither calls make_private of Opacus nor steps "
                "an optimiser of torch on records of a DataLoader. Name its tensors with --data, or write a plan."
            )
        self.say({"error": error})
        os._exit(0)

    def say(self, message: dict[str, Any]) -> None:
        with suppress(OSError):
            os.write(self.pipe, (json.dumps(json_ready(message), allow_nan=False) + "\n").encode())

    def leave(self, *, error: str | None = None, enough: bool = False) -> NoReturn:
        """End this child."""
        child, training = self._task()
        watch = training.watch
        state = watch.state() if isinstance(watch, Recorder) else {"n_steps": watch.n_steps}
        model = None if enough or error is not None or self.model is None else contents(self.model) | self._saved()
        history = [] if self.accountant is None else [tuple(entry) for entry in self.accountant.history]
        child.send(Answer(state, model, {**self.facts, "history": history, "n_steps": watch.n_steps}, error))

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
        return answer

    def _fork(self) -> Child | Answer:
        """A child writes into a folder that is deleted after it."""
        folder = self.scratch / "child"
        answer = fork(self.order.seconds)
        if isinstance(answer, Child):
            self.box.child_of(folder)
        else:
            with real_files():
                shutil.rmtree(folder, ignore_errors=True)
        return answer

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
        """At the private training: probe it here, and in a child go on with what `make` gives."""
        if self.scouting:
            self.facts.pop("entry", None)
            self.leave(enough=True)
        if self.task is None:
            try:
                self._probe(copy(data), OfOpacus if private else Script)  # children change the data set in place
            except Go:
                pass
            except EpsgaugeError as error:
                self.say({"error": str(error)})
                os._exit(0)
        elif private and self.model is not None:
            self.leave(error=f"{self.name} makes two private trainings. Probe a script with one of them.")
        return make(self._task()[1])

    def _probe(self, data: Any, kind: type[Script]) -> None:
        _check_indexed(data, self.name)
        self.say({"progress": ["the whole training", 0]})
        order, start = self.order, time.perf_counter()
        facts = self.replay(Training(Following())).facts
        seconds = time.perf_counter() - start
        target, target_delta = facts.get("target", (None, None))
        spent, spent_delta = facts.get("spent"), facts.get("delta")
        delta = next((d for d in (order.delta, spent_delta, target_delta) if d is not None), 1e-5)
        claims = [eps for eps, d in ((spent, spent_delta), (target, target_delta)) if eps is not None and d == delta]
        claim = order.claimed_eps
        if claim is None and order.adjacency == "add-remove":
            claim = min(claims, default=None)
        privacy = accounted(facts, order, delta, self.name)
        names = named(order.only) if order.only else list(IN_A_HURRY if order.quick else NAMES)
        found = probe(
            kind(self, privacy),
            data,
            delta=delta,
            adjacency=order.adjacency,
            claimed_eps=claim,
            seed=order.seed,
            only=[name for name in names if name not in NOT_FOR_SCRIPTS],
            quick=order.quick,
            progress=lambda name, count: self.say({"progress": [name, count]}),
        )
        notes = [f"{self.name} trains on {len(as_points(data, self.name)):,} records, in {duration(seconds)}."]
        notes += [f"{change}." for change in self.box.changes]
        if spent is not None:
            notes.append(_said(self.name, spent, spent_delta, found))
        self.say({"probe": replace(found, notes=tuple(notes), seconds=time.perf_counter() - start).to_json()})
        os._exit(0)


@dataclass(frozen=True, eq=False)
class Script:
    """The script's training, as a trainer."""

    stage: Stage
    accounted: DPSGD
    quiet: bool = False

    def __deepcopy__(self, memo: Any) -> Script:
        return self

    def train(self, data: Any, *, seed: int, watch: Recorder) -> Any:
        answer = self.stage.replay(Training(watch, data, seed, self.quiet))
        watch.restore(answer.watch)
        if answer.model is None:
            raise Enough
        return answer.model

    def privacy(self, n: int) -> DPSGD:
        return self.accounted


class OfOpacus(Script):
    """One whose noise can be turned off."""

    def without_noise(self) -> OfOpacus:
        return replace(self, quiet=True)


def accounted(facts: dict[str, Any], order: Order, delta: float, name: str) -> DPSGD:
    """What was given, or what the script's accountant counted: with several noise multipliers, the least."""
    history = [(float(sigma), float(rate), int(steps)) for sigma, rate, steps in facts["history"]]
    sigmas, rates, steps = zip(*history, strict=True) if history else ((), (), ())
    sigma = order.noise_multiplier or min(sigmas, default=None)
    rate = order.sample_rate or max(rates, default=facts.get("rate"))
    n_steps = order.steps or sum(steps) or facts["n_steps"]
    if rate is None:
        raise InvalidInput(f"the sampling rate of {name} is not known. Give --sample-rate.")
    if sigma is None and order.claimed_eps is not None:
        sigma = _calibrated(order.claimed_eps, delta, order.adjacency, rate, n_steps)
    if sigma is None:
        raise InvalidInput(
            f"{name} has no accountant of Opacus, so its noise is not known. Give --noise-multiplier, or --claimed-eps."
        )
    return DPSGD(sample_rate=rate, noise_multiplier=sigma, steps=n_steps)


def _calibrated(eps: float, delta: float, adjacency: Any, rate: float, steps: int) -> float:
    """The noise multiplier at which the accountant says so much."""

    def above(sigma: float) -> bool:
        return (accountant_eps(DPSGD(rate, sigma, steps), delta=delta, adjacency=adjacency) or 0.0) > eps

    low, high = 0.25, 0.5
    while above(high):
        low, high = high, 2 * high
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (middle, high) if above(middle) else (low, middle)
    return low


def _said(name: str, claim: float, delta: float | None, found: Probe) -> str:
    """What the script prints, and what it would be for other neighbours."""
    other = {found.adjacency: found.accounted_eps, found.other_adjacency: found.other_eps}.get("substitute")
    at = "" if delta is None else f" at δ = {delta:g}"
    text = f"{name} computes ε = {claim:.3g}{at}, for adding or removing a record"
    return f"{text}." if other is None else f"{text}. Replacing one costs {other:.3g}, by the PRV accountant."


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


def _line(error: BaseException) -> str:
    """Where in the script, if it is known."""
    trace, where = error.__traceback__, ""
    libraries = (os.path.dirname(os.__file__), os.path.dirname(os.path.dirname(__file__)), "<frozen", "site-packages")
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not any(part in file for part in libraries):
            where = f", in line {trace.tb_lineno} of {os.path.basename(file)}"
        trace = trace.tb_next
    return where


def main() -> None:
    pipe = int(sys.argv[1])
    given = json.loads(sys.stdin.readline())
    order = Order(**{**given, "arguments": tuple(given["arguments"]), "only": tuple(given["only"])})
    scratch = Path(sys.argv[2])
    with sandbox(scratch, locked=True) as box:
        stage = Stage(order, pipe, box, scratch)
        opacus_training.install(stage)
        torch_training.install(stage)
        stage.run()


if __name__ == "__main__":
    main()
