"""Who plays models, without a cluster: losses of single jobs, what travels, versions, and executors of other kinds."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections import Counter
from concurrent.futures import Executor, Future
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import cloudpickle
import killing
import pytest
from command_line import refused
from local_clusters import free_port
from tiny_runs import plan, plan_text, small_plan

import epsgauge as eg
from epsgauge.errors import EpsgaugeError, InvalidInput, MissingExtra
from epsgauge.games.rehearsal import number_of
from epsgauge.runner import on_dask, parcel, play, results, site
from epsgauge.runner.code import Sources
from epsgauge.runner.crew import JobLost
from epsgauge.runner.executors import InProcess, crew_for
from epsgauge.runner.fleet import Fleet
from epsgauge.runner.plan import Plan
from epsgauge.runner.provenance import versions
from epsgauge.runner.run import run
from epsgauge.runner.same import Expected
from epsgauge.trainers.reaper import MARK

PIPELINES = Path(__file__).parent / "pipelines"
LATE = "it took too long"


class Fake:
    """A crew that loses some batches, so often and in such a way."""

    bundle = 1
    in_flight = 4
    sources = SimpleNamespace(check=lambda: None)
    expected = Expected({})

    def __init__(self, losses):
        self.losses, self.submitted = losses, []

    def submit(self, job, expected, *inner, batches=None):
        """A loss is that of a bundle, whose models are given one after the other."""
        future, batches = Future(), batches or [[]]
        indices = tuple(index for batch in batches for index in batch)
        self.submitted.append(batches)
        error, left = self.losses.get(indices, (None, 0))
        if left:
            self.losses[indices] = error, left - 1
            future.set_exception(error)
        else:
            future.set_result([(index, "done") for index in indices or [0]])
        return future


def found(crew, batches):
    return sorted(results.results(crew, None, (), batches, lambda index, why: (index, why)))


def test_a_job_that_is_lost_is_tried_again_and_no_other():
    crew = Fake({(1,): (JobLost(), 1)})
    assert found(crew, [[0], [1], [2]]) == [(0, "done"), (1, "done"), (2, "done")]
    assert Counter(map(str, crew.submitted)) == {"[[0]]": 1, "[[1]]": 2, "[[2]]": 1}


@pytest.mark.parametrize(
    ("error", "times", "why"),
    [
        (JobLost(), 2, results.DIED_TWICE),
        (JobLost(LATE), 1, LATE),
        (JobLost(vanished=True), 5, results.VANISHED),
    ],
)
def test_a_model_is_given_up_after_so_many_losses(error, times, why):
    crew = Fake({(1,): (error, 99)})
    assert found(crew, [[0], [1]]) == [(0, "done"), (1, why)]
    assert crew.submitted.count([[1]]) == times


def test_a_group_whose_machine_vanishes_stays_together_and_one_that_crashes_is_tried_one_by_one():
    crew = Fake({(0, 1): (JobLost(vanished=True), 2)})
    assert found(crew, [[0, 1]]) == [(0, "done"), (1, "done")]
    assert crew.submitted == [[[0, 1]]] * 3
    crew = Fake({(0, 1): (JobLost(LATE), 1), (1,): (JobLost(LATE), 1)})
    assert found(crew, [[0, 1]]) == [(0, "done"), (1, LATE)]
    assert crew.submitted == [[[0, 1]], [[0]], [[1]]]


def test_many_models_in_a_row_that_are_lost_end_the_run():
    crew = Fake({(i,): (JobLost(LATE), 1) for i in range(20)})
    with pytest.raises(EpsgaugeError, match="8 models in a row died"):
        found(crew, [[i] for i in range(20)])


def test_the_first_job_survives_a_machine_that_vanishes_and_no_crash():
    assert results.single(Fake({(): (JobLost(vanished=True), 4)}), None) == (0, "done")
    with pytest.raises(EpsgaugeError, match="died while it ran the plan's code"):
        results.single(Fake({(): (JobLost(), 1)}), None)


def test_models_that_take_no_time_go_together_where_a_job_costs_something(monkeypatch):
    monkeypatch.setattr(results, "time", SimpleNamespace(monotonic=lambda: 0.0))
    crew = Fake({})
    crew.bundle = None
    n = 2000
    assert found(crew, [[i] for i in range(n)]) == [(i, "done") for i in range(n)]
    assert len(crew.submitted) < n / 4
    assert sorted(batch for bundle in crew.submitted for batch in bundle) == [[i] for i in range(n)]
    assert max(map(len, crew.submitted)) <= 500


def test_batches_share_a_message_and_never_a_training():
    """Models with different canaries, and groups of which only one model is left, stay apart in a bundle."""
    batches = [[0, 1, 2], [3], [7], [8, 9], [12]]
    crew = Fake({})
    crew.bundle = 4
    assert [index for index, _ in found(crew, batches)] == [0, 1, 2, 3, 7, 8, 9, 12]
    assert crew.submitted == [[[0, 1, 2], [3]], [[7], [8, 9], [12]]]
    seen = []
    play.each(None, lambda plan, shared, batch: seen.append((shared, batch)) or batch, "shared", [[0, 1], [4]])
    assert seen == [("shared", [0, 1]), ("shared", [4])]


def test_a_bundle_that_crashes_is_sent_batch_by_batch_and_then_model_by_model():
    crew = Fake({(0, 1, 2): (JobLost(), 1), (0, 1): (JobLost(LATE), 1), (1,): (JobLost(LATE), 1)})
    crew.bundle = 3
    assert found(crew, [[0, 1], [2]]) == [(0, "done"), (1, LATE), (2, "done")]
    assert crew.submitted == [[[0, 1], [2]], [[0, 1]], [[2]], [[0]], [[1]]]


def test_a_batch_of_two_kinds_is_refused():
    with pytest.raises(ValueError, match="different canaries cannot be one batch"):
        play.rehearse(small_plan(), None, None, [number_of(0, 1, quiet=False), number_of(0, 1, quiet=True)])


# what travels


@pytest.fixture
def pipelines(monkeypatch):
    monkeypatch.syspath_prepend(str(PIPELINES))


def fast_plan(folder=None):
    game = {"train_size": 20, "pairs_per_model": 2, "reference_size": 15}
    return Plan(name="a", n_models=6, data="fast:data", trainer="several_ways:Several", game=game, folder=folder)


def test_modules_from_the_path_and_from_beside_the_plan_travel(pipelines, tmp_path, monkeypatch):
    (tmp_path / "pack").mkdir()
    for name in ("fast.py", "several_ways.py"):
        (tmp_path / name).write_bytes((PIPELINES / name).read_bytes())
    away = parcel.opened(parcel.packed(fast_plan(), Sources(fast_plan())))
    assert sorted(away.elsewhere) == ["fast.py", "several_ways.py"]
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place != str(PIPELINES)])
    beside = parcel.opened(parcel.packed(fast_plan(tmp_path), Sources(fast_plan(tmp_path))))
    assert (sorted(beside.beside), beside.elsewhere) == (["fast.py", "several_ways.py"], {})
    assert beside.settings["PYTHONHASHSEED"] == os.environ.get("PYTHONHASHSEED", "random")


UNPACKS = """
import pickle, sys
from epsgauge.runner import parcel
plan = parcel.plan_of(open(sys.argv[1], "rb").read())
import fast
print(plan.folder, fast.__file__)
"""


def unpacked(payload, folder):
    """Where a process that has none of the modules finds the plan's folder and a module."""
    (folder / "payload").write_bytes(payload)
    scratch = folder / "scratch"
    scratch.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", UNPACKS, str(folder / "payload")],
        env={**os.environ, MARK: str(scratch), "PYTHONPATH": str(Path(eg.__file__).parent.parent)},
        capture_output=True,
        encoding="utf-8",
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize("there", [True, False])
def test_a_machine_uses_the_plans_folder_where_it_has_it_and_else_a_copy(tmp_path, there, monkeypatch):
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place != str(PIPELINES)])  # of other tests
    home = tmp_path / "home"
    home.mkdir()
    for name in ("fast.py", "several_ways.py"):
        (home / name).write_bytes((PIPELINES / name).read_bytes())
    payload = parcel.packed(fast_plan(home), Sources(fast_plan(home)))
    sys.path.remove(str(home))
    if not there:
        (home / "fast.py").write_text("# another version")
    where = home if there else tmp_path / "scratch" / "plan"
    assert unpacked(payload, tmp_path) == [str(where), str(where / "fast.py")]


def test_other_versions_are_one_sentence():
    a_parcel = parcel.opened(parcel.packed(small_plan(), Sources(small_plan())))
    parcel.check_versions(a_parcel)
    parcel.check_versions(replace(a_parcel, versions=versions() | {"jax": "1.0"}))  # which results do not rest on here
    other = replace(a_parcel, versions=versions() | {"numpy": "1.0", "Python": "2.7"})
    with pytest.raises(InvalidInput, match=r"must have the versions of this process, but one has .*numpy .* 1\.0 here"):
        parcel.check_versions(other)
    reply = site.played(site.Job("run", "head", None, False), lambda: pickle.dumps(other), bytes)
    assert isinstance(reply.error, InvalidInput)


def test_a_job_is_small_and_what_jobs_share_is_sent_once():
    sent, published = [], []

    class Here(Fleet):
        in_flight = 2

        def publish(self, name, head):
            published.append(name)

        def send(self, job, future):
            sent.append(job)

        def leave(self, *, at_once):
            pass

    crew = Here(small_plan())
    args = (Expected({}), list(range(100_000)))
    for i in range(20):
        crew.submit(sorted, *args, batches=[[i]])
    assert len(published) == 1
    assert max(len(pickle.dumps(job)) for job in sent) < 300
    assert [job.batches for job in sent] == [[[i]] for i in range(20)]


def test_a_job_that_is_done_twice_counts_once():
    crew, future = SimpleNamespace(), Future()
    Fleet.settle(crew, future, site.Reply(pickle.dumps([1])))
    Fleet.settle(crew, future, site.Reply(pickle.dumps([2])))
    Fleet.settle(crew, future, JobLost())
    assert future.result() == [1]
    lost = Future()
    Fleet.settle(crew, lost, JobLost(LATE))
    assert lost.exception().why == LATE


# addresses


@pytest.mark.parametrize("option", ["--dask", "--ray"])
def test_an_address_where_nobody_listens_is_a_sentence(tmp_path, option, monkeypatch):
    pytest.importorskip({"--dask": "distributed", "--ray": "ray"}[option])
    monkeypatch.setattr(on_dask, "_CONNECT_SECONDS", 1)
    (tmp_path / "plan.toml").write_text(plan_text(n_models=70))
    address = f"127.0.0.1:{free_port()}"
    address = f"tcp://{address}" if option == "--dask" else address
    said = refused("run", tmp_path / "plan.toml", "--out", tmp_path / "run", option, address)
    assert f"at {address}" in said
    assert not (tmp_path / "run" / "store.sqlite").exists()


def test_without_the_extras_a_sentence_says_what_to_install(monkeypatch):
    for cluster, name in ((eg.Dask("tcp://127.0.0.1:1"), "distributed"), (eg.Ray("auto"), "ray")):
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(MissingExtra, match=r"pip install '\.\["):
            cluster.crew(small_plan())


def test_what_is_no_executor_is_refused():
    with pytest.raises(InvalidInput, match=r"executor must be .* but got int"):
        crew_for(small_plan(), 3, None)
    with pytest.raises(InvalidInput, match="a Dask cluster must be the address of a scheduler"):
        eg.Dask(3)
    with pytest.raises(InvalidInput, match='a Ray cluster must be "auto"'):
        eg.Ray("")


def test_resources_are_ignored_on_one_machine_with_a_warning():
    with pytest.warns(UserWarning, match=r"execution\.gpus_per_model is for clusters"):
        crew_for(small_plan().changed(execution={"gpus_per_model": 0.25}), None, 1)


# another executor

CHILD = """
import sys, cloudpickle
job, args = cloudpickle.load(sys.stdin.buffer)
sys.stdout.buffer.write(cloudpickle.dumps(job(*args)))
"""


class OneProcessEach(Executor):
    """Starts a process for each job, as a batch system would."""

    def __init__(self):
        self.n = 0

    def submit(self, fn, /, *args):
        self.n += 1
        future = Future()
        done = subprocess.run([sys.executable, "-c", CHILD], input=cloudpickle.dumps((fn, args)), capture_output=True)
        future.set_result(cloudpickle.loads(done.stdout))
        return future


def test_any_other_executor_gives_the_same_signals(tmp_path):
    a_plan, executor = plan(n_models=4, audit={"fit_models": 1}, control_models=0), OneProcessEach()
    run(a_plan, out=tmp_path / "other", executor=executor, workers=1)
    run(a_plan, out=tmp_path / "here", executor=InProcess())
    assert executor.n >= 4
    assert killing.rows(tmp_path / "other") == killing.rows(tmp_path / "here")
