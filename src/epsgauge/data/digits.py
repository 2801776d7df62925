"""scikit-learn's 1,797 handwritten digits, and a pair of crafted canaries for them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsgauge.errors import MissingExtra

Digits = tuple[NDArray[np.float32], NDArray[np.int64]]


def digits() -> Digits:
    """Images of 8 × 8 pixels from 0 to 1, flat, and their labels."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise MissingExtra(
            "this needs scikit-learn. Install it with: pip install '.[torch]' in the folder of epsgauge"
        ) from None
    images, labels = load_digits(return_X_y=True)
    return (images / 16.0).astype(np.float32), labels.astype(np.int64)


PRIVATE = 1200  # of the digits; the others stand for public data of the same kind


def private_digits() -> Digits:
    """The first 1,200 of them, beside those of `public_digits`."""
    return _some(slice(None, PRIVATE))


def public_digits() -> NDArray[np.float32]:
    """The images of the other 597, without their labels."""
    return _some(slice(PRIVATE, None))[0]


def _some(rows: slice) -> Digits:
    images, labels = digits()
    return images[rows], labels[rows]


def canaries(data: Any) -> tuple[Digits, Digits]:
    """One pair with label 0: z1 is an image of the pixels that no digit uses, z0 its negative.

    Their gradients are opposite, which is as far apart as clipping allows, and lie where no other point's gradient
    does: what a linear model knows of this image comes from this one point.
    """
    images, _ = data
    image = np.where(images.max(axis=0) == 0, np.float32(8.0), np.float32(0.0))[None]
    return (-image, np.array([0])), (image, np.array([0]))
