"""Each model's machine is kept with it, also where runs are resumed, mixed and merged."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys

import numpy as np
import pytest
from command_line import process
from tiny_runs import small_plan

from epsgauge.data.canaries.directions import least_used
from epsgauge.data.canaries.view import view_of
from epsgauge.runner import machines, play
from epsgauge.runner.executors import InProcess
from epsgauge.runner.machines import Machines, kinds_of
from epsgauge.runner.merge import merge
from epsgauge.runner.plan import Plan
from epsgauge.runner.provenance import machine
from epsgauge.runner.run import run
from epsgauge.runner.store import FILE, Store
from epsgauge.runner.view import Run

A, B = {"CPU": "A", "BLAS": ["x"]}, {"CPU": "B", "BLAS": ["x"]}


@pytest.fixture
def trained_on(monkeypatch):
    """Makes models from now on those of another machine."""

    def on(record):
        monkeypatch.setattr(play, "machine", lambda: record)

    return on


def kinds(folder):
    with Store.read(folder / FILE) as store:
        known = store.get(machines.KINDS)
        return {index: known[kind] for index, kind in kinds_of(store.get, store.indices("done").tolist()).items()}


def test_a_run_on_one_machine_lists_it_and_nothing_else(tmp_path):
    a_run = run(small_plan(), out=tmp_path, executor=InProcess())
    assert [(m.record, m.n_models) for m in a_run.machines] == [(machine(), 40)]
    assert {"CPU", "BLAS", "versions"} <= machine().keys()
    with Store.read(tmp_path / FILE) as store:
        assert store.get("machines 0") is None
    assert not any("round differently" in note for note in a_run.notes)


def test_a_mixed_run_says_so_and_knows_each_model(tmp_path, trained_on):
    trained_on(A)
    run(small_plan(), out=tmp_path, executor=InProcess(), models=range(25))
    trained_on(B)
    a_run = run(small_plan(), out=tmp_path, executor=InProcess())
    assert [(m.record, m.n_models) for m in a_run.machines] == [(A, 25), (B, 15)]
    assert kinds(tmp_path) == {i: A if i < 25 else B for i in range(40)}
    assert [note for note in a_run.notes if "round differently" in note] == [
        "15 models were trained where numbers may round differently: CPU A → B."
    ]


def test_the_machine_of_a_session_has_one_note(tmp_path, trained_on):
    trained_on(A)
    run(small_plan(), out=tmp_path, executor=InProcess(), models=range(25))
    with Store.write(tmp_path / FILE) as store:
        store.put({"sessions": [{"time": "1", "computing": A}, {"time": "2", "computing": B}]})
    trained_on(B)
    run(small_plan(), out=tmp_path, executor=InProcess(), models=range(25, 30))
    with Store.write(tmp_path / FILE) as store:
        store.put({"sessions": store.get("sessions")[:2]})
    notes = [note for note in Run.open(tmp_path).notes if "round differently" in note]
    assert notes == ["Resumed on 2 where numbers may round differently: CPU A → B."]


def test_kinds_are_those_of_a_plain_list_however_models_come():
    """Models are played in any order, some twice."""
    rng, entries, twin = random.Random(3), {}, {}
    records = [{"CPU": name} for name in "ABC"]
    for _ in range(5):  # sessions
        held = Machines(entries.get)
        for _ in range(1000):
            index, record = rng.randrange(3000), rng.choice(records)
            twin[index] = record
            entries |= {
                key: dict(v) if isinstance(v, dict) else list(v) for key, v in held.entries(index, record).items()
            }
    known = entries[machines.KINDS]
    assert {i: known[kind] for i, kind in kinds_of(entries.get, sorted(twin)).items()} == twin
    counts = {m.record["CPU"]: m.n_models for m in machines.machines(entries.get, np.array(sorted(twin)))}
    assert counts == {name: sum(record["CPU"] == name for record in twin.values()) for name in "ABC"}


def test_a_merged_run_knows_where_its_models_were_trained(tmp_path, trained_on):
    trained_on(B)
    run(small_plan(), out=tmp_path / "b", executor=InProcess(), models=range(20, 30))
    trained_on(A)
    run(small_plan(), out=tmp_path / "a", executor=InProcess(), models=range(25))
    run(small_plan(), out=tmp_path / "b", executor=InProcess(), models=range(20, 40))
    merge([tmp_path / "a", tmp_path / "b"], out=tmp_path / "c")
    assert kinds(tmp_path / "c") == {i: B if 25 <= i < 30 else A for i in range(40)}
    merge([tmp_path / "b", tmp_path / "a"], out=tmp_path / "d")
    assert kinds(tmp_path / "d") == {i: B if 20 <= i < 30 else A for i in range(40)}


# Canaries made from the data are computed through BLAS, whose kernels round differently

PIPELINE = """
from dataclasses import dataclass

import numpy as np

def data():
    return np.random.default_rng(0).normal(size=(400, 7)) ** 3, np.arange(400) % 2

@dataclass(frozen=True)
class Mean:
    def train(self, data, *, seed):
        return data[0].mean(axis=0) + np.random.default_rng(seed).normal(0.0, 1e-6, 7)

    def losses(self, model, points):
        return ((points[0] - model) ** 2).sum(axis=1)
"""
PLAN = """
name = "blas"
seed = 0
n_models = {n_models}

[data]
use = "pipeline:data"

[trainer]
use = "pipeline:Mean"

[game]
train_size = 100
reference_size = 10
challenge = "explicit"
canaries = "rare-opposite"
"""


@pytest.fixture
def pipeline(tmp_path):
    """Writes the plan with so many models, and gives its path."""

    def write(n_models):
        (tmp_path / "pipeline.py").write_text(PIPELINE, encoding="utf-8")
        (tmp_path / "plan.toml").write_text(PLAN.format(n_models=n_models), encoding="utf-8")
        return tmp_path / "plan.toml"

    return write


def notes_of(folder):
    return [note for note in Run.open(folder).notes if "was trained again" in note]


def test_a_resume_with_canaries_of_other_last_bits_is_noted_not_refused(pipeline, tmp_path, monkeypatch):
    run(Plan.read(pipeline(3)), out=tmp_path / "run", executor=InProcess())
    made = least_used
    monkeypatch.setattr("epsgauge.data.canaries.opposite.least_used", lambda view: made(view) * (1 + 1e-12))
    monkeypatch.setattr(play, "_last", None)
    run(Plan.read(pipeline(5)), out=tmp_path / "run", executor=InProcess())
    (note,) = notes_of(tmp_path / "run")
    assert re.match(r"Model \d was trained again when the run was resumed, and .* by up to ", note)


def test_other_data_are_still_refused_with_canaries_made_from_them(pipeline, tmp_path):
    command = ("run", pipeline(3), "-o", tmp_path / "run", "--accept-changed-code")
    assert process(*command, cwd=tmp_path).returncode == 0
    (tmp_path / "pipeline.py").write_text(PIPELINE.replace("** 3", "** 3 + 1e-9"), encoding="utf-8")
    (tmp_path / "plan.toml").write_text(PLAN.format(n_models=5), encoding="utf-8")
    done = process(*command, cwd=tmp_path)
    assert done.returncode == 2
    assert "was begun with other data" in done.stderr


def kernels():
    """The kernels of NumPy's BLAS that this machine can run, by name; OpenBLAS also loads others."""
    script = (
        "from threadpoolctl import threadpool_info as i; import numpy as n; a = n.eye(200) + 1; n.linalg.eigh(a @ a); "
        "print(*(b.get('architecture') for b in i()))"
    )
    found = {}
    for name in ("Nehalem", "Haswell", "SkylakeX"):
        environment = {**os.environ, "OPENBLAS_CORETYPE": name}
        done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, encoding="utf-8")
        if done.returncode == 0 and done.stdout.split() == [name]:
            found[name] = environment
    return found


def test_a_run_goes_on_with_another_kernel_of_blas(pipeline, tmp_path):
    found = list(kernels().values())
    if len(found) < 2:
        pytest.skip("NumPy's BLAS is not an OpenBLAS with two kernels for this CPU")
    for n_models, environment in ((3, found[0]), (5, found[-1])):
        done = process("run", pipeline(n_models), "-o", tmp_path / "run", cwd=tmp_path, env=environment)
        assert done.returncode == 0, done.stderr
    assert len(notes_of(tmp_path / "run")) == 1


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_the_direction_of_a_canary_has_the_same_sign_everywhere(monkeypatch, sign):
    """LAPACK may give an eigenvector with either sign, and a canary turned round would swap z0 and z1."""
    rows = np.random.default_rng(0).normal(size=(60, 2)) @ np.array([[3.0, 3.0], [1.0, -1.0]])
    eigh = np.linalg.eigh
    monkeypatch.setattr(np.linalg, "eigh", lambda a: (eigh(a)[0], sign * eigh(a)[1]))
    direction = least_used(view_of((rows,)))
    assert direction[np.argmax(np.abs(direction).round(6))] > 0
