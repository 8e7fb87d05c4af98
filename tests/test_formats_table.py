"""The table of formats in the documentation is made of their descriptions."""

import runpy
from pathlib import Path

from synovia.io.load import formats

MADE = runpy.run_path(str(Path(__file__).resolve().parents[1] / "docs" / "site_build" / "formats.py"))


def test_every_format_has_a_row_that_says_what_is_kept():
    rows = {line.split("|")[1].strip(): line for line in MADE["table"]().splitlines()[2:]}
    assert list(rows) == [one.name for one in formats()]
    for one in formats():
        assert one.keeps, one.name
        assert all(f"`{ending}`" in rows[one.name] for ending in one.extensions)
        assert ("skeleton" in one.reads) == (one.read_onto is None)
        assert bool(one.writes) == (one.write is not None)
    assert "| `mujoco` |" in rows["MJCF"]


def test_the_guide_has_the_table_as_it_is_now():
    text = MADE["GUIDE"].read_text(encoding="utf-8")
    assert text == MADE["renewed"](text), "python docs/site_build/formats.py puts the table in place"
    assert len(text.splitlines()) > len(formats())
