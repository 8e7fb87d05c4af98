"""Small valid files of every format, which the fuzzer changes: made here, and those of the folder of real models."""

from __future__ import annotations

import base64
import io
import json
import struct
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import fbx_made
import synovia as sy
from fuzzing.data_seeds import data_files
from synovia.files.goals import SCHEMA as GOALS
from synovia.files.tracks import SCHEMA as TRACK
from synovia.io.toml.world import world_text
from synovia.io.toml.write import skeleton_text
from synovia.model import Kind
from synovia.model.geometry import matrix_to_quat
from synovia.retargeting.joint_map import write_map

LARGEST = 40_000  # bytes of a real file that is taken: what is changed should be found in a small file


@dataclass(frozen=True)
class Seed:
    """A valid file.

    Args:
        name: What to call it in reports.
        reader: Key of ``worker.READERS``.
        ending: Extension with the dot.
        data: The content.
        door: Whether it is one of ``doors``, with larger inputs and a tighter bound of memory.
    """

    name: str
    reader: str
    ending: str
    data: bytes
    door: bool = False


def clip(skeleton: sy.Skeleton, frames: int = 3) -> sy.Motion:
    """Return a short motion through random poses."""
    return sy.Motion(skeleton, np.array([skeleton.random_pose(t).q for t in range(frames)]), 30.0, name="clip")


def made() -> list[Seed]:
    """Return the files that need nothing but the package."""
    arm, body, dog = (sy.bundled(name) for name in ("arm7", "humanoid", "quadruped"))
    out: list[Seed] = []
    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder)

        def written(name: str, motion: sy.Motion, **more: object) -> bytes:
            sy.save_motion(motion, at / name, force=True, **more)
            return (at / name).read_bytes()

        out += [Seed(f"{s.name} bvh", "bvh", ".bvh", written("a.bvh", clip(s))) for s in (arm, body, dog)]
        out.append(Seed("odd bvh", "bvh", ".bvh", ODD_BVH.encode()))
        for skeleton, frames in ((body, 1), (arm, 3)):
            source = at / "in.gltf"
            source.write_text(json.dumps(gltf_of(skeleton)), encoding="utf-8")
            motion = clip(sy.load_skeleton(source), 2 + frames)
            out.append(Seed(f"{skeleton.name} gltf", "gltf", ".gltf", written("a.gltf", motion, into=source)))
            out.append(Seed(f"{skeleton.name} glb", "gltf", ".glb", written("a.glb", motion, into=source)))
        packed = packed_glb(json.loads(written("a.gltf", motion, into=source)))
        out.append(Seed("packed glb", "gltf", ".glb", packed))
        out.append(Seed("odd gltf", "gltf", ".gltf", json.dumps(ODD_GLTF).encode()))
        out.append(Seed("humanoid vrma", "gltf", ".vrma", written("a.vrma", clip(body, 2))))
        alone = sy.Skeleton(arm.joints, name="alone", meters_per_unit=0.01, up="z")
        out.append(Seed("new glb", "gltf", ".glb", written("a.glb", clip(alone))))
        out.append(Seed("arm7 xacro", "urdf", ".xacro", urdf_of(arm).encode()))
        out.append(Seed("arm7 urdf", "urdf", ".urdf", urdf_of(arm).encode()))
        out.append(Seed("odd urdf", "urdf", ".urdf", ODD_URDF.encode()))
        out.append(Seed("arm7 mjcf", "mjcf", ".xml", mjcf_of(arm).encode()))
        out += [Seed(f"odd mjcf {k}", "mjcf", ".xml", text.encode()) for k, text in enumerate(ODD_MJCF)]
        for skeleton in (arm, body):
            out.append(Seed(f"{skeleton.name} toml", "toml", ".toml", skeleton_text(skeleton).encode()))
        out.append(Seed("odd toml", "toml", ".toml", ODD_TOML.encode()))
        for skeleton in (arm, body):
            out.append(Seed(f"{skeleton.name} npz", "npz", ".npz", written("a.npz", clip(skeleton))))
        with np.load(io.BytesIO(out[-1].data)) as arrays:
            out.append(Seed("plain npz", "npz", ".npz", archive(dict(arrays))))
        out += [Seed(f"{s.name} csv", "csv", ".csv", written("a.csv", clip(s))) for s in (arm, body)]
        names = ["a", "b", "c"]
        places = np.random.default_rng(0).normal(size=(4, 3, 3)).round(3)
        head = ["time", *(f"{name}.{part}" for name in names for part in ("x", "y", "z", "confidence"))]
        rows = [",".join(head)]
        for k, row in enumerate(places):
            rows.append(",".join([str(k / 30), *(",".join(map(str, [*p.tolist(), 1.0])) for p in row)]))
        out.append(Seed("points csv", "points", ".csv", ("\n".join(rows) + "\n").encode()))
        given = {"positions": places, "joints": np.array(names), "confidence": np.ones((4, 3)), "fps": np.array(30.0)}
        out.append(Seed("points npz", "points", ".npz", archive(given | {"offsets": np.zeros((3, 3))})))
        data = io.BytesIO()
        np.save(data, places)
        out.append(Seed("points npy", "points", ".npy", data.getvalue()))
        write_map({"hips": ("Hips", "pelvis"), "left_upper_leg": ("A", "b c"), "spine": ("", "x")}, at / "m.toml")
        out.append(Seed("map", "map", ".toml", (at / "m.toml").read_bytes()))
    if find_spec("ufbx"):
        tree, takes, skin = fbx_made.sample()
        out.append(Seed("fbx text", "fbx", ".fbx", fbx_made.ascii_of(fbx_made.file_of(tree, takes, mesh=skin))))
        for version, packed in ((7400, True), (7500, False)):
            records = fbx_made.file_of(tree, takes, mesh=skin, version=version)
            data = fbx_made.binary_of(records, version, packed=packed)
            out.append(Seed(f"fbx {version}", "fbx", ".fbx", data))
    out.append(Seed("pose", "pose", ".json", pose_of(body).encode()))
    out.append(Seed("pose of arm7", "pose", ".json", pose_of(arm).encode()))
    for kind, schema, entries in (("goals", GOALS, GOAL_ENTRIES), ("track", TRACK, TRACK_ENTRIES)):
        content = {"schema": schema, "goals": entries}
        out.append(Seed(f"{kind} json", kind, ".json", json.dumps(content, indent=1).encode()))
        out.append(Seed(f"{kind} toml", kind, ".toml", toml_of(content).encode()))
    smooth = {"schema": TRACK, "fps": 25, "interpolation": "cubic", "goals": TRACK_ENTRIES[1:]}
    out.append(Seed("cubic track", "track", ".json", json.dumps(smooth).encode()))
    out.append(Seed("world toml", "world", ".toml", world_text(WORLD).encode()))
    out += [Seed("scene", "world", ".scene", SCENE.encode()), Seed("old scene", "world", ".scene", OLD_SCENE.encode())]
    out.append(Seed("room gltf", "world", ".gltf", json.dumps(room()).encode()))
    return out + [Seed(*file) for file in data_files()]


WORLD = sy.World(
    {
        "floor": sy.HalfSpace(normal=(0, 0, 1)),
        "table": sy.Obstacle([sy.Box(size=(1, 2, 0.1)), sy.Cylinder(radius=0.1, length=1)], transform=(1, 2, 3)),
        "rod": sy.Capsule(a=(0, 0, 0), b=(0, 0, 1), radius=0.1),
        "tent": sy.ConvexHull([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]),
        "scan": sy.PointCloud([(0, 0, 0), (0, 0, 1)], radius=0.1),
    },
    meters_per_unit=1.0,
    up="z",
)
SCENE = """kitchen
* table top
0.5 0 0.4
0 0 0 1
3
box
0.6 1.2 0.05
0 0 0.1
0 0 0 1
0 0 0 0
cone
0.3 1
0 0 1
0 0 0 1
1 0 0 1
mesh
4 2
0 0 0
1 0 0
0 1 0
0 0 1
0 1 2
0 1 3
0 0 1
0 0 0 1
1 0 0 1
1
handle
0 0 0
0 0 0 1
.
"""
OLD_SCENE = """(noname)+
* Box_0
2
cylinder
0.2 0.4
1 2 3
0 0 0 1
0 0 0 0
plane
0 0 1 2
1 2 3
0 0 0 1
0 0 0 0
.
"""


def room() -> dict[str, object]:
    """Return a glTF with a mesh at two nodes."""
    data = np.random.default_rng(0).normal(size=(8, 3)).astype("<f4").tobytes()
    uri = "data:application/octet-stream;base64," + base64.b64encode(data).decode()
    return {
        "asset": {"version": "2.0"},
        "scene": 0,
        "scenes": [{"nodes": [0, 1]}],
        "nodes": [{"name": "a", "mesh": 0}, {"mesh": 0, "translation": [1, 2, 3], "scale": [1, 2, 1]}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}}]}],
        "accessors": [{"bufferView": 0, "componentType": 5126, "count": 8, "type": "VEC3"}],
        "bufferViews": [{"buffer": 0, "byteLength": len(data)}],
        "buffers": [{"byteLength": len(data), "uri": uri}],
    }


def real(folder: Path) -> list[Seed]:
    """Return the small files of the folder of real models."""
    kinds = {".bvh": "bvh", ".fbx": "fbx", ".gltf": "gltf", ".glb": "gltf", ".urdf": "urdf", ".xml": "mjcf"}
    found = [path for path in sorted(folder.rglob("*")) if path.suffix in kinds and path.is_file()]
    small = [path for path in found if path.stat().st_size <= LARGEST]
    return [Seed(path.name, kinds[path.suffix], path.suffix, path.read_bytes()) for path in small]


def archive(content: dict[str, np.ndarray]) -> bytes:
    """Return arrays as an uncompressed NumPy archive."""
    data = io.BytesIO()
    np.savez(data, **content)
    return data.getvalue()


def gltf_of(skeleton: sy.Skeleton) -> dict[str, object]:
    """Return a glTF whose nodes are the joints of a skeleton, with a skin."""
    nodes = []
    for row, joint in enumerate(skeleton.joints):
        node: dict[str, object] = {"name": joint.name, "translation": joint.rest[:3, 3].tolist()}
        node["rotation"] = matrix_to_quat(joint.rest[:3, :3]).tolist()
        if skeleton.children[row]:
            node["children"] = list(skeleton.children[row])
        nodes.append(node)
    roots = [row for row, parent in enumerate(skeleton.parents) if parent < 0]
    skin = {"joints": list(range(len(nodes)))}
    return {"asset": {"version": "2.0"}, "scene": 0, "scenes": [{"nodes": roots}], "nodes": nodes, "skins": [skin]}


def packed_glb(content: dict[str, object]) -> bytes:
    """Return a GLB with an empty skeleton's JSON and a binary chunk that nothing needs."""
    text = json.dumps(content).encode()
    text += b" " * (-len(text) % 4)
    binary = bytes(range(64))
    body = struct.pack("<II", len(text), 0x4E4F534A) + text + struct.pack("<II", len(binary), 0x004E4942) + binary
    return b"glTF" + struct.pack("<II", 2, 12 + len(body)) + body


def urdf_of(skeleton: sy.Skeleton) -> str:
    """Return a skeleton of hinges, slides and fixed joints as URDF."""
    types = {Kind.FIXED: "fixed", Kind.HINGE: "revolute", Kind.SLIDE: "prismatic"}
    lines = ['<?xml version="1.0"?>', f'<robot name="{skeleton.name}">', '  <link name="world_link"/>']
    for row, joint in enumerate(skeleton.joints):
        parent = skeleton.parents[row]
        above = f"{skeleton.joint_names[parent]}_link" if parent >= 0 else "world_link"
        R, p = joint.rest[:3, :3], joint.rest[:3, 3]
        rpy = (np.arctan2(R[2, 1], R[2, 2]), -np.arcsin(np.clip(R[2, 0], -1, 1)), np.arctan2(R[1, 0], R[0, 0]))
        lines.append(f'  <link name="{joint.name}_link"><inertial><mass value="{joint.mass}"/></inertial></link>')
        lines.append(f'  <joint name="{joint.name}" type="{types[joint.kind]}">')
        lines.append(f'    <parent link="{above}"/><child link="{joint.name}_link"/>')
        lines.append(f'    <origin xyz="{" ".join(map(str, p))}" rpy="{" ".join(map(str, rpy))}"/>')
        if joint.limit is not None:
            lines.append(f'    <axis xyz="{" ".join(map(str, joint.axis))}"/>')
            lines.append(f'    <limit lower="{joint.limit.lower}" upper="{joint.limit.upper}" effort="1"/>')
        lines.append("  </joint>")
    return "\n".join([*lines, "</robot>", ""])


def mjcf_of(skeleton: sy.Skeleton) -> str:
    """Return a chain of hinges and fixed joints as MJCF."""
    lines = ['<mujoco model="arm">', '<compiler angle="radian" autolimits="true"/>', "<worldbody>"]
    for joint in skeleton.joints:
        w = np.roll(matrix_to_quat(joint.rest[:3, :3]), 1)
        numbers = " ".join(map(str, joint.rest[:3, 3])), " ".join(map(str, w))
        lines.append(f'<body name="{joint.name}_body" pos="{numbers[0]}" quat="{numbers[1]}"><geom size="0.05"/>')
        if joint.limit is not None:
            ends = f"{joint.limit.lower} {joint.limit.upper}"
            lines.append(f'<joint name="{joint.name}" axis="{" ".join(map(str, joint.axis))}" range="{ends}"/>')
    return "\n".join([*lines, *["</body>"] * len(skeleton.joints), "</worldbody>", "</mujoco>", ""])


def pose_of(skeleton: sy.Skeleton) -> str:
    """Return a pose file's content."""
    from synovia.files.poses import SCHEMA, values_of

    content = {"schema": SCHEMA, "model": skeleton.name, "q": values_of(skeleton.random_pose(1))}
    return json.dumps(content, indent=2)


def toml_of(content: dict[str, object]) -> str:
    """Return goals or tracks as TOML."""

    def literal(value: object) -> str:
        if isinstance(value, dict):
            return "{ " + ", ".join(f"{key} = {literal(inner)}" for key, inner in value.items()) + " }"
        if isinstance(value, list):
            return "[" + ", ".join(map(literal, value)) + "]"
        return json.dumps(value)

    lines = [f'schema = "{content["schema"]}"']
    for entry in content["goals"]:
        lines += ["", "[[goals]]", *(f"{key} = {literal(value)}" for key, value in entry.items())]
    return "\n".join(lines) + "\n"


GOAL_ENTRIES = [
    {"kind": "position", "joint": "left_hand", "position": [0.4, 1.2, 0.3], "weight": 2.0, "priority": 1},
    {"kind": "rotation", "joint": "head", "rotation": {"euler": "xyz", "degrees": [10, 20, 30]}, "name": "look"},
    {"kind": "pose", "joint": 3, "position": [0, 1, 0], "rotation": {"quat_wxyz": [1, 0, 0, 0]}, "ancestors": 2},
    {"kind": "aim", "joint": "head", "point": [1, 1, 1], "axis": [0, 0, 1], "offset": [0, 0.1, 0]},
    {"kind": "direction", "joint": "left_hand", "axis": [0, 0, 1], "direction": [0, -1, 0.5]},
    {"kind": "pole", "joint": "left_lower_leg", "point": [0, 1, 2], "root": "left_upper_leg", "tip": "left_foot"},
    {"kind": "distance", "joint": "left_hand", "other": "right_hand", "minimum": 0.1, "maximum": 0.5},
    {"kind": "plane", "joint": "left_foot", "point": [0, 0, 0], "normal": [0, 1, 0]},
    {"kind": "range", "joint": "head", "lower": -0.1, "upper": 0.2},
    {"kind": "center_of_mass", "polygon": [[0, 0, 0], [1, 0, 0], [0, 0, 1]], "up": [0, 1, 0]},
    {"kind": "relative", "joint": "left_hand", "other": "head", "parts": "pose", "other_offset": [0, 0, 0.1],
     "rotation": {"matrix": [[1, 0, 0], [0, 1, 0], [0, 0, 1]]}},
    {"kind": "contact", "joint": "right_foot", "keep": "normal", "normal": [0, 1, 0]},
    {"kind": "rest", "joints": ["head"], "values": {"head": [0, 0, 0, 1]}, "weight": 0.1},
]  # fmt: skip
TRACK_ENTRIES = [
    {"joint": "left_hand", "keys": [{"time": 0, "position": [0.4, 1, 0]}, {"time": 0.5, "position": [1, 1, 0]}]},
    {
        "joint": "head",
        "name": "head",
        "weight": 0.5,
        "offset": [0, 0, 0.1],
        "keys": [
            {"time": k / 10, "position": [k, 1, k * k], "rotation": {"euler": "XYZ", "degrees": [k, 2 * k, 0]}}
            for k in range(4)
        ],
    },
    {"joint": 2, "keys": [{"time": 0.1, "rotation": {"quat_xyzw": [0, 0, 0, 1]}}]},
    {"joint": "right_foot"},
]
ODD_BVH = """HIERARCHY
ROOT hip
{
  OFFSET 0.5 0 0
  CHANNELS 6 Zrotation Xposition Yrotation Yposition Xrotation Zposition
  JOINT knee { OFFSET 0 -1 0 CHANNELS 1 Xrotation
    JOINT sliding { OFFSET 0 -1 0 CHANNELS 5 Xposition Zposition Yrotation Xrotation Zrotation
      End Site { OFFSET 0 -1 0 } } }
  JOINT two words { OFFSET 1 0 0 CHANNELS 0 End Site { OFFSET 0 0 1 } }
}
ROOT other { OFFSET 0 0 0 CHANNELS 3 Xrotation Yrotation Zrotation }
MOTION
Frames: 2
Frame Time: 0.0333
1 2 3 4 5 6 7 8 9 10 11 12 13 14 15
-1 2e0 .3 4. 5 6 7 8 9 10 11 12 13 14 15
"""
_KEYS = base64.b64encode(struct.pack("<9f2B", 0, 0.5, 1, 0, 1, 0, 0, 2, 1, 0, 2)).decode()
ODD_GLTF = {
    "asset": {"version": "2.0"},
    "nodes": [
        {"name": "root", "children": [1, 3], "scale": [-2, 2, 2]},
        {"name": "arm", "children": [2], "matrix": [0, 1, 0, 0, -1, 0, 0, 0, 0, 0, 1, 0, 1, 2, 3, 1]},
        {"name": "tip", "translation": [0, 2, 0], "scale": [1, 2, 3], "children": [4]},
        {"rotation": [0.6, 0, 0, 0.8]},
        {"name": "below", "translation": [1, 0, 0]},
    ],
    "scenes": [{"nodes": [0]}],
    "buffers": [{"byteLength": 38, "uri": "data:application/octet-stream;base64," + _KEYS}],
    "bufferViews": [
        {"buffer": 0, "byteLength": 12},
        {"buffer": 0, "byteOffset": 12, "byteLength": 24, "byteStride": 12},
        {"buffer": 0, "byteOffset": 36, "byteLength": 2},
    ],
    "accessors": [
        {"bufferView": 0, "componentType": 5126, "count": 3, "type": "SCALAR"},
        {"componentType": 5126, "count": 3, "type": "VEC3",
         "sparse": {"count": 2, "indices": {"bufferView": 2, "componentType": 5121},
                    "values": {"bufferView": 1, "componentType": 5126}}},
        {"componentType": 5126, "count": 9, "type": "VEC3"},
        {"bufferView": 1, "componentType": 5120, "normalized": True, "count": 2, "type": "VEC4"},
    ],
    "animations": [
        {"name": "go", "samplers": [{"input": 0, "output": 1}, {"input": 0, "output": 2,
                                                              "interpolation": "CUBICSPLINE"}],
         "channels": [{"sampler": 0, "target": {"node": 2, "path": "translation"}},
                      {"sampler": 1, "target": {"node": 4, "path": "translation"}},
                      {"sampler": 0, "target": {"node": 1, "path": "scale"}}]},
    ],
}  # fmt: skip
ODD_URDF = """<?xml version="1.0"?>
<robot name="odd" xmlns:xacro="http://ros.org/wiki/xacro">
  <material name="m"><color rgba="0 0 0 1"/></material>
  <link name="base"><inertial><origin xyz="0 0 1"/><mass value="2"/></inertial></link>
  <link name="a"><visual><geometry><mesh filename="package://x/y.stl"/></geometry></visual></link>
  <link name="b"/><link name="c"/><link name="d"/><link name="e"/>
  <joint name="ja" type="planar"><parent link="base"/><child link="a"/><axis xyz="0 0 1"/></joint>
  <joint name="jb" type="prismatic"><parent link="a"/><child link="b"/><axis xyz="1 0 0"/>
    <limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
  <joint name="jc" type="prismatic"><parent link="b"/><child link="c"/><axis xyz="0 1 0"/>
    <limit lower="0" upper="1"/><mimic joint="jb" multiplier="-0.5" offset="0.5"/></joint>
  <joint name="jd" type="continuous"><origin xyz="1 2 3" rpy="0.1 0.2 0.3"/><parent link="a"/><child link="d"/>
    <axis xyz="1 1 0"/></joint>
  <joint name="je" type="floating"><parent link="d"/><child link="e"/></joint>
  <transmission name="t"><joint name="jd"/></transmission>
</robot>
"""
ODD_TOML = """schema = "synovia.skeleton/1"
name = "finger"
meters_per_unit = 1.0
up = "y"
forward = "-z"

[[joint]]
name = "knuckle"
kind = "ball"
bone = [0, 1, 0]
x_axis = [1, 0, 0]
swing_x_deg = [-30, 90]
swing_y_deg = [-15, 15]
twist_deg = [5, 10]
role = "left_hand"
body = "palm"

[[joint]]
name = "middle"
parent = "knuckle"
kind = "hinge"
position = [0, 0.04, 0]
rpy_deg = [0, 10, 0]
axis = [1, 0, 0]
limit_deg = [0, 100]
preferred_deg = 10
stiffness = 0.5
mass = 0.1
com = [0, 0.01, 0]

[[joint]]
name = "last"
parent = 1
kind = "hinge"
axis = [1, 0, 0]
mimic = { leader = "middle", ratio = 0.5, offset = 0.1 }
tip = true
channels = ["Zrotation"]
"""
ODD_MJCF = (
    """<mujoco model="odd">
<compiler angle="degree" eulerseq="XYZ" boundmass="0.01" boundinertia="0.0001"/>
<option timestep="0.002" iterations="50" gravity="0 0 -9.81"><flag contact="disable"/></option>
<size nuserdata="2" nuser_geom="1"/>
<default><joint damping="1"/><default class="small"><geom size="0.1" type="sphere"/></default></default>
<asset>
 <texture name="t" type="2d" builtin="checker" width="8" height="8" rgb1="0 0 0"/>
 <material name="m" texture="t"/>
 <hfield name="h" nrow="4" ncol="4" size="1 1 1 1"/>
 <mesh name="tetra" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/>
 <mesh name="ball" builtin="sphere" params="1"/>
 <mesh name="super" builtin="supersphere" params="6 0.5 0.5"/>
</asset>
<worldbody>
 <geom type="hfield" hfield="h"/>
 <light pos="0 0 1"/><camera pos="0 0 2"/>
 <body name="a" pos="0 0 1" euler="10 20 30"><freejoint name="root"/><geom class="small"/>
  <body name="b" pos="1 0 0"><joint name="hinge" type="hinge" axis="0 1 0" range="-90 90" limited="true" ref="5"/>
   <geom type="capsule" fromto="0 0 0 1 0 0" size="0.05"/><site name="s"/>
   <body name="c" pos="1 0 0"><joint name="ball" type="ball" range="0 60" limited="true" pos="0.1 0 0"/>
    <geom type="mesh" mesh="tetra"/></body></body>
  <body name="d"><joint name="slide" type="slide" axis="0 0 1"/><joint name="turn"/><geom type="mesh" mesh="super"/>
   <inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body></body>
</worldbody>
<equality><joint joint1="slide" joint2="hinge" polycoef="0 0.5 0 0 0"/><weld body1="a" body2="d" active="false"/>
</equality>
<tendon><fixed name="f"><joint joint="hinge" coef="1"/></fixed></tendon>
<actuator><motor joint="hinge" gear="2"/><position joint="slide" kp="1"/></actuator>
<sensor><jointpos joint="hinge"/><user dim="2"/></sensor>
<keyframe><key name="k" time="1"/></keyframe>
<custom><numeric name="n" data="1 2" size="3"/><text name="x" data="y"/></custom>
</mujoco>
""",
    """<mujoco>
<compiler angle="radian" autolimits="true"><lengthrange mode="muscle"/></compiler>
<statistic extent="1"/><visual><quality shadowsize="512"/></visual>
<worldbody>
 <replicate count="3" offset="0 0.5 0" euler="0 0 0.1"><body name="r" pos="0 0 1">
  <joint name="j" type="hinge" range="-1 1"/><geom size="0.1"/></body></replicate>
 <frame pos="0 0 1" quat="0 1 0 0"><body name="x"><joint/><geom type="box" size="1 1 1" density="10"/>
  <site name="p" pos="0 0 1"/></body></frame>
 <body name="y"><site name="q"/><geom size="0.1"/><joint axis="1 0 0"/></body>
 <flexcomp name="flex" type="grid" count="3 3 1" spacing="0.1 0.1 0.1" radius="0.01" dim="2" mass="1" pos="3 0 0"/>
</worldbody>
<tendon><spatial name="sp"><site site="p"/><site site="q"/></spatial></tendon>
<actuator><muscle tendon="sp" lengthrange="0 1"/></actuator>
<contact><exclude body1="x" body2="y"/></contact>
</mujoco>
""",
)
