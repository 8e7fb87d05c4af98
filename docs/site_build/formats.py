"""The table of file formats, made from the registry of formats."""

from synovia.io.load import formats

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
