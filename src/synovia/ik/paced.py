"""What happens to a track as a whole: quick motion is taken out, and joints are held to their velocities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from synovia.errors import InputError, UnsupportedError
from synovia.geometry import Array, as_numbers, rotation_between
from synovia.ik.rows import kept_targets
from synovia.ik.solution import STATUS
from synovia.ik.status import Status
from synovia.trajectory import Model, Terms, solve_in_windows

if TYPE_CHECKING:
    from synovia.ik.ik import IK

Bools = NDArray[np.bool_]
_PULL: Final = 1e-6  # of the track as it was, on what no goal shows
_STEPS: Final = 20
_ENOUGH: Final = 1e-4


def _model(ik: IK, threads: int) -> Model:
    """Return the problem of each frame.

    Raises:
        UnsupportedError: If a goal asks for more than a place or a rotation.
    """
    for goal in ik.goals:
        if goal.what == 0:
            raise UnsupportedError("a track can be smoothed for places and rotations alone", value=goal)
    free = ik.root == "free"
    return Model(ik.skeleton, ik.goals, ik.hangs, free_root=free, tolerance=ik.tolerance, threads=threads)


def smoothed(ik: IK, rows: Array, fps: float, seconds: float, threads: int, progress: Any = None) -> Bools:
    """Smooth the answers of a track, in place: all frames at once, accelerations beside what the goals are off.

    Returns:
        Which frames are missed for it.
    """
    model = _model(ik, threads)
    q, targets = _parts(ik, rows)
    terms = Terms(
        targets=targets,
        weights=np.ones((len(q), model.rows)),
        side=np.zeros(model.rows),
        reference=q.copy(),
        pull=np.full(model.columns, _PULL),
        smooth=np.full(model.columns, (seconds * fps) ** 4),
    )
    calm = solve_in_windows(model, terms, q, steps=_STEPS, enough=_ENOUGH, progress=progress)
    return _replace(ik, model, rows, calm, Status.CONFLICT)


def slowed(ik: IK, rows: Array, fps: float, most: Array) -> Bools:
    """Hold joints to their velocities, in place: each frame goes towards its answer only as far as they allow.

    Returns:
        Which frames are missed for it.
    """
    model = _model(ik, threads=1)
    variables = ik.skeleton.tables.variables.tolist()
    owner = ik.skeleton.tables.owner.tolist()
    q, _ = _parts(ik, rows)
    for t in range(1, len(q)):
        for (block, at, _), row in zip(variables, owner, strict=True):
            step = float(most[row]) / fps
            if block == 0:
                q[t, at] = q[t - 1, at] + np.clip(q[t, at] - q[t - 1, at], -step, step)
                continue
            before, turn = q[t - 1, at : at + 4], rotation_between(q[t - 1, at : at + 4], q[t, at : at + 4])
            angle = float(np.linalg.norm(turn))
            if angle > step:
                q[t, at : at + 4] = _part_way(before, q[t, at : at + 4], step / angle, angle)
    return _replace(ik, model, rows, ik.skeleton.follow(q), Status.LIMITED)


def _part_way(a: Array, b: Array, share: float, angle: float) -> Array:
    """Return the rotation that is a share of the way from a to b, which are ``angle`` apart (Shoemake 1985)."""
    b = -b if float(a @ b) < 0.0 else b
    half = 0.5 * angle
    out = (np.sin((1.0 - share) * half) * a + np.sin(share * half) * b) / np.sin(half)
    return out / np.linalg.norm(out)


def velocity_limits(ik: IK, limits: Any) -> Array:
    """Return the highest velocity of each joint, radians or length units per second.

    Raises:
        InputError: If one is not positive.
    """
    most = np.full(len(ik.skeleton), np.inf)
    if isinstance(limits, Mapping):
        for joint, value in cast("Mapping[Any, Any]", limits).items():
            most[ik.skeleton.index(joint)] = _velocity(value, f"velocity of {joint!r}")
    else:
        most[:] = _velocity(limits, "velocity")
    return most


def _velocity(value: Any, what: str) -> float:
    """Return a velocity.

    Raises:
        InputError: If it is not positive.
    """
    number = float(as_numbers(value, (), what))
    if number <= 0.0:
        raise InputError(f"{what} is not positive", value=number, expected="radians or length units per second above 0")
    return number


def _parts(ik: IK, rows: Array) -> tuple[Array, Array]:
    """Return joint values (T, nq) and targets (T, goals, 16) of rows of answers."""
    return rows[:, ik.places].copy(), np.ascontiguousarray(kept_targets(ik, rows))


def _replace(ik: IK, model: Model, rows: Array, q: Array, why: Status) -> Bools:
    """Write other joint values into rows of answers, with their errors; return which are missed only now."""
    _, targets = _parts(ik, rows)
    _, _, errors = model.evaluate(q, targets, derivative=False)
    rows[:, ik.places] = q
    rows[:, ik.places.stop : ik.places.stop + 2 * len(ik.goals)] = errors.reshape(len(rows), -1)
    reached = (errors <= np.array(ik.tolerance)).all((1, 2))
    was = rows[:, STATUS] == Status.REACHED
    rows[:, STATUS] = np.where(reached, Status.REACHED, np.where(was, why, rows[:, STATUS]))
    return was & np.logical_not(reached)
