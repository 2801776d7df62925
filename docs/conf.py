"""How Sphinx builds these pages (`make docs`): from local files, into a site that loads nothing from another host."""

import re
from typing import Any

import epsgauge

project = "epsgauge"
author = "the authors of epsgauge"
project_copyright = "the authors of epsgauge; MIT licence"
version = release = epsgauge.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
source_suffix = {".md": "markdown"}

# Links to a heading are written as GitHub makes them, so that pages also work as plain files.
myst_heading_anchors = 3

autodoc_default_options = {"undoc-members": True}
autodoc_member_order = "bysource"
# By the names that the code gives these types, instead of all that NumPy means by them.
autodoc_type_aliases = {name: name for name in ("ArrayLike", "ById", "Floats", "Ints", "Kind", "Prior")}
python_maximum_signature_line_length = 130
default_role = "literal"  # `name` in a docstring
toc_object_entries = False

html_theme = "furo"
html_title = "epsgauge"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_copy_source = False
html_show_sphinx = False

# Functions make these; how is nobody's business.
MADE_BY_FUNCTIONS = ("epsgauge.Audit", "epsgauge.Posterior", "epsgauge.Run")


def _signature(
    app: Any, what: str, name: str, thing: Any, options: Any, signature: str | None, returns: str | None
) -> tuple[str | None, str | None]:
    """Aliases inside a union as plain names, and no constructor where nobody needs it."""
    if name in MADE_BY_FUNCTIONS:
        return "", None
    plain = [text and re.sub(r"TypeAliasForwardRef\('(\w+)'\)", r"\1", text) for text in (signature, returns)]
    return plain[0], plain[1]


def setup(app: Any) -> None:
    app.connect("autodoc-process-signature", _signature)
