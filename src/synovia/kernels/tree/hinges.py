"""Serial chains of hinges over a whole clip: residuals of their targets, and bounded least squares.

With residuals e of directions, rotations and positions, and the step Δ of each angle from frame to frame, the cost is

    Σ w² |e|² + Σ smoothness Δ² + Σ BEYOND (|Δ| - bound)₊²

Its Gauss-Newton matrix is banded: a frame is connected only to the frames next to it, angle by angle. A step minimizes
the quadratic model in a box. Repeated solves find the angles at the box's bounds and the steps beyond their bounds (a
semismooth Newton method): each solve uses the sets that the previous solve found. These change in few frames, so only
the parts of the matrix around them are factorized again.
"""

import math

from synovia.kernels.compiler.jit import F, device, entry, inline
from synovia.kernels.compiler.records import cutter, record
from synovia.kernels.layout import Table
from synovia.kernels.math.rotations import (
    apply,
    frame_of,
    load_rotation,
    log_rotation,
    matmul,
    origin_of,
    rotation_of,
    store_frame,
    transposed,
)
from synovia.kernels.math.trigonometry import sincos
from synovia.kernels.math.vectors import add, axpy, cross, dot, load, norm, scale, store, sub

# Columns of a joint: its frame at rest, its axis, and its number among the hinges, -1 for a fixed joint
AXIS, HINGE = 12, 15
JOINT_WIDTH = 16
# Columns of a term: its kind, the joint where a direction begins, the joint of the point or orientation, the point in
# the frame of this joint, and the weight
KIND, START, END, POINT, WEIGHT = 0, 1, 2, 3, 6
TERM_WIDTH = 7
DIRECTION, ORIENTED, PLACED = 0, 1, 2
WORLD_AXIS, WORLD_ORIGIN = 0, 3  # columns of a hinge in the world
AXES_WIDTH = 6
SMOOTHNESS, LENGTH, LIMITS = 0, 1, 2  # settings; then the lower and the upper limit of each hinge

TABLES = (
    Table("cost", (1,)),
    Table("frames", ("joints", 12)),
    Table("axes", ("hinges", AXES_WIDTH)),
    Table("e", ("rows",)),
    Table("J", ("rows", "hinges")),
    Table("blocks", ("frames_count", "square")),  # Gauss-Newton matrices at x; ``slopes`` are minus half the gradients
    Table("slopes", ("frames_count", "hinges")),
    Table("trial_blocks", ("frames_count", "square")),
    Table("trial_slopes", ("frames_count", "hinges")),
    Table("trial", ("frames_count", "hinges")),
    Table("side", ("frames_count", "hinges")),  # 1 or -1 for an angle at the upper or lower bound of its box
    Table("far", ("frames_count", "hinges")),  # 1 or -1 for a step from the frame before above or below its bound
    Table("damped", ("frames_count", "hinges")),
    Table("right", ("frames_count", "hinges")),
    Table("stale", ("frames_count",)),  # 1 for frames whose rows in the matrix have changed
    Table("line", ("width",)),
    Table("band", ("unknowns", "width")),  # the factor L of the matrix: L[i, i - n], ..., L[i, i - 1], 1 / L[i, i]
    Table("forward", ("unknowns",)),  # L⁻¹ times the right-hand side
    Table("y", ("unknowns",)),
)
SIZES = ("joints", "hinges", "rows", "frames_count", "square", "unknowns", "width")
_open = cutter(record("HingeMemory", TABLES), TABLES, SIZES)

BEYOND = F(100)  # weight of a step's excess over its bound; weights of directions are about 1
STEPS = 30  # largest number of least-squares steps
ENOUGH = F(1e-4)  # fraction of the cost: the descent stops if a step lowers the cost by less
FINE = F(1e-5)  # cost per frame, squared radians: the descent also stops if a step lowers the cost by less
LARGEST = F(0.7)  # radians: largest step, because the linear model is poor for larger ones
# damping, as fractions of the curvature of each angle: smallest, after a failed step, largest
DAMPING, AFTER_FAILURE, MOST_DAMPING = F(1e-6), F(1e-2), F(1e4)
LEAST = F(0.02)  # smallest curvature that damping uses, for angles that no term determines
SETS = 8  # largest number of solves that search for the angles and steps at their bounds
ROUNDED = F(1e-13)  # relative change of a row that counts as none
HELD = F(1e9)  # curvature that keeps an angle at its bound
SHORT = F(1e-9)  # fraction of the chain's length: points at a smaller distance do not define a direction


@inline
def open_memory(memory, joints, terms, x):
    """Return the tables in the scratch memory."""
    frames, n = x.shape
    return _open(memory, (joints.shape[0], n, 3 * terms.shape[0], frames, n * n, frames * n, n + 1))


@device
def place(m, base, joints, x):
    """Write the world frames of the joints, and axes and origins of the hinges, below the frame ``base`` (1, 12)."""
    R, p = frame_of(base, 0)
    for k in range(joints.shape[0]):
        p = add(p, apply(R, origin_of(joints, k)))
        R = matmul(R, rotation_of(joints, k))
        h = int(joints[k, HINGE])
        if h >= 0:
            a = load(joints, k, AXIS)
            s, c = sincos(x[h])
            v = F(1) - c
            R = matmul(R, (
                c + v * a[0] * a[0], v * a[0] * a[1] - s * a[2], v * a[0] * a[2] + s * a[1],
                v * a[0] * a[1] + s * a[2], c + v * a[1] * a[1], v * a[1] * a[2] - s * a[0],
                v * a[0] * a[2] - s * a[1], v * a[1] * a[2] + s * a[0], c + v * a[2] * a[2],
            ))  # fmt: skip
            store(m.axes, h, WORLD_AXIS, apply(R, a))
            store(m.axes, h, WORLD_ORIGIN, p)
        store_frame(m.frames, k, R, p)


@inline
def moved_by(joints, k):
    """Return the number of hinges that move a joint."""
    while k >= 0 and joints[k, HINGE] < F(0):
        k -= 1
    return int(joints[k, HINGE]) + 1 if k >= 0 else 0


@device
def terms_of(m, joints, terms, wanted, t, length):
    """Write the residuals of frame t (target minus present value) and the present values' derivatives, weighted."""
    for i in range(m.J.shape[0]):
        for h in range(m.J.shape[1]):
            m.J[i, h] = F(0)
    for i in range(terms.shape[0]):
        kind, end, w = int(terms[i, KIND]), int(terms[i, END]), terms[i, WEIGHT]
        R, origin = frame_of(m.frames, end)
        k, at = moved_by(joints, end), 3 * i
        if kind == ORIENTED:
            e = log_rotation(matmul(load_rotation(wanted[i], t, 0), transposed(R)))
            set_three(m.e, at, scale(w, e))
            for h in range(k):
                set_column(m.J, at, h, scale(w, load(m.axes, h, WORLD_AXIS)))
            continue
        point, target = add(origin, apply(R, load(terms, i, POINT))), load(wanted[i], t, 0)
        if kind == PLACED:
            w /= length
            set_three(m.e, at, scale(w, sub(target, point)))
            for h in range(k):
                set_column(
                    m.J, at, h, scale(w, cross(load(m.axes, h, WORLD_AXIS), sub(point, load(m.axes, h, WORLD_ORIGIN))))
                )
            continue
        start = int(terms[i, START])
        way, both = sub(point, origin_of(m.frames, start)), moved_by(joints, start)
        far = max(norm(way), SHORT * length)
        d = scale(F(1) / far, way)
        set_three(m.e, at, scale(w, sub(target, d)))
        for h in range(k):
            arm = way if h < both else sub(point, load(m.axes, h, WORLD_ORIGIN))
            speed = scale(F(1) / far, cross(load(m.axes, h, WORLD_AXIS), arm))
            set_column(m.J, at, h, scale(w, axpy(-dot(speed, d), d, speed)))


@inline
def set_three(e, at, v):
    """Write a vector to the three entries of e from ``at`` on."""
    e[at], e[at + 1], e[at + 2] = v


@inline
def set_column(J, at, h, v):
    """Write a vector to column h of J, in the three rows from ``at`` on."""
    J[at, h], J[at + 1, h], J[at + 2, h] = v


@device
def evaluate(m, clip, x, blocks, slopes):
    """Write Gauss-Newton matrices and slopes of all frames at x; return the cost. ``clip``: see ``follow_hinges``."""
    base, joints, terms, wanted, bounds, settings = clip
    n, total = x.shape[1], F(0)
    for t in range(x.shape[0]):
        place(m, base[t : t + 1], joints, x[t])
        terms_of(m, joints, terms, wanted, t, settings[LENGTH])
        for i in range(m.e.shape[0]):
            total += m.e[i] * m.e[i]
        for a in range(n):
            s = F(0)
            for i in range(m.e.shape[0]):
                s += m.J[i, a] * m.e[i]
            slopes[t, a] = s
            for b in range(a + 1):
                s = F(0)
                for i in range(m.e.shape[0]):
                    s += m.J[i, a] * m.J[i, b]
                blocks[t, a * n + b] = s
                blocks[t, b * n + a] = s
    for t in range(1, x.shape[0]):
        for a in range(n):
            way = x[t, a] - x[t - 1, a]
            beyond = max(abs(way) - bounds[t - 1, a], F(0))
            total += settings[SMOOTHNESS] * way * way + BEYOND * beyond * beyond
    return total


@inline
def lowest(settings, x, t, a):
    """Return the lower bound of angle a of frame t in a step."""
    return max(settings[LIMITS + a], x[t, a] - LARGEST)


@inline
def highest(settings, x, t, a):
    """Return the upper bound of angle a of frame t in a step."""
    return min(settings[LIMITS + x.shape[1] + a], x[t, a] + LARGEST)


@device
def write_row(m, bounds, settings, x, t, a):
    """Write to ``line`` the row of angle a of frame t, with angles and steps held at bounds; return its right side."""
    n, smooth = x.shape[1], settings[SMOOTHNESS]
    for k in range(n - a):
        m.line[k] = F(0)
    for b in range(a):
        m.line[n - a + b] = m.blocks[t, a * n + b]
    diagonal, goal = m.damped[t, a], m.right[t, a]
    if t > 0:
        tie = smooth + BEYOND if m.far[t, a] != F(0) else smooth
        m.line[0] = -tie
        diagonal += tie
        goal += BEYOND * m.far[t, a] * bounds[t - 1, a]
    if t + 1 < x.shape[0]:
        diagonal += smooth + BEYOND if m.far[t + 1, a] != F(0) else smooth
        goal -= BEYOND * m.far[t + 1, a] * bounds[t, a]
    if m.side[t, a] != F(0):
        diagonal += HELD
        goal += HELD * (highest(settings, x, t, a) if m.side[t, a] > F(0) else lowest(settings, x, t, a))
    m.line[n] = diagonal
    return goal


@device
def eliminate(m, i, goal):
    """Turn ``line``, row i of the matrix, and its right side to those of the factor; return whether they change."""
    line, own = m.line, m.band[i]
    n = line.shape[0] - 1
    first, changed = max(0, i - n), False
    diagonal = line[n]
    for j in range(first, i):
        other = m.band[j]
        s = line[j - i + n]
        for k in range(first, j):
            s -= line[k - i + n] * other[k - j + n]
        s *= other[n]
        line[j - i + n] = s
        goal -= s * m.forward[j]
        diagonal -= s * s
    line[n] = F(1) / math.sqrt(diagonal)
    goal *= line[n]
    for k in range(first - i + n, n + 1):
        changed = changed or abs(line[k] - own[k]) > ROUNDED * abs(own[k])
        own[k] = line[k]
    changed = changed or abs(goal - m.forward[i]) > ROUNDED * abs(goal)
    m.forward[i] = goal
    return changed


@device
def solve(m, bounds, settings, x):
    """Write to y the angles that minimize the quadratic model with angles and steps held at their bounds.

    The matrix is factorized again only in stale frames, and after these until its factor stays the same.
    """
    frames, n = x.shape
    changed = False
    for t in range(frames):
        if not changed and m.stale[t] == F(0):
            continue
        changed, m.stale[t] = False, F(0)
        for a in range(n):
            goal = write_row(m, bounds, settings, x, t, a)
            changed = eliminate(m, t * n + a, goal) or changed
    for i in range(m.y.shape[0]):
        m.y[i] = m.forward[i]
    for i in range(m.y.shape[0] - 1, -1, -1):
        m.y[i] *= m.band[i, n]
        for k in range(max(0, i - n), i):
            m.y[k] -= m.band[i, k - i + n] * m.y[i]


@device
def step(m, bounds, settings, x, damping):
    """Write to ``trial`` the angles that minimize the quadratic model of the cost in the box."""
    frames, n = x.shape
    for t in range(frames):
        for a in range(n):
            own = m.blocks[t, a * n + a]
            m.damped[t, a] = own + damping * max(own + F(2) * settings[SMOOTHNESS], LEAST)
            s = m.slopes[t, a] + (m.damped[t, a] - own) * x[t, a]
            for b in range(n):
                s += m.blocks[t, a * n + b] * x[t, b]
            m.right[t, a], m.side[t, a], m.far[t, a] = s, F(0), F(0)
    for t in range(frames):
        m.stale[t] = F(1)
    for _ in range(SETS):
        solve(m, bounds, settings, x)
        same = True
        for t in range(frames):
            for a in range(n):
                y, side, far = m.y[t * n + a], F(0), F(0)
                if y > highest(settings, x, t, a):
                    side = F(1)
                elif y < lowest(settings, x, t, a):
                    side = F(-1)
                if t > 0:
                    way = y - m.y[(t - 1) * n + a]
                    far = F(1) if way > bounds[t - 1, a] else F(-1) if way < -bounds[t - 1, a] else F(0)
                if side != m.side[t, a] or far != m.far[t, a]:
                    same = False
                    m.stale[t], m.stale[max(t - 1, 0)] = F(1), F(1)
                m.side[t, a], m.far[t, a] = side, far
        if same:
            break
    for t in range(frames):
        for a in range(n):
            m.trial[t, a] = min(max(m.y[t * n + a], lowest(settings, x, t, a)), highest(settings, x, t, a))


@device
def copy_rows(a, out):
    """Copy a table."""
    for t in range(a.shape[0]):
        for k in range(a.shape[1]):
            out[t, k] = a[t, k]


@entry
def hinge_terms(base, joints, terms, wanted, settings, memory, x, out):
    """Write residuals and derivatives of all frames, (T, rows * (1 + hinges)), with arguments of ``follow_hinges``."""
    m = open_memory(memory, joints, terms, x)
    rows, n = m.J.shape
    for t in range(x.shape[0]):
        place(m, base[t : t + 1], joints, x[t])
        terms_of(m, joints, terms, wanted, t, settings[LENGTH])
        for i in range(rows):
            out[t, i] = m.e[i]
            for a in range(n):
                out[t, rows + i * n + a] = m.J[i, a]


@entry
def follow_hinges(base, joints, terms, wanted, bounds, settings, memory, x):
    """Minimize the cost of a clip, and write it to ``cost``.

    Args:
        base: (T, 12) frames of the joint above the chain.
        joints: (joints, JOINT_WIDTH).
        terms: (K, TERM_WIDTH).
        wanted: (K, T, 9) rotations, or directions or positions in the first three columns.
        bounds: (T - 1, hinges) largest steps, radians.
        settings: See ``SMOOTHNESS`` and the following.
        memory: Scratch memory, the tables of ``TABLES``.
        x: (T, hinges) angles within the limits: the start, then the result.
    """
    m, clip = open_memory(memory, joints, terms, x), (base, joints, terms, wanted, bounds, settings)
    cost, damping = evaluate(m, clip, x, m.blocks, m.slopes), DAMPING
    for _ in range(STEPS):
        lower = cost
        while lower >= cost and damping < MOST_DAMPING:
            step(m, bounds, settings, x, damping)
            lower = evaluate(m, clip, m.trial, m.trial_blocks, m.trial_slopes)
            damping = max(damping / F(10), DAMPING) if lower < cost else max(F(10) * damping, AFTER_FAILURE)
        if lower >= cost:
            break
        copy_rows(m.trial, x)
        copy_rows(m.trial_blocks, m.blocks)
        copy_rows(m.trial_slopes, m.slopes)
        gained, cost = cost - lower, lower
        if gained <= ENOUGH * cost + FINE * x.shape[0]:
            break
    m.cost[0] = cost
