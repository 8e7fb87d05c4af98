"""Penetration depth of two shapes: the expanding polytope algorithm.

If shapes overlap, the origin is inside A - B, and the depth is its distance from the boundary. Moving A by the depth
along the normal at the nearest boundary point separates the shapes. A polytope inside A - B grows: the face nearest to
the origin is extended to the point of A - B that is farthest along its normal, until that point is no farther than the
face. A face has a signed offset, so the polytope may begin anywhere, and the origin may be on the boundary or slightly
outside.

References:
    G. van den Bergen, "Proximity queries and penetration depth computation on 3D game objects", GDC 2001.
"""

import math

from synovia.kernels.collision.support import difference, is_curved
from synovia.kernels.compiler.jit import F, device, inline
from synovia.kernels.layout import (
    CORNER,
    CORNER_FIRST,
    EDGE_FROM,
    EDGE_TO,
    FACE_CORNERS,
    FACE_NORMAL,
    FACE_OFFSET,
    MOST_CORNERS,
    MOST_EDGES,
    MOST_FACES,
)
from synovia.kernels.math.vectors import add, axpy, cross, dot, load, norm, perpendicular, scale, store, sub

EXACT = F(4e-14)  # fraction of the size: a face at most this far inside the boundary is on it
CURVED = F(1e-10)  # used instead of EXACT if a core is curved, so that no face is exact
LEVEL = F(2e-14)  # fraction of the size: a point at most this far above a face is in its plane
FLAT = F(1e-12)  # fraction of the size: a thinner set has no volume
TIED = F(1e-12)  # fraction of the size: faces whose offsets differ less are in one plane


@inline
def put(solids, i, j, c, d, corners, n):
    """Store the corner n, the point of A - B that is farthest along d, and return it."""
    w, a = difference(solids, i, j, c, d)
    store(corners, n, CORNER, w)
    store(corners, n, CORNER_FIRST, a)
    return w


@inline
def copy_corner(corners, k, n):
    """Copy corner k to corner n."""
    store(corners, n, CORNER, load(corners, k, CORNER))
    store(corners, n, CORNER_FIRST, load(corners, k, CORNER_FIRST))


@device
def begin(solids, i, j, c, corners):
    """Store four corners of A - B that span a volume.

    Returns:
        Number of directions that the corners span (3 unless A - B is flat), normal of the flat set, and size of A - B.
    """
    widest, size = 0, F(-1)
    for k in range(3):
        d = (F(k == 0), F(k == 1), F(k == 2))
        p = put(solids, i, j, c, d, corners, 4 + 2 * k)
        q = put(solids, i, j, c, scale(F(-1), d), corners, 5 + 2 * k)
        if norm(sub(p, q)) > size:
            widest, size = k, norm(sub(p, q))
    if size <= F(0):
        return 0, (F(0), F(0), F(1)), F(0)
    copy_corner(corners, 4 + 2 * widest, 0)
    copy_corner(corners, 5 + 2 * widest, 1)
    w0 = load(corners, 0, CORNER)
    u = scale(F(1) / size, sub(load(corners, 1, CORNER), w0))
    x = perpendicular(u)
    y = cross(u, x)
    far, best = F(0), -1
    for k in range(4):
        d = x if k < 2 else y
        p = sub(put(solids, i, j, c, scale(F(1 - 2 * (k % 2)), d), corners, 4 + k), w0)
        away = norm(axpy(-dot(p, u), u, p))
        if away > far:
            far, best = away, k
    if far <= FLAT * size:
        return 1, x, size
    copy_corner(corners, 4 + best, 2)
    n = cross(u, sub(load(corners, 2, CORNER), w0))
    n = scale(F(1) / norm(n), n)
    p = dot(n, sub(put(solids, i, j, c, n, corners, 3), w0))
    q = dot(n, sub(put(solids, i, j, c, scale(F(-1), n), corners, 4), w0))
    if abs(q) > abs(p):
        copy_corner(corners, 4, 3)
    return (2 if max(abs(p), abs(q)) <= FLAT * size else 3), n, size


@device
def put_face(corners, faces, n, i, j, k):
    """Store face n with three corners, counterclockwise seen from outside."""
    p = load(corners, i, CORNER)
    e, f = sub(load(corners, j, CORNER), p), sub(load(corners, k, CORNER), p)
    normal = cross(e, f)
    length = norm(normal)
    faces[n, FACE_CORNERS], faces[n, FACE_CORNERS + 1], faces[n, FACE_CORNERS + 2] = F(i), F(j), F(k)
    if length <= F(1e-14) * norm(e) * norm(f):  # the face has no area
        store(faces, n, FACE_NORMAL, (F(0), F(0), F(0)))
        faces[n, FACE_OFFSET] = math.inf
        return
    normal = scale(F(1) / length, normal)
    store(faces, n, FACE_NORMAL, normal)
    faces[n, FACE_OFFSET] = dot(normal, p)


@inline
def toggle_edge(edges, n, i, j):
    """Add an edge of a removed face, or delete it if both its faces are removed; return the new number of edges."""
    for k in range(n):
        if edges[k, EDGE_FROM] == j and edges[k, EDGE_TO] == i:
            edges[k, EDGE_FROM], edges[k, EDGE_TO] = edges[n - 1, EDGE_FROM], edges[n - 1, EDGE_TO]
            return n - 1
    edges[n, EDGE_FROM], edges[n, EDGE_TO] = i, j
    return n + 1


@device
def remove_visible(faces, count, edges, w, nearest, slack):
    """Remove the faces visible from the point w, and list the edges around them; return the numbers of faces and edges.

    The number of edges is -1 if there are too many.
    """
    n, k = 0, 0
    borders = 0
    while k < count:
        seen = dot(load(faces, k, FACE_NORMAL), w) - faces[k, FACE_OFFSET] >= -slack
        if not (seen or k == nearest):
            if n != k:
                for column in range(faces.shape[1]):
                    faces[n, column] = faces[k, column]
            n += 1
        else:
            x, y, z = load(faces, k, FACE_CORNERS)
            if borders + 3 > MOST_EDGES:
                return n, -1
            borders = toggle_edge(edges, borders, x, y)
            borders = toggle_edge(edges, borders, y, z)
            borders = toggle_edge(edges, borders, z, x)
        k += 1
    return n, borders


@device
def weights(corners, faces, k):
    """Return the weights of the corners of face k for the point of its plane that is nearest to the origin."""
    p = load(corners, int(faces[k, FACE_CORNERS]), CORNER)
    e = sub(load(corners, int(faces[k, FACE_CORNERS + 1]), CORNER), p)
    f = sub(load(corners, int(faces[k, FACE_CORNERS + 2]), CORNER), p)
    n = cross(e, f)
    area2 = dot(n, n)
    if not area2 > F(0):
        return F(-1), F(1), F(1)
    x = -dot(cross(p, f), n) / area2
    y = -dot(cross(e, p), n) / area2
    return F(1) - x - y, x, y


@device
def deepest(solids, i, j, c, corners, faces, edges):
    """Return the penetration depth of two cores, the direction that separates them, and the deepest point of A.

    Args:
        solids: The tables of all shapes, and of the points of hulls.
        i: Row of the first shape A.
        j: Row of the second one B.
        c: Origin of B minus that of A.
        corners: Scratch memory for points of A - B.
        faces: Scratch memory for faces of the polytope.
        edges: Scratch memory for edges.

    Returns:
        Whether A - B has a volume. If so, the depth, the unit vector along which A leaves B, and the deepest point of
        A, relative to the origin of A. If not, the depth is 0, and the point is unknown. The last value is the number
        of corners of the polytope.
    """
    spans, normal, size = begin(solids, i, j, c, corners)
    if spans < 3:
        return False, F(0), normal, (F(0), F(0), F(0)), 4
    p = load(corners, 0, CORNER)
    volume = dot(
        sub(load(corners, 3, CORNER), p),
        cross(sub(load(corners, 1, CORNER), p), sub(load(corners, 2, CORNER), p)),
    )
    x, y = (1, 2) if volume < F(0) else (2, 1)
    put_face(corners, faces, 0, 0, x, y)
    put_face(corners, faces, 1, 0, y, 3)
    put_face(corners, faces, 2, 0, 3, x)
    put_face(corners, faces, 3, y, x, 3)
    count, n = 4, 4
    depth = math.inf
    exact = (CURVED if is_curved(solids, i) or is_curved(solids, j) else EXACT) * size
    while True:
        nearest, least = 0, math.inf
        for k in range(count):
            if faces[k, FACE_OFFSET] < least:
                nearest, least = k, faces[k, FACE_OFFSET]
        d = load(faces, nearest, FACE_NORMAL)
        w = put(solids, i, j, c, d, corners, n)
        high = dot(d, w)
        if high < depth:
            depth, normal = high, d
        if high - least <= exact or n + 1 >= MOST_CORNERS:
            break
        count, borders = remove_visible(faces, count, edges, w, nearest, LEVEL * size)
        if borders < 3 or count + borders > MOST_FACES:
            break
        for k in range(borders):
            put_face(corners, faces, count, int(edges[k, EDGE_FROM]), int(edges[k, EDGE_TO]), n)
            count += 1
        n += 1
    # among the faces in the nearest plane, take the face that contains the point nearest to the origin
    best, inside = -1, -math.inf
    for k in range(count):
        tied = faces[k, FACE_OFFSET] <= depth + TIED * size
        if tied and dot(load(faces, k, FACE_NORMAL), normal) > F(0.5):
            x0, x1, x2 = weights(corners, faces, k)
            low = min(x0, x1, x2)
            if low > inside:
                best, inside = k, low
    if best < 0:
        best = 0
    x0, x1, x2 = weights(corners, faces, best)
    x0, x1, x2 = max(x0, F(0)), max(x1, F(0)), max(x2, F(0))
    k = F(1) / (x0 + x1 + x2)
    a0 = load(corners, int(faces[best, FACE_CORNERS]), CORNER_FIRST)
    a1 = load(corners, int(faces[best, FACE_CORNERS + 1]), CORNER_FIRST)
    a2 = load(corners, int(faces[best, FACE_CORNERS + 2]), CORNER_FIRST)
    point = add(scale(k * x0, a0), add(scale(k * x1, a1), scale(k * x2, a2)))
    return True, depth, scale(F(-1), normal), point, n
