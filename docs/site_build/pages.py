"""A description for every page: that of its front matter, else its first paragraph."""

import html
import re

from docutils import nodes

LONGEST = 200  # characters; search engines show fewer
OTHERS = {
    "genindex": "All names of Synovia in alphabetical order.",
    "search": "Search the documentation of Synovia.",
    "py-modindex": "The modules of Synovia.",
}


def describe(app, page, template, context, doctree):
    """Add the description to the head of a page."""
    del template
    text = app.env.metadata.get(page, {}).get("description") or OTHERS.get(page)
    if text is None and doctree is not None:
        described = doctree.next_node(lambda node: isinstance(node, nodes.paragraph) and len(node.astext()) > 20)
        text = described.astext() if described is not None else None
    if text is None:
        return
    text = re.sub(r"\s+", " ", text).strip()
    if len(text) > LONGEST:
        text = text[:LONGEST].rpartition(" ")[0] + " ..."
    if 'name="description"' not in context.get("metatags", ""):
        context["metatags"] = context.get("metatags", "") + f'<meta name="description" content="{html.escape(text)}">'


def setup(app):
    """Register."""
    app.connect("html-page-context", describe)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
