"""A pipeline that goes wrong in several ways, by the seeds of its models."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import fast
from fast import Mean

from epsgauge.trainers import leaving, reaper


def data(once_in: str):
    """Stops the process that reads it, once."""
    if not Path(once_in, "read").exists():
        Path(once_in, "read").touch()
        os.kill(os.getpid(), signal.SIGSTOP)
    return fast.data()


def stop_afterwards(once: Path):
    """Stop this process, once, as soon as it does not train any more and before it sends the result."""
    training = Path(leaving.scratch(), f"{reaper.LATE}{os.getpid()}")

    def look(*event):
        if not training.exists() and not once.exists():
            once.touch()
            os.kill(os.getpid(), signal.SIGSTOP)

    sys.setprofile(look)


@dataclass(frozen=True)
class Several:
    raises: list[int]
    crashes: list[int]
    sleeps: list[int]
    starts: list[int] = field(default_factory=list)  # a process, as a DataLoader with workers does
    stops: list[int] = field(default_factory=list)  # its process, as SIGSTOP does
    stops_parent: list[int] = field(default_factory=list)  # once: a worker of a cluster
    stops_after: list[int] = field(default_factory=list)  # once: its process, after the training
    once_in: str = ""  # a folder

    def train(self, data, *, seed):
        if seed in self.raises:
            raise RuntimeError("the loss exploded")
        if seed in self.crashes:
            os.kill(os.getpid(), signal.SIGKILL)
        if seed in self.stops:
            os.kill(os.getpid(), signal.SIGSTOP)
        if seed in self.stops_parent and not Path(self.once_in, str(seed)).exists():
            Path(self.once_in, str(seed)).touch()
            os.kill(os.getppid(), signal.SIGSTOP)
        if seed in self.stops_after:
            stop_afterwards(Path(self.once_in, str(seed)))
        if seed in self.sleeps:
            time.sleep(1000)
        if seed in self.starts:
            process = multiprocessing.get_context("fork").Process(target=os.getpid)
            process.start()
            process.join()
        return Mean().train(data, seed=seed)

    def losses(self, model, points):
        return Mean().losses(model, points)
