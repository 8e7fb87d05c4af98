"""A quadratic within bounds: min y·(H + λ) y / 2 - g·y with lower <= y <= upper, by block principal pivoting.

Guess which bounds hold, solve for the rest, then let go of every bound that pulls inward and hold every number beyond
its bound, all at once (Júdice & Pires 1994). A few rounds suffice. Where the number of those that are wrong has not
fallen for some rounds, only the last of them changes (Murty 1974), which cannot run in a circle.
"""

from synovia.kernels.compiler.jit import F, device
from synovia.kernels.layout import BOX_LOWER, BOX_UPPER, HELD, NEXT_HELD
from synovia.kernels.math.linear import solve_ldl

ROUNDS = 60  # most solves; from the second step on one or two are usual
CHANCES = 3  # rounds in a row without progress before the careful rule
SLIP = F(1e-15)  # beyond a bound, radians or reaches, that is rounding


@device
def guess(box, g, near, slack):
    """Hold what touches a bound and is pushed against it by more than ``slack``, which is rounding."""
    for i in range(g.shape[0]):
        box[i, HELD] = F(0)
        if box[i, BOX_UPPER] <= near and g[i] > slack:
            box[i, HELD] = F(1)
        elif box[i, BOX_LOWER] >= -near and g[i] < -slack:
            box[i, HELD] = F(-1)


@device
def free_and_held_gradient(box, g, near, slack):
    """Mark what is held, and return the largest part of g that no bound holds back and the largest that one does."""
    guess(box, g, near, slack)
    left = F(0)
    held = F(0)
    for i in range(g.shape[0]):
        can = abs(min(max(g[i], box[i, BOX_LOWER]), box[i, BOX_UPPER]))
        left = max(left, can)
        held = max(held, abs(g[i]) - can)
    return left, held


@device
def solve_free(H, damping, g, box, K, y):
    """Write y: held numbers at their bounds, the rest from the linear system; return whether that is a minimum."""
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
    solve_ldl(K, y)
    for i in range(n):
        if not K[i, i] > F(0):
            return False
    return True


@device
def judge(H, damping, g, box, y, slack):
    """Write in the box the mark that each number should have; return (how many have another one, the last of them).

    What is free must lie within its bounds; what is held must push against its bound.
    """
    count = 0
    last = 0
    for i in range(g.shape[0]):
        held = box[i, HELD]
        mark = held
        if held == F(0):
            if y[i] > box[i, BOX_UPPER] + SLIP:
                mark = F(1)
            elif y[i] < box[i, BOX_LOWER] - SLIP:
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
    """Write y, from the bounds that the box marks as holding, and mark those that hold in the end; K is overwritten.

    A row of the box is (lower, upper, mark: -1, 0 or 1, room for another mark, ...); ``slack`` is a multiplier of the
    wrong sign that is rounding.

    Returns:
        Whether y is a minimum; if not, H + λ is not positive definite on what is left free.
    """
    n = g.shape[0]
    fewest = n + 1
    chances = CHANCES
    for _ in range(ROUNDS):
        if not solve_free(H, damping, g, box, K, y):
            return False
        count, last = judge(H, damping, g, box, y, slack)
        if count == 0:
            return True
        if count < fewest:
            fewest = count
            chances = CHANCES
        else:
            chances -= 1
        for i in range(n if chances >= 0 else 0):
            box[i, HELD] = box[i, NEXT_HELD]
        box[last, HELD] = box[last, NEXT_HELD]
    for i in range(n):
        y[i] = min(max(y[i], box[i, BOX_LOWER]), box[i, BOX_UPPER])
    return True
