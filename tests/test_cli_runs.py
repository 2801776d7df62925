"""The commands that read runs and scores: exit codes, JSON, gates, looks, and one sentence for what is wrong."""

import json

import numpy as np
import pytest
from command_line import ask, process, refused, told
from tiny_runs import plan_text, small_plan

import epsgauge as eg
from epsgauge.runner.executors import InProcess


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


def test_audit_for_a_person(runs):
    out = " ".join(ask("audit", runs / "leaky").split())
    for text in (
        "adjacency substitute",
        "300 judged, 60 used to pick the threshold",
        "attack difference",
        "black box: the losses of z0 and z1",
        "proven ε = 2 (substitute)",
        "guaranteed",
        "No objection found",
        "with 80 % power",
    ):
        assert text in out, text


def test_the_gates(runs):
    ask("audit", runs / "leaky", "--fail-above", 4)
    ask("audit", runs / "leaky", "--fail-on", "violation")
    claim = ["--claimed-eps", 0.1, "--claimed-delta", 1e-5, "--claimed-adjacency", "substitute"]
    found = json.loads(ask("audit", runs / "leaky", "--json", "--fail-on", "violation", *claim, code=1))
    assert found["verdict"]["kind"] == "violation"
    assert found["gate"]["reasons"] == [found["verdict"]["sentence"]]
    found = json.loads(ask("audit", runs / "leaky", "--json", "--fail-above", 0.1, code=1))
    assert found["verdict"]["bound"]["value"] > 0.1
    assert "above the limit 0.1" in found["gate"]["reasons"][0]


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
        "weighted": "guaranteed",
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
    options = ("--adjacency", "add-remove", "--independent")
    found = json.loads(ask("scores", "-", *options, "--delta", 1e-5, "--json", text=text))
    assert found["adjacency"] == "add-remove"
    assert found["models"]["judged"] == 500
    assert found["verdict"]["kind"] == "no claim"
    assert found["verdict"]["bound"]["value"] > 0.5


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
    out = ask("compare", runs / "leaky", runs / "quiet", "--figure", tmp_path / "cdfs.svg")
    assert "CDF vs first" in out
    drawn = (tmp_path / "cdfs.svg").read_text(encoding="utf-8")
    assert "One curve for each of: leaky, quiet." in drawn


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


def test_status_shows_the_whole_error_and_says_what_views_mean(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    (tmp_path / "deep.py").write_text(DEEP)
    (tmp_path / "plan.toml").write_text(
        plan_text(n_models=70).replace('use = "laplace"\neps = 2.0', 'use = "deep:Deep"')
    )
    ran = told("run", tmp_path / "plan.toml", "--out", tmp_path / "run", "--workers", "1")
    assert ran.returncode == 3
    assert "its first 5 models all failed the same way: ValueError: the bottom is reached." in ran.stderr
    shown = told("status", tmp_path / "run")
    assert shown.returncode == 3
    assert shown.stdout.count("return down(n - 1)") == 3
    assert "ValueError: the bottom is reached" in shown.stdout
    assert max(map(len, shown.stdout.splitlines())) <= 60
    assert "viewed" not in shown.stdout
    eg.run(small_plan(), out=tmp_path / "done", executor=InProcess())
    ask("audit", tmp_path / "done")
    assert "Results were viewed once" in ask("status", tmp_path / "done")


DEEP = """
def down(n):
    if n == 0:
        raise ValueError("the bottom is reached")
    return down(n - 1)


class Deep:
    def train(self, data, *, seed):
        return down(3)

    def losses(self, model, points):
        return []
"""


BAD = {
    "no plan": (["run", "nowhere.toml", "-o", "run"], "there is no plan nowhere.toml"),
    "no run": (["audit", "nowhere"], "there is no run nowhere"),
    "a plan for a run": (["audit", "good.toml"], "`epsgauge run good.toml --out DIR` makes one of a plan."),
    "a file that is missing": (["audit", "missing.csv"], "there is no file missing.csv. Check its name"),
    "a report over what it reads": (
        ["report", "good.toml", "--format", "md", "-o", "./good.toml"],
        "--out would write over good.toml, which this command reads. Name another file.",
    ),
    "scores for a run": (["report", "mia.csv"], "mia.csv is a file. Scores: `epsgauge scores mia.csv`."),
    "a file to view": (["view", "mia.csv"], "a folder of runs is needed, but mia.csv is a file. Name the folder"),
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
    (folder / "mia.csv").write_text("bit,score\n1,0.5\n")
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


def test_options_that_contradict_each_other(runs):
    with pytest.raises(eg.InvalidInput, match="only one of --percentile, --fit-models, --same-data can decide"):
        ask("audit", runs / "leaky", "--percentile", 10, "--fit-models", 5, "--same-data")
    assert json.loads(ask("audit", runs / "leaky", "--fit-models", 30, "--json"))["models"]["judged"] == 330


def test_a_gate_that_could_not_have_failed_says_so(runs):
    done = told("audit", runs / "leaky", "--fail-above", 50)
    assert done.returncode == 4
    assert told("audit", runs / "leaky", "--fail-above", 50, "--allow-undecided").returncode == 0
    assert "cannot decide: a game of this size shows at most ε = 4." in done.stderr
