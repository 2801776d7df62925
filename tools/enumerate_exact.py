"""Coverage of the exact lower bound by enumeration of all outcomes, where it is smallest and on the whole square.

For each pair of sizes, δ and level the bound is computed for every outcome. Between two neighbouring values L of the
bound the probability of a bound that is too high is largest for rates with ε(FNR, FPR) just below L, so it is computed
there, along the boundary of R(L, δ), and on an even grid. The whole table takes about half an hour of CPU time.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from dataclasses import dataclass
from typing import get_args

import numpy as np
from scipy import stats

from epsgauge.bounds.exact import Direction, exact_lower_bound
from epsgauge.stats.arrays import Floats
from epsgauge.stats.region import eps_of_rates, lower_boundary
from epsgauge.stats.tally import Tally

SIZES = ((1, 1), (7, 7), (10, 5), (12, 20), (3, 30), (25, 25))
DELTAS = (0.0, 1e-5, 0.05, 0.2)
LEVELS = (0.95, 0.9)
BELOW = 1e-9  # how far below a value of the bound the true ε is put


@dataclass(frozen=True)
class Case:
    """Everything that is fixed before the data."""

    n1: int
    n0: int
    delta: float
    level: float
    direction: Direction = "either"

    def bounds(self) -> Floats:
        """The bound for every outcome: rows are misses, columns false alarms."""
        out = np.empty((self.n1 + 1, self.n0 + 1))
        for fn, fp in np.ndindex(out.shape):
            if self.direction == "either" and fp > self.n0 - fp:  # the attack that says the opposite: the same bound
                continue
            tally = Tally(tp=self.n1 - fn, tn=self.n0 - fp, fp=fp, fn=fn)
            out[fn, fp] = exact_lower_bound(tally, delta=self.delta, level=self.level, direction=self.direction)
            if self.direction == "either":
                out[self.n1 - fn, self.n0 - fp] = out[fn, fp]
        return out

    def misses(self, wrong: Floats, fnr: Floats, fpr: Floats) -> Floats:
        """The probability, at each pair of rates, of the outcomes where `wrong` is 1."""
        rows = stats.binom.pmf(np.arange(self.n1 + 1), self.n1, fnr[:, None])
        cols = stats.binom.pmf(np.arange(self.n0 + 1), self.n0, fpr[:, None])
        return np.einsum("pi,ij,pj->p", rows, wrong, cols, optimize=True)

    def coverage_on_boundaries(self, bounds: Floats, points: int = 201) -> float:
        """The smallest coverage for rates whose ε is just below a value of the bound."""
        worst = 0.0
        for value in np.unique(bounds[bounds > BELOW]):
            x = np.sin(np.linspace(0.0, np.pi / 2, points)) ** 2
            y = lower_boundary(x, eps=value - BELOW, delta=self.delta)
            vertex = (1.0 - self.delta) / (1.0 + np.exp(value - BELOW))
            fnr, fpr = np.concatenate([x, y, [vertex]]), np.concatenate([y, x, [vertex]])
            fnr, fpr = np.concatenate([fnr, 1.0 - fnr]), np.concatenate([fpr, 1.0 - fpr])
            allowed = eps_of_rates(fnr, fpr, delta=self.delta) < value  # rounding may put a point beyond
            missed = self.misses((bounds >= value).astype(np.float64), fnr[allowed], fpr[allowed])
            worst = max(worst, float(missed.max(initial=0.0)))
        return 1.0 - worst

    def coverage_on_grid(self, bounds: Floats, points: int = 101) -> float:
        """The smallest coverage over an even grid of the whole square."""
        side = np.linspace(0.0, 1.0, points)
        fnr, fpr = (q.ravel() for q in np.meshgrid(side, side))
        eps = eps_of_rates(fnr, fpr, delta=self.delta)
        rows = stats.binom.pmf(np.arange(self.n1 + 1), self.n1, fnr[:, None])
        cols = stats.binom.pmf(np.arange(self.n0 + 1), self.n0, fpr[:, None])
        order = np.argsort(bounds.ravel())
        values = bounds.ravel()[order]
        i, j = np.unravel_index(order, bounds.shape)
        worst = 1.0
        for part in range(0, len(eps), 512):
            at = slice(part, part + 512)
            mass = np.cumsum(rows[at][:, i] * cols[at][:, j], axis=1)
            known = np.searchsorted(values, eps[at], side="right") - 1  # outcomes whose bound is at most ε
            worst = min(worst, float(mass[np.arange(len(known)), known].min()))
        return worst


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="*", default=[f"{a}x{b}" for a, b in SIZES], help="n1 x n0, such as 12x20")
    parser.add_argument("--deltas", nargs="*", type=float, default=DELTAS)
    parser.add_argument("--levels", nargs="*", type=float, default=LEVELS)
    parser.add_argument("--directions", nargs="*", choices=get_args(Direction), default=get_args(Direction))
    chosen = parser.parse_args()
    sizes = [tuple(int(n) for n in text.split("x")) for text in chosen.sizes]
    print("  n1   n0  δ      level   direction  largest L  coverage: on boundaries  on the grid")
    broken = 0
    for (n1, n0), delta, level, direction in itertools.product(sizes, chosen.deltas, chosen.levels, chosen.directions):
        case = Case(n1, n0, delta, level, direction)
        bounds = case.bounds()
        worst, on_grid = case.coverage_on_boundaries(bounds), case.coverage_on_grid(bounds)
        broken += min(worst, on_grid) < level
        print(
            f"{n1:4d} {n0:4d}  {delta:<6g} {level:<7g} {direction:9s} {bounds.max():10.5f}"
            f"  {worst:23.6f}  {on_grid:11.6f}{'  BELOW THE LEVEL' if min(worst, on_grid) < level else ''}",
            flush=True,
        )
    print("every coverage is at least its level" if not broken else f"{broken} cases are below their level")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
