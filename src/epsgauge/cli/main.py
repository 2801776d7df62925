"""The `epsgauge` command: gathers the groups and turns errors into one sentence and an exit code."""

from __future__ import annotations

import atexit
import gc
import sys
import traceback
import warnings
from functools import cache
from typing import Annotated, Any, NoReturn, TextIO

import typer
from typer.main import get_command

from epsgauge import __version__
from epsgauge.cli import reproduce, streams
from epsgauge.cli.audit import audit
from epsgauge.cli.calibrate import calibrate
from epsgauge.cli.card import card
from epsgauge.cli.check import check
from epsgauge.cli.coins import coins
from epsgauge.cli.compare import compare
from epsgauge.cli.declare import declare
from epsgauge.cli.demo import demo
from epsgauge.cli.estimate import estimate
from epsgauge.cli.export import export
from epsgauge.cli.init import init
from epsgauge.cli.intrinsic import intrinsic
from epsgauge.cli.mechanism import mechanism
from epsgauge.cli.merge import merge
from epsgauge.cli.probe import probe
from epsgauge.cli.report import report
from epsgauge.cli.run import run
from epsgauge.cli.scores import scores
from epsgauge.cli.script import WithOut, WithScript
from epsgauge.cli.size import size
from epsgauge.cli.status import status
from epsgauge.cli.terminal import say
from epsgauge.cli.verify import verify
from epsgauge.cli.view import view
from epsgauge.errors import EpsgaugeError
from epsgauge.plain import block

app = typer.Typer(
    name="epsgauge",
    help="Measure the differential privacy that a training pipeline really spends.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
GROUPS = (
    demo,
    init,
    check,
    probe,
    intrinsic,
    run,
    status,
    merge,
    verify,
    audit,
    report,
    card,
    compare,
    view,
    export,
    coins,
    declare,
    scores,
    mechanism,
    estimate,
    size,
    calibrate,
)
for command in GROUPS:
    app.command(cls={init: WithScript, probe: WithScript, run: WithOut}.get(command))(command)
app.add_typer(reproduce.app, name="reproduce")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"epsgauge {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Options before the command."""


@cache
def commands() -> Any:
    """All commands as Click sees them. Building them takes 50 ms, so it is done once per process."""
    return get_command(app)


def main() -> None:
    """Exit 0 good, 1 a gate says no, 2 bad input, 3 failed models, 4 a gate could not have failed, 130 interrupted."""
    # what is imported stays: to look for garbage in it, often and once more at the end, takes a sixth of a short answer
    gc.set_threshold(200_000)
    atexit.register(gc.freeze)
    streams.prepare()
    warnings.showwarning = _warn
    try:
        sys.exit(commands()(standalone_mode=False) or 0)
    except EpsgaugeError as error:
        _fail(str(error))
    except MemoryError:
        _fail("this does not fit into memory. Use a machine with more, or judge less at once.")
    except OSError as error:
        _fail(f"the output could not be written: {error.strerror}.")
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        # Typer brings Click's exceptions as its own or as Click's, by its version: they are known by what they can do
        if type(error).__name__ == "Abort":
            sys.exit(130)
        if not hasattr(error, "format_message"):  # a mistake of ours: shown whole, and not with the exit code of a gate
            typer.echo(block(traceback.format_exc()), err=True)
            sys.exit(2)
        sentence = error.format_message()
        if sentence.startswith("Usage:"):  # no command was given: this is the help
            typer.echo(sentence)
            sys.exit(2)
        _fail(sentence)


def _warn(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """What the library warns of is for the user to read; where it was said is not."""
    say(f"! {message}", err=True)


def _fail(sentence: str) -> NoReturn:
    typer.echo(block(f"error: {sentence}"), err=True)
    sys.exit(2)
