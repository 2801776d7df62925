"""Ways to train with Opacus: what is right raises no alarm, and what is accounted is what the engine counts."""

from __future__ import annotations

import pytest
from scripts.ways import SMALL, WAYS, way

from epsgauge.scripts.messages import Order
from epsgauge.scripts.session import probe_script

pytest.importorskip("opacus")

# A clipping norm that the data choose leaves these untested.
ADAPTIVE = ["clipping", "Poisson batches", "bypass"]
# Tested always, by some checks; the others are long.
SHORT = ["per layer"]


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in SHORT else pytest.mark.long) for n in WAYS])
def test_a_way_to_train(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "train.py"
    file.write_text(way(name), encoding="utf-8")
    code = WAYS[name][1]
    order = {"noise_multiplier": 1.0, "sample_rate": 0.1} if "no accountant" in name else {}
    only = ("noise", "sensitivity", "steps") if name in SHORT else ()
    found = probe_script(Order(str(file), only=only, **order))
    assert [finding.code for finding in found.refuted] == ([code] if code else []), str(found)
    untested = [finding.name for finding in found.findings if finding.result == "not tested"]
    assert untested == (ADAPTIVE if name == "adaptive" else []), str(found)


@pytest.mark.long
@pytest.mark.parametrize(("arguments", "code"), [((), None), (("--shuffled",), "P111")])
def test_a_trainer_of_transformers_whose_callback_counts_steps(tmp_path, monkeypatch, arguments, code):
    monkeypatch.chdir(tmp_path)
    found = probe_script(Order(str(SMALL.with_name("dp_trainer.py")), arguments))
    assert [finding.code for finding in found.refuted] == ([code] if code else []), str(found)
    assert found.privacy.steps == 20
