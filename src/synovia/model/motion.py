"""A motion: joint values of a skeleton over time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from synovia.errors import InputError
from synovia.model import Pose, Skeleton
from synovia.model.geometry import Array, as_numbers, dimensions
from synovia.model.pose import checked_q, world_frames


class Motion:
    """Joint values over time at a constant rate. Immutable.

    Args:
        skeleton: The skeleton.
        q: Joint values, (T, nq): radians and length units; balls as unit quaternions xyzw.
        fps: Frames per second.
        name: Name of the clip.
        stretch: Animated scale, (T, n, 3), which rigid joints cannot represent, for exact evaluation; None without
            one.

    Raises:
        InputError: If a shape or a value cannot be used.

    Example:
        >>> import numpy as np
        >>> import synovia as sy
        >>> arm = sy.bundled("arm7")
        >>> motion = sy.Motion(arm, np.linspace(arm.rest_pose().q, arm.random_pose(1).q, 60), fps=30)
        >>> motion.positions().shape
        (60, 11, 3)
    """

    __slots__ = ("_q", "fps", "name", "skeleton", "stretch")

    def __init__(
        self, skeleton: Skeleton, q: Any, fps: float, *, name: str = "motion", stretch: Array | None = None
    ) -> None:
        """Check and copy the values."""
        if dimensions(q) != 2:
            as_numbers(q, (-1, skeleton.nq), "q")
        if not (np.isfinite(fps) and fps > 0.0):
            raise InputError("fps", where=name, value=fps, expected="frames per second above 0")
        self.skeleton = skeleton
        self._q = checked_q(skeleton, q)
        self._q.setflags(write=False)
        self.fps = float(fps)
        self.name = name
        if stretch is not None:
            stretch = as_numbers(stretch, (len(self._q), len(skeleton), 3), "stretch")
            stretch.setflags(write=False)
        self.stretch = stretch

    @property
    def q(self) -> Array:
        """Joint values, (T, nq), read-only."""
        return self._q

    @property
    def duration(self) -> float:
        """Seconds from the first to the last frame."""
        return max(len(self._q) - 1, 0) / self.fps

    @property
    def times(self) -> Array:
        """Time of each frame, (T,), seconds."""
        return np.arange(len(self._q)) / self.fps

    def __len__(self) -> int:
        """Return the number of frames."""
        return len(self._q)

    def __iter__(self) -> Iterator[Pose]:
        """Yield the pose of each frame."""
        return (self.pose(frame) for frame in range(len(self)))

    def pose(self, frame: int) -> Pose:
        """Return the pose of one frame; negative frames count from the end."""
        if not -len(self) <= frame < len(self):
            raise InputError("frame", where=self.name, value=frame, expected=f"0 to {len(self) - 1}")
        return Pose.trusted(self.skeleton, self._q[frame].copy())

    def frames(self) -> Array:
        """Return the world frames of all joints over time, (T, n, 12): rotation (9), position (3); without stretch."""
        return world_frames(self.skeleton, np.array(self._q))

    def positions(self) -> Array:
        """Return the world positions of all joints over time, (T, n, 3), length units of the file."""
        return self.frames()[..., 9:].copy()

    def __setstate__(self, state: tuple[None, dict[str, Any]]) -> None:
        """Restore a copied or unpickled motion and make its arrays read-only."""
        for name, value in state[1].items():
            setattr(self, name, value)
        for array in (self._q, self.stretch):
            if array is not None:
                array.setflags(write=False)

    def __repr__(self) -> str:
        """Return name, frames and rate."""
        return f"{type(self).__name__}({self.name!r}, {len(self)} frames at {self.fps:g} fps, {self.skeleton.name!r})"
