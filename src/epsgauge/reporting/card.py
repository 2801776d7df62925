"""card(): the facts of an audit that those who evaluate or register a deployment ask for, and where each comes from."""

from __future__ import annotations

import hashlib
import json
import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from epsgauge.auditing.audit import Audit
from epsgauge.errors import InvalidInput
from epsgauge.files import replace
from epsgauge.numbers import at_most, exactly, interval_text, percent
from epsgauge.references import nearest
from epsgauge.reporting.markdown import line, table
from epsgauge.reporting.report import written

NIST, REGISTRY = "NIST SP 800-226", "deployment registry"
Source = Literal["measured", "declared", "computed", "not stated"]
VERSION = 1
READ_FROM = "read_from"  # the key under which a report that was read names its file
# What only the people who deploy can say: key, what it is called, and who asks for it.
DECLARABLE: dict[str, tuple[str, tuple[str, ...]]] = {
    "curator": ("Curator", (REGISTRY,)),
    "contact": ("Contact", (REGISTRY,)),
    "product": ("Data product", (REGISTRY,)),
    "intended_use": ("Intended use", (REGISTRY,)),
    "published": ("Publication date", (REGISTRY,)),
    "unit": ("Unit of privacy", (NIST, REGISTRY)),
    "deployment_model": ("Deployment model (central, local, …)", (NIST, REGISTRY)),
    "trust": ("Who is trusted with the data", (NIST,)),
    "data_domain": ("Data domain", (REGISTRY,)),
    "unprotected": ("What is released without protection", (NIST, REGISTRY)),
    "composition": ("Other releases from the same data", (NIST, REGISTRY)),
    "post_processing": ("Post-processing", (REGISTRY,)),
    "tuning": ("How hyperparameters were chosen", (NIST, REGISTRY)),
    "side_channels": ("Side channels and floating point", (NIST, REGISTRY)),
    "security": ("Security and access control", (NIST, REGISTRY)),
    "data_collection": ("How the data were collected", (NIST,)),
    "utility": ("Utility and bias", (NIST,)),
}


@dataclass(frozen=True)
class Fact:
    """One fact. `source` says whether it was measured, declared by people, computed from that, or is missing."""

    section: str
    name: str
    value: str
    source: Source
    asked_by: tuple[str, ...] = ()


@dataclass(frozen=True)
class Card:
    """What is known of a deployment's privacy; `markdown` and `to_json` say it, `section` is for a model card."""

    title: str
    facts: tuple[Fact, ...]
    decision: str
    sentence: str

    def to_json(self) -> dict[str, Any]:
        head = {"card_version": VERSION, "title": self.title, "decision": self.decision, "verdict": self.sentence}
        return {**head, "facts": [asdict(fact) for fact in self.facts]}

    @property
    def markdown(self) -> str:
        parts = [f"# Privacy card: {line(self.title)}", f"**{line(self.sentence)}**", line(self.decision), SOURCES]
        for section in dict.fromkeys(fact.section for fact in self.facts):
            rows = [
                (fact.name, fact.value, fact.source, ", ".join(fact.asked_by))
                for fact in self.facts
                if fact.section == section
            ]
            parts += [f"## {section}", table(("", "", "Source", "Asked for by"), rows)]
        return "\n\n".join(parts) + "\n"

    @property
    def section(self) -> str:
        """The section on privacy of a model card: what is known, in a list."""
        known = [f"- **{line(fact.name)}** ({fact.source}): {line(fact.value)}" for fact in self.facts if fact.value]
        missing = ", ".join(line(fact.name) for fact in self.facts if not fact.value)
        parts = ["## Privacy", line(self.decision), "\n".join(known), f"Not stated: {missing}." if missing else ""]
        return "\n\n".join(part for part in parts if part) + "\n"

    def save(self, path: str | os.PathLike[str]) -> Path:
        """As .json, or as .md."""
        target = Path(path)
        if target.suffix not in (".md", ".json"):
            raise InvalidInput(f"a card's file must end in .md or .json, but got {str(path)!r}.")
        text = json.dumps(self.to_json(), indent=2, ensure_ascii=False) + "\n"
        try:
            replace(target, text if target.suffix == ".json" else self.markdown)
        except OSError as error:
            raise InvalidInput(f"the card could not be written to {str(target)!r}: {error.strerror}.") from None
        return target


SOURCES = (
    "*measured* was found by this audit, *declared* was said by people, *computed* follows from what was declared. "
    "Nothing else is in this card."
)


def card(audit: Audit | Mapping[str, Any], *, declared: Mapping[str, str] | None = None) -> Card:
    """The card of an audit, or of the JSON of its report; `declared` has what people say, say {"unit": "a person"}."""
    said = checked(declared or {})
    found = json_numbers(json.loads(written(audit, "json")) if isinstance(audit, Audit) else dict(audit))
    try:
        facts = [*_promise(found), *_measured(found), *_limits(found), *_made(found)]
        head = {
            "decision": found["decision"]["meaning"],
            "sentence": found["verdict"]["sentence"].partition(". ")[0] + ".",
        }
        title = str(found["name"])
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInput(
            f"a card needs the JSON of a report, but {error} is not as there. Write it with: epsgauge report RUN -o "
            "audit.json, or epsgauge scores FILE --report audit.json."
        ) from None
    facts += [
        Fact("The deployment", name, said.get(key, ""), "declared" if key in said else "not stated", by)
        for key, (name, by) in DECLARABLE.items()
    ]
    return Card(title, tuple(facts), **head)


def checked(declared: Mapping[str, Any]) -> dict[str, str]:
    """What people declare: known keys, each with a text."""
    for key, value in declared.items():
        if key not in DECLARABLE:
            raise InvalidInput(
                f"{key} is not a key of a card, which has: {', '.join(DECLARABLE)}.{nearest(key, DECLARABLE)}"
            )
        if not isinstance(value, str) or not value.strip():
            raise InvalidInput(f"{key} must be a text, but got {value!r}. Leave out what you do not state.")
    return dict(declared)


def read_declared(path: str | os.PathLike[str]) -> dict[str, str]:
    """From a TOML file."""
    try:
        return checked(tomllib.loads(Path(path).read_text(encoding="utf-8")))
    except OSError as error:
        raise InvalidInput(f"the declarations {str(path)!r} cannot be read: {error.strerror}.") from None
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"the declarations {str(path)!r} are not TOML: {error}.") from None


def read_report(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The JSON of a report, which anybody may have edited: the card names the file and its digest."""
    try:
        raw = Path(path).read_bytes()
        found = json.loads(raw)
    except OSError as error:
        raise InvalidInput(
            f"the report {str(path)!r} cannot be read: {error.strerror}. Give a run directory, or write a report with: "
            "epsgauge report RUN -o audit.json."
        ) from None
    except ValueError as error:
        raise InvalidInput(f"the report {str(path)!r} is not JSON: {error}.") from None
    if not isinstance(found, dict):
        return {}
    digest = hashlib.sha256(raw).hexdigest()
    return {**found, READ_FROM: f"{Path(path).name}, SHA-256 {digest}. The card says what this file says, unchecked."}


def json_numbers(value: Any) -> Any:
    """Infinite numbers of our JSON as floats again."""
    if isinstance(value, dict):
        return {key: json_numbers(each) for key, each in value.items()}
    if isinstance(value, list):
        return [json_numbers(each) for each in value]
    return float(value) if value in ("inf", "-inf") else value


# Facts, by section


def _promise(found: Mapping[str, Any]) -> Iterable[Fact]:
    where, claim = "The promise", found["claim"]
    both = (NIST, REGISTRY)
    if claim is None:
        yield Fact(where, "Claim", "", "not stated", both)
        return
    how: Source = "declared" if claim["source"] == "stated" else "computed"
    flavour = "(ε, δ)-differential privacy" if claim["mu"] is None else "Gaussian differential privacy"
    yield Fact(where, "Flavour", flavour, how, (REGISTRY,))
    if claim["mu"] is not None:
        yield Fact(where, "μ", exactly(claim["mu"]), how, both)
    yield Fact(where, "ε", str(claim["text"]), how, both)
    yield Fact(where, "Neighbours", str(claim["adjacency"]), how, both)
    ran = found.get("what_was_run") or {}
    inputs = (ran.get("accountant") or {}).get("inputs")
    if inputs:
        said = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in inputs.items() if key != "kind")
        yield Fact(where, "Mechanism, as accounted", said, "declared", both)
    for adjacency, eps in found["accountant"]["eps"].items():
        if eps is not None:
            at = f"{at_most(eps)} at δ = {found['settings']['delta']:g}"
            yield Fact(where, f"ε by the accountant ({adjacency})", at, "computed", both)


def _measured(found: Mapping[str, Any]) -> Iterable[Fact]:
    where, v = "What was measured", found["verdict"]
    yield Fact(where, "Verdict", str(v["kind"]), "measured", (NIST,))
    for bound in (v["bound"], v["conditional_bound"]):
        if bound is not None:
            yield Fact(where, "ε at least", str(bound["sentence"]), "measured", (NIST,))
    p, level = found["posterior"], found["settings"]["level"]
    yield Fact(
        where,
        f"{percent(level)} credible interval",
        f"{interval_text(p['low'], p['high'])}, for this attack",
        "measured",
    )
    yield Fact(where, "Models judged", str(found["models"]["judged"]), "measured")
    adversary = v["adversary"]
    who = f"attack {adversary['attack']}; {adversary['access']}"
    powers = adversary.get("powers")
    yield Fact(where, "Adversary", who if powers is None else f"{who}; {powers['may']}", "measured", (NIST,))
    probe = found["probe"]
    if probe is not None and "sentence" in probe:
        yield Fact(where, "Probe of the training", str(probe["sentence"]), "measured", (NIST,))


def _limits(found: Mapping[str, Any]) -> Iterable[Fact]:
    where, v = "What it rests on", found["verdict"]
    yield Fact(where, "Assumptions of the bound", "; ".join(v["bound"]["assumptions"]), "measured", (NIST,))
    kept = "kept" if found["level_kept"] else f"lost: {found['level_lost_because']}"
    yield Fact(where, "Level of the bound", kept, "measured")
    declared = found["declared"]
    yield Fact(where, "Declared beforehand", "no" if declared is None else str(declared["sentence"]), "measured")
    yield Fact(where, "Looks at results before", str(found["looks"]), "measured")
    yield Fact(where, "Models that failed", str(found["models"]["failed"]), "measured")
    if found["warnings"]:
        yield Fact(where, "Warnings", " ".join(found["warnings"]), "measured")


def _made(found: Mapping[str, Any]) -> Iterable[Fact]:
    where, ran = "How it was made", found.get("what_was_run")
    if READ_FROM in found:
        yield Fact(where, "Read from", str(found[READ_FROM]), "declared")
    if ran is None:
        return
    made, run = ran["report"], ran["run"]
    yield Fact(where, "Report", f"epsgauge {made['epsgauge']}, {made['time']}", "measured")
    if run is None:
        return
    data = f"{run['plan']['data']['use']}, {run['plan']['game']['train_size']} records in a training set"
    yield Fact(where, "Data", data, "declared", (REGISTRY,))
    yield Fact(where, "Digest of the data", str(run["data_digest"]), "measured")
    versions = ", ".join(f"{name} {version}" for name, version in run["packages"].items())
    yield Fact(where, "Software", versions, "measured", (NIST, REGISTRY))
    if run["revision"]:
        changed = " with changes that were not committed" if run["revision"]["dirty"] else ""
        yield Fact(where, "Revision", f"{run['revision']['commit']}{changed}", "measured")
