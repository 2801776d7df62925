"""Randomised mechanisms of StatDP's and DP-Sniper's papers, correct and broken: what an audit shows, how fast.

    python benchmarks/mechanisms.py [--samples 100000] [--only NAME] [--libraries] [--markdown] [--dp-sniper DIR]

Each mechanism claims ε = 0.5 (or the ε beside it) for the pair of neighbouring inputs that is given. Verdicts are at
1 − 1e-4, so that a false alarm in this table would be one in ten thousand. "until" is how many samples a game takes
that stops at the first proof of a violation. Outputs are rounded to a grid but for those that are called "in floats".
Where a curve is claimed, the ε and δ shown are those of the point that samples set apart chose. Seconds are CPU time on
one thread. Libraries are audited where they are installed (diffprivlib, PyDP, OpenDP, SmartNoise); what is not
installed is left out. `--libraries` audits these alone.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import optimize, special, stats

import epsgauge as eg
from epsgauge.stats import region

EPS = 0.5
LEVEL = 0.9999
GRID = 2.0**-10


@dataclass(frozen=True)
class Row:
    """A mechanism, its claim, and the ε that it has on this pair, if that is known."""

    name: str
    mechanism: Callable[..., Any]
    d0: Any
    d1: Any
    true: float | None = EPS
    claim: float = EPS
    delta: float = 0.0
    slow: bool = False  # one output at a time
    curve: str = ""  # that is claimed instead of a point
    adjacency: str = "substitute"

    @property
    def holds(self) -> bool:
        return self.true is not None and self.true <= self.claim + 1e-12


def grid(values: np.ndarray) -> np.ndarray:
    return np.round(values / GRID) * GRID


def laplace(scale: float, *, floats: bool = False) -> Callable[..., Any]:
    def mechanism(data, rng, size):
        out = data + rng.laplace(0, scale, size)
        return out if floats else grid(out)

    return mechanism


def gaussian(sigma: float, *, floats: bool = False) -> Callable[..., Any]:
    def mechanism(data, rng, size):
        out = data + rng.normal(0, sigma, size)
        return out if floats else grid(out)

    return mechanism


def parallel(n: int, scale: float) -> Callable[..., Any]:
    return lambda data, rng, size: grid(data + rng.laplace(0, scale, (size, n)))


def response(keep: float) -> Callable[..., Any]:
    return lambda data, rng, size: np.where(rng.random(size) < keep, data, 1 - data)


def geometric(eps: float, *, low: int = 0, high: int = 5) -> Callable[..., Any]:
    """Truncated (Ghosh, Roughgarden and Sundararajan 2009)."""

    def mechanism(data, rng, size):
        p = -math.expm1(-eps)
        return np.clip(data + rng.geometric(p, size) - rng.geometric(p, size), low, high)

    return mechanism


def noisy_max(*, noise: str, value: bool) -> Callable[..., Any]:
    """Variants 1 to 4 of StatDP: Laplace or exponential noise; the place, or the noisy value, which leaks."""

    def mechanism(data, rng, size):
        draw = rng.laplace if noise == "laplace" else lambda _, *more: rng.exponential(*more)
        noisy = np.asarray(data) + draw(0, 2 / EPS, (size, len(data)))
        return grid(noisy.max(axis=1)) if value else noisy.argmax(axis=1)

    return mechanism


def histogram(scale: float) -> Callable[..., Any]:
    return lambda data, rng, size: grid(np.asarray(data) + rng.laplace(0, scale, (size, len(data))))


def prefix_sum(data, rng, size):
    """Noisy answers, and then their sums."""
    return grid(np.asarray(data) + rng.laplace(0, 1 / EPS, (size, len(data)))).cumsum(axis=1)


def exponential(factor: float) -> Callable[..., Any]:
    """Chooses a place with probability proportional to e^(factor ε score); by Gumbel noise."""
    return lambda data, rng, size: (factor * EPS * np.asarray(data) + rng.gumbel(size=(size, len(data)))).argmax(axis=1)


def sparse_vector(variant: int, *, c: int = 1, threshold: float = 1.0) -> Callable[..., Any]:
    """The six variants of Lyu, Su and Li (2017), figure 2; −1 where the mechanism has stopped."""
    eps1 = EPS / 4 if variant == 4 else EPS / 2
    eps2 = EPS - eps1
    of_threshold = c / eps1 if variant == 2 else 1 / eps1
    of_answers = {1: 2 * c / eps2, 2: 2 * c / eps1, 3: c / eps2, 4: 1 / eps2, 5: 0.0, 6: 1 / eps2}[variant]

    def mechanism(data, rng, size):
        answers = np.asarray(data) + of_answers * rng.laplace(0, 1, (size, len(data)))
        line = threshold + rng.laplace(0, of_threshold, (size, 1))
        if variant == 2:  # drawn anew after each answer above it
            line = threshold + rng.laplace(0, of_threshold, (size, c + 1))
        out, above = np.empty(answers.shape), np.zeros(size, np.int64)
        for at in range(len(data)):
            now = line[np.arange(size), np.minimum(above, line.shape[1] - 1)]
            said = answers[:, at] >= now
            shown = grid(answers[:, at]) + 1000.0 if variant == 3 else np.ones(size)
            out[:, at] = np.where(above >= c, -1.0, np.where(said, shown, 0.0)) if variant < 5 else said
            above += said
        return out

    return mechanism


def rappor(f: float, h: int, bits: int = 20, *, p: float = 0.0, q: float = 1.0) -> Callable[..., Any]:
    """Of a Bloom filter with h bits; p and q belong to the second step (Erlingsson, Pihur and Korolova 2014)."""

    def mechanism(data, rng, size):
        filled = np.zeros(bits)
        filled[np.asarray(data)] = 1
        kept = np.where(rng.random((size, bits)) < f, rng.random((size, bits)) < 0.5, filled)
        return (rng.random((size, bits)) < np.where(kept == 1, q, p)).astype(np.int8)

    return mechanism


def rappor_eps(f: float, h: int, *, p: float = 0.0, q: float = 1.0) -> float:
    up, down = 0.5 * f * (p + q) + (1 - f) * q, 0.5 * f * (p + q) + (1 - f) * p
    return h * math.log(up * (1 - down) / (down * (1 - up)))


def winners(data: np.ndarray, noise: Any) -> np.ndarray:
    """How likely each place has the largest noisy value, by a sum over values."""
    x = np.linspace(-80, 120, 400_001)[:, None] - data
    others = [np.prod(np.delete(noise.cdf(x), place, axis=1), axis=1) for place in range(len(data))]
    chances = np.array([np.sum(noise.pdf(x[:, place]) * others[place]) for place in range(len(data))])
    return chances / chances.sum()


def apart(p: np.ndarray, q: np.ndarray) -> float:
    """The ε of two distributions over places."""
    return float(np.abs(np.log(p / q)).max())


def svt_eps(variant: int) -> float | None:
    """What is proven; a pair may have less."""
    return {1: EPS, 2: EPS, 3: math.inf, 4: 1.75 * EPS, 5: math.inf, 6: math.inf}[variant]


def rows() -> Iterator[Row]:
    one, ones, more = np.zeros(5), np.ones(5), np.full(5, 2.0)
    one[0] = 1.0
    yield Row("Laplace", laplace(1 / EPS), 0.0, 1.0)
    yield Row("Laplace in floats", laplace(1 / EPS, floats=True), 0.0, 1.0, math.inf)
    yield Row("Laplace, sensitivity 2", laplace(1 / EPS), 0.0, 2.0, 2 * EPS)
    yield Row("20 Laplace together", parallel(20, 20 / EPS), 0.0, 1.0)
    mu = gdp_mu(EPS, 0.01)
    yield Row("Gaussian", gaussian(1 / mu), 0.0, 1.0, EPS, delta=0.01)
    yield Row("Gaussian, noise × 0.7", gaussian(0.7 / mu), 0.0, 1.0, gdp_eps(mu / 0.7, 0.01), delta=0.01)
    for factor in (1.0, 0.9):
        name = "Gaussian, curve" if factor == 1 else f"Gaussian, curve, noise × {factor}"
        yield Row(name, gaussian(factor), 0.0, 1.0, None if factor < 1 else EPS, curve="gaussian:1")
    yield Row("Gaussian, zCDP, noise × 0.8", gaussian(0.8), 0.0, 1.0, None, curve="zcdp:0.5")
    yield Row("Laplace, curve, scale × 0.9", laplace(0.9), 0.0, 1.0, None, curve="laplace:1")
    yield Row("Gaussian in floats", gaussian(1 / mu, floats=True), 0.0, 1.0, math.inf, delta=0.01)
    yield Row("randomised response", response(special.expit(EPS)), 0, 1)
    yield Row("randomised response, 0.75", response(0.75), 0, 1, math.log(3))
    yield Row("truncated geometric", geometric(EPS), 2, 3)
    yield Row("truncated geometric, 2 ε", geometric(2 * EPS), 2, 3, 2 * EPS)
    other = more - 2 * one
    for number, noise in ((1, stats.laplace), (2, stats.expon)):
        true = apart(*(winners(data, noise(scale=2 / EPS)) for data in (ones, other)))
        name = "laplace" if number == 1 else "exponential"
        yield Row(f"noisy max {number}", noisy_max(noise=name, value=False), ones, other, true)
    yield Row("noisy max 3 (value)", noisy_max(noise="laplace", value=True), ones, more, 5 * EPS / 2)
    yield Row("noisy max 4 (value)", noisy_max(noise="exponential", value=True), ones, 0 * ones, math.inf)
    yield Row("histogram 1", histogram(1 / EPS), ones, ones + one)
    yield Row("histogram 2 (scale ε)", histogram(EPS), ones, ones + one, 1 / EPS)
    yield Row("prefix sum", prefix_sum, ones, ones + one)
    for name, factor, d0, d1 in (
        ("exponential", 0.5, ones, other),
        ("exponential, no half", 1.0, 5 * one, 3 * one + 1),
    ):
        true = apart(*(special.softmax(factor * EPS * data) for data in (d0, d1)))
        yield Row(name, exponential(factor), d0, d1, true)
    cross = (np.array([0.0, 0, 0, 0, 0, 1, 1, 1, 1, 1]), np.array([1.0, 1, 1, 1, 1, 0, 0, 0, 0, 0]))
    for variant in range(1, 7):
        yield Row(f"sparse vector {variant}", sparse_vector(variant), *cross, svt_eps(variant))
    yield Row("one-time RAPPOR", rappor(0.95, 4), [0, 1, 2, 3], [4, 5, 6, 7], rappor_eps(0.95, 4), rappor_eps(0.95, 4))
    once = {"p": 0.45, "q": 0.55}
    both = rappor_eps(0.75, 4, **once)
    yield Row("RAPPOR", rappor(0.75, 4, **once), [0, 1, 2, 3], [4, 5, 6, 7], both, both)
    more = rappor_eps(0.9, 4), rappor_eps(0.95, 4)
    yield Row("one-time RAPPOR, f = 0.9", rappor(0.9, 4), [0, 1, 2, 3], [4, 5, 6, 7], *more)
    yield from of_libraries()


def of_libraries() -> Iterator[Row]:
    if importlib.util.find_spec("diffprivlib"):
        from diffprivlib import mechanisms as of

        laplace_ = of.Laplace(epsilon=EPS, sensitivity=1, random_state=0)
        snapping = of.Snapping(epsilon=EPS, sensitivity=1, lower=-10, upper=10, random_state=0)
        geometric_ = of.Geometric(epsilon=EPS, sensitivity=1, random_state=0)
        yield Row("diffprivlib Laplace", lambda d: laplace_.randomise(d), 0.0, 1.0, None, slow=True)
        yield Row("diffprivlib Snapping", lambda d: snapping.randomise(d), 0.0, 1.0, None, slow=True)
        yield Row("diffprivlib Geometric", lambda d: geometric_.randomise(d), 0, 1, EPS, slow=True)
    if importlib.util.find_spec("pydp"):
        from pydp.algorithms.numerical_mechanisms import LaplaceMechanism

        snapped = LaplaceMechanism(EPS, 1.0)
        yield Row("PyDP Laplace", lambda d: snapped.add_noise(d), 0.0, 1.0, EPS, slow=True)
    if importlib.util.find_spec("opendp"):
        import opendp.prelude as dp

        dp.enable_features("contrib")
        space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
        noise = dp.m.make_laplace(*space, scale=1 / EPS)
        yield Row("OpenDP Laplace", lambda d: noise(d), 0.0, 1.0, EPS, slow=True)
        gauss = dp.m.make_gaussian(*space, scale=1.0)
        yield Row("OpenDP Gaussian, zCDP", lambda d: gauss(d), 0.0, 1.0, EPS, slow=True, curve="zcdp:0.5")
        keep = dp.m.make_randomized_response_bool(float(special.expit(EPS)))
        yield Row("OpenDP randomised response", lambda d: keep(d), False, True, EPS, slow=True)
    if importlib.util.find_spec("snsql"):
        from snsql.sql._mechanisms.laplace import Laplace

        of_sums = Laplace(EPS, lower=0, upper=1)
        yield Row("SmartNoise SQL Laplace", lambda d: of_sums.release([d]), 0.0, 1.0, EPS, slow=True)
    if importlib.util.find_spec("snsynth"):
        yield smartnoise_mst()


def smartnoise_mst() -> Row:
    """MST of SmartNoise, ε = 3 and δ = 1e-5, on two columns of two values: who sees its noisy measurements.

    Estimation comes after all measurements that are private, takes seconds, and is left out; with two columns there is
    one tree to select. A third of ρ is for one-way measurements and a third for two-way ones, both Gaussian, so that
    their μ is √(4ρ/3).
    """
    from mbi import Dataset, Domain
    from snsynth.mst import mst

    class Product:
        """Of one-way measurements."""

        def __init__(self, measured):
            self.of = {m.clique: np.maximum(np.asarray(m.noisy_measurement), 1e-9) for m in measured}

        def project(self, pair):
            one, other = (self.of[(column,)] / self.of[(column,)].sum() for column in pair)
            self.cells = 400 * np.outer(one, other).ravel()
            return self

        def datavector(self):
            return self.cells

    class Seen(mst.MSTSynthesizer):
        """Keeps what was measured."""

        def measure(self, *args, **more):
            found = super().measure(*args, **more)
            self.seen = [*getattr(self, "seen", []), *(np.asarray(m.noisy_measurement) for m in found)]
            return found

    rho = mst.cdp_rho(3.0, 1e-5)
    mst.cdp_rho = lambda *_: rho  # a search that takes half a second
    mst.estimation.mirror_descent = lambda _, measured, **__: Product(measured)
    base = [(a, b) for a in (0, 1) for b in (0, 1) for _ in range(100)]
    data = [Dataset(np.array(base + more), Domain(["a", "b"], [2, 2])) for more in ([], [(0, 0)])]

    def measured(d):
        one = Seen()
        one.MST(data[d], 3.0, 1e-5)
        return np.concatenate(one.seen)

    mu = math.sqrt(4 * rho / 3)
    print(f"SmartNoise MST: ρ = {rho:.4f}, measurements have μ = {mu:.4f}", file=sys.stderr)
    return Row("SmartNoise MST", measured, 0, 1, None, slow=True, curve=f"mu:{mu}", adjacency="add-remove")


def gdp_eps(mu: float, delta: float) -> float:
    return float(region.gaussian_eps(mu, delta=delta))


def gdp_mu(eps: float, delta: float) -> float:
    return float(optimize.brentq(lambda mu: gdp_eps(mu, delta) - eps, 0.01, 5.0))


def measured(row: Row, samples: int) -> tuple[str, ...]:
    n = samples // 5 if row.slow else samples
    claim = {"claimed_eps": row.claim, "claimed_delta": row.delta, "verdict_level": LEVEL}
    by_mu = row.curve.startswith("mu:")
    if row.curve:
        stated = {"claimed_mu": float(row.curve[3:])} if by_mu else {"claimed_curve": row.curve}
        claim = {**stated, "verdict_level": LEVEL}
    begun, how = time.process_time(), {"n_samples": n, "adjacency": row.adjacency}
    found = eg.audit(eg.MechanismGame(row.mechanism, row.d0, row.d1, **how), **claim)
    took = time.process_time() - begun
    begun, on_the_way = time.process_time(), []
    for seed in range(3 if found.verdict.kind == "violation" and not by_mu else 0):
        game = eg.MechanismGame(row.mechanism, row.d0, row.d1, **how, until="violation", seed=seed)
        again = eg.audit(game, **claim)
        on_the_way.append(again.sampled.drawn if again.verdict.kind == "violation" else math.inf)
    each = (time.process_time() - begun) / max(len(on_the_way), 1)
    middle = np.median(on_the_way) if on_the_way else 0.0
    until = "" if not on_the_way else f"{middle:.0f}" if math.isfinite(middle) else "more than all"
    alarm = " FALSE ALARM" if row.holds and found.verdict.kind == "violation" else ""
    stated = found.verdict.claim
    claimed = f"{stated.eps:.3g}" + (f", δ {stated.delta:.2g}" if stated.delta > 1e-9 else "")
    claimed = f"μ {stated.mu:.3f}" if by_mu else claimed
    true = "" if row.true is None or row.curve else "∞" if math.isinf(row.true) else f"{row.true:.3g}"
    return (
        row.name,
        claimed,
        true,
        f"μ {found.verdict.mu:.3f}" if by_mu else f"{found.verdict.bound:.3f}",
        found.verdict.kind + alarm,
        found.sampled.region,
        f"{n}",
        f"{took:.1f} s",
        until,
        f"{each:.1f} s" if on_the_way else "",
    )


HEAD = ("mechanism", "claim", "true ε", "bound", "verdict", "region", "samples", "time", "until", "time")


def peer(row: Row, samples: int) -> str:
    """What DP-Sniper shows with as many samples, which is for δ = 0."""
    from by_dp_sniper import lower_bound

    if row.slow or row.delta or row.curve:
        return ""
    begun, said = time.process_time(), []
    for c in (0.01, 0.1):
        found = lower_bound(row.mechanism, row.d0, row.d1, samples=samples, level=LEVEL, c=c)
        said.append(f"c = {c:g}: {max(found, 0.0):.3f}")
    return f"{', '.join(said)}, both in {time.process_time() - begun:.1f} s"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--samples", type=int, default=100_000)
    options.add_argument("--only", default="")
    options.add_argument("--libraries", action="store_true")
    options.add_argument("--markdown", action="store_true")
    options.add_argument("--dp-sniper", metavar="DIR", help="a checkout of DP-Sniper: print its bounds instead")
    given = options.parse_args()
    if given.dp_sniper:
        sys.path.insert(0, given.dp_sniper)
        for row in rows():
            if given.only in row.name and (said := peer(row, given.samples)):
                print(f"{row.name:<26}  {said}", flush=True)
        return
    widths = (26, 14, 7, 7, 14, 8, 8, 7, 7, 7)
    if given.markdown:
        print("|", " | ".join(HEAD), "|")
        print("|" + "---|" * len(HEAD))
    else:
        print("  ".join(f"{head:<{width}}" for head, width in zip(HEAD, widths, strict=True)))
    for row in of_libraries() if given.libraries else rows():
        if given.only in row.name:
            cells = measured(row, given.samples)
            line = " | ".join(cells) if given.markdown else "  ".join(map(lambda c, w: f"{c:<{w}}", cells, widths))
            print(f"| {line} |" if given.markdown else line, flush=True)


if __name__ == "__main__":
    main()
