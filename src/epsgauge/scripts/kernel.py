"""Linux' own lock on files (Landlock): also compiled code writes in the scratch folder only."""

from __future__ import annotations

import ctypes
import os
import struct
import sys

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # system calls, the same on all machines
_NO_NEW_PRIVILEGES = 38
_TRUNCATES = 3  # the first version that also refuses to truncate
_WRITES = 1 << 1 | sum(1 << bit for bit in range(4, 15))  # write, remove, make of any kind, move, truncate


def lock(scratch: str) -> bool:
    """From now on, this thread and what it starts write in `scratch` and on devices only; False if it cannot be had."""
    if sys.platform != "linux":
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(_CREATE, None, ctypes.c_size_t(0), 1) < _TRUNCATES:
        return False
    rules = libc.syscall(_CREATE, struct.pack("=Q", _WRITES), ctypes.c_size_t(8), 0)
    for folder in (scratch, "/dev"):
        file = os.open(folder, os.O_PATH | os.O_CLOEXEC)
        libc.syscall(_ADD, rules, 1, struct.pack("=Qi", _WRITES, file), 0)
        os.close(file)
    done: bool = libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) == 0 and libc.syscall(_RESTRICT, rules, 0) == 0
    os.close(rules)
    return done
