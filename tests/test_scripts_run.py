"""`epsgauge run train.py`: membership games against scripts that know nothing of epsgauge."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from command_line import refused, told

import epsgauge as eg
from epsgauge.errors import EpsgaugeError
from epsgauge.runner.executors import InProcess
from epsgauge.runner.plan import Plan
from epsgauge.runner.run import run
from epsgauge.runner.script_plan import as_file, script_plan
from epsgauge.scripts.messages import Order
from epsgauge.scripts.trainer import close

pytest.importorskip("opacus")

SMALL = Path(__file__).parent / "scripts" / "small.py"
BY_HAND = SMALL.with_name("by_hand.py")


@pytest.fixture(autouse=True)
def no_session_is_left():
    yield
    close()


def plan_of(folder: Path, n_models: int, *arguments: str, script: Path = SMALL, **order: object) -> Plan:
    """Of a copy in the folder."""
    if not (folder / "train.py").exists():
        shutil.copy(script, folder / "train.py")
    return script_plan(Order("train.py", arguments, **order), folder=folder, n_models=n_models, probe=False)


def test_a_run_without_an_edit(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plan = plan_of(tmp_path, 8, "--epochs", "1")
    assert (plan.adversary.inserts, plan.adversary.sees, plan.game.train_size) == ("gradient", "updates", 200)
    first = run(plan, out=tmp_path / "r", executor=InProcess())
    assert first.n_done == 8
    assert first.privacy == eg.DPSGD(sample_rate=0.1, noise_multiplier=1.0, steps=10)
    close()  # another session goes on with the same models
    more = run(plan.changed(n_models=12), out=tmp_path / "r", executor=InProcess())
    assert np.array_equal(more.signals()["llr"][:8], first.signals()["llr"])
    assert len(np.unique(more.signals()["llr"])) == 12
    assert not any("different" in note for note in more.notes)
    assert eg.audit(more, rule="given", threshold=0.0).verdict.claim.eps == pytest.approx(2.86, abs=0.01)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r", "train.py"]

    written = tmp_path / "train.toml"
    written.write_text(as_file(plan), encoding="utf-8")
    assert Plan.read(written).fingerprinted() == plan.fingerprinted()

    text = SMALL.read_text(encoding="utf-8")
    (tmp_path / "train.py").write_text(text.replace("torch.randn(200, 6)", "torch.rand(200, 6)"), encoding="utf-8")
    with pytest.raises(EpsgaugeError, match=r"code has changed|train\.py"):
        run(plan.changed(n_models=13), out=tmp_path / "r", executor=InProcess())
    close()
    again = run(plan.changed(n_models=13), out=tmp_path / "r", executor=InProcess(), accept_changed_code=True)
    assert "must train on the same records as when its plan was made, 200 records" in again.failed[0].error


def test_a_large_model_has_several_canaries(tmp_path):
    wide = SMALL.read_text(encoding="utf-8").replace(
        "nn.Linear(6, 2)", "nn.Sequential(nn.Linear(6, 200), nn.Linear(200, 2))"
    )
    (tmp_path / "train.py").write_text(wide, encoding="utf-8")
    plan = plan_of(tmp_path, 4, "--epochs", "1", adjacency="substitute")
    assert plan.game.pairs_per_model == 20
    found = run(plan, out=tmp_path / "r", executor=InProcess())
    assert found.signals()["llr"].shape == (4, 20)


def test_how_a_script_is_named_on_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(SMALL, "train.py")
    for words, sentence in {
        ("run", "none.py", "--out", "r"): "there is no script 'none.py'",
        ("run", "train.py", "--out", "r", "--models", "0"): "--models must be a whole number above 0 for a script",
        ("run", "--delta", "2", "train.py", "--out", "r"): "delta must be in [0, 1), but got 2.0",
        ("run", "--steps", "3", "plan.toml", "--out", "r"): "--steps is for a script: a plan states it",
        ("run", "train.py", "--epochs", "1"): "Missing option '--out'",
        ("init", "train.py"): "a script goes with --from",
        ("init",): "init needs a folder, or --from with a script",
        ("init", "--from", "plan.toml"): "--from must name a script",
        ("init", "here", "--from", "train.py"): "it goes with no DIR and no kind",
        ("run", "train.py", "--control", "--out", "r"): "unrecognized arguments: --control. Options for epsgauge come",
    }.items():
        assert sentence in refused(*words), words
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]


@pytest.mark.long
def test_run_resume_audit_and_report(tmp_path, monkeypatch):
    """As somebody types it: the run begins with a probe, and the same command goes on with it."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(SMALL, "train.py")
    words = ("run", "train.py", "--epochs", "1", "--out", "r")
    done = told(*words, "--models", "24")
    assert "nothing contradicts what is accounted" in done.stderr
    assert "24 of 24 models done" in done.stdout
    assert "40 of 40 models done" in told(*words, "--models", "40").stdout
    assert "holds what `epsgauge run train.py --epochs 1` trains" in refused(
        "run", "train.py", "--epochs", "2", "--out", "r"
    )
    assert told("audit", "r", "--fail-on", "violation").returncode in (0, 4)
    assert told("verify", "r").returncode == 0
    assert told("report", "r", "--out", "r.html").returncode == 0
    assert "epsgauge run train.py --epochs 1" in Path("r.html").read_text(encoding="utf-8")
    assert told("init", "--from", "train.py", "--epochs", "1").returncode == 0
    assert "exists" in refused("init", "--from", "train.py", "--epochs", "1")
    assert told("run", "--control", "train.toml", "--out", "c").returncode == 0


@pytest.mark.long
def test_a_loop_without_opacus_has_less_noise_than_stated(tmp_path):
    """No clipping norm is stated: how far a record moves an update is measured."""
    right = plan_of(tmp_path, 6, script=BY_HAND, noise_multiplier=1.5, sample_rate=20 / 120, adjacency="substitute")
    assert right.trainer.settings["max_grad_norm"] == pytest.approx(1 / 20, rel=0.05)
    wrong = plan_of(tmp_path, 200, noise_multiplier=6.0, sample_rate=20 / 120, adjacency="substitute")
    audit = eg.audit(run(wrong, out=tmp_path / "r", executor=InProcess()))
    assert audit.verdict.kind == "violation"
    assert "if the training is DP-SGD" in repr(audit)


@pytest.mark.long
def test_arrays_that_are_clipped_by_themselves_get_no_canary(tmp_path):
    """A gradient as long as a whole update would stand out in an array with little noise, which no record could."""
    text = BY_HAND.read_text(encoding="utf-8")
    for old, new in (
        ("        nn.utils.clip_grad_norm_(model.parameters(), C)\n", "        clip(model)\n"),
        ("SIGMA * C * torch.randn_like(t)", "2**0.5 * SIGMA * NORMS[t.dim()] * torch.randn_like(t)"),
        (
            "class Poisson:",
            "NORMS = {1: 0.02, 2: 1.0}\n\n\ndef clip(model):\n    for p in model.parameters():\n"
            "        nn.utils.clip_grad_norm_([p], NORMS[p.dim()])\n\n\nclass Poisson:",
        ),
    ):
        assert text.count(old) == 1
        text = text.replace(old, new)
    (tmp_path / "train.py").write_text(text, encoding="utf-8")
    with pytest.raises(EpsgaugeError, match=r"no canary can be placed in train\.py: it needs noise of one size"):
        plan_of(tmp_path, 6, noise_multiplier=1.5, sample_rate=20 / 120)


@pytest.mark.long
def test_one_assertion_about_a_script(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(SMALL, "train.py")
    checked = eg.assert_private("train.py", args=["--epochs", 1], eps=3, models=40, allow_undecided=True)
    assert not checked.probe.refuted
    with pytest.raises(AssertionError, match="accounting: ε = 1 is claimed"):
        eg.assert_private("train.py", args=["--epochs", 1], eps=1)
    with pytest.raises(AssertionError, match="Poisson batches"):
        eg.assert_private(Path("train.py"), args=["--epochs", 1, "--shuffled"], eps=3)


def test_what_an_assertion_about_a_script_refuses():
    with pytest.raises(EpsgaugeError, match=r"there is no script 'none\.py'"):
        eg.assert_private("none.py", eps=1)
    with pytest.raises(EpsgaugeError, match=r"data is in the script 'train\.py' already"):
        eg.assert_private("train.py", [1], eps=1)
    with pytest.raises(EpsgaugeError, match="args are for a script"):
        eg.assert_private(print, [[1.0]], args=["--epochs"], eps=1)
