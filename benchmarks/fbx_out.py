"""Writes clips and characters as FBX, and has Blender and ufbx show them.

    python benchmarks/fbx_out.py [FOLDER ...] [--blender PYTHON] [--into FILE.fbx ...]

Every clip of the folders (by default those of the shared data: motion/*.bvh and character/*) is written to a new FBX
file. ufbx evaluates it. Blender imports it, by a Python with the package ``bpy`` (such as
/opt/bpy/bin/python). Of both, the world places of all joints in all frames are compared with those of the motion, after
one rotation and one factor of the whole file, which the axes and the unit of the file give. Of Blender also the rate,
the names of bones and take, the weights of the skin, and the places of its vertices in five frames.

With ``--into``, random poses of the body in each of the files are written into a copy of it, and compared likewise.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

FRAMES = 5  # in which the vertices of skins are compared


def in_blender(source: str, target: str) -> None:
    """Import a file in Blender and write what it shows: JSON, and arrays beside it."""
    import bpy
    import numpy as np

    bpy.ops.wm.read_factory_settings(use_empty=True)
    bpy.ops.import_scene.fbx(filepath=source)
    scene = bpy.context.scene
    armatures = [one for one in bpy.data.objects if one.type == "ARMATURE"]
    rig = max(armatures, key=lambda one: len(one.data.bones), default=None)  # None: all nodes are objects
    actors = list(bpy.data.objects) if rig is None else [rig]
    actions = [one.animation_data.action for one in actors if one.animation_data is not None]
    curves = [curve for action in actions for curve in curves_of(action)]
    keys = sorted({round(float(key.co[0]), 4) for curve in curves for key in curve.keyframe_points})
    names = [bone.name for bone in (actors if rig is None else rig.data.bones)]
    meshes = [
        one for one in bpy.data.objects if one.type == "MESH" and any(m.type == "ARMATURE" for m in one.modifiers)
    ]
    chosen = set(np.linspace(0, len(keys) - 1, FRAMES).astype(int).tolist()) if meshes else set()
    places = np.empty((len(keys), len(names), 3))
    arrays = {}
    for number, key in enumerate(keys):
        scene.frame_set(int(key), subframe=key - int(key))
        if rig is None:
            places[number] = [np.array(one.matrix_world)[:3, 3] for one in actors]
        else:
            world = np.array(rig.matrix_world)
            heads = np.array([rig.pose.bones[name].head[:] for name in names])
            places[number] = heads @ world[:3, :3].T + world[:3, 3]
        if number in chosen:
            graph = bpy.context.evaluated_depsgraph_get()
            for which, mesh in enumerate(meshes):
                seen = mesh.evaluated_get(graph)
                points = np.empty(3 * len(seen.data.vertices), np.float32)
                seen.data.vertices.foreach_get("co", points)
                world = np.array(seen.matrix_world)
                arrays[f"vertices{which}_{number}"] = points.reshape(-1, 3) @ world[:3, :3].T + world[:3, 3]
    for which, mesh in enumerate(meshes):
        groups = [group.name for group in mesh.vertex_groups]
        weights = np.zeros((len(mesh.data.vertices), len(groups)))
        for vertex in mesh.data.vertices:
            for group in vertex.groups:
                weights[vertex.index, group.group] = group.weight
        arrays[f"weights{which}"] = weights
    said = {
        "rate": scene.render.fps / scene.render.fps_base, "names": names,
        "off frames": float(off_frames(np.array(keys or [0.0]), scene)),
        "takes": [one.name for one in bpy.data.actions],
        "take": actions[0].name if actions else "",
        "roots": sum(bone.parent is None for bone in (actors if rig is None else rig.data.bones)),
        "meshes": [[mesh.name, [group.name for group in mesh.vertex_groups]] for mesh in meshes],
        "textures": len(bpy.data.images), "materials": [
            [one.name, list(one.diffuse_color)] for one in bpy.data.materials
        ],
    }  # fmt: skip
    Path(target).write_text(json.dumps(said), encoding="utf-8")
    np.savez(target + ".npz", places=places, **arrays)


def curves_of(action):
    """Return the curves of an action of Blender, whose actions have layers since version 4.4."""
    if hasattr(action, "fcurves"):
        return list(action.fcurves)
    bags = [bag for layer in action.layers for strip in layer.strips for bag in strip.channelbags]
    return [curve for bag in bags for curve in bag.fcurves]


def off_frames(keys, scene):
    """Return how far keys are from whole frames; importers of Blender count frames of whole rates, 30 for 29.97."""
    passed = (keys - keys[0]) / scene.render.fps_base
    return max(abs(keys[0] - round(keys[0])), abs(passed - passed.round()).max())


def in_ufbx(source: str, target: str) -> None:
    """Write the names of the nodes, and their world places in all frames, as ufbx evaluates the first take."""
    import numpy as np
    import ufbx

    from synovia.io.fbx.unpack import _held

    scene = ufbx.load_file(source)
    take = _held(scene.anim_stacks[0])
    rate = scene.settings.frames_per_second
    count = round((take.time_end - take.time_begin) * rate) + 1
    nodes = [_held(node) for node in scene.nodes]
    places = np.empty((count, len(nodes), 3))
    anim, begin, kept = _held(take.anim), take.time_begin, []
    for frame in range(count):
        seen = ufbx.evaluate_scene(scene, anim, begin + frame / rate)
        nodes = [_held(node) for node in seen.nodes]
        kept.append((seen, nodes))
        places[frame] = [node.node_to_world.c3 for node in nodes]
    said = {
        "rate": rate,
        "names": [node.name for node in nodes],
        "takes": [_held(one).name for one in scene.anim_stacks],
    }
    Path(target).write_text(json.dumps(said), encoding="utf-8")
    np.savez(target + ".npz", places=places)
    os._exit(0)  # the end of the interpreter would free elements twice


def shown(python: str, how: str, path: Path, told: Path):
    """Return what a program shows of a file; or what it said, if it failed."""
    import numpy as np

    done = subprocess.run([python, __file__, how, path, told], capture_output=True, text=True, check=False)
    if not told.exists():
        return done.stdout[-300:] + done.stderr[-300:], None
    said = json.loads(told.read_text(encoding="utf-8"))
    told.unlink()
    return said, np.load(f"{told}.npz")


def compared(motion, path, name, blender, folder):
    """Return one line of the table: how a written file differs from a motion, by each reader."""
    import numpy as np

    from synovia.io.fbx.document import read_document

    skeleton = motion.skeleton
    names, told = skeleton.joint_names, folder / "told.json"
    row = {"file": name, "frames": len(motion), "joints": len(skeleton), "bytes": path.stat().st_size}
    document = read_document(path)
    own, size = in_metres(motion)
    said, arrays = shown(sys.executable, "--in-ufbx", path, told)
    if arrays is None:
        return row | {"ufbx": said}
    found = {joint: at for at, joint in enumerate(said["names"])}
    row["names"] = {name for name in names[1:] if not name.endswith(" scale")} <= found.keys()
    twice = {joint for joint in names if names.count(joint) > 1 or said["names"].count(joint) > 1}
    shared = [at for at, joint in enumerate(names) if joint in found and joint not in twice]
    row["rate"] = abs(said["rate"] / motion.fps - 1.0) < 1e-6
    row["takes"] = said["takes"]
    there = arrays["places"][:, [found[names[at]] for at in shared]] @ document.axes.T * document.meters_per_unit
    row["ufbx"] = f"{len(there)} frames"
    if len(there) == len(motion):
        row["ufbx"] = float(np.abs(there - own[:, shared]).max() / size)
    if blender is None:
        return row
    began = time.perf_counter()
    said, arrays = shown(blender, "--in-blender", path, told)
    if arrays is None:
        return row | {"blender": said}
    row["seconds"] = round(time.perf_counter() - began, 1)
    return row | blenders(motion, said, arrays, shared)


def in_metres(motion):
    """Return the places of joints in metres with y up, (T, n, 3), and the size of the body."""
    import numpy as np

    from synovia.io.fbx.document import axes_for
    from synovia.io.nodes.lengths import unit_of

    unit = unit_of(motion.skeleton, 0.01).meters
    own = motion.positions() @ axes_for(motion.skeleton.up or "y").T * unit
    size = max((motion.skeleton.size or 1.0) * unit, float(np.ptp(own, axis=(0, 1)).max()))  # a body may be one point
    return own, size


def blenders(motion, said, arrays, shared):
    """Return how a file differs from a motion in Blender, from what ``in_blender`` wrote, for some joints."""
    import numpy as np

    row, names, (own, size) = {}, motion.skeleton.joint_names, in_metres(motion)
    place = {joint: at for at, joint in enumerate(said["names"])}
    missing = [at for at in shared if names[at] not in place]
    kept = [at for at in shared if names[at] in place]
    upright = np.stack([own[..., 0], -own[..., 2], own[..., 1]], -1)  # Blender's z is up
    seen = arrays["places"][:, [place[names[at]] for at in kept]]
    if len(seen) == len(motion):
        row["blender"] = float(np.abs(seen - upright[:, kept]).max() / size)
    else:
        row["blender"] = f"{len(seen)} frames"
    row["no bones"] = [names[at] for at in missing][:4]
    row["blender rate"] = abs(said["rate"] / motion.fps - 1.0) < 1e-5
    row["take"] = motion.name in said["take"]
    row["keys"] = said["off frames"]
    row["roots"] = said["roots"]
    row |= skins(motion, said, arrays, size)
    return row


def skins(motion, said, arrays, size):
    """Return how the skin in Blender differs from that of a glTF character."""
    import numpy as np

    from synovia.io.gltf.skins import read_skin
    from synovia.model.geometry import frames_to_transforms

    source = motion.skeleton.source
    if not said["meshes"] or source is None or source.suffix not in (".glb", ".gltf"):
        return {}
    skin = read_skin(source)
    rows = {name: at for at, name in enumerate(motion.skeleton.joint_names)}
    rest = frames_to_transforms(motion.skeleton.rest_pose().frames)
    weights_off = vertices_off = 0.0
    rigid = motion.stretch is None
    for mesh in skin.meshes:
        which = next(k for k, (name, _) in enumerate(said["meshes"]) if name.startswith(mesh.name[:50]))
        groups, weights = said["meshes"][which][1], arrays[f"weights{which}"]
        own = np.zeros((len(mesh.vertices), len(mesh.rows)))
        np.add.at(own, (np.arange(len(own))[:, None], mesh.bones), mesh.weights)
        names = [skin.names[row] for row in mesh.rows]
        for number, name in enumerate(names):
            seen = weights[:, groups.index(name)] if name in groups else np.zeros(len(own))
            weights_off = max(weights_off, float(np.abs(seen - own[:, number]).max()))
        joints = [rows[name] for name in names]
        each = np.array([np.linalg.inv(rest[rows[skin.names[row]]]) @ skin.worlds[row] for row in mesh.rows])
        each = each @ mesh.binds
        own /= own.sum(1, keepdims=True)
        for key in arrays.files if rigid else ():
            if key.startswith(f"vertices{which}_"):
                frame = int(key.partition("_")[2])
                moves = frames_to_transforms(motion.frames()[frame])[joints] @ each
                points = np.einsum("bij,vj->vbi", moves[:, :3, :3], mesh.vertices) + moves[:, :3, 3]
                places = np.einsum("vb,vbi->vi", own, points)
                places = np.stack([places[:, 0], -places[:, 2], places[:, 1]], -1)
                vertices_off = max(vertices_off, float(np.abs(places - arrays[key]).max() / size))
    out = {
        "weights": weights_off,
        "meshes": len(skin.meshes),
        "textures": said["textures"],
        "materials": said["materials"][:2],
    }
    return out | ({"vertices": vertices_off} if rigid else {})


def main() -> int:
    """Print the table, and return 1 if a file misses the bars."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--blender", help="a Python with the package bpy")
    parser.add_argument("--into", nargs="*", default=[], type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--in-blender", nargs=2)
    parser.add_argument("--in-ufbx", nargs=2)
    args = parser.parse_args()
    if args.in_ufbx:
        in_ufbx(*args.in_ufbx)
    if args.in_blender:
        in_blender(*args.in_blender)
        return 0
    from common import data_folder

    import synovia as sy
    from synovia.errors import SynoviaError
    from synovia.io.load import load_motions

    folders = args.folders or ([] if args.into else [data_folder() / "motion", data_folder() / "character"])
    found = sorted(path for folder in folders for path in ([folder] if folder.is_file() else folder.iterdir()))
    bad = 0
    with TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(name)
        for path in found:
            if args.only not in path.name:
                continue
            for number, motion in enumerate(load_motions(path)):
                target = folder / f"{path.stem}_{number}.fbx"
                began = time.perf_counter()
                try:
                    sy.save_motion(motion, target, force=True)
                except SynoviaError as error:
                    print(f"{path.name} {motion.name} cannot be written: {str(error)[-150:]}")
                    continue
                wrote = time.perf_counter() - began
                line = compared(motion, target, f"{path.name} {motion.name}", args.blender, folder)
                bad += tell(line | {"write": round(wrote, 2)})
        for path in sorted(args.into):
            try:
                body = sy.load_skeleton(path)
            except SynoviaError as error:
                print(f"{path.name} cannot be read: {str(error)[-150:]}")
                continue
            motions = [wild(body)]
            try:
                motions += load_motions(path)
            except SynoviaError as error:
                print(f"takes of {path.name} cannot be read: {str(error)[-150:]}")
            for motion in motions:
                target = folder / path.name
                try:
                    sy.save_motion(motion, target, force=True)
                except SynoviaError as error:
                    print(f"{path.name} cannot be written to: {str(error)[-150:]}")
                    continue
                bad += tell(compared(motion, target, f"into {path.name}", args.blender, folder))
    print(f"{bad} missed the bars")
    return int(bad > 0)


def wild(body):
    """Return a motion of random poses, in which every joint that can move does, and the whole body too."""
    import numpy as np

    import synovia as sy

    moving = body.with_root("free")
    rng = np.random.default_rng(1)
    poses = [moving.rest_pose().q, *(moving.random_pose(seed).q for seed in range(4))]
    q = np.array(poses)
    for row, joint in enumerate(moving.joints):
        if joint.kind is sy.Kind.FREE:
            at = moving.q_slice(row).start
            q[1:, at : at + 3] += rng.normal(size=(4, 3)) * 0.3 * (body.size or 1.0)
    return sy.Motion(moving, q, 25.0, name="wild")


def tell(line) -> int:
    """Print a line, and return whether it misses the bars."""

    def text(value):
        return f"{value:.2g}" if isinstance(value, float) else str(value)

    print("  ".join(f"{key}={text(value)}" for key, value in line.items()), flush=True)
    far = [value for key in ("ufbx", "blender", "vertices") if (value := line.get(key)) is not None]
    right = all(line.get(key, True) for key in ("names", "rate", "blender rate", "take"))
    return int(not right or any(not isinstance(value, float) or value > 1e-5 for value in far))


if __name__ == "__main__":
    sys.exit(main())
