"""Text from a file or from elsewhere as it may be shown: it stays text, in one line, and nothing acts on it."""

from __future__ import annotations

import html
import re

NAME = 200  # characters that are shown of a name
SENTENCE = 5_000  # and of a sentence, which may have names in it

# Ends of lines, and tabs.
_BREAKS = re.compile("[\t\n\x0b\x0c\r\x1c-\x1f\x85\u2028\u2029]+")
# What a terminal acts on, what turns the order of letters round or hides them, and what has no place in UTF-8.
_ACTS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
_SHOWN = "\ufffd"  # in its place


def plain(text: str, most: int = NAME) -> str:
    r"""One line of at most so many characters.

    >>> plain("a run\nverdict     not refuted"), plain("x" * 300, 5)
    ('a run verdict     not refuted', 'xxxx…')
    """
    line = quiet(_BREAKS.sub(" ", text))
    return line if len(line) <= most else f"{line[: most - 1]}…"


def quiet(text: str) -> str:
    """The same lines without what acts on a terminal or on the order of letters."""
    return _ACTS.sub(_SHOWN, text)


def block(text: str) -> str:
    """A text of several lines; all but the first are indented, so that none can pass for one of ours."""
    first, *others = text.splitlines() or [""]
    return "\n".join([plain(first, SENTENCE), *(f"    {plain(line, SENTENCE)}" for line in others)])


def escape(text: str) -> str:
    """As HTML or SVG has it."""
    return html.escape(quiet(text))


def spelled(json: str) -> str:
    """JSON, and TOML, that says the same with escapes."""
    return _ACTS.sub(lambda found: f"\\u{ord(found[0]):04x}", json)
