"""The plain words beside each picture of a report: what it shows, and what it does not."""

from __future__ import annotations

from dataclasses import dataclass

from epsgauge.auditing.audit import Audit
from epsgauge.reporting.estimate import Answer
from epsgauge.reporting.numbers import probability
from epsgauge.scores.rules import Given
from epsgauge.stats.methods import METHODS
from epsgauge.stats.posterior import Posterior


@dataclass(frozen=True)
class Words:
    """Both halves are a few short sentences."""

    shows: str
    hides: str


def ruler(audit: Audit) -> Words:
    v, row, level = audit.verdict, audit["bayes"], f"{100 * audit.settings.level:.12g} %"
    claim = "" if audit.claim is None else "The claim is what the pipeline promises. "
    sure = {
        "guaranteed": f"is too high in at most {100 * (1 - v.level):.3g} % of such audits, if its assumptions hold",
        "credible": f"has {100 * v.level:.12g} % of the posterior above it, and is no confidence bound",
        "estimate": "is an estimate here: no level is promised",
    }[v.promise]
    interval = f"lies with a posterior probability of {level}"
    if row.promise != "credible":
        interval = f"would lie with a posterior probability of {level}, but is an estimate here: {row.note}"
    return Words(
        f"{claim}The lower bound ({METHODS[v.method].label}) {sure}. The other bar is where the ε that "
        f"this attack reaches {interval}; its mark is the median.",
        "No number here limits the ε of the pipeline from above: another attack, or more models, may show more. A "
        "claim to the right of everything is not refuted, which is less than verified.",
    )


def ruler_of_counts(answer: Answer) -> Words:
    return Words(
        "The bar is where the credible interval lies, its mark is the median; the lower bound is guaranteed if its "
        "assumptions hold.",
        "Whether they hold cannot be seen from counts. No number here limits what a stronger attack may show.",
    )


def density(posterior: Posterior, claimed: float | None, caveat: str | None = None) -> Words:
    """`caveat` is why the posterior promises less than it could."""
    symbol, atom = posterior.family.symbol, float(posterior.mass_at_zero)
    mass = "" if atom < 5e-4 else f" The bar at 0 is the probability {probability(atom)} that {symbol} is exactly 0."
    above = ""
    if claimed is not None:
        above = f" The probability right of the claim is {probability(float(posterior.exceeds(claimed)))}."
    zero = ""
    if posterior.quantity == "eps":
        zero = (
            " where nothing leaks and δ is small, nearly all of it still lies above 0, because ε = 0 takes error rates "
            "that add up to 1 within δ."
        )
    less = "" if caveat is None else f" Here it is an estimate: {caveat}."
    return Words(
        f"How probable each value of {symbol} is, given the guesses and the prior.{mass}{above} The faint line is the "
        "prior alone: where the two differ, the data have spoken.",
        f"It is about the {symbol} that this attack reaches, not about the worst one, and it is no confidence "
        f"statement{':' + zero if zero else '.'}{less}",
    )


def bars(level: float) -> Words:
    tail = f"{100 * (1 - level) / 2:.12g} %"
    return Words(
        f"The same guesses by every method. A guaranteed interval lies too high in at most {tail} of such audits, and, "
        f"where it has an upper end, too low in at most {tail}. An arrow means that the interval goes on.",
        "Methods that agree are no further evidence: they read the same guesses. A short interval is worth more than a "
        "long one only if it promises the same.",
    )


def region(level: float) -> Words:
    return Words(
        "An attack errs in two ways: it misses b = 1 (FNR) and it raises false alarms (FPR). (ε, δ)-DP allows only "
        "rates inside the region R(ε). The dot is what was measured, the outlines are the joint posterior of both "
        f"true rates, and {100 * level:.12g} % of it lies between R(ε−) and R(ε+): their ε are the interval’s ends.",
        "Rates deep inside a region say that this attack does not refute its ε. Whether another attack has rates "
        "outside cannot be seen here.",
    )


def histogram(audit: Audit) -> Words:
    return Words(
        "The scores of all judged pairs, apart by the true bit. From the threshold on the attack says b = 1. Where the "
        "two histograms part, the attack can tell.",
        "Histograms that overlap do not mean that nothing leaks: ε is decided by ratios, often in a tail where a few "
        "scores make no visible bar.",
    )


def roc(audit: Audit) -> Words:
    line = (
        "There is no claim whose line could be drawn. "
        if audit.claim is None
        else "Under the claim no attack's true curve rises above its line. "
    )
    n0 = int(audit.judged.tally.n_negative)
    dot = "Only the dot was chosen without these guesses. Another"
    if audit.judged.same_data:
        dot = "The dot was chosen on these guesses, as any other point would be. A"
    single = f" With {n0} pairs of b = 0 an FPR near {1 / n0:.1g} is a single guess." if n0 else ""
    return Words(
        f"Hits (TPR) against false alarms (FPR) at every threshold; the dot is the rule that was judged. {line}On "
        "logarithmic axes the few false alarms become visible, where ε is often decided.",
        f"{dot} point above the line refutes nothing by itself: the best of many points is too high by chance.{single}",
    )


def percentiles(audit: Audit) -> Words:
    judged = audit.judged
    if isinstance(judged.choice, Given):
        chose = "The marked one was fixed beforehand; no model of this audit chose it."
    elif judged.same_data:
        chose = "The marked one was chosen on the very guesses that are judged, which makes it too good by chance."
    elif judged.same_models:
        chose = "The marked one was chosen on other pairs of the judged models."
    else:
        chose = f"The marked one was chosen on {len(judged.fit_models)} models, which are not among the judged ones."
    return Words(
        f"The ε that every rule would have given, with its interval: median and credible interval at each. {chose}",
        "The highest point of the judged curve is no estimate of anything: as the best of many it is too high by "
        "chance. Only the marked rule counts.",
    )


def narrowing(n_now: int, n_half: int | None) -> Words:
    if n_half is None:
        need = "No number of models within reach would halve its width: the prior or the rates set it."
    else:
        more = max(n_half - n_now, 0)
        need = f"Half the width needs about {n_half} judged models in all, {more} more than these {n_now}."
    return Words(
        "The credible interval after the first judged models, then more, in the order of their numbers. " + need,
        "The number needed is a forecast: it assumes that both error rates stay as measured. And who stops where the "
        "picture pleases has no level left; only the anytime bound allows that.",
    )


def dependence(audit: Audit) -> Words:
    return Words(
        f"Wrong guesses per model, beside what {audit.pairs_per_model} independent guesses would give. A design effect "
        "of 1 is independence; at 2 the guesses are worth half as many.",
        "It finds dependence within a model, not its absence, and it corrects the width of an interval, not its place. "
        "The pooled bound needs neither: it holds under any dependence.",
    )


def cdfs() -> Words:
    return Words(
        "For each run, the posterior probability that ε is at most x. A steep curve further to the right shows a "
        "larger ε; a flat one shows that little is known; one that starts above 0 has mass at ε = 0.",
        "A distance between curves is no test: each carries the noise of its own models. And a difference has a cause "
        "only where the runs differ in one thing.",
    )
