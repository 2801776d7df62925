"""Privacy Meter: attack_result_<model>.npz of its report folder, one file per attacked model."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from epsgauge.errors import InvalidInput
from epsgauge.scores.importers.importer import Importer
from epsgauge.scores.importers.source import Source, flat

FILE = re.compile(r"attack_result_(\d+)\.npz")
NAMES = ("scores", "memberships")


class PrivacyMeter(Importer):
    """ "A larger score indicates higher chance of being member", say its attacks."""

    name = "privacy-meter"
    tool = "Privacy Meter"
    wants = "attack_result_<model>.npz, or the folder that has such a file for each attacked model"
    of_one_model = True

    def columns(self, source: Source) -> dict[str, Any]:
        if not source.is_folder:
            if source.path is not None and source.path.stem.endswith("_average"):
                raise InvalidInput(
                    f"{source.name} mixes the rows of several models and does not say which is whose. Give the folder: "
                    "its files attack_result_<model>.npz have one model each."
                )
            return _rows(source)
        found = {int(m[1]): m[0] for name in source.names if (m := FILE.fullmatch(name))}
        if not found:
            raise InvalidInput(f"{source.name} must have files attack_result_<model>.npz, but has none.")
        each = {model: _rows(source.part(file)) for model, file in sorted(found.items())}
        return {
            "model": np.repeat(list(each), [len(rows["bit"]) for rows in each.values()]),
            "pair": np.concatenate([np.arange(len(rows["bit"])) for rows in each.values()]),
            **{key: np.concatenate([rows[key] for rows in each.values()]) for key in ("bit", "score")},
        }


def _rows(source: Source) -> dict[str, Any]:
    held = source.fields(NAMES)
    return {"bit": flat(held["memberships"], "memberships"), "score": flat(held["scores"], "scores")}
