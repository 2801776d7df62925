"""One rule for several runs: whether there is one, what it shows of each, and which runs keep their own."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, TypeVar

import numpy as np

from epsgauge.auditing.audit import Audit, audit_run
from epsgauge.auditing.setup import Setup
from epsgauge.errors import InvalidInput
from epsgauge.runner.view import Run
from epsgauge.scores.rules import Given
from epsgauge.settings import OF_A_RULE

T = TypeVar("T")


class NoOneRule(InvalidInput):
    """Runs that no rule fits together; `why` begins a sentence."""

    def __init__(self, sentence: str, why: str) -> None:
        super().__init__(sentence)
        self.why = why


def check_one_rule(runs: Sequence[Run], used: Sequence[Setup]) -> None:
    """Scores of different attacks have no threshold in common."""
    each = 'They are different adversaries. With rule="best" each has a rule of its own, and their ε are one picture.'
    attack = "Pass one for all: --attack (attack=). Or " + each
    shared: list[tuple[str, list[Any], str]] = [
        ("attack", [s.settings.attack for s in used], attack),
        ("sees", [run.plan.game.sees for run in runs], each),
        ("adversary", [str(run.adversary) for run in runs], each),
        ("challenge", [run.plan.game.challenge for run in runs], each),
        ("pool_size", [run.plan.game.pool_size for run in runs], "Set one for every m of a comparison."),
    ]
    if used[0].attack.has_percentiles:
        sizes = [run.plan.game.reference_size for run in runs]
        shared.append(("reference_size", sizes, "The rule counts reference losses."))
    for name, values, remedy in shared:
        try:
            same(name, values, remedy)
        except InvalidInput as error:
            found = ", ".join(dict.fromkeys(str(value) for value in values))
            raise NoOneRule(str(error), f"The runs differ in {name} ({found})") from None
    if used[0].settings.rule == "split-pairs":
        raise NoOneRule(
            'one rule for all cannot be chosen by rule = "split-pairs": pairs of every model choose it, and no model '
            'is left that it has not seen. Use rule="best", a percentile, or rule = "split".',
            "Pairs of every model choose the rule",
        )


def with_one_rule(
    runs: Sequence[Run], labels: Sequence[str], settings: dict[str, Any], among: int, *, strictly: bool
) -> tuple[str, list[Audit], list[str]]:
    """How the rule was chosen, the audits, and which runs have their own rule after all; `strictly`: none."""
    first = audit_run(runs[0], settings, among=among)
    if isinstance(first.judged.choice, Given):
        rest = [audit_run(run, settings, among=among) for run in runs[1:]]
        return f"one rule for all: {first.adversary.rule}", [first, *rest], []
    others = {name: value for name, value in settings.items() if name not in OF_A_RULE}
    others |= {"rule": "given", "threshold": first.judged.threshold}
    audits, notes = [first], []
    for run, label in zip(runs[1:], labels[1:], strict=True):
        own: Audit | None = None
        with suppress(InvalidInput):  # it may have too few models to choose a rule
            own = audit_run(run, settings, among=among)
        if own is not None and _is_copy(own, first):  # the rule that it declared is the shared one
            audits.append(own)
            continue
        try:
            found = audit_run(run, others, skipped=_had_a_say(first, run), among=among)
        except _NoneLeft:
            if strictly or own is None:
                raise
            found = own
            notes.append(f"{label} is judged by its own rule: its models share a seed with those that chose the rule.")
        else:
            if not strictly and own is not None and _misses(found, own):
                shows = f"it shows {own.verdict.bound.text}, and that of the first run"
                notes.append(f"{label} is judged by its own rule: {shows} {found.verdict.bound.text}.")
                found = own
        audits.append(found)
    return f"one rule for all: {first.adversary.rule} of the first run", audits, notes


def _is_copy(own: Audit, first: Audit) -> bool:
    """Whether both chose the same rule, and judge the same scores by it."""
    ours, theirs = own.judged, first.judged
    return ours.threshold == theirs.threshold and np.array_equal(ours.judged.score, theirs.judged.score)


def _misses(shared: Audit, own: Audit) -> bool:
    """Whether a shared rule hides what a run's own rule shows: guesses that are all alike, a claim that is refuted, or
    a bound above all that is credible.
    """
    tally, high = shared.judged.tally, float(shared.posterior.interval(shared.settings.level).high)
    alike = 0 in (tally.tp + tally.fp, tally.tn + tally.fn) and own.verdict.bound.value > shared.verdict.bound.value
    return bool(alike or (own.verdict.above and not shared.verdict.above) or own.verdict.bound.value > high)


class _NoneLeft(InvalidInput):
    """No model of a run is independent of those that chose the rule."""


def _had_a_say(first: Audit, run: Run) -> int:
    """How many models of a run, from the first on, share bits and noise with those that chose the rule."""
    same_seed = first.run is not None and run.plan.seed == first.run.plan.seed
    shared = int(first.judged.fit_models.max()) + 1 if same_seed else 0
    if not (run.done >= shared).any():
        raise _NoneLeft(
            f"{run.path} has no model that is independent of the {shared} used to pick the threshold: its seed is "
            "theirs. Give the runs different seeds, and one points_seed so that they share their points; or "
            'let each run choose its own rule, with rule="best".'
        )
    return shared


def same(name: str, values: list[T], remedy: str) -> T:
    if any(value != values[0] for value in values):
        found = ", ".join(dict.fromkeys(str(value) for value in values))
        raise InvalidInput(f"runs that are compared must have one {name}, but have {found}. {remedy}")
    return values[0]
