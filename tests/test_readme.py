"""README is true: its Python runs, its commands draw what they say, and are the ones that CI uses."""

import re
from pathlib import Path

import pytest

from synovia.cli import main

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("code", re.findall(r"```python\n(.*?)```", README, re.DOTALL))
def test_python_examples_run_and_reach(code, tmp_path, monkeypatch):
    """Each block stands alone."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)  # what the examples write is no part of the repository
    names: dict[str, object] = {}
    exec(compile(code, "README.md", "exec"), names)
    if "solution" in names:
        assert names["solution"].reached
    else:
        assert not names["carried"].missed_frames
        assert (tmp_path / "walking.glb").stat().st_size > 100_000


def test_the_first_command_draws_the_picture_of_the_page_on_installing(tmp_path, monkeypatch, capsys):
    """The same command line, from the root of the repository, also where its picture is there already."""
    pytest.importorskip("PIL")
    words = re.search(r"\.venv/bin/synovia (solve .*)", README)[1].split()
    words[-1] = str(tmp_path / words[-1])
    monkeypatch.chdir(ROOT)
    Path(words[-1]).write_bytes(b"the picture of the first time")
    assert main(words) == 0, capsys.readouterr()
    from PIL import Image, ImageChops

    drawn, kept = Image.open(words[-1]).convert("RGB"), Image.open(ROOT / "docs/pictures/reach.png").convert("RGB")
    assert drawn.size == kept.size
    assert ImageChops.difference(drawn, kept).convert("L").point(lambda v: 255 * (v > 32)).histogram()[255] < 2000


def test_the_films_at_the_top_are_there_and_move():
    image = pytest.importorskip("PIL.Image")
    shown = re.findall(r"!\[.+\]\((.*?\.gif)\)", README)
    assert len(shown) == 2
    for path in shown:
        with image.open(ROOT / path) as film:
            assert film.n_frames > 20


def test_the_last_command_is_what_contributors_and_ci_use():
    """One way to run the tests."""
    command = 'pip install -e ".[dev]" && .venv/bin/pytest'
    assert command in README
    assert command in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
