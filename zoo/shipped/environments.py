"""Environments of the wheels: build/zoo/<name>-<version>/, a folder to put first on PYTHONPATH.

torch, NumPy and all else come from the Python that runs this. Only what a wheel cannot do without is beside it: another
scikit-learn where the wheel does not know the newest one, a small package that it imports.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "zoo"
ENVIRONMENTS = {
    "opacus-1.5.2": ("opacus==1.5.2",),
    "opacus-1.5.3": ("opacus==1.5.3",),
    "opacus-1.5.4": ("opacus==1.5.4",),
    "diffprivlib-0.6.6": ("diffprivlib==0.6.6", "scikit-learn==1.7.2"),
    "opendp-0.16.0": ("opendp==0.16.0", "deprecated==1.3.1"),
}


class Missing(Exception):
    """An environment that cannot be had, and why."""


def path_of(name: str) -> Path:
    return FOLDER / name


def made(name: str, *, seconds: float = 300) -> Path:
    """The folder of an environment; pip makes it where it is not there yet."""
    folder = path_of(name)
    if folder.exists():
        return folder
    FOLDER.mkdir(parents=True, exist_ok=True)
    new = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=FOLDER))
    # The versions of constraints.txt are those of the repo: a wheel with a bug is another one.
    variables = {key: value for key, value in os.environ.items() if key != "PIP_CONSTRAINT"}
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    try:
        subprocess.run(
            [*install, "--retries", "1", "--target", str(new), *ENVIRONMENTS[name]],
            env=variables,
            check=True,
            capture_output=True,
            text=True,
            timeout=seconds,
        )
        new.rename(folder)
    except subprocess.TimeoutExpired:
        raise Missing(f"pip did not get {name} within {seconds:g} s") from None
    except subprocess.CalledProcessError as error:
        lines = [line for line in error.stderr.splitlines() if line.startswith("ERROR")]
        raise Missing(f"pip cannot get {name}: {(lines or ['no reason given'])[-1]}") from None
    except OSError:  # another process was first
        if not folder.exists():
            raise
    finally:
        shutil.rmtree(new, ignore_errors=True)
    return folder
