"""declare(): how a table of scores will be judged, in a small file that is written before the scores are seen."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from epsgauge.adjacency import Adjacency, checked
from epsgauge.auditing.setup import Setup
from epsgauge.declaration import SHOWN, Declaration, digest_of, now
from epsgauge.errors import InvalidInput
from epsgauge.files import create
from epsgauge.mechanisms.privacy import Privacy, from_json
from epsgauge.scores.said import Bits, Models, checked_bits, checked_models
from epsgauge.scores.table import Scores
from epsgauge.settings import AuditSettings, changed

Declared = Literal["higher", "lower", "either"]  # which scores mean that b = 1 is more likely


def declare(
    path: str | os.PathLike[str],
    *,
    adjacency: Adjacency,
    bits: Bits = "unknown",
    models: Models | None = None,
    direction: Declared = "higher",
    seed: int = 0,
    note: str | None = None,
    **settings: Any,
) -> Declaration:
    """Write down how scores will be judged, before you see them; `audit(scores, declared=path)` keeps to it.

    `settings` are those of a plan's `[audit]` table. `seed` decides which models or pairs choose the rule, `bits` says
    where the bits come from, `models` which rows share a model where the file has no column for it, `direction` whether
    a "higher" or a "lower" score means that b = 1 is more likely, or "either", which leaves each direction
    half of 1 − level. `note` is what you want to remember of the attack. A file that exists is not replaced.
    """
    content = content_of(
        adjacency=adjacency, bits=bits, models=models, direction=direction, seed=seed, note=note, settings=settings
    )
    return write_declaration(Path(path), content)


def content_of(
    *,
    adjacency: Adjacency,
    bits: Bits,
    models: Models | None,
    direction: Declared,
    seed: int,
    note: str | None,
    settings: Mapping[str, Any],
) -> dict[str, Any]:
    """What is declared, checked, as plain values."""
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise InvalidInput(f"seed must be a whole number of at least 0, but got {seed!r}.")
    if direction not in get_args(Declared):
        raise InvalidInput(f'direction must be "higher", "lower" or "either", but got {direction!r}.')
    check_of_scores(settings)
    return {
        "written": now(),
        "adjacency": checked(adjacency),
        "bits": checked_bits(bits),
        "models": None if models is None else checked_models(models),
        "direction": direction,
        "seed": seed,
        "note": note,
        "audit": changed(AuditSettings(), dict(settings)).model_dump(mode="json"),
    }


def write_declaration(path: Path, content: dict[str, Any]) -> Declaration:
    """A new file with its digest; one that exists is not replaced."""
    digest = digest_of(content)
    text = json.dumps({"declared": content, "digest": digest}, indent=2, ensure_ascii=False) + "\n"
    try:
        create(path, text)
    except FileExistsError:
        raise InvalidInput(f"{path} exists, and a declaration is never replaced. Use another name.") from None
    except OSError as error:
        raise InvalidInput(f"the declaration could not be written to {str(path)!r}: {error.strerror}.") from None
    return Declaration(content, digest, content["written"], str(path))


def declaration_of(path: str | os.PathLike[str]) -> Declaration:
    """What a file declares; one that was changed since it was written is refused."""
    unknown = InvalidInput(f"{path} is no declaration. `epsgauge declare` writes one.")
    try:
        held = json.loads(Path(path).read_text(encoding="utf-8"))
        content, digest = held["declared"], str(held["digest"])
    except OSError as error:
        raise InvalidInput(f"{path} could not be read: {error.strerror}. `epsgauge declare` writes one.") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise unknown from None
    if digest_of(content) != digest:
        raise InvalidInput(
            f"{path} was changed after it was written: its digest {digest[:SHOWN]}… is of something else. Restore it, "
            "or audit without it."
        )
    try:
        AuditSettings(**content["audit"])
        written, _, _ = content["written"], checked(content["adjacency"]), int(content["seed"])
        checked_bits(content["bits"])
        if content.get("models") is not None:
            checked_models(content["models"])
        from_json(content.get("privacy"))
    except (ValueError, KeyError, TypeError):
        raise unknown from None
    return Declaration(content, digest, str(written), str(path))


def tables_judged(declared: Declaration, scores: Scores) -> int:
    """How many different tables were judged by this declaration here, this one among them.

    They are noted beside it, in a file that ends with .uses. Where that cannot be written, this one is all that counts.
    """
    order, digest = scores.by_model, hashlib.sha256()
    for column in (scores.model, scores.pair, scores.bit, scores.score):
        digest.update(column[order].tobytes())
    this, beside = digest.hexdigest(), Path(f"{declared.file}.uses")
    try:
        before = set(beside.read_text(encoding="utf-8").split()) if beside.is_file() else set()
        if this not in before:
            with beside.open("a", encoding="utf-8") as log:
                log.write(f"{this}\n")
    except (OSError, UnicodeDecodeError):
        return 1
    return len(before | {this})


def direction_of(declared: Declaration) -> Declared:
    """Declarations of earlier versions say nothing, and mean higher scores."""
    way: Declared = declared.content.get("direction", "higher")
    return way


def privacy_of(declared: Declaration) -> Privacy | None:
    """What the training promises, where that was declared."""
    return from_json(declared.content.get("privacy"))


def check_of_scores(settings: Mapping[str, Any]) -> None:
    """Refuse what only a run has."""
    for name in ("attack", "percentile"):
        if name in settings:
            raise InvalidInput(f"{name} goes with a run, but scores are made already. Use rule and threshold.")


def check_kept(
    declared: Declaration, scores: Scores, using: Setup, seed: int | None, direction: str | None = None
) -> None:
    """Refuse an audit that is not the declared one; scores that were not read from a file point as their maker says."""
    way = direction_of(declared)
    if "either" in (way, direction):
        here_way: str = direction or "higher"
    else:
        here_way = way if scores.origin is None else "lower" if scores.origin.lower_is_in else "higher"
    of_table = {"adjacency": scores.adjacency, "bits": scores.bits, "models": scores.taken_as, "direction": here_way}
    said = {name: declared.content[name] for name in (*of_table, "seed") if name in declared.content}  # models is newer
    before = said | {"direction": way} | declared.audit.model_dump()
    here = {**of_table, "seed": before["seed"] if seed is None else seed, **using.settings.model_dump()}
    for name, value in before.items():
        if here[name] != value:
            raise InvalidInput(
                f"{name} is {here[name]!r} here, but {value!r} in {declared.file}, which was declared beforehand. "
                "Leave it out, or audit without the declaration."
            )
