"""Templates of the viewer, escaped by Jinja2; only pictures drawn by `figures` pass as they are."""

from __future__ import annotations

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from epsgauge.numbers import at_least, duration, interval_text, likely, percent, short
from epsgauge.reporting import layout
from epsgauge.reporting.html import shown


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("epsgauge.reporting.viewer"),
        autoescape=select_autoescape(("html.j2",), default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=shown,
    )
    environment.filters |= {
        "short": lambda value: short(float(value)),
        "at_least": at_least,
        "interval": lambda row: interval_text(float(row.low), float(row.high)),
        "likely": lambda value: likely(float(value)),
        "duration": duration,
        "percent": percent,
        "sentence": sentence,
        "counted": layout.counted,
        "count": lambda n, word: f"{int(n):,} {word}{'' if int(n) == 1 else 's'}",
    }
    return environment


def prepare() -> None:
    """Compile all templates, so that no page waits for it."""
    environment = _environment()
    for name in environment.list_templates():
        environment.get_template(name)


def page(template: str, **values: Any) -> str:
    """One template with its values."""
    return _environment().get_template(template).render(**values)


def sentence(text: str) -> str:
    """What the library says, as a sentence on a page."""
    return text[:1].upper() + text[1:]
