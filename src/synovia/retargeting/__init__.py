"""Motions carried over from one body to another."""

from synovia.retargeting.mapfile import read_map, write_map
from synovia.retargeting.retarget import Retargeted, retarget

__all__ = ["Retargeted", "read_map", "retarget", "write_map"]
