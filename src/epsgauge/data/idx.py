"""Images and labels from idx files, the format of MNIST and Fashion-MNIST, gzipped or not."""

from __future__ import annotations

import math
import os

import numpy as np
from numpy.typing import NDArray

from epsgauge.data.files import content, located
from epsgauge.errors import InvalidInput

TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def idx(
    images: str | os.PathLike[str], labels: str | os.PathLike[str]
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Images [n, 1, height, width] from 0 to 1, and labels."""
    pictures, classes = read_idx(images), read_idx(labels)
    if pictures.ndim != 3 or pictures.dtype != np.uint8:
        raise InvalidInput(
            f"images must be bytes [n, height, width], but {images} is {pictures.dtype}{pictures.shape}."
        )
    if classes.shape != pictures.shape[:1]:
        raise InvalidInput(f"labels must be one for each of {len(pictures)} images, but {labels} is {classes.shape}.")
    return pictures[:, None].astype(np.float32) / np.float32(255), classes.astype(np.int64)


def read_idx(path: str | os.PathLike[str]) -> NDArray[np.generic]:
    """The array that an idx file holds."""
    file = located(path, "the idx file")
    raw = content(file, "the idx file")
    if len(raw) < 4 or raw[:2] != b"\0\0" or raw[2] not in TYPES:
        raise InvalidInput(f"the idx file {file} must begin with two zero bytes and a type, but does not.")
    n_axes, kind = raw[3], np.dtype(TYPES[raw[2]])
    start = 4 + 4 * n_axes
    if len(raw) < start:
        raise InvalidInput(f"the idx file {file} is damaged: it ends within its header.")
    shape = tuple(int(n) for n in np.frombuffer(raw, ">u4", n_axes, 4))
    expected = start + math.prod(shape) * kind.itemsize
    if len(raw) != expected:
        raise InvalidInput(f"the idx file {file} must have {expected} bytes by its header, but has {len(raw)}.")
    array: NDArray[np.generic] = np.frombuffer(raw, kind, offset=start).reshape(shape)
    return array.astype(kind.newbyteorder("="))
