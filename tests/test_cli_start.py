"""The first steps: `init` writes pipelines that run, and the demo shows its result."""

import json
import re
from pathlib import Path

import pytest
from command_line import ask, process, refused

QUICKER = {
    "opacus": ("epochs = 5", "epochs = 1"),
    "sklearn": ("train_size = 200", "train_size = 50"),
    "program": ("[game]", '[game]\ncanaries = "opposite"'),  # a process per model: one canary instead of all
}


@pytest.mark.parametrize("kind", QUICKER)
def test_init_writes_what_runs_unchanged(tmp_path, kind):
    folder = tmp_path / "mine"
    ask("init", f"--{kind}", folder)
    text = (folder / "plan.toml").read_text()
    assert "challenge =" not in text
    assert "attack =" not in text
    assert QUICKER[kind][0] in text
    small = re.sub(r"n_models = \d+", "n_models = 24", text.replace(*QUICKER[kind])) + "fit_models = 8\n"
    (folder / "plan.toml").write_text(small)
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


def test_the_opacus_pipeline_that_init_writes_can_be_watched(tmp_path):
    folder = tmp_path / "mine"
    ask("init", "--opacus", folder)
    text = (folder / "plan.toml").read_text().replace("epochs = 5", "epochs = 1")
    text = re.sub(r"n_models = \d+", "n_models = 12", text + "fit_models = 6\n").replace(
        "[audit]", '[adversary]\npreset = "white-box"\n\n[audit]'
    )
    (folder / "plan.toml").write_text(text)
    done = process("run", folder / "plan.toml", "-o", tmp_path / "run", "--workers", 1, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(ask("audit", tmp_path / "run", "--json"))["verdict"]["adversary"]["attack"] == "updates"


def test_the_readme_shows_the_pipeline_that_init_writes():
    root = Path(__file__).parent.parent
    template = (root / "src/epsgauge/cli/templates/opacus/mypipeline.py").read_text()
    shown = (root / "README.md").read_text().split("```py\n")[1].split("```")[0]
    assert shown == template[template.index("from dataclasses") :]


def test_the_demo_resumes_and_shows_its_result(tmp_path, monkeypatch):
    """The shipped plans with fewer models: two runs, two verdicts, and nothing to train the second time."""
    from epsgauge.runner import plan as plans

    read = plans.Plan.read

    def small(path):
        plan = read(path)
        return plan.changed(n_models=20, audit={**plan.audit.model_dump(), "fit_models": 8})

    monkeypatch.setattr(plans.Plan, "read", small)
    first = json.loads(ask("demo", "-o", tmp_path, "--workers", 1, "--json"))
    assert set(first) == {"digits", "digits-canary"}
    assert first["digits"]["accountant"]["eps"]["substitute"] == pytest.approx(3.849, abs=0.01)
    monkeypatch.setattr("epsgauge.runner.executors.Workers.submit", None)  # nothing is trained, or even loaded
    out = ask("demo", "-o", tmp_path)
    assert out.count("Underpowered: ") == 2
    assert "digits-canary" in out
