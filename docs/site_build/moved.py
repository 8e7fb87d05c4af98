"""Pages at the addresses that guides had before, which lead to the new ones."""

import posixpath
from pathlib import Path

MOVED = {
    "guides/clip-files": "guides/files",
    "guides/cut-blend-loop": "guides/motion",
    "guides/fingers": "guides/hands",
    "guides/mirror": "guides/motion#mirror",
    "guides/robot-hand": "guides/hands#a-robot-hand-from-21-points",
    "guides/starts": "guides/speed#learned-starts",
    "solvers/fabrik-paper": "measured/results/paper",
}
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Moved</title>
<meta name="description" content="This page has moved."><meta name="robots" content="noindex">
<meta http-equiv="refresh" content="0; url={link}"></head>
<body><h1>Moved</h1><p>This page has moved: <a href="{link}">{link}</a></p></body></html>
"""


def write(app, failure):
    """Write a page for each old address."""
    if failure is not None or app.builder.name != "html":
        return
    for old, new in MOVED.items():
        page, _, anchor = new.partition("#")
        link = posixpath.relpath(f"{page}.html", posixpath.dirname(old)) + (f"#{anchor}" if anchor else "")
        Path(app.outdir, f"{old}.html").write_text(PAGE.format(link=link), encoding="utf-8")


def setup(app):
    """Register."""
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
