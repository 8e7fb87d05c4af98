"""Triangles that move with joints, independent of the file format."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from synovia.errors import FormatError
from synovia.io.meshes import MOST_FACES, Faces
from synovia.model.geometry import Array, frames_to_transforms

Colour = tuple[int, int, int]

PLAIN: Final[Colour] = (176, 186, 200)  # colour of surfaces without a colour, or with a texture that cannot be shown
_RIGID: Final = 1e-3  # largest deviation of R Rᵀ from 1 in rigid bind frames, which may be products of float32 matrices
_COVERS: Final = 0.5  # least fraction of the total bone length that a surface of the whole body covers


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Triangles of one colour.

    Args:
        vertices: World positions of the vertices for the bone frames ``bind``, (v, 3), length units.
        faces: Vertex indices of the triangles, (f, 3).
        rows: The bones: joints that move the part, rows of the skeleton, (b,).
        bind: Rigid frames of the bones, (b, 4, 4).
        bones: Up to four bones of each vertex, (v, 4), indices into ``rows``.
        weights: Weights of these bones, (v, 4), sum 1.
        colour: Red, green, blue, 0 to 255.
        flat: Whether faces are shaded flat, as for machined parts, or smoothly.
        colours: Colours of the vertices, 0 to 1, (v, 3), if the file has them; ``colour`` is then their mean.
        corners: Texture coordinates of the triangles' corners, (f, 3, 2), from the upper left corner of the image.
        texture: Image of the base colours, 0 to 255, (h, w, 3); ``colour`` is then its mean over the triangles.
        tint: Factors for the texture's colours, 0 to 1.
    """

    vertices: Array
    faces: Faces
    rows: NDArray[np.int64]
    bind: Array
    bones: NDArray[np.int64]
    weights: Array
    colour: Colour = PLAIN
    flat: bool = False
    colours: Array | None = None
    corners: Array | None = None
    texture: NDArray[np.uint8] | None = None
    tint: tuple[float, float, float] = (1.0, 1.0, 1.0)

    def placed(self, frames: Array) -> Array:
        """Return the positions of the vertices, (v, 3), for joint frames (n, 12)."""
        moves = frames_to_transforms(frames)[self.rows] @ np.linalg.inv(self.bind)
        return skinned(self.vertices, moves, self.bones, self.weights)


@dataclass(frozen=True, slots=True)
class Surface:
    """The surface of a body.

    Args:
        parts: The triangles.
        notes: Sentences about missing parts and the reasons.
        partial: Whether parts of the body are known to be missing.
    """

    parts: tuple[Part, ...] = ()
    notes: tuple[str, ...] = ()
    partial: bool = False

    def covers(self, lengths: Mapping[int, float]) -> bool:
        """Return whether the surface shows enough of the body, so that bones need not be drawn.

        Args:
            lengths: Length of the bones that begin at each joint, by row.
        """
        rows = {row for part in self.parts for row in part.rows[np.unique(part.bones[part.weights > 0.0])].tolist()}
        shown = sum(length for row, length in lengths.items() if row in rows)
        return not self.partial and shown >= _COVERS * sum(lengths.values())


def skinned(vertices: Array, moves: Array, bones: NDArray[np.int64], weights: Array) -> Array:
    """Return vertices (v, 3) after linear blend skinning with transforms (b, 4, 4), by bones and weights (v, 4)."""
    each = np.einsum("vbij,vj->vbi", moves[bones][..., :3, :3], vertices) + moves[bones][..., :3, 3]
    return np.einsum("vb,vbi->vi", weights, each)


def skin_part(
    vertices: Array,
    faces: Faces,
    skin: tuple[NDArray[np.int64], Array, Array],
    bones: NDArray[np.int64],
    weights: Array,
    colour: Colour = PLAIN,
) -> tuple[Part, bool]:
    """Return a part that several joints deform, and whether its faces were reversed.

    A vertex v of a skin has the position Σ wᵢ Xᵢ Aᵢ v, with the rigid frame Xᵢ of joint i and a constant Aᵢ. The part
    stores the vertices S v, with S = X₀ A₀ at rest, and the bind frames S Aᵢ⁻¹. This is exact if these frames are
    rigid, as for every skin that was bound without nonuniform scale. For other skins, the part stores the vertices and
    frames of the rest pose.

    Args:
        vertices: Vertices in the space of the mesh, (v, 3).
        faces: As in ``Part``.
        skin: Rows of the joints, their frames X at rest, (b, 4, 4), and the matrices A, (b, 4, 4).
        bones: Four bones of each vertex, (v, 4).
        weights: Weights of these bones, (v, 4), sum 1.
        colour: As in ``Part``.
    """
    rows, frames, each = skin
    moved = frames[bones[0, 0]] @ each[bones[0, 0]]
    used = np.unique(bones[weights > 0.0])
    seen = frames.copy()
    seen[used] = moved @ np.linalg.pinv(each[used])
    turns = seen[used, :3, :3]
    if np.abs(turns @ turns.swapaxes(1, 2) - np.eye(3)).max() <= _RIGID and np.linalg.det(turns).min() > 0.0:
        places = vertices @ moved[:3, :3].T + moved[:3, 3]
    else:
        seen = frames
        places = skinned(vertices, frames @ each, bones, weights)
    turned = bool(np.linalg.det(moved[:3, :3]) < 0.0)
    number = np.zeros(len(rows), np.int64)
    number[used] = np.arange(len(used))
    return Part(
        places, faces[:, ::-1] if turned else faces, rows[used], seen[used], number[bones], weights, colour
    ), turned


def welded(faces: Faces, *columns: Array | NDArray[np.int64]) -> tuple[NDArray[np.int64], Faces, NDArray[np.bool_]]:
    """Merge vertices that differ only in texture coordinates.

    Returns:
        The indices of the vertices to keep, the new faces, and a mask of the old faces that are kept.
    """
    key = np.hstack([np.asarray(column, np.float64) for column in columns])
    _, first, back = np.unique(key, axis=0, return_index=True, return_inverse=True)
    merged = back.reshape(-1)[faces]
    proper = np.all(merged != np.roll(merged, 1, axis=1), axis=1)
    return first.astype(np.int64), merged[proper], proper


def strongest(bones: NDArray[np.int64], weights: Array) -> tuple[NDArray[np.int64], Array]:
    """Return the four bones with the largest weights for each vertex, (v, 4), and their weights, with sum 1.

    Args:
        bones: (v, n), n at least 4.
        weights: (v, n), none negative.
    """
    if weights.shape[1] > 4:
        best = np.argsort(-weights, axis=1, kind="stable")[:, :4]
        bones, weights = np.take_along_axis(bones, best, 1), np.take_along_axis(weights, best, 1)
    total = weights.sum(axis=1, keepdims=True)
    return bones, np.where(total > 0.0, weights / np.where(total > 0.0, total, 1.0), (1.0, 0.0, 0.0, 0.0))


def rigid_part(
    vertices: Array, faces: Faces, row: int, frame: Array, colour: Colour = PLAIN, *, flat: bool = True
) -> Part:
    """Return a part that moves rigidly with one joint.

    Args:
        vertices: Vertices in the joint's frame, (v, 3).
        faces: As in ``Part``.
        row: Row of the joint.
        frame: Frame of the joint in the rest pose, (4, 4).
        colour: As in ``Part``.
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


def limited(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Check the vertices and the number of triangles of parts, and return all parts as a tuple.

    Raises:
        FormatError: If the parts have more than ``MOST_FACES`` triangles, or a vertex is not finite; later parts are
            then not made.
    """
    kept: list[Part] = []
    faces = 0
    for part in parts:
        if not np.isfinite(part.vertices).all():
            raise FormatError("a mesh has vertices that are not finite")
        kept.append(part)
        faces += len(part.faces)
        if faces > MOST_FACES:
            raise FormatError(f"more than {MOST_FACES} triangles")
    return tuple(kept)


def joined(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Return parts merged by colour and shading, because browsers draw few large meshes faster than many small ones."""
    groups: dict[tuple[Colour, bool, int], list[Part]] = {}
    for number, part in enumerate(parts):
        alone = part.colours is not None or part.texture is not None
        groups.setdefault((part.colour, part.flat, number if alone else -1), []).append(part)
    return tuple(_merged(group) for group in groups.values())


def _merged(parts: Sequence[Part]) -> Part:
    """Return one part with the triangles of all parts; bones of one joint with equal bind frames are shared."""
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
    """Return a colour from red, green, blue (and alpha) in 0 to 1."""
    red, green, blue = (round(255.0 * min(max(float(part), 0.0), 1.0)) for part in rgba[:3])
    return red, green, blue
