"""A script, a module or a notebook with its arguments, run as Python would run it."""

from __future__ import annotations

import json
import runpy
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from epsgauge.errors import InvalidInput

SUFFIXES = (".py", ".ipynb")


@dataclass(frozen=True)
class Command:
    """`python train.py --epochs 3`, `python -m package.train --epochs 3`, or the cells of a notebook."""

    target: str
    arguments: tuple[str, ...] = ()
    module: bool = False

    @property
    def name(self) -> str:
        return self.target if self.module else Path(self.target).name

    @property
    def words(self) -> tuple[str, ...]:
        """After `python`."""
        return (*(["-m"] if self.module else []), self.target, *self.arguments)

    @property
    def text(self) -> str:
        """Of the script; empty for a module."""
        return "" if self.module else Path(self.target).read_text(encoding="utf-8", errors="replace")

    def check(self, folder: Path) -> None:
        """Whether it is there, from the folder in which it will run."""
        if not self.module and not (folder / self.target).is_file():
            raise InvalidInput(f"there is no script {self.target!r}. Give its path from the current folder.")

    def run(self) -> None:
        """In this process, as `__main__`."""
        if self.module:
            sys.argv = [self.target, *self.arguments]
            sys.path.insert(0, "")
            runpy.run_module(self.target, run_name="__main__", alter_sys=True)
            return
        sys.argv = [self.target, *self.arguments]
        sys.path.insert(0, str(Path(self.target).resolve().parent))
        if not self.target.endswith(".ipynb"):
            runpy.run_path(self.target, run_name="__main__")
            return
        main = sys.modules["__main__"] = ModuleType("__main__")
        exec(compile(_cells(self.target), self.target, "exec"), vars(main))


def _cells(file: str) -> str:
    """The code cells of a notebook, without lines for the shell and magics."""
    try:
        cells = json.loads(Path(file).read_text(encoding="utf-8"))["cells"]
        sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except (ValueError, KeyError, TypeError):
        raise InvalidInput(f"{file!r} must be a notebook, but it is not. Save it again with Jupyter.") from None
    lines = [line for source in sources for line in source.splitlines() if not line.lstrip().startswith(("%", "!"))]
    return "\n".join(lines) + "\n"
