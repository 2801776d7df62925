"""Why a printed number differs from the recomputed one: one sentence each, and the rules that choose it for a table."""

from __future__ import annotations

from epsgauge.paper import printed
from epsgauge.paper.compare import rounds_to, unit_of, value_of

NOTES: dict[str, str] = {
    "integration": (
        "The paper's last digit of this Bayesian end is off, most likely because its two-dimensional numerical "
        "integral is loose; ours is checked against ball arithmetic."
    ),
    "corner": (
        "With a count of 0 the density of a rate, a Beta(½, ·), is infinite at the edge, and a two-dimensional "
        "numerical integral is looser still: at the worst it gives 5.9 for 6.44."
    ),
    "up": "The paper rounds this end up instead of to the nearest.",
    "ends": "The paper subtracts its rounded ends; the width of the exact interval rounds to another digit.",
    "widths": "The paper divides its rounded widths; from the exact widths the percentage is another.",
    "side": (
        "The paper divides its rounded widths and then rounds to the wrong side: −39.47 to −40, −13.8 to −13, "
        "−32.9 to −32."
    ),
    "slip": (
        "The printed width, 2.6 or 0.25, is not the difference of the printed ends, 2.4 or 0.24; the percentages "
        "beside 2.6 follow from that slip."
    ),
    "range": "With the exact widths of the rows with m = 1 and a finite Clopper-Pearson interval it is 35.0–41.8 %.",
    "label-bayes": "The paper says 90 % and gives no δ, but the numbers are those of 95 % at δ = 0.05.",
    "label-jeffreys": (
        "The paper says Jeffreys at 90 %, but the numbers are those of Clopper-Pearson at 95 % and δ = 0.05."
    ),
    "minimum": (
        "At FPR = 0 the other term of Eq. 1 is infinite, so ε is too; the minimum over the rectangle is at "
        "(FNR+, FPR+), and 1.736 is only the finite term at (FNR+, 0)."
    ),
    "samples": (
        "The text says 1,000 samples and 1,111 models for every setting; each row of SST-2 without DP sums to 2,000 "
        "samples, and those four rows take 2,222 models."
    ),
    "error": "The lower ends of Table 8, printed or exact, differ by 0.0002.",
    "density": (
        "The printed integral has the unit normal and dx; with the boundary's element dL, which has the length "
        "√(1 + slope²) dx, the mass is 1 − F(0), as that of `Posterior.pdf` is."
    ),
}


def of_end(row: printed.Row, method: str) -> str | None:
    """For an end of an interval; no rule covers Clopper-Pearson, whose ends all agree."""
    if method == "bayes":
        return "corner" if 0 in (row.tp, row.tn, row.fp, row.fn) else "integration"
    return "up" if method == "jeffreys" else None


def of_width(row: printed.Row, method: str) -> str:
    return "slip" if _slipped(row.methods[method]) else "ends"


def of_percentage(row: printed.Row, method: str) -> str | None:
    """Found by doing what the paper must have done: dividing what it prints."""
    own, base = row.methods[method], row.clopper_pearson
    if own.vs_cp is None:
        return None
    if _slipped(base):
        return "slip"
    ratios = [100 * (value_of(own.width) / value_of(base.width) - 1), 100 * (_gap(own) / _gap(base) - 1)]
    if any(rounds_to(ratio, own.vs_cp) for ratio in ratios):
        return "widths"
    return "side" if abs(ratios[0] - value_of(own.vs_cp)) < unit_of(own.vs_cp) else None


def _gap(method: printed.Method) -> float:
    return value_of(method.high) - value_of(method.low)


def _slipped(method: printed.Method) -> bool:
    return not rounds_to(_gap(method), method.width)
