"""Synthetic-data generators from data to records, dpmm's MST and AIM: what a game shows of the μ that they claim.

    python benchmarks/synthetic.py [--samples 40000] [--only NAME] [--markdown]

It needs `pip install dpmm==0.1.9` beside epsgauge. Generators promise (ε, δ) = (1, 0.01), as in Ganev, Annamalai and
Kulynych (2026, arXiv 2604.18352), which reports μ = 0.43 for an implied μ of 0.45. That is a one-sided 90 % credible
bound of one game, from 2,000 judged samples of each kind, and of an MST that was changed: it spends its whole budget on
one-way measurements and selects nothing. Code for AIM is not published with it. Bounds here are guaranteed.

**Which μ is claimed.** dpmm turns (ε, δ) into ρ of zCDP by its `cdp_rho`. Gaussian noise of standard deviation σ on
counts that one record changes by 1 is 1/(2σ²)-zCDP and has μ = 1/σ, so ρ means μ = √(2ρ), as the paper says. That is
what each row claims. "noise" is the μ of the measurements alone, √(Σ 1/σ²) over all of them, from the σ in dpmm's code:

- MST with `fit(public, public=True)` before `fit(data)` selects on public data. Then σ = √(1/(2ρ)), and each of c
  measurements has noise σ√c: μ = √(2ρ). That is the paper's setting in the library as it is.
- MST without public data takes σ = √(3/(2ρ)) and noise σ√k for its k one-way and its k − 1 two-way measurements:
  μ² = (2 − 1/k) 2ρ/3. The rest of ρ is for selection, and a little is not spent.
- AIM spends 0.9 ρ on one-way measurements if `rounds` is the number of columns, and 0.9 of the rest on one more that it
  selects: μ² = 0.99 · 2ρ.

Adjacency is add-remove: σ is for counts that one record changes by 1. A fair coin says whether a sample is with the
record. Both data sets are public to the adversary, who sees the measurements, or the synthetic records alone. Her score
is fixed in this file, so nothing is learned and every sample is judged: the log-likelihood ratio of the measurements,
without selection; or how many ones the records have, by their share in 2,000 records and the number that the model
returns if none is asked for.

Estimation comes after the measurements that it uses, so its number of steps changes no claim. dpmm takes that number
as `n_iters`, but has 2,500 steps in MST's selection, which take 20 seconds. These are `STEPS` here too. Noise is not
seeded.

The last two rows claim ε = 1 at δ = 0.01, and stop at the first proof. "floats" shows the measurements as they are
stored: dpmm draws noise around 0 and adds it in floating point, so last digits tell the count. "constant column" is
the pipeline with all categories stated: a column that is constant in the data is left out of the model, without noise.
"""

from __future__ import annotations

import argparse
import copy
import functools
import itertools
import logging
import math
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from dpmm.models import aim, mst
from dpmm.models.base.mechanisms import mechanism
from dpmm.pipelines import AIMPipeline

import epsgauge as eg
from epsgauge.stats.posterior import estimate_mu

EPS, DELTA = 1.0, 0.01
LEVELS = 0.99, 0.9999
STEPS = 10  # of estimation: the model is then within 0.03 of what was measured
RECORDS = 2000
SEED = 0

mechanism.cdp_rho = mst.cdp_rho = functools.cache(mechanism.cdp_rho)  # a search that takes half a second
RHO = mechanism.cdp_rho(EPS, DELTA)
CLAIMED = math.sqrt(2 * RHO)


@dataclass(frozen=True)
class Pair:
    """A table of zeros and ones, and the same with one more record, of ones."""

    columns: int
    each: int = 0  # records of each combination of values
    zeros: int = 0  # records of zeros

    @functools.cached_property
    def base(self) -> pd.DataFrame:
        rows = [row for row in itertools.product((0, 1), repeat=self.columns) for _ in range(self.each)]
        return pd.DataFrame(rows + [(0,) * self.columns] * self.zeros, columns=list("ABC"[: self.columns]))

    @functools.cached_property
    def data(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        return self.base, pd.concat([self.base, self.base.iloc[:1] * 0 + 1], ignore_index=True)

    @property
    def domain(self) -> dict[str, int]:
        return dict.fromkeys(self.base.columns, 2)

    @functools.cache  # noqa: B019 (few pairs, as long as the program)
    def ones(self, clique: tuple[str, ...]) -> int:
        """Of the table without the record: how often these columns are all 1, which is the last count."""
        return int(self.base[list(clique)].all(axis=1).sum())


PUBLISHED = Pair(3, zeros=10)
ONE, TWO = Pair(1, each=50), Pair(2, each=25)


def ratio(pair: Pair, model: Any) -> float:
    """The log-likelihood ratio of all measurements, but for a factor."""
    measured = model.generator.measures
    return sum((np.ravel(y)[-1] - pair.ones(tuple(clique)) - 0.5) / sigma**2 for _, y, sigma, clique in measured)


def ones(model: Any) -> float:
    return len(model.generate()) * float(model.generate(RECORDS).to_numpy().mean())


def mst_of(pair: Pair) -> mst.MSTGM:
    return mst.MSTGM(EPS, DELTA, n_iters=STEPS, compress=False, domain=pair.domain, n_jobs=1)


def after_public(pair: Pair) -> Callable[[], mst.MSTGM]:
    """Cliques are selected once, on public data: the table without the record."""
    selected = mst_of(pair)
    selected.fit(pair.base, public=True)
    return lambda: copy.deepcopy(selected)


def aim_of(pair: Pair) -> aim.AIMGM:
    how = {"rounds": pair.columns, "n_iters": STEPS, "compress": False, "n_jobs": 1}
    return aim.AIMGM(EPS, DELTA, domain=pair.domain, **how)


@dataclass(frozen=True)
class Row:
    """A generator, what it has of the claimed μ by its noise, and how many samples it can have."""

    name: str
    noise: float
    pair: Pair
    model: Callable[[], Callable[[], Any]]  # gives what makes a model, which is made anew for each sample
    whole: bool = False  # records too
    share: float = 1.0  # of the samples that are asked for, by how long one takes


def rows() -> Iterator[Row]:
    public, thirds = "MST, public selection", math.sqrt((2 - 1 / 3) * 2 * RHO / 3)
    yield Row(f"{public}, one column", CLAIMED, ONE, lambda: after_public(ONE))
    yield Row(f"{public}, whole", CLAIMED, ONE, lambda: after_public(ONE), True, 0.25)
    yield Row("AIM, whole", math.sqrt(0.99 * 2 * RHO), TWO, lambda: lambda: aim_of(TWO), True, 0.06)
    yield Row(f"{public}, published pair", CLAIMED, PUBLISHED, lambda: after_public(PUBLISHED), share=0.1)
    yield Row("MST, published pair", thirds, PUBLISHED, lambda: lambda: mst_of(PUBLISHED), share=0.05)


def drawn(row: Row, bits: np.ndarray) -> Iterator[tuple[float, ...]]:
    """The scores of each sample: of measurements, and of records."""
    make = row.model()
    for bit in bits:
        model = make()
        model.fit(row.pair.data[bit], marginals_only=not row.whole)
        yield (ratio(row.pair, model), ones(model)) if row.whole else (ratio(row.pair, model),)


def measured(row: Row, samples: int) -> Iterator[tuple[str, ...]]:
    n, begun = int(samples * row.share), time.process_time()
    bits = np.random.default_rng(SEED).integers(0, 2, n)
    scores = np.array(list(drawn(row, bits)))
    each = (time.process_time() - begun) / n
    for sees, score in zip(("measurements", "records"), scores.T, strict=False):
        table = eg.Scores(np.arange(n), np.zeros(n, np.int64), bits, score, "add-remove", bits="coins")
        claim = {"claimed_mu": CLAIMED, "claimed_adjacency": "add-remove"}
        found = [eg.audit(table, verdict_level=level, **claim) for level in LEVELS]
        assert {one.verdict.promise for one in found} == {"guaranteed"}
        posterior = estimate_mu(eg.Tally.from_guesses(bits, (score >= np.median(score)).astype(int)))
        ends = posterior.interval(0.9)
        yield (
            row.name,
            sees,
            f"{CLAIMED:.3f}",
            f"{row.noise:.3f}",
            *(f"{one.verdict.conditional_bound.mu:.3f}" for one in found),
            f"{float(posterior.median()):.3f} [{ends.low:.3f}, {ends.high:.3f}]",
            found[1].verdict.kind,
            f"{n}",
            f"{1000 * each:.1f}",
        )


def floats(d: int) -> np.ndarray:
    """Ten records of zeros, and one more of ones: the noisy counts of one column, as they are stored."""
    model = FLOATS[0]()
    model.fit(FLOATS[1].data[d], marginals_only=True)
    return model.generator.measures[0][1]


FLOATS = after_public(Pair(1, zeros=10)), Pair(1, zeros=10)


def constant_column(d: int) -> int:
    """How many synthetic records have a 1 in a column that is 0 in all records but the one in question."""
    base = [(0, b, c) for b in (0, 1) for c in (0, 1) for _ in range(25)]
    data = pd.DataFrame(base + [(1, 1, 1)] * d, columns=list("ABC")).astype(pd.CategoricalDtype([0, 1]))
    how = {"rounds": 3, "n_iters": STEPS}
    pipeline = AIMPipeline(EPS, DELTA, proc_epsilon=None, compress=False, n_jobs=1, gen_kwargs=how)
    pipeline.fit(data, domain={name: {"categories": [0, 1]} for name in data})
    return int((pipeline.generate(n_records=200)["A"].astype(int) == 1).sum())


def broken(only: str) -> Iterator[tuple[str, ...]]:
    """Until a violation, guesses of 1 are the proof, so the data set that gives itself away is d1."""
    for name, output, d1 in (
        ("MST, floats", floats, 0),
        ("AIM pipeline, constant column", constant_column, 1),
    ):
        if only not in name:
            continue
        begun, level = time.process_time(), LEVELS[1]
        how = {"n_samples": 20_000, "until": "violation", "adjacency": "add-remove", "name": name}
        game = eg.MechanismGame(output, 1 - d1, d1, **how)
        found = eg.audit(game, claimed_eps=EPS, claimed_delta=DELTA, verdict_level=level)
        took = time.process_time() - begun
        claim, v, s = f"ε {EPS:g}, δ {DELTA:g}", found.verdict, found.sampled
        yield name, claim, f"{v.bound.value:.2f}", v.kind, v.promise, s.region, f"{s.drawn}", f"{took:.0f}"


HEAD = ("generator", "seen", "μ claimed", "noise", "μ ≥, 99 %", "μ ≥, 1 − 1e-4", "estimate, 90 %", "verdict")
HEAD = (*HEAD, "samples", "ms each")
OF_BROKEN = ("broken", "claim", "ε ≥, 1 − 1e-4", "verdict", "promise", "region", "samples", "seconds")


def shown(cells: tuple[str, ...], widths: tuple[int, ...], *, markdown: bool) -> None:
    padded = "  ".join(f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True))
    print(f"| {' | '.join(cells)} |" if markdown else padded, flush=True)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--samples", type=int, default=40_000)
    options.add_argument("--only", default="")
    options.add_argument("--markdown", action="store_true")
    given = options.parse_args()
    warnings.filterwarnings("ignore")  # overflow in line searches of estimation
    logging.getLogger("dpmm").setLevel(logging.ERROR)
    full = mst.FactoredInference
    mst.FactoredInference = lambda domain, iters: full(domain, iters=min(iters, STEPS))
    print(f"ρ = {RHO:.4f}, claimed μ = √(2ρ) = {CLAIMED:.4f}; published: 0.43 of 0.45, one-sided 90 % credible")
    widths = (37, 12, 9, 6, 10, 13, 20, 11, 7, 7)
    shown(HEAD, widths, markdown=given.markdown)
    for row in rows():
        if given.only in row.name:
            for cells in measured(row, given.samples):
                shown(cells, widths, markdown=given.markdown)
    widths = (32, 12, 13, 11, 10, 8, 7, 7)
    shown(OF_BROKEN, widths, markdown=given.markdown)
    for cells in broken(given.only):
        shown(cells, widths, markdown=given.markdown)


if __name__ == "__main__":
    main()
