"""Solve a quadratic program with bounds, min y·(H + λ) y / 2 - g·y for lower <= y <= upper, by block pivoting.

Mark the bounds that may be active and solve for the free unknowns. Then release every bound with a multiplier of the
wrong sign, and hold every unknown beyond its bound, all at once (Júdice & Pires 1994). A few rounds suffice. If the
number of wrong marks does not fall for some rounds, change only the last one (Murty 1974), which cannot cycle.
"""

from synovia.kernels.compiler.jit import F, device
from synovia.kernels.layout import BOX_LOWER, BOX_UPPER, HELD, NEXT_HELD
from synovia.kernels.math.linear import solve_ldl

ROUNDS = 60  # largest number of solves in a step; after the first step of a descent, one or two are usual
PATIENCE = 3  # rounds in a row without progress before marks change one by one
ROUNDING = F(1e-15)  # excess over a bound (radians or length scales) that counts as rounding


@device
def mark_held(box, g, near, slack):
    """Mark the unknowns at a bound against which g pushes by more than ``slack`` (rounding)."""
    for i in range(g.shape[0]):
        box[i, HELD] = F(0)
        if box[i, BOX_UPPER] <= near and g[i] > slack:
            box[i, HELD] = F(1)
        elif box[i, BOX_LOWER] >= -near and g[i] < -slack:
            box[i, HELD] = F(-1)


@device
def free_and_held_gradient(box, g, near, slack):
    """Mark the active bounds; return the largest entry of g that no bound holds back, and the largest held back."""
    mark_held(box, g, near, slack)
    free = F(0)
    held = F(0)
    for i in range(g.shape[0]):
        allowed = abs(min(max(g[i], box[i, BOX_LOWER]), box[i, BOX_UPPER]))
        free = max(free, allowed)
        held = max(held, abs(g[i]) - allowed)
    return free, held


@device
def solve_free(H, damping, g, box, K, y):
    """Write y: held unknowns are at their bounds, the others solve the linear system. Return whether y is a minimum."""
    n = g.shape[0]
    for i in range(n):
        if box[i, HELD] != F(0):
            y[i] = box[i, BOX_UPPER] if box[i, HELD] > F(0) else box[i, BOX_LOWER]
            for j in range(i):
                K[i, j] = F(0)
            K[i, i] = F(1)
            continue
        y[i] = g[i]
        for j in range(n):
            held = box[j, HELD]
            if held != F(0):
                y[i] -= H[i, j] * (box[j, BOX_UPPER] if held > F(0) else box[j, BOX_LOWER])
            if j < i:
                K[i, j] = F(0) if held != F(0) else H[i, j]
        K[i, i] = H[i, i] + damping
    solve_ldl(K, y, n)
    for i in range(n):
        if not K[i, i] > F(0):
            return False
    return True


@device
def check_marks(H, damping, g, box, y, slack):
    """Write the correct mark of each unknown (NEXT_HELD); return the number of wrong marks and the last of them.

    A free unknown must be within its bounds. The gradient must push a held unknown against its bound.
    """
    count = 0
    last = 0
    for i in range(g.shape[0]):
        held = box[i, HELD]
        mark = held
        if held == F(0):
            if y[i] > box[i, BOX_UPPER] + ROUNDING:
                mark = F(1)
            elif y[i] < box[i, BOX_LOWER] - ROUNDING:
                mark = F(-1)
        else:
            push = g[i] - damping * y[i]
            for j in range(g.shape[0]):
                push -= H[i, j] * y[j]
            if held * push < -slack:
                mark = F(0)
        box[i, NEXT_HELD] = mark
        if mark != held:
            count += 1
            last = i
    return count, last


@device
def bounded_step(H, damping, g, box, K, y, slack):
    """Write the minimum y, starting with the active bounds that the box marks, and mark the final ones. K is scratch.

    A multiplier of the wrong sign counts as rounding up to the size ``slack``.

    Returns:
        Whether y is a minimum; if not, H + λ is not positive definite on the free unknowns.
    """
    n = g.shape[0]
    fewest = n + 1
    patience = PATIENCE
    for _ in range(ROUNDS):
        if not solve_free(H, damping, g, box, K, y):
            return False
        count, last = check_marks(H, damping, g, box, y, slack)
        if count == 0:
            return True
        if count < fewest:
            fewest = count
            patience = PATIENCE
        else:
            patience -= 1
        for i in range(n if patience >= 0 else 0):
            box[i, HELD] = box[i, NEXT_HELD]
        box[last, HELD] = box[last, NEXT_HELD]
    for i in range(n):
        y[i] = min(max(y[i], box[i, BOX_LOWER]), box[i, BOX_UPPER])
    return True
