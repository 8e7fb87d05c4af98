"""Triangles that follow joints, whatever file they came from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from synovia.model.geometry import Array, frames_to_transforms

Colour = tuple[int, int, int]
Faces = NDArray[np.int64]

PLAIN: Final[Colour] = (176, 186, 200)  # where a file names no colour, or one that only a texture knows
MOST_FACES: Final = 2_000_000  # of one body: a hundred megabytes on the way to the browser


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Triangles of one colour.

    Args:
        vertices: Where the vertices are while the bones are at ``bind``, (v, 3), length units, world.
        faces: Vertices of the triangles, (f, 3).
        rows: Joints that move them, (b,), rows of the skeleton: the bones.
        bind: Frames of the bones, (b, 4, 4), rigid.
        bones: Up to four bones of each vertex, (v, 4), indices into ``rows``.
        weights: How much each counts, (v, 4), sum 1.
        colour: Red, green, blue, 0 to 255.
        flat: Whether faces are shaded one by one, as machined parts are, instead of smoothly.
    """

    vertices: Array
    faces: Faces
    rows: NDArray[np.int64]
    bind: Array
    bones: NDArray[np.int64]
    weights: Array
    colour: Colour = PLAIN
    flat: bool = False

    def placed(self, frames: Array) -> Array:
        """Return the vertices, (v, 3), where the skeleton's joints have the frames (n, 12): linear blend skinning."""
        moves = frames_to_transforms(frames)[self.rows] @ np.linalg.inv(self.bind)
        each = np.einsum("vbij,vj->vbi", moves[self.bones][..., :3, :3], self.vertices)
        return np.einsum("vb,vbi->vi", self.weights, each + moves[self.bones][..., :3, 3])


@dataclass(frozen=True, slots=True)
class Surface:
    """The surface of a body.

    Args:
        parts: Its triangles, none where the file has none.
        notes: What is missing and why, one sentence each.
    """

    parts: tuple[Part, ...] = ()
    notes: tuple[str, ...] = ()


def rigid_part(
    vertices: Array, faces: Faces, row: int, frame: Array, colour: Colour = PLAIN, *, flat: bool = True
) -> Part:
    """Return a part that one joint carries.

    Args:
        vertices: (v, 3), in the joint's frame.
        faces: (f, 3).
        row: The joint.
        frame: Its frame in the rest pose, (4, 4).
        colour: Red, green, blue, 0 to 255.
        flat: As in ``Part``.
    """
    count = len(vertices)
    weights = np.zeros((count, 4))
    weights[:, 0] = 1.0
    return Part(
        vertices @ frame[:3, :3].T + frame[:3, 3],
        np.asarray(faces, np.int64),
        np.array([row]),
        frame[None].copy(),
        np.zeros((count, 4), np.int64),
        weights,
        colour,
        flat,
    )


def joined(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Return parts of the same colour and shading as one each: a browser draws few large things faster."""
    groups: dict[tuple[Colour, bool], list[Part]] = {}
    for part in parts:
        groups.setdefault((part.colour, part.flat), []).append(part)
    return tuple(_together(group) for group in groups.values())


def _together(parts: Sequence[Part]) -> Part:
    """Return parts as one; bones that stand at the same place for the same joint are shared."""
    if len(parts) == 1:
        return parts[0]
    numbers: dict[tuple[int, tuple[float, ...]], int] = {}
    rows: list[int] = []
    binds: list[Array] = []
    bones: list[NDArray[np.int64]] = []
    starts = np.cumsum([0, *(len(part.vertices) for part in parts)])
    for part in parts:
        own = np.empty(len(part.rows), np.int64)
        for i, row in enumerate(part.rows.tolist()):
            bind: Array = part.bind[i]
            key = row, tuple(np.round(bind, 6).ravel().tolist())
            if key not in numbers:
                numbers[key] = len(rows)
                rows.append(row)
                binds.append(bind)
            own[i] = numbers[key]
        bones.append(own[part.bones])
    return Part(
        np.concatenate([part.vertices for part in parts]),
        np.concatenate([part.faces + start for part, start in zip(parts, starts[:-1], strict=True)]),
        np.array(rows, np.int64),
        np.array(binds),
        np.concatenate(bones),
        np.concatenate([part.weights for part in parts]),
        parts[0].colour,
        parts[0].flat,
    )


def colour_of(rgba: Sequence[float]) -> Colour:
    """Return red, green and blue, 0 to 1, as 0 to 255."""
    red, green, blue = (round(255.0 * min(max(float(part), 0.0), 1.0)) for part in rgba[:3])
    return red, green, blue
