"""Command lines that nobody would type, and answers that are read by nobody."""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest import mock

import numpy as np

from epsgauge.cli.main import main
from faults.count import SECONDS, Count, Hung, within

COMMANDS = (
    "status", "audit", "report", "compare", "export", "verify", "declare", "scores", "estimate", "size", "check",
    "probe", "init", "run", "calibrate", "reproduce",
)  # fmt: skip
OPTIONS = (
    "--delta", "--level", "--attack", "--percentile", "--threshold", "--fit-models", "--verdict-method",
    "--claimed-eps", "--claimed-delta", "--claimed-adjacency", "--out", "-o", "--json", "--format", "--tp", "--fp",
    "--tn", "--fn", "--same-data", "--target-fpr", "--fail-above", "--fail-on", "--adjacency", "--models", "--eps",
    "--bits", "--one-model", "--help", "--no-such-option",
)  # fmt: skip
VALUES = (
    "0", "1", "-1", "nan", "inf", "1e400", "0.5", "9" * 400, "", " ", "a:b", "os:system", "loss", "exact", "substitute",
    "add-remove", "\x1b[31m", "../..", "/dev/null", "[/x]", "é", "𝔸" * 300, "--", "-", "html",
)  # fmt: skip
WHOLE = (
    ["status", "RUN"], ["audit", "RUN"], ["verify", "RUN"], ["report", "RUN", "-o", "FOLDER/r.html"],
    ["report", "RUN", "-o", "-"], ["export", "RUN", "-o", "FOLDER/e.csv"], ["compare", "RUN", "RUN"],
    ["scores", "FOLDER/scores.csv"], ["scores", "FOLDER/scores.npz"], ["declare", "FOLDER/d.json"],
    ["estimate", "--tp", "90", "--fp", "10", "--tn", "80", "--fn", "20"], ["size", "--eps", "1"],
    ["check", "FOLDER/plan.toml"], ["audit", "RUN", "--json"],
)  # fmt: skip
# What could take long, and is fuzzed with what it cannot run.
TRAINS = {"run", "probe", "calibrate", "check", "reproduce"}


def campaign(n: int, seed: int, scratch: Path, run: Path) -> list[Count]:
    """`n` command lines made of commands, options, values and files that are there or not."""
    rng, count = np.random.default_rng(seed), Count("command lines")
    places = [str(scratch / "new.csv"), str(scratch), str(scratch / "none" / "x"), "/dev/null"]
    whole = [[word.replace("RUN", str(run)).replace("FOLDER", str(scratch)) for word in words] for words in WHOLE]
    for _ in range(n):
        # one that is right, or a command alone; then something is added
        words = list(whole[rng.integers(len(whole))]) if rng.integers(2) else [str(rng.choice(COMMANDS))]
        for _ in range(int(rng.integers(4))):
            kind = int(rng.integers(4))
            if kind == 0 and words[0] not in TRAINS:
                words.append(str(run))
            elif kind == 1:
                words.append(str(rng.choice(places)))
            elif kind == 2:
                value = str(rng.choice(VALUES))
                words.append("" if (words[0], value) == ("calibrate", "exact") else value)
            else:
                words += [str(rng.choice(OPTIONS)), str(rng.choice(VALUES))]
        count.tried += 1
        try:
            with within(SECONDS):
                code, said = answered(words)
        except Hung:
            count.bad("hung", " ".join(words))
            continue
        if "\nTraceback" in f"\n{said}" or code not in (0, 1, 2, 3):
            count.bad("traceback", f"epsgauge {' '.join(words)} -> {code}\n{said[-600:]}")
        count.refused += code == 2
    return [count]


def answered(words: list[str]) -> tuple[object, str]:
    """Exit code, and what was said."""
    out, err = io.StringIO(), io.StringIO()
    with mock.patch.object(sys, "argv", ["epsgauge", *words]), redirect_stdout(out), redirect_stderr(err):
        try:
            code: object = main()
        except SystemExit as end:
            code = end.code
    return code or 0, out.getvalue() + err.getvalue()
