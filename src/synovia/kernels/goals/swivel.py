"""Swivel angle of a limb about its line root-tip towards its pole, also from frame to frame of a clip.

Close to the line, the pole hardly defines a plane. There the angle φ of ``bend`` shrinks by
TOLERANCE_SHARE τ (1 - s) / s, where s is the fade and τ the tolerance. So the remaining faded error is within the
tolerance, and the angle grows smoothly from 0.

In a clip, the plane must not spin when a pole passes close to the line. If the part v of the pole normal to the line
has moved by δ since the previous frame, the plane turns from its previous direction by at most

    RATE δ / (|m - r| + |t - m|)

radians. This limits only poles nearer to the line than 1 / RATE of the limb's length, and poles that were limited there
before.

The row of a pole goal in ``points`` stores the previous frame: v (ACROSS), the part u of the middle joint normal to the
line (BENT), and one of the states below (KNOWN).
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

TOLERANCE_SHARE = F(0.5)  # fraction of the tolerance that may remain as faded error
RATE = F(50)  # factor of the largest rotation of the plane: 3.6 degrees per millimetre on a limb of 0.8 metres
NO_FRAME, LOOSE, HELD = F(0), F(1), F(2)  # states: no previous frame; one that does not limit rotation; one that does


@inline
def reject_line(v, line):
    """Return the part of v normal to a line, 0 if the line has no direction."""
    size2 = dot(line, line)
    return axpy(-dot(v, line) / size2, line, v) if size2 > TINY else (F(0), F(0), F(0))


@device
def forget_poles(general, problem, work):
    """Discard the previous frame of all poles."""
    if general is None:
        return
    for term in range(general.ints.shape[0]):
        if general.ints[term, KIND] == POLE:
            work.points[problem.tree.ints.shape[0] + general.ints[term, GOAL], KNOWN] = NO_FRAME


@device
def remember_poles(general, problem, work, targets, q):
    """Store the present frame, with its answer q and its targets, as the previous frame of all poles."""
    if general is None:
        return
    forward(problem.tree, q, work.frames)
    for term in range(general.ints.shape[0]):
        if general.ints[term, KIND] == POLE:
            i = problem.tree.ints.shape[0] + general.ints[term, GOAL]
            r, m, t, pole = limb(problem, work.frames, targets, term)
            u = reject_line(sub(m, r), sub(t, r))
            store(work.points, i, ACROSS, reject_line(sub(pole, r), sub(t, r)))
            store(work.points, i, BENT, u)
            clear = norm(u) > FLAT * (norm(sub(m, r)) + norm(sub(t, m)))
            work.points[i, KNOWN] = LOOSE if clear else NO_FRAME


@device
def excess_turn(work, i, r, m, t, pole):
    """Return by how much (radians, signed) the rotation from the previous plane to the pole exceeds its maximum.

    Store in ``points`` whether the maximum is exceeded, for ``pole_is_held``.
    """
    line = sub(t, r)
    before = reject_line(load(work.points, i, BENT), line)
    v = reject_line(sub(pole, r), line)
    sine = dot(line, cross(before, v)) / math.sqrt(max(dot(line, line), TINY))
    angle = math.atan2(sine, dot(before, v))
    travel = norm(sub(v, load(work.points, i, ACROSS)))
    most = RATE * travel / (norm(sub(m, r)) + norm(sub(t, m)))
    work.points[i, KNOWN] = HELD if abs(angle) > most else LOOSE
    return math.copysign(max(F(0), abs(angle) - most), angle)


@device
def swivel_to_pole(problem, work, targets, term):
    """Return the angle (radians) by which the limb of a term should rotate about its line. work.frames are at q.

    If there is a previous frame, store in ``work.points`` whether it limits the rotation.
    """
    r, m, t, pole = limb(problem, work.frames, targets, term)
    bend = bend_of(r, m, t, pole)
    if bend.fade <= F(0):
        return F(0)
    i = problem.tree.ints.shape[0] + problem.general.ints[term, GOAL]
    angle = bend.angle
    if work.points[i, KNOWN] != NO_FRAME:
        angle = wrap(angle - excess_turn(work, i, r, m, t, pole))
    slack = TOLERANCE_SHARE * problem.tolerance_angle * (F(1) - bend.fade) / bend.fade
    return math.copysign(max(F(0), abs(angle) - slack), angle)


@device
def pole_is_held(problem, work):
    """Return whether the previous frame limits the rotation to a pole; other starts cannot reach such a pole either."""
    for term in range(problem.general.ints.shape[0]):
        if problem.general.ints[term, KIND] == POLE:
            if work.points[problem.tree.ints.shape[0] + problem.general.ints[term, GOAL], KNOWN] == HELD:
                return True
    return False
