"""The commands `check` and `run`: trials, workers, failures, retries, and what is said of them."""

import json

import numpy as np
import pytest
from command_line import ask, process
from tiny_runs import plan_text

import epsgauge as eg
from epsgauge.bounds.classed import classed
from epsgauge.bounds.weighted import weighted_lower_bound


def test_run_status_audit(tmp_path):
    """With real worker processes; the same command again finds nothing to do."""
    file = tmp_path / "plan.toml"
    file.write_text(plan_text(n_models=80))
    out = tmp_path / "run"
    status = json.loads(ask("run", file, "--out", out, "--workers", 2, "--json"))
    assert (status["n_done"], status["n_failed"], status["complete"]) == (80, 0, True)
    again = ask("run", file, "-o", out)
    assert "80 of 80 models done" in again
    assert json.loads(ask("status", out, "--json"))["n_done"] == 80
    found = json.loads(ask("audit", out, "--json"))
    assert found["models"] == {"planned": 80, "done": 80, "failed": 0, "judged": 20, "fit": 60}
    assert found["gate"] is None


def test_check_trains_nothing_and_imports_no_code(tmp_path):
    (tmp_path / "plan.toml").write_text(plan_text(n_models=400).replace('"laplace"\neps = 2.0', '"bomb:Trainer"'))
    (tmp_path / "bomb.py").write_text("raise SystemExit('imported')")
    out = " ".join(ask("check", tmp_path / "plan.toml").split())
    assert "400 models with bomb:Trainer" in out
    assert "N = 340 of 340 models, m = 1; the first 60 models choose the rule" in out
    assert "only your code knows it: --try imports it" in out
    seen = json.loads(ask("check", tmp_path / "plan.toml", "--json"))
    bits = np.arange(400) % 2  # it needs no rule, so that those that choose one are judged too
    perfect = classed(bits.astype(float), bits, np.zeros(0), np.zeros(0, int))
    assert seen["largest_verdict"] == weighted_lower_bound(perfect, n_bits=400, delta=1e-5, level=0.99)


def test_check_knows_the_claim_of_a_built_in_trainer(tmp_path):
    (tmp_path / "plan.toml").write_text(plan_text(n_models=400))
    assert json.loads(ask("check", tmp_path / "plan.toml", "--json"))["claim"] == 2.0
    (tmp_path / "plan.toml").write_text(plan_text(n_models=20).replace("fit_models = 60", "fit_models = 4"))
    assert "20 models cannot decide this claim" in " ".join(ask("check", tmp_path / "plan.toml").split())


TRIALS = {
    "good": ("rng.normal() + points[1] - 9.0 * np.isin(points[0], model)", None),
    "unseeded": ("np.random.default_rng().normal() + points[1]", "is not reproducible: with one seed its losses"),
    "fixed": ("points[1] + 0.0", "gave the same losses for two different seeds"),
    "mean": ("np.full(len(points[1]), rng.normal())", "gave the same loss"),
    "reversed": ("rng.normal() + 9.0 * np.isin(points[0], model)", "check the sign"),
}


@pytest.mark.parametrize("name", TRIALS)
def test_check_with_a_trial(tmp_path, name):
    expression, warning = TRIALS[name]
    (tmp_path / f"trial_{name}.py").write_text(
        "import numpy as np\nimport epsgauge as eg\n"
        "class Trainer:\n"
        "    def train(self, data, *, seed):\n"
        "        self.rng = np.random.default_rng(seed)\n"
        "        return data[0]\n"
        "    def losses(self, model, points):\n"
        "        rng = self.rng\n"
        f"        return {expression}\n"
        "    def privacy(self, n):\n"
        "        return eg.KnownPrivacy(eps=1.0, adjacency='substitute')\n"
        "def data():\n"
        "    return np.arange(60), np.arange(60) / 7.0\n"
    )
    text = plan_text(challenge="", attack="loss").replace('"laplace"\neps = 2.0', f'"trial_{name}:Trainer"')
    (tmp_path / "plan.toml").write_text(text.replace('use = "zeros"\nsize = 60', f'use = "trial_{name}:data"'))
    tried = json.loads(ask("check", tmp_path / "plan.toml", "--try", "--json"))
    assert tried["claim"] == 1.0
    found = [w for w in tried["tried"]["warnings"] if warning and warning in w]
    assert len(found) == (warning is not None), tried["tried"]["warnings"]
    if name == "good":
        assert [w for w in tried["tried"]["warnings"] if not w.startswith("No control")] == []


def test_a_run_with_failed_models_exits_3(tmp_path):
    (tmp_path / "half_broken.py").write_text(
        "import numpy as np\n"
        "def observe(data, points, *, seed):\n"
        "    if seed % 3 == 0:\n"
        "        raise RuntimeError('out of luck')\n"
        "    return np.random.default_rng(seed).random(len(points[0]))\n"
    )
    text = plan_text(n_models=80, challenge="", attack="loss").replace('"laplace"\neps = 2.0', '"half_broken:observe"')
    (tmp_path / "plan.toml").write_text(text)
    out = ask("run", tmp_path / "plan.toml", "-o", tmp_path / "run", code=3)
    assert "RuntimeError: out of luck" in out
    assert "--retry-failed" in out
    ask("status", tmp_path / "run", code=3)
    found = json.loads(ask("audit", tmp_path / "run", "--json"))
    failed = found["failed_in_guaranteed"]
    assert sum(found["guaranteed_tally"].values()) == 20
    assert sum(found["tally"].values()) == 20 - failed["b=1"] - failed["b=0"] < 20


def test_retry_failed_and_accept_changed_code(tmp_path):
    module = tmp_path / "mending.py"
    good = "import numpy as np\ndef observe(data, points, *, seed):\n    return np.arange(float(len(points[0])))\n"
    module.write_text(good.replace("    return", "    if seed % 2:\n        raise OSError('not yet')\n    return"))
    text = plan_text(n_models=62, challenge="", attack="loss").replace('"laplace"\neps = 2.0', '"mending:observe"')
    (tmp_path / "plan.toml").write_text(text)
    run = ["run", tmp_path / "plan.toml", "-o", tmp_path / "run", "--workers", 1]
    ask(*run, code=3)
    module.write_text(good)
    with pytest.raises(eg.InvalidInput, match=r"was begun with other code: mending\.py changed since"):
        ask(*run, "--retry-failed")
    ask(*run, "--retry-failed", "--accept-changed-code")
    assert json.loads(ask("status", tmp_path / "run", "--json"))["complete"]
    assert any("The code changed during the run" in w for w in eg.audit(eg.Run.open(tmp_path / "run")).warnings)


def test_a_control_run_from_the_command_line(tmp_path):
    (tmp_path / "plan.toml").write_text(plan_text(n_models=80, eps=0.01))
    ask("run", tmp_path / "plan.toml", "-o", tmp_path / "control", "--control", "--workers", 1, "--blind")
    found = json.loads(ask("audit", tmp_path / "control", "--json"))
    assert (found["verdict"]["kind"], found["tally"]["fp"], found["tally"]["fn"]) == ("no claim", 0, 0)
    assert found["looks"] == 0


def test_check_refuses_a_misspelt_setting_of_the_data(tmp_path):
    (tmp_path / "plan.toml").write_text(plan_text().replace("size = 60", "sizee = 60"))
    with pytest.raises(eg.InvalidInput, match=r'data.sizee is not a setting of zeros, .* Did you mean "size"\?'):
        ask("check", tmp_path / "plan.toml")


def test_what_training_prints_is_not_in_the_answer(tmp_path):
    (tmp_path / "chatty.py").write_text(
        "import os\nimport numpy as np\n"
        "def observe(data, points, *, seed):\n"
        "    print('epoch 1')\n    os.write(1, b'epoch 2')\n"
        "    return np.random.default_rng(seed).random(len(points[0]))\n"
    )
    text = plan_text(n_models=62, challenge="", attack="loss").replace('"laplace"\neps = 2.0', '"chatty:observe"')
    (tmp_path / "plan.toml").write_text(text)
    done = process("run", tmp_path / "plan.toml", "-o", tmp_path / "run", "--json", "--workers", 1)
    assert json.loads(done.stdout)["n_done"] == 62
    assert "epoch 2" in done.stderr


def test_fit_models_played_again_after_a_look_lose_the_level(tmp_path):
    (tmp_path / "sometimes.py").write_text(
        "import pathlib\nimport numpy as np\nHERE = pathlib.Path(__file__).parent\n"
        "def observe(data, points, *, seed):\n"
        "    if seed % 2 and not (HERE / 'mended').exists():\n        raise OSError('not yet')\n"
        "    return np.random.default_rng(seed).random(len(points[0]))\n"
    )
    text = plan_text(n_models=80, challenge="", attack="loss").replace('"laplace"\neps = 2.0', '"sometimes:observe"')
    (tmp_path / "plan.toml").write_text(text)
    run = ["run", tmp_path / "plan.toml", "-o", tmp_path / "run", "--workers", 1, "--blind"]
    ask(*run, code=3)
    assert eg.audit(eg.Run.open(tmp_path / "run")).level_kept
    (tmp_path / "mended").write_text("")
    ask(*run, "--retry-failed")
    found = eg.audit(eg.Run.open(tmp_path / "run"))
    assert "models that pick the threshold were trained again" in found.lost.why
