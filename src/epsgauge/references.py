"""A part of a plan by name: "module:attr" becomes the object; the nearest name is offered where it is not found."""

from __future__ import annotations

import difflib
import importlib
import re
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from epsgauge.errors import EpsgaugeError, InvalidInput

_REFERENCE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


def is_reference(text: object) -> bool:
    return isinstance(text, str) and _REFERENCE.fullmatch(text) is not None


def load(reference: str, name: str) -> Any:
    """The object that "module:attr" names; `name` says which key of the plan holds it."""
    module_name, _, attr = reference.partition(":")
    check_not_hidden(plan_folder(), module_name, f"{name} = {reference!r}")
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
    except (Exception, SystemExit) as error:
        raise InvalidInput(
            f"{name} = {reference!r}: importing {module_name} failed with {type(error).__name__}: {text_of(error)}."
        ) from error
    _check_origin(module, name, reference)
    target: Any = module
    for part in attr.split("."):
        if not hasattr(target, part):
            raise InvalidInput(f"{name} = {reference!r}: {module_name} has no {part!r}.{nearest(part, dir(target))}")
        target = getattr(target, part)
    return target


def reference_of(value: Any) -> str | None:
    """The "module:attr" by which another process finds this very function or class; None where it has none."""
    return named_as(f"{getattr(value, '__module__', None)}:{getattr(value, '__qualname__', None)}", value)


def named_as(reference: str | None, value: Any) -> str | None:
    """The reference, if it is one of this very object; what a script defines is its own process's alone."""
    module, _, attr = str(reference).partition(":")
    if not is_reference(reference) or module == "__main__" or module not in sys.modules:
        return None
    found: Any = sys.modules[module]
    for part in attr.split("."):
        found = getattr(found, part, None)
    return reference if found is value else None


def one_of(value: Any, known: Mapping[str, Any], kind: Any, name: str) -> Any:
    """An entry of a table by its name, or a user's own: the object itself, or "module:attr" of it or of its class.

    It imports the module of a reference, so no reference may come from a run directory.
    """
    if isinstance(value, str) and value in known:
        return known[value]
    found, said = (load(value, name), value) if is_reference(value) else (value, repr(value))
    if isinstance(found, type) and issubclass(found, kind):
        with users_code(f"{name} {found.__name__}"):
            found = found()
    if not isinstance(found, kind):
        raise InvalidInput(
            f'{name} must be one of {", ".join(known)}, "module:attr" or an object of a class that extends '
            f"{kind.__module__}.{kind.__name__}, but got {said}.{nearest(str(value), known)}"
        )
    same = next((entry for entry in known.values() if type(entry) is type(found)), None)
    if same is not None and not getattr(found, "__dict__", {}):
        return same
    _check_texts(found, known, kind, name)
    return found


def _check_texts(found: Any, known: Mapping[str, Any], kind: Any, name: str) -> None:
    """What an object of the user's says of itself must be there, and not be what a built-in one says."""
    who = f"{name} of your own, {type(found).__name__},"
    for attribute in kind.texts:
        text = getattr(found, attribute, None)
        if not (isinstance(text, str) and text.strip() and text.isprintable()):
            raise InvalidInput(f"{who} must have a text as its {attribute}, but has {text!r}.")
    for attribute in ("name", "label"):
        taken = [getattr(entry, attribute, None) for entry in known.values()]
        text = str(getattr(found, attribute, "")).strip()
        if text and text in taken:
            raise InvalidInput(f"{who} must not be called {text!r}, which is built in. Give it another {attribute}.")


@contextmanager
def users_code(what: str, *, line: bool = False) -> Iterator[None]:
    """Around a call of the user's own code: whatever it raises is one sentence that names `what`, and the `line`."""
    try:
        yield
    except EpsgaugeError:
        raise
    except (Exception, SystemExit) as error:  # a script may call sys.exit
        where = line_of(error) if line else ""
        raise InvalidInput(f"{what} failed with {type(error).__name__}: {text_of(error)}{where}.") from error


def text_of(error: BaseException) -> str:
    """What an error says; errors of a user's own may fail to say it."""
    try:
        return str(error)
    except Exception:
        return "it has no text"


def line_of(error: BaseException) -> str:
    """' (train.py, line 3)', the innermost line of the user's own code that raised it; empty without one."""
    frames = [(Path(f.filename), f.lineno) for f in traceback.extract_tb(error.__traceback__)]
    own = [(path, line) for path, line in frames if is_users(path)]
    return f" ({own[-1][0].name}, line {own[-1][1]})" if own else ""


def is_users(path: Path) -> bool:
    """Whether a file is code of the user's own, and neither ours nor a library's."""
    ours, library = Path(__file__).resolve().parent, Path(traceback.__file__).resolve().parent
    installed = path.is_relative_to(ours) or path.is_relative_to(library) or "site-packages" in path.parts
    return path.is_file() and not installed


def nearest(word: str, known: Iterable[str]) -> str:
    """' Did you mean "x"?' where something is near, else nothing."""
    near = difflib.get_close_matches(word, [k for k in known if not k.startswith("_")], n=1)
    return f' Did you mean "{near[0]}"?' if near else ""


_folder: ContextVar[Path | None] = ContextVar("folder", default=None)


def plan_folder() -> Path | None:
    """The folder of the plan that is being played; None while none is, or where it has none."""
    return _folder.get()


def _check_origin(module: Any, name: str, reference: str) -> None:
    """Two plans may each have a module of one name beside them; a process can only ever have loaded one of the two."""
    folder, loaded = plan_folder(), getattr(module, "__file__", None)
    if folder is None or loaded is None:
        return
    wanted = module_file(folder, module.__name__)
    if wanted is not None and wanted.resolve() != Path(loaded).resolve():
        raise InvalidInput(
            f"{name} = {reference!r}: this process has loaded another {module.__name__}, from {loaded}. Use another "
            "process, or another name for the module."
        )


def check_not_hidden(folder: Path | None, module: str, user: str) -> None:
    """Raise if `user` means a module of this folder, but Python finds another one first. Nothing is imported."""
    wanted = None if folder is None else module_file(folder, module)
    if folder is None or wanted is None:
        return
    top = module.partition(".")[0]
    specs = (finder.find_spec(top, None) for finder in sys.meta_path)
    spec = next((spec for spec in specs if spec is not None), None)
    if spec is None:
        return
    found = [spec.origin] if spec.has_location else list(spec.submodule_search_locations or [])
    meant = {(module_file(folder, top) or folder / top).resolve()}
    if meant.isdisjoint(Path(place).resolve() for place in found if place):
        raise InvalidInput(
            f"{user}: {module} is {wanted}, but that folder is searched last, and Python finds another module {top} "
            f"first ({spec.origin}). Rename {wanted.relative_to(folder).parts[0]}."
        )


def module_file(folder: Path, module: str) -> Path | None:
    """The file of a module in a folder, if it is there."""
    stem = folder.joinpath(*module.split("."))
    return next((path for path in (stem.with_suffix(".py"), stem / "__init__.py") if path.is_file()), None)


@contextmanager
def beside(folder: Path | None) -> Iterator[None]:
    """While a plan of this folder is played: a program that it names is found there."""
    token = _folder.set(folder)
    try:
        yield
    finally:
        _folder.reset(token)


_searched: list[str] = []  # folders that were put on the path here, the newest first


def search_in(folder: Path | None) -> None:
    """Let modules beside a plan be found after all others: a file there replaces no module that is installed."""
    if folder is None:
        return
    place = str(folder)
    if place in sys.path and place not in _searched:
        return
    others = [known for known in _searched if known != place and known in sys.path]
    if _searched != [place, *others] or place not in sys.path:
        sys.path[:] = [*(known for known in sys.path if known not in (place, *others)), place, *others]
        _searched[:] = [place, *others]
        importlib.invalidate_caches()
