"""Write the skin of a character to a new FBX file: meshes, clusters, materials and textures.

The position of a vertex v of a skin is Σ wᵢ Mᵢ Bᵢ v, with the world matrix Mᵢ of joint i's node and its inverse bind
matrix Bᵢ. The bones of the new file are rigid: Mᵢ = Xᵢ Kᵢ, with the bone's frame Xᵢ and the constant Kᵢ = Xᵢ⁻¹ Mᵢ at
rest, which contains the scales. With Aᵢ = Kᵢ Bᵢ, the position is Σ wᵢ Xᵢ Aᵢ v. A cluster has the bind frame Lᵢ of its
bone (``TransformLink``) and the matrix Lᵢ⁻¹ from mesh to bone (``Transform``), for vertices u in the world, whose
positions are Σ wᵢ Xᵢ Lᵢ⁻¹ u. So u = S v and Lᵢ = S Aᵢ⁻¹, with S = X₀ A₀ at rest. This is exact if all Lᵢ are rigid, as
for every skin that was bound without nonuniform scale. For other skins, u and Lᵢ are those of the rest pose.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np

from synovia.io.fbx.document import Document, block_of, set_property
from synovia.io.fbx.records import Record
from synovia.io.nodes.skins import Material, Mesh, Skin, Whole
from synovia.model import Skeleton
from synovia.model.geometry import Array, frames_to_transforms

_RIGID: Final = 1e-3  # tolerance of rigid bind frames, which are products of float32 matrices


class Bound(NamedTuple):
    """A mesh in its bind pose.

    Args:
        mesh: The mesh.
        joints: Skeleton rows of the mesh's joints.
        vertices: Positions of its vertices, (v, 3), units of the file.
        frames: Bind frames of the joints, (b, 4, 4), units of the file.
        turn: Linear map from the mesh's space to the world, (3, 3).
    """

    mesh: Mesh
    joints: list[int]
    vertices: Array
    frames: Array
    turn: Array

    @property
    def used(self) -> Whole:
        """Indices of the joints that move a vertex."""
        return np.unique(self.mesh.bones[self.mesh.weights > 0.0])


def bound(skin: Skin, skeleton: Skeleton, scale: float) -> list[Bound]:
    """Return the meshes of a skin in their bind poses, for the bones of a skeleton.

    Args:
        skin: The skin. All its joints are in the skeleton, by name.
        skeleton: The skeleton.
        scale: Number of file units per skeleton unit.
    """
    rows = skin.rows_in(skeleton.joint_names) or {}
    rest = frames_to_transforms(skeleton.rest_pose().frames)
    out: list[Bound] = []
    for mesh in skin.meshes:
        joints = [rows[row] for row in mesh.rows]
        each = np.linalg.inv(rest[joints]) @ skin.worlds[mesh.rows] @ mesh.binds
        vertices, frames, turn = _bound(mesh, rest[joints], each)
        frames[:, :3, 3] *= scale
        out.append(Bound(mesh, joints, scale * vertices, frames, turn))
    return out


def add_skin(
    document: Document, meshes: list[Bound], bones: Mapping[int, Record], shifts: Mapping[int, Array]
) -> list[Record]:
    """Add meshes to a new file, and return the records of their nodes.

    Args:
        document: The new file.
        meshes: The meshes.
        bones: Records of the bones by skeleton row.
        shifts: Displacements of bound bones, (3,), by skeleton row.
    """
    materials: dict[tuple[object, ...], Record] = {}
    out: list[Record] = []
    for each in meshes:
        mesh = each.mesh
        node, geometry = _mesh(document, mesh, each.vertices, each.turn)
        out.append(node)
        skin = document.add("Deformer", mesh.name, "Deformer", "Skin")
        skin.add("Version", 101)
        skin.add("Link_DeformAcuracy", 50.0)
        document.link(skin, geometry)
        for number in map(int, each.used):
            row, frame = each.joints[number], np.array(each.frames[number])
            frame[:3, 3] += shifts.get(row, np.zeros(3))
            _cluster(document, skin, mesh, number, bones[row], frame)
        for material in mesh.materials:
            key = (material.name, material.colour, material.image_name)
            if key not in materials:
                materials[key] = _material(document, material)
            document.link(materials[key], node)
    return out


def _bound(mesh: Mesh, frames: Array, each: Array) -> tuple[Array, Array, Array]:
    """Return vertices in the world, bind frames of the bones, and the linear map for normals (formulas in the module).

    Args:
        mesh: The mesh.
        frames: Frames of the mesh's joints at rest, (b, 4, 4).
        each: The matrices Aᵢ, (b, 4, 4).
    """
    used = np.unique(mesh.bones[mesh.weights > 0.0])
    first = int(used[0]) if len(used) else 0
    moved = frames[first] @ each[first]
    binds = frames.copy()
    binds[used] = moved @ np.linalg.pinv(each[used])
    turns = binds[used, :3, :3]
    if len(used) and np.abs(turns @ turns.swapaxes(1, 2) - np.eye(3)).max() > _RIGID:
        moves = (frames @ each)[mesh.bones]
        places = np.einsum("vbij,vj->vbi", moves[..., :3, :3], mesh.vertices) + moves[..., :3, 3]
        return np.einsum("vb,vbi->vi", mesh.weights, places), frames, moved[:3, :3]
    return mesh.vertices @ moved[:3, :3].T + moved[:3, 3], binds, moved[:3, :3]


def _mesh(document: Document, mesh: Mesh, vertices: Array, turn: Array) -> tuple[Record, Record]:
    """Add a node and its mesh, and return the records of both."""
    faces = mesh.faces[:, ::-1] if np.linalg.det(turn) < 0.0 else mesh.faces
    flat = faces.ravel()
    ends = faces.copy()
    ends[:, 2] = ~ends[:, 2]  # complement marks the last corner of a polygon
    geometry = document.add("Geometry", mesh.name, "Geometry", "Mesh")
    geometry.add("GeometryVersion", 124)
    geometry.add("Vertices", vertices.ravel())
    geometry.add("PolygonVertexIndex", ends.ravel().astype(np.int32))
    layers: list[str] = []
    if mesh.normals is not None:
        directions = mesh.normals @ np.linalg.pinv(turn)
        directions /= np.maximum(np.linalg.norm(directions, axis=1, keepdims=True), 1e-30)
        layer = _layer(geometry, "LayerElementNormal", 101, "ByPolygonVertex", "Direct")
        layer.add("Normals", directions[flat].ravel())
        layers.append("LayerElementNormal")
    if mesh.corners is not None:
        layer = _layer(geometry, "LayerElementUV", 101, "ByPolygonVertex", "IndexToDirect", "UVMap")
        layer.add("UV", np.column_stack([mesh.corners[:, 0], 1.0 - mesh.corners[:, 1]]).ravel())
        layer.add("UVIndex", flat.astype(np.int32))
        layers.append("LayerElementUV")
    if mesh.colours is not None:
        layer = _layer(geometry, "LayerElementColor", 101, "ByPolygonVertex", "IndexToDirect", "Col")
        layer.add("Colors", mesh.colours.ravel())
        layer.add("ColorIndex", flat.astype(np.int32))
        layers.append("LayerElementColor")
    layer = _layer(geometry, "LayerElementMaterial", 101, "ByPolygon", "IndexToDirect")
    layer.add("Materials", mesh.material.astype(np.int32))
    layers.append("LayerElementMaterial")
    layer = geometry.add("Layer", 0)
    layer.add("Version", 100)
    for name in layers:
        element = layer.add("LayerElement")
        element.add("Type", name)
        element.add("TypedIndex", 0)
    node = document.add("Model", mesh.name, "Model", "Mesh")
    node.add("Version", 232)
    properties = block_of(node)
    set_property(properties, "DefaultAttributeIndex", "int", 0)
    node.add("Shading", True)
    node.add("Culling", "CullingOff")
    document.link(node, 0)
    document.link(geometry, node)
    return node, geometry


def _layer(geometry: Record, *values: object) -> Record:
    """Add a layer of a mesh, given by record name, version, mapping, reference and name; return its record."""
    record, version, mapping, reference, *name = values
    layer = geometry.add(str(record), 0)
    layer.add("Version", version)
    layer.add("Name", str(name[0]) if name else "")
    layer.add("MappingInformationType", mapping)
    layer.add("ReferenceInformationType", reference)
    return layer


def _cluster(document: Document, skin: Record, mesh: Mesh, number: int, bone: Record, frame: Array) -> None:
    """Add the cluster of a bone, with its vertices and weights."""
    weights = np.where(mesh.bones == number, mesh.weights, 0.0).sum(axis=1)
    moved = np.flatnonzero(weights > 0.0)
    name = str(bone.values[1]).partition("\0")[0]
    cluster = document.add("Deformer", name, "SubDeformer", "Cluster")
    cluster.add("Version", 100)
    cluster.add("UserData", "", "")
    cluster.add("Indexes", moved.astype(np.int32))
    cluster.add("Weights", weights[moved])
    cluster.add("Transform", np.linalg.inv(frame).T.ravel())
    cluster.add("TransformLink", frame.T.ravel())
    document.link(cluster, skin)
    document.link(bone, cluster)


def _material(document: Document, material: Material) -> Record:
    """Add a material with its texture, and return its record."""
    record = document.add("Material", material.name, "Material")
    record.add("Version", 102)
    record.add("ShadingModel", "phong")
    record.add("MultiLayer", 0)
    properties = block_of(record)
    red, green, blue, opacity = material.colour
    set_property(properties, "DiffuseColor", "Color", red, green, blue)
    set_property(properties, "DiffuseFactor", "Number", 1.0)
    set_property(properties, "TransparencyFactor", "Number", 1.0 - opacity)
    set_property(properties, "Opacity", "double", opacity)
    if material.image is None:
        return record
    name = material.image_name
    video = document.add("Video", name, "Video", "Clip")
    video.add("Type", "Clip")
    set_property(block_of(video), "Path", "KString", name)
    video.add("UseMipMap", 0)
    video.add("Filename", name)
    video.add("RelativeFilename", name)
    video.add("Content", material.image)
    texture = document.add("Texture", name, "Texture")
    texture.add("Type", "TextureVideoClip")
    texture.add("Version", 202)
    texture.add("TextureName", name + "\0\1Texture")
    texture.add("Media", name + "\0\1Video")
    texture.add("FileName", name)
    texture.add("RelativeFilename", name)
    document.link(texture, record, "DiffuseColor")
    document.link(video, texture)
    return record
