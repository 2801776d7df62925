"""Modules next to a plan that have the name of an installed one: only commands that train may import any code there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from faults.count import SECONDS, Count

INSTALLED = (
    "numpy", "scipy", "torch", "opacus", "loky", "cloudpickle", "dp_accounting", "pydantic", "pydantic_core", "typer",
    "click", "rich", "sklearn", "pyarrow", "jinja2", "starlette", "uvicorn", "yaml", "psutil", "joblib",
)  # fmt: skip
OF_PYTHON = (
    "json", "csv", "pickle", "copyreg", "signal", "runpy", "argparse", "secrets", "sqlite3", "statistics", "resource",
    "tempfile", "multiprocessing", "shutil", "socket", "zipfile", "tomllib", "sitecustomize_of_nobody",
)  # fmt: skip
LOG = "IMPORTED"  # environment variable: the file in which modules write that they were imported
HOSTILE = f"import os\nwith open(os.environ[{LOG!r}], 'a') as log:\n    log.write(__name__ + '\\n')\n"
DATA = """import helper

def data():
    return helper.points()
"""
HELPER = """from epsgauge.data.digits import digits  # NumPy would be refused: a file here has its name

def points():
    return digits()
"""
PLAN = """name = "of a stranger"
n_models = 40
data = "mine:data"
trainer = { use = "dpsgd", model = "logistic", epochs = 1, batch_size = 20, noise_multiplier = 1.0 }
[game]
train_size = 100
reference_size = 19
control_models = 0
[audit]
delta = 1e-5
"""
OWN = {"mine", "helper"}
# the command, and whether it is documented to import the plan's code
COMMANDS: tuple[tuple[str, bool], ...] = (
    ("check plan.toml", False),
    ("check plan.toml --json", False),
    ("check plan.toml --try", True),
    ("probe plan.toml", True),
    ("intrinsic plan.toml --seeds 2 --neighbours 2", True),
    ("run plan.toml --out run --workers 2", True),
    ("verify run --plan plan.toml", True),
    ("check plan.toml --run run", False),
    ("verify run", False),
    ("status run", False),
    ("audit run", False),
    ("report run -o report.html", False),
    ("card run -o card.md", False),
    ("compare run run", False),
    ("export run -o scores.csv", False),
    ("scores scores.csv", False),
    ("size --delta 1e-5 --accuracy 0.6", False),
    ("estimate --tp 90 --fp 10 --tn 80 --fn 20 --delta 1e-5", False),
)


def folder_of_a_stranger(folder: Path, hidden: tuple[str, ...] = (*INSTALLED, *OF_PYTHON)) -> Path:
    """A plan with its own code, among modules that write their names to the log when they are imported."""
    folder.mkdir()
    for name in hidden:
        (folder / f"{name}.py").write_text(HOSTILE)
    (folder / "mine.py").write_text(HOSTILE + DATA)
    (folder / "helper.py").write_text(HOSTILE + HELPER)
    (folder / "plan.toml").write_text(PLAN)
    return folder


def imported(line: list[str], folder: Path) -> tuple[set[str], subprocess.CompletedProcess[str]]:
    """Which modules of the folder a command imports that is run there, also in its workers."""
    log = folder / "imported.log"
    log.unlink(missing_ok=True)
    environment = {**os.environ, LOG: str(log)}
    environment.pop("PYTHONPATH", None)
    environment.pop("PYTHONSAFEPATH", None)
    done = subprocess.run(
        line, cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS, stdin=subprocess.DEVNULL
    )
    return set(log.read_text().split()) if log.exists() else set(), done


def campaign(scratch: Path) -> list[Count]:
    """Every command by its script, and some by `python -m`, which loads modules of Python's own before ours."""
    count, script = Count("modules of strangers"), str(Path(sys.executable).with_name("epsgauge"))
    named = folder_of_a_stranger(scratch / "strangers")
    fewer = folder_of_a_stranger(scratch / "fewer-strangers", INSTALLED)
    lines = [([script, *words.split()], named, trains) for words, trains in COMMANDS]
    lines += [([sys.executable, "-m", "epsgauge", *words.split()], fewer, trains) for words, trains in COMMANDS[:3]]
    for line, folder, trains in lines:
        count.tried += 1
        try:
            found, done = imported(line, folder)
        except subprocess.TimeoutExpired:
            count.bad("hung", " ".join(line))
            continue
        if found != (OWN if trains else set()):
            count.bad("wrong", f"{' '.join(line)} imported {sorted(found)}")
        if "Traceback" in done.stderr:
            count.bad("traceback", f"{' '.join(line)}\n{done.stderr[-600:]}")
        count.refused += done.returncode == 2
    return [count]
