"""Ways between the frames of a clip among obstacles that move: as ``ways``, with the motion of obstacles.

From one frame to the next, the origin of an obstacle goes straight, and the obstacle turns by the shortest rotation,
both evenly while all joints move. So none of its points goes farther than its origin does, plus the angle times the
distance of its farthest point (its radius). A link and an obstacle come nearer by no more than that, beyond what the
joints do.
"""

from synovia.kernels.compiler.jit import F, device, entry, inline
from synovia.kernels.goals.obstacles import put_obstacle
from synovia.kernels.goals.ways import count_axes, displace, left_of_pair, nearer, open_ways, shift
from synovia.kernels.layout import (
    AVOIDING,
    FIRST_LINK_PAIR,
    FIRST_SHAPE,
    LINK_PAIRS,
    LINK_ROW,
    SECOND_SHAPE,
    SEEN,
    SHORTEST,
    SLACK,
)
from synovia.kernels.math.rotations import (
    frame_of,
    log_rotation,
    matmul,
    quat_exp,
    quat_matrix,
    transposed,
)
from synovia.kernels.math.vectors import add, norm, scale, sub
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.problem import open_clear, open_work


@inline
def turn_between(R, S):
    """Return the rotation vector from R to S, in the frame of R."""
    return log_rotation(matmul(transposed(R), S))


@device
def put_between(clear, standing, obstacles, before, after, share):
    """Put all obstacles that move at a share of their ways from one frame to the next."""
    for k in range(obstacles.shape[0]):
        R, p = frame_of(before, k)
        S, to = frame_of(after, k)
        if share >= F(1):
            R, p = S, to
        elif share > F(0):
            R = matmul(R, quat_matrix(quat_exp(scale(share, turn_between(R, S)))))
            p = add(p, scale(share, sub(to, p)))
        put_obstacle(clear, standing, obstacles[k], R, p)


@device
def longest_way(before, after, radii):
    """Return how far any point of an obstacle goes from one frame to the next, at most."""
    most = F(0)
    for k in range(radii.shape[0]):
        R, p = frame_of(before, k)
        S, to = frame_of(after, k)
        most = max(most, norm(sub(to, p)) + norm(turn_between(R, S)) * radii[k])
    return most


@device
def meets_obstacles(clear, u):
    """Return whether pair u, in the order of ``left_of_pair``, has an obstacle or a link that no joint moves."""
    t, k = 0, u
    while k >= clear.ints[t, LINK_PAIRS] + clear.ints[t, AVOIDING]:
        k -= clear.ints[t, LINK_PAIRS] + clear.ints[t, AVOIDING]
        t += 1
    if k >= clear.ints[t, LINK_PAIRS]:
        return True
    k += clear.ints[t, FIRST_LINK_PAIR]
    a, b = clear.pairs[k, FIRST_SHAPE], clear.pairs[k, SECOND_SHAPE]
    return clear.links[a, LINK_ROW] < 0 or clear.links[b, LINK_ROW] < 0


@device
def go_among(problem, frames, body, ways, ends, moving, left):
    """Find whether the way between two frames is clear, as ``ways.go`` does, among obstacles that move.

    Args:
        problem: As there.
        frames: As there.
        body: As there.
        ways: As there.
        ends: Joint values in both frames.
        moving: Tables of all obstacles, which of them move, their frames at both ends, and their radii.
        left: As there.

    Returns:
        Whether each pair keeps at least its least.
    """
    q, to = ends
    standing, obstacles, before, after, radii = moving
    displace(body, q, to, ways.steps, ways.sizes)
    drift, place = longest_way(before, after, radii), ways.poses[0]
    for u in range(left.shape[0]):
        length, done = nearer(ways.levers, u, ways.sizes), F(0)
        if meets_obstacles(problem.clear, u):
            length += drift
        if left[u] - length > F(0):
            left[u] -= length
            continue
        while done < length and left[u] >= ways.least[u]:
            done = min(done + max(left[u], ways.numbers[SHORTEST]), length)
            shift(body, q, ways.steps, done / length, place)
            forward(problem.tree, place if done < length else to, frames)
            put_between(problem.clear, standing, obstacles, before, after, done / length)
            left[u] = left_of_pair(problem.clear, frames, u, ways.numbers[SEEN])
        if left[u] < ways.least[u]:
            return False
    return True


@entry
def moving_ways(
    ints, floats, scratch, variables, limits, memory, q, left, obstacles, places, radii,
    spans, shapes, rows, tops, nodes, ball_spans, centers, links,
):  # fmt: skip
    """Measure what is left of each pair in each frame of a clip, and find ways that are not clear, see ``clear_ways``.

    Args:
        ints: As in ``clear_ways``.
        floats: Likewise; obstacles are put elsewhere.
        scratch: Likewise.
        variables: Likewise.
        limits: Likewise.
        memory: Likewise.
        q: Joint values, (T, nq).
        left: As in ``clear_ways``, (T, pairs + 1); written.
        obstacles: The obstacles that move, (k,).
        places: The frame of each in each frame of the clip, (T, k, 12).
        radii: Distance of its farthest point from its origin, (k,).
        spans: As in ``put_obstacles``, and so are the others.
        shapes: Likewise.
        rows: Likewise.
        tops: Likewise.
        nodes: Likewise.
        ball_spans: Likewise.
        centers: Likewise.
        links: Likewise.
    """
    problem, work = open_clear(ints, floats, scratch), open_work(ints, scratch)
    body = variables, limits, problem.followers, problem.coupling
    ways = open_ways(problem.clear, problem.nq, count_axes(variables), memory)
    standing = spans, shapes, rows, tops, nodes, ball_spans, centers, links
    count = left.shape[1] - 1
    for t in range(q.shape[0]):
        put_between(problem.clear, standing, obstacles, places[t], places[t], F(1))
        forward(problem.tree, q[t], work.frames)
        for u in range(count):
            left[t, u] = left_of_pair(problem.clear, work.frames, u, ways.numbers[SEEN])
        left[t, count] = F(0)
        if t > 0:
            for u in range(count):
                ways.rest[u] = left[t - 1, u]
                ways.least[u] = min(ways.rest[u], left[t, u], F(0)) - ways.numbers[SLACK]
            moving = standing, obstacles, places[t - 1], places[t], radii
            if not go_among(problem, work.frames, body, ways, (q[t - 1], q[t]), moving, ways.rest):
                left[t, count] = F(1)
