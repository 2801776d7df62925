"""Coverage of the exact lower bounds by enumeration of all outcomes, where it is smallest and on the whole square.

For each pair of sizes, δ and level the bound of ε is computed for every outcome. Between two neighbouring values L of
the bound the probability of a bound that is too high is largest for rates with ε(FNR, FPR) just below L, so it is
computed there, along the boundary of R(L, δ), and on an even grid. The same is done for μ of Gaussian DP, without a δ.
The whole table takes about half an hour of CPU time.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from dataclasses import dataclass
from typing import get_args

import numpy as np
from scipy import special, stats

from epsgauge.bounds.exact import Direction, exact_lower_bound
from epsgauge.bounds.gaussian import gaussian_bound
from epsgauge.stats.arrays import Floats
from epsgauge.stats.region import eps_of_rates, lower_boundary, mu_of_rates
from epsgauge.stats.tally import Tally

SIZES = ((1, 1), (7, 7), (10, 5), (12, 20), (3, 30), (25, 25))
DELTAS = (0.0, 1e-5, 0.05, 0.2)
LEVELS = (0.95, 0.9)
QUANTITIES = ("eps", "mu")
BELOW = 1e-9  # how far below a value of the bound the true one is put


@dataclass(frozen=True)
class Case:
    """Everything that is fixed before the data, for ε at a δ."""

    n1: int
    n0: int
    delta: float
    level: float
    direction: Direction = "either"

    def bound(self, tally: Tally) -> float:
        return exact_lower_bound(tally, delta=self.delta, level=self.level, direction=self.direction)

    def of_rates(self, fnr: Floats, fpr: Floats) -> Floats:
        """The true value."""
        return eps_of_rates(fnr, fpr, delta=self.delta)

    def lower_edge(self, value: float, points: int) -> tuple[Floats, Floats]:
        """Rates whose true value is `value`, of attacks that are right."""
        x = np.sin(np.linspace(0.0, np.pi / 2, points)) ** 2
        y = lower_boundary(x, eps=value, delta=self.delta)
        vertex = (1.0 - self.delta) / (1.0 + np.exp(value))
        return np.concatenate([x, y, [vertex]]), np.concatenate([y, x, [vertex]])

    def bounds(self) -> Floats:
        """The bound for every outcome: rows are misses, columns false alarms."""
        out = np.empty((self.n1 + 1, self.n0 + 1))
        for fn, fp in np.ndindex(out.shape):
            if self.direction == "either" and fp > self.n0 - fp:  # the attack that says the opposite: the same bound
                continue
            tally = Tally(tp=self.n1 - fn, tn=self.n0 - fp, fp=fp, fn=fn)
            out[fn, fp] = self.bound(tally)
            if self.direction == "either":
                out[self.n1 - fn, self.n0 - fp] = out[fn, fp]
        return out

    def misses(self, wrong: Floats, fnr: Floats, fpr: Floats) -> Floats:
        """The probability, at each pair of rates, of the outcomes where `wrong` is 1."""
        rows = stats.binom.pmf(np.arange(self.n1 + 1), self.n1, fnr[:, None])
        cols = stats.binom.pmf(np.arange(self.n0 + 1), self.n0, fpr[:, None])
        return np.einsum("pi,ij,pj->p", rows, wrong, cols, optimize=True)

    def coverage_on_boundaries(self, bounds: Floats, points: int = 201) -> float:
        """The smallest coverage for rates whose true value is just below one of the bound."""
        worst = 0.0
        for value in np.unique(bounds[bounds > BELOW]):
            fnr, fpr = self.lower_edge(value - BELOW, points)
            fnr, fpr = np.concatenate([fnr, 1.0 - fnr]), np.concatenate([fpr, 1.0 - fpr])
            allowed = self.of_rates(fnr, fpr) < value  # rounding may put a point beyond
            missed = self.misses((bounds >= value).astype(np.float64), fnr[allowed], fpr[allowed])
            worst = max(worst, float(missed.max(initial=0.0)))
        return 1.0 - worst

    def coverage_on_grid(self, bounds: Floats, points: int = 101) -> float:
        """The smallest coverage over an even grid of the whole square."""
        side = np.linspace(0.0, 1.0, points)
        fnr, fpr = (q.ravel() for q in np.meshgrid(side, side))
        true = self.of_rates(fnr, fpr)
        rows = stats.binom.pmf(np.arange(self.n1 + 1), self.n1, fnr[:, None])
        cols = stats.binom.pmf(np.arange(self.n0 + 1), self.n0, fpr[:, None])
        order = np.argsort(bounds.ravel())
        values = bounds.ravel()[order]
        i, j = np.unravel_index(order, bounds.shape)
        worst = 1.0
        for part in range(0, len(true), 512):
            at = slice(part, part + 512)
            mass = np.cumsum(rows[at][:, i] * cols[at][:, j], axis=1)
            known = np.searchsorted(values, true[at], side="right") - 1  # outcomes whose bound is not too high
            worst = min(worst, float(mass[np.arange(len(known)), known].min()))
        return worst


@dataclass(frozen=True)
class MuCase(Case):
    """The same for μ of Gaussian DP; δ is of no account."""

    def bound(self, tally: Tally) -> float:
        return gaussian_bound(tally, delta=self.delta, level=self.level, direction=self.direction).mu

    def of_rates(self, fnr: Floats, fpr: Floats) -> Floats:
        return mu_of_rates(fnr, fpr)

    def lower_edge(self, value: float, points: int) -> tuple[Floats, Floats]:
        z = np.linspace(-7.0, 7.0, 2 * points + 1) - 0.5 * value
        return special.ndtr(z), special.ndtr(-z - value)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="*", default=[f"{a}x{b}" for a, b in SIZES], help="n1 x n0, such as 12x20")
    parser.add_argument("--deltas", nargs="*", type=float, default=DELTAS, help="of ε")
    parser.add_argument("--levels", nargs="*", type=float, default=LEVELS)
    parser.add_argument("--directions", nargs="*", choices=get_args(Direction), default=get_args(Direction))
    parser.add_argument("--quantities", nargs="*", choices=QUANTITIES, default=QUANTITIES)
    chosen = parser.parse_args()
    sizes = [tuple(int(n) for n in text.split("x")) for text in chosen.sizes]
    print("of   n1   n0  δ      level   direction  largest L  coverage: on boundaries  on the grid")
    broken = 0
    for (n1, n0), quantity in itertools.product(sizes, chosen.quantities):
        deltas = chosen.deltas if quantity == "eps" else [0.0]
        for delta, level, direction in itertools.product(deltas, chosen.levels, chosen.directions):
            case = (Case if quantity == "eps" else MuCase)(n1, n0, delta, level, direction)
            bounds = case.bounds()
            worst, on_grid = case.coverage_on_boundaries(bounds), case.coverage_on_grid(bounds)
            broken += min(worst, on_grid) < level
            shown = f"{delta:g}" if quantity == "eps" else "-"
            print(
                f"{quantity:3s} {n1:3d} {n0:4d}  {shown:6s} {level:<7g} {direction:9s} {bounds.max():10.5f}"
                f"  {worst:23.6f}  {on_grid:11.6f}{'  BELOW THE LEVEL' if min(worst, on_grid) < level else ''}",
                flush=True,
            )
    print("every coverage is at least its level" if not broken else f"{broken} cases are below their level")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
