"""The zoo: bugs are found by a plan that names neither challenge nor attack, and a correct twin is not refuted."""

import re
from pathlib import Path

import pytest

pytest.importorskip("opacus")

import epsgauge as eg
from epsgauge.runner.probed import probe_plan
from zoo import unseen
from zoo.__main__ import audited, by_probe
from zoo.cases import CASES

PAGE = Path(__file__).parent.parent / "docs" / "zoo.md"


@pytest.mark.parametrize("bug", ["no noise", "no clipping", "scaled by the largest"])
def test_the_default_adversary_finds_a_bug(bug):
    verdict = audited(bug, "black box", 100)[0].verdict
    assert (verdict.kind, verdict.promise) == ("violation", "guaranteed")


def test_the_correct_twin_is_not_refuted():
    audit, canary, _ = audited("correct", "black box", 100)
    assert audit.verdict.kind in ("no objection", "cannot decide")
    assert canary in audit.verdict.adversary.canary


@pytest.mark.long
def test_the_white_box_tells_noise_that_is_too_small_from_its_twin():
    names = ("noise without the clipping norm", "noise with the clipping norm")
    found = [audited(name, "white box, gradients", 100)[0].verdict.kind for name in names]
    assert found == ["violation", "no objection"]


def test_what_the_probe_finds_is_printed(capsys):
    assert by_probe(["no noise", "correct"], 1)
    said = capsys.readouterr().out
    assert "bugs refuted: 1 of 1" in said
    assert "twins refuted: 0 of 1" in said


def test_the_page_has_every_pipeline():
    page = PAGE.read_text(encoding="utf-8")
    assert [name for name, case in CASES.items() if f"| {case.meaning} |" not in page] == []
    bugs = sum(case.bug for case in CASES.values())
    assert re.search(rf"has {bugs} small trainings with a bug .* and {len(CASES) - bugs} that are right", page)


# Bugs by somebody who knew neither the probe nor the rest

UNSEEN = sorted(path.parent for path in Path(unseen.__file__).parent.glob("*/WHY.md"))


def test_plans_of_unseen_bugs_leave_everything_to_the_defaults():
    assert len(UNSEEN) == 13
    for kind in ("bug", "twin"):
        for folder in UNSEEN:
            plan = eg.Plan.read(folder / kind / "plan.toml")
            assert plan.game.auto
            assert plan.probes
            assert plan.adversary.is_open
            assert (plan.audit.attack, plan.n_models) == (None, 1000)


def test_a_run_of_an_unseen_bug_fails_the_gate_and_its_twin_does_not():
    """By the probe that a run begins with; `python -m zoo.unseen` plays all of them."""
    (folder,) = [each for each in UNSEEN if each.name.startswith("03")]
    bug, twin = (probe_plan(eg.Plan.read(folder / kind / "plan.toml")) for kind in ("bug", "twin"))
    assert [finding.name for finding in bug.refuted] == ["sensitivity", "one record"]
    assert not twin.refuted
