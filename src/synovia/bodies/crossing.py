"""Move a clip from a level floor onto a world: footholds, paths of the feet, and rise of the body."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from synovia.bodies.footing import Foothold, Sole, foothold, smallest_turns
from synovia.model.geometry import Array
from synovia.model.shapes.world import World

_STEP: Final = 0.6  # leg lengths: a surface that is higher above the ground counts as a wall
_SHORT: Final = 0.15  # leg lengths: length of the sole of a foot without toes
_SAME: Final = 0.08  # leg lengths: if the toes move less between two contacts, both are at one place
_EARLY: Final = 0.7  # share of a swing in which a foot rises (from its start) or sinks (to its end) to a new height
_OVER: Final = 0.02  # leg lengths: clearance of a swinging foot over an edge
_TOUCH: Final = 0.01  # leg lengths: a swinging foot that is below the ground by less is not raised
_LOW: Final = 0.2  # quantile over time of the heights of ankle and toes that counts as their height in a contact
_HIGHEST: Final = 0.3  # leg lengths: largest raise of a foot over edges
_LEAST: Final = 0.25  # least share of the full raise that counts at any time; limits raises over edges near the ends
_ALONG: Final = (0.0, 0.35, 0.7, 1.0)  # sample points of a swinging sole, as fractions from ankle to toes
_BENT: Final = 0.99  # fraction of a leg's length to which a rising body may extend it; more if the clip extends it more
_AVERAGED: Final = 0.2  # seconds: averaging window for the rise of the body
_PEAKS: Final = np.linspace(0.15, 0.85, 15)  # fractions of a swing at which the raise may have its maximum


@dataclass(frozen=True, eq=False)
class Steps:
    """One foot of a clip on a level floor, with its leg.

    Args:
        ankle: Path of the ankle, (T, 3).
        toe: Path of the end of the toes, (T, 3); the path of the ankle if there are no toes.
        hip: Path of the hip joint, (T, 3).
        spans: Contacts (first frame, end) of the foot.
        leg: Length of the leg from hip to ankle, length units.
    """

    ankle: Array
    toe: Array
    hip: Array
    spans: Sequence[tuple[int, int]]
    leg: float


@dataclass(frozen=True, eq=False)
class Crossing:
    """How to move a clip from a level floor onto a world.

    Args:
        moves: Rigid motion of each foot from the level floor in each frame, (T, 4, 4); constant while the foot stands.
        rise: Rise of the body, (T,), length units.
        holds: Footholds of each foot, one for each of its contacts.
    """

    moves: tuple[Array, ...]
    rise: Array
    holds: tuple[tuple[Foothold, ...], ...]


def moved_by(moves: Array, points: Array) -> Array:
    """Apply rigid motions (T, 4, 4) to points (T, 3)."""
    return np.einsum("tij,tj->ti", moves[:, :3, :3], points) + moves[:, :3, 3]


def crossing(world: World, feet: Sequence[Steps], up: Array, floor: float, fps: float) -> Crossing | None:
    """Compute how to move a clip from a level floor onto a world; None if all footholds are on the level floor.

    Contacts are handled in temporal order. The foothold of each contact is near the foot's place on the floor, on a
    surface that is at most 60 % of a leg length above the ground of the previous contact. Between two contacts, a foot
    is eased from one rigid motion to the next: it rises at the beginning of its swing, sinks at the end, and clears
    edges between. At the ends of the clip, a foot in the air keeps its height, but above the ground instead of the
    floor. The body rises by the average of its feet, but only as far as its legs reach, or as they extend in the clip.

    Args:
        world: The world, with the length unit and the upward axis of the body.
        feet: The feet.
        up: Upward direction, (3,).
        floor: Height of the floor of the clip, on which feet stand if no obstacle is below.
        fps: Frames per second.
    """
    found: list[list[Foothold]] = [[] for _ in feet]
    standing = [foot.spans for foot in feet]
    feet = [replace(foot, spans=_stances(foot)) for foot in feet]
    contacts = sorted((first, end, k) for k, foot in enumerate(feet) for first, end in foot.spans)
    level = floor
    for first, end, k in contacts:
        foot = feet[k]
        sole = Sole.below(
            np.median(foot.ankle[first:end], axis=0), np.median(foot.toe[first:end], axis=0), floor, up,
            _SHORT * foot.leg,
        )  # fmt: skip
        hold = foothold(world, sole, floor, level, _STEP * foot.leg)
        level = hold.height
        found[k].append(hold)
    if all(hold.level for holds in found for hold in holds):
        return None
    moves = [_between(foot, holds, up, floor) for foot, holds in zip(feet, found, strict=True)]
    moves = [
        _over_edges(world, foot, holds, move, up, floor) for foot, holds, move in zip(feet, found, moves, strict=True)
    ]
    holds = (
        tuple(next(hold for (a, b), hold in zip(foot.spans, own, strict=True) if a <= first < b) for first, _ in spans)
        for foot, own, spans in zip(feet, found, standing, strict=True)
    )
    return Crossing(tuple(moves), _rise(feet, moves, up, fps), tuple(holds))


def _stances(foot: Steps) -> list[tuple[int, int]]:
    """Return the spans in which a foot stays at one place: contacts, merged if they follow each other at one place.

    The first and the last frame count as contacts, because a swinging foot is above some ground there, too.
    """
    count, spans = len(foot.ankle), list(foot.spans)
    if not spans or spans[0][0] > 0:
        spans.insert(0, (0, 1))
    if spans[-1][1] < count:
        spans.append((count - 1, count))
    out = [spans[0]]
    for first, end in spans[1:]:
        a, b = out[-1]
        way = np.median(foot.toe[first:end], axis=0) - np.median(foot.toe[a:b], axis=0)
        if np.linalg.norm(way) < _SAME * foot.leg:
            out[-1] = a, end
        else:
            out.append((first, end))
    return out


def _ease(u: Array) -> Array:
    """Return a smooth step from 0 to 1 whose velocity and acceleration are 0 at both ends."""
    u = np.clip(u, 0.0, 1.0)
    return u * u * u * (u * (6.0 * u - 15.0) + 10.0)


def _between(foot: Steps, holds: Sequence[Foothold], up: Array, floor: float) -> Array:
    """Return the rigid motions of a foot, (T, 4, 4): constant at each foothold, eased during swings."""
    count = len(foot.ankle)
    moves = np.tile(np.eye(4), (count, 1, 1))
    for (first, end), hold in zip(foot.spans, holds, strict=True):
        moves[first:end] = hold.motion
    middle = 0.5 * (foot.ankle + foot.toe)
    middle = middle - np.outer(middle @ up - floor, up)
    for k, (a, b) in enumerate(swings(foot.spans)):
        one, other = holds[k], holds[k + 1]
        u = np.linspace(0.0, 1.0, b - a + 2)[1:-1]
        at = middle[a:b]
        ends = [at @ hold.motion[:3, :3].T + hold.motion[:3, 3] for hold in (one, other)]
        way = ends[1] - ends[0]
        rises = other.height > one.height
        upright = _ease(u / _EARLY if rises else (u - 1.0 + _EARLY) / _EARLY)
        place = ends[0] + _ease(u)[:, None] * way
        place += np.outer((upright - _ease(u)) * (way @ up), up)
        normals = one.normal + _ease(u)[:, None] * (other.normal - one.normal)
        R = smallest_turns(up, normals / np.linalg.norm(normals, axis=1, keepdims=True))
        moves[a:b, :3, :3] = R
        moves[a:b, :3, 3] = place - np.einsum("tij,tj->ti", R, at)
    return moves


def swings(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the swings (first frame, end) between contacts; some may be empty."""
    return [(end, first) for (_, end), (first, _) in itertools.pairwise(spans)]


def _over_edges(world: World, foot: Steps, holds: Sequence[Foothold], moves: Array, up: Array, floor: float) -> Array:
    """Return rigid motions, raised so that a swinging foot clears the edges below it."""
    below = [float(np.quantile(points @ up, _LOW)) - floor for points in (foot.ankle, foot.toe)]
    flat = [points - depth * up for points, depth in zip((foot.ankle, foot.toe), below, strict=True)]
    bottoms = [moved_by(moves, points) for points in flat]
    soles = np.stack([bottoms[0] + s * (bottoms[1] - bottoms[0]) for s in _ALONG], axis=1)
    sunk = np.maximum(floor - np.minimum(*(points @ up for points in flat)), 0.0)  # depth below the floor in the clip
    out = moves.copy()
    for k, (a, b) in enumerate(swings(foot.spans)):
        if b == a:
            continue
        u = np.linspace(0.0, 1.0, b - a + 2)[1:-1]
        points = soles[a:b].reshape(-1, 3)
        most = max(holds[k].height, holds[k + 1].height) + _STEP * foot.leg
        ground = world.ground(points + (most - points @ up)[:, None] * up, up).heights
        ground = np.where(ground > most, -np.inf, np.maximum(ground, floor))
        inside = (ground - points @ up).reshape(b - a, -1).max(axis=1) - sunk[a:b]
        if inside.max() <= _TOUCH * foot.leg:
            continue
        need = np.maximum(inside + _OVER * foot.leg * np.sin(np.pi * u), 0.0)
        shapes = [_ease(u / peak) * _ease((1.0 - u) / (1.0 - peak)) for peak in _PEAKS]
        sizes = [float(np.max(need / np.maximum(shape, _LEAST))) for shape in shapes]
        best = int(np.argmin(sizes))
        out[a:b, :3, 3] += np.outer(min(sizes[best], _HIGHEST * foot.leg) * shapes[best], up)
    return out


def _rise(feet: Sequence[Steps], moves: Sequence[Array], up: Array, fps: float) -> Array:
    """Return the rise of the body, (T,): the average of its feet, limited by the lengths of its legs."""
    width = max(1, round(0.5 * _AVERAGED * fps))
    wanted: list[Array] = []
    most: list[Array] = []
    for foot, move in zip(feet, moves, strict=True):
        ankle = moved_by(move, foot.ankle)
        wanted.append((ankle - foot.ankle) @ up)
        own = np.linalg.norm(foot.hip - foot.ankle, axis=1)
        length = np.maximum(own, _BENT * foot.leg)
        way = foot.hip - ankle
        across = np.linalg.norm(way - np.outer(way @ up, up), axis=1)
        most.append(np.sqrt(np.maximum(length**2 - across**2, 0.0)) - way @ up)
    rise = _averaged(np.mean(wanted, axis=0), width)
    over = np.maximum(rise - np.min(most, axis=0), 0.0)
    if over.any():
        padded = np.pad(over, 2 * width, mode="edge")
        largest = np.lib.stride_tricks.sliding_window_view(padded, 2 * width + 1).max(axis=1)
        rise = rise - np.convolve(largest, _window(width), mode="valid")
    return rise


def _window(width: int) -> Array:
    """Return the weights of a weighted average over 2 width + 1 frames."""
    window = np.hanning(2 * width + 3)[1:-1]
    return window / window.sum()


def _averaged(values: Array, width: int) -> Array:
    """Return values (T,) averaged over 2 width + 1 frames."""
    return np.convolve(np.pad(values, width, mode="edge"), _window(width), mode="valid")
