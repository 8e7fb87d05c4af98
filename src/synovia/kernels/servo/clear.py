"""Check that a tick keeps the distances of clearance goals, during the tick and while the body then brakes.

A pair that is too near already must not come nearer than its largest distance since then, within the slack: the table
``least`` is stored from tick to tick.
"""

import math

from synovia.kernels.compiler.jit import F, device, entry, inline
from synovia.kernels.goals.ways import displace, go, left_of_pair, nearer, open_ways, shift
from synovia.kernels.layout import ADVANCE, AXIS_VELOCITY, PROPOSE, SEEN, SLACK, STOP, WAY_TIME
from synovia.kernels.servo.axis import plan_of
from synovia.kernels.servo.stop import extremes
from synovia.kernels.servo.tick import take_tick
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.problem import copy, open_clear, open_work

MOST_TICKS = F(4)  # most ticks between two checked poses of a braking body
DOUBLED = 64  # after each such number of checked poses, the time between them doubles
STILL = F(1e-6)  # radians, length units: a body that moves by less is at rest
LEAST = F(1e-300)  # avoids division by zero


@inline
def copy_state(axes, to):
    """Copy the state of all axes."""
    for i in range(axes.shape[0]):
        copy(axes[i], to[i])


@device
def write_braking(axes, sizes):
    """Write the largest displacement of each axis while it brakes; return the largest of all."""
    most = F(0)
    for i in range(axes.shape[0]):
        _, lowest, highest, _, _ = extremes(plan_of(axes[i]))
        sizes[i] = max(-lowest, highest)
        most = max(most, sizes[i])
    return most


@device
def add_turns(axes, sizes):
    """Add to ``sizes`` the overshoot, there and back, of axes that reverse while braking (with a limit of the jerk)."""
    for i in range(axes.shape[0]):
        end, lowest, highest, _, _ = extremes(plan_of(axes[i]))
        sizes[i] += F(2) * max(min(F(0), end) - lowest, highest - max(F(0), end))


@device
def forget_far(levers, sizes, rest):
    """Set ``rest`` to infinity for pairs that no motion within ``sizes`` brings too near; return how many remain."""
    count = 0
    for u in range(rest.shape[0]):
        if rest[u] < F(math.inf) and rest[u] > nearer(levers, u, sizes):
            rest[u] = F(math.inf)
        count += 1 if rest[u] < F(math.inf) else 0
    return count


@device
def few_ticks(axes, ways, h):
    """Return how many ticks of time h a braking body may take between checks, so that ``far_enough`` probably holds."""
    for i in range(axes.shape[0]):
        ways.sizes[i] = abs(axes[i, AXIS_VELOCITY]) * h
    ticks = MOST_TICKS
    for u in range(ways.rest.shape[0]):
        if ways.rest[u] < F(math.inf):
            ticks = min(ticks, ways.rest[u] / max(nearer(ways.levers, u, ways.sizes), LEAST))
    return max(F(math.floor(ticks)), F(1))


@device
def far_enough(problem, frames, body, ways, q, to):
    """Return whether no pair comes too near between two poses of a braking body, by the margins at both poses.

    From either end, a pair comes nearer by no more than its bound. The margins at the end are written to ``found``.
    """
    displace(body, q, to, ways.steps, ways.sizes)
    add_turns(ways.saved, ways.sizes)
    forward(problem.tree, to, frames)
    for u in range(ways.rest.shape[0]):
        ways.found[u] = ways.rest[u]
        if ways.rest[u] < F(math.inf):
            ways.found[u] = left_of_pair(problem.clear, frames, u, ways.numbers[SEEN])
            if ways.rest[u] + ways.found[u] - nearer(ways.levers, u, ways.sizes) < F(2) * ways.least[u]:
                return False
    return True


@entry
def tick_is_clear(ints, floats, scratch, variables, limits, memory, axes):
    """Return 1 if a tick and braking after it keep the distances of clearance goals, else 0.

    If they do, ``left`` is updated to the margin of each pair after the tick.

    Args:
        ints: A packed problem with clearance goals, each with a single slot.
        floats: Its numbers.
        scratch: Its scratch memory.
        variables: All variables of the skeleton.
        limits: Their limits.
        memory: The tables ``layout.WAYS``: the tick goes from the commands ``begin`` to ``end``.
        axes: The state of all axes after the tick.
    """
    if axes.shape[0] == 0:
        return 1
    problem, work = open_clear(ints, floats, scratch), open_work(ints, scratch)
    body = variables, limits, problem.followers, problem.coupling
    ways = open_ways(problem.clear, problem.nq, axes.shape[0], memory)
    h, slack, seen = ways.numbers[WAY_TIME], ways.numbers[SLACK], ways.numbers[SEEN]
    rest, here = ways.rest, ways.end
    last, place = ways.poses[1], ways.poses[2]  # poses of the robot
    shift(body, ways.begin, ways.offset, F(1), last)
    shift(body, here, ways.offset, F(1), place)
    copy(ways.left, rest)
    if not go(problem, work.frames, body, ways, last, place, rest):
        return 0
    copy(rest, ways.after)
    write_braking(axes, ways.sizes)
    if forget_far(ways.levers, ways.sizes, rest) > 0:
        forward(problem.tree, place, work.frames)
        for u in range(rest.shape[0]):
            if rest[u] < F(math.inf):
                rest[u] = ways.after[u] = left_of_pair(problem.clear, work.frames, u, seen)
    moves = forget_far(ways.levers, ways.sizes, rest) > 0
    if moves:
        copy_state(axes, ways.trial)
    longer, poses = F(1), 0
    while moves:
        ticks = few_ticks(ways.trial, ways, longer * h)
        copy(place, last)
        copy(here, ways.begin)
        copy_state(ways.trial, ways.saved)
        while True:
            step = ticks * longer * h
            take_tick(body, ways.trial, ways.begin, ways.begin, ways.begin, here, step, PROPOSE | ADVANCE | STOP)
            shift(body, here, ways.offset, F(1), place)
            if far_enough(problem, work.frames, body, ways, last, place):
                copy(ways.found, rest)
                break
            if ticks == F(1):
                if go(problem, work.frames, body, ways, last, place, rest):
                    break
                return 0
            ticks = F(1)
            copy_state(ways.saved, ways.trial)
        moved = displace(body, ways.begin, here, ways.steps, ways.sizes)
        moves = max(moved, write_braking(ways.trial, ways.sizes)) >= STILL
        moves = moves and forget_far(ways.levers, ways.sizes, rest) > 0
        poses += 1
        if poses % DOUBLED == 0:
            longer *= F(2)
    copy(ways.after, ways.left)
    for u in range(rest.shape[0]):
        ways.least[u] = max(ways.least[u], min(ways.left[u], F(0)) - slack)
    return 1
