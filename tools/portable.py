"""Runs the numeric and textual tests in other environments: older CPUs, other locales, paths, users and tools.

python tools/portable.py                    # all of them; one line each, the output of pytest in build/portable/
python tools/portable.py --only older-cpu   # one of them
python tools/portable.py --list
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parent.parent
NOBODY = 65534
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "build", "__pycache__", ".*_cache", ".hypothesis")


def _files(names: str) -> tuple[str, ...]:
    return tuple(f"tests/test_{name}.py" for name in names.split())


# Numbers that a command, page or picture shows, and the mathematics behind them.
NUMERIC = (
    *("README.md", "docs", "src"),
    *_files(
        "recorded gallery figures posterior rates beta hpd joint region reference exact gaussian_bound ranked curve"
    ),
    *_files("pooled one_run_fdp surest weighed weighted simultaneous anytime foretold steps accounting calibration"),
    *_files("dependence mechanisms probe machines"),
)
# Words: what is read, written and printed.
TEXTUAL = (
    *("README.md", "docs"),
    *_files("cli cli_ends cli_runs report card text plain files paths scores data_files plan store verify bad_input"),
    *_files("bad_scores gallery docs parquet program own runner merge package ci notebooks"),
)


@dataclass(frozen=True)
class Environment:
    """How tests are started: with these variables, in a copy of this name, and as this user."""

    meaning: str
    tests: tuple[str, ...]
    variables: Callable[[], Mapping[str, str]] = field(default=dict)
    copy: str | None = None  # the folder of a copy of the project; without it, the project itself
    umask: int = -1
    user: int | None = None
    without: str | None = None  # a program that is not on the path
    notebooks: bool = False  # whether the notebooks are run too
    xdist: bool = True  # which cannot send a path that is not in the locale's encoding


def narrow() -> dict[str, str]:
    """Libraries without the wide instructions of this CPU."""
    try:
        from numpy._core import _multiarray_umath as numpy
    except ImportError:  # before NumPy 2
        from numpy.core import _multiarray_umath as numpy  # type: ignore[no-redef]
    features = numpy.__cpu_features__
    wide = " ".join(name for name in numpy.__cpu_dispatch__ if features.get(name))
    libraries = {"ATEN_CPU_CAPABILITY": "default", "MKL_ENABLE_INSTRUCTIONS": "SSE4_2"}
    return {"NPY_DISABLE_CPU_FEATURES": wide, "OPENBLAS_CORETYPE": "Nehalem", **libraries}


def c_locale() -> dict[str, str]:
    return {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


ODD = "Prüfung mit Leerzeichen"
ENVIRONMENTS = {
    "older-cpu": Environment("NumPy, OpenBLAS, PyTorch without wide instructions", NUMERIC, narrow, notebooks=True),
    "nehalem": Environment("OPENBLAS_CORETYPE=Nehalem", NUMERIC, lambda: {"OPENBLAS_CORETYPE": "Nehalem"}),
    "haswell": Environment("OPENBLAS_CORETYPE=Haswell", NUMERIC, lambda: {"OPENBLAS_CORETYPE": "Haswell"}),
    "c-locale": Environment("LC_ALL=C without UTF-8 mode", TEXTUAL, c_locale),
    "odd-path": Environment(f"a checkout in “{ODD}”", TEXTUAL, copy=ODD),
    "odd-path-c-locale": Environment("both of these", TEXTUAL, c_locale, copy=ODD, xdist=False),
    "umask": Environment("umask 077", TEXTUAL, copy="checkout", umask=0o077),
    "no-root": Environment("the user nobody", TEXTUAL, copy="checkout", user=NOBODY),
    "no-git": Environment("no git on the path", TEXTUAL, without="git"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=ENVIRONMENTS, metavar="NAME", default=list(ENVIRONMENTS))
    parser.add_argument("--list", action="store_true", help="names the environments")
    parser.add_argument("--tests", nargs="+", metavar="FILE", help="run these instead")
    parser.add_argument("-n", "--processes", default="auto", help="of pytest")
    parser.add_argument("--no-xdist", action="store_true", help="one process, without the plugin")
    parser.add_argument("--logs", type=Path, default=ROOT / "build" / "portable", help="a folder for what pytest says")
    asked = parser.parse_args()
    if asked.list:
        print("\n".join(f"{name:18} {one.meaning}" for name, one in ENVIRONMENTS.items()))
        return
    asked.logs.mkdir(parents=True, exist_ok=True)
    good = [report(name, ENVIRONMENTS[name], asked) for name in asked.only]
    sys.exit(0 if all(good) else 1)


def report(name: str, environment: Environment, asked: argparse.Namespace) -> bool:
    """Run the tests in an environment, and print a line about it; whether all passed."""
    python = interpreter(environment.user)
    if python is None:
        print(f"{name:18} skipped: not started as root, or {sys.executable} is in a folder of root's")
        return True
    start, log = time.monotonic(), asked.logs / f"{name}.txt"
    with tempfile.TemporaryDirectory(prefix="epsgauge-") as scratch, log.open("w", encoding="utf-8") as output:
        spread = environment.xdist and not asked.no_xdist
        options = ["-n", asked.processes, "--dist", "loadfile"] if spread else []
        commands = [[python, "-m", "pytest", "-q", *options, *(asked.tests or environment.tests)]]
        if environment.notebooks and not asked.tests:
            commands.append([python, "tools/notebooks.py"])
        how = started(environment, python, Path(scratch))
        codes = [subprocess.run(command, stdout=output, stderr=output, **how).returncode for command in commands]
    text = log.read_text(encoding="utf-8", errors="replace")
    ends = re.findall(r"^(?:=+ )?((?:\d+ \w+,? ?)+)in [\d.]+s", text, re.MULTILINE)
    said = ends[-1].strip() if ends else "pytest did not end"
    if len(codes) > 1:
        said += ", notebooks " + ("passed" if codes[-1] == 0 else "failed")
    print(f"{name:18} {said}, {time.monotonic() - start:.0f} s", flush=True)
    for line in re.findall(r"^(?:FAILED|ERROR) .*", text, re.MULTILINE):
        print(f"    {line}", flush=True)
    return not any(codes)


def interpreter(user: int | None) -> str | None:
    """A Python that this user may run: this one, or the system's of the same version; None if there is none."""
    if user is None:
        return sys.executable
    system = f"/usr/bin/python3.{sys.version_info.minor}"
    for python in (sys.executable, system) if os.geteuid() == 0 else ():
        try:
            subprocess.run([python, "-c", ""], user=user, group=user, extra_groups=[], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            continue
        return python
    return None


def started(environment: Environment, python: str, scratch: Path) -> dict[str, object]:
    """The keywords of `subprocess.run`: folder, variables, umask and user."""
    folder, variables = ROOT, {**os.environ, **environment.variables()}
    for name in ("tmp", "home"):
        (scratch / name).mkdir()
    variables["TMPDIR"] = str(scratch / "tmp")
    if environment.copy is not None:
        folder = scratch / environment.copy
        shutil.copytree(ROOT, folder, ignore=LEFT_OUT, symlinks=True)
        packages = sysconfig.get_path("purelib")  # for a Python that is not this environment's
        variables["PYTHONPATH"] = os.pathsep.join([str(folder / "src"), packages])
    if environment.without is not None:
        variables["PATH"] = str(_path_without(environment.without, scratch / "bin"))
    how: dict[str, object] = {"cwd": folder, "env": variables, "umask": environment.umask}
    if environment.user is not None:
        variables["HOME"] = str(scratch / "home")
        variables["PATH"] = os.pathsep.join([str(scratch / "home"), variables["PATH"]])
        for name, call in (("python", python), ("epsgauge", f"{python} -m epsgauge")):  # ours may be out of reach
            command = scratch / "home" / name
            command.write_text(f'#!/bin/sh\nexec {call} "$@"\n', encoding="utf-8")
            command.chmod(0o755)
        subprocess.run(["chown", "-R", f"{environment.user}:{environment.user}", scratch], check=True)
        how |= {"user": environment.user, "group": environment.user, "extra_groups": []}
    return how


def _path_without(program: str, folder: Path) -> Path:
    """A folder of links to all programs of the path but this one."""
    folder.mkdir()
    for each in reversed(os.environ["PATH"].split(os.pathsep)):
        for file in Path(each).glob("*"):
            if file.name != program:
                (folder / file.name).unlink(missing_ok=True)
                (folder / file.name).symlink_to(file)
    return folder


if __name__ == "__main__":
    main()
