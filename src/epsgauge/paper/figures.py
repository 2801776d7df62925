"""Which tallies go into which figure of the paper, and what is said below it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from epsgauge.errors import InvalidInput
from epsgauge.figures import cdfs, contours, density, region
from epsgauge.paper import canvas, convergence, draw, printed, sizes
from epsgauge.paper.examples import WORKED, WORKED_DELTA, WORKED_LEVEL
from epsgauge.stats.posterior import Posterior, estimate
from epsgauge.stats.tally import Tally

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class PaperFigure:
    """A figure of the paper: its number there, our name, a caption and how it is made."""

    name: str
    number: str
    title: str
    caption: str
    make: Callable[[], Figure]

    @property
    def stem(self) -> str:
        """The name of its files, without suffix."""
        return f"figure-{self.number}-{self.name}"


def posterior_of(table: str, m: int) -> Posterior:
    """The posterior of ε for one row of a printed table."""
    row = next(row for row in printed.table(table).rows if row.m == m)
    return estimate(Tally(tp=row.tp, tn=row.tn, fp=row.fp, fn=row.fn), delta=printed.DELTA)


def _density() -> Figure:
    return draw.density(density.density(posterior_of("cifar-worst-dp10", 1), level=printed.LEVEL, claimed=10.0))


def _region() -> Figure:
    return draw.region(region.region(eps=1.0, delta=0.1), [region.region(eps=e, delta=0.1) for e in (2.0, 4.0)])


def _contours() -> Figure:
    posterior = estimate(WORKED, delta=WORKED_DELTA)
    return draw.contours(contours.contours(posterior, level=WORKED_LEVEL, method="clopper-pearson"))


def _sizes() -> Figure:
    n_samples = np.arange(100, 1601, 10)
    return draw.sizes(sizes.sizes(n_samples, accuracy=0.6, half_width=0.15, delta=printed.DELTA, level=printed.LEVEL))


def _cdfs(table: str) -> Callable[[], Figure]:
    def make() -> Figure:
        return draw.cdfs(cdfs.cdfs({f"m = {m}": posterior_of(table, m) for m in (1, 10, 100, 1000)}))

    return make


def _advantage() -> Figure:
    return draw.advantage(region.advantage(eps=1.0, delta=0.1))


def _convergence() -> Figure:
    titles, panels = [], []
    for letter, t in zip("abcd", convergence.FOUND, strict=True):
        panel = contours.contours(estimate(t, delta=convergence.DELTA), level=convergence.LEVEL)
        low, high, found = panel.credible.inner.eps, panel.credible.outer.eps, "" if letter == "a" else "found: "
        titles.append(
            f"({letter}) N = {t.n_samples},  ε in [{low:#.2g}, {high:#.2g}]\n"
            f"{found}TP {t.tp}, TN {t.tn}, FP {t.fp}, FN {t.fn}"
        )
        panels.append(panel)
    return draw.convergence(panels, titles)


_CDF = "Posterior distribution functions of ε for m samples per model, from the tallies of Table {}, δ = 1e-5."

FIGURES: tuple[PaperFigure, ...] = (
    PaperFigure(
        "density",
        "1",
        "Posterior density and both intervals",
        "CIFAR-10, worst case, trained with ε = 10: TP 487, TN 1, FP 512, FN 0 at δ = 1e-5. The axis of the paper's "
        "figure ends below the density at 0, which is 0.325: most likely it shows the formula of Appendix C, which "
        "lacks the length of the boundary element.",
        _density,
    ),
    PaperFigure(
        "region",
        "2",
        "The privacy region and its vertices",
        "R(ε, δ) grows with ε; v = (1 − δ)/(1 + e^ε). It is symmetric about the point (½, ½).",
        _region,
    ),
    PaperFigure(
        "contours",
        "3",
        "Intervals as regions",
        "Joint posterior of (FNR, FPR) for TP 65, TN 75, FP 25, FN 35 at δ = 0.05 and 95 %. The rectangle is that of "
        "Clopper-Pearson, not of Jeffreys as the paper says; it holds 96.3 % of the posterior, and the area between "
        "its two regions 99.8 %.",
        _contours,
    ),
    PaperFigure(
        "sizes",
        "4",
        "Interval against number of samples",
        "Ends of the 90 % interval for an attack of 60 % balanced accuracy at δ = 1e-5. An interval of ± 0.15 (grey) "
        "takes 544 samples with the Bayesian method, 1423 with Jeffreys and 1478 with Clopper-Pearson.",
        _sizes,
    ),
    PaperFigure("cifar10-average", "5a", "CIFAR-10, average case, ε = 10", _CDF.format(8), _cdfs("cifar-avg-dp10")),
    PaperFigure("cifar10-worst", "5b", "CIFAR-10, worst case, ε = 10", _CDF.format(7), _cdfs("cifar-worst-dp10")),
    PaperFigure("sst2-dp", "6a", "SST-2, ε = 4", _CDF.format(4), _cdfs("sst2-dp4")),
    PaperFigure("sst2-no-dp", "6b", "SST-2, without DP", _CDF.format(3), _cdfs("sst2-nodp")),
    PaperFigure(
        "advantage",
        "7",
        "The bound on the advantage",
        "The line of the largest advantage, (e^ε − 1 + 2δ)/(e^ε + 1), meets R(ε, δ) in its vertex (Theorem B.2).",
        _advantage,
    ),
    PaperFigure(
        "convergence",
        "8",
        "Convergence of the joint posterior",
        "95 % credible intervals at δ = 0.01. The paper prints the intervals but, beyond 4 trials, not the tallies: "
        "those of (b), (c) and (d) are found, not printed; others fit the printed intervals too.",
        _convergence,
    ),
)
NAMES = tuple(figure.name for figure in FIGURES)


def chosen(only: list[str] | None) -> tuple[PaperFigure, ...]:
    """The figures of these names, all without any."""
    for name in only or []:
        if name not in NAMES:
            raise InvalidInput(f"a figure must be one of {', '.join(NAMES)}, but got {name!r}.")
    return tuple(figure for figure in FIGURES if not only or figure.name in only)


def write(figure: PaperFigure, out: Path) -> tuple[Path, ...]:
    """Draw a figure into the folder `out`, as SVG and PNG."""
    if out.exists() and not out.is_dir():
        raise InvalidInput(f"--out must be a folder, but {str(out)!r} is a file. Give another path.")
    drawn = figure.make()
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(
            f"--out must be a folder that can be made, but {str(out)!r} cannot: {error.strerror}."
        ) from None
    title = f"Figure {figure.number}: {figure.title}"
    paths = (out / f"{figure.stem}.{kind}" for kind in ("svg", "png"))
    return tuple(canvas.save(drawn, path, title=title, description=figure.caption) for path in paths)


def show(figure: PaperFigure, paths: tuple[Path, ...], console: Console) -> None:
    """Say what was drawn, and where."""
    console.print(Text.assemble((f"Figure {figure.number}", "bold"), f"  {figure.title}"))
    console.print(Padding(Text(figure.caption, style="dim"), (0, 0, 0, 2)))
    for path in paths:
        console.print(Text(f"  {path}"), no_wrap=True, overflow="ignore", crop=False)
