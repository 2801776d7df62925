"""What the paper prints: its six tables and the summary, transcribed digit by digit.

Numbers are kept as text, because "0.90" and "0.9" promise different digits. "inf" is ∞ and "---" stands where
the paper prints a dash: nothing to compare. Percentages are without their sign for per cent.
"""

from __future__ import annotations

from dataclasses import dataclass

# The settings of every table; the paper leaves δ of the appendix's tables to the reader.
DELTA = 1e-5
LEVEL = 0.90


@dataclass(frozen=True)
class Method:
    """One method's columns in one row; Clopper-Pearson has no `vs_cp`."""

    low: str
    high: str
    width: str
    vs_cp: str | None = None


@dataclass(frozen=True)
class Row:
    """One line of a table: m samples per model, the counts and three methods."""

    m: int
    tp: int
    tn: int
    fp: int
    fn: int
    bayes: Method
    jeffreys: Method
    clopper_pearson: Method

    @property
    def methods(self) -> dict[str, Method]:
        """The columns under the names of `epsgauge.methods.table`."""
        return {"bayes": self.bayes, "jeffreys": self.jeffreys, "clopper-pearson": self.clopper_pearson}


@dataclass(frozen=True)
class Table:
    """A table of the paper; `name` is ours, `number` the paper's."""

    name: str
    number: int
    title: str
    rows: tuple[Row, ...]


def _row(counts: str, bayes: str, jeffreys: str, clopper_pearson: str) -> Row:
    m, tp, tn, fp, fn = (int(c) for c in counts.split())
    return Row(m, tp, tn, fp, fn, Method(*bayes.split()), Method(*jeffreys.split()), Method(*clopper_pearson.split()))


# One line per row: m TP TN FP FN, then for each method low, high, width and the change against Clopper-Pearson.
TABLES: tuple[Table, ...] = (
    Table(
        "sst2-nodp",
        3,
        "RoBERTa on SST-2, without DP",
        (
            _row("1    31  996  5 968", "1.08 2.7 1.6 -40", "0.69 3.1 2.4 -11", "0.60 3.3 2.7"),
            _row("10   31 1002  6 961", "0.96 2.4 1.4 -44", "0.58 2.9 2.3 -8", "0.50 3.0 2.5"),
            _row("100  30  979  6 985", "0.88 2.3 1.4 -44", "0.49 2.8 2.3 -8", "0.42 2.9 2.5"),
            _row("1000 25 1004  7 964", "0.62 2.0 1.4 -44", "0.22 2.5 2.3 -8", "0.14 2.6 2.5"),
        ),
    ),
    Table(
        "sst2-dp4",
        4,
        "RoBERTa on SST-2, with (4, 1e-5)-DP",
        (
            _row("1     2  487  0 511", "0.22 7.0 6.8 ---", "0 inf inf ---", "0 inf inf"),
            _row("10    0  510  1 489", "0.15 6.4 6.3 ---", "0 inf inf ---", "0 inf inf"),
            _row("100   2  501  0 497", "0.23 7.0 6.8 ---", "0 inf inf ---", "0 inf inf"),
            _row("1000  1  511  0 488", "0.15 6.5 6.35 ---", "0 inf inf ---", "0 inf inf"),
        ),
    ),
    Table(
        "cifar-avg-nodp",
        5,
        "CNN on CIFAR-10, average case, without DP",
        (
            _row("1    63 511 2 424", "2.5 4.8 2.3 -40", "2.1 5.3 3.2 -16", "2.0 5.8 3.8"),
            _row("10   84 503 5 408", "2.2 3.6 1.4 -46", "1.9 4.0 2.1 -19", "1.8 4.2 2.6"),
            _row("100  39 513 3 445", "1.7 3.7 2.0 -39", "1.4 4.2 2.8 -15", "1.2 4.5 3.3"),
            _row("1000 21 534 2 443", "1.4 3.8 2.4 -44", "0.90 4.5 3.6 -16", "0.74 5.0 4.3"),
        ),
    ),
    Table(
        "cifar-worst-nodp",
        6,
        "CNN on CIFAR-10, worst case, without DP",
        (
            _row("1    179 510  3 308", "3.3 5.2 1.9 -34", "3.0 5.5 2.5 -13", "2.9 5.8 2.9"),
            _row("10   103 416 92 389", "0.015 0.36 0.35 -31", "0 0.50 0.5 -2", "0 0.51 0.51"),
            _row("100   81 451 65 403", "0.052 0.54 0.49 -32", "0 0.71 0.71 -2.7", "0 0.73 0.73"),
            _row("1000  82 455 81 382", "0.016 0.39 0.37 -35", "0 0.55 0.55 -3.5", "0 0.57 0.57"),
        ),
    ),
    Table(
        "cifar-worst-dp10",
        7,
        "CNN on CIFAR-10, worst case, with (10, 1e-5)-DP",
        (
            _row("1    487 1 512 0", "0.15 6.4 6.3 ---", "0 inf inf ---", "0 inf inf"),
            _row("10   492 0 508 0", "0.098 5.9 5.8 ---", "0 inf inf ---", "0 inf inf"),
            _row("100  484 0 516 0", "0.098 6.0 5.9 ---", "0 inf inf ---", "0 inf inf"),
            _row("1000 461 2 534 3", "0.062 2.1 2.0 -46", "0 3.1 3.1 -16", "0 3.7 3.7"),
        ),
    ),
    Table(
        "cifar-avg-dp10",
        8,
        "CNN on CIFAR-10, average case, with (10, 1e-5)-DP",
        (
            _row("1    175 325 188 312", "0.0054 0.17 0.16 -38", "0 0.25 0.25 -4", "0 0.26 0.26"),
            _row("10   173 326 182 319", "0.0055 0.17 0.16 -38", "0 0.26 0.26 0", "0 0.26 0.26"),
            _row("100  183 317 199 301", "0.0052 0.16 0.15 -40", "0 0.24 0.24 -4", "0 0.25 0.25"),
            _row("1000 177 327 209 287", "0.0052 0.16 0.15 -40", "0 0.24 0.25 -4", "0 0.25 0.25"),
        ),
    ),
)

# Table 2 prints the rows with m = 1 again, in part with other digits; the counts are those of the tables above.
SUMMARY = Table(
    "summary",
    2,
    "The rows with m = 1 of all six tables",
    (
        _row("1  31 996   5 968", "1.08 2.7 1.6 -40", "0.69 3.1 2.4 -11", "0.60 3.3 2.7"),
        _row("1   2 487   0 511", "0.22 7.0 6.8 ---", "0 inf inf ---", "0 inf inf"),
        _row("1  63 511   2 424", "2.5 4.8 2.3 -40", "2.1 5.3 3.2 -16", "2.0 5.8 3.8"),
        _row("1 175 325 188 312", "0.005 0.17 0.16 -38", "0 0.25 0.25 -4", "0 0.26 0.26"),
        _row("1 179 510   3 308", "3.3 5.2 1.9 -34", "3.0 5.5 2.5 -13", "2.9 5.8 2.9"),
        _row("1 487   1 512   0", "0.15 6.4 6.3 ---", "0 inf inf ---", "0 inf inf"),
    ),
)
# What each row of the summary is called; the rows are in the paper's order.
SUMMARY_LABELS = (
    "SST-2, no DP",
    "SST-2, ε = 4",
    "CIFAR-10 average, no DP",
    "CIFAR-10 average, ε = 10",
    "CIFAR-10 worst, no DP",
    "CIFAR-10 worst, ε = 10",
)


def table(name: str) -> Table:
    """The table of this name."""
    return {t.name: t for t in (*TABLES, SUMMARY)}[name]
