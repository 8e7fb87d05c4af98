"""A level that is missed, by Newton's method: its rows alone do not say what holds it.

An arm that is stretched towards a place out of reach has no row that forbids its elbow to bend, though bending takes it
farther away. What forbids it is the second derivative: the pull that is left, times how the goals' rows turn. With it
the level is the quadratic g·p - p·(GᵀG + C) p / 2 within the bounds, and the directions that C stiffens are closed to
the levels below; so nothing flickers at the edge of reach (Pfeiffer, Escande & Rabiee 2018 add second derivatives to a
hierarchy in the same place). C counts the pull of the levels above as well, since their rows turn with the step, too.
"""

import math

from synovia.kernels.compiler.jit import F, apart, apart_dot
from synovia.kernels.hierarchy.basis import (
    BENT,
    FREE,
    GRADIENT,
    LOCKED,
    MOVE,
    PLACE,
    SEALED,
    SIDE,
    STALE,
    STEP,
    STIFF,
    TRIES,
    add_row,
    dot_rows,
    extend,
    harden,
    lock,
)
from synovia.kernels.hierarchy.levels import (
    advance,
    missing,
    multipliers,
    own_rows,
    release,
)
from synovia.kernels.hierarchy.step import derive, place
from synovia.kernels.layout import BLOCK, BLOCK_COLUMN, BLOCK_Q, IS_ANGLE, SCALAR
from synovia.kernels.math.linear import solve_part, times_t, transpose
from synovia.kernels.math.rotations import load_quat, quat_exp, quat_mul, quat_normalize, store_quat
from synovia.kernels.tree.chart import add_chart_curvature, to_box
from synovia.kernels.tree.problem import copy

NUDGE = F(3e-5)  # radians or reaches, for central differences of the pull: right to 1e-9
SOFT = F(1e-5)  # of the pull: stiffness below which a direction counts as free
TINY = F(1e-12)
TIED = F(1e-12)  # added to the rows' products where forces are shared among rows that depend on each other
MOST_CHANGES = 40  # of the active set, which the level's rows alone have found before
PRESSED = F(1e-7)  # multiplier, of the largest gradient, above which no lower level lets go of a bound
FAINT = F(1e-10)  # multiplier, of the pull, that is rounding where no gradient is left


@apart
def forces(h, first, last):
    """Write into s the pull that is left of rows first to last, and what the rows above hold it with: Gᵀ s = 0.

    The pull must be in s already; ``A`` and ``c`` are overwritten.
    """
    free, n = int(h.now[FREE]), h.v.shape[1]
    for k in range(n):
        h.v[GRADIENT, k] = F(0)
    for i in range(first, last):
        add_row(h.v, GRADIENT, h.s[i], h.G, i, n)
    for i in range(first):
        for j in range(i + 1):
            h.A[i, j] = h.holds[i] * h.holds[j] * dot_rows(h.G, i, h.G, j, free)
        h.A[i, i] += TIED
        h.c[i] = -h.holds[i] * dot_rows(h.G, i, h.v, GRADIENT, free)
    solve_part(h.A, h.c, first)
    for i in range(first):
        h.s[i] = h.c[i]
    for i in range(last, h.G.shape[0]):
        h.s[i] = F(0)


@apart
def nudge(problem, q, v, size):
    """Turn or shift column v of q, whatever its limits; only for differences."""
    for k in range(problem.variables.shape[0]):
        c = v - problem.variables[k, BLOCK_COLUMN]
        at = problem.variables[k, BLOCK_Q]
        if problem.variables[k, BLOCK] == SCALAR and c == 0:
            q[at] += size if problem.limits[k, IS_ANGLE] != F(0) else size * problem.reach
        elif problem.variables[k, BLOCK] != SCALAR and 0 <= c < 3:
            w = (size if c == 0 else F(0), size if c == 1 else F(0), size if c == 2 else F(0))
            store_quat(q, at, quat_normalize(quat_mul(load_quat(q, at), quat_exp(w))))


@apart
def turning(problem, work, targets, q, h):
    """Write H = -∂(Jᵀs)/∂q in the directions of the box: the second derivative of what the pull s does, symmetrised.

    By central differences, so that it holds for every goal; frames and J are those of q again afterwards.
    """
    n = work.H.shape[0]
    for v in range(n):
        for side in range(2):
            copy(q, work.trial)
            nudge(problem, work.trial, v, NUDGE if side == 0 else -NUDGE)
            place(problem, work.trial, work.frames)
            derive(problem, work.trial, work.frames, targets, work.J, h)
            times_t(work.J, h.s, work.dq if side == 0 else work.g)
        for j in range(n):
            work.H[v, j] = F(0.5) * (work.g[j] - work.dq[j]) / NUDGE
    place(problem, q, work.frames)
    derive(problem, q, work.frames, targets, work.J, h)
    times_t(work.J, h.s, work.dq)
    for i in range(n):
        for j in range(i):
            mean = F(0.5) * (work.H[i, j] + work.H[j, i])
            work.H[i, j] = mean
            work.H[j, i] = mean
    for _ in range(2):
        to_box(problem, work.box, work.H)
        transpose(work.H)
    add_chart_curvature(problem, q, work.box, work.dq, work.H)


@apart_dot
def model(h, H, first, last, base):
    """Write into A the level's second derivatives over the columns that may move, less what the rows above hold."""
    free = int(h.now[FREE])
    for i in range(free):
        a = int(h.v[PLACE, i])
        u = F(1) / h.v[STIFF, i]
        for j in range(i + 1):
            b = int(h.v[PLACE, j])
            h.A[i, j] = u * H[a, b] / h.v[STIFF, j] if max(a, b) < H.shape[0] else F(0)  # walls do not bend
    for r in range(first, last):
        for i in range(free):
            u = h.G[r, i]
            for j in range(i + 1):
                h.A[i, j] += u * h.G[r, j]
    for i in range(free):
        for j in range(i):
            h.A[j, i] = h.A[i, j]
    for b in range(base):
        far = F(0)
        for i in range(free):
            h.c[i] = dot_rows(h.A, i, h.B, b, free)
            far += h.c[i] * h.B[b, i]
        for i in range(free):
            u = h.c[i] - F(0.5) * far * h.B[b, i]
            w = h.B[b, i]
            for j in range(free):
                h.A[i, j] -= u * h.B[b, j] + w * (h.c[j] - F(0.5) * far * h.B[b, j])


@apart
def stiff_rows(h, kept, smallest):
    """Write rows R with Rᵀ R = A where A is stiffer than ``smallest``: Cholesky with the largest pivot first.

    They stand after the first ``kept`` rows. Directions in which A falls are left out.

    Returns:
        The number of rows of R.
    """
    free, n = int(h.now[FREE]), h.v.shape[1]
    count = kept
    while count < n:
        p = -1
        most = smallest
        for i in range(free):
            if h.A[i, i] > most:
                most = h.A[i, i]
                p = i
        if p < 0:
            break
        u = F(1) / math.sqrt(most)
        for k in range(n):
            h.R[count, k] = F(0)
        for i in range(free):
            h.R[count, i] = u * h.A[p, i]
        for i in range(free):
            add_row(h.A, i, -h.R[count, i], h.R, count, free)
        h.A[p, p] = F(0)
        count += 1
    return count


@apart
def slope(h, H, first, last):
    """Write GRADIENT = Gᵀ s - C x, with which the level still pulls at the step x."""
    n = h.v.shape[1]
    missing(h, first, last)
    for k in range(n):
        h.v[GRADIENT, k] = F(0)
    for i in range(first, last):
        add_row(h.v, GRADIENT, h.s[i], h.G, i, n)
    for i in range(n):
        a = int(h.v[PLACE, i])
        total = F(0)
        for j in range(n if a < H.shape[0] else 0):
            b = int(h.v[PLACE, j])
            if b < H.shape[0]:
                total += H[a, b] * h.v[STEP, j] / h.v[STIFF, j]
        h.v[GRADIENT, i] -= total / h.v[STIFF, i]


@apart
def loosen(h, first, last, kept, stiff):
    """Let the rows of a missed level hold nothing where fewer directions than they span are stiff.

    An error that turns with the body changes its rows and not its length.
    """
    h.now[BENT] = F(kept)
    h.now[STALE] = F(1)
    lock(h, first)
    if own_rows(h, first, last) - int(h.now[LOCKED]) > stiff:
        for i in range(first, last):
            h.holds[i] = F(0)


@apart
def newton_level(h, H, first, last, damping, most, pull):
    """Move x to the minimum of a missed level whose rows turn by H; close what holds it to the levels below."""
    n = h.v.shape[1]
    kept = int(h.now[BENT])
    soft = SOFT * pull + TINY
    h.now[STALE] = F(1)
    for k in range(n):
        h.v[TRIES, k] = F(0)
    count = kept
    for change in range(MOST_CHANGES):
        h.now[BENT] = F(kept)
        lock(h, first)
        base = int(h.now[LOCKED])
        free = int(h.now[FREE])
        model(h, H, first, last, base)
        count = stiff_rows(h, kept, soft)
        top = base
        for i in range(count - kept):
            for a in range(count - kept):
                h.L[kept + i, a] = F(0)
            top = extend(h.B, h.R, h.L, kept + i, free, base, top, F(0))
        r = top - base
        slope(h, H, first, last)
        for a in range(r):
            h.c[a] = dot_rows(h.B, base + a, h.v, GRADIENT, free)
            for b in range(a + 1):
                u = damping if a == b else F(0)
                for i in range(count - kept):
                    u += h.L[kept + i, a] * h.L[kept + i, b]
                h.A[a, b] = u
        solve_part(h.A, h.c, r)
        for k in range(n):
            h.v[MOVE, k] = F(0)
        for a in range(r):
            add_row(h.v, MOVE, h.c[a], h.B, base + a, free)
        h.now[BENT] = F(count)
        ended = advance(h, most)
        if ended == 1:
            continue
        harden(h)
        if ended == 0 and int(h.now[FREE]) < n:
            h.now[BENT] = F(kept)
            lock(h, first)
            h.now[BENT] = F(count)
            slope(h, H, first, last)
            scale = multipliers(h, int(h.now[LOCKED]))
            if release(h, scale, change == 0) > 0:
                continue
            for k in range(int(h.now[FREE]), n):
                if h.v[SIDE, k] * h.v[GRADIENT, k] > max(PRESSED * scale, FAINT * pull):
                    h.v[SEALED, k] = F(1)
        break
    harden(h)
    loosen(h, first, last, kept, count - kept)
    for r in range(kept, count):
        for k in range(n):
            h.R[r, k] /= math.sqrt(soft)  # what is left of a row is then told from rounding (see ``lock``)
    h.now[BENT] = F(count)
    h.now[STALE] = F(1)
