"""``retarget``: a motion of one body for another, character or robot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from synovia.errors import InputError
from synovia.ik.parallel import Progress
from synovia.kernels.layout import BLOCK, BLOCK_Q, TURN
from synovia.model import Skeleton
from synovia.model.geometry import Array, same_side
from synovia.model.motion import Motion
from synovia.model.pose import world_frames
from synovia.retargeting.alignment import Part, align
from synovia.retargeting.body import Body
from synovia.retargeting.feet import Spans, foot_paths, placed
from synovia.retargeting.transfer import follow


@dataclass(frozen=True, eq=False)
class Retargeted:
    """A motion carried over to another body, and how that went.

    Args:
        motion: The motion of the target; its skeleton has a free root.
        parts: The parts that were matched, with the turn between the two rest poses.
        source: The body that moved.
        target: The body that follows.
        scale: Length of the target's legs over that of the source's: lengths of the path are multiplied by it.
        contacts: Frames (first, past the last) in which each foot stands, by role.
        missed_frames: Frames in which a foot could not be brought to where it belongs.
        worst: Largest distance of a foot from where it belongs, length units of the target.
    """

    motion: Motion
    parts: tuple[Part, ...]
    source: Body
    target: Body
    scale: float
    contacts: Mapping[str, Spans]
    missed_frames: tuple[int, ...]
    worst: float

    def __repr__(self) -> str:
        """Return the motion, how many parts were matched, and how many frames were missed."""
        return f"Retargeted({self.motion!r}, {len(self.parts)} parts, {len(self.missed_frames)} frames missed)"

    def joint_map(self) -> dict[str, tuple[str, str]]:
        """Return the names of the matched joints, (source, target) by role, as ``retarget`` takes them."""
        names = self.source.skeleton.joint_names, self.target.skeleton.joint_names
        return {part.role: (names[0][part.source], names[1][part.target]) for part in self.parts}

    def report(self) -> str:
        """Return what was matched, how the rest poses differ, the scale, the contacts and the misses, as text."""
        rows = [(part.role, *self.joint_map()[part.role], f"{np.degrees(part.angle):.0f}°") for part in self.parts]
        table = [("part", "source", "target", "rest poses differ"), *rows]
        widths = [max(len(row[k]) for row in table) for k in range(4)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table
        ]
        lines.append(
            f"scale {self.scale:.4g} (length of the legs), {len(self.motion)} frames at {self.motion.fps:g} fps"
        )
        for role, spans in self.contacts.items():
            lines.append(f"{role} stands {len(spans)} times, {sum(b - a for a, b in spans)} frames")
        unit = " m" if self.target.skeleton.meters_per_unit == 1.0 else ""
        far = f"feet within {self.worst:.2g}{unit} of where they belong"
        if self.missed_frames:
            far = f"{far}; {len(self.missed_frames)} frames missed: {_listed(self.missed_frames)}"
        lines.append(far)
        return "\n".join(lines)


def _listed(frames: tuple[int, ...]) -> str:
    """Return the first few frames as text."""
    return ", ".join(map(str, frames[:10])) + (", ..." if len(frames) > 10 else "")


def retarget(
    motion: Motion,
    skeleton: Skeleton,
    joint_map: Mapping[str, tuple[Any, Any]] | None = None,
    *,
    feet: bool = True,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Retargeted:
    """Carry a motion over to another body, character or robot, within its limits.

    Joints are matched by roles, names and shape. Each matched part turns as the source's does, measured from rest
    poses that are laid over each other; hinges of a robot come as near as their axes and limits let them. The path of
    the hips is scaled by the length of the legs; then the feet are put where they belong: still while they stand, on
    the ground of the target (height 0), with the least change of the pose, and with the hands where they were.

    Args:
        motion: The motion.
        skeleton: The body that shall move; a free joint is put before it where it has none.
        joint_map: (source joint, target joint) by role instead of the automatic match. Roles as in VRM, in snake case;
            others are carried over too. ``Retargeted.joint_map()`` is one to begin with.
        feet: Whether feet are kept on the ground.
        threads: Number of threads for the feet; None for all cores. The bits are the same.
        progress: Called with (steps done, all); a frame is two steps.

    Raises:
        InputError: If a body has no hips or legs, or the two have no part in common.
        UnknownNameError: If the map names a joint that does not exist.
    """
    if not len(motion):
        raise InputError("the motion has no frames", where=motion.name, expected="at least one")
    moving = skeleton.with_root("free")
    if joint_map is None:
        source, target = Body.of(motion.skeleton), Body.of(moving)
    else:
        source = Body(motion.skeleton, {role: motion.skeleton.index(pair[0]) for role, pair in joint_map.items()})
        target = Body(moving, {role: moving.index(pair[1]) for role, pair in joint_map.items()})
    roles = [role for role in target.roles if role in source.roles and target.turns(role)]
    parts = align(source, target, roles)
    passes = 2 if feet else 1
    q = follow(motion, source, target, parts, _pass_of(progress, 0, passes))
    paths = foot_paths(source, target, motion.frames(), world_frames(moving, q), motion.fps) if feet else {}
    missed: tuple[int, ...] = ()
    worst = 0.0
    if paths:
        where = {role: path for role, (path, _) in paths.items()}
        q, off, tolerance = placed(target, q, where, threads, _pass_of(progress, 1, passes))
        worst = float(off.max())
        missed = tuple(np.flatnonzero((off > tolerance).any(1)).tolist())
    return Retargeted(
        Motion(moving, _nearest_signs(q, moving), motion.fps, name=f"{motion.name} on {skeleton.name}"),
        parts=tuple(parts),
        source=source,
        target=target,
        scale=target.leg / source.leg,
        contacts={role: spans for role, (_, spans) in paths.items()},
        missed_frames=missed,
        worst=worst,
    )


def _pass_of(progress: Progress | None, number: int, passes: int) -> Progress | None:
    """Return the report of one of several passes over all frames."""
    if progress is None:
        return None
    tell = progress

    def one(done: int, of: int) -> None:
        """Tell of all passes."""
        tell(number * of + done, passes * of)

    return one


def _nearest_signs(q: Array, skeleton: Skeleton) -> Array:
    """Return joint values whose quaternions keep their sign from frame to frame, so that they can be interpolated."""
    t = skeleton.tables
    for at in t.variables[t.variables[:, BLOCK] == TURN, BLOCK_Q]:
        q[:, at : at + 4] = same_side(q[:, at : at + 4])
    return q
