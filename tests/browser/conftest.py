"""Pages of a real browser, with what they complain of."""

from contextlib import contextmanager

import pytest
from patience import PATIENCE


@pytest.fixture(scope="module")
def watched(browser):
    """Makes a page of its own context, with the list of what it complains of."""

    @contextmanager
    def make():
        problems = []
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        context.set_default_timeout(1000 * PATIENCE)
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
