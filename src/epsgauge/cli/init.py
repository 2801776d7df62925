"""`epsgauge init`: a plan and the few lines around your own training code, to start from."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from epsgauge.cli.terminal import AsJson, print_json, say
from epsgauge.errors import InvalidInput
from epsgauge.files import create


def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder for the files; created if missing.")],
    opacus: Annotated[bool, typer.Option("--opacus", help="For PyTorch with Opacus (default).")] = False,
    sklearn: Annotated[bool, typer.Option("--sklearn", help="For classifiers with fit and predict_proba.")] = False,
    program: Annotated[bool, typer.Option("--program", help="For any program in any language.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write a plan and a pipeline that run unchanged, for you to edit."""
    chosen = [name for name, on in (("opacus", opacus), ("sklearn", sklearn), ("program", program)) if on]
    if len(chosen) > 1:
        raise InvalidInput(f"only one kind can be written at a time, but got --{' and --'.join(chosen)}.")
    kind = chosen[0] if chosen else "opacus"
    templates = sorted(
        (file for file in files("epsgauge.cli").joinpath("templates", kind).iterdir() if file.is_file()),
        key=lambda file: file.name,
    )
    name = re.sub(r"[^\w.-]+", "-", folder.resolve().name, flags=re.ASCII) or "mine"  # of the plan and its runs
    present = [file.name for file in templates if (folder / file.name).exists()]
    if present:
        raise InvalidInput(
            f"{folder} already has {', '.join(present)}, which would be overwritten. Use another folder."
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file in templates:
            create(folder / file.name, file.read_bytes().replace(b"mine", name.encode()))
    except OSError as error:
        raise InvalidInput(f"{folder} cannot be written: {error.strerror}.") from None
    if as_json:
        print_json({"folder": str(folder), "files": [file.name for file in templates]})
        return
    say(f"wrote {', '.join(file.name for file in templates)} into {folder}")
    plan = folder / "plan.toml"
    say(f"next: epsgauge check {plan} --try", f"      epsgauge run {plan} --out runs/{name}")
