"""The plugin of pytest: the fixture `assert_private`, reports of what was asserted, and a marker."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from epsgauge.integrations.hearing import HEARING, Hearing

if TYPE_CHECKING:
    from epsgauge.integrations.assertion import Checked

MARKER = "privacy"
FIXTURE = "assert_private"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("epsgauge", "differential privacy of trainings")
    group.addoption(
        "--epsgauge-report", metavar="DIR", default=None, help="Write a report of every privacy assertion to DIR."
    )
    group.addoption(
        "--epsgauge-models",
        metavar="N",
        type=int,
        default=None,
        help="Train N models for every privacy assertion, in place of what its seconds allow.",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{MARKER}: asserts that a training is private (tests with {FIXTURE} have it)")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if FIXTURE in getattr(item, "fixturenames", ()):
            item.add_marker(MARKER)


@pytest.fixture
def assert_private() -> Callable[..., Checked]:
    """`assert_private(train, data, eps=3, delta=1e-5, adjacency="add-remove", seconds=60)`."""
    from epsgauge.integrations.assertion import assert_private as asserted

    return asserted


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """While a test runs, its assertions are heard: they become properties in JUnit's file, and reports."""
    options = item.config.option
    heard: list[Checked] = []
    folder = None if options.epsgauge_report is None else Path(options.epsgauge_report)

    def name() -> str:
        return f"{_name(item.nodeid)}{f'-{len(heard) + 1}' if heard else ''}"

    def hear(checked: Checked) -> None:
        item.user_properties.append(("epsgauge", checked.sentence))
        if folder is not None:
            _write(checked, folder, name())
        heard.append(checked)

    def command(checked: Checked) -> str:
        models = "" if checked.n_models is None else f" --epsgauge-models {checked.n_models}"
        return f"pytest '{item.nodeid}'{models}"

    def kept() -> Path | None:
        return None if folder is None else _emptied(folder / name())

    token = HEARING.set(Hearing(hear, command, options.epsgauge_models, kept))
    try:
        return (yield)
    finally:
        HEARING.reset(token)


def _emptied(run: Path) -> Path:
    """A folder for a run, without the run that an earlier session left there."""
    from epsgauge.runner.store import FILE

    if (run / FILE).exists():
        shutil.rmtree(run)
    run.parent.mkdir(parents=True, exist_ok=True)
    return run


def _name(nodeid: str) -> str:
    return re.sub(r"[^\w.-]+", "-", nodeid).strip("-")


def _write(checked: Checked, folder: Path, name: str) -> None:
    """A page of the audit, or what the probe says as text; and all of it as JSON."""
    from epsgauge.numbers import json_ready
    from epsgauge.probing.result import Probe
    from epsgauge.reporting.report import report

    folder.mkdir(parents=True, exist_ok=True)
    probe = checked.probe if isinstance(checked.probe, Probe) else None
    if checked.audit is not None:
        report(checked.audit, out=folder / f"{name}.html", probe=probe)
    else:
        (folder / f"{name}.txt").write_text(f"{checked.sentence}\n\n{probe or ''}\n", encoding="utf-8")
    text = json.dumps(json_ready(checked.to_json()), indent=2, ensure_ascii=False, allow_nan=False)
    (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")
