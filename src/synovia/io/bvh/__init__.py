"""BVH, the text format of motion capture: a hierarchy of offsets and channels, then numbers per frame."""

from synovia.io.base import Format
from synovia.io.bvh.read import looks_like, read_motions, read_skeleton
from synovia.io.bvh.write import write_bvh

FORMAT = Format("BVH", (".bvh",), looks_like, read_skeleton, read_motions, write_motion=write_bvh)

__all__ = ["FORMAT", "read_motions", "read_skeleton", "write_bvh"]
