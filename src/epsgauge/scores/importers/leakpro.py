"""LeakPro: the JSON file of one membership attack, from the folder data_objects of its output."""

from __future__ import annotations

from typing import Any

from epsgauge.errors import InvalidInput
from epsgauge.scores.importers.importer import Importer
from epsgauge.scores.importers.source import Source, flat


class LeakPro(Importer):
    """ "Large signal values are indicative of membership", says its MIAResult; it attacks one target model."""

    name = "leakpro"
    tool = "LeakPro"
    wants = "an MIAResult, or its file data_objects/<attack>.json, with signal_values and true_labels"
    of_one_model = True

    def columns(self, source: Source) -> dict[str, Any]:
        truth = "true" if source.path is None and hasattr(source.given, "true") else "true_labels"
        held = source.fields(("signal_values", truth), (truth,))
        if held.get("signal_values") is None:
            raise InvalidInput(
                f"{source.name} has no signal_values: this attack gave counts and no scores. Use epsgauge estimate "
                "with its tp, fp, tn and fn."
            )
        return {"bit": flat(held[truth], truth), "score": flat(held["signal_values"], "signal_values")}
