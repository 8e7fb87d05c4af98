"""Read the nodes of a glTF file that become joints."""

from __future__ import annotations

from typing import Any, Final, cast

import numpy as np

from synovia.errors import FileError, FormatError, UnsupportedError
from synovia.io.gltf.accessors import read_accessor
from synovia.io.gltf.container import Document
from synovia.io.gltf.fields import Element
from synovia.io.gltf.vrm import read_table
from synovia.io.nodes.tree import UNIFORM, Scene, parents_first, relative_binds
from synovia.model import MAX_JOINTS
from synovia.model.geometry import Array, matrix_to_quat
from synovia.text import listed

# Extensions that constrain joints: a name for the constraints, and the field of a node that holds them.
_BINDING: Final = {
    "VRMC_node_constraint": ("Constraints", "constraint"),
    "KHR_physics_rigid_bodies": ("Physical bounds", "joint"),
}
_SHEAR: Final = 1e-4  # cosine of the angle between columns of a node matrix; a smaller cosine counts as rounding
_UNIT: Final = 0.1  # tolerance of a quaternion's norm; the norms of 8-bit quaternions are wrong by 0.01


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
    order = parents_first(kept, above)
    row_of = {node: row for row, node in enumerate(order)}
    parents = tuple(row_of[above[node]] if above[node] >= 0 else -1 for node in order)
    inner = {above[node] for node in order}
    local = [local_of(nodes[node]) for node in order]
    mirrored = any((s < 0.0).any() for _, _, s in local)  # in mirrored bodies, bind matrices contain reflections
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

    An inverse bind matrix transforms the mesh into the frame of a joint.
    """
    inverses: list[dict[int, Array]] = []
    for skin in skins:
        try:
            matrices = read_accessor(document, skin, "inverseBindMatrices", 16)
        except (FileError, FormatError, UnsupportedError):  # absent or compressed: nodes and clips do not need it
            continue
        pairs = zip(skin.list("joints"), matrices.reshape(-1, 4, 4), strict=False)
        inverses.append({row_of[node]: columns[:3, :3].T for node, columns in pairs})
    return relative_binds(inverses, parents)


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
    """Return the parent of each node, -1 for none; raise an error for second parents and cycles."""
    above = [-1] * len(nodes)
    for number, node in enumerate(nodes):
        if not node.has("children"):
            continue
        for child in node.indices("children", len(nodes), "node"):
            if above[child] >= 0:
                raise node.error(f"node {child} has two parents, {above[child]} and {number}", "children")
            above[child] = number
    state = [0] * len(nodes)  # 0: not visited, 1: on the current path, 2: leads to a root
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
    u, _, vt = np.linalg.svd(rotation)  # project to the nearest exact rotation
    return matrix[:3, 3].copy(), matrix_to_quat(u @ vt), scale
