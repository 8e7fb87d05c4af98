"""Search boxes of joint values for a proof that a chain cannot bring its tip to a target.

A chain has one part or more: points, or directions as points on a unit sphere, that the same joints move, each with a
target and a distance. A pose meets the targets if each part is within its distance. A box gives each joint i an
interval m_i ± w_i. Three bounds exclude boxes, or portions of boxes, in which a part is too far from its target:

* Ball: a ball that contains the tip is carried from joint to joint, from the tip to the base. A hinge of half-width
  w ≤ 90° turns a point at distance ρ from its axis along an arc; the ball about the middle of its chord has the radius
  ρ sin w.
* Direction: with e the unit vector from the tip x at the centre of the box to the target t, and H_ij the second
  derivatives, the box is empty if e·(t - x) > Σ |e·J_i| w_i + Σ_{i<=j} |e·H_ij| w_i w_j (half of it for i = j) + R,
  where R = Σ_j D_j w_j (S² + S t + t²/3) / 2 bounds the terms of third order. D_j is the largest speed of the tip per
  unit of joint j, which the ball gives, S the sum of the half-widths of the hinges before j, and t that of j if it is
  a hinge. In wide boxes, Σ_j D_j w_j (S + t/2) bounds all terms from the second order on.
* Contraction: solve the linear equations of all parts for the joints by least squares, weighted by the remainders and
  regularised, and shrink each interval to what the same remainders leave. Near a pose outside the limits, this finds
  that no pose is inside.

The search writes what it did as tokens. ``ik.proofs.check`` verifies them without this file. Merlet 2009; Porta, Ros,
Thomas, Torras 2005.
"""

import math

from synovia.kernels.compiler.jit import F, device, entry
from synovia.kernels.math.rotations import apply, column, identity, matmul, origin_of, rotation_of, turn_z
from synovia.kernels.math.vectors import add, axpy, cross, load, norm, scale, store, sub

# columns of the memory of the search, one row for each joint
COS, SIN, CUT, GROWTH, SPEED, JX, AX, OX, CENTRE, HALF, GAIN = 0, 1, 2, 3, 4, 5, 8, 11, 14, 15, 16
MEMORY_WIDTH = 17
# kinds of joints for a part: it does not move the part, turns it, or slides it
RESTS, TURNS, SLIDES = -1, 0, 1
# numbers of a part: the target, the distance to exclude, the length scale, the largest number of boxes of a call, and
# for one box, in the unit of its equations: the distance, and bounds of what is missing in linear and quadratic ones
NEAR, SCALE, CALLS, AWAY, SECOND, THIRD, NUMBERS = 3, 4, 5, 6, 7, 8, 9
# elements of the state: boxes on the stack, tokens, smallest distance of a centre from the target of the first part
BOXES, TOKENS, NEAREST, STATE_SIZE = 0, 1, 2, 3
# tokens of excluded boxes: EMPTY, BALL - 2 part, DIRECTION - 2 part; other tokens: joint of a split, n for a
# contraction
EMPTY, BALL, DIRECTION = -1, -2, -3
PROVED, MORE, FOUND, FULL = 1, 0, -1, -2
QUARTER = F(1.5707963267948966)
WIDEST = F(1.2)  # radians; wider intervals gain nothing in the choice of the joint to split
ROUGH = F(3)  # if the tip moves more than this in a box, relative to the reach, linear bounds are not tried
USEFUL = F(0.7)  # contractions are repeated if they shrink the volume of a box to less than this fraction
SOFT = F(0.95)  # a contraction counts if it shrinks the volume of a box to less than this fraction
REPEATS = 4  # largest number of contractions of a box by each part in a row
RIDGE = F(0.05)  # regularisation of the least squares; ``ik.proofs.check`` has the same
LEAST = F(0.05)  # if a joint's coefficient in its own equation is below this, its interval does not shrink; likewise
WIDER = F(1e-6)  # fraction of an interval: rounding error of the least squares
MARGIN = F(1e-9)  # fraction of the reach: rounding error


@device
def open_box(memory, n, first):
    """Write the sines and cosines of centres and half-widths of a box to ``memory``, from joint ``first`` on."""
    for i in range(first, n):
        m, w = memory[i, CENTRE], memory[i, HALF]
        memory[i, COS], memory[i, SIN] = math.cos(m), math.sin(m)
        memory[i, CUT] = math.cos(w) if w < QUARTER else F(0)
        memory[i, GROWTH] = math.sin(w) if w < QUARTER else F(1)


@device
def carry(fixed, kinds, part, memory, first):
    """Return a ball that contains the tip for all poses of the box, in the frame before joint ``first``.

    Also write, for each joint from ``first`` on, an upper bound of the tip's speed per unit of the joint to the column
    SPEED of ``memory``. Call ``open_box`` before.

    Args:
        fixed: Fixed transforms between the joints, see ``search_boxes``.
        kinds: Kinds of the joints, by part.
        part: The part whose tip is meant.
        memory: The box and its sines and cosines, one row for each joint.
        first: First joint of the box that moves.

    Returns:
        (centre, radius) of the ball.
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
            c, s, cut = memory[i, COS], memory[i, SIN], memory[i, CUT]
            rho = math.sqrt(p[0] * p[0] + p[1] * p[1])
            memory[i, SPEED] = rho + r
            r += rho * memory[i, GROWTH]
            p = (c * p[0] - s * p[1]) * cut, (s * p[0] + c * p[1]) * cut, p[2]
        p = add(apply(rotation_of(fixed, base + i), p), origin_of(fixed, base + i))
    return p, r


@device
def linearize(fixed, kinds, part, memory):
    """Write to ``memory`` the Jacobian of a part's tip at the centre of the box, and return the position of the tip."""
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
def remainders(kinds, part, memory):
    """Return bounds of the terms of a tip's motion: of all from the second order on, and of all from the third on.

    Both are lengths; for the formulas see the module. Call ``carry`` before, which writes the speeds.
    """
    second, third, before = F(0), F(0), F(0)
    for i in range(kinds.shape[1]):
        most, t = memory[i, SPEED] * memory[i, HALF], memory[i, HALF] if kinds[part, i] == F(0) else F(0)
        second += most * (before + t / F(2))
        third += most * (before * before + before * t + t * t / F(3)) / F(2)
        before += t
    return second, third


@device
def put_equations(kinds, part, memory, rows, e, unit):
    """Write the three quadratic equations of a part to ``rows``, divided by the length ``unit``.

    The unknowns are the coordinates of the joints in the box, from -1 to 1; e is the vector from the tip at the centre
    of the box to the target.
    """
    n, k = kinds.shape[1], 3 * part
    f = F(1) / unit
    at = n + 1
    for i in range(n):
        w = memory[i, HALF] * f
        J = load(memory, i, JX)
        rows[k, i], rows[k + 1, i], rows[k + 2, i] = w * J[0], w * J[1], w * J[2]
        z = load(memory, i, AX)
        for j in range(i, n):
            v = scale(w * memory[j, HALF], cross(z, load(memory, j, JX)))
            v = scale(F(0.5) if i == j else F(1), v)
            turns = kinds[part, i] == F(0)
            rows[k, at], rows[k + 1, at], rows[k + 2, at] = v if turns else (F(0), F(0), F(0))
            at += 1
    rows[k, n], rows[k + 1, n], rows[k + 2, n] = e[0] * f, e[1] * f, e[2] * f


@device
def falls_short(rows, n, part, unit, e, near, second, third):
    """Return whether the tip stays too far from the target in the whole box, by the direction bound of the module.

    e is the vector from the tip at the centre of the box to the target; ``near`` is the distance to exclude, and
    ``second`` and ``third`` are from ``remainders``.
    """
    k, d = 3 * part, norm(e)
    first, curved = F(0), third * d
    for i in range(n):
        first += abs(rows[k, i] * e[0] + rows[k + 1, i] * e[1] + rows[k + 2, i] * e[2])
    if unit * first + near * d > d * d:
        return False
    for i in range(n + 1, rows.shape[1]):
        curved += unit * abs(rows[k, i] * e[0] + rows[k + 1, i] * e[1] + rows[k + 2, i] * e[2])
    return unit * first + min(second * d, curved) + near * d < d * d


@device
def invert(A):
    """Replace the positive definite first columns of A (n, n + 1) by their inverse."""
    n = A.shape[0]
    for k in range(n):
        d = F(1) / A[k, k]
        for j in range(n):
            A[k, j] *= d
        A[k, k] = d
        for i in range(n):
            if i != k:
                t = A[i, k]
                A[i, k] = F(0)
                for j in range(n):
                    A[i, j] -= t * A[k, j]


@device
def contract(numbers, memory, rows, inverse):
    """Shrink the intervals of the joints by the equations of all parts; see the module.

    Args:
        numbers: (parts, 9) numbers of the parts, see ``search_boxes``.
        memory: (n, 17 or more) the box; its centres and half-widths are changed.
        rows: The equations, from ``put_equations``; the last row is scratch.
        inverse: (n, n + 1) scratch memory for the least squares.

    Returns:
        The volume of the box divided by its volume before; negative if the box is empty.
    """
    n, parts, width = inverse.shape[0], numbers.shape[0], rows.shape[1]
    combined = rows[3 * parts]
    for i in range(n):
        for j in range(n + 1):
            inverse[i, j] = RIDGE if i == j else F(0)
    for r in range(3 * parts):
        for i in range(n):
            t = rows[r, i]
            for j in range(n + 1):
                inverse[i, j] += t * rows[r, j]
    invert(inverse)
    shrunk = F(1)
    for i in range(n):
        own = F(1) - RIDGE * inverse[i, i]
        if own < LEAST:
            continue
        c = h = second = third = F(0)
        for j in range(n):
            c += inverse[i, j] * inverse[j, n]
            h += RIDGE * abs(inverse[i, j]) if j != i else F(0)
        for k in range(n + 1, width):
            combined[k] = F(0)
        for part in range(parts):
            square = F(0)
            for r in range(3 * part, 3 * part + 3):
                y = F(0)
                for j in range(n):
                    y += inverse[i, j] * rows[r, j]
                square += y * y
                for k in range(n + 1, width):
                    combined[k] += y * rows[r, k]
            size = math.sqrt(square)
            h += size * numbers[part, AWAY]
            second += size * numbers[part, SECOND]
            third += size * numbers[part, THIRD]
        for k in range(n + 1, width):
            third += abs(combined[k])
        h += min(second, third)
        low, high = max((c - h) / own - WIDER, F(-1)), min((c + h) / own + WIDER, F(1))
        if low >= high:
            return F(-1)
        w = memory[i, HALF]
        memory[i, CENTRE] += F(0.5) * (low + high) * w
        memory[i, HALF] = F(0.5) * (high - low) * w
        shrunk *= F(0.5) * (high - low)
    return shrunk


@device
def put(tokens, state, token, depth):
    """Append a token and the depth of its box."""
    k = int(state[TOKENS])
    tokens[k, 0], tokens[k, 1] = token, depth
    state[TOKENS] += F(1)


@device
def split(kinds, memory, stack, state, depth, speed):
    """Put both halves of the box on the stack, and return the joint whose interval was halved.

    It is the joint that moves the tip most within the box; ``speed`` is the column of ``memory`` with the speeds.
    """
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
def search_boxes(fixed, kinds, numbers, stack, memory, rows, tokens, state):
    """Search boxes of the stack, until their given number is reached or ``tokens`` is full.

    Args:
        fixed: (parts (n + 1), 12) transforms of each part before each joint and to the tip; joints act on their z axes.
        kinds: (parts, n) how each joint moves each part: RESTS, TURNS or SLIDES.
        numbers: (parts, 9) of each part: target, distance to exclude, scale; the number of boxes of this call; scratch.
        stack: (k, 2n + 1) boxes: centres, half-widths, depth.
        memory: (n, 17 + n + 1) scratch memory; its centres are a pose that was found. After the columns above, it has
            the matrix of the least squares.
        rows: (3 parts + 1, (n + 1) (n + 2) / 2) scratch memory: equations.
        tokens: (t, 2) int32 tokens and their depths.
        state: (3,) boxes on the stack, tokens written, smallest distance of a centre from the first target.

    Returns:
        PROVED, MORE (the number of boxes is searched), FOUND (a centre is within all distances), FULL (no room).
    """
    parts, n = kinds.shape
    inverse = memory[:, MEMORY_WIDTH:]
    for _ in range(int(numbers[0, CALLS])):
        if state[BOXES] < F(1):
            return PROVED
        room = F(REPEATS + 2)
        if state[BOXES] + F(2) > F(stack.shape[0]) or state[TOKENS] + room > F(tokens.shape[0]):
            return FULL
        state[BOXES] -= F(1)
        box = stack[int(state[BOXES])]
        for i in range(n):
            memory[i, CENTRE], memory[i, HALF] = box[i], box[n + i]
        depth = int(box[2 * n])
        gone = False
        for _repeat in range(REPEATS):
            open_box(memory, n, 0)
            met = rough = 0
            for i in range(n):
                memory[i, GAIN] = F(0)
            for part in range(parts):
                near, size = numbers[part, NEAR], numbers[part, SCALE]
                near += MARGIN * size
                target = numbers[part, 0], numbers[part, 1], numbers[part, 2]
                p, r = carry(fixed, kinds, part, memory, 0)
                if norm(sub(p, target)) - r > near:
                    put(tokens, state, BALL - 2 * part, depth)
                    gone = True
                    break
                moved = F(0)
                for i in range(n):
                    moved += memory[i, SPEED] * memory[i, HALF]
                    memory[i, GAIN] += memory[i, SPEED] / size
                rough += 1 if moved > ROUGH * size else 0
                e = sub(target, linearize(fixed, kinds, part, memory))
                d = norm(e)
                if part == 0:
                    state[NEAREST] = min(state[NEAREST], d)
                if d <= numbers[part, NEAR]:
                    met += 1
                    if met == parts:
                        return FOUND
                second, third = remainders(kinds, part, memory)
                unit = second + near
                put_equations(kinds, part, memory, rows, e, unit)
                if falls_short(rows, n, part, unit, e, near, second, third):
                    put(tokens, state, DIRECTION - 2 * part, depth)
                    gone = True
                    break
                numbers[part, AWAY], numbers[part, SECOND], numbers[part, THIRD] = (
                    near / unit,
                    second / unit,
                    third / unit,
                )
            if gone or rough == parts:
                break
            for i in range(n):  # an unchanged box need not be restored
                box[i], box[n + i] = memory[i, CENTRE], memory[i, HALF]
            shrunk = contract(numbers, memory, rows, inverse)
            if shrunk > SOFT:
                for i in range(n):
                    memory[i, CENTRE], memory[i, HALF] = box[i], box[n + i]
                break
            put(tokens, state, n, depth)
            depth += 1
            if shrunk < F(0):
                put(tokens, state, EMPTY, depth)
                gone = True
                break
            if shrunk > USEFUL:
                break
        if not gone:
            here = int(state[TOKENS])
            put(tokens, state, 0, depth)
            tokens[here, 0] = split(kinds, memory, stack, state, depth, GAIN)
    return MORE
