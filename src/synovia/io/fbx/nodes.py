"""Compute the transforms of FBX nodes, forward and inverse.

A node's matrix in its parent is

    T · Roff · Rp · Rpre · R · Rpost⁻¹ · Rp⁻¹ · Soff · Sp · S · Sp⁻¹

with the translation T, the rotation R about three axes in the node's own order, the scale S, and constant offsets,
pivots and rotations. A node inherits the scale of its parent by one of three inherit types:

    1, RSrs   The product of both matrices.
    0, RrSs   Rotations multiply, and so do scales, component by component.
    2, Rrs    As 0, without the scale of the parent itself.

So each node has the linear part W of its world matrix, U, which is W without the node's own scale, and a scale e. The
scale e multiplies the translations of children of types 0 and 2, and the scale of children of type 0.

References:
    Autodesk, *FBX SDK Help*, "Computing transformation matrices".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from synovia.errors import UnsupportedError
from synovia.io.fbx.document import Document, name_of, real
from synovia.io.fbx.records import Record
from synovia.io.nodes.euler import from_quat, from_quat_near, to_quat
from synovia.model import MAX_JOINTS
from synovia.model.geometry import Array, matrix_to_quat, quat_to_matrix

NORMAL: Final = 1  # code of the inherit type RSrs
COMPONENTS: Final = 0  # code of the inherit type RrSs
# Axes of the moving frame by rotation order code. Order XYZ rotates about x first, so R = Rz · Ry · Rx.
_ORDERS: Final = ((2, 1, 0), (1, 2, 0), (0, 2, 1), (2, 0, 1), (1, 0, 2), (0, 1, 2))


def _vector() -> Array:
    return np.zeros(3)


@dataclass(slots=True)
class Node:
    """A node.

    Args:
        name: Name of the node.
        parent: Index of its parent in the list of nodes, -1 for none.
        number: Object number of the node in the file.
        translation: T, at rest.
        rotation: Angles of R about x, y and z at rest, degrees.
        scaling: S, at rest.
        order: Code of the rotation order.
        pre: Rpre, (3, 3).
        post: Rpost⁻¹, (3, 3).
        rotation_offset: Roff.
        rotation_pivot: Rp.
        scaling_offset: Soff.
        scaling_pivot: Sp.
        inherit: Inherit type: how the scale of the parent is inherited.
    """

    name: str
    parent: int = -1
    number: int = 0
    translation: Array = field(default_factory=_vector)
    rotation: Array = field(default_factory=_vector)
    scaling: Array = field(default_factory=lambda: np.ones(3))
    order: int = 0
    pre: Array = field(default_factory=lambda: np.eye(3))
    post: Array = field(default_factory=lambda: np.eye(3))
    rotation_offset: Array = field(default_factory=_vector)
    rotation_pivot: Array = field(default_factory=_vector)
    scaling_offset: Array = field(default_factory=_vector)
    scaling_pivot: Array = field(default_factory=_vector)
    inherit: int = NORMAL

    def turn(self, rotation: Array) -> Array:
        """Return Rpre · R · Rpost⁻¹, (T, 3, 3), for angles about x, y and z, degrees (T, 3)."""
        return self.pre @ turns(self.order, rotation) @ self.post

    def inner(self, turn: Array) -> Array:
        """Return R, (T, 3, 3), for Rpre · R · Rpost⁻¹."""
        return np.swapaxes(self.pre, 0, 1) @ turn @ np.swapaxes(self.post, 0, 1)

    def shift(self, turn: Array, scaling: Array) -> Array:
        """Return the translation of the node's matrix minus T, (T, 3), for Rpre · R · Rpost⁻¹ and scales (T, 3)."""
        inner = self.scaling_offset + self.scaling_pivot - scaling * self.scaling_pivot - self.rotation_pivot
        return self.rotation_offset + self.rotation_pivot + (turn @ inner[..., None])[..., 0]


def turns(order: int, rotation: Array) -> Array:
    """Return rotation matrices, (T, 3, 3), for angles about x, y and z, degrees (T, 3), in a rotation order."""
    axes = _ORDERS[order]
    return quat_to_matrix(to_quat(axes, np.radians(np.atleast_2d(rotation))[:, axes]))


def read_nodes(document: Document) -> list[Node]:
    """Return all nodes of a file, parents first.

    Raises:
        UnsupportedError: If there are too many nodes, or a node is its own ancestor.
    """
    models = {number: record for number, record in document.of("Model") if number}  # 0 is the scene
    above: dict[int, int] = {}
    for source, target, name in document.links():
        if source in models and not name and (target in models or target == 0):
            above.setdefault(source, target)
    below: dict[int, list[int]] = {}
    for number in models:
        below.setdefault(above.get(number, 0), []).append(number)
    out: list[Node] = []
    row_of: dict[int, int] = {0: -1}
    todo = below.get(0, [])[::-1]
    if len(models) > MAX_JOINTS:
        raise UnsupportedError("too many nodes", where=document.where, value=len(models), expected=f"{MAX_JOINTS}")
    while todo:
        number = todo.pop()
        row_of[number] = len(out)
        out.append(_node(document, models[number], row_of[above.get(number, 0)], number))
        todo += below.get(number, [])[::-1]
    if len(out) < len(models):
        raise UnsupportedError("a node is its own ancestor", where=document.where)
    return out


def _node(document: Document, record: Record, parent: int, number: int) -> Node:
    """Return a node from its record."""
    found = document.properties(record)

    def vector(name: str, usual: float = 0.0) -> Array:
        values = [*found.get(name, ()), usual, usual, usual] if name in found else [usual] * 3
        return np.array([real(value, usual) for value in values[:3]])

    def number_of(name: str, usual: int) -> int:
        values = found.get(name, ())
        return int(real(values[0], usual)) if values else usual

    spaced = bool(number_of("RotationActive", 1)) and not number_of("RotationSpaceForLimitOnly", 0)
    node = Node(
        name_of(record), parent, number, vector("Lcl Translation"), vector("Lcl Rotation"), vector("Lcl Scaling", 1.0),
        rotation_offset=vector("RotationOffset"), rotation_pivot=vector("RotationPivot"),
        scaling_offset=vector("ScalingOffset"), scaling_pivot=vector("ScalingPivot"),
        inherit=number_of("InheritType", NORMAL),
    )  # fmt: skip
    if spaced:
        node.order = number_of("RotationOrder", 0)
        if not 0 <= node.order < len(_ORDERS):
            raise UnsupportedError(
                f"node {node.name!r} has an unsupported rotation order",
                where=document.where,
                value=node.order,
                expected="0 to 5 (three axes)",
            )
        node.pre = turns(0, vector("PreRotation"))[0]
        node.post = turns(0, vector("PostRotation"))[0].T
    return node


def angles_over_time(nodes: Sequence[Node], turns: Sequence[Array]) -> list[Array]:
    """Return angles about x, y and z, degrees (T, 3) each, that do not jump from frame to frame.

    Args:
        nodes: The nodes.
        turns: Rpre · R · Rpost⁻¹ of each node, (T, 3, 3).
    """
    if not nodes:
        return []
    quats = np.stack([matrix_to_quat(node.inner(turn)) for node, turn in zip(nodes, turns, strict=True)], axis=1)
    found = np.degrees(from_quat(np.array([_ORDERS[node.order] for node in nodes], np.intp), quats))
    out = np.empty_like(found)
    for number, node in enumerate(nodes):
        out[:, number, _ORDERS[node.order]] = found[:, number]
    return [out[:, number] for number in range(len(nodes))]


def angles_near(node: Node, turn: Array, near: Array) -> Array:
    """Return the angles of rotations about x, y and z, degrees (T, 3), that are nearest to given angles."""
    axes = _ORDERS[node.order]
    quats = matrix_to_quat(node.inner(turn))[:, None]
    out = np.empty_like(near)
    out[:, axes] = np.degrees(from_quat_near(np.array([axes], np.intp), quats, np.radians(near[:, None, axes]))[:, 0])
    return out


class Course(NamedTuple):
    """The local transform of a node over time; each array has T rows, or 1 if constant.

    Args:
        translation: T, (T, 3).
        rotation: Angles of R about x, y and z, degrees (T, 3).
        scaling: S, (T, 3).
    """

    translation: Array
    rotation: Array
    scaling: Array


class Chain:
    """World transforms of nodes over time; nodes are added one by one, parents first.

    Args:
        nodes: The nodes.
    """

    def __init__(self, nodes: list[Node]) -> None:
        """Start without nodes."""
        self.nodes = nodes
        self.place: dict[int, Array] = {-1: np.zeros((1, 3))}  # world positions of the nodes, (T, 3)
        self.turn: dict[int, Array] = {-1: np.eye(3)[None]}  # rotations of the nodes as rigid bodies
        self._signs: dict[int, Array] = {-1: np.ones(3)}  # products of the signs of the scales
        self._linear: dict[int, Array] = {-1: np.eye(3)[None]}  # W of each node: linear part of its world matrix
        self._unscaled: dict[int, Array] = {-1: np.eye(3)[None]}  # U of each node: W without the node's own scale
        self._scale: dict[int, Array] = {-1: np.ones((1, 3))}  # e of each node: scale that its children inherit
        self._heir: dict[int, int] = {-1: -1}  # for each node, the node whose e it inherits; -1 for none

    def frame(self, row: int) -> tuple[Array, Array]:
        """Return the linear map from a node's translation to the world, (T, 3, 3), and the map's origin, (T, 3)."""
        parent = self.nodes[row].parent
        if self.nodes[row].inherit == NORMAL:
            return self._linear[parent], self.place[parent]
        return self._unscaled[parent] * self._scale[parent][:, None, :], self.place[parent]

    def needed(self, row: int, turn: Array) -> Array:
        """Return the Rpre · R · Rpost⁻¹, (T, 3, 3), that gives a node, as a rigid body, the world rotation ``turn``."""
        parent = self.nodes[row].parent
        signs = self._signs[parent]
        return signs[:, None] * (np.swapaxes(self.turn[parent], 1, 2) @ turn) * signs

    def set(self, row: int, course: Course) -> None:
        """Add a node with its local transform over time."""
        self.put(row, course.translation, self.nodes[row].turn(course.rotation), course.scaling)

    def put(self, row: int, translation: Array, turn: Array, scale: Array) -> None:
        """Add a node with known Rpre · R · Rpost⁻¹, (T, 3, 3)."""
        node = self.nodes[row]
        parent = node.parent
        linear, origin = self.frame(row)
        self.place[row] = origin + (linear @ (translation + node.shift(turn, scale))[..., None])[..., 0]
        signs = self._signs[parent]
        self.turn[row] = self.turn[parent] @ (signs[:, None] * turn * signs)
        self._signs[row] = signs * np.where(node.scaling < 0.0, -1.0, 1.0)
        if node.inherit == NORMAL:
            self._heir[row] = -1
            self._unscaled[row] = self._linear[parent] @ turn
        else:
            self._heir[row] = parent if node.inherit == COMPONENTS else self._heir[parent]
            scale = scale * self._scale[self._heir[row]]
            self._unscaled[row] = self._unscaled[parent] @ turn
        self._scale[row] = scale
        self._linear[row] = self._unscaled[row] * scale[:, None, :]

    def rest(self, row: int) -> Course:
        """Return the local transform of a node at rest."""
        node = self.nodes[row]
        return Course(node.translation[None], node.rotation[None], node.scaling[None])
