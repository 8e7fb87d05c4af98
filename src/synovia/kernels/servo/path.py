"""The path of all targets, and its coordinate s: the goals are held at the targets at s while s moves.

Between waypoints, positions go straight and rotations by the shortest way. Corners are rounded: with the change D of
the velocity per s at a corner, the path is displaced by D a ψ(s / a), where s is counted from the corner and a is its
arm. ψ + max(x, 0) is the integral of a smooth step, so that the second derivative of the path is continuous.

The coordinate is the last axis of the body, without limits of its own. The rows of a tick are J dq = path' ds. A tick
begins with the next sample of the known stop, which ends on the path. It then adds the fastest motion along the path
that the limits of all joints leave, if a stop on the path exists after it. So the known stop looks ahead.

References:
    Bobrow, Dubowsky & Gibson (1985), *Time-optimal control of robotic manipulators along specified paths*.
"""

from synovia.kernels.compiler.jit import F, apart, device, inline
from synovia.kernels.goals.residuals import complete_targets
from synovia.kernels.layout import (
    TRANSFORM_WIDTH,
)
from synovia.kernels.math.rotations import matmul, quat_exp, quat_matrix
from synovia.kernels.servo import (
    ALONG_BEGIN,
    ALONG_POSE,
    PATH_ARM,
    PATH_GOAL,
    PATH_GOAL_WIDTH,
    PATH_PLACE,
    PATH_TURN,
    PATH_WAY,
)
from synovia.kernels.servo.places import place_of, progress, write_place


@inline
def follows_path(held):
    """Return whether the goals are held at the targets on a path."""
    return held[12][0].shape[0] > 0


@inline
def corner_cut(x):
    """Return ψ(x), by which a corner of arm 1 is displaced."""
    x = abs(x)
    if x >= F(1):
        return F(0)
    return F(0.75) * (F(0.5) * x * x - x * x * x * x / F(12)) - F(0.5) * x + F(0.1875)


@device
def path_vector(path, first, segment, from_corner, s):
    """Return two vectors: the displacement since the first waypoint of a segment, and that by rounded corners.

    ``first`` is the column of the derivative of a goal's position or rotation.
    """
    x = from_corner * path[segment, first]
    y = from_corner * path[segment, first + 1]
    z = from_corner * path[segment, first + 2]
    u = v = w = F(0)
    for k in range(1, path.shape[0] - 1):
        arm = path[k, PATH_ARM]
        if path[k, PATH_PLACE] - s > path[0, PATH_ARM]:  # the longest arm
            break
        if arm > F(0) and abs(s - path[k, PATH_PLACE]) < arm:
            cut = arm * corner_cut((s - path[k, PATH_PLACE]) / arm)
            u += cut * (path[k, first] - path[k - 1, first])
            v += cut * (path[k, first + 1] - path[k - 1, first + 1])
            w += cut * (path[k, first + 2] - path[k - 1, first + 2])
    return (x, y, z), (u, v, w)


@apart
def write_path(path, s, out):
    """Write the targets at the coordinate s to the first goals of a table."""
    segment = 0
    while segment < path.shape[0] - 2 and path[segment + 1, PATH_PLACE] <= s:
        segment += 1
    past = min(s, path[path.shape[0] - 1, PATH_PLACE]) - path[segment, PATH_PLACE]
    for g in range((path.shape[1] - PATH_GOAL) // PATH_GOAL_WIDTH):
        at = PATH_GOAL + g * PATH_GOAL_WIDTH
        for i in range(TRANSFORM_WIDTH):
            out[g, i] = path[segment, at + i]
        way, cut = path_vector(path, at + PATH_WAY, segment, past, s)
        for i in range(3):
            out[g, 4 * i + 3] += way[i] + cut[i]
        turn, bend = path_vector(path, at + PATH_TURN, segment, past, s)
        if turn[0] == F(0) and turn[1] == F(0) and turn[2] == F(0):
            if bend[0] == F(0) and bend[1] == F(0) and bend[2] == F(0):
                continue
        a = path[segment, at:]
        R = (a[0], a[1], a[2], a[4], a[5], a[6], a[8], a[9], a[10])
        R = matmul(matmul(R, quat_matrix(quat_exp(turn))), quat_matrix(quat_exp(bend)))
        for i in range(3):
            for j in range(3):
                out[g, 4 * i + j] = R[3 * i + j]


@device
def aim_along(held):
    """Write the complete targets at the path coordinate of a pose with known frames; without a path, keep targets."""
    problem, work, tick, (path, along) = held[0], held[1], held[3], held[12]
    if path.shape[0] > 0:
        write_path(path, along[ALONG_POSE], tick.given)
        complete_targets(problem, work.frames, tick.given, tick.aimed)


@device
def go_to(held, variables, stop, t, jerk, out):
    """Write the pose of a stop after a time to ``out`` (nq,), and note its coordinate."""
    write_place(variables, stop, t, jerk, out)
    along = held[12][1]
    r, g = progress(stop, t)
    along[ALONG_POSE] = along[ALONG_BEGIN] + place_of(stop, stop.way.shape[0] - 1, r, g, jerk)
