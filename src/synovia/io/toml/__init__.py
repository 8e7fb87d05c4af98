"""Synovia's text format for skeletons, ``synovia.skeleton/1``: lossless TOML that people can write by hand.

    schema = "synovia.skeleton/1"
    name = "finger"
    meters_per_unit = 1.0

    [[joint]]
    name = "knuckle"
    kind = "ball"               # fixed, hinge, slide, ball or free
    bone = [0, 1, 0]            # direction of the bone at rest: the twist axis of the limits
    x_axis = [1, 0, 0]          # axis of swing_x; swing_y is about bone × x_axis
    swing_x_deg = [-30, 90]     # at most 180 each; without this key, there is no limit
    swing_y_deg = [-15, 15]
    twist_deg = [0, 0]

    [[joint]]
    name = "middle"
    parent = "knuckle"
    kind = "hinge"
    position = [0, 0.04, 0]     # in the parent's frame, at rest
    rpy_deg = [0, 0, 0]         # about the parent's x, then y, then z axis; or rotation_xyzw, a unit quaternion
    axis = [1, 0, 0]
    limit_deg = [0, 100]
    preferred_deg = 10

Angles are in radians, or in degrees under the same key with ``_deg``. Further keys of a joint: ``stiffness``,
``velocity`` (its limit), ``mass`` (kg), ``com``, ``body``, ``role``, ``tip``, ``frame`` (nine numbers, the rows of a
rotation matrix) in place of ``bone``, ``channels`` (the channels of the joint in a BVH file), ``bind_xyzw`` (its
orientation relative to the parent in the bind pose of the skin), ``sites = [{ name = "tcp", position = [0, 0, 0.1] }]``
(named frames on its body, rotated by ``rpy`` or ``rotation_xyzw``), ``shapes`` (of its body, in the joint's frame, with
the same rotation keys. The kinds are the names of the solids in ``model.shapes.solids``, and the other keys are their
arguments: ``shapes = [{ kind = "capsule", a = [0, 0, 0], b = [0, 0.04, 0], radius = 0.01 }]``), ``shapes_lost = true``
(the original file has shapes of its body that could not be read), and ``mimic = { leader = "...", ratio = 1, offset =
0, binds = false }`` (``binds``: whether the limits of this joint also restrict its leader). The head may have
``notes``: sentences about parts of the original file that were not kept, and ``excluded_pairs``: pairs of names of
joints or links whose shapes may touch. A joint without ``parent`` is a root. If names repeat, ``parent`` may be the
number of the joint in the file, from 0. Loops and couplings are the tables ``[[loop]]`` and ``[[coupling]]`` of
``loops.py``. Unknown keys cause an error. Worlds have the format of ``world.py``.
"""

from synovia.io.base import Contents, Format
from synovia.io.toml.read import looks_like, parse_skeleton, read_skeleton
from synovia.io.toml.write import skeleton_text, write_skeleton

FORMAT = Format(
    "Synovia TOML",
    (".toml",),
    looks_like,
    lambda path: Contents(read_skeleton(path)),
    write=write_skeleton,
    companions=lambda path: [path.with_suffix(".glb")],  # file of the surface
    keeps="all data of a skeleton, for models written by hand",
)

__all__ = ["FORMAT", "parse_skeleton", "read_skeleton", "skeleton_text", "write_skeleton"]
