"""Synthetic-data generators from data to records, dpmm's MST and AIM: what a game shows of the μ that they claim.

    python benchmarks/synthetic.py [--samples 100000] [--only NAME] [--markdown]

It needs `pip install dpmm==0.1.9` beside epsgauge. Generators promise (ε, δ) = (1, 0.01), as in Ganev, Annamalai and
Kulynych (2026, arXiv 2604.18352), which reports μ = 0.43 for an implied μ of 0.45. That is the lower end of a 90 %
credible interval of one game, with 2,000 judged samples of each kind, and of an MST that was changed: it spends all of
its budget on one-way measurements and selects nothing. Its code for AIM is not published. Bounds here are guaranteed.

**Which μ is claimed.** dpmm turns (ε, δ) into ρ of zCDP by its `cdp_rho`. Gaussian noise of standard deviation σ on
counts that one record changes by 1 is 1/(2σ²)-zCDP and has μ = 1/σ, so ρ means μ = √(2ρ), as the paper says. That is
what each row claims. "noise" is the μ of the measurements alone, √(Σ 1/σ²) over all of them, from the σ in dpmm's code:

- MST with `fit(public, public=True)` before `fit(data)` selects on public data. Then σ = √(1/(2ρ)), and each of c
  measurements has noise σ√c: μ = √(2ρ). That is the paper's setting in the library as it is.
- MST without public data takes σ = √(3/(2ρ)) and noise σ√k for its k one-way and its k − 1 two-way measurements:
  μ² = (2 − 1/k) 2ρ/3. The rest of ρ is for selection, and a little is not spent.
- AIM spends 0.9 ρ on one-way measurements if `rounds` is the number of columns, and 0.9 of the rest on one more that it
  selects: μ² = 0.99 · 2ρ.

Adjacency is add-remove: σ is for counts that one record changes by 1. Both data sets are public to the adversary, who
sees the records (how many there are by default, and how often each combination of values comes in 10,000), or the
measurements (their log-likelihood ratio, without selection). These features were fixed before any sample was judged.
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
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from dpmm.models import aim, mst
from dpmm.models.base.mechanisms import mechanism
from dpmm.pipelines import AIMPipeline

import epsgauge as eg
from epsgauge.sampling.regions import REGIONS
from epsgauge.stats.posterior import estimate_mu

EPS, DELTA = 1.0, 0.01
LEVELS = 0.99, 0.9999
STEPS = 10  # of estimation: the model is then within 0.03 of what was measured
RECORDS = 10_000
NO_DIGITS = tuple(name for name in REGIONS if name != "digits")

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


@dataclass(eq=False)
class Drawn:
    """Outputs that are drawn once, and shown to several adversaries: the bits of a game depend on its seed alone."""

    draw: Callable[[int], Any]
    kept: list[tuple[int, Any]] = field(default_factory=list)
    seconds: float = 0.0

    def seen(self, look: Callable[[Any], Any]) -> Callable[[int], Any]:
        at = itertools.count()

        def output(d: int) -> Any:
            place = next(at)
            if place == len(self.kept):
                begun = time.process_time()
                self.kept.append((d, self.draw(d)))
                self.seconds += time.process_time() - begun
            before, drawn = self.kept[place]
            assert before == d
            return look(drawn)

        return output


def ratio(pair: Pair, model: Any) -> float:
    """The log-likelihood ratio of all measurements, but for a factor."""
    measured = model.generator.measures
    return sum((np.ravel(y)[-1] - pair.ones(tuple(clique)) - 0.5) / sigma**2 for _, y, sigma, clique in measured)


def records(pair: Pair, model: Any) -> list[int]:
    many = model.generate(RECORDS)[list(pair.base.columns)].to_numpy()
    code = many @ (2 ** np.arange(pair.columns)[::-1])
    return [len(model.generate()), *np.bincount(code, minlength=2**pair.columns)]


def fitted(pair: Pair, make: Callable[[], Any], *, only_measured: bool = False) -> Drawn:
    """(ratio, records) of a model that is made and fitted anew for each sample."""

    def draw(d: int) -> tuple[float, list[int]]:
        model = make()
        model.fit(pair.data[d], marginals_only=only_measured)
        return ratio(pair, model), [] if only_measured else records(pair, model)

    return Drawn(draw)


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
    """A generator, what it has of the claimed μ by its noise, and who sees what of it."""

    name: str
    noise: float
    drawn: Callable[[], Drawn]
    sees: tuple[str, ...]
    share: float = 1.0  # of the samples that are asked for, by how long one takes


def rows() -> Iterator[Row]:
    both, public, only = ("measurements", "records"), "MST, public selection", {"only_measured": True}
    yield Row(f"{public}, one column", CLAIMED, lambda: fitted(ONE, after_public(ONE), **only), both[:1])
    yield Row(f"{public}, whole", CLAIMED, lambda: fitted(ONE, after_public(ONE)), both, 0.3)
    yield Row("AIM, whole", math.sqrt(0.99 * 2 * RHO), lambda: fitted(TWO, lambda: aim_of(TWO)), both, 0.06)
    name = f"{public}, published pair"
    yield Row(name, CLAIMED, lambda: fitted(PUBLISHED, after_public(PUBLISHED), **only), both[:1], 0.1)
    thirds = math.sqrt((2 - 1 / 3) * 2 * RHO / 3)
    name = "MST, published pair"
    yield Row(name, thirds, lambda: fitted(PUBLISHED, lambda: mst_of(PUBLISHED), **only), both[:1], 0.05)


def measured(row: Row, samples: int) -> Iterator[tuple[str, ...]]:
    drawn, n = row.drawn(), max(200, int(samples * row.share))
    for sees in row.sees:
        found = []
        for level in LEVELS:
            at = ("measurements", "records").index(sees)
            look, regions = (lambda one, at=at: one[at]), NO_DIGITS if sees == "measurements" else tuple(REGIONS)
            how = {"n_samples": n, "adjacency": "add-remove", "regions": regions}
            game = eg.MechanismGame(drawn.seen(look), 0, 1, name=row.name, **how)
            found.append(eg.audit(game, claimed_mu=CLAIMED, verdict_level=level, level=0.9))
        assert {one.verdict.promise for one in found} == {"guaranteed"}
        posterior = estimate_mu(found[0].evidence.one_each.guesses)
        ends = posterior.interval(0.9)
        yield (
            row.name,
            sees,
            f"{CLAIMED:.3f}",
            f"{row.noise:.3f}",
            *(f"{one.verdict.mu:.3f}" for one in found),
            f"{float(posterior.median()):.3f} [{ends.low:.3f}, {ends.high:.3f}]",
            found[1].verdict.kind,
            found[0].sampled.region,
            f"{n}",
            f"{1000 * drawn.seconds / len(drawn.kept):.1f}",
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
        yield name, claim, f"{v.bound:.2f}", v.kind, v.promise, s.region, f"{s.drawn}", f"{took:.0f}"


HEAD = ("generator", "seen", "μ claimed", "noise", "μ ≥, 99 %", "μ ≥, 1 − 1e-4", "estimate, 90 %", "verdict", "region")
HEAD = (*HEAD, "samples", "ms each")
OF_BROKEN = ("broken", "claim", "ε ≥, 1 − 1e-4", "verdict", "promise", "region", "samples", "seconds")


def shown(cells: tuple[str, ...], widths: tuple[int, ...], *, markdown: bool) -> None:
    padded = "  ".join(f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True))
    print(f"| {' | '.join(cells)} |" if markdown else padded, flush=True)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--samples", type=int, default=100_000)
    options.add_argument("--only", default="")
    options.add_argument("--markdown", action="store_true")
    given = options.parse_args()
    warnings.filterwarnings("ignore")  # overflow in line searches of estimation
    logging.getLogger("dpmm").setLevel(logging.ERROR)
    full = mst.FactoredInference
    mst.FactoredInference = lambda domain, iters: full(domain, iters=min(iters, STEPS))
    print(f"ρ = {RHO:.4f}, claimed μ = √(2ρ) = {CLAIMED:.4f}; published: 0.43 of 0.45, 90 % credible, one game")
    widths = (37, 12, 9, 6, 10, 13, 20, 11, 12, 7, 7)
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
