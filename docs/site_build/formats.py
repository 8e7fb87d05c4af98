"""The table of file formats, made from the registry of formats: ``python docs/site_build/formats.py`` puts it in place.

It stands in the guide itself, so that it is there without a build of the site; a test compares it with the registry.
"""

from pathlib import Path

from synovia.io.load import formats

GUIDE = Path(__file__).resolve().parents[1] / "guides" / "files.md"
_BEGIN, _END = "<!-- table formats -->\n", "<!-- end -->\n"

_HEAD = ("format", "files", "in", "out", "what is kept", "extra")


def table():
    """Return a table in Markdown: a row for each format, in the order in which they are tried."""
    rows = [
        (
            one.name,
            ", ".join(f"`{ending}`" for ending in one.extensions) or "by content",
            one.reads,
            one.writes,
            one.keeps,
            f"`{one.extra}`" if one.extra else "",
        )
        for one in formats()
    ]
    lines = [_HEAD, ("---",) * len(_HEAD), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines) + "\n"


def renewed(text):
    """Return the text of the guide with the table as it is now."""
    before, _, rest = text.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    return f"{before}{_BEGIN}{table()}{_END}{after}"


if __name__ == "__main__":
    GUIDE.write_text(renewed(GUIDE.read_text(encoding="utf-8")), encoding="utf-8")
