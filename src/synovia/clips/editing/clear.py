"""Clearance goals of a layer: pairs of links that are too near in a clip, and limbs that move to separate them.

A clearance goal has no target that could fade. It applies in each frame in which its layer acts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from synovia.clips.editing.body import Body, PlantedFoot
from synovia.clips.editing.problems import Asked
from synovia.errors import UnknownNameError
from synovia.goals import ClearanceGoal
from synovia.ik.contacts import WatchedPairs
from synovia.ik.solution import length_text
from synovia.model import Pose, Skeleton
from synovia.model.geometry import Array
from synovia.model.motion import Motion
from synovia.model.shapes.over_time import TooNear
from synovia.text import counted, plain

_ROUNDING: Final = 1e-9  # fraction of the body's size; smaller violations of a distance are ignored


@dataclass(frozen=True, slots=True, eq=False)
class EditClearance:
    """The result of a clearance goal of a layer in a clip.

    Args:
        layer: Label of the layer.
        goal: The goal, with the pairs of links that it keeps apart.
        frames: The frames in which the goal applies: the frames of the layer and of its fades.
        too_near: The pairs whose distance is too small in some of these frames, the nearest pair first.

    Example:
        >>> import synovia as sy
        >>> body = sy.bundled("humanoid").with_root("free")
        >>> still = sy.Motion(body, [body.rest_q] * 9, 30.0)
        >>> kept = sy.edit(still, sy.Layer(goals=[sy.ClearanceGoal(0.01)], frames=(3, 5), name="clear")).clearances[0]
        >>> kept.layer, kept.goal.distance, kept.frames, kept.too_near
        ('clear', 0.01, (3, 4, 5), ())
    """

    layer: str
    goal: ClearanceGoal
    frames: tuple[int, ...]
    too_near: tuple[TooNear, ...]

    @property
    def missed_frames(self) -> tuple[int, ...]:
        """Frames in which at least one pair is too near."""
        return tuple(sorted({frame for pair in self.too_near for frame in pair.frames}))

    def to_object(self) -> dict[str, Any]:
        """Return the result in the form that JSON files store."""
        return {
            "layer": self.layer, "distance": self.goal.distance, "frames": len(self.frames),
            "missed": list(self.missed_frames), "too_near": plain(self.too_near),
        }  # fmt: skip

    def on(self, motion: Motion, frames: Sequence[int]) -> EditClearance:
        """Return the result of the same goal in frames of another clip of the same body."""
        found = near_pairs(motion.skeleton, motion.q[list(frames)], frames, self.goal)
        return replace(self, frames=tuple(frames), too_near=tuple(found))

    def text(self, meters_per_unit: float | None) -> str:
        """Return a sentence with the number of frames in which the distance is kept.

        Args:
            meters_per_unit: Metres per length unit of the body.
        """
        far = self.goal.distance
        what = f"kept {length_text(far, meters_per_unit)} apart" if far else "no overlap"
        total, missed = len(self.frames), len(self.missed_frames)
        return (
            f"{what} in {total - missed} of {counted(total, 'frame')}"
            if missed
            else f"{what} in {counted(total, 'frame')}"
        )


def near_pairs(skeleton: Skeleton, q: Array, frames: Sequence[int], goal: ClearanceGoal) -> list[TooNear]:
    """Return pairs that are too near in frames of a clip, the nearest first; motion between frames is not checked.

    Args:
        skeleton: The body of the clip.
        q: Joint values in these frames, (n, nq).
        frames: Numbers of the frames.
        goal: The goal, with its pairs resolved for the body.
    """
    out: list[TooNear] = []
    for watched in WatchedPairs.of_goal(skeleton, goal):
        least = watched.distance - _ROUNDING * skeleton.size
        found: dict[tuple[str | int, str | int], list[tuple[float, int]]] = {}
        for frame, values in zip(frames, q, strict=True):
            for contact in watched.at(Pose(skeleton, values)):
                if contact.distance >= least:
                    break
                if contact.pair is not None:
                    found.setdefault(contact.pair, []).append((contact.distance, frame))
        out += [TooNear.of(pair, watched.distance, *zip(*every, strict=True)) for pair, every in found.items()]
    return sorted(out, key=lambda one: one.distance - one.wanted)


def clearances(asked: Iterable[Asked]) -> list[tuple[ClearanceGoal, NDArray[np.bool_] | None]]:
    """Return the clearance goals of a layer, each with the mask of frames in which it applies; None for all frames."""
    return [(one.goal, one.holds) for one in asked if isinstance(one.goal, ClearanceGoal)]


def near_in(body: Body, q: Array, asked: Iterable[Asked]) -> list[TooNear]:
    """Return the pairs that are too near for a goal in poses, (n, nq); ``frames`` of a pair are indices of poses."""
    out: list[TooNear] = []
    for goal, holds in clearances(asked):
        places = np.arange(len(q)) if holds is None else np.flatnonzero(holds)
        out += near_pairs(body.skeleton, q[places], places.tolist(), goal)
    return out


def links_of(body: Body, near: Iterable[TooNear]) -> list[int]:
    """Return the rows of the links in the pairs ``near``."""
    rows: set[int] = set()
    for name in {name for one in near for name in one.pair}:
        try:
            rows.add(body.skeleton.locate(name)[0])
        except UnknownNameError:  # the name is that of an obstacle
            continue
    return sorted(rows)


def limbs_of(body: Body, links: Sequence[int], feet: Sequence[PlantedFoot]) -> tuple[frozenset[int], list[PlantedFoot]]:
    """Return the joints of the limbs that contain given links, and the planted feet of these limbs.

    The joints of the limbs of these feet are included.

    Args:
        body: The body.
        links: Rows of the links.
        feet: The feet that keep their places.
    """
    tops = {top for row in links for top in body.limb(row)[-1:]}
    own = [foot for foot in feet if tops.intersection(body.limb(foot.head)[-1:])]
    return frozenset(row for end in [*links, *(foot.head for foot in own)] for row in body.limb(end)), own
