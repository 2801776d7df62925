"""The user's code that a plan names: which files it is made of, and their SHA-256."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import inspect
import itertools
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from epsgauge.errors import EpsgaugeError
from epsgauge.references import check_not_hidden, is_reference, module_file, search_in
from epsgauge.runner.plan import Plan

_OURS = Path(__file__).resolve().parents[1]
UNNAMED = {"__main__", "__mp_main__"}  # no other process finds them


def code_of(plan: Plan) -> dict[str, str]:
    """File -> SHA-256 of each module and program that the plan names, and of what these import from beside them.

    Files are named from the plan's folder on. Nothing is imported but packages that hold a module from elsewhere.
    """
    found = {file.name: file.sha256 for file in files_of(plan, _named(plan))}
    for part in (plan.data, plan.trainer):
        if part.target is not None:
            found[part.use] = hashlib.sha256(_source(part.target).encode()).hexdigest()
    return dict(sorted(found.items()))


@dataclass(frozen=True)
class File:
    """A file of the user's code as it was read; `stat` is cheap to compare, and changes whenever it is written."""

    name: str  # from the plan's folder on
    path: Path
    stat: tuple[int, ...] | None
    sha256: str


def files_of(plan: Plan, modules: set[str]) -> list[File]:
    """Programs that a plan names, these modules, and what all of them import from beside them."""
    find_code(plan)
    return _reached([*_programs(plan), *_files(modules, plan.folder)], plan.folder)


def find_code(plan: Plan) -> None:
    """Let Python find the modules next to a plan, and raise if it would find others in their place."""
    search_in(plan.folder)
    folder, waiting = plan.folder, [("the plan", module) for module in sorted(_named(plan))]
    reached = set[Path]()
    while folder is not None and waiting:
        user, module = waiting.pop()
        check_not_hidden(folder, module, user)
        file = module_file(folder, module)
        if file is not None and file not in reached:
            reached.add(file)
            waiting += [(file.name, name) for level, name in _imports(file.read_bytes()) if level == 0]


def check_here(plan: Plan, code: dict[str, str]) -> None:
    """Raise where this process has other code. By content: on another machine files may be elsewhere."""
    here = {file.sha256 for file in files_of(plan, _named(plan))}
    changed = [name for name, sha256 in code.items() if sha256 not in here]
    if changed:
        raise CodeChanged.of(changed)


class CodeChanged(EpsgaugeError):
    """The user's code is not what it was when the run began."""

    @classmethod
    def of(cls, names: list[str]) -> CodeChanged:
        return cls(
            f"the code changed during the run: {', '.join(sorted(names))}. What is done is kept, and it is all of the "
            "code as it was. Restore it and run the same command again, or use a new --out."
        )


class Sources:
    """The files of a plan's code when this was made, and whether they still are what they were."""

    def __init__(self, plan: Plan) -> None:
        named = files_of(plan, _named(plan))
        self.code = {file.name: file.sha256 for file in named}  # that any process can find
        files = [*files_of(plan, _of_objects(plan)), *_beside_script(plan), *named]
        self._files = {file.path: file for file in files}

    @property
    def files(self) -> list[File]:
        """All of them, for a machine that has none."""
        return list(self._files.values())

    def check(self) -> None:
        """Raise where a file has changed: a few microseconds each, unless it was written to."""
        changed = []
        for path, file in self._files.items():
            stat = _stat(path)
            if stat == file.stat:
                continue
            try:
                same = hashlib.sha256(path.read_bytes()).hexdigest() == file.sha256
            except OSError:
                same = False
            if same:
                self._files[path] = File(file.name, path, stat, file.sha256)
            else:
                changed.append(file.name)
        if changed:
            raise CodeChanged.of(changed)


def code_of_audit(plan: Plan) -> dict[str, str]:
    """Reference -> SHA-256 of the code of an attack or method of the user's that `[audit]` names, where it is found."""
    search_in(plan.folder)
    named = [name for name in (plan.audit.attack, plan.audit.verdict_method) if is_reference(name)]
    found = {str(name): code_of_reference(str(name), plan.folder) for name in named}
    return {name: code for name, code in found.items() if code is not None}


def code_of_reference(reference: str, folder: Path | None = None) -> str | None:
    """One SHA-256 of a module and of what it imports from beside it; None where it comes from no file."""
    files = _files({reference.partition(":")[0]} - UNNAMED, folder)
    hashes = sorted(file.sha256 for file in _reached(files, folder))
    return hashlib.sha256("".join(hashes).encode()).hexdigest() if hashes else None


def _files(modules: set[str], folder: Path | None) -> list[Path]:
    return [file for name in sorted(modules) if (file := _file(name, folder)) is not None]


def _reached(files: list[Path], folder: Path | None) -> list[File]:
    """These files and what they import from beside them, each once by its name."""
    found: dict[str, File] = {}
    waiting = list(files)
    while waiting:
        path = waiting.pop()
        name = os.path.relpath(path, folder or _above(path))
        if name not in found:
            stat, source = _stat(path), path.read_bytes()
            found[name] = File(name, path, stat, hashlib.sha256(source).hexdigest())
            waiting += [*_holding(path), *_imported(path, source, folder)]
    return list(found.values())


def _holding(file: Path) -> list[Path]:
    """What is imported before a module of packages: the file of each of them."""
    above = itertools.takewhile(Path.is_file, (place / "__init__.py" for place in file.parents))
    return list(above)


def _above(file: Path) -> Path:
    """The folder that holds a module, or the outermost of its packages."""
    return file.parents[len(_holding(file))]


def import_name(file: Path) -> str:
    """Where a module is, from the folder on that Python has to search."""
    return str(file.relative_to(_above(file)))


def _stat(path: Path) -> tuple[int, ...] | None:
    try:
        seen = path.stat()
    except OSError:
        return None
    return seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns


def _named(plan: Plan) -> set[str]:
    values = [plan.data.use, plan.trainer.use, plan.game.canaries, *plan.trainer.settings.values()]
    parts = [v for v in values if is_reference(v)]
    return {str(v).partition(":")[0] for v in parts} - UNNAMED


def _of_objects(plan: Plan) -> set[str]:
    """Modules of the classes of a user's objects: they are sent by name, and imported by each process."""
    given = [part.target for part in (plan.data, plan.trainer) if part.target is not None]
    return {_owner(thing).__module__ for thing in given} - UNNAMED


def _beside_script(plan: Plan) -> list[File]:
    """What a script imports from beside it, if the plan has objects of it: these are sent whole, and that is not."""
    given = [part.target for part in (plan.data, plan.trainer) if part.target is not None]
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    if script is None or not any(_owner(thing).__module__ in UNNAMED for thing in given):
        return []
    path = Path(script)
    if "site-packages" in path.parts or not path.is_file():  # one that is installed, as pytest
        return []
    return _reached(list(_imported(path, path.read_bytes(), plan.folder)), plan.folder)


def _owner(thing: Any) -> Any:
    return thing if inspect.isclass(thing) or inspect.isfunction(thing) else type(thing)


def _programs(plan: Plan) -> list[Path]:
    """Files beside the plan that a command names, or the script."""
    settings = plan.trainer.settings
    if plan.trains_script and settings.get("module"):
        return _files({str(settings.get("script"))}, plan.folder)
    command = [settings.get("script")] if plan.trains_script else settings.get("command")
    if plan.folder is None or not isinstance(command, (list, tuple)):
        return []
    return [file for word in command if (file := plan.folder / str(word)).is_file()]


def _file(module: str, folder: Path | None) -> Path | None:
    """Where a module is; packages that are installed are known by their version instead."""
    if folder is not None and (beside := module_file(folder, module)) is not None:
        return beside
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return None
    origin = None if spec is None else spec.origin
    if origin is None or not origin.endswith(".py") or "site-packages" in origin:
        return None
    return None if Path(origin).is_relative_to(_OURS) else Path(origin)


def _imported(file: Path, source: bytes, folder: Path | None) -> Iterator[Path]:
    """Files that a module imports from its own folder or from that of the plan."""
    around = list(dict.fromkeys([file.parent, _above(file), *filter(None, [folder])]))
    for level, name in _imports(source):  # from . import x: from the package that the file is in, or from one above
        places = [file.parents[min(level, len(file.parents)) - 1]] if level else around
        yield from (near for place in places if (near := module_file(place, name)) is not None)


@lru_cache(maxsize=256)
def _imports(source: bytes) -> tuple[tuple[int, str], ...]:
    """What a module imports: how many packages above it, and its name there. Each run asks several times."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):  # a program in another language
        return ()
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(0, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            before = [node.module] if node.module else []
            names = [*before, *(".".join([*before, alias.name]) for alias in node.names if alias.name != "*")]
            found += [(node.level, name) for name in names]
    return tuple(found)


def _source(thing: Any) -> str:
    try:
        return inspect.getsource(_owner(thing))
    except (OSError, TypeError):  # typed at a prompt
        return ""
