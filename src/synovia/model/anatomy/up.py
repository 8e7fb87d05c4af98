"""Find which direction points up for a body: from its file, its rest pose, the gravity in a clip, and its posture.

The first sources weigh more, as a rule. A standing rest pose outweighs a posture, so a body that lies in all frames of
a clip is seen to lie. But steps in a clip outweigh it, because files may store it with other axes than clips.

In a tilted world, a straight body leans in the same direction in all frames. Nobody can stand or walk like this without
falling, so gravity does not point along the axis of the file. Bodies that lie, sit or bow are not straight, or lean
farther. Runners and people with a stoop lean too, but their feet come down to one level along the axis.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from synovia.errors import InputError, UnsupportedError
from synovia.model import Skeleton
from synovia.model.anatomy.feet import feet_of
from synovia.model.anatomy.limbs import up_on_four
from synovia.model.anatomy.names import SIDES
from synovia.model.geometry import AXES, Array, axis_name, axis_vector, between, unit
from synovia.model.pose import bind_frames, world_frames
from synovia.model.tree import ancestors

# weights of evidence for an axis; a body that is upright along the axis in all frames has weight 1
_FILE: Final = 2.0  # weight for the axis that the file states
_REST: Final = 1.8  # weight for the axis along which the rest pose stands
_STEPS: Final = 1.5  # weight for an axis if the lower foot stands still while the hips move on, with this axis as up
# further weight for the rest pose's axis if the body also stands along it in some frames
_AT_TIMES: Final = 0.5
_FLOOR: Final = 0.3  # weight for an axis if the lowest point of the body always has the same height along it
_TRAVEL: Final = 1.0  # weight against an axis along which the hips travel far: bodies crawl far, but seldom climb far
# weights for the axes that most files use
_USUAL: Final[Mapping[str, float]] = dict.fromkeys(AXES, 0.0) | {"y": 0.3, "z": 0.25}
_CLEAR: Final = 0.6  # the certainty is 1 if the best axis leads the second one by this weight

_FAR: Final = 3.0  # leg lengths: a path of this length counts as long
_TALLEST: Final = 1e6  # leg lengths: bound for ratios of bodies whose legs have no length
# leg lengths: if the lowest point's height varies by this over time, the weight of a level floor is halved
_STEADY_FLOOR: Final = 0.15
# share of the frames in which a body must stand along its rest pose's axis to give this axis more weight
_SOMETIMES: Final = 0.1
# cosine between a body and an axis, above which the body stands along the axis
_NEAR: Final = np.cos(np.radians(30.0))
_LIES: Final = 0.5  # cosine between a body and up, below which the body lies, sits on its heels, or crawls
_STRETCHED: Final = 0.7  # cosine between a body and another axis, above which the body lies along this axis
_MAYBE: Final = 0.5  # certainty of a direction that only the posture shows, because a body may lie
# certainty of a stated axis, or an axis along which the body stands at times, if the body lies in most frames
_STATED: Final = 0.8
_LEVELLED: Final = 0.8  # certainty that the world is tilted if the feet come down to one level
SHOWN: Final = 0.15  # an axis with at least this certainty is used without asking the user
# cosine between a body and up, below which (more than 120° from upright) the body stands on its head
_INVERTED: Final = -0.5
_FOLDED: Final = 0.5  # leg lengths: if hip and ankle are nearer to each other, legs are weaker evidence
_POINT: Final = 0.01  # fraction of the skeleton's size: shorter lines do not show a direction
# fraction of a leg's length: joints without a role that are nearer to the hips do not show the trunk
_CROWN: Final = 0.3
# horizontal component of the mean direction of both arms, above which both point to one side, as in no rest pose
_ALIKE: Final = 0.8
_RAISED: Final = 0.5  # upward component of the mean direction of both arms, above which arms point up
_SAMPLE: Final = 300  # largest number of frames that are sampled from a clip, spread evenly
_BEGINNING: Final = 300  # number of frames at the beginning of a clip in which steps are searched for
_FEWEST: Final = 20  # least number of frames that can show steps
# steps are compared with the path if, from frame to frame, hips and lower foot (seen from the hips) move against each
# other with at least this correlation
_AGAINST: Final = 0.8
_NO_PATH: Final = 1e-8  # squared ratio of path to steps, below which the body steps on the spot

LEAST: Final = 17.0  # degrees: a smaller lean may be posture; with a larger lean, the body would fall
MOST: Final = 65.0  # degrees: a body with a larger lean lies
_STRAIGHT: Final = 30.0  # degrees: largest angle between legs and trunk of a straight body, in most frames
_CONSTANT: Final = 0.95  # unit vectors count as constant if their mean is at least this long
# the ground is level if heights vary along the file's axis by less than this fraction of those along the body
_LEVEL: Final = 0.5
_ALWAYS: Final = 0.1  # share of the frames that may lean by less than ``LEAST``


@dataclass(frozen=True, eq=False)
class Up:
    """The direction that points up, with its certainty.

    Args:
        name: Name of the axis, such as ``"y"`` or ``"-z"``; in a tilted world, the three components.
        vector: Unit vector, (3,).
        certainty: From 0 (guessed) to 1 (certain).
        source: What shows the direction: ``"given"``, ``"file"``, ``"rest pose"``, ``"clip"``, or ``"nothing"``.
        tilt: Angle between the direction and the nearest axis of the file, degrees, in a tilted world; else 0.
        axis: The file's axis that would point up without the tilt; "" if the world is not tilted.
        lies: The axis along which the body lies in most frames; "" if it does not lie.
        inverted: Share of the frames in which the body is upside down.
    """

    name: str
    vector: Array
    certainty: float
    source: str = "given"
    tilt: float = 0.0
    axis: str = ""
    lies: str = ""
    inverted: float = 0.0

    @property
    def given(self) -> bool:
        """Whether the user gave the axis."""
        return self.source == "given"

    @property
    def nearest(self) -> str:
        """The axis of the file that is nearest to the upward direction."""
        return self.axis or axis_name(self.vector)

    @property
    def likely(self) -> Array:
        """The direction (3,) for tools that do not ask a user; the file's axis if a tilted world is uncertain."""
        return axis_vector(self.axis) if self.axis and self.certainty <= _MAYBE else self.vector

    def report(self) -> str:
        """Return the direction and the source of its evidence as text."""
        how = "as given" if self.given else f"certainty {100.0 * self.certainty:.0f} %"
        if self.axis:
            where = f"up: ({self.name}) ({how}): the world of the clip is tilted by {self.tilt:.0f}° from {self.axis}"
            return f'{where} and was set upright; up="{self.axis}" (--up={self.axis}) keeps it as it is'
        if not self.lies or self.given:
            return f"up: {self.name} ({how})"
        keep, other = f'up="{self.name}" (--up={self.name})', f'up="{self.lies}" (--up={self.lies})'
        return f"up: {self.name} ({how}): the body lies along {self.lies}; {keep} keeps that, {other} lets it stand"

    def certain(self, where: str | None) -> Up:
        """Return this direction, or raise an error if it is uncertain.

        Raises:
            InputError: If the direction is a guess.
        """
        if self.certainty < SHOWN:
            raise InputError(
                "the clip does not show which axis points up", where=where,
                hint=f"pass up='{self.name}' (--up={self.name}) to keep it as it is, or another axis",
            )  # fmt: skip
        return self


def given_up(axis: object, what: str = "up") -> Up:
    """Return the upward direction for an axis that the user gave.

    Raises:
        InputError: If ``axis`` is not the name of an axis.
    """
    name = str(axis).removeprefix("+")
    if name not in AXES:
        raise InputError(what, value=axis, expected=", ".join(AXES))
    return Up(name, axis_vector(name), 1.0)


def find_up(
    skeleton: Skeleton, q: Array | None = None, up: str | None = None, rows: Mapping[str, int] | None = None
) -> Up:
    """Return the direction that points up.

    Args:
        skeleton: The skeleton.
        q: Joint values of a clip, (T, nq); None to use only the file and its rest pose.
        up: The axis that the user gave; None without one.
        rows: Row of each part of the body, by role; None to use the recognised roles.

    Raises:
        InputError: If the given axis is not valid.
    """
    given = None if up is None else given_up(up)
    if q is None or not len(q):
        return given or (_of_file(skeleton) if rows is None else _without_clip(skeleton, Lines.of(skeleton, rows)))
    lines = Lines.of(skeleton, rows)
    if not lines.shown:
        return given or _without_clip(skeleton, lines)
    return given or lines.up_in(lambda frames: world_frames(skeleton, q[frames])[..., 9:], len(q), skeleton.up)


@lru_cache(maxsize=64)
def _of_file(skeleton: Skeleton) -> Up:
    """Return the direction from file and rest pose, cached for each skeleton."""
    return _without_clip(skeleton, Lines.of(skeleton))


def _without_clip(skeleton: Skeleton, lines: Lines) -> Up:
    """Return the axis that the file states, else the axis along which the rest pose stands, else y."""
    if skeleton.up is not None:
        return Up(skeleton.up, axis_vector(skeleton.up), 1.0, "file")
    stands = lines.stands
    return Up(stands or "y", axis_vector(stands or "y"), 1.0 if stands else 0.0, "rest pose" if stands else "nothing")


def _leaning(direction: Array, certainty: float = _MAYBE) -> Up:
    """Return the upward direction of a tilted world; ``direction`` is that of a leaning body."""
    vector = direction / np.linalg.norm(direction)
    return Up(", ".join(f"{v:.2f}" for v in vector), vector, certainty, "clip")


@dataclass(frozen=True, eq=False)
class Lines:
    """The joints of a body whose positions show its posture.

    Args:
        size: Size of the skeleton, length units.
        leg: Mean length of the legs along their bones; without known hips, the distance from feet to ``others``.
        hips: Rows whose midpoint is between the hips.
        feet: Row of each ankle, or of the end of a leg.
        tops: Rows whose midpoint is at the upper end of the trunk; empty for a body on four legs.
        others: Rows whose midpoint is above the feet of a body with unknown hips; empty if the hips are known.
        arms: Rows of the beginning and the end of each arm: upper arm and elbow.
        ends: Row of the toes of each foot; of the ankle for feet without toes.
        rest: Positions of all joints, (n, 3), in the file's pose, and in the skin's pose if there is one; empty for
            point sets.
    """

    size: float
    leg: float
    hips: tuple[int, ...]
    feet: tuple[int, ...]
    tops: tuple[int, ...] = ()
    others: tuple[int, ...] = ()
    arms: tuple[tuple[int, int], ...] = ()
    ends: tuple[int, ...] = ()
    rest: tuple[Array, ...] = ()

    @classmethod
    def of(cls, skeleton: Skeleton, rows: Mapping[str, int] | None = None) -> Lines:
        """Return the lines of a skeleton, given rows by role; None to use the recognised roles."""
        found = skeleton.role_rows if rows is None else rows
        lines = cls(skeleton.size, 0.0, **_rows_of(skeleton, found, of_all=rows is None))
        rest = [np.array(skeleton.rest_pose().positions)]
        if any(joint.bind is not None for joint in skeleton.joints):
            rest.append(bind_frames(skeleton.joints, skeleton.parents)[:, 9:])
        lengths: list[float] = []
        for hip, foot in zip(lines.hips, lines.feet, strict=False):
            line = ancestors(skeleton.parents, foot)
            line = line[: line.index(hip) + 1] if hip in line else line[:1]
            lengths.append(sum(float(np.linalg.norm(rest[0][a] - rest[0][b])) for a, b in itertools.pairwise(line)))
        mean = float(np.mean(lengths)) if lengths else 0.0
        leg = max(mean, float(np.linalg.norm(lines.legs(rest[0]))), _POINT * skeleton.size, 1e-300)
        return replace(lines, leg=leg, rest=tuple(rest))

    @property
    def shown(self) -> bool:
        """Whether the body has a leg or a trunk, so that it can stand."""
        return bool(self.feet or self.tops) and (bool(self.tops or self.others) or len(self.hips) > 1)

    def hips_in(self, places: Array) -> Array:
        """Return the midpoint of the hips, (..., 3), given joint positions, (..., n, 3)."""
        return places[..., list(self.hips), :].mean(-2)

    def legs(self, places: Array) -> Array:
        """Return the vectors from the feet to the hips, (..., 3); zeros without feet."""
        if not self.feet:
            return np.zeros((*places.shape[:-2], 3))
        return places[..., list(self.others or self.hips), :].mean(-2) - places[..., list(self.feet), :].mean(-2)

    def trunk(self, places: Array) -> Array:
        """Return the vectors from the hips to the upper end of the trunk, (..., 3); zeros if this end is unknown."""
        if not self.tops:
            return np.zeros((*places.shape[:-2], 3))
        return places[..., list(self.tops), :].mean(-2) - self.hips_in(places)

    def upright(self, places: Array) -> Array:
        """Return unit vectors from the feet to the shoulders, (..., 3): means of the directions of legs and trunk.

        Legs have less weight if their ends are close to the hips, as in bodies without shins, and in people who sit on
        their heels.
        """
        legs = self.legs(places) / self.leg
        weight = np.minimum(np.linalg.norm(legs, axis=-1, keepdims=True) / _FOLDED, 1.0)
        return unit(unit(legs) * weight + self._trunk_direction(places))

    def _trunk_direction(self, places: Array) -> Array:
        """Return unit vectors along the trunk, (..., 3); zeros for a trunk without length."""
        trunk = self.trunk(places)
        far = np.linalg.norm(trunk, axis=-1, keepdims=True)
        return np.where(far > _POINT * self.size, trunk / np.maximum(far, 1e-300), 0.0)

    @cached_property
    def stands(self) -> str | None:
        """The axis along which the body stands in the pose of the file or of its skin; None if it stands in neither.

        Trunk and legs must be in line along this axis. In some files, all bones lie along one axis in the zero pose: it
        folds the legs up along the trunk, or both arms point in the same direction.
        """
        return next((axis for places in self.rest if (axis := self.axis_at(places))), None)

    def axis_at(self, places: Array) -> str | None:
        """Return the axis along which a body with joint positions (n, 3) stands; None if it does not stand."""
        ways = [unit(way) for way in (self.legs(places), self.trunk(places)) if np.linalg.norm(way) > 0.0]
        if not ways or not self.shown:
            return None
        axis = axis_vector(axis_name(ways[0]))
        if min(float(way @ axis) for way in ways) < _NEAR:
            return None
        if len(self.arms) == 2:
            arms = unit(np.array([places[end] - places[begin] for begin, end in self.arms])).mean(0)
            if arms @ axis > _RAISED or np.linalg.norm(arms - (arms @ axis) * axis) > _ALIKE:
                return None
        return axis_name(axis)

    def up_in(
        self,
        at: Callable[[NDArray[np.intp]], Array],
        count: int,
        stated: str | None = None,
        usual: Mapping[str, float] = _USUAL,
    ) -> Up:
        """Return the upward direction, from the file, the rest pose and the frames of a clip together.

        Args:
            at: A function that returns positions of all joints, (K, n, 3), in given frames, (K,).
            count: Number of frames, at least 1.
            stated: The axis that the file states; None if it states none.
            usual: Axes that may point up, with their weights before other evidence is added.
        """
        places = at(np.unique(np.linspace(0, count - 1, min(count, _SAMPLE)).round().astype(int)))
        posture, hips, leg = self.upright(places), self.hips_in(places), self.leg
        mean, stands = posture.mean(0), self.stands
        supported = {stated, stands} - {None}
        if (
            not supported
            and not self.others
            and np.linalg.norm(mean) > _CONSTANT
            and float(np.abs(posture).max()) < _NEAR
        ):
            return _leaning(mean)
        lowest = np.concatenate([places.min(1), -places.max(1)], axis=1) / leg
        low, high = np.quantile(lowest, (0.1, 0.9), axis=0)
        spread: dict[str, float] = dict(
            zip(AXES, np.square(np.minimum(high - low, _TALLEST) / _STEADY_FLOOR).tolist(), strict=True)
        )
        points: dict[str, float] = {}
        for name, evidence in usual.items():
            axis = axis_vector(name)
            points[name] = (
                float(mean @ axis)
                - _TRAVEL * min(float(np.ptp(hips @ axis)) / leg / _FAR, 1.0)
                + _FLOOR / (1.0 + spread[name])
                + evidence
            )
        best = axis_name(mean)
        along = np.zeros(len(posture)) if stands is None else posture @ axis_vector(stands)
        at_times = float((along > _NEAR).mean()) >= _SOMETIMES
        if supported - {best} and not at_times and float(mean @ axis_vector(best)) > _LIES:
            beginning = at(np.arange(min(count, _BEGINNING)))
            if self.path_scale(beginning, axis_vector(best)) is not None:
                points[best] += _STEPS
                supported.add(best)
        if stated is not None:
            points[stated] += _FILE
        if stands is not None:
            points[stands] += _REST + (_AT_TIMES if at_times else 0.0)
        best, second = sorted(points, key=lambda name: -points[name])[:2]
        axis = axis_vector(best)
        certainty = float(np.clip((points[best] - points[second]) / _CLEAR, 0.0, 1.0))
        if best not in supported and best[-1] == "x":
            certainty = min(certainty, _MAYBE)
        lies = ""
        if float(mean @ axis) < _LIES and float(np.abs(mean).max()) > _STRETCHED and axis_name(mean)[-1] != best[-1]:
            lies = axis_name(mean)
            certainty = min(certainty, _STATED if best == stated or (at_times and best == stands) else _MAYBE)
        source = "file" if best == stated else "rest pose" if best == stands else "clip"
        # a posture without other evidence may be a handstand
        likely = axis if best in supported else np.abs(axis)
        inverted = float(np.mean(posture @ likely < _INVERTED))
        found = Up(best, axis, certainty, source, lies=lies, inverted=inverted)
        tilted = self.tilted(places, axis)
        if tilted is None:
            return found
        clear = self.unevenness(places, tilted) < 0.5 * self.unevenness(places, axis)
        leaning = _leaning(tilted, _LEVELLED if clear else _MAYBE)
        return replace(leaning, tilt=between(tilted, axis), axis=best, inverted=inverted)

    def tilted(self, places: Array, axis: Array) -> Array | None:
        """Return the direction, (3,), along which a body stands in a tilted world; None if the world is not tilted.

        Args:
            places: Positions of all joints, (T, n, 3).
            axis: The file's axis that points up if the world is not tilted, (3,).
        """
        legs, trunk = unit(self.legs(places)), self._trunk_direction(places)
        if not (legs.any() and trunk.any()) or self.others:
            return None
        mean = unit(legs + trunk).mean(0)
        length = float(np.linalg.norm(mean))
        if length < _CONSTANT or float(np.median(np.sum(legs * trunk, axis=1))) < np.cos(np.radians(_STRAIGHT)):
            return None
        off = np.degrees(np.arccos(np.clip(unit(legs + trunk) @ axis, -1.0, 1.0)))
        if np.quantile(off, _ALWAYS) < LEAST or between(mean / length, axis) > MOST:
            return None
        up = mean / length
        return None if _rises(places, axis) < _LEVEL * _rises(places, up) else up

    def unevenness(self, places: Array, up: Array) -> float:
        """Return by how much the lowest points of the body and of its feet differ from one level, leg lengths."""
        low = [float(np.quantile(places[:, row] @ up, 0.1)) for row in self.feet]
        return (_rises(places, up) + float(np.ptp(low))) / self.leg

    def path_scale(self, places: Array, up: Array) -> float | None:
        """Return the factor that scales the path of the hips to the steps; None if the clip does not show steps.

        The lower foot stands still on the floor, so the hips move relative to it. The factor is 1 if bones and path
        have the same unit of length.

        Args:
            places: Positions of all joints over time, (T, n, 3), at the rate of the clip.
            up: Upward direction, (3,).
        """
        if len(places) < _FEWEST or len(self.ends) != 2:
            return None
        hips = self.hips_in(places)
        ends = [places[:, row] for row in self.ends]
        lower = (ends[0] - ends[1]) @ up < 0.0
        foot = np.where(lower[:, None], *ends) - hips
        same = lower[1:] == lower[:-1]
        path, step = ((d - (d @ up)[:, None] * up)[same] for d in (np.diff(hips, axis=0), np.diff(foot, axis=0)))
        length = np.linalg.norm(step, axis=1)
        if not same.any() or float(length.sum()) < 0.5 * self.leg:
            return None
        fast = length >= np.quantile(length, 0.3)  # slow frames are mostly noise
        path, step = path[fast], step[fast]
        sizes = float(np.sum(path * path)), float(np.sum(step * step))
        if sizes[0] < _NO_PATH * sizes[1]:  # the body steps on the spot
            return None
        against = -np.sum(path * step, axis=1)
        if float(against.sum()) < _AGAINST * np.sqrt(sizes[0] * sizes[1]):
            return None
        return float(np.median(against / np.maximum(np.sum(path * path, axis=1), 1e-12 * sizes[0])))


def _rows_of(skeleton: Skeleton, found: Mapping[str, int], *, of_all: bool) -> dict[str, Any]:
    """Return the rows for the attributes of ``Lines``, by name of the attribute.

    Args:
        skeleton: The skeleton.
        found: Row of each part, by role.
        of_all: Whether the parts are the recognised ones; with several people, these may belong to any of them.
    """
    hips = _pair(found, "upper_leg")
    if len(hips) == 2 and len(_pair(found, "lower_leg")) == 2 and not (of_all and len(skeleton.people) > 1):
        feet = tuple(_ankle(skeleton, found, side) for side in SIDES)
        if stands_on_four(skeleton, found):
            hands = _pair(found, "hand", "lower_arm")
            return {"hips": (*hips, *_pair(found, "upper_arm")), "feet": (*feet, *hands)}
        ends = tuple(found.get(f"{side}_toes", foot) for side, foot in zip(SIDES, feet, strict=True))
        arms = [(f"{side}_upper_arm", f"{side}_lower_arm") for side in SIDES]
        known = tuple((found[a], found[b]) for a, b in arms if a in found and b in found)
        return {"hips": hips, "feet": feet, "tops": _top(skeleton, found, hips), "arms": known, "ends": ends}
    four = any(role.endswith("_paw") for role in found)
    head = () if four else tuple(row for row in [head_of(skeleton, found)] if row is not None)
    middle = (found.get("hips", 0),)
    try:
        feet = tuple(row for foot in feet_of(skeleton) for row in foot.points)
    except UnsupportedError:
        return {"hips": middle, "feet": (), "tops": head}
    others = tuple(row for row in range(len(skeleton)) if row not in feet)
    return {"hips": middle, "feet": feet, "tops": head if others else (), "others": others}


def stands_on_four(skeleton: Skeleton, rows: Mapping[str, int]) -> bool:
    """Return whether a body has four legs: its roles say so, or its arms reach down to the ground at rest.

    Args:
        skeleton: A body that stands at rest; for other bodies, the result is meaningless.
        rows: Row of each part, by role.
    """
    if any(role.endswith("_paw") for role in rows):
        return True
    limbs = (("upper_leg",), ("foot", "lower_leg"), ("upper_arm",), ("hand", "lower_arm"))
    pairs = [_pair(rows, *parts) for parts in limbs]
    if min(map(len, pairs)) < 2:
        return False
    places = np.array(skeleton.rest_pose().positions)
    hips, feet, shoulders, hands = (places[list(pair)].mean(0) for pair in pairs)
    up = None if skeleton.up is None else axis_vector(skeleton.up)
    return up_on_four((hips, feet), (shoulders, hands), up) is not None


def head_of(skeleton: Skeleton, rows: Mapping[str, int]) -> int | None:
    """Return the row of the head, by role or by name; None without a head."""
    named = (row for row, joint in enumerate(skeleton.joints) if joint.name.rsplit(":", 1)[-1].lower() == "head")
    return rows["head"] if "head" in rows else next(named, None)


def _pair(rows: Mapping[str, int], *parts: str) -> tuple[int, ...]:
    """Return, for the left and the right side, the row of the first of ``parts`` that this side has."""
    found = [next((rows[role] for part in parts if (role := f"{side}_{part}") in rows), None) for side in SIDES]
    return tuple(row for row in found if row is not None)


def _ankle(skeleton: Skeleton, rows: Mapping[str, int], side: str) -> int:
    """Return the row at the end of a shin: the foot, else the next joint, else the knee."""
    shin = rows[f"{side}_lower_leg"]
    return rows.get(f"{side}_foot", next(iter(skeleton.children[shin]), shin))


def _top(skeleton: Skeleton, rows: Mapping[str, int], hips: Sequence[int]) -> tuple[int, ...]:
    """Return the rows at the upper end of a trunk: neck, shoulders, head or chest; else a joint far from the hips.

    Rows that coincide with the hips are skipped, because robots may have a trunk joint there.
    """
    places = np.array(skeleton.rest_pose().positions)
    start = places[list(hips)].mean(0)
    arms = _pair(rows, "upper_arm")
    neck, *below = ((rows[role],) if role in rows else () for role in ("neck", "head", "chest", "spine"))
    for top in (neck, arms if len(arms) == 2 else (), *below):
        if top and float(np.linalg.norm(places[list(top)].mean(0) - start)) > _POINT * skeleton.size:
            return top
    limbs = {row for role, row in rows.items() if role.startswith(SIDES)}
    far = [0.0 if limbs & set(ancestors(skeleton.parents, row)) else float(np.linalg.norm(places[row] - start))
           for row in range(len(skeleton))]  # fmt: skip
    first = rows.get("hips", -1)
    far = [way if first in ancestors(skeleton.parents, row)[1:] else 0.0 for row, way in enumerate(far)]
    leg = float(np.linalg.norm(places[list(_pair(rows, "lower_leg"))] - places[list(hips)], axis=1).mean())
    row = int(np.argmax(far))
    return (row,) if far[row] > _CROWN * leg else ()


def _rises(places: Array, up: Array) -> float:
    """Return how much the height of the lowest joint varies over time, from the 10th to the 90th percentile."""
    return float(np.diff(np.quantile((places @ up).min(1), (0.1, 0.9)))[0])
