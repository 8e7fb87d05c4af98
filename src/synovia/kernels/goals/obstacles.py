"""Moving obstacles: place their shapes, boxes and bounding spheres in a packed problem.

An obstacle is given by its frame in the world. All values that depend on this frame are written into the packed
problem: the frames of its shapes, the boxes of these shapes in the tree of the goal, up to the top, and the sphere
around the obstacle if a pair names it. These shapes and spheres are the pieces of the obstacle. The tree is not
rebuilt. So a box that has moved away from its neighbours in the tree costs time, but no contact is missed.
"""

from synovia.kernels.compiler.jit import F, device, entry, inline
from synovia.kernels.compiler.records import opener, record, tables_of
from synovia.kernels.layout import (
    BALL_CENTER,
    HALF_SIZES,
    MOVED_OBSTACLE,
    NODE_LOWER,
    NODE_UPPER,
    ORIENTATION,
    ORIGIN,
    PIECE_NODE,
    PIECE_OBSTACLE,
    PIECE_ROW,
    PIECE_TOP,
    RADIUS,
)
from synovia.kernels.math.rotations import apply, frame_of, load_rotation, matmul, store_frame
from synovia.kernels.math.vectors import add, load, store

Tables = record("Tables", tables_of("clear"))
_open_tables = opener(Tables, "clear")


@inline
def open_tables(ints, floats):
    """Return only the tables of clearance goals."""
    return _open_tables(ints, floats, ())


@device
def enclose(clear, shape, node):
    """Write the bounding box of a shape to its node in the tree of boxes."""
    R, p = load_rotation(clear.shapes, shape, ORIENTATION), load(clear.shapes, shape, ORIGIN)
    sizes, round_ = load(clear.shapes, shape, HALF_SIZES), clear.shapes[shape, RADIUS]
    for k in range(3):
        x, y, z = R[3 * k], R[3 * k + 1], R[3 * k + 2]
        half = abs(x) * sizes[0] + abs(y) * sizes[1] + abs(z) * sizes[2] + round_
        clear.nodes[node, NODE_LOWER + k], clear.nodes[node, NODE_UPPER + k] = p[k] - half, p[k] + half


@device
def enclose_upwards(clear, top, node):
    """Update the boxes of the ancestors of a node, in the tree that begins at row ``top``, until a box is unchanged."""
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


@inline
def put_piece(clear, pieces, k, R, p):
    """Place one shape or sphere of an obstacle whose frame is (R, p)."""
    row, node = int(pieces[k, PIECE_ROW]), int(pieces[k, PIECE_NODE])
    turn, place = frame_of(pieces, k)
    place = add(p, apply(R, place))
    if node < 0:
        store(clear.balls, row, BALL_CENTER, place)
        return
    store_frame(clear.shapes, row, matmul(R, turn), place)
    if node > 0:
        enclose(clear, row, int(pieces[k, PIECE_TOP]) + node)


@device
def first_piece(pieces, obstacle):
    """Return the first piece of an obstacle, or of the next obstacle that has pieces."""
    low, high = 0, pieces.shape[0]
    while low < high:
        middle = (low + high) // 2
        if pieces[middle, PIECE_OBSTACLE] < obstacle:
            low = middle + 1
        else:
            high = middle
    return low


@device
def put_obstacle(clear, pieces, obstacle, R, p):
    """Place an obstacle at the frame (R, p)."""
    first = last = first_piece(pieces, obstacle)
    while last < pieces.shape[0] and pieces[last, PIECE_OBSTACLE] == obstacle:
        put_piece(clear, pieces, last, R, p)
        last += 1
    for k in range(first, last):
        if pieces[k, PIECE_NODE] > F(0):
            enclose_upwards(clear, int(pieces[k, PIECE_TOP]), int(pieces[k, PIECE_NODE]))


@entry
def put_obstacles(ints, floats, moved, pieces):
    """Move some obstacles of a packed problem to given frames.

    Args:
        ints: The packed problem.
        floats: Values of the problem; changed.
        moved: The moving obstacles and their frames, (k, 14), see ``layout.MOVED_OBSTACLE``.
        pieces: The pieces of all obstacles, (n, 16), in the order of the obstacles.
    """
    clear = open_tables(ints, floats)
    for k in range(moved.shape[0]):
        R, p = frame_of(moved, k)
        put_obstacle(clear, pieces, moved[k, MOVED_OBSTACLE], R, p)
