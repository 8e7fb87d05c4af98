"""A hand that follows 21 tracked points frame by frame: targets of its fingers, pinches, and the step of the pursuit.

The goals are those of ``retargeting.hands.follower``: F tips, F directions of last segments, and F - 1 pinches, the
tips of the other fingers in the frame of the thumb tip. Each frame is solved first without pinches: the free pose. An
active pinch has the vector from the thumb tip in the free pose as its target, shortened by the closed share of the
pinch. If tips nearly touch but the tracked tips are far apart, the target is a vector that keeps them clear. In all
other frames the pose of the hand equals the free pose.
"""

import math

from synovia.kernels.compiler.jit import F, device, entry, inline
from synovia.kernels.compiler.records import cutter, record
from synovia.kernels.goals.frames import goal_frame, target_frame
from synovia.kernels.layout import (
    BEFORE_Q,
    BLOCK,
    BLOCK_Q,
    FINGER_APART,
    FINGER_CLOSED,
    FINGER_ERROR,
    FINGER_FREE,
    FINGER_GAP,
    FINGER_NARROW,
    FINGER_NUMBERS,
    FINGER_POINT,
    FINGER_SEEN,
    FINGER_SHARE,
    FOLLOWS,
    FREE_Q,
    HAND_AWAY,
    HAND_BEGIN,
    HAND_CLEAR,
    HAND_CLOSED,
    HAND_GRIPS,
    HAND_IS_FREE,
    HAND_METRE,
    HAND_MIRROR,
    HAND_OFF,
    HAND_ON_PALM,
    HAND_OPEN,
    HAND_OPENING,
    HAND_PINCH,
    HAND_PLACE,
    HAND_Q,
    HAND_SCALE,
    HAND_SIDE,
    HAND_TOUCH,
    HAND_UNSEEN,
    HAND_WIDTH,
    HELD_BACK,
    NO_PALM,
    OFF_TARGET,
    OPEN_PINCH,
    PURSUIT_SETTINGS,
    SCALAR,
    TARGET_WIDTH,
    Table,
)
from synovia.kernels.math.rotations import apply, apply_t, matmul_t
from synovia.kernels.math.vectors import add, cross, dot, load, norm, scale, store, sub
from synovia.kernels.pursuit.follow import open_pursuit, pursue_frame
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.problem import copy, open_general, open_work
from synovia.kernels.tree.variables import step_unit

LANDMARKS = 21
# The packed hand
TABLES = (
    Table("numbers", (HAND_WIDTH,)),  # settings, and the placement of the points on the hand
    Table("landmarks", (LANDMARKS, 3)),  # the tracked points; NaN for points that are not seen
    Table("confidence", (LANDMARKS,)),  # confidence of each point, above 0 if the point is seen
    Table("fingers", ("fingers", FINGER_NUMBERS)),  # one row for each finger, the thumb first
    Table("targets", ("goals", TARGET_WIDTH)),  # targets of a frame; those of other goals and gripper tips are given
    Table("weights", ("goals",)),
    Table("settings", (2, PURSUIT_SETTINGS)),  # settings of a frame without pinches, and with pinches
    Table("q", (3, "values")),  # the poses FREE_Q, HAND_Q and BEFORE_Q
)
SIZES = ("fingers", "goals", "values")
_open = cutter(record("PackedHand", TABLES), TABLES, SIZES)

WRIST, INDEX, MIDDLE, RING, LITTLE = 0, 5, 9, 13, 17  # tracked points: the wrist, and the knuckles of four fingers
AS_FAR = F(0.999)  # fraction of its largest move from which a joint counts as held back
SAME = F(1e-3)  # radians, length units: if the poses with and without pinches differ by less, they become one again
IN_LINE = F(1e-6)  # smaller angles (radians) between the line of the knuckles and the wrist's direction are rounding
LEAST = F(1e-12)  # smallest distance between tips (length units), to avoid division by 0
NEVER = F(math.inf)


@inline
def is_seen(landmarks, confidence, k):
    """Return whether a point is seen."""
    x, y, z = load(landmarks, k, 0)
    return abs(x) < NEVER and abs(y) < NEVER and abs(z) < NEVER and confidence[k] > F(0)


@inline
def unit_of(a):
    """Return the unit vector of a; NaN if a has length 0."""
    length = norm(a)
    return scale(F(1) / length if length > F(0) else F(math.nan), a)


@device
def palm_of(landmarks, side):
    """Return the frame (R, p) of the palm as in ``hands.landmarks``; NaN if wrist and knuckles are in line."""
    first, second = load(landmarks, INDEX, 0), load(landmarks, MIDDLE, 0)
    third, last = load(landmarks, RING, 0), load(landmarks, LITTLE, 0)
    mean = scale(F(0.25), add(add(first, second), add(third, last)))
    across = add(sub(first, last), scale(F(1) / F(3), sub(second, third)))
    y = unit_of(sub(mean, load(landmarks, WRIST, 0)))
    z = cross(across, y)
    z = unit_of(z) if norm(z) > IN_LINE * norm(across) else (F(math.nan), F(math.nan), F(math.nan))
    z = scale(side, z)
    x = cross(y, z)
    return (x[0], y[0], z[0], x[1], y[1], z[1], x[2], y[2], z[2]), mean


@device
def laid(landmarks, hand):
    """Return the matrix A and the point o that lay a tracked point x on the hand.

    Relative to the origin of the hand's frame, x is at HAND_SCALE · A (x - o).
    """
    h = HAND_PLACE
    R = (
        hand[h], hand[h + 1], hand[h + 2], hand[h + 3], hand[h + 4], hand[h + 5], hand[h + 6], hand[h + 7], hand[h + 8],
    )  # fmt: skip
    if hand[HAND_ON_PALM] == F(0):
        return R, load(landmarks, WRIST, 0)
    P, o = palm_of(landmarks, hand[HAND_SIDE])
    m = hand[HAND_MIRROR]
    return matmul_t((m * R[0], R[1], R[2], m * R[3], R[4], R[5], m * R[6], R[7], R[8]), P), o


@device
def aim(landmarks, confidence, hand, fingers, targets, weights):
    """Write the targets of a frame and their weights, without pinches; return whether the points define a palm.

    A finger that is not seen keeps its last target, so that it holds its pose.
    """
    for k in (WRIST, INDEX, MIDDLE, RING, LITTLE):
        if not is_seen(landmarks, confidence, k):
            return False
    A, o = laid(landmarks, hand)
    if not abs(A[0] + A[1] + A[2] + o[0] + o[1] + o[2]) < NEVER:
        return False
    count = fingers.shape[0]
    grips = hand[HAND_GRIPS] > F(0)
    thumb = int(fingers[0, FINGER_POINT])
    for k in range(count):
        end = int(fingers[k, FINGER_POINT])
        sees = is_seen(landmarks, confidence, end) and is_seen(landmarks, confidence, end - 1)
        fingers[k, FINGER_SEEN] = F(1) if sees else F(0)
        if sees:
            tip = load(landmarks, end, 0)
            if not grips:
                set_place(targets, k, add(load_origin(hand), scale(hand[HAND_SCALE], apply(A, sub(tip, o)))))
            set_place(targets, count + k, apply(A, sub(tip, load(landmarks, end - 1, 0))))
        both = k > 0 and sees and fingers[0, FINGER_SEEN] > F(0)
        apart = norm(sub(load(landmarks, end, 0), load(landmarks, thumb, 0))) / hand[HAND_METRE]
        fingers[k, FINGER_APART] = apart if both else NEVER
        weight = F(1) if sees else hand[HAND_UNSEEN]
        weights[k], weights[count + k] = weight, F(0) if grips else weight
        if k > 0:
            weights[2 * count + k - 1] = F(0)
    return True


@inline
def load_origin(hand):
    """Return the origin of the hand's frame."""
    return hand[HAND_PLACE + 9], hand[HAND_PLACE + 10], hand[HAND_PLACE + 11]


@inline
def set_place(targets, g, p):
    """Write the target position of goal g."""
    t = targets[g]
    t[3], t[7], t[11] = p


@device
def close(hand, fingers):
    """Update the closed share of each pinch; return whether any pinch is active."""
    begun = False
    for k in range(1, fingers.shape[0]):
        begun = begun or fingers[k, FINGER_SHARE] > F(0) or fingers[k, FINGER_APART] < hand[HAND_BEGIN]
    if not begun:
        return False
    on = False
    for k in range(1, fingers.shape[0]):
        apart = fingers[k, FINGER_APART]
        closed = apart < (hand[HAND_OPEN] if fingers[k, FINGER_CLOSED] > F(0) else hand[HAND_CLOSED])
        u = min(max((hand[HAND_BEGIN] - apart) / (hand[HAND_BEGIN] - hand[HAND_CLOSED]), F(0)), F(1))
        wanted = F(1) if closed else u * u * (F(3) - F(2) * u)
        fingers[k, FINGER_CLOSED] = F(1) if closed else F(0)
        fingers[k, FINGER_SHARE] = max(wanted, fingers[k, FINGER_SHARE] - hand[HAND_OPENING])
        on = on or fingers[k, FINGER_SHARE] > F(0)
    return on


@device
def measure_free(problem, frames, hand, fingers):
    """Write the vectors to the other tips in the frame of the thumb tip; return whether any tip must keep clear."""
    R, thumb = goal_frame(problem, frames, 0)
    near = False
    for k in range(1, fingers.shape[0]):
        free = apply_t(R, sub(goal_frame(problem, frames, k)[1], thumb))
        store(fingers, k, FINGER_FREE, free)
        near = near or (is_away(hand, fingers, k) and norm(free) < hand[HAND_CLEAR])
    return near


@inline
def is_away(hand, fingers, k):
    """Return whether a tracked tip is clearly away from the tracked thumb tip."""
    return hand[HAND_AWAY] < fingers[k, FINGER_APART] < NEVER


@device
def pinch(hand, fingers, targets, weights):
    """Write the targets of pinches and their weights; return whether any pinch is active."""
    count, on = fingers.shape[0], False
    for k in range(1, count):
        free, share = load(fingers, k, FINGER_FREE), fingers[k, FINGER_SHARE]
        far = max(norm(free), LEAST)
        left, works = F(1) - share, share > F(0)
        if is_away(hand, fingers, k):
            most = max(F(1) - hand[HAND_CLEAR] / far, F(0))
            left, works = F(1) - min(share, most), min(share, most) > F(0)
            if far < hand[HAND_CLEAR]:
                left, works = hand[HAND_CLEAR] / far, True
        set_place(targets, 2 * count + k - 1, scale(left, free))
        weights[2 * count + k - 1] = hand[HAND_PINCH] if works else F(0)
        on = on or works
    return on


@inline
def is_held_back(problem, before, q):
    """Return whether a hinge or slide moves between two poses by its largest move per frame."""
    for k in range(problem.variables.shape[0]):
        if problem.variables[k, BLOCK] == SCALAR:
            at = problem.variables[k, BLOCK_Q]
            if abs(q[at] - before[at]) >= AS_FAR * problem.moves[k] * step_unit(problem.limits, k, problem.reach):
                return True
    return False


@device
def judge(problem, frames, hand, fingers, targets, before, q):
    """Write the errors and gaps of fingers at q, whose frames are given; return the outcome of the frame."""
    _, thumb = goal_frame(problem, frames, 0)
    total, seen, widest = F(0), F(0), F(-1)
    for k in range(fingers.shape[0]):
        tip = goal_frame(problem, frames, k)[1]
        off = sub(tip, target_frame(targets, k)[1])
        fingers[k, FINGER_ERROR] = math.sqrt(dot(off, off)) if fingers[k, FINGER_SEEN] > F(0) else F(0)
        fingers[k, FINGER_GAP] = max(norm(sub(tip, thumb)) - fingers[k, FINGER_NARROW], F(0))
        total += fingers[k, FINGER_ERROR]
        seen += fingers[k, FINGER_SEEN]
        if fingers[k, FINGER_CLOSED] > F(0):
            widest = max(widest, fingers[k, FINGER_GAP])
    if is_held_back(problem, before, q):
        return HELD_BACK
    if widest >= F(0):  # pinching fingers leave their tracked targets
        return OPEN_PINCH if widest > hand[HAND_TOUCH] else FOLLOWS
    return OFF_TARGET if total > hand[HAND_OFF] * max(seen, F(1)) else FOLLOWS


@inline
def farthest(a, b):
    """Return the largest absolute difference of the entries of two vectors."""
    most = F(0)
    for i in range(a.shape[0]):
        most = max(most, abs(a[i] - b[i]))
    return most


@inline
def open_hand(problem, count, hand):
    """Return the tables of the packed hand of ``count`` fingers."""
    return _open(hand, (count, problem.goals.shape[0], problem.nq))


@device
def pose(problem, work, p, h, closing):
    """Move the free pose and the pose of the hand towards the targets of a frame; ``closing``: any pinch is active."""
    copy(h.q[HAND_Q], h.q[BEFORE_Q])
    pursue_frame(problem, work, p, h.targets, h.weights, h.settings[0], h.q[FREE_Q])
    near = measure_free(problem, work.frames, h.numbers, h.fingers)
    if h.numbers[HAND_IS_FREE] > F(0) and not closing and not near:
        copy(h.q[FREE_Q], h.q[HAND_Q])
        return
    on = pinch(h.numbers, h.fingers, h.targets, h.weights)
    pursue_frame(problem, work, p, h.targets, h.weights, h.settings[1 if on else 0], h.q[HAND_Q])
    h.numbers[HAND_IS_FREE] = F(0)
    if not on and farthest(h.q[HAND_Q], h.q[FREE_Q]) <= SAME:
        copy(h.q[HAND_Q], h.q[FREE_Q])
        h.numbers[HAND_IS_FREE] = F(1)


@entry
def aim_hand(ints, floats, count, hand):
    """Write the targets of the fingers in a frame, without pinches; see ``step_hand``. Return 1 if there is a palm."""
    h = open_hand(open_general(ints, floats), count, hand)
    return 1 if aim(h.landmarks, h.confidence, h.numbers, h.fingers, h.targets, h.weights) else 0


@entry
def step_hand(ints, floats, count, hand, memory, scratch):
    """Follow the tracked points of one frame.

    Args:
        ints: The packed problem, see ``tree.problem``.
        floats: Values of the problem; ``moves`` are the largest moves per frame.
        count: Number of fingers.
        hand: The packed hand, the tables of ``TABLES``: landmarks and confidence are given; poses, targets, weights
            and the state of the fingers are written.
        memory: Scratch memory of ``pursue``.
        scratch: Scratch memory of the problem.

    Returns:
        The outcome of the frame, see ``layout.NO_PALM``; without a palm nothing moves.
    """
    problem, work = open_general(ints, floats), open_work(ints, scratch)
    h = open_hand(problem, count, hand)
    if not aim(h.landmarks, h.confidence, h.numbers, h.fingers, h.targets, h.weights):
        return NO_PALM
    p = open_pursuit(problem, memory)
    pose(problem, work, p, h, close(h.numbers, h.fingers))
    return judge(problem, work.frames, h.numbers, h.fingers, h.targets, h.q[BEFORE_Q], h.q[HAND_Q])


@entry
def follow_hand(ints, floats, count, hand, memory, scratch, table, states):
    """Follow the targets of a clip frame by frame, with pinches whose closed shares are known.

    Args:
        ints: See ``step_hand``, also for the next five arguments.
        floats: Values of the problem.
        count: Number of fingers.
        hand: The packed hand.
        memory: Scratch memory of ``pursue``.
        scratch: Scratch memory of the problem.
        table: (T, goals, 17) targets; those of pinches are written.
        states: (T, goals + 2 count + nq): weights of goals, of which those of pinches are written; closed shares; and
            distances of the tracked tips from the thumb's, metres. The poses are written after them.
    """
    problem, work = open_general(ints, floats), open_work(ints, scratch)
    h, p = open_hand(problem, count, hand), open_pursuit(problem, memory)
    goals = problem.goals.shape[0]
    for t in range(table.shape[0]):
        for g in range(goals):
            copy(table[t, g], h.targets[g])
            h.weights[g] = states[t, g]
        closing = False
        for k in range(count):
            h.fingers[k, FINGER_SHARE], h.fingers[k, FINGER_APART] = states[t, goals + k], states[t, goals + count + k]
            closing = closing or (k > 0 and h.fingers[k, FINGER_SHARE] > F(0))
        pose(problem, work, p, h, closing)
        for g in range(2 * count, 3 * count - 1):
            copy(h.targets[g], table[t, g])
            states[t, g] = h.weights[g]
        copy(h.q[HAND_Q], states[t, goals + 2 * count :])


@entry
def judge_hand(ints, floats, count, hand, scratch):
    """Return the outcome of a frame whose pose was changed after ``step_hand``, where the arguments are described."""
    problem, work = open_general(ints, floats), open_work(ints, scratch)
    h = open_hand(problem, count, hand)
    forward(problem.tree, h.q[HAND_Q], work.frames)
    return judge(problem, work.frames, h.numbers, h.fingers, h.targets, h.q[BEFORE_Q], h.q[HAND_Q])
