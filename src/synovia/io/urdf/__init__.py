"""Read URDF, the robot description format of ROS."""

from typing import Final

from synovia.io.base import Contents, Format
from synovia.io.urdf.read import companions, read_skeleton
from synovia.io.xmltree import root_is

FORMAT: Final = Format(
    "URDF",
    (".urdf", ".xacro"),
    lambda head: root_is("robot", head),
    lambda path: Contents(read_skeleton(path)),
    read_with=lambda path, pairs: Contents(read_skeleton(path, pairs)),
    companions=companions,
    keeps="links, all joint types, limits, velocity limits, mimic, masses, collision shapes;"
    " meshes are shown on the live page and in pictures; sources of xacro where `xacro` is installed",
)

__all__ = ["FORMAT"]
