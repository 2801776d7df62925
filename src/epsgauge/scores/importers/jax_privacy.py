"""jax_privacy: scores of held-in and held-out canaries, as its CanaryScoreAuditor takes them."""

from __future__ import annotations

from typing import Any

from epsgauge.scores.importers.importer import Importer
from epsgauge.scores.importers.source import Source, in_out

NAMES = ("in_canary_scores", "out_canary_scores")


class JaxPrivacy(Importer):
    """Its scores point the way that ours do: "score higher than the threshold as in"."""

    name = "jax-privacy"
    tool = "jax_privacy"
    wants = (
        "a CanaryScoreAuditor, or a mapping, .npz or .json file with in_canary_scores and out_canary_scores, which are "
        "its arguments"
    )
    of_one_model = False

    def columns(self, source: Source) -> dict[str, Any]:
        given = source.given
        if source.path is None and hasattr(given, "_in_canary_scores"):  # the auditor keeps them in their order
            source = Source({name: getattr(given, f"_{name}", None) for name in NAMES}, self.wants)
        held = source.fields(NAMES)
        return in_out(held[NAMES[0]], held[NAMES[1]], NAMES)
