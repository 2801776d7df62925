"""A part of a plan by name: "module:attr" becomes the object; the nearest name is offered where it is not found."""

from __future__ import annotations

import difflib
import importlib
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from epsgauge.errors import InvalidInput

_REFERENCE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


def is_reference(text: object) -> bool:
    return isinstance(text, str) and _REFERENCE.fullmatch(text) is not None


def load(reference: str, name: str) -> Any:
    """The object that "module:attr" names; `name` says which key of the plan holds it."""
    module_name, _, attr = reference.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not (module_name == error.name or module_name.startswith(error.name + ".")):
            raise InvalidInput(
                f"{name} = {reference!r}: {module_name} needs the module {error.name!r}, which is not installed."
            ) from error
        raise InvalidInput(
            f"{name} = {reference!r}: there is no module {module_name!r} beside the plan or on Python's path."
        ) from error
    except Exception as error:
        raise InvalidInput(
            f"{name} = {reference!r}: importing {module_name} failed with {type(error).__name__}: {error}."
        ) from error
    target: Any = module
    for part in attr.split("."):
        if not hasattr(target, part):
            raise InvalidInput(f"{name} = {reference!r}: {module_name} has no {part!r}.{nearest(part, dir(target))}")
        target = getattr(target, part)
    return target


def nearest(word: str, known: Iterable[str]) -> str:
    """' Did you mean "x"?' where something is near, else nothing."""
    near = difflib.get_close_matches(word, [k for k in known if not k.startswith("_")], n=1)
    return f' Did you mean "{near[0]}"?' if near else ""


_folder: ContextVar[Path | None] = ContextVar("folder", default=None)


def plan_folder() -> Path | None:
    """The folder of the plan that is being played; None while none is, or where it has none."""
    return _folder.get()


@contextmanager
def beside(folder: Path | None) -> Iterator[None]:
    """While a plan of this folder is played: a program that it names is found there."""
    token = _folder.set(folder)
    try:
        yield
    finally:
        _folder.reset(token)


def search_in(folder: Path | None) -> None:
    """Let modules beside a plan be found, as they are for a script."""
    if folder is not None and str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
        importlib.invalidate_caches()
