"""Where a run was made: versions, platform, the revision of the plan's folder, and when."""

from __future__ import annotations

import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

from epsgauge.declaration import now

_PACKAGES = ("epsgauge", "numpy", "scipy", "torch", "opacus", "scikit-learn", "dp-accounting")
_GIT_SECONDS = 10  # a folder on a slow disk must not hold up a run


def provenance(folder: Path | None) -> dict[str, Any]:
    """A record for the store; it names no host and no user, and imports none of the packages."""
    return {
        "time": now(),
        "packages": _versions(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "git": None if folder is None else _revision(folder),
    }


def _versions() -> dict[str, str]:
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def _revision(folder: Path) -> dict[str, Any] | None:
    """The commit of a folder and whether files that it tracks were changed; None without git or a repository."""
    commit = _git(folder, "rev-parse", "HEAD")
    if commit is None:
        return None
    changed = _git(folder, "status", "--porcelain", "--untracked-files=no")
    return {"commit": commit, "dirty": bool(changed)}


def _git(folder: Path, *words: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words],
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=_GIT_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
