"""MJCF, the models of MuJoCo, compiled by the ``mujoco`` package, an extra."""

from typing import Final

from synovia.io.base import Format
from synovia.io.mjcf.model import read_skeleton
from synovia.io.xmltree import root_is

FORMAT: Final = Format("MJCF", (".mjcf", ".xml"), lambda head: root_is("mujoco", head), read_skeleton)

__all__ = ["FORMAT"]
