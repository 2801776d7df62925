"""What an audit means for a release, and what to do next: the first thing that a person reads."""

from __future__ import annotations

import math
import shlex
from dataclasses import dataclass, replace

from epsgauge.attacks.table import ATTACKS
from epsgauge.auditing.verdict import Ruling, Verdict
from epsgauge.games.settings import GameSettings
from epsgauge.mechanisms.privacy import DPSGD
from epsgauge.numbers import at_least
from epsgauge.probing.result import Probe, Unprobed
from epsgauge.runner.hopeless import uncontrolled
from epsgauge.runner.view import Run
from epsgauge.sampling.game import Sampled
from epsgauge.sampling.regions import REGIONS

MEANS: dict[Ruling, str] = {
    "violation": "Do not release under this claim: the {what} spends more than it promises.",
    "violation by an estimate": "Do not base a decision on this audit: its bound is an estimate.",
    "violation by a credible bound": "Do not base a decision on this audit: its bound is credible, not guaranteed.",
    "unsupported": "Do not release under this claim: its ε was computed for a different {what}.",
    "no objection": "Nothing that was seen contradicts the claim. This does not verify it.",
    "cannot decide": "Do not base a decision on this audit: it could not have refuted the claim.",
    "in progress": "There is nothing to decide yet: the run is in progress.",
    "no claim": "There is nothing to decide: no claim was given.",
}
OF_MECHANISM: dict[Ruling, str] = {
    "violation": "Find out what the region sees: audit with one region at a time (--regions), then fix the mechanism.",
    "violation by an estimate": "Play a new game with another seed, and judge it by a guaranteed bound.",
    "violation by a credible bound": "Play a new game with another seed, and judge it by a guaranteed bound.",
    "unsupported": "Fix the mechanism, or claim what it does.",
    "no objection": "Try other pairs of neighbouring inputs (--pairs), or more samples.",
    "cannot decide": "Use more samples, or other pairs of neighbouring inputs (--pairs).",
    "in progress": "Use more samples.",
    "no claim": "State a claim: --eps and --delta (claimed_eps and claimed_delta in Python).",
}
PROBE = "epsgauge probe PLAN"
WEAKENING = ("challenge", "pairs_per_model", "pairs", "pool_size", "sees")  # keys that leave no canary to search for


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
        return Decision(MEANS[verdict.kind].format(what="mechanism"), _of_mechanism(verdict, sampled))
    meaning = _meaning(verdict)
    steps = {
        "violation": _mend,
        "unsupported": _mend,
        "violation by an estimate": _again,
        "violation by a credible bound": _again,
        "no objection": _stronger,
        "cannot decide": _stronger if verdict.needed is None else _more,
        "in progress": _finish,
        "no claim": _claim,
    }[verdict.kind](verdict, run)
    plan = "PLAN" if run is None else run.plan_file
    named = (replace(step, command=step.command.replace("PLAN", plan)) for step in steps)
    return Decision(meaning, tuple(named))


def _meaning(v: Verdict) -> str:
    if v.kind == "violation" and not v.above:
        return "Do not release under this claim: its ε was computed for a different training."
    return MEANS[v.kind].format(what="training")


def _of_mechanism(v: Verdict, sampled: Sampled) -> tuple[Step, ...]:
    """If the claim is broken in two ways, the one that no remedy mends comes first."""
    found = [REGIONS[name] for name in (sampled.region, sampled.also) if name is not None]
    remedy = next((region.remedy for region in found if region.remedy), "")
    if v.kind != "violation" or not remedy:
        return (Step(OF_MECHANISM[v.kind]),)
    others = [region.name for region in found if not region.remedy]
    first = [Step(f"Fix the mechanism: it leaks by region {name}, even if its outputs are rounded.") for name in others]
    return (*first, Step(remedy))


def _mend(v: Verdict, run: Run | None) -> list[Step]:
    broken = [finding.name for finding in v.basis.broken]
    if broken == ["accounting"]:
        return [Step("State the ε that the accountant computes, or train with more noise or fewer steps.")]
    if run is None:
        return [Step("Find what leaks: audit the training itself, which can be probed.", "epsgauge init --opacus DIR")]
    steps = []
    if broken:
        steps.append(Step(f"Fix the training ({', '.join(broken)}), or account for what it really does."))
        steps.append(Step("Probe the training again.", PROBE))
    elif isinstance(run.probe, Probe):
        steps.append(Step("Fix the training. The probe found nothing, so look at what it cannot see.", PROBE))
    elif _can_be_probed(run):
        steps.append(Step(f"Find the bug: probe noise, clipping, sampling and steps{_if_shown(run)}.", PROBE))
    else:
        steps.append(Step("Fix the training, or state a larger ε."))
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
        keys = [key for key in WEAKENING if getattr(plan.game, key) != GameSettings.model_fields[key].default]
        named = f"{', '.join(keys)} and attack"
        steps.append(Step(f"Let epsgauge search for the best canary: remove {named} from the plan."))
    if not plan.adversary.watches and _can_be_probed(run):
        steps.append(Step(f'Use a stronger adversary: preset = "white-box" in [adversary]{_if_shown(run)}.'))
    if not isinstance(run.probe, Probe) and _can_be_probed(run):
        steps.append(Step(f"Test directly what the accountant assumes{_if_shown(run)}.", PROBE))
    if v.control is None and not plan.control and not uncontrolled(run.notes):
        steps.append(Step("See whether the attack works without noise.", "epsgauge run PLAN --out CONTROL --control"))
    if v.kind == "no objection" and plan.audit.attack in ATTACKS and not plan.trains_script:
        steps.append(
            Step("See how many models would show more.", f"epsgauge check PLAN --run {shlex.quote(str(run.path))}")
        )
    return steps or [Step("Use more models, or another attack.", "epsgauge run PLAN --out NEW")]


def _can_be_probed(run: Run) -> bool:
    """Whether the training states DP-SGD's numbers, and no probe has failed for another reason."""
    failed = isinstance(run.probe, Unprobed) and run.plan.probe is not False
    return isinstance(run.privacy, DPSGD) and not failed and not run.plan.control


def _if_shown(run: Run) -> str:
    """Only a probe knows whether a trainer that is not built in takes a watch."""
    known = run.plan.trainer.built_in or run.plan.adversary.watches or isinstance(run.probe, Probe)
    return "" if known else ", if train takes watch"


def _finish(v: Verdict, run: Run | None) -> list[Step]:
    if run is None:
        return []
    out = shlex.quote(str(run.path))
    return [Step("Wait until all models are trained, or resume the run.", f"epsgauge run PLAN --out {out}")]


def _more(v: Verdict, run: Run | None) -> list[Step]:
    what = "scores" if run is None else "models"
    if v.needed is None or math.isinf(v.needed):
        return [Step(f"Use more {what}, or state a claim below ε = {at_least(v.largest)}.")]
    command = "" if run is None else "epsgauge run PLAN --out NEW"
    return [Step(f"Use more {what}: even a perfect attack needs about {v.needed:.0f} guesses.", command)]


def _claim(v: Verdict, run: Run | None) -> list[Step]:
    keys = "claimed_eps, claimed_delta and claimed_adjacency"
    return [Step(f"State a claim ({keys}), or let the trainer say what it promises (privacy).")]
