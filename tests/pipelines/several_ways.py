"""A pipeline that goes wrong in several ways, by the seeds of its models."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from dataclasses import dataclass, field

from fast import Mean


@dataclass(frozen=True)
class Several:
    raises: list[int]
    crashes: list[int]
    sleeps: list[int]
    starts: list[int] = field(default_factory=list)  # a process, as a DataLoader with workers does

    def train(self, data, *, seed):
        if seed in self.raises:
            raise RuntimeError("the loss exploded")
        if seed in self.crashes:
            os.kill(os.getpid(), signal.SIGKILL)
        if seed in self.sleeps:
            time.sleep(1000)
        if seed in self.starts:
            process = multiprocessing.get_context("fork").Process(target=os.getpid)
            process.start()
            process.join()
        return Mean().train(data, seed=seed)

    def losses(self, model, points):
        return Mean().losses(model, points)
