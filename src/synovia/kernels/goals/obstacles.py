"""Obstacles that move: their shapes in a packed problem, and the boxes and spheres around them, in other places.

An obstacle is given by its frame in the world. All that depends on it is written into the packed numbers: the frames of
its shapes, the boxes of these in the tree of the goal, up to the top, and the sphere around it if a pair names it. The
tree keeps its order, so a box that has left its neighbours costs time, but nothing is missed.
"""

from synovia.kernels.compiler.jit import device, entry, inline
from synovia.kernels.compiler.records import opener, record, tables_of
from synovia.kernels.layout import (
    BALL_CENTER,
    EXTENT,
    HALF_SIZES,
    HULL,
    NODE_LOWER,
    NODE_UPPER,
    ORIENTATION,
    ORIGIN,
    RADIUS,
    SHAPE_KIND,
)
from synovia.kernels.math.rotations import apply, load_rotation, matmul, store_frame
from synovia.kernels.math.vectors import add, load

Tables = record("Tables", tables_of("clear"))
_open_tables = opener(Tables, "clear")


@inline
def open_tables(ints, floats):
    """Open the tables of clearance goals alone."""
    return _open_tables(ints, floats, ())


@device
def enclose(clear, shape, node):
    """Write the box of a shape to its node."""
    R, p = load_rotation(clear.shapes, shape, ORIENTATION), load(clear.shapes, shape, ORIGIN)
    sizes, round_ = load(clear.shapes, shape, HALF_SIZES), clear.shapes[shape, RADIUS]
    for k in range(3):
        if clear.shapes[shape, SHAPE_KIND] == HULL:
            half = clear.shapes[shape, EXTENT]
        else:
            row = R[3 * k], R[3 * k + 1], R[3 * k + 2]
            half = abs(row[0]) * sizes[0] + abs(row[1]) * sizes[1] + abs(row[2]) * sizes[2] + round_
        clear.nodes[node, NODE_LOWER + k], clear.nodes[node, NODE_UPPER + k] = p[k] - half, p[k] + half


@device
def enclose_upwards(clear, top, node):
    """Write the boxes of all nodes above one, of the tree that begins at row ``top``, until one stays as it is."""
    while node > 1:
        node //= 2
        first, changed = top + 2 * node, False
        for k in range(3):
            low = min(clear.nodes[first, NODE_LOWER + k], clear.nodes[first + 1, NODE_LOWER + k])
            high = max(clear.nodes[first, NODE_UPPER + k], clear.nodes[first + 1, NODE_UPPER + k])
            changed = changed or low != clear.nodes[top + node, NODE_LOWER + k]
            changed = changed or high != clear.nodes[top + node, NODE_UPPER + k]
            clear.nodes[top + node, NODE_LOWER + k], clear.nodes[top + node, NODE_UPPER + k] = low, high
        if not changed:
            return


@device
def put_obstacle(clear, standing, obstacle, R, p):
    """Put an obstacle where its frame is (R, p); ``standing`` are the tables from ``spans`` on of ``put_obstacles``."""
    spans, shapes, rows, tops, nodes, ball_spans, centers, links = standing
    for k in range(spans[obstacle], spans[obstacle + 1]):
        turn, place = load_rotation(shapes, k, ORIENTATION), load(shapes, k, ORIGIN)
        store_frame(clear.shapes, rows[k], matmul(R, turn), add(p, apply(R, place)))
        if nodes[k] > 0:
            enclose(clear, rows[k], tops[k] + nodes[k])
    for k in range(spans[obstacle], spans[obstacle + 1]):
        if nodes[k] > 0:
            enclose_upwards(clear, tops[k], nodes[k])
    for k in range(ball_spans[obstacle], ball_spans[obstacle + 1]):
        center = add(p, apply(R, load(centers, k, 0)))
        for c in range(3):
            clear.balls[links[k], BALL_CENTER + c] = center[c]


@entry
def put_obstacles(
    ints, floats, obstacles, frames, spans, shapes, rows, tops, nodes, ball_spans, centers, links
):  # fmt: skip
    """Put some obstacles of a packed problem in other places.

    Args:
        ints: The packed problem.
        floats: Its numbers; changed.
        obstacles: The obstacles that move, (k,).
        frames: The frame of each in the world, (k, 12).
        spans: The first row of each obstacle in the following tables, then the number of rows.
        shapes: Its shapes, each in the frame of the obstacle.
        rows: Row of each in the table of shapes of the problem.
        tops: First row of the tree that has it.
        nodes: Its leaf in that tree, 0 without one.
        ball_spans: The first row of each obstacle in the following tables, then the number of rows.
        centers: Centres of the spheres around obstacles of pairs, each in the frame of its obstacle.
        links: Row of each in the table of links.
    """
    clear = open_tables(ints, floats)
    standing = spans, shapes, rows, tops, nodes, ball_spans, centers, links
    for k in range(obstacles.shape[0]):
        put_obstacle(clear, standing, obstacles[k], load_rotation(frames, k, ORIENTATION), load(frames, k, ORIGIN))
