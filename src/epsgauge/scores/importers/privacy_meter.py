"""Privacy Meter: attack_result_<model>.npz of its report folder, one file per attacked model, or a result of 1.0.1."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from epsgauge.errors import InvalidInput
from epsgauge.scores import size
from epsgauge.scores.importers.importer import Importer
from epsgauge.scores.importers.source import Source, flat, numbers

FILE = re.compile(r"attack_result_(\d+)\.npz")
NAMES = ("scores", "memberships")
GUESSES = ("true_labels", "predictions_proba", "predicted_labels")  # of a result of 1.0.1


class PrivacyMeter(Importer):
    """ "A larger score indicates higher chance of being member", say its attacks.

    Its loss attack is an exception since it reads probabilities and not losses, and its files do not say which attack
    wrote them: `lower_is_in` turns them.
    """

    name = "privacy-meter"
    tool = "Privacy Meter"
    wants = (
        "attack_result_<model>.npz, the folder that has such a file for each attacked model, or a result of the Audit "
        "of 1.0.1"
    )
    of_one_model = True

    def columns(self, source: Source) -> dict[str, Any]:
        if not source.is_folder:
            if source.path is not None and source.path.stem.startswith("attack_result_average"):
                raise InvalidInput(
                    f"{source.name} mixes the rows of several models and does not say which is whose. Give the folder: "
                    "its files attack_result_<model>.npz have one model each."
                )
            return _rows(Source(_only_result(source.given), source.wants))
        found = {int(m[1]): m[0] for name in source.names if (m := FILE.fullmatch(name))}
        if not found:
            raise InvalidInput(f"{source.name} must have files attack_result_<model>.npz, but has none.")
        each: dict[int, dict[str, Any]] = {}
        for model, file in sorted(found.items()):
            each[model] = _rows(source.part(file))
            size.check_rows(sum(len(rows["bit"]) for rows in each.values()), source.name)
        return {
            "model": np.repeat(list(each), [len(rows["bit"]) for rows in each.values()]),
            "pair": np.concatenate([np.arange(len(rows["bit"])) for rows in each.values()]),
            **{key: np.concatenate([rows[key] for rows in each.values()]) for key in ("bit", "score")},
        }


def _only_result(given: Any) -> Any:
    """Audit.run() of 1.0.1 gives a list of results, or of lists with one result."""
    if not isinstance(given, list):
        return given
    if len(given) != 1:
        raise InvalidInput(f"the object must be one result, but is a list of {len(given)}. Give one of them.")
    return _only_result(given[0])


def _rows(source: Source) -> dict[str, Any]:
    held = source.fields((*NAMES, *GUESSES), ())
    if not set(NAMES) & set(held) and set(held) >= {"true_labels", "predicted_labels"}:
        return {"bit": flat(held["true_labels"], "true_labels"), "score": _guessed(held)}
    held = source.fields(NAMES)
    return {"bit": flat(held["memberships"], "memberships"), "score": flat(held["scores"], "scores")}


def _guessed(held: dict[str, Any]) -> Any:
    """How sure an attack of 1.0.1 is: its probability, or at how many of its thresholds it guesses "member"."""
    if held.get("predictions_proba") is not None:
        return flat(held["predictions_proba"], "predictions_proba")
    guesses = numbers(held["predicted_labels"], "predicted_labels", dimensions=(1, 2))
    return guesses.mean(axis=0) if guesses.ndim == 2 else guesses
