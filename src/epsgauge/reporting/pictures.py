"""The pictures of a report, section by section, each with the words beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from epsgauge.auditing.audit import Audit
from epsgauge.auditing.compare import Comparison
from epsgauge.errors import InvalidInput
from epsgauge.figures import bars, contours, dependence, histogram, narrowing, percentiles, roc, ruler, web
from epsgauge.reporting import audit as terminal
from epsgauge.reporting import compare, words
from epsgauge.reporting.estimate import Answer
from epsgauge.reporting.words import Words


@dataclass(frozen=True)
class Picture:
    """One or more drawings of the same thing; `folded` is shown on demand, under its own line."""

    title: str
    svgs: tuple[str, ...]
    words: Words
    folded: tuple[str, str] | None = None
    absent: str = ""  # why there is none


Sections = dict[str, tuple[Picture, ...]]


def of_audit(audit: Audit) -> Sections:
    """Verdict, posterior, region, attack, narrowing, and the dependence of several pairs a model."""
    level = audit.settings.level
    view, row = terminal.picture(audit), audit["bayes"]
    caveat = None if row.promise == "credible" else row.note
    said = words.density(audit.posterior, view.claimed, caveat)
    signals = None if audit.run is None else audit.run.signals()
    narrowed = narrowing.narrowing(audit)
    judged = int(narrowed.n[-1])
    out: Sections = {
        "verdict": (_ruler("On one ruler", audit, "ruler"),),
        "posterior": (
            replace(
                _one("The posterior", lambda: web.density(view, prefix="pdf"), said),
                folded=("Its distribution function", web.cdf(view, prefix="cdf")),
            ),
            _one("Every method", lambda: web.bars(bars.bars(audit), prefix="bars"), words.bars(level, audit)),
        ),
        "region": (
            _one(
                "Both error rates",
                lambda: web.contours(contours.contours(audit.posterior, level=level), prefix="region"),
                words.region(level, audit.posterior, caveat),
            ),
        ),
        "attack": (
            _one("Scores", lambda: web.histogram(histogram.histogram(audit), prefix="scores"), words.histogram(audit)),
            _pair(
                "Hits and false alarms",
                lambda: (
                    [web.roc(found, prefix="roc"), web.roc(found, log=True, prefix="roclog")]
                    if (found := roc.roc(audit))
                    else []
                ),
                words.roc(audit),
            ),
            _one(
                "Every rule",
                lambda: web.percentiles(percentiles.percentiles(audit, signals), prefix="rules"),
                words.percentiles(audit),
            ),
        ),
        "narrowing": (
            _one(
                "Model after model",
                lambda: web.narrowing(narrowed, prefix="narrowing"),
                words.narrowing(judged, narrowed.half, caveat),
            ),
        ),
    }
    depends = dependence.dependence(audit)
    if depends is not None:
        drawn = web.dependence(depends, prefix="dependence")
        out["dependence"] = (_one("Errors per model", lambda: drawn, words.dependence(audit)),)
    return out


def of_counts(answer: Answer) -> Sections:
    """What four counts can show: of ε everything but the attack, of δ and μ the posterior."""
    view, result = answer.picture(), answer.intervals
    said = words.density(answer.posterior, answer.claimed)
    out: Sections = {}
    of_eps = answer.posterior.quantity == "eps" and answer.posterior.family.assumption is None
    posterior = replace(
        _one("The posterior", lambda: web.density(view, prefix="pdf"), said),
        folded=("Its distribution function", web.cdf(view, prefix="cdf")),
    )
    if not of_eps:
        return {"posterior": (posterior,)}
    out["verdict"] = (
        _one(
            "On one ruler",
            lambda: web.ruler(ruler.ruler_of_counts(result, answer.claimed), prefix="ruler"),
            words.ruler_of_counts(answer),
        ),
    )
    drawn = _one("Every method", lambda: web.bars(bars.bars_of_counts(result), prefix="bars"), words.bars(answer.level))
    out["posterior"] = (posterior, drawn)
    out["region"] = (
        _one(
            "Both error rates",
            lambda: web.contours(contours.contours(answer.posterior, level=answer.level), prefix="region"),
            words.region(answer.level, answer.posterior),
        ),
    )
    return out


def of_comparison(found: Comparison) -> Sections:
    """The distribution functions, then each run's ruler."""
    cdfs = _one("Distribution functions", lambda: web.cdfs(compare.picture(found), prefix="cdfs"), words.cdfs())
    rulers = [_ruler(run.label, run.audit, f"ruler{i}") for i, run in enumerate(found.runs)]
    return {"comparison": (cdfs,), "verdicts": tuple(rulers)}


def _ruler(title: str, audit: Audit, prefix: str) -> Picture:
    return _one(title, lambda: web.ruler(ruler.ruler(audit), prefix=prefix), words.ruler(audit))


def _one(title: str, draw: Callable[[], str], said: Words) -> Picture:
    return _pair(title, lambda: [draw()], said)


def _pair(title: str, draw: Callable[[], list[str]], said: Words) -> Picture:
    """A picture that makes no sense here, say a ROC curve of one bit, is a sentence instead."""
    try:
        return Picture(title, tuple(draw()), said)
    except InvalidInput as reason:
        return Picture(title, (), said, absent=str(reason))
