"""Whether the guesses about one model depend on each other: errors per model against what independence gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from epsgauge.bounds.dependence import cluster_interval
from epsgauge.figures.chart import Chart
from epsgauge.figures.labels import LINE, RIGHT, margin
from epsgauge.figures.scales import Scale, ticks
from epsgauge.figures.subject import Subject
from epsgauge.figures.svg import Entry, Picture
from epsgauge.figures.words import Words, eps_axis
from epsgauge.methods.facts import FAIR_BITS, MODELS_INDEPENDENT
from epsgauge.numbers import grouped, percent, span
from epsgauge.stats.arrays import Floats, Ints
from epsgauge.stats.binomial import log_mass

if TYPE_CHECKING:
    from epsgauge.auditing.reading import Reading

BINS = 16


@dataclass(frozen=True)
class Errors:
    """How many models made how many errors of one kind: from edges[i] to edges[i + 1] − 1.

    The outer bins have what is beyond them, too.
    """

    kind: str  # "FN" or "FP"
    rate: float
    edges: Ints
    models: Ints  # counted
    expected: Floats  # if every guess were independent, with the same rate
    variance_ratio: float  # of the counts, over that of independent guesses


@dataclass(frozen=True)
class Dependence:
    """Errors per model, design effects (1: as good as independent) and both intervals for ε."""

    pairs_per_model: int
    n_models: int
    errors: tuple[Errors, ...]  # of FN and FP, without a kind that cannot happen
    design_effect: tuple[float, float] | None  # of FNR and FPR; None below 10 models
    correlation: float | None  # of a model's two error rates
    level: float
    delta: float
    plain: tuple[float, float]
    clustered: tuple[float, float] | None


def dependence(audit: Reading) -> Dependence | None:
    """None for one pair per model: there is nothing to see."""
    if audit.pairs_per_model == 1:
        return None
    scores, settings = audit.judged.judged, audit.settings
    wrong, one = scores.bit != (scores.score >= audit.judged.threshold), scores.bit == 1
    fn, n1, fp, n0 = (scores.per_model(rows) for rows in (wrong & one, one, wrong & ~one, ~one))
    errors = tuple(_errors(kind, k, n) for kind, k, n in (("FN", fn, n1), ("FP", fp, n0)) if n.sum())
    found = None
    if len(errors) == 2:
        found = cluster_interval(fn, n1, fp, n0, delta=settings.delta, level=settings.level)
    plain = audit.posterior.interval(settings.level)
    return Dependence(
        audit.pairs_per_model,
        len(scores.models),
        errors,
        None if found is None else found.design_effect,
        None if found is None else found.correlation,
        settings.level,
        settings.delta,
        (float(plain.low), float(plain.high)),
        None if found is None else (found.low, found.high),
    )


def _errors(kind: str, k: Ints, n: Ints) -> Errors:
    rate = float(k.sum() / n.sum())
    sizes, times = np.unique(n, return_counts=True)
    count = np.arange(int(n.max()) + 1)
    expected = np.zeros(len(count))
    for size, how_often in zip(sizes, times, strict=True):
        expected[: size + 1] += how_often * np.exp(log_mass(count[: size + 1], int(size), rate))
    models = np.bincount(k, minlength=len(count))
    seen = np.flatnonzero((models > 0) | (expected > 0.05))
    first, end = int(seen[0]), int(seen[-1]) + 1
    step = -(-(end - first) // BINS)
    edges: Ints = np.arange(first, end + step, step)
    bins = [_binned(part, edges) for part in (models, expected)]
    spread = float((n * rate * (1.0 - rate)).sum())
    ratio = float(((k - n * rate) ** 2).sum() / spread) if spread > 0 else 1.0
    return Errors(kind, rate, edges, np.round(bins[0]).astype(np.int64), bins[1], ratio)


def _binned(values: Floats | Ints, edges: Ints) -> Floats:
    """Sums between edges; those beyond the outer ones belong to the outer bins."""
    sums = np.append(0.0, np.cumsum(values))
    at = sums[np.minimum(edges, len(values))]
    at[0], at[-1] = 0.0, sums[-1]
    return np.diff(at)


# Drawing


def draw(shown: Dependence, *, prefix: str = "") -> str:
    """Errors per model beside what independent guesses would give, and both intervals."""
    words = " ".join(
        f"{e.kind}: the counts vary {e.variance_ratio:.2g} times as much as independent ones." for e in shown.errors
    )
    if shown.design_effect is not None:
        words += f" Design effects {shown.design_effect[0]:.2g} (FNR) and {shown.design_effect[1]:.2g} (FPR)."
    picture = Picture("dependence", 0, f"Errors per model, {shown.pairs_per_model} pairs each", words, prefix)
    y = 0.0
    for place, errors in enumerate(shown.errors):
        effect = None if shown.design_effect is None else shown.design_effect[place]
        y = _draw_errors(picture, errors, effect, y)
    y = picture.key(
        [Entry("box", "fill-sky", "models counted"), Entry("line", "line-ink curve", "expected if independent")],
        20,
        RIGHT,
        y + 0.4 * LINE,
    )
    picture.height = _draw_intervals(picture, shown, y)
    return picture.done()


def _draw_errors(picture: Picture, shown: Errors, effect: float | None, top: float) -> float:
    top += LINE
    what = {"FN": "missed (b = 1)", "FP": "false alarms (b = 0)"}[shown.kind]
    said = f"{what}: " + (
        f"design effect {effect:.2g}" if effect is not None else f"variance × {shown.variance_ratio:.2g}"
    )
    picture.text(52, top - 2, said, "strong")
    most = max(float(shown.models.max()), float(shown.expected.max()), 1.0)
    values = [v for v in ticks(0, most, 3) if v == int(v)]
    names = [grouped(v) for v in values]
    x = Scale(float(shown.edges[0]) - 0.5, float(shown.edges[-1]) - 0.5, margin(names), RIGHT)
    y = Scale(0.0, 1.08 * most, top + 118, top + 8)
    picture.y_axis(y, x.start, values, names, to=x.end)
    for i, n in enumerate(shown.models):
        a, b = int(shown.edges[i]), int(shown.edges[i + 1]) - 1
        left, right = x(a - 0.5), x(b + 0.5)
        many = f"{a}" if a == b else f"{a}–{b}"
        tip = f"{many} errors: {n} models, {shown.expected[i]:.3g} expected"
        picture.rect(left + 1, y(float(n)), right - left - 2, y.start - y(float(n)), "fill-sky", tip)
    for i, value in enumerate(shown.expected):
        picture.line(
            x(shown.edges[i] - 0.5) + 1,
            y(value),
            x(shown.edges[i + 1] - 0.5) - 1,
            y(value),
            "line-ink curve",
            f"{value:.3g} expected",
        )
    places = [v for v in ticks(float(shown.edges[0]), float(shown.edges[-1]) - 1, 8) if v == int(v)]
    picture.x_axis(x, y.start, places, [grouped(v) for v in places], "errors per model")
    picture.y_label(y, "models")
    return y.start + 2.8 * LINE


def _draw_intervals(picture: Picture, shown: Dependence, y: float) -> float:
    end = 1.06 * max(shown.plain[1], 0.0 if shown.clustered is None else shown.clustered[1])
    x = Scale(0.0, end or 1.0, 14, RIGHT)
    y += 0.4 * LINE
    rows = [("as if independent", shown.plain, "fill-blue half")]
    if shown.clustered is not None:
        rows.append(("allowing for dependence", shown.clustered, "fill-blue"))
    for text, (low, high), look in rows:
        y += LINE
        picture.words(14, y, [(text, "strong"), (span(low, high), "")])
        picture.rect(x(low), y + 7, max(x(high) - x(low), 3), 10, look, f"{text}: {span(low, high)}")
        y += 26
    picture.value_axis(x, y, f"{eps_axis(shown.delta)}, {percent(shown.level)} intervals")
    return y + 2.6 * LINE


# Words


def words(subject: Subject, shown: Dependence) -> Words:
    effect = "There are too few models, or only one bit, for a design effect."
    if shown.clustered is not None:
        effect = "A design effect of 1 means independence; at 2 the guesses are worth half their number."
    pooled, any_dependence = "", [bar for bar in subject.bars if _allows_any(bar.assumptions)]
    if any_dependence:
        pooled = (
            " The pooled bound needs no such correction: it allows for any dependence among guesses about one model"
        )
        sure = any_dependence[0].promise == "guaranteed"
        pooled += "." if sure else ", but is an estimate here for another reason."
    return Words(
        f"Wrong guesses per model, beside what independent guesses with the same error rates would give. {effect}",
        "It can find dependence within a model, not rule it out, and it corrects the width of an interval, not its "
        "position." + pooled,
    )


def _allows_any(assumptions: tuple[str, ...]) -> bool:
    """Whether a bound holds however guesses about one model depend on each other."""
    return FAIR_BITS in assumptions and MODELS_INDEPENDENT not in assumptions


CHART = Chart(
    "dependence",
    "Errors per model",
    "dependence",
    ("several pairs",),
    lambda subject: dependence(subject.audit),
    draw,
    words,
)
