"""AuditSettings: the `[audit]` table of a plan, how signals are judged; and the same with some settings changed."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from epsgauge.adjacency import Adjacency
from epsgauge.attacks.table import ATTACKS
from epsgauge.errors import InvalidInput
from epsgauge.mechanisms.privacy import DPSGD, Privacy
from epsgauge.methods.method import Asked
from epsgauge.methods.table import JUDGES, METHODS
from epsgauge.references import is_reference, nearest
from epsgauge.scores.rules import default_fit, default_fit_pairs
from epsgauge.stats.quick import QUICK
from epsgauge.validation import sentence_of

# They belong to one kind of rule, and go when another kind is asked for.
OF_A_RULE = ("fit_models", "fit_pairs", "percentile", "threshold", "target_fpr")


def _known(names: list[str], *, own: bool) -> AfterValidator:
    """One of these names or, where a user's own is allowed, "module:attr"."""

    def check(value: str) -> str:
        if value in names or (own and is_reference(value)):
            return value
        said = ", ".join(f"'{name}'" for name in names[:-1]) + f" or '{names[-1]}'"
        yours = ', or your own as "module:attr"' if own else ""
        raise PydanticCustomError("unknown_name", f"{said}{yours}")

    return AfterValidator(check)


class AuditSettings(BaseModel):
    """How the signals are judged. It may change after training.

    An attack or a method of your own is named here, and loaded only where you name it again: never because a run
    directory says so.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    delta: float = Field(default=1e-5, ge=0, lt=1)
    level: float = Field(default=0.90, gt=0, lt=1)
    # None: of a plan, the one that fits its game
    attack: Annotated[str, _known(list(ATTACKS), own=True)] | None = None
    rule: Literal["split", "split-pairs", "given", "same-data"] = "split"
    fit_models: int | None = Field(default=None, ge=1)  # None: a sixth, of few models 8
    fit_pairs: int | None = Field(default=None, ge=1)  # of each model, for rule = "split-pairs"; None: a sixth
    # the interval whose lower end the rule is to maximise
    search: Annotated[str, _known(list(QUICK), own=False)] = "jeffreys"
    target_fpr: float | None = Field(default=None, gt=0, lt=1)  # or the rule is to have this FPR
    percentile: float | None = Field(default=None, gt=0, lt=100)  # rule = "given" for attack = "percentile"
    threshold: float | None = None  # rule = "given" for any attack
    # None: the sharpest that is proven for such an audit
    verdict_method: Annotated[str, _known(list(JUDGES), own=True)] | None = None
    # which guesses count in methods that pool them; None: those that choose the rule choose
    pooled_guesses: Literal["all", "positive", "negative", "top", "top-positive"] | None = None
    pooled_number: int | None = Field(default=None, ge=1)  # how many of the surest; None: those that choose it do
    verdict_level: float = Field(default=0.99, gt=0, lt=1)
    claimed_eps: float | None = Field(default=None, ge=0)
    claimed_delta: float | None = Field(default=None, ge=0, lt=1)
    claimed_mu: float | None = Field(default=None, ge=0)  # of Gaussian DP, instead of both
    claimed_adjacency: Adjacency | None = None

    @property
    def by_mu(self) -> bool:
        """Whether the claim is stated as μ, which alone is held against a bound of μ."""
        return self.claimed_mu is not None

    def n_fit(self, n_models: int) -> int:
        """How many of a run's models choose the rule: the first of them."""
        return (self.fit_models or default_fit(n_models)) if self.rule == "split" else 0

    def n_fit_pairs(self, pairs_per_model: int) -> int:
        """How many pairs of each model choose the rule: the first of them."""
        return (self.fit_pairs or default_fit_pairs(pairs_per_model)) if self.rule == "split-pairs" else 0

    def divided(self, n: int) -> AuditSettings:
        """What the verdict and the intervals may miss, divided among n audits."""
        if n == 1:
            return self
        names = ("level", "verdict_level")
        return self.model_copy(update={name: 1.0 - (1.0 - getattr(self, name)) / n for name in names})

    def asked(
        self,
        pairs_per_model: int,
        *,
        stopped: bool = False,
        coins: bool = True,
        privacy: Privacy | None = None,
        orthogonal: bool = False,
    ) -> Asked:
        """`privacy`: what the trainer promises, which is the claim where none is stated."""
        says, claims = self.pooled_guesses is not None, self.claimed_eps is None and isinstance(privacy, DPSGD)
        return Asked(self.rule, pairs_per_model, self.by_mu, stopped, coins, says, claims, orthogonal)

    @model_validator(mode="after")
    def _consistent(self) -> AuditSettings:
        given = [name for name in ("percentile", "threshold") if getattr(self, name) is not None]
        if self.rule == "given" and len(given) != 1:
            raise ValueError('rule = "given" needs one of percentile and threshold')
        if self.rule != "given" and given:
            raise ValueError(f'{given[0]} goes with rule = "given"')
        if self.rule == "given" and self.target_fpr is not None:
            raise ValueError('target_fpr goes with rule = "split" or "same-data"')
        if self.rule != "split" and self.fit_models is not None:
            raise ValueError('fit_models goes with rule = "split"')
        if self.rule != "split-pairs" and self.fit_pairs is not None:
            raise ValueError('fit_pairs goes with rule = "split-pairs"')
        attack = ATTACKS.get(self.attack or "percentile")  # None: your own, which says it where it is loaded
        if self.percentile is not None and attack is not None and not attack.has_percentiles:
            raise ValueError('percentile goes with attack = "percentile"')
        self._check_guesses()
        self._check_claim()
        return self

    def _check_guesses(self) -> None:
        top = self.pooled_guesses in ("top", "top-positive")
        if self.pooled_number is not None and not top:
            raise ValueError('pooled_number goes with pooled_guesses = "top" or "top-positive"')
        named = METHODS.get(self.verdict_method or "")
        by_curve = self.by_mu or (named is not None and named.fixed_number)
        if by_curve and self.pooled_guesses in ("positive", "negative"):
            raise ValueError(
                f"a whole trade-off curve (one-run, claimed_mu) needs a number of guesses that is fixed, but that of "
                f'pooled_guesses = "{self.pooled_guesses}" is up to the scores. Use "all", "top" or "top-positive"'
            )

    def _check_claim(self) -> None:
        stated = [self.claimed_eps, self.claimed_delta, self.claimed_adjacency]
        if self.claimed_mu is not None:
            if self.claimed_eps is not None or self.claimed_delta is not None:
                raise ValueError("a claim is stated as claimed_mu or as claimed_eps with claimed_delta, not as both")
            if self.claimed_adjacency is None:
                raise ValueError("claimed_mu needs claimed_adjacency")
            if self.delta == 0:
                raise ValueError("a claim stated as claimed_mu is also shown as ε at delta, which must be above 0")
        elif any(v is not None for v in stated) and any(v is None for v in stated):
            raise ValueError("a claim needs all of claimed_eps, claimed_delta and claimed_adjacency, or claimed_mu")
        named = METHODS.get(self.verdict_method or "")
        if named is not None and named.of_claimed_mu and self.claimed_mu is None:
            raise ValueError(f'verdict_method = "{named.name}" judges claims stated as claimed_mu alone')


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    audit: AuditSettings


def changed(base: AuditSettings, changes: dict[str, Any]) -> AuditSettings:
    """`base` with some settings changed, checked as a plan's are."""
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
        said = sentence_of(error, lambda _: AuditSettings.model_fields)
        raise InvalidInput(said.removeprefix("audit.").removeprefix("audit: ")) from None
