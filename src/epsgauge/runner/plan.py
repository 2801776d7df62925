"""Plan: what is to be trained, played and judged, as a TOML file or in Python; strict and frozen."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from epsgauge.adjacency import Adjacency, check_implied
from epsgauge.errors import InvalidInput
from epsgauge.games.settings import GameSettings
from epsgauge.references import nearest
from epsgauge.runner import small as smaller
from epsgauge.runner.parts import Part, part_of

VerdictMethod = Literal[
    "exact",
    "pooled",
    "one-run",
    "anytime",
    "simultaneous",
    "gaussian",
    "clopper-pearson",
    "bayes",
    "jeffreys",
]


class AuditSettings(BaseModel):
    """The `[audit]` table: how the signals are judged. It may change after training."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    delta: float = Field(default=1e-5, ge=0, lt=1)
    level: float = Field(default=0.90, gt=0, lt=1)
    attack: Literal["percentile", "loss", "difference"] = "percentile"
    rule: Literal["split", "split-pairs", "given", "same-data"] = "split"
    fit_models: int | None = Field(default=None, ge=1)  # None: a sixth of the models
    fit_pairs: int | None = Field(default=None, ge=1)  # of each model, for rule = "split-pairs"; None: a sixth
    search: Literal["jeffreys", "clopper-pearson", "bayes"] = "jeffreys"  # whose lower end the rule is to maximise
    target_fpr: float | None = Field(default=None, gt=0, lt=1)  # or the rule is to have this FPR
    percentile: float | None = Field(default=None, gt=0, lt=100)  # rule = "given" for attack = "percentile"
    threshold: float | None = None  # rule = "given" for any attack
    # None: "exact" for one pair a model, "pooled" for several, "simultaneous" for a rule chosen on the same data;
    # against a claim stated as μ "gaussian" for one pair a model, "one-run" for several
    verdict_method: VerdictMethod | None = None
    # which guesses count in "pooled" and "one-run"; None: those that choose the rule choose
    pooled_guesses: Literal["all", "positive", "negative", "top", "top-positive"] | None = None
    pooled_number: int | None = Field(default=None, ge=1)  # how many of the surest; None: those that choose the rule do
    verdict_level: float = Field(default=0.99, gt=0, lt=1)
    claimed_eps: float | None = Field(default=None, ge=0)
    claimed_delta: float | None = Field(default=None, ge=0, lt=1)
    claimed_mu: float | None = Field(default=None, ge=0)  # of Gaussian DP, instead of both
    claimed_adjacency: Adjacency | None = None

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
        if self.percentile is not None and self.attack != "percentile":
            raise ValueError('percentile goes with attack = "percentile"')
        self._check_guesses()
        self._check_claim()
        return self

    def _check_guesses(self) -> None:
        top = self.pooled_guesses in ("top", "top-positive")
        if self.pooled_number is not None and not top:
            raise ValueError('pooled_number goes with pooled_guesses = "top" or "top-positive"')
        if top and self.pooled_number is None and self.rule == "given":
            raise ValueError(f'pooled_guesses = "{self.pooled_guesses}" with rule = "given" needs pooled_number')
        by_curve = self.verdict_method == "one-run" or self.claimed_mu is not None
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
        if self.verdict_method == "gaussian" and self.claimed_mu is None:
            raise ValueError('verdict_method = "gaussian" judges claims stated as claimed_mu alone')


class ExecutionSettings(BaseModel):
    """The `[execution]` table: how the work is spread. It changes no result."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    workers: int | None = Field(default=None, ge=1)  # None: one for each core


class Plan(BaseModel):
    """A run: data, trainer and game, how many models, and how they are judged.

    >>> plan = Plan(name="a", n_models=10, data="digits", trainer={"use": "dpsgd"}, game={"train_size": 100})
    >>> plan.n_samples, plan.game.experiment
    (10, 'MIA^1')
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, arbitrary_types_allowed=True)

    name: str = Field(min_length=1)
    seed: int = Field(default=0, ge=0)
    n_models: int = Field(ge=1)
    control: bool = False  # without noise, to see whether the attack finds anything at all
    data: Part
    trainer: Part
    game: GameSettings
    audit: AuditSettings = AuditSettings()
    execution: ExecutionSettings = ExecutionSettings()
    folder: Path | None = Field(default=None, exclude=True)  # where modules of the plan are looked for

    def __init__(self, **values: Any) -> None:
        if "small" in values:
            raise InvalidInput(
                "small is a table of a plan's file, which Plan.read(path, small=True) applies. In Python give "
                "the small values themselves."
            )
        for kind in ("data", "trainer"):
            if kind in values:
                values[kind] = part_of(kind, values[kind])
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise InvalidInput(sentence_of(error)) from None
        if self.n_fit >= self.n_models:
            raise InvalidInput(
                f"audit.fit_models must be below n_models = {self.n_models}, so that models are left to be judged, but "
                f"is {self.n_fit}."
            )
        if self.n_fit_pairs >= self.game.pairs_per_model:
            raise InvalidInput(
                f"audit.fit_pairs must be below game.pairs_per_model = {self.game.pairs_per_model}, so that pairs are "
                f"left to be judged, but is {self.n_fit_pairs}."
            )
        if self.audit.claimed_adjacency is not None:
            check_implied(self.audit.claimed_adjacency, self.game.adjacency, "audit.claimed_adjacency")
        if self.game.canaries is not None:
            Part("canaries", self.game.canaries)  # a name that is not known is said now

    @property
    def n_samples(self) -> int:
        """N: how many guesses are made."""
        return self.n_models * self.game.pairs_per_model

    @property
    def points_seed(self) -> int:
        """The seed that decides which points play which part, and of the models that rank them."""
        return self.seed if self.game.points_seed is None else self.game.points_seed

    @property
    def n_fit(self) -> int:
        """How many models choose the rule: the first of them."""
        if self.audit.rule != "split":
            return 0
        return self.audit.fit_models or max(1, self.n_models // 6)

    @property
    def n_fit_pairs(self) -> int:
        """How many pairs of each model choose the rule: the first of them."""
        if self.audit.rule != "split-pairs":
            return 0
        return self.audit.fit_pairs or max(1, self.game.pairs_per_model // 6)

    @property
    def canaries(self) -> Part | None:
        return None if self.game.canaries is None else Part("canaries", self.game.canaries)

    @classmethod
    def read(cls, path: str | os.PathLike[str], *, small: bool = False) -> Plan:
        """From a TOML file; modules that it names are looked for beside it. `small`: with the values of `[small]`."""
        file = Path(path)
        try:
            values = tomllib.loads(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise InvalidInput(
                f"there is no plan {path}. `epsgauge init --opacus DIR` writes one to start from."
            ) from None
        except OSError as error:
            raise InvalidInput(f"the plan {path} cannot be read: {error.strerror}.") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InvalidInput(f"the plan {path} is not TOML: {error}.") from None
        table = values.pop("small", {})
        if small and table == {}:
            raise InvalidInput(
                f"the plan {path} has no table [small], with the values that --small puts in place of its own. Add "
                "one, or leave out --small."
            )
        what = f"the plan {path}"
        try:
            smaller.check(table, _replaceable())
            if small:
                values, what = smaller.shrunk(values, table), f"{what} with its table [small]"
            return cls(**values, folder=file.resolve().parent)
        except TypeError:  # a key named `folder`
            raise InvalidInput(f"{what}: folder is not a key of a plan.") from None
        except InvalidInput as error:
            raise InvalidInput(f"{what}: {error}") from None

    def tables(self) -> dict[str, Any]:
        """As plain tables, which `Plan.from_tables` reads back; parts made of the user's objects become their names."""
        out = self.model_dump(mode="json", exclude={"data", "trainer"})
        return {**out, "data": self.data.identity(), "trainer": self.trainer.identity()}

    @classmethod
    def from_tables(cls, tables: dict[str, Any], folder: Path | None = None) -> Plan:
        return cls(**{k: v for k, v in tables.items() if v is not None}, folder=folder)

    def fingerprinted(self) -> dict[str, Any]:
        """What the signals depend on; `[audit]`, `[execution]`, the name and n_models are outside it."""
        tables = self.tables()
        return {key: tables[key] for key in ("seed", "control", "data", "trainer", "game")}

    def with_audit(self, **changes: Any) -> Plan:
        """The same plan with other `[audit]` settings."""
        return self.changed(audit={**self.audit.model_dump(), **changes})

    def changed(self, **values: Any) -> Plan:
        """The same plan with other values for some keys."""
        old = {name: getattr(self, name) for name in type(self).model_fields}
        return Plan(**{**old, **values})


def sentence_of(error: ValidationError) -> str:
    """The first problem as one sentence with key, rule and value; an unknown key gets the nearest known one."""
    problems = error.errors(include_url=False)
    problem = next(
        (p for p in problems if p["type"] == "extra_forbidden"), problems[0]
    )  # a misspelt key is also missing
    key = ".".join(str(part) for part in problem["loc"])
    match problem["type"]:
        case "extra_forbidden":
            known = _keys(problem["loc"][:-1])
            word = str(problem["loc"][-1])
            return f"{key} is not a key of a plan.{nearest(word, known) or ' There are: ' + ', '.join(known) + '.'}"
        case "missing":
            return f"{key} is missing. Add it to the plan."
        case "value_error":
            rule = problem["msg"].removeprefix("Value error, ")
            return f"{key}: {rule}."
    rule = problem["msg"].removeprefix("Input should be ").replace("String should have", "a text with").rstrip(".")
    return f"{key} must be {rule}, but got {problem['input']!r}."


TABLES: dict[str, type[BaseModel]] = {"game": GameSettings, "audit": AuditSettings, "execution": ExecutionSettings}


def _keys(location: tuple[int | str, ...]) -> list[str]:
    if location:
        return list(TABLES[str(location[0])].model_fields)
    return [*(name for name in Plan.model_fields if name != "folder"), "small"]


def _replaceable() -> dict[str, dict[str, Any] | None]:
    """What `[small]` may have: the keys of a plan, and those of its tables. The name gets a suffix instead."""
    names = (name for name in Plan.model_fields if name not in ("name", "folder"))
    return {name: dict(TABLES[name].model_fields) if name in TABLES else None for name in names}
