"""The one table of importers, and the one call: scores of another tool as a table of our own."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from epsgauge.adjacency import checked
from epsgauge.errors import InvalidInput
from epsgauge.references import nearest
from epsgauge.scores.files import with_models
from epsgauge.scores.importers.importer import Importer
from epsgauge.scores.importers.jax_privacy import JaxPrivacy
from epsgauge.scores.importers.leakpro import LeakPro
from epsgauge.scores.importers.privacy_estimates import PrivacyEstimates
from epsgauge.scores.importers.privacy_meter import PrivacyMeter
from epsgauge.scores.importers.privacyguard import PrivacyGuard
from epsgauge.scores.importers.sacroml import SacroML
from epsgauge.scores.importers.source import Source
from epsgauge.scores.origin import Origin
from epsgauge.scores.said import checked_bits, checked_models
from epsgauge.scores.table import Scores

IMPORTERS: dict[str, Importer] = {
    importer.name: importer
    for importer in (JaxPrivacy(), LeakPro(), PrivacyGuard(), PrivacyMeter(), PrivacyEstimates(), SacroML())
}


def import_scores(
    source: str | os.PathLike[str] | Any,
    *,
    tool: str,
    adjacency: str,
    bits: str = "unknown",
    models: str | None = None,
    lower_is_in: bool = False,
) -> Scores:
    """Scores that another tool made: from its object in memory, its file, or the folder that it wrote.

    `tool` is jax-privacy, leakpro, privacyguard, privacy-meter, privacy-estimates or sacroml. None of them keeps the
    adjacency, so that it must be said, and so must `models` of a tool that attacks one model or many: "one" or
    "independent". With `lower_is_in` a lower score of what the importer gives means that b = 1 is more likely.

    >>> held = {"in_canary_scores": [2.0, 1.5], "out_canary_scores": [0.5, 1.0]}
    >>> import_scores(held, tool="jax-privacy", adjacency="add-remove", models="one")
    <Scores: 4 rows of 1 models, adjacency add-remove>
    """
    importer = IMPORTERS.get(tool)
    if importer is None:
        raise InvalidInput(f"tool must be one of {', '.join(IMPORTERS)}, but got {tool!r}.{nearest(tool, IMPORTERS)}")
    wanted, said = checked(adjacency), checked_bits(bits)
    rows = None if models is None else checked_models(models)
    given = Source(source, importer.wants)
    columns = importer.columns(given)
    lengths = {key: len(column) for key, column in columns.items()}
    if len(set(lengths.values())) > 1:
        both = " and ".join(f"{n} of {key}" for key, n in lengths.items())
        raise InvalidInput(f"{given.name} must have one {importer.tool} score per bit, but has {both}.")
    if importer.of_one_model and "model" not in columns:
        if rows == "independent":
            raise InvalidInput(
                f"{given.name} is of {importer.tool}, which attacks one model, so its rows are not independent. Leave "
                "models out (--independent)."
            )
        rows = "one"
    if lower_is_in:
        columns["score"] = -np.asarray(columns["score"], np.float64)
    origin = Origin("FILE" if given.path is None else given.name, lower_is_in=lower_is_in, tool=tool)
    try:
        held = with_models(columns, rows, given.name)
        return Scores(**held, adjacency=wanted, bits=said, taken_as=rows, origin=origin)
    except InvalidInput as error:
        raise InvalidInput(f"{given.name}: {error}" if given.name not in str(error) else str(error)) from None
