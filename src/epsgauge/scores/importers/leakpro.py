"""LeakPro: the JSON file of one membership attack, from the folder data_objects of its output."""

from __future__ import annotations

from typing import Any

import numpy as np

from epsgauge.errors import InvalidInput
from epsgauge.scores.importers.importer import Importer
from epsgauge.scores.importers.source import Source, flat

FOLDER = "data_objects"
OF_LOSSES = ("P-attack", "population")  # results whose signal is the loss; files of 2024 have the second name


class LeakPro(Importer):
    """ "Large signal values are indicative of membership", says its MIAResult; it attacks one target model.

    Its population attack keeps the losses themselves, which are lower for members: they are turned here.
    """

    name = "leakpro"
    tool = "LeakPro"
    wants = (
        "an MIAResult, its file data_objects/<attack>.json with signal_values and true_labels, or the folder "
        "data_objects if it has one result"
    )
    of_one_model = True

    def columns(self, source: Source) -> dict[str, Any]:
        if source.is_folder:
            source = _only_result(source.part(FOLDER) if FOLDER in source.names else source)
        truth = "true" if source.path is None and hasattr(source.given, "true") else "true_labels"
        held = source.fields(("signal_values", truth, "result_name", "resultname"), (truth,))
        if held.get("signal_values") is None:
            raise InvalidInput(
                f"{source.name} has no signal_values: this attack gave counts and no scores. Use epsgauge estimate "
                "with its tp, fp, tn and fn."
            )
        score = flat(held["signal_values"], "signal_values")
        losses = _name(held) in OF_LOSSES and np.any(score > 0)  # a loss that was turned already is not above 0
        return {"bit": flat(held[truth], truth), "score": -score if losses else score}


def _name(held: dict[str, Any]) -> str:
    return str(held.get("result_name") or held.get("resultname") or "")


def _only_result(folder: Source) -> Source:
    """The file of a folder with one result; files are named by digests, so that several are told by their attacks."""
    files = [name for name in folder.names if name.endswith(".json")]
    if len(files) == 1:
        return folder.part(files[0])
    if not files:
        raise InvalidInput(f"{folder.name} must have a result <attack>.json, but has none.")
    each = ", ".join(
        f"{file} ({_name(folder.part(file).fields(('result_name', 'resultname'), ())) or 'no name'})"
        for file in files[:20]
    )
    raise InvalidInput(f"{folder.name} has {len(files)} results. Give one of its files: {each}.")
