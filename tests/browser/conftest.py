"""A real browser for tests: Debian's Chromium, driven by Playwright. Where it is missing, tests skip and say why."""

import os
from contextlib import contextmanager
from pathlib import Path

import pytest

CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
REQUIRED = os.environ.get("EPSGAUGE_BROWSER") == "required"


def _missing():
    """Why there is no browser; None if there is one."""
    if not CHROMIUM.exists():
        return f"there is no {CHROMIUM}: `make browser` installs it"
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return "Playwright is not installed: pip install playwright"
    return None


@pytest.fixture(scope="session")
def browser():
    missing = _missing()
    if missing and REQUIRED:
        pytest.fail(f"EPSGAUGE_BROWSER=required, but {missing}")
    if missing:
        pytest.skip(missing)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=str(CHROMIUM), args=ARGUMENTS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def watched(browser):
    """Makes a page of its own context, with the list of what it complains of."""

    @contextmanager
    def make():
        problems = []
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        context.set_default_timeout(60_000)
        shown = context.new_page()
        shown.on("console", lambda said: problems.append(said.text) if said.type in ("error", "warning") else None)
        shown.on("pageerror", lambda error: problems.append(str(error)))
        shown.on("dialog", lambda dialog: (problems.append(f"a dialog: {dialog.message}"), dialog.dismiss()))
        yield shown, problems
        context.close()

    return make


@pytest.fixture
def page(watched):
    """The test fails if a script fails or anything is said to be an error."""
    with watched() as (shown, problems):
        yield shown
    assert problems == []
