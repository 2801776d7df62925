"""The user's code that a plan names: which files it is made of, and their SHA-256."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import inspect
from pathlib import Path
from typing import Any

from epsgauge.references import is_reference, search_in
from epsgauge.runner.plan import Plan


def code_of(plan: Plan) -> dict[str, str]:
    """File name -> SHA-256 of each module that the plan names, and of what these import from beside them."""
    search_in(plan.folder)
    found: dict[str, str] = {}
    waiting = [file for file in (_file(name) for name in _named(plan)) if file is not None]
    while waiting:
        file = waiting.pop()
        if file.name in found:
            continue
        source = file.read_bytes()
        found[file.name] = hashlib.sha256(source).hexdigest()
        waiting += [near for name in _imports(source) if (near := _beside(file, name)) is not None]
    for file in _programs(plan):
        found[file.name] = hashlib.sha256(file.read_bytes()).hexdigest()
    for part in (plan.data, plan.trainer):
        if part.target is not None:
            found[part.use] = hashlib.sha256(_source(part.target).encode()).hexdigest()
    return dict(sorted(found.items()))


def _named(plan: Plan) -> set[str]:
    values = [plan.data.use, plan.trainer.use, plan.game.canaries, *plan.trainer.settings.values()]
    parts = [v for v in values if is_reference(v)]
    return {str(v).partition(":")[0] for v in parts} - {"__main__", "__mp_main__"}


def _programs(plan: Plan) -> list[Path]:
    """Files beside the plan that a command names."""
    command = plan.trainer.settings.get("command")
    if plan.folder is None or not isinstance(command, (list, tuple)):
        return []
    return [file for word in command if (file := plan.folder / str(word)).is_file()]


def _file(module: str) -> Path | None:
    """Where a module is, found without importing it; packages that are installed are known by their version instead."""
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return None
    origin = None if spec is None else spec.origin
    if origin is None or not origin.endswith(".py") or "site-packages" in origin:
        return None
    return Path(origin)


def _imports(source: bytes) -> set[str]:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return set()
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return names


def _beside(file: Path, module: str) -> Path | None:
    """The file of `module` in the folder of `file`, if it is there."""
    stem = file.parent.joinpath(*module.split("."))
    return next((path for path in (stem.with_suffix(".py"), stem / "__init__.py") if path.is_file()), None)


def _source(thing: Any) -> str:
    try:
        return inspect.getsource(thing if inspect.isclass(thing) or inspect.isfunction(thing) else type(thing))
    except (OSError, TypeError):  # typed at a prompt
        return ""
