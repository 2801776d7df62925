"""What plays a game again: a command where words can say all of it, else Python."""

from __future__ import annotations

import ast
import json
import shlex
import sys
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from epsgauge.mechanisms.curves import Curve
from epsgauge.references import named_as, reference_of
from epsgauge.sampling.game import MechanismGame
from epsgauge.sampling.regions import REGIONS

# Settings of an audit, and the options of `epsgauge mechanism` that give them.
OPTIONS = {
    "claimed_eps": "--eps",
    "claimed_mu": "--mu",
    "claimed_curve": "--curve",
    "claimed_adjacency": "--claimed-adjacency",
    "level": "--level",
    "verdict_level": "--verdict-level",
    "verdict_method": "--verdict-method",
}
DELTAS = ("delta", "claimed_delta")  # for which there is one option


def again(game: MechanismGame, changes: Mapping[str, Any]) -> str:
    """`changes` are the settings that `audit` was given with the game."""
    given = {name: value for name, value in changes.items() if value is not None}
    words = [*_of_game(game), *_of_settings(game, given), *_of_samples(game)]
    return _python(game, given) if None in words else shlex.join(["epsgauge", "mechanism", *map(str, words)])


def _of_game(game: MechanismGame) -> list[str | None]:
    """Function and data; None stands for what has no words, here and below."""
    out = [_function(game)]
    for name in ("d0", "d1"):
        data = getattr(game, name)
        out += [] if data is None else [f"--{name}", _as_json(data) or _held(game, data)]
    return out if game.pairs is None else [*out, "--pairs", _said(game, game.pairs)]


def _of_settings(game: MechanismGame, given: Mapping[str, Any]) -> list[str | None]:
    deltas = {given[name] for name in DELTAS if name in given}
    out: list[str | None] = [None] if len(deltas) > 1 or given.keys() - {*OPTIONS, *DELTAS} else []
    for name, option in OPTIONS.items():
        out += [option, _said(game, given[name])] if name in given else []
    return [*out, "--delta", _said(game, max(deltas))] if deltas else out


def _of_samples(game: MechanismGame) -> list[str | None]:
    out: list[str | None] = ["--samples", str(game.n_samples), "--seed", str(game.seed)]
    out += [] if game.adjacency == "substitute" else ["--adjacency", game.adjacency]
    out += (
        [] if game.sensitivity is None else ["--sensitivity", _said(game, game.sensitivity), "--norm", str(game.norm)]
    )
    out += [] if game.until is None else ["--until", game.until]
    return out if game.regions == tuple(REGIONS) else [*out, "--regions", ",".join(game.regions)]


def _function(game: MechanismGame) -> str | None:
    return named_as(game.name, game.mechanism) or reference_of(game.mechanism)


def _said(game: MechanismGame, value: Any) -> str | None:
    """A number with all of its digits, a text as it is, an object by its name."""
    if isinstance(value, float | int):
        return repr(float(value)).removesuffix(".0")
    if isinstance(value, Curve):  # of a family, or loaded by its name
        return value.name if ":" in value.name else None
    return value if isinstance(value, str) else reference_of(value) or _held(game, value)


def _as_json(data: Any) -> str | None:
    """None where it would come back as something else: a tuple, an array, NaN."""
    try:
        text = json.dumps(data)
        return text if json.loads(text) == data else None
    except (TypeError, ValueError):
        return None


def _held(game: MechanismGame, value: Any) -> str | None:
    """The name that it has beside the function."""
    module = str(_function(game)).partition(":")[0]
    names = vars(sys.modules[module]) if module in sys.modules else {}
    return next((f"{module}:{name}" for name, held in names.items() if held is value), None)


def _python(game: MechanismGame, given: Mapping[str, Any]) -> str:
    """Values that have no literal are variables of whoever plays it."""
    name = str(getattr(game.mechanism, "__name__", ""))
    of_game = {
        f.name: getattr(game, f.name) for f in fields(game)[1:] if repr(getattr(game, f.name)) != repr(f.default)
    }
    said, settings = ("".join(f", {k}={_literal(k, v)}" for k, v in values.items()) for values in (of_game, given))
    return f"eg.audit(eg.MechanismGame({name if name.isidentifier() else 'mechanism'}{said}){settings})"


def _literal(name: str, value: Any) -> str:
    text = repr(float(value) if isinstance(value, float) else value)
    try:
        return text if ast.literal_eval(text) == value else name
    except (TypeError, ValueError, SyntaxError):
        return name
