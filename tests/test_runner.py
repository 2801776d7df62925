"""Runs: the same signals however they are played, resume, refusals, workers that die, models that fail."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from patience import PATIENCE, until
from stores import forge

from epsgauge.errors import EpsgaugeError, InvalidInput
from epsgauge.games.seeds import Branch, training_seed
from epsgauge.mechanisms.privacy import DPSGD
from epsgauge.runner import results
from epsgauge.runner.executors import InProcess
from epsgauge.runner.hopeless import AllFail, First
from epsgauge.runner.lock import hold
from epsgauge.runner.plan import Plan
from epsgauge.runner.progress import Progress, Watch
from epsgauge.runner.results import DIED_TWICE
from epsgauge.runner.run import run
from epsgauge.runner.store import FILE
from epsgauge.runner.view import Run, results_of

PIPELINES = Path(__file__).parent / "pipelines"
PATH = os.pathsep.join([str(PIPELINES), *filter(None, [os.environ.get("PYTHONPATH")])])
BLOBS = "SELECT idx, state, seed, bits, pairs, signals FROM models ORDER BY idx"


def plan(n_models=6, *, trainer=None, data=None, folder=PIPELINES, seed=0, audit=None, **game):
    return Plan(
        name="fast",
        seed=seed,
        n_models=n_models,
        data=data or {"use": "fast:data"},
        trainer=trainer or {"use": "fast:Mean"},
        game={"train_size": 20, "pairs_per_model": 2, "reference_size": 10, **game},
        audit=audit or {},
        folder=folder,
    )


def troubled(how, models, **kw):
    seeds = [training_seed(0, Branch.audited, i) for i in models]
    return plan(trainer={"use": "troubled:Troubled", "how": how, "seeds": seeds, **kw})


def here(a_plan, out, **kw):
    return run(a_plan, out=out, executor=InProcess(), **kw)


def blobs(out):
    connection = sqlite3.connect(out / FILE)
    rows = connection.execute(BLOBS).fetchall()
    connection.close()
    return rows


class Log(Watch):
    """Notes what it was told, and raises `error` after so many models."""

    def __init__(self, stop_after=None, error=KeyboardInterrupt):
        self.told, self.progress, self.stop_after, self.error = [], [], stop_after, error

    def stage(self, name):
        self.told.append(name)

    def ranked_one(self, progress):
        self.told.append("ranked")

    def started(self, run, remaining):
        self.told.append(("started", run.n_done, remaining))

    def finished_one(self, outcome, progress):
        self.told.append(outcome.index)
        self.progress.append(progress)
        if self.stop_after == progress.n_here:
            raise self.error("enough")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run of six models in this process, to copy or to compare with."""
    out = tmp_path_factory.mktemp("finished") / "run"
    here(plan(), out)
    return out


@pytest.fixture
def copy(finished, tmp_path):
    return Path(shutil.copytree(finished, tmp_path / "copy"))


# what a run gives


def test_a_run_has_signals_provenance_and_the_trainers_promise(finished):
    a_run = Run.open(finished)
    signals = results_of(a_run).signals
    assert signals.models.tolist() == list(range(6))
    assert signals["loss"].shape == (6, 2, 2)
    assert signals["reference"].shape == (6, 10)
    assert np.isfinite(signals["loss"]).all()
    assert a_run.complete
    assert (a_run.n_done, a_run.n_failed, a_run.failed) == (6, 0, ())
    assert a_run.plan.fingerprinted() == plan().fingerprinted()
    assert a_run.privacy == DPSGD(sample_rate=1.0, noise_multiplier=1.0, steps=1)
    assert len(a_run.provenance["fingerprint"]) == 64
    assert a_run.provenance["packages"]["numpy"] == np.__version__
    assert (a_run.notes, a_run.looks, a_run.extended_after_look) == ([], [], False)
    assert repr(a_run) == f"Run({str(finished)!r}: 6 of 6 models done, 0 failed)"


def test_opening_a_run_imports_none_of_its_code(copy):
    script = f"import sys; from epsgauge.runner.view import Run; Run.open({str(copy)!r}).signals()\n"
    script += "assert not {'fast', 'loky', 'epsgauge.runner.play'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True, env={**os.environ, "PYTHONPATH": PATH})


def test_neither_workers_nor_executor_nor_order_change_a_signal(finished, tmp_path):
    run(plan(), out=tmp_path / "two", workers=2)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes:
        run(plan(), out=tmp_path / "processes", executor=processes)
    with ThreadPoolExecutor(3) as threads, pytest.raises(InvalidInput, match="must not be a pool of threads"):
        run(plan(), out=tmp_path / "threads", executor=threads)
    # backwards: later models first, by asking for them as a run that lacks them
    shutil.copytree(finished, tmp_path / "late")
    forge(tmp_path / "late" / FILE, "DELETE FROM models WHERE idx IN (0, 2)")
    here(plan(), tmp_path / "late")
    for name in ("two", "processes", "late"):
        assert blobs(tmp_path / name) == blobs(finished), name


def test_another_seed_gives_other_signals(finished, tmp_path):
    here(plan(seed=1), tmp_path)
    assert all(a[5:] != b[5:] for a, b in zip(blobs(tmp_path), blobs(finished), strict=True))


def test_the_worst_points_are_ranked_once_and_kept(tmp_path):
    worst = plan(2, challenge="worst", pool_size=8, ranking_models=32, train_size=15)
    log = Log()
    here(worst, tmp_path, watch=log)
    assert log.told == ["preparing", "ranking", *["ranked"] * 32, "rehearsing", "playing", ("started", 0, 2), 0, 1]
    again = Log()
    here(plan(3, challenge="worst", pool_size=8, ranking_models=32, train_size=15), tmp_path, watch=again)
    assert again.told == ["preparing", "playing", ("started", 2, 1), 2]
    assert len(np.unique(Run.open(tmp_path).signals().pairs)) <= 8


# resume


def test_progress_is_told_after_it_is_stored_and_an_interrupt_keeps_it(finished, tmp_path):
    log = Log(stop_after=2)
    with pytest.raises(KeyboardInterrupt):
        here(plan(), tmp_path, watch=log)
    assert log.told == ["preparing", "rehearsing", "playing", ("started", 0, 6), 0, 1]
    a_run = Run.open(tmp_path)
    assert (a_run.n_done, a_run.complete, a_run.progress.n_left) == (2, False, 4)
    again = Log()
    assert here(plan(), tmp_path, watch=again).complete
    assert again.told == ["preparing", "playing", ("started", 2, 4), 2, 3, 4, 5]
    assert [(p.n_models, p.n_done, p.n_failed, p.n_here) for p in again.progress] == [
        (6, 3, 0, 1),
        (6, 4, 0, 2),
        (6, 5, 0, 3),
        (6, 6, 0, 4),
    ]
    assert blobs(tmp_path) == blobs(finished)


def test_rate_and_time_left():
    progress = Progress(n_models=10, n_done=5, n_failed=1, n_here=3, seconds=4.0)
    assert (progress.rate, progress.n_left, progress.seconds_left) == (0.5, 4, 8.0)
    assert Progress(10, 5, 1).seconds_left is None


def test_an_interrupt_kills_the_workers_at_once(tmp_path):
    nap = plan(40, trainer={"use": "fast:Mean", "nap": 0.02})
    before = set(children())
    with pytest.raises(ZeroDivisionError):
        run(nap, out=tmp_path, workers=2, watch=Log(3, ZeroDivisionError))
    assert Run.open(tmp_path).n_done == 3
    assert not set(children()) - before - trackers()


def children():
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(os.getpid())], capture_output=True, encoding="utf-8")
    return [int(pid) for pid in found.stdout.split() if "ps" not in command(int(pid))]


def command(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8").split("\0")
    except OSError:
        return ["ps"]  # gone already


def trackers():
    """loky keeps one process that cleans up after a crash."""
    return {pid for pid in children() if any("resource_tracker" in word for word in command(pid))}


def test_a_finished_run_returns_without_building_anything(copy):
    elsewhere = Log()
    assert here(plan(), copy, watch=elsewhere).complete
    assert elsewhere.told == []


def test_audit_and_execution_settings_may_change(copy):
    assert here(plan(audit={"delta": 1e-3}), copy).plan.audit.delta == 1e-3
    assert Run.open(copy).plan.audit.delta == 1e-3


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (plan(trainer={"use": "fast:Mean", "noise_multiplier": 0.8}), "trainer.noise_multiplier was not set, now 0.8"),
        (plan(seed=4), "seed was 0, now 4"),
        (plan(reference_size=11), "game.reference_size was 10, now 11"),
        (plan(data={"use": "fast:data", "n": 80}), "data.n was not set, now 80"),
    ],
)
def test_another_plan_is_refused_with_the_keys_that_differ(copy, other, words):
    with pytest.raises(InvalidInput) as caught:
        here(other, copy)
    assert str(caught.value) == (f"{copy} holds another plan ({words}). Use a new --out, or restore the plan.")


def test_many_differences_are_counted(copy):
    with pytest.raises(InvalidInput, match=r"game.pairs_per_model was 2, now 1; game.*; game.* and 1 more\)"):
        here(plan(seed=1, reference_size=11, train_size=19, pairs_per_model=1, challenge="average"), copy)


def test_a_run_can_grow_but_not_shrink(copy, finished):
    with pytest.raises(InvalidInput, match=r"n_models must be at least 6, .* but got 5. A run can grow, not shrink"):
        here(plan(5), copy)
    grown = here(plan(8), copy)
    assert (grown.n_done, grown.plan.n_models, grown.extended_after_look) == (8, 8, False)
    assert blobs(copy)[:6] == blobs(finished)


def test_growth_after_a_look_is_remembered(copy):
    assert Run.open(copy).log_look("audit")
    assert [(k["kind"], k["n_done"], k["n_models"]) for k in Run.open(copy).looks] == [("audit", 6, 6)]
    assert not here(plan(), copy).extended_after_look  # finished as planned
    assert here(plan(7), copy).extended_after_look
    assert here(plan(7), copy).extended_after_look


@pytest.fixture
def own_code(tmp_path):
    """A folder of the user's with a module that no other test has imported, and a way to change it."""
    name = f"own_{abs(hash(str(tmp_path)))}"
    folder = tmp_path / "code"
    folder.mkdir()
    file = folder / f"{name}.py"

    def write(text):
        file.write_text((PIPELINES / "fast.py").read_text(encoding="utf-8") + text)
        sys.modules.pop(name, None)

    write("")
    yield (lambda n=6: plan(n, trainer={"use": f"{name}:Mean"}, folder=folder)), write, file.name
    sys.modules.pop(name, None)
    sys.path.remove(str(folder))


def test_changed_code_is_refused_unless_accepted_and_then_shown(tmp_path, own_code):
    make, write, name = own_code
    out = tmp_path / "run"
    here(make(), out)
    write("# changed\n")
    with pytest.raises(InvalidInput, match=f"begun with other code: {name} changed since.*--accept-changed-code"):
        here(make(), out)  # although it is finished: the results are those of other code
    with pytest.raises(InvalidInput, match="begun with other code"):
        here(make(8), out)
    assert Run.open(out).notes == []
    accepted = here(make(8), out, accept_changed_code=True)
    assert accepted.n_done == 8
    (note,) = accepted.notes
    assert note.startswith("The code changed during the run and was accepted on ")
    assert name in note
    assert here(make(9), out).notes == [note]  # accepted once is enough


def test_changed_data_are_refused(tmp_path):
    points = np.random.default_rng(1).normal(size=(60, 3))
    here(plan(data=(points, np.arange(60))), tmp_path)
    points[59, 2] += 1e-9
    with pytest.raises(InvalidInput, match=r"begun with other data: their digest was \w{12}, now \w{12}. Restore them"):
        here(plan(7, data=(points, np.arange(60))), tmp_path)


# models that fail, workers that die


def test_failed_models_are_recorded_the_others_go_on_and_can_be_retried(tmp_path, finished):
    trouble = troubled("raise", [1, 4])
    a_run = here(trouble, tmp_path)
    assert (a_run.n_done, a_run.n_failed, a_run.complete) == (4, 2, False)
    first, second = a_run.failed
    assert (first.index, second.index) == (1, 4)
    assert first.seed == training_seed(0, Branch.audited, 1)
    assert first.bits.tobytes() == np.frombuffer(blobs(finished)[1][3], np.uint8).astype(np.int64).tobytes()
    assert "Traceback" in first.error
    assert first.error.endswith("RuntimeError: the loss exploded")
    assert a_run.signals().models.tolist() == [0, 2, 3, 5]

    status = a_run.status()
    assert (status["n_models"], status["n_done"], status["n_failed"], status["n_left"]) == (6, 4, 2, 0)
    assert (status["running"], status["complete"]) == (False, False)
    bits = np.concatenate([first.bits, second.bits])
    assert status["failed_pairs_by_bit"] == {"0": int((bits == 0).sum()), "1": int((bits == 1).sum())}
    assert status["first_error"] == {"model": 1, "seed": first.seed, "error": first.error}
    assert status["seconds_per_model"] > 0

    log = Log()
    here(trouble, tmp_path, watch=log)
    assert log.told == []  # failed ones are left alone
    here(trouble, tmp_path, watch=log, retry_failed=True)
    assert log.told == ["preparing", "playing", ("started", 4, 2), 1, 4]
    assert [(p.n_failed, p.n_left) for p in log.progress] == [(1, 1), (2, 0)]


def test_a_model_that_failed_once_can_be_had_by_a_retry(tmp_path, finished):
    trouble = troubled("raise", [1, 4], once_in=str(tmp_path))
    assert here(trouble, tmp_path / "run").n_failed == 2
    retried = here(trouble, tmp_path / "run", retry_failed=True)
    assert (retried.complete, retried.failed) == (True, ())
    assert blobs(tmp_path / "run") == blobs(finished)


def test_a_run_stops_when_its_first_models_all_fail_the_same_way_and_goes_on_when_told(tmp_path, finished):
    trouble = troubled("raise", range(5), once_in=str(tmp_path))
    with pytest.raises(
        AllFail, match=r"first 5 models all failed the same way: RuntimeError: the loss exploded\. Noth"
    ):
        here(trouble, tmp_path / "run")
    stopped = Run.open(tmp_path / "run")
    assert (stopped.n_done, stopped.n_failed, stopped.progress.n_left) == (0, 5, 1)
    assert here(trouble, tmp_path / "run", retry_failed=True).complete  # each fails once
    assert blobs(tmp_path / "run") == blobs(finished)

    on = here(troubled("raise", range(5)), tmp_path / "on", keep_going=True)
    assert (on.n_done, on.n_failed) == (1, 5)
    assert here(troubled("raise", range(6)), tmp_path / "all", keep_going=True).n_failed == 6
    one_done = here(troubled("raise", [0, 1, 2, 3, 5]), tmp_path / "other")
    assert (one_done.n_done, one_done.n_failed) == (1, 5)


def test_which_first_failures_stop_a_run():
    def n_told(*errors, **kw):
        first = First("Mend it.", watching=True, **kw)
        for n, error in enumerate(errors, 1):
            try:
                first.told(error, more=n < len(errors))
            except AllFail:
                return n
        return None

    same = [f"Traceback\nKeyError: {seed} at 0x{seed:x}f" for seed in range(11, 31)]
    assert n_told(*same) == 5
    assert n_told(*same, models=12) == 12
    assert n_told(*same[:5]) is None  # all are played anyway
    assert n_told(*same[:4], "KeyError: 'loss'", *same) is None
    assert n_told(*same[:4], None, *same) is None


@pytest.mark.parametrize(("how", "words"), [("nan", "losses must be finite"), ("shape", r"got shape \(14, 1\)")])
def test_bad_losses_are_a_sentence(tmp_path, how, words):
    a_run = here(troubled(how, [2]), tmp_path)
    (failure,) = a_run.failed
    assert failure.index == 2
    with pytest.raises(AssertionError, match=words):
        raise AssertionError(failure.error)
    assert "Traceback" not in failure.error


@pytest.mark.long
def test_a_worker_that_dies_once_costs_nothing(tmp_path, finished):
    """The models that were in flight are played again, alone."""
    a_run = run(troubled("exit", [1], once_in=str(tmp_path)), out=tmp_path / "run", workers=2)
    assert a_run.complete
    assert blobs(tmp_path / "run") == blobs(finished)
    assert (tmp_path / str(training_seed(0, Branch.audited, 1))).exists()  # it did die


def test_a_model_that_kills_its_worker_is_failed_with_its_bits(tmp_path, finished):
    a_run = run(troubled("kill", [3]), out=tmp_path, workers=2)
    assert (a_run.n_done, a_run.n_failed) == (5, 1)
    (failure,) = a_run.failed
    assert (failure.index, failure.error) == (3, DIED_TWICE)
    assert blobs(tmp_path)[3][:5] == (3, "failed", *blobs(finished)[3][2:5])
    assert [row for row in blobs(tmp_path) if row[0] != 3] == [row for row in blobs(finished) if row[0] != 3]


def test_when_all_workers_die_the_run_stops(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "_LOST_IN_A_ROW", 1)
    with pytest.raises(EpsgaugeError, match=r"1 models in a row died. Is there enough memory"):
        run(troubled("kill", range(6)), out=tmp_path, workers=1)
    assert Run.open(tmp_path).n_failed == 1


def test_a_users_executor_that_breaks_is_a_sentence(tmp_path):
    with (
        ProcessPoolExecutor(1, get_context("spawn")) as pool,
        pytest.raises(EpsgaugeError, match=r"ProcessPoolExecutor lost a worker.*kept"),
    ):
        run(troubled("kill", [3]), out=tmp_path, executor=pool)
    assert Run.open(tmp_path).n_done >= 1


def test_an_interrupt_in_this_process_is_no_failed_model(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        here(troubled("interrupt", [2]), tmp_path)
    assert (Run.open(tmp_path).n_done, Run.open(tmp_path).n_failed) == (2, 0)


@pytest.mark.parametrize(
    ("how", "words"), [("interrupt", "KeyboardInterrupt"), ("generator exit", "GeneratorExit: left")]
)
def test_what_a_training_raises_in_a_worker_is_a_failed_model(tmp_path, how, words):
    """Ctrl-C does not reach a worker: an interrupt there is the trainer's own."""
    a_run = run(troubled(how, [2]), out=tmp_path, workers=1)
    assert (a_run.n_done, [failure.index for failure in a_run.failed]) == (5, [2])
    assert a_run.failed[0].error.endswith(words)


def test_any_text_of_an_error_can_be_stored(tmp_path):
    (failure,) = here(troubled("surrogate", [2]), tmp_path).failed
    assert "no file \\udce9\\ud800xxx" in failure.error
    assert failure.error.endswith("the end")
    assert len(failure.error) < 20_010


def test_an_object_that_cannot_be_sent_to_a_worker_is_a_sentence(tmp_path):
    @dataclass
    class Locked:
        lock: object

        def train(self, data, *, seed):
            return 0

        def losses(self, model, points):
            return np.zeros(len(points[0]))

    with pytest.raises(InvalidInput, match=r"cannot be sent to a worker process \(TypeError: cannot pickle"):
        run(plan(trainer=Locked(threading.Lock())), out=tmp_path, workers=1)


# classes of scripts

SCRIPT = """
    from dataclasses import dataclass
    import sys
    import fast
    from epsgauge.runner.plan import Plan
    from epsgauge.runner.run import run

    @dataclass(frozen=True)
    class Mine:
        noise_multiplier: float = 1.0
        def train(self, data, *, seed):
            return fast.Mean(self.noise_multiplier).train(data, seed=seed)
        def losses(self, model, points):
            return fast.Mean().losses(model, points)

    game = {"train_size": 20, "pairs_per_model": 2, "reference_size": 10}
    out, sizes = sys.argv[1], [int(n) for n in sys.argv[2:]]
    for n in sizes:
        plan = Plan(name="script", n_models=n, data="fast:data", trainer=Mine(), game=game)
        print(run(plan, out=out, workers=1))
"""


def test_a_class_of_a_script_works_and_only_its_process_can_resume(tmp_path, finished):
    script, out = tmp_path / "script.py", tmp_path / "run"
    script.write_text(textwrap.dedent(SCRIPT))

    def start(*sizes):
        words = [sys.executable, str(script), str(out), *map(str, sizes)]
        environment = {**os.environ, "PYTHONPATH": PATH}
        return subprocess.run(words, capture_output=True, encoding="utf-8", env=environment)

    done = start(3, 6)
    assert done.returncode == 0, done.stderr
    assert "6 of 6 models done" in done.stdout
    assert blobs(out) == blobs(finished)
    a_run = Run.open(out)
    assert a_run.plan.trainer.use == "__main__:Mine"
    assert a_run.notes == [
        "Made with an object of a script or notebook (__main__:Mine): another process cannot resume it."
    ]
    again = start(6, 7)
    assert "6 of 6 models done" in again.stdout  # finished is finished
    assert "cannot be resumed by this process: __main__:Mine is an object of a script or notebook" in again.stderr


def test_an_object_without_a_name_is_kept_as_a_name(tmp_path):
    class Local:
        def train(self, data, *, seed):
            return 0

        def losses(self, model, points):
            return np.zeros(len(points[0]))

    here(plan(trainer=Local()), tmp_path)
    assert Run.open(tmp_path).plan.trainer.use.endswith("<locals>.Local")
    assert "another process cannot resume it" in Run.open(tmp_path).notes[0]


# refusals


def test_a_second_run_on_the_directory_is_refused(copy):
    with hold(copy):
        with pytest.raises(InvalidInput, match=f"in use by process {os.getpid()}"):
            here(plan(7), copy)
        assert Run.open(copy).status()["running"]
        assert Run.open(copy).status()["pid"] == os.getpid()


def test_a_missing_run_and_a_folder_without_one(tmp_path):
    with pytest.raises(InvalidInput, match=r"there is no run .*missing. `epsgauge run PLAN --out"):
        Run.open(tmp_path / "missing")
    with pytest.raises(InvalidInput, match=f"holds no run: it has no {FILE}"):
        Run.open(tmp_path)


def test_a_damaged_store_is_refused_and_left_as_it_is(copy):
    (copy / FILE).write_bytes(b"not a database" * 1000)
    for attempt in (lambda: here(plan(), copy), lambda: Run.open(copy)):
        with pytest.raises(InvalidInput, match="is damaged"):
            attempt()
    assert (copy / FILE).read_bytes() == b"not a database" * 1000


def test_a_run_that_was_killed_as_it_began_begins_again(tmp_path, finished):
    (tmp_path / FILE).touch()
    here(plan(), tmp_path)
    assert blobs(tmp_path) == blobs(finished)


def test_bad_arguments_are_sentences(tmp_path):
    with pytest.raises(InvalidInput, match="workers must be a whole number, 1 or more, but got 0"):
        run(plan(), out=tmp_path, workers=0)
    with pytest.raises(InvalidInput, match="plan must be a Plan, but got str"):
        run("plan.toml", out=tmp_path)
    with pytest.raises(InvalidInput, match="there is no module 'nowhere'"):
        here(plan(trainer={"use": "nowhere:Trainer"}), tmp_path / "new")
    assert not (tmp_path / "new" / FILE).exists()


def test_a_full_disk_stops_the_run_and_keeps_what_is_done(tmp_path, monkeypatch, finished):
    connect = sqlite3.connect

    def small(*args, **kw):
        connection = connect(*args, **kw)
        connection.execute("PRAGMA max_page_count = 12")
        return connection

    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", small)
        with pytest.raises(EpsgaugeError, match=r"the disk is full, .* What is done is kept"):
            here(plan(100), tmp_path)
    kept = Run.open(tmp_path).n_done
    assert 0 < kept < 100
    assert blobs(tmp_path)[:6] == blobs(finished)[: min(6, kept)]
    assert here(plan(100), tmp_path).complete


def test_reading_while_another_process_writes(tmp_path):
    """A reader sees whole models only, and more of them as time goes on."""
    seen = []

    class Reader(Watch):
        def finished_one(self, outcome, progress):
            view = Run.open(tmp_path)
            seen.append(view.n_done)
            assert len(view.signals()) == view.n_done == progress.n_done
            assert view.status()["running"]

    early = Log(stop_after=1)
    with pytest.raises(KeyboardInterrupt):
        here(plan(), tmp_path, watch=early)
    old = Run.open(tmp_path)
    here(plan(), tmp_path, watch=Reader())
    assert seen == [2, 3, 4, 5, 6]
    assert len(old.signals()) == old.n_done == 1  # a view is of one moment


def test_ctrl_c_in_a_terminal_ends_a_run_and_its_workers(tmp_path):
    """SIGINT goes to the whole group, as from a terminal."""
    script = (
        "import signal, sys\nfrom epsgauge.runner.plan import Plan\nfrom epsgauge.runner.run import run\n"
        "from epsgauge.runner.progress import Watch\n"
        # a shell that starts the tests in the background has SIGINT ignored, and what is ignored is inherited
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "class Tell(Watch):\n    def finished_one(self, outcome, progress): print(outcome.index, flush=True)\n"
        "game = {'train_size': 20, 'pairs_per_model': 2, 'reference_size': 10}\n"
        "plan = Plan(name='a', n_models=5000, data='fast:data', trainer={'use': 'fast:Mean', 'nap': 0.01}, game=game)\n"
        "try:\n    run(plan, out=sys.argv[1], workers=2, watch=Tell())\nexcept KeyboardInterrupt:\n    sys.exit(130)\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": PATH},
        start_new_session=True,
        encoding="utf-8",
    )
    with child:
        for _ in range(5):
            child.stdout.readline()
        os.killpg(child.pid, signal.SIGINT)
        _, errors = child.communicate(timeout=PATIENCE)
    assert (child.returncode, errors) == (130, "")
    a_run = Run.open(tmp_path)
    assert a_run.n_done >= 5
    assert (a_run.n_failed, a_run.complete, a_run.status()["running"]) == (0, False, False)
    until(lambda: not group_lives(child.pid), "workers end with the run")


def group_lives(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_the_store_of_the_benchmark_is_one_that_can_be_read(tmp_path, monkeypatch):
    """And its bare loop trains what the runner trains."""
    monkeypatch.syspath_prepend(Path(__file__).parent.parent / "benchmarks")
    import runner as benchmark

    arrays = benchmark.fill(tmp_path, 3)
    assert np.array_equal(Run.open(tmp_path).signals()["loss"], arrays["loss"])
    benchmark.bare(2, benchmark.Work(1, 0.0), 0, 1)


@dataclass(frozen=True)
class Greedy:
    """Takes 400 MB in its second model and keeps it; says in which process each model was trained."""

    def train(self, data, *, seed, size=None):
        if len(kept) == 1:  # loky compares with what it had after the first
            kept.append(np.ones(50_000_000))
        kept.append(np.ones(1))
        time.sleep(1.1)  # loky looks at memory once a second
        return os.getpid()

    def losses(self, model, points):
        return np.full(len(points[0]), float(model))


kept: list[np.ndarray] = []


def test_a_worker_that_grows_is_kept(tmp_path):
    """loky, with psutil, would replace it, and import everything again for the next model."""
    pytest.importorskip("psutil")
    game = {"train_size": 5, "reference_size": 3, "challenge": "average"}
    planned = Plan(name="greedy", n_models=4, data={"use": "zeros", "size": 40}, trainer=Greedy(), game=game)
    a_run = run(planned, out=tmp_path / "a", workers=1)
    assert len(set(a_run.signals()["loss"][..., 0].ravel())) == 1
