"""The numbers that the paper's text gives outside its tables, recomputed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from epsgauge.figures.contours import rectangle
from epsgauge.methods.intervals import Row, intervals
from epsgauge.methods.table import QUICK
from epsgauge.paper import convergence, printed
from epsgauge.paper.compare import Compared
from epsgauge.paper.density import printed_density_mass
from epsgauge.paper.tables import summary, tally_of
from epsgauge.stats import rates, region
from epsgauge.stats.posterior import estimate
from epsgauge.stats.sizing import largest_eps, sample_size
from epsgauge.stats.tally import Tally

# The worked example of §3.2; this δ and level give the paper's numbers, which state another level and no δ.
WORKED = Tally(tp=65, tn=75, fp=25, fn=35)
WORKED_DELTA, WORKED_LEVEL, STATED_LEVEL = 0.05, 0.95, 0.90


@dataclass(frozen=True)
class Item:
    """One number of an example."""

    label: str
    compared: Compared


@dataclass(frozen=True)
class Example:
    """Some numbers that belong together; `where` is their place in the paper."""

    name: str
    where: str
    title: str
    items: tuple[Item, ...]

    def cells(self) -> Iterator[Compared]:
        return (item.compared for item in self.items)


def examples() -> tuple[Example, ...]:
    """All of them, in the paper's order."""
    return (
        perfect_attack(),
        worked_example(),
        sample_sizes(),
        narrower(),
        numbers_of_samples(),
        heuristic_errors(),
        corner_case(),
        advantage_bound(),
        density_formula(),
        convergence_panels(),
    )


def perfect_attack() -> Example:
    """Lower ends for 2,000 right guesses."""
    tally = Tally(tp=1000, tn=1000, fp=0, fn=0)
    every = intervals(tally, delta=printed.DELTA, level=0.90)
    one_sided = {
        m: largest_eps(2000, delta=printed.DELTA, level=0.90, method=m) for m in ("clopper-pearson", "jeffreys")
    }
    return Example(
        "perfect-attack",
        "§3.1",
        "ε− of a perfect attack, 2,000 trials, δ = 1e-5, 90 %",
        (
            _item("Clopper-Pearson, two-sided", "5.6", float(every["clopper-pearson"].low), decimals=4),
            _item("Clopper-Pearson, one-sided", "5.81", one_sided["clopper-pearson"], decimals=4),
            _item("Jeffreys, one-sided", "6.25", one_sided["jeffreys"], decimals=4),
            _item("Bayesian, lower end of the credible interval", None, float(every["bayes"].low)),
        ),
    )


def worked_example() -> Example:
    """The intervals of 200 trials, and how much of the posterior the rectangle and the regions hold."""
    posterior = estimate(WORKED, delta=WORKED_DELTA)
    stated = intervals(WORKED, delta=WORKED_DELTA, level=STATED_LEVEL)
    found = intervals(WORKED, delta=WORKED_DELTA, level=WORKED_LEVEL)
    clopper_pearson, jeffreys = found["clopper-pearson"], found["jeffreys"]
    between = float(posterior.cdf(clopper_pearson.high) - posterior.cdf(clopper_pearson.low))
    box = rectangle(posterior, method="clopper-pearson", level=WORKED_LEVEL)
    hatched = float(posterior.cdf(found["bayes"].high) - posterior.cdf(found["bayes"].low))
    return Example(
        "worked-example",
        "§3.2",
        "TP 65, TN 75, FP 25, FN 35 at δ = 0.05",
        (
            *_ends("Bayesian 90 %, as the paper says", ("0.522", "1.268"), stated["bayes"], "label-bayes"),
            *_ends("Bayesian 95 %", ("0.522", "1.268"), found["bayes"], "integration"),
            *_ends("Jeffreys 90 %, as the paper says", ("0.295", "1.489"), stated["jeffreys"], "label-jeffreys"),
            *_ends("Clopper-Pearson 95 %", ("0.295", "1.489"), clopper_pearson, None),
            _item("Jeffreys 95 %, ε−", None, float(jeffreys.low)),
            _item("Jeffreys 95 %, ε+", None, float(jeffreys.high)),
            _item("mass in the rectangle of rates, %", "96.3", 100 * box.mass, decimals=3),
            _item("mass between its two regions, %", "99.8", 100 * between, decimals=3),
            _item("mass between the Bayesian regions, %", "95", 100 * hatched, decimals=3),
        ),
    )


def sample_sizes() -> Example:
    """How many samples make an interval of ± 0.15."""
    n = {m: sample_size(accuracy=0.6, half_width=0.15, delta=printed.DELTA, level=0.90, method=m) for m in QUICK}
    sizes = {m: float("inf") if size is None else float(size) for m, size in n.items()}
    return Example(
        "sample-sizes",
        "Figure 4",
        "samples for ε ± 0.15 at 60 % accuracy, δ = 1e-5, 90 %",
        (
            _item("Bayesian", "500", sizes["bayes"], unit=100.0, decimals=0),
            _item("Jeffreys", None, sizes["jeffreys"], decimals=0),
            _item("Clopper-Pearson", "1500", sizes["clopper-pearson"], unit=100.0, decimals=0),
        ),
    )


def narrower() -> Example:
    """By how much the credible interval is narrower, over the rows with m = 1."""
    cells = [row.methods["bayes"].vs_cp for row in summary().rows]
    changes = [-cell.recomputed for cell in cells if cell is not None and np.isfinite(cell.recomputed)]
    return Example(
        "narrower",
        "§4.2",
        "how much narrower the Bayesian interval is than Clopper-Pearson's, m = 1",
        (
            _item("least, %", "34", min(changes), "range"),
            _item("most, %", "40", max(changes), "range"),
        ),
    )


def numbers_of_samples() -> Example:
    """What the tallies say about N and about the number of models, N/m of each row."""
    sst2 = tally_of(printed.table("sst2-nodp").rows)
    return Example(
        "numbers-of-samples",
        "§4.2, §5.2",
        "samples and models of the experiments",
        (
            _item("samples of SST-2 without DP", "1000", float(sst2.n_samples[0]), "samples", decimals=0),
            _item("models trained in all", "6666", _models(), "samples", decimals=0),
        ),
    )


def heuristic_errors() -> Example:
    """How far the lower end moves when m samples are drawn from one model."""
    low = {
        t.name: np.asarray(intervals(tally_of(t.rows), delta=printed.DELTA, level=printed.LEVEL)["bayes"].low)
        for t in printed.TABLES
    }
    moved = {name: np.abs(ends - ends[0]) for name, ends in low.items()}
    average, worst = moved["cifar-avg-dp10"], moved["cifar-worst-dp10"]
    return Example(
        "heuristic-errors",
        "§5.2",
        "distance of the lower end from that of m = 1",
        (
            _item("CIFAR-10 average, ε = 10, m = 10", "0", float(average[1]), unit=0.001, decimals=4),
            _item("CIFAR-10 average, ε = 10, m = 100", "0.001", float(average[2]), "error"),
            _item("CIFAR-10 average, ε = 10, m = 1000", "0.001", float(average[3]), "error"),
            _item("CIFAR-10 worst, ε = 10, m = 10", "0.05", float(worst[1]), decimals=4),
            _item("CIFAR-10 worst, ε = 10, m = 100", "0.05", float(worst[2]), decimals=4),
            _item("SST-2, ε = 4, largest", "0.07", float(moved["sst2-dp4"].max()), decimals=4),
            _item("SST-2 without DP, m = 10", "0.12", float(moved["sst2-nodp"][1]), decimals=4),
        ),
    )


def corner_case() -> Example:
    """Where Clopper-Pearson's rectangle touches FPR = 0."""
    tally = Tally(tp=90, tn=100, fp=0, fn=10)
    x = float(rates.clopper_pearson(tally.fn, tally.n_positive, level=0.95).high)
    y = float(rates.clopper_pearson(tally.fp, tally.n_negative, level=0.95).high)
    low = float(intervals(tally, delta=printed.DELTA, level=0.90)["clopper-pearson"].low)
    return Example(
        "corner-case",
        "Appendix A",
        "TP 90, TN 100, FP 0, FN 10 at δ = 1e-5, Clopper-Pearson 90 %",
        (
            _item("Eq. 1 at (FNR+, FPR+)", "3.124", float(region.eps_of_rates(x, y, delta=printed.DELTA))),
            _item("its minimum over the rectangle", "1.736", low, "minimum"),
            _item("its finite term at (FNR+, 0)", "1.736", float(np.log((1 - printed.DELTA) / x))),
        ),
    )


def advantage_bound() -> Example:
    """Theorem B.2: the bound is the advantage at the vertex of the region, for any ε and δ."""
    gaps = [
        abs(float(region.advantage_bound(eps=e, delta=d)) - (1 - region.vertices(eps=e, delta=d)[1].sum()))
        for e in (0.0, 0.1, 1.0, 4.0, 10.0)
        for d in (0.0, 1e-5, 0.1)
    ]
    return Example(
        "advantage-bound",
        "Theorem B.2",
        "the line of the bound goes through the vertex, 15 pairs (ε, δ)",
        (_item("largest distance", "0", max(gaps), unit=1e-12, decimals=0),),
    )


def density_formula() -> Example:
    """The total mass that the printed formula of the density gives for the worked example."""
    swapped = Tally(tp=WORKED.tn, tn=WORKED.tp, fp=WORKED.fn, fn=WORKED.fp)
    return Example(
        "density-formula",
        "Appendix C",
        "mass of the density as printed, δ = 1e-5",
        (
            *(
                _item(label, "1", printed_density_mass(t, delta=printed.DELTA), "density", unit=0.001, decimals=3)
                for label, t in (("TP 65, TN 75, FP 25, FN 35", WORKED), ("the same with FNR and FPR swapped", swapped))
            ),
        ),
    )


def convergence_panels() -> Example:
    """Figure 8; the tallies of (b), (c) and (d) are found, not printed."""
    items: list[Item] = []
    for letter, tally, (low, high) in zip("abcd", convergence.FOUND, convergence.PRINTED, strict=True):
        ours = estimate(tally, delta=convergence.DELTA).interval(convergence.LEVEL)
        found = "" if letter == "a" else ", found"
        label = f"({letter}) N = {tally.n_samples}{found}: TP {tally.tp}, TN {tally.tn}, FP {tally.fp}, FN {tally.fn}"
        items += [_item(f"{label}, ε−", low, float(ours.low)), _item(f"{label}, ε+", high, float(ours.high))]
    return Example(
        "convergence",
        "Figure 8",
        "95 % credible intervals at δ = 0.01; the paper prints no tallies",
        tuple(items),
    )


def _item(
    label: str,
    paper: str | None,
    ours: float,
    note: str | None = None,
    *,
    unit: float | None = None,
    decimals: int | None = None,
) -> Item:
    return Item(label, Compared(paper, ours, unit, decimals).explained(note))


def _ends(label: str, paper: tuple[str, str], ours: Row, note: str | None) -> tuple[Item, Item]:
    return (
        _item(f"{label}, ε−", paper[0], float(ours.low), note),
        _item(f"{label}, ε+", paper[1], float(ours.high), note),
    )


def _models() -> float:
    """N/m models for each row of the six tables."""
    return sum((row.tp + row.tn + row.fp + row.fn) / row.m for table in printed.TABLES for row in table.rows)
