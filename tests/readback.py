"""Readers of every file type that share no code with the package, and random bodies, clips and glTF files.

Each reader returns the names of joints, their world places over time (T, n, 3), and the time of each frame.
"""

import base64
import csv
import json
import struct
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
import yaml
from scipy.spatial.transform import Rotation, Slerp

import synovia as sy
from trees import random_tree

# --- forward kinematics and glTF by hand ------------------------------------------------------------------------------


def chained(parents, locals_):
    """World matrices (T, n, 4, 4) of local ones (n of (T, 4, 4)), parents first."""
    out = []
    for parent, local in zip(parents, locals_, strict=True):
        out.append(local if parent < 0 else out[parent] @ local)
    return np.stack(np.broadcast_arrays(*out), axis=1)


def rigid(turn, place, count):
    out = np.tile(np.eye(4), (count, 1, 1))
    out[:, :3, :3], out[:, :3, 3] = turn, place
    return out


def moved(joint, q):
    """Motion of a joint, (T, 4, 4), from its values (T, k)."""
    kind, axis = joint["kind"], np.array(joint.get("axis", (0, 0, 0)), float)
    if kind == "hinge":
        return rigid(Rotation.from_rotvec(q * axis).as_matrix(), 0, len(q))
    if kind == "slide":
        return rigid(np.eye(3), q * axis, len(q))
    if kind == "ball":
        return rigid(Rotation.from_quat(q).as_matrix(), 0, len(q))
    if kind == "free":
        return rigid(Rotation.from_quat(q[:, 3:]).as_matrix(), q[:, :3], len(q))
    return rigid(np.eye(3), 0, len(q))


WIDTHS = {"hinge": 1, "slide": 1, "ball": 4, "free": 7, "fixed": 0}


def places_of(joints, q, stretch=None):
    """World places of joints, given as tables, at joint values (T, nq)."""
    number = {joint["name"]: row for row, joint in enumerate(joints)}
    at, locals_, parents = 0, [], []
    for row, joint in enumerate(joints):
        width = WIDTHS[joint["kind"]]
        own = rigid(
            Rotation.from_quat(joint.get("rotation_xyzw", (0, 0, 0, 1))).as_matrix(), joint.get("position", 0), 1
        )
        local = own @ moved(joint, q[:, at : at + width])
        if stretch is not None:
            local[:, :3, :3] = local[:, :3, :3] * stretch[:, row, None, :]
        locals_.append(local)
        parents.append(-1 if joint.get("parent") is None else number.get(joint["parent"], joint["parent"]))
        at += width
    return chained(parents, locals_)[..., :3, 3]


def tables_of(skeleton):
    """Joints of a skeleton as tables, for files that do not hold it."""
    return [
        {
            "name": joint.name, "parent": None if parent < 0 else skeleton.joints[parent].name,
            "kind": joint.kind.name.lower(), "axis": joint.axis, "position": joint.rest[:3, 3],
            "rotation_xyzw": Rotation.from_matrix(joint.rest[:3, :3]).as_quat(),
        }
        for joint, parent in zip(skeleton.joints, skeleton.parents, strict=True)
    ]  # fmt: skip


class Gltf:
    """A glTF file."""

    def __init__(self, path):
        path = Path(path)
        data, self.folder = path.read_bytes(), path.parent
        self.chunk = b""
        if data[:4] == b"glTF":
            (size,) = struct.unpack_from("<I", data, 12)
            self.json, self.chunk = json.loads(data[20 : 20 + size]), data[28 + size :]
        else:
            self.json = json.loads(data)
        self.nodes = self.json["nodes"]
        self.above = {child: i for i, node in enumerate(self.nodes) for child in node.get("children", [])}
        self.names = [node.get("name") or f"node{i}" for i, node in enumerate(self.nodes)]

    def bytes_of(self, number):
        uri = self.json["buffers"][number].get("uri")
        if uri is None:
            return self.chunk
        return base64.b64decode(uri.split(",")[1]) if uri.startswith("data:") else (self.folder / uri).read_bytes()

    def accessor(self, number):
        accessor = self.json["accessors"][number]
        width = {"SCALAR": 1, "VEC3": 3, "VEC4": 4}[accessor["type"]]
        dtype = {5126: "<f4", 5120: "<i1", 5121: "<u1", 5122: "<i2", 5123: "<u2"}[accessor["componentType"]]
        view = self.json["bufferViews"][accessor["bufferView"]]
        at = view.get("byteOffset", 0) + accessor.get("byteOffset", 0)
        size = np.dtype(dtype).itemsize * width
        shape, steps = (accessor["count"], width), (view.get("byteStride", size), np.dtype(dtype).itemsize)
        out = np.ndarray(shape, dtype, self.bytes_of(view["buffer"]), at, steps).astype(float)
        return out / np.iinfo(dtype).max if accessor.get("normalized") else out

    def clip(self, number):
        """Channels (node, path, key times, values, interpolation) of an animation that move nodes."""
        animation = self.json["animations"][number]
        for channel in animation["channels"]:
            sampler, target = animation["samplers"][channel["sampler"]], channel["target"]
            if "node" in target and target["path"] in ("translation", "rotation", "scale"):
                times, values = self.accessor(sampler["input"])[:, 0], self.accessor(sampler["output"])
                yield target["node"], target["path"], times, values, sampler.get("interpolation", "LINEAR")

    def written(self):
        """Number of the animation that Synovia wrote last."""
        return max(
            (i for i, a in enumerate(self.json.get("animations", [])) if "generator" in a.get("extras", {})), default=-1
        )

    def places(self, number=None, times=None):
        """World places (T, n, 3) of all nodes in a clip, or at rest, and the times."""
        keyed = {} if number is None else {(n, p): rest for n, p, *rest in self.clip(number)}
        if times is None:
            times = np.unique(np.concatenate([np.zeros(1)] if not keyed else [rest[0] for rest in keyed.values()]))
        locals_ = []
        for i, node in enumerate(self.nodes):
            if "matrix" in node and not any((i, p) in keyed for p in ("translation", "rotation", "scale")):
                locals_.append(np.array(node["matrix"], float).reshape(1, 4, 4).swapaxes(1, 2))
                continue
            place, turn, scale = (
                sampled(*keyed[i, path], times) if (i, path) in keyed else np.array([node.get(path, default)], float)
                for path, default in (("translation", (0, 0, 0)), ("rotation", (0, 0, 0, 1)), ("scale", (1, 1, 1)))
            )
            local = rigid(np.eye(3), 0, max(len(place), len(turn), len(scale)))
            local[:, :3, :3] = Rotation.from_quat(turn).as_matrix() * scale[:, None, :]
            local[:, :3, 3] = place
            locals_.append(local)
        order, world = [], {}
        todo = [i for i in range(len(self.nodes)) if i not in self.above][::-1]
        while todo:
            i = todo.pop()
            order.append(i)
            todo += self.nodes[i].get("children", [])
        for i in order:
            world[i] = world[self.above[i]] @ locals_[i] if i in self.above else locals_[i]
        every = [np.broadcast_to(world[i][:, :3, 3], (len(times), 3)) for i in range(len(self.nodes))]
        return np.stack(every, axis=1), times


def sampled(keys, values, way, times):
    """Values of a sampler at times."""
    if way == "CUBICSPLINE":
        values = values.reshape(len(keys), 3, -1)
        at = np.clip(np.searchsorted(keys, times, side="right") - 1, 0, max(len(keys) - 2, 0))
        after = np.minimum(at + 1, len(keys) - 1)
        gap = (keys[after] - keys[at])[:, None]
        u = np.clip((times[:, None] - keys[at, None]) / np.where(gap > 0, gap, 1), 0, 1)
        out = (2 * u**3 - 3 * u**2 + 1) * values[at, 1] + gap * (u**3 - 2 * u**2 + u) * values[at, 2]
        return out + (3 * u**2 - 2 * u**3) * values[after, 1] + gap * (u**3 - u**2) * values[after, 0]
    inside = np.clip(times, keys[0], keys[-1])
    if len(keys) == 1 or way == "STEP":
        return values[np.searchsorted(keys, inside, side="right") - 1]
    if values.shape[1] == 4:
        kept = np.append(True, np.diff(keys) > 0)
        return Slerp(keys[kept], Rotation.from_quat(values[kept]))(inside).as_quat()
    return np.array([np.interp(inside, keys, column) for column in values.T]).T


# --- one reader for each file type ------------------------------------------------------------------------------------


def read_glb(path, skeleton=None):
    file = Gltf(path)
    places, times = file.places(file.written() if "animations" in file.json else None)
    return file.names, places, times


def read_posed(path, skeleton=None):
    file = Gltf(path)
    return file.names, file.places()[0], None


def read_bvh(path, skeleton=None):
    words = Path(path).read_text(encoding="utf-8").split()
    names, parents, offsets, channels, stack = [], [], [], [], []
    at = 1
    while words[at] != "MOTION":
        word = words[at]
        if word in ("ROOT", "JOINT", "End"):
            name = None if word == "End" else words[at + 1]
            at += 2
            while words[at] != "{":
                name, at = f"{name} {words[at]}", at + 1
            parents.append(stack[-1] if stack else -1)
            names.append(name)
            stack.append(len(names) - 1)
            channels.append([])
            at += 1
        elif word == "OFFSET":
            offsets.append([float(v) for v in words[at + 1 : at + 4]])
            at += 4
        elif word == "CHANNELS":
            count = int(words[at + 1])
            channels[stack[-1]] = words[at + 2 : at + 2 + count]
            at += 2 + count
        elif word == "}":
            stack.pop()
            at += 1
        else:
            raise ValueError(word)
    count, step = int(words[at + 2]), float(words[at + 5])
    table = np.array(words[at + 6 :], float).reshape(count, -1)
    column, locals_ = 0, []
    for offset, own in zip(offsets, channels, strict=True):
        place = np.tile(offset, (count, 1)).astype(float)
        turn = Rotation.from_quat(np.tile([0.0, 0, 0, 1], (count, 1)))
        for name in own:
            values, column = table[:, column], column + 1
            if name.endswith("position"):
                place[:, "XYZ".index(name[0])] = values
            else:
                turn = turn * Rotation.from_rotvec(np.radians(values)[:, None] * np.eye(3)["XYZ".index(name[0])])
        locals_.append(rigid(turn.as_matrix(), place, count))
    places = chained(parents, locals_)[..., :3, 3]
    if skeleton is not None:  # end sites have no names: the tip below their joint
        rows = {joint.body or joint.name: row for row, joint in enumerate(skeleton.joints)}
        tips = {}
        for row, (joint, parent) in enumerate(zip(skeleton.joints, skeleton.parents, strict=True)):
            if joint.tip:
                tips.setdefault(parent, []).append(row)
        for i, name in enumerate(names):
            row = rows[name] if name is not None else tips[rows[names[parents[i]]]].pop(0)
            names[i] = skeleton.joint_names[row]
            rows[names[i]] = row
    return names, places, step * np.arange(count)


def read_npz(path, skeleton=None):
    with np.load(path, allow_pickle=False) as arrays:
        content = {name: arrays[name] for name in arrays.files}
    joints = tomllib.loads(content["skeleton"].tobytes().decode())["joint"]
    places = places_of(joints, content["q"], content.get("stretch"))
    return [joint["name"] for joint in joints], places, np.arange(len(places)) / float(content["fps"])


def read_csv(path, skeleton):
    with Path(path).open(newline="") as file:
        rows = list(csv.reader(file))
    table = np.array(rows[1:], float)
    columns = dict(zip(rows[0], table.T, strict=True))
    parts = {"hinge": [""], "slide": [""], "ball": [".qx", ".qy", ".qz", ".qw"], "fixed": []}
    parts["free"] = [".x", ".y", ".z", *parts["ball"]]
    joints = tables_of(skeleton)
    q = np.array([columns[j["name"] + part] for j in joints for part in parts[j["kind"]]]).reshape(-1, len(table)).T
    return [j["name"] for j in joints], places_of(joints, q), columns["time"]


def read_pose(path, skeleton):
    values = json.loads(Path(path).read_text(encoding="utf-8"))["q"]
    joints = tables_of(skeleton)
    q = np.concatenate([np.ravel(values[j["name"]]) if WIDTHS[j["kind"]] else [] for j in joints])
    return [j["name"] for j in joints], places_of(joints, q[None]), None


def read_toml(path, skeleton):
    joints = tomllib.loads(Path(path).read_text(encoding="utf-8"))["joint"]
    return [j["name"] for j in joints], places_of(joints, skeleton.rest_pose().q[None]), None


def read_trajectory(path, skeleton):
    text = Path(path).read_text(encoding="utf-8")
    content = yaml.safe_load(text) if str(path).endswith("yaml") else json.loads(text)
    joints, points = tables_of(skeleton), content["points"]
    values = {name: [point["positions"][k] for point in points] for k, name in enumerate(content["joint_names"])}
    still = {"hinge": [0.0], "slide": [0.0], "ball": [0.0, 0.0, 0.0, 1.0], "free": [0.0] * 6 + [1.0], "fixed": []}
    q = [values.get(j["name"]) or [one] * len(points) for j in joints for one in still[j["kind"]]]
    times = [point["time_from_start"]["sec"] + 1e-9 * point["time_from_start"]["nanosec"] for point in points]
    return [j["name"] for j in joints], places_of(joints, np.array(q).T), np.array(times)


def read_unitree(path, skeleton):
    table = np.array([line.split(",") for line in Path(path).read_text(encoding="utf-8").split()], float)
    joints = tables_of(skeleton)
    base = next(j for j in joints if j["kind"] == "free")
    rest = rigid(Rotation.from_quat(base["rotation_xyzw"]).as_matrix(), base["position"], 1)
    world = rigid(Rotation.from_quat(table[:, 3:7]).as_matrix(), table[:, :3], len(table))
    own = np.linalg.inv(rest) @ world
    free = np.hstack([own[:, :3, 3], Rotation.from_matrix(own[:, :3, :3]).as_quat()])
    q = np.hstack([free, table[:, 7:]])
    return [j["name"] for j in joints], places_of(joints, q), np.arange(len(table)) / 30.0


def read_tracker(path, skeleton):
    with np.load(path, allow_pickle=False) as arrays:
        names, places, fps = arrays["body_names"].tolist(), arrays["body_pos_w"], float(arrays["fps"][0])
    return names, places.astype(float), np.arange(len(places)) / fps


_UFBX = """
import json, os, sys
import ufbx
from synovia.io.fbx.unpack import _held
scene = ufbx.load_file(sys.argv[1])
take = _held(scene.anim_stacks[0])
anim, begin, end, rate = _held(take.anim), take.time_begin, take.time_end, scene.settings.frames_per_second
out, kept = [], []
for frame in range(round((end - begin) * rate) + 1):
    seen = ufbx.evaluate_scene(scene, anim, begin + frame / rate)
    nodes = [_held(node) for node in seen.nodes]
    kept.append((seen, nodes))
    out.append([list(node.node_to_world.c3) for node in nodes])
takes, names = [_held(one).name for one in scene.anim_stacks], [node.name for node in nodes]
print(json.dumps([rate, takes, names, out]), flush=True)
os._exit(0)  # the end of the interpreter would free elements twice
"""


def by_ufbx(path):
    """Return rate, takes, nodes, and their world places (T, n, 3) in the first take of an FBX file, in its units."""
    pytest.importorskip("ufbx")
    command = [sys.executable, "-c", _UFBX, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100)
    rate, takes, names, places = json.loads(done.stdout)
    return rate, takes, names, np.array(places)


def read_fbx(path, skeleton):
    """Return the joints of a new FBX file, which has the axes of the skeleton."""
    rate, _, names, places = by_ufbx(path)
    return names, places * 0.01 / (skeleton.meters_per_unit or 0.01), np.arange(len(places)) / rate


READERS = {
    ".glb": read_glb, ".gltf": read_glb, ".bvh": read_bvh, ".npz": read_npz, ".csv": read_csv,
    ".fbx": read_fbx, ".unitree.csv": read_unitree, ".isaac.npz": read_tracker, ".mujoco.npz": read_tracker,
    ".trajectory.json": read_trajectory, ".trajectory.yaml": read_trajectory,
}  # fmt: skip


def allowed(skeleton, places):
    """The difference between file and memory that counts as rounding."""
    return 1e-6 * (skeleton.size or 1.0) + 2.0**-23 * np.abs(places).max()


def differs(motion, path, read=None):
    """How far a file is from a motion, in units of what is allowed; infinite if joints, frames or times differ."""
    ending = next(end for end in sorted(READERS, key=len, reverse=True) if str(path).endswith(end))
    names, places, times = (read or READERS[ending])(path, motion.skeleton)
    number = {name: i for i, name in enumerate(names)}
    rows = [row for row, name in enumerate(motion.skeleton.joint_names) if name in number]
    inner = {row for row, joint in enumerate(motion.skeleton.joints[:-1]) if joint.body and not joint.channels}
    lost = set(range(len(motion.skeleton))) - set(rows) - inner
    if (lost and lost != {0}) or len(places) != len(motion):
        return np.inf
    if times is not None and np.abs(times - times[0] - motion.times).max(initial=0) > 1e-6 * max(motion.duration, 1):
        return np.inf
    rows = [row for row in rows if row not in inner]
    own = motion.positions()[:, rows]
    off = np.linalg.norm(own - places[:, [number[motion.skeleton.joint_names[row]] for row in rows]], axis=-1).max()
    return float(off / allowed(motion.skeleton, own))


# --- random bodies, clips and files -----------------------------------------------------------------------------------


def random_clip(skeleton, rng, frames=5, fps=30.0, *, stretched=False, far=0.0):
    """A clip of random poses; roots that are free go far away."""
    q = np.array([skeleton.random_pose(int(rng.integers(10**6))).q for _ in range(frames)])
    for row, joint in enumerate(skeleton.joints):
        if joint.kind is sy.Kind.FREE:
            place = skeleton.q_slice(row)
            q[:, place.start : place.start + 3] = rng.normal(size=(frames, 3)) + far
            q[:, place.start + 3 : place.stop] = Rotation.random(
                frames, random_state=int(rng.integers(10**6))
            ).as_quat()
    scale = rng.uniform(0.5, 1.5, size=(frames, len(skeleton), 3)) if stretched else None
    if scale is not None:
        scale[:, rng.random(len(skeleton)) < 0.6] = 1.0
    return sy.Motion(skeleton, q, fps, name="random", stretch=scale)


def random_body(rng, case):
    """A body of every kind of joint; some far from the origin, some moving freely, some with mimic joints."""
    body = random_tree(
        rng, joints=int(rng.integers(3, 12)), free=case % 2 == 0, mimic=case % 3 == 0, limits=case % 5 == 0
    )
    if case % 4 == 1:
        first = body.joints[0]
        rest = first.rest.copy()
        rest[:3, 3] += 10.0 ** rng.integers(1, 6)
        body = body.with_joints(
            [sy.Joint(first.name, None, first.kind, rest, axis=first.axis, limit=first.limit), *body.joints[1:]]
        )
    return body


def random_gltf(path, rng, case, count=7):
    """Write a glTF of random nodes: scaled, mirrored, uneven, with matrices, skins and clips that key everything."""
    kinds = ("none", "uniform", "mirrored", "armature", "uneven", "uneven mirrored")
    kind = kinds[case % len(kinds)]
    nodes = []
    for i in range(count):
        scale = {
            "none": np.ones(3), "uniform": np.full(3, rng.uniform(0.1, 3)),
            "mirrored": np.full(3, rng.uniform(0.5, 2)) * rng.choice([-1, 1], 3),
            "armature": rng.uniform(0.5, 2, 3) if i == 0 else np.ones(3),
            "uneven": rng.uniform(0.5, 2, 3) if i in (0, 2) else np.ones(3),
            "uneven mirrored": rng.uniform(0.5, 2, 3) * rng.choice([-1, 1], 3),
        }[kind]  # fmt: skip
        quat = Rotation.random(random_state=int(rng.integers(10**6))).as_quat()
        node = {
            "name": f"n{i}",
            "translation": rng.normal(size=3).tolist(),
            "rotation": quat.tolist(),
            "scale": scale.tolist(),
        }
        if i == 0 and case % 7 == 3:
            node["translation"] = (1e4 * rng.normal(size=3)).tolist()
        nodes.append(node)
    for i in range(1, count):
        parent = nodes[int(rng.integers(max(0, i - 2), i))]
        parent.setdefault("children", []).append(i)
    data, views, accessors, animations = bytearray(), [], [], []

    def add(values, kind):
        raw = np.asarray(values, "<f4")
        views.append({"buffer": 0, "byteOffset": len(data), "byteLength": raw.nbytes})
        data.extend(raw.tobytes())
        accessors.append({"bufferView": len(views) - 1, "componentType": 5126, "count": len(raw), "type": kind})
        return len(accessors) - 1

    for number in range(case % 3):  # 0 to 2 clips
        animation = {"name": f"clip{number}", "channels": [], "samplers": []}
        for i in range(count):
            for what in ("translation", "rotation", "scale"):
                if rng.random() < (0.6 if what == "rotation" else 0.15):
                    keys = np.arange(0, 6, int(rng.integers(1, 3))) / 30.0
                    if what == "translation":  # sometimes as small as the rounding of exporters
                        moves = rng.normal(size=(len(keys), 3)) * rng.choice([1.0, 1e-5])
                        values = np.array(nodes[i]["translation"]) + moves
                    elif what == "rotation":
                        values = Rotation.random(len(keys), random_state=int(rng.integers(10**6))).as_quat()
                    else:
                        values = np.array(nodes[i]["scale"]) * rng.uniform(0.5, 1.5, (len(keys), 3))
                    way = "STEP" if rng.random() < 0.2 else "LINEAR"
                    animation["channels"].append(
                        {"sampler": len(animation["samplers"]), "target": {"node": i, "path": what}}
                    )
                    animation["samplers"].append({
                        "input": add(keys[:, None], "SCALAR"), "interpolation": way,
                        "output": add(values, "VEC4" if what == "rotation" else "VEC3"),
                    })  # fmt: skip
        if animation["channels"]:
            animations.append(animation)
    content = {"asset": {"version": "2.0"}, "nodes": nodes, "scenes": [{"nodes": [0]}], "scene": 0}
    if animations:
        content["animations"] = animations
    if data:
        uri = "data:application/octet-stream;base64," + base64.b64encode(bytes(data)).decode()
        content |= {"buffers": [{"byteLength": len(data), "uri": uri}], "bufferViews": views, "accessors": accessors}
    if case % 2:
        content["skins"] = [{"joints": list(range(1, count))}]
    Path(path).write_text(json.dumps(content), encoding="utf-8")
    return path
