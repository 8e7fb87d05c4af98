"""The quick-start notebook runs from its first cell to its last, and shows what it says."""

import json
import shutil

import pytest

from conftest import REPO

NOTEBOOK = REPO / "docs" / "tutorials" / "quickstart.ipynb"


@pytest.mark.slow
def test_notebook_runs(tmp_path, monkeypatch, capsys, short_films, small_pictures):
    """From its own folder, beside the examples."""
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert notebook["nbformat"] == 4
    (tmp_path / "examples").mkdir()
    shutil.copy(REPO / "examples" / "walk.bvh", tmp_path / "examples")
    folder = tmp_path / "docs" / "tutorials"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    names: dict[str, object] = {}
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code" and not source.startswith("%"):
            exec(compile(source, cell["id"], "exec"), names)
    said = capsys.readouterr().out
    assert "sweeps: [6, 3, 14]" in said
    assert "UNREACHABLE" in said
    assert "LATE then REACHED at most 2.00 rad/s" in said
    for name in ("chain.gif", "waving.gif", "errors.png", "waving.bvh"):
        assert (folder / name).stat().st_size > 1000
    assert all(not cell.get("outputs") for cell in notebook["cells"]), (
        "outputs belong to readers, not to the repository"
    )
