"""What a plan's code can do to its process: every end of it is one sentence."""

from __future__ import annotations

import pytest
from command_line import refused, told

from epsgauge.runner.crew import JobLost
from epsgauge.runner.deaths import why_died

CODE = """
import ctypes, multiprocessing, os, signal, sys
import numpy as np
import epsgauge as eg

{top}


def data():
    {data}
    rng = np.random.default_rng(0)
    return rng.normal(size=(200, 4)), rng.integers(2, size=200)


class Silent(Exception):
    def __str__(self):
        raise ValueError


class Base(BaseException):
    def __init__(self, one, two):
        super().__init__(one)


class Trainer:
    def privacy(self, n):
        return eg.DPSGD(0.2, 1.0, 10)

    def train(self, data, *, seed, watch=None):
        {train}
        return np.zeros(4)

    def losses(self, model, points):
        return np.abs(points[0]).sum(axis=1)
"""
PLAN = """
name = "dies"
n_models = 20
data = "CODE:data"
trainer = "CODE:Trainer"
[game]
train_size = 100
reference_size = 20
"""


def plan(folder, **lines):
    name = f"dies_{abs(hash(tuple(lines.items())))}"  # a process has one module of a name
    code = CODE
    for place in ("top", "data", "train"):
        code = code.replace(f"{{{place}}}", lines.get(place, "pass"))
    (folder / f"{name}.py").write_text(code)
    file = folder / "plan.toml"
    file.write_text(PLAN.replace("CODE", name))
    return file


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ({"train": "os._exit(3)"}, "it ended with exit code 3, as by os._exit"),
        ({"top": "os._exit(0)"}, "it ended with exit code 0, as by os._exit"),
        ({"train": "ctypes.string_at(0)"}, "it crashed in compiled code (dies_"),
        (
            {"data": "os.kill(os.getpid(), signal.SIGKILL)"},
            "it was killed (SIGKILL). Most often that is for want of memory",
        ),
        ({"train": "os.kill(os.getpid(), signal.SIGALRM)"}, "it was ended by SIGALRM"),
        ({"train": "exit()"}, "failed with SystemExit: None (dies_"),
        ({"train": "raise KeyError(3)"}, "failed with KeyError: 3 (dies_"),
        ({"train": "raise Silent"}, "failed with Silent: it has no text (dies_"),
        ({"top": "raise KeyboardInterrupt"}, "the plan's code raised KeyboardInterrupt:"),
        ({"data": "raise Base(1, 2)"}, "the plan's code raised Base: 1 (dies_"),
    ],
)
def test_the_end_of_a_process_is_one_sentence(tmp_path, lines, words):
    said = " ".join(refused("check", plan(tmp_path, **lines), "--try").split())
    assert words in said


def test_what_the_code_starts_and_prints_does_no_harm(tmp_path):
    """A process of the user's own begins as in a script, and not as loky's."""
    top = (
        "multiprocessing.set_start_method('fork')\n"
        "sys.stdout.buffer.write(bytes(range(256))); sys.stdout.flush()\n"
        "process = multiprocessing.get_context('spawn').Process(target=os.getpid)\n"
        "process.start(); process.join()\n"
        "assert process.exitcode == 0"
    )
    done = told("check", plan(tmp_path, top=top), "--try")
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr


def test_what_else_can_be_known_of_a_death():
    def of(text, traces=()):
        return why_died(RuntimeError(text), traces)

    assert "ended by signal 99" in of("The exit codes of the workers are {UNKNOWN(-99)}")
    assert "crashed (SIGSEGV) in compiled code" in of("The exit codes of the workers are {SIGSEGV(-11)}")
    assert of("?") == "it was killed, crashed or ran out of memory."
    assert "could not be read (it is not known why)" in of("A result has failed to un-serialize.")
    assert of("?", ["Fatal Python error"]).startswith("it crashed in compiled code. Run")
    assert why_died(JobLost("its machine was lost."), []) == "its machine was lost."
