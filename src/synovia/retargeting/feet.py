"""Planted feet: contacts of the source become fixed positions of the target's feet."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np

from synovia.clips.feet import ground_contacts
from synovia.facade import IK
from synovia.goals import PositionGoal
from synovia.ik.parallel import Progress
from synovia.model.geometry import Array
from synovia.model.names import SIDES
from synovia.model.pose import world_frames
from synovia.retargeting.body import LEGS, Body
from synovia.solver import FullBody

Spans = list[tuple[int, int]]


def planted_path(points: Array, spans: Spans) -> Array:
    """Return a path (T, 3) that is constant during contacts and follows the given one between them.

    During a contact, the path is at the mean of the given one. Between two contacts, the difference of both paths eases
    from one value to the next over the whole swing. Before the first and after the last contact, it is constant. So
    the shape of each swing is kept.
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
        ease = u * u * u * (u * (6.0 * u - 15.0) + 10.0)  # speed and acceleration are 0 at both ends
        shift[b:a] = shift[b - 1] + ease * (shift[a] - shift[b - 1])
    return points + shift


def foot_paths(source: Body, target: Body, frames: Array, own: Array, fps: float) -> dict[str, tuple[Array, Spans]]:
    """Return, for each foot that both bodies have, its target path (T, 3) and its contacts.

    Args:
        source: The body that moves.
        target: The body that follows.
        frames: (T, n, 12) world frames of the source.
        own: (T, m, 12) world frames of the target before its feet are corrected.
        fps: Frames per second.
    """
    out: dict[str, tuple[Array, Spans]] = {}
    for leg in LEGS:
        if leg[2] in source.roles and leg[2] in target.roles:
            spans = ground_contacts(frames[:, source.roles[leg[2]], 9:], source.basis[:, 1], fps)
            out[leg[2]] = planted_path(own[:, target.roles[leg[2]], 9:], spans), spans
    return out


def solve_feet(
    target: Body, q: Array, paths: Mapping[str, Array], threads: int | None, progress: Progress | None
) -> tuple[Array, Array, float]:
    """Solve for the feet.

    Feet have the highest priority. Hands stay where they were as far as the feet permit. The rest of the pose changes
    as little as possible.

    Args:
        target: The body.
        q: Joint values before, (T, nq).
        paths: Target path of each foot, (T, 3), by role.
        threads: Number of threads; None for all cores.
        progress: Called with (frames done, all).

    Returns:
        Joint values (T, nq), the error of each foot (T, feet), and the error above which a foot is missed.
    """
    frames = world_frames(target.skeleton, q)
    hands = [target.roles[f"{side}_hand"] for side in SIDES if f"{side}_hand" in target.roles]
    places = {target.roles[role]: path for role, path in paths.items()}
    goals = [PositionGoal(row) for row in places] + [PositionGoal(row, priority=1) for row in hands]
    places |= {row: frames[:, row, 9:] for row in hands}
    ik = IK(target.skeleton, goals, FullBody(attempts=1), root="free")
    answer = ik.solve_many(places, q, threads=threads, progress=progress)
    return answer.q, answer.errors[:, : len(paths), 0], ik.tolerance[0]
