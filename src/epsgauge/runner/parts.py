"""A part of a plan: a built-in name or "module:attr" with its settings, or an object of the user's own."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

from epsgauge.data.canaries.table import AUTO, CANARIES, WRONG_LABELS
from epsgauge.errors import InvalidInput
from epsgauge.references import is_reference, load, nearest, users_code
from epsgauge.trainers.protocol import names

BUILT_IN: dict[str, dict[str, str]] = {
    "data": {
        "digits": "epsgauge.data.digits:digits",
        "digits-private": "epsgauge.data.digits:private_digits",
        "cifar10": "epsgauge.data.cifar10:cifar10",
        "sst2": "epsgauge.data.sst2:sst2",
        "sst2-tokens": "epsgauge.data.text_tokens:sst2_tokens",
        "sst2-embeddings": "epsgauge.data.text_embeddings:sst2_embeddings",
        "idx": "epsgauge.data.idx:idx",
        "zeros": "epsgauge.data.zeros:zeros",
        "script": "epsgauge.scripts.trainer:numbered",
    },
    "trainer": {
        "dpsgd": "epsgauge.trainers.dpsgd:DpSgd",
        "sgd": "epsgauge.trainers.sgd:Sgd",
        "classifier": "epsgauge.trainers.classifier:Classifier",
        "program": "epsgauge.trainers.program:Program",
        "script": "epsgauge.scripts.trainer:Script",
        "opacus-script": "epsgauge.scripts.trainer:OpacusScript",
        "randomised-response": "epsgauge.trainers.mechanism:RandomisedResponseTrainer",
        "laplace": "epsgauge.trainers.mechanism:LaplaceTrainer",
        "gaussian": "epsgauge.trainers.mechanism:GaussianTrainer",
        "label-response": "epsgauge.trainers.label_response:LabelResponse",
        "pate": "epsgauge.trainers.pate:Pate",
        "label-pate": "epsgauge.trainers.label_pate:LabelPate",
    },
    "canaries": {
        **dict.fromkeys((AUTO, *CANARIES), "epsgauge.data.canaries.table:canaries_of"),
        WRONG_LABELS: "epsgauge.data.canaries.wrong_labels:wrong_labels",
        "digits": "epsgauge.data.digits:canaries",
        "zeros": "epsgauge.data.zeros:canaries",
    },
}
SCRIPTS = ("script", "opacus-script")  # trainers that run one
SHOWING = ("dpsgd",)  # trainers whose every noisy update can be seen
# Programs run as `python script.py` and notebooks: their classes cannot be found by another process.
UNNAMED_MODULES = ("__main__", "__mp_main__")


@dataclasses.dataclass(frozen=True)
class Part:
    """What builds the data or the trainer. `target` is set where the user gave the object itself."""

    kind: str  # "data", "trainer" or "canaries"
    use: str
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)
    target: Any = None
    blind: bool = dataclasses.field(default=False, compare=False)  # a trainer that was given, and takes no watch

    def __post_init__(self) -> None:
        known = BUILT_IN[self.kind]
        if self.target is None and self.use not in known and not is_reference(self.use):
            raise InvalidInput(
                f'{self.kind}.use must be one of {", ".join(known)}, or your own as "module:attr", but got '
                f"{self.use!r}.{nearest(self.use, known)}"
            )

    @property
    def built_in(self) -> bool:
        return self.target is None and self.use in BUILT_IN[self.kind]

    @property
    def shows_updates(self) -> bool | None:
        """Whether a trainer shows the updates of DP-SGD; None if only its code says."""
        if self.built_in:
            return self.use in SHOWING and self.settings.get("noise_multiplier") != 0
        return False if self.blind else None

    @property
    def resumable(self) -> bool:
        """Whether another process can build the same."""
        return self.target is None

    def identity(self) -> dict[str, Any]:
        """What it is, for the fingerprint and the store."""
        return {"use": self.use, **self.settings}

    def check_names(self) -> None:
        """Whether the settings of a built-in part are its own; of a user's part that is seen when it is built."""
        if self.built_in:
            _check_names(self, load(BUILT_IN[self.kind][self.use], f"{self.kind}.use"))

    def build(self) -> Any:
        """The object; a class or function is called with the settings."""
        if self.target is not None:
            return self.target() if self.kind == "data" and inspect.isfunction(self.target) else self.target
        thing = load(BUILT_IN[self.kind].get(self.use, self.use), f"{self.kind}.use")
        if not callable(thing) or (self.kind == "trainer" and inspect.isfunction(thing)) or self.kind == "canaries":
            if self.settings:
                raise InvalidInput(
                    f"{self.kind} {self.use} takes no settings, but got {', '.join(sorted(self.settings))}."
                )
            return thing
        _check_names(self, thing)
        with users_code(f"{self.kind} {self.use}"):
            return thing(**self.settings)


def _check_names(part: Part, thing: Any) -> None:
    """Every setting is a parameter of the class or function, and every parameter without default is set."""
    try:
        parameters = inspect.signature(thing).parameters
    except (TypeError, ValueError):  # written in C: it will say so itself
        return
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return
    for name in part.settings:
        if name not in parameters:
            known = ", ".join(parameters) or "none"
            raise InvalidInput(
                f"{part.kind}.{name} is not a setting of {part.use}, which has: {known}.{nearest(name, parameters)}"
            )
    for name, parameter in parameters.items():
        needed = parameter.default is parameter.empty and parameter.kind is not parameter.VAR_POSITIONAL
        if needed and name not in part.settings:
            raise InvalidInput(f"{part.kind} {part.use} needs the setting {name}, but the plan has none.")


def part_of(kind: str, value: Any) -> Part:
    """From a table of a plan, or from an object that a user made."""
    if isinstance(value, Part):
        return value
    if isinstance(value, dict):
        use = value.get("use")
        if not isinstance(use, str):
            raise InvalidInput(f"{kind}.use must be a name, but got {use!r}.")
        return Part(kind, use, {name: setting for name, setting in value.items() if name != "use"})
    if isinstance(value, str):
        return Part(kind, value)
    owner = value if inspect.isfunction(value) or inspect.isclass(value) else type(value)
    name = f"{owner.__module__}:{owner.__qualname__}"
    can_be_found = owner.__module__ not in UNNAMED_MODULES and "<locals>" not in owner.__qualname__
    blind = kind == "trainer" and not names(value, "watch")
    settings: dict[str, Any] = {}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        given = {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if f.init}
        unset = {f.name for f in dataclasses.fields(value) if f.metadata.get("later") and given[f.name] == f.default}
        settings = {name: setting for name, setting in given.items() if name not in unset}
    elif owner is not value:
        can_be_found = False  # nobody knows how it was made
    if can_be_found and all(
        isinstance(v, (str, int, float, bool, list, tuple, dict, type(None))) for v in settings.values()
    ):
        return Part(kind, name, settings, blind=blind)
    return Part(kind, name, {k: repr(v) for k, v in settings.items()}, value, blind)
