"""The settings of one audit: those of the plan with some of them changed, checked as a plan's are."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from epsgauge.errors import InvalidInput
from epsgauge.references import nearest
from epsgauge.runner.plan import AuditSettings, sentence_of

# They belong to one kind of rule, and go when another kind is asked for.
OF_A_RULE = ("fit_models", "fit_pairs", "percentile", "threshold", "target_fpr")
# What decides the guesses: whoever chooses one of these after seeing results chooses the result.
RULE = ("attack", "rule", *OF_A_RULE, "search")
# What decides how the guesses are judged.
VERDICT = ("verdict_level", "pooled_guesses", "pooled_number")


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    audit: AuditSettings


def changed(base: AuditSettings, changes: dict[str, Any]) -> AuditSettings:
    """`base` with some settings changed."""
    for name in changes:
        if name not in AuditSettings.model_fields:
            raise InvalidInput(f"{name} is not a setting of an audit.{nearest(name, AuditSettings.model_fields)}")
    values = base.model_dump()
    if changes.get("rule", base.rule) != base.rule:
        values |= dict.fromkeys(OF_A_RULE)
    if changes.get("claimed_mu") is not None:  # one way to state a claim replaces the other
        values |= dict.fromkeys(("claimed_eps", "claimed_delta"))
    elif changes.get("claimed_eps") is not None:
        values["claimed_mu"] = None
    try:
        return _Table(audit={**values, **changes}).audit  # type: ignore[arg-type]
    except ValidationError as error:
        raise InvalidInput(sentence_of(error).removeprefix("audit.").removeprefix("audit: ")) from None


def verdict_method(settings: AuditSettings, pairs_per_model: int) -> str:
    """The method that a verdict rests on: the one that is set, else the sharpest that is proven for such an audit."""
    if settings.verdict_method is not None:
        return settings.verdict_method
    if settings.rule == "same-data":
        return "simultaneous"
    several = pairs_per_model > 1 or settings.rule == "split-pairs"
    if settings.claimed_mu is not None:
        return "one-run" if several else "gaussian"
    return "pooled" if several else "exact"


def other_rule(declared: AuditSettings, used: AuditSettings) -> list[str]:
    """What decides the guesses and is not as declared; a search maximises ε at a δ."""
    searched = used.rule != "given" and used.target_fpr is None
    return _differing((*RULE, "delta") if searched else RULE, declared, used)


def other_verdict(declared: AuditSettings, used: AuditSettings, pairs_per_model: int) -> list[str]:
    """What decides the verdict and is not as declared; a claim of μ brings its own method."""
    names = _differing(VERDICT, declared, used)
    if verdict_method(declared, pairs_per_model) != verdict_method(used, pairs_per_model):
        names = list(dict.fromkeys(["verdict_method", *names]))
    return names


def _differing(names: tuple[str, ...], declared: AuditSettings, used: AuditSettings) -> list[str]:
    return [name for name in names if getattr(declared, name) != getattr(used, name)]
