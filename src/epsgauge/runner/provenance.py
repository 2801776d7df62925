"""Where a run was made: versions, platform, what rounding depends on, the revision of the plan's folder, and when."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

import numpy as np

from epsgauge.declaration import now

_PACKAGES = ("epsgauge", "numpy", "scipy", "torch", "opacus", "scikit-learn", "dp-accounting")
# Of the environment, where rounding or order may depend on them.
_SETTINGS = (
    "ATEN_CPU_CAPABILITY",
    "NPY_DISABLE_CPU_FEATURES",
    "OPENBLAS_CORETYPE",
    "MKL_CBWR",
    "MKL_ENABLE_INSTRUCTIONS",
    "CUBLAS_WORKSPACE_CONFIG",
    "NVIDIA_TF32_OVERRIDE",
    "OMP_NUM_THREADS",
    "PYTHONHASHSEED",
)
_GIT_SECONDS = 10  # a folder on a slow disk must not hold up a run


def provenance(folder: Path | None, computing: Mapping[str, Any]) -> dict[str, Any]:
    """A record for the store, with what a worker says of its `computing`; it names no host and no user."""
    return {
        "time": now(),
        "packages": _packages(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "git": None if folder is None else _revision(folder),
        "computing": dict(computing),
    }


def computing() -> dict[str, Any]:
    """What the last digits of results depend on in this process, which is to be one that trains."""
    torch = sys.modules.get("torch")
    found: dict[str, Any] = {
        "CPU": _cpu(),
        "NumPy's instructions": _numpy_instructions(),
        "BLAS": _blas(),
        "settings": settings(),
        "epsgauge's code": _own_code(),
    }
    if torch is not None:
        found["torch's instructions"] = torch.backends.cpu.get_cpu_capability()
        found["torch's settings"] = {
            "threads": torch.get_num_threads(),
            "deterministic algorithms": torch.are_deterministic_algorithms_enabled(),
            "cudnn.deterministic": torch.backends.cudnn.deterministic,
            "cudnn.benchmark": torch.backends.cudnn.benchmark,
            "float32 matmul precision": torch.get_float32_matmul_precision(),
        }
        found["GPU"] = []
        if torch.cuda.is_available():
            devices = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
            found["GPU"] = [*devices, f"CUDA {torch.version.cuda}", f"cuDNN {torch.backends.cudnn.version()}"]
    return found


@cache
def machine() -> dict[str, Any]:
    """What is kept of the machine with each model; asked for when the first one is trained, and all is imported."""
    found: dict[str, Any] = json.loads(json.dumps({**computing(), "versions": versions()}, default=str))
    return found


def changes(first: Mapping[str, Any], later: Mapping[str, Any]) -> list[str]:
    """What a reader should know where a run went on in other surroundings than it began in; both are sessions."""
    changed = apart(first.get("computing") or {}, later.get("computing") or {})  # an earlier version did not say
    if not changed:
        return []
    return [f"Resumed on {later.get('time')} where numbers may round differently: {changed}."]


def apart(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """In what two records of `computing` differ; nothing where they do not."""
    return "; ".join(
        f"{key} {_said(old[key], new[key])} → {_said(new[key], old[key])}"
        for key in old
        if key in new and old[key] != new[key]
    )


def _said(value: Any, other: Any) -> str:
    """A value of two that differ; of lists and tables what the other one has not."""
    if isinstance(value, dict) and isinstance(other, dict):
        value = [f"{k} = {v}" for k, v in value.items() if k not in other or other[k] != v]
    elif isinstance(value, list) and isinstance(other, list):
        value = [part for part in value if part not in other]
    return (", ".join(map(str, value)) or "none") if isinstance(value, list) else str(value)


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def _numpy_instructions() -> list[str]:
    """Those that it found and may use."""
    for name in ("numpy._core._multiarray_umath", "numpy.core._multiarray_umath"):
        try:
            features = import_module(name).__cpu_features__
        except (ImportError, AttributeError):
            continue
        return sorted(name for name, has in features.items() if has)
    return []


def _blas() -> list[str]:
    """That of NumPy, with the kind of CPU that it has picked code for, where that can be asked."""
    try:
        from threadpoolctl import threadpool_info  # type: ignore[import-untyped]
    except ImportError:
        blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
        return [f"{blas.get('name')} {blas.get('version')}"]
    loaded = [info for info in threadpool_info() if info["user_api"] == "blas"]
    own = [info for info in loaded if "numpy" in info["filepath"]] or loaded
    return sorted({f"{i['internal_api']} {i['version']} {i.get('architecture', '')}".strip() for i in own})


@cache
def _own_code() -> str:
    """The beginning of a SHA-256 of all modules of this package."""
    root, state = Path(__file__).resolve().parents[1], hashlib.sha256()
    for file in sorted(root.rglob("*.py")):
        state.update(f"{file.relative_to(root).as_posix()}\0".encode() + file.read_bytes())
    return state.hexdigest()[:12]


def settings() -> dict[str, str]:
    """Of the environment, without those that say nothing."""
    return {key: os.environ[key] for key in _SETTINGS if os.environ.get(key, "random") != "random"}


def versions() -> dict[str, str]:
    """What must be the same on all machines of a run."""
    python = ".".join(platform.python_version_tuple()[:2])
    return {"Python": python, **_packages(), "epsgauge's code": _own_code()}


def _packages() -> dict[str, str]:
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
