"""What travels to the machines of a cluster: the plan, the user's modules, and the versions to be found there."""

from __future__ import annotations

import os
import pickle
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from epsgauge.errors import InvalidInput
from epsgauge.references import search_in
from epsgauge.runner.code import Sources, import_name
from epsgauge.runner.executors import pickled
from epsgauge.runner.plan import Plan
from epsgauge.runner.provenance import settings, versions
from epsgauge.runner.worker import unpickled
from epsgauge.trainers import leaving


@dataclass(frozen=True)
class Parcel:
    """A plan with all of the user's code that it needs, as bytes. Data do not travel, unless they are objects."""

    plan: bytes
    folder: str | None  # of the plan
    beside: dict[str, bytes]  # files below that folder
    elsewhere: dict[str, bytes]  # other modules, by the names under which they are imported
    timeout: float | None
    settings: dict[str, str]  # of the environment, which results may depend on
    versions: dict[str, str]


def packed(plan: Plan, sources: Sources) -> bytes:
    """A parcel as bytes, which `opened` reads."""
    beside, elsewhere = dict[str, bytes](), dict[str, bytes]()
    for file in sources.files:
        if plan.folder is not None and file.path.is_relative_to(plan.folder):
            beside[str(file.path.relative_to(plan.folder))] = file.path.read_bytes()
        else:
            elsewhere[import_name(file.path)] = file.path.read_bytes()
    folder = None if plan.folder is None else str(plan.folder)
    # a hash of texts that differs from process to process is that of a process which is told nothing of it
    environment = {"PYTHONHASHSEED": "random"} | settings()
    found = Parcel(pickled(plan), folder, beside, elsewhere, plan.execution.timeout, environment, versions())
    return pickle.dumps(found, pickle.HIGHEST_PROTOCOL)


def opened(payload: bytes) -> Parcel:
    found = pickle.loads(payload)
    if not isinstance(found, Parcel):
        raise TypeError("not a parcel")
    return found


def check_versions(parcel: Parcel) -> None:
    """Refuse where this process has other versions of what results depend on than the one that sent the parcel."""
    here = versions()
    differ = [
        f"{name} {here[name]} there, {wanted} here"
        for name, wanted in parcel.versions.items()
        if name in here and here[name] != wanted
    ]
    if differ:
        raise InvalidInput(
            f"the workers of the cluster must have the versions of this process, but one has {'; '.join(differ)}. "
            "Install the same on all machines."
        )


def plan_of(payload: bytes) -> Any:
    """The plan in a process that trains, with its modules where they are found."""
    parcel = opened(payload)
    scratch = leaving.scratch()
    if scratch is None:
        raise RuntimeError("a process without a scratch folder")
    if parcel.elsewhere:
        sys.path.insert(0, _written(parcel.elsewhere, Path(scratch, "modules")))
    folder = parcel.folder
    if folder is not None and not _has(folder, parcel.beside):
        folder = _written(parcel.beside, Path(scratch, "plan"))
    search_in(None if folder is None else Path(folder))
    plan = unpickled(parcel.plan)
    return plan if folder is None else plan.model_copy(update={"folder": Path(folder)})


def _has(folder: str, files: dict[str, bytes]) -> bool:
    """Whether this machine has the folder with the same code, and so perhaps the data beside it."""
    try:
        return os.path.isdir(folder) and all(Path(folder, name).read_bytes() == text for name, text in files.items())
    except OSError:
        return False


def _written(files: dict[str, bytes], to: Path) -> str:
    to.mkdir()
    for name, text in files.items():
        file = to / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text)
    return str(to)
