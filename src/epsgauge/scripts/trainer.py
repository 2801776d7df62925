"""An unmodified script as a trainer: each model is a copy of its process, made where its training begins."""

from __future__ import annotations

import atexit
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from epsgauge.errors import EpsgaugeError, InvalidInput
from epsgauge.mechanisms.privacy import DPSGD
from epsgauge.probing.result import Probe
from epsgauge.references import plan_folder
from epsgauge.scripts.messages import Order
from epsgauge.scripts.requests import Known, Train
from epsgauge.scripts.session import Session, Told, probe_script
from epsgauge.scripts.stage import Training
from epsgauge.stats.arrays import Ints
from epsgauge.trainers.watch import Watch


def numbered(records: int) -> Ints:
    """The records of a script, which stay in its process, by their numbers."""
    return np.arange(records)


@dataclass(frozen=True, kw_only=True)
class Script:
    """Trains on the records of the script, with all that it does. `init --from` and `run` fill in what it shows."""

    script: str  # from the plan's folder, or the name of a module
    accounted: Mapping[str, float]  # sample_rate, noise_multiplier and steps
    digest: str = ""  # of the records; empty if they have no content that can be compared
    arguments: Sequence[str] = ()
    module: bool = False
    data: str = ""  # names of its tensors, if it has no DataLoader
    max_grad_norm: float | None = None  # how far one record moves an update; None with Opacus, which says it
    timeout: float = 600.0  # seconds of one training
    quiet: bool = False  # without noise

    def train(self, data: Any, *, seed: int, size: int, watch: Watch) -> None:
        """`data` are all records but those whose place the canaries take; the script trains on all, as it always does.

        The copy ends after its last step: what the script does then is not waited for.
        """
        steps = int(self.accounted["steps"])
        training = Training(watch, None, seed % 2**63, self.quiet, steps, self.max_grad_norm)
        watch.restore(_session(self, size).ask(Train(training)).watch)

    def privacy(self, n: int) -> DPSGD:
        rate, sigma, steps = (self.accounted[name] for name in ("sample_rate", "noise_multiplier", "steps"))
        return DPSGD(sample_rate=rate, noise_multiplier=sigma, steps=int(steps))

    def probe(self, progress: Told, **asked: Any) -> Probe:
        """By trainings of its own, on records that are put in."""
        stated: dict[str, Any] = {} if self.max_grad_norm is None else dict(self.accounted)
        return probe_script(replace(self.order, **stated, **asked), progress, plan_folder())

    @property
    def order(self) -> Order:
        return Order(self.script, tuple(self.arguments), self.module, data=self.data, timeout=self.timeout)


class OpacusScript(Script):
    """One whose noise can be turned off."""

    def without_noise(self) -> OpacusScript:
        return replace(self, quiet=True)


_open: dict[tuple[Order, Path | None], Session] = {}  # of this process, one at a time


def _session(trainer: Script, records: int) -> Session:
    """The session of this script in the plan's folder; a new one if its process is gone."""
    key = trainer.order, plan_folder()
    if key in _open and not _open[key].is_over:
        return _open[key]
    close()
    _open[key] = session = Session(*key)
    try:
        _check_records(trainer, (records, trainer.digest), session.ask(Known()))
    except EpsgaugeError:
        close()
        raise
    return session


def _check_records(trainer: Script, had: tuple[int, str], now: tuple[int, str]) -> None:
    if now != had:
        said = [f"{n:,} records (digest {digest[:12]})" for n, digest in (had, now)]
        raise InvalidInput(
            f"{trainer.script} must train on the same records as when its plan was made, {said[0]}, but trains on "
            f"{said[1]}. Restore them, or use a new --out."
        )


@atexit.register
def close() -> None:
    """The session of this process; the next model opens it again."""
    while _open:
        _open.popitem()[1].close()
