"""A report as one HTML file that loads nothing: no script, one stylesheet inside, pictures as SVG."""

from __future__ import annotations

import base64
import hashlib
import math
from functools import cache
from typing import TYPE_CHECKING, Any

from epsgauge.figures import css
from epsgauge.methods.units import said_of
from epsgauge.numbers import duration
from epsgauge.plain import quiet
from epsgauge.probing.result import UNSEEN
from epsgauge.reporting.page import Page
from epsgauge.reporting.pictures import Sections
from epsgauge.reporting.toml import to_toml

if TYPE_CHECKING:
    from jinja2 import Environment

# In the order in which they come, after the verdict.
TITLES = {
    "comparison": "Side by side",
    "verdicts": "Each run’s verdict",
    "probe": "Is the training what the accountant assumes?",
    "posterior": "How large is ε?",
    "region": "Which error rates does that mean?",
    "attack": "How did the attack do?",
    "cohorts": "Are some groups attacked better than others?",
    "narrowing": "Would more models help?",
    "dependence": "Do the guesses about one model depend on each other?",
    "ran": "What was run",
}


def html(page: Page, sections: Sections) -> str:
    """Everything that a reader of the file needs, escaped; only our own drawings and stylesheet go in as they are."""
    from markupsafe import Markup

    style = style_text()
    # the policy names the stylesheet by its hash, so that nothing else in the file can style or run anything
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    template = environment().get_template("report.html.j2")
    kept = {key: sections.get(key, ()) for key in (*TITLES, "verdict")}
    return template.render(
        page=page,
        ran=page.ran,
        sections=kept,
        titles={key: said_of(page.units, title) for key, title in TITLES.items()},
        contents=_contents(page, sections),
        style=Markup(style),
        digest=digest,
        infinity=math.inf,
        cannot_see=UNSEEN,
    )


def _contents(page: Page, sections: Sections) -> list[tuple[str, str]]:
    """The sections that this report has."""
    more = {"region": page.tallies, "posterior": page.methods, "probe": page.probe}
    there = {*sections, "ran", *(key for key, part in more.items() if part)}
    return [(key, said_of(page.units, title)) for key, title in TITLES.items() if key in there]


def style_text() -> str:
    """The page's stylesheet with that of the pictures."""
    own, _, _ = environment().loader.get_source(environment(), "report.css")  # type: ignore[union-attr]
    return f"{css.STYLE}\n{own}"


def shown(value: Any) -> Any:
    """What a template shows; our own drawings, which are Markup, as they are."""
    return quiet(value) if type(value) is str else value


@cache
def environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("epsgauge.reporting"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=shown,
    )
    made.filters |= {"toml": to_toml, "duration": duration}
    return made
