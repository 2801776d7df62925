"""Damage to a write-ahead log. SQLite stops at the first bad frame, and drops all later commits without a word.

The format is described at https://www.sqlite.org/fileformat2.html#the_write_ahead_log.
"""

from __future__ import annotations

import struct
from functools import cache
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

Pairs = NDArray[np.uint64]
_HEADER, _FRAME = 32, 24  # bytes of the header of the log, and of each frame
_MAGIC = {0x377F0682: "<u4", 0x377F0683: ">u4"}  # and how the words are read that checksums add up
_AT_ONCE = 1000  # frames
_PAGE = 65536  # bytes that a page has at most


def log_of(file: Path) -> Path:
    """The log beside a database, which SQLite keeps where a link leads."""
    real = file.resolve()
    return real.with_name(f"{real.name}-wal")


def has_lost(log: Path) -> bool:
    """Whether commits follow a bad frame. What a killed process had not finished is no damage, and has none.

    A process may write meanwhile: frames are only ever added below one header, so a header that stays is enough.
    """
    while True:
        try:
            with log.open("rb") as file:
                header = file.read(_HEADER)
                if len(header) < _HEADER or not _loses(file, header):
                    return False
                file.seek(0)
                if file.read(_HEADER) == header:
                    return True
        except OSError:  # there is none, or none to read, which SQLite will say
            return False


def _loses(file: BinaryIO, header: bytes) -> bool:
    magic, _, size, _ = struct.unpack(">4I", header[:16])
    start = np.zeros((1, 2), np.uint64)
    if magic not in _MAGIC or size > _PAGE or not _fits(header[:24], start, header[24:], _MAGIC[magic]):
        return bool(file.read(_FRAME))  # SQLite takes it for an empty one
    before, good = header[24:], True
    while raw := file.read(_AT_ONCE * (_FRAME + size)):
        if (n := len(raw) // (_FRAME + size)) == 0:
            break
        frames = np.frombuffer(raw, np.uint8, n * (_FRAME + size)).reshape(n, _FRAME + size)
        # the salts; frames with others are left of before the log was reset
        current = (frames[:, 8:16] == np.frombuffer(header[16:24], np.uint8)).all(axis=1)
        commits = current & frames[:, 4:8].any(axis=1)
        if good:
            sums = frames[:, 16:24].tobytes()
            content = np.concatenate([frames[:, :8], frames[:, _FRAME:]], axis=1)
            fits = current & _fits(content.tobytes(), _pairs(before + sums[:-8]), sums, _MAGIC[magic])
            good, before = bool(fits.all()), sums[-8:]
            commits &= np.cumsum(~fits) > ~fits  # after the first that does not fit
        if not good and commits.any():
            return True
    return False


def _pairs(raw: bytes) -> Pairs:
    """Checksums, each of two numbers."""
    return np.frombuffer(raw, ">u4").reshape(-1, 2).astype(np.uint64)


def _fits(content: bytes, before: Pairs, sums: bytes, words: str) -> NDArray[np.bool_]:
    """Whether each of some stretches of one length has its checksum, which goes on from the one before.

    For each pair of words s₀ += x₀ + s₁, then s₁ += x₁ + s₀, modulo 2³². This is linear: each word has its weights.
    """
    x = np.frombuffer(content, words).reshape(len(before), -1)
    found = np.concatenate([before, x.astype(np.uint64)], axis=1) @ _weights(x.shape[1])
    return np.asarray((found & 0xFFFFFFFF == _pairs(sums)).all(axis=1))


@cache
def _weights(n: int) -> Pairs:
    """What a one in s₀, in s₁ and in each of `n` words adds to both sums at the end."""
    first, second = (1, 0), (0, 1)  # of s₀ and s₁, from the last word backwards
    out: list[tuple[int, int]] = []
    for _ in range(n // 2):
        both = _plus(first, second)  # x₀ is added to s₀, and with it to s₁
        out += [second, both]
        first, second = both, _plus(both, second)
    return np.array([*out, second, first][::-1], np.uint64)


def _plus(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    return (a[0] + b[0]) & 0xFFFFFFFF, (a[1] + b[1]) & 0xFFFFFFFF
