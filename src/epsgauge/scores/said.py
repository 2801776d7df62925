"""What is said of a table of scores and cannot be seen in it: where its bits come from, which rows share a model."""

from __future__ import annotations

from typing import Literal

from epsgauge.errors import InvalidInput

Bits = Literal["coins", "dealt", "unknown"]
Models = Literal["one", "independent", "orthogonal"]

BITS: dict[Bits, str] = {
    "coins": "each is a fair coin of its own, drawn before training",
    "dealt": "how many are 1 was fixed beforehand",
    "unknown": "nothing says where they come from, and what is guaranteed needs that no bit depends on its point",
}
ROWS: dict[Models, str] = {
    "one": "all rows are taken as of one model",
    "independent": "each row is taken as a model of its own",
    "orthogonal": "all rows are taken as gradient canaries of one model, each in a direction of its own",
}
# Of the command line; coins of the kind gradient say the third.
OPTION: dict[Models, str] = {"one": "--one-model", "independent": "--independent", "orthogonal": "--coins"}


def checked_bits(value: str, name: str = "bits") -> Bits:
    for known in BITS:
        if value == known:
            return known
    raise InvalidInput(
        f'{name} must be "coins" (fair ones, drawn before training), "dealt" (their numbers were fixed) or "unknown", '
        f"but got {value!r}."
    )


def checked_models(value: str) -> Models:
    for known in ROWS:
        if value == known:
            return known
    raise InvalidInput(f'models must be "one", "independent" or "orthogonal", but got {value!r}.')
