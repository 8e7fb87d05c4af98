"""The scene of an image: the poses of a skeleton as balls and rods, targets, names, and the floor."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from synovia.draw.bodies import Bodies
from synovia.draw.gaps import Gap, Gaps
from synovia.draw.loops import BAR as LOOP_BAR
from synovia.draw.loops import KNOT, bars_of, points_of, radii_with_loops, rows_of
from synovia.draw.loops import ROD as LOOP_ROD
from synovia.draw.obstacles import Around, Surroundings
from synovia.draw.surfaces import Skin
from synovia.draw.theme import Colour, Theme
from synovia.errors import InputError
from synovia.model import Joint, Kind, Pose, Skeleton
from synovia.model.anatomy.up import find_up
from synovia.model.geometry import Array, as_matrix, as_numbers
from synovia.model.tree import ancestors

LOOKS: Final = ("surface", "bones", "both")
_THICK: Final = 0.042  # radius of the root joint, as a fraction of the longest path to a tip
_TAPER: Final = 0.5  # radii grow with this power of the path length to the tip: 0 for equal, 1 for proportional radii
_TIP: Final = 0.5  # path length assumed at a tip, as a fraction of its bone
_STUBBY: Final = 0.36  # largest radius, as a fraction of the longest bone at the joint
_THIN: Final = 0.007  # smallest radius, as a fraction of the longest path from the root to a tip
_HEAD: Final = (0.115, 0.16)  # least and largest height of a head, as fractions of the body's height
_LEGS: Final = 2.05  # height of a body, as a multiple of its leg length from hip to ankle
_ROD: Final = (0.84, 0.78)  # radius of a bone at its start and end, as fractions of the radii of its joints
_BARREL: Final = 1.05  # half-length of a hinge's barrel along its axis, as a multiple of its radius
_SIDE: Final = re.compile(r"(left|^l_|^l(?=[A-Z])|[._\- ]l$|[_.]l[_.])|(right|^r_|^r(?=[A-Z])|[._\- ]r$|[_.]r[_.])")


@dataclass(frozen=True, slots=True, eq=False)
class Mark:
    """The target of a joint and its error.

    Args:
        position: Position of the joint, (3,), length units of the skeleton.
        target: Target position, (3,); None for a goal without a position, such as a rotation.
        label: Text next to the mark; "" for no text.
        reached: Whether the goal is reached.
        rotation: World rotation of the joint (matrix or ``Rotation``), drawn as three axes.
        target_rotation: Target rotation, drawn as three thicker axes at the target.
        paths: Thin polylines, each through points (n, 3), such as the edge of a polygon.
        note: Text at a missed goal instead of the distance.
        on_joint: Whether the ring surrounds a joint.

    Raises:
        InputError: If a position or a rotation cannot be used.
    """

    position: Array
    target: Array | None = None
    label: str = ""
    reached: bool = True
    rotation: Any = None
    target_rotation: Any = None
    paths: Sequence[Any] = ()
    note: str = ""
    on_joint: bool = True

    def __post_init__(self) -> None:
        """Check the arguments, and convert positions and rotations to arrays."""
        object.__setattr__(self, "position", as_numbers(self.position, (3,), "position of a mark"))
        if self.target is not None:
            object.__setattr__(self, "target", as_numbers(self.target, (3,), "target of a mark"))
        for name in ("rotation", "target_rotation"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, as_matrix(value, f"{name} of a mark"))
        object.__setattr__(self, "paths", tuple(as_numbers(path, (-1, 3), "path of a mark") for path in self.paths))

    @property
    def place(self) -> Array:
        """Position of the mark: the target, or the joint if there is no target."""
        return self.position if self.target is None else self.target

    @property
    def miss(self) -> float:
        """Distance between joint and target, length units; 0 without a target."""
        return 0.0 if self.target is None else float(np.linalg.norm(self.target - self.position))


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """All content of an image, in world coordinates.

    Args:
        solid: The main pose.
        ghosts: Earlier poses, faintest first.
        marks: Targets.
        names: Positions and names of the joints to label.
        up: Unit vector that points up.
        ground: Height of the floor along ``up``, length units.
        extent: Size of the content, length units, above 0.
        meters_per_unit: Length of the unit in metres; None if unknown.
        skins: For each pose, the main pose last: the surface and the world frames of the joints; None for a pose
            without a surface.
        look: One of ``LOOKS``; a pose without a surface shows its bones.
        hull: Extreme points of the surfaces, (n, 3).
        around: The obstacles around the body; None without a world.
        cover: The shapes of the main body and the world frames of its joints; None if they are not shown.
        spread: Size of the content with the obstacles, length units; 0 to use ``extent``.
        gaps: The nearest pairs of links and obstacles.
    """

    solid: Bodies
    ghosts: tuple[Bodies, ...]
    marks: tuple[Mark, ...]
    names: tuple[tuple[Array, str], ...]
    up: Array
    ground: float
    extent: float
    meters_per_unit: float | None
    skins: tuple[tuple[Skin, Array] | None, ...] = (None,)
    look: str = "bones"
    hull: Array = field(default_factory=lambda: np.zeros((0, 3)))
    around: Around | None = None
    cover: tuple[Skin, Array] | None = None
    spread: float = 0.0
    gaps: tuple[Gap, ...] = ()

    @property
    def content(self) -> tuple[Array, Array]:
        """Centres (n, 3) and radii (n,) of balls that contain all content except the floor, length units."""
        shown = (*self.ghosts, self.solid)
        hulls = [self.hull]
        if self.around is not None:
            hulls.append(self.around.hull)
        if self.cover is not None:
            hulls.append(self.cover[0].at(self.cover[1]).hull)
        centres, radii = hulls, [np.zeros(len(hull)) for hull in hulls]
        for bodies, skin in zip(shown, self.skins, strict=True):
            if skin is None or self.look != "surface" or not skin[0].whole:
                centres += [bodies.start, bodies.end]
                radii += [bodies.radii[:, 0], bodies.radii[:, 1]]
        for mark in self.marks:
            centres.append(np.stack([mark.position, mark.place]))
            radii.append(np.full(2, 0.03 * self.extent))
            centres += mark.paths
            radii += [np.zeros(len(path)) for path in mark.paths]
        for gap in self.gaps:
            centres.append(gap.points)
            radii.append(np.zeros(2))
        return np.concatenate(centres), np.concatenate(radii)

    def distance_text(self, distance: float) -> str:
        """Return a distance in metres, centimetres or millimetres; without a unit if the length unit is unknown."""
        if self.meters_per_unit is None:
            return f"{distance:.3g}"
        metres = distance * self.meters_per_unit
        factor, unit = (1.0, "m") if metres >= 1.0 else (100.0, "cm") if metres >= 0.01 else (1000.0, "mm")
        return f"{metres * factor:.3g} {unit}"


@dataclass(frozen=True, slots=True, eq=False)
class Appearance:
    """Options for drawing bodies and their surroundings.

    Args:
        look: One of ``LOOKS``.
        skins: Surfaces by skeleton.
        covers: Collision shapes as surfaces, by skeleton; only for bodies whose shapes are shown.
        surroundings: The obstacles; None without a world.
        gaps: Pairs of links and obstacles; the nearest pairs are drawn. None to draw no pairs.
    """

    look: str = "bones"
    skins: Mapping[Skeleton, Skin] = field(default_factory=dict[Skeleton, Skin])
    covers: Mapping[Skeleton, Skin] = field(default_factory=dict[Skeleton, Skin])
    surroundings: Surroundings | None = None
    gaps: Gaps | None = None


def build_scene(
    poses: Sequence[Pose],
    marks: Sequence[Mark],
    theme: Theme,
    *,
    joint_names: bool = False,
    shown: Appearance | None = None,
) -> Scene:
    """Return the scene of poses of one or more skeletons: the last one solid, earlier ones as ghosts.

    Args:
        poses: The poses.
        marks: Targets.
        theme: Colours.
        joint_names: Whether to label the joints.
        shown: Options for drawing bodies and their surroundings; None for bones only.

    Raises:
        InputError: If there is no pose, or a pose holds a position that is not finite.
    """
    if not poses:
        raise InputError("there is no pose to draw", expected="a Skeleton, a Pose or several poses")
    for pose in poses:
        if not np.isfinite(pose.frames).all():
            raise InputError("a pose has positions that are not finite", where=pose.skeleton.name)
    last = poses[-1]
    shown = shown or Appearance()
    up = find_up(last.skeleton).vector
    drawn = [pose.positions[drawn_joints(pose.skeleton)] for pose in poses]
    extent = max(float(np.linalg.norm(np.ptp(points, axis=0))) for points in drawn)
    if not extent > 0.0:  # all joints coincide, so the size comes from the targets, or is 1
        extent = max((mark.miss for mark in marks), default=0.0) or 1.0
    solid = _bodies(last, extent, theme, None)
    ghosts = tuple(_bodies(pose, extent, theme, theme.ghost) for pose in poses[:-1])
    worn = shown.skins
    dressed = tuple((worn[pose.skeleton], pose.frames) if pose.skeleton in worn else None for pose in poses)
    hulls = [skin.at(frames).hull for skin, frames in filter(None, dressed)]
    lowest = [float(np.min(hull @ up)) for hull in hulls]
    for bodies, skin in zip((*ghosts, solid), dressed, strict=True):
        if skin is None or not skin[0].whole:
            lowest += [float(np.min(end @ up - bodies.radii[:, k])) for k, end in enumerate((bodies.start, bodies.end))]
    cover = (shown.covers[last.skeleton], last.frames) if last.skeleton in shown.covers else None
    if cover is not None:
        lowest.append(float(np.min(cover[0].at(cover[1]).hull @ up)))
    around, spread = None, extent
    if shown.surroundings is not None:
        around = shown.surroundings.around((drawn[-1].min(0) + drawn[-1].max(0)) / 2.0, extent)
        if len(around.hull):
            lowest.append(float(np.min(around.hull @ up)))
            spread = max(extent, float(np.linalg.norm(np.ptp(np.concatenate([around.hull, drawn[-1]]), axis=0))))
    ground = min(lowest) if around is None or around.floor is None else around.floor
    written = {mark.label for mark in marks}
    rows = np.flatnonzero(drawn_joints(last.skeleton)).tolist() if joint_names else []
    named = [(last.positions[row], last.skeleton.joint_names[row]) for row in rows]
    return Scene(
        solid,
        ghosts,
        tuple(marks),
        tuple((place, name) for place, name in named if name not in written),
        up,
        ground,
        extent,
        last.skeleton.meters_per_unit,
        dressed,
        shown.look,
        np.concatenate([np.zeros((0, 3)), *hulls]),
        around,
        cover,
        spread,
        () if shown.gaps is None else tuple(shown.gaps.at(last)),
    )


def bones_of(skeleton: Skeleton) -> list[int]:
    """Return the rows whose bone (from parent to joint) is drawn.

    A free joint has no bone, except in three cases: it is the only child of a ball (such as toes that a clip
    translates), its parent is free (such as points of a recording), or most joints are free (as in files that store a
    position for every joint). A character has bones only below its hips if the file names them, else below the last
    common ancestor of its body parts. Joints above, such as an armature at the origin, only place the character in the
    world. Objects below another root have all their bones.
    """
    joints = skeleton.joints
    hips = next((row for row, joint in enumerate(joints) if joint.role == "hips"), None)
    moving = [joint.kind for joint in joints if joint.kind is not Kind.FIXED]
    all_free = moving.count(Kind.FREE) > 0.5 * len(moving)
    placing: set[int] = set()
    if hips is None and "hips" in skeleton.role_rows:
        if all_free:
            hips = skeleton.role_rows["hips"]
        lines = [ancestors(skeleton.parents, row) for row in skeleton.role_rows.values()]
        placing = set(lines[0]).intersection(*lines)
    roots: list[int] = []
    for row, parent in enumerate(skeleton.parents):
        roots.append(row if parent < 0 else roots[parent])
    inside = [hips in (None, row) or roots[row] != roots[hips] for row in range(len(skeleton))]
    rows: list[int] = []
    for row, parent in enumerate(skeleton.parents):
        free = joints[row].kind is Kind.FREE and not all_free
        if free and parent >= 0:
            above = joints[parent].kind
            free = above is not Kind.FREE and not (above is Kind.BALL and len(skeleton.children[parent]) == 1)
        if parent >= 0 and inside[parent] and not free:
            inside[row] = True
            if row not in placing:
                rows.append(row)
    return rows


def bone_lengths(skeleton: Skeleton) -> dict[int, float]:
    """Return the total length of the bones that begin at a joint, by row of the joint."""
    lengths: dict[int, float] = {}
    for row in bones_of(skeleton):
        above = skeleton.parents[row]
        lengths[above] = lengths.get(above, 0.0) + float(skeleton.lengths[row])
    return lengths


def drawn_joints(skeleton: Skeleton) -> NDArray[np.bool_]:
    """Return which joints are drawn, (n,): those in a group of connected bones with a length above 0.

    Joints with bars of loops are drawn, too. If no joint qualifies, all are drawn.
    """
    top = list(range(len(skeleton)))  # for each joint, the row of the topmost joint of its connected bones
    solid: set[int] = set()
    for row in bones_of(skeleton):
        top[row] = top[skeleton.parents[row]]
        if skeleton.lengths[row] > 0.0:
            solid.add(top[row])
    tied = rows_of(skeleton) if skeleton.loops else set[int]()
    shown = np.array([above in solid or row in tied for row, above in enumerate(top)])
    return shown if shown.any() else ~shown


def thickness(skeleton: Skeleton) -> Array:
    """Return the radius of each joint, (n,), length units: from ``radii_of``, but larger for joints with loops."""
    return radii_with_loops(skeleton, radii_of(skeleton, bones_of(skeleton)))


def radii_of(skeleton: Skeleton, bones: Sequence[int]) -> Array:
    """Return the radius of each joint, (n,), length units: larger for joints with longer chains below them.

    Radii depend on rest lengths only, so they are the same in all poses.
    """
    below = np.zeros(len(skeleton))  # length of the longest path from each joint to a tip
    longest = np.zeros(len(skeleton))  # length of the longest bone at each joint
    for row in reversed(bones):  # children come after their parents
        parent, length = skeleton.parents[row], float(skeleton.lengths[row])
        below[parent] = max(below[parent], below[row] + length)
        longest[[row, parent]] = np.maximum(longest[[row, parent]], length)
    total = float(below.max())
    reach = np.maximum(below, _TIP * longest) / total if total > 0.0 else below
    out = np.minimum(_THICK * total * reach**_TAPER, _STUBBY * longest)
    out = np.maximum(out, _THIN * total)
    for row, joint in enumerate(skeleton.joints):
        if not skeleton.children[row] and joint.kind is Kind.FIXED and not joint.tip:
            out[row] = _THIN * total  # a sensor or a tool frame without children
    return out


def _bodies(pose: Pose, extent: float, theme: Theme, paint: Colour | None) -> Bodies:
    """Return a pose as balls, barrels along the axes of hinges, and rods; in the colour ``paint``, if given."""
    skeleton, positions = pose.skeleton, pose.positions
    bones, shown = bones_of(skeleton), drawn_joints(skeleton)
    radius = thickness(skeleton)
    if not radius.any():  # all joints coincide
        radius[:] = _THICK * extent
    hues = np.array([paint or hue_of(skeleton, row, theme) for row in range(len(skeleton))], float) / 255.0
    dim = 1.0 if paint else theme.joint
    parts: list[tuple[Array, Array, float, float, Array]] = []
    head = head_of(skeleton)
    skulls: set[int] = set()
    if head is not None and shown[head]:
        skulls = {head, *(row for row in skeleton.children[head] if not skeleton.children[row])}
        parts.extend(_skull(pose, head, hues[head]))
    for row in np.flatnonzero(shown).tolist():
        if row in skulls:
            continue
        joint, at, r = skeleton.joints[row], positions[row], float(radius[row])
        reach = np.zeros(3)
        if joint.kind is Kind.HINGE:
            reach = _BARREL * r * (pose.frames[row, :9].reshape(3, 3) @ joint.axis)
            parts.append((at - reach, at + reach, r, r, dim * hues[row]))
        ends = (at - reach, at + reach) if reach.any() else (at,)
        parts.extend((end, end, r, r, dim * hues[row]) for end in ends)
    for row in bones:
        parent = skeleton.parents[row]
        start, end = positions[parent], positions[row]
        length = float(np.linalg.norm(end - start))
        if length <= 1e-6 * extent:
            continue
        ra, rb = _ROD[0] * float(radius[parent]), _ROD[1] * float(radius[row])
        ra = min(ra, 2.0 * float(radius[row]))  # avoids a funnel from a thick joint to a thin one
        if row not in skulls or parent not in skulls:
            parts.append((start, end, ra, rb, hues[parent]))
    parts += _loops(pose, radius, hues, paint, theme)
    columns = list(zip(*parts, strict=True))
    return Bodies(
        np.array(columns[0]), np.array(columns[1]), np.array([columns[2], columns[3]]).T, np.array(columns[4])
    )


def _loops(
    pose: Pose, radius: Array, hues: Array, paint: Colour | None, theme: Theme
) -> list[tuple[Array, Array, float, float, Array]]:
    """Return the loops of a pose as rods and balls: bars to tied points, rods of distance loops, and knots."""
    bars, knots = bars_of(pose.skeleton)
    ends, places = points_of(pose.skeleton, np.array(pose.frames))
    tied = np.array(paint or theme.loop, float) / 255.0
    out: list[tuple[Array, Array, float, float, Array]] = []
    for bar, (start, end) in zip(bars, ends, strict=True):
        r = (LOOP_ROD if bar.rod else LOOP_BAR) * float(radius[bar.row])
        if np.linalg.norm(end - start) > 0.0:
            out.append((start, end, r, r, tied if bar.rod else hues[bar.row]))
    for knot, place in zip(knots, places, strict=True):
        r = KNOT * float(radius[knot.row])
        out.append((place, place, r, r, tied))
    return out


def head_of(skeleton: Skeleton) -> int | None:
    """Return the row of a body's head, which must have a parent and a bone; None if there is none."""
    named = skeleton.role_rows.get("head")
    found = [named] if named is not None else []
    found += [row for row, joint in enumerate(skeleton.joints) if _is_head(joint)]
    return next((row for row in found if skeleton.parents[row] >= 0 and skeleton.lengths[row] > 0.0), None)


def _skull(pose: Pose, head: int, hue: Array) -> list[tuple[Array, Array, float, float, Array]]:
    """Return a head at its joint: two balls joined by a rod, and a nose that shows where the head looks.

    The head points to its tip if there is one, else away from the neck. Its size is clamped to fractions of the body's
    height, because the tip is too near or too far in many motion capture files.
    """
    skeleton, start = pose.skeleton, pose.positions[head]
    rest = skeleton.rest_pose()
    up = find_up(skeleton).vector
    tips = [row for row in skeleton.children[head] if not skeleton.children[row] and skeleton.lengths[row] > 0.0]
    above = max(tips, key=lambda row: float(rest.positions[row] @ up), default=None)
    below = skeleton.parents[head]
    axis = start - pose.positions[below] if above is None else pose.positions[above] - start
    length = float(np.linalg.norm(axis))
    roles = skeleton.role_rows
    leg = [roles[part] for part in ("left_lower_leg", "left_foot") if part in roles]
    tall = _LEGS * float(skeleton.lengths[leg].sum()) if len(leg) == 2 else 0.0
    if not tall > 0.0:
        tall = float(np.ptp(rest.positions[drawn_joints(skeleton)] @ up))
    if not length > 0.0 or not tall > 0.0:
        return []
    axis = axis / length
    if above is None or len(leg) == 2:
        length = min(max(0.0 if above is None else length, _HEAD[0] * tall), _HEAD[1] * tall)
    chin, crown, radius = start + 0.34 * length * axis, start + 0.62 * length * axis, 0.36 * length
    parts = [(chin, chin, radius, radius, hue), (crown, crown, radius, radius, hue), (chin, crown, radius, radius, hue)]
    legs = [roles[name] for name in ("left_upper_leg", "right_upper_leg", "left_foot") if name in roles]
    places = rest.positions[[*legs, head]]
    if len(legs) == 3 and float((places[3] - places[2]) @ up) > 0.5 * tall:  # whether the body stands at rest
        left = places[0] - places[1]
        ahead = pose.matrix(head) @ rest.matrix(head).T @ np.cross(left, up)
        ahead = ahead - (ahead @ axis) * axis
        size = float(np.linalg.norm(ahead))
        if size > 1e-6 * tall:
            nose = chin + 0.06 * length * axis + 1.02 * radius * ahead / size
            parts.append((nose, nose, 0.22 * radius, 0.22 * radius, hue))
    return parts


def is_crown(skeleton: Skeleton, row: int) -> bool:
    """Return whether a joint is the tip of a head and the head has no other child."""
    parent = skeleton.parents[row]
    alone = parent >= 0 and len(skeleton.children[parent]) == 1 and not skeleton.children[row]
    return alone and _is_head(skeleton.joints[parent])


def _is_head(joint: Joint) -> bool:
    """Return whether a joint is a head, by role or by name."""
    return joint.role == "head" or (joint.role is None and joint.name.rsplit(":", 1)[-1].lower() == "head")


def hue_of(skeleton: Skeleton, row: int, theme: Theme) -> Colour:
    """Return the colour of a joint by its side of the body, which comes from its role or name."""
    joint = skeleton.joints[row]
    found = _SIDE.search(joint.role or "") or _SIDE.search(_plain(joint.name))
    if found is None:
        return theme.bone
    return theme.left if found[1] else theme.right


def _plain(name: str) -> str:
    """Return a name without its namespace, in lower case unless a capital follows a leading l or r."""
    short = name.rsplit(":", 1)[-1]
    if re.match(r"[lr][A-Z]", short):
        return short
    return short.lower()
