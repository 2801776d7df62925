"""All guesses about all models of an audit together: which of them count, and the bounds that they give."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import special

from epsgauge.auditing.one_sided import POWER
from epsgauge.auditing.rows import AuditRow, Conditions, Guaranteed, promise_of
from epsgauge.bounds.guesses import Guessed, Guesses, Sides, guesses_of, surest_right
from epsgauge.bounds.one_run import one_run_fdp_eps, one_run_fdp_mu
from epsgauge.bounds.pooled import pooled_bound
from epsgauge.errors import InvalidInput
from epsgauge.scores.rules import Judged
from epsgauge.scores.table import Scores
from epsgauge.stats import region
from epsgauge.stats.arrays import Ints
from epsgauge.stats.binomial import log_mass
from epsgauge.stats.families import Mu
from epsgauge.stats.methods import DELTA_FIXED, METHODS, Method
from epsgauge.stats.tally import Tally

# Bits as uneven as this, or more, come from fair coins less often than once in a million tables.
UNFAIR = 1e-6
COUNTED: tuple[Guessed, ...] = ("all", "positive", "negative")
# Where nothing else was said, so many guesses of those that are surest are tried, as shares of all bits.
SHARES = tuple(2.0**-k for k in range(1, 8))
FEWEST = 8


@dataclass(frozen=True)
class Which:
    """The guesses that count, fixed without the judged bits; `share` of all bits for those that are surest."""

    guessed: Guessed
    share: float | None = None
    number: int | None = None

    def n_top(self, n_bits: int) -> int:
        """How many of the surest."""
        return min(self.number or max(1, round((self.share or 0.0) * n_bits)), n_bits)


@dataclass(frozen=True)
class Pool:
    """Every judged pair of every model. About a pair of a model that failed nothing was seen: it is guessed wrongly,
    or not at all where only the surest guesses count.
    """

    judged: Judged
    all_pairs: Guaranteed
    which: Which

    @property
    def tally(self) -> Tally:
        return self.all_pairs.tally

    @property
    def counted(self) -> bool:
        """Whether the tally says which guesses there are."""
        return self.which.guessed in COUNTED

    @property
    def said(self) -> str:
        """Which guesses count, in words."""
        return {
            "all": "all guesses",
            "positive": "guesses of b = 1",
            "negative": "guesses of b = 0",
            "top": f"the {self.guesses.n_guesses} surest guesses",
            "top-positive": f"the {self.guesses.n_guesses} highest scores, guessed b = 1",
        }[self.which.guessed]

    @property
    def method(self) -> Method:
        """With what it assumes here: where the scores decide how many guesses there are, no δ but one is tried."""
        pooled = METHODS["pooled"]
        if self.guesses.number == "fixed":
            return pooled
        return replace(pooled, assumptions=(*pooled.assumptions, DELTA_FIXED))

    @cached_property
    def unfair(self) -> str | None:
        """Why the bits cannot be those of fair coins."""
        tables = [self.judged.judged, self.judged.fit] if self.judged.same_models else [self.judged.judged]
        model, bit = (np.concatenate([getattr(table, name) for table in tables]) for name in ("model", "bit"))
        g = self.all_pairs
        ones, n = int(bit.sum()) + g.failed_ones, len(bit) + g.n_failed
        if 2 * special.bdtr(min(ones, n - ones), n, 0.5) < UNFAIR:
            return f"it needs fair bits, but {ones} of {n} are 1"
        _, of = np.unique(model, return_inverse=True)
        if too_even(np.bincount(of, bit).astype(np.int64), np.bincount(of)) < UNFAIR:
            return "it needs fair bits, but each model has about as many of 1 as of 0, more evenly than coins fall"
        return None

    @cached_property
    def guesses(self) -> Guesses:
        if self.counted:
            return guesses_of(self.tally, self.which.guessed)
        scores = self.judged.judged
        right = _right(self.judged, scores, self.which.guessed)
        return _surest(right, self.which, len(scores) + self.all_pairs.n_failed)

    @property
    def perfect(self) -> Guesses:
        """If every guess were right, but on pairs of models that failed."""
        if self.counted:
            return guesses_of(self.all_pairs.perfect, self.which.guessed)
        g, t = self.guesses, self.all_pairs.guesses
        return replace(g, n_right=min(g.n_guesses, int(t.n_positive if g.sides == "one" else t.n_samples)))

    def lower_bound(self, level: float, delta: float) -> float:
        return pooled_bound(self.guesses, delta=delta, level=level).eps

    def at_best(self, level: float, delta: float) -> float:
        return pooled_bound(self.perfect, delta=delta, level=level).eps

    def detectable(self, level: float, delta: float) -> float:
        return pooled_bound(self.at_power, delta=delta, level=level).eps

    @property
    def at_power(self) -> Guesses:
        """So few right guesses, or fewer, there are with a probability of 1 − POWER at the share that was measured."""
        g = self.guesses
        if not g.n_guesses:
            return g
        reached = special.bdtr(np.arange(g.n_guesses + 1.0), g.n_guesses, g.n_right / g.n_guesses)
        return replace(g, n_right=int(np.searchsorted(reached, 1.0 - POWER)))

    def row(self, *, delta: float, level: float, on: Conditions) -> AuditRow:
        """No upper end comes from it."""
        bound = pooled_bound(self.guesses, delta=delta, level=(1 + level) / 2)
        bites = bound.delta_costs > 0.05 * bound.eps_without_delta
        extra = [f"δ for each of {bound.guesses.n_bits} bits costs {bound.delta_costs:.2g} of it"] if bites else []
        return self._row(self.method, bound.eps, extra, on)

    def curve_row(self, *, delta: float, level: float, on: Conditions, gaussian: bool) -> AuditRow:
        """The same guesses held against a whole trade-off curve."""
        one_sided, method = (1 + level) / 2, METHODS["one-run"]
        if not gaussian:
            return self._row(method, self.curve_bound(one_sided, delta), [], on)
        mu, method = self.mu(one_sided), replace(method, assumptions=(*method.assumptions, str(Mu.assumption)))
        eps = float(region.gaussian_eps(mu, delta=delta))
        return self._row(method, eps, [f"μ of at least {mu:.3g}"], on)

    def curve_bound(self, level: float, delta: float) -> float:
        """ε from the curve of (ε, δ)-DP."""
        return one_run_fdp_eps(self.guesses, delta=delta, level=level)

    def curve_at_best(self, level: float, delta: float) -> float:
        return one_run_fdp_eps(self.perfect, delta=delta, level=level)

    def curve_detectable(self, level: float, delta: float) -> float:
        return one_run_fdp_eps(self.at_power, delta=delta, level=level)

    def mu_detectable(self, level: float) -> float:
        return one_run_fdp_mu(self.at_power, level=level)

    def mu(self, level: float) -> float:
        """μ from the curve of Gaussian DP."""
        return one_run_fdp_mu(self.guesses, level=level)

    def mu_at_best(self, level: float) -> float:
        return one_run_fdp_mu(self.perfect, level=level)

    def _row(self, method: Method, low: float, extra: list[str], on: Conditions) -> AuditRow:
        promise, why = promise_of(method, on)
        notes = [f"of {self.said}", *([why] if why else []), *extra]
        if self.unfair:
            promise, notes = "estimate", [*notes, self.unfair]
        if self.all_pairs.n_failed:
            how = "count as wrong guesses" if self.counted else "are not guessed"
            notes.append(f"{self.all_pairs.n_failed} pairs of failed models {how}")
        note = "; ".join(notes)
        return AuditRow(method.name, method.label, promise, method.assumptions, low, math.inf, self.tally, note)


def too_even(ones: Ints, pairs: Ints) -> float:
    """At most so likely do coins spread so evenly: Chernoff's bound for Σ (2 ones − pairs)² over the models.

    A table that was made with as many ones as zeros in every model is no game of coins: who knows one bit knows more
    of the others.
    """
    several = pairs > 1
    if not several.any():
        return 1.0
    sizes, times = np.unique(pairs[several], return_counts=True)
    seen = float(np.sum((2 * ones[several] - pairs[several]) ** 2))
    logs = []
    for rate in np.geomspace(1e-3, 1e3, 25) / float(np.mean(sizes)):
        terms = [n * _log_mean(int(m), rate) for m, n in zip(sizes, times, strict=True)]
        logs.append(rate * seen + sum(terms))
    return math.exp(min(0.0, *logs))


def _log_mean(m: int, rate: float) -> float:
    """log E exp(−rate (2X − m)²) for X of m coins."""
    k = np.arange(m + 1.0)
    return float(special.logsumexp(log_mass(k, m, 0.5) - rate * (2.0 * k - m) ** 2))


def pool(judged: Judged, failed_bits: Ints, which: Which | None, *, delta: float, level: float, fixed: bool) -> Pool:
    """`which` as fixed beforehand; else what promises most on the rows that chose the rule.

    `fixed`: the number of guesses must not be left to the scores.
    """
    ones = int(failed_bits.sum())
    all_pairs = Guaranteed(judged.tally, ones, len(failed_bits) - ones)
    if which is None:
        which = (
            Which("all")
            if judged.fit_tally is None or judged.same_data
            else _best(judged, all_pairs, delta, level, fixed)
        )
    elif which.guessed not in COUNTED and which.number is None:
        which = _best(judged, all_pairs, delta, level, fixed, which.guessed)
    return Pool(judged, all_pairs, which)


def _best(
    judged: Judged, all_pairs: Guaranteed, delta: float, level: float, fixed: bool, only: Guessed | None = None
) -> Which:
    """Which guesses give the highest bound if as many of them are right as of those on the rows that chose the rule.

    Of few guesses that were all right not all are taken to be right: one more right and one more wrong is added.
    """
    if judged.fit_tally is None:
        raise InvalidInput(
            f'pooled_guesses = "{only}" needs pooled_number, how many guesses count, or rows that choose it: there are '
            "none where the rule was given."
        )
    n_bits = int(all_pairs.tally.n_samples)

    def promised(which: Which, on_fit: Guesses) -> float:
        share = (on_fit.n_right + 1) / (on_fit.n_guesses + 2)
        n = which.n_top(n_bits) if which.share else round(on_fit.n_guesses / max(on_fit.n_bits, 1) * n_bits)
        expected = Guesses(math.floor(share * n), n, n_bits, on_fit.number, on_fit.sides)
        return pooled_bound(expected, delta=delta, level=level).eps

    return max(_candidates(judged, fixed, only), key=lambda pair: promised(*pair))[0]


def _candidates(judged: Judged, fixed: bool, only: Guessed | None) -> Iterator[tuple[Which, Guesses]]:
    """What can be chosen, and its guesses on the rows that choose; all guesses first, which win where all are equal."""
    assert judged.fit_tally is not None
    for guessed in ("all",) if fixed else COUNTED:
        if only is None:
            yield Which(guessed), guesses_of(judged.fit_tally, guessed)
    for guessed in ("top", "top-positive") if only is None else (only,):
        right = _right(judged, judged.fit, guessed)
        for i, share in enumerate(SHARES):
            if share * len(judged.fit) >= FEWEST or (only is not None and i == 0):
                which = Which(guessed, share=share)
                yield which, _surest(right, which, len(judged.fit))


def _right(judged: Judged, scores: Scores, guessed: Guessed) -> Ints:
    return surest_right(scores.score, scores.bit, threshold=judged.threshold, sides=_sides(guessed))


def _surest(right: Ints, which: Which, n_bits: int) -> Guesses:
    """Guesses that would need pairs of failed models, of which there is no score, are wrong."""
    n = which.n_top(n_bits)
    return Guesses(int(right[min(n, len(right) - 1)]), n, n_bits, sides=_sides(which.guessed))


def _sides(guessed: Guessed) -> Sides:
    return "one" if guessed == "top-positive" else "both"
