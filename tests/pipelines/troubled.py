"""A pipeline that goes wrong with the models that have certain seeds."""

from __future__ import annotations

import atexit
import os
import signal
import threading
from collections import deque
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path

import numpy as np
from fast import Mean


@dataclass(frozen=True)
class Troubled:
    how: str
    seeds: list[int]
    once_in: str = ""  # a folder in which a model notes that it has gone wrong, and then does not again

    def train(self, data, *, seed):
        if seed in self.seeds and not self._had(seed):
            if self.how == "raise":
                raise RuntimeError("the loss exploded")
            if self.how == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if self.how == "exit":
                os._exit(3)
            if self.how == "thread":
                threading.Thread(target=threading.Event().wait).start()
                return Mean().train(data, seed=seed)
            if self.how == "atexit":
                atexit.register(threading.Event().wait)
                return Mean().train(data, seed=seed)
            if self.how == "raise, then hang":
                raise RuntimeError("not yet")
            if self.how == "hang":
                self._hang()
            if self.how == "interrupt":
                raise KeyboardInterrupt
            if self.how == "generator exit":
                raise GeneratorExit("left")
            if self.how == "surrogate":
                raise RuntimeError("no file \udce9\ud800" + "x" * 100_000 + "the end")
            return self.how
        if seed in self.seeds and self.how == "raise, then hang":
            self._hang()
        return Mean().train(data, seed=seed)

    def _hang(self):
        """Without ever letting another thread run."""
        Path(self.once_in, "hangs").write_text(str(os.getpid()))
        deque(repeat(0), maxlen=0)

    def losses(self, model, points):
        n = len(points[0])
        if isinstance(model, str):
            return {"nan": np.full(n, np.nan), "shape": np.zeros((n, 1))}[model]
        return Mean().losses(model, points)

    def _had(self, seed):
        if not self.once_in or self.how == "hang":
            return False
        note = Path(self.once_in, str(seed))
        had = note.exists()
        note.touch()
        return had


class Items:
    """A map-style dataset that keeps what it gives."""

    def __init__(self, n=60):
        rng = np.random.default_rng(7)
        self.items = [{"x": x, "more": [x.copy()]} for x in rng.normal(size=(n, 3))]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]


class Normalises:
    """Changes the points that it gets in place, as preprocessing may."""

    def train(self, data, *, seed):
        for item in data:
            item["x"] *= 1.5
            item["more"][0] += 1.0
            item["more"].append(0)
        return np.mean([item["x"] for item in data], axis=0) + np.random.default_rng(seed).normal(size=3)

    def losses(self, model, points):
        return np.array([np.square(item["x"] + item["more"][0] - model).sum() for item in points])
