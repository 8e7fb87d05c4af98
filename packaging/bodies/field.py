"""Bodies as smooth unions of simple shapes, and their meshes.

A shape is a function that is negative inside and nearly a distance outside. A piece is a union of shapes of one colour.
Its mesh comes from naive surface nets; Newton steps along the gradient then move the vertices onto the surface.

References:
    S. F. F. Gibson, "Constrained elastic surface nets", MICCAI 1998.
    I. Quilez, "Distance functions", https://iquilezles.org/articles/distfunctions.
"""

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

Distance = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Shape:
    """A shape that a joint carries.

    Args:
        joint: Name of the joint.
        distance: Maps points (n, 3) to signed distances (n,), metres.
        box: Lower and upper corner of the shape, (2, 3).
        blend: Width of the smooth transition to the shapes before it, metres.
        cut: Whether the shape is removed from those before it.
        weighs: Whether the vertices near it follow its joint.
    """

    joint: str
    distance: Distance
    box: np.ndarray
    blend: float = 0.02
    cut: bool = False
    weighs: bool = True


@dataclass(frozen=True)
class Piece:
    """A closed surface of one colour.

    Args:
        name: Its name in the file.
        colour: Red, green, blue, 0 to 255 (sRGB).
        shapes: The shapes, in the order of their union.
        cell: Size of the mesh's cells, metres. Flat places get larger triangles.
        reach: Distance over which the weights of two joints mix, metres.
        mirror: Whether to add the piece mirrored at x = 0, with left and right exchanged.
        error: Largest distance of the triangles from the surface after merging, nearly, metres.
        longest: Longest edge of a triangle after merging, metres: long ones bend badly at joints.
        trims: Half spaces to keep: point, normal that points outwards, and radius of the edge.
    """

    name: str
    colour: tuple[int, int, int]
    shapes: Sequence[Shape]
    cell: float
    reach: float = 0.02
    mirror: bool = False
    error: float = 4e-4
    longest: float = 0.045
    trims: Sequence[tuple[Sequence[float], Sequence[float], float]] = field(default_factory=tuple)


@dataclass(frozen=True)
class Mesh:
    """Triangles with the joints that move them."""

    name: str
    colour: tuple[int, int, int]
    vertices: np.ndarray  # (v, 3)
    normals: np.ndarray  # (v, 3)
    faces: np.ndarray  # (f, 3)
    joints: list[str]
    bones: np.ndarray  # (v, 4), indices into joints
    weights: np.ndarray  # (v, 4)


# --- shapes -----------------------------------------------------------------------------------------------------------


def rod(joint: str, a, b, ra: float, rb: float | None = None, **more) -> Shape:
    """Return a tapered rod with round ends."""
    a, b = np.array(a, float), np.array(b, float)
    rb = ra if rb is None else rb
    along, most = b - a, max(ra, rb)

    def distance(p: np.ndarray) -> np.ndarray:
        t = np.clip((p - a) @ along / (along @ along), 0.0, 1.0)
        return np.linalg.norm(p - a - t[:, None] * along, axis=1) - (ra + (rb - ra) * t)

    return Shape(joint, distance, np.array([np.minimum(a, b) - most, np.maximum(a, b) + most]), **more)


def ball(joint: str, centre, radii, turn: np.ndarray | None = None, **more) -> Shape:
    """Return an ellipsoid; the columns of ``turn`` are its axes."""
    c, r = np.array(centre, float), np.broadcast_to(np.array(radii, float), (3,))
    axes = np.eye(3) if turn is None else np.asarray(turn)

    def distance(p: np.ndarray) -> np.ndarray:
        local = (p - c) @ axes
        k0, k1 = np.linalg.norm(local / r, axis=1), np.linalg.norm(local / r**2, axis=1)
        return np.where(k1 > 1e-9, k0 * (k0 - 1.0) / np.maximum(k1, 1e-9), -r.min())

    half = np.sqrt((axes**2) @ r**2)
    return Shape(joint, distance, np.array([c - half, c + half]), **more)


def slab(joint: str, centre, half, edge: float, turn: np.ndarray | None = None, **more) -> Shape:
    """Return a box with round edges; ``half`` are half its lengths."""
    c, h = np.array(centre, float), np.array(half, float)
    axes = np.eye(3) if turn is None else np.asarray(turn)

    def distance(p: np.ndarray) -> np.ndarray:
        q = np.abs((p - c) @ axes) - (h - edge)
        return np.linalg.norm(np.maximum(q, 0.0), axis=1) + np.minimum(q.max(axis=1), 0.0) - edge

    reach = np.abs(axes) @ h
    return Shape(joint, distance, np.array([c - reach, c + reach]), **more)


def drum(joint: str, a, b, radius: float, edge: float, **more) -> Shape:
    """Return a cylinder with round edges between two points."""
    a, b = np.array(a, float), np.array(b, float)
    length = float(np.linalg.norm(b - a))
    axis, middle = (b - a) / length, (a + b) / 2.0

    def distance(p: np.ndarray) -> np.ndarray:
        along = (p - middle) @ axis
        across = np.linalg.norm(p - middle - along[:, None] * axis, axis=1)
        q = np.stack([across - (radius - edge), np.abs(along) - (length / 2.0 - edge)], axis=1)
        return np.linalg.norm(np.maximum(q, 0.0), axis=1) + np.minimum(q.max(axis=1), 0.0) - edge

    half = np.abs(axis) * length / 2.0 + radius * np.sqrt(np.maximum(1.0 - axis**2, 0.0))
    return Shape(joint, distance, np.array([middle - half, middle + half]), **more)


def front(shapes: Sequence[Shape], x: float, y: float) -> np.ndarray:
    """Return the foremost point (largest z) of shapes at x and y."""
    piece = Piece("", (0, 0, 0), shapes, 0.01)
    z = np.linspace(-0.5, 0.5, 4001)
    inside = distance_of(piece, np.column_stack([np.full_like(z, x), np.full_like(z, y), z])) < 0.0
    return np.array([x, y, z[inside].max()])


def turned(x: float = 0.0, y: float = 0.0, z: float = 0.0) -> np.ndarray:
    """Return the rotation about x, then y, then z; degrees."""
    out = np.eye(3)
    for axis, angle in enumerate((x, y, z)):
        c, s = np.cos(np.radians(angle)), np.sin(np.radians(angle))
        i, j = (axis + 1) % 3, (axis + 2) % 3
        step = np.eye(3)
        step[i, i] = step[j, j] = c
        step[i, j], step[j, i] = -s, s
        out = step @ out
    return out


def mirrored(shape: Shape) -> Shape:
    """Return a shape of the left side on the right side."""
    flip = np.array([-1.0, 1.0, 1.0])
    box = np.sort(shape.box * flip, axis=0)
    return replace(shape, joint=other_side(shape.joint), distance=lambda p: shape.distance(p * flip), box=box)


def both(*shapes: Shape) -> list[Shape]:
    """Return shapes of the left side and their mirror images."""
    return [each for shape in shapes for each in (shape, mirrored(shape))]


def other_side(name: str) -> str:
    """Return the name of the joint on the other side."""
    for a, b in (("left_", "right_"), ("right_", "left_")):
        if name.startswith(a):
            return b + name.removeprefix(a)
    return name


# --- meshes -----------------------------------------------------------------------------------------------------------


def distance_of(piece: Piece, points: np.ndarray) -> np.ndarray:
    """Return the signed distance of points to a piece, (n,)."""
    out = np.full(len(points), 1e3)
    for shape in piece.shapes:
        d, k = shape.distance(points), max(shape.blend, 1e-6)
        if shape.cut:
            out = _soft_most(out, -d, k)
        else:
            out = np.minimum(out, d) - np.maximum(k - np.abs(out - d), 0.0) ** 2 / (4.0 * k)
    for at, normal, edge in piece.trims:
        n = np.array(normal, float) / np.linalg.norm(normal)
        out = _soft_most(out, (points - np.array(at)) @ n, max(edge, 1e-6))
    return out


def _soft_most(a: np.ndarray, b: np.ndarray, k: float) -> np.ndarray:
    return np.maximum(a, b) + np.maximum(k - np.abs(a - b), 0.0) ** 2 / (4.0 * k)


def meshes_of(piece: Piece) -> list[Mesh]:
    """Return the mesh of a piece, and its mirror image if it has one."""
    vertices, faces = _net(piece)
    if not len(faces):
        raise ValueError(f"piece {piece.name} is empty")
    for _ in range(2):  # even triangles give even shading
        vertices = _project(piece, _relaxed(vertices, faces))
    vertices = _project(piece, vertices)
    vertices, faces = _simplified(vertices, _halves(vertices, faces), piece.error, piece.longest)
    vertices = _project(piece, vertices)
    normals = _gradient(piece, vertices)
    joints, bones, weights = _weights(piece, vertices, faces)
    one = Mesh(piece.name, piece.colour, vertices, normals, faces, joints, bones, weights)
    if not piece.mirror:
        return [one]
    flip = np.array([-1.0, 1.0, 1.0])
    names = [other_side(name) for name in joints]
    other = replace(one, vertices=vertices * flip, normals=normals * flip, faces=faces[:, ::-1], joints=names)
    return [one, other]


def _net(piece: Piece) -> tuple[np.ndarray, np.ndarray]:
    """Return vertices (v, 3) and quads (q, 4) of the surface net."""
    solid = [shape for shape in piece.shapes if not shape.cut]
    low = np.min([shape.box[0] for shape in solid], axis=0) - 2.5 * piece.cell - 0.01
    high = np.max([shape.box[1] for shape in solid], axis=0) + 2.5 * piece.cell + 0.01
    count = np.ceil((high - low) / piece.cell).astype(int) + 1
    axes = [low[k] + piece.cell * np.arange(count[k]) for k in range(3)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    values = distance_of(piece, grid.reshape(-1, 3)).reshape(count)
    total, crossings = np.zeros((*(count - 1), 3)), np.zeros(count - 1)
    edges: list[np.ndarray] = []
    for axis in range(3):
        a, b = (np.take(values, range(s, count[axis] - 1 + s), axis) for s in (0, 1))
        crossed = (a < 0.0) != (b < 0.0)
        where = np.argwhere(crossed)
        va, vb = a[crossed], b[crossed]
        at = low + piece.cell * (where + (va / (va - vb))[:, None] * np.eye(3)[axis])
        i, j = (axis + 1) % 3, (axis + 2) % 3
        for di, dj in ((0, 0), (1, 0), (1, 1), (0, 1)):
            cell = where.copy()
            cell[:, i] -= di
            cell[:, j] -= dj
            np.add.at(total, tuple(cell.T), at)
            np.add.at(crossings, tuple(cell.T), 1.0)
        edges.append(np.column_stack([where, np.full(len(where), axis), va < 0.0]))
    used = crossings > 0.0
    number = np.full(count - 1, -1)
    number[used] = np.arange(used.sum())
    vertices = total[used] / crossings[used][:, None]
    quads: list[np.ndarray] = []
    for axis in range(3):
        where, starts_inside = edges[axis][:, :3], edges[axis][:, 4] > 0
        i, j = (axis + 1) % 3, (axis + 2) % 3
        corners = []
        for di, dj in ((0, 0), (1, 0), (1, 1), (0, 1)):
            cell = where.copy()
            cell[:, i] -= di
            cell[:, j] -= dj
            corners.append(number[tuple(cell.T)])
        quad = np.stack(corners, axis=1)
        quads.append(np.where(starts_inside[:, None], quad, quad[:, ::-1]))
    return vertices, np.concatenate(quads)


def _relaxed(vertices: np.ndarray, quads: np.ndarray) -> np.ndarray:
    """Return vertices moved halfway to the mean of their neighbours."""
    total, count = np.zeros_like(vertices), np.zeros(len(vertices))
    for k in range(4):
        a, b = quads[:, k], quads[:, (k + 1) % 4]
        np.add.at(total, a, vertices[b])
        np.add.at(total, b, vertices[a])
        np.add.at(count, a, 1.0)
        np.add.at(count, b, 1.0)
    return 0.5 * vertices + 0.5 * total / np.maximum(count, 1.0)[:, None]


def _gradient(piece: Piece, points: np.ndarray) -> np.ndarray:
    """Return the unit outward normals at points, (n, 3)."""
    step = 0.15 * piece.cell
    slope = np.stack(
        [distance_of(piece, points + step * e) - distance_of(piece, points - step * e) for e in np.eye(3)], axis=1
    )
    return slope / np.maximum(np.linalg.norm(slope, axis=1, keepdims=True), 1e-12)


def _project(piece: Piece, vertices: np.ndarray) -> np.ndarray:
    """Return vertices moved onto the surface, by Newton steps of at most half a cell."""
    for _ in range(3):
        d = np.clip(distance_of(piece, vertices), -0.5 * piece.cell, 0.5 * piece.cell)
        vertices = vertices - d[:, None] * _gradient(piece, vertices)
    return vertices


def _halves(vertices: np.ndarray, quads: np.ndarray) -> np.ndarray:
    """Return quads as triangles, each cut along its shorter diagonal."""
    p = vertices[quads]
    first = np.linalg.norm(p[:, 0] - p[:, 2], axis=1) <= np.linalg.norm(p[:, 1] - p[:, 3], axis=1)
    a = np.where(first[:, None], quads[:, [0, 1, 2]], quads[:, [0, 1, 3]])
    b = np.where(first[:, None], quads[:, [0, 2, 3]], quads[:, [1, 2, 3]])
    return np.concatenate([a, b])


def _simplified(vertices: np.ndarray, faces: np.ndarray, error: float, longest: float) -> tuple[np.ndarray, np.ndarray]:
    """Return a closed mesh with fewer triangles: edges whose ends may merge do so, the flattest first.

    The cost of a place is its squared distance from the planes of the triangles that met there (M. Garland and
    P. S. Heckbert, "Surface simplification using quadric error metrics", SIGGRAPH 1997).
    """
    place = [tuple(p) for p in vertices.tolist()]
    normals, areas = _planes(vertices, faces)
    planes = np.concatenate([normals, -np.einsum("fi,fi->f", normals, vertices[faces[:, 0]])[:, None]], axis=1)
    weighted = np.einsum("f,fi,fj->fij", areas, planes, planes)
    quadrics, spread = np.zeros((len(vertices), 4, 4)), np.zeros(len(vertices))
    for k in range(3):
        np.add.at(quadrics, faces[:, k], weighted)
        np.add.at(spread, faces[:, k], areas)
    around: list[set[int]] = [set() for _ in place]
    for number, face in enumerate(faces.tolist()):
        for vertex in face:
            around[vertex].add(number)
    corners = faces.tolist()

    def offer(a: int, b: int) -> None:
        pa, pb = np.array(place[a]), np.array(place[b])
        if np.linalg.norm(pa - pb) > longest:
            return
        quadric, weight = quadrics[a] + quadrics[b], spread[a] + spread[b]
        best = min(
            ((float(h @ quadric @ h), tuple(p)) for p in ((pa + pb) / 2.0, pa, pb) for h in (np.append(p, 1.0),)),
            key=lambda found: found[0],
        )
        cost = max(best[0], 0.0) / weight
        if cost < error**2:
            heapq.heappush(
                heap, (cost + 1e-5 * float((pa - pb) @ (pa - pb)) * error, a, b, stamp[a], stamp[b], best[1])
            )

    heap: list = []
    stamp = [0] * len(place)
    for a, b in {(min(f[i], f[i - 1]), max(f[i], f[i - 1])) for f in corners for i in range(3)}:
        offer(a, b)
    alive = [True] * len(corners)
    while heap:
        _, a, b, sa, sb, at = heapq.heappop(heap)
        if stamp[a] != sa or stamp[b] != sb:
            continue
        near_a = {v for f in around[a] for v in corners[f]} - {a}
        near_b = {v for f in around[b] for v in corners[f]} - {b}
        shared = around[a] & around[b]
        if len(near_a & near_b) != 2 or len(shared) != 2:
            continue
        if max(math.dist(at, place[v]) for v in near_a | near_b) > longest:
            continue
        if any(_flips(corners[f], v, at, place) for v in (a, b) for f in around[v] - shared):
            continue
        for f in shared:
            alive[f] = False
            for v in corners[f]:
                around[v].discard(f)
        for f in around[b]:
            corners[f] = [a if v == b else v for v in corners[f]]
        around[a] |= around[b]
        around[b] = set()
        place[a] = at
        quadrics[a] += quadrics[b]
        spread[a] += spread[b]
        stamp[a] += 1
        stamp[b] = -1
        for v in {v for f in around[a] for v in corners[f]} - {a}:
            offer(min(a, v), max(a, v))
    kept = np.array([corner for corner, there in zip(corners, alive, strict=True) if there])
    used, numbers = np.unique(kept, return_inverse=True)
    return np.array(place)[used], numbers.reshape(-1, 3)


def _planes(vertices: np.ndarray, faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return unit normals and areas of triangles."""
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    cross = np.cross(b - a, c - a)
    size = np.linalg.norm(cross, axis=1)
    return cross / np.maximum(size, 1e-15)[:, None], size / 2.0


def _flips(corner: list[int], vertex: int, to: tuple, place: list[tuple]) -> bool:
    """Return whether a triangle turns by more than about 60 degrees, or becomes a sliver, when a corner moves."""
    old = np.array([place[v] for v in corner])
    new = np.array([to if v == vertex else place[v] for v in corner])
    a, b = np.cross(old[1] - old[0], old[2] - old[0]), np.cross(new[1] - new[0], new[2] - new[0])
    edges = new - np.roll(new, 1, axis=0)
    size = float(np.sqrt(b @ b))
    return float(a @ b) < 0.5 * float(np.sqrt(a @ a)) * size or size < 0.25 * float(
        np.einsum("ij,ij->i", edges, edges).max()
    )


def _weights(piece: Piece, vertices: np.ndarray, faces: np.ndarray) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Return the joints of a piece, and the four joints and weights of each vertex.

    The weight of a joint falls exponentially with the distance to its nearest shape; then neighbours are averaged.
    """
    shapes = [shape for shape in piece.shapes if shape.weighs and not shape.cut]
    joints = sorted({shape.joint for shape in shapes})
    away = np.stack(
        [np.min([s.distance(vertices) for s in shapes if s.joint == joint], axis=0) for joint in joints], axis=1
    )
    weights = np.exp(-(away - away.min(axis=1, keepdims=True)) / piece.reach)
    weights /= weights.sum(axis=1, keepdims=True)
    for _ in range(3):
        total, count = weights.copy(), np.ones(len(vertices))
        for k in range(3):
            a, b = faces[:, k], faces[:, (k + 1) % 3]
            np.add.at(total, a, weights[b])
            np.add.at(count, a, 1.0)
        weights = total / count[:, None]
    weights = np.where(weights < 0.03, 0.0, weights)
    more = max(4 - len(joints), 0)
    weights = np.pad(weights, ((0, 0), (0, more)))
    best = np.argsort(-weights, axis=1, kind="stable")[:, :4]
    chosen = np.take_along_axis(weights, best, axis=1)
    best = np.where(chosen > 0.0, best, 0)
    return joints, best, chosen / chosen.sum(axis=1, keepdims=True)
