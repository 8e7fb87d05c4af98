"""Search boxes of joint values for a proof that a chain cannot bring its tip to a target.

A chain has one part or more: points, or directions as points on a unit sphere, that the same joints move, each with a
target and a distance. A pose meets the targets if each part is within its distance. A box gives each joint i an
interval m_i ± w_i. Three bounds exclude boxes, or portions of boxes, in which a part is too far from its target:

* Ball: carry a ball that holds the tip from the tip to the base. A hinge of half-width w ≤ 90° turns a point at
  distance ρ from its axis along an arc; the ball about the middle of its chord has the radius ρ sin w.
* Direction: with e the unit vector from the tip x at the centre of the box to the target t, and D_j the largest speed
  of the tip per unit of joint j (a bound that the ball gives), the box is empty if
  e·(t - x) > Σ |e·J_i| w_i + Σ_j D_j w_j (w_j/2 + Σ_{i<j} w_i), where hinges alone count in the last two sums of w.
* Contraction: solve the linear part for three joints, with the same remainder of second order, and shrink their
  intervals. So three equations take three dimensions out of the search. If there are only two good pivots, as for a
  direction, solve for two joints in the plane of their columns.

The search writes what it did as tokens. ``ik.proofs.check`` verifies them without this file. Merlet 2009; Porta, Ros,
Thomas, Torras 2005.
"""

import math

from synovia.kernels.compiler.jit import F, device, entry, inline
from synovia.kernels.math.rotations import apply, column, identity, matmul, origin_of, rotation_of, turn_z
from synovia.kernels.math.vectors import add, axpy, cross, dot, load, norm, scale, store, sub

# columns of the memory of the search, one row for each joint; the elimination also uses the three rows behind them
COS, SIN, SPEED, JX, AX, OX, CENTRE, HALF, E0, GAIN = 0, 1, 2, 3, 6, 9, 12, 13, 14, 17
MEMORY_WIDTH, MEMORY_ROWS = 18, 4
# kinds of joints for a part: it does not move the part, turns it, or slides it
RESTS, TURNS, SLIDES = -1, 0, 1
# numbers of a part: the target, the distance to exclude, the length scale, the largest number of boxes of a call
NEAR, SCALE, CALLS, NUMBERS = 3, 4, 5, 6
# elements of the state: boxes on the stack, tokens, smallest distance of a centre from the target of the first part
BOXES, TOKENS, NEAREST, STATE_SIZE = 0, 1, 2, 3
# tokens of excluded boxes, the last two less twice the part; from 0 on, the joint of a split, then contractions
EMPTY, BALL, DIRECTION = -1, -2, -3
PROVED, MORE, FOUND, FULL = 1, 0, -1, -2
QUARTER = F(1.5707963267948966)
WIDEST = F(1.2)  # radians; wider intervals gain nothing in the choice of the joint to split
ROUGH = F(3)  # motion of the tip in a box, relative to the reach, above which the linear bounds are not tried
USEFUL = F(0.7)  # factor by which the contractions have to shrink a box to be repeated
SOFT = F(0.95)  # share of an interval below which a contraction shrinks it
REPEATS = 4  # largest number of contractions of a box by each part in a row
PIVOT = F(1e-6)  # smallest pivot relative to the largest
MARGIN = F(1e-9)  # of the reach: rounding


@device
def carry(fixed, kinds, part, memory, first):
    """Carry the ball that holds the tip to the frame before joint ``first``; write cosines, sines and speeds.

    Returns:
        (centre, radius).
    """
    n = kinds.shape[1]
    base = part * (n + 1)
    p, r = origin_of(fixed, base + n), F(0)
    for k in range(n - first):
        i = n - 1 - k
        m, w = memory[i, CENTRE], memory[i, HALF]
        if kinds[part, i] > F(0):
            memory[i, SPEED] = F(1)
            p = p[0], p[1], p[2] + m
            r += w
        elif kinds[part, i] < F(0):
            memory[i, SPEED] = F(0)
        else:
            c, s = math.cos(m), math.sin(m)
            memory[i, COS], memory[i, SIN] = c, s
            rho = math.sqrt(p[0] * p[0] + p[1] * p[1])
            memory[i, SPEED] = rho + r
            cut = math.cos(w) if w < QUARTER else F(0)
            r += rho * math.sin(w) if w < QUARTER else rho
            p = (c * p[0] - s * p[1]) * cut, (s * p[0] + c * p[1]) * cut, p[2]
        p = add(apply(rotation_of(fixed, base + i), p), origin_of(fixed, base + i))
    return p, r


@device
def linearize(fixed, kinds, part, memory):
    """Write the Jacobian of the tip at the centre of the box, and return the tip."""
    n = kinds.shape[1]
    base = part * (n + 1)
    R, p = identity(), (F(0), F(0), F(0))
    for i in range(n):
        p = add(p, apply(R, origin_of(fixed, base + i)))
        R = matmul(R, rotation_of(fixed, base + i))
        axis = column(R, 2)
        store(memory, i, AX, axis)
        store(memory, i, OX, p)
        if kinds[part, i] > F(0):
            p = axpy(memory[i, CENTRE], axis, p)
        elif kinds[part, i] == F(0):
            R = turn_z(R, memory[i, SIN], memory[i, COS])
    p = add(p, apply(R, origin_of(fixed, base + n)))
    for i in range(n):
        axis = load(memory, i, AX)
        J = axis if kinds[part, i] > F(0) else cross(axis, sub(p, load(memory, i, OX)))
        store(memory, i, JX, J if kinds[part, i] >= F(0) else (F(0), F(0), F(0)))
    return p


@device
def remainder(kinds, part, memory):
    """Return the bound of the terms of second order."""
    rest, before = F(0), F(0)
    for i in range(kinds.shape[1]):
        w = memory[i, HALF]
        turns = w if kinds[part, i] == F(0) else F(0)
        rest += memory[i, SPEED] * w * (F(0.5) * turns + before)
        before += turns
    return rest


@inline
def solution_row(memory, n, k, normal):
    """Return row k of the inverse of the pivot columns, without its component along a normal."""
    y = memory[n + 1, E0 + k], memory[n + 2, E0 + k], memory[n + 3, E0 + k]
    return axpy(-dot(y, normal), normal, y)


@device
def contract(n, memory, e, rest):
    """Shrink the intervals of three or two joints by the linear equations; see the module.

    Returns:
        (the factor of the volume, negative if the box is empty; the token, 0 without two good pivots).
    """
    for i in range(n):
        for k in range(3):
            memory[i, E0 + k] = memory[i, JX + k]
    for k in range(3):
        memory[n, E0 + k] = e[k]
        for m in range(3):
            memory[n + 1 + m, E0 + k] = F(1) if m == k else F(0)
    first = F(0)
    u0, u1, u2 = n, n, n
    for k in range(3):
        best, at, row = F(0), -1, k
        for i in range(n):
            if i != u0 and i != u1:
                for j in range(k, 3):
                    size = abs(memory[i, E0 + j]) * memory[i, HALF]
                    if size > best:
                        best, at, row = size, i, j
        first = max(first, best)
        if at < 0 or best < PIVOT * first:
            break
        if k == 0:
            u0 = at
        elif k == 1:
            u1 = at
        else:
            u2 = at
        f = F(1) / memory[at, E0 + row]
        for i in range(n + 4):
            value = memory[i, E0 + row] * f
            memory[i, E0 + row] = memory[i, E0 + k]
            memory[i, E0 + k] = value
        for j in range(3):
            if j != k:
                g = memory[at, E0 + j]
                for i in range(n + 4):
                    memory[i, E0 + j] -= g * memory[i, E0 + k]
    if u1 == n:
        return F(1), 0
    normal = F(0), F(0), F(0)
    if u2 == n:
        normal = cross(load(memory, u0, JX), load(memory, u1, JX))
        normal = scale(F(1) / norm(normal), normal)
    shrunk = F(1)
    for k in range(3 if u2 < n else 2):
        at = u0 if k == 0 else (u1 if k == 1 else u2)
        y = solution_row(memory, n, k, normal)
        h = rest * norm(y)
        for i in range(n):
            if i != u0 and i != u1 and i != u2:
                h += abs(dot(y, load(memory, i, JX))) * memory[i, HALF]
        c, m, w = dot(y, e), memory[at, CENTRE], memory[at, HALF]
        low, high = max(-w, c - h), min(w, c + h)
        if high - low < -MARGIN * (F(1) + w):
            shrunk = F(-1)
        elif shrunk > F(0):
            shrunk *= max(high - low, F(0)) / (F(2) * w)
        memory[at, CENTRE], memory[at, HALF] = m + F(0.5) * (low + high), F(0.5) * (high - low)
    return shrunk, n + u0 + (n + 1) * (u1 + (n + 1) * u2)


@device
def put(tokens, state, token, depth):
    """Append a token."""
    k = int(state[TOKENS])
    tokens[k, 0], tokens[k, 1] = token, depth
    state[TOKENS] += F(1)


@device
def split(kinds, memory, stack, state, depth, speed):
    """Put both halves of the box on the stack, and return the joint of the split, by the speeds in a column."""
    n = kinds.shape[1]
    at, most = 0, F(-1)
    for i in range(n):
        w = memory[i, HALF]
        gain = memory[i, speed] * (w if kinds[0, i] > F(0) else min(w, WIDEST))
        if gain > most:
            at, most = i, gain
    first = int(state[BOXES])
    for k in range(2):
        box = stack[first + k]
        for i in range(n):
            box[i], box[n + i] = memory[i, CENTRE], memory[i, HALF]
        box[n + at] *= F(0.5)
        box[at] += box[n + at] if k == 0 else -box[n + at]  # the lower half is on top
        box[2 * n] = depth + 1
    state[BOXES] += F(2)
    return at


@entry
def search_boxes(fixed, kinds, numbers, stack, memory, tokens, state):
    """Search as many boxes of the stack as there is room for tokens, or as given.

    Args:
        fixed: (parts (n + 1), 12) transforms of each part before each joint and to the tip; joints act on their z axes.
        kinds: (parts, n) how each joint moves each part: RESTS, TURNS or SLIDES.
        numbers: (parts, 6) of each part: target, distance to exclude, scale; and the number of boxes of this call.
        stack: (k, 2n + 1) boxes: centres, half-widths, depth.
        memory: (n + 4, 18) scratch memory; its centres are a pose that was found.
        tokens: (t, 2) int32 tokens and their depths.
        state: (3,) boxes on the stack, tokens written, smallest distance of a centre from the first target.

    Returns:
        PROVED, MORE (the number of boxes is searched), FOUND (a centre is within all distances), FULL (no room).
    """
    parts, n = kinds.shape
    for _ in range(int(numbers[0, CALLS])):
        if state[BOXES] < F(1):
            return PROVED
        room = F(REPEATS * parts + 2)
        if state[BOXES] + F(2) > F(stack.shape[0]) or state[TOKENS] + room > F(tokens.shape[0]):
            return FULL
        state[BOXES] -= F(1)
        box = stack[int(state[BOXES])]
        for i in range(n):
            memory[i, CENTRE], memory[i, HALF] = box[i], box[n + i]
        depth = int(box[2 * n])
        gone = False
        for _repeat in range(REPEATS):
            useful, met = F(1), 0
            for i in range(n):
                memory[i, GAIN] = F(0)
            for part in range(parts):
                near, size = numbers[part, NEAR], numbers[part, SCALE]
                margin = MARGIN * size
                target = numbers[part, 0], numbers[part, 1], numbers[part, 2]
                p, r = carry(fixed, kinds, part, memory, 0)
                if norm(sub(p, target)) - r > near + margin:
                    put(tokens, state, BALL - 2 * part, depth)
                    gone = True
                    break
                moved = F(0)
                for i in range(n):
                    moved += memory[i, SPEED] * memory[i, HALF]
                    memory[i, GAIN] += memory[i, SPEED] / size
                if moved > ROUGH * size:
                    continue
                e = sub(target, linearize(fixed, kinds, part, memory))
                d = norm(e)
                if part == 0:
                    state[NEAREST] = min(state[NEAREST], d)
                if d <= near:
                    met += 1
                    if met == parts:
                        return FOUND
                rest = remainder(kinds, part, memory) + near + margin
                most = rest * d
                for i in range(n):
                    most += abs(dot(load(memory, i, JX), e)) * memory[i, HALF]
                if most < d * d:
                    put(tokens, state, DIRECTION - 2 * part, depth)
                    gone = True
                    break
                for i in range(n):  # a box that is kept as it is has not to be restored
                    box[i], box[n + i] = memory[i, CENTRE], memory[i, HALF]
                shrunk, token = contract(n, memory, e, rest)
                if shrunk > SOFT or token == 0:
                    for i in range(n):
                        memory[i, CENTRE], memory[i, HALF] = box[i], box[n + i]
                    continue
                put(tokens, state, token + part * (n + 1) * (n + 1) * (n + 1), depth)
                depth += 1
                met = 0
                useful *= shrunk
                if shrunk < F(0):
                    put(tokens, state, EMPTY, depth)
                    gone = True
                    break
            if gone or useful > USEFUL:
                break
        if not gone:
            here = int(state[TOKENS])
            put(tokens, state, 0, depth)
            tokens[here, 0] = split(kinds, memory, stack, state, depth, GAIN)
    return MORE
