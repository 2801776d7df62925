"""Hugging Face's transformers: whether it is there, its messages held back, its errors in a sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from epsgauge.errors import InvalidInput, MissingExtra


def need_transformers() -> None:
    for module, name in (("torch", "PyTorch"), ("transformers", "transformers")):
        try:
            __import__(module)
        except ImportError:
            raise MissingExtra(
                f"this needs {name}. Install it with: pip install '.[torch,text]' in the folder of epsgauge"
            ) from None


def reason(error: Exception) -> str:
    """The first line of what a library says, to stand inside a sentence."""
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0].rstrip(' .:')}" if lines[0] else type(error).__name__


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Around the library's reading of files, quietly: whatever it raises is one sentence that names `what`.

    Each library below it has errors of its own kind, and the files are the user's.
    """
    try:
        with quiet():
            yield
    except Exception as error:
        raise InvalidInput(f"{what} must be files that transformers can read, but: {reason(error)}.") from error


@contextmanager
def quiet() -> Iterator[None]:
    """Without progress bars and reports of loaded weights; the user's own settings come back."""
    from huggingface_hub.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars
    from transformers.utils import logging

    level, bars, hub_bars = logging.get_verbosity(), logging.is_progress_bar_enabled(), not are_progress_bars_disabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    if hub_bars:
        disable_progress_bars()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
        if hub_bars:
            enable_progress_bars()
