"""Joint positions of a BVH file as another program reads them; runs in that program's own environment.

    PYTHON readers.py bvhio|pymotion|blender clip.bvh out.npz

Writes ``names`` (n,) and ``places`` (T, n, 3) in the file's own unit and axes. Needs nothing of Synovia.
"""

import sys
from pathlib import Path

import numpy as np


def bvhio(path):
    """Read with bvhio."""
    import bvhio as library

    root = library.readAsHierarchy(path)
    joints = [joint for joint, _, _ in root.layout()]
    frames = root.getKeyframeRange()
    places = np.empty((frames[1] - frames[0] + 1, len(joints), 3))
    for t in range(len(places)):
        root.loadPose(frames[0] + t)
        for k, joint in enumerate(joints):
            place = joint.PositionWorld
            places[t, k] = place.x, place.y, place.z
    return [joint.Name for joint in joints], places


def pymotion(path):
    """Read with PyMotion; its own forward kinematics."""
    from pymotion.io.bvh import BVH
    from pymotion.ops.skeleton import fk

    bvh = BVH()
    bvh.load(path)
    rotations, positions, parents, _, _, _ = bvh.get_data()
    places, _ = fk(rotations, positions[:, 0], positions, parents)  # every joint's own, as frames may move any of them
    return list(bvh.data["names"]), np.asarray(places, np.float64)


def blender(path):
    """Read with Blender's importer, without its change of axes."""
    import bpy

    bpy.ops.wm.read_factory_settings(use_empty=True)
    bpy.ops.preferences.addon_enable(module="io_anim_bvh")
    bpy.ops.import_anim.bvh(
        filepath=path, axis_forward="Y", axis_up="Z", frame_start=1, use_fps_scale=False, rotate_mode="NATIVE"
    )
    body = bpy.context.object
    last = round(body.animation_data.action.frame_range[1])
    bones = list(body.pose.bones)
    places = np.empty((last, len(bones), 3))
    for t in range(last):
        bpy.context.scene.frame_set(t + 1)
        for k, bone in enumerate(bones):
            places[t, k] = body.matrix_world @ bone.head
    return [bone.name for bone in bones], places


def main():
    """Read one file."""
    name, path, out = sys.argv[1:]
    names, places = {"bvhio": bvhio, "pymotion": pymotion, "blender": blender}[name](str(Path(path).resolve()))
    np.savez(out, names=np.array(names), places=places)


if __name__ == "__main__":
    main()
