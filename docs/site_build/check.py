"""Check the built site.

    python docs/site_build/check.py OUT

Every internal link and anchor leads somewhere; every page has a title, a description, one first-level heading, and an
alternative text for each picture.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

FRAME = {"search.html"}  # Sphinx writes its heading when it has searched


class Page(HTMLParser):
    """What the checks need of one page."""

    def __init__(self):
        super().__init__()
        self.ids, self.links, self.pictures = set(), [], []
        self.title = self.description = ""
        self.headings = 0
        self._in_title = False

    def handle_starttag(self, tag, attributes):
        """Collect one element."""
        one = dict(attributes)
        if "id" in one:
            self.ids.add(one["id"])
        if tag == "a" and "name" in one:
            self.ids.add(one["name"])
        for key in ("href", "src"):
            if tag in ("a", "img", "link", "script", "iframe", "source", "video") and one.get(key):
                self.links.append(one[key])
        if tag == "h1":
            self.headings += 1
        if tag == "img":
            self.pictures.append((one.get("src", ""), one.get("alt")))
        if tag == "meta" and one.get("name") == "description":
            self.description = one.get("content", "")
        self._in_title = tag == "title"

    def handle_data(self, data):
        """Collect the title."""
        if self._in_title:
            self.title += data


def faults(out):
    """Return the faults of a built site, in words."""
    pages = {}
    for path in sorted(out.rglob("*.html")):
        if path.relative_to(out).parts[0] not in ("_static", "demo"):
            pages[path] = Page()
            pages[path].feed(path.read_text(encoding="utf-8"))
    found = [] if len(pages) > 50 else [f"only {len(pages)} pages"]
    for path, page in pages.items():
        name = path.relative_to(out).as_posix()
        if not page.title.strip():
            found.append(f"{name}: no title")
        if not page.description.strip():
            found.append(f"{name}: no description")
        if page.headings != 1 and path.name not in FRAME:
            found.append(f"{name}: {page.headings} headings of the first level")
        found += [
            f"{name}: no alternative text for {src}"
            for src, alt in page.pictures
            if alt is None or not (alt.strip() or "_thumb." in src)  # the title stands next to a thumbnail
        ]
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            if not target.exists():
                found.append(f"{name}: dead link {link}")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].ids:
                found.append(f"{name}: dead anchor {link}")
    return found


def main():
    """Print the faults; exit with 1 if there are any."""
    found = faults(Path(sys.argv[1]).resolve())
    print("\n".join(found) or "every page is whole and every internal link leads somewhere")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
