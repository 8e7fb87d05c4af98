"""The skeleton of a compiled MuJoCo model.

Every body is a chain of rows, one for each of its joints, and the last row is the body's own frame, which the body's
name means. A joint whose anchor is not at the body's origin stands at the anchor, so a FIXED row, named after
the body, leads back to the origin. The values of hinges and slides are MuJoCo's ``qpos``, whatever the reference
(``ref``); those of free joints are relative to where the file puts the body.

MuJoCo bounds a ball joint by its whole angle, which no swing and twist expresses. The limit here is the largest one of
equal swing and twist inside that bound, so that no pose leaves it. Linear couplings of joints (``equality/joint``) are
kept; closed loops (``connect``, ``weld``), tendons and sites are not.

References:
    https://mujoco.readthedocs.io/en/stable/computation/index.html and .../XMLreference.html
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import Any, Final

import numpy as np

from synovia.errors import FormatError, MissingExtraError, UnsupportedError
from synovia.geometry import Array, quat_to_matrix, rigid
from synovia.io.mjcf.files import check_files
from synovia.limits import Interval, SwingTwist
from synovia.skeleton import Joint, Kind, Mimic, Skeleton
from synovia.xmltree import HUGE

_Mujoco = Any  # the package and its model have no types
_KINDS: Final = (Kind.FREE, Kind.BALL, Kind.SLIDE, Kind.HINGE)  # in the order of MuJoCo's mjtJoint
_AT_ORIGIN: Final = 1e-14  # metres: an anchor this close to the body's origin, or to an axis through it, is on it
_HANDLER: Final = Lock()  # MuJoCo has one handler of warnings for the whole process


def read_skeleton(path: Path) -> Skeleton:
    """Return the skeleton of an MJCF file.

    Args:
        path: The file.

    Raises:
        FileError: If it cannot be read.
        FormatError: If it is malformed; the message names the line where MuJoCo does.
        MissingExtraError: If MuJoCo is not installed.
        UnsupportedError: If joints are coupled in a way that is not linear.
    """
    return _reader(path).skeleton(path.name)


def read_model(path: Path) -> tuple[Any, list[int]]:
    """Return MuJoCo's own model of an MJCF file, and the skeleton's row of each of its bodies; arguments as above."""
    reader = _reader(path)
    reader.skeleton(path.name)
    return reader.model, reader.row_of


def _reader(path: Path) -> _Reader:
    """Return the reader of a file that may be opened."""
    several = check_files(path)
    try:
        mujoco = import_module("mujoco")
    except ImportError as error:
        raise MissingExtraError(
            "reading MJCF needs the package mujoco", where=str(path), hint='pip install "synovia[mujoco]"'
        ) from error
    return _Reader(mujoco, _compile(mujoco, path, several=several), str(path))


def _compile(mujoco: _Mujoco, path: Path, *, several: bool) -> _Mujoco:
    """Return MuJoCo's model of a file; its warnings stay out of a log file in the user's folder."""
    warnings: list[str] = []
    failure: Exception | None = None
    model: _Mujoco = None
    with _HANDLER:
        before = mujoco.get_mju_user_warning()
        mujoco.set_mju_user_warning(warnings.append)
        try:
            model = mujoco.MjModel.from_xml_path(str(path))
        except Exception as error:  # noqa: BLE001  MuJoCo raises several types, all about the file
            failure = error
        finally:
            mujoco.set_mju_user_warning(before)
    if any("nan" in warning.lower() for warning in warnings):  # the cause of whatever else it says
        raise FormatError("holds a number that is NaN", where=str(path), expected="finite numbers")
    if failure is not None:
        text = " ".join(str(failure).split())
        line = re.search(r"line(?: number=)? ?(\d+)", text, re.IGNORECASE)
        where = f"{path}:{line[1]}" if line and int(line[1]) > 0 and not several else str(path)
        raise FormatError(f"MuJoCo cannot compile it: {text}", where=where) from failure
    return model


class _Reader:
    """Turns a compiled model into joints."""

    def __init__(self, mujoco: _Mujoco, model: _Mujoco, where: str) -> None:
        self.model = model
        self.where = where
        self.row_of: list[int] = []  # of each body's frame
        kind = mujoco.mjtObj
        joints = [mujoco.mj_id2name(model, kind.mjOBJ_JOINT, j) for j in range(model.njnt)]
        bodies = [mujoco.mj_id2name(model, kind.mjOBJ_BODY, b) for b in range(model.nbody)]
        self.taken: set[str] = {name for name in (*joints, *bodies) if name}
        self.bodies = [name or self.free_name(f"body{b}") for b, name in enumerate(bodies)]
        self.joints = [
            name or self.free_name(f"{self.bodies[model.jnt_bodyid[j]]}_joint") for j, name in enumerate(joints)
        ]
        self.couplings, self.locked = self.equalities(int(mujoco.mjtEq.mjEQ_JOINT))

    def free_name(self, name: str) -> str:
        """Return the name, with underscores until nothing has it, and take it."""
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name

    def skeleton(self, name: str) -> Skeleton:
        """Return the skeleton."""
        rows: list[Joint] = []
        row_of = self.row_of
        for body in range(self.model.nbody):
            rows += self.rows(body, row_of[int(self.model.body_parentid[body])] if body else None, len(rows))
            row_of.append(len(rows) - 1)
        return Skeleton(rows, name=name, meters_per_unit=1.0, up="z", forward="x")

    def rows(self, body: int, parent: int | None, at: int) -> list[Joint]:
        """Return the rows of a body, the first of which will be row ``at``; the last is the body's frame.

        MuJoCo turns a body about the anchor a of a hinge or ball: Tr(a) · R · Tr(-a). Tr(-a) is left for the next row.
        """
        m, place = self.model, f"body {self.bodies[body]!r}"
        quat = np.roll(self.checked(m.body_quat[body], f"quat of {place}"), -1)  # wxyz there
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
                    mimic=self.couplings.get(j),
                )
            )
        if not rows or np.any(left != np.eye(4)):
            name = self.bodies[body]
            if name in self.joints:
                name = self.free_name(f"{name}_frame")
            rows.append(Joint(name, at + len(rows) - 1 if rows else parent, rest=left))
        mass = float(self.checked(m.body_mass[body], f"mass of {place}"))
        com = self.checked(m.body_ipos[body], f"centre of mass of {place}")
        rows[-1] = replace(rows[-1], mass=mass, com=com, body=self.bodies[body])
        return rows

    def rest(self, j: int, left: Array) -> tuple[Array, Array]:
        """Return the rest transform of a joint after what was left by the one before, and what is left after it."""
        m, kind = self.model, self.kind(j)
        ref, axis = self.reference(j), self.checked(m.jnt_axis[j], f"axis of joint {self.joints[j]!r}")
        if kind is Kind.FREE:
            return left, rigid()
        if kind is Kind.SLIDE:
            return left @ rigid(-ref * axis), rigid()
        anchor = self.checked(m.jnt_pos[j], f"pos of joint {self.joints[j]!r}")
        off = anchor - (anchor @ axis) * axis if kind is Kind.HINGE else anchor  # along the axis it changes nothing
        if np.linalg.norm(off) <= _AT_ORIGIN:
            anchor = np.zeros(3)
        turn = quat_to_matrix(np.array([*(math.sin(-ref / 2.0) * axis), math.cos(ref / 2.0)]))
        return left @ rigid(anchor, turn), rigid(-anchor)

    def kind(self, j: int) -> Kind:
        """Return how a joint moves."""
        return _KINDS[int(self.model.jnt_type[j])]

    def reference(self, j: int) -> float:
        """Return the value of a hinge or slide where the body stands as the file puts it; 0 for other joints."""
        if self.kind(j) not in (Kind.HINGE, Kind.SLIDE):
            return 0.0
        value = self.model.qpos0[self.model.jnt_qposadr[j]]
        return float(self.checked(value, f"ref of joint {self.joints[j]!r}"))

    def limit(self, j: int, body: int) -> Interval | SwingTwist | None:
        """Return the limit of a joint."""
        m, kind = self.model, self.kind(j)
        if j in self.locked:
            return Interval(self.locked[j], self.locked[j])
        low, high = (float(v) for v in m.jnt_range[j])
        if low > high and kind is not Kind.FREE:
            raise FormatError(
                f"range of joint {self.joints[j]!r} is reversed",
                where=self.where,
                value=(low, high),
                expected="lower < upper",
            )
        if not m.jnt_limited[j] or kind is Kind.FREE:
            return None
        if kind is Kind.BALL:
            if high >= math.pi:
                return None
            # A swing s and a twist t make a turn of angle a with cos(a/2) = cos(s/2) cos(t/2); s = t at the corner.
            angle = 2.0 * math.acos(math.sqrt(math.cos(high / 2.0)))
            bone = m.body_ipos[body] - m.jnt_pos[j]
            bone = bone if np.linalg.norm(bone) > 1e-9 else np.array([0.0, 0.0, 1.0])
            return SwingTwist.about(bone, x=(angle, angle), y=(angle, angle), twist=(-angle, angle))
        return Interval(low, high)

    def equalities(self, kind: int) -> tuple[dict[int, Mimic], dict[int, float]]:
        """Return the followers, y - y0 = c0 + c1 (x - x0), and the joints held at one value, y - y0 = c0."""
        m = self.model
        followers: dict[int, Mimic] = {}
        locked: dict[int, float] = {}
        for e in range(m.neq):
            if m.eq_type[e] != kind or not m.eq_active0[e]:
                continue
            j, leader = int(m.eq_obj1id[e]), int(m.eq_obj2id[e])
            name = self.joints[j]
            c = self.checked(m.eq_data[e, :5], f"polycoef of joint {name!r}")
            if j in followers or j in locked:
                raise UnsupportedError(f"joint {name!r} is coupled twice", where=self.where, expected="one leader")
            if leader < 0:
                locked[j] = self.reference(j) + float(c[0])
            elif np.any(c[2:] != 0.0):
                raise UnsupportedError(
                    f"joint {name!r} follows {self.joints[leader]!r} by a polynomial",
                    where=self.where,
                    value=c.tolist(),
                    expected="a linear coupling",
                    hint='set polycoef="c0 c1 0 0 0" or active="false" on it',
                )
            else:
                offset = self.reference(j) + float(c[0]) - float(c[1]) * self.reference(leader)
                followers[j] = Mimic(self.joints[leader], float(c[1]), offset)
        return followers, locked

    def checked(self, value: _Mujoco, what: str) -> Array:
        """Return numbers of the model as an array, if they can be used."""
        array = np.array(value, dtype=np.float64)
        if not np.all(np.abs(array) <= HUGE):
            raise FormatError(
                f"{what} cannot be used", where=self.where, value=array.tolist(), expected=f"numbers up to {HUGE:g}"
            )
        return array
