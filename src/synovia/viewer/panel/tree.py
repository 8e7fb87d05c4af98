"""The tree of joints, from which the user selects a joint; it can be folded and searched. viser has no tree widget.

The tree is HTML that never changes. ``page/browser.js`` searches it, marks the selected joint (whose name it reads
from the status line), and writes the joint that the user chooses into a hidden text field of viser.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from synovia.model import Skeleton
from synovia.viewer.page.style import safe
from synovia.viewer.page.tab import Tab
from synovia.viewer.panel.controls import hidden_field

_FINE: Final = 0.15  # fraction of the body's size; parts of smaller extent, such as hands, start folded


def add_tree(tab: Tab, skeleton: Skeleton) -> None:
    """Add the tree of a skeleton's joints to a tab."""

    def choose(numbers: list[int]) -> None:
        """Select a joint, given its row and a number that makes the text of each choice differ from the last one."""
        if numbers and numbers[0] < len(skeleton):
            tab.page.select_joint(numbers[0])

    names = {row: label for label, row in tab.page.joint_labels.items()}
    uuid = hidden_field(tab, "Joint of the tree", choose)
    tab.gui.add_html(tree_html(skeleton, names, uuid))


def tree_html(skeleton: Skeleton, names: dict[int, str], uuid: str) -> str:
    """Return the tree of a skeleton's joints as HTML.

    Args:
        skeleton: The skeleton.
        names: Label of each row.
        uuid: Identifier of the text field that receives the chosen joint.
    """
    roots = [row for row, above in enumerate(skeleton.parents) if above < 0]
    content = "".join(_branch(skeleton, names, roots))
    return (
        f'<details class="synovia-tree" data-uuid="{safe(uuid)}"><summary>All joints</summary>'
        '<input type="search" aria-label="Find a joint" placeholder="Find a joint" autocomplete="off">'
        f"<ul>{content}</ul></details>"
    )


def _branch(skeleton: Skeleton, names: dict[int, str], rows: list[int]) -> list[str]:
    """Return the HTML list items of joints and of all joints below them.

    The function uses no recursion, because chains may have thousands of joints.
    """
    far = np.zeros(len(skeleton))  # largest length of the bones from each joint to a tip
    for row in reversed(range(len(skeleton))):
        above = skeleton.parents[row]
        if above >= 0:
            far[above] = max(far[above], far[row] + skeleton.lengths[row])
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
