"""Reference values of the posterior of epsilon in ball arithmetic, and the library compared with fresh ones.

A corner outside the privacy region holds an integral of one error rate's density times the other's
distribution function. Both are taken along s, with x = (1-delta) e^-eps sin^2 s and y = (1-delta) cos^2 s:
there the densities are products of powers of sines, so their zeros bound them on any disc. Each panel is
interpolated at Chebyshev points, with an error that follows from such a bound, and halved until that error is
small. Every value is an enclosure: Arb balls widened by the proven truncation errors.
"""

import argparse
import cmath
import functools
import itertools
import json
import math
import random
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flint import arb, arb_mat, ctx

DELTAS = (0.0, 1e-9, 1e-7, 1e-6, 1e-5, 1e-3, 0.01, 0.05, 0.1, 0.3, 0.5)
ALPHAS = (0.1, 0.05, 0.01, 1e-3, 1e-6, 1e-9)
DIGITS = 18
RADIUS = 10.0 ** -(DIGITS + 1.5)  # relative radius of a value that has its digits
FLOOR = 1e-80  # smaller values are written as 0
STEPS = (1e-30, 1e-60, 1e-110)  # absolute tolerances, tried in turn until the digits are there
MARGIN = 0.01  # added to logarithms of bounds, far above the rounding of the floats they are made of
RHOS = (3.0, 5.0, 9.0, 20.0)  # Bernstein ellipses tried for a panel's error
TOP = math.pi / 2
LIMITS = {"cdf": 1e-11, "pdf": 1e-8, "quantile": 1e-8, "quantile at alpha 1e-9": 1e-6}
NOTE = (
    f"Posterior of epsilon in ball arithmetic (Arb); {DIGITS} digits, values below {FLOOR} are 0. "
    "alpha is two-sided: eps_lo is the alpha/2 quantile (0 where F(0) >= alpha/2), eps_hi the 1-alpha/2 one. "
    "F: cdf, S: 1-F, pdf: density of the continuous part."
)
Case = dict[str, Any]
Zeros = dict[complex, float]


@functools.cache
def _rule(n: int, bits: int) -> tuple[list[arb], arb_mat]:
    """Chebyshev nodes and the matrix of integrals from -1 to each node and, last row, to 1."""
    angles = [arb.pi() * (2 * k + 1) / (2 * n) for k in range(n)]
    series = arb_mat([[(2 if m else 1) * (m * a).cos() / n for a in angles] for m in range(n)])

    def primitive(m: int, a: arb) -> arb:  # of the polynomial T_m at cos(a)
        if m < 2:
            return (2 * a).cos() / 4 if m else a.cos()
        return ((m + 1) * a).cos() / (2 * (m + 1)) - ((m - 1) * a).cos() / (2 * (m - 1))

    rows = [[primitive(m, a) - primitive(m, arb.pi()) for m in range(n)] for a in [*angles, arb(0)]]
    return [a.cos() for a in angles], arb_mat(rows) * series


@dataclass(frozen=True)
class Rate:
    """Density in s of a Beta(hits+1/2, misses+1/2) variable k sin^2 s, or k cos^2 s when mirrored."""

    hits: int
    misses: int
    k: arb
    mu: arb  # 1 - k, given apart because it may be tiny
    mirrored: bool = False

    @functools.cached_property
    def log_scale(self) -> arb:
        a, b = arb(self.hits) + 0.5, arb(self.misses) + 0.5
        return arb(2).log() + a * self.k.log() + (a + b).lgamma() - a.lgamma() - b.lgamma()

    @functools.cached_property
    def zeros(self) -> Zeros:
        """The density is a constant times the product of these powers of sin(s - zero)."""
        own, other = (TOP, 0.0) if self.mirrored else (0.0, TOP)
        if self.mu == 0:
            return {complex(own): 2 * self.hits, complex(other): 2 * self.misses}
        # 1 - k sin^2 s = k cos(s - shift) cos(s + shift)
        shift, power = 1j * math.asinh(float((self.mu / self.k).sqrt().mid())), self.misses - 0.5
        return {complex(own): 2 * self.hits, complex(other): 1, other + shift: power, other - shift: power}

    @functools.cached_property
    def log_constant(self) -> float:
        return float((self.log_scale + (self.misses - 0.5) * self.k.log()).mid())

    def at(self, sin: arb, cos: arb) -> arb:
        sin, cos = (cos, sin) if self.mirrored else (sin, cos)
        log = self.log_scale + (cos * cos + self.mu * sin * sin).log() * (self.misses - 0.5)
        return (log + sin.log() * (2 * self.hits) if self.hits else log).exp() * cos


def _log_bound(zeros: Zeros, log_constant: float, centre: float, radius: float) -> float:
    """Logarithm of a bound of |product| on a disc; inf when it may not be analytic there.

    Far zeros enter by a Taylor expansion of the logarithm at the centre, where large powers cancel.
    """
    log, slope, curvature = log_constant + MARGIN, 0j, 0.0
    for zero, power in zeros.items():
        offset = centre - zero
        wide, high, distance = abs(offset.real) + radius, abs(offset.imag), abs(offset)
        if radius > distance / 2 and power >= 0 and power == int(power):
            log += power * math.log(math.hypot(math.sin(min(wide, TOP)), math.sinh(high + radius)))
        elif radius >= 0.999 * distance or wide > 3.0:
            return math.inf
        else:
            low = max(math.sin(wide) / wide * (distance - radius), math.sinh(max(high - radius, 0.0)))
            log += power * math.log(abs(cmath.sin(offset)))
            slope += power / cmath.tan(offset)
            curvature += abs(power) / low**2
    return log + abs(slope) * radius + curvature * radius**2 / 2


def _ball(log_radius: float) -> arb:
    return arb(0, math.exp(max(log_radius, -690.0)))


def _dot(a: list[arb], b: list[arb]) -> arb:
    return sum((p * q for p, q in zip(a, b, strict=True)), arb(0))


def _sweep(inner: Rate, outer: Rate, end: arb, tolerance: float) -> tuple[arb, arb, arb]:
    """Integrals over [0, end] of inner, of outer times inner's running integral, and of the line density."""
    n = int(-1.2 * math.log10(tolerance)) + 8
    nodes, matrix = _rule(n, ctx.prec)
    line = dict(inner.zeros)  # the line density is inner * outer * tan(s) / 2
    for zero, power in [*outer.zeros.items(), (0j, 1), (complex(TOP), -1)]:
        line[zero] = line.get(zero, 0) + power
    line_constant = inner.log_constant + outer.log_constant - math.log(2)
    limit = math.log(tolerance / 100)
    below, mass, density = arb(0), arb(0), arb(0)

    def bounds(centre: float, half: float, radius: float) -> tuple[float, float, float]:
        rise = _log_bound(inner.zeros, inner.log_constant, centre, radius)
        known = float(below.upper().log()) if below.upper() > 0 else -math.inf
        reached = max(known, math.log(half + radius) + rise) + math.log(2)  # at least the sum of the two
        level = _log_bound(outer.zeros, outer.log_constant, centre, radius)
        return rise, level + reached, _log_bound(line, line_constant, centre, radius)

    panels = [(0.0, 1.0)]
    while panels:
        left, right = panels.pop()
        middle, width = (left + right) / 2, (right - left) / 2  # exact: binary fractions
        centre, half = middle * float(end.mid()), width * float(end.mid())
        whole = [math.log(2 * half) + b for b in bounds(centre, half, half)]  # bounds of the integrals
        errors = [math.inf] * 3
        for rho in RHOS:
            shrink = math.log(8 * half / (rho - 1)) - (n - 1) * math.log(rho)
            found = bounds(centre, half, half * (rho + 1 / rho) / 2)
            errors = [min(e, b + shrink) for e, b in zip(errors, found, strict=True)]
        if any(min(pair) > limit for pair in zip(whole, errors, strict=True)):
            if width < 1e-14:
                raise ArithmeticError("panels do not converge")
            panels += [(middle, right), (left, middle)]
            continue
        # An integral too small to matter is replaced by its bound: most panels of large counts go like that
        rise_counts, mass_counts, density_counts = (w > limit for w in whole)
        wide = [e if w > limit else w for w, e in zip(whole, errors, strict=True)]
        running = arb_mat(n + 1, 1, [_ball(wide[0])] * (n + 1))
        mass, density = mass + _ball(wide[1]), density + _ball(wide[2])
        if rise_counts or mass_counts or density_counts:
            trig = [(end * middle + end * width * x).sin_cos() for x in nodes]
            rising = [inner.at(*sin_cos) for sin_cos in trig]
            if rise_counts:
                running += end * width * (matrix * arb_mat(n, 1, rising))
            if mass_counts or density_counts:
                level = [end * width * matrix[n, k] * outer.at(*trig[k]) for k in range(n)]
                slopes = [x * sin / (2 * cos) for x, (sin, cos) in zip(rising, trig, strict=True)]
                mass += _dot(level, [below + running[k, 0] for k in range(n)]) if mass_counts else 0
                density += _dot(level, slopes) if density_counts else 0
        below += running[n, 0]
    return below, mass, density


def evaluate(case: Case, eps: arb, tolerance: float) -> tuple[arb, arb, arb]:
    """F, S and pdf at eps (which may be a ball), each to about the absolute tolerance."""
    ctx.prec = int(-math.log2(tolerance)) + 56
    delta = arb(case["delta"])
    near = ((1 - delta) * (-eps).exp(), delta - (1 - delta) * (-eps).expm1())
    far = (1 - delta, delta)
    end = (eps / 2).exp().atan()  # where x = y
    outside, density = arb(0), arb(0)
    x, y = (case["fn"], case["tp"]), (case["fp"], case["tn"])
    for one, two in ((x, y), (x[::-1], y[::-1])):  # the lower left corner, the upper right one
        first = _sweep(Rate(*one, *near), Rate(*two, *far, mirrored=True), end, tolerance)
        second = _sweep(Rate(*two, *near), Rate(*one, *far, mirrored=True), end, tolerance)
        outside += first[0] * second[0] + first[1] + second[1]  # the square x, y < v, and beside it
        density += first[2] + second[2]
    if eps == 0 and delta == 0:
        outside = arb(1)  # the two corners fill the square
    return 1 - outside, outside, density


def _quantile(case: Case, tail: float, upper: bool) -> arb:
    """The eps where F (or S, when upper) equals tail, proved by an interval Newton step."""
    which, sign = (1, 1) if upper else (0, -1)
    if (evaluate(case, arb(0), STEPS[0])[which] > tail) != upper:
        return arb(0)
    low, high, eps, last = 0.0, math.inf, 1.0, 0.0
    while abs(eps - last) > 1e-5 * eps:  # in floats first: Newton's method kept inside a bracket
        rough = [max(float(v.mid()), 1e-300) for v in evaluate(case, arb(eps), 1e-16)]
        value, last = rough[which], eps
        low, high = (eps, high) if (value > tail) == upper else (low, eps)
        # A tail is close to exponential in eps, but F close to 0 is linear
        step = (value - tail if value > tail and not upper else value * math.log(value / tail)) / rough[2]
        eps += sign * step
        if not low < eps < min(high, 4 * last):
            eps = (low + high) / 2 if high < math.inf else 2 * last
    root = arb(eps)
    for tolerance in STEPS:
        for _ in range(3):
            values = evaluate(case, root, tolerance)
            root = (root + sign * (values[which] - tail) / values[2]).mid()
        around = root + root * arb(0, 1e-19)
        slope = evaluate(case, around, tolerance)[2]
        proved = root + sign * (evaluate(case, root, tolerance)[which] - tail) / slope
        if around.contains(proved) and proved.rad() < RADIUS * proved:
            return proved
    raise ArithmeticError(f"no certified quantile for {case}")


def _text(value: arb) -> str:
    return "0" if abs(value).upper() < FLOOR else value.str(DIGITS, radius=False)


def _point(case: Case, eps: float) -> Case:
    for tolerance in STEPS:
        values = evaluate(case, arb(eps), tolerance)
        if all(v.rad() <= RADIUS * abs(v.mid()) or abs(v).upper() < FLOOR for v in values):
            return {"eps": eps, **dict(zip(("F", "S", "pdf"), map(_text, values), strict=True))}
    raise ArithmeticError(f"no certified values at {eps} for {case}")


def solve(case: Case) -> Case:
    """The case with its interval and its points; the places of points it has are kept."""
    ends = [_text(_quantile(case, case["alpha"] / 2, upper)) for upper in (False, True)]
    low, high = map(float, ends)
    places = [p["eps"] for p in case.get("points", ())] or [0.0, (low + high) / 2 or 0.25, 1.3 * high + 0.25]
    points = [_point(case, eps) for eps in dict.fromkeys(places)]
    return case | {"eps_lo": ends[0], "eps_hi": ends[1], "points": points}


def draw(n: int, seed: int) -> list[Case]:
    """Random cases, one of each kind in turn."""
    rng = random.Random(seed)

    def size(low: float = 0, high: float = 7) -> int:
        return int(10 ** rng.uniform(low, high))

    def split(total: int, rate: float) -> list[int]:
        hits = round(rng.gauss(total * rate, math.sqrt(total * rate * (1 - rate))))
        hits = min(max(hits, 0), total)
        return [hits, total - hits]

    def rates(one: float, two: float, *sizes: float) -> list[int]:
        return split(size(*sizes), one) + split(size(*sizes), two)

    kinds: dict[str, Callable[[], list[int]]] = {  # tp, fn, fp, tn
        "no-samples": lambda: [0, 0, 0, 0],
        "small": lambda: [rng.randint(0, 9) for _ in range(4)],
        "random": lambda: rates(rng.random(), rng.random(), 0.3, 3),
        "table": lambda: rates(rng.random(), rng.choice((0.001, 0.01, 0.1, 0.4)), 2.7, 3),
        "zero": lambda: [rng.choice((0, 0, 0, 7, 50, 400, size())) for _ in range(4)],
        "perfect": lambda: rates(*rng.choice(((1, 0), (0, 1)))),
        "all-positive": lambda: rates(1, 1),
        "one-class": lambda: [*split(size(), rng.random()), 0, 0][:: rng.choice((1, -1))],
        "near-chance": lambda: rates(*[rng.random()] * 2),
        "big": lambda: [size() for _ in range(4)],
        "unbalanced": lambda: split(size(0, 1.5), rng.random()) + split(size(4, 7), 10 ** rng.uniform(-7, 0)),
    }
    cases = []
    for number, kind in zip(range(n), itertools.cycle(kinds), strict=False):
        tp, fn, fp, tn = kinds[kind]()
        levels = {"delta": rng.choice(DELTAS), "alpha": rng.choice(ALPHAS)}
        cases.append({"id": number, "kind": kind, "tp": tp, "fp": fp, "tn": tn, "fn": fn, **levels})
    return cases


def compare(case: Case) -> dict[str, float]:
    """The library's errors on a solved case, by the names in LIMITS."""
    import epsgauge as eg  # here, so that cases can be written without the library

    post = eg.estimate(eg.Tally(**{k: case[k] for k in ("tp", "tn", "fp", "fn")}), delta=case["delta"])
    errors: dict[str, list[float]] = {name: [] for name in LIMITS}
    for point in case["points"]:
        eps, f, s, pdf = (float(point[k]) for k in ("eps", "F", "S", "pdf"))
        errors["cdf"] += [abs(float(post.cdf(eps)) - f), abs(float(post.sf(eps)) - s)]
        if min(f, s) > 1e-12:
            errors["pdf"].append(abs(float(post.pdf(eps)) / pdf - 1))
    tail, name = case["alpha"] / 2, "quantile" if case["alpha"] > 1e-9 else "quantile at alpha 1e-9"
    for found, text in ((post.quantile(tail), case["eps_lo"]), (post.isf(tail), case["eps_hi"])):
        errors[name].append(abs(float(found) - float(text)) / max(1.0, float(text)))
    return {k: max((math.inf if math.isnan(e) else e for e in v), default=0.0) for k, v in errors.items()}


def _check(case: Case) -> tuple[Case, dict[str, float], float]:
    start = time.perf_counter()
    solved = case if "points" in case else solve(case)
    return case, compare(solved), time.perf_counter() - start


def check(cases: list[Case], pool: ProcessPoolExecutor) -> bool:
    """Print the library's errors, case by case and the worst; whether all are within their limits."""
    worst = dict.fromkeys(LIMITS, 0.0)
    for case, errors, seconds in pool.map(_check, cases):
        worst = {name: max(worst[name], errors[name]) for name in LIMITS}
        shown = [f"{k}={case[k]}" for k in ("id", "kind", "tp", "fn", "fp", "tn", "delta", "alpha")]
        print(*shown, "errors", *(f"{e:.1e}" for e in errors.values()), f"{seconds:.1f}s", flush=True)
    passed = {name: worst[name] <= limit for name, limit in LIMITS.items()}
    for name, limit in LIMITS.items():
        verdict = "PASS" if passed[name] else "FAIL"
        print(f"{verdict} worst error of {name}: {worst[name]:.2e}, tolerance {limit:.0e}")
    return all(passed.values())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=("check", "write"))
    parser.add_argument("--n", type=int, default=50, help="number of fresh cases")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--reference", type=Path, help="use this file's cases (write: solved afresh)")
    parser.add_argument("-o", "--output", type=Path, default=Path("posterior.json"), help="file to write")
    args = parser.parse_args()
    cases = json.loads(args.reference.read_text())["cases"] if args.reference else draw(args.n, args.seed)
    with ProcessPoolExecutor(2) as pool:
        if args.command == "check":
            return 0 if check(cases, pool) else 1
        written = {"note": NOTE, "cases": list(pool.map(solve, cases))}
        args.output.write_text(json.dumps(written, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
