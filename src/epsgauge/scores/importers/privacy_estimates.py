"""privacy-estimates: scores and challenge bits of its games, or the counts of its AttackResults."""

from __future__ import annotations

from typing import Any

import numpy as np

from epsgauge.scores import size
from epsgauge.scores.importers.importer import Importer
from epsgauge.scores.importers.source import Source, flat
from epsgauge.stats import checks

NAMES = ("attack_scores", "challenge_bits")
COUNTS = {"TP": (1, 1), "FN": (1, 0), "FP": (0, 1), "TN": (0, 0)}  # count -> bit and guess


class PrivacyEstimates(Importer):
    """Its ROC takes higher scores for members, whose challenge bit is 1; a guess becomes a score of 0 or 1."""

    name = "privacy-estimates"
    tool = "privacy-estimates"
    wants = (
        "a folder with the datasets scores and challenge_bits, AttackResults or its .json file of four counts, or a "
        "mapping, .npz or .json file with attack_scores and challenge_bits"
    )
    of_one_model = False

    def columns(self, source: Source) -> dict[str, Any]:
        if source.is_folder:
            scores, bits = source.part("scores"), source.part("challenge_bits")
            return {"bit": bits.dataset("challenge_bit"), "score": scores.dataset("score")}
        held = source.fields((*NAMES, *COUNTS), ())
        if set(COUNTS) <= set(held):
            counts = [int(checks.one(name, checks.counts(name, held[name]))) for name in COUNTS]
            size.check_rows(sum(counts), source.name)
            bit, guess = (np.repeat([pair[side] for pair in COUNTS.values()], counts) for side in (0, 1))
            return {"bit": bit, "score": guess.astype(np.float64)}
        held = source.fields(NAMES)
        return {
            "bit": flat(held["challenge_bits"], "challenge_bits"),
            "score": flat(held["attack_scores"], "attack_scores"),
        }
