"""Synovia's own text format for skeletons, ``synovia.skeleton/1``: TOML that a person can write and nothing is lost in.

    schema = "synovia.skeleton/1"
    name = "finger"
    meters_per_unit = 1.0

    [[joint]]
    name = "knuckle"
    kind = "ball"               # fixed, hinge, slide, ball or free
    bone = [0, 1, 0]            # direction of the bone at rest: the twist axis of the limits
    x_axis = [1, 0, 0]          # what swing_x turns about; swing_y turns about bone × x_axis
    swing_x_deg = [-30, 90]     # at most 180 each; what is not named is free
    swing_y_deg = [-15, 15]
    twist_deg = [0, 0]

    [[joint]]
    name = "middle"
    parent = "knuckle"
    kind = "hinge"
    position = [0, 0.04, 0]     # in the parent's frame, at rest
    rpy_deg = [0, 0, 0]         # turns about the parent's x, then y, then z axis; or rotation_xyzw, a unit quaternion
    axis = [1, 0, 0]
    limit_deg = [0, 100]
    preferred_deg = 10

Angles are radians, or degrees under the same key with ``_deg``. Also understood: ``stiffness``, ``mass`` (kg),
``com``, ``mimic = { leader = "...", ratio = 1, offset = 0, binds = false }`` (``binds``: whether the joint's own limits
narrow those of its leader), ``body``, ``role``, ``tip``, and ``frame`` (nine numbers, the rows of a rotation matrix) in
place of ``bone``; ``channels`` keeps what a BVH file animates of a joint. ``notes``, in the head: sentences about what
was not kept of the file that the model was made from. A joint without parent is a root; where names repeat, ``parent``
may be the joint's number in the file, from 0. Keys that are not known are refused.
"""

from synovia.io.base import Format
from synovia.io.toml.read import looks_like, parse_skeleton, read_skeleton
from synovia.io.toml.write import skeleton_text, write_skeleton

FORMAT = Format("Synovia TOML", (".toml",), looks_like, read_skeleton, write_skeleton=write_skeleton)

__all__ = ["FORMAT", "parse_skeleton", "read_skeleton", "skeleton_text", "write_skeleton"]
