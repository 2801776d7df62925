"""Settings that all tests share."""

import sys
from types import SimpleNamespace

import pytest
from hypothesis import settings

# The same examples in every run, and no limit on time: machines are shared.
settings.register_profile("epsgauge", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("epsgauge")


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
