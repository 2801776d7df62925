"""The plain words beside each picture of a report: what it shows, and what it does not."""

from __future__ import annotations

from dataclasses import dataclass

from epsgauge.auditing.audit import Audit
from epsgauge.auditing.rows import POOLED
from epsgauge.auditing.verdict import Verdict
from epsgauge.numbers import count, likely, number, percent
from epsgauge.reporting.estimate import Answer
from epsgauge.scores.rules import Given, SameData
from epsgauge.stats.methods import METHODS
from epsgauge.stats.posterior import Posterior


@dataclass(frozen=True)
class Words:
    """Both halves are a few short sentences."""

    shows: str
    hides: str


def ruler(audit: Audit) -> Words:
    v, row = audit.verdict, audit["bayes"]
    at = ""
    if v.delta != audit.settings.delta:
        at = f" All of it is at the claim’s δ = {v.delta:.3g}, not at the audit’s δ = {audit.settings.delta:.3g}."
    claim = "" if audit.claim is None else "The claim is what the pipeline promises. "
    level = f"with a posterior probability of at least {percent(audit.settings.level)}"
    lies, less = "lies", ""
    if row.promise != "credible":
        lies, less = "would lie", _estimate(row.note)
    return Words(
        f"{claim}The lower bound ({METHODS[v.method].label}) {_how_sure(v)}. The other bar is where the ε that this "
        f"attack reaches {lies} {level}; its mark is the median.{less}{_worth(v)}{_different_guesses(audit)}{at}",
        "Nothing measured here limits the ε of the pipeline from above: another attack, or more models, may show more."
        + _place_of_the_claim(v),
    )


def ruler_of_counts(answer: Answer) -> Words:
    tail = percent((1 - answer.level) / 2)
    return Words(
        f"The bar is the {percent(answer.level)} credible interval, its mark the median. The lower bound is too high "
        f"for at most {tail} of such counts, if its assumptions hold.",
        "Whether they hold cannot be seen from counts. No number here limits what a stronger attack may show.",
    )


def density(posterior: Posterior, claimed: float | None, caveat: str | None = None) -> Words:
    """`caveat` is why the posterior promises less than it could."""
    symbol, atom = posterior.family.symbol, float(posterior.mass_at_zero)
    mass = "" if atom < 5e-4 else f" The bar at 0 is the probability {likely(atom)} that {symbol} is exactly 0."
    above = ""
    if claimed is not None:
        above = f" The probability right of the claim is {likely(float(posterior.exceeds(claimed)))}."
    zero = ""
    if posterior.quantity == "eps" and posterior.family.assumption is None:
        zero = (
            " where nothing leaks and δ is small, nearly all of it still lies above 0, because ε = 0 takes error rates "
            "that add up to 1 within δ."
        )
    return Words(
        f"How probable each value of {symbol} is, given the guesses and the prior.{mass}{above} The faint line is the "
        "prior alone: where the two differ, the data have spoken.",
        f"It is about the {symbol} that this attack reaches, not about the worst one, and it is no confidence "
        f"statement{':' + zero if zero else '.'}{_estimate(caveat)}",
    )


def bars(level: float, audit: Audit | None = None) -> Words:
    """With the audit that the bars are of: which of them rests on which guesses."""
    tail, rest = percent((1 - level) / 2), "" if audit is None else _by_method(audit)
    sure = (
        f"A guaranteed interval lies too high in at most {tail} of such audits, and, where it has an upper end, too "
        f"low in at most {tail}, if what it assumes holds. "
    )
    if audit is not None and not any(row.promise == "guaranteed" for row in audit.rows):
        sure = "None of them is guaranteed here: the notes say why. "
    return Words(
        f"One bar a method. {rest}{sure}An arrow means that the interval goes on.",
        "Methods that agree are no further evidence: they read guesses about the same models. A short interval is "
        "worth more than a long one only if it promises the same.",
    )


def region(level: float, posterior: Posterior | None = None, caveat: str | None = None) -> Words:
    """`caveat` is why the posterior promises less than it could."""
    dot = "The dot is what was measured, the"
    if posterior is not None and not (posterior.tally.n_positive > 0 and posterior.tally.n_negative > 0):
        dot = "One of the rates was not measured, and there is no dot. The"
    return Words(
        "An attack errs in two ways: it misses b = 1 (FNR) and it raises false alarms (FPR). (ε, δ)-DP allows only "
        f"true rates inside the region R(ε). {dot} outlines are the joint posterior of both true rates, and at least "
        f"{percent(level)} of it lies between R(ε−) and R(ε+): their ε are the interval’s ends.",
        "Rates deep inside a region say that this attack does not refute its ε. Whether another attack has rates "
        f"outside cannot be seen here.{_estimate(caveat)}",
    )


def histogram(audit: Audit) -> Words:
    t, part = audit.judged.tally, "Where the two histograms part, the attack can tell."
    if not (t.n_positive > 0 and t.n_negative > 0):
        part = "One bit has no pairs, so there is nothing to compare."
    return Words(
        f"The scores of all judged pairs, apart by the true bit. From the threshold on the attack says b = 1. {part}",
        "Histograms that overlap do not mean that nothing leaks: ε is decided by ratios, often in a tail where a few "
        "scores make no visible bar.",
    )


def roc(audit: Audit) -> Words:
    n0 = int(audit.judged.tally.n_negative)
    line, above = "Under the claim no attack’s true curve rises above its line. ", " above the line"
    if audit.claim is None:
        line, above = "There is no claim whose line could be drawn. ", ""
    dot = "The dot was chosen without these guesses; any other point would be chosen by them."
    if audit.judged.same_data:
        dot = "The dot was chosen on these guesses, as any other point would be."
    elif audit.lost is not None and audit.lost.rule:
        dot = f"These guesses may have had a say in where the dot is: {audit.lost.why}."
    elif audit.judged.same_models:
        dot = "The dot was chosen on other pairs of the same models; any other point would be chosen by these guesses."
    single = "" if not n0 else f" The smallest FPR above 0 is {1 / n0:.2g}: one of {n0} guesses."
    return Words(
        f"Hits (TPR) against false alarms (FPR) at every threshold; the dot is the rule that is judged. {line}On "
        "logarithmic axes the few false alarms become visible, where ε is often decided.",
        f"{dot} A measured point{above} proves nothing by itself: what the dot is worth the bound says, and the best "
        f"of many points is too high by chance.{single}",
    )


def percentiles(audit: Audit) -> Words:
    judged, row = audit.judged, audit["bayes"]
    interval = "median and credible interval" if row.promise == "credible" else "median and interval of a posterior"
    n = len(judged.fit_models)
    counts = "Only the marked rule counts."
    if isinstance(judged.choice, SameData):
        chose = "The marked one was chosen on the very guesses that are judged."
        counts = "The marked one was picked among them on these guesses; only the simultaneous bound allows for that."
    elif isinstance(judged.choice, Given):
        chose = "The marked one was given; no model of this audit chose it."
    elif judged.same_models:
        chose = f"The marked one was chosen on {count(len(judged.fit), 'other pair')} of the judged models."
    else:
        who = "which is not among the judged ones" if n == 1 else "which are not among the judged ones"
        chose = f"The marked one was chosen on {count(n, 'model')}, {who}."
    less = "" if row.promise == "credible" else _estimate(row.note)
    return Words(
        f"The ε that every rule would have given on the judged guesses: {interval} at each. {chose}",
        "The highest point of the judged curve is no estimate of anything: as the best of many it is too high by "
        f"chance. {counts}{less}",
    )


def narrowing(n_now: int, n_half: int | None, caveat: str | None = None) -> Words:
    """`caveat` is why the posterior promises less than it could."""
    need = "Not even 100 times as many models would halve its width, if both error rates stay."
    if n_half is not None:
        need = f"Half the width needs about {n_half} judged models in all; there are {n_now} now."
    return Words(
        "The posterior’s interval and median after the first judged models, then more, in the order of their numbers. "
        + need,
        "The number needed is a forecast: it assumes that both error rates stay as measured. And who stops where the "
        f"picture pleases has no level left; only the anytime bound allows that.{_estimate(caveat)}",
    )


def dependence(audit: Audit) -> Words:
    rows = {row.method: row for row in audit.rows}
    effect = "For a design effect there are too few models, or one bit alone."
    if "clusters" in rows:
        effect = "A design effect of 1 is independence; at 2 the guesses are worth half as many."
    pooled = ""
    if "pooled" in rows:
        pooled = (
            " The pooled bound needs no such correction: it allows for any dependence among guesses about one model"
        )
        pooled += "." if rows["pooled"].promise == "guaranteed" else ", but is an estimate here for another reason."
    return Words(
        f"Wrong guesses per model, beside what independent guesses with the same error rates would give. {effect}",
        "It finds dependence within a model, not its absence, and it corrects the width of an interval, not its place."
        + pooled,
    )


def cdfs() -> Words:
    return Words(
        "For each run, the posterior probability that ε is at most x. A steep curve further to the right shows a "
        "larger ε; a flat one shows that little is known; one that starts above 0 has mass at ε = 0.",
        "A distance between curves is no test: each carries the noise of its own models. And a difference has a cause "
        "only where the runs differ in one thing. A curve promises no more than its run’s interval: where that is an "
        "estimate, so is the curve.",
    )


# Pieces


def _estimate(caveat: str | None) -> str:
    return "" if caveat is None else f" The posterior is an estimate here: {caveat}."


def _how_sure(v: Verdict) -> str:
    if v.promise == "guaranteed":
        return f"is too high in at most {percent(1 - v.level)} of such audits, if its assumptions hold"
    if v.promise == "credible":
        return f"has {percent(v.level)} of the posterior above it, and is no confidence bound"
    return "is an estimate here: no level is promised"


def _worth(v: Verdict) -> str:
    """What a bound of μ has to do with ε."""
    if v.mu is None:
        return ""
    return (
        f" The bound is the ε that μ = {number(v.mu)} is worth if the mechanism is Gaussian DP, whatever attack would "
        "show it; the other bar does without that assumption, is about this attack alone and may lie far below."
    )


def _place_of_the_claim(v: Verdict) -> str:
    """What it means that the claim is where it is."""
    if v.kind == "no claim":
        return ""
    if v.kind == "underpowered":
        return (
            f" And that the bound is not above the claim says nothing: if every guess that can be right were right, it "
            f"would be {number(v.largest)}, still not above it."
        )
    if v.kind == "not refuted":
        return " The bound is not above the claim, so this attack does not refute it; that is less than verified."
    least = {
        "guaranteed": "is as sure as the bound is",
        "credible": "is as probable as the posterior says, and no test",
        "estimate": "is no proof",
    }[v.promise]
    return f" The bound is above the claim, which {least}."


def _different_guesses(audit: Audit) -> str:
    """Where the bound and the posterior do not rest on the same ones."""
    if audit.verdict.tally == audit.judged.tally:
        return ""
    return f" The bound rests on {rests_on(audit, audit.verdict.method)}, the other bar on all judged pairs."


def rests_on(audit: Audit, method: str) -> str:
    """Which guesses a method counts, in words."""
    several, failed = audit.pairs_per_model > 1, audit.guaranteed.n_failed
    pairs = "all judged pairs"
    if METHODS[method].promise != "guaranteed":
        return pairs
    if several and method not in (*POOLED, "anytime"):
        pairs = "one pair a model, fixed beforehand"
    if not failed:
        return pairs
    none = ", or as none where only the surest count" if method in POOLED else ""
    return f"{pairs}, with {count(failed, 'failed model')} as wrong guesses{none}"


def _by_method(audit: Audit) -> str:
    """Which rows rest on what, in one or more sentences with a blank behind."""
    bases: dict[str, list[str]] = {}
    for row in audit.rows:
        bases.setdefault(rests_on(audit, row.method), []).append(row.label.replace(",", ""))
    methods = [row.method for row in audit.rows]
    every = " Simultaneous looks at every threshold, the others at the rule." if "simultaneous" in methods else ""
    if len(bases) == 1:
        return f"All rest on the same guesses.{every} "
    said = "; ".join(f"{', '.join(labels)} on {basis}" for basis, labels in bases.items())
    surest = " Pooled may count only the surest." if "pooled" in methods else ""
    return f"They rest on different guesses: {said}.{surest}{every} "
