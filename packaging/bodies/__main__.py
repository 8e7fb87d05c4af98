"""Make the surfaces of the bundled models: ``just bodies [NAME ...]`` writes src/synovia/models/NAME.glb.

The joints come from NAME.toml, the forms from NAME.py in this folder. humanoid_hands.toml is made here too, from
humanoid.toml and hands.py. Then capsules around the surface are written into NAME.toml (capsules.py); with ``--shapes``
that alone is done. Equal inputs give equal bytes on one machine.
"""

import json
import struct
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
from capsules import write_capsules
from field import Mesh, meshes_of
from scipy.spatial.transform import Rotation

import synovia as sy
from hands import joints_text

MODELS = Path(__file__).resolve().parents[2] / "src" / "synovia" / "models"
NAMES = ("arm7", "humanoid", "humanoid_hands", "quadruped")
_TYPES = {1: "SCALAR", 3: "VEC3", 4: "VEC4", 16: "MAT4"}
_CODES = {"f4": 5126, "u2": 5123, "u4": 5125, "u1": 5121}


class Binary:
    """The accessors of a file and their bytes."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.views: list[dict] = []
        self.accessors: list[dict] = []

    def add(self, values: np.ndarray, kind: str, *, target: int | None = None, **more) -> int:
        """Append an array and return the number of its accessor."""
        values = np.ascontiguousarray(values, "<" + kind).reshape(len(values), -1)
        self.data += bytes(-len(self.data) % 4)
        view = {"buffer": 0, "byteOffset": len(self.data), "byteLength": values.nbytes}
        self.views.append(view if target is None else {**view, "target": target})
        self.data += values.tobytes()
        accessor = {"bufferView": len(self.views) - 1, "componentType": _CODES[kind], "count": len(values)}
        self.accessors.append({**accessor, "type": _TYPES[values.shape[1]], **more})
        return len(self.accessors) - 1


def glb(skeleton: sy.Skeleton, meshes: list[Mesh]) -> bytes:
    """Return a binary glTF file of a skeleton and its skin."""
    names = list(skeleton.joint_names)
    nodes: list[dict] = []
    for row, joint in enumerate(skeleton.joints):
        node: dict = {"name": joint.name, "translation": joint.rest[:3, 3].round(9).tolist()}
        turn = Rotation.from_matrix(joint.rest[:3, :3]).as_quat(canonical=True)
        if abs(turn[3]) < 1.0 - 1e-12:
            node["rotation"] = turn.tolist()
        children = [names.index(skeleton.joint_names[child]) for child in skeleton.children[row]]
        nodes.append({**node, "children": children} if children else node)
    rest = zero_frames(skeleton)
    binary = Binary()
    inverse = np.linalg.inv(rest).swapaxes(1, 2).reshape(-1, 16)  # column-major
    skin = {"joints": list(range(len(names))), "inverseBindMatrices": binary.add(inverse, "f4"), "skeleton": 0}
    materials: list[dict] = []
    primitives: list[dict] = []
    groups: dict[tuple[int, int, int], list[Mesh]] = {}
    for mesh in meshes:
        groups.setdefault(mesh.colour, []).append(mesh)
    for colour, group in groups.items():
        starts = np.cumsum([0, *(len(mesh.vertices) for mesh in group)])
        vertices = np.concatenate([mesh.vertices for mesh in group])
        bones = np.concatenate([np.array([names.index(j) for j in mesh.joints] * 4)[mesh.bones] for mesh in group])
        weights = np.rint(np.concatenate([mesh.weights for mesh in group]) * 255.0).astype(int)
        weights[:, 0] += 255 - weights.sum(axis=1)
        faces = np.concatenate([mesh.faces + start for mesh, start in zip(group, starts[:-1], strict=True)])
        corners = {"min": vertices.astype("<f4").min(0).tolist(), "max": vertices.astype("<f4").max(0).tolist()}
        attributes = {
            "POSITION": binary.add(vertices, "f4", target=34962, **corners),
            "NORMAL": binary.add(np.concatenate([mesh.normals for mesh in group]), "f4", target=34962),
            "JOINTS_0": binary.add(np.where(weights > 0, bones, 0), "u1", target=34962),
            "WEIGHTS_0": binary.add(weights, "u1", target=34962, normalized=True),
        }
        kind = "u2" if len(vertices) <= 65535 else "u4"
        indices = binary.add(faces.reshape(-1), kind, target=34963)
        primitives.append({"attributes": attributes, "indices": indices, "material": len(materials)})
        rgb = (np.array(colour) / 255.0) ** 2.2
        surface = {"baseColorFactor": [*rgb.round(6).tolist(), 1.0], "metallicFactor": 0.0, "roughnessFactor": 0.65}
        materials.append({"name": group[0].name, "pbrMetallicRoughness": surface})
    nodes.append({"name": "body", "mesh": 0, "skin": 0})
    document = {
        "asset": {"version": "2.0", "generator": "Synovia packaging/bodies", "copyright": "Apache-2.0"},
        "scene": 0,
        "scenes": [{"name": skeleton.name, "nodes": [0, len(nodes) - 1]}],
        "nodes": nodes,
        "meshes": [{"name": "body", "primitives": primitives}],
        "skins": [skin],
        "materials": materials,
        "buffers": [{"byteLength": len(binary.data)}],
        "bufferViews": binary.views,
        "accessors": binary.accessors,
    }
    text = json.dumps(document, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 4)
    data = bytes(binary.data) + bytes(-len(binary.data) % 4)
    head = struct.pack("<4sII", b"glTF", 2, 28 + len(text) + len(data))
    return head + struct.pack("<I4s", len(text), b"JSON") + text + struct.pack("<I4s", len(data), b"BIN\0") + data


def zero_frames(skeleton: sy.Skeleton) -> np.ndarray:
    """Return the world frames of all joints without any motion, (n, 4, 4): those of the file's nodes."""
    frames = np.zeros((len(skeleton), 4, 4))
    for row, parent in enumerate(skeleton.parents):
        frames[row] = skeleton.joints[row].rest if parent < 0 else frames[parent] @ skeleton.joints[row].rest
    return frames


def with_fingers() -> str:
    """Return the text of humanoid_hands.toml."""
    source = MODELS / "humanoid.toml"
    body = sy.load_skeleton(source)
    places = dict(zip(body.joint_names, zero_frames(body)[:, :3, 3], strict=True))
    text = source.read_text(encoding="utf-8").replace('name = "humanoid"', 'name = "humanoid_hands"')
    head = "# Made by packaging/bodies from humanoid.toml and hands.py: the humanoid with joints of the fingers.\n#\n"
    return f"{head}{text}\n" + joints_text({side: places[f"{side}_hand"] for side in ("left", "right")})


def main(arguments: list[str]) -> None:
    names = [argument for argument in arguments if argument != "--shapes"] or NAMES
    for name in names if "--shapes" not in arguments else ():
        if name == "humanoid_hands":
            (MODELS / f"{name}.toml").write_text(with_fingers(), encoding="utf-8")
        skeleton = sy.load_skeleton(MODELS / f"{name}.toml")
        frames = dict(zip(skeleton.joint_names, zero_frames(skeleton), strict=True))
        meshes = [mesh for piece in import_module(name).pieces(frames) for mesh in meshes_of(piece)]
        data = glb(skeleton, meshes)
        (MODELS / f"{name}.glb").write_bytes(data)
        faces = sum(len(mesh.faces) for mesh in meshes)
        print(f"{name}.glb: {len(data) / 1000:.0f} kB, {faces} triangles")
        for mesh in meshes:
            print(f"  {mesh.name:12} {len(mesh.vertices):6} vertices")
    for name in names:
        body = write_capsules(MODELS / f"{name}.toml")
        fit = sy.shapes.shape_fit(body)
        count = sum(map(len, body.shapes.values()))
        print(f"{name}.toml: {count} capsules, largest gap {fit.gap:.4f}, largest overhang {fit.overhang:.4f}")


if __name__ == "__main__":
    main(sys.argv[1:])
