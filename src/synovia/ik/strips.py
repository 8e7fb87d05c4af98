"""Intervals of a redundant joint, with proof: where the branches of a chain of seven joints begin and end.

The range of the joint is divided into intervals until these conditions hold in each, or it is very short:

- *Each branch exists in the whole interval.* The branches in its middle give predictions of second order.
  Krawczyk's test shows that near each there is exactly one pose for each value of the joint. Derivatives of forward
  kinematics are bounded by the distances of the tool from the axes.
- *There are no other branches.* The determinant of ``kernels.branches`` is a trigonometric polynomial in an angle c and
  in the redundant joint. Discs around its complex roots show that it has the same number of simple real roots in the
  whole interval. Each root belongs to at most one pose, and there are as many as branches.
- *Each branch is within the limits in the whole interval, or outside.*

Bounds are computed in usual arithmetic. Fixed margins allow for its rounding; they are chosen by measurement, like
those of ``kernels.branches``.

References:
    Krawczyk (1969), *Newton-Algorithmen zur Bestimmung von Nullstellen mit Fehlerschranken*; Neumaier (1990), *Interval
    methods for systems of equations*, section 5.1.
"""

from __future__ import annotations

import itertools
import math
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from synovia.ik.completeness import SLACK
from synovia.kernels.branches.memory import CANCEL, DEGREE, FLOOR, INDEPENDENT, SPLITS, TRIED
from synovia.kernels.layout import COLD, LIST
from synovia.kernels.packing import table_of
from synovia.model import Kind, Pose
from synovia.model.geometry import Array
from synovia.solver.six_joints import DETERMINANT

if TYPE_CHECKING:
    from synovia.ik.compiled import CompiledProblem

_FIRST: Final = 64  # number of intervals with which the division begins
_MOST: Final = 6_000  # largest number of intervals that are examined
_SAMPLES: Final = 32  # samples of the determinant over a redundant hinge: its degree is at most 12; twice for a slide
_ORDER: Final = 11  # order of the derivative of the determinant whose bound holds for all values of the joint
_VANISHES: Final = 1e-6  # fraction of the largest coefficient: higher orders are at most this
_NOISY: Final = 1e-10  # fraction of the largest coefficient: a determinant with more noise proves nothing
_SPARE: Final = 1e-2  # radians, length scales: largest distance of a branch from its prediction
_ON: Final = 1e-6  # roots as near to the unit circle as this are on it
_MARGIN: Final = 1e-12  # radians, length scales: rounding of forward kinematics
_SPLITS: Final = 12
_TRIALS: Final = np.linspace(0.1, 3.0, 12)  # angles of the redundant joint for the trials of splits
_HALF: Final = 2e-3  # half of the width of intervals in the trials
_ENDS: Final = -1.0, 1.0  # values of a slide in the trials
_GOOD: Final = 0.5  # a second split isolates roots in this part of the intervals of the best one, or more
_UNIQUE: Final = 8  # independent equations that leave one pose for each root
_LEAST: Final = 1e-20  # a determinant whose largest coefficient is smaller may be zero apart from rounding
_WHOLE: Final = 2.0 * math.pi

Complex = NDArray[np.complex128]
Bools = NDArray[np.bool_]


class Strip(NamedTuple):
    """An interval of the redundant joint.

    Args:
        low: First value.
        high: Last value.
        branches: Number of branches within the limits in the whole interval; -1 if it is not decided.
    """

    low: float
    high: float
    branches: int


class Curves:
    """The branches of a chain of seven joints as curves over one of its joints.

    Args:
        six: The problem in which that joint is held, with the solver ``SixJoints``.
        rows: Rows of the seven joints in the skeleton, from the root on.
        at: Index of the held joint among them.
        limits: Limits of the seven joints, (7, 2).
    """

    def __init__(self, six: CompiledProblem, rows: list[int], at: int, limits: Array) -> None:
        """Store the problem, the places of its joints and scratch memory."""
        self.six, self.at, self.limits = six, at, limits
        skeleton = six.skeleton
        self.places = np.array([skeleton.q_slice(skeleton.joint_names[row]).start for row in rows])
        self.columns = [skeleton.dof_columns[row][0] for row in rows]
        self.slides = np.array([skeleton.joints[row].kind is Kind.SLIDE for row in rows])
        self.units = np.where(self.slides, six.reach, 1.0)
        _ = six.branch_call  # before the limits are copied, because it chooses splits
        self._floats = six.listing.free.copy()
        self._scratch = six.new_workspace().scratch

    @cached_property
    def splits(self) -> list[int]:
        """The one or two splits whose determinants isolate roots best in trials."""
        scores, count = np.zeros(_SPLITS), len(_TRIALS)
        workspace = self.six.new_workspace()
        for trial in range(2):
            pose = self.six.skeleton.random_pose(trial)
            target = pose.transform(self.six.rows[0]) @ self.six.goals[0].frame
            workspace.table[0, 0] = [*target.ravel(), self.six.goals[0].constrained_parts]
            start = pose.q[None].copy()
            for split in range(_SPLITS):
                plane = self.plane(workspace.table, start, split, _ENDS)
                if plane.noise < _NOISY:
                    values = self.values(_TRIALS, _ENDS).tolist()
                    f = np.array([self.listed(workspace.table, start, split, value)[1] for value in values])
                    scores[split] += (plane.roots(f, _TRIALS, np.full(count, _HALF)) >= 0).mean()
        order = np.argsort(-scores, kind="stable")[:2].tolist()
        return [split for split in order if scores[split] > _GOOD * max(scores[order[0]], _GOOD)]

    def values(self, angles: Array, ends: tuple[float, float]) -> Array:
        """Return the values of the redundant joint at some angles: the same, or for a slide by their cosines."""
        if not self.slides[self.at]:
            return angles
        low, high = ends
        return np.clip(0.5 * (low + high) - 0.5 * (high - low) * np.cos(angles), low, high)

    def angles(self, values: Array, ends: tuple[float, float]) -> Array:
        """Return the angles of values of the redundant joint."""
        if not self.slides[self.at]:
            return values
        low, high = ends
        return np.arccos(np.clip((low + high - 2.0 * values) / (high - low), -1.0, 1.0))

    def plane(self, table: Array, start: Array, split: int, ends: tuple[float, float]) -> Plane:
        """Return the determinant as a function of c and of the angle of the redundant joint."""
        count = 2 * _SAMPLES if self.slides[self.at] else _SAMPLES
        values = self.values(np.linspace(0.0, _WHOLE, count, endpoint=False), ends)
        found = [self.listed(table, start, split, value) for value in values.tolist()]
        return Plane(np.array([one[1] for one in found]), min(one[2] for one in found))

    def listed(self, table: Array, start: Array, split: int, value: float) -> tuple[Array, Complex, int]:
        """Return all branches (n, nq) without limits, the coefficients of the determinant in c, and the rank."""
        six, floats = self.six, self._floats
        kernel, shape = six.branch_call
        table_of(six.ints, floats, "params")[SPLITS : SPLITS + TRIED] = split, -1.0, -1.0
        q = start.copy()
        q[0, self.places[self.at]] = value
        out, memory = np.empty(shape), six.solver_memory(self._scratch)
        f = memory[DETERMINANT].reshape(2, -1)
        f[:], memory[INDEPENDENT] = 0.0, 0.0  # a split that a slide rules out writes none
        count = kernel(six.ints, floats, table, six.skeleton.follow(q), out, self._scratch, COLD, LIST)
        return out[: max(count, 0), six.places], f[0] - 1j * f[1], int(memory[INDEPENDENT])

    def strips(self, table: Array, start: Array, ends: tuple[float, float], least: float) -> list[Strip] | None:
        """Return the intervals between two values; None if the determinant proves nothing.

        Args:
            table: Table of targets.
            start: Joint values, (1, nq), of the joints that do not move.
            ends: First and last value of the redundant joint.
            least: Largest width of intervals that stay undecided.
        """
        found = [(split, self.plane(table, start, split, ends)) for split in self.splits]
        planes = [(split, plane) for split, plane in found if plane.noise < _NOISY]
        if not planes:
            return None
        screws = Screws(self, table, start)
        edges = np.asarray(np.linspace(*((0.0, math.pi) if self.slides[self.at] else ends), _FIRST + 1), np.float64)
        todo, out, count = np.stack([edges[:-1], edges[1:]], axis=1), list[Strip](), 0
        for split, plane in itertools.cycle(planes):  # two roots that cross in one determinant are apart in another
            count += len(todo)
            middles, between = todo.mean(axis=1), self.values(todo, ends)
            values = self.values(middles, ends)
            listed = [self.listed(table, start, split, value) for value in values.tolist()]
            owner = np.repeat(np.arange(len(listed)), [len(one[0]) for one in listed])
            x = np.concatenate([one[0] for one in listed])[:, self.places]
            curves = screws.follow(x, owner, np.abs(between - values[:, None]).max(axis=1))
            branches = np.bincount(owner, minlength=len(todo))
            proved = np.bincount(owner[~curves.sure], minlength=len(todo)) == 0
            f, widths = np.array([one[1] for one in listed]), np.diff(todo, axis=1)[:, 0]
            roots = plane.roots(f[proved], middles[proved], 0.5 * widths[proved])
            proved[proved] = roots == branches[proved]
            parts = list[tuple[float, float]]()
            for i, (low, high) in enumerate(np.sort(between, axis=1).tolist()):
                known, rest = curves.within(owner == i, low, high, values[i]) if proved[i] else ([], [(low, high)])
                out += known
                for a, b in rest:
                    if b - a <= least or count > _MOST:
                        out.append(Strip(a, b, -1))
                    elif b - a > 0.5 * (high - low):
                        middle = float(values[i]) if a < values[i] < b else 0.5 * (a + b)
                        parts += [(a, middle), (middle, b)]
                    else:
                        parts.append((a, b))
            if not parts:
                break
            todo = self.angles(np.array(parts), ends)
        return sorted(out)


class Followed(NamedTuple):
    """Branches over the intervals in whose middles they were listed.

    Args:
        sure: Whether each branch (n,) is followed over its whole interval.
        outside: Whether it is outside the limits in the whole interval.
        at: Values of the redundant joint, (n, 7), relative to the middle, at which each joint crosses a limit.
        near: Their largest errors; NaN if a joint does not cross a limit.
        enters: 1 if it is within the limit afterwards, -1 if before.
    """

    sure: Bools
    outside: Bools
    at: Array
    near: Array
    enters: Array

    def within(
        self, own: Bools, low: float, high: float, middle: float
    ) -> tuple[list[Strip], list[tuple[float, float]]]:
        """Return the parts of an interval in which the number of branches within the limits is known, and the rest."""
        some = own & ~self.outside
        crossing = ~np.isnan(self.near[some])
        at, near, enters = self.at[some], self.near[some], self.enters[some]
        first, last = (np.clip(middle + at + side * near, low, high) for side in (-1.0, 1.0))
        spans = sorted(zip(first[crossing].tolist(), last[crossing].tolist(), strict=True))
        rest, known, begin = list[tuple[float, float]](), list[Strip](), low
        for a, b in [*spans, (high, high)]:
            if rest and a <= rest[-1][1]:
                rest[-1] = rest[-1][0], max(b, rest[-1][1])
            elif a > begin:
                centre = 0.5 * (begin + a) - middle
                inside = ~crossing | ((centre - at) * enters > 0.0)
                known.append(Strip(begin, a, int(inside.all(axis=1).sum())))
                rest.append((a, b))
            else:
                rest.append((a, b))
            begin = rest[-1][1]
        return known, [(a, b) for a, b in rest if b > a]


class Plane:
    """The determinant as a trigonometric polynomial in c and in the angle of the redundant joint.

    Args:
        coefficients: Its coefficients in c, (samples, orders), at equal angles of the redundant joint.
        independent: Number of independent equations for the other two joints.
    """

    def __init__(self, coefficients: Complex, independent: int) -> None:
        """Compute the coefficients in both angles, and bounds of the derivatives."""
        count = len(coefficients)
        self._l = np.fft.fftfreq(count, 1.0 / count)
        size, orders = np.abs(np.fft.fft(coefficients, axis=0)) / count, np.abs(self._l)
        rounding = float(max(size[orders >= count // 2 - 2].max(), size[:, DEGREE + 1 :].max()))
        largest = float(size.max())
        degree = int(np.flatnonzero(size.max(axis=0) > CANCEL * rounding).max(initial=0))
        usable = independent == _UNIQUE and largest > _LEAST and degree > 0
        self.noise = rounding / largest if usable else math.inf
        self._degree = degree
        self._above = np.fft.fft(coefficients[:, degree + 1 :], axis=0) / count  # orders that vanish but for rounding
        self._both = np.fft.fft(_polynomials(coefficients, degree), axis=0) / count
        self._last = orders**_ORDER @ (np.abs(self._both) + CANCEL * rounding)  # bounds of the last derivative
        self._rounding = [CANCEL * rounding * float((orders**q).sum()) for q in range(_ORDER)]  # of each derivative

    def _derivatives(self, middles: Array, half: Array) -> tuple[list[Complex], list[Array]]:
        """Return the derivatives of the coefficients at the middles of intervals, and their bounds in the intervals."""
        waves = np.exp(1j * middles[:, None] * self._l)
        exact = [(waves * (1j * self._l) ** q) @ self._both for q in range(_ORDER)]
        size = [np.abs(one) + rounding for one, rounding in zip(exact, self._rounding, strict=True)]
        bounds = [size[-1] + half[:, None] * self._last]
        for one in size[-2::-1]:  # by the mean value theorem
            bounds.append(one + half[:, None] * bounds[-1])
        return exact, bounds[::-1]

    def roots(self, coefficients: Complex, middles: Array, half: Array) -> NDArray[np.intp]:
        """Return the number of roots in c, all of them simple, in whole intervals of the other angle; -1 if undecided.

        With z = exp(ic), the determinant is a polynomial p(z) of degree n. The complex roots at the middle of an
        interval give predictions, of second order. At any place, the discs around the predictions ζ with the radii
        n |p(ζ)| / |lead Π(ζ - ζₖ)| contain all roots, and a disc apart from the others contains one (Smith). As the
        determinant is real for real c, the mirror image 1/z̄ of a root is a root. So a disc near the unit circle that
        is far from the others has its root on the circle.

        Args:
            coefficients: Coefficients in c, (n, orders), at the middle of each interval.
            middles: The middles (n,).
            half: Half of the widths (n,).

        References:
            Smith (1970), *Error bounds for zeros of a polynomial based upon Gerschgorin's theorems*.
        """
        a = _polynomials(coefficients, self._degree)
        h, n = half[:, None], a.shape[1] - 1
        k = np.asarray(np.arange(n + 1) - self._degree, np.float64)
        (_, slope, bend, *_), B = self._derivatives(middles, half)
        above = np.abs(coefficients[:, self._degree + 1 :]).max(axis=1)
        change = half * (np.abs(self._l) @ np.abs(self._above)).max()
        largest = np.abs(a).max(axis=1)
        error = CANCEL * above + FLOOR * largest
        companion = np.zeros((len(a), n, n), complex)
        companion[:, np.arange(1, n), np.arange(n - 1)] = 1.0
        with np.errstate(all="ignore"):
            companion[:, 0] = -a[:, n - 1 :: -1] / a[:, n:]
            fine = np.isfinite(companion).all(axis=(1, 2))
            companion[~fine] = 0.0
            z = np.linalg.eigvals(companion)
            for _ in range(2):
                z = z * np.exp(-_at(a, z) / _at(k * a, z))
            # the prediction is z exp(g t + e t²/2)
            along = _at(k * a, z)
            g = -_at(slope, z) / along
            e = -(_at(bend, z) + 2 * _at(k * slope, z) * g + _at(k * k * a, z) * g**2) / along
            size, rate, first = np.abs(z), np.abs(g) + h * np.abs(e), h * np.abs(g) + 0.5 * h**2 * np.abs(e)

            def most(c: Array) -> Array:
                """Return bounds, on the predicted paths, of Laurent polynomials times the power of z in p."""
                low = np.exp(2.0 * self._degree * first) * _at(c * (k < 0), size * np.exp(-first)).real
                return _at(c * (k >= 0), size * np.exp(first)).real + low

            y, m = np.abs(e), np.abs(k)
            third = rate**3 * most(m**3 * B[0]) + 3 * rate**2 * most(m**2 * B[1]) + 3 * rate * most(m * B[2])
            third += most(B[3]) + 3 * y * (rate * most(m**2 * B[0]) + most(m * B[1]))
            value = np.exp(self._degree * first) * np.abs(_at(a, z)) + h**3 / 6 * third
            value += (error[:, None] + h * self._rounding[1]) * most(np.ones(a.shape))
            lead = np.abs(a[:, n]) - half * B[1][:, n]
            velocity, turn = z * g, size * (rate**2 + y) * np.exp(first)
            apart = np.abs(z[:, :, None] - z[:, None]) - h[:, None] * np.abs(velocity[:, :, None] - velocity[:, None])
            apart -= 0.5 * h[:, None] ** 2 * (turn[:, :, None] + turn[:, None])
            apart[:, np.arange(n), np.arange(n)] = 1.0
            radius = n * value / (np.maximum(lead, 0.0)[:, None] * np.maximum(apart, 0.0).prod(axis=2))
            apart[:, np.arange(n), np.arange(n)] = math.inf
            off = np.abs(size - 1.0)
            drift = size * np.expm1(h * np.abs(g.real) + 0.5 * h**2 * np.abs(e.real))  # of the distance from 0
            on = off < _ON
            wide = radius + 2.5 * (radius + off + drift)
            alone = (apart > wide[:, :, None] + radius[:, None]).all(axis=2) & (wide < 0.25)
            apart_all = np.asarray(np.where(on, alone, off > radius + drift), np.bool_).all(axis=1)
            proved = np.asarray(fine & apart_all & (above + change < _VANISHES * largest), np.bool_)
        return np.where(proved, on.sum(axis=1), -1).astype(np.intp)


def _polynomials(coefficients: Complex, degree: int) -> Complex:
    """Return the coefficients of polynomials in exp(ic) from those of trigonometric polynomials in c."""
    half: Any = 0.5 * coefficients[:, : degree + 1]
    return np.concatenate([half[:, :0:-1].conj(), 2.0 * half[:, :1].real.astype(complex), half[:, 1:]], axis=1)


def _at(a: Array | Complex, z: Array | Complex) -> Complex:
    """Return the values of polynomials with coefficients (n, orders) at some places (n, m) each."""
    out: Any = np.zeros(z.shape, complex) + a[:, -1:]
    for k in range(a.shape[1] - 2, -1, -1):
        out = out * z + a[:, k : k + 1]
    return out


class Screws:
    """Forward kinematics of the seven joints, for many poses at once, by products of exponentials.

    Args:
        curves: The chain.
        table: Table of targets.
        start: Joint values, (1, nq), of the joints that do not move.
    """

    def __init__(self, curves: Curves, table: Array, start: Array) -> None:
        """Compute the axes of the joints at the start, lengths in length scales, and bounds of distances."""
        six, self._curves = curves.six, curves
        pose = Pose(six.skeleton, start[0])
        frame = pose.transform(six.rows[0])
        J = pose.jacobian(six.rows[0])[:, curves.columns]
        J[:3] /= six.reach
        J[:] *= curves.units
        self._x = start[0, curves.places] / curves.units
        self._R, self._p = frame[:3, :3], frame[:3, 3] / six.reach
        wanted = table[0, 0, :16].reshape(4, 4) @ np.linalg.inv(six.goals[0].frame)
        self._wanted, self._target = wanted[:3, :3], wanted[:3, 3] / six.reach
        self._w = np.where(curves.slides, 0.0, np.linalg.norm(J[3:], axis=0))  # radians by unit of each value
        axes = np.where(curves.slides, J[:3], J[3:]).T
        self._ratio = np.linalg.norm(axes, axis=1)
        self._axes = axes / self._ratio[:, None]
        self._points = np.zeros((len(axes), 3))
        self._lengths = np.zeros(len(axes))  # bounds of the distance of the target's joint from the axes
        point, length = self._p, 0.0
        for j in range(len(axes) - 1, -1, -1):
            if not curves.slides[j]:
                on = self._p + np.cross(J[3:, j], J[:3, j]) / self._w[j] ** 2  # on the axis
                on = on + self._axes[j] * float(self._axes[j] @ (point - on))
                length += float(np.linalg.norm(point - on))
                point = on
            self._points[j], self._lengths[j] = point, length
        low, high = (curves.limits / curves.units[:, None]).T
        self._middles, self._halves = 0.5 * (low + high), 0.5 * (high - low)
        self._periods = np.where(curves.slides, math.inf, _WHOLE / self._ratio)

    def follow(self, x: Array, owner: NDArray[np.intp], half: Array) -> Followed:
        """Follow branches over intervals of the redundant joint by Krawczyk's test.

        Args:
            x: Joint values (n, 7) in the middle of their intervals.
            owner: Index of the interval of each branch.
            half: Half of the width of each interval.
        """
        curves = self._curves
        at, six = curves.at, [j for j in range(x.shape[1]) if j != curves.at]
        x = x / curves.units
        h = half[owner] / curves.units[at]
        J, position, turn = self._jacobians(x)
        with np.errstate(all="ignore"):
            regular = np.abs(np.linalg.det(J[:, :, six])) > _LEAST
            C = np.zeros((len(x), 6, 6))
            C[regular] = np.linalg.inv(J[regular][:, :, six])
        u, s = np.zeros_like(x), np.zeros_like(x)  # the prediction is x + u t + s t²/2
        u[:, six], u[:, at] = -np.einsum("nij,nj->ni", C, J[:, :, at]), 1.0
        along = self._second(J, u)
        s[:, six] = -np.einsum("nij,nj->ni", C, np.einsum("nij,nj->ni", along, u))
        B = np.abs(C @ along[:, :, six])  # the Jacobian at t, times C, is 1 + C along t + ...
        step = np.abs(u) + h[:, None] * np.abs(s)  # largest derivative of the prediction
        move = h[:, None] * np.abs(u) + 0.5 * (h**2)[:, None] * np.abs(s)
        distances, w = np.linalg.norm(J[:, :3], axis=1), self._w
        slides = np.abs(x - self._x)[:, curves.slides].sum(axis=1) + move[:, curves.slides].sum(axis=1)
        reach = self._lengths + slides[:, None] + _SPARE
        turned = np.cumsum((w * (move + _SPARE))[:, ::-1], axis=1)[:, ::-1]
        slid = ((move + _SPARE) * curves.slides).sum(axis=1)[:, None]
        widths = np.asarray(distances + w * (reach * turned + slid), np.float64)
        far = np.asarray(np.where(curves.slides, distances, widths), np.float64)  # largest columns
        a, b = np.linalg.norm(C[:, :, :3], axis=2), np.linalg.norm(C[:, :, 3:], axis=2)

        def spread(positions: Array, turns: Array) -> Array:
            """Return bounds of the joint errors by the preconditioner (1 - B t) C of Krawczyk's test.

            C is the inverse Jacobian in the middle, B its change by the value t of the redundant joint.

            Args:
                positions: Bounds of the errors of position, (n,).
                turns: Bounds of the errors of rotation, (n,).
            """
            out = a * positions[:, None] + b * turns[:, None]
            return out + h[:, None] * np.einsum("nij,nj->ni", B, out)

        turning = np.asarray((w * step).sum(axis=1), np.float64)
        moving = np.asarray((far * step).sum(axis=1), np.float64)
        bends = self._columns(far, np.abs(s))
        third = (
            3 * turning**2 * moving + 3 * (bends[0] * step).sum(axis=1),
            turning**3 + 3 * (bends[1] * step).sum(axis=1),
        )
        h3 = h**3 / 6.0
        rest = spread(position + _MARGIN + h3 * third[0], turn + _MARGIN + h3 * third[1])
        delta = 2.0 * rest
        box = 0.5 * (h**2)[:, None] * np.abs(s)
        box[:, six] += delta
        positions, turns = self._columns(far, box)
        h2 = 0.5 * (h**2)[:, None]
        positions = positions + h2 * (far * (turning**2)[:, None] + 2 * w * (turning * moving)[:, None])
        turns = turns + h2 * w * (turning**2)[:, None]
        shrunk = rest + spread((positions[:, six] * delta).sum(axis=1), (turns[:, six] * delta).sum(axis=1))
        shrunk += spread(*[_MARGIN * delta.sum(axis=1)] * 2) + (h**2)[:, None] * np.einsum(
            "nij,njk,nk->ni", B, B, delta
        )
        good = regular & (shrunk < delta).all(axis=1) & (delta < _SPARE).all(axis=1)
        error = np.zeros_like(x)
        error[:, six] = delta
        return self._crossings((x, u, s), error, h, owner, good)

    def _second(self, J: Array, u: Array) -> Array:
        """Return the derivatives of the Jacobians in some directions, at poses without error."""
        v = J[:, 3:] * u[:, None]  # rotation vectors
        before = np.cumsum(v, axis=2)
        own = before - v  # of the joints before each
        linear = J[:, :3] * u[:, None]
        after = np.cumsum(linear[:, :, ::-1], axis=2)[:, :, ::-1] - linear
        out = np.empty_like(J)
        out[:, :3] = np.cross(before, J[:, :3], axis=1) + np.cross(J[:, 3:], after, axis=1)
        rest = v.sum(axis=2, keepdims=True) - before
        out[:, 3:] = 0.5 * (np.cross(own, J[:, 3:], axis=1) + np.cross(J[:, 3:], rest, axis=1))
        return out

    def _columns(self, far: Array, box: Array) -> tuple[Array, Array]:
        """Return bounds for changes of the columns, positions and rotations, by changes of joint values."""
        w = self._w  # second derivatives of positions are at most w_i far_j for i <= j
        before, after = np.cumsum(w * box, axis=1), np.cumsum((far * box)[:, ::-1], axis=1)[:, ::-1] - far * box
        return far * before + w * after, w * (w * box).sum(axis=1)[:, None]

    def _crossings(
        self, curve: tuple[Array, Array, Array], delta: Array, h: Array, owner: NDArray[np.intp], good: Bools
    ) -> Followed:
        """Return which branches are followed, and where they cross limits.

        Args:
            curve: Joint values of the branches in the middle of their intervals, and their first and second derivatives
                by the redundant joint, each (n, 7).
            delta: Largest distances from this prediction, (n, 7).
            h: Half of the width of each interval, (n,).
            owner: Index of the interval of each branch, (n,).
            good: Which branches are followed so far, (n,).
        """
        (x, u, s), curves = curve, self._curves
        six = [j for j in range(x.shape[1]) if j != curves.at]
        away = x - np.where(np.isfinite(self._halves), self._middles, 0.0)
        whole = np.isfinite(self._periods) & np.isfinite(self._halves)
        away[:, whole] -= self._periods[whole] * np.round(away[:, whole] / self._periods[whole])
        box = h[:, None] * np.abs(u) + 0.5 * (h**2)[:, None] * np.abs(s) + delta + SLACK
        margin = self._halves - np.abs(away)
        margin[:, curves.at] = math.inf
        outside = (margin < -box).any(axis=1)
        crosses = (margin < box) & ~outside[:, None]
        side = np.sign(away)
        with np.errstate(all="ignore"):  # side (away + u t + s t²/2) = half
            c = away - side * self._halves
            at = -2.0 * c / (u + np.copysign(np.sqrt(np.maximum(u**2 - 2.0 * s * c, 0.0)), u))
            slowest = np.abs(u) - np.abs(s) * h[:, None]
            near = (delta + SLACK) / slowest
            # after a crossing beyond the interval, the linear prediction bounds the place
            sure = (slowest > 0.0) & (np.abs(at) <= 2.0 * h[:, None]) & (box < 0.5 * self._periods)
        sure &= (box < self._halves) & (box < 0.25 * self._periods)
        good = good & (sure | ~crosses).all(axis=1)
        for i in range(1, int(np.bincount(owner, minlength=1).max(initial=0))):  # pairs of branches of an interval
            same = owner[i:] == owner[:-i]
            apart = x[i:, six] - x[:-i, six]
            turns = np.isfinite(self._periods[six])
            apart[:, turns] -= self._periods[six][turns] * np.round(apart[:, turns] / self._periods[six][turns])
            close = same & (np.abs(apart) <= delta[i:, six] + delta[:-i, six]).all(axis=1)
            good[i:] &= ~close
            good[:-i] &= ~close
        unit = curves.units[curves.at]
        near = np.where(crosses, near, math.nan) * unit
        return Followed(good, outside, at * unit, near, -side * np.sign(u))

    def _jacobians(self, x: Array) -> tuple[Array, Array, Array]:
        """Return the Jacobians (n, 6, 7) at poses, and the errors of position and rotation."""
        slides, count = self._curves.slides, len(x)
        turned, b = np.tile(np.eye(3), (count, 1, 1)), np.zeros((count, 3))
        z, o = np.empty((count, x.shape[1], 3)), np.empty((count, x.shape[1], 3))
        for j, axis in enumerate(self._axes):
            angle = self._ratio[j] * (x[:, j] - self._x[j])
            z[:, j], o[:, j] = turned @ axis, turned @ self._points[j] + b
            if slides[j]:
                b = b + angle[:, None] * z[:, j]
                continue
            K = np.array([[0, -axis[2], axis[1]], [axis[2], 0, -axis[0]], [-axis[1], axis[0], 0]])
            R = np.eye(3) + np.sin(angle)[:, None, None] * K + (1.0 - np.cos(angle))[:, None, None] * (K @ K)
            turned = turned @ R
            b = o[:, j] - turned @ self._points[j]
        p, E = turned @ self._p + b, turned @ self._R @ self._wanted.T
        position = np.linalg.norm(p - self._target, axis=1)
        vee = 0.5 * np.stack([E[:, 2, 1] - E[:, 1, 2], E[:, 0, 2] - E[:, 2, 0], E[:, 1, 0] - E[:, 0, 1]], axis=1)
        turn = np.linalg.norm(vee, axis=1) + (np.trace(E, axis1=1, axis2=2) < 1.0)
        J = np.zeros((count, 6, x.shape[1]))
        J[:, :3] = np.where(slides[:, None], z, np.cross(z, p[:, None] - o)).transpose(0, 2, 1)
        J[:, 3:] = np.where(slides[:, None], 0.0, z).transpose(0, 2, 1)
        return J * self._ratio, position, turn
