"""Drawing of loops: bars from joints to tied points, knots at the tied points, and rods of distance loops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from synovia.model import Skeleton
from synovia.model.geometry import Array
from synovia.model.loops.loop import Coupling
from synovia.model.pose import world_frames

BAR: Final = 0.8  # radius of a bar, as a fraction of the radius of its joint
ROD: Final = 0.55  # radius of the rod of a distance loop, as a fraction of the radius of its joint
KNOT: Final = 1.15  # radius of the knot at a tied point, as a multiple of the radius of its joint
_TOGETHER: Final = 1e-6  # fraction of the body's size: points closer than this are the same


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar between two points, each given by a row (-1 for the world) and the point in the frame of this joint.

    Args:
        start: The first point.
        end: The second point.
        row: The joint that determines radius and colour.
        rod: Whether the bar is the rod of a distance loop; otherwise it is a part of its joint's link.
    """

    start: tuple[int, Array]
    end: tuple[int, Array]
    row: int
    rod: bool = False


@dataclass(frozen=True, slots=True)
class Knot:
    """A tied point of a loop.

    Args:
        place: A row (-1 for the world) and the point in the frame of this joint.
        row: The joint that determines the radius.
    """

    place: tuple[int, Array]
    row: int


def bars_of(skeleton: Skeleton) -> tuple[list[Bar], list[Knot]]:
    """Return the bars and knots that show the loops of a skeleton; couplings are not shown.

    A bar leads from each joint to its tied point, unless a bone or another bar already leads there.
    """
    near = _TOGETHER * (skeleton.size or 1.0)
    bars, knots, known = list[Bar](), list[Knot](), list[tuple[int, Array]]()
    for tie in skeleton.loops:
        if isinstance(tie, Coupling):
            continue
        places = [(row, np.array(frame[:3, 3])) for row, frame in tie.ends(skeleton)]
        owner = next(row for row, _ in places if row >= 0)
        for row, point in places:
            ends = [np.zeros(3)] + [skeleton.joints[child].rest[:3, 3] for child in _children(skeleton, row)]
            ends += [other for other_row, other in known if other_row == row]
            if row >= 0 and min(float(np.linalg.norm(point - end)) for end in ends) > near:
                bars.append(Bar((row, np.zeros(3)), (row, point), row))
                known.append((row, point))
        if tie.kind == "distance":
            bars.append(Bar(places[0], places[1], owner, rod=True))
        else:  # only one knot if the two points coincide; they differ if one slides along an axis of the other
            places = places[:1] if tie.kind not in ("slide", "cylindrical") else places
        knots += [Knot(place, place[0] if place[0] >= 0 else owner) for place in places]
    return bars, knots


def points_of(skeleton: Skeleton, frames: Array) -> tuple[Array, Array]:
    """Return world positions of bar ends, (b, 2, 3), and of knots, (k, 3), given world frames of joints, (n, 12)."""
    bars, knots = bars_of(skeleton)

    def at(place: tuple[int, Array]) -> Array:
        row, point = place
        return point if row < 0 else frames[row, :9].reshape(3, 3) @ point + frames[row, 9:]

    ends = [[at(bar.start), at(bar.end)] for bar in bars]
    return np.array(ends).reshape(-1, 2, 3), np.array([at(knot.place) for knot in knots]).reshape(-1, 3)


def rows_of(skeleton: Skeleton) -> set[int]:
    """Return the rows of joints with bars."""
    return {bar.row for bar in bars_of(skeleton)[0]}


def radii_with_loops(skeleton: Skeleton, radius: Array) -> Array:
    """Return radii of joints, (n,), with a lower bound for joints with bars.

    Without the bound, joints without a bone, such as the last joint of a linkage, would have no radius.
    """
    bars, _ = bars_of(skeleton)
    if not bars:
        return radius
    ends, _ = points_of(skeleton, world_frames(skeleton, skeleton.rest_q[None])[0])
    out = radius.copy()
    thick = _usual(ends, radius)
    for bar in bars:
        for row in {bar.row, bar.start[0], bar.end[0]} - {-1}:
            out[row] = max(out[row], thick)
    return out


def _usual(ends: Array, radius: Array) -> float:
    """Return the lower bound of radii: 2 % of the longest bar, but at most the median radius of the joints."""
    longest = float(np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1).max(initial=0.0))
    known = radius[radius > 0.0]
    thick = 0.02 * longest
    return min(thick, float(np.median(known))) if len(known) else thick


def _children(skeleton: Skeleton, row: int) -> tuple[int, ...]:
    """Return the children of a joint; empty for the world."""
    return () if row < 0 else tuple(skeleton.children[row])
