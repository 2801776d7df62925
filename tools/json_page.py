"""docs/json.md: what `epsgauge audit --json` prints, from the schema that the package ships.

python tools/json_page.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
SCHEMA = ROOT / "src" / "epsgauge" / "auditing" / "audit.schema.json"
PAGE = ROOT / "docs" / "json.md"
HEAD = """# The JSON of an audit

<!-- made by `python tools/json_page.py` -->

`epsgauge audit RUN --json`, `epsgauge scores FILE --json` and `epsgauge mechanism … --json` print one object.
`schema_version` is {version}. It changes when a key is removed or changes its meaning, not when one is added. The
[JSON Schema](https://json-schema.org) ships with the package:

```python
>>> import json
>>> from importlib.resources import files
>>> schema = json.loads(files("epsgauge").joinpath("auditing/audit.schema.json").read_text(encoding="utf-8"))
>>> schema["title"]
'An audit of epsgauge'

```

`epsgauge compare --json` and `epsgauge scores --cohorts --json` have such an object for each run or group under
`audit`. `epsgauge report --format json` adds `what_was_run`. A number that is infinite is the string `"inf"`.

In CI, read `verdict.kind`, `gate.outcome` and `verdict.bound.value`:

```bash
epsgauge audit runs/ci --fail-on violation --json | jq -r '.verdict.kind, .gate.outcome, .verdict.bound.value'
```
"""


def page() -> str:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    parts = [HEAD.format(version=schema["properties"]["schema_version"]["const"])]
    parts += _sections("The object", schema, schema["$defs"])
    parts += _sections("A bound", schema["$defs"]["bound"], schema["$defs"])
    parts += _sections("`tally`", schema["$defs"]["tally"], schema["$defs"])
    parts += _sections("A finding of a probe", schema["$defs"]["finding"], schema["$defs"])
    return "\n".join(parts)


def _sections(title: str, part: dict[str, Any], defs: dict[str, Any]) -> list[str]:
    """A table of the keys of an object, then those of the objects in it."""
    rows = [f"| `{key}` | {_kind(value)} | {_said(value)} |" for key, value in part["properties"].items()]
    below = [f"\n## {title}\n", "| key | type | meaning |\n|---|---|---|", *rows]
    for key, value in part["properties"].items():
        inner = value.get("items", value)
        if "properties" in inner:
            name = f"`{key}`" if title == "The object" else f"{title[:-1]}.{key}`"
            below += _sections(name, inner, defs)
    return below


def _kind(value: dict[str, Any]) -> str:
    if "$ref" in value:
        return {"extended": "number", "tally": "tally", "finding": "finding", "bound": "bound"}[
            value["$ref"].rpartition("/")[2]
        ]
    if "anyOf" in value:
        return f"{_kind(value['anyOf'][0])} or null"
    if "const" in value:
        return f"`{value['const']}`"
    if value["type"] == "array":
        return f"list of {_kind(value['items'])}"
    kinds = [value["type"]] if isinstance(value["type"], str) else value["type"]
    return " or ".join(kinds)


def _said(value: dict[str, Any]) -> str:
    words = [f"`{word}`" for word in value.get("enum", ()) if word is not None]
    text = value["description"].rstrip(".")
    text = text[:1].lower() + text[1:] if text[:2].istitle() or text[1:2] == " " else text
    return f"{text}: {', '.join(words)}" if words else text


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
