"""Read and write BVH, a text format of motion capture: a hierarchy with channels, then one line of values per frame."""

from __future__ import annotations

from pathlib import Path

from synovia.io.base import Format, Shown
from synovia.io.bvh.read import looks_like, read
from synovia.io.bvh.write import rows_in_order, write_bvh
from synovia.model.motion import Motion
from synovia.text import counted


def _shown(path: Path, motion: Motion) -> Shown:
    """Return the joint positions of a motion in a file, matched by order, because names may be changed."""
    rows = rows_in_order(motion)
    (back,) = read(path).motions()
    joints = back.skeleton.joints
    last = [row for row, joint in enumerate(joints) if joint.body is None or joint.channels is not None]
    problems = (
        () if len(last) == len(rows) else (f"The file has {counted(len(last), 'joint')} instead of {len(rows)}.",)
    )
    count = min(len(last), len(rows))
    return Shown(rows[:count], back.positions()[:, last[:count]], back.times, problems)


FORMAT = Format(
    "BVH", (".bvh",), looks_like, read, write_bvh, holds_motions=True, shown=_shown,
    keeps="hierarchy, channels in any order, positions and rotations of every joint, rate",
)  # fmt: skip

__all__ = ["FORMAT", "write_bvh"]
