"""What the study of the heuristic says is what its files say."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import epsgauge as eg

STUDY = Path(__file__).parent.parent / "studies" / "heuristic"
RESULTS = sorted((STUDY / "results").glob("*.json"))


def test_the_page_has_the_tables_of_the_results():
    done = subprocess.run([sys.executable, str(STUDY / "table.py"), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("file", RESULTS, ids=lambda file: file.stem)
def test_every_result_has_its_plans_and_scores(file):
    result = json.loads(file.read_text())
    for row in result["rows"]:
        name = f"{result['setting']}-m{row['m']}"
        plan = eg.Plan.from_tables(json.loads((STUDY / "plans" / f"{name}.json").read_text()))
        scores = eg.Scores.read(STUDY / "scores" / f"{name}.npz")
        assert (plan.name, plan.game.pairs_per_model) == (name, row["m"])
        assert len(scores) == plan.n_samples
        assert sum(row["tally"].values()) == 1000
        judged = scores[scores.model >= (plan.n_models - row["n_models"])]
        assert len(judged) == row["estimates"] * 1000


def test_models_of_two_plans_are_independent_and_their_points_the_same():
    plans = [json.loads(file.read_text()) for file in sorted((STUDY / "plans").glob("*.json"))]
    families = {}
    for plan in plans:
        families.setdefault(plan["name"].split("-")[0], []).append(plan)
    for some in families.values():
        assert len({plan["seed"] for plan in some}) == len(some)
        assert {plan["game"]["points_seed"] for plan in some} == {0}
        assert len({(plan["game"]["train_size"], plan["game"]["pool_size"]) for plan in some}) == 1
