"""How often the interval for dependent guesses contains the true ε, on simulated models whose dependence is known.

Each model has rates of its own: FNR and FPR are Beta distributed with the wanted means and ρ, and joined by a normal
copula.
"""

import argparse
import time

import numpy as np
from scipy import special

import epsgauge as eg
from epsgauge.bounds.dependence import cluster_interval
from epsgauge.stats.region import eps_of_rates

DESIGNS = ((10, 100), (100, 10))
RATES = ((0.4, 0.4), (0.3, 0.5), (0.1, 0.6))
RHOS = (0.0, 0.01, 0.05, 0.2)
CORRELATIONS = (-0.8, 0.0, 0.8)
Models = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def simulate(
    rng: np.random.Generator, n_models: int, m: int, x: float, y: float, rho: float, correlation: float
) -> Models:
    """fn, n_positive, fp and n_negative of each model, with fair bits."""
    n1 = rng.binomial(m, 0.5, n_models)
    p, q = np.full(n_models, x), np.full(n_models, y)
    if rho > 0:
        z = rng.normal(size=(2, n_models))
        z[1] = correlation * z[0] + np.sqrt(1 - correlation**2) * z[1]
        size = 1 / rho - 1
        p, q = (special.betaincinv(r * size, (1 - r) * size, special.ndtr(s)) for r, s in zip((x, y), z, strict=True))
    return rng.binomial(n1, p), n1, rng.binomial(m - n1, q), m - n1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--models", type=int, choices=[n for n, _ in DESIGNS], help="only this design")
    parser.add_argument("--delta", type=float, default=1e-5)
    parser.add_argument("--level", type=float, default=0.90)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    start = time.perf_counter()
    print(
        f"{args.runs} runs a row, δ = {args.delta:g}, level {args.level:.0%}; width: over that of the plain posterior"
    )
    names = ("covers", "too high", "too low", "width", "plain covers")
    print(f"{'models × pairs':16}{'FNR, FPR':12}{'ρ':>5}{'corr.':>7}{'{:>9}{:>10}{:>9}{:>8}{:>14}'.format(*names)}")
    for n_models, m in DESIGNS:
        if args.models not in (None, n_models):
            continue
        for x, y in RATES:
            eps = float(eps_of_rates(x, y, delta=args.delta))
            for rho in RHOS:
                for correlation in CORRELATIONS if rho > 0 else (0.0,):
                    rng = np.random.default_rng([args.seed, n_models])
                    runs = [simulate(rng, n_models, m, x, y, rho, correlation) for _ in range(args.runs)]
                    found = [cluster_interval(*run, delta=args.delta, level=args.level) for run in runs]
                    low, high = np.array([(f.low, f.high) for f in found if f is not None]).T
                    sums = np.array([[part.sum() for part in run] for run in runs])
                    tally = eg.Tally(
                        fn=sums[:, 0], tp=sums[:, 1] - sums[:, 0], fp=sums[:, 2], tn=sums[:, 3] - sums[:, 2]
                    )
                    plain = eg.estimate(tally, delta=args.delta).interval(args.level)
                    covers = np.mean((low <= eps) & (eps <= high))
                    plain_covers = np.mean((plain.low <= eps) & (eps <= plain.high))
                    print(
                        f"{f'{n_models} × {m}':16}{f'{x:g}, {y:g}':12}{rho:5.2f}{correlation:7.1f}{covers:9.1%}"
                        f"{np.mean(low > eps):10.1%}{np.mean(high < eps):9.1%}"
                        f"{np.mean(high - low) / np.mean(plain.width):8.2f}{plain_covers:14.1%}",
                        flush=True,
                    )
    print(f"{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
