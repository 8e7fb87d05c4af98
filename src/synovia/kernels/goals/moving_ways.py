"""Paths between the frames of a clip that keep distances from moving obstacles; ``ways`` is for obstacles at rest.

From one frame to the next, the origin of an obstacle moves on a straight line, and the obstacle rotates by the shortest
rotation, both linearly in time, as all joints do. So the displacement of its points is at most that of its origin, plus
the angle times the distance of its farthest point (its radius). This displacement and the motion of the joints together
bound how much the distance between a link and an obstacle can shrink.
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
    MOVED_OBSTACLE,
    MOVED_RADIUS,
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
from synovia.kernels.tree.problem import copy, open_clear, open_work


@inline
def turn_between(R, S):
    """Return the rotation vector from R to S, in the frame of R."""
    return log_rotation(matmul(transposed(R), S))


@device
def put_between(clear, pieces, before, after, share):
    """Place all moving obstacles at a fraction ``share`` of their paths from one frame to the next."""
    for k in range(after.shape[0]):
        R, p = frame_of(before, k)
        S, to = frame_of(after, k)
        if share >= F(1):
            R, p = S, to
        elif share > F(0):
            R = matmul(R, quat_matrix(quat_exp(scale(share, turn_between(R, S)))))
            p = add(p, scale(share, sub(to, p)))
        put_obstacle(clear, pieces, after[k, MOVED_OBSTACLE], R, p)


@device
def longest_way(before, after):
    """Return an upper bound of the displacement of any point of an obstacle from one frame to the next."""
    most = F(0)
    for k in range(after.shape[0]):
        R, p = frame_of(before, k)
        S, to = frame_of(after, k)
        most = max(most, norm(sub(to, p)) + norm(turn_between(R, S)) * after[k, MOVED_RADIUS])
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
def go_among(problem, frames, body, ways, moved, pieces):
    """Return whether a path among moving obstacles is clear, as ``ways.go`` does for obstacles at rest.

    Args:
        problem: See ``ways.go``.
        frames: See ``ways.go``.
        body: See ``ways.go``.
        ways: The tables of paths. The path leads from ``begin`` to ``end``; ``rest`` is the remaining clearance of each
            pair at ``begin``, and is changed to the remaining clearance at ``end``.
        moved: The moving obstacles at both ends.
        pieces: The pieces of all obstacles.

    Returns:
        Whether each pair keeps at least its clearance ``least``.
    """
    before, after, left, place = moved[0], moved[1], ways.rest, ways.poses[0]
    displace(body, ways.begin, ways.end, ways.steps, ways.sizes)
    drift = longest_way(before, after)
    for u in range(left.shape[0]):
        length, done = nearer(ways.levers, u, ways.sizes), F(0)
        if meets_obstacles(problem.clear, u):
            length += drift
        if left[u] - length > F(0):
            left[u] -= length
            continue
        while done < length and left[u] >= ways.least[u]:
            done = min(done + max(left[u], ways.numbers[SHORTEST]), length)
            shift(body, ways.begin, ways.steps, done / length, place)
            forward(problem.tree, place if done < length else ways.end, frames)
            put_between(problem.clear, pieces, before, after, done / length)
            left[u] = left_of_pair(problem.clear, frames, u, ways.numbers[SEEN])
        if left[u] < ways.least[u]:
            return False
    return True


@entry
def moving_way(ints, floats, scratch, variables, limits, memory, moved, pieces):
    """Return 1 if a path between two frames of a clip among moving obstacles is not clear, else 0.

    A pair that is too near in a frame may be equally near on the paths to and from this frame.

    Args:
        ints: A packed problem with clearance goals, each with a single slot.
        floats: Values of the problem; its obstacles must be where they are at the end of the path.
        scratch: Scratch memory of the problem.
        variables: All variables of the skeleton, each a scalar or a rotation.
        limits: Limits of the variables.
        memory: The tables of paths, see ``layout.WAYS``. The path leads from ``begin`` to ``end``; ``left`` is the
            remaining clearance of each pair at ``begin``, and is changed to the remaining clearance at ``end``.
        moved: The moving obstacles and their frames at both ends, (2, k, 14), see ``layout.MOVED_OBSTACLE``.
        pieces: The pieces of all obstacles, as in ``goals.obstacles.put_obstacles``.
    """
    problem, work = open_clear(ints, floats, scratch), open_work(ints, scratch)
    body = variables, limits, problem.followers, problem.coupling
    ways = open_ways(problem.clear, problem.nq, count_axes(variables), memory)
    if moved.shape[1] == 0:
        return 0
    put_between(problem.clear, pieces, moved[1], moved[1], F(1))
    forward(problem.tree, ways.end, work.frames)
    for u in range(ways.left.shape[0]):
        ways.found[u] = left_of_pair(problem.clear, work.frames, u, ways.numbers[SEEN])
        ways.least[u] = min(ways.left[u], ways.found[u], F(0)) - ways.numbers[SLACK]
    copy(ways.left, ways.rest)
    blocked = not go_among(problem, work.frames, body, ways, moved, pieces)
    put_between(problem.clear, pieces, moved[1], moved[1], F(1))
    copy(ways.found, ways.left)
    return 1 if blocked else 0
