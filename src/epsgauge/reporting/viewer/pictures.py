"""The pictures of the viewer as SVG, each drawn again only where what it shows has changed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import cache
from threading import Lock

from markupsafe import Markup

from epsgauge.auditing.audit import Audit
from epsgauge.errors import InvalidInput
from epsgauge.figures import bars, contours, density, dependence, histogram, narrowing, percentiles, roc, ruler, web
from epsgauge.reporting.viewer.audits import Declared
from epsgauge.reporting.viewer.explore import Explored
from epsgauge.reporting.viewer.render import page
from epsgauge.reporting.viewer.said import of_narrowing, said
from epsgauge.reporting.words import Words
from epsgauge.scores.table import Scores
from epsgauge.stats.tally import Tally

KEPT = 400
DENSITY_POINTS = 90
RECTANGLES = ("clopper-pearson", "jeffreys")  # methods that are a rectangle of rates


class Pictures:
    """Draws the pictures of audits, and keeps the last ones."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, str] = OrderedDict()
        self._outlines: tuple[Tally, tuple[contours.Outline, ...]] | None = None
        self._lock = Lock()

    def verdict(self, declared: Declared) -> str:
        """The ruler of the declared verdict."""
        audit = declared.audit
        return self._drawn((declared.key, "verdict"), lambda: web.ruler(ruler.ruler(audit), prefix="declared"))

    def explored(self, declared: Declared, found: Explored) -> tuple[dict[str, str], ruler.Ruler]:
        """Every picture of what the sliders show and the words beside it, by place, and the numbers of its ruler."""
        audit, here = found.audit, declared.key
        threshold, delta, level = audit.judged.threshold, audit.settings.delta, audit.settings.level
        method, tally = audit.verdict.method, (threshold, delta, level, bool(found.moved))
        view, numbers = cache(lambda: _density(audit)), _ruler(found)
        narrowed = cache(lambda: narrowing.narrowing(audit))
        draw: dict[str, tuple[tuple[Hashable, ...], Callable[[], str]]] = {
            "ruler": ((*tally, method, found.pending), lambda: web.ruler(numbers, prefix="ruler")),
            "density": (tally, lambda: web.density(view(), prefix="density")),
            "cdf": (tally, lambda: web.cdf(view(), prefix="cdf")),
            "bars": ((*tally, method, found.pending), lambda: web.bars(bars.bars(audit), prefix="bars")),
            "contours": ((*tally, method), lambda: web.contours(self._contours(audit, method), prefix="contours")),
            "histogram": ((threshold,), lambda: web.histogram(histogram.histogram(audit), prefix="histogram")),
            "roc": ((threshold,), lambda: web.roc(roc.roc(audit), prefix="roc")),
            "roclog": ((threshold,), lambda: web.roc(roc.roc(audit), log=True, prefix="roclog")),
            "percentiles": (
                (*tally, found.moved.percentile is None),
                lambda: web.percentiles(_percentiles(declared, found), prefix="percentiles"),
            ),
            "narrowing": (tally, lambda: web.narrowing(narrowed(), prefix="narrowing")),
        }
        if audit.pairs_per_model > 1:
            draw["dependence"] = (tally, lambda: _dependence(audit))
        out = {f"fig-{name}": self._drawn((here, name, *key), make) for name, (key, make) in draw.items()}
        beside = {f"words-{name}": _words(text) for name, text in said(found, _claimed(audit)).items()}
        count = self._drawn((here, "words-narrowing", *tally), lambda: _words(of_narrowing(found, narrowed())))
        return {**out, **beside, "words-narrowing": count}, numbers

    def _contours(self, audit: Audit, method: str) -> contours.Contours:
        """The outlines depend on the tally alone: sliders of δ and level leave them as they are."""
        other, level, t = method if method in RECTANGLES else None, audit.settings.level, audit.judged.tally
        bare = contours.contours(audit.posterior, level=level, method=other, masses=())
        if self._outlines is None or self._outlines[0] != t:
            self._outlines = (t, contours.outlines(audit.posterior))
        return replace(bare, outlines=self._outlines[1])

    def _drawn(self, key: Hashable, draw: Callable[[], str]) -> str:
        """A picture that makes no sense here is a sentence instead."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        try:
            out = Markup(draw())
        except InvalidInput as reason:
            out = Markup(page("absent.html.j2", reason=str(reason)))
        with self._lock:
            self._kept[key] = out
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return out


def of_scores(audit: Audit, table: Scores) -> dict[str, str]:
    """Of a table of scores, which has no run."""
    drawer = Pictures()
    draw: dict[str, Callable[[], str]] = {
        "ruler": lambda: web.ruler(ruler.ruler(audit), prefix="d-ruler"),
        "density": lambda: web.density(_density(audit), prefix="d-density"),
        "bars": lambda: web.bars(bars.bars(audit), prefix="d-bars"),
        "contours": lambda: web.contours(drawer._contours(audit, audit.verdict.method), prefix="d-contours"),
        "histogram": lambda: web.histogram(histogram.histogram(audit), prefix="d-histogram"),
        "roc": lambda: web.roc(roc.roc(audit), prefix="d-roc"),
        "percentiles": lambda: web.percentiles(percentiles.percentiles(audit), prefix="d-percentiles"),
    }
    return {name: drawer._drawn(name, make) for name, make in draw.items()}


def _ruler(found: Explored) -> ruler.Ruler:
    """Without a bound while it is being computed."""
    if found.has_bound:
        return ruler.ruler(found.audit)
    safe = replace(found.audit, verdict=replace(found.audit.verdict, bound=0.0))
    return replace(ruler.ruler(safe), bound=None)


def _density(audit: Audit) -> density.Density:
    """With fewer points than on paper: they must come quickly."""
    shown = [density.Bar(row.method, row.label, row.promise, row.low, row.high) for row in audit.rows]
    return density.density(
        audit.posterior, level=audit.settings.level, claimed=_claimed(audit), bars=shown, points=DENSITY_POINTS
    )


def _claimed(audit: Audit) -> float | None:
    """A claim at another δ has no place in a picture at this one."""
    claim = audit.claim
    return claim.eps if claim is not None and claim.delta == audit.settings.delta else None


def _words(text: Words) -> str:
    return page("words.html.j2", words=text)


def _percentiles(declared: Declared, found: Explored) -> percentiles.Percentiles:
    drawn = percentiles.percentiles(found.audit, declared.signals)
    return drawn if found.moved.percentile is None else replace(drawn, who="moved by hand")


def _dependence(audit: Audit) -> str:
    found = dependence.dependence(audit)
    if found is None:
        raise InvalidInput("guesses about one model can depend on each other only where there are several.")
    return web.dependence(found, prefix="dependence")
