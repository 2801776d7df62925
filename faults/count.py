"""What is counted of a campaign: how many faults were tried, and how many of them did harm."""

from __future__ import annotations

import signal
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from epsgauge.errors import EpsgaugeError

SECONDS = 60  # after which something hangs


class Hung(BaseException):
    """It took too long."""


@dataclass
class Count:
    """`lost`: something that was done is gone; `wrong`: an answer is not what it was, and nothing is said."""

    fault: str
    tried: int = 0
    lost: int = 0
    wrong: int = 0
    hung: int = 0
    traceback: int = 0
    refused: int = 0  # with a sentence; the others did no harm
    examples: list[str] = field(default_factory=list)

    @property
    def harmless(self) -> bool:
        return not (self.lost or self.wrong or self.hung or self.traceback)

    def bad(self, kind: str, example: str) -> None:
        setattr(self, kind, getattr(self, kind) + 1)
        self.examples.append(f"{kind}: {example}")

    def read(self, answer: Callable[[], object], expected: object, example: str) -> None:
        """One fault: `answer` may refuse with a sentence, or say what it said before."""
        self.tried += 1
        try:
            with within(SECONDS):
                found = answer()
        except EpsgaugeError as error:
            self.refused += 1
            if "Traceback" in str(error):
                self.bad("traceback", example)
        except Hung:
            self.bad("hung", example)
        except Exception:
            self.bad("traceback", f"{example}\n{traceback.format_exc()}")
        else:
            if found != expected:
                self.bad("wrong", example)


@contextmanager
def within(seconds: int) -> Iterator[None]:
    """Stop what takes longer; in the main thread."""

    def stop(*_: object) -> None:
        raise Hung

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
