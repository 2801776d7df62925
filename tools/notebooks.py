"""Runs the notebooks of examples/ from the first cell to the last, and checks what they show.

python tools/notebooks.py            # also that what is committed is what they show
python tools/notebooks.py --write    # keeps what they show
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbclient
import nbformat
from same_text import same_text

NOTEBOOKS = sorted((Path(__file__).parent.parent / "examples").glob("*.ipynb"))


def problems(path: Path, scratch: str, *, write: bool) -> list[str]:
    """What is wrong with what a notebook shows, one sentence each; a cell that fails raises."""
    notebook = nbformat.read(path, as_version=4)
    before = shown_by(notebook)
    resources = {"metadata": {"path": scratch}}
    # without limits that a busy machine could reach
    nbclient.NotebookClient(notebook, timeout=None, startup_timeout=600, resources=resources).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    kinds = {output.output_type for output in outputs}
    shown = [output.data for output in outputs if "data" in output]
    checks = {
        "must only show results, without a warning or printed text": kinds == {"execute_result"},
        "must come to a violation": any("Violation" in data["text/plain"] for data in shown),
        "must show eight pictures or more": sum(data.get("text/html", "").count("<svg") for data in shown) >= 8,
        "must show the audit as a table": any("<table" in data.get("text/html", "") for data in shown),
    }
    if write:
        for cell in notebook.cells:
            cell.metadata.pop("execution", None)  # when it ran
        notebook.metadata.pop("language_info", None)  # with which Python
        nbformat.write(notebook, path)
    else:
        checks["is stale: run python tools/notebooks.py --write"] = same(shown_by(notebook), before)
    return [f"{path.name} {rule}." for rule, holds in checks.items() if not holds]


def shown_by(notebook: Any) -> list[Any]:
    """All outputs, in their order; ids of the interpreter's objects are left out."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [dict(output.get("data", {})) for cell in cells for output in cell.outputs]


def same(found: list[Any], expected: list[Any]) -> bool:
    """Whether outputs have the same parts, which are the same text."""
    return [{*output} for output in found] == [{*output} for output in expected] and all(
        same_text(str(one[kind]), str(other[kind])) for one, other in zip(found, expected, strict=True) for kind in one
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        for folder in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR"):
            os.environ[folder] = str(Path(scratch, folder))
        write = "--write" in sys.argv[1:]
        wrong = [sentence for path in NOTEBOOKS for sentence in problems(path, scratch, write=write)]
    sys.exit("\n".join(wrong) or None)


if __name__ == "__main__":
    main()
