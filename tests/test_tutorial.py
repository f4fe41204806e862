"""The tutorial notebook runs from top to bottom, and what it shows is what it promises."""

import os
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

TUTORIAL = Path(__file__).parents[1] / "docs" / "tutorial.ipynb"


def test_no_output_is_kept():
    book = nbformat.read(TUTORIAL, as_version=4)
    nbformat.validate(book)
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    assert len(code) > 5
    assert not any(cell.outputs or cell.execution_count for cell in code)


@pytest.mark.slow
def test_the_tutorial_runs(tmp_path, monkeypatch, model_cache):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["src", os.environ.get("PYTHONPATH", "")]))
    book = nbformat.read(TUTORIAL, as_version=4)
    root = {"metadata": {"path": str(TUTORIAL.parents[1])}}
    NotebookClient(book, timeout=300, resources=root).execute()
    shown = [out for cell in book.cells for out in cell.get("outputs", ())]
    pages = [out.data["text/html"] for out in shown if "text/html" in out.get("data", {})]
    assert len(pages) >= 5  # crawl, run, grid, explanation, table
    assert sum("data:image/jpeg;base64," in page for page in pages) == 4
    said = "\n".join(out.get("text", "") for out in shown)
    assert "labels right" in said or "right" in said
    assert (next(tmp_path.glob("tmp*")) / "clean").is_dir()
