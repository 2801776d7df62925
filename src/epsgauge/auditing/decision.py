"""What an audit means for a release, and what to do next: the first thing that a person reads."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from epsgauge.auditing.verdict import Ruling, Verdict
from epsgauge.numbers import number
from epsgauge.probing.result import Probe
from epsgauge.runner.view import Run
from epsgauge.sampling.game import Sampled
from epsgauge.sampling.regions import REGIONS

MEANS: dict[Ruling, str] = {
    "violation": "Do not release under this claim: the {what} spends more than it promises.",
    "violation by an estimate": "Do not base a decision on this audit: its bound is an estimate.",
    "violation by a credible bound": "Do not base a decision on this audit: its bound is credible, not guaranteed.",
    "unsupported": "Do not release under this claim: its ε was computed for a different {what}.",
    "not refuted": "Nothing that was seen contradicts the claim. This does not verify it.",
    "inconclusive": "Do not base a decision on this audit: the attack is too weak to tell.",
    "underpowered": "Do not base a decision on this audit: there are too few {units} to tell.",
    "no claim": "There is nothing to decide: no claim was given.",
}
OF_MECHANISM: dict[Ruling, str] = {
    "violation": "Find out what the region sees: audit with one region at a time (--regions), then fix the mechanism.",
    "violation by an estimate": "Play a new game with another seed, and judge it by a guaranteed bound.",
    "violation by a credible bound": "Play a new game with another seed, and judge it by a guaranteed bound.",
    "unsupported": "Fix the mechanism, or claim what it does.",
    "not refuted": "Try other pairs of neighbouring inputs (--pairs), or more samples.",
    "inconclusive": "Use more samples, or other pairs of neighbouring inputs (--pairs).",
    "underpowered": "Use more samples.",
    "no claim": "State a claim: --eps and --delta (claimed_eps and claimed_delta in Python).",
}


@dataclass(frozen=True)
class Step:
    """Something to do next, and the command for it."""

    text: str
    command: str = ""


@dataclass(frozen=True)
class Decision:
    """What an audit means, and next steps, the most useful first."""

    meaning: str
    steps: tuple[Step, ...]


def decision_of(verdict: Verdict, run: Run | None, sampled: Sampled | None = None) -> Decision:
    """Of a run, or of scores where there is none, or of samples of a mechanism."""
    if sampled is not None:
        remedy = REGIONS[sampled.region].remedy if verdict.kind == "violation" else ""
        meaning = MEANS[verdict.kind].format(what="mechanism", units="samples")
        return Decision(meaning, (Step(remedy or OF_MECHANISM[verdict.kind]),))
    meaning = MEANS[verdict.kind].format(what="training", units="models")
    steps = {
        "violation": _mend,
        "unsupported": _mend,
        "violation by an estimate": _again,
        "violation by a credible bound": _again,
        "not refuted": _stronger,
        "inconclusive": _stronger,
        "underpowered": _more,
        "no claim": _claim,
    }[verdict.kind](verdict, run)
    plan = "PLAN" if run is None else run.plan_file
    named = (replace(step, command=step.command.replace("PLAN", plan)) for step in steps)
    return Decision(meaning, tuple(named))


def _mend(v: Verdict, run: Run | None) -> list[Step]:
    broken = [finding.name for finding in v.basis.broken]
    if broken == ["accounting"]:
        return [Step("State the ε that the accountant computes, or train with more noise or fewer steps.")]
    if run is None:
        return [Step("Find what leaks: audit the training itself, which can be probed.", "epsgauge init --opacus DIR")]
    steps = []
    if broken:
        steps.append(Step(f"Fix the training ({', '.join(broken)}), or account for what it really does."))
    probe = "Probe the training again." if broken else "Find the bug: probe noise, clipping, sampling and steps."
    steps.append(Step(probe, "epsgauge probe PLAN"))
    steps.append(Step("Then start a new run.", "epsgauge run PLAN --out NEW"))
    return steps


def _again(v: Verdict, run: Run | None) -> list[Step]:
    if run is None:
        declare = Step("Declare rule, δ and level before you see new scores.", "epsgauge declare FILE")
        return [declare, Step("Then audit new scores by that declaration.", "epsgauge scores SCORES --declared FILE")]
    return [Step("Start a new run, and audit it as its plan declares.", "epsgauge run PLAN --out NEW")]


def _stronger(v: Verdict, run: Run | None) -> list[Step]:
    if run is None:
        return [Step("Use a stronger attack, or more scores.")]
    plan, steps = run.plan, list[Step]()
    if not plan.adversary.watches and not plan.game.auto and plan.game.challenge != "explicit":
        steps.append(Step("Let epsgauge search for the best canary: remove challenge and attack from the plan."))
    if not plan.adversary.watches:
        steps.append(
            Step('Use a stronger adversary: preset = "white-box" in [adversary], if the training shows its updates.')
        )
    if not isinstance(run.probe, Probe) and not plan.control:
        steps.append(Step("Test directly what the accountant assumes.", "epsgauge probe PLAN"))
    if v.control is None and not plan.control:
        steps.append(Step("See whether the attack works without noise.", "epsgauge run PLAN --out CONTROL --control"))
    if v.kind == "not refuted":
        steps.append(Step("See how many models would show more.", f"epsgauge check PLAN --run {run.path}"))
    return steps


def _more(v: Verdict, run: Run | None) -> list[Step]:
    what = "scores" if run is None else "models"
    if v.needed is None or math.isinf(v.needed):
        return [Step(f"Use more {what}, or state a claim below ε = {number(v.largest)}.")]
    command = "" if run is None else "epsgauge run PLAN --out NEW"
    return [Step(f"Use more {what}: even a perfect attack needs about {v.needed:.0f} guesses.", command)]


def _claim(v: Verdict, run: Run | None) -> list[Step]:
    keys = "claimed_eps, claimed_delta and claimed_adjacency"
    return [Step(f"State a claim ({keys}), or let the trainer say what it promises (privacy).")]
