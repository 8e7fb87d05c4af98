"""Measure how well the shapes of a body fit its surface: the largest gap and the largest overhang."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from synovia.arguments import check_kind
from synovia.covers.points import area_of, distances_to, in_triangles, points_on
from synovia.covers.skin import Outside, Skin, skin_of
from synovia.errors import InputError
from synovia.model import Pose, Skeleton
from synovia.model.geometry import Array
from synovia.model.shapes.solids import Solid
from synovia.surface import surface_of_skeleton
from synovia.text import Report, plain

_ROUNDING: Final = 1e-9  # fraction of the extent of the surface: smaller gaps count as rounding


@dataclass(frozen=True, slots=True)
class LinkFit:
    """How well the shapes of one link fit.

    Args:
        shapes: Number of shapes of the link.
        gap: Largest distance of the link's surface from the shapes of the body; length units.
        overhang: Largest distance by which its shapes extend beyond the surface of the body; length units.

    Example:
        >>> import synovia as sy
        >>> isinstance(sy.shapes.shape_fit(sy.bundled("humanoid"), points=1000).links["head"], sy.shapes.LinkFit)
        True
    """

    shapes: int
    gap: float
    overhang: float


@dataclass(frozen=True, slots=True)
class ShapeFit:
    """How well the shapes of a body fit its surface, found by random points.

    Args:
        gap: Largest distance of the surface from the shapes; 0 if they contain the surface. Length units.
        overhang: Largest distance by which shapes extend beyond the surface; length units.
        points: Number of points of the surface, and of the shapes, that were tested.
        links: The fit of each link with shapes or surface, by its name as in ``Skeleton.shapes``.

    Example:
        >>> import synovia as sy
        >>> fit = sy.shapes.shape_fit(sy.bundled("humanoid"), points=1000)
        >>> isinstance(fit, sy.shapes.ShapeFit), fit.gap
        (True, 0.0)
    """

    gap: float
    overhang: float
    points: int
    links: Mapping[str | int, LinkFit]

    def __post_init__(self) -> None:
        """Make ``links`` read-only."""
        object.__setattr__(self, "links", MappingProxyType(dict(self.links)))

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what copying and pickling need: the class and the values."""
        return ShapeFit, (self.gap, self.overhang, self.points, dict(self.links))

    def report(self) -> Report:
        """Return a table of the links, sorted by gap and then by overhang, the largest first."""
        names = {str(name): link for name, link in self.links.items()}
        width = max(map(len, names), default=4)
        lines = [f"{'link':{width}}  shapes       gap  overhang"]
        order = sorted(names, key=lambda name: (-names[name].gap, -names[name].overhang))
        for name in order:
            link = names[name]
            lines.append(f"{name:{width}}  {link.shapes:6d}  {link.gap:8.4g}  {link.overhang:8.4g}")
        lines.append(f"largest gap {self.gap:.4g}, largest overhang {self.overhang:.4g}, by {self.points} points")
        links = [{"link": name, **plain(link)} for name, link in self.links.items()]
        return Report(lines, {**plain(self, "gap", "overhang", "points"), "links": links})


def shape_fit(skeleton: Skeleton, *, points: int = 100_000, pose: Pose | None = None, seed: int = 0) -> ShapeFit | None:
    """Measure how well the shapes of a body fit its surface: the skin of a character, or the meshes of a robot.

    Random points of the surface are tested for being inside a shape. For random points of the shapes, the distance
    beyond the surface is measured; points inside another shape are ignored.

    Args:
        skeleton: The skeleton, with shapes.
        points: Number of points of the surface, and of the shapes, to test.
        pose: A pose of the skeleton; None for the bind pose of the surface.
        seed: Seed of the random points.

    Returns:
        The fit; None if the file of the skeleton has no surface.

    Raises:
        InputError: If the body has no shapes, or an argument cannot be used.

    Example:
        >>> import synovia as sy
        >>> body = sy.bundled("humanoid")
        >>> sy.shapes.shape_fit(body, points=1000).overhang < 0.1
        True
        >>> bare = sy.with_shapes(body, {"left_hand": []})
        >>> sy.shapes.shape_fit(bare, points=1000).gap > 0.1
        True
    """
    check_kind("skeleton", skeleton, Skeleton, "sy.load_skeleton(path) reads one")
    for name, value, least in (("points", points, 1), ("seed", seed, 0)):
        if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(name, value=value, expected=f"a whole number from {least}")
    if pose is not None:
        check_kind("pose", pose, Pose, "a pose of this skeleton")
        if pose.skeleton.joint_names != skeleton.joint_names:
            raise InputError("pose", where=skeleton.name, expected="a pose of this skeleton")
    if not skeleton.shapes:
        raise InputError("skeleton", where=skeleton.name, expected="a body with shapes", hint="with_shapes adds them")
    skin = skin_of(surface_of_skeleton(skeleton), skeleton, pose)
    return None if skin is None else measured(skin, skeleton, int(points), int(seed))


def measured(skin: Skin, skeleton: Skeleton, count: int, seed: int) -> ShapeFit:
    """Return how well the shapes of a skeleton fit its surface.

    Args:
        skin: The surface.
        skeleton: The skeleton.
        count: Number of points of the surface, and of the shapes.
        seed: Seed of the random points.
    """
    rng = np.random.default_rng(seed)
    rows = [row for row, joint in enumerate(skeleton.joints) for _ in joint.shapes]
    each = [shape.moved(skin.frames[row]) for row, joint in enumerate(skeleton.joints) for shape in joint.shapes]
    samples, face = in_triangles(skin.corners, count, rng)
    carriers = skin.rows[face]
    out = _outside(samples, carriers, rows, each)
    gaps = np.where(out > _ROUNDING * skin.extent, out, 0.0)
    overhangs = _overhangs(skin, each, count, rng)
    links: dict[str | int, LinkFit] = {}
    for row in sorted({*rows, *carriers.tolist()}):
        own = [overhang for at, overhang in zip(rows, overhangs, strict=True) if at == row]
        gap = float(gaps[carriers == row].max(initial=0.0))
        links[skeleton.link_key(row)] = LinkFit(len(own), gap, max(own, default=0.0))
    return ShapeFit(float(gaps.max()), max(overhangs), count, links)


def _outside(samples: Array, carriers: NDArray[np.int64], rows: list[int], shapes: list[Solid]) -> Array:
    """Return the distances of points from the union of shapes; inside, a negative value.

    Args:
        samples: The points, (n, 3).
        carriers: The joints that carry the points, (n,).
        rows: The joints of the shapes.
        shapes: The shapes, in the world.
    """
    out = np.full(len(samples), np.inf)
    for row, shape in zip(rows, shapes, strict=True):
        own = np.flatnonzero(carriers == row)
        out[own] = np.minimum(out[own], distances_to(shape, samples[own]))
    for shape in shapes:
        left = np.flatnonzero(out > 0.0)
        out[left] = np.minimum(out[left], distances_to(shape, samples[left]))
    return out


def _overhangs(skin: Skin, shapes: list[Solid], count: int, rng: np.random.Generator) -> list[float]:
    """Return the largest distance by which each shape extends beyond the surface and the other shapes.

    Args:
        skin: The surface.
        shapes: The shapes, in the world.
        count: Approximate number of points of all shapes together.
        rng: Generator of the random points.
    """
    areas = np.array([area_of(shape) for shape in shapes])
    shares = areas / areas.sum() if areas.sum() > 0.0 else np.full(len(areas), 1.0 / len(areas))
    balls = [(shape.place()[:3, 3], shape.extent()) for shape in shapes]
    outside = Outside(skin, count, rng)
    found: list[float] = []
    for k, shape in enumerate(shapes):
        probes = points_on(shape, max(1, round(count * float(shares[k]))), rng)
        for other, (middle, radius) in zip(shapes, balls, strict=True):
            if other is not shape and np.linalg.norm(middle - balls[k][0]) < radius + balls[k][1]:
                probes = probes[distances_to(other, probes) > 0.0]
        found.append(outside.farthest(probes))
    return found
