"""Convert the equality constraints of a compiled MuJoCo model to followers, locked joints, couplings and loops.

A constraint of one joint, y - y0 = c0, locks it, and a linear one of two joints, y - y0 = c0 + c1 (x - x0), makes one
of them follow the other (``Mimic``). Polynomials, joints that follow two others, and fixed tendons with proportional
lengths become a ``Coupling``; ``connect`` and ``weld`` become a ``Loop``. Other constraints become notes, because a
skeleton lacks the parts that they constrain. Inactive constraints are skipped.

MuJoCo's constraints are soft, so some in a file may contradict each other or be impossible to close. Then the loop with
the largest closure error is left out, with a note; this is repeated until all remaining loops close.

References:
    https://mujoco.readthedocs.io/en/stable/XMLreference.html#equality
    ``mj_instantiateEqualityConstraint`` in ``engine_core_constraint.c``
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from synovia.errors import InputError
from synovia.model import Skeleton
from synovia.model.address import LINK, SITE
from synovia.model.geometry import Array, quat_to_matrix, rigid
from synovia.model.loops.loop import LARGEST_POWER, Coupling, Loop, Tie
from synovia.model.loops.tables import moved_by

_MOST_ROWS: Final = 600  # largest number of constraint equations of all loops of a model; more take too long to close
_SAMPLES: Final = 201  # number of positions at which a leader's range is sampled
_BEYOND: Final = 1e-3  # fraction of the follower's travel that is added at both ends; extremes may be between samples
_FREELY: Final = ", so the joints in it move freely"


@dataclass(frozen=True, slots=True)
class Follower:
    """A joint with the value ratio * leader + offset; with ``binds``, its range also restricts the leader."""

    leader: int
    ratio: float
    offset: float
    binds: bool


class Named(NamedTuple):
    """A loop or coupling, and its name in the file as the beginning of a sentence."""

    tie: Tie
    text: str


class Equalities:
    """The equality constraints of a model.

    Args:
        mujoco: The package.
        model: MuJoCo's model.
        bodies: Name of each body.
        joints: Name of each joint.
        checked: Returns values of the model as an array; raises an error with their name if they cannot be used.

    Attributes:
        followers: Joints that follow another joint, by index.
        locked: Value of each joint that cannot move.
        ranges: Widened limits of followers whose own range would split their leader's range into intervals.
        ties: Loops and couplings.
        notes: Sentences about constraints that are not kept.
    """

    def __init__(
        self,
        mujoco: Any,
        model: Any,
        bodies: Sequence[str],
        joints: Sequence[str],
        checked: Callable[[Any, str], Array],
    ) -> None:
        """Read all active constraints."""
        self._mujoco, self._model, self._checked = mujoco, model, checked
        self._bodies, self._joints = bodies, joints
        self.followers: dict[int, Follower] = {}
        self.locked: dict[int, float] = {}
        self.ranges: dict[int, tuple[float, float]] = {}
        self.ties: list[Named] = []
        self.notes: list[str] = []
        kinds = mujoco.mjtEq
        off = int(model.opt.disableflags) & int(mujoco.mjtDisableBit.mjDSBL_EQUALITY)
        for e in () if off else np.flatnonzero(model.eq_active0).tolist():
            kind = int(model.eq_type[e])
            if kind == kinds.mjEQ_JOINT:
                self._read_joints(e)
            elif kind == kinds.mjEQ_TENDON:
                self._read_tendons(e)
            elif kind in (kinds.mjEQ_CONNECT, kinds.mjEQ_WELD):
                self._read_loop(e, weld=kind == kinds.mjEQ_WELD)
            else:
                self._leave_out(e)

    def _read_joints(self, e: int) -> None:
        """Read y - y0 = c0, or = a polynomial of x - x0, for the values x, y of joints and their references x0, y0."""
        m = self._model
        j, leader = int(m.eq_obj1id[e]), int(m.eq_obj2id[e])
        name = self._joints[j]
        c = self._checked(m.eq_data[e, : LARGEST_POWER + 1], f"polycoef of joint {name!r}")
        above = leader
        while above in self.followers and above != j:
            above = self.followers[above].leader
        known = j in self.followers or j in self.locked
        if leader < 0 and not known:
            self.locked[j] = self._reference(j) + float(c[0])
        elif leader >= 0 and not known and above != j and not np.any(c[2:] != 0.0):
            offset = self._reference(j) + float(c[0]) - float(c[1]) * self._reference(leader)
            self.followers[j] = Follower(leader, float(c[1]), offset, binds=bool(m.jnt_limited[j]))
        else:
            self._add_coupling(e, {j: 1.0}, {} if leader < 0 else {leader: 1.0}, c)
            if leader >= 0 and not known:
                self._widen(j, leader, c)

    def _widen(self, j: int, leader: int, c: Array) -> None:
        """Widen the range of a follower if it divides the range of its leader into separate intervals.

        Such ranges are inexact: in models of knees, a range has the end values of a curve that is outside in between.
        """
        m = self._model
        if not (m.jnt_limited[j] and m.jnt_limited[leader]):
            return
        first, last = self._checked(m.jnt_range[leader], f"range of joint {self._joints[leader]!r}").tolist()
        x: Array = np.linspace(float(first), float(last), _SAMPLES)
        y: Array = self._reference(j) + np.vander(x - self._reference(leader), len(c), increasing=True) @ c
        low, high = self._checked(m.jnt_range[j], f"range of joint {self._joints[j]!r}").tolist()
        inside = np.flatnonzero((low <= y) & (y <= high))
        if not len(inside) or inside[-1] - inside[0] < len(inside):
            return
        beyond = _BEYOND * float(np.ptp(y))  # the extremes may be between two samples
        low, high = min(low, float(y.min()) - beyond), max(high, float(y.max()) + beyond)
        self.ranges[j] = low, high
        why = f"otherwise {self._joints[leader]!r}, which it follows, could not move through its whole range"
        self.notes.append(f"The range of joint {self._joints[j]!r} was widened to {low:.4g} to {high:.4g}: {why}.")

    def _read_tendons(self, e: int) -> None:
        """Read L - L0 = a polynomial of M - M0, where L and M are lengths of fixed tendons, sums of joint values."""
        m = self._model
        c = self._checked(m.eq_data[e, : LARGEST_POWER + 1], "polycoef of a tendon")
        sums = [self._joints_along(int(m.eq_obj1id[e])), {}]
        if int(m.eq_obj2id[e]) >= 0:
            sums[1] = self._joints_along(int(m.eq_obj2id[e]))
        if sums[0] is None or sums[1] is None:
            self._leave_out(e, ": the length of a spatial tendon is not a sum of joint values")
        elif len(sums[1]) > 1 and np.any(c[2:] != 0.0):
            self._leave_out(e, ": it is a polynomial of several joints")
        else:
            self._add_coupling(e, sums[0], sums[1], c)

    def _joints_along(self, tendon: int) -> dict[int, float] | None:
        """Return the factor of each joint in the length of a fixed tendon; None for a spatial tendon."""
        m = self._model
        out: dict[int, float] = {}
        for w in range(int(m.tendon_adr[tendon]), int(m.tendon_adr[tendon] + m.tendon_num[tendon])):
            if int(m.wrap_type[w]) != int(self._mujoco.mjtWrap.mjWRAP_JOINT):
                return None
            joint = int(m.wrap_objid[w])
            out[joint] = out.get(joint, 0.0) + float(self._checked(m.wrap_prm[w], "coef of a tendon"))
        return out

    def _add_coupling(self, e: int, left: Mapping[int, float], right: Mapping[int, float], c: Array) -> None:
        """Add left - left0 = polynomial c of (right - right0), where both sides are sums of joint values.

        A polynomial above degree one is expanded about zero; the right side then has one joint.
        """
        left0, right0 = (sum(k * self._reference(j) for j, k in side.items()) for side in (left, right))
        terms = {j: np.array([k, *[0.0] * (LARGEST_POWER - 1)]) for j, k in left.items()}
        constant = left0 + float(c[0])
        for power in range(1, LARGEST_POWER + 1) if right else ():
            for degree in range(power + 1):
                factor = float(c[power]) * math.comb(power, degree) * (-right0) ** (power - degree)
                if degree == 0:
                    constant += factor
                    continue
                for j, k in right.items():
                    terms.setdefault(j, np.zeros(LARGEST_POWER))[degree - 1] -= factor * k**degree
        called = {self._joints[j]: tuple(np.trim_zeros(row, "b").tolist()) for j, row in terms.items() if row.any()}
        if not called:
            self._leave_out(e, ": it does not depend on a joint")
            return
        name = self._name(e)
        try:
            self.ties.append(Named(Coupling(called, constant, name=name), self._text(e)))
        except InputError:
            self._leave_out(e, ": its numbers are too large")

    def _read_loop(self, e: int, *, weld: bool) -> None:
        """Read a loop that connects two frames; a weld whose ``torquescale`` is 0 connects points."""
        m = self._model
        first, second = int(m.eq_obj1id[e]), int(m.eq_obj2id[e])
        data = self._checked(m.eq_data[e, :11], f"numbers of {self._text(e)}")
        kind = "weld" if weld and data[10] != 0.0 else "point"
        if int(m.eq_objtype[e]) == int(self._mujoco.mjtObj.mjOBJ_SITE):
            names = tuple(self._address(SITE, self._site(s)) for s in (first, second))
            bodies = int(m.site_bodyid[first]), int(m.site_bodyid[second])
            offsets: tuple[Any, Any] = (None, None)
        else:
            bodies = first, second
            names = tuple(self._address(LINK, self._bodies[b]) for b in bodies)
            if weld:
                turn = quat_to_matrix(np.roll(data[6:10], -1)) if kind == "weld" else None  # MuJoCo stores wxyz
                offsets = (rigid(data[3:6]) if turn is None else rigid(data[3:6], turn), data[:3])
            else:
                offsets = data[:3], data[3:6]
        moved = [self._mocap(body) for body in bodies]
        if moved[0] != moved[1]:
            by = self._bodies[max(moved)]
            self._leave_out(e, f": a simulation moves body {by!r} from outside (mocap)")
            return
        try:
            one = Loop(names[0], names[1], kind, offset=offsets[0], other_offset=offsets[1], name=self._name(e))
        except InputError:
            self._leave_out(e, ": its numbers are too large")
        else:
            self.ties.append(Named(one, self._text(e)))

    def _mocap(self, body: int) -> int:
        """Return the mocap body among a body and its ancestors; -1 if there is none."""
        while body > 0 and self._model.body_mocapid[body] < 0:
            body = int(self._model.body_parentid[body])
        return body or -1

    def _address(self, kind: str, name: str) -> str:
        """Return the name of a body or site, prefixed with the kind if the bare name is ambiguous."""
        m = self._model
        others = {*self._joints, *(self._bodies if kind == SITE else map(self._site, range(int(m.nsite))))}
        return f"{kind}:{name}" if name in others or ":" in name else name

    def _site(self, site: int) -> str:
        """Return the name of a site; sites in constraints always have names."""
        return str(self._mujoco.mj_id2name(self._model, self._mujoco.mjtObj.mjOBJ_SITE, site))

    def _reference(self, j: int) -> float:
        """Return the value of a joint in the pose of the file."""
        value = self._model.qpos0[self._model.jnt_qposadr[j]]
        return float(self._checked(value, f"ref of joint {self._joints[j]!r}"))

    def _name(self, e: int) -> str | None:
        """Return the name of a constraint; None for a constraint without a name."""
        return self._mujoco.mj_id2name(self._model, self._mujoco.mjtObj.mjOBJ_EQUALITY, e) or None

    def _leave_out(self, e: int, why: str = "") -> None:
        """Add a note about a constraint that is not kept."""
        self.notes.append(f"{self._text(e)} was not kept{why}.")

    def _text(self, e: int) -> str:
        """Return a text with the type and name of a constraint, and with the names of the connected objects."""
        m, objects = self._model, self._mujoco.mjtObj
        kind = str(self._mujoco.mjtEq(int(m.eq_type[e])).name).removeprefix("mjEQ_").lower()
        own = {"tendon": objects.mjOBJ_TENDON, "joint": objects.mjOBJ_JOINT}
        object_kind = own.get(kind, objects(int(m.eq_objtype[e])))
        what = str(object_kind.name).removeprefix("mjOBJ_").lower()
        both: list[str] = []
        for each in (int(m.eq_obj1id[e]), int(m.eq_obj2id[e])):
            if each >= 0:
                lists = {"body": self._bodies, "joint": self._joints}
                known = lists[what][each] if what in lists else self._mujoco.mj_id2name(m, object_kind, each)
                both.append(f"{what} {known!r}" if known else f"{what} {each}")
        name = self._name(e)
        called = f"The constraint <{kind}>" + (f" {name!r}" if name else "")
        return f"{called} {'between' if len(both) > 1 else 'on'} {' and '.join(both)}"


def keep_closed(
    ties: Sequence[Named], with_loops: Callable[[Sequence[Tie]], Skeleton], notes: list[str]
) -> Sequence[Tie]:
    """Return loops that can all be closed together near the rest pose, and add notes about the others.

    Args:
        ties: The loops.
        with_loops: Returns the skeleton with given loops.
        notes: Sentences about constraints that are not kept; extended in place.
    """
    from synovia.model.loops.mechanism import CLOSED  # imported only for files with loops

    plain = with_loops(())
    left: list[Named] = []
    for one in ties:
        if moved_by(plain, one.tie):
            left.append(one)
        else:
            notes.append(f"{one.text} was not kept: no joint moves one end relative to the other.")
    rows = sum(one.tie.rows for one in left)
    if rows > _MOST_ROWS:
        text = f"the loops of the model have {rows} conditions, and at most {_MOST_ROWS} are supported"
        notes += [f"{one.text} was not kept: {text}." for one in left]
        return ()
    while left:
        mechanism = with_loops([one.tie for one in left]).mechanism
        if mechanism is None:
            break
        _, lacks = mechanism.closed(plain.zero_q[None])
        if lacks.max() <= CLOSED:
            break
        worst = int(np.argmax(lacks[0]))
        gap = mechanism.in_words(worst, float(lacks[0, worst]))
        notes.append(
            f"{left.pop(worst).text} was not kept: it cannot be closed near the rest pose (a gap of {gap}){_FREELY}."
        )
    return [one.tie for one in left]
