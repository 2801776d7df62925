"""What an audit shows of the mechanisms of `mechanism_rows.py`, how fast, and what others show of the same pairs.

    python benchmarks/mechanisms.py [--samples 100000] [--only NAME] [--libraries] [--markdown]
    python benchmarks/mechanisms.py --until [--means] [--level 0.95] [--games 3]
    python benchmarks/mechanisms.py --peer NAME DIR [--until]

The first audits a fixed number of samples. The second plays games that stop at the first proof of a violation, and
shows the median number of samples, beside what a test needs that knows the law of the outputs. The third prints what
another tool shows: dp_sniper, statdp, dp_auditorium, delta_siege or sequential_mmd, whose code is in DIR
(`by_NAME.py`).

Each mechanism claims ε = 0.5 (or the ε beside it) for the pair of neighbouring inputs that is given. Verdicts are at
1 − 1e-4, so that a false alarm in this table would be one in ten thousand. Where a curve is claimed, the ε and δ shown
are those of the point that samples set apart chose. Seconds are CPU time on one thread. Libraries are audited where
they are installed (diffprivlib, PyDP, OpenDP, SmartNoise); what is not installed is left out. `--means` audits the
means of González et al. (2025) alone.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import sys
import time
from collections.abc import Iterator

import numpy as np
from mechanism_rows import EPS, Row, means, rows
from scipy import special

import epsgauge as eg

LEVEL = 0.9999
MANY = 1_000_000  # outputs of each input that show the law
CELLS = 300


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


def stated(row: Row, level: float) -> dict[str, object]:
    """The claim, as an audit takes it."""
    if row.curve.startswith("mu:"):
        return {"claimed_mu": float(row.curve[3:]), "verdict_level": level}
    if row.curve:
        return {"claimed_curve": row.curve, "verdict_level": level}
    return {"claimed_eps": row.claim, "claimed_delta": row.delta, "verdict_level": level}


def audited(row: Row, n: int, level: float, **more: object) -> eg.Audit:
    game = eg.MechanismGame(row.mechanism, row.d0, row.d1, n_samples=n, adjacency=row.adjacency, **more)
    return eg.audit(game, **stated(row, level))


def fixed(row: Row, samples: int, level: float) -> tuple[str, ...]:
    """An audit of a fixed number of samples."""
    n, by_mu = samples // 5 if row.slow else samples, row.curve.startswith("mu:")
    begun = time.process_time()
    found = audited(row, n, level)
    took = time.process_time() - begun
    alarm = " FALSE ALARM" if row.holds and found.verdict.kind == "violation" else ""
    claim = found.verdict.claim
    point = f"{claim.eps:.3g}" + (f", δ {claim.delta:.2g}" if claim.delta > 1e-9 else "")
    return (
        row.name,
        f"μ {claim.mu:.3f}" if by_mu else point,
        "" if row.true is None or row.curve else "∞" if math.isinf(row.true) else f"{row.true:.3g}",
        f"μ {found.verdict.conditional_bound.mu:.3f}" if by_mu else f"{found.verdict.bound.value:.3f}",
        found.verdict.kind + alarm,
        found.sampled.region,
        f"{n:,}",
        f"{took:.1f}",
    )


def until(row: Row, samples: int, level: float, games: int, **more: object) -> tuple[str, ...]:
    """Games that stop at the first proof, with seeds from 0 on."""
    n = samples // 5 if row.slow else samples
    begun, drawn = time.process_time(), []
    for seed in range(games):
        found = audited(row, n, level, until="violation", seed=seed, **more)
        drawn.append(found.sampled.drawn if found.verdict.kind == "violation" else math.inf)
    each = (time.process_time() - begun) / games
    alarm = " FALSE ALARM" if row.holds and min(drawn) < math.inf and games * (1 - level) < 0.1 else ""
    claim, refuted, middle = found.verdict.claim, sum(map(math.isfinite, drawn)), float(np.median(drawn))
    needed = 0.0 if row.slow or row.holds else needed_by_law(row, claim.eps, claim.delta, level)
    return (
        row.name,
        f"{claim.eps:.3g}" + (f", δ {claim.delta:.2g}" if claim.delta > 1e-9 else ""),
        f"{refuted} of {games}{alarm}",
        f"{middle:,.0f}" if math.isfinite(middle) else "",
        f"{needed:,.0f}" if 0 < needed < 10 * samples else "",
        f"{each:.1f}",
    )


def needed_by_law(row: Row, eps: float, delta: float, level: float) -> float:
    """log(1/α) over how fast the wealth of bets grows that know the law of the outputs; 0 where it is not found.

    The law is that of many outputs, of few kinds or in as many cells; bets are those of the library.
    """
    outputs = [np.asarray(row.mechanism(d, np.random.default_rng(9 + b), MANY)) for b, d in enumerate((row.d0, row.d1))]
    if "floats" in row.name or (outputs[0].ndim > 1 and _kinds(outputs) > 10 * CELLS):
        return 0.0
    both = np.concatenate(outputs)
    if both.ndim > 1:
        at = np.unique(both, axis=0, return_inverse=True)[1].ravel()
    else:
        once = np.unique(both)
        edges = once if len(once) <= CELLS else np.quantile(both, np.linspace(0, 1, CELLS + 1)[1:-1])
        at = np.searchsorted(np.unique(edges), both, side="right")
    n0, n1 = (np.bincount(part, minlength=at.max() + 1).astype(float) for part in np.split(at, 2))
    sure, q = np.maximum(n0, n1) / np.maximum(n0 + n1, 1), float(special.expit(eps))
    mass, rates = (n0 + n1) / (2 * MANY), []
    for cap in np.geomspace(1e-3, 1, 30) / math.exp(eps):
        for kept in (np.ones(len(n0)), n1 > n0, n0 > n1) if delta else (np.ones(len(n0)),):
            bet = np.minimum(np.maximum(sure / q - 1, 0), cap) * kept
            paid = math.log1p(delta * cap * (2 if kept.all() else 1) / 2)
            lost = np.log1p(np.maximum(-math.exp(eps) * bet, -1 + 1e-12))
            rates.append(float(mass @ (sure * np.log1p(bet) + (1 - sure) * lost)) - paid)
    return -math.log(1 - level) / max(rates) if max(rates) > 0 else 0.0


def _kinds(outputs: list[np.ndarray]) -> int:
    return len(np.unique(outputs[0][:20_000], axis=0))


def by_peer(name: str, directory: str, given: argparse.Namespace) -> None:
    """What another tool shows of each row; rows that it does not take are left out."""
    sys.path.insert(0, directory)
    peer = importlib.import_module(f"by_{name}")
    for row in means() if given.means else rows():
        if given.only in row.name and not row.slow:
            begun = time.process_time()
            said = peer.figure(row, samples=given.samples, level=given.level)
            if said:
                print(f"{row.name:<50}  {said:<40}  {time.process_time() - begun:.1f} s", flush=True)


FIXED = {
    "mechanism": 26,
    "claim": 14,
    "true ε": 7,
    "bound": 7,
    "verdict": 14,
    "region": 12,
    "samples": 8,
    "seconds": 7,
}
UNTIL = {"mechanism": 50, "claim": 14, "refuted": 8, "until": 8, "knowing the law": 15, "seconds": 7}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--samples", type=int, default=100_000)
    options.add_argument("--level", type=float, default=LEVEL)
    options.add_argument("--only", default="")
    options.add_argument("--libraries", action="store_true")
    options.add_argument("--means", action="store_true")
    options.add_argument("--correct", action="store_true", help="only mechanisms that hold their claim")
    options.add_argument("--broken", action="store_true", help="only those that are not known to hold it")
    options.add_argument("--until", action="store_true")
    options.add_argument("--games", type=int, default=3)
    options.add_argument("--regions", help="of the games, such as events,linear; all if left out")
    options.add_argument("--markdown", action="store_true")
    options.add_argument("--peer", nargs=2, metavar=("NAME", "DIR"))
    given = options.parse_args()
    if given.peer:
        by_peer(*given.peer, given)
        return
    head = UNTIL if given.until else FIXED
    if given.markdown:
        print("|", " | ".join(head), "|")
        print("|" + "---|" * len(head))
    else:
        print("  ".join(f"{name:<{width}}" for name, width in head.items()))
    for row in of_libraries() if given.libraries else means() if given.means else rows():
        if given.only not in row.name or (given.until and row.curve.startswith("mu:")):
            continue
        if (given.correct and not row.holds) or (given.broken and row.holds):
            continue
        how = (row, given.samples, given.level)
        more = {"regions": tuple(given.regions.split(","))} if given.regions else {}
        cells = until(*how, given.games, **more) if given.until else fixed(*how)
        line = " | ".join(cells) if given.markdown else "  ".join(map(lambda c, w: f"{c:<{w}}", cells, head.values()))
        print(f"| {line} |" if given.markdown else line, flush=True)


if __name__ == "__main__":
    main()
