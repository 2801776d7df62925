"""The house rules of the code: what is done once, what knows no names, and a map that names every file."""

import re
from collections import Counter
from pathlib import Path

import pytest
from tiny_runs import pairs_plan, plan, played

import epsgauge
from epsgauge.auditing.audit import audit
from epsgauge.bounds import exact
from epsgauge.methods.method import Asked
from epsgauge.methods.table import METHODS
from epsgauge.runner.plan import Plan
from epsgauge.runner.store import Store
from epsgauge.runner.view import Run

SOURCE = Path(epsgauge.__file__).parent
# Where a name is not that of a method: quick intervals that a search maximises, trainers, claimed curves, what one
# function computes.
OTHER_NAMES = (
    "settings.py",
    "stats/quick.py",
    "stats/sizing.py",
    "scores/rules.py",
    "scores/search.py",
    "runner/parts.py",
    "trainers/pate.py",
    "mechanisms/curves.py",
    "auditing/record.py",
    "bounds/",
)


@pytest.mark.parametrize("of", [plan, pairs_plan])
def test_an_audit_opens_the_store_once_and_builds_no_plan(of, tmp_path, monkeypatch):
    played(of(), tmp_path / "a")
    times = Counter()

    def counted(name, real):
        def call(*args, **kw):
            times[name] += 1
            return real(*args, **kw)

        return call

    monkeypatch.setattr(Store, "read", counted("store", Store.read))
    monkeypatch.setattr(Plan, "__init__", counted("plan", Plan.__init__))
    run = Run.open(tmp_path / "a")
    assert times == {"store": 1, "plan": 1}
    times.clear()
    audit(run)
    assert times == {"store": 1}


def test_each_bound_is_inverted_once(tmp_path, monkeypatch):
    run, asked, real = (
        played(plan({"use": "randomised-response", "eps": 3.0}, n_models=120), tmp_path / "a"),
        Counter(),
        exact.by_inversion,
    )

    def inverted(tally, *args, alpha, direction, **kw):
        asked[str(tally), repr(args), alpha, direction] += 1
        return real(tally, *args, alpha=alpha, direction=direction, **kw)

    monkeypatch.setattr(exact, "by_inversion", inverted)
    audit(run, delta=1e-5)
    assert asked
    assert max(asked.values()) == 1


@pytest.mark.parametrize("orthogonal", [False, True])
@pytest.mark.parametrize("of_dpsgd", [False, True])
@pytest.mark.parametrize("pairs", [1, 2])
@pytest.mark.parametrize("by_mu", [False, True])
@pytest.mark.parametrize("rule", ["split", "split-pairs", "given", "same-data"])
def test_one_method_judges(rule, by_mu, pairs, of_dpsgd, orthogonal):
    asked = Asked(rule, pairs, by_mu, of_dpsgd=of_dpsgd, orthogonal=orthogonal)
    assert len([m for m in METHODS.values() if m.judges(asked)]) == 1


def test_nothing_outside_asks_for_a_method_by_name():
    names = "|".join(METHODS)
    found = []
    for file in SOURCE.rglob("*.py"):
        place = file.relative_to(SOURCE).as_posix()
        if place.startswith(("methods/", "paper/", *OTHER_NAMES)) or "templates" in place:
            continue
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            if re.search(rf'"({names})"', line) and not line.strip().startswith(("#", ">>>", '"""')):
                found.append(f"{place}:{number}: {line.strip()}")
    assert found == []


def test_the_map_names_every_file():
    named = set(re.findall(r"`_?(\w+)`", (SOURCE.parents[1] / "docs/design.md").read_text(encoding="utf-8")))
    parts = {"calibration_" + part for part in ("bounds", "exact", "result", "scenarios", "sources")}  # `_bounds`, …
    rooms = "attacks auditing bounds data figures games methods probing reporting reporting/viewer runner sampling "
    rooms += "scores scores/importers scripts stats trainers"
    files = {file.stem for room in rooms.split() for file in (SOURCE / room).glob("*.py")} - {"__init__", "__main__"}
    assert sorted(files - named - parts) == []
