"""The node tree of a glTF file: the nodes that become joints, their parents, and their rest transforms."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, cast

import numpy as np

from synovia.errors import FileError, FormatError, UnsupportedError
from synovia.io.gltf.accessors import read_accessor
from synovia.io.gltf.container import Document
from synovia.io.gltf.fields import Element
from synovia.io.gltf.vrm import read_table
from synovia.model import MAX_JOINTS
from synovia.model.geometry import Array, matrix_to_quat, quat_to_matrix
from synovia.text import listed

UNIFORM: Final = 1e-4  # relative spread of the components of a scale that counts as an exporter's rounding
# Extensions that constrain joints: the name of the constraints, and the field of a node that has them.
_BINDING: Final = {
    "VRMC_node_constraint": ("Constraints", "constraint"),
    "KHR_physics_rigid_bodies": ("Physical bounds", "joint"),
}
_SHEAR: Final = 1e-4  # cosine between columns of a node matrix that counts as rounding (float32 products)
_SINGULAR: Final = 1e-6  # ratio of the scales of a bind matrix below which it has no orientation
_UNIT: Final = 0.1  # tolerance of a quaternion's length: 8-bit quaternions are off by 0.01


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """The nodes that become joints, parents first; arrays have one row per joint.

    Args:
        names: Node names; ``node12`` for a node without one.
        row_of: Row by node number.
        parents: Row of the parent, -1 for roots.
        moving: Whether the node is a ball even without animation: a joint of a skin or, in a file without skins, a node
            with children.
        translation: (n, 3), in the parent node's frame.
        rotation: (n, 4), unit quaternions xyzw.
        scale: (n, 3).
        bind: Orientations relative to the parent in the pose in which the skins were bound, (n, 3, 3); NaN for nodes
            that are no joint of a skin, and where the file does not tell it.
        notes: Sentences about constraints of joints that were not kept; extensions of the format define them.
        roles: Part of the body of each node that the file declares, by row.
        forward: Axis that the body faces, if the file declares it.
    """

    names: tuple[str, ...]
    row_of: dict[int, int]
    parents: tuple[int, ...]
    moving: tuple[bool, ...]
    translation: Array
    rotation: Array
    scale: Array
    bind: Array
    notes: tuple[str, ...] = ()
    roles: Mapping[int, str] = dataclasses.field(default_factory=dict[int, str])
    forward: str | None = None


def read_scene(document: Document) -> Scene:
    """Return the joints of all skins and their ancestors, or the nodes of the default scene if there is no skin.

    The humanoid bones of a VRM file are joints too, whether a skin uses them or not.

    Raises:
        FormatError: If nodes form a cycle, a node has two parents or an invalid transform, or there are too many nodes.
    """
    nodes = document.root.items("nodes")
    if not nodes:
        raise document.root.error("file has no nodes", hint="it holds no skeleton")
    above = parents_of(document.root, nodes)
    skins = document.root.items("skins")
    table = read_table(document.root, len(nodes))
    joints = {node for skin in skins for node in skin.indices("joints", len(nodes), "node")}
    joints |= table.roles.keys() if joints or table.alone else set()
    wanted = joints or set(default_scene(document.root, nodes))
    kept = _with_ancestors(document.root, wanted, above)
    order = _parents_first(kept, above)
    row_of = {node: row for row, node in enumerate(order)}
    parents = tuple(row_of[above[node]] if above[node] >= 0 else -1 for node in order)
    inner = {above[node] for node in order}
    local = [local_of(nodes[node]) for node in order]
    mirrored = any((s < 0.0).any() for _, _, s in local)  # then bind matrices contain reflections
    return Scene(
        names=tuple(nodes[node].text("name", "") or f"node{node}" for node in order),
        row_of=row_of,
        parents=parents,
        moving=tuple(node in table.roles or node in (joints or inner) for node in order),
        translation=np.array([t for t, _, _ in local]),
        rotation=np.array([r for _, r, _ in local]),
        scale=np.array([s for _, _, s in local]),
        bind=_bind(document, [] if mirrored else skins, row_of, parents),
        notes=(*_notes([nodes[node] for node in order]), *table.notes),
        roles={row_of[node]: role for node, role in table.roles.items() if node in row_of},
        forward=table.forward,
    )


def _bind(document: Document, skins: list[Element], row_of: dict[int, int], parents: tuple[int, ...]) -> Array:
    """Return the orientations in the bind pose relative to the parents; see ``Scene``.

    An inverse bind matrix brings the mesh into the frame of a joint, so its inverse is the frame of the joint in the
    space of the mesh. Relative to the frame of another joint, that space does not matter.
    """
    bind = np.full((len(parents), 3, 3), np.nan)
    for skin in skins:
        try:
            matrices = read_accessor(document, skin, "inverseBindMatrices", 16)
        except (FileError, FormatError, UnsupportedError):  # absent or compressed: nodes and clips do not need it
            continue
        turns: dict[int, Array] = {}
        for node, columns in zip(skin.list("joints"), matrices.reshape(-1, 4, 4), strict=False):
            u, sizes, vt = np.linalg.svd(columns[:3, :3].T)
            if sizes[2] > _SINGULAR * sizes[0] and np.linalg.det(u @ vt) > 0.0:
                turns[row_of[node]] = (u @ vt).T
        for row, turn in turns.items():
            if parents[row] in turns:
                bind[row] = turns[parents[row]].T @ turn
    return bind


def _notes(nodes: list[Element]) -> tuple[str, ...]:
    """Return sentences about the constraints of joints that were not kept."""
    notes: list[str] = []
    for extension, (what, field) in _BINDING.items():
        bound: list[str] = []
        for number, node in enumerate(nodes):
            every: Any = node.data.get("extensions")
            inner: Any = cast("dict[str, Any]", every).get(extension) if isinstance(every, dict) else None
            if isinstance(inner, dict) and field in inner:
                bound.append(str(node.data.get("name") or number))
        if bound:
            notes.append(f"{what} of joints {listed(bound)} were not kept: these joints move freely.")
    return tuple(notes)


def parents_of(root: Element, nodes: list[Element]) -> list[int]:
    """Return the parent of each node, -1 for none; refuse second parents and cycles."""
    above = [-1] * len(nodes)
    for number, node in enumerate(nodes):
        if not node.has("children"):
            continue
        for child in node.indices("children", len(nodes), "node"):
            if above[child] >= 0:
                raise node.error(f"node {child} has two parents, {above[child]} and {number}", "children")
            above[child] = number
    state = [0] * len(nodes)  # 0 not seen, 1 on the current path, 2 leads to a root
    for number in range(len(nodes)):
        trail: list[int] = []
        at = number
        while at >= 0 and state[at] == 0:
            state[at] = 1
            trail.append(at)
            at = above[at]
        if at >= 0 and state[at] == 1:
            raise root.error("node is its own ancestor", f"nodes[{at}].children")
        for at in trail:
            state[at] = 2
    return above


def default_scene(root: Element, nodes: list[Element]) -> list[int]:
    """Return all nodes below the roots of the default scene; all nodes if the file has no scene."""
    scenes = root.list("scenes")
    if not scenes:
        return list(range(len(nodes)))
    scene = root.item("scenes", root.integer("scene", default=0, most=len(scenes) - 1))
    todo = scene.indices("nodes", len(nodes), "node")[::-1]
    if not todo:
        raise scene.error("scene has no nodes", hint="it holds no skeleton")
    found: set[int] = set()
    while todo:
        node = todo.pop()
        if node not in found:
            found.add(node)
            todo += nodes[node].list("children")
    return list(found)


def _with_ancestors(root: Element, wanted: set[int], above: list[int]) -> set[int]:
    """Return the nodes and all their ancestors; the tree has no cycle."""
    kept: set[int] = set()
    for node in wanted:
        while node >= 0 and node not in kept:
            kept.add(node)
            node = above[node]
        if len(kept) > MAX_JOINTS:
            raise root.error("too many joints", "nodes", value=len(wanted), expected=f"at most {MAX_JOINTS}")
    return kept


def _parents_first(kept: set[int], above: list[int]) -> list[int]:
    """Return the nodes in depth-first order, siblings by number."""
    below: dict[int, list[int]] = {}
    for node in sorted(kept, reverse=True):
        below.setdefault(above[node], []).append(node)
    order: list[int] = []
    todo = list(below.get(-1, []))
    while todo:
        node = todo.pop()
        order.append(node)
        todo += below.get(node, [])
    return order


def local_of(node: Element) -> tuple[Array, Array, Array]:
    """Return a node's translation, rotation and scale at rest."""
    if node.has("matrix"):
        if any(node.has(key) for key in ("translation", "rotation", "scale")):
            raise node.error("has a matrix and a translation, rotation or scale", expected="one or the other")
        return _decomposed(node)
    translation = np.array(node.numbers("translation", 3, (0.0, 0.0, 0.0)))
    rotation = np.array(node.numbers("rotation", 4, (0.0, 0.0, 0.0, 1.0)))
    length = float(np.linalg.norm(rotation))
    if not abs(length - 1.0) <= _UNIT:
        raise node.error(
            "is not a unit quaternion", "rotation", value=rotation.tolist(), expected=f"length 1, not {length:.3g}"
        )
    return translation, rotation / length, np.array(node.numbers("scale", 3, (1.0, 1.0, 1.0)))


def _decomposed(node: Element) -> tuple[Array, Array, Array]:
    """Return translation, rotation and scale of a node matrix; the scale of a reflection is negative in x.

    The columns of R S are the columns of R times the scale, so their lengths are the scale.
    """
    values = node.numbers("matrix", 16, ())
    matrix = np.array(values).reshape(4, 4).T  # column-major in the file
    linear = matrix[:3, :3]
    scale = np.linalg.norm(linear, axis=0)
    if np.abs(matrix[3] - (0.0, 0.0, 0.0, 1.0)).max() > UNIFORM or not np.all(scale > 0.0):
        raise node.error("cannot be decomposed", "matrix", value=values, expected="translation · rotation · scale")
    if np.linalg.det(linear) < 0.0:
        scale[0] = -scale[0]
    rotation = linear / scale
    shear = float(np.abs(rotation.T @ rotation - np.eye(3)).max())
    if not shear <= _SHEAR:
        raise node.error(
            f"has shear (its columns are {shear:.2g} off a right angle)",
            "matrix",
            value=values,
            expected="translation · rotation · scale",
        )
    u, _, vt = np.linalg.svd(rotation)  # the nearest exact rotation
    return matrix[:3, 3].copy(), matrix_to_quat(u @ vt), scale


def node_places(scene: Scene, local: Mapping[tuple[int, str], Array], count: int) -> Array:
    """Return the world places of the nodes over time, (T, n, 3): products of the nodes' matrices, as players show them.

    Args:
        scene: The nodes.
        local: Translations (T, 3), rotations (T, 4) and scales (T, 3) by row and property; others are at rest.
        count: Number of frames T.
    """
    out = np.empty((count, len(scene.names), 3))
    below: dict[int, tuple[Array, Array]] = {-1: (np.eye(3)[None], np.zeros((1, 3)))}
    for row, parent in enumerate(scene.parents):
        linear, place = below[parent]
        place = place + (linear @ over_time(local, row, "translation", scene.translation)[..., None])[..., 0]
        out[:, row] = place
        turn = quat_to_matrix(over_time(local, row, "rotation", scene.rotation))
        below[row] = linear @ (turn * over_time(local, row, "scale", scene.scale)[:, None, :]), place
    return out


def over_time(local: Mapping[tuple[int, str], Array], row: int, path: str, rest: Array) -> Array:
    """Return a property of a node, (T, width), or (1, width) at rest if it is not animated."""
    values = local.get((row, path))
    return rest[row : row + 1] if values is None else values


class Rest:
    """The scene at rest as rigid joints: the scale of the nodes is folded into the offsets.

    Let M be the matrix of a node, and K the product of the signs and of the uniform part of all scales down to it.
    M K⁻¹ is rigid if all scales are uniform or reflections, because K commutes with rotations up to conjugation by its
    signs. Otherwise, rotations follow from the same formula, and positions are those of M.

    Args:
        scene: The nodes.
    """

    def __init__(self, scene: Scene) -> None:
        """Compute all arrays in one pass down the tree."""
        n = len(scene.names)
        self.scene = scene
        self.uneven = np.zeros(n, bool)  # whether the scale of the node is nonuniform
        self.uniform = np.ones(n)  # k of the parent: product of the uniform parts of all scales above
        self.signs = np.ones((n, 3))  # F of the parent: product of the signs of all scales above
        self.linear = np.empty((n, 3, 3))  # rotations and scales of all nodes above
        self.sheared = np.zeros(
            n, bool
        )  # whether a scale above is nonuniform, so that the offset may depend on the pose
        self.frame = np.empty((n, 3, 3))  # rigid rotation of the parent
        self.offset = np.empty((n, 3))  # from the parent, in the parent's rigid frame
        rotations = quat_to_matrix(scene.rotation)
        below: dict[int, tuple[float, Array, Array, bool, Array]] = {-1: (1.0, np.ones(3), np.eye(3), False, np.eye(3))}
        for row, parent in enumerate(scene.parents):
            k, signs, linear, sheared, frame = below[parent]
            self.uniform[row], self.signs[row], self.linear[row] = k, signs, linear
            self.sheared[row], self.frame[row] = sheared, frame
            self.offset[row] = frame.T @ (linear @ scene.translation[row])
            size = np.abs(scene.scale[row])
            own = float(np.cbrt(size.prod()))
            even = bool(size.min() > 0.0 and size.max() / size.min() - 1.0 <= UNIFORM)
            self.uneven[row] = not even
            sign = np.where(scene.scale[row] < 0.0, -1.0, 1.0)
            below[row] = (
                k * own if even else k,
                signs * sign,
                linear @ (rotations[row] * scene.scale[row]),
                sheared or not even,
                frame @ (signs[:, None] * rotations[row] * signs),
            )

    def conjugated(self, row: int, quat: Array) -> Array:
        """Return node rotations as rigid joint rotations F R F, (..., 4); the axis is an axial vector."""
        signs = self.signs[row]
        return quat * np.append(signs * signs.prod(), 1.0)

    @cached_property
    def size(self) -> float:
        """Return the longest sum of bone lengths from a root to a tip, length units."""
        lengths = np.linalg.norm(self.offset, axis=1)
        total = np.zeros(len(lengths))
        for row, parent in enumerate(self.scene.parents):
            total[row] = total[parent] + lengths[row] if parent >= 0 else 0.0
        return float(total.max())
