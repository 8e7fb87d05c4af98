"""BVH, the text format of motion capture: a hierarchy of offsets and channels, then one line of numbers per frame."""

from synovia.io.base import Format
from synovia.io.bvh.read import looks_like, read
from synovia.io.bvh.write import write_bvh

FORMAT = Format("BVH", (".bvh",), looks_like, read, write_bvh, holds_motions=True)

__all__ = ["FORMAT", "write_bvh"]
