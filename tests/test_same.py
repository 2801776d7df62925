"""Models of other code or data are not mixed into a run: every process looks, and the one that began keeps looking."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
from collections import namedtuple
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

import killing
import numpy as np
import pytest
from test_runner import PIPELINES, blobs, here, plan

from epsgauge.data.content import copied
from epsgauge.data.points import as_points
from epsgauge.games.seeds import Branch, training_seed
from epsgauge.games.signals import Outcome
from epsgauge.runner.code import CodeChanged, Sources
from epsgauge.runner.plan import Plan
from epsgauge.runner.play import prepare
from epsgauge.runner.progress import Watch
from epsgauge.runner.provenance import changes, computing
from epsgauge.runner.replay import difference
from epsgauge.runner.run import run
from epsgauge.runner.same import DataChanged, Expected, OtherData, checked, nothing
from epsgauge.runner.trial import try_out
from epsgauge.runner.view import Run

PROGRAM = """
import sys
import numpy as np
folder, seed = sys.argv[1], int(sys.argv[2])
train, points = (np.loadtxt(f"{folder}/{name}.csv", delimiter=",") for name in ("train", "points"))
np.savetxt(f"{folder}/losses.csv", np.square(points - train.mean(axis=0)).sum(axis=1) + seed % 97)
"""


class Edit(Watch):
    """Calls a function once so many models are stored."""

    def __init__(self, after, edit):
        self.after, self.edit = after, edit

    def finished_one(self, outcome, progress):
        if progress.n_here == self.after:
            self.edit()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder for modules that no other test has imported."""
    code = tmp_path / "code"
    code.mkdir()
    monkeypatch.syspath_prepend(str(PIPELINES))
    before = set(sys.modules)
    yield code
    for name in set(sys.modules) - before:
        if str(code) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def program_plan(folder, n_models=6):
    (folder / "train.py").write_text(PROGRAM)
    command = ["{python}", "train.py", "{folder}", "{seed}"]
    return plan(n_models, trainer={"use": "program", "command": command}, folder=folder, data="fast:data")


def module_plan(folder, name, n_models=6, text=""):
    (folder / f"{name}.py").write_text((PIPELINES / "fast.py").read_text(encoding="utf-8") + text)
    return plan(n_models, trainer={"use": f"{name}:Mean"}, data={"use": f"{name}:data"}, folder=folder)


# code


@pytest.mark.parametrize(
    "make",
    [program_plan, pytest.param(lambda folder: module_plan(folder, "edited_module"), marks=pytest.mark.long)],
)
def test_code_edited_during_a_run_stops_it_and_a_restored_one_goes_on(tmp_path, folder, make):
    planned = make(folder)
    (file,) = folder.glob("*.py")
    old = file.read_text(encoding="utf-8")
    run(planned, out=tmp_path / "alone", workers=1)
    with pytest.raises(CodeChanged) as caught:
        run(planned, out=tmp_path / "a", workers=2, watch=Edit(2, lambda: file.write_text(old + "\nx = 1\n")))
    assert str(caught.value) == (
        f"the code changed during the run: {file.name}. What is done is kept, and it is all of the code as it was. "
        "Restore it and run the same command again, or use a new --out."
    )
    assert Run.open(tmp_path / "a").n_done == 2  # not one that may have seen it
    file.write_text(old)
    assert run(planned, out=tmp_path / "a", workers=2).complete
    assert blobs(tmp_path / "a") == blobs(tmp_path / "alone")


def test_a_file_that_is_written_again_as_it_was_stops_nothing(tmp_path, folder):
    planned = module_plan(folder, "written_again")
    file = folder / "written_again.py"
    edit = Edit(2, lambda: file.write_text(file.read_text(encoding="utf-8")))
    assert here(planned, tmp_path / "a", watch=edit).complete


def test_models_of_rehearsal_and_ranking_are_not_mixed_either(tmp_path, folder):
    planned = module_plan(folder, "rehearsed_module")
    file = folder / "rehearsed_module.py"

    class Early(Watch):
        def stage(self, name):
            if name == kind:
                file.write_text(file.read_text(encoding="utf-8") + "# changed\n")

    for kind in ("rehearsing", "ranking"):
        game = {"challenge": "worst", "pool_size": 8, "ranking_models": 32, "train_size": 15}
        a_plan = planned if kind == "rehearsing" else plan(2, trainer=planned.trainer, folder=folder, **game)
        with pytest.raises(CodeChanged):
            here(a_plan, tmp_path / kind, watch=Early())
        assert Run.open(tmp_path / kind).n_done == 0


def test_a_file_that_is_gone_is_a_change_and_so_is_the_module_of_an_object(folder, monkeypatch):
    monkeypatch.syspath_prepend(str(folder))
    (folder / "of_an_object.py").write_text("class Trainer:\n    observe = None\n")
    import of_an_object

    sources = Sources(plan(trainer=of_an_object.Trainer()))
    sources.check()
    (folder / "of_an_object.py").unlink()
    with pytest.raises(CodeChanged, match=r"of_an_object\.py"):
        sources.check()


def test_a_package_is_all_of_its_files_wherever_it_is(tmp_path, folder, monkeypatch):
    """Its modules import each other by their full names, and each has the `__init__.py` of those above it behind it."""
    monkeypatch.syspath_prepend(str(folder))
    inner = folder / "outer_package" / "inner"
    inner.mkdir(parents=True)
    for file, text in {
        "../__init__.py": "",
        "../other.py": "",
        "__init__.py": "",
        "mod.py": "import outer_package.other",
    }.items():
        (inner / file).write_text(text)
    names = {f"outer_package/{name}" for name in ("__init__.py", "other.py", "inner/__init__.py", "inner/mod.py")}
    for beside, prefix in ((folder, ""), (None, ""), (tmp_path, "code/")):
        a_plan = plan(trainer="outer_package.inner.mod:Mean", data="zeros", folder=beside)
        assert set(Sources(a_plan).code) == {prefix + name for name in names}


SCRIPT = """
import sys
from pathlib import Path
import numpy as np
import imported_by_script
from epsgauge.runner.code import Sources
from epsgauge.runner.plan import Plan
def observe(data, points, *, seed): return imported_by_script.losses(points)
sizes = {"train_size": 10, "reference_size": 9}
sources = Sources(Plan(name="a", n_models=2, data="zeros", trainer=observe, game=sizes))
sources.check()
Path(imported_by_script.__file__).write_text("losses = None")
sources.check()
"""


def test_what_the_objects_of_a_script_use_is_watched_too(tmp_path):
    (tmp_path / "imported_by_script.py").write_text("def losses(points): return points[0]")
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run([sys.executable, tmp_path / "script.py"], capture_output=True, encoding="utf-8")
    assert "CodeChanged: the code changed during the run: imported_by_script.py" in done.stderr


def test_every_process_compares_its_code_also_in_an_executor_of_the_users(tmp_path):
    planned = plan()
    code = Sources(planned).code
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as processes:
        assert processes.submit(checked, planned, Expected(code), nothing).result() == [None]
        with pytest.raises(CodeChanged, match=r"changed during the run: fast\.py"):
            processes.submit(checked, planned, Expected({"fast.py": "0" * 64}), nothing).result()


# data

UNSEEDED = """
import numpy as np
at_import = np.random.default_rng().normal(size=(60, 3))
def data(): return at_import, np.arange(60)
"""


def test_data_that_are_not_seeded_are_refused_by_every_worker(tmp_path, folder):
    (folder / "unseeded.py").write_text(UNSEEDED)
    dies_once = {"how": "exit", "seeds": [training_seed(0, Branch.audited, 1)], "once_in": str(tmp_path)}
    planned = plan(data="unseeded:data", folder=folder, trainer={"use": "troubled:Troubled", **dies_once})
    with pytest.raises(OtherData, match=r"data unseeded:data are not the same in every process: .* Seed what is drawn"):
        run(planned, out=tmp_path / "a", workers=1)  # the second worker takes the place of the first
    (trial_warning, *_) = try_out(planned).warnings
    assert trial_warning == (
        "Data unseeded:data are not the same in every process: two of them had different points. A run would refuse "
        "that: seed what is drawn at random, or read it from a file."
    )


def test_a_trial_says_nothing_of_data_that_are_seeded():
    assert not [text for text in try_out(plan()).warnings if "every process" in text]


POINTS = np.random.default_rng(1).normal(size=(60, 3))


@dataclass(frozen=True)
class Spoils:
    """Changes what all models are trained on, in one of its trainings."""

    at: int = 3

    def train(self, data, *, seed):
        done.append(seed)
        if len(done) == self.at:
            POINTS[0, 0] += 1.0
        return data[0].mean(axis=0)

    def losses(self, model, points):
        return np.square(points[0] - model).sum(axis=1)


done: list[int] = []


def test_data_changed_in_place_are_found_and_the_run_says_so(tmp_path):
    done.clear()
    planned = plan(trainer=Spoils(), data=(POINTS, np.arange(60)), control_models=0)
    with pytest.raises(DataChanged, match=r"were changed in place while models were trained.*use a new --out"):
        here(planned, tmp_path)
    (note,) = [text for text in Run.open(tmp_path).notes if text.startswith("Stopped")]
    assert "were changed in place while models were trained" in note
    assert Run.open(tmp_path).n_done >= 2


def test_data_are_looked_at_again_at_the_end_however_short_the_run(monkeypatch):
    rows = np.random.default_rng(2).normal(size=(60, 3))
    planned = plan(data=(rows, np.arange(60)))
    expected = Expected(Sources(planned).code, prepare(planned)[0].digest)
    monkeypatch.setattr("epsgauge.runner.same._SELDOM", float("inf"))
    checked(planned, expected, nothing)
    rows[0, 0] += 1.0
    checked(planned, expected, nothing)  # too soon
    with pytest.raises(DataChanged):
        checked(planned, replace(expected, at_the_end=True), nothing)


def test_an_object_that_comes_with_each_job_is_not_looked_at_each_time(monkeypatch):
    rows = np.random.default_rng(3).normal(size=(60, 3))
    sent = [plan(data=(rows.copy(), np.arange(60))) for _ in range(4)]
    expected, looks = Expected(Sources(sent[0]).code, prepare(sent[0])[0].digest), []
    monkeypatch.setattr("epsgauge.runner.same._SELDOM", float("inf"))
    monkeypatch.setattr("epsgauge.runner.play.digest", lambda keys: looks.append(1) or expected.digest)
    for each in sent:
        checked(each, expected, nothing)
    assert len(looks) == 1


class Within:
    """Plays a run of its own in its process, as a trainer that tunes itself may."""

    def train(self, data, *, seed):
        with TemporaryDirectory() as folder:
            here(plan(2), Path(folder))
        return data[0].mean(axis=0)

    def losses(self, model, points):
        return np.square(points[0] - model).sum(axis=1)


def test_a_run_within_a_training_does_not_pass_for_other_data(tmp_path, monkeypatch):
    monkeypatch.setattr("epsgauge.runner.same._SELDOM", 0)
    assert here(plan(3, trainer=Within(), data=(POINTS, np.arange(60))), tmp_path).n_done == 3


# items of a dataset


class Augmented:
    """Adds noise to an item whenever it is read."""

    def __len__(self):
        return 60

    def __getitem__(self, index):
        return POINTS[index] + np.random.default_rng().normal()


def test_random_augmentation_is_named_as_what_it_is(tmp_path):
    planned = plan(data=Augmented(), trainer={"use": "troubled:Normalises"})
    with pytest.raises(OtherData, match=r"are drawn anew whenever they are read: .* as in augmentation, from its seed"):
        here(planned, tmp_path)
    assert not [text for text in Run.open(tmp_path).notes if "in place" in text]


def test_items_that_a_trainer_changes_in_place_are_those_of_one_model(tmp_path):
    planned = plan(data="troubled:Items", trainer={"use": "troubled:Normalises"})
    here(planned, tmp_path / "here")
    run(planned, out=tmp_path / "there", workers=2)
    assert blobs(tmp_path / "there") == blobs(tmp_path / "here")
    assert not [text for text in try_out(planned).warnings if "not reproducible" in text]


def test_copies_of_items_share_nothing_that_can_change():
    torch = pytest.importorskip("torch")
    Named = namedtuple("Named", "x label")
    whole = torch.zeros(1000, 2)

    class Own:
        def __init__(self):
            self.values = [1]

    item = {"t": (whole[3], np.zeros(2)), "l": [Own(), "text", 3, None], "n": Named(np.ones(2), 1)}
    copy = copied(item)
    copy["t"][0][0] = copy["t"][1][0] = copy["n"].x[0] = 7
    copy["l"][0].values.append(2)
    copy["l"].append(4)
    assert copy["n"].label == 1
    assert isinstance(copy["n"], Named)
    assert (float(whole.abs().sum()), item["t"][1].sum(), item["n"].x.sum()) == (0.0, 0.0, 2.0)
    assert (item["l"][0].values, len(item["l"])) == ([1], 4)
    assert copy["t"][0].untyped_storage().nbytes() == 8  # not all of which it is a part
    assert copied(torch.zeros(2, requires_grad=True)).requires_grad


def test_rows_of_arrays_are_copies():
    points = as_points((np.zeros((5, 2)), np.arange(5)), "a")
    for taken in (points.take(np.array([0, 3])), points.take(np.arange(5))):
        for column, of in zip(taken, points.columns, strict=True):
            assert not np.shares_memory(column, of)


# another machine


def test_a_resume_that_rounds_differently_is_noted(tmp_path, monkeypatch):
    """PyTorch without the CPU's wide instructions, as on an older CPU."""
    torch = pytest.importorskip("torch")
    if torch.backends.cpu.get_cpu_capability() == "DEFAULT":
        pytest.skip("this CPU has no others")
    planned = Plan(name="a", n_models=2, **killing.TOGETHER)
    here(planned, tmp_path)
    assert here(planned.changed(n_models=3), tmp_path).notes == []
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", "default")
    replayed, surroundings = run(planned.changed(n_models=4), out=tmp_path, workers=1).notes
    assert re.fullmatch(
        r"Model 0 was trained again when the run was resumed, and came out different, by up to \S+e-\d+ in channel "
        r"loss, \S+ in channel reference\. The run is mixed: .* or its trainer is not reproducible\.",
        replayed,
    )
    assert "torch's instructions" in surroundings
    assert surroundings.endswith("→ DEFAULT.")


def test_what_a_replayed_model_shows(tmp_path):
    a_run = here(plan(2), tmp_path)
    signals = a_run.signals()[np.array([1])]
    same = Outcome(1, 0, np.zeros(2), np.zeros((2, 2)), 0.0, {n: v[0] for n, v in signals.channels.items()})
    assert difference(signals, same) is None
    less = replace(same, channels={"loss": same.channels["loss"]})
    assert difference(signals, less) == "gave other channels"
    failed = replace(same, channels=None, error="Traceback\nRuntimeError: broken")
    assert difference(signals, failed) == "failed: RuntimeError: broken"


MEETS = """
import time
from pathlib import Path
def observe(data, points, *, seed, folder):
    others = Path(folder)
    if seed == {first} and (others / "again").exists():
        until = time.monotonic() + 20
        while not (others / "another").exists():
            if time.monotonic() > until: raise RuntimeError("no other model is played meanwhile")
            time.sleep(0.01)
    elif seed != {first}:
        (others / "another").touch()
    return points[1] + time.time()
class Meets:
    def __init__(self, folder): self.folder = folder
    def observe(self, data, points, *, seed): return observe(data, points, seed=seed, folder=self.folder)
"""


def test_others_do_not_wait_for_the_model_that_is_played_again_and_it_is_noted_once(tmp_path, folder):
    (folder / "meets.py").write_text(MEETS.format(first=training_seed(0, Branch.audited, 0)))
    planned = plan(2, trainer={"use": "meets:Meets", "folder": str(tmp_path)}, data="fast:data", folder=folder)
    run(planned, out=tmp_path / "run", workers=2)
    (tmp_path / "another").unlink()
    (tmp_path / "again").touch()
    for n_models in (3, 4, 5):
        again = run(planned.changed(n_models=n_models), out=tmp_path / "run", workers=2)
    assert again.n_done == 5
    (note,) = [text for text in again.notes if "trained again" in text]
    assert "came out different, by up to" in note  # another number each time


def test_sessions_that_differ_say_in_what():
    old = {"time": "then", "computing": {"CPU": "A", "NumPy's instructions": ["AVX", "AVX2"], "settings": {"x": "1"}}}
    new = {"time": "now", "computing": {"CPU": "B", "NumPy's instructions": ["AVX"], "settings": {}, "GPU": []}}
    assert changes(old, new) == [
        "Resumed on now where numbers may round differently: CPU A → B; NumPy's instructions AVX2 → none; "
        "settings x = 1 → none."
    ]
    assert changes(old, {**old, "time": "later"}) == changes({}, new) == changes(old, {}) == []


def test_what_is_recorded_names_no_host_and_no_user():
    text = json.dumps(computing())
    assert socket.gethostname() not in re.findall(r"[\w.-]+", text)
    assert str(Path.home()) not in text
    assert set(computing()) >= {"CPU", "NumPy's instructions", "BLAS", "settings", "epsgauge's code"}
