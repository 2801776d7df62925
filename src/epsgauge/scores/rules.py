"""Rules: a threshold on a score, how it was chosen, and what it scores on the rows that are judged.

A rule guesses 1 iff score ≥ threshold. How it was chosen is a type of its own, because it decides what a bound on
the judged rows promises. A rule of another shape, say two-sided (guess 1 iff low ≤ score < high), would need a type
that says its guesses, a `tally_at` for it (two cuts in the sorted scores instead of one) and candidates that are
pairs; the choices below and `judge` would stay.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from epsgauge.errors import InvalidInput
from epsgauge.scores.search import search, tally_at, threshold_for_fpr
from epsgauge.scores.table import Scores
from epsgauge.stats import checks
from epsgauge.stats.arrays import Bools, Floats, Ints
from epsgauge.stats.quick import quick
from epsgauge.stats.tally import Tally

# Fewer coins may well be all the same, and then no rule can be chosen.
FEWEST_FIT = 8
# More pairs of a model choose no better (docs/comparison.md).
MOST_FIT_PAIRS = 5000


def default_fit(n_models: int) -> int:
    """How many models choose the rule where no number is given: a sixth; of few models 8, but at most a third.

    >>> default_fit(600), default_fit(30), default_fit(12), default_fit(2)
    (100, 8, 4, 1)
    """
    return max(1, n_models // 6, min(FEWEST_FIT, n_models // 3))


def default_fit_pairs(pairs_per_model: int) -> int:
    """How many pairs of each model do: a sixth, at least 1 and at most 5,000. It does not move when a run grows.

    >>> default_fit_pairs(600), default_fit_pairs(4), default_fit_pairs(100_000)
    (100, 1, 5000)
    """
    return min(max(1, pairs_per_model // 6), MOST_FIT_PAIRS)


@dataclass(frozen=True)
class Given:
    """A threshold that was fixed without these scores; every row is judged."""

    threshold: float

    def __post_init__(self) -> None:
        value = checks.one("threshold", checks.numbers("threshold", self.threshold))
        checks.within("threshold", value, "finite", np.isfinite(np.asarray(value)))


@dataclass(frozen=True)
class Split:
    """Some models choose the threshold and the others are judged; all pairs of a model are on one side.

    Models with a number below `fit_models` choose, whether or not all of them are there, so that a failure moves no
    model to the other side; or as many drawn at random where a seed is given. They choose the largest
    lower end of the interval of the method `search`, or, with `target_fpr`, the smallest threshold with that FPR.
    """

    fit_models: int
    seed: int | None = None
    search: str = "jeffreys"
    target_fpr: float | None = None

    def __post_init__(self) -> None:
        checks.whole("fit_models", self.fit_models, 1)
        if self.seed is not None:
            checks.whole("seed", self.seed, 0)
        _check_search(self.search, self.target_fpr)


@dataclass(frozen=True)
class SplitPairs:
    """Some pairs of each model choose the threshold and its other pairs are judged.

    The lowest `fit_pairs` pairs of a model choose, or as many drawn at random where a seed is given. The rule knows the
    models that it is judged on, so only bounds that hold given all other bits keep their promise.
    """

    fit_pairs: int
    seed: int | None = None
    search: str = "jeffreys"
    target_fpr: float | None = None

    def __post_init__(self) -> None:
        checks.whole("fit_pairs", self.fit_pairs, 1)
        if self.seed is not None:
            checks.whole("seed", self.seed, 0)
        _check_search(self.search, self.target_fpr)


@dataclass(frozen=True)
class SameData:
    """The rows that are judged choose the threshold too: whatever is said of them is only an estimate."""

    search: str = "jeffreys"
    target_fpr: float | None = None

    def __post_init__(self) -> None:
        _check_search(self.search, self.target_fpr)


Searched = Split | SplitPairs | SameData
Choice = Given | Searched

# Of the draws here: bits may have been drawn with a small seed too.
STREAM = 0x59117
FIXED = "A threshold that was fixed beforehand needs no such choice."


@dataclass(frozen=True, eq=False, repr=False)
class Judged:
    """A rule, how it was chosen, and its tally on the rows that are judged."""

    choice: Choice
    threshold: float
    judged: Scores
    tally: Tally  # of all judged rows
    one_per_model: Tally  # of the lowest judged pair of each model: these guesses are independent
    fit: Scores  # the rows that chose; empty for Given
    whole: Scores  # all rows
    fit_tally: Tally | None  # at the threshold, on these rows

    @property
    def same_data(self) -> bool:
        """Whether the judged rows chose the rule; then no bound on them promises anything."""
        return isinstance(self.choice, SameData)

    @property
    def same_models(self) -> bool:
        """Whether other pairs of the judged models chose the rule."""
        return isinstance(self.choice, SplitPairs)

    @property
    def fit_models(self) -> Ints:
        """The models that chose, with all their pairs or some; none for Given."""
        return self.fit.models

    @property
    def n_models(self) -> int:
        """How many models are judged."""
        return len(self.judged.models)

    @property
    def pairs_per_model(self) -> int:
        """The largest number of judged rows of one model."""
        return int(self.judged.pairs.max())

    def __repr__(self) -> str:
        return f"<Judged: {self.tally!r} of {self.n_models} models at threshold {self.threshold:g}>"


def judge(
    scores: Scores, choice: Choice, *, delta: float, level: float = 0.90, candidates: Floats | None = None
) -> Judged:
    """Choose the threshold as `choice` says, among `candidates` or the scores themselves, and tally the judged rows.

    `delta` and `level` are those of the interval whose lower end a search maximises.

    >>> ins, outs = [2.0, 1.8, 4.0, 3.0], [0.0, 1.5, 0.5, 1.0]
    >>> scores = Scores.from_in_out(ins, outs, adjacency="substitute", models="independent")
    >>> judge(scores, Split(fit_models=4), delta=1e-5)
    <Judged: Tally(tp=2, tn=2, fp=0, fn=0) of 4 models at threshold 1.8>
    """
    if not len(scores):
        raise InvalidInput("scores must have at least one row to be judged, but got none. Give one row for each guess.")
    fit, judged = _sides(scores, choice)
    if isinstance(choice, Given):
        threshold, fit_tally = float(choice.threshold), None
    else:
        _check_both_bits(scores, fit, choice)
        threshold = _chosen(fit, choice, delta, level, candidates)
        fit_tally = tally_at(fit, np.asarray(threshold))
    at = np.asarray(threshold)
    first = tally_at(firsts(judged), at)
    return Judged(choice, threshold, judged, tally_at(judged, at), first, fit, scores, fit_tally)


def _sides(scores: Scores, choice: Choice) -> tuple[Scores, Scores]:
    """The rows that choose, and those that are judged."""
    if isinstance(choice, Given):
        return scores[:0], scores
    if isinstance(choice, SameData):
        return scores, scores
    chosen = _fit_pairs(scores, choice) if isinstance(choice, SplitPairs) else _fit_rows(scores, choice)
    return scores[chosen], scores[~chosen]


def _fit_pairs(scores: Scores, choice: SplitPairs) -> Bools:
    """Whether a row is among those of its model that choose."""
    most = int(scores.pairs.max())
    if most <= choice.fit_pairs:
        raise InvalidInput(
            f"fit_pairs must be below the number of pairs of a model, {most}, so that some are left to be judged, but "
            f"got {choice.fit_pairs}. Take fewer, or split by model."
        )
    order = scores.by_model
    if choice.seed is not None:
        order = np.lexsort((np.random.default_rng([choice.seed, STREAM]).random(len(scores)), scores.model))
    place = np.empty(len(scores), np.int64)
    place[order] = np.arange(len(scores)) - np.repeat(scores.starts, scores.pairs)
    out: Bools = place < choice.fit_pairs
    return out


def _fit_rows(scores: Scores, choice: Split) -> Bools:
    """Whether a row's model is among those that choose."""
    models = scores.models
    if choice.seed is None:
        fit = models[models < choice.fit_models]
    elif choice.fit_models < len(models):
        fit = np.sort(np.random.default_rng([choice.seed, STREAM]).choice(models, choice.fit_models, replace=False))
    else:
        fit = models
    if len(models) == 1:
        raise InvalidInput(
            f"scores must have two models or more, some to choose the rule and some to be judged, but got 1. {FIXED} "
            'Of a model with several pairs some of these can choose: rule="split-pairs" (--fit-pairs).'
        )
    if len(fit) == len(models):
        raise InvalidInput(
            f"fit_models must be below the number of models, {len(models)}, so that some are left to be judged, but "
            f"got {choice.fit_models}. Take fewer."
        )
    if not len(fit):
        raise InvalidInput(
            f"no model has a number below fit_models = {choice.fit_models}, so none can choose the rule. Take more "
            "fit_models, or draw those of a file with a seed."
        )
    out: Bools = np.isin(scores.model, fit)
    return out


def _chosen(fit: Scores, choice: Searched, delta: float, level: float, candidates: Floats | None) -> float:
    if choice.target_fpr is not None:
        return threshold_for_fpr(fit, choice.target_fpr, candidates)
    return search(fit, delta=delta, level=level, method=choice.search, candidates=candidates).threshold


def firsts(scores: Scores) -> Scores:
    """The lowest pair of each model."""
    return scores if len(scores.models) == len(scores) else scores[scores.first_pairs]


def _check_both_bits(scores: Scores, fit: Scores, choice: Searched) -> None:
    if not _one_bit(fit):
        return
    if isinstance(choice, SameData) or _one_bit(scores):
        raise InvalidInput(
            f"the scores that choose the rule must have both bits, but b is {fit.bit[0]} in all rows. Give scores "
            f"with the other bit too. {FIXED}"
        )
    if isinstance(choice, SplitPairs):
        raise InvalidInput(
            f"the pairs that choose the rule must have both bits, but b is {fit.bit[0]} in all {len(fit)} of them. "
            "Take more fit_pairs, or draw those of a file with a seed."
        )
    n = len(fit.models)
    raise InvalidInput(
        f"the models that choose the rule must have both bits, but b is {fit.bit[0]} in all rows of the {n} "
        f"model{'s' if n != 1 else ''}. Take more fit_models, or draw those of a file with a seed."
    )


def _one_bit(scores: Scores) -> bool:
    return int(scores.bit.sum()) in (0, len(scores))


def _check_search(method: str, target_fpr: float | None) -> None:
    quick(method, "search")
    if target_fpr is not None:
        rate = checks.one("target_fpr", checks.numbers("target_fpr", target_fpr))
        checks.within("target_fpr", rate, "in (0, 1)", np.asarray(0 < rate < 1))
