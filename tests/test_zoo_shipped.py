"""Shipped bugs are found on their wheels and twins are not; `make zoo` makes the environments and runs all of them."""

import zipfile

import pytest

from zoo.shipped import environments
from zoo.shipped.__main__ import found, summary, table
from zoo.shipped.cases import CASES
from zoo.shipped.one import here, run

BUG = {"name": "a", "twin": False, "library": "L", "version": "1", "judged_by": "membership", "n": 9, "seconds": 1.0}


def test_a_bug_is_found_on_its_wheel():
    name = "diffprivlib-bounds"  # the others take longer
    if not environments.path_of(CASES[name].environment).exists():
        pytest.skip(f"build/zoo has no {CASES[name].environment}: `make zoo` makes it")
    row = run(name, seed=1)
    assert row["caught"], row
    assert f"{row['library'].lower()}-{row['version']}" == CASES[name].environment


@pytest.mark.parametrize("twin", [False, True])
@pytest.mark.filterwarnings("ignore:Secure RNG turned off", "ignore:Full backward hook")
def test_a_divisor_that_depends_on_the_number_of_records(twin):
    pytest.importorskip("opacus")
    row = here("opacus-batch-size", twin=twin, seed=1)
    assert row["findings"] == ([] if twin else ["left out"])


def test_a_wheel_that_pip_cannot_get_is_skipped_with_the_reason(tmp_path, monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setattr(environments, "FOLDER", tmp_path)
    monkeypatch.setitem(environments.ENVIRONMENTS, "opendp-0.16.0", ("no-such-package-of-the-zoo==0",))
    row = run("opendp-pairs")
    assert "no-such-package-of-the-zoo==0" in row["skipped"]
    assert "caught" not in row
    assert list(tmp_path.iterdir()) == []


def test_an_environment_is_made_once(tmp_path, monkeypatch):
    wheel = tmp_path / "tiny-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr("tiny.py", "")
        file.writestr("tiny-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1\n")
        file.writestr("tiny-1.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr("tiny-1.dist-info/RECORD", "")
    monkeypatch.setattr(environments, "FOLDER", tmp_path / "zoo")
    monkeypatch.setitem(environments.ENVIRONMENTS, "tiny-1", (str(wheel),))
    folder = environments.made("tiny-1")
    assert (folder / "tiny.py").exists()
    wheel.unlink()
    assert environments.made("tiny-1") == folder
    assert [path.name for path in folder.parent.iterdir()] == ["tiny-1"]


def test_what_is_printed():
    bug, twin = {**BUG, "caught": True, "bound": 2.0, "claim": 1.0}, {**BUG, "twin": True}
    rows = [bug, {**twin, "caught": False, "findings": []}, {**twin, "skipped": "no wheel"}]
    assert [found(row) for row in rows] == ["ε ≥ 2.00, claimed 1.00", "nothing", "skipped: no wheel"]
    assert table(rows).splitlines()[1].split()[-3:] == ["9", "1.0", "yes"]
    said = "bugs caught: 1 of 1; false alarms of twins: 0 of 1, where chance allows 0.0001; skipped: 1"
    assert summary(rows) == said
