"""PrivacyGuard: scores of users in the training set and of others, as its attacks give them to an analysis."""

from __future__ import annotations

from typing import Any

from epsgauge.scores.importers.importer import Importer
from epsgauge.scores.importers.source import Source, in_out

FRAMES = ("df_train_user", "df_test_user")
NAMES = ("scores_train", "scores_test")


class PrivacyGuard(Importer):
    """Its analyses guess that a user was trained on where the score is high; it attacks one target model."""

    name = "privacyguard"
    tool = "PrivacyGuard"
    wants = (
        "what run_attack() gives, a folder with df_train_user.csv and df_test_user.csv (its two tables, by to_csv), or "
        "a mapping, .npz or .json file with scores_train and scores_test"
    )
    of_one_model = True

    def columns(self, source: Source) -> dict[str, Any]:
        if source.is_folder:
            ins, outs = (source.part(f"{frame}.csv").fields(("score",))["score"] for frame in FRAMES)
            return in_out(ins, outs, FRAMES)
        if source.path is None and hasattr(source.given, FRAMES[0]):
            held = source.fields(FRAMES)
            return in_out(held[FRAMES[0]]["score"], held[FRAMES[1]]["score"], FRAMES)
        held = source.fields(NAMES)
        return in_out(held[NAMES[0]], held[NAMES[1]], NAMES)
