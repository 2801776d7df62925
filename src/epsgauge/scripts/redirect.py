"""Python's functions on files, while a script is in its sandbox: they go through the overlay."""

from __future__ import annotations

import builtins
import functools
import os
import sqlite3
import sys
import tempfile
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from epsgauge.scripts.overlay import Overlay, is_real, real_files

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGED = ("chmod", "utime", "truncate", "chown", "setxattr", "removexattr", "chflags")
_READ = ("stat", "access", "chdir", "listxattr", "getxattr", "statvfs")
_NEW = ("mkdir", "mkfifo", "mknod")
_OF_TWO = ("rename", "replace", "symlink", "link")
# Modules that keep their own functions; Python's imports, which use the first, read real files.
_KEPT = ("posix", "_io", "_sqlite3", Overlay.__module__)
_current: Overlay | None = None


@contextmanager
def redirected(overlay: Overlay, others: dict[Any, Any]) -> Iterator[None]:
    """Meanwhile files are those of the overlay; `others` are further functions with their replacements."""
    global _current
    instead = [*_wrappers(), *others.items()]
    _current = overlay
    _swap({id(original): wrapper for original, wrapper in instead})
    try:
        yield
    finally:
        _current = None
        _swap({id(wrapper): original for original, wrapper in instead})


def _swap(instead: dict[int, Any]) -> None:
    """Put functions in the place of others in all modules, also where they were imported by name."""
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", _KEPT[0]) in _KEPT:
            continue
        for name, value in list(getattr(module, "__dict__", {}).items()):
            if id(value) in instead:
                module.__dict__[name] = instead[id(value)]
    if numpy := sys.modules.get("numpy.lib._datasource"):
        openers = numpy._file_openers._file_openers
        openers[None] = instead.get(id(openers[None]), openers[None])
    for closed in {"close", "cleanup"} & vars(tempfile._TemporaryFileCloser).keys():  # type: ignore[attr-defined]
        method = getattr(tempfile._TemporaryFileCloser, closed)  # type: ignore[attr-defined]
        method.__defaults__ = tuple(instead.get(id(value), value) for value in method.__defaults__ or ())
    if globber := getattr(sys.modules.get("glob"), "_StringGlobber", None):  # since Python 3.13
        for name in {"scandir", "lstat"} & vars(globber).keys():
            setattr(globber, name, staticmethod(instead.get(id(getattr(globber, name)), getattr(globber, name))))


def _on_overlay(original: Callable[..., Any], act: Callable[..., Any]) -> Callable[..., Any]:
    """`act`, given the overlay; `original` outside of a sandbox and for descriptors."""

    @functools.wraps(original, updated=())
    def call(path: Any = ".", *args: Any, **named: Any) -> Any:
        if _current is None or is_real() or isinstance(path, int | None):
            return original(path, *args, **named)
        if args and any(name.endswith("dir_fd") for name in named) and original.__name__ in _OF_TWO:
            raise NotImplementedError(f"{original.__name__} with a descriptor of a folder is unavailable in a sandbox")
        if (folder := named.pop("dir_fd", None)) is not None:
            path = os.path.join(os.readlink(f"/proc/self/fd/{folder}"), os.fsdecode(path))
        with _script_paths(_current), real_files():
            return act(_current, path, *args, **named)

    return call


@contextmanager
def _script_paths(overlay: Overlay) -> Iterator[None]:
    """Errors name the script's path, not the place."""
    try:
        yield
    except OSError as error:
        if isinstance(error.filename, str):
            error.filename = overlay.shown(error.filename)
        raise


def _where(overlay: Overlay, path: Any, follow: bool = True) -> Any:
    """A place to read; the path as the script wrote it if it is unchanged."""
    resolved = overlay.resolve(path, follow)
    place, written = overlay.place(resolved), os.path.normpath(os.path.join(os.getcwd(), os.fsdecode(path)))
    return path if place == resolved == written else place


def _to_open(overlay: Overlay, path: Any, flags: int) -> Any:
    if not flags & WRITING:
        return _where(overlay, path)
    if flags & os.O_EXCL:
        return overlay.absent(overlay.resolve(path, False))
    return overlay.writable(overlay.resolve(path), keep=not flags & os.O_TRUNC)


def native(path: Any, writes: bool) -> Any:
    """A place for compiled code that opens files itself."""
    if _current is None or is_real() or not isinstance(path, str | os.PathLike):
        return path
    with real_files():
        return _to_open(_current, path, os.O_RDWR if writes else 0)


class _Entry:
    """As os.DirEntry, with the script's path."""

    def __init__(self, entry: os.DirEntry[str], path: str) -> None:
        self._entry, self.name, self.path = entry, entry.name, path

    def __fspath__(self) -> str:
        return self.path

    def __getattr__(self, name: str) -> Any:
        return getattr(self._entry, name)


def _listed(original: Callable[..., Any], overlay: Overlay, path: Any) -> Any:
    folder = overlay.resolve(path)
    if not overlay.is_changed(folder) or not os.path.isdir(overlay.place(folder)):
        return original(_where(overlay, path))
    entries = overlay.listing(folder)
    if original.__name__ == "listdir":
        return [os.fsencode(name) for name in entries] if isinstance(path, bytes) else list(entries)
    return _Scan(_Entry(entry, os.path.join(os.fsdecode(path), name)) for name, entry in entries.items())


class _Scan:
    """As os.scandir returns it."""

    def __init__(self, entries: Iterator[_Entry]) -> None:
        self._entries = entries

    def __iter__(self) -> Iterator[_Entry]:
        return self._entries

    def __next__(self) -> _Entry:
        return next(self._entries)

    def __enter__(self) -> _Scan:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def close(self) -> None:
        pass


def _wrappers() -> list[tuple[Any, Any]]:
    """Functions that go through the overlay, each with its replacement."""
    found: list[tuple[Any, Any]] = []

    def add(names: tuple[str, ...], act: Callable[..., Callable[..., Any]]) -> None:
        originals = [getattr(os, name) for name in names if hasattr(os, name)]
        for original in originals:
            found.append((original, _on_overlay(original, act(original))))
            for able in (os.supports_follow_symlinks, os.supports_fd, os.supports_dir_fd):
                if original in able:
                    able.add(found[-1][1])

    def follows(named: dict[str, Any]) -> bool:
        return bool(named.get("follow_symlinks", True))

    add(_READ, lambda f: lambda o, path, *a, **k: f(_where(o, path, follows(k)), *a, **k))
    add(("lstat", "readlink"), lambda f: lambda o, path: f(_where(o, path, False)))
    add(CHANGED, lambda f: lambda o, path, *a, **k: f(o.writable(o.resolve(path, follows(k))), *a, **k))
    add(_NEW, lambda f: lambda o, path, *a: f(o.absent(o.resolve(path, False)), *a))
    add(("remove", "unlink"), lambda _: lambda o, path: o.remove(o.resolve(path, False)))
    add(("rmdir",), lambda _: lambda o, path: o.rmdir(o.resolve(path, False)))
    add(("rename", "replace"), lambda _: lambda o, src, dst: o.rename(o.resolve(src, False), o.resolve(dst, False)))
    add(("symlink",), lambda f: lambda o, src, dst, *a, **k: f(src, o.absent(o.resolve(dst, False))))
    add(("link",), lambda _: lambda o, src, dst, **k: o.copy(o.place(o.resolve(src)), o.absent(o.resolve(dst, False))))
    add(("listdir", "scandir"), lambda f: lambda o, path=".": _listed(f, o, path))
    add(("open",), lambda f: lambda o, path, flags, *a, **k: f(_to_open(o, path, flags), flags, *a, **k))
    real_open, real_connect, getcwd = builtins.open, sqlite3.connect, os.getcwd

    @functools.wraps(real_open)
    def file_open(file: Any, mode: str = "r", *args: Any, **named: Any) -> Any:
        if _current is None or is_real() or isinstance(file, int) or not isinstance(mode, str):
            return real_open(file, mode, *args, **named)
        begins = {"w": os.O_TRUNC, "x": os.O_EXCL, "a": os.O_APPEND}
        flags = sum(begins.get(letter, 0) for letter in mode)
        place = to_open(file, flags | (os.O_RDWR if flags or "+" in mode else 0))
        if opener := named.pop("opener", None):  # it opens by functions that go through the overlay
            named["opener"] = lambda _, flags: opener(file, flags)
        with _script_paths(_current):
            return real_open(place, mode, *args, **named)

    @functools.wraps(real_connect, updated=())
    def connect(database: Any, *args: Any, **named: Any) -> Any:
        if _current is None or database in (":memory:", "", b""):
            return real_connect(database, *args, **named)
        path, _, query = os.fsdecode(database).partition("?")
        if is_uri := bool(named.get("uri")) and path.startswith("file:"):
            path = urllib.parse.unquote(path[5:].removeprefix("//"))
        if "mode=memory" in query or path == ":memory:":
            return real_connect(database, *args, **named)
        place = to_open(path if is_uri else database, os.O_RDWR)
        for end in ("-wal", "-journal"):  # what is not yet in the file
            to_open(path + end, os.O_RDWR)
        return real_connect(f"file:{urllib.parse.quote(place)}?{query}" if is_uri else place, *args, **named)

    to_open = _on_overlay(os.open, lambda o, path, flags: _to_open(o, path, flags))

    def script_cwd() -> str:
        return getcwd() if _current is None or is_real() else _current.shown(getcwd())

    return [
        *found,
        (real_open, file_open),
        (real_connect, connect),
        (getcwd, script_cwd),
        (os.getcwdb, lambda: os.fsencode(script_cwd())),
    ]
