"""How far a limb turns about the line root-tip towards its pole, and what a frame of a clip remembers of that.

Close to the line a pole says little: there the turn φ of ``bend`` shrinks by LEFT τ (1 - s) / s, where s is the share
that fades and τ the tolerance. What is left, s times it, holds, and the turn grows smoothly from none.

In a clip the plane may not spin where a pole passes close to the line. When the part v of the pole across the line has
moved by δ since the frame before, the plane is turned from where it was then by at most

    RATE δ / (|m - r| + |t - m|)

radians: only a pole nearer to the line than a RATE-th of the limb, or one that was left behind there, asks for more.

The row of a pole goal in ``points`` keeps the frame before: v (0-2), the part u of the middle joint across the line
(9-11), and whether it is known (12).
"""

import math

from synovia.kernels.compiler.jit import F, device, inline
from synovia.kernels.goals.general import POLE
from synovia.kernels.goals.pole import limb
from synovia.kernels.layout import ACROSS, BENT, GOAL, KIND, KNOWN
from synovia.kernels.math.bend import FLAT, bend_of
from synovia.kernels.math.swing_twist import wrap
from synovia.kernels.math.vectors import TINY, axpy, cross, dot, load, norm, store, sub
from synovia.kernels.tree.forward import forward

LEFT = F(0.5)
RATE = F(50)  # 3.6 degrees a millimetre on a limb of 0.8 metres
FORGOTTEN, LOOSE, HELD = F(0), F(1), F(2)  # of a pole: no frame before; one before; one before that holds the turn back


@inline
def off_line(v, line):
    """Return the part of v across a line, 0 where the line has no direction."""
    size2 = dot(line, line)
    return axpy(-dot(v, line) / size2, line, v) if size2 > TINY else (F(0), F(0), F(0))


@device
def forget_poles(general, problem, work):
    """Let no pole know a frame before."""
    if general is None:
        return
    for h in range(general.ints.shape[0]):
        if general.ints[h, KIND] == POLE:
            work.points[problem.tree.ints.shape[0] + general.ints[h, GOAL], KNOWN] = FORGOTTEN


@device
def remember_poles(general, problem, work, targets, q):
    """Write what poles need to know of the frame before: its answer q and its targets."""
    if general is None:
        return
    forward(problem.tree, q, work.frames)
    for h in range(general.ints.shape[0]):
        if general.ints[h, KIND] == POLE:
            i = problem.tree.ints.shape[0] + general.ints[h, GOAL]
            r, m, t, pole = limb(problem, work.frames, targets, h)
            u = off_line(sub(m, r), sub(t, r))
            store(work.points, i, ACROSS, off_line(sub(pole, r), sub(t, r)))
            store(work.points, i, BENT, u)
            clear = norm(u) > FLAT * (norm(sub(m, r)) + norm(sub(t, m)))
            work.points[i, KNOWN] = LOOSE if clear else FORGOTTEN


@device
def excess_turn(problem, work, i, r, m, t, pole):
    """Return by how much (radians, signed) the way from the plane of the frame before to the pole is too far."""
    line = sub(t, r)
    before = off_line(load(work.points, i, BENT), line)
    v = off_line(sub(pole, r), line)
    sine = dot(line, cross(before, v)) / math.sqrt(max(dot(line, line), TINY))
    angle = math.atan2(sine, dot(before, v))
    travel = norm(sub(v, load(work.points, i, ACROSS)))
    most = RATE * travel / (norm(sub(m, r)) + norm(sub(t, m)))
    work.points[i, KNOWN] = HELD if abs(angle) > most else LOOSE
    return math.copysign(max(F(0), abs(angle) - most), angle)


@device
def swivel_to_pole(problem, work, targets, h):
    """Return by which angle (radians) the limb of general goal h should turn about its line; work.frames are at q."""
    r, m, t, pole = limb(problem, work.frames, targets, h)
    bend = bend_of(r, m, t, pole)
    if bend.share <= F(0):
        return F(0)
    i = problem.tree.ints.shape[0] + problem.general.ints[h, GOAL]
    angle = bend.angle
    if work.points[i, KNOWN] != FORGOTTEN:
        angle = wrap(angle - excess_turn(problem, work, i, r, m, t, pole))
    slack = LEFT * problem.tolerance_angle * (F(1) - bend.share) / bend.share
    return math.copysign(max(F(0), abs(angle) - slack), angle)


@device
def pole_is_held(problem, work):
    """Return whether a pole is held back by the frame before, so that no start elsewhere can reach it."""
    for h in range(problem.general.ints.shape[0]):
        if problem.general.ints[h, KIND] == POLE:
            if work.points[problem.tree.ints.shape[0] + problem.general.ints[h, GOAL], KNOWN] == HELD:
                return True
    return False
