"""How a command ends where its input is huge, its reader has left, a stream is closed or Ctrl-C comes early."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from command_line import refused
from tiny_runs import TEXT

from epsgauge.cli import estimate
from epsgauge.runner.view import Run
from epsgauge.scores.table import Scores

SIZE = ("size", "--delta", "1e-5", "--accuracy", "0.7", "--half-width", "0.5")
PLAN = 'name = "a"\nn_models = 10\ndata = "digits"\n[trainer]\nuse = "dpsgd"\n[game]\ntrain_size = 100\n'


@pytest.fixture(scope="module")
def leaking(tmp_path_factory):
    path = tmp_path_factory.mktemp("ends") / "scores.csv"
    rng = np.random.default_rng(0)
    scores = Scores.from_in_out(
        rng.normal(4, 1, 60), rng.normal(0, 1, 60), adjacency="substitute", models="independent"
    )
    scores.write(path)
    return path


def unread(*args, unbuffered=""):
    """Exit code and standard error of a command whose reader left before it wrote a word."""
    read, write = os.pipe()
    os.close(read)
    env = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    done = subprocess.run(
        [sys.executable, "-m", "epsgauge", *map(str, args)],
        stdout=write,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env=env,
    )
    os.close(write)
    return done.returncode, done.stderr


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("form", [(), pytest.param(("--json",), marks=pytest.mark.long)])
def test_a_gate_says_the_same_where_nobody_reads(leaking, form, unbuffered):
    """Exit code 1 means that a gate says no, and nothing else."""
    fixed = ("scores", leaking, "--delta", "1e-5", "--threshold", "2", *form)
    assert unread(*fixed, unbuffered=unbuffered) == (0, "")
    code, said = unread(*fixed, "--fail-above", "0.1", unbuffered=unbuffered)
    assert code == 1
    assert said.startswith("gate: ")
    assert "Traceback" not in said


@pytest.mark.skipif(sys.platform == "win32", reason="a shell that closes streams")
@pytest.mark.parametrize(("closed", "code"), [(">&-", 0), (">&- 2>&- <&-", 0), ("--level 7 2>&-", 2)])
def test_a_closed_stream_is_no_traceback(closed, code):
    command = " ".join([sys.executable, "-m", "epsgauge", *SIZE, closed])
    done = subprocess.run(command, shell=True, capture_output=True, encoding="utf-8")
    assert (done.returncode, done.stderr) == (code, "")


@pytest.mark.skipif(sys.platform == "win32", reason="a shell that closes streams")
@pytest.mark.parametrize("closed", [">&-", ">&- 2>&- <&-"])
def test_workers_do_without_streams(closed, tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text(TEXT.format(name="a", n_models=70, eps=1.0, m=1, attack="percentile", challenge=""))
    command = f"{sys.executable} -m epsgauge run {path} --out {tmp_path / 'run'} --workers 2 {closed}"
    assert subprocess.run(command, shell=True, capture_output=True, encoding="utf-8").returncode == 0
    assert Run.open(tmp_path / "run").n_done == 70


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is full")
def test_a_full_standard_error_changes_no_exit_code(leaking):
    fixed = [sys.executable, "-m", "epsgauge", "scores", str(leaking), "--delta", "1e-5", "--threshold"]
    for options, code in (["2", "--fail-above", "0.1"], 1), (["nan"], 2):
        with open("/dev/full", "w") as full:
            assert subprocess.run([*fixed, *options], stdout=subprocess.DEVNULL, stderr=full).returncode == code


@pytest.mark.skipif(sys.platform == "win32", reason="a shell that closes streams")
def test_a_closed_standard_input_is_empty():
    command = f"{sys.executable} -m epsgauge scores - --adjacency substitute <&-"
    done = subprocess.run(command, shell=True, capture_output=True, encoding="utf-8")
    assert done.returncode == 2
    assert done.stderr.startswith("error: standard input is empty. Write a header")


def test_no_file_takes_the_place_of_a_closed_stream(tmp_path):
    """Else what is printed would be written into it."""
    out = tmp_path / "a.svg"
    counts = "--tp 31 --tn 996 --fp 5 --fn 968 --delta 1e-5"
    command = f"{sys.executable} -m epsgauge estimate {counts} --figure {out} >&-"
    done = subprocess.run(command, shell=True, capture_output=True, encoding="utf-8")
    assert (done.returncode, done.stderr) == (0, f"figure: {out}\n")
    assert out.read_text(encoding="utf-8").endswith("</svg>\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_is_a_sentence(unbuffered):
    env = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "epsgauge", *SIZE], stdout=full, stderr=subprocess.PIPE, encoding="utf-8", env=env
        )
    assert done.returncode == 2
    assert done.stderr == "error: the output could not be written: No space left on device.\n"


EARLY = """
import builtins, runpy, sys
real = builtins.__import__
def interrupted(name, *args, **kw):
    if name == "typer":
        raise KeyboardInterrupt
    return real(name, *args, **kw)
builtins.__import__ = interrupted
sys.argv = ["epsgauge", "--version"]
"""


@pytest.mark.parametrize(
    "start", ["runpy.run_module('epsgauge', run_name='__main__')", "from epsgauge.__main__ import main; main()"]
)
def test_ctrl_c_while_modules_are_loaded(start):
    done = subprocess.run([sys.executable, "-c", EARLY + start], capture_output=True, encoding="utf-8")
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_the_command_is_the_module():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["scripts"] == {"epsgauge": "epsgauge.__main__:main"}


def test_too_little_memory_is_a_sentence(monkeypatch):
    def full(*args):
        raise MemoryError

    monkeypatch.setattr(estimate, "_number", full)
    said = refused("estimate", "--tp", "1", "--tn", "1", "--fp", "1", "--fn", "1", "--delta", "0")
    assert said == "error: this does not fit into memory. Use a machine with more, or judge less at once.\n"


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("deep = " + "[" * 2000 + "]" * 2000, "is not TOML: "),
        ("seed = " + "1" * 5000, "is not TOML: "),
        ("seed = 0x" + "f" * 5000, "has a number of more than 100 digits. Write a smaller one."),
        ("data.size = [1, " + "1" * 4000 + "]", "has a number of more than 100 digits."),
    ],
    ids=["deep", "long", "hexadecimal", "inside"],
)
def test_a_monstrous_plan_is_a_sentence(tmp_path, line, sentence):
    path = tmp_path / "plan.toml"
    path.write_text(f"{line}\n{PLAN if 'data' not in line else PLAN.replace('data = ', 'x = ')}")
    said = refused("check", path)
    assert sentence in said
    assert len(said) < 600


def test_a_monstrous_header_is_a_sentence(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x" * 200_000 + ",bit,score\n1,1,2\n")
    assert "a.csv, line 1: not CSV: field larger than field limit" in refused("scores", path)


WARNS = """
import sys, warnings
from epsgauge.cli import main
main.app.command("warn")(lambda: warnings.warn("this was\\nkilled", stacklevel=1))
sys.argv = ["epsgauge", "warn"]
main.main()
"""


def test_a_warning_is_one_line_without_the_place_where_it_was_raised():
    done = subprocess.run([sys.executable, "-c", WARNS], capture_output=True, encoding="utf-8")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "! this was killed\n")
