"""Prove that a tip cannot come near a target by a map of what the last joints of its chain reach.

Let k be a hinge, and P a point of its axis. While the joints after it move, the tip draws an area in a half-plane about
the axis, with polar coordinates about P: the distance, and the angle from the axis. ``paint`` covers the area by
cells: each box of joint values is halved until a ball that contains the tip is smaller than a cell. ``search_map``
then carries the target inwards through boxes of the joints before k; a box is excluded if no painted cell is near the
ball that contains the target. Joint k may have any value. Hinges just before k whose axes pass through P, such as those
of a shoulder, do not change the distance of the target from P.
"""

import math

from synovia.kernels.compiler.jit import F, device, entry, inline
from synovia.kernels.proofs.boxes import (
    BALL,
    BOXES,
    CENTRE,
    FULL,
    HALF,
    MORE,
    PROVED,
    SPEED,
    TOKENS,
    WIDEST,
    carry,
    open_box,
    put,
    split,
)

# elements of the plane: size of a cell in distance, cells by radian, height of P on the axis, margin for rounding,
# largest number of boxes of a call, joint
CELL, RADIAN, HEIGHT, ROUNDING, CALLS, FIRST = 0, 1, 2, 3, 4, 5
HALF_TURN = F(math.pi)
FINEST = F(0.25)  # cells: balls of smaller radius are not split further


@device
def distance_from(plane, p):
    """Return the distance of a point from P."""
    z = p[2] - plane[HEIGHT]
    return math.sqrt(p[0] * p[0] + p[1] * p[1] + z * z)


@device
def sector(plane, p, r, away, error, shape):
    """Return the cells for points in the ball (p, r) whose distance from P is ``away`` with an error up to ``error``.

    The result is (first row, last row, first column, last column). Rows are distances from P, columns are angles.
    """
    r += plane[ROUNDING]
    error += plane[ROUNDING]
    d, angle = distance_from(plane, p), math.atan2(math.sqrt(p[0] * p[0] + p[1] * p[1]), p[2] - plane[HEIGHT])
    w = math.asin(r / d) if r < d else HALF_TURN
    i0 = min(int(max(away - error, F(0)) / plane[CELL]), shape[0])
    i1 = min(int((away + error) / plane[CELL]), shape[0] - 1)
    j0 = int(max(angle - w, F(0)) * plane[RADIAN])
    j1 = min(int((angle + w) * plane[RADIAN]), shape[1] - 1)
    return i0, i1, j0, j1


@device
def halve(kinds, memory, stack, state, first):
    """Put both halves of a box on the stack; only an interval of the joints from ``first`` on is halved."""
    n = kinds.shape[1]
    at, most = first, F(-1)
    for i in range(first, n):
        w = memory[i, HALF]
        gain = memory[i, SPEED] * (w if kinds[0, i] > F(0) else min(w, WIDEST))
        if gain > most:
            at, most = i, gain
    for k in range(2):
        box = stack[int(state[BOXES]) + k]
        for i in range(n):
            box[i], box[n + i] = memory[i, CENTRE], memory[i, HALF]
        box[n + at] *= F(0.5)
        box[at] += box[n + at] if k == 0 else -box[n + at]
    state[BOXES] += F(2)


@inline
def painted(sums, i0, i1, j0, j1):
    """Return the number of painted cells in rows i0 to i1 and columns j0 to j1, both ends included.

    ``sums`` are the numbers of painted cells before each row and column, (rows + 1, columns + 1), see ``paint``.
    """
    if i0 > i1 or j0 > j1:
        return 0
    return sums[i1 + 1, j1 + 1] - sums[i0, j1 + 1] - sums[i1 + 1, j0] + sums[i0, j0]


@entry
def paint(fixed, kinds, plane, stack, memory, cells, sums, state):
    """Paint the cells that the tip may touch while the joints after k move; stop after the given number of boxes.

    Args:
        fixed: (n + 1, 12) transforms, see ``search_boxes``.
        kinds: (1, n) kinds of joints.
        plane: (6,) size of a cell, cells by radian, height of P, margin for rounding, the largest number of boxes of
            this call, and the number of the joint after k.
        stack: (s, 2n + 1) boxes.
        memory: (n, 17) scratch memory.
        cells: (rows, columns) int32, 1 if painted.
        sums: (rows + 1, columns + 1) int32, numbers of cells, painted by earlier calls, before each row and column.
        state: (3,); the first is the number of boxes on the stack.

    Returns:
        PROVED if all boxes are painted, MORE, or FULL.
    """
    n, first = kinds.shape[1], int(plane[FIRST])
    for _ in range(int(plane[CALLS])):
        if state[BOXES] < F(1):
            return PROVED
        if state[BOXES] + F(2) > F(stack.shape[0]):
            return FULL
        state[BOXES] -= F(1)
        box = stack[int(state[BOXES])]
        for i in range(n):
            memory[i, CENTRE], memory[i, HALF] = box[i], box[n + i]
        open_box(memory, n, first)
        p, r = carry(fixed, kinds, 0, memory, first)
        i0, i1, j0, j1 = sector(plane, p, r, distance_from(plane, p), r, cells.shape)
        if painted(sums, i0, i1, j0, j1) == (i1 - i0 + 1) * (j1 - j0 + 1):
            continue
        if r > F(0.5) * plane[CELL]:
            halve(kinds, memory, stack, state, first)
            continue
        for i in range(i0, i1 + 1):
            for j in range(j0, j1 + 1):
                cells[i, j] = 1
    return MORE


@entry
def search_map(fixed, kinds, plane, sums, stack, memory, tokens, state):
    """Search boxes of the joints before k, whose chain is given from k to the target.

    Args:
        fixed: (2 (n + 1), 12) transforms from the axis of k to the target, twice.
        kinds: (2, n) kinds of joints, from the one before k to the first; then those for the distance from P, in which
            joints that do not change it rest.
        plane: (5,) as in ``paint``; the margin includes the distance to exclude.
        sums: (rows + 1, columns + 1) int32, numbers of painted cells before each row and column.
        stack: (s, 2n + 1) boxes.
        memory: (n, 17) scratch memory.
        tokens: (t, 2) int32 tokens and their depths.
        state: (3,); the first two are the numbers of boxes on the stack and of tokens.

    Returns:
        PROVED, MORE, or FULL if there is no proof.
    """
    n = kinds.shape[1]
    shape = (sums.shape[0] - 1, sums.shape[1] - 1)
    for _ in range(int(plane[CALLS])):
        if state[BOXES] < F(1):
            return PROVED
        if state[BOXES] + F(2) > F(stack.shape[0]) or state[TOKENS] + F(2) > F(tokens.shape[0]):
            return FULL
        state[BOXES] -= F(1)
        box = stack[int(state[BOXES])]
        for i in range(n):
            memory[i, CENTRE], memory[i, HALF] = box[i], box[n + i]
        depth = int(box[2 * n])
        open_box(memory, n, 0)
        p, error = carry(fixed, kinds, 1, memory, 0)
        away = distance_from(plane, p)
        p, r = carry(fixed, kinds, 0, memory, 0)
        i0, i1, j0, j1 = sector(plane, p, r, away, error, shape)
        if painted(sums, i0, i1, j0, j1) == 0:
            put(tokens, state, BALL, depth)
            continue
        if r < FINEST * plane[CELL]:
            return FULL
        here = int(state[TOKENS])
        put(tokens, state, 0, depth)
        tokens[here, 0] = split(kinds, memory, stack, state, depth, SPEED)
    return MORE
