"""The ruler: the claimed ε, the lower bound of the verdict and the credible interval on one axis."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from epsgauge.auditing.audit import Audit
from epsgauge.figures.chart import ALL, Chart
from epsgauge.figures.labels import LEFT, LINE, RIGHT
from epsgauge.figures.marks import claim_zone
from epsgauge.figures.scales import Scale
from epsgauge.figures.style import PROMISE_COLOUR
from epsgauge.figures.subject import PENDING, Subject
from epsgauge.figures.svg import Picture
from epsgauge.figures.words import Words, eps_axis, only_an_estimate
from epsgauge.methods.table import BASELINE, SHARPEST
from epsgauge.numbers import at_least, at_most, number, percent, span
from epsgauge.stats.interval import Kind
from epsgauge.stats.posterior import estimate

if TYPE_CHECKING:
    from epsgauge.auditing.bound import Bound
    from epsgauge.auditing.reading import Reading
    from epsgauge.auditing.verdict import Ruling, Verdict

# A claim beyond so many times all else is not on the axis: what was measured would shrink to a dot.
FAR = 12.0
# Of bare counts the first of these methods that is there gives the bound.
PROVEN = (SHARPEST.name, BASELINE.name)
ROW = 53.0  # the height of a row of text and a bar


@dataclass(frozen=True)
class Shown:
    """ε is at least `value`, one-sided at `level`, where `scope` says."""

    value: float
    method: str
    label: str
    level: float
    promise: Kind
    scope: str = ""
    short_scope: str = ""
    conditional: bool = False

    @classmethod
    def of(cls, b: Bound) -> Shown:
        scopes = b.scope, b.short_scope
        return cls(b.value, b.method, b.label, b.level, b.promise, *scopes, conditional=b.condition is not None)

    @property
    def text(self) -> str:
        return f"ε ≥ {at_least(self.value)}"


@dataclass(frozen=True)
class Ruler:
    """Everything at one δ: that of the claim where there is one. The axis goes from 0 to `end`."""

    delta: float
    claimed: float | None
    bounds: tuple[Shown, ...]
    low: float
    high: float
    median: float
    level: float
    promise: Kind  # of the interval [low, high]
    kind: Ruling
    largest: float | None  # what the bound would be if every guess were right
    end: float

    @property
    def claim_is_far(self) -> bool:
        return self.claimed is not None and self.claimed > self.end


def ruler(subject: Subject) -> Ruler:
    """Bounds are those of the verdict; of bare counts it is the low end of a proven row, which is one-sided."""
    delta, posterior, claimed = subject.delta, subject.posterior, subject.claimed
    kind: Ruling = "no claim"
    largest = None
    if subject.source is None:
        bounds = _proven(subject)
    else:
        seen = subject.source
        claimed = None if seen.claim is None else seen.claim.eps
        bounds = tuple(map(Shown.of, seen.bounds))
        if isinstance(seen, Audit):
            kind, largest = seen.verdict.kind, seen.verdict.largest
        at = {bound.delta for bound in seen.bounds}
        if at and at != {delta}:
            delta = at.pop()
            posterior = estimate(posterior.tally, delta=delta)
    ends, median = posterior.interval(subject.level), float(posterior.median())
    low, high = float(ends.low), float(ends.high)
    end = _end([high, *(bound.value for bound in bounds)], claimed)
    return Ruler(delta, claimed, bounds, low, high, median, subject.level, subject.promise, kind, largest, end)


def _proven(subject: Subject) -> tuple[Shown, ...]:
    bars = {bar.method: bar for bar in subject.bars if bar.note != PENDING}
    found = [bars[name] for name in PROVEN if name in bars][:1]
    return tuple(Shown(bar.low, bar.method, bar.label, (1.0 + subject.level) / 2, bar.promise) for bar in found)


def _end(values: list[float], claimed: float | None) -> float:
    """Where the axis ends: a little beyond all that is finite."""
    most = max([v for v in values if math.isfinite(v)], default=1.0) or 1.0
    if claimed is not None and claimed <= FAR * most:
        most = max(most, claimed)
    return 1.08 * most


# Drawing


def draw(shown: Ruler, *, prefix: str = "") -> str:
    """A gauge from 0 to the lower bound, the credible interval below it, and the claim as a dashed line."""
    title = "The claimed ε, the lower bound and the credible interval"
    picture = Picture("ruler", 0, title, _ruler_text(shown), prefix)
    x = Scale(0.0, shown.end, LEFT, RIGHT)
    rows = len(shown.bounds) + 1
    top = 0.0 if shown.claimed is None else LINE
    bottom = top + 8 + rows * ROW
    claim_zone(picture, shown.claimed, x, top, bottom)
    y = top + LINE + 2
    for bound in shown.bounds:
        _gauge(picture, shown, bound, x, y)
        y += ROW
    name = "credible" if shown.promise == "credible" else "interval, an estimate"
    parts = [(f"ε {span(shown.low, shown.high)}", "strong"), (f"{percent(shown.level)} {name}", "text-muted")]
    picture.words(LEFT, y, parts, "halo")
    colour = PROMISE_COLOUR[shown.promise]
    picture.rect(x(shown.low), y + 8, max(x(shown.high) - x(shown.low), 2), 16, f"fill-{colour} half", parts[0][0])
    picture.rect(x(shown.median) - 2, y + 6, 4, 20, f"fill-{colour}", f"median {number(shown.median)}")
    picture.value_axis(x, bottom, eps_axis(shown.delta))
    picture.height = bottom + 2.6 * LINE
    return picture.done()


def _gauge(picture: Picture, shown: Ruler, bound: Shown, x: Scale, y: float) -> None:
    """A lower bound: as much as was shown."""
    refutes = shown.kind == "violation" and shown.claimed is not None and bound.value > shown.claimed
    colour = "red" if refutes else PROMISE_COLOUR[bound.promise]
    how = f"{bound.promise} at {percent(bound.level)}"
    said = how if bound.short_scope else f"{how} ({bound.label})"  # there is room for one of both
    parts = [(bound.text, "strong text-red" if refutes else "strong"), (bound.short_scope, ""), (said, "text-muted")]
    picture.words(LEFT, y, [part for part in parts if part[0]], "halo")
    if shown.kind == "cannot decide" and shown.largest is not None and bound is shown.bounds[-1]:
        tip = f"With every guess right this audit would show {at_least(shown.largest)}"
        picture.rect(x(0), y + 8, x(shown.largest) - x(0), 16, "line-muted thin dots", tip)
    look = f"fill-{colour}" + (" half" if bound.conditional else "")
    picture.rect(x(0), y + 8, max(x(bound.value) - x(0), 2), 16, look, f"{bound.text} {bound.scope}".strip())


def _ruler_text(shown: Ruler) -> str:
    parts = []
    if shown.claimed is not None:
        parts.append(f"Claimed: ε = {at_most(shown.claimed)} at δ = {shown.delta:g}.")
    for b in shown.bounds:
        scope = f" {b.scope}" if b.scope else ""
        parts.append(f"Lower bound: {b.text}{scope} ({b.label}, {b.promise}, one-sided level {percent(b.level)}).")
    parts.append(
        f"{percent(shown.level)} interval of the posterior ({shown.promise}): {span(shown.low, shown.high)}, median "
        f"{number(shown.median)}."
    )
    if shown.kind == "cannot decide" and shown.largest is not None:
        parts.append(f"If every guess were right, the bound would be {at_least(shown.largest)} (dotted).")
    return " ".join(parts)


# Words


def words(subject: Subject, shown: Ruler) -> Words:
    if subject.source is None:
        return Words(
            f"The bar is the {percent(subject.level)} credible interval, its mark the median. The lower bound is too "
            f"high for at most {percent((1 - subject.level) / 2)} of counts like these, if its assumptions hold.",
            "Counts alone do not show whether they hold. No number here limits what a stronger attack may show.",
        )
    audit, at = subject.source, ""
    bounds = audit.bounds
    if bounds and bounds[0].delta != audit.settings.delta:
        own = f"{audit.settings.delta:.3g}"
        at = f" All of it is at the claim’s δ = {bounds[0].delta:.3g}, not at the audit’s δ = {own}."
    claim = "" if audit.claim is None else "The claim is what the pipeline promises. "
    level = f"with a posterior probability of at least {percent(subject.level)}"
    contains = "contains" if subject.promise == "credible" else "would contain"
    said = "".join(f"The lower bound {bound.scope} ({bound.label}) {_how_sure(bound)}. " for bound in bounds)
    return Words(
        f"{claim}{said}The last bar {contains} the ε that this attack reaches {level}; its mark is the median."
        f"{only_an_estimate(subject.caveat)}{''.join(map(_worth, bounds))}{_different_guesses(audit)}{at}",
        "Nothing here limits the ε of the pipeline from above: another attack, or more models, may show more."
        + (_place_of_the_claim(audit.verdict) if isinstance(audit, Audit) else ""),
    )


def _how_sure(v: Bound) -> str:
    if v.promise == "guaranteed":
        return f"is too high in at most {percent(1 - v.level)} of audits like this one, if its assumptions hold"
    if v.promise == "credible":
        return f"has {percent(v.level)} of the posterior above it, and is not a confidence bound"
    return "is an estimate here: no level is promised"


def _worth(v: Bound) -> str:
    """What a bound on μ or on noise has to do with ε."""
    if not v.means:
        return ""
    return (
        f" The conditional bound is the ε that {v.means} implies, whatever attack would show it. The last bar is about "
        "this attack alone and may lie far below."
    )


def _place_of_the_claim(v: Verdict) -> str:
    """What it means that the claim is where it is."""
    if v.kind == "no claim":
        return ""
    if v.kind == "cannot decide":
        return f" That no bound is above the claim means nothing here: {v.powerless}."
    if v.kind == "in progress":
        return " That no bound is above the claim means nothing yet: the run is in progress."
    if v.kind == "unsupported" and not v.above:
        return " The bound is not above the claim, but what the claim rests on does not hold."
    if v.kind == "no objection":
        return " No bound is above the claim, so this attack does not refute it. That does not verify it either."
    if not v.above:
        return " Only a conditional bound is above the claim: the training is not what was accounted."
    least = {
        "guaranteed": "and that is as certain as the bound itself",
        "credible": "and that is as probable as the posterior says, but it is no test",
        "estimate": "but that proves nothing",
    }[v.promise]
    return f" The bound is above the claim, {least}."


def _different_guesses(audit: Reading) -> str:
    """Where bounds and the posterior do not rest on the same ones."""
    said = (
        f" The bound {bound.scope} rests on {bound.counts}, the last bar on all judged pairs."
        for bound in audit.bounds
        if bound.tally != audit.judged.tally
    )
    return "".join(said)


CHART = Chart("ruler", "On one ruler", "verdict", ("audit", "counts"), ruler, draw, words, follows=(*ALL, "bound"))
