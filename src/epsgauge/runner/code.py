"""The user's code that a plan names: which files it is made of, and their SHA-256."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import inspect
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from epsgauge.references import is_reference, module_file, search_in
from epsgauge.runner.plan import Plan

UNNAMED = {"__main__", "__mp_main__"}  # no other process finds them


def code_of(plan: Plan) -> dict[str, str]:
    """File -> SHA-256 of each module and program that the plan names, and of what these import from beside them.

    Files are named from the plan's folder on. Nothing is imported but packages that hold a module from elsewhere.
    """
    search_in(plan.folder)
    found = _hashes([*_programs(plan), *_files(_named(plan), plan.folder)], plan.folder)
    for part in (plan.data, plan.trainer):
        if part.target is not None:
            found[part.use] = hashlib.sha256(_source(part.target).encode()).hexdigest()
    return dict(sorted(found.items()))


def code_of_audit(plan: Plan) -> dict[str, str]:
    """Reference -> SHA-256 of the code of an attack or method of the user's that `[audit]` names, where it is found."""
    search_in(plan.folder)
    named = [name for name in (plan.audit.attack, plan.audit.verdict_method) if is_reference(name)]
    found = {str(name): code_of_reference(str(name), plan.folder) for name in named}
    return {name: code for name, code in found.items() if code is not None}


def code_of_reference(reference: str, folder: Path | None = None) -> str | None:
    """One SHA-256 of a module and of what it imports from beside it; None where it comes from no file."""
    files = _files({reference.partition(":")[0]} - UNNAMED, folder)
    hashes = sorted(_hashes(files, folder).values())
    return hashlib.sha256("".join(hashes).encode()).hexdigest() if hashes else None


def _files(modules: set[str], folder: Path | None) -> list[Path]:
    return [file for name in sorted(modules) if (file := _file(name, folder)) is not None]


def _hashes(files: list[Path], folder: Path | None) -> dict[str, str]:
    """Of these files and of what they import from beside them."""
    found: dict[str, str] = {}
    waiting = list(files)
    while waiting:
        file = waiting.pop()
        name = file.name if folder is None else os.path.relpath(file, folder)
        if name not in found:
            source = file.read_bytes()
            found[name] = hashlib.sha256(source).hexdigest()
            waiting += _imported(file, source, folder)
    return found


def _named(plan: Plan) -> set[str]:
    values = [plan.data.use, plan.trainer.use, plan.game.canaries, *plan.trainer.settings.values()]
    parts = [v for v in values if is_reference(v)]
    return {str(v).partition(":")[0] for v in parts} - UNNAMED


def _programs(plan: Plan) -> list[Path]:
    """Files beside the plan that a command names."""
    command = plan.trainer.settings.get("command")
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
    return Path(origin)


def _imported(file: Path, source: bytes, folder: Path | None) -> Iterator[Path]:
    """Files that a module imports from its own folder or from that of the plan."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):  # a program in another language
        return
    for node in ast.walk(tree):
        places = [file.parent] if folder is None else [file.parent, folder]
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            if node.level:  # from . import x: from the package that the file is in, or from one above
                places = [file.parents[min(node.level, len(file.parents)) - 1]]
            before = [node.module] if node.module else []
            names = [*before, *(".".join([*before, alias.name]) for alias in node.names if alias.name != "*")]
        else:
            continue
        for name in names:
            yield from (near for place in places if (near := module_file(place, name)) is not None)


def _source(thing: Any) -> str:
    try:
        return inspect.getsource(thing if inspect.isclass(thing) or inspect.isfunction(thing) else type(thing))
    except (OSError, TypeError):  # typed at a prompt
        return ""
