"""Runs end, and nothing of them is left: trainers that hang, workers and programs whose run was killed."""

from __future__ import annotations

import json
import os
import pickle
import signal
import struct
import subprocess
import sys
import tempfile
import textwrap
import time
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import pytest
from patience import PATIENCE, until
from rich.console import Console
from test_program import ends
from test_runner import PATH, blobs, children, command, here, plan, troubled

from epsgauge.errors import EpsgaugeError, InvalidInput
from epsgauge.games.seeds import Branch, training_seed
from epsgauge.reporting.progress import Bar
from epsgauge.runner import limit, pool, results
from epsgauge.runner.executors import Workers
from epsgauge.runner.plan import ExecutionSettings
from epsgauge.runner.progress import Progress, Watch
from epsgauge.runner.run import run
from epsgauge.runner.same import Expected, checked
from epsgauge.runner.scratch import Scratch, sweep
from epsgauge.runner.view import Run
from epsgauge.trainers import leaving, reaper

linux = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="reads /proc")


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """A temporary folder of its own, in which scratch folders can be counted."""
    folder = tmp_path / "tmp:1"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


# trainers that hang


@linux
@pytest.mark.parametrize("how", ["thread", "atexit"])
def test_a_worker_that_does_not_end_is_killed_and_a_line_says_so(tmp_path, temporary, monkeypatch, how):
    monkeypatch.setattr(pool, "_LEAVING_SECONDS", 0.2)
    words = r"did not end within 0\.2 seconds of the last model and were killed: .* All models are kept"
    with pytest.warns(UserWarning, match=words):
        assert run(troubled(how, [0]), out=tmp_path / "a", workers=1).complete
    assert list(temporary.iterdir()) == []


def test_a_worker_that_does_not_end_is_killed_also_where_there_is_no_proc(tmp_path, temporary, monkeypatch):
    monkeypatch.setattr(pool, "_LEAVING_SECONDS", 0.5)
    monkeypatch.setattr(reaper, "marked", lambda folder: [])
    with pytest.warns(UserWarning, match="did not end within"):
        assert run(troubled("thread", [1]), out=tmp_path / "a", workers=1).n_done == 6


@linux
def test_a_model_that_takes_too_long_is_failed_even_if_it_holds_the_gil(tmp_path, temporary):
    """Only this model is played under the limit: others may take their time on a busy machine."""
    planned = troubled("raise, then hang", [3], once_in=str(tmp_path))
    assert here(planned, tmp_path / "a").n_failed == 1
    limited = planned.changed(execution={"timeout": 0.5})
    a_run = run(limited, out=tmp_path / "a", workers=2, retry_failed=True)
    (failure,) = a_run.failed
    *where, what = failure.error.splitlines()  # the last line is the error, as in a traceback
    assert what == (
        "it took longer than execution.timeout = 0.5 seconds and was ended. Set a longer timeout, or see above where "
        "it was."
    )
    assert "troubled.py" in where[1]
    assert (a_run.n_done, failure.index) == (5, 3)
    assert list(temporary.iterdir()) == []


class Fake:
    """A crew whose workers die with certain batches, which took too long or not."""

    in_flight = 4
    bundle = 1
    sources = SimpleNamespace(check=lambda: None)
    expected = Expected({})

    def __init__(self, dies, slow):
        self.dies, self.slow, self.submitted, self.broken = dies, slow, [], []

    def submit(self, job, expected, *inner, batches):
        assert job is checked
        future, (indices,) = Future(), batches
        self.submitted.append(indices)
        if indices in self.dies:
            self.broken.append(tuple(indices))
            future.set_exception(BrokenProcessPool())
        else:
            future.set_result([(index, "done") for index in indices])
        return future

    def late(self):
        found = {batch: "late" for batch in self.broken if list(batch) in self.slow}
        self.broken.clear()
        return found

    def replace(self, *, alone):
        pass


def test_a_model_that_was_late_is_not_tried_twice_and_the_others_are_not_suspected():
    batches = [[0], [1], [2]]
    crew = Fake([[1]], [[1]])
    found = results.results(crew, None, (), batches, lambda index, why: (index, why))
    assert sorted(found) == [(0, "done"), (1, "late"), (2, "done")]
    assert crew.submitted.count([1]) == 1


def test_of_a_group_that_was_late_each_model_is_tried_alone():
    crew = Fake([[0, 1, 2], [1]], [[0, 1, 2], [1]])
    found = results.results(crew, None, (), [[0, 1, 2]], lambda index, why: (index, why))
    assert sorted(found) == [(0, "done"), (1, "late"), (2, "done")]
    assert crew.submitted == [[0, 1, 2], [0], [1], [2]]


def test_one_that_dies_for_another_reason_is_tried_twice():
    crew = Fake([[1]], [])
    found = results.results(crew, None, (), [[1]], lambda index, why: (index, why))
    assert list(found) == [(1, results.DIED_TWICE)]
    assert crew.submitted == [[1]] * 3


def test_the_limit_is_for_each_model_of_a_job_and_is_lifted_at_its_end(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(
        "faulthandler.dump_traceback_later", lambda seconds, **how: asked.append((seconds, how["exit"]))
    )
    monkeypatch.setenv(reaper.MARK, f"/nowhere\n{tmp_path}")
    monkeypatch.setattr(leaving, "in_worker", True)
    with limit.within(2.0, [3, 4, 5]):
        (file,) = tmp_path.iterdir()
        indices, until = json.loads(file.read_text(encoding="utf-8"))
        assert indices == [3, 4, 5]
        assert until > time.monotonic()
        assert limit.late(str(tmp_path), 2.0) == {}
    assert asked == [(6.0, True)]
    assert list(tmp_path.iterdir()) == []


class Processes:
    """What a watchdog is told of processes, and whom it kills."""

    def __init__(self, monkeypatch, folder):
        self.stopped, self.killed, self.children = set(), [], [WORKER]
        monkeypatch.setattr(reaper, "_children", lambda pid: self.children)
        monkeypatch.setattr(reaper, "_is_stopped", lambda pid: pid in self.stopped)
        monkeypatch.setattr(reaper, "_kill", self.killed.append)
        monkeypatch.setattr(reaper, "_marks", lambda pid: [os.fsencode(folder)] if pid != STRANGER else [])


PARENT, WORKER, STRANGER, RUNNING = 1, 2, 3, 4


@pytest.mark.parametrize(("stopped", "looks"), [(True, reaper._STOPPED_LOOKS), (False, reaper._OVERDUE_LOOKS)])
def test_a_watchdog_kills_a_worker_that_is_overdue_and_has_not_ended_itself(tmp_path, monkeypatch, stopped, looks):
    processes = Processes(monkeypatch, str(tmp_path))
    processes.stopped = {WORKER} if stopped else set()
    dog = reaper.Watchdog(str(tmp_path), PARENT, 2.0, ends_parent=False)
    (tmp_path / f"late-{WORKER}").write_text(json.dumps([[3], time.monotonic() + 1e9]) + "\n")
    for _ in range(looks + 1):
        dog.look()
    assert processes.killed == []
    (tmp_path / f"late-{WORKER}").write_text("[[3], 0.0]\n")
    for _ in range(looks):
        dog.look()
    assert processes.killed == []
    dog.look()
    assert processes.killed == [WORKER]
    assert limit.late(str(tmp_path), 2.0)[3,].startswith(reaper.STOOD_STILL)


@linux
def test_a_watchdog_kills_a_worker_that_is_stopped_for_long_and_trains_nothing(tmp_path, monkeypatch):
    """One that trains has the time of its models, and processes of others are theirs."""
    processes = Processes(monkeypatch, str(tmp_path))
    processes.children, processes.stopped = [WORKER, STRANGER, RUNNING], {WORKER, STRANGER}
    dog = reaper.Watchdog(str(tmp_path), PARENT, 2.0, ends_parent=False)
    (tmp_path / f"late-{WORKER}").write_text(json.dumps([[3], time.monotonic() + 1e9]) + "\n")
    looks = int(2.0 / reaper._LOOK) + reaper._STOPPED_LOOKS
    for _ in range(looks + 1):
        dog.look()
    (tmp_path / f"late-{WORKER}").unlink()
    for _ in range(looks):
        dog.look()
    processes.stopped.remove(WORKER)  # and goes on: the time begins again
    dog.look()
    processes.stopped.add(WORKER)
    for _ in range(looks):
        dog.look()
    assert processes.killed == []
    dog.look()
    assert processes.killed == [WORKER]
    assert list(tmp_path.iterdir()) == []


class Stop(Watch):
    """Stops the workers after the second model, when there is nothing that they do."""

    def finished_one(self, outcome, progress):
        if progress.n_here == 2:
            self.stopped = [pid for pid in children() if "loky.backend.popen_loky_posix" in command(pid)]
            for pid in self.stopped:
                os.kill(pid, signal.SIGSTOP)


@linux
def test_a_worker_that_is_stopped_while_it_waits_for_a_model_is_replaced(tmp_path, temporary, monkeypatch):
    monkeypatch.setattr(Workers, "in_flight", 1)
    limited, watch = plan().changed(execution={"timeout": 2.0}), Stop()
    assert run(limited, out=tmp_path / "a", workers=1, watch=watch).complete
    (stopped,) = watch.stopped
    ends(stopped)
    here(plan(), tmp_path / "b")
    assert blobs(tmp_path / "a") == blobs(tmp_path / "b")
    assert list(temporary.iterdir()) == []


@linux
def test_a_worker_that_is_stopped_while_it_reads_the_data_ends_the_run_which_can_be_resumed(tmp_path, temporary):
    planned = plan(data={"use": "several_ways:data", "once_in": str(tmp_path)})
    with pytest.raises(EpsgaugeError, match="died while it ran the plan's code: it was killed"):
        run(planned.changed(execution={"timeout": 0.5}), out=tmp_path / "a", workers=2)
    assert (tmp_path / "read").exists()
    assert run(planned, out=tmp_path / "a", workers=2).complete
    here(plan(), tmp_path / "b")
    assert blobs(tmp_path / "a") == blobs(tmp_path / "b")
    assert list(temporary.iterdir()) == []


@linux
def test_a_worker_that_dies_while_it_sends_a_result_breaks_its_pool(temporary, monkeypatch):
    """loky itself waits for the rest, whoever killed the worker."""

    def half():
        frame = sys._getframe()
        while "result_queue" not in frame.f_locals:
            frame = frame.f_back
        os.write(frame.f_locals["result_queue"]._writer.fileno(), struct.pack("!i", 100) + b"half")
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(pool, "_NOTICE_SECONDS", 0.1)
    two = pool.Pool(pickle.dumps(None), 2, None)
    with pytest.raises(BrokenProcessPool):
        two.submit(half).result(PATIENCE)
    assert two.is_broken()
    two.replace(alone=False)
    assert two.submit(len, "ab").result(PATIENCE) == 2
    two.leave(at_once=True)
    assert list(temporary.iterdir()) == []


@linux
def test_a_reaper_that_is_stopped_keeps_no_run_from_its_end(temporary):
    scratch = Scratch()
    os.kill(scratch._reaper.pid, signal.SIGSTOP)
    scratch.close()
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("ends_parent", [False, True])
def test_while_its_parent_is_stopped_nothing_is_late_and_only_a_clusters_worker_is_killed_for_it(
    tmp_path, monkeypatch, ends_parent
):
    processes = Processes(monkeypatch, str(tmp_path))
    processes.stopped = {PARENT, WORKER}  # as Ctrl-Z does
    dog = reaper.Watchdog(str(tmp_path), PARENT, 2.0, ends_parent=ends_parent)
    (tmp_path / f"late-{WORKER}").write_text("[[3], 0.0]\n")
    for _ in range(int(2.0 / reaper._LOOK) + reaper._STOPPED_LOOKS):
        dog.look()
    assert processes.killed == []
    dog.look()
    assert processes.killed == ([PARENT] if ends_parent else [])


def test_where_a_late_model_was_is_the_innermost_place(tmp_path):
    frames = [f'  File "deep.py", line {i} in inner' for i in range(90)]
    (tmp_path / "late-7").write_text(
        "\n".join(["[[3], 0.0]", "Timeout", "", "Thread 1 (most recent call first):", *frames])
    )
    assert frames[0] in limit.late(str(tmp_path), 2.0)[3,]


@pytest.mark.parametrize("timeout", [0, -1.0, float("inf"), "1"])
def test_a_bad_limit_is_a_sentence(timeout):
    with pytest.raises(InvalidInput, match=r"execution\.timeout"):
        plan().changed(execution={"timeout": timeout})
    assert ExecutionSettings().timeout is None


def test_the_bar_says_that_nothing_has_come_for_long(monkeypatch):
    now, said = [0.0], StringIO()
    monkeypatch.setattr("epsgauge.reporting.progress.time", SimpleNamespace(monotonic=lambda: now[0]))

    def lines():
        text = said.getvalue().splitlines()
        said.truncate(0)
        said.seek(0)
        return text

    bar = Bar(plan(), Console(file=said, width=200))
    bar.stage("rehearsing")
    for i in range(1, 4):
        now[0] += 20.0
        bar.rehearsed_one(Progress(6, i, 0))
    lines()
    for seconds, words in ((150.0, []), (60.0, ["fast: 3/6   no model for 3 min 30 s"]), (5.0, [])):
        now[0] += seconds
        bar.waiting()
        assert lines() == words  # and no more often than other lines
    now[0] += 1
    bar.rehearsed_one(Progress(6, 4, 0))
    bar.waiting()
    assert not any("no model" in line for line in lines())


# a run that was killed

DRIVER = """
import json, os, sys
from epsgauge.runner.plan import Plan
from epsgauge.runner.run import run
out, parts = sys.argv[1], json.loads(sys.argv[2])
game = {"train_size": 20, "pairs_per_model": 2, "reference_size": 10}
run(Plan(name="a", n_models=6, data="fast:data", game=game, **parts), out=out, workers=1)
"""


def driver(tmp_path, temporary, **parts):
    words = [sys.executable, "-c", DRIVER, str(tmp_path / "a"), json.dumps(parts)]
    environment = {**os.environ, "PYTHONPATH": PATH, "TMPDIR": str(temporary)}
    return subprocess.Popen(words, env=environment, stderr=subprocess.DEVNULL, start_new_session=True)


def number_in(file):
    until(lambda: file.exists() and file.read_text(encoding="utf-8").strip(), f"{file} is written")
    return int(file.read_text(encoding="utf-8"))


@linux
@pytest.mark.parametrize("whole_group", [False, True])
def test_a_worker_that_holds_the_gil_ends_with_its_run(tmp_path, temporary, whole_group):
    seeds = [training_seed(0, Branch.audited, 2)]
    trainer = {"use": "troubled:Troubled", "how": "hang", "seeds": seeds, "once_in": str(tmp_path)}
    with driver(tmp_path, temporary, trainer=trainer) as child:
        worker = number_in(tmp_path / "hangs")
        (os.killpg if whole_group else os.kill)(child.pid, signal.SIGKILL)
    ends(worker)
    until(lambda: not list(temporary.iterdir()), "the scratch folder is removed")
    assert Run.open(tmp_path / "a").n_done <= 2  # the run may have been killed before it stored the second


SLEEPS = """
    import os, sys, time
    place, seed, worst = sys.argv[1:]
    with open(os.path.join(place, "folder"), "w") as file:
        file.write(os.getcwd())
    new = os.path.join(place, "pid.new")
    with open(new, "w") as file:
        file.write(str(os.getpid()))
    os.rename(new, os.path.join(place, "pid"))
    os.setsid() if os.getpid() != os.getsid(0) else None
    time.sleep(600)
"""


@linux
def test_a_program_and_its_folder_end_with_their_run(tmp_path, temporary):
    (tmp_path / "sleeps.py").write_text(textwrap.dedent(SLEEPS))
    command = ["{python}", str(tmp_path / "sleeps.py"), str(tmp_path), "{seed}", "{folder}"]
    with driver(tmp_path, temporary, trainer={"use": "program", "command": command}) as child:
        program = number_in(tmp_path / "pid")
        (scratch,) = temporary.iterdir()
        assert any(name.startswith("epsgauge-") for name in os.listdir(scratch))
        child.kill()
    ends(program)
    until(lambda: not list(temporary.iterdir()), "the scratch folder is removed")


KILLS_ITS_WORKER = """
import os, signal, sys, time
import numpy as np
folder, seed, place, worst = sys.argv[1:]
if seed == worst and not os.path.exists(os.path.join(place, "pid")):
    with open(os.path.join(place, "pid"), "w") as file:
        file.write(str(os.getpid()))
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(600)
points = np.loadtxt(f"{folder}/points.csv", delimiter=",")
np.savetxt(f"{folder}/losses.csv", points.sum(axis=1))
"""


@linux
def test_the_program_of_a_worker_that_was_killed_ends_when_the_worker_is_replaced(tmp_path, temporary):
    (tmp_path / "program.py").write_text(KILLS_ITS_WORKER)
    worst = str(training_seed(0, Branch.audited, 1))
    command = ["{python}", str(tmp_path / "program.py"), "{folder}", "{seed}", str(tmp_path), worst]
    planned = plan(3, trainer={"use": "program", "command": command}, control_models=0)
    assert run(planned, out=tmp_path / "a", workers=1).complete
    ends(number_in(tmp_path / "pid"))
    assert list(temporary.iterdir()) == []


ABANDONED = """
import os, signal, subprocess, sys
from epsgauge.runner.scratch import Scratch
scratch = Scratch()
quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
sleeps = subprocess.Popen(["sleep", "600"], **quiet, env={**os.environ, **scratch.environment}, start_new_session=True)
print(sleeps.pid, flush=True)
os.kill(scratch._reaper.pid, signal.SIGKILL)
os.kill(os.getpid(), signal.SIGKILL)
"""


@linux
def test_what_a_run_and_its_reaper_left_is_removed_by_the_next(tmp_path, temporary):
    environment = {**os.environ, "TMPDIR": str(temporary)}
    done = subprocess.run([sys.executable, "-c", ABANDONED], capture_output=True, encoding="utf-8", env=environment)
    (left,) = temporary.iterdir()
    mine = temporary / "epsgauge-scratch-of-mine"  # of another kind
    mine.mkdir()
    alive = Scratch()
    assert not left.exists()
    ends(int(done.stdout))
    sweep()
    assert Path(alive.folder).is_dir()  # somebody holds it
    alive.close()
    assert list(temporary.iterdir()) == [mine]


@linux
def test_what_was_started_a_moment_ago_ends_too(temporary):
    """Its environment, with the mark, may not be there yet when `Popen` returns."""
    scratch = Scratch()
    for _ in range(20):
        started = subprocess.Popen(["sleep", "600"], env=scratch.environment)
        assert scratch.end_marked() == 1
        assert started.wait() == -signal.SIGKILL
    scratch.close()


def test_a_run_within_a_worker_is_marked_by_both(monkeypatch, temporary):
    outer = Scratch()
    monkeypatch.setenv(reaper.MARK, outer.folder)
    inner = Scratch()
    assert inner.environment == {reaper.MARK: f"{outer.folder}\n{inner.folder}"}
    monkeypatch.setenv(reaper.MARK, inner.environment[reaper.MARK])
    assert leaving.scratch() == inner.folder
    inner.close()
    assert leaving.scratch() is None
    outer.close()
