"""`epsgauge probe train.py`: scripts that know nothing of epsgauge, run as their owners run them."""

from __future__ import annotations

import json
import os
import textwrap
from pathlib import Path

import pytest
from command_line import refused, told

from epsgauge.errors import EpsgaugeError
from epsgauge.mechanisms.privacy import DPSGD
from epsgauge.probing.result import Probe
from epsgauge.scripts.messages import Order
from epsgauge.scripts.requests import accounted
from epsgauge.scripts.session import probe_script

pytest.importorskip("opacus")

SMALL = Path(__file__).parent / "scripts" / "small.py"


def changed(tmp_path: Path, *changes: tuple[str, str]) -> Path:
    """The small script with other lines."""
    text = SMALL.read_text(encoding="utf-8")
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    file = tmp_path / "train.py"
    file.write_text(text, encoding="utf-8")
    return file


def probed(file: Path, *arguments: str, **order: object) -> Probe:
    return probe_script(Order(str(file), arguments, **order))


def _long_after(count: int, i: int) -> tuple[pytest.MarkDecorator, ...]:
    """Each is a process that imports torch: the first ones are tested always."""
    return () if i < count else (pytest.mark.long,)


def codes(found: Probe) -> list[str]:
    return [finding.code for finding in found.refuted]


def test_a_right_script(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = changed(tmp_path)
    told_of = []
    found = probe_script(Order(str(file)), lambda name, count: told_of.append((name, count)))
    assert not found.refuted, str(found)
    assert {f.result for f in found.findings} == {"consistent"}
    assert (found.privacy.sample_rate, found.privacy.noise_multiplier, found.privacy.steps) == (0.1, 1.0, 20)
    assert found.delta == 1e-5
    assert "train.py trains on 200 records" in found.notes[0]
    assert found.notes[1].startswith("torch.manual_seed(0), in line 16 of train.py, makes the noise the same")
    assert found.notes[2].startswith("train.py computes ε = 4.22 at δ = 1e-05, for adding or removing a record.")
    assert "Replacing one costs 4.59" in found.notes[2]
    assert told_of[0] == ("the whole training", 0)
    assert told_of[-1][1] == found.n_trainings


BUGS = {
    "shuffled": ("P111", ("poisson_sampling=not given.shuffled", "poisson_sampling=False")),
    "half the noise": ("P101", ("for epoch in", "optimizer.noise_multiplier = 0.5\nfor epoch in")),
    "noise of one seed": (
        "P102",
        ("max_grad_norm=1.0,", "max_grad_norm=1.0, noise_generator=torch.Generator().manual_seed(0),"),
    ),
    "the same noise in each epoch": ("P102", ("    for features", "    torch.manual_seed(1)\n    for features")),
    "weights by labels": (
        "P117",
        (
            '    print(f"epoch',
            '    with torch.no_grad():\n        model._module.bias += loader.dataset[0][0][:2]\n    print(f"epoch',
        ),
    ),
}


@pytest.mark.parametrize("name", [pytest.param(name, marks=_long_after(1, i)) for i, name in enumerate(BUGS)])
def test_bugs_in_scripts(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    code, change = BUGS[name]
    checks = {"P111": "Poisson batches", "P101": "noise", "P102": "fresh noise", "P117": "bypass"}
    assert code in codes(probed(changed(tmp_path, change), only=(checks[code],))), name


WRONG = {
    "no private training": ("print('nothing')", "makes no training that can be probed"),
    "it is killed": ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "the process that ran train.py died"),
    "it fails": ("import math\nmath.sqrt(-1)", "train.py failed with ValueError: math domain error, in line 2 of"),
    "it exits": ("import sys\nsys.exit(3)", "train.py ended with 3"),
    "it never ends": (
        "while True:\n    pass",
        "train.py began no training within 9 seconds",
    ),
    "it needs a terminal": ("input('go on?')", "needs a terminal"),
    "syntax": ("for", "train.py failed with SyntaxError"),
}


@pytest.mark.parametrize("name", [pytest.param(name, marks=_long_after(1, i)) for i, name in enumerate(WRONG)])
def test_scripts_that_cannot_be_probed(tmp_path, name):
    text, words = WRONG[name]
    file = tmp_path / "train.py"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(EpsgaugeError, match=words):
        probed(file, **({"timeout": 9.0} if "never" in name else {}))


TROUBLES = [
    (("range(given.epochs)", "range(0)"), "ends before it has made a step"),
    (
        (
            "for epoch in",
            "engine.make_private(module=nn.Linear(1, 1), optimizer=optimizer.original_optimizer, "
            "data_loader=DataLoader(TensorDataset(x)), noise_multiplier=1.0, max_grad_norm=1.0)\nfor epoch in",
        ),
        "makes two private trainings",
    ),
    (("    print(f", "    1 / 0\n    print(f"), "failed with ZeroDivisionError: division by zero, in line"),
    (("    print(f", "    import time; time.sleep(600)\n    print(f"), "took longer than 60 seconds"),
    (
        ("TensorDataset(x, y), batch_size=20, shuffle=True", "iter_set(), batch_size=20"),
        "must be indexed, but its data set is an Endless, whose records are not",
    ),
]


@pytest.mark.parametrize(
    ("change", "words"), [pytest.param(*one, marks=_long_after(2, i)) for i, one in enumerate(TROUBLES)]
)
def test_trainings_that_cannot_be_probed(tmp_path, monkeypatch, change, words):
    monkeypatch.chdir(tmp_path)
    changes = [change]
    if "iter_set" in change[1]:
        endless = """
            class Endless(torch.utils.data.IterableDataset):
                def __iter__(self):
                    return iter([])
                def __len__(self):
                    return 20
            iter_set = Endless
            """
        changes.append(("parser = argparse", textwrap.dedent(endless) + "parser = argparse"))
    with pytest.raises(EpsgaugeError, match=words):
        probed(changed(tmp_path, *changes), **({"timeout": 60.0} if "longer" in words else {}))


def test_on_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = changed(tmp_path)
    done = told(
        "probe", "--only", "P111", "--out", tmp_path / "p.json", file, "--shuffled", "--epochs", "1", "--seed", "7"
    )
    assert done.returncode == 1, done.stderr
    assert "--only poisson-batches --seed 0" in done.stdout
    found = Probe.read(tmp_path / "p.json")
    assert found.privacy.steps == 10
    assert [finding.name for finding in found.findings] == ["accounting", "Poisson batches"]
    assert "there is no script" in refused("probe", "none.py")
    assert "-m must be followed by a module" in refused("probe", "-m")
    assert "--small is for a plan, but got a script" in refused("probe", "--small", file)
    assert "--delta is for a script" in refused("probe", "plan.toml", "--delta", "0.1")


@pytest.mark.long
def test_a_module_and_a_notebook(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    changed(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")])))
    found = probe_script(Order("train", ("--epochs", "1"), module=True, only=("steps",)))
    assert not found.refuted
    source = SMALL.read_text(encoding="utf-8").replace("parse_args()", "parse_args([])")
    cells = [
        {"cell_type": "markdown", "source": ["# a"]},
        {"cell_type": "code", "source": ["%matplotlib inline\n", source]},
    ]
    (tmp_path / "train.ipynb").write_text(json.dumps({"cells": cells}), encoding="utf-8")
    assert not probed(tmp_path / "train.ipynb", only=("steps",)).refuted
    (tmp_path / "bad.ipynb").write_text("{}", encoding="utf-8")
    with pytest.raises(EpsgaugeError, match="must be a notebook"):
        probed(tmp_path / "bad.ipynb")


# Loops without Opacus

BY_HAND = SMALL.with_name("by_hand.py")
STATED = {"noise_multiplier": 1.5, "sample_rate": 20 / 120}


@pytest.mark.long
def test_a_loop_by_hand():
    """The second loader is the one that it trains on, and the clipping norm over the divisor is measured."""
    found = probed(BY_HAND, **STATED)
    assert not found.refuted, str(found)
    assert found.privacy.steps == 20
    (scale,) = [f for f in found.findings if f.name == "scale"]
    assert "One record moves an update by 0.0" in scale.sentence
    assert "by_hand.py trains on 120 records" in found.notes[0]


@pytest.mark.long
def test_a_loop_by_hand_that_clips_the_batch(tmp_path):
    text = BY_HAND.read_text(encoding="utf-8")
    a, b = text.index("    total = ["), text.index("    optimizer.step()")
    step = """
    model.zero_grad()
    nn.functional.cross_entropy(model(features), labels).backward()
    nn.utils.clip_grad_norm_(model.parameters(), C)
    for p in model.parameters():
        p.grad += SIGMA * C * torch.randn_like(p)
"""
    file = tmp_path / "train.py"
    file.write_text(text[:a] + step.lstrip("\n") + text[b:], encoding="utf-8")
    assert "P107" in codes(probed(file, only=("clipping",), **STATED))


@pytest.mark.long
def test_tensors_by_name_and_noise_by_the_claim():
    found = probed(BY_HAND, data="x,y", claimed_eps=4.0, sample_rate=20 / 120, only=("noise",))
    assert 1.2 < found.privacy.noise_multiplier < 1.6
    assert not found.refuted, str(found)
    with pytest.raises(EpsgaugeError, match=r"--data must name arrays .* by_hand.py has .* 'z' is not there"):
        probed(BY_HAND, data="x,z")


def test_what_a_script_without_an_accountant_must_state():
    facts = {"history": [], "n_steps": 20, "rate": 0.1}
    order = Order("train.py", noise_multiplier=1.5)
    assert accounted(facts, order, 1e-5, "train.py") == DPSGD(0.1, 1.5, 20)
    assert accounted({**facts, "history": [(1.0, 0.2, 5), (0.8, 0.2, 5)]}, Order("t"), 1e-5, "t") == DPSGD(0.2, 0.8, 10)
    for wrong, words in (
        ((facts, Order("train.py")), "train.py has no accountant of Opacus, so its noise is not known"),
        (({**facts, "rate": None}, order), "the sampling rate of train.py is not known. Give --sample-rate"),
    ):
        with pytest.raises(EpsgaugeError, match=words):
            accounted(*wrong, 1e-5, "train.py")


# Loops that add noise after the step

AFTER_STEP = SMALL.with_name("after_step.py")
ADDED = "            p += RATE * SIGMA * C / BATCH * torch.randn_like(p)"
AFTER_BUGS = {
    "right": ([], ADDED),
    "a quarter of the noise": (["P101"], ADDED.replace("BATCH", "BATCH / 4")),
    "the same noise in each step": (
        ["P102"],
        ADDED.replace("torch.randn_like(p)", "torch.randn(p.shape, generator=torch.Generator().manual_seed(0))"),
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("name", AFTER_BUGS)
def test_noise_after_the_step(tmp_path, name):
    expected, line = AFTER_BUGS[name]
    text = AFTER_STEP.read_text(encoding="utf-8")
    assert text.count(ADDED) == 1
    file = tmp_path / "train.py"
    file.write_text(text.replace(ADDED, line), encoding="utf-8")
    found = probed(file, only=("noise", "fresh noise"), **STATED)
    assert set(expected) <= set(codes(found)), str(found)
    assert bool(expected) == bool(found.refuted), str(found)
    assert any("weights before and after are compared" in note for note in found.notes)


@pytest.mark.long
def test_noise_after_a_step_whose_end_is_not_clear(tmp_path):
    text = AFTER_STEP.read_text(encoding="utf-8").replace(
        "    with torch.no_grad():\n", "    model(x)\n    with torch.no_grad():\n"
    )
    file = tmp_path / "train.py"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(EpsgaugeError, match=r"train.py adds noise to its weights .* where a step ends is not clear"):
        probed(file, only=("noise",), **STATED)


# Generators that are not seeded, made before the training and in it

UNSEEDED = {
    "made at the start": ([], "rng = np.random.default_rng()", "rng.normal(size=t.shape)"),
    "made in each step": ([], "", "np.random.default_rng().normal(size=t.shape)"),
    "of torch": ([], "g = torch.Generator()\ng.seed()", "torch.randn(t.shape, generator=g)"),
    "seeded at the start": (["P102"], "rng = np.random.default_rng(0)", "rng.normal(size=t.shape)"),
}


@pytest.mark.long
@pytest.mark.parametrize("name", UNSEEDED)
def test_generators_of_a_script(tmp_path, name):
    expected, made, noise = UNSEEDED[name]
    text = BY_HAND.read_text(encoding="utf-8").replace(
        "import torch\n", f"import numpy as np\nimport torch\n{made}\n", 1
    )
    old = "torch.randn_like(t)"
    assert text.count(old) == 1
    file = tmp_path / "train.py"
    file.write_text(text.replace(old, f"torch.as_tensor({noise}, dtype=torch.float32)"), encoding="utf-8")
    found = probed(file, only=("noise", "fresh noise"), **STATED)
    assert codes(found) == expected, str(found)
    assert not any(finding.result == "not tested" for finding in found.findings), str(found)


@pytest.mark.long
def test_records_that_were_prepared(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fitted = (
        "y = (x @",
        "from sklearn.preprocessing import StandardScaler\n"
        "x = torch.tensor(StandardScaler().fit_transform(x), dtype=torch.float32)\ny = (x @",
    )
    (found,) = probed(changed(tmp_path, fitted), only=("P160",)).refuted
    assert found.sentence.startswith("StandardScaler in line 19 of train.py was fitted to the records")
    by_hand = ("y = (x @", "x = (x - x.mean(0)) / x.std(0)\ny = (x @")
    (found,) = probed(changed(tmp_path, by_hand), only=("preparation",)).refuted
    assert found.where == "6 numbers of 6 in each record"
    assert not probed(changed(tmp_path), only=("preparation",)).refuted


def test_a_script_that_trains_with_jax(tmp_path):
    """What stands for JAX here is found as it is: a module of this name, of which the script asks for a gradient."""
    (tmp_path / "jax.py").write_text("def grad(f):\n    return f\nvalue_and_grad = grad\n", encoding="utf-8")
    file = tmp_path / "train.py"
    file.write_text("import jax\njax.grad(len)\n", encoding="utf-8")
    with pytest.raises(EpsgaugeError, match=r"trains with JAX, whose .*docs/trainers\.md, JAX\.$"):
        probed(file)
