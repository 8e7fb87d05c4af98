"""Make the two example files of the tutorials: a character as GLB and a robot arm as URDF.

    python examples/make_models.py examples

The character is a small person with short legs, long arms and the joint names of Mixamo. Its skin has one rounded shape
for each bone. The arm has the joints of the bundled `arm7` as URDF.
"""

import json
import struct
import sys
from pathlib import Path

import numpy as np

import synovia as sy

SIDES = {"Left": 1.0, "Right": -1.0}
# Joint, parent, world position (metres, y up, facing z, T-pose), thickness of the bone that ends there
TRUNK = [
    ("Hips", None, (0, 0.66, 0), 0.0),
    ("Spine", "Hips", (0, 0.75, 0), 0.115),
    ("Spine1", "Spine", (0, 0.86, -0.01), 0.12),
    ("Neck", "Spine1", (0, 1.06, 0), 0.055),
    ("Head", "Neck", (0, 1.13, 0.01), 0.05),
    ("HeadTop_End", "Head", (0, 1.31, 0.02), 0.0),
]
LIMBS = [
    ("Shoulder", "Spine1", (0.05, 1.01, 0), 0.06),
    ("Arm", "Shoulder", (0.15, 1.00, 0), 0.055),
    ("ForeArm", "Arm", (0.42, 1.00, -0.01), 0.05),
    ("Hand", "ForeArm", (0.69, 1.00, 0), 0.042),
    ("HandMiddle1", "Hand", (0.78, 0.99, 0), 0.04),
    ("HandMiddle4", "HandMiddle1", (0.87, 0.985, 0), 0.03),
    ("UpLeg", "Hips", (0.09, 0.62, 0), 0.08),
    ("Leg", "UpLeg", (0.095, 0.36, 0.015), 0.075),
    ("Foot", "Leg", (0.10, 0.09, 0), 0.055),
    ("ToeBase", "Foot", (0.105, 0.02, 0.11), 0.045),
    ("Toe_End", "ToeBase", (0.105, 0.015, 0.18), 0.035),
]
COLOURS = {
    "trunk": (0.95, 0.72, 0.30),
    "Left": (0.25, 0.52, 0.82),
    "Right": (0.55, 0.42, 0.82),
    "eyes": (0.03, 0.03, 0.04),
}
# Joint, part, ends and thickness of further shapes: chest, skull, nose, and eyes that show where is ahead
SHAPES = [
    ("Spine1", "trunk", (0, 0.88, -0.008), (0, 0.955, -0.006), 0.122),
    ("Head", "trunk", (0, 1.185, 0.012), (0, 1.205, 0.012), 0.098),
    ("Head", "trunk", (0, 1.165, 0.1), (0, 1.168, 0.112), 0.016),
    *(("Head", "eyes", (side * 0.034, 1.192, 0.095), (side * 0.034, 1.2, 0.095), 0.014) for side in SIDES.values()),
]


def joints():
    """Return (name, parent, position, thickness, part) of every joint, parents first."""
    rows = [(name, parent, np.array(place, float), thick, "trunk") for name, parent, place, thick in TRUNK]
    for side, sign in SIDES.items():
        for name, parent, place, thick in LIMBS:
            above = parent if parent in {row[0] for row in TRUNK} else side + parent
            rows.append((side + name, above, np.array(place, float) * (sign, 1, 1), thick, side))
    return rows


def capsule(a, b, thick, around=12, along=4):
    """Return points, normals and triangles of a rounded shape from a to b."""
    axis = b - a
    length = np.linalg.norm(axis)
    z = axis / length
    x = np.cross(z, (0.0, 0.0, 1.0) if abs(z[2]) < 0.9 else (0.0, 1.0, 0.0))
    x /= np.linalg.norm(x)
    y = np.cross(z, x)
    points, normals = [], []
    angles = np.linspace(0.0, 2.0 * np.pi, around, endpoint=False)
    for end, middle in ((-1.0, a), (1.0, b)):
        for k in range(along + 1):
            rise = 0.5 * np.pi * (k / along if end > 0 else 1.0 - k / along)
            for angle in angles:
                side = np.cos(angle) * x + np.sin(angle) * y
                normal = np.cos(rise) * side + end * np.sin(rise) * z
                points.append(middle + thick * np.cos(rise) * side + end * 0.8 * thick * np.sin(rise) * z)
                normals.append(normal)
    rings = 2 * (along + 1)
    faces = []
    for ring in range(rings - 1):
        for k in range(around):
            here, there = ring * around + k, ring * around + (k + 1) % around
            faces += [(here, there, here + around), (there, there + around, here + around)]
    return np.array(points), np.array(normals), np.array(faces)


def idle(times, hips):
    """Yield (joint, path, values) of a quiet clip of two seconds: the character breathes and its arms hang."""
    breath = np.sin(np.pi * times)[:, None]
    yield "Hips", "translation", hips + breath * (0.0, -0.008, 0.0)
    yield "Spine", "rotation", sy.Rotation.from_euler("x", 2.0 + 2.0 * breath, degrees=True).as_quat()
    for side, sign in SIDES.items():
        turns = np.concatenate([0.0 * breath, -sign * (72.0 + 3.0 * breath)], axis=1)
        yield f"{side}Arm", "rotation", sy.Rotation.from_euler("xz", turns, degrees=True).as_quat()


def character():
    """Return the bytes of the GLB: nodes, one skin, a mesh with a material for each part."""
    rows = joints()
    index = {row[0]: i for i, row in enumerate(rows)}
    nodes = []
    for name, parent, place, _, _ in rows:
        offset = place - (rows[index[parent]][2] if parent else 0.0)
        node = {"name": f"mixamorig:{name}", "translation": [round(float(v), 6) for v in offset]}
        children = [i for i, row in enumerate(rows) if row[1] == name]
        nodes.append(node | ({"children": children} if children else {}))
    blob, views, accessors = bytearray(), [], []

    def store(array, kind, component, bounds=False):
        while len(blob) % 4:
            blob.append(0)
        views.append({"buffer": 0, "byteOffset": len(blob), "byteLength": array.nbytes})
        blob.extend(array.tobytes())
        one = {"bufferView": len(views) - 1, "componentType": component, "count": len(array), "type": kind}
        if bounds:
            one |= {"min": array.min(0).tolist(), "max": array.max(0).tolist()}
        accessors.append(one)
        return len(accessors) - 1

    primitives = []
    for material, part in enumerate(COLOURS):
        points, normals, faces, owners = [], [], [], []
        count = 0
        shapes = [(parent, rows[index[parent]][2], place, thick) for _, parent, place, thick, own in rows
                  if own == part and thick > 0.0]  # fmt: skip
        shapes += [(joint, np.array(a), np.array(b), thick) for joint, own, a, b, thick in SHAPES if own == part]
        for owner, start, end, thick in shapes:
            p, n, f = capsule(start, end, thick)
            points.append(p)
            normals.append(n)
            faces.append(f + count)
            owners += [index[owner]] * len(p)
            count += len(p)
        weights = np.zeros((count, 4), np.uint8)
        weights[:, 0] = 255
        bones = np.zeros((count, 4), np.uint8)
        bones[:, 0] = owners
        primitives.append(
            {
                "attributes": {
                    "POSITION": store(np.concatenate(points).astype("<f4"), "VEC3", 5126, bounds=True),
                    "NORMAL": store(np.concatenate(normals).astype("<f4"), "VEC3", 5126),
                    "JOINTS_0": store(bones, "VEC4", 5121),
                    "WEIGHTS_0": store(weights, "VEC4", 5121),
                },
                "indices": store(np.concatenate(faces).astype("<u2").reshape(-1), "SCALAR", 5123),
                "material": material,
            }
        )
        accessors[primitives[-1]["attributes"]["WEIGHTS_0"]]["normalized"] = True
    times = np.linspace(0.0, 2.0, 9, dtype="<f4")
    clock = store(times, "SCALAR", 5126)
    accessors[clock] |= {"min": [0.0], "max": [2.0]}
    channels, samplers = [], []
    for name, path, values in idle(times, rows[0][2]):
        kind = "VEC3" if path == "translation" else "VEC4"
        samplers.append({"input": clock, "output": store(values.astype("<f4"), kind, 5126), "interpolation": "LINEAR"})
        channels.append({"sampler": len(samplers) - 1, "target": {"node": index[name], "path": path}})
    inverse = np.tile(np.eye(4), (len(rows), 1, 1))
    inverse[:, :3, 3] = [-row[2] for row in rows]
    skin = {
        "joints": list(range(len(rows))),
        "inverseBindMatrices": store(inverse.transpose(0, 2, 1).astype("<f4").reshape(-1, 16), "MAT4", 5126),
    }
    nodes.append({"name": "character", "mesh": 0, "skin": 0})
    text = {
        "asset": {"version": "2.0", "generator": "examples/make_models.py of Synovia"},
        "scene": 0,
        "scenes": [{"nodes": [0, len(nodes) - 1]}],
        "nodes": nodes,
        "skins": [skin],
        "animations": [{"name": "idle", "channels": channels, "samplers": samplers}],
        "meshes": [{"name": "character", "primitives": primitives}],
        "materials": [
            {"name": part, "pbrMetallicRoughness": {"baseColorFactor": [*colour, 1.0], "metallicFactor": 0.0}}
            for part, colour in COLOURS.items()
        ],
        "accessors": accessors,
        "bufferViews": views,
        "buffers": [{"byteLength": len(blob) + -len(blob) % 4}],
    }
    body = json.dumps(text, separators=(",", ":")).encode()
    body += b" " * (-len(body) % 4)
    blob.extend(bytes(-len(blob) % 4))
    head = struct.pack("<4sII", b"glTF", 2, 12 + 8 + len(body) + 8 + len(blob))
    return head + struct.pack("<I4s", len(body), b"JSON") + body + struct.pack("<I4s", len(blob), b"BIN\0") + blob


def arm():
    """Return the text of the URDF."""
    skeleton = sy.bundled("arm7")
    kinds = {sy.Kind.HINGE: "revolute", sy.Kind.FIXED: "fixed"}
    lines = ['<?xml version="1.0"?>', '<robot name="arm">', f'  <link name="{skeleton.joints[0].name}"/>']
    for joint in skeleton.joints[1:]:
        parent = skeleton.joint(joint.parent)
        base = parent.name if parent.parent is None or parent.kind is sy.Kind.FIXED else f"{parent.name}_link"
        link = joint.name if joint.kind is sy.Kind.FIXED else f"{joint.name}_link"
        name = f"{joint.name}_fixed" if joint.kind is sy.Kind.FIXED else joint.name
        frame = np.asarray(joint.rest)
        xyz = " ".join(f"{v:.9g}" for v in frame[:3, 3])
        rpy = " ".join(f"{v:.15g}" for v in sy.Rotation.from_matrix(frame[:3, :3]).as_euler("xyz"))
        lines += [
            f'  <link name="{link}"/>',
            f'  <joint name="{name}" type="{kinds[joint.kind]}">',
            f'    <parent link="{base}"/>',
            f'    <child link="{link}"/>',
            f'    <origin xyz="{xyz}" rpy="{rpy}"/>',
        ]
        if joint.kind is sy.Kind.HINGE:
            axis = " ".join(f"{v:g}" for v in joint.axis)
            low, high = joint.limit.lower, joint.limit.upper
            lines += [
                f'    <axis xyz="{axis}"/>',
                f'    <limit lower="{low:g}" upper="{high:g}" effort="80" velocity="2"/>',
            ]
        lines.append("  </joint>")
    return "\n".join([*lines, "</robot>", ""])


def main(folder):
    """Write both files."""
    (folder / "arm.urdf").write_text(arm(), encoding="utf-8")
    (folder / "character.glb").write_bytes(character())
    for name in ("arm.urdf", "character.glb"):
        print(sy.load_skeleton(folder / name))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
