"""Concatenate clips, with or without overlap, optionally aligned where the previous clip ends."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from synovia.arguments import check_kind
from synovia.errors import InputError
from synovia.model import Skeleton
from synovia.model.clip_tools.additive import same_rate
from synovia.model.clip_tools.bounds import held, kept_limits
from synovia.model.clip_tools.chart import Chart, smoothstep
from synovia.model.clip_tools.path import Ground, inverse, moves_otherwise
from synovia.model.geometry import Array
from synovia.model.motion import Motion, frames_of
from synovia.planting import with_planted_feet


def concatenate(motions: Iterable[Motion], *, blend: int = 0, align: bool = False, lock_feet: bool = False) -> Motion:
    """Concatenate clips to one clip.

    Args:
        motions: The clips, of one body and one rate. The result has the skeleton and the name of the first.
        blend: Number of frames by which each clip overlaps the previous clip and is blended with it. The total length
            is reduced by ``blend`` for each seam. With 0, no pose changes.
        align: Whether each clip continues where the previous clip ends. It is moved over the ground and rotated about
            the upward axis so that the last step of the previous clip continues, or, with ``blend``, so that the
            overlap begins at the previous clip. In the overlap, place and heading follow blended steps of both clips. A
            body with a fixed root stays in place.
        lock_feet: Whether ``foot_lock`` then holds the planted feet.

    Raises:
        InputError: If there is no clip, the clips differ in body or rate or are shorter than the overlap, or their root
            cannot be aligned.

    Returns:
        A motion with the notes of all clips, and notes about blends clamped by limits.

    Example:
        >>> import numpy as np
        >>> import synovia as sy
        >>> arm = sy.bundled("arm7")
        >>> there = sy.Motion(arm, np.linspace(arm.rest_q, arm.random_pose(1).q, 30), 30.0)
        >>> sy.concatenate([there, there.reversed()], blend=10)
        Motion('motion', 50 frames at 30 fps, 'arm7')
    """
    clips = list(motions)
    for k, clip in enumerate(clips):
        check_kind(f"motions[{k}]", clip, Motion, "sy.load_motion(path) reads one")
    overlap = frames_of(blend, "blend", least=0)
    if not clips:
        raise InputError("motions", value=0, expected="at least one clip")
    first, rest = clips[0], clips[1:]
    skeleton, q = first.skeleton, np.array(first.q)
    stretch = None if all(clip.stretch is None for clip in clips) else _scale(first)
    ground = Ground.of(skeleton, q) if align else None
    if align and ground is None and len(q) and moves_otherwise(skeleton):
        hint = "give the skeleton a free root, or leave align out"
        raise InputError("root", where=first.name, value=skeleton.name, expected="a free root, or none", hint=hint)
    kept, notes = kept_limits(skeleton, q), list(first.notes)
    for k, clip in enumerate(rest, 1):
        clip = _on(clip, skeleton, k)
        if not same_rate(clip.fps, first.fps):
            hint = f"motions[{k}].resample({first.fps:g}) changes it"
            raise InputError(f"fps of motions[{k}]", value=clip.fps, expected=f"{first.fps:g}, as the first", hint=hint)
        for part, one in (("the clip before", q), ("the clip", clip.q)):
            if len(one) < overlap:
                expected = f"at most the {len(one)} frames of {part}"
                raise InputError(f"blend before motions[{k}]", value=overlap, expected=expected)
        kept &= kept_limits(skeleton, clip.q)
        notes += clip.notes
        q = _joined(skeleton, q, np.array(clip.q), overlap, ground)
        if stretch is not None:
            stretch = _faded(stretch, _scale(clip), overlap)
    if overlap:
        q, found = held(skeleton, q, kept)
        notes += found
    out = Motion(skeleton, q, first.fps, name=first.name, stretch=stretch, notes=dict.fromkeys(notes))
    return with_planted_feet(out) if lock_feet else out


def _on(clip: Motion, skeleton: Skeleton, k: int) -> Motion:
    """Return a clip on the skeleton of the first clip."""
    moved = clip.on(skeleton)
    if moved.skeleton is not skeleton:
        expected = "the joints of the first clip"
        raise InputError(f"skeleton of motions[{k}]", value=clip.skeleton.name, expected=expected)
    return moved


def _joined(skeleton: Skeleton, a: Array, b: Array, overlap: int, ground: Ground | None) -> Array:
    """Concatenate joint values (T, nq) of two clips; with a ground, the second clip continues where the first ends."""
    if not len(a) or not len(b):
        return np.concatenate([a, b])
    if ground is not None:
        ends, begins = ground.path(a[-max(overlap, 2) :]), ground.path(b)
        if overlap:
            ends = ends[-overlap:]
            path = _shared_path(ground, ends, begins[:overlap])
            a = np.concatenate([a[:-overlap], ground.carried(a[-overlap:], path @ inverse(ends))])
            start = path[-1] @ inverse(begins[overlap - 1])
            tail = ground.carried(b[overlap:], start)
            b = np.concatenate([ground.carried(b[:overlap], path @ inverse(begins[:overlap])), tail])
        else:
            step = inverse(ends[0]) @ ends[-1]  # last step of a, relative to the heading before it
            b = ground.carried(b, ends[-1] @ step @ inverse(begins[0]))
    if not overlap:
        return np.concatenate([a, b])
    chart = Chart.of(skeleton)
    weight = _weights(overlap)[:, None]
    middle = chart.stepped(a[-overlap:], weight * chart.course(a[-overlap:], b[:overlap]))
    return np.concatenate([a[:-overlap], skeleton.follow(middle), chart.signed_like(b, a[-overlap])[overlap:]])


def _shared_path(ground: Ground, a: Array, b: Array) -> Array:
    """Return a path over the ground (n, 4, 4) that begins at a and blends from the steps of a to those of b."""
    out = [a[0]]
    weights = _weights(len(a))
    for k in range(1, len(a)):
        steps = [inverse(way[k - 1]) @ way[k] for way in (a, b)]
        w = 0.5 * float(weights[k - 1] + weights[k])
        angles = [ground.angle(step) for step in steps]
        place = (1.0 - w) * steps[0][:3, 3] + w * steps[1][:3, 3]
        angle = np.array([(1.0 - w) * angles[0] + w * angles[1]])
        out.append(out[-1] @ ground.steps(place[None], angle)[0])
    return np.array(out)


def _weights(count: int) -> Array:
    """Return the share of the second clip in each frame of an overlap."""
    return smoothstep(np.arange(1, count + 1) / (count + 1))


def _scale(clip: Motion) -> Array:
    """Return the animated scale of a clip, (T, n, 3)."""
    return np.ones((len(clip), len(clip.skeleton), 3)) if clip.stretch is None else clip.stretch


def _faded(a: Array, b: Array, overlap: int) -> Array:
    """Concatenate two arrays of animated scale, blended in the overlap."""
    if not overlap:
        return np.concatenate([a, b])
    weight = _weights(overlap)[:, None, None]
    return np.concatenate([a[:-overlap], (1.0 - weight) * a[-overlap:] + weight * b[:overlap], b[overlap:]])
