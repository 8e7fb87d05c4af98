"""Find which links of a body touch each other, in many poses.

Two links touch if any of their shapes touch. Only links whose bounding spheres meet are tested, and only their shapes
whose bounding spheres meet.
"""

from synovia.kernels.collision.distance import point_box, point_cylinder, segments
from synovia.kernels.collision.gjk import apart
from synovia.kernels.collision.support import margin
from synovia.kernels.compiler.jit import F, device, entry, inline
from synovia.kernels.layout import (
    BOX,
    CAPSULE,
    CYLINDER,
    EXTENT,
    FIRST_OF_LINK,
    FIRST_SHAPE,
    HALF_LENGTH,
    HALF_SIZES,
    LINK_ROW,
    ORIENTATION,
    ORIGIN,
    RADIUS,
    SECOND_SHAPE,
    SHAPE_KIND,
    SHAPES_OF_LINK,
    SPHERE,
    TOUCHES,
)
from synovia.kernels.math.rotations import apply, apply_t, column, frame_of, load_rotation, matmul, store_frame
from synovia.kernels.math.vectors import add, dot, load, norm, scale, store, sub

CLOSE = F(1e-9)  # fraction of the size: nearer shapes touch, so that rounding does not separate exact contacts


@device
def touch(solids, i, j, corners):
    """Return whether two shapes touch or overlap; none of them is a half-space."""
    shapes, _ = solids
    if shapes[i, SHAPE_KIND] > shapes[j, SHAPE_KIND]:
        i, j = j, i
    kind, other = shapes[i, SHAPE_KIND], shapes[j, SHAPE_KIND]
    c = sub(load(shapes, j, ORIGIN), load(shapes, i, ORIGIN))
    radii = margin(solids, i) + margin(solids, j)
    most = radii + CLOSE * (norm(c) + radii)
    if other <= CAPSULE:
        h = shapes[i, HALF_LENGTH] if kind == CAPSULE else F(0)
        k = shapes[j, HALF_LENGTH] if other == CAPSULE else F(0)
        u = column(load_rotation(shapes, i, ORIENTATION), 2)
        gap = segments(c, u, h, column(load_rotation(shapes, j, ORIENTATION), 2), k)[0]
    elif kind == SPHERE and (other == BOX or other == CYLINDER):
        p = apply_t(load_rotation(shapes, j, ORIENTATION), scale(F(-1), c))
        if other == BOX:
            hx, hy, hz = load(shapes, j, HALF_SIZES)
            gap = point_box(p, hx, hy, hz)[0]
        else:
            gap = point_cylinder(p, shapes[j, HALF_LENGTH], shapes[j, RADIUS])[0]
    else:
        free, v, _, _ = apart(solids, i, j, c, most, corners)
        gap = norm(v) if free else F(0)
    return gap <= most


@inline
def meet(placed, i, j):
    """Return whether the bounding spheres of two rows of ``placed`` meet."""
    way = sub(load(placed, i, ORIGIN), load(placed, j, ORIGIN))
    reach = (placed[i, EXTENT] + placed[j, EXTENT]) * (F(1) + CLOSE)
    return dot(way, way) <= reach * reach


@device
def place(shapes, links, frames, placed):
    """Write the frames of all shapes, and the centres of the spheres around links, in the world."""
    first_cover = shapes.shape[0] - links.shape[0]
    for k in range(links.shape[0]):
        R, p = frame_of(frames, links[k, LINK_ROW])
        store(placed, first_cover + k, ORIGIN, add(p, apply(R, load(shapes, first_cover + k, ORIGIN))))
        for i in range(links[k, FIRST_OF_LINK], links[k, FIRST_OF_LINK] + links[k, SHAPES_OF_LINK]):
            S, o = frame_of(shapes, i)
            store_frame(placed, i, matmul(R, S), add(p, apply(R, o)))


@device
def links_touch(solids, links, a, b, corners):
    """Return whether any shape of one link touches any shape of another link."""
    placed = solids[0]
    first_cover = placed.shape[0] - links.shape[0]
    if not meet(placed, first_cover + a, first_cover + b):
        return False
    for i in range(links[a, FIRST_OF_LINK], links[a, FIRST_OF_LINK] + links[a, SHAPES_OF_LINK]):
        for j in range(links[b, FIRST_OF_LINK], links[b, FIRST_OF_LINK] + links[b, SHAPES_OF_LINK]):
            if meet(placed, i, j) and touch(solids, i, j, corners):
                return True
    return False


@entry
def touching(shapes, vertices, links, frames, pairs, poses, placed, corners):
    """Count for each pair of links the poses in which they touch, and for each pose the pairs that touch.

    Args:
        shapes: All shapes, each in the frame of its joint, ordered by link; then a sphere around each link.
        vertices: Points of hulls, each in the frame of its shape.
        links: Joint, first shape and number of shapes of each link.
        frames: World frames of all joints in each pose, (T, joints, 12).
        pairs: Both links of each pair, and a number, to which that of the poses in which they touch is added.
        poses: Number of pairs that touch in each pose, (T,), written.
        placed: Scratch memory: a copy of ``shapes``.
        corners: Scratch memory of one pair.
    """
    solids = (placed, vertices)
    for t in range(frames.shape[0]):
        place(shapes, links, frames[t], placed)
        poses[t] = 0
        for m in range(pairs.shape[0]):
            if links_touch(solids, links, pairs[m, FIRST_SHAPE], pairs[m, SECOND_SHAPE], corners):
                pairs[m, TOUCHES] += 1
                poses[t] += 1
