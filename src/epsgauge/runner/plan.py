"""Plan: what is to be trained, played and judged, as a TOML file or in Python; strict and frozen."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from epsgauge.adjacency import check_implied
from epsgauge.attacks.table import ATTACKS
from epsgauge.errors import InvalidInput
from epsgauge.games.adversary import AUTO, BEST, BLACK_BOX, PRESETS, AdversarySettings
from epsgauge.games.powers import Powers, powers
from epsgauge.games.rehearsal import STRIDE
from epsgauge.games.settings import GameSettings
from epsgauge.runner import small as smaller
from epsgauge.runner.parts import BUILT_IN, SCRIPTS, Part, part_of
from epsgauge.settings import AuditSettings
from epsgauge.trainers.watch import CHANNELS
from epsgauge.validation import sentence_of

# A run of so many models begins with a probe, which takes about a hundred trainings, most of them of a few steps.
PROBED_FROM = 200


MOST_TAGS, LONGEST_TAG = 20, 40


class ExecutionSettings(BaseModel):
    """The `[execution]` table: how the work is spread. It changes no result."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    workers: int | None = Field(default=None, ge=1)  # None: one for each core
    timeout: float | None = Field(default=None, gt=0, allow_inf_nan=False)  # seconds for each model; None: no limit
    cpus_per_model: float | None = Field(default=None, gt=0, allow_inf_nan=False)  # what a cluster keeps for a model
    gpus_per_model: float | None = Field(default=None, ge=0, allow_inf_nan=False)


class Plan(BaseModel):
    """A run: data, trainer and game, how many models, and how they are judged.

    >>> plan = Plan(name="a", n_models=10, data="digits", trainer={"use": "dpsgd"}, game={"train_size": 100})
    >>> plan.n_samples, plan.game.experiment
    (10, 'IND-MIA')
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, arbitrary_types_allowed=True)

    name: str = Field(min_length=1)
    seed: int = Field(default=0, ge=0)
    n_models: int = Field(ge=1)
    tags: tuple[str, ...] = ()  # by which runs are found; they change no result
    control: bool = False  # without noise, to see whether the attack finds anything at all
    probe: bool | None = None  # test what the accountant assumes first; None: of trainers of the user's own
    data: Part
    trainer: Part
    game: GameSettings
    adversary: AdversarySettings = AUTO
    audit: AuditSettings = AuditSettings()
    execution: ExecutionSettings = ExecutionSettings()
    folder: Path | None = Field(default=None, exclude=True)  # where modules of the plan are looked for
    read_from: tuple[str, ...] = Field(default=(), exclude=True, repr=False)  # its file, as words of a command line

    @field_validator("tags", mode="before")
    @classmethod
    def _tags(cls, given: Any) -> tuple[str, ...]:
        texts: list[Any] = list(given) if isinstance(given, (list, tuple)) else [None]
        if len(texts) > MOST_TAGS or not all(isinstance(t, str) and 1 <= len(t) <= LONGEST_TAG for t in texts):
            raise ValueError(
                f"they must be a list of up to {MOST_TAGS} texts of 1 to {LONGEST_TAG} characters, but got "
                f"{given!r:.80}"
            )
        return tuple(dict.fromkeys(texts))

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
            super().__init__(**_with_challenge(values))
        except ValidationError as error:
            raise InvalidInput(sentence_of(error, _keys)) from None
        shows = self.trainer.shows_updates if self._leaves_open else False
        if self.adversary.is_open and shows is not None:
            object.__setattr__(self, "adversary", BEST if shows else BLACK_BOX)
        if self.audit.attack is None and not self.adversary.is_open:
            object.__setattr__(self, "audit", self.audit.model_copy(update={"attack": self.fitting_attack}))
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
        attack = ATTACKS.get(self.audit.attack or "")  # None: your own
        wrong = self.adversary.check_game(self.game)
        if wrong is None and attack is not None:
            wrong = self.adversary.check_attack(attack.name, attack.needs)
        if (
            wrong is None
            and attack is not None
            and attack.learns
            and attack.same_pairs
            and self.game.pairs_are != "fixed"
        ):
            wrong = (
                f'audit.attack = "{attack.name}" learns how models see a pair, so all models must have the same, but '
                'game.pairs is "fresh". Set pairs = "fixed" in [game], or use another attack.'
            )
        if wrong is None and attack is not None and "population" in attack.needs and not self.game.population:
            wrong = (
                f'audit.attack = "{attack.name}" compares with each reference point, but the losses on them are kept '
                "sorted. Set population = true in [game], or use another attack."
            )
        if wrong is None and self.n_learning > STRIDE:
            wrong = (
                f"game.rehearsal_models must be at most {STRIDE} for an attack to learn on, but is {self.n_learning}."
            )
        if wrong is not None:
            raise InvalidInput(wrong)
        if self.audit.claimed_adjacency is not None:
            check_implied(self.audit.claimed_adjacency, self.game.adjacency, "audit.claimed_adjacency")
        if self.game.canaries is not None:
            Part("canaries", self.game.canaries)  # a name that is not known is said now

    @property
    def _leaves_open(self) -> bool:
        """Whether nothing but the trainer decides who attacks: no key asks for another game, or an attack on losses."""
        by_losses = (self.audit.attack, self.audit.percentile, self.audit.threshold)
        usual = self.game.auto and self.game.adjacency != "label-only" and not self.game.population
        return usual and all(named is None for named in by_losses)

    @property
    def fitting_attack(self) -> str:
        """The attack of a plan that names none."""
        if self.adversary.watches:
            return "updates" if self.adversary.sees == "updates" else "displacement"
        return "rehearsed" if self.game.challenge == "explicit" and self.audit.percentile is None else "percentile"

    @property
    def start(self) -> Literal["known", "secret"]:
        """Whether the adversary knows the first weights, which are then the same for all models."""
        return self.adversary.start or ("known" if self.game.auto else "secret")

    @property
    def probes(self) -> bool:
        """Whether a run begins with a probe. By default that of a script does, and one whose trainer is not built in if
        it is long enough for the probe's trainings, which are short, to be a small part of it.
        """
        own = self.trainer.use not in BUILT_IN["trainer"] and self.n_models >= PROBED_FROM
        return not self.control and (own or self.trains_script if self.probe is None else self.probe)

    @property
    def trains_script(self) -> bool:
        """Whether it runs a script that is not edited for it."""
        return self.trainer.use in SCRIPTS

    @property
    def orthogonal(self) -> bool:
        """Whether a model has several gradient canaries, each in a direction of its own, and every update is seen."""
        several = self.game.pairs_per_model > 1
        return several and self.adversary.inserts == "gradient" and self.adversary.sees == "updates"

    @property
    def powers(self) -> Powers:
        """What the adversary may do, in words, and which claims cover it."""
        return powers(self.adversary, self.game, self.start)

    @property
    def tries_canaries(self) -> bool:
        """Whether a rehearsal finds the best canary; who chooses anew at each step needs none."""
        return self.game.auto and self.adversary.inserts in ("record", "auto")

    @property
    def needs_losses(self) -> bool:
        """Whether the trainer must say losses: what a watch sees is enough for an attack that asks for nothing else."""
        attack = ATTACKS.get(self.audit.attack or "")
        by_losses = attack is not None and not CHANNELS.keys() >= set(attack.needs)
        return not self.adversary.watches or by_losses or self.game.challenge == "worst" or bool(self.game.population)

    @property
    def n_samples(self) -> int:
        """N: how many guesses are made."""
        return self.n_models * self.game.pairs_per_model

    @property
    def points_seed(self) -> int:
        """The seed that decides which points play which part, and of the models that rank them."""
        return self.seed if self.game.points_seed is None else self.game.points_seed

    @property
    def n_learning(self) -> int:
        """How many models are set apart for the attack to learn on."""
        attack = ATTACKS.get(self.audit.attack or "")
        return self.game.n_learning(attack is not None and attack.learns)

    @property
    def n_fit(self) -> int:
        """How many models choose the rule: the first of them."""
        return self.audit.n_fit(self.n_models)

    @property
    def n_fit_pairs(self) -> int:
        """How many pairs of each model choose the rule: the first of them."""
        return self.audit.n_fit_pairs(self.game.pairs_per_model)

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
        except (ValueError, RecursionError) as error:  # ValueError: also of a number of too many digits
            raise InvalidInput(f"the plan {path} is not TOML: {error}.") from None
        if _too_long(values):
            raise InvalidInput(f"the plan {path} has a number of more than {MOST_DIGITS} digits. Write a smaller one.")
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
            of_file = (str(path), *(["--small"] if small else []))
            return cls(**values, folder=file.resolve().parent, read_from=of_file)
        except TypeError:  # a key of ours
            key = next(name for name in OURS if name in values)
            raise InvalidInput(f"{what}: {key} is not a key of a plan.") from None
        except InvalidInput as error:
            raise InvalidInput(f"{what}: {error}") from None

    def tables(self) -> dict[str, Any]:
        """As plain tables, which `Plan.from_tables` reads back; parts made of the user's objects become their names."""
        # as in plans of earlier versions
        unset = {"adversary": self.adversary.is_black_box, "probe": self.probe is None, "tags": not self.tags}
        default = {name for name, is_default in unset.items() if is_default}
        out = self.model_dump(mode="json", exclude={"data", "trainer", *default})
        return {**out, "data": self.data.identity(), "trainer": self.trainer.identity()}

    @classmethod
    def from_tables(cls, tables: dict[str, Any], folder: Path | None = None) -> Plan:
        """What `tables` gave: one without an adversary has the black box."""
        return cls(**{"adversary": {}, **{k: v for k, v in tables.items() if v is not None}}, folder=folder)

    def fingerprinted(self) -> dict[str, Any]:
        """What the signals depend on; `[audit]`, `[execution]`, the name and n_models are outside it."""
        tables = self.tables()
        tables["game"] = {k: v for k, v in tables["game"].items() if v is not None or k not in _NEWER}
        keys = ("seed", "control", "data", "trainer", "game", "adversary")
        return {key: tables[key] for key in keys if key in tables}

    def with_audit(self, **changes: Any) -> Plan:
        """The same plan with other `[audit]` settings."""
        return self.changed(audit={**self.audit.model_dump(), **changes})

    def changed(self, **values: Any) -> Plan:
        """The same plan with other values for some keys."""
        old = {name: getattr(self, name) for name in type(self).model_fields}
        return Plan(**{**old, **values})

    def facing(self, adversary: AdversarySettings) -> Plan:
        """An open plan with the adversary that was found for it."""
        game = self.game.model_dump(exclude={"challenge", "canaries"})
        return self.changed(adversary=adversary, game=game) if self.adversary.is_open else self


def _with_challenge(values: dict[str, Any]) -> dict[str, Any]:
    """Gradient canaries are no records, and the adversary `api` makes none: no canaries are made for them."""
    game, adversary = values.get("game"), values.get("adversary")
    if not isinstance(game, dict) or game.get("challenge") is not None or game.get("canaries") is not None:
        return values
    inserts, preset = getattr(adversary, "inserts", None), getattr(adversary, "preset", None)
    if isinstance(adversary, dict):
        preset = adversary.get("preset")
        of_preset: dict[str, Any] = next((keys for name, keys in PRESETS.items() if name == preset), {})
        inserts = {**of_preset, **adversary}.get("inserts")
    drawn = (inserts == "gradient" or preset == "api") and game.get("adjacency") != "label-only"
    return {**values, "game": {**game, "challenge": "average"}} if drawn else values


# Keys of [game] that plans of earlier versions have not: unset, they leave a plan what it was.
_NEWER = ("rehearsal_models", "control_models", "population")
OURS = ("folder", "read_from")  # no keys of a file
MOST_DIGITS = 100  # of a whole number in a plan's file
TABLES: dict[str, type[BaseModel]] = {
    "game": GameSettings,
    "adversary": AdversarySettings,
    "audit": AuditSettings,
    "execution": ExecutionSettings,
}


def _too_long(value: Any) -> bool:
    """Whether a number in these tables has more digits than anything can do with it."""
    if isinstance(value, (dict, list)):
        return any(map(_too_long, value.values() if isinstance(value, dict) else value))
    return isinstance(value, int) and abs(value) >= 10**MOST_DIGITS


def _keys(location: tuple[int | str, ...]) -> list[str]:
    if location:
        return list(TABLES[str(location[0])].model_fields)
    return [*(name for name in Plan.model_fields if name not in OURS), "small"]


def _replaceable() -> dict[str, dict[str, Any] | None]:
    """What `[small]` may have: the keys of a plan, and those of its tables. The name gets a suffix instead."""
    names = (name for name in Plan.model_fields if name not in ("name", *OURS))
    return {name: dict(TABLES[name].model_fields) if name in TABLES else None for name in names}
