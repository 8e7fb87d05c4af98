"""Ways between two poses that keep the distances of clearance goals: conservative advancement, pair by pair.

What a goal keeps apart are pairs: two links, or a link and all obstacles. A pair comes nearer by no more than the axes
between its links move, times the distance of the farthest point of a link that each carries (its lever). What is left
of the distance of a pair is used up by that, and only a pair that has used it up is measured again (Mirtich 1996;
Zhang, Lee & Kim 2006).

An axis is a number that moves, or one of the three components of a rotation vector, in the order of the variables.
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
    """Write joint values that are away from q by a share of how far each axis goes."""
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
    """Write how far each axis goes between two poses, by the shorter way, and the size of that.

    A rotation has the size of its whole turn on its first axis, 0 on the others.

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
    """Return by how much pair u comes nearer at most if each axis moves by no more than its size."""
    length = F(0)
    for i in range(sizes.shape[0]):
        length += levers[u, i] * sizes[i]
    return length


@inline
def open_ways(clear, nq, axes, memory):
    """Open the tables of ways, see ``layout.WAYS``."""
    count = 0
    for t in range(clear.ints.shape[0]):
        count += clear.ints[t, LINK_PAIRS] + clear.ints[t, AVOIDING]
    return _open_ways(memory, (count, axes, nq))


@apart
def left_of_pair(clear, frames, u, seen):
    """Return how much more than its distance pair u is apart, at most ``seen``.

    The pairs of a goal are those of links, then links that avoid its obstacles. A link that no joint moves avoids none.
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
    """Subtract from what is left of each pair what a way may use up, and measure the pairs that have nothing left.

    Args:
        problem: A problem with clearance goals, each with a single slot.
        frames: Scratch memory for world frames.
        body: Variables of the skeleton, their limits, mimic joints and their coupling.
        ways: The tables of ways; the way ends where less than ``least`` is left of a pair.
        q: Joint values where the way begins.
        to: Joint values where it ends.
        left: What is left of each pair at q; changed to what is left at the end, at least. Infinite for a pair that
            does not count.

    Returns:
        Whether each pair keeps at least its least.
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
    """Measure what is left of each pair at each pose of a clip, and find ways between them that are not clear.

    Args:
        ints: A packed problem with clearance goals, each with a single slot.
        floats: Its numbers.
        scratch: Its scratch memory.
        variables: All variables of the skeleton, each a number of joint values or a rotation.
        limits: Their limits.
        memory: The tables of ways, see ``layout.WAYS``.
        q: Joint values, (T, nq).
        left: What is left of each pair in each frame, then 1 if the way to the frame is not clear, else 0,
            (T, pairs + 1); written. A pair that is too near in a frame may be as near on the ways to and from it.
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
