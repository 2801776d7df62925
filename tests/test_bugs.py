"""Pipelines with a bug are found by a plan that names neither challenge nor attack; their correct twin is not."""

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture
def which(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")
    return importlib.import_module("which_adversary")


@pytest.mark.parametrize("bug", ["no noise", "no clipping", "scaled by the largest"])
def test_the_default_adversary_finds_a_bug(which, bug):
    audit, _ = which.audited(bug, "black box", 100)
    assert (audit.verdict.kind, audit.verdict.promise) == ("violation", "guaranteed")


def test_the_correct_twin_is_not_refuted(which):
    audit, canary = which.audited("correct", "black box", 100)
    assert audit.verdict.kind in ("not refuted", "inconclusive")
    assert canary in audit.verdict.adversary.canary


def test_the_white_box_tells_noise_that_is_too_small_from_its_twin(which):
    names = ("noise without the clipping norm", "noise with the clipping norm")
    found = [which.audited(name, "white box, gradients", 100)[0].verdict.kind for name in names]
    assert found == ["violation", "not refuted"]
