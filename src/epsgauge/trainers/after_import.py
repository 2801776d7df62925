"""Functions that are called with a module as soon as somebody imports it."""

from __future__ import annotations

import importlib.machinery
import sys
from collections.abc import Callable
from typing import Any


class AfterImport:
    """A finder of modules that calls a hook with a module after its import."""

    def __init__(self, hooks: dict[str, Callable[[Any], None]]) -> None:
        self.hooks = hooks

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        spec = importlib.machinery.PathFinder.find_spec(name, path) if name in self.hooks else None
        if spec is None or spec.loader is None:
            return None
        execute, hook = spec.loader.exec_module, self.hooks[name]

        def exec_module(module: Any) -> None:
            execute(module)
            hook(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec

    def start(self) -> None:
        """Also for modules that are imported already."""
        sys.meta_path.insert(0, self)
        for name in self.hooks.keys() & sys.modules.keys():
            self.hooks[name](sys.modules[name])
