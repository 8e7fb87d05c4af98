"""Additive motions: the difference of a clip from a base, which can be added to other clips."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from synovia.errors import InputError
from synovia.model import Skeleton
from synovia.model.geometry import Array
from synovia.text import counted


@dataclass(frozen=True, slots=True, eq=False)
class Additive:
    """The difference of a clip from a base; ``Motion.additive`` computes it, and ``Motion.with_added`` adds it.

    Args:
        skeleton: The skeleton.
        steps: Differences in each frame, (T, k): first of scalars in q (radians, length units), then rotation vectors,
            each in the frame of its joint.
        fps: Frames per second.
        name: Name of the clip.

    Example:
        >>> import synovia as sy
        >>> arm = sy.bundled("arm7")
        >>> wave = sy.Motion(arm, [arm.random_pose(k).q for k in range(3)], 30.0)
        >>> wave.additive(wave[0])
        Additive('motion', 3 frames at 30 fps, 'arm7')
    """

    skeleton: Skeleton
    steps: Array
    fps: float
    name: str

    def __post_init__(self) -> None:
        """Make the array read-only."""
        self.steps.setflags(write=False)

    def __len__(self) -> int:
        """Return the number of frames."""
        return len(self.steps)

    def __repr__(self) -> str:
        """Return name, frames and rate."""
        return f"Additive({self.name!r}, {counted(len(self), 'frame')} at {self.fps:g} fps, {self.skeleton.name!r})"


class _Clip(Protocol):
    """The parts of a motion that decide whether an additive motion can be added to it."""

    skeleton: Skeleton
    name: str

    def __len__(self) -> int:
        """Return the number of frames."""
        ...


def check_alike(what: str, skeleton: Skeleton, count: int, clip: _Clip) -> None:
    """Check that a difference has the joints of a clip, and one frame or as many frames as the clip.

    Args:
        what: Name of the argument.
        skeleton: Skeleton of the difference.
        count: Number of frames of the difference.
        clip: The clip.

    Raises:
        InputError: If the value does not fit the clip.
    """
    own, other = ([(joint.name, joint.kind) for joint in body.joints] for body in (skeleton, clip.skeleton))
    if own != other:
        expected = f"the joints of {clip.skeleton.name}"
        raise InputError(f"skeleton of {what}", where=clip.name, value=skeleton.name, expected=expected)
    if count not in (1, len(clip)):
        expected = f"1 or {len(clip)}, as many as the clip has"
        raise InputError(f"frames of {what}", where=clip.name, value=count, expected=expected)


def same_rate(a: float, b: float) -> bool:
    """Return whether two frame rates are equal up to the rounding of files."""
    return abs(a - b) <= 1e-3 * max(a, b)
