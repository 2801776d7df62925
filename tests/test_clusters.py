"""One contract for worker processes, Dask and Ray: equal signals, failures recorded, a clean end, an exact resume."""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
from contextlib import ExitStack, suppress
from pathlib import Path

import killing
import pytest
from local_clusters import RAY_HOST, DaskCluster, RayCluster, children, command, descendants, kill_a_driver, kill_one
from patience import until

import epsgauge as eg
from epsgauge.errors import EpsgaugeError, InvalidInput
from epsgauge.games.rehearsal import STRIDE
from epsgauge.games.seeds import Branch, training_seed
from epsgauge.runner.executors import InProcess, crew_for
from epsgauge.runner.plan import Plan
from epsgauge.runner.play import prepare
from epsgauge.runner.progress import Watch
from epsgauge.runner.results import DIED_TWICE, apart, single
from epsgauge.runner.run import run
from epsgauge.runner.verify import verify
from epsgauge.runner.view import Run
from epsgauge.trainers.reaper import STOOD_STILL

PIPELINES = Path(__file__).parent / "pipelines"
KILLS = 5  # more of them: tools/soak.py
GAME = {"train_size": 20, "pairs_per_model": 2, "reference_size": 15}
SLEEPY = {"use": "fast:Mean", "nap": 0.01}


def plan(n_models, trainer=SLEEPY, **more):
    return Plan(name="contract", n_models=n_models, data="fast:data", trainer=trainer, game=GAME, probe=False, **more)


class Each(Watch):
    """Calls `what` with the number of models that are done, after each of them."""

    def __init__(self, what):
        self.what = what

    def finished_one(self, outcome, progress):
        self.what(progress.n_here)


def interrupt_at(n):
    def interrupt(done):
        if done == n:
            raise KeyboardInterrupt

    return interrupt


@pytest.fixture(scope="module", autouse=True)
def modules():
    """This process finds the pipelines; no cluster does."""
    sys.path.insert(0, str(PIPELINES))
    yield
    sys.path.remove(str(PIPELINES))


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The rows of so many models that were played in this process."""
    made = {}

    def rows(n):
        if n not in made:
            out = tmp_path_factory.mktemp("alone")
            run(plan(n), out=out, executor=InProcess())
            made[n] = killing.rows(out)
        return made[n]

    return rows


CANARIES = {"train_size": 20, "reference_size": 15, "challenge": "explicit", "canaries": "auto"}


def rehearsed(milliseconds):
    """A plan whose models take so long on average, with a rehearsal that takes the best canary."""
    return plan(40, {"use": "fast:Mean", "nap": milliseconds / 500}).changed(game=CANARIES)


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    """Every table of a run that was made in this process."""
    made = {}

    def tables(milliseconds):
        if milliseconds not in made:
            out = tmp_path_factory.mktemp("local")
            run(rehearsed(milliseconds), out=out, executor=InProcess())
            made[milliseconds] = killing.tables(out)
        return made[milliseconds]

    return tables


class Contract:
    """What holds wherever models are trained; a subclass says where."""

    kills = KILLS

    def where(self, cluster):
        raise NotImplementedError

    @pytest.mark.parametrize(
        "milliseconds", [1, pytest.param(50, marks=pytest.mark.long), pytest.param(300, marks=pytest.mark.long)]
    )
    def test_every_table_is_that_of_a_run_in_one_process(self, cluster, local, tmp_path, milliseconds):
        """Quick models are sent in bundles, of several canaries, with and without noise."""
        a_run = run(rehearsed(milliseconds), out=tmp_path, **self.where(cluster))
        held, expected = killing.tables(tmp_path), local(milliseconds)
        assert len(held["rehearsals"]) > 60
        assert len({row[0] // STRIDE for row in held["rehearsals"]}) > 4
        for name, rows in expected.items():
            assert held[name] == rows, name
        assert (a_run.complete, verify(tmp_path).intact) == (True, True)

    def test_a_model_that_raises_or_crashes_or_hangs_is_failed_and_the_others_are_the_same(
        self, cluster, alone, tmp_path
    ):
        """Also the first test that modules travel: no worker has them. A process that is stopped after a training is
        replaced, and its model trained again; so is a cluster's worker, whenever it is stopped.
        """
        ways = ("raises", "starts", "crashes", "sleeps", "stops", "stops_after")
        ways += () if cluster is None else ("stops_parent",)
        seeds = {way: [training_seed(0, Branch.audited, i)] for i, way in enumerate(ways, 1)}
        trouble = {"use": "several_ways:Several", "once_in": str(tmp_path), **seeds}
        a_run = run(plan(8, trouble, execution={"timeout": 2.0}), out=tmp_path, **self.where(cluster))
        errors = {failure.index: failure.error for failure in a_run.failed}
        assert sorted(errors) == [1, 3, 4, 5]
        assert "the loss exploded" in errors[1]
        assert errors[3] == DIED_TWICE
        assert "longer than execution.timeout = 2 seconds" in errors[4]
        assert STOOD_STILL in errors[5]
        assert "longer than execution.timeout = 2 seconds" in errors[5]
        held, expected = killing.rows(tmp_path), alone(8)
        assert [row for row in held if row[1] == "done"] == [row for row in expected if row[0] in (0, 2, 6, 7)]
        assert [row[4:6] for row in held] == [row[4:6] for row in expected]  # bits and pairs
        assert {file.name for file in tmp_path.glob("[0-9]*")} == {str(seed) for way in ways[5:] for seed in seeds[way]}
        assert (a_run.notes, verify(tmp_path).intact) == ([], True)

    def test_an_interrupted_run_leaves_nothing_and_resumes_exactly(self, cluster, alone, tmp_path):
        n = 40
        with pytest.raises(KeyboardInterrupt):
            run(plan(n), out=tmp_path, watch=Each(interrupt_at(7)), **self.where(cluster))
        until(lambda: not self.trainings(cluster), "nothing is trained any more")
        assert Run.open(tmp_path).n_done == 7
        assert killing.rows(tmp_path) == [row for row in alone(n) if row[0] in Run.open(tmp_path).done]
        a_run = run(plan(n), out=tmp_path, **self.where(cluster))
        assert a_run.complete
        assert killing.rows(tmp_path) == alone(n)
        assert a_run.notes == []

    def test_workers_that_are_killed_cost_nothing(self, cluster, alone, tmp_path):
        n, rng, killed = 60, random.Random(5), set()

        def kill(done):
            """As many as are due, if there are any: who waited here would keep the cluster from work and workers."""
            due = min(done // (n // (self.kills + 1)), self.kills)
            found = set(self.victims(cluster)) - killed
            if found and len(killed) < due:
                killed.add(kill_one(lambda: found, killed, rng))

        a_run = run(plan(n), out=tmp_path, watch=Each(kill), **self.where(cluster))
        assert killed
        assert (a_run.complete, a_run.n_failed) == (True, 0)
        assert killing.rows(tmp_path) == alone(n)

    def victims(self, cluster):
        return cluster.victims()

    def trainings(self, cluster):
        """Processes that train."""
        below = os.getpid() if cluster is None else cluster.pid
        return [pid for pid in descendants(below) if b"popen_loky" in command(pid)]


@pytest.fixture(scope="module")
def dask(tmp_path_factory):
    pytest.importorskip("distributed", reason="needs epsgauge[dask]")
    with DaskCluster(tmp_path_factory.mktemp("dask")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def ray(tmp_path_factory):
    """Ray's raylet gives up if its agents take 20 seconds to start, and no setting of ours changes that."""
    pytest.importorskip("ray", reason="needs epsgauge[ray]")
    with ExitStack() as stack:
        for _ in range(3):
            with suppress(RuntimeError):
                yield stack.enter_context(RayCluster(tmp_path_factory.mktemp("ray")))
                return
        pytest.skip("Ray did not start on this machine, which is too busy")


class TestLoky(Contract):
    """More of its kills are in test_kill.py and test_left_behind.py."""

    kills = 1

    @pytest.fixture
    def cluster(self):
        return None

    def where(self, cluster):
        return {"workers": 2}

    def victims(self, cluster):
        return self.trainings(cluster)


class TestDask(Contract):
    @pytest.fixture
    def cluster(self, dask):
        return dask

    def where(self, cluster):
        return {"executor": eg.Dask(cluster.address)}

    def test_a_driver_that_is_killed_costs_nothing(self, cluster, alone, tmp_path):
        n = 40
        parts = {"name": "contract", "data": "fast:data", "trainer": SLEEPY, "game": GAME, "probe": False}
        kill_a_driver(tmp_path, parts, n, cluster, after=5)
        before = Run.open(tmp_path).n_done
        assert 5 <= before < n
        assert run(plan(n), out=tmp_path, **self.where(cluster)).complete
        assert killing.rows(tmp_path) == alone(n)

    def test_a_job_apart_has_a_process_of_its_own(self, cluster):
        """As the probe before a run has."""
        crew = crew_for(plan(2), eg.Dask(cluster.address), None)
        try:
            before = set(self.trainings(cluster))
            digests = {single(crew, prepare).digest, apart(plan(2), prepare, crew).digest}
            assert len(digests) == 1
            assert len(set(self.trainings(cluster)) - before) == 1  # that of the first job, which is kept
        finally:
            crew.leave(at_once=True)


class TestRay(Contract):
    @pytest.fixture
    def cluster(self, ray):
        return ray

    def where(self, cluster):
        return {"executor": eg.Ray(cluster.address)}

    @pytest.mark.long
    def test_an_interrupted_run_leaves_nothing_and_resumes_exactly(self, cluster, alone, tmp_path):
        super().test_an_interrupted_run_leaves_nothing_and_resumes_exactly(cluster, alone, tmp_path)

    @pytest.mark.long
    def test_workers_that_are_killed_cost_nothing(self, cluster, alone, tmp_path):
        super().test_workers_that_are_killed_cost_nothing(cluster, alone, tmp_path)

    @pytest.mark.long
    def test_a_process_that_ray_ends_is_not_that_of_the_run(self, cluster, alone, tmp_path):
        def end(done):
            for pid in children(os.getpid()):
                if done == 5 and b"ray_driver" in command(pid):
                    os.kill(pid, signal.SIGKILL)

        with pytest.raises(EpsgaugeError, match=r"talks to its cluster, exit code -9\. What is done is kept"):
            run(plan(40), out=tmp_path, watch=Each(end), **self.where(cluster))
        assert 5 <= Run.open(tmp_path).n_done < 40
        assert run(plan(40), out=tmp_path, **self.where(cluster)).complete
        assert killing.rows(tmp_path) == alone(40)
        assert not any(b"ray_driver" in command(pid) for pid in children(os.getpid()))

    @pytest.mark.long
    def test_the_cluster_of_an_open_session_is_joined(self, cluster, alone, tmp_path):
        import ray

        ray.init(cluster.address, _node_ip_address=RAY_HOST, log_to_driver=False, logging_level="ERROR")
        try:
            assert run(plan(8), out=tmp_path, executor=eg.Ray()).complete
            assert ray.is_initialized()
        finally:
            ray.shutdown()
        assert killing.rows(tmp_path) == alone(8)


class Once(Watch):
    """Kills one process of those that `victims()` gives, as soon as there is one."""

    def __init__(self, victims):
        self.victims, self.killed = victims, set()

    def stage(self, name):
        if name == "playing":
            threading.Thread(target=self._kill, daemon=True).start()

    def _kill(self):
        self.killed.add(kill_one(self.victims, (), random.Random(0)))


@pytest.mark.long
def test_jobs_of_submitit(alone, tmp_path):
    """Real processes, which its local executor starts in the place of Slurm; one of them is killed."""
    submitit = pytest.importorskip("submitit", reason="needs epsgauge[submitit]")

    def jobs():
        return [pid for pid in descendants(os.getpid()) if b"submitit.core._submit" in command(pid)]

    executor, watch = submitit.LocalExecutor(tmp_path / "jobs"), Once(jobs)
    where = eg.Submitit(executor, jobs=2, models_per_job=3)
    a_run = run(plan(6), out=tmp_path / "run", executor=where, watch=watch)
    assert (len(watch.killed), a_run.complete) == (1, True)
    assert killing.rows(tmp_path / "run") == alone(6)
    with pytest.raises(InvalidInput, match=r"must be given as eg\.Submitit\(executor, jobs=100"):
        run(plan(6), out=tmp_path / "other", executor=executor)
    with pytest.raises(InvalidInput, match="models_per_job must be a whole number, 1 or more, but got 0"):
        eg.Submitit(executor, jobs=2, models_per_job=0)
