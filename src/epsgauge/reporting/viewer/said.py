"""The words beside the pictures of a run, of what the sliders show now."""

from __future__ import annotations

from dataclasses import replace

from epsgauge.figures.narrowing import Narrowing
from epsgauge.reporting import words
from epsgauge.reporting.viewer.explore import Explored
from epsgauge.reporting.words import Words


def said(found: Explored, claimed: float | None) -> dict[str, Words]:
    """By the name of the picture; `claimed` is the ε of a claim at the δ that is shown."""
    audit, caveat = found.audit, _caveat(found)
    level = audit.settings.level
    out = {
        "density": words.density(audit.posterior, claimed, caveat),
        "bars": words.bars(level, audit),
        "contours": words.region(level, audit.posterior, caveat),
        "histogram": words.histogram(audit),
        "roc": words.roc(audit),
        "percentiles": words.percentiles(audit),
    }
    if audit.pairs_per_model > 1:
        out["dependence"] = words.dependence(audit)
    if found.moved.percentile is not None:
        out["roc"] = replace(
            out["roc"],
            hides="The dot was moved by hand after results were seen. No point that is picked so refutes anything: the "
            "best of many points is too high by chance.",
        )
        out["percentiles"] = Words(
            "The ε that every rule would have given: median and interval at each. The marked one was moved by hand "
            "after results were seen.",
            "No point here is an estimate of anything: one that is picked for its height, by hand or by a search, is "
            "too high by chance. Only the rule of the declared verdict counts.",
        )
    return out


def of_narrowing(found: Explored, picture: Narrowing) -> Words:
    return words.narrowing(int(picture.n[-1]), picture.half, _caveat(found))


def _caveat(found: Explored) -> str | None:
    """Why the posterior promises less than it could."""
    row = found.audit["bayes"]
    return None if row.promise == "credible" else row.note
