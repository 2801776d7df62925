"""Noise that Opacus calibrates for an ε takes a second or two to find: once is enough for all models of a process."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any


@contextmanager
def calibrated_once() -> Iterator[None]:
    """Inside, `make_private_with_epsilon` finds the noise for the same arguments once; nothing without Opacus."""
    engine = sys.modules.get("opacus.privacy_engine")
    if engine is None or not hasattr(engine, "get_noise_multiplier"):
        yield
        return
    from unittest.mock import patch  # it takes a while to import

    with patch.object(engine, "get_noise_multiplier", _found):
        yield


def _found(**arguments: Any) -> float:
    try:
        return _once(**arguments)
    except TypeError:  # an argument that cannot be a key
        return _once.__wrapped__(**arguments)


@lru_cache(maxsize=16)
def _once(**arguments: Any) -> float:
    from opacus.accountants.utils import get_noise_multiplier

    return float(get_noise_multiplier(**arguments))
