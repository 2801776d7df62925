"""`epsgauge init`: a plan and the few lines around your own training code, to start from."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from epsgauge.cli.script import order_of, with_options
from epsgauge.cli.terminal import AsJson, console, print_json, say
from epsgauge.errors import InvalidInput
from epsgauge.files import create

if TYPE_CHECKING:
    from epsgauge.scripts.messages import Order


@with_options
def init(
    ctx: typer.Context,
    folder: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="Folder for the files; created if missing.")
    ] = None,
    opacus: Annotated[bool, typer.Option("--opacus", help="For PyTorch with Opacus (default).")] = False,
    sklearn: Annotated[bool, typer.Option("--sklearn", help="For classifiers with fit and predict_proba.")] = False,
    program: Annotated[bool, typer.Option("--program", help="For any program in any language.")] = False,
    script: Annotated[
        str | None,
        typer.Option("--from", metavar="SCRIPT", help="The plan of a script with its options, in this folder."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a plan and a pipeline that run unchanged, for you to edit.

    `epsgauge init --from train.py --epochs 3` writes train.toml, the plan that `epsgauge run train.py --epochs 3` has.
    """
    order = order_of(ctx)
    if order is not None and script is None:
        raise InvalidInput(f"a script goes with --from, but got {order.target!r} alone. Write --from {order.target}.")
    if order is not None:
        if folder is not None or opacus or sklearn or program:
            raise InvalidInput("--from writes a plan beside the script's folder, so it goes with no DIR and no kind.")
        _from_script(order, as_json=as_json)
        return
    if script is not None:
        raise InvalidInput(f"--from must name a script (.py, .ipynb or -m MODULE), but got {script!r}.")
    if folder is None:
        raise InvalidInput("init needs a folder, or --from with a script. Write epsgauge init DIR.")
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


def _from_script(order: Order, *, as_json: bool) -> None:
    from epsgauge.reporting.probe import Line
    from epsgauge.runner.script_plan import as_file, name_of, script_plan

    file = Path(f"{name_of(order)}.toml")
    if file.exists():  # before the training, and not after
        raise InvalidInput(f"{file} exists, and would be overwritten. Move it away.")
    with Line(console(err=True)) as line:
        plan = script_plan(order, folder=Path.cwd(), told=line)
    try:
        create(file, as_file(plan))
    except OSError as error:
        raise InvalidInput(f"{file} cannot be written: {error.strerror}.") from None
    if as_json:
        print_json({"folder": ".", "files": [file.name]})
        return
    say(f"wrote {file}", f"next: epsgauge run {file} --out runs/{plan.name}")
