"""The notebooks of examples/ run from the first cell to the last, and are kept without outputs."""

from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")

FOLDER = Path(__file__).parent.parent / "examples"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
SECONDS = 300  # for a cell; the machine may be busy


def test_there_is_a_notebook():
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_kept_without_outputs(path):
    cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    assert cells
    for cell in cells:
        assert cell.outputs == []
        assert cell.execution_count is None


# ipykernel and what is below it warn of deprecations of their own
@pytest.mark.filterwarnings("default::DeprecationWarning", "default::PendingDeprecationWarning")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_runs(path, monkeypatch, tmp_path):
    for folder in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(folder, str(tmp_path / folder))
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=SECONDS, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert {output.output_type for output in outputs} == {"execute_result"}  # nothing was printed, no warning
    assert any("Violation" in output.data["text/plain"] for output in outputs)
    pages = [output.data.get("text/html", "") for output in outputs]
    assert sum(page.count("<svg") for page in pages) >= 8
    assert any("<table" in page for page in pages)  # the audit
