"""Files for CI: the steps of action and pipeline are run as they are written."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import yaml

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


def steps_of_action():
    """Name, script and variables of each step with a script; installation is what the tests have already."""
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    inputs = {name: str(value.get("default", "plan.toml")) for name, value in action["inputs"].items()}
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
            yield script, script, {name: str(value) for name, value in job["variables"].items()}


def performed(steps, folder):
    """Run steps as a runner does, until one fails; its name and exit code."""
    bin_ = str(Path(sys.executable).parent)
    files = {"GITHUB_OUTPUT": str(folder / "output"), "GITHUB_STEP_SUMMARY": str(folder / "summary")}
    for name, script, env in steps:
        environment = {**os.environ, **files, **env, "PATH": f"{bin_}{os.pathsep}{os.environ['PATH']}"}
        done = subprocess.run(
            ["bash", "-e", "-c", script], cwd=folder, env=environment, capture_output=True, encoding="utf-8"
        )
        if done.returncode:
            return name, done.returncode
    return None, 0


def test_the_action_fails_where_the_claim_does_not_hold_and_keeps_the_report(tmp_path):
    (tmp_path / "plan.toml").write_text(PLAN.format(claimed=0.5), encoding="utf-8")
    assert performed(steps_of_action(), tmp_path) == ("Judge", 1)
    assert (tmp_path / "output").read_text(encoding="utf-8") == "verdict=violation\n"
    assert "# Privacy audit: ci" in (tmp_path / "summary").read_text(encoding="utf-8")
    kept = {path.name for path in (tmp_path / "privacy-audit").iterdir()}
    assert kept == {"run", "audit.json", "report.html", "card.md"}


def test_the_pipeline_passes_a_claim_that_holds(tmp_path):
    (tmp_path / "plan.toml").write_text(PLAN.format(claimed=2.0), encoding="utf-8")
    assert performed(steps_of_pipeline(), tmp_path) == (None, 0)
    found = json.loads((tmp_path / "privacy-audit" / "audit.json").read_text(encoding="utf-8"))
    assert (found["verdict"]["kind"], found["models"]["done"]) == ("not refuted", 300)
    assert (tmp_path / "privacy-audit" / "report.html").exists()


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
