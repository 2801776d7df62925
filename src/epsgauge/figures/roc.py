"""The ROC curve of the judged scores, the point where the rule works, and the most that a claim allows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from epsgauge.errors import InvalidInput
from epsgauge.figures.chart import Also, Chart
from epsgauge.figures.labels import LINE, RIGHT, margin
from epsgauge.figures.scales import Scale, decades, power_name
from epsgauge.figures.subject import Subject
from epsgauge.figures.svg import Entry, Picture
from epsgauge.figures.words import Words
from epsgauge.numbers import number
from epsgauge.scores.table import Scores
from epsgauge.stats.arrays import Bools, Floats
from epsgauge.stats.tally import Tally

if TYPE_CHECKING:
    from epsgauge.auditing.reading import Reading

# Points that fall into one cell of a grid this fine, on the linear and on the logarithmic scale, look the same.
CELLS = 400
SIDE = 340.0  # of the picture
DECADES = 6  # at most, below 1
LONG, SLOPE = 1.2, 16  # a slope over more than this ratio gets so many points on logarithmic axes


@dataclass(frozen=True)
class Limit:
    """What (ε, δ)-DP allows: TPR is at most `tpr` at each `fpr`."""

    eps: float
    delta: float
    fpr: Floats
    tpr: Floats


@dataclass(frozen=True)
class Roc:
    """Rates of the rule "guess 1 iff score ≥ t" as t falls; from (0, 0) to (1, 1) in straight steps."""

    fpr: Floats
    tpr: Floats
    point: tuple[float, float]  # (FPR, TPR) at the threshold
    threshold: float
    tally: Tally
    claim: Limit | None
    least: float  # where logarithmic axes begin: a power of ten below one guess in all


def roc(audit: Reading) -> Roc:
    """Of all judged pairs; both bits must be there."""
    judged = audit.judged
    t = judged.tally
    if not (t.n_positive > 0 and t.n_negative > 0):
        raise InvalidInput("a ROC curve needs judged pairs with both bits, but one bit has none.")
    fpr, tpr = rates(judged.judged)
    n = max(int(t.n_positive), int(t.n_negative))
    least = 10.0 ** max(-DECADES, math.floor(math.log10(0.999 / n)))
    claim = audit.claim
    limit = None if claim is None else limit_of(claim.eps, claim.delta, least)
    point = (float(t.fpr), float(1.0 - t.fnr))
    keep = _distinguishable(fpr, tpr, least)
    return Roc(fpr[keep], tpr[keep], point, judged.threshold, t, limit, least)


def rates(scores: Scores) -> tuple[Floats, Floats]:
    """FPR and TPR at every distinct score as the threshold, from above all scores to the lowest."""
    order = np.argsort(-scores.score, kind="stable")
    ordered, bit = scores.score[order], scores.bit[order]
    ends = np.append(ordered[1:] != ordered[:-1], True)
    tp, fp = np.cumsum(bit)[ends], np.cumsum(1 - bit)[ends]
    return np.append(0.0, fp / fp[-1]), np.append(0.0, tp / tp[-1])


def limit_of(eps: float, delta: float, least: float = 1e-3) -> Limit:
    """The upper edge of R(ε, δ) in these coordinates."""
    corner = (1.0 - delta) / (1.0 + math.exp(min(eps, 700.0)))
    fpr = np.unique(np.concatenate([[0.0, corner], np.geomspace(least, 1.0, 120)]))
    e = math.exp(-min(eps, 700.0))
    rising = delta + fpr / e if e > 0 else np.where(fpr > 0, 1.0, delta)
    tpr = np.minimum(np.minimum(1.0, rising), 1.0 - e * np.maximum(1.0 - delta - fpr, 0.0))
    return Limit(eps, delta, fpr, tpr)


def bent(fpr: Floats, tpr: Floats, least: float) -> tuple[Floats, Floats]:
    """The same curve with points along its long slopes, which are not straight on logarithmic axes."""
    a, b, c, d = np.maximum(fpr[:-1], least), tpr[:-1], fpr[1:], tpr[1:]
    long = np.flatnonzero((c > LONG * a) & (d > b))
    share = np.linspace(0.0, 1.0, SLOPE)[:-1]
    inner = a[long, None] * (c / a)[long, None] ** share
    height = b[long, None] + (d - b)[long, None] * (inner - fpr[long, None]) / (c - fpr[:-1])[long, None]
    places = np.repeat(long + 1, len(share))
    return np.insert(fpr, places, inner.ravel()), np.insert(tpr, places, height.ravel())


def _distinguishable(fpr: Floats, tpr: Floats, least: float) -> Bools:
    """One of the points that look the same on both scales, and both ends."""
    if len(fpr) <= CELLS:
        return np.ones(len(fpr), np.bool_)
    keep = np.zeros(len(fpr), np.bool_)
    keep[[0, -1]] = True
    scale = -math.log10(least)
    logs = [1 + np.log10(np.maximum(rate, least)) / scale for rate in (fpr, tpr)]
    for x, y in ((fpr, tpr), (logs[0], logs[1])):
        cell = np.round(x * CELLS / 2) * 10_000 + np.round(y * CELLS / 2)
        keep[np.unique(cell, return_index=True)[1]] = True
    return keep


# Drawing


def draw(shown: Roc, *, prefix: str = "") -> str:
    return _draw(shown, prefix, log=False)


def draw_log(shown: Roc, *, prefix: str = "") -> str:
    """On logarithmic axes."""
    return _draw(shown, prefix, log=True)


def _draw(shown: Roc, prefix: str, log: bool) -> str:
    """TPR against FPR, the point where the rule works, and what the claim forbids."""
    kind = "roc-log" if log else "roc"
    fpr, tpr = shown.point
    words = f"At the threshold the FPR is {fpr:.3g} and the TPR {tpr:.3g}."
    if shown.claim is not None:
        words += (
            f" True rates above the dashed line would break ε = {number(shown.claim.eps)}, δ = {shown.claim.delta:g}."
        )
        words += " The curve is measured: a point of it above the line alone is no proof."
    title = "ROC curve" + (", both axes logarithmic" if log else "")
    picture = Picture(kind, 0, title, words, prefix)
    low = shown.least if log else 0.0
    values = decades(low, 1.0, 5) if log else [0.0, 0.25, 0.5, 0.75, 1.0]
    names = [power_name(v) for v in values] if log else ["0", "0.25", "0.5", "0.75", "1"]
    left = margin(names)
    x, y = Scale(low, 1.0, left, left + SIDE, log), Scale(low, 1.0, 14 + SIDE, 14, log)
    picture.y_axis(y, x.start, values, names, to=x.end)
    for v in values:
        picture.line(x(v), y.start, x(v), y.end, "grid")
    clip = picture.clip(x.start, y.end, x.length, y.length)
    entries = [Entry("line", "line-blue curve", "the attack"), Entry("line", "line-muted thin dots", "chance")]
    if shown.claim is not None:
        c = shown.claim
        keep = c.fpr >= low
        cx, cy = x.all(c.fpr[keep]), y.all(c.tpr[keep])
        picture.path(
            [x.start, *cx, x.end, x.start], [cy[0], *cy, y.end, y.end], "fill-red faint", closed=True, clip=clip
        )
        picture.path([x.start, *cx], [cy[0], *cy], "claim", clip=clip)
        entries.append(Entry("box", "fill-red faint", f"more than ε = {number(c.eps)}, δ = {c.delta:g} allows"))
    diagonal = [low, 1.0]
    picture.path(x.all(diagonal), y.all(diagonal), "line-muted thin dots")
    curve = bent(shown.fpr, shown.tpr, low) if log else (shown.fpr, shown.tpr)
    picture.path(x.all(curve[0]), y.all(curve[1]), "line-blue curve", clip=clip)
    text = f"FPR {fpr:.3g}, TPR {tpr:.3g}"
    picture.dot(x(fpr), y(tpr), "fill-orange", 6, f"{text} at threshold {number(shown.threshold)}")
    entries.append(Entry("dot", "fill-orange", f"the rule: {text}"))
    picture.x_axis(x, y.start, values, names, "FPR: guessed 1 where b = 0")
    picture.y_label(y, "TPR: guessed 1 where b = 1")
    picture.height = picture.key(entries, 20, RIGHT, y.start + 3.4 * LINE)
    return picture.done()


# Words


def words(subject: Subject, shown: Roc) -> Words:
    audit, n0 = subject.audit, int(shown.tally.n_negative)
    line, above = "If the claim holds, no attack’s true curve rises above its line. ", " above the line"
    if shown.claim is None:
        line, above = "There is no claim, so no line is drawn. ", ""
    dot = "The dot was chosen without these guesses; any other point would be chosen on them."
    if audit.judged.same_data:
        dot = "The dot was chosen on these guesses, as any other point would be."
    elif audit.lost is not None and audit.lost.rule:
        dot = f"These guesses may have influenced where the dot is: {audit.lost.why}."
    elif audit.judged.same_models:
        dot = "The dot was chosen on other pairs of the same models; any other point would be chosen on these guesses."
    single = f" The smallest FPR above 0 is {1 / n0:.2g}: one of {n0} guesses."
    hides = (
        f"{dot} A measured point{above} proves nothing by itself: the bound says how much the dot shows, and the best "
        f"of many points is too high by chance.{single}"
    )
    if subject.by_hand:
        hides = (
            "The dot was moved by hand after results were seen. A point that is picked this way refutes nothing: the "
            "best of many points is too high by chance."
        )
    return Words(
        f"Hits (TPR) against false alarms (FPR) at every threshold; the dot is the judged rule. {line}"
        "Logarithmic axes show the part with few false alarms, which often decides ε.",
        hides,
    )


CHART = Chart(
    "roc",
    "Hits and false alarms",
    "attack",
    ("audit",),
    lambda subject: roc(subject.audit),
    draw,
    words,
    Also("roclog", "The same on logarithmic axes", draw_log),
    follows=("threshold",),
)
