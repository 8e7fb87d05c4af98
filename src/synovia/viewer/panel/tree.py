"""The tree of joints: foldable, with a search, to select a joint from. viser has no widget for trees.

The tree is HTML that never changes. ``page/browser.js`` searches it, marks the selected joint, which the status line
names, and writes the joint that somebody chooses into a hidden text field of viser's.
"""

from __future__ import annotations

from contextlib import suppress
from operator import attrgetter
from typing import Any, Final

import numpy as np

from synovia.model import Skeleton
from synovia.viewer.page.page import Tab
from synovia.viewer.page.style import safe

_UUID: Final = attrgetter("_impl.uuid")  # of a control; viser has no public name for it
_FINE: Final = 0.15  # of the body's size: parts that extend less far, such as hands, are folded at first


def add_tree(tab: Tab) -> None:
    """Add the tree of the joints of a page to a tab."""
    chosen: Any = tab.gui.add_text("Joint of the tree", "", visible=False)

    def choose(text: str) -> None:
        """Select a joint: its row, and a number that makes each choice a change."""
        row = next((int(word) for word in text.split()[:1] if word.isdecimal()), -1)
        if 0 <= row < len(tab.session.given):
            tab.page.select_joint(row)

    tab.connect(chosen, choose)
    names = {row: label for label, row in tab.page.joint_labels.items()}
    uuid = ""
    with suppress(AttributeError):
        uuid = str(_UUID(chosen))
    tab.gui.add_html(tree_html(tab.session.given, names, uuid))


def tree_html(skeleton: Skeleton, names: dict[int, str], uuid: str) -> str:
    """Return the tree of a skeleton's joints as HTML.

    Args:
        skeleton: The skeleton.
        names: Label of each row.
        uuid: Identifier of the text field that gets the chosen joint.
    """
    roots = [row for row, above in enumerate(skeleton.parents) if above < 0]
    content = "".join(_branch(skeleton, names, roots))
    return (
        f'<details class="synovia-tree" data-uuid="{safe(uuid)}"><summary>All joints</summary>'
        '<input type="search" aria-label="Find a joint" placeholder="Find a joint" autocomplete="off">'
        f"<ul>{content}</ul></details>"
    )


def _branch(skeleton: Skeleton, names: dict[int, str], rows: list[int]) -> list[str]:
    """Return the items of joints and of all below them, without recursion: chains may have thousands of joints."""
    places = skeleton.rest_pose().positions
    far = np.zeros(len(skeleton))  # extent of what is below a joint
    for row in reversed(range(len(skeleton))):
        above = skeleton.parents[row]
        if above >= 0:
            far[above] = max(far[above], far[row] + float(np.linalg.norm(places[row] - places[above])))
    out: list[str] = []
    todo: list[int | str] = list(reversed(rows))
    while todo:
        row = todo.pop()
        if isinstance(row, str):
            out.append(row)
            continue
        button = f'<button type="button" data-row="{row}">{safe(names[row])}</button>'
        below = skeleton.children[row]
        if not below:
            out.append(f"<li>{button}</li>")
            continue
        opened = " open" if far[row] > _FINE * skeleton.size else ""
        out.append(f"<li><details{opened}><summary>{button}</summary><ul>")
        todo.append("</ul></details></li>")
        todo += reversed(below)
    return out
