"""Paths between two poses that keep the distances of clearance goals: conservative advancement, pair by pair.

A goal keeps pairs apart: two links, or a link and all obstacles. The distance of a pair shrinks by at most the motion
of each axis between its links, times the lever of the axis: the distance of the farthest point of a link that the axis
moves. This bound is subtracted from the remaining clearance of the pair. The pair is measured again only if no
clearance remains (Mirtich 1996; Zhang, Lee & Kim 2006).

An axis is a scalar variable, or one of the three components of a rotation vector, in the order of the variables.
"""

import math

from synovia.kernels.compiler.jit import F, apart, device, device_dot, entry, inline
from synovia.kernels.compiler.records import cutter, record
from synovia.kernels.goals.clearance import meet_links, meet_obstacles
from synovia.kernels.layout import (
    AVOIDING,
    BLOCK,
    BLOCK_Q,
    CLEAR_DISTANCE,
    FIRST_LINK_PAIR,
    FIRST_SHAPE,
    FOLLOWER,
    IS_ANGLE,
    LEADER,
    LINK_PAIRS,
    LINK_ROW,
    LOWER,
    SCALAR,
    SECOND_SHAPE,
    SEEN,
    SHORTEST,
    SLACK,
    UPPER,
    WAYS,
)
from synovia.kernels.math.rotations import (
    load_quat,
    quat_conj,
    quat_exp,
    quat_log,
    quat_mul,
    quat_normalize,
    store_quat,
)
from synovia.kernels.math.trigonometry import PI
from synovia.kernels.math.vectors import norm
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.problem import open_clear, open_work
from synovia.kernels.tree.variables import follower_value

Ways = record("Ways", WAYS)
_open_ways = cutter(Ways, WAYS, ("pairs", "axes", "nq"))


@inline
def count_axes(variables):
    """Return the number of axes of some variables."""
    count = 0
    for k in range(variables.shape[0]):
        count += 1 if variables[k, BLOCK] == SCALAR else 3
    return count


@device
def shift(body, q, way, share, out):
    """Write to ``out`` the pose q after the fraction ``share`` of the displacements ``way`` of all axes."""
    variables, _, followers, coupling = body
    i = 0
    for k in range(variables.shape[0]):
        at = variables[k, BLOCK_Q]
        if variables[k, BLOCK] == SCALAR:
            out[at] = q[at] + share * way[i]
            i += 1
            continue
        w = (share * way[i], share * way[i + 1], share * way[i + 2])
        store_quat(out, at, quat_normalize(quat_mul(load_quat(q, at), quat_exp(w))))
        i += 3
    for k in range(followers.shape[0]):
        out[followers[k, FOLLOWER]] = follower_value(coupling, k, out[followers[k, LEADER]])


@device
def displace(body, q, to, way, sizes):
    """Write the displacement ``way`` of each axis from pose q to pose ``to``, on the shorter path, and its size.

    The size of a rotation is its angle, stored on its first axis; the other two axes have size 0.

    Returns:
        The largest size.
    """
    variables, limits, _, _ = body
    i, most = 0, F(0)
    for k in range(variables.shape[0]):
        at = variables[k, BLOCK_Q]
        if variables[k, BLOCK] == SCALAR:
            d = to[at] - q[at]
            endless = limits[k, LOWER] == F(-math.inf) and limits[k, UPPER] == F(math.inf)
            if endless and limits[k, IS_ANGLE] != F(0):
                d -= F(2) * PI * math.floor(d / (F(2) * PI) + F(0.5))
            way[i], sizes[i] = d, abs(d)
            most = max(most, abs(d))
            i += 1
            continue
        w = quat_log(quat_mul(quat_conj(load_quat(q, at)), load_quat(to, at)))
        for c in range(3):
            way[i + c], sizes[i + c] = w[c], F(0)
        sizes[i] = norm(w)
        most = max(most, sizes[i])
        i += 3
    return most


@device_dot
def nearer(levers, u, sizes):
    """Return by how much the distance of pair u decreases at most if each axis moves by its size or less."""
    length = F(0)
    for i in range(sizes.shape[0]):
        length += levers[u, i] * sizes[i]
    return length


@inline
def open_ways(clear, nq, axes, memory):
    """Return the tables of paths in ``memory``, see ``layout.WAYS``."""
    count = 0
    for t in range(clear.ints.shape[0]):
        count += clear.ints[t, LINK_PAIRS] + clear.ints[t, AVOIDING]
    return _open_ways(memory, (count, axes, nq))


@apart
def left_of_pair(clear, frames, u, seen):
    """Return the remaining clearance of pair u: its gap minus the distance of its goal, at most ``seen``.

    The pairs of a goal are pairs of links, then links that avoid its obstacles. Links that no joint moves are skipped.
    """
    t, k = 0, u
    while k >= clear.ints[t, LINK_PAIRS] + clear.ints[t, AVOIDING]:
        k -= clear.ints[t, LINK_PAIRS] + clear.ints[t, AVOIDING]
        t += 1
    distance, links = clear.data[t, CLEAR_DISTANCE], clear.ints[t, LINK_PAIRS]
    if k < links:
        k += clear.ints[t, FIRST_LINK_PAIR]
        a, b = clear.pairs[k, FIRST_SHAPE], clear.pairs[k, SECOND_SHAPE]
        _, gap = meet_links(clear, frames, t, a, b, 0, distance + seen)
    else:
        if clear.links[k - links, LINK_ROW] < 0:
            return seen
        _, gap = meet_obstacles(clear, frames, t, k - links, 0, distance + seen)
    return gap - distance


@device
def go(problem, frames, body, ways, q, to, left):
    """Subtract the bound of a path from the remaining clearance of each pair; measure pairs with no clearance left.

    Args:
        problem: A problem with clearance goals, each with a single slot.
        frames: Scratch memory for world frames.
        body: Variables of the skeleton, their limits, mimic joints and their coupling.
        ways: The tables of paths. The path is rejected where a pair has less clearance than ``least``.
        q: Joint values at the start of the path.
        to: Joint values at the end of the path.
        left: Remaining clearance of each pair at q; changed to a lower bound of the clearance at the end. Infinite for
            ignored pairs.

    Returns:
        Whether each pair keeps at least its clearance ``least``.
    """
    displace(body, q, to, ways.steps, ways.sizes)
    place, at_end = ways.poses[0], False
    for u in range(left.shape[0]):
        if left[u] == F(math.inf):
            continue
        length, done = nearer(ways.levers, u, ways.sizes), F(0)
        if left[u] - length > F(0):
            left[u] -= length
            continue
        while done < length and left[u] >= ways.least[u]:
            done = min(done + max(left[u], ways.numbers[SHORTEST]), length)
            if done < length:
                shift(body, q, ways.steps, done / length, place)
                forward(problem.tree, place, frames)
                at_end = False
            elif not at_end:
                forward(problem.tree, to, frames)
                at_end = True
            left[u] = left_of_pair(problem.clear, frames, u, ways.numbers[SEEN])
        if left[u] < ways.least[u]:
            return False
    return True


@entry
def clear_ways(ints, floats, scratch, variables, limits, memory, q, left):
    """Measure the remaining clearance of each pair at each pose of a clip, and mark paths that are not clear.

    Args:
        ints: A packed problem with clearance goals, each with a single slot.
        floats: Values of the problem.
        scratch: Scratch memory of the problem.
        variables: All variables of the skeleton, each a scalar or a rotation.
        limits: Limits of the variables.
        memory: The tables of paths, see ``layout.WAYS``.
        q: Joint values, (T, nq).
        left: Remaining clearance of each pair in each frame, then 1 if the path to the frame is not clear, else 0,
            (T, pairs + 1); written. A pair that is too near in a frame may be equally near on the paths to and from it.
    """
    problem, work = open_clear(ints, floats, scratch), open_work(ints, scratch)
    body = variables, limits, problem.followers, problem.coupling
    ways = open_ways(problem.clear, problem.nq, count_axes(variables), memory)
    count = left.shape[1] - 1
    for t in range(q.shape[0]):
        forward(problem.tree, q[t], work.frames)
        for u in range(count):
            left[t, u] = left_of_pair(problem.clear, work.frames, u, ways.numbers[SEEN])
        left[t, count] = F(0)
        if t > 0:
            for u in range(count):
                ways.rest[u] = left[t - 1, u]
                ways.least[u] = min(ways.rest[u], left[t, u], F(0)) - ways.numbers[SLACK]
            if not go(problem, work.frames, body, ways, q[t - 1], q[t], ways.rest):
                left[t, count] = F(1)
