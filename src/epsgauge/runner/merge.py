"""merge(parts, out): several run directories of one plan as one, with all that was seen and declared of them."""

from __future__ import annotations

import heapq
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from epsgauge.declaration import Declaration
from epsgauge.errors import EpsgaugeError, InvalidInput
from epsgauge.runner import lock, machines
from epsgauge.runner.fingerprint import differences
from epsgauge.runner.schema import ARRAYS, CHANNELS, DECLARATIONS, META, MODELS, RANKINGS, REHEARSALS, STATES, Table
from epsgauge.runner.sealed import IDENTITY, Sealed
from epsgauge.runner.store import FILE, Store, begin_run
from epsgauge.runner.trouble import unharmed
from epsgauge.runner.view import Run, in_force, opened, stored_plan

_BUSY_SECONDS = 30
_UNFINISHED = ".merging-"  # in the name of a folder while it is written
Rows = Iterable[tuple[Any, ...]]


def merge(parts: Sequence[str | os.PathLike[str]], *, out: str | os.PathLike[str]) -> Run:
    """One run directory with the models of all parts. They must be of one plan, and agree where they overlap.

    Looks at a part are looks at the whole. What was declared must be the same in all of them.
    """
    folders, target = [Path(part) for part in parts], Path(out)
    if len(folders) < 2:
        raise InvalidInput(f"merge needs two run directories or more, but got {len(folders)}.")
    if os.path.lexists(target):
        raise InvalidInput(f"out must be new, but {target} is there already. Use another name.")
    with ExitStack() as stack:
        stores = [stack.enter_context(opened(folder)) for folder in folders]
        read = [_Part(*both, number) for number, both in enumerate(zip(folders, stores, strict=True))]
        meta, declarations = merged_entries(read), merged_declarations(read)
        looks = sorted((look for part in read for look in part.store.looks()), key=lambda look: str(look["time"]))
        _sweep(target.parent)
        spare = target.with_name(f".{target.name}{_UNFINISHED}{os.getpid()}")
        try:
            spare.mkdir(parents=True)
            with suppress(EpsgaugeError):  # without locks, nothing sweeps it
                stack.enter_context(lock.hold(spare))
            _write(spare / FILE, read, meta, declarations, looks)
            spare.rename(target)
        except OSError as error:
            raise InvalidInput(f"{target} cannot be written: {error.strerror}. Use another name.") from None
        finally:
            shutil.rmtree(spare, ignore_errors=True)
    return Run.open(target)


def _sweep(folder: Path) -> None:
    """Remove what merges that were killed left in a folder: they wrote their number into a lock that nothing holds."""
    for spare in folder.glob(f".*{_UNFINISHED}*"):
        with suppress(OSError):
            file = spare / lock.FILE
            began = not spare.is_symlink() and file.is_file() and file.read_text(encoding="utf-8", errors="replace")
            if began and lock.holder(spare) is None:
                shutil.rmtree(spare, ignore_errors=True)


class _Part:
    """One run directory that is read."""

    def __init__(self, folder: Path, store: Store, number: int) -> None:
        self.folder, self.store, self.number = folder, store, number

    def rows(self, table: Table) -> Iterator[tuple[Any, ...]]:
        """Each held against its seal."""
        database = Sealed.reader(self.store.file, "ro", _BUSY_SECONDS)
        try:
            yield from database.rows(table)
        finally:
            database.connection.close()

    def models(self) -> list[int]:
        return [int(index) for state in STATES for index in self.store.indices(state)]

    def entries(self) -> dict[str, Any]:
        with unharmed(self.store.file):
            return {key: json.loads(text) for key, text in self.rows(META) if key != IDENTITY}


def _write(
    file: Path, parts: list[_Part], meta: dict[str, Any], declarations: list[Declaration], looks: list[dict[str, Any]]
) -> None:
    os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))  # signals are for their owner's eyes
    database = Sealed.connect(file, "rw", _BUSY_SECONDS)
    try:
        with database.transaction():
            begin_run(database, meta["fingerprint"], looks)
            database.put_all(META, ((key, json.dumps(value)) for key, value in meta.items()))
            for d in declarations:
                content = json.dumps(dict(d.content))
                database.append(DECLARATIONS, (d.time, d.n_done, d.n_looks, content, d.digest))
            for table, what, same in _UNITED:
                database.put_all(table, _united(parts, table, what, same))
    finally:
        database.connection.close()


# rows


def _whole(row: tuple[Any, ...]) -> Any:
    return row


def _of_model(row: tuple[Any, ...]) -> Any:
    """Without the time that it took; errors of failed ones name the files of a machine."""
    index, state, seed, _, _, _, bits, pairs, signals = row
    return index, state, seed, bits, pairs, signals


def _of_ranking(row: tuple[Any, ...]) -> Any:
    index, seed, _, error, members, losses = row
    return index, seed, error is None, members, losses


_UNITED: tuple[tuple[Table, str, Callable[[tuple[Any, ...]], Any]], ...] = (
    (ARRAYS, "which points play which part", _whole),
    (CHANNELS, "channels", _whole),
    (RANKINGS, "ranking model {}", _of_ranking),
    (REHEARSALS, "model {} of those set apart", _of_model),
    (MODELS, "model {}", _of_model),
)


def _united(parts: list[_Part], table: Table, what: str, same: Callable[[tuple[Any, ...]], Any]) -> Rows:
    """The rows of all parts by their keys; those of one key must be the same, and the first is taken."""
    streams = [_tagged(part, table) for part in parts]
    held: tuple[_Part, tuple[Any, ...]] | None = None
    for _, number, row in heapq.merge(*streams, key=lambda item: item[:1]):
        if held is not None and held[1][0] == row[0]:
            if same(held[1]) != same(row):
                raise InvalidInput(
                    f"{held[0].folder} and {parts[number].folder} disagree about {what.format(row[0])}, although they "
                    "have one plan and one seed. Machines that round differently, or a trainer that is not "
                    "reproducible, cannot be merged where they overlap."
                )
            continue
        held = parts[number], row
        yield row


def _tagged(part: _Part, table: Table) -> Iterator[tuple[Any, int, tuple[Any, ...]]]:
    for row in part.rows(table):
        yield row[0], part.number, row


# entries


def merged_entries(parts: list[_Part]) -> dict[str, Any]:
    """What the store says of the run beside its models."""
    first, *others = parts
    for other in others:
        _check_plans(first, other)
    entries = [part.entries() for part in parts]
    keys = sorted({key for each in entries for key in each if not machines.is_entry(key)})
    joined = {key: _JOINED.get(key, _agreed)(key, parts, [each.get(key) for each in entries]) for key in keys}
    return joined | machines.merged([(each.get, part.models()) for each, part in zip(entries, parts, strict=True)])


def _check_plans(first: _Part, other: _Part) -> None:
    a, b = stored_plan(first.store), stored_plan(other.store)
    changed = differences(a, b)
    if not changed and a.n_models != b.n_models:
        changed = [f"n_models was {a.n_models}, now {b.n_models}"]
    if changed:
        raise InvalidInput(f"{first.folder} and {other.folder} hold different plans ({'; '.join(changed[:3])}).")


def _agreed(key: str, parts: list[_Part], values: list[Any]) -> Any:
    """One value, which all parts have that have any."""
    there = [(part, value) for part, value in zip(parts, values, strict=True) if value is not None]
    for part, value in there[1:]:
        if value != there[0][1]:
            raise InvalidInput(
                f"{there[0][0].folder} and {part.folder} cannot be merged: they differ in {_WORDS.get(key, key)}."
            )
    return there[0][1] if there else None


def _first(key: str, parts: list[_Part], values: list[Any]) -> Any:
    """A part that has no value has not come so far."""
    return next((value for value in values if value is not None), None)


def _all(key: str, parts: list[_Part], values: list[Any]) -> Any:
    """Lists one after the other, each element once."""
    found: list[Any] = []
    for element in (element for value in values for element in value or []):
        if element not in found:
            found.append(element)
    return found


def _in_order(key: str, parts: list[_Part], values: list[Any]) -> Any:
    """Lists as one, by their times. Two machines may begin in the same second: equal elements stay."""
    return sorted((e for value in values for e in value or []), key=lambda element: str(element.get("time", "")))


def _any(key: str, parts: list[_Part], values: list[Any]) -> Any:
    return any(values)


def _worst_probe(key: str, parts: list[_Part], values: list[Any]) -> Any:
    """One that refutes counts; one that could not be done does not, where another could."""
    return max(
        (value for value in values if value is not None),
        key=lambda value: (bool(value.get("refuted")), "findings" in value),
        default=None,
    )


_JOINED: dict[str, Callable[[str, list[_Part], list[Any]], Any]] = {
    "plan": _first,  # what may differ is [audit], which is judged as declared, [execution] and the name
    "notes": _all,
    "sessions": _in_order,
    "accepted_code": _in_order,
    "probe": _worst_probe,
    "extended_after_look": _any,
    "refit_after_look": _any,
    "retried_after_look": _all,
    "stop_when": _first,
}
_WORDS = {
    "code": "their code",
    "digest": "their data",
    "canary": "the canary that was taken",
    "group": "how many models are trained together",
    "privacy": "what their trainer promises",
    "process": "the process that had an object of their plan",
}


def by_time(declaration: Declaration) -> str:
    return declaration.time


def merged_declarations(parts: list[_Part]) -> list[Declaration]:
    """Those that were replaced before any look, the one in force, and those that came after looks."""
    counts = [in_force(part.store.declarations()) for part in parts]
    for part, declaration in zip(parts, counts, strict=True):
        if declaration.digest != counts[0].digest:
            raise InvalidInput(
                f"{parts[0].folder} and {part.folder} cannot be merged: they declared different settings of [audit] or "
                "another number of models before their results were seen."
            )
    agreed = min(counts, key=by_time)
    all_of_them = [each for part in parts for each in part.store.declarations()]
    before = [d for d in all_of_them if d.beforehand and d.digest != agreed.digest]
    after = [d for d in all_of_them if not d.beforehand]
    return [*sorted(before, key=by_time), agreed, *sorted(after, key=by_time)]
