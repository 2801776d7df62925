"""Keep freed memory in the process, so that a step does not pay for new pages again and again."""

from __future__ import annotations

import ctypes
import sys
from functools import cache

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # from glibc's malloc.h
_LARGEST = 32 * 2**20  # the largest threshold that glibc takes


@cache
def keep_freed_memory() -> None:
    """Ask glibc's malloc to reuse blocks below 32 MiB; elsewhere do nothing."""
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _LARGEST)
        mallopt(_TRIM_THRESHOLD, 2**30)
