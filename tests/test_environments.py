"""`make portable` and `make lowest`: what they run exists, and a failure in one environment is a failure."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools import lowest, portable

ROOT = Path(__file__).parent.parent
TOOL = ROOT / "tools" / "portable.py"


def test_the_tests_they_run_exist():
    named = {*portable.NUMERIC, *portable.TEXTUAL, *(f"tests/test_{name}.py" for name in lowest.TESTS.split())}
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_the_lowest_versions_are_the_bounds_of_the_core():
    found = dict(need.split("==") for need in lowest.lowest())
    assert {"numpy", "scipy", "typer", "rich", "pydantic", "loky", "cloudpickle", "jinja2"} <= found.keys()
    assert found["numpy"] == "1.26"


def test_a_path_without_a_program(tmp_path):
    folder = portable._path_without("env", tmp_path / "bin")
    assert shutil.which("env", path=folder) is None
    assert shutil.which("sh", path=folder) is not None


@pytest.mark.parametrize(("seen", "code"), [("0o077", 0), ("0o022", 1)])
def test_a_line_and_an_exit_code(tmp_path, seen, code):
    """Of tests that need the environment's umask, or another one."""
    test = tmp_path / "test_umask.py"
    test.write_text(f"import os\n\ndef test_it():\n    assert os.umask(0o077) == {seen}\n", encoding="utf-8")
    command = [sys.executable, TOOL, "--only", "umask", "--no-xdist", "--logs", tmp_path, "--tests", test]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", env={**os.environ, "TMPDIR": str(tmp_path)})
    assert done.returncode == code
    first, *others = done.stdout.splitlines()
    assert first.startswith(f"umask              1 {'failed' if code else 'passed'}, ")
    assert [line.split()[0] for line in others] == ["FAILED"] * code
