"""Runs the examples of README, docs and docstrings: Python blocks, and console blocks with what they print."""

import doctest
import math
import os
import shlex
from contextlib import chdir
from pathlib import Path
from unittest import mock

from sybil import Example, Sybil
from sybil.document import PythonDocStringDocument
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser, SkipParser
from sybil.parsers.rest import DocTestParser

# One thread a process, also where pytest is called without make: two on a busy machine are many times slower.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

# Wide enough for the tables, without colours.
ENVIRONMENT = {"COLUMNS": "88", "NO_COLOR": "1", "TERM": "dumb", "PYTHONIOENCODING": "utf-8"}


def run_console(example: Example) -> str | None:
    """Run each `$ epsgauge ...` line and compare what it prints; a line `...` stands for any lines.

    Those of the README run as processes of their own, as a reader would start them; others in this process.
    """
    from command_line import process, told  # here: loading the command line slows the start of every worker

    from tools.same_text import same_text

    by = process if Path(example.path).name == "README.md" else told
    for block in ("\n" + example.parsed).split("\n$ ")[1:]:
        command, _, expected = block.partition("\n")
        words = shlex.split(command)
        if words[0] != "epsgauge":
            return f"only epsgauge commands are run, not {command!r}: use a bash block for others"
        # no line of progress, which a slow machine would print
        untimed = mock.patch("epsgauge.reporting.calibration.SECONDS_BETWEEN_LINES", math.inf)
        with chdir(Path(__file__).parent), mock.patch.dict(os.environ, ENVIRONMENT), untimed:
            done = by(*words[1:])
        printed = "\n".join(line.rstrip() for line in (done.stdout + done.stderr).rstrip().split("\n"))
        checker = doctest.OutputChecker()
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE if "..." in expected else 0
        same = checker.check_output(expected.rstrip() + "\n", printed + "\n", flags)
        if not same and not same_text(printed, expected.rstrip()):
            return f"$ {command}\nexpected:\n{expected}\nprinted:\n{printed}"
    return None


pages = Sybil(
    parsers=[
        PythonCodeBlockParser(doctest_optionflags=doctest.ELLIPSIS),
        CodeBlockParser(language="console", evaluator=run_console),
        SkipParser(),
    ],
    patterns=["README.md", "docs/*.md"],
)
docstrings = Sybil(
    parsers=[DocTestParser(optionflags=doctest.ELLIPSIS)],
    path="src",
    pattern="*.py",
    document_types={".py": PythonDocStringDocument},
)
pytest_collect_file = (pages + docstrings).pytest()
