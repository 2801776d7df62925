"""`scipy.special`, loaded when one of its functions is first called for: half of what a worker would import."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    import scipy.special

    globals()[name] = found = getattr(scipy.special, name)
    return found
