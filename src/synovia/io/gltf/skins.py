"""Read the meshes of a glTF file, their materials, and the joints that move them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import numpy as np

from synovia.errors import UnsupportedError
from synovia.io.gltf.accessors import read_accessor
from synovia.io.gltf.container import Document, read_document
from synovia.io.gltf.fields import Element
from synovia.io.gltf.scene import local_of, parents_of, read_scene
from synovia.io.nodes.skins import Material, Mesh, Skin
from synovia.model.geometry import Array, quat_to_matrix, rigid

_TRIANGLES: Final = 4  # mode of a primitive
_PACKED: Final = ("KHR_draco_mesh_compression", "EXT_meshopt_compression", "KHR_meshopt_compression")


def identities(count: int) -> Array:
    """Return matrices (count, 4, 4) that do nothing."""
    return np.tile(np.eye(4), (count, 1, 1))


def node_worlds(document: Document) -> Array:
    """Return the world matrices of all nodes at rest, (n, 4, 4)."""
    nodes = document.root.items("nodes")
    above = parents_of(document.root, nodes)
    out = identities(len(nodes))
    done = np.zeros(len(nodes), bool)
    for number in range(len(nodes)):
        trail: list[int] = []
        at = number
        while at >= 0 and not done[at]:
            trail.append(at)
            at = above[at]
        for each in reversed(trail):
            translation, rotation, scale = local_of(nodes[each])
            local = rigid(translation, quat_to_matrix(rotation)) @ np.diag([*scale, 1.0])
            out[each] = local if above[each] < 0 else out[above[each]] @ local
            done[each] = True
    return out


def read_skin(path: Path) -> Skin:
    """Return the skin of a glTF or GLB file.

    Raises:
        FileError: If the file cannot be read.
        FormatError: If it is malformed.
        UnsupportedError: If a mesh is compressed.
    """
    document = read_document(path)
    scene = read_scene(document)
    nodes = sorted(scene.row_of, key=scene.row_of.__getitem__)
    return Skin(scene.names, node_worlds(document)[nodes], list(_meshes(document, scene.row_of)))


def _meshes(document: Document, row_of: dict[int, int]) -> Iterator[Mesh]:
    """Yield the meshes of triangles that joints move; others are left out.

    Args:
        document: The file.
        row_of: Row of the scene by node.

    Raises:
        FormatError: If a mesh is malformed.
        UnsupportedError: If a mesh is compressed.
    """
    nodes = document.root.items("nodes")
    above, worlds = parents_of(document.root, nodes), node_worlds(document)
    for number, node in enumerate(nodes):
        if not node.has("mesh"):
            continue
        element = document.referred(node, "mesh", "meshes")
        carrier = number
        while carrier >= 0 and carrier not in row_of:
            carrier = above[carrier]
        parts = [part for part in element.items("primitives") if part.integer("mode", default=_TRIANGLES) == _TRIANGLES]
        skinned = node.has("skin")
        if not parts or (not skinned and carrier < 0):
            continue
        if skinned:
            skin = document.referred(node, "skin", "skins")
            joints = skin.indices("joints", len(nodes), "node")
            document.spend(16 * len(joints), skin)
            binds = identities(len(joints))
            if skin.has("inverseBindMatrices"):
                found = read_accessor(document, skin, "inverseBindMatrices", 16)
                if len(found) < len(joints):
                    raise skin.error("has too few inverse bind matrices", value=len(found), expected=str(len(joints)))
                binds[:] = found[: len(joints)].reshape(-1, 4, 4).swapaxes(1, 2)  # column-major in the file
            rows = [row_of[joint] for joint in joints]
        else:
            rows = [row_of[carrier]]
            binds = identities(1)
            binds[0] = np.linalg.inv(worlds[carrier]) @ worlds[number]
        name = node.text("name", "") or element.text("name", "") or f"mesh{number}"
        yield _joined(name, [_part(document, part, rows, skinned) for part in parts], rows, binds)


def _part(document: Document, part: Element, rows: list[int], skinned: bool) -> Mesh:
    """Return a primitive."""
    attributes = part.child("attributes")
    packed = part.child("extensions")
    if attributes is None or (packed is not None and any(packed.has(name) for name in _PACKED)):
        raise UnsupportedError(
            "mesh is compressed or has no vertices",
            where=f"{part.file}: {part.place}",
            hint="export the character without mesh compression",
        )
    vertices = read_accessor(document, attributes, "POSITION", 3)
    count = len(vertices)

    def of_vertices(name: str, width: int, *, unit: bool = False) -> Array:
        values = read_accessor(document, attributes, name, width, unit=unit)
        if len(values) != count:
            expected = str(count)
            raise attributes.error(
                "has another number of vertices than POSITION", name, value=len(values), expected=expected
            )
        return values

    if part.has("indices"):
        numbers = read_accessor(document, part, "indices", 1)[:, 0].astype(np.int64)
    else:
        numbers = np.arange(count)
    numbers = numbers[: len(numbers) - len(numbers) % 3]
    if len(numbers) and not 0 <= numbers.min() <= numbers.max() < count:
        raise part.error("no such vertex", "indices", value=int(numbers.max()), expected=f"below {count}")
    bones, weights = np.zeros((count, 1), np.int64), np.ones((count, 1))
    sets = 0
    while skinned and attributes.has(f"JOINTS_{sets}") and attributes.has(f"WEIGHTS_{sets}"):
        own = of_vertices(f"JOINTS_{sets}", 4).astype(np.int64), of_vertices(f"WEIGHTS_{sets}", 4, unit=True)
        bones, weights = own if not sets else (np.hstack([bones, own[0]]), np.hstack([weights, own[1]]))
        sets += 1
    weights = np.maximum(weights, 0.0)
    bones = np.where(weights > 0.0, bones, 0)
    if bones.max(initial=0) >= len(rows):
        raise attributes.error("no such joint in the skin", value=int(bones.max()), expected=f"below {len(rows)}")
    return Mesh(
        "", vertices, numbers.reshape(-1, 3), rows, np.zeros((0, 4, 4)), bones, weights,
        of_vertices("NORMAL", 3) if attributes.has("NORMAL") else None,
        of_vertices("TEXCOORD_0", 2) if attributes.has("TEXCOORD_0") else None,
        _colours(document, attributes, of_vertices),
        [_material(document, part)],
    )  # fmt: skip


def _colours(document: Document, attributes: Element, of_vertices: Callable[..., Array]) -> Array | None:
    """Return the colours of vertices, (v, 4), None without any."""
    if not attributes.has("COLOR_0"):
        return None
    wide = document.referred(attributes, "COLOR_0", "accessors").text("type", "") == "VEC4"
    colours = np.clip(of_vertices("COLOR_0", 4 if wide else 3, unit=True), 0.0, 1.0)
    return colours if wide else np.hstack([colours, np.ones((len(colours), 1))])


def _joined(name: str, parts: list[Mesh], rows: list[int], binds: Array) -> Mesh:
    """Return the primitives of a mesh as one, with each material once."""
    kinds = {(each := part.materials[0]).name + each.image_name: each for part in parts}
    number = {key: at for at, key in enumerate(kinds)}
    starts = np.cumsum([0, *(len(part.vertices) for part in parts)])[:-1]
    most = max(part.bones.shape[1] for part in parts)
    normals = [part.normals for part in parts if part.normals is not None]
    corners = [part.corners for part in parts if part.corners is not None]
    colours = [part.colours for part in parts if part.colours is not None]
    return Mesh(
        name,
        np.concatenate([part.vertices for part in parts]),
        np.concatenate([part.faces + start for part, start in zip(parts, starts, strict=True)]),
        rows,
        binds,
        np.concatenate([np.pad(part.bones, ((0, 0), (0, most - part.bones.shape[1]))) for part in parts]),
        np.concatenate([np.pad(part.weights, ((0, 0), (0, most - part.weights.shape[1]))) for part in parts]),
        np.concatenate(normals) if len(normals) == len(parts) else None,
        np.concatenate(corners) if len(corners) == len(parts) else None,
        np.concatenate(colours) if len(colours) == len(parts) else None,
        list(kinds.values()),
        np.repeat(
            [number[part.materials[0].name + part.materials[0].image_name] for part in parts],
            [len(part.faces) for part in parts],
        ),
    )


def _material(document: Document, part: Element) -> Material:
    """Return the material of a primitive."""
    if not part.has("material") or not document.root.list("materials"):
        return Material("material")
    element = document.referred(part, "material", "materials")
    out = Material(element.text("name", "") or f"material{part.integer('material')}")
    surface = element.child("pbrMetallicRoughness")
    if surface is None:
        return out
    red, green, blue, opacity = surface.numbers("baseColorFactor", 4, (1.0, 1.0, 1.0, 1.0))
    out.colour = red, green, blue, opacity
    link = surface.child("baseColorTexture")
    texture = None if link is None else document.referred(link, "index", "textures")
    if texture is not None and texture.has("source"):
        image = document.referred(texture, "source", "images")
        if image.has("bufferView"):
            view = document.referred(image, "bufferView", "bufferViews")
            start = view.integer("byteOffset", default=0)
            out.image = bytes(document.buffer(view)[start : start + view.integer("byteLength")])
        else:
            out.image = document.linked(image)
        ending = ".png" if out.image.startswith(b"\x89PNG") else ".jpg"
        out.image_name = (image.text("name", "") or f"image{texture.integer('source')}") + ending
    return out
