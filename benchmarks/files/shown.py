"""Saved files in the programs that read them: every clip of a file after every other one, and keys on whole frames.

    python benchmarks/files/shown.py [--blender PYTHON] [--node FOLDER] [--only NAMES]

``--blender`` is an environment with ``pip install bpy``, ``--node`` a folder in which
``npm install three @pixiv/three-vrm @pixiv/three-vrm-animation`` was run. What is not given is left out. Twenty clips,
recordings of ../shared/data and of the examples and clips of characters, are written as a new GLB, into the GLB of a
character with clips of its own, as FBX, VRMA and BVH. Blender opens the files. It shows the clip that was written
first, and then each clip after each other one: what a clip does not key stays where the clip before has put it.
three-vrm plays the VRMA on two characters, one as large as the body, one smaller. Places of all joints are compared
with those in memory, relative to the size of the body (the largest distance between two of its joints at rest). A VRMA
holds only joints with a role; where others between them bend, the difference is that which a warning says.
"""

import argparse
import json
import re
import struct
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

FRAMES = 16  # of each clip that are compared
LONGEST = 150  # frames of a clip
AFTER = 2  # of them that are compared after each other clip
WHOLE = 2e-3  # of a frame: key times in single precision, after a thousand frames
CLOSE = 1e-4
SMALLER = 0.7  # size of the second character
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent)]
import fbx_out  # noqa: E402
import readers  # noqa: E402


def in_blender(source: str, rate: float, target: str) -> None:
    """Open a glTF file in Blender and write what it shows: names, clips, their keys in frames, and places."""
    import bpy

    bpy.ops.wm.read_factory_settings(use_empty=True)
    render = bpy.context.scene.render
    render.fps = round(rate)
    render.fps_base = rate / round(rate)  # the importer multiplies by it, where frames per second are divided by it
    bpy.ops.import_scene.gltf(filepath=source)
    actors = [one for one in bpy.data.objects if one.animation_data is not None and one.animation_data.nla_tracks]
    clips = list(dict.fromkeys(track.name for one in actors for track in reversed(one.animation_data.nla_tracks)))
    shown = sorted({one.animation_data.action.name for one in actors if one.animation_data.action is not None})
    nodes = [one for one in bpy.data.objects if one.type in ("EMPTY", "ARMATURE")]
    bones = [(rig, bone) for rig in nodes if rig.type == "ARMATURE" for bone in rig.pose.bones]
    names = [one.name for one in nodes] + [bone.name for _, bone in bones]

    def play(clip):
        for one in actors:  # as the importer does it, and its list of animations
            strips = [track.strips[0] for track in one.animation_data.nla_tracks if track.name == clip]
            if one.animation_data.action is not None and not strips:
                one.animation_data.action_slot = None
            one.animation_data.action = strips[0].action if strips else None
            if strips:
                one.animation_data.action_slot = strips[0].action_slot

    def places(key):
        bpy.context.scene.frame_set(int(key // 1), subframe=float(key % 1))
        own = [one.matrix_world.translation[:] for one in nodes]
        return np.array(own + [(rig.matrix_world @ bone.head)[:] for rig, bone in bones])

    keys, frames = [], []
    for clip in clips:
        play(clip)
        curves = []
        for action in {one.animation_data.action for one in actors} - {None}:
            curves += fbx_out.curves_of(action)
        found = np.unique([point.co[0] for curve in curves for point in curve.keyframe_points])
        keys.append(found)
        frames.append(found[np.unique(np.linspace(0, len(found) - 1, FRAMES).astype(int))])
    arrays = {}
    for number, clip in enumerate(clips):
        play(clip)
        arrays[f"keys{number}"], arrays[f"frames{number}"] = keys[number], frames[number]
        arrays[f"places{number}"] = np.array([places(key) for key in frames[number]])
    for one, before in enumerate(clips):
        for other, clip in enumerate(clips):
            if one != other:
                play(before)
                places(frames[one][len(frames[one]) // 2])
                play(clip)
                some = np.unique(np.linspace(0, len(frames[other]) - 1, AFTER).astype(int))
                arrays[f"after{one}_{other}"] = np.array([places(key) for key in frames[other][some]])
    np.savez(target, names=np.array(names), clips=np.array(clips), shown=np.array(shown), **arrays)


def in_blender_bvh(source: str, rate: float, target: str) -> None:
    """Open a BVH file in Blender at a frame rate, by whose seconds its keys lie; write its keys in frames."""
    import bpy

    bpy.ops.wm.read_factory_settings(use_empty=True)
    bpy.ops.preferences.addon_enable(module="io_anim_bvh")
    bpy.context.scene.render.fps, bpy.context.scene.render.fps_base = round(rate), round(rate) / rate
    bpy.ops.import_anim.bvh(filepath=source, frame_start=0, use_fps_scale=True, update_scene_fps=False)
    curves = fbx_out.curves_of(bpy.context.object.animation_data.action)
    keys = np.unique([point.co[0] for curve in curves for point in curve.keyframe_points])
    off = fbx_out.off_frames(keys, bpy.context.scene)
    names, places = readers.blender(source)
    np.savez(target, keys=np.array([off]), names=np.array(names), places=places)


def in_blender_fbx(source: str, rate: float, target: str) -> None:
    """Open an FBX file in Blender, which takes its rate; write what it shows."""
    fbx_out.in_blender(source, target)


if __name__ == "__main__" and sys.argv[1:2] == ["--in-blender"]:  # in an environment without the package
    how = {".glb": in_blender, ".vrma": in_blender, ".fbx": in_blender_fbx, ".bvh": in_blender_bvh}
    for name, rate in json.loads(sys.argv[2]):
        how[Path(name).suffix](name, rate, f"{name}.npz")
    sys.exit(0)

import run  # noqa: E402
from common import RESULTS, machine, needed_data, save, table, verdicts  # noqa: E402

import synovia as sy  # noqa: E402
from synovia.io.load import load_motions  # noqa: E402

WAYS = ("GLB", "GLB into", "FBX", "VRMA", "BVH")


def clips(data):
    """Yield (motion, character): ten recordings for the file of a character, ten clips of characters."""
    people = [data / "character" / name for name in ("mannequiny.glb", "greenman.glb")]
    recordings = [*sorted((data / "motion").glob("*.bvh")), HERE.parents[1] / "examples" / "walk.bvh"]
    for number, path in enumerate(recordings[:10]):
        yield sy.load_motion(path), people[number % 2]
    for path, count in zip(people, (7, 3), strict=True):
        for motion in load_motions(path)[:count]:
            yield motion, path


def sparse(path, into):
    """Write a copy of a GLB without meshes; half of its clips lose two of three channels, which then are at rest."""
    data = path.read_bytes()
    (length,) = struct.unpack_from("<I", data, 12)
    content, rest = json.loads(data[20 : 20 + length]), data[20 + length :]
    for number, animation in enumerate(content["animations"]):
        animation["channels"] = [c for k, c in enumerate(animation["channels"]) if number % 2 == 0 or k % 3 == 0]
    for node in content["nodes"]:
        node.pop("mesh", None), node.pop("skin", None)
    text = json.dumps(content).encode()
    text += b" " * (-len(text) % 4)
    into.write_bytes(data[:8] + struct.pack("<III", 20 + len(text) + len(rest), len(text), 0x4E4F534A) + text + rest)
    return into


def opened(python, files):
    """Have Blender open some files, each with a frame rate, and write what it shows beside them."""
    command = [python, __file__, "--in-blender", json.dumps([(str(path), rate) for path, rate in files])]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise SystemExit(f"Blender: {ran.stdout[-500:]}{ran.stderr[-500:]}")


def seen(path):
    """Return what Blender showed of a file."""
    with np.load(f"{path}.npz") as arrays:
        return dict(arrays)


def off_whole(keys):
    """Return how far keys are from whole frames, in frames."""
    return float(np.abs(keys - np.rint(keys)).max())


def differences(found, motions, size):
    """Return the largest distances of joints of all clips, and of all clips after each other one."""
    names, labels = found["names"].tolist(), found["clips"].tolist()
    worst = [0.0, 0.0]
    for number, label in enumerate(labels):
        motion = motions[label]
        joints = motion.skeleton.joint_names
        rows = [row for row, name in enumerate(joints) if names.count(name) == 1]
        columns = [names.index(joints[row]) for row in rows]
        first, keys = found[f"keys{number}"][0], found[f"frames{number}"]
        at = np.rint((keys - first) / found["rate"] * motion.fps).astype(int)
        own = motion.positions()[at][:, rows]
        own = np.stack([own[..., 0], -own[..., 2], own[..., 1]], -1)  # z is up
        some = np.unique(np.linspace(0, len(keys) - 1, AFTER).astype(int))
        off = np.linalg.norm(found[f"places{number}"][:, columns] - own, axis=-1).max()
        worst[0] = max(worst[0], float(off) / size)
        for other in range(len(labels)):
            if other != number:
                after = found[f"after{other}_{number}"][:, columns]
                worst[1] = max(worst[1], float(np.linalg.norm(after - own[some], axis=-1).max()) / size)
    return worst


def gltf_row(motion, path, source):
    """Return how a glTF file with a motion differs in Blender."""
    from synovia.io.gltf.fresh import file_frame

    frame = np.eye(4) if source is not None else file_frame(motion.skeleton)[0]
    unit = float(np.cbrt(np.linalg.det(frame[:3, :3])))
    found = seen(path) | {"rate": motion.fps}
    motions = {} if source is None else {one.name: one for one in load_motions(source)}
    motions[motion.name] = Turned(motion, frame[:3, :3])
    worst = differences(found, motions, run.size_of(motion.skeleton) * unit)
    whole = off_whole(found[f"keys{found['clips'].tolist().index(motion.name)}"])
    first = found["shown"].tolist() == [motion.name]
    return {"off": worst[0], "after": worst[1], "keys": whole, "opens": first, "clips": len(found["clips"])}


class Turned:
    """A motion in the axes and the unit of a file."""

    def __init__(self, motion, turn):
        """Keep both."""
        self.skeleton, self.fps = motion.skeleton, motion.fps
        self._places = motion.positions() @ turn.T

    def positions(self):
        """Return the places, (T, n, 3)."""
        return self._places


def fbx_row(motion, path):
    """Return how an FBX file differs in Blender."""
    told = Path(f"{path}.npz")
    with np.load(f"{told}.npz") as arrays:
        line = fbx_out.blenders(motion, json.loads(told.read_text()), arrays, range(len(motion.skeleton)))
    off = line["blender"] if isinstance(line["blender"], float) else float("inf")
    return {"off": off, "keys": line["keys"], "opens": line["take"] and line["blender rate"]}


def bvh_row(motion, path):
    """Return how a BVH file differs in Blender."""
    found = seen(path)
    off = run.compared(motion, found["names"].tolist(), found["places"])[1]
    return {"off": off, "keys": off_whole(found["keys"])}


def vrma_row(blender, node, motion, path, said):
    """Return how a VRMA differs in Blender, and on two characters in three-vrm."""
    rows = motion.skeleton.role_rows
    own = motion.positions()
    size, out = run.size_of(motion.skeleton), {}
    bones = sy.load_skeleton(path).roles
    kept = [role for role in bones if role in rows]
    own = own[:, [rows[role] for role in kept]]
    if blender:
        found = seen(path)
        names = found["names"].tolist()
        there = found["places0"][:, [names.index(bones[role]) for role in kept]]
        at = np.rint(found["frames0"]).astype(int)
        out |= {"keys": off_whole(found["keys0"]), "off": fitted(own[at], there)[0] / size}
    if node:
        at = np.unique(np.linspace(0, len(motion) - 1, FRAMES).astype(int))
        played = []
        for scale in (1.0, SMALLER):
            ran = subprocess.run(
                ["node", HERE / "vrm.mjs", node, path, str(scale), json.dumps((at / motion.fps).tolist()),
                 json.dumps([bones[role] for role in kept])],
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            if ran.returncode:
                raise SystemExit(f"three-vrm on {path}: {ran.stderr[-800:]}")
            played.append(np.array(json.loads(ran.stdout), float))
        off, scale, shift = fitted(own[at], played[0])
        apart = np.linalg.norm(played[1] - SMALLER * played[0], axis=-1).max() / (scale * size)
        out |= {"three-vrm": off / size, "smaller": float(apart), "shift": shift / size}
    warned = [float(text.split(" is ")[1].split(" ")[0]) for text in said if "The file differs: joint" in text]
    return out | {"said": warned[0] / size if warned else 0.0}


def fitted(own, seen):
    """Return the largest distance after one rotation, factor and shift of all places, the factor, and the shift.

    All in units of ``own``.

    References:
        S. Umeyama, *Least-Squares Estimation of Transformation Parameters Between Two Point Patterns*, 1991.
    """
    if not np.isfinite(seen).all():
        return float("inf"), 1.0, float("inf")
    a, b = own.reshape(-1, 3), seen.reshape(-1, 3)
    centre, other = a.mean(0), b.mean(0)
    u, s, vt = np.linalg.svd((b - other).T @ (a - centre))
    sign = np.array([1.0, 1.0, np.sign(np.linalg.det(u @ vt))])
    turn = (u * sign) @ vt
    factor = float((s * sign).sum() / ((a - centre) ** 2).sum())
    shift = other - factor * turn @ centre
    off = np.linalg.norm(factor * (a - centre) @ turn.T + other - b, axis=-1).max() / factor
    return float(off), factor, float(np.linalg.norm(shift)) / factor


def written(motion, path, **options):
    """Save a motion; return the sentences of its warnings, or None if it cannot be saved so."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            sy.save_motion(motion, path, force=True, **options)
        except sy.InputError as error:
            print(f"{path.name} of {motion.name}: {str(error)[-120:]}", file=sys.stderr)
            return None
    return [str(one.message) for one in caught]


def rows_of(motion, into, options, folder):
    """Return what Blender and three-vrm show of a motion in each kind of file, by kind."""
    out = {}
    if motion.skeleton.source.suffix in (".glb", ".gltf"):  # otherwise it would go into a copy of its file
        sy.save_motion(motion, folder / "alone.npz", force=True)
        motion = sy.load_motion(folder / "alone.npz")
    character = sy.load_skeleton(into)
    whole = set(character.joint_names) == set(motion.skeleton.joint_names)
    moved = motion if whole else sy.retarget(motion, character).motion
    moved = sy.Motion(moved.skeleton, moved.q, moved.fps, name="the new clip", stretch=moved.stretch)
    paths = {way: folder / f"clip{way[3:].strip()}.{way[:4].strip().lower()}" for way in WAYS}
    source = sparse(into, folder / into.name)
    for way in ("GLB", "FBX", "BVH"):
        written(motion, paths[way])
    written(moved, paths["GLB into"], into=source)
    standing, said = motion, written(motion, paths["VRMA"])
    if said is None:
        try:
            standing = sy.skeletons.stand_at_rest(motion)
            said = written(standing, paths["VRMA"])
        except sy.SynoviaError as error:
            print(f"{motion.name}: {error}", file=sys.stderr)
    if options.blender:
        opened(options.blender, [(path, motion.fps) for path in paths.values() if path.exists()])
        out["GLB"] = gltf_row(motion, paths["GLB"], None)
        out["GLB into"] = gltf_row(moved, paths["GLB into"], source)
        out["FBX"], out["BVH"] = fbx_row(motion, paths["FBX"]), bvh_row(motion, paths["BVH"])
    if said is not None:
        out["VRMA"] = vrma_row(options.blender, options.node, standing, paths["VRMA"], said)
    return out


def main():
    """Write, have read, compare, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--blender", help="interpreter with bpy")
    parser.add_argument("--node", type=Path, help="folder with node_modules")
    parser.add_argument("--only", default="", help="regular expression of the names of clips; other results are kept")
    options = parser.parse_args()
    where, rows, old = machine(), [], RESULTS / "files_shown.json"
    for motion, into in clips(needed_data()):
        motion = motion[:LONGEST]
        if re.search(options.only, motion.name):
            with tempfile.TemporaryDirectory() as folder:
                rows.append({"clip": motion.name, "frames": len(motion), "fps": motion.fps}
                            | rows_of(motion, into, options, Path(folder)))  # fmt: skip
            print(rows[-1], file=sys.stderr, flush=True)
    if options.only and old.exists():
        new = {row["clip"]: row for row in rows}
        kept = json.loads(old.read_text(encoding="utf-8"))["rows"]
        rows = [new.pop(row["clip"], row) for row in kept] + list(new.values())
    text, bars = [], []
    for way in WAYS:
        done = [(row, row[way]) for row in rows if way in row]
        keys = [key for key in _COLUMNS if any(key in found for _, found in done)]
        if not done:
            continue
        text.append(table(
            [f"{way}: clip", "frames", "fps", *(_COLUMNS[key] for key in keys)],
            [[row["clip"], row["frames"], f"{row['fps']:.5g}", *(_cell(found.get(key, "")) for key in keys)]
             for row, found in done],
        ))  # fmt: skip
        held = [all(_holds(key, found) for key in found) for _, found in done]
        bars.append((f"{way}: {sum(held)} of {len(held)} clips", all(held)))
    sys.argv = ["files/shown.py", "--blender", "...", "--node", "..."]
    lines, held = verdicts(bars)
    lines += (
        f"\n\nDistances are relative to the size of the body, and hold within {CLOSE:g}, or within what the warning of"
        " a VRMA says; keys within 0.002 frames. After: each clip of the file after each other one. Smaller: on a"
        f" character of {SMALLER:g} times the size. Shift: of the whole clip over the floor of the character."
    )
    save(
        "files_shown", "Saved files in the programs that read them", {"rows": rows}, "\n\n".join([*text, lines]), where
    )
    raise SystemExit(0 if held else 1)


_COLUMNS = {
    "clips": "clips", "opens": "shown first", "off": "Blender", "after": "after", "keys": "keys off frames",
    "three-vrm": "three-vrm", "smaller": "smaller", "shift": "shift", "said": "said",
}  # fmt: skip


def _cell(value):
    """Return a value as text."""
    return f"{value:.1e}" if isinstance(value, float) else str(value)


def _holds(key, found):
    """Return whether a value holds what is asked of it."""
    value = found[key]
    if key in ("clips", "said"):
        return True
    if key == "opens":
        return bool(value)
    return value <= (WHOLE if key == "keys" else max(CLOSE, 1.1 * found.get("said", 0.0)))


if __name__ == "__main__":
    main()
