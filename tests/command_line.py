"""The command line for tests: in this process, or in one of its own where the process proves something."""

from __future__ import annotations

import io
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from unittest import mock

from typer.testing import CliRunner

from epsgauge.cli.main import app, commands, main


def ask(*args, code=0, text=None):
    """The standard output of a command that ends with `code`; an error comes as its exception."""
    with mock.patch("typer.testing._get_command", return_value=commands()):
        done = CliRunner().invoke(app, [str(a) for a in args], input=text, catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done.stdout


def told(*args):
    """Exit code, standard output and standard error of `epsgauge ARGS`, in this process."""
    out, err = io.StringIO(), io.StringIO()
    with mock.patch("sys.argv", ["epsgauge", *map(str, args)]), redirect_stdout(out), redirect_stderr(err):
        try:
            code = main()
        except SystemExit as end:
            code = end.code
    return subprocess.CompletedProcess(args, code or 0, out.getvalue(), err.getvalue())


def process(*args, **how):
    """The same in a process of its own."""
    command = [sys.executable, "-m", "epsgauge", *map(str, args)]
    return subprocess.run(command, capture_output=True, encoding="utf-8", **how)


def refused(*args, by=told):
    """What is wrong, as standard error has it: exit 2, one sentence, no traceback."""
    done = by(*args)
    assert (done.returncode, done.stdout) == (2, ""), done
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr
    return done.stderr
