"""CIFAR-10 from its official binary files, which hold no pickles."""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

from epsgauge.data.files import content, located
from epsgauge.errors import InvalidInput

RECORD = 1 + 3 * 32 * 32  # the label, then red, green and blue row by row


def cifar10(path: str | os.PathLike[str]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Images [n, 3, 32, 32] from 0 to 1 and labels 0 to 9, of all data_batch_*.bin and test_batch.bin in a folder."""
    folder = located(path, "the folder of the CIFAR-10 binary files")
    files = [*sorted(folder.glob("data_batch_*.bin")), *folder.glob("test_batch.bin")]
    if not files:
        raise InvalidInput(
            f"the folder of the CIFAR-10 binary files must hold data_batch_1.bin and so on, but {folder} does not. "
            "The version for Python, which holds pickles, is not read."
        )
    parts = []
    for file in files:
        raw = content(file, "the CIFAR-10 file")
        if not raw or len(raw) % RECORD:
            raise InvalidInput(f"the CIFAR-10 file {file} must be records of {RECORD} bytes, but has {len(raw)} bytes.")
        parts.append(np.frombuffer(raw, dtype=np.uint8).reshape(-1, RECORD))
    records = np.concatenate(parts)
    labels = records[:, 0].astype(np.int64)
    if labels.max() > 9:
        raise InvalidInput(f"labels of CIFAR-10 must be 0 to 9, but a file in {folder} has {labels.max()}.")
    return (records[:, 1:].reshape(-1, 3, 32, 32) / np.float32(255)).astype(np.float32), labels
