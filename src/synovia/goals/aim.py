"""Aim: point an axis of a joint at a world point."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, InitVar
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from synovia.errors import InputError, UnsupportedError
from synovia.goals import describe
from synovia.goals.base import POSITION, ROTATION, Goal, Term, as_lengths, goal_class
from synovia.goals.bounds import CONE, cone_term, cone_values
from synovia.goals.describe import Place, Sketch, View
from synovia.model import Kind
from synovia.model.geometry import Array, align_z, as_direction, between_directions, rigid, unit

if TYPE_CHECKING:
    from synovia.model import Skeleton

_Y: Final = (0.0, 1.0, 0.0)
_Z: Final = (0.0, 0.0, 1.0)
_ALONG: Final = 0.95  # cosine between a direction and the axis; above it, the direction does not define the roll
_APART: Final = "a direction at least 18 degrees away from the axis"
_TRUNK: Final = ("upper_chest", "chest", "spine", "hips", "root")
_FAR: Final = 0.5  # body sizes: largest length of a line in a picture


@goal_class
class AimGoal(Goal):
    """An axis of a joint should point at a point: a gaze, a lamp, a pointing finger.

    Residual: the rotation vector θ n of the smallest rotation that takes the axis u to the direction d of the point,
    n = u × d / |u × d|, θ = atan2(|u × d|, u·d) (3 rows, radians). With ``up``, the roll φ u is added: φ is the angle
    about u from ``top`` to ``up``. Where u is within 11.5° of ``up``, the roll fades to 0. At the point itself, the
    direction is undefined and the residual is 0.

    Args:
        point: World point (3,), length units; None for the point at which the start aims.
        axis: Axis in the joint's frame, (3,); its length does not matter. None for the facing direction of a head,
            which is known by its role, and for the z axis of any other joint.
        up: World direction (3,) in which ``top`` should point as far as the axis allows. None for the upward direction
            if the joint is a head or an eye that rotates in all directions; other joints roll freely. A target with a
            rotation has up as its z axis.
        roll: ``"free"`` to let a head or an eye roll as well; None for the default.
        top: Direction (3,) in the joint's frame. None for the direction that points up at rest, or the y axis if that
            is nearly the axis.
        offset: Point on the joint that the axis passes through, (3,), in its frame.
        cone: Half-angle in radians by which the axis may deviate from the direction of the point; None for 0. The roll
            is not affected.
        ancestors: Number of joints above the goal's own that may move for the goal; None for all.

    Raises:
        InputError: If a value cannot be used.

    Example:
        >>> AimGoal("head", (0.0, 1.6, 3.0), ancestors=1)
        AimGoal('head', point=(0, 1.6, 3), ancestors=1)
    """

    kind = "aim"
    summary = "An axis of a joint should point at a point: the face of a head, else the z axis, if none is given."
    fields = (
        describe.position("point"),
        describe.attribute("axis", "direction", describe.AXIS, control=True),
        describe.Field(
            name="up",
            form="direction",
            text="World direction of top; by default, upwards for a head or an eye.",
            take=describe.normal_of,
        ),
        describe.attribute("roll", "choice", '"free" lets a head or an eye roll.', choices=("free",)),
        describe.attribute("top", "direction", "Direction in the joint's frame that up turns; by default, up at rest."),
        describe.offset(),
        CONE,
        describe.ANCESTORS,
    )
    needs = "aim"

    point: InitVar[Any] = None
    _: KW_ONLY
    axis: Any = None
    up: InitVar[Any] = None
    roll: str | None = None
    top: Any = None
    offset: Any = None
    cone: float | None = None
    ancestors: int | None = None

    def __post_init__(self, point: Any, up: Any) -> None:
        """Check the values. The axis becomes the z axis of the goal's frame, and ``up`` the z axis of its target."""
        place = (0.0, 0.0, 0.0) if self.offset is None else as_lengths(self.offset, (3,), "offset")
        axis = None if self.axis is None else as_direction(self.axis, "axis")
        top = None if self.top is None else as_direction(self.top, "top")
        if self.roll not in (None, "free") or (self.roll is not None and up is not None):
            raise InputError("roll", value=self.roll, expected="'free' without up=, or None")
        if axis is not None and top is not None and abs(float(axis @ top)) > _ALONG:
            raise InputError("top", value=top.tolist(), expected=_APART)
        self._keep(offset=rigid(place, None if axis is None else align_z(axis)), axis=axis, top=top)
        super().__post_init__()
        self._aim_at(point, None if up is None else align_z(as_direction(up, "up")))
        self._keep(**cone_values(self.cone))

    def resolved(self, skeleton: Skeleton) -> Goal:
        """Return the goal with its axis as the z axis of its frame; with ``up``, also with its top as the y axis."""
        row, place = skeleton.locate(self.joints[0])
        if self.axis is None and _looks(skeleton, row) and not _shows_face(skeleton):
            raise UnsupportedError(
                "the rest pose does not show where the head looks", where=f"goal on {self.joint!r}",
                expected="axis=, the direction in the joint's frame, or a rest pose that stands",
                hint="sy.skeletons.stand_at_rest(motion) returns a clip with one",
            )  # fmt: skip
        axis, top = axis_of(skeleton, row) if self.axis is None else self.axis, self.top
        free = self._with(offset=rigid(self.offset[:3, 3], align_z(axis)), axis=axis)
        asked = bool(self.given & ROTATION)
        if not asked and (self.roll is not None or not (self.top is not None or _keeps_level(skeleton, row))):
            return free
        rises = None if asked and top is not None else _rises_at_rest(skeleton)
        if top is None and rises is not None:
            turn = skeleton.rest_pose().matrix(row)
            top = (turn if place is None else turn @ place[:3, :3]).T @ rises
        if top is None or abs(float(axis @ top)) > _ALONG:
            if self.top is not None:
                raise InputError("top", value=self.top.tolist(), expected=_APART, where=f"goal on {self.joint!r}")
            if not asked:
                return free
            top = np.array(_Y if abs(float(axis[1])) <= _ALONG else _Z)
        target = rigid() if self.target is None else self.target.copy()
        if not asked:
            if rises is None:
                return free
            target[:3, :3] = align_z(rises)
        side = unit(np.cross(top, axis))
        offset = rigid(self.offset[:3, 3], np.column_stack([side, np.cross(axis, side), axis]))
        return self._with(offset=offset, axis=axis, top=top, target=target, given=self.given | ROTATION)

    def facing(self, axis: Array, top: Array) -> Goal:
        """Return the same goal with the axis and top of a head, if it has no axis of its own."""
        if self.axis is not None:
            return self
        top = self.top if self.top is not None else top
        return self._with(offset=rigid(self.offset[:3, 3], align_z(axis)), axis=axis, top=top)

    def rolling_freely(self) -> Goal:
        """Return the same goal without ``up``, so that its joint rolls freely."""
        return self._with(given=self.given & ~ROTATION)

    @property
    def terms(self) -> tuple[Term, ...]:
        """Further residuals: an angle in three rows; with a cone, one row for the axis and three for the roll."""
        rolls = self.given & ROTATION
        if not self.cone:
            return (Term(kind="aim", angles=3, takes=POSITION | rolls),)
        roll = Term(kind="aim", angles=3, takes=POSITION | rolls, numbers=(1.0,))
        return (cone_term(self.cone, aims=True), *([roll] if rolls else []))

    @property
    def usual_parts(self) -> int:
        """Return POSITION: targets are usually points, because the goal gives ``up``."""
        return POSITION

    def met_at(self, now: Array, others: Sequence[Array]) -> Array | None:
        """Return targets at points on the axis, one length unit away, with the top direction as ``up``."""
        out = now.copy()
        out[:, :3, 3] += now[:, :3, 2]
        out[:, :3, :3] = now[:, :3, [2, 0, 1]]
        return out

    def part_way(self, now: Array, others: Sequence[Array], target: Array, weight: Array) -> Array | None:
        """Interpolate directions between the axis and the target, at the target's distance, and likewise ``up``."""
        out, way = target.copy(), target[:, :3, 3] - now[:, :3, 3]
        far = np.linalg.norm(way, axis=1, keepdims=True)
        out[:, :3, 3] = now[:, :3, 3] + far * between_directions(now[:, :3, 2], unit(way), weight)
        if self.given & ROTATION:
            ups = between_directions(now[:, :3, 1], target[:, :3, 2], weight)
            out[:, :3, :3] = np.reshape([align_z(up) for up in ups], (-1, 3, 3))
        return out

    def describe_miss(self, length: float, angle: float, say: Callable[[float], str]) -> str:
        """Return a text with the angle between the axis and the direction of the point, roll included."""
        roll = " or rolls away from its up" if self.given & ROTATION else ""
        return f"points {describe.degrees(angle)} {'outside its cone' if self.cone else 'past its target'}{roll}"

    def sketch(self, view: View) -> Sketch:
        """Return a line to the point; it is shortened for a far point, so that the body stays large in the picture."""
        p, t = view.at[:3, 3], view.target[:3, 3]
        if float(np.linalg.norm(t - p)) <= _FAR * view.size:
            return Sketch(target=t, paths=[np.stack([p, t])], note="angle", on_joint=False)
        return Sketch(paths=[describe.ray(p, t - p, _FAR * view.size)], note="angle")

    @classmethod
    def first_values(cls, skeleton: Skeleton, row: int, up: Array) -> dict[str, Any]:
        """Return the argument ``axis`` of a new goal: the axis of the joint."""
        return {"axis": tuple(axis_of(skeleton, row).tolist())}

    @classmethod
    def first_target(cls, place: Place, values: dict[str, Any]) -> Array:
        """Return the target of a new goal: a point on the axis."""
        target = place.at.copy()
        way = place.frames(place.row)[:3, :3] @ np.asarray(values["axis"], float)
        target[:3, 3] = describe.ray(target[:3, 3], way, describe.AHEAD * place.size)[1]
        return target


def _rises_at_rest(skeleton: Skeleton) -> Array | None:
    """Return the upward direction of the world, (3,), from the skeleton or its rest pose; None if it is unknown."""
    if skeleton.up is not None:
        return skeleton.up_vector("up=")
    from synovia.model.anatomy.up import SHOWN, find_up

    found = find_up(skeleton)
    return found.vector if found.certainty >= SHOWN else None


def _looks(skeleton: Skeleton, row: int) -> bool:
    """Return whether a joint is a head or an eye."""
    return row in {skeleton.role_rows.get(role) for role in ("head", "left_eye", "right_eye")}


def _shows_face(skeleton: Skeleton) -> bool:
    """Return whether a person's facing direction is known from file or rest pose; True for all other bodies."""
    from synovia.model.anatomy.up import SHOWN, find_up

    person = {"hips", "left_upper_leg", "right_upper_leg"} <= skeleton.role_rows.keys()
    return not person or skeleton.forward is not None or find_up(skeleton).certainty >= SHOWN


def _keeps_level(skeleton: Skeleton, row: int) -> bool:
    """Return whether a joint is an eye, or a head with a known face, that can rotate about all axes."""
    roles = skeleton.role_rows
    if row == roles.get("head"):
        freedom, trunk = 0, {roles.get(role) for role in _TRUNK}
        if skeleton.face is None:
            return False
        while row >= 0 and row not in trunk:
            freedom += skeleton.joints[row].kind.v_size
            row = skeleton.parents[row]
        return freedom >= 3
    return row in {roles.get("left_eye"), roles.get("right_eye")} and skeleton.joints[row].kind is Kind.BALL


def axis_of(skeleton: Skeleton, row: int) -> Array:
    """Return the axis of a joint that aims, in its frame: the facing direction of head or eye, else the z axis."""
    face, head = skeleton.face, skeleton.role_rows.get("head")
    if face is None or head is None or not _looks(skeleton, row):
        return np.array(_Z)
    if row == head:
        return face
    rest = skeleton.rest_pose()
    return np.asarray(np.round(rest.matrix(row).T @ rest.matrix(head) @ face, 12))
