"""What must be said beside a verdict: what it does not promise, what failed, what came too late."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from epsgauge.auditing.declared import judged_before
from epsgauge.auditing.setup import Setup
from epsgauge.declaration import Declaration
from epsgauge.methods.cautions import cautions
from epsgauge.methods.evidence import Evidence, Failed
from epsgauge.methods.facts import NO_PROOF, NOT_COINS, OF_A_CURVE
from epsgauge.methods.rows import MethodRow
from epsgauge.methods.table import BASELINE, POSTERIOR, SHARPEST
from epsgauge.numbers import count, level_percent
from epsgauge.runner.view import Looks, Run
from epsgauge.settings import AuditSettings
from epsgauge.stats.interval import Kind
from epsgauge.stats.posterior import Posterior


def beside(run: Run | None, settings: AuditSettings, looks: Looks, promise: Kind) -> tuple[str, ...]:
    """What a guaranteed verdict promises together with an earlier one."""
    said = None if run is None or promise != "guaranteed" else judged_before(run, settings, looks)
    return (said,) if said else ()


def unpromised(evidence: Evidence, why: tuple[str, ...]) -> tuple[str, ...]:
    """What bits, rows, noise or the lack of a proof, take from the verdict's bound."""
    known = (*NOT_COINS.values(), NO_PROOF, evidence.unfair, *evidence.doubts)
    said = [reason for reason in why if reason in known]
    return tuple(f"The bound promises nothing here: {reason}." for reason in said)


def of_own_attack(using: Setup) -> tuple[str, ...]:
    """It is given no bits, but nothing keeps code from opening the run directory."""
    unseen = "is your own code: this holds only if it does not read the bits elsewhere, which epsgauge cannot see."
    return tuple(f"The attack {own.name} {unseen}" for own in using.own if own.what == "attack")


def of_coins(declared: Declaration | None) -> tuple[str, ...]:
    """Coins that a given seed draws are fair if it was not picked by what it draws."""
    said = None if declared is None else declared.content.get("coins")
    given = isinstance(said, dict) and said.get("seed_given")
    return (f"The coins were drawn with a given seed, {said['seed']}: {_FAIR_SEED}",) if said and given else ()


def of_tables(tables: int, level: float) -> tuple[str, ...]:
    """What several tables that were judged by one declaration hold together."""
    if tables < 2:
        return ()
    together = level_percent(max(0.0, 1.0 - tables * (1.0 - level)))
    return (f"{tables} different tables were judged by this declaration: all verdicts hold together at {together}.",)


_FAIR_SEED = "they are fair only if nobody picked it by the coins that it draws."


def failures(judged: Sequence[Failed], run: Run | None) -> list[str]:
    """Of models that failed, and of those that were played again too late."""
    if run is None:
        return []
    now, late = set(run.failed_models.tolist()), len(run.retried_after_look)
    out = []
    if now:
        bits = np.concatenate([np.empty(0, np.int64), *(f.bits for f in judged if f.index in now)])
        ones, n = int(bits.sum()), sum(f.index in now for f in judged)
        out.append(
            f"{len(now)} of {run.plan.n_models} models failed, {n} of them among those to be judged ({ones} pairs with "
            f"b = 1, {len(bits) - ones} with b = 0). Guaranteed bounds count them as wrong guesses, or leave them "
            "unguessed. The posterior leaves them out, and is biased if failing depends on the bit. Train them again "
            "with --retry-failed before you look at results."
        )
    if late:
        who = f"{count(late, 'model')} that had failed {'was' if late == 1 else 'were'} trained again"
        counts = "it still counts" if late == 1 else "they still count"
        out.append(f"{who} after results had been seen: {counts} as failed.")
    return out


def saturated(evidence: Evidence) -> tuple[str, ...]:
    """Scores that cannot tell models apart. Two values are no scores but guesses, and all that there is."""
    values, times = np.unique(evidence.scores.score, return_counts=True)
    n, most = len(evidence.scores), int(times.max())
    if len(values) > 2 and 3 * most >= n:
        return (
            f"{most} of {n} judged scores are equal ({values[times.argmax()]:.4g}): the attack cannot tell these "
            "guesses apart. Use one that does not saturate, such as margin, or points that it tells apart.",
        )
    t = evidence.tally
    always = 1 if t.tn + t.fn == 0 else 0 if t.tp + t.fp == 0 else None
    if always is None:
        return ()
    return (
        f"The rule guesses {always} for all {n} judged pairs, so it shows nothing. Pick the threshold on more models "
        "(fit_models), or use another attack, such as margin.",
    )


def of_rows(
    posterior: Posterior, rows: tuple[MethodRow, ...], settings: AuditSettings, *, trained: bool
) -> tuple[str, ...]:
    """Where several bounds are guaranteed, the highest counts."""
    low = {row.method: row.low for row in rows}
    of_mechanism = [row for row in rows if not set(OF_A_CURVE) & set(row.assumptions)]
    proven = [row.low for row in of_mechanism if row.promise == "guaranteed"]
    highest = max([low[BASELINE.name], *proven])
    exact = next((row.tally for row in rows if row.method == SHARPEST.name), None)
    credible = low[POSTERIOR.name]
    found = {"level": settings.level, "one_sided": settings.verdict_level, "credible": credible, "proven": highest}
    return cautions(posterior, exact=exact, trained=trained, **found)
