"""Build the skeleton of a compiled MuJoCo model.

Every body is a chain of rows, one for each of its joints. The last row is the frame of the body, and the name of the
body means this row. The frame of a joint is at its anchor. If the anchor is not at the body's origin, a FIXED row named
after the body follows, with its frame at the origin. The values of hinges and slides are MuJoCo's ``qpos``, for any
reference (``ref``). The values of free joints are relative to the pose of the body in the file.

A site with a name becomes a ``Site`` on the row of its body: a frame that goals can name, but not a row.

MuJoCo limits a ball joint by its whole angle, which swing and twist cannot express. The limit here is the largest one
of equal swing and twist inside that bound, so that no pose leaves it. Equality constraints become followers, locked
joints, couplings and loops (``equalities.py``); the range of a follower also restricts its leader, as in MuJoCo. The
notes of the skeleton list constraints and tendon limits that are not kept, and joints that cannot move. They also list
reversed ranges, which count as no limit, and bodies of motion capture (mocap), which count as fixed.

Geoms that collide become shapes of their bodies (``geoms.py``).

A mass is 0 if MuJoCo would compute it from a missing shape. To find these bodies, the model is compiled with stand-ins
(placeholder shapes) of two sizes: if a mass or a centre of mass differs, it comes from a stand-in.

References:
    https://mujoco.readthedocs.io/en/stable/computation/index.html and .../XMLreference.html
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from synovia.errors import FormatError
from synovia.io.base import immovable_note, optional_package
from synovia.io.mjcf.equalities import Equalities, keep_closed
from synovia.io.mjcf.files import Files, Shape, check_files, stand_ins
from synovia.io.mjcf.geoms import Geoms
from synovia.io.xmltree import HUGE
from synovia.model import Joint, Kind, Mimic, Site, Skeleton
from synovia.model.address import LINK
from synovia.model.geometry import Array, quat_to_matrix, rigid
from synovia.model.limits import Interval, SwingTwist
from synovia.model.simulators import mujoco_names
from synovia.model.tree import unused_name
from synovia.text import listed

if TYPE_CHECKING:
    from synovia.model.loops.loop import Tie
    from synovia.model.shapes.solids import Solid
    from synovia.model.shapes.world import World

_Mujoco = Any  # type of the package mujoco and of its models, which have no type annotations
_KINDS: Final = (Kind.FREE, Kind.BALL, Kind.SLIDE, Kind.HINGE)  # in the order of MuJoCo's mjtJoint
_AT_ORIGIN: Final = 1e-14  # metres: closer anchors count as at the body's origin, or on an axis through the origin
_HIDDEN: Final = 5  # MuJoCo's last group of geoms, hidden by default; geoms whose shape files are missing go there
_HANDLER: Final = Lock()  # MuJoCo has one warning handler for the whole process


def read_skeleton(path: Path) -> Skeleton:
    """Read the skeleton of an MJCF file.

    Args:
        path: The file.

    Raises:
        FileError: If the file cannot be read.
        FormatError: If the file is malformed; the message names the line if MuJoCo reports it.
        MissingExtraError: If MuJoCo is not installed.
    """
    return _reader(path).skeleton(path)


def read_model(path: Path) -> tuple[Any, list[int]]:
    """Return MuJoCo's model of an MJCF file, and the skeleton row of each body; errors as in ``read_skeleton``."""
    reader = _reader(path)
    reader.skeleton(path)
    return reader.model, reader.row_of


def read_world(path: Path) -> World:
    """Return the colliding geoms as obstacles, in the pose of the file; errors as in ``read_skeleton``.

    An obstacle is a body, or a geom of the world body. A plane is a half-space, whatever its drawn size.
    """
    return _reader(path).world(path)


def _reader(path: Path) -> _Reader:
    """Check and compile a file, and return a reader that builds its skeleton."""
    files = check_files(path)
    mujoco = optional_package("mujoco", "reading MJCF needs the package mujoco", "mujoco", str(path))
    return _Reader(mujoco, _compile(mujoco, path, files), str(path))


@dataclass(frozen=True, slots=True, eq=False)
class _Compiled:
    """A compiled model.

    Args:
        model: MuJoCo's model; geoms whose shape files are missing are in the last geom group, ``_HIDDEN``.
        weighed: (bodies,) whether the mass and the centre of mass of each body come from the file, not from a stand-in.
        stood_in: (geoms,) whether each geom is a stand-in.
        notes: Sentences about what is missing.
    """

    model: _Mujoco
    weighed: NDArray[np.bool_]
    stood_in: NDArray[np.bool_]
    notes: tuple[str, ...] = ()


def _compile(mujoco: _Mujoco, path: Path, files: Files) -> _Compiled:
    """Compile a file without its missing shapes, or without any shape if MuJoCo cannot use the others."""
    missing, why = files.missing, "missing or outside the model's folder"
    try:
        model = _model(mujoco, path, missing, 1.0, several=files.several)
    except FormatError:
        if len(missing) == len(files.shapes):
            raise
        missing, why = files.shapes, "left out, because MuJoCo cannot use some of them"
        with suppress(FormatError):
            model = _model(mujoco, path, missing, 1.0, several=files.several)
            return _with_stand_ins(mujoco, path, files, missing, why, model)
        raise
    return _with_stand_ins(mujoco, path, files, missing, why, model)


def _with_stand_ins(
    mujoco: _Mujoco, path: Path, files: Files, missing: Sequence[Shape], why: str, model: _Mujoco
) -> _Compiled:
    """Return a model with stand-ins for some shapes, after finding the masses that depend on them."""
    if not missing:
        return _Compiled(model, np.ones(int(model.nbody), np.bool_), np.zeros(int(model.ngeom), np.bool_), files.notes)
    other = _model(mujoco, path, missing, 2.0, several=files.several)
    stood_in = np.array(np.any(model.geom_size != other.geom_size, axis=1), np.bool_)
    model.geom_group[stood_in] = _HIDDEN
    weighed = np.array(
        (model.body_mass == other.body_mass) & np.all(model.body_ipos == other.body_ipos, axis=1), np.bool_
    )
    names = listed([*dict.fromkeys(shape.name for shape in missing)])
    notes = [*files.notes, f"Files of shapes are {why}: {names}. Kinematics does not need them."]
    unknown = [mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_BODY, b) or f"body{b}" for b in np.flatnonzero(~weighed)]
    if unknown:
        notes.append(f"The masses of these bodies depend on such shapes and were set to 0: {listed(unknown)}.")
    return _Compiled(model, weighed, stood_in, tuple(notes))


def _model(mujoco: _Mujoco, path: Path, missing: Sequence[Shape], size: float, *, several: bool) -> _Mujoco:
    """Return MuJoCo's model of a file; MuJoCo's warnings are caught, so that MuJoCo writes no log file.

    Args:
        mujoco: The package.
        path: The file.
        missing: Shapes that get a stand-in.
        size: Relative size of the stand-ins.
        several: Whether the model consists of several files, so that a line number does not identify a place.
    """
    warnings: list[str] = []
    failure: Exception | None = None
    model: _Mujoco = None
    with _HANDLER:
        before = mujoco.get_mju_user_warning()
        mujoco.set_mju_user_warning(warnings.append)
        try:
            model = mujoco.MjModel.from_xml_path(str(path), stand_ins(missing, size))
        except Exception as error:  # noqa: BLE001  MuJoCo raises several types, all about the file
            failure = error
        finally:
            mujoco.set_mju_user_warning(before)
    if any("nan" in warning.lower() for warning in warnings):  # NaN causes MuJoCo's other messages
        raise FormatError("holds a number that is NaN", where=str(path), expected="finite numbers")
    if failure is not None:
        text = " ".join(str(failure).split())
        line = re.search(r"line(?: number=)? ?(\d+)", text, re.IGNORECASE)
        where = f"{path}:{line[1]}" if line and int(line[1]) > 0 and not several else str(path)
        raise FormatError(f"MuJoCo cannot compile it: {text}", where=where) from failure
    return model


class _Reader:
    """Converts a compiled model to joints."""

    def __init__(self, mujoco: _Mujoco, compiled: _Compiled, where: str) -> None:
        self.mujoco = mujoco
        self.model = model = compiled.model
        self.weighed = compiled.weighed
        self.notes = [*compiled.notes]
        self.where = where
        self.row_of: list[int] = []  # row of each body's frame
        self.geoms = Geoms(mujoco, model, compiled.stood_in)
        self.bodies, self.joints = mujoco_names(model)
        self.sites = [mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_SITE, s) for s in range(model.nsite)]
        self.taken = {*self.bodies, *self.joints, *filter(None, self.sites)}
        equalities = Equalities(mujoco, model, self.bodies, self.joints, self.checked)
        self.followers, self.locked, self.ties = equalities.followers, equalities.locked, equalities.ties
        self.ranges = equalities.ranges
        self.notes += equalities.notes
        self.read_tendon_limits()
        self.drop_conflicting_ranges()
        self.note_joints()
        self.notes += self.geoms.notes(self.bodies)

    def skeleton(self, path: Path) -> Skeleton:
        """Return the skeleton."""
        rows: list[Joint] = []
        row_of = self.row_of
        for body in range(self.model.nbody):
            rows += self.rows(body, row_of[int(self.model.body_parentid[body])] if body else None, len(rows))
            row_of.append(len(rows) - 1)
        pairs = [(f"{LINK}:{self.bodies[a]}", f"{LINK}:{self.bodies[b]}") for a, b in self.geoms.excluded]

        def with_loops(ties: Sequence[Tie]) -> Skeleton:
            return Skeleton(
                rows,
                name=path.name,
                meters_per_unit=1.0,
                up="z",
                forward="x",
                notes=self.notes,
                source=path,
                excluded_pairs=pairs,
                loops=ties,
            )

        return with_loops(keep_closed(self.ties, with_loops, self.notes) if self.ties else ())

    def world(self, path: Path) -> World:
        """Return the obstacles."""
        from synovia.model.shapes.world import Obstacle, World, unlike

        m = self.model
        frames = [rigid()]
        for body in range(1, int(m.nbody)):
            turn = quat_to_matrix(np.roll(self.checked(m.body_quat[body], "quat of a body"), -1))  # MuJoCo stores wxyz
            own = rigid(self.checked(m.body_pos[body], "pos of a body"), turn)
            frames.append(frames[int(m.body_parentid[body])] @ own)
        groups: dict[tuple[int, int], list[Solid]] = {}  # solids of each obstacle: a body, or a geom of the world body
        for geom, shape in sorted({**self.geoms.solids, **self.geoms.planes}.items()):
            body = int(m.geom_bodyid[geom])
            groups.setdefault((body, -1 if body else geom), []).append(shape)
        names = unlike(
            self.bodies[body] if body else self.mujoco.mj_id2name(m, self.mujoco.mjtObj.mjOBJ_GEOM, geom)
            for body, geom in groups
        )
        found = [
            Obstacle(tuple(shapes), name=name, transform=frames[body])
            for name, ((body, _), shapes) in zip(names, groups.items(), strict=True)
        ]
        moving = [self.joints[j] for j in range(int(m.njnt))]
        notes = [
            *self.geoms.notes(self.bodies, planes=True),
            *([f"Joints stay where they are in the file: {listed(moving)}."] if moving else []),
        ]
        return World(tuple(found), meters_per_unit=1.0, up="z", notes=tuple(notes), source=path)

    def rows(self, body: int, parent: int | None, at: int) -> list[Joint]:
        """Return the rows of a body, which begin at row ``at`` of the skeleton; the last row is the frame of the body.

        About the anchor a of a hinge or ball, MuJoCo applies Tr(a) · R · Tr(-a). The next row starts with Tr(-a).
        """
        m, place = self.model, f"body {self.bodies[body]!r}"
        quat = np.roll(self.checked(m.body_quat[body], f"quat of {place}"), -1)  # MuJoCo stores wxyz
        left = rigid(self.checked(m.body_pos[body], f"pos of {place}"), quat_to_matrix(quat))
        rows: list[Joint] = []
        for j in range(m.body_jntadr[body], m.body_jntadr[body] + m.body_jntnum[body]):
            rest, left = self.rest(j, left)
            kind = self.kind(j)
            name = self.joints[j]
            axis = np.array(m.jnt_axis[j]) if kind in (Kind.HINGE, Kind.SLIDE) else np.zeros(3)
            ref = self.reference(j)
            rows.append(
                Joint(
                    name,
                    at + len(rows) - 1 if rows else parent,
                    kind,
                    rest,
                    axis,
                    self.limit(j, body),
                    preferred=ref if ref != 0.0 else None,
                    mimic=self.mimic(j),
                )
            )
        if not rows or np.any(left != np.eye(4)):
            name = self.bodies[body]
            if name in self.joints:
                name = unused_name(f"{name}_frame", self.taken)
            rows.append(Joint(name, at + len(rows) - 1 if rows else parent, rest=left))
        mass, com = 0.0, np.zeros(3)
        if self.weighed[body]:
            mass = float(self.checked(m.body_mass[body], f"mass of {place}"))
            com = self.checked(m.body_ipos[body], f"centre of mass of {place}")
        sites = tuple(self.sites_of.get(body, ()))
        shapes = tuple(self.geoms.shapes.get(body, ()))
        rows[-1] = replace(
            rows[-1],
            mass=mass,
            com=com,
            body=self.bodies[body],
            sites=sites,
            shapes=shapes,
            shapes_lost=body in self.geoms.incomplete,
        )
        return rows

    @cached_property
    def sites_of(self) -> dict[int, list[Site]]:
        """Named sites of each body, in the frame of the body."""
        m = self.model
        out: dict[int, list[Site]] = {}
        for s, name in enumerate(self.sites):
            if name:
                quat = np.roll(self.checked(m.site_quat[s], f"quat of site {name!r}"), -1)  # MuJoCo stores wxyz
                place = rigid(self.checked(m.site_pos[s], f"pos of site {name!r}"), quat_to_matrix(quat))
                out.setdefault(int(m.site_bodyid[s]), []).append(Site(name, place))
        return out

    def rest(self, j: int, left: Array) -> tuple[Array, Array]:
        """Return the rest transform of a joint, and the remaining transform for the next row."""
        m, kind = self.model, self.kind(j)
        ref, axis = self.reference(j), self.checked(m.jnt_axis[j], f"axis of joint {self.joints[j]!r}")
        if kind is Kind.FREE:
            return left, rigid()
        if kind is Kind.SLIDE:
            return left @ rigid(-ref * axis), rigid()
        anchor = self.checked(m.jnt_pos[j], f"pos of joint {self.joints[j]!r}")
        off = anchor - (anchor @ axis) * axis if kind is Kind.HINGE else anchor  # the part along the axis has no effect
        if np.linalg.norm(off) <= _AT_ORIGIN:
            anchor = np.zeros(3)
        turn = quat_to_matrix(np.array([*(math.sin(-ref / 2.0) * axis), math.cos(ref / 2.0)]))
        return left @ rigid(anchor, turn), rigid(-anchor)

    def kind(self, j: int) -> Kind:
        """Return the kind of a joint."""
        return _KINDS[int(self.model.jnt_type[j])]

    def reference(self, j: int) -> float:
        """Return the value of a hinge or slide in the pose of the file; 0 for other joints."""
        if self.kind(j) not in (Kind.HINGE, Kind.SLIDE):
            return 0.0
        value = self.model.qpos0[self.model.jnt_qposadr[j]]
        return float(self.checked(value, f"ref of joint {self.joints[j]!r}"))

    def limit(self, j: int, body: int) -> Interval | SwingTwist | None:
        """Return the limit of a joint."""
        m, kind = self.model, self.kind(j)
        if j in self.locked:
            return Interval(self.locked[j], self.locked[j])
        low, high = self.ranges.get(j) or (float(v) for v in m.jnt_range[j])
        if not m.jnt_limited[j] or kind is Kind.FREE:
            return None
        if kind is Kind.BALL:
            if high >= math.pi:
                return None
            # A swing s and a twist t give a rotation of angle a with cos(a/2) = cos(s/2) cos(t/2); here s = t.
            angle = 2.0 * math.acos(math.sqrt(math.cos(high / 2.0)))
            bone = m.body_ipos[body] - m.jnt_pos[j]
            bone = bone if np.linalg.norm(bone) > 1e-9 else np.array([0.0, 0.0, 1.0])
            return SwingTwist.about(bone, x=(angle, angle), y=(angle, angle), twist=(-angle, angle))
        return Interval(low, high)

    def mimic(self, j: int) -> Mimic | None:
        """Return the coupling of a joint to its leader; None without a leader."""
        coupling = self.followers.get(j)
        if coupling is None:
            return None
        return Mimic(self.joints[coupling.leader], coupling.ratio, coupling.offset, coupling.binds)

    def read_tendon_limits(self) -> None:
        """Add notes about the limits of tendons, which restrict the joints along them."""
        m, kinds = self.model, self.mujoco.mjtObj
        for t in np.flatnonzero(m.tendon_limited):
            name = self.mujoco.mj_id2name(m, kinds.mjOBJ_TENDON, t) or str(t)
            wraps = range(int(m.tendon_adr[t]), int(m.tendon_adr[t] + m.tendon_num[t]))
            joint = int(self.mujoco.mjtWrap.mjWRAP_JOINT)
            along = [self.joints[int(m.wrap_objid[w])] for w in wraps if int(m.wrap_type[w]) == joint]
            binds = f", which restrict joints {listed(along)} together," if along else ""
            self.notes.append(f"The limits of tendon {name!r}{binds} were not kept.")

    def drop_conflicting_ranges(self) -> None:
        """Drop the range of each follower that would leave its leader no allowed value."""
        left: dict[int, tuple[float, float]] = {}
        for j, own in self.followers.items():
            head, ratio, offset = own.leader, own.ratio, own.offset
            while head in self.followers:
                above = self.followers[head]
                head, ratio, offset = above.leader, ratio * above.ratio, offset + ratio * above.offset
            limit = self.limit(j, 0) if own.binds else None
            if not isinstance(limit, Interval):
                continue
            if head not in left:
                whole = self.limit(head, 0)
                left[head] = (whole.lower, whole.upper) if isinstance(whole, Interval) else (-math.inf, math.inf)
            low, high = left[head]
            if ratio == 0.0:
                fits = limit.contains(offset)
            else:
                ends = sorted(((limit.lower - offset) / ratio, (limit.upper - offset) / ratio))
                low, high = max(low, ends[0]), min(high, ends[1])
                fits = low <= high
            if fits:
                left[head] = low, high
            else:
                self.followers[j] = replace(own, binds=False)
                text = f"leaves no valid value for {self.joints[head]!r}, which it follows"
                self.notes.append(f"The range of joint {self.joints[j]!r} was not kept: it {text}.")

    def note_joints(self) -> None:
        """Add notes about joints that cannot move, limits that are changed, and mocap bodies."""
        m = self.model
        limits = {j: self.limit(j, int(m.jnt_bodyid[j])) for j in range(m.njnt) if j not in self.followers}
        still = {
            self.joints[j]: limit.lower for j, limit in limits.items() if isinstance(limit, Interval) and limit.locked
        }
        if still:
            self.notes.append(immovable_note(still))
        backwards = [
            self.joints[j] for j in range(m.njnt) if not m.jnt_limited[j] and m.jnt_range[j][0] > m.jnt_range[j][1]
        ]
        if backwards:
            self.notes.append(f"Reversed ranges were ignored: {listed(backwards)}.")
        balls = [self.joints[j] for j, limit in limits.items() if isinstance(limit, SwingTwist)]
        if balls:
            text = "replaced by swing and twist limits inside MuJoCo's total angle"
            self.notes.append(f"The limits of ball joints are {text}: {listed(balls)}.")
        moved = [name for name, mocap in zip(self.bodies, m.body_mocapid, strict=True) if mocap >= 0]
        if moved:
            self.notes.append(f"Bodies that a simulation moves from outside (mocap) are fixed: {listed(moved)}.")

    def checked(self, value: _Mujoco, what: str) -> Array:
        """Return values of the model as an array; raise an error for NaN and huge values."""
        array = np.array(value, dtype=np.float64)
        if not np.all(np.abs(array) <= HUGE):
            raise FormatError(
                f"{what} cannot be used", where=self.where, value=array.tolist(), expected=f"numbers up to {HUGE:g}"
            )
        return array
