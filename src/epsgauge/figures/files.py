"""The file that a picture goes to: checked before it is drawn, and an error that says what is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from epsgauge.errors import InvalidInput


@contextmanager
def figure_file(path: str | Path, formats: Sequence[str]) -> Iterator[Path]:
    """Where a picture can be written in one of these formats, which its suffix names."""
    target = Path(path)
    if target.suffix.lstrip(".").lower() not in formats:
        raise InvalidInput(f"a figure's file must end in {', '.join('.' + f for f in formats)}, but got {str(path)!r}.")
    if not target.parent.is_dir():
        raise InvalidInput(f"a figure's folder must exist, but got {str(target.parent)!r}. Make it first.")
    if target.is_dir():
        raise InvalidInput(f"a figure's file must not be a folder, but got {str(path)!r}.")
    try:
        yield target
    except OSError as error:
        raise InvalidInput(f"the figure could not be written to {str(path)!r}: {error.strerror}.") from None
