"""Lead links from a page to files of the repository outside docs to the page of the site that shows this file.

So one link works in both places: in the repository it opens the file, on the site the page.
"""

import re

PAGES = {
    "CHANGELOG.md": "/project/changelog.md",
    "CONTRIBUTING.md": "/project/contributing.md",
    "SECURITY.md": "/project/security.md",
    "benchmarks/README.md": "/measured/scripts.md",
}
OUTSIDE = re.compile(r"\]\((?:\.\./)+([A-Z]+\.md|benchmarks/README\.md|benchmarks/results/\w+\.md)(#[\w-]+)?\)")


def to_page(path: str) -> str:
    """Return the page of the site for a file of the repository."""
    return PAGES.get(path) or "/" + path.replace("benchmarks/", "measured/")


def rewrite(app, name, source):
    """Replace the links of one page."""
    del app, name
    source[0] = OUTSIDE.sub(lambda found: f"]({to_page(found[1])}{found[2] or ''})", source[0])


def included(app, relative, parent, content):
    """Replace the links of a file of the repository that a page includes, relative to the repository's root."""
    del app, parent
    base = "benchmarks/" if "benchmarks" in relative.parts else ""
    content[0] = re.sub(r"\]\((?!https?:|#|/)([\w./-]+\.md)(#[\w-]+)?\)", lambda m: _absolute(base, m), content[0])


def _absolute(base, found):
    path = found[1]
    path = path.removeprefix("../") if path.startswith("../") else base + path
    page = "/" + path.removeprefix("docs/") if path.startswith("docs/") else to_page(path)
    return f"]({page}{found[2] or ''})"


def setup(app):
    """Register both."""
    app.connect("source-read", rewrite)
    app.connect("include-read", included)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
