"""The first steps: `init` writes pipelines that run, and the demo shows its result."""

import io
import json
import re
import sys
from pathlib import Path

import pytest
from command_line import ask, process, refused
from rich.console import Console
from tiny_runs import played

import epsgauge as eg
from epsgauge.figures.ladder import Ladder, Rung
from epsgauge.figures.ruler import Shown
from epsgauge.reporting.ladder import show_ladder
from epsgauge.runner.executors import InProcess

QUICKER = {
    "opacus": {"epochs = 5": "epochs = 1", "train_size = 500": "train_size = 100"},
    "sklearn": {"train_size = 200": "train_size = 50", "reference_size = 100": "reference_size = 20"},
    "program": {"[game]": '[game]\ncanaries = "opposite"'},  # a process per model: one canary instead of all
}


def quicker(text, kind, n_models):
    """The plan that `init` writes, with so many models, which take less time."""
    for there, less in QUICKER[kind].items():
        assert there in text
        text = text.replace(there, less)
    return re.sub(r"n_models = \d+", f"n_models = {n_models}", text) + "fit_models = 8\n"


@pytest.mark.parametrize("kind", QUICKER)
def test_init_writes_what_runs_unchanged(tmp_path, kind):
    folder = tmp_path / "mine"
    ask("init", f"--{kind}", folder)
    text = (folder / "plan.toml").read_text(encoding="utf-8")
    ask("init", f"--{kind}", tmp_path / "another one")
    assert (tmp_path / "another one" / "plan.toml").read_text(encoding="utf-8") == text.replace("mine", "another-one")
    assert "challenge =" not in text
    assert "attack =" not in text
    (folder / "plan.toml").write_text(quicker(text, kind, 24))
    # a process of its own: all three have a module mypipeline
    run = ["run", folder / "plan.toml", "-o", tmp_path / "run", "--workers", 1, "--json"]
    done = process(*run, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["n_done"] == 24
    assert "Warning" not in done.stderr
    found = json.loads(ask("audit", tmp_path / "run", "--json"))
    assert found["models"]["judged"] == 16
    assert found["claim"] is not None
    assert any("No control" in text for text in found["warnings"]) == (kind != "opacus")
    assert "already has" in refused("init", f"--{kind}", folder)


def test_the_opacus_pipeline_that_init_writes_can_be_watched(tmp_path, monkeypatch):
    folder = tmp_path / "mine"
    ask("init", "--opacus", folder)
    text = quicker((folder / "plan.toml").read_text(encoding="utf-8"), "opacus", 12)
    (folder / "plan.toml").write_text(text.replace("[audit]", '[adversary]\npreset = "white-box"\n\n[audit]'))
    for name in ("mypipeline", "train"):  # of another test's folder
        monkeypatch.delitem(sys.modules, name, raising=False)
    played(eg.Plan.read(folder / "plan.toml"), tmp_path / "run")
    assert json.loads(ask("audit", tmp_path / "run", "--json"))["verdict"]["adversary"]["attack"] == "updates"


def test_the_readme_shows_the_pipeline_that_init_writes():
    root = Path(__file__).parent.parent
    template = (root / "src/epsgauge/cli/templates/opacus/mypipeline.py").read_text(encoding="utf-8")
    shown = (root / "README.md").read_text(encoding="utf-8").split("```py\n")[1].split("```")[0]
    assert shown == template[template.index("from dataclasses") :]


def test_the_demo_resumes_and_shows_its_result(tmp_path, monkeypatch):
    """The shipped plans with fewer models: five runs, one picture, and nothing to train the second time."""
    from epsgauge.runner import plan as plans

    read = plans.Plan.read

    def small(path):
        plan = read(path)
        few = {"control_models": 4, **({"rehearsal_models": 10} if plan.game.auto else {})}
        game = plan.game.model_copy(update=few)
        return plan.changed(n_models=30, game=game, audit={**plan.audit.model_dump(), "fit_models": 10})

    def here(plan, out, **_):
        return eg.run(plan, out=out, executor=InProcess())

    monkeypatch.setattr(plans.Plan, "read", small)
    with monkeypatch.context() as patched:
        patched.setattr("epsgauge.cli.demo.watched", here)
        first = json.loads(ask("demo", "-o", tmp_path, "--json"))
    assert set(first) == {"digits", "digits-canary", "digits-updates", "digits-bug", "digits-bug-updates"}
    for found in first.values():  # what is claimed of the bug is what its accountant was told
        assert found["claim"]["eps"] == pytest.approx(3.849, abs=0.01)
        assert found["claim"]["source"] == "accountant"
    monkeypatch.setattr("epsgauge.runner.executors.Workers.submit", None)  # nothing is trained, or even loaded
    out = ask("demo", "-o", tmp_path)
    picture = out[out.rindex("DP-SGD on handwritten digits") :]
    drawn = re.findall(r"^(average record|best canary|every update) ", picture, re.MULTILINE)
    assert drawn == ["average record", "best canary", "every update", "average record", "every update"]
    assert "┊ claimed 3.85" in picture
    for name, found in first.items():
        assert found["verdict"]["kind"] in picture, name
    page = (tmp_path / "demo.html").read_text(encoding="utf-8")
    assert page.count('class="answer kind-') == 6  # of the page, and of each run
    assert "The ε that each adversary shows" in page
    assert f"epsgauge audit {tmp_path / 'digits-bug-updates'}" in out
    assert "epsgauge init --opacus" in out


def test_the_bug_of_the_demo_is_half_the_noise_and_the_same_promise():
    from epsgauge.cli.plans import digits_bug
    from epsgauge.trainers.dpsgd import DpSgd

    settings = {"noise_multiplier": 3.5, "epochs": 5, "batch_size": 200}
    right = DpSgd(**settings, max_grad_norm=2.0)
    wrong = digits_bug.UnscaledNoise(**settings, max_grad_norm=2.0)
    assert wrong.recipe(400).noise_multiplier == right.recipe(400).noise_multiplier / 2
    assert wrong.privacy(400) == right.privacy(400)


def bars(*rungs, width):
    """The picture in a terminal of what adversaries show, where 4 is claimed."""
    page = io.StringIO()
    end = max(4.0, *(rung.reach for rung in rungs))
    show_ladder(Ladder(1e-5, 0.99, 4.0, {"a training": rungs}, end), Console(file=page, width=width))
    return page.getvalue().splitlines()


def shown(surely, conditional):
    """A bound for any training, and a conditional one."""
    return tuple(Shown(value, "", "", 0.99, "guaranteed") for value in (surely, conditional))


@pytest.mark.parametrize("width", [80, 120])
def test_bars_are_as_long_as_what_is_shown_and_the_claim_is_a_line(width):
    rungs = [
        Rung("weak", shown(0.0, 0.0), "cannot decide"),
        Rung("strong", shown(1.0, 2.0), "no objection"),
        Rung("sees a bug", shown(5.0, 8.0), "violation"),
    ]
    lines = bars(*rungs, width=width)
    none, some, beyond, claim = lines[2:6]
    at = claim.index("┊")
    assert {line.index("┊") for line in (none, some, beyond)} == {at}
    assert (none.count("█"), none.count("▒")) == (0, 0)
    assert some.count("█") == pytest.approx(some.count("▒"), abs=1)
    assert some.rindex("▒") < at < beyond.rindex("▒")
    assert beyond[at + 1] == "█"  # whatever the mechanism
    assert all(len(line) <= width for line in lines)
