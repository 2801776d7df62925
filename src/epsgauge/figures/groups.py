"""Groups of points side by side: how much better than chance the attack does on each, within limits for all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from epsgauge.figures.chart import Chart
from epsgauge.figures.labels import LEFT, LINE, RIGHT
from epsgauge.figures.scales import Scale
from epsgauge.figures.style import PROMISE_COLOUR
from epsgauge.figures.svg import Picture
from epsgauge.figures.words import Words
from epsgauge.numbers import interval_text, percent, short
from epsgauge.plain import plain
from epsgauge.stats.interval import Kind

if TYPE_CHECKING:
    from epsgauge.auditing.cohorts import Cohorts

ROW = 43.0  # the height of a row of text and a bar


@dataclass(frozen=True)
class Group:
    """Its advantage TPR − FPR, and the limits of that."""

    name: str
    advantage: float
    low: float
    high: float


@dataclass(frozen=True)
class Groups:
    """On an axis from `start` to 1."""

    level: float
    promise: Kind
    groups: tuple[Group, ...]
    start: float


def groups(found: Cohorts) -> Groups:
    shown = tuple(Group(plain(c.name, 40), c.advantage, c.low, c.high) for c in found.cohorts)
    return Groups(found.level, found.promise, shown, min(0.0, *(group.low for group in shown)))


# Drawing


def draw(shown: Groups, *, prefix: str = "") -> str:
    """A bar per group, from limit to limit; what was counted is a dot on it, and chance a dashed line."""
    text = " ".join(f"{g.name}: {short(g.advantage)} {interval_text(g.low, g.high)}." for g in shown.groups)
    picture = Picture("groups", 0, "How much better than chance each group is attacked", text, prefix)
    x = Scale(shown.start, 1.0, LEFT, RIGHT)
    bottom = 6 + ROW * len(shown.groups)
    picture.line(x(0.0), 0.0, x(0.0), bottom, "line-grey thin dash", "chance")
    colour = PROMISE_COLOUR[shown.promise]
    for place, group in enumerate(shown.groups):
        y = LINE + ROW * place
        said = f"{short(group.advantage)} {interval_text(group.low, group.high)}"
        picture.words(LEFT, y, [(group.name, "strong"), (said, "")], "halo")
        picture.rect(x(group.low), y + 7, max(x(group.high) - x(group.low), 2), 10, f"fill-{colour} half", said)
        picture.dot(x(group.advantage), y + 12, f"fill-{colour}", tip=short(group.advantage))
    picture.value_axis(x, bottom, "TPR − FPR")
    picture.height = bottom + 2.6 * LINE
    return picture.done()


# Words


def words(_: Cohorts, shown: Groups) -> Words:
    level = percent(shown.level)
    sure = {
        "guaranteed": f"All bars contain their true values together in at least {level} of audits like this one.",
        "estimate": "The bars are estimates: the threshold was not fixed beforehand, or guesses are not independent.",
    }
    return Words(
        f"One bar per group of points: how much more often the attack says “member” for members than for others. "
        f"{sure['guaranteed' if shown.promise == 'guaranteed' else 'estimate']} Bars that do not overlap show that one "
        "group is attacked better.",
        "A bar at 0 does not mean that a group is safe: another attack may do better. And this is not ε: a few "
        "members that are found for certain make ε large, but hardly change this number.",
    )


CHART = Chart("groups", "Group by group", "cohorts", ("cohorts",), groups, draw, words, follows=())
