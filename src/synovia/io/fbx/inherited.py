"""Convert FBX nodes with special scale inheritance to a tree whose matrices multiply.

The frame of a node with parent p is, with its translation t, rotation R and scale s (pivots are within t):

* inherit type RSrs: ``G_p · T(t) · R · S(s)``;
* inherit types Rrs and RrSs: ``U_p · T(s_p t) · R · S(s)``, where U_p is the parent's frame without its own scale s_p,
  and s is the scale of the node times that of its parent (RrSs), or times the scale that the parent inherited (Rrs).

So a node with a child of inherit type Rrs or RrSs gets the frame U. A helper node with the scale is added above its
children of type RSrs.

References:
    Autodesk, *FBX SDK Documentation*, ``FbxTransform::EInheritType``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from synovia.model.geometry import Array

_EMPTY = 6  # ``kind`` of a helper
_NORMAL = 0  # value of ``mode`` for inherit type RSrs


class Node(NamedTuple):
    """A node of a file.

    Args:
        name: Name of the node.
        parent: Index of its parent, which comes first; -1 for the root of the file, which is the first node.
        kind: Type of its attribute, as ``ufbx.ElementType``.
        visible: Whether the node is shown.
        mode: Scale inheritance, as ``ufbx.InheritMode``.
        source: Index of the node whose scale multiplies the scale of this node, -1 for none.
        helper: Whether the node is not in the file, but was added to have the scale of its parent.
    """

    name: str
    parent: int
    kind: int
    visible: bool
    mode: int
    source: int
    helper: bool = False


class Tree:
    """Nodes whose frames are products of their translation, rotation and scale.

    Args:
        nodes: The nodes of a file.
        rest: Translation, rotation (xyzw) and scale of these nodes, (n, 10).

    Attributes:
        nodes: The nodes of the file, with helpers at the end.
        rest: Translation, rotation and scale of these nodes, (m, 10).
    """

    def __init__(self, nodes: list[Node], rest: Array) -> None:
        self._given = rest
        self._count = len(nodes)
        self._bare = {node.parent for node in nodes if node.mode != _NORMAL}
        helped = sorted({node.parent for node in nodes if node.mode == _NORMAL and node.parent in self._bare} - {0, -1})
        self._helper = {number: self._count + k for k, number in enumerate(helped)}
        self.nodes = [
            node._replace(parent=self._helper.get(node.parent, node.parent)) if node.mode == _NORMAL else node
            for node in nodes
        ]
        self.nodes += [
            Node(f"{nodes[number].name} scale", number, _EMPTY, visible=True, mode=_NORMAL, source=-1, helper=True)
            for number in helped
        ]
        self._nodes = nodes
        self.rest = np.concatenate([part[:1] for part in self._made({}, range(len(self.nodes)))]).reshape(-1, 10)

    def over_time(self, numbers: list[int], values: Array) -> tuple[list[int], Array]:
        """Return indices and transforms over time of all moving nodes, from those of the animated nodes.

        Args:
            numbers: The animated nodes of the file.
            values: Translation, rotation and scale of these nodes, (T, len(numbers), 10).
        """
        moved = set(numbers)
        for number, node in enumerate(self._nodes):  # parents first
            if node.mode != _NORMAL and (node.parent in moved or node.source in moved):
                moved.add(number)
        chosen = [*sorted(moved), *(helper for number, helper in self._helper.items() if number in moved)]
        local = {number: values[:, column] for column, number in enumerate(numbers)}
        count = len(values)
        made = [np.broadcast_to(part, (count, 10)) for part in self._made(local, chosen)]
        return chosen, np.stack(made, axis=1) if made else values

    def _made(self, local: dict[int, Array], chosen: list[int] | range) -> list[Array]:
        """Return the transforms of some nodes, (T, 10) or (1, 10) each, from those of the file's nodes in ``local``."""
        scales: dict[int, Array] = {}

        def of(number: int) -> Array:
            return local.get(number, self._given[number : number + 1])

        def scale(number: int) -> Array:
            """Return the scale of a node, inherited scale included."""
            chain = [number]
            while chain[-1] not in scales and self._nodes[chain[-1]].source >= 0:
                chain.append(self._nodes[chain[-1]].source)
            for at in reversed(chain):
                if at not in scales:
                    source = self._nodes[at].source
                    own = of(at)[:, 7:]
                    scales[at] = own * scales[source] if source >= 0 else own
            return scales[number]

        above = {helper: number for number, helper in self._helper.items()}
        out: list[Array] = []
        for number in chosen:
            if number in above:
                size = scale(above[number])
                out.append(np.hstack([np.tile((0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0), (len(size), 1)), size]))
                continue
            node, given = self._nodes[number], of(number)
            place, size = given[:, :3], scale(number)
            if node.mode != _NORMAL and node.parent >= 0:
                place = place * scale(node.parent)
            if number in self._bare:
                size = np.ones((1, 3))
            parts = np.broadcast_arrays(place[:, :1], given[:, :1], size[:, :1])
            count = len(parts[0])
            out.append(
                np.hstack([np.broadcast_to(part, (count, part.shape[1])) for part in (place, given[:, 3:7], size)])
            )
        return out
