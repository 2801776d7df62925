"""The ladder: the ε that adversaries of growing power show of one or more pipelines, beside what is claimed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from epsgauge.figures.chart import Chart
from epsgauge.figures.labels import LEFT, LINE, RIGHT
from epsgauge.figures.marks import claim_zone
from epsgauge.figures.ruler import Shown
from epsgauge.figures.scales import Scale
from epsgauge.figures.svg import Picture
from epsgauge.figures.words import Words, eps_axis
from epsgauge.numbers import percent
from epsgauge.plain import plain

if TYPE_CHECKING:
    from epsgauge.auditing.audit import Audit
    from epsgauge.auditing.compare import Compared, Comparison
    from epsgauge.auditing.verdict import Ruling
    from epsgauge.runner.view import Run

ROW = 43.0  # the height of a row of text and a bar
Pipelines = Mapping[str, Mapping[str, "Audit"]]  # the audits of each pipeline, by what their adversary is called


@dataclass(frozen=True)
class Rung:
    """What one adversary shows."""

    adversary: str
    bounds: tuple[Shown, ...]  # for any training, then the conditional one
    kind: Ruling

    @property
    def described(self) -> str:
        return ", ".join(f"{bound.text} {bound.scope}".strip() for bound in self.bounds)

    @property
    def reach(self) -> float:
        return max(bound.value for bound in self.bounds)


@dataclass(frozen=True)
class Ladder:
    """Rungs of each pipeline, on an axis from 0 to `end`."""

    delta: float
    level: float
    claimed: float | None
    pipelines: dict[str, tuple[Rung, ...]]
    end: float


def ladder(pipelines: Pipelines) -> Ladder:
    audits = [audit for found in pipelines.values() for audit in found.values()]
    claim = next((audit.claim for audit in audits if audit.claim is not None), None)
    claimed = None if claim is None else claim.eps
    rungs = {
        title: tuple(Rung(who, tuple(map(Shown.of, a.verdict.bounds)), a.verdict.kind) for who, a in found.items())
        for title, found in pipelines.items()
    }
    longest = max(claimed or 0.0, *(rung.reach for of in rungs.values() for rung in of))
    return Ladder(audits[0].verdict.delta, audits[0].verdict.level, claimed, rungs, longest or 1.0)


def pipelines_of(found: Comparison) -> Pipelines:
    """The runs of a comparison, each under the training that it attacks; named by what their adversaries are called."""
    groups: dict[str, list[Compared]] = {}
    for run in found.runs:
        groups.setdefault(_training(run.audit), []).append(run)
    out: dict[str, Mapping[str, Audit]] = {}
    for runs in groups.values():
        plan = _run(runs[0].audit).plan
        title = f"{plain(plan.trainer.use)} on {plain(plan.data.use)}"
        names = [_run(run.audit).powers.preset for run in runs]
        own = len(set(names)) < len(names)  # two of one kind go by the names of their plans
        shown = {run.label if own else name: run.audit for run, name in zip(runs, names, strict=True)}
        out[title if title not in out else f"{title}, {runs[0].label}"] = shown
    return out


def _training(audit: Audit) -> str:
    plan = _run(audit).plan
    return repr((plan.data.identity(), plan.trainer.identity(), plan.game.train_size, plan.control))


def _run(audit: Audit) -> Run:
    if audit.run is None:
        raise ValueError("a comparison is one of runs")
    return audit.run


# Drawing


def draw(shown: Ladder, *, prefix: str = "") -> str:
    """A bar per adversary, solid as far as it holds for any mechanism; the claim is a dashed line."""
    text = " ".join(
        f"{title}: {', '.join(f'{rung.adversary} {rung.described} ({rung.kind})' for rung in rungs)}."
        for title, rungs in shown.pipelines.items()
    )
    picture = Picture("ladder", 0, "The ε that each adversary shows", text, prefix)
    x = Scale(0.0, 1.06 * shown.end, LEFT, RIGHT)
    y = top = 0.0 if shown.claimed is None else LINE
    bottom = top + sum(2 * LINE + ROW * len(rungs) for rungs in shown.pipelines.values())
    claim_zone(picture, shown.claimed, x, top, bottom)
    for title, rungs in shown.pipelines.items():
        y += 1.5 * LINE
        picture.words(LEFT, y, [(title, "strong")], "halo")
        for rung in rungs:
            _rung(picture, rung, x, y + LINE + 4)
            y += ROW
        y += 0.5 * LINE
    picture.value_axis(x, bottom, eps_axis(shown.delta))
    picture.height = bottom + 2.6 * LINE
    return picture.done()


def _rung(picture: Picture, rung: Rung, x: Scale, y: float) -> None:
    """Text with its baseline at y, the bar below it."""
    colour = "red" if rung.kind == "violation" else "blue"
    look = "strong text-red" if rung.kind in ("violation", "unsupported") else "text-muted"
    picture.words(LEFT, y, [(rung.adversary, ""), (rung.bounds[0].text, "strong"), (rung.kind, look)], "halo")
    for bound in reversed(rung.bounds):
        how = f"fill-{colour}" + (" half" if bound.conditional else "")
        picture.rect(x(0), y + 7, max(x(bound.value) - x(0), 2), 10, how, f"{bound.text} {bound.scope}")


# Words


def words(_: Pipelines, shown: Ladder) -> Words:
    missed = percent(1 - shown.level)
    return Words(
        f"One bar per adversary: the ε that it shows, too high in at most {missed} of audits like this one. The solid "
        "part, with its number, holds for any training. The pale part holds if the training is DP-SGD with the stated "
        "sampling rate and steps. A solid bar beyond the claim refutes it; a pale one refutes that the training is "
        "what was accounted.",
        "A short bar does not mean that ε is small: a stronger adversary may show more.",
    )


CHART = Chart("ladder", "Adversary by adversary", "verdict", ("adversaries",), ladder, draw, words, follows=())
