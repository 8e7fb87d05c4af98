"""All branches of a chain of six hinges and slides, and whether they are all.

The loop of the chain is cut in twelve ways, the *splits*: at each joint, in each direction. Each split isolates the
roots of the determinant of ``elimination`` and computes one pose for each root; forward kinematics refines and verifies
the poses. ``complete`` is only true if one split proves it:

- the coefficients that must vanish show that rounding is small,
- every real root is isolated (``isolation``), or in an undecided interval with at most two, and there are as many
  poses as roots,
- the number of poses of each root is known: one, or two if only one equation determines e, or none if a, b and c
  violate the equations for every d and e,
- no pose is singular.

Some splits of an arm never prove anything, for example if axes are parallel or meet. So ``IK`` tries them once, and the
kernel uses the best ones in turn.
"""

import math

from synovia.kernels.branches.elimination import (
    factor,
    null_vector,
    right_inverse,
    sample_determinant,
    write_equations,
    write_orthogonal,
    write_pair,
    write_triple,
)
from synovia.kernels.branches.isolation import isolate, transform, value
from synovia.kernels.branches.memory import (
    ANGLES,
    CANCEL,
    COMPLETE,
    FLOOR,
    FOUND,
    INDEPENDENT,
    JOINTS,
    LISTED,
    MOST_ROOTS,
    NOISE,
    SIX_JOINTS,
    SPLITS,
    TRIED,
    UNDECIDED,
    USED,
)
from synovia.kernels.closed_form.selection import list_candidates
from synovia.kernels.compiler.jit import F, algorithm, apart, apart_dot, device, device_dot, entry, inline
from synovia.kernels.compiler.records import cutter, record
from synovia.kernels.goals.frames import goal_frame, target_frame
from synovia.kernels.layout import BLOCK_Q, KIND, LIST, LOWER, RATIO, SLIDE, UPPER, VARIABLE
from synovia.kernels.math.rotations import (
    PI,
    apply,
    apply_t,
    column,
    frame_of,
    identity,
    matmul,
    matmul_t,
    origin_of,
    rotation_of,
    store_frame,
    transposed,
    turn_z,
)
from synovia.kernels.math.trigonometry import sincos
from synovia.kernels.math.two_segments import nearest_turn
from synovia.kernels.math.vectors import add, axpy, cross, dot, scale, sub
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.problem import open_problem, open_work

NOISY = F(1e-9)  # fraction of the largest coefficient: a determinant with more noise proves nothing
UNEVEN = F(1e-11)  # likewise: with more noise, all dips of the determinant are tried, too
PRODUCTS = 8  # number of products of d and e, without the constant
CLUSTER = 24  # number of steps in the search for roots in an undecided interval
BISECTIONS = 40
SURE = F(1e-10)  # a null vector is accurate if the smallest pivot is at most this part of the second smallest
REFUTED = F(1e-5)  # relative residual of the equations; no solution has a larger one
DIPS = 360  # number of angles at which dips (least absolute values) are searched
DOUBLE = F(1e-12)  # two equations for e count as one if their squared sine is below this
UNIQUE = F(1e-8)  # d and e are unique if the squared size of what determines them is above this
TINY = F(1e-30)
SINGULAR = F(1e-7)  # least pivot of a regular Jacobian
ITERATIONS = 14  # largest number of Newton steps
EXACT = F(1e-13)  # radians, length scales: Newton steps end at a smaller error
ACCEPTED = F(2e-10)  # largest error of a branch
ALIKE = F(1e-6)  # poses nearer than this (radians, length scales) count as one
SLACK = F(1e-9)  # largest excess over a limit that is rounding

Memory = record("Memory", SIX_JOINTS)
_open = cutter(Memory, SIX_JOINTS, ())


@inline
def open_six(work):
    """Return the scratch memory: the tables of ``memory.SIX_JOINTS``."""
    return _open(work.solver_scratch, ())


@device
def write_loop(problem, work, targets, q, m):
    """Write the fixed transforms of the loop at the pose q, lengths divided by the length scale, and the kinds.

    The frame of a joint may slide along its axis; here its origin is near the middle of all joints.
    """
    forward(problem.tree, q, work.frames)
    f = work.frames
    count = 0
    middle = F(0), F(0), F(0)
    for row in range(problem.tree.ints.shape[0]):
        if problem.tree.ints[row, VARIABLE] >= 0 and count < JOINTS:
            m.rows[count] = F(row)
            m.slides[count] = F(1) if problem.tree.ints[row, KIND] == SLIDE else F(0)
            middle = axpy(F(1) / F(JOINTS), origin_of(f, row), middle)
            count += 1
    for i in range(JOINTS):
        row = int(m.rows[i])
        R, o = frame_of(f, row)
        z = column(R, 2)
        store_frame(m.axes, i, R, axpy(dot(sub(middle, o), z), z, o))
    G, p = goal_frame(problem, f, 0)
    T, x = target_frame(targets, 0)
    D = matmul_t(T, G)
    t = sub(x, apply(D, p))
    unit = F(1) / problem.reach
    for i in range(JOINTS):
        R, o = frame_of(m.axes, i)
        S, b = frame_of(m.axes, (i + 1) % JOINTS)
        if i == JOINTS - 1:  # the last transform closes the loop through the target
            S, b = matmul(transposed(D), S), apply_t(D, sub(b, t))
        store_frame(m.loop, i, matmul(transposed(R), S), scale(unit, apply_t(R, sub(b, o))))


@inline
def place(split, i):
    """Return the joint at position i of a split."""
    return (i + split) % JOINTS if split < JOINTS else (2 * JOINTS - 1 - i - (split - JOINTS)) % JOINTS


@device
def write_split(m, split):
    """Write the loop of a split: the same loop from another joint on, or backwards."""
    for i in range(JOINTS):
        j, k = place(split, i), place(split, (i + 1) % JOINTS)
        m.kinds[i] = m.slides[j]
        if split < JOINTS:
            R, o = frame_of(m.loop, j)
        else:
            R, o = frame_of(m.loop, k)
            R, o = transposed(R), apply_t(R, scale(F(-1), o))
        store_frame(m.split, i, R, o)


@inline
def moved(slide, x, R, o):
    """Return the frame (R, o) times the motion of a joint with value x."""
    if slide:
        return R, axpy(x, column(R, 2), o)
    s, c = sincos(x)
    return turn_z(R, s, c), o


@inline
def after_fixed(loop, i, R, o):
    """Return the frame (R, o) after the fixed transform i."""
    S, p = frame_of(loop, i)
    return matmul(R, S), add(o, apply(R, p))


@apart_dot
def refine(loop, slides, x, m):
    """Refine the joint values x of the loop by Newton's method.

    Returns:
        (error: radians, length scales; least pivot of the last Jacobian as a fraction of the largest).
    """
    J = m.J
    error = best = F(math.inf)
    regular = F(0)
    for step in range(ITERATIONS):
        R, o = identity(), (F(0), F(0), F(0))
        for i in range(JOINTS):
            z = column(R, 2)
            if slides[i] != F(0):
                J[0, i], J[1, i], J[2, i] = z[0], z[1], z[2]
                J[3, i], J[4, i], J[5, i] = F(0), F(0), F(0)
            else:
                v = cross(o, z)
                J[0, i], J[1, i], J[2, i] = v[0], v[1], v[2]
                J[3, i], J[4, i], J[5, i] = z[0], z[1], z[2]
            R, o = moved(slides[i] != F(0), x[i], R, o)
            R, o = after_fixed(loop, i, R, o)
        # (R, o) must be the identity; the columns are the velocities of the point at the origin
        J[0, 6], J[1, 6], J[2, 6] = -o[0], -o[1], -o[2]
        J[3, 6], J[4, 6], J[5, 6] = F(0.5) * (R[5] - R[7]), F(0.5) * (R[6] - R[2]), F(0.5) * (R[1] - R[3])
        error = F(0)
        for i in range(JOINTS):
            error += J[i, 6] * J[i, 6]
        error = math.sqrt(error) + (F(1) if R[0] + R[4] + R[8] < F(1) else F(0))
        if not error < F(1e6):
            return F(math.inf), F(0)
        done = error < EXACT or step == ITERATIONS - 1 or (step > 2 and error > F(0.5) * best and error < F(1e-11))
        best = min(best, error)
        regular = eliminate(J)
        if done:
            break
        largest = F(0)
        for i in range(JOINTS):
            largest = max(largest, abs(J[i, 6]))
        if not largest < F(1e9):
            return F(math.inf), F(0)
        damping = min(F(1), F(0.5) / largest) if largest > F(0) else F(1)
        for i in range(JOINTS):
            x[i] += damping * J[i, 6]
    return error, regular


@device_dot
def eliminate(J):
    """Solve J x = b in place, b in column 6; return the least pivot as a fraction of the largest."""
    least, largest = F(math.inf), F(0)
    for k in range(JOINTS):
        p, most = k, abs(J[k, k])
        for i in range(k + 1, JOINTS):
            if abs(J[i, k]) > most:
                p, most = i, abs(J[i, k])
        if p != k:
            for j in range(k, JOINTS + 1):
                J[k, j], J[p, j] = J[p, j], J[k, j]
        least, largest = min(least, most), max(largest, most)
        inverse = F(1) / J[k, k] if most > F(1e-14) else F(0)
        for i in range(k + 1, JOINTS):
            t = J[i, k] * inverse
            for j in range(k + 1, JOINTS + 1):
                J[i, j] -= t * J[k, j]
    for i in range(JOINTS - 1, -1, -1):
        t = J[i, 6]
        for j in range(i + 1, JOINTS):
            t -= J[i, j] * J[j, 6]
        J[i, 6] = t / J[i, i] if abs(J[i, i]) > F(1e-14) else F(0)
    return least / largest


@inline
def whole_turn(x):
    """Return the angle x in [-π, π)."""
    return x - F(2) * PI * math.floor(x / (F(2) * PI) + F(0.5))


@device
def pair_motions(m, side):
    """Write the values of joints d and e, given those of a, b and c in ``m.x``, by least squares.

    Args:
        m: Scratch memory.
        side: The solution for e, -1 or 1, if there are two.

    Returns:
        Number of solutions, 1 or 2; 0 if this number is uncertain.
    """
    L, x = m.split, m.x
    R, o = frame_of(L, 5)
    p, l = apply_t(R, scale(F(-1), o)), (R[6], R[7], R[8])
    for i in range(3):
        p, l = back(m.kinds[i] != F(0), x[i], p, l)
        p, l = right_inverse(L, i, p), apply_t(rotation_of(L, i), l)
    # Zd Gd Ze (g, k) = (p, l)
    R, o = frame_of(L, 3)
    S, g = frame_of(L, 4)
    k = column(S, 2)
    d_slides = m.kinds[3] != F(0)
    solutions = 1
    if m.kinds[4] != F(0):
        z = column(R, 2)
        at, direction = add(o, apply(R, g)), apply(R, k)
        if d_slides:  # p_x and p_y
            square = z[0] * z[0] + z[1] * z[1]
            e = (z[0] * (p[0] - at[0]) + z[1] * (p[1] - at[1])) / max(square, TINY)
        else:  # p_z and p·l
            along = dot(z, direction)
            square = z[2] * z[2] + along * along
            e = (z[2] * (p[2] - at[2]) + along * (dot(p, l) - dot(at, direction))) / max(square, TINY)
        at = axpy(e, z, at)
        solutions = 1 if square > UNIQUE else 0
    else:
        for i in range(5):
            m.normal[i] = F(0)
        add_rows(m, R, 2, g, p[2] - o[2], not d_slides)
        add_rows(m, R, 2, k, l[2], True)
        if d_slides:
            for i in range(2):
                add_rows(m, R, i, g, (p[0] - o[0]) if i == 0 else (p[1] - o[1]), True)
                add_rows(m, R, i, k, l[0] if i == 0 else l[1], True)
        else:  # |o + R Ze g|² = |o|² + |g|² + 2 (Rᵀ o)·(Ze g)
            h = apply_t(R, o)
            add_row(m, h, g, F(0.5) * (dot(p, p) - dot(o, o) - dot(g, g)))
            add_row(m, h, k, dot(p, l) - dot(g, k))
        # the z component of p×l = (o + R Ze g)×(R Ze k)
        h = apply_t(R, (-o[1], o[0], F(0)))
        add_both(m, (h, row_of(R, 2)), (k, cross(g, k)), p[0] * l[1] - p[1] * l[0], not d_slides)
        e, solutions = angle_of(m.normal, side)
        s, c = sincos(e)
        g = c * g[0] - s * g[1], s * g[0] + c * g[1], g[2]
        k = c * k[0] - s * k[1], s * k[0] + c * k[1], k[2]
        at, direction = add(o, apply(R, g)), apply(R, k)
    if d_slides:
        x[3] = p[2] - at[2]
    else:
        across = at[0] * p[1] - at[1] * p[0] + direction[0] * l[1] - direction[1] * l[0]
        along = at[0] * p[0] + at[1] * p[1] + direction[0] * l[0] + direction[1] * l[1]
        x[3] = math.atan2(across, along)
        if across * across + along * along < UNIQUE * UNIQUE:
            solutions = 0
    x[4] = e
    return solutions


@inline
def angle_of(normal, side):
    """Return the angle whose (sine, cosine) solve the normal equations, and the number of solutions (0: uncertain).

    If all equations are multiples of one, there are two.
    """
    a, b, c, r, t = normal[0], normal[1], normal[2], normal[3], normal[4]
    trace, det = a + c, a * c - b * b
    if det > DOUBLE * trace * trace:
        return math.atan2(r * c - t * b, t * a - r * b), (1 if det > UNIQUE * trace * trace else 0)
    v, w = (a, b) if a >= c else (b, c)
    size = math.sqrt(v * v + w * w)
    if not trace > UNIQUE or not size > F(0):
        return F(0), 0
    cosine = (r * v + t * w) / (size * trace)
    return math.atan2(v, w) + side * math.acos(min(max(cosine, F(-1)), F(1))), 2


@inline
def add_row(m, r, g, right):
    """Add the equation r·(Ze g) = right to the normal equations of the sine and the cosine of e."""
    put_normal(m, r[1] * g[0] - r[0] * g[1], r[0] * g[0] + r[1] * g[1], right - r[2] * g[2])


@inline
def put_normal(m, s, c, right):
    """Add the equation s sin e + c cos e = right to the normal equations."""
    m.normal[0] += s * s
    m.normal[1] += s * c
    m.normal[2] += c * c
    m.normal[3] += s * right
    m.normal[4] += c * right


@inline
def add_both(m, r, g, right, use):
    """Add the equation r₀·(Ze g₀) + r₁·(Ze g₁) = right to the normal equations if ``use``."""
    if use:
        s = r[0][1] * g[0][0] - r[0][0] * g[0][1] + r[1][1] * g[1][0] - r[1][0] * g[1][1]
        c = r[0][0] * g[0][0] + r[0][1] * g[0][1] + r[1][0] * g[1][0] + r[1][1] * g[1][1]
        put_normal(m, s, c, right - r[0][2] * g[0][2] - r[1][2] * g[1][2])


@inline
def add_rows(m, R, i, g, right, use):
    """Add the equation r·(Ze g) = right, with row i of R as r, if ``use``."""
    if use:
        add_row(m, row_of(R, i), g, right)


@inline
def row_of(A, i):
    """Return row i of a matrix."""
    if i == 0:
        return A[0], A[1], A[2]
    if i == 1:
        return A[3], A[4], A[5]
    return A[6], A[7], A[8]


@inline
def back(slide, x, p, l):
    """Return a point and a direction, moved back by a joint with value x."""
    if slide:
        return (p[0], p[1], p[2] - x), l
    s, c = sincos(x)
    return (c * p[0] + s * p[1], c * p[1] - s * p[0], p[2]), (c * l[0] + s * l[1], c * l[1] - s * l[0], l[2])


@inline
def half_angle(slide, high, low):
    """Return a joint value from the ratio of two successive powers: of the value itself, or of tan(value / 2)."""
    return high / low if slide else F(2) * math.atan2(high, low)


@device
def pose_of_root(m, c):
    """Write the values of a, b and c at the root c to ``m.x``; return whether the null vector is accurate."""
    factor(m.E, sincos(c), m.A, m.M)
    null_vector(m.M, m.null)
    read_pair(m, c)
    least = second = F(math.inf)
    for k in range(9):
        size = abs(m.M[k, k])
        least, second = min(least, size), max(least, min(second, size))
    return least <= SURE * second


@device
def read_pair(m, c):
    """Write c, and the values of a and b that the null vector contains, to ``m.x``."""
    v = m.null
    best = 0
    for i in range(9):
        if abs(v[i]) > abs(v[best]):
            best = i
    i = best if best < 6 else best - 3
    j = best if best % 3 < 2 else best - 1
    m.x[0] = half_angle(m.kinds[0] != F(0), v[i], v[i + 3])
    m.x[1] = half_angle(m.kinds[1] != F(0), v[j], v[j + 1])
    m.x[2] = c


@apart
def pose_of_plane(m, c, first):
    """Write a, b and c to ``m.x`` for a root at which two pairs of a and b meet: the null vectors are a plane.

    Of the vectors p + t q in the plane, those of a pair have (u²)(1) = (u)(u) in each column of v; so t solves a
    quadratic equation. ``first`` selects a solution.
    """
    factor(m.E, sincos(c), m.A, m.M)
    U, p, q = m.M, m.plane[0], m.plane[1]
    p[7], p[8], q[7], q[8] = F(0), F(1), F(1), F(0)
    for i in range(6, -1, -1):
        inverse = F(1) / U[i, i] if abs(U[i, i]) > F(1e-14) else F(0)
        s = t = F(0)
        for j in range(i + 1, 9):
            s += U[i, j] * p[j]
            t += U[i, j] * q[j]
        p[i], q[i] = -s * inverse, -t * inverse
    most = F(-1)
    square = linear = constant = F(0)
    for j in range(3):
        x, z = q[j] * q[j + 6] - q[j + 3] * q[j + 3], p[j] * p[j + 6] - p[j + 3] * p[j + 3]
        y = p[j] * q[j + 6] + q[j] * p[j + 6] - F(2) * p[j + 3] * q[j + 3]
        if abs(x) + abs(y) + abs(z) > most:
            most, square, linear, constant = abs(x) + abs(y) + abs(z), x, y, z
    root = math.sqrt(max(linear * linear - F(4) * square * constant, F(0)))
    h = F(-0.5) * (linear + (root if linear >= F(0) else -root))
    for i in range(9):  # t = h / square or constant / h
        m.null[i] = square * p[i] + h * q[i] if first else h * p[i] + constant * q[i]
    read_pair(m, c)


@device
def complete_pose(m, side):
    """Write the values of d, e and f to ``m.x``; return the number of solutions, like ``pair_motions``."""
    solutions = pair_motions(m, side)
    R, o = identity(), (F(0), F(0), F(0))
    for k in range(5):
        R, o = moved(m.kinds[k] != F(0), m.x[k], R, o)
        R, o = after_fixed(m.split, k, R, o)
    S = matmul(transposed(R), transposed(rotation_of(m.split, 5)))  # R Zf Gf = 1
    m.x[5] = math.atan2(S[3] - S[1], S[0] + S[4])
    return solutions


@device
def add_pose(m, count, split):
    """Append the joint values ``m.x`` of a split to ``m.turns`` if they are new; return the new count."""
    for i in range(JOINTS):
        j = place(split, i)
        x = m.x[i] if split < JOINTS else -m.x[i]
        m.pose[j] = x if m.slides[j] != F(0) else whole_turn(x)
    for k in range(count):
        away = F(0)
        for j in range(JOINTS):
            d = m.pose[j] - m.turns[k, j]
            away = max(away, abs(d if m.slides[j] != F(0) else whole_turn(d)))
        if away < ALIKE:
            return count
    if count < MOST_ROOTS:
        for j in range(JOINTS):
            m.turns[count, j] = m.pose[j]
        return count + 1
    return count


@inline
def determinant(m, x):
    """Return the determinant at c = x, from the matrix itself: near a root it is more accurate than the polynomial."""
    return factor(m.E, sincos(x), m.A, m.M)


@apart
def search_cluster(m, low, high, count):
    """Append the roots and the dips of the determinant in an undecided interval; return the new count."""
    margin = F(0.25) * (high - low) + F(1e-5)
    low, step = low - margin, (high - low + F(2) * margin) / F(CLUSTER)
    before = last = F(0)
    for i in range(CLUSTER + 2):
        x = low + F(i) * step
        y = determinant(m, x)
        if i > 0 and (y > F(0)) != (last > F(0)) and count < MOST_ROOTS:
            a, b, fa = x - step, x, last
            for _ in range(BISECTIONS):
                middle = F(0.5) * (a + b)
                if (determinant(m, middle) > F(0)) == (fa > F(0)):
                    a = middle
                else:
                    b = middle
            m.roots[count] = F(0.5) * (a + b)
            count += 1
        elif i > 1 and abs(last) <= abs(before) and abs(last) <= abs(y) and count < MOST_ROOTS:
            m.roots[count] = x - step
            count += 1
        before, last = last, y
    return count


@device
def is_refuted(m, independent):
    """Return whether a, b and c in ``m.x`` violate the equations for every d and e; for an accurate null vector."""
    total = F(0)
    for r in range(m.X.shape[1]):
        m.rest[r] = F(0)
    for i in range(3):
        for j in range(3):
            for k in range(3):
                t = product(m.kinds[0], m.x[0], i) * product(m.kinds[1], m.x[1], j) * product(F(0), m.x[2], k)
                for r in range(m.X.shape[1]):
                    m.rest[r] += t * m.X[9 * i + 3 * j + k, r]
    for r in range(m.X.shape[1]):
        total += m.rest[r] * m.rest[r]
    for k in range(independent):  # the reflections of ``write_orthogonal``
        t = F(0)
        for r in range(k, m.X.shape[1]):
            t += m.Y[k, r] * m.rest[r]
        for r in range(k, m.X.shape[1]):
            m.rest[r] -= t * m.Y[k, r]
    left = F(0)
    for r in range(independent, m.X.shape[1]):
        left += m.rest[r] * m.rest[r]
    return left > REFUTED * REFUTED * (F(1) + total)


@inline
def product(slide, x, i):
    """Return (sine, cosine, 1) of a hinge, or (x², x, 1) of a slide, by index."""
    s, c = (x * x, x) if slide != F(0) else sincos(x)
    return s if i == 0 else c if i == 1 else F(1)


@apart
def add_dips(m, count):
    """Append the places where the size of the determinant is least to the roots; return the new count."""
    first = count
    before = last = F(math.inf)
    for i in range(DIPS + 2):
        x = F(2) * PI * F(i) / F(DIPS)
        y = abs(value(m.f, x)[0])
        if last <= before and last <= y and i >= 2 and count < MOST_ROOTS:
            x -= F(2) * PI / F(DIPS)
            new = True
            for k in range(first):
                new = new and abs(whole_turn(m.roots[k] - x)) > F(0.004)
            if new:
                m.roots[count] = x
                count += 1
        before, last = last, y
    return count


@apart
def branches_of_split(m, split, count):
    """Append the branches that a split finds to the first ``count`` of ``m.turns``.

    Returns:
        (new count, number of branches if the split proves that they are all, else -1).
    """
    write_split(m, split)
    m.info[NOISE], m.info[UNDECIDED] = F(1), F(0)
    if m.kinds[2] != F(0) or m.kinds[5] != F(0):  # c and f must be hinges
        return count, -1
    write_pair(m.split, m.kinds, m.Y)
    write_triple(m.split, m.kinds, m.X)
    for r in range(m.X.shape[1]):
        m.X[26, r] -= m.Y[8, r]
    independent = write_orthogonal(m.Y, m.N)
    write_equations(m.N, m.X, m.kinds, m.E)
    sample_determinant(m.E, m.A, m.M, m.samples)
    largest, noise = transform(m.samples, m.f)
    m.info[NOISE], m.info[INDEPENDENT] = noise / largest if largest > F(0) else F(1), F(independent)
    if not largest > F(0):
        return count, -1
    error = F(CANCEL) * noise + F(FLOOR) * largest
    isolated, undecided = isolate(m.f, error, m.stack, m.roots, m.clusters)
    proved = noise < NOISY * largest
    found = expected = 0
    more = independent < PRODUCTS or m.kinds[0] + m.kinds[1] + m.kinds[3] + m.kinds[4] > F(0)
    for r in range(isolated):
        sure = pose_of_root(m, m.roots[r])
        if sure and more and is_refuted(m, independent):
            continue
        count, found, solutions = add_poses(m, split, count, found)
        proved = proved and solutions > 0
        expected += solutions
    for k in range(undecided):  # two roots have two pairs of a and b
        solutions = 0
        angles = search_cluster(m, m.clusters[k, 0], m.clusters[k, 1], isolated)
        for r in range(isolated, angles):
            for way in range(3):
                if way == 0:
                    pose_of_root(m, m.roots[r])
                else:
                    pose_of_plane(m, m.roots[r], way == 1)
                before = found
                count, found, each = add_poses(m, split, count, found)
                if found > before:
                    proved = proved and each > 0
                    solutions = max(solutions, each)
        proved = proved and solutions > 0 and m.clusters[k, 2] > F(0)
        expected += 2 * solutions
    if (noise > UNEVEN * largest or undecided > 0) and not (proved and found == expected):
        for r in range(isolated, add_dips(m, isolated)):
            pose_of_root(m, m.roots[r])
            count, found, _ = add_poses(m, split, count, found)
    m.info[UNDECIDED], m.info[ANGLES], m.info[FOUND] = F(undecided), F(expected), F(found)
    return count, found if proved and found == expected else -1


@device
def add_poses(m, split, count, found):
    """Append the poses with a, b and c of ``m.x`` to ``m.turns`` and to ``m.found``.

    Returns:
        (count, found, number of poses that a, b and c can have; 0 if that is uncertain or a pose is singular).
    """
    a, b, c = m.x[0], m.x[1], m.x[2]
    solutions = 0
    singular = False
    for side in (F(1), F(-1)):
        m.x[0], m.x[1], m.x[2] = a, b, c
        solutions = complete_pose(m, side)
        if refined(m) and found < MOST_ROOTS:
            singular = singular or m.regular[0] <= SINGULAR
            before = found
            found = add_found(m, found)
            if found > before:
                count = add_pose(m, count, split)
        if solutions < 2:
            break
    return count, found, 0 if singular else solutions


@inline
def refined(m):
    """Refine ``m.x``; return whether it closes the loop. Write how regular the pose is to ``m.regular``."""
    for i in range(JOINTS):
        if not abs(m.x[i]) < F(1e6):
            return False
    error, m.regular[0] = refine(m.split, m.kinds, m.x, m)
    return error < ACCEPTED


@inline
def add_found(m, found):
    """Return ``found`` + 1 if ``m.x`` differs from all joint values that this split found before (``m.found``)."""
    for k in range(found):
        away = F(0)
        for i in range(JOINTS):
            d = m.x[i] - m.found[k, i]
            away = max(away, abs(d if m.kinds[i] != F(0) else whole_turn(d)))
        if away < ALIKE:
            return found
    for i in range(JOINTS):
        m.found[found, i] = m.x[i]
    return found + 1


@device
def all_branches(m, params):
    """Write the branches of the loop to ``m.turns``; return their number. Write to ``m.info`` whether these are all."""
    count = 0
    m.info[COMPLETE] = F(0)
    for t in range(TRIED):
        if params[SPLITS + t] < F(0):
            break
        count, proved = branches_of_split(m, int(params[SPLITS + t]), count)
        m.info[USED] = F(t + 1)
        if proved >= 0:
            m.info[COMPLETE] = F(1) if proved == count else F(0)
            break
    return count


@inline
def put_values(problem, m, q, turns, count):
    """Write a candidate: ``turns`` as joint values within the limits, with whole turns to be nearest to q.

    Returns:
        The new number of candidates; unchanged if a joint would leave its limits.
    """
    for i in range(JOINTS):
        row = int(m.rows[i])
        k = problem.tree.ints[row, VARIABLE]
        x, low, high = q[problem.variables[k, BLOCK_Q]], problem.limits[k, LOWER], problem.limits[k, UPPER]
        ratio = problem.tree.couple[row, RATIO]
        if m.slides[i] != F(0):
            move = turns[i] * problem.reach / ratio
            slack = SLACK * problem.reach
            fits = low - slack <= x + move <= high + slack
        else:
            # multiples of 2π are removed from the rotation, which is ``ratio`` times the value
            least, most = ratio * (low - x), ratio * (high - x)
            move, fits = nearest_turn(turns[i], F(0), min(least, most) - SLACK, max(least, most) + SLACK)
            move /= ratio
        if not fits:
            return count
        m.candidates[JOINTS * count + k] = min(max(x + move, low), high)
    return count + 1


@algorithm
def branches(problem, work, targets, q):
    """Write all branches within the limits to the scratch memory; return how many. q is unchanged."""
    m = open_six(work)
    write_loop(problem, work, targets, q, m)
    found = all_branches(m, problem.params)
    count = 0
    for i in range(found):
        count = put_values(problem, m, q, m.turns[i], count)
    m.info[LISTED] = F(count)
    return count, F(0)


@entry
def six_joints(ints, floats, targets, starts, out, scratch, warm, first):
    """List branches if ``first`` is LIST (see ``list_branches``); it solves nothing."""
    if first != LIST:
        return 0
    problem, work = open_problem(ints, floats), open_work(ints, scratch)
    m = open_six(work)
    count = list_candidates(branches, m, problem, work, targets, starts, out)
    if F(count) < m.info[LISTED]:  # a tolerance below the rounding refuses branches
        m.info[COMPLETE] = F(0)
    return count
