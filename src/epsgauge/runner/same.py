"""What a job finds in its process must be what the run began with: the user's code, and the data."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from epsgauge.errors import EpsgaugeError
from epsgauge.runner.code import check_here
from epsgauge.runner.plan import Plan
from epsgauge.runner.play import Table, table

T = TypeVar("T")

# Data are looked at again once so many times as long has passed as it takes: it costs a run at most 5 %.
_SELDOM = 20


@dataclass(frozen=True)
class Expected:
    """Code (file -> SHA-256) and data of a run; the digest is None until the first process has read them."""

    code: dict[str, str]
    digest: str | None = None
    at_the_end: bool = field(default=False, compare=False)  # data are looked at again however short the time


class OtherData(EpsgaugeError):
    """This process was given other data than the first one, or other ones each time."""


class DataChanged(EpsgaugeError):
    """The data were changed in place while models were trained, and models may have been stored since."""


@dataclass
class _Seen:
    """What this process has compared already."""

    expected: Expected
    code: bool = False
    on: Table | None = None
    when: float = 0.0
    cost: float = 0.0

    @property
    def overdue(self) -> bool:
        """Whether the data are to be looked at again."""
        return time.monotonic() - self.when > _SELDOM * self.cost


_seen: _Seen | None = None


def checked(plan: Plan, expected: Expected, job: Callable[..., list[T]], *args: Any) -> list[T]:
    """What `job(plan, *args)` gives, unless code or data are not what they were: then nothing that it did counts."""
    global _seen
    if _seen is None or _seen.expected != expected:
        _seen = _Seen(expected)
    seen = _seen  # a training may begin a run of its own in this process
    if expected.digest is not None and seen.on is not (on := table(plan)):
        if seen.on is None or plan.data.target is None or seen.overdue:  # an object comes anew with each job
            found = _look(seen, on, fresh=False)
            if found != expected.digest:
                raise OtherData(_other_data(plan, expected.digest, found))
        seen.on = on
    done = job(plan, *args)
    if not seen.code:  # what a process has imported stays; the one that began looks at files as long as it runs
        check_here(plan, expected.code)
        seen.code = True
    if seen.on is not None and (expected.at_the_end or seen.overdue):
        found = _look(seen, seen.on, fresh=True)
        if found != expected.digest:
            _seen = None
            if _look(seen, seen.on, fresh=True) != found:
                raise OtherData(
                    f"the data {plan.data.use} are drawn anew whenever they are read: an item was not the same twice. "
                    "Let the trainer draw what it adds at random, as in augmentation, from its seed. What is done is "
                    "kept."
                )
            raise DataChanged(
                f"the data {plan.data.use} were changed in place while models were trained. Models that were stored "
                "shortly before may have seen the change: let the trainer change copies, and use a new --out."
            )
    return done


def nothing(plan: Plan) -> list[None]:
    """A job for the sake of its checks."""
    return [None]


def _look(seen: _Seen, on: Table, *, fresh: bool) -> str:
    """The digest of the data as they are, or as they were when they were last asked for."""
    start = time.monotonic()
    found = on.digest(fresh=fresh)
    seen.when = time.monotonic()
    seen.cost = seen.when - start
    return found


def _other_data(plan: Plan, held: str, found: str) -> str:
    return (
        f"the data {plan.data.use} are not the same in every process: their digest was {held[:12]}, and in another one "
        f"{found[:12]}. Seed what is drawn at random, or read it from a file, and leave augmentation to the trainer. "
        "What is done is kept."
    )
