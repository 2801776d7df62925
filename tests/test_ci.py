"""Files for CI: the steps of action and pipeline are run as they are written."""

import json
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest
import yaml

from epsgauge.runner.probed import TRAININGS

ROOT = Path(__file__).parent.parent
PLAN = """name = "ci"
n_models = 1000

[data]
use = "zeros"
size = 60

[trainer]
use = "randomised-response"
eps = 2.0

[game]
train_size = 10
reference_size = 20
challenge = "explicit"
canaries = "zeros"

[audit]
attack = "difference"
claimed_eps = {claimed}
claimed_delta = 1e-5
claimed_adjacency = "substitute"

[small]
n_models = 300
"""


def steps_of_action(**given):
    """Name, script and variables of each step with a script; installation is what the tests have already."""
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    inputs = {name: str(value.get("default", "plan.toml")) for name, value in action["inputs"].items()} | given
    for step in action["runs"]["steps"]:
        if "run" in step and step["name"] != "Install":
            env = {
                k: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda m: inputs[m[1]], v) for k, v in step["env"].items()
            }
            yield step["name"], step["run"], env


def steps_of_pipeline():
    job = yaml.safe_load((ROOT / "examples/ci/gitlab-ci.yml").read_text(encoding="utf-8"))["privacy audit"]
    for script in job["script"]:
        if "pip install" not in script:
            command = next((word for word in ("check", "run", "report", "card", "audit") if word in script.split()), "")
            yield command, script, {name: str(value) for name, value in job["variables"].items()}


def performed(steps, folder):
    """Run steps as a runner does, until one fails; its name and exit code."""
    bin_ = str(Path(sys.executable).parent)
    files = {"GITHUB_OUTPUT": str(folder / "output"), "GITHUB_STEP_SUMMARY": str(folder / "summary")}
    path = [str(ROOT / "src"), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]  # this checkout with its zoo
    files |= {"PYTHONPATH": os.pathsep.join(path), "STEP": ""}
    for name, script, env in steps:
        environment = {**os.environ, **files, **env, "STEP": name, "PATH": f"{bin_}{os.pathsep}{os.environ['PATH']}"}
        shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
        done = subprocess.run(shell, cwd=folder, env=environment, capture_output=True, encoding="utf-8")
        if done.returncode:
            return name, done.returncode
    return None, 0


def planned(folder, *, claimed=2.0, small="n_models = 300", old="", new=""):
    text = PLAN.format(claimed=claimed).replace("n_models = 300", small)
    assert old in text
    (folder / "plan.toml").write_text(text.replace(old, new), encoding="utf-8")


def test_the_action_fails_where_the_claim_does_not_hold_and_keeps_the_report(tmp_path):
    planned(tmp_path, claimed=0.5)
    assert performed(steps_of_action(), tmp_path) == ("Judge", 1)
    assert (tmp_path / "output").read_text(encoding="utf-8") == "verdict=violation\n"
    assert "# Privacy audit: ci" in (tmp_path / "summary").read_text(encoding="utf-8")
    kept = {path.name for path in (tmp_path / "privacy-audit").iterdir()}
    assert kept == {"run", "audit.json", "report.html", "card.md"}


@pytest.mark.long
def test_the_pipeline_passes_a_claim_that_holds(tmp_path):
    planned(tmp_path)
    assert performed(steps_of_pipeline(), tmp_path) == (None, 0)
    found = json.loads((tmp_path / "privacy-audit" / "audit.json").read_text(encoding="utf-8"))
    assert (found["verdict"]["kind"], found["models"]["done"]) == ("no objection", 300)
    assert (tmp_path / "privacy-audit" / "report.html").exists()


FAILS = """from epsgauge.trainers.mechanism import RandomisedResponseTrainer

class Fails(RandomisedResponseTrainer):
    def train(self, data, *, seed, size=None):
        if seed % 7 == 0:
            raise RuntimeError("this model fails")
        return super().train(data, seed=seed, size=size)
"""


FEW = {"small": "n_models = 40"}
FAILING = {**FEW, "old": 'use = "randomised-response"', "new": 'use = "fails:Fails"'}


@pytest.mark.parametrize(
    ("steps", "changes", "given", "ended"),
    [
        ("action", {"small": "n_model = 300"}, {}, ("Check", 2)),
        ("action", {}, {"small": "True"}, ("Check", 2)),
        ("action", FAILING, {}, ("Train", 3)),
        ("pipeline", {"small": "n_model = 300"}, {}, ("check", 2)),
        ("pipeline", {**FEW, "claimed": 20.0}, {}, ("audit", 4)),
        *(
            pytest.param(*case, marks=pytest.mark.long)
            for case in (
                ("action", FEW, {"fail-on": "leaks"}, ("Judge", 2)),
                ("action", {"small": "n_models = 2"}, {}, ("Judge", 2)),  # too few to choose a rule
                ("action", {**FEW, "claimed": 20.0}, {}, ("Judge", 4)),
                ("pipeline", {"small": "n_models = 2"}, {}, ("report", 2)),
                ("pipeline", FAILING, {}, ("run", 3)),
                ("pipeline", {"claimed": 0.5}, {}, ("audit", 1)),
            )
        ),
    ],
)
def test_exit_codes_come_through(tmp_path, steps, changes, given, ended):
    (tmp_path / "fails.py").write_text(FAILS)
    planned(tmp_path, **changes)
    assert performed(steps_of_action(**given) if steps == "action" else steps_of_pipeline(), tmp_path) == ended


LOGGED = """import os
from dataclasses import dataclass
from zoo import network

data = network.data

@dataclass(frozen=True)
class Logged(network.Correct):
    def train(self, data, *, seed, size=None, watch=None):
        kind = "model" if watch is None else "watched"
        with open(os.environ["TRAININGS"], "a") as log:
            log.write(f"{os.environ['STEP']} {self.epochs} {kind}\\n")
        return super().train(data, seed=seed, size=size, watch=watch)
"""
OF_MODELS = """name = "ci"
n_models = 1000
data = "logged:data"

[trainer]
use = "logged:Logged"
epochs = 400

[game]
train_size = 200
reference_size = 19
challenge = "average"
control_models = 0

[small]
n_models = 40
trainer = { epochs = 1 }
"""


@pytest.mark.parametrize(
    ("steps", "check", "train"),
    [
        (steps_of_action, "Check", "Train"),
        pytest.param(steps_of_pipeline, "check", "run", marks=pytest.mark.long),
    ],
)
def test_the_small_model_alone_is_trained_three_times_probed_once_and_played(
    tmp_path, monkeypatch, steps, check, train
):
    (tmp_path / "plan.toml").write_text(OF_MODELS, encoding="utf-8")
    (tmp_path / "logged.py").write_text(LOGGED, encoding="utf-8")
    monkeypatch.setenv("TRAININGS", str(tmp_path / "log"))
    assert performed(steps(), tmp_path)[1] == 0  # so few models cannot refute anything, but the probe could have
    done = Counter(tuple(line.split()) for line in (tmp_path / "log").read_text(encoding="utf-8").splitlines())
    watched = done.pop((train, "1", "watched"))
    assert done == {(check, "1", "model"): 3, (train, "1", "model"): 40}
    assert 0 < watched < TRAININGS  # of one probe, and not of two
    found = json.loads((tmp_path / "privacy-audit" / "audit.json").read_text(encoding="utf-8"))
    assert found["probe"]["findings"]


def test_the_workflow_gives_inputs_that_the_action_has():
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    workflow = yaml.safe_load((ROOT / "examples/ci/epsgauge.yml").read_text(encoding="utf-8"))
    used = workflow["jobs"]["audit"]["steps"][-1]["with"]
    assert set(used) <= set(action["inputs"])
    assert {name for name, value in action["inputs"].items() if value.get("required")} <= set(used)


def test_the_action_puts_no_input_into_a_script():
    """A name of a branch or a file may hold commands."""
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    assert not any("${{" in step.get("run", "") for step in action["runs"]["steps"])


def test_the_container_copies_what_exists_and_installs_extras_that_exist():
    text = (ROOT / "Containerfile").read_text(encoding="utf-8")
    for line in re.findall(r"^COPY (.*)$", text, re.MULTILINE):
        assert all((ROOT / name).exists() for name in line.split()[:-1]), line
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert set(re.search(r"epsgauge\[([\w,]+)\]", text)[1].split(",")) <= set(extras)
