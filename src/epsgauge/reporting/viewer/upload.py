"""A dropped file of scores: taken up to a size, held in memory, parsed in a file that is deleted at once; no pickle."""

from __future__ import annotations

import secrets
import tempfile
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from epsgauge.errors import InvalidInput
from epsgauge.scores import size
from epsgauge.scores.files import KINDS, Unstated
from epsgauge.scores.table import Scores

MOST_BYTES = 20 * 2**20
MOST_INSIDE = 10 * MOST_BYTES  # what a compressed file may hold
MOST_ROWS = 2_000_000
MOST_HELD = 4  # files of as many sessions
TOO_LARGE = (
    f"A dropped file may have {MOST_BYTES // 2**20} MB and {MOST_ROWS:,} rows. Audit a larger one with: "
    "epsgauge scores FILE"
)


@dataclass(frozen=True)
class File:
    """A file that was sent; its key is known to the page that sent it alone."""

    key: str
    name: str
    raw: bytes


class Held:
    """The last file of each session, in memory, so that what it lacks can be said without sending it again."""

    def __init__(self) -> None:
        self._files: OrderedDict[str, File] = OrderedDict()

    def keep(self, session: str, name: str, raw: bytes) -> File:
        self._files.pop(session, None)
        file = self._files[session] = File(secrets.token_urlsafe(16), name, raw)
        while len(self._files) > MOST_HELD:
            self._files.popitem(last=False)
        return file

    def of(self, session: str, key: str) -> File:
        file = self._files.get(session)
        if file is None or file.key != key:
            raise InvalidInput("this file is not held any more. Choose it again.")
        return file


async def taken(stream: AsyncIterator[bytes], length: str | None) -> bytes:
    """The whole file, or an error as soon as it is too large."""
    if length is not None and length.isdigit() and int(length) > MOST_BYTES:
        raise InvalidInput(TOO_LARGE)
    parts, size = [], 0
    async for chunk in stream:
        size += len(chunk)
        if size > MOST_BYTES:
            raise InvalidInput(TOO_LARGE)
        parts.append(chunk)
    return b"".join(parts)


def scores_of(raw: bytes, name: str, said: Mapping[str, str]) -> Scores:
    """The table in a file that a user calls `name`, with what the form says of it."""
    suffix = PurePosixPath(name.lower()).suffix
    if suffix not in KINDS:
        raise InvalidInput(f"a file of scores ends in {', '.join(KINDS)}, but got {name[-80:]!r}.")
    most = size.Limit(MOST_ROWS, MOST_INSIDE, TOO_LARGE)
    with tempfile.TemporaryDirectory(prefix="epsgauge-") as folder, size.limited(most):
        file = Path(folder, f"scores{suffix}")
        file.write_bytes(raw)
        try:
            adjacency, bits, models = (said.get(key) or None for key in ("adjacency", "bits", "models"))
            return Scores.read(file, adjacency=adjacency, bits=bits, models=models)
        except InvalidInput as error:
            sentence = str(error).replace(str(file), name[-80:])
            raise (Unstated(sentence, error.asks) if isinstance(error, Unstated) else InvalidInput(sentence)) from None
