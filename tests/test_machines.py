"""Each model's machine is kept with it, also where runs are resumed, mixed and merged."""

from __future__ import annotations

import random

import numpy as np
import pytest
from tiny_runs import small_plan

from epsgauge.runner import machines, play
from epsgauge.runner.executors import InProcess
from epsgauge.runner.machines import Machines, kinds_of
from epsgauge.runner.merge import merge
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
