"""The notebooks of examples/ are kept with their outputs; `make notebook` runs them and compares."""

from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")

FOLDER = Path(__file__).parent.parent / "examples"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def test_there_is_a_notebook():
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_kept_with_outputs(path):
    cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    assert cells
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert any(cell.outputs for cell in cells)
