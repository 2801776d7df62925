"""What a probe finds: one sentence for each thing that the accountant assumes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from epsgauge.probing.codes import RULES

Result = Literal["refuted", "consistent", "not tested"]

# The chance that anything is refuted of a pipeline that is what the accountant assumes: all tests together.
LEVEL = 1e-4
# Tests that can be wrong by chance; each may use its share. The others are exact.
BY_CHANCE = (
    *("noise", "fresh noise", "independence", "adaptive norm"),
    *("one record", "sampling rate", "Poisson batches", "left out"),
)
SHARE = LEVEL / len(BY_CHANCE)


@dataclass(frozen=True)
class Finding:
    """One test: what came out, and what of it matters to the accountant.

    "refuted": the pipeline is not what the accountant assumes. "consistent": nothing contradicts it, which proves
    nothing. Where the accountant assumes something else, `noise` is at most what is really there, and `rate`, `steps`
    and `reach`, how much farther a record moves an update than it may, are at least that.
    """

    name: str
    result: Result
    sentence: str
    rests_on: str = ""
    exact: bool = True  # else right but for a chance of LEVEL, all tests together
    code: str = ""  # of what was refuted, in RULES
    where: str = ""  # the smallest change that shows it: record, step and array of parameters
    measured: float | None = None  # the two numbers that differ
    allowed: float | None = None
    noise: float | None = None
    reach: float | None = None
    rate: float | None = None
    steps: int | None = None

    @property
    def shown(self) -> str:
        """The result with its code."""
        return f"{self.result} {self.code}".rstrip()

    @property
    def numbered(self) -> bool:
        """Whether an accountant can compute with what was found."""
        return any(value is not None for value in (self.noise, self.reach, self.rate, self.steps))


def refuted(code: str, sentence: str, rests_on: str, **more: Any) -> Finding:
    """A finding with a code of RULES."""
    return Finding(RULES[code].finding, "refuted", sentence, rests_on, code=code, **more)


def consistent(name: str, sentence: str, rests_on: str, *, exact: bool = True, **more: Any) -> Finding:
    return Finding(name, "consistent", sentence, rests_on, exact, **more)


def not_tested(name: str, why: str) -> Finding:
    return Finding(name, "not tested", why)
