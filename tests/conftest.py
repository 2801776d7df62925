"""Settings that all tests share."""

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import local_clusters  # noqa: F401  # sets what Ray reads when it is imported
import pytest
from hypothesis import settings

# The same examples in every run, and no limit on time: machines are shared.
settings.register_profile("epsgauge", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("epsgauge")
# What commands print, in processes of their own too, whatever the locale: in an old one they write ? for ε.
os.environ.setdefault("PYTHONIOENCODING", "utf-8")
CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
REQUIRED = os.environ.get("EPSGAUGE_BROWSER") == "required"
# Files that take longest come first, so that none is left for one process at the end.
LONGEST = ("test_clusters", "test_probe", "test_recorded", "test_cli_start", "test_cli_ends", "test_audit")


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: LONGEST.index(item.path.stem) if item.path.stem in LONGEST else len(LONGEST))


@pytest.fixture(scope="session", autouse=True)
def quick_seeds():
    """Seeds of torch without the stack that it formats for each kind of device: 1 ms a model, as deep as tests are.

    The stack is only shown when a device cannot be initialised. Tests that run before torch is loaded go without.
    """
    with pytest.MonkeyPatch.context() as patch:
        for device in ("cuda", "xpu", "mtia"):
            module = sys.modules.get(f"torch.{device}")
            if hasattr(module, "traceback"):
                patch.setattr(module, "traceback", SimpleNamespace(format_stack=list))
        yield


@pytest.fixture(scope="module", autouse=True)
def own_path():
    """What plans and studies add to the path is gone with the file of tests that read them."""
    before = list(sys.path)
    yield
    sys.path[:] = before


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory):
    """No test reads or writes what the user's cache folder holds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


def _missing():
    """Why there is no browser; None if there is one."""
    if not CHROMIUM.exists():
        return f"there is no {CHROMIUM}: `make browser` installs it"
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return "Playwright is not installed: pip install playwright"
    return None


@pytest.fixture(scope="module")
def browser():
    """Debian's Chromium, driven by Playwright; where it is missing, tests skip and say why.

    For one file at a time: Playwright's event loop occupies its thread, and the next file may have one of its own.
    """
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
