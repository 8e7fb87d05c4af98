"""Feet that stand where they were put: contacts of the source become points that the target's feet keep."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np

from synovia.clips.feet import stays
from synovia.facade import IK
from synovia.goals import PositionGoal
from synovia.ik.parallel import Progress
from synovia.model.geometry import Array
from synovia.model.names import SIDES
from synovia.model.pose import world_frames
from synovia.retargeting.body import LEGS, Body
from synovia.solver import FullBody

Spans = list[tuple[int, int]]


def planted(points: Array, spans: Spans) -> Array:
    """Return a path (T, 3) that stands still during contacts and follows the given one between them.

    During a contact the foot is where it is on average then. Between two contacts the difference eases from one to the
    next over the whole swing, before the first and after the last it stays: so nothing is bent that is seen to move.
    """
    shift = np.zeros_like(points)
    if not spans:
        return points.copy()
    for a, b in spans:
        shift[a:b] = points[a:b].mean(0) - points[a:b]
    shift[: spans[0][0]] = shift[spans[0][0]]
    shift[spans[-1][1] :] = shift[spans[-1][1] - 1]
    for (_, b), (a, _) in itertools.pairwise(spans):
        u = np.linspace(0.0, 1.0, a - b + 2)[1:-1, None]
        ease = u * u * u * (u * (6.0 * u - 15.0) + 10.0)  # no jump in speed or acceleration at its ends
        shift[b:a] = shift[b - 1] + ease * (shift[a] - shift[b - 1])
    return points + shift


def foot_paths(source: Body, target: Body, frames: Array, own: Array, fps: float) -> dict[str, tuple[Array, Spans]]:
    """Return, for each foot that both bodies have, where it should be (T, 3) and when it stands.

    Args:
        source: The body that moves.
        target: The body that follows.
        frames: (T, n, 12) world frames of the source.
        own: (T, m, 12) world frames of the target before its feet are put in place.
        fps: Frames per second.
    """
    out: dict[str, tuple[Array, Spans]] = {}
    for leg in LEGS:
        if leg[2] in source.roles and leg[2] in target.roles:
            spans = stays(frames[:, source.roles[leg[2]], 9:], source.basis[:, 1], fps)
            out[leg[2]] = planted(own[:, target.roles[leg[2]], 9:], spans), spans
    return out


def placed(
    target: Body, q: Array, paths: Mapping[str, Array], threads: int | None, progress: Progress | None
) -> tuple[Array, Array, float]:
    """Return joint values (T, nq) with the feet in place, how far each foot is off (T, feet), and when that is a miss.

    Feet come first; hands stay where they were as far as that lets them; all else changes as little as it can.

    Args:
        target: The body.
        q: Joint values before, (T, nq).
        paths: Where each foot should be, (T, 3), by role.
        threads: Number of threads; all cores for None.
        progress: Called with (frames done, all).
    """
    frames = world_frames(target.skeleton, q)
    hands = [target.roles[f"{side}_hand"] for side in SIDES if f"{side}_hand" in target.roles]
    places = {target.roles[role]: path for role, path in paths.items()}
    goals = [PositionGoal(row) for row in places] + [PositionGoal(row, priority=1) for row in hands]
    places |= {row: frames[:, row, 9:] for row in hands}
    ik = IK(target.skeleton, goals, FullBody(attempts=1), root="free")
    answer = ik.solve_many(places, q, threads=threads, progress=progress)
    return answer.q, answer.errors[:, : len(paths), 0], ik.tolerance[0]
