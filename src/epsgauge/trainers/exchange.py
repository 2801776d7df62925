"""Files between a game and a program: points out, losses in."""

from __future__ import annotations

import csv
from itertools import chain
from pathlib import Path
from typing import Literal

import numpy as np

from epsgauge.errors import InvalidInput
from epsgauge.stats.arrays import Floats
from epsgauge.trainers.points import Column


def write(folder: Path, name: str, columns: tuple[Column, ...], form: Literal["csv", "npy"]) -> None:
    """One row per point; numbers are written so that reading them gives the same numbers."""
    if form == "npy":
        for i, column in enumerate(columns):
            if column.dtype.hasobject:
                raise InvalidInput(f"array {i} of the data must be numbers or texts for .npy files, but holds objects.")
            np.save(folder / f"{name}_{i}.npy", column, allow_pickle=False)
        return
    parts = [column.reshape(len(column), -1).tolist() for column in columns]
    with (folder / f"{name}.csv").open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(chain.from_iterable(row) for row in zip(*parts, strict=True))


def read_losses(folder: Path, n_points: int, form: Literal["csv", "npy"]) -> Floats:
    """One number for each point."""
    path = folder / f"losses.{form}"
    try:
        losses = _read_npy(path) if form == "npy" else _read_csv(path)
    except FileNotFoundError:
        raise InvalidInput(f"losses must be written to {path.name} in its folder, but there is no such file.") from None
    if losses.shape != (n_points,):
        raise InvalidInput(
            f"{path.name} must hold one number for each of the {n_points} points, but holds "
            f"{len(losses) if losses.ndim == 1 else f'an array of shape {losses.shape}'}."
        )
    return losses


def _read_csv(path: Path) -> Floats:
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    filled = [(i, line.strip()) for i, line in enumerate(lines, start=1) if line.strip()]
    losses = np.empty(len(filled))
    for row, (number, text) in enumerate(filled):
        try:
            losses[row] = float(text)
        except ValueError:
            raise InvalidInput(
                f"{path.name} must have one number per line, but line {number} is {text[:80]!r}."
            ) from None
    return losses


def _read_npy(path: Path) -> Floats:
    try:
        array = np.load(path, allow_pickle=False)
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiu":
            raise ValueError("it holds no numbers")
    except (ValueError, EOFError) as error:
        raise InvalidInput(f"{path.name} must be an array of numbers, but: {error}.") from None
    return array.astype(np.float64)
