"""An overlay of files: what a script writes and deletes lies in a scratch folder, over a tree that stays as it is."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager

Name = str | bytes | os.PathLike[str] | os.PathLike[bytes]
_LINKS = 40  # as many as Linux follows
_lstat = os.lstat  # itself, as it is called most
_bypass = threading.local()


@contextmanager
def real_files() -> Iterator[None]:
    """Meanwhile this thread's calls reach the files themselves, not the overlay."""
    before, _bypass.on = is_real(), True
    try:
        yield
    finally:
        _bypass.on = before


def is_real() -> bool:
    return getattr(_bypass, "on", False)


def _failed(number: int, name: str) -> OSError:
    return OSError(number, os.strerror(number), name)


def _mode(place: str) -> int:
    """0 if nothing is there; links are not followed."""
    try:
        return _lstat(place).st_mode
    except (OSError, ValueError):
        return 0


class Overlay:
    """Layers of changed files over the real tree, the newest first; only the newest is written.

    A layer is a folder that mirrors the tree from the root, and the paths that are hidden below it. Paths are those of
    the script: absolute, with links followed. A place is where such a path really lies.
    """

    def __init__(self, scratch: str) -> None:
        self.layers: list[tuple[str, set[str]]] = []
        self._root, self._folders = scratch, set[str]()  # folders of the real tree, which stay what they are
        self.push(scratch)

    def push(self, scratch: str) -> None:
        """Put an empty layer on top. Paths in `scratch` are written as they are."""
        for name in ("files", "tmp"):
            os.makedirs(os.path.join(scratch, name), exist_ok=True)
        self.scratch, self.top = scratch, os.path.join(scratch, "files")
        self.layers.insert(0, (self.top, set()))

    def shown(self, path: str) -> str:
        """The script's name of a place."""
        for files, _ in self.layers:
            if path == files or path.startswith(files + "/"):
                return path[len(files) :] or "/"
        return path

    def own(self, path: str) -> str:
        """Where the script's changes of a path lie."""
        return path if path.startswith(self.scratch + "/") else self.top + path

    def resolve(self, name: Name, follow: bool = True) -> str:
        done, rest = "/", self.shown(os.path.join(os.getcwd(), os.fsdecode(name))).split("/")[::-1]
        links, changed = 0, True
        while rest:
            if (part := rest.pop()) in ("", "."):
                continue
            changed = part == ".." or (changed and self.is_changed(done))
            path = os.path.dirname(done) if part == ".." else os.path.join(done, part)
            if not changed and path in self._folders:
                done = path
                continue
            mode = _mode(place := self.place(path) if changed else path)
            if not stat.S_ISLNK(mode) or (not any(rest) and not follow) or path.startswith("/proc/"):
                if any(rest) and mode and not stat.S_ISDIR(mode) and not stat.S_ISLNK(mode):
                    raise _failed(errno.ENOTDIR, os.fsdecode(name))
                if not changed and stat.S_ISDIR(mode) and not path.startswith(self._root):
                    self._folders.add(path)
                done = path
                continue
            if (links := links + 1) > _LINKS:
                raise _failed(errno.ELOOP, os.fsdecode(name))
            target = self.shown(os.path.join(done, os.readlink(place)))
            done, rest, changed = "/", rest + target.split("/")[::-1], True
        return done

    def place(self, path: str) -> str:
        """A folder of several layers is where the lowest of them is, so that compiled code finds real files in it."""
        lowest = ""
        if path.startswith(self.scratch + "/"):
            return path
        for files, hidden in self.layers:
            if mode := _mode(files + path):
                if not stat.S_ISDIR(mode):
                    return lowest or files + path
                lowest = files + path
            if self._covered(path, hidden):
                return lowest or self.top + path
        return path if not lowest or stat.S_ISDIR(_mode(path)) else lowest

    @staticmethod
    def _covered(path: str, hidden: set[str]) -> bool:
        while hidden and path != "/":
            if path in hidden:
                return True
            path = os.path.dirname(path)
        return False

    def listing(self, folder: str) -> dict[str, os.DirEntry[str]]:
        entries: dict[str, os.DirEntry[str]] = {}
        gone: set[str] = set()
        for files, hidden in [*self.layers, ("", set[str]())]:
            if stat.S_ISDIR(_mode(files + folder)):
                with os.scandir(files + folder) as found:
                    entries |= {entry.name: entry for entry in found if entry.name not in gone | entries.keys()}
            if self._covered(folder, hidden):
                break
            gone |= {os.path.basename(path) for path in hidden if os.path.dirname(path) == folder}
        return entries

    def is_changed(self, folder: str) -> bool:
        """Whether a layer adds to a folder or hides some of it."""
        below = folder.rstrip("/") + "/"
        return any(
            _mode(files + folder) or self._covered(folder, hidden) or any(path.startswith(below) for path in hidden)
            for files, hidden in self.layers
        )

    def writable(self, path: str, *, keep: bool = True) -> str:
        """A place where the script may write a path; `keep` copies what is there."""
        place, own = self.place(path), self.own(path)
        mode = _mode(place)
        if path.startswith("/proc/") or (mode and not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode))):
            return path  # a device or a pipe
        if own != path and not _mode(own):
            if stat.S_ISDIR(_mode(self.place(os.path.dirname(path)))):
                os.makedirs(os.path.dirname(own), exist_ok=True)
            if stat.S_ISDIR(mode):
                os.makedirs(own, exist_ok=True)
            elif mode and keep:
                self.copy(place, own)
        return own

    @staticmethod
    def copy(place: str, to: str) -> None:
        if stat.S_ISLNK(_mode(place)):
            os.symlink(os.readlink(place), to)
        else:
            shutil.copy2(place, to)

    def absent(self, path: str) -> str:
        """A place for something new."""
        if _mode(self.place(path)):
            raise _failed(errno.EEXIST, path)
        return self.writable(path, keep=False)

    def remove(self, path: str) -> None:
        mode, own = _mode(self.place(path)), self.own(path)
        if not mode or stat.S_ISDIR(mode):
            raise _failed(errno.EISDIR if mode else errno.ENOENT, path)
        if _mode(own):
            os.unlink(own)
        self._hide(path)

    def rmdir(self, path: str) -> None:
        mode, own = _mode(self.place(path)), self.own(path)
        if not stat.S_ISDIR(mode):
            raise _failed(errno.ENOTDIR if mode else errno.ENOENT, path)
        if self.listing(path):
            raise _failed(errno.ENOTEMPTY, path)
        if _mode(own):
            os.rmdir(own)
        self._hide(path)

    def _hide(self, path: str) -> None:
        if _mode(self.place(path)):
            self.layers[0][1].add(path)

    def rename(self, path: str, to: str) -> None:
        place = self.place(path)
        mode, there = _mode(place), _mode(self.place(to))
        if not mode:
            raise _failed(errno.ENOENT, path)
        if path == to:
            return
        if not stat.S_ISDIR(mode):
            if stat.S_ISDIR(there):
                raise _failed(errno.EISDIR, to)
            target = self.writable(to, keep=False)
            if place == self.own(path):
                os.replace(place, target)
            else:
                if _mode(target):
                    os.unlink(target)
                self.copy(place, target)
            self._hide(path)
            return
        if to.startswith(path + "/"):
            raise _failed(errno.EINVAL, to)
        if there:
            self.rmdir(to)
        os.mkdir(self.writable(to, keep=False))
        for name in self.listing(path):
            self.rename(os.path.join(path, name), os.path.join(to, name))
        self.rmdir(path)
