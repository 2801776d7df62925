"""Runs that are compared: by one rule where there is one, and by their own where it would hide what they show."""

import json
from shutil import copytree

import pytest
from command_line import ask, refused
from tiny_runs import pairs_plan, plan, played

import epsgauge as eg
from epsgauge.auditing.audit import audit_run
from epsgauge.auditing.compare import compare
from epsgauge.numbers import at_least

CLAIM = {"claimed_delta": 1e-5, "claimed_adjacency": "substitute", "delta": 1e-5, "verdict_method": "clopper-pearson"}


class Shifted:
    """Scores of this run are those of another one, moved away: a threshold of one guesses all alike in the other."""

    def __init__(self, by, gap):
        self.by, self.gap = by, gap

    def train(self, data, *, seed, size=None):
        return set(data[0].tolist()), seed

    def losses(self, model, points):
        import numpy as np

        members, seed = model
        ids = np.asarray(points[0])
        noise = np.random.default_rng(seed).normal(size=len(ids))
        return noise + self.by - self.gap * np.isin(ids, list(members))


def shifted(name, seed, by, gap, claimed, attack="loss"):
    return eg.Plan(
        name=name,
        seed=seed,
        n_models=120,
        data={"use": "zeros", "size": 100},
        trainer=Shifted(by, gap),
        game={"train_size": 10, "reference_size": 19, "challenge": "average", "control_models": 0, "points_seed": 1},
        audit={"attack": attack, "claimed_eps": claimed, "fit_models": 40, **CLAIM},
    )


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """One that keeps its claim, and a violation whose scores lie elsewhere."""
    folder = tmp_path_factory.mktemp("two")
    quiet = played(shifted("quiet", 1, 0.0, 1.2, 6.0), folder / "quiet")
    return quiet, played(shifted("leaky", 2, 40.0, 6.0, 0.5), folder / "leaky")


def test_a_violation_is_not_hidden_by_the_rule_of_another_run(two):
    quiet, leaky = two
    strict = compare([quiet, leaky], rule="shared")
    assert strict.runs[1].median < strict.runs[0].median  # the shared rule guesses the same about every model
    assert not strict.runs[1].audit.verdict.above
    assert strict.notes == ()
    found = compare([quiet, leaky])
    declared = audit_run(leaky)
    assert declared.verdict.kind == "violation"
    assert found.runs[1].audit.verdict.kind == "violation"
    assert found.runs[1].audit.judged.threshold == declared.judged.threshold
    assert found.runs[1].audit.verdict.bound.value == declared.verdict.bound.value
    assert found.runs[1].median > found.runs[0].median
    (note,) = found.notes
    bounds = [at_least(each.runs[1].audit.verdict.bound.value) for each in (found, strict)]
    assert note == "leaky is judged by its own rule: it shows ε ≥ {}, and that of the first run ε ≥ {}.".format(*bounds)
    assert note in found.warnings
    assert found.to_json()["notes"] == [note]
    other_way = compare([leaky, quiet])  # whichever is the baseline
    assert other_way.runs[0].median > other_way.runs[1].median


def test_one_rule_is_kept_where_it_hides_nothing(tmp_path):
    runs = [played(plan(seed=s, name=str(s)), tmp_path / str(s)) for s in (1, 2)]
    found, strict = compare(runs), compare(runs, rule="shared")
    assert found.notes == strict.notes == ()
    assert found.rule == strict.rule
    assert [r.audit.judged.threshold for r in found.runs] == [r.audit.judged.threshold for r in strict.runs]
    assert found.runs[1].audit.verdict.promise == "estimate"


@pytest.mark.parametrize("rule", ["auto", "shared", "best"])
@pytest.mark.parametrize("claimed", [0.3, 0.9, 3.0])
def test_a_run_and_its_copy_say_the_same(tmp_path, rule, claimed):
    audit = {"claimed_eps": claimed, "claimed_delta": 1e-5, "claimed_adjacency": "substitute"}
    run = played(plan({"use": "laplace", "eps": 2.0}, n_models=240, audit=audit), tmp_path / "run")
    copytree(run.path, tmp_path / "copy")
    found = compare([run, eg.Run.open(tmp_path / "copy")], rule=rule)
    assert found.notes == ()
    one, other = (each.audit for each in found.runs)
    assert one.verdict == other.verdict
    assert one.judged.tally == other.judged.tally
    assert found.runs[1].difference == 0


def test_models_that_share_a_seed_with_all_that_chose_are_judged_by_their_own_rule(tmp_path):
    same = {"attack": "difference", "rule": "same-data"}
    few, more = (played(plan(n_models=n, name=str(n), audit=same), tmp_path / str(n)) for n in (40, 60))
    found = compare([more, few])
    assert found.notes[0].startswith("40 is judged by its own rule: its models share a seed")
    assert found.runs[1].audit.judged.threshold == audit_run(few).judged.threshold


@pytest.fixture(scope="module")
def attacks(tmp_path_factory):
    """Two runs by the attacks that their plans declare, as those of the demo are."""
    folder = tmp_path_factory.mktemp("attacks")
    for name, seed in (("percentile", 1), ("loss", 2)):
        quick = {"attack": name, "verdict_method": "clopper-pearson"}
        played(pairs_plan(1, shift=2.0, name=name, seed=seed, n_models=60, audit=quick), folder / name)
    return folder


def test_runs_with_different_attacks_are_compared_each_by_its_own(attacks):
    runs = [eg.Run.open(attacks / name) for name in ("percentile", "loss")]
    found = compare(runs)
    assert found.notes == (
        "The runs differ in attack (percentile, loss), so each run is judged by the attack and rule of its own.",
    )
    assert found.rule == "each run chooses its own rule"
    for compared, run in zip(found.runs, runs, strict=True):
        assert compared.audit.verdict.bound.value == audit_run(run).verdict.bound.value
    with pytest.raises(eg.InvalidInput, match="must have one attack, but have percentile, loss"):
        compare(runs, rule="shared")


def test_compare_on_the_command_line(attacks):
    folders = [attacks / "percentile", attacks / "loss"]
    out = ask("compare", *folders)
    assert "The runs differ in attack (percentile, loss)" in " ".join(out.split())
    told = json.loads(ask("compare", *folders, "--attack", "loss", "--json"))
    assert told["notes"] == []
    assert ["loss" in run["audit"]["verdict"]["adversary"]["attack"] for run in told["runs"]] == [True, True]
    shared = json.loads(ask("compare", *folders, "--attack", "loss", "--rule", "shared", "--json"))
    assert len({run["audit"]["rule"]["threshold"] for run in shared["runs"]}) == 1
    ours = compare([eg.Run.open(folder) for folder in folders], attack="loss")
    assert [run["median"] for run in told["runs"]] == [run.median for run in ours.runs]
    assert "must have one attack" in refused("compare", *folders, "--rule", "shared")


def test_names_that_do_not_fit_stand_below_the_table(tmp_path, monkeypatch):
    names = ["a-run-with-quite-a-long-name-1", "a-run-with-quite-a-long-name-2"]
    for seed, name in enumerate(names):
        played(plan(name=name, seed=seed), tmp_path / name)
    for width, lines in (("80", [f" {i}  {name}" for i, name in enumerate(names, 1)]), ("140", [])):
        monkeypatch.setenv("COLUMNS", width)
        out = ask("compare", *(tmp_path / name for name in names), "--rule", "best").splitlines()
        assert [line.rstrip() for line in out if line.strip().endswith(tuple(names))] == lines
        assert all(any(name in line for line in out) for name in names)
