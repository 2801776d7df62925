"""The commands around a run, as a person and a script use them: exit codes, JSON, one sentence for what is wrong."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from command_line import ask, process, refused, told

import epsgauge as eg
from epsgauge.bounds.exact import exact_lower_bound
from epsgauge.runner.executors import InProcess

PLAN = """
name = "{name}"
seed = 3
n_models = {n_models}

[data]
use = "zeros"
size = 60

[trainer]
use = "laplace"
eps = {eps}

[game]
train_size = 20
reference_size = 10
pairs_per_model = {m}
{challenge}

[audit]
attack = "{attack}"
fit_models = 60
"""
CANARY = 'challenge = "explicit"\ncanaries = "zeros"'


def plan_text(name="leaky", n_models=360, eps=2.0, m=1, challenge=CANARY, attack="difference"):
    return PLAN.format(name=name, n_models=n_models, eps=eps, m=m, challenge=challenge, attack=attack)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Runs that the read-only commands look at."""
    folder = tmp_path_factory.mktemp("runs")
    for name, more in {
        "leaky": {},
        "quiet": {"eps": 0.01},
        "many": {"m": 3, "challenge": "", "attack": "loss", "n_models": 120},
    }.items():
        (folder / f"{name}.toml").write_text(plan_text(name=name, **more))
        eg.run(eg.Plan.read(folder / f"{name}.toml"), out=folder / name, executor=InProcess())
    return folder


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
    assert found["gate"] == []


def test_audit_for_a_person(runs):
    out = " ".join(ask("audit", runs / "leaky").split())
    for text in (
        "adjacency substitute",
        "300 judged, 60 chose the rule",
        "attack difference",
        "black box: the losses of z0 and z1",
        "proven ε = 2.00 (substitute)",
        "guaranteed",
        "Not refuted by this adversary",
        "with a probability of 80%",
    ):
        assert text in out, text


def test_the_gates(runs):
    ask("audit", runs / "leaky", "--fail-above", 5)
    ask("audit", runs / "leaky", "--fail-on", "violation")
    claim = ["--claimed-eps", 0.1, "--claimed-delta", 1e-5, "--claimed-adjacency", "substitute"]
    found = json.loads(ask("audit", runs / "leaky", "--json", "--fail-on", "violation", *claim, code=1))
    assert found["verdict"]["kind"] == "violation"
    assert found["gate"] == [found["verdict"]["sentence"]]
    found = json.loads(ask("audit", runs / "leaky", "--json", "--fail-above", 0.1, code=1))
    assert found["lower_bound"] > 0.1
    assert "above 0.1" in found["gate"][0]


def test_many_pairs_a_model(runs):
    found = json.loads(ask("audit", runs / "many", "--json"))
    assert sum(found["tally"].values()) == 180
    assert sum(found["guaranteed_tally"].values()) == 60
    assert {m["method"]: m["promise"] for m in found["methods"]} == {
        "bayes": "estimate",
        "jeffreys": "estimate",
        "clopper-pearson": "guaranteed",
        "exact": "guaranteed",
        "clusters": "estimate",
        "pooled": "guaranteed",
    }
    assert "are not independent of each other" in " ".join(ask("audit", runs / "many").split())


def test_same_data_is_only_an_estimate(runs):
    found = json.loads(ask("audit", runs / "leaky", "--same-data", "--json"))
    assert {m["promise"] for m in found["methods"]} == {"estimate"}
    assert found["rule"]["chosen"] == "same-data"
    assert "only an estimate" in found["verdict"]["sentence"]


def test_export_and_scores_agree_with_the_audit(runs, tmp_path):
    threshold = json.loads(ask("audit", runs / "leaky", "--json"))["rule"]["threshold"]
    tallies = []
    for name in ("scores.csv", "scores.npz", "scores.parquet"):
        ask("export", runs / "leaky", "-o", tmp_path / name)
        found = json.loads(ask("scores", tmp_path / name, "--delta", 1e-5, "--threshold", threshold, "--json"))
        tallies.append(found["tally"])
    scores = eg.Scores.read(tmp_path / "scores.csv")
    assert scores.adjacency == "substitute"
    assert tallies[0] == tallies[1]
    assert sum(tallies[0].values()) == len(scores) == 360
    judged = scores[scores.model >= 60]
    expected = eg.Tally.from_guesses(judged.bit, (judged.score >= threshold).astype(int))
    assert eg.audit(eg.Run.open(runs / "leaky")).judged.tally == expected


def test_scores_from_standard_input():
    rng = np.random.default_rng(0)
    rows = [f"{b},{rng.normal(1.5 * b):.6f}" for b in (0, 1) for _ in range(300)]
    text = "bit,score\n" + "\n".join(rows) + "\n"
    found = json.loads(ask("scores", "-", "--adjacency", "add-remove", "--delta", 1e-5, "--json", text=text))
    assert found["adjacency"] == "add-remove"
    assert found["models"]["judged"] == 500
    assert found["verdict"]["kind"] == "no claim"
    assert found["verdict"]["bound"] > 0.5


def test_compare(runs, tmp_path):
    first, second = json.loads(ask("compare", runs / "leaky", runs / "quiet", "--rule", "best", "--json"))["runs"]
    assert first["largest_cdf_difference"] == 0
    assert second["largest_cdf_difference"] > 0.9
    posts = [eg.estimate(eg.Tally(**r["audit"]["tally"]), delta=1e-5) for r in (first, second)]
    grid = np.linspace(0, 4, 20001)
    brute = np.abs(posts[0].cdf(grid) - posts[1].cdf(grid)).max()
    assert second["largest_cdf_difference"] == pytest.approx(brute, abs=2e-4)
    assert first["audit"]["rule"]["threshold"] != second["audit"]["rule"]["threshold"]
    shared = json.loads(ask("compare", runs / "leaky", runs / "quiet", "--json"))["runs"]
    assert shared[0]["audit"]["rule"]["threshold"] == shared[1]["audit"]["rule"]["threshold"]
    out = ask("compare", runs / "leaky", runs / "quiet", "--figure", tmp_path / "cdfs.png")
    assert "CDF vs first" in out
    assert (tmp_path / "cdfs.png").stat().st_size > 5000


def test_looks_are_logged_by_every_command_that_shows_results(tmp_path):
    (tmp_path / "plan.toml").write_text(plan_text(n_models=80))
    eg.run(eg.Plan.read(tmp_path / "plan.toml"), out=tmp_path / "run", executor=InProcess())
    ask("status", tmp_path / "run")
    assert eg.Run.open(tmp_path / "run").looks == []
    ask("audit", tmp_path / "run")
    ask("export", tmp_path / "run", "-o", tmp_path / "s.csv")
    ask("compare", tmp_path / "run", tmp_path / "run")
    kinds = [look["kind"] for look in eg.Run.open(tmp_path / "run").looks]
    assert kinds == ["audit", "export", "compare", "compare"]


def test_check_trains_nothing_and_imports_no_code(tmp_path):
    (tmp_path / "plan.toml").write_text(plan_text(n_models=400).replace('"laplace"\neps = 2.0', '"bomb:Trainer"'))
    (tmp_path / "bomb.py").write_text("raise SystemExit('imported')")
    out = " ".join(ask("check", tmp_path / "plan.toml").split())
    assert "400 models with bomb:Trainer" in out
    assert "N = 340 of 340 models, m = 1; the first 60 models choose the rule" in out
    assert "known to your code alone: --try imports it" in out
    seen = json.loads(ask("check", tmp_path / "plan.toml", "--json"))
    perfect = eg.Tally(tp=170, tn=170, fp=0, fn=0)
    assert seen["largest_verdict"] == exact_lower_bound(perfect, delta=1e-5, level=0.99, direction="right")


def test_check_knows_the_claim_of_a_built_in_trainer(tmp_path):
    (tmp_path / "plan.toml").write_text(plan_text(n_models=400))
    assert json.loads(ask("check", tmp_path / "plan.toml", "--json"))["claim"] == 2.0
    (tmp_path / "plan.toml").write_text(plan_text(n_models=80))
    assert "can only be underpowered" in " ".join(ask("check", tmp_path / "plan.toml").split())


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
        assert tried["tried"]["warnings"] == []


@pytest.mark.parametrize("kind", ["opacus", "sklearn", "program"])
def test_init_writes_what_runs_unchanged(tmp_path, kind):
    folder = tmp_path / "mine"
    ask("init", f"--{kind}", folder)
    text = (folder / "plan.toml").read_text()
    small = re.sub(r"n_models = \d+", "n_models = 24", re.sub(r"fit_models = \d+", "fit_models = 8", text))
    assert small != text
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
    assert "already has" in refused("init", f"--{kind}", folder)


def test_the_readme_shows_the_pipeline_that_init_writes():
    root = Path(__file__).parent.parent
    template = (root / "src/epsgauge/cli/templates/opacus/mypipeline.py").read_text()
    shown = (root / "README.md").read_text().split("```py\n")[1].split("```")[0]
    assert shown == template[template.index("from dataclasses") :]


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


BAD = {
    "no plan": (["run", "nowhere.toml", "-o", "run"], "there is no plan nowhere.toml"),
    "no run": (["audit", "nowhere"], "there is no run nowhere"),
    "no store": (["status", "."], "holds no run: it has no store.sqlite"),
    "no scores": (["scores", "nowhere.csv", "--adjacency", "substitute"], "nowhere.csv"),
    "no attack": (["export", "good", "-o", "s.csv", "--attack", "magic"], "attack must be one of"),
    "one run": (["compare", "good"], "a comparison needs two runs or more, but got 1"),
    "a bad level": (["audit", "good", "--level", "1.5"], "level must be less than 1, but got 1.5"),
    "half a claim": (["audit", "good", "--claimed-eps", "1"], "a claim needs all of"),
    "another plan": (["run", "other.toml", "-o", "good"], "holds another plan (trainer.eps was 2.0, now 3.0)"),
    "a damaged store": (["audit", "damaged"], "damaged"),
    "an empty store": (["audit", "empty"], "empty"),
}


@pytest.fixture(scope="module")
def corner(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corner")
    (folder / "good.toml").write_text(plan_text(n_models=80))
    (folder / "other.toml").write_text(plan_text(n_models=80, eps=3.0))
    eg.run(eg.Plan.read(folder / "good.toml"), out=folder / "good", executor=InProcess())
    for name, content in (("damaged", b"SQLite format 3\0" + bytes(range(256)) * 40), ("empty", b"")):
        (folder / name).mkdir()
        (folder / name / "store.sqlite").write_bytes(content)
    return folder


@pytest.mark.parametrize("case", BAD)
def test_bad_input(corner, monkeypatch, case):
    args, sentence = BAD[case]
    monkeypatch.chdir(corner)
    said = refused(*args, by=process if case == "a damaged store" else told)
    assert sentence in said
    assert "\n" not in said.strip()
    assert eg.Run.open(corner / "good").n_done == 80  # nothing is lost


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


def test_options_that_contradict_each_other(runs):
    with pytest.raises(eg.InvalidInput, match="only one of --percentile, --fit-models, --same-data can decide"):
        ask("audit", runs / "leaky", "--percentile", 10, "--fit-models", 5, "--same-data")
    assert json.loads(ask("audit", runs / "leaky", "--fit-models", 30, "--json"))["models"]["judged"] == 330


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
    assert "models that choose the rule were played again" in found.lost.why


def test_a_gate_that_could_not_have_failed_says_so(runs):
    done = told("audit", runs / "leaky", "--fail-above", 50)
    assert done.returncode == 0
    assert "this gate could not have failed: so few models show at most ε = 4." in done.stderr
