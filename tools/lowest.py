"""Runs the tests of the core and of light extras with the lowest versions that pyproject.toml allows, in build/lowest.

python tools/lowest.py             # makes the environment, if pyproject.toml has changed, and runs the tests
python tools/lowest.py --versions  # names the versions
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "build" / "lowest"
# What tests need besides: as constraints.txt has it, and of extras at their bounds.
TOOLS = ("pytest", "pytest-xdist", "hypothesis", "sybil", "jsonschema", "python-flint")
EXTRAS = ("scikit-learn", "matplotlib", "pyarrow", "dp-accounting")
COMPANIONS = ("pyparsing<3.2",)  # matplotlib 3.8 calls names that later ones warn of, and warnings are errors in tests
# Tests that need no PyTorch: statistics, tables of scores, plans, runs, reports, the command line and the probe.
TESTS = """
advice anytime attacks audit bad_input beta beyond bits brent calibration card channels cli cli_ends cohorts coins
curve data_files decision declared dependence exact family figures files foretold gaussian_bound hpd joint level
machines mechanism_calls mechanism_game mechanisms merge methods one_rule one_run_audit one_run_fdp own plain plan
pooled posterior probe ranked rates recorded region report rules schema scores screen simultaneous size steps store
surest verdict verify weighed weighted
"""


def lowest() -> list[str]:
    """The core's dependencies and EXTRAS, each at its bound."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needs = [need for extra in project["optional-dependencies"].values() for need in extra if need.startswith(EXTRAS)]
    found = [re.fullmatch(r"([\w-]+)>=([\d.]+)", need) for need in (*project["dependencies"], *needs)]
    if not all(found):
        sys.exit("each of these in pyproject.toml must have one lower bound and no more, as numpy>=1.26.")
    return [f"{match[1]}=={match[2]}" for match in found if match]


def prepared() -> Path:
    """The Python of an environment with these versions; made again once they change."""
    python, stamp, wanted = FOLDER / "bin" / "python", FOLDER / "versions.txt", "\n".join(lowest()) + "\n"
    if not (stamp.exists() and stamp.read_text(encoding="utf-8") == wanted):
        venv.create(FOLDER, clear=True, with_pip=True)
        pins = (ROOT / "constraints.txt").read_text(encoding="utf-8")
        tools = [re.search(rf"^{name}==\S+", pins, re.MULTILINE) for name in TOOLS]
        packages = [*lowest(), *COMPANIONS, *(match[0] for match in tools if match)]
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *packages], check=True)
        subprocess.run([*pip, "--no-deps", "--editable", ROOT], check=True)
        stamp.write_text(wanted, encoding="utf-8")
    return python


def main() -> None:
    if "--versions" in sys.argv[1:]:
        print("\n".join(lowest()))
        return
    tests = [f"tests/test_{name}.py" for name in TESTS.split()]
    command = [prepared(), "-m", "pytest", "-q", *(sys.argv[1:] or ["-n", "auto"]), "--dist", "loadfile", *tests]
    sys.exit(subprocess.run(command, cwd=ROOT).returncode)


if __name__ == "__main__":
    main()
