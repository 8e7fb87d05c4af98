"""Read MJCF, MuJoCo's model format, with the optional package ``mujoco`` as compiler."""

from typing import Final

from synovia.io.base import Contents, Format
from synovia.io.mjcf.files import companions
from synovia.io.mjcf.model import read_skeleton
from synovia.io.xmltree import root_is

FORMAT: Final = Format(
    "MJCF",
    (".mjcf", ".xml"),
    lambda head: root_is("mujoco", head),
    lambda path: Contents(read_skeleton(path)),
    companions=companions,
    keeps="bodies, joints, ranges, masses, sites as frames that goals can name, loops and couplings, shapes; meshes may"
    " be missing",
    extra="mujoco",
)

__all__ = ["FORMAT"]
