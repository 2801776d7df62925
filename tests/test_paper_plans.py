"""The plans of the paper's settings: all there, as their generator writes them, accepted; one runs from end to end."""

import importlib.util
import itertools
import json
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest
from command_line import ask
from tiny_runs import played

from epsgauge.data.cifar10 import RECORD
from epsgauge.games.roles import assign, candidates, ranked
from epsgauge.runner.plan import Plan
from epsgauge.trainers import opacus_engine

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "examples" / "paper"
PAIRS = (1, 10, 100, 1000)
KINDS = ["-".join(kind) for kind in itertools.product(("cifar10", "sst2"), ("dp", "none"), ("average", "worst"))]
NAMES = [f"{kind}-m{m}" for kind in KINDS for m in PAIRS]
EPS = {kind: 10.0 if kind.startswith("cifar10") else 4.0 for kind in KINDS}
# Distinct points, a little fewer than there are points: some of SST-2's sentences occur twice.
AVAILABLE = {"cifar10": 59_900, "sst2": 66_900}


def read(name, small=False):
    return Plan.read(FOLDER / f"{name}.toml", small=small)


def test_they_are_as_the_generator_writes_them():
    spec = importlib.util.spec_from_file_location("paper_plans", ROOT / "tools" / "paper_plans.py")
    generator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)
    assert generator.wrong() == []
    assert [s.name for s in generator.SETTINGS] == NAMES


def test_the_settings_are_complete():
    assert {file.stem for file in FOLDER.glob("*.toml")} == set(NAMES)
    for name in NAMES:
        data, privacy, challenge, m = name.split("-")
        plan = read(name)
        assert plan.name == name
        assert plan.data.use == {"cifar10": "cifar10", "sst2": "sst2-tokens"}[data]
        assert plan.trainer.use == {"dp": "dpsgd", "none": "sgd"}[privacy]
        assert (plan.game.challenge, f"m{plan.game.pairs_per_model}") == (challenge, m)
        assert (plan.audit.delta, plan.audit.level, plan.audit.attack) == (1e-5, 0.90, "percentile")
        if privacy == "dp":
            target = plan.trainer.settings["target_eps"], plan.trainer.settings["target_delta"]
            assert target == (EPS[name.rpartition("-")[0]], 1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_over_m_all_is_the_same_but_m_and_the_models(kind):
    """So that a comparison shows what m does; seeds differ, so that the models are independent."""
    plans = [read(f"{kind}-m{m}") for m in PAIRS]
    games = [plan.game.model_dump(exclude={"pairs_per_model"}) for plan in plans]
    assert games[1:] == games[:-1]
    assert len({json.dumps([p.trainer.identity(), p.data.identity()]) for p in plans}) == 1
    assert {p.points_seed for p in plans} == {0}


def test_no_two_plans_share_their_seed():
    assert len({read(name).seed for name in NAMES}) == len(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_the_points_suffice(name):
    for small in (False, True):
        plan = read(name, small)
        keys = np.arange(10_000 if small else AVAILABLE[name.split("-")[0]])
        reference, others = candidates(plan.game, keys, plan.points_seed, 0)
        roles = assign(plan.game, reference, others, np.empty((0, 2), np.int64), ranked(plan.game, others))
        assert len(roles.base) == plan.game.train_size - plan.game.pairs_per_model
        assert len(roles.pool) == plan.game.pool_size
        assert len(roles.reference) == plan.game.reference_size


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_check_takes_them(kind):
    """Over m the accountant is asked once: n is the same."""
    for m in PAIRS:
        seen = json.loads(ask("check", FOLDER / f"{kind}-m{m}.toml", "--json"))
        assert (seen["n_guesses"], seen["n_judged"]) == (1000, 1000 // m)
        if "-dp-" in kind:
            assert 0.99 * EPS[kind] < seen["accountant"]["add-remove"] <= EPS[kind] < seen["claim"]


@pytest.mark.parametrize("kind", KINDS)
def test_check_takes_them_small(kind, monkeypatch):
    """With noise that is not calibrated, which takes seconds for each n."""
    monkeypatch.setattr(opacus_engine, "calibrated_noise", lambda **_: 0.7)
    for m in PAIRS:
        seen = json.loads(ask("check", FOLDER / f"{kind}-m{m}.toml", "--small", "--json"))
        game = seen["plan"]["game"]
        assert game["pairs_per_model"] <= 0.1 * game["train_size"]
        assert seen["plan"]["trainer"]["device"] == "cpu"
        assert seen["n_trained"] * game["train_size"] <= (
            7000 if kind.startswith("cifar10") else 900
        )  # minutes, not hours


def test_the_small_table_replaces_what_it_says_and_repeats_nothing():
    for name in NAMES:
        whole = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
        for key, value in whole["small"].items():
            for inner, replaced in (value if isinstance(value, dict) else {}).items():
                assert whole[key].get(inner) != replaced, (name, key, inner)


TINY = {"n_models": 5, "fit_models": 2, "train_size": 20, "pairs_per_model": 2, "pool_size": 8, "reference_size": 10}


def test_a_small_plan_from_end_to_end(tmp_path):
    """Tinier still, random images in the format of CIFAR-10's files; noise is given, as calibrating takes seconds."""
    rng = np.random.default_rng(0)
    records = rng.integers(0, 256, size=(60, RECORD), dtype=np.uint8)
    records[:, 0] = rng.integers(0, 10, size=60)
    (tmp_path / "cifar-10-batches-bin").mkdir()
    (tmp_path / "cifar-10-batches-bin" / "data_batch_1.bin").write_bytes(records.tobytes())
    full, mark, small = (FOLDER / "cifar10-dp-average-m10.toml").read_text(encoding="utf-8").partition("\n[small]\n")
    for key, value in {**TINY, "batch_size": 10}.items():
        small = re.sub(rf"^{key} = \d+$", f"{key} = {value}", small, flags=re.MULTILINE)
    small = small.replace("[small.game]", f"[small.game]\npairs_per_model = {TINY['pairs_per_model']}")
    full = full.replace("target_eps = 10.0\ntarget_delta = 1e-5", "noise_multiplier = 0.7")
    assert "noise_multiplier" in full
    file, out = tmp_path / "tiny.toml", tmp_path / "run"
    file.write_text(full + mark + small, encoding="utf-8")
    played(Plan.read(file, small=True), out)
    found = json.loads(ask("audit", out, "--json"))
    assert found["models"] == {"planned": 5, "done": 5, "failed": 0, "judged": 3, "fit": 2}
    assert sum(found["tally"].values()) == 6
