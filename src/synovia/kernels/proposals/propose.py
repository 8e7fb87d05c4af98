"""Learned starts of a problem: find the starts that fit its targets.

The positions and rotations of all targets are features. A binary tree divides the feature space into leaves with equal
numbers of learned targets. Every leaf has a few poses whose goals lie in it: its proposals.

An arm that begins with a hinge reaches a target as well as the same target rotated about that axis. So the azimuth of
the target is left out of the features (``FREE_TURN``), and determines the first joint. If the arm ends with a hinge,
the rotation of the target about that axis is also left out (``FREE_TWIST``). Then four values describe a target that
has six degrees of freedom, and each leaf is far smaller. For such an arm a proposal is a linear function of the
features, so that it follows the target within its leaf: each joint has a value and a slope over each feature. A
proposal that leaves the limits does not fit.

References:
    Bentley (1975), *Multidimensional binary search trees used for associative searching*: the tree.
    Atkeson, Moore & Schaal (1997), *Locally weighted learning*: local linear models of observed data.
"""

import math

from synovia.kernels.compiler.jit import F, apart, device, entry, inline
from synovia.kernels.compiler.records import opener, record, tables_of
from synovia.kernels.compiler.views import stack
from synovia.kernels.goals.frames import goal_frame, local_frame, row_target, set_target, target_frame
from synovia.kernels.layout import (
    BLOCK_Q,
    DIVIDES_BY,
    FIRST_PROPOSAL,
    FREE_TURN,
    FREE_TWIST,
    GIVEN,
    LOWER,
    MOST_FEATURES,
    PARTS,
    POSITION,
    PROPOSAL_FORM,
    PROPOSED_Q,
    ROTATION,
    SEEN_ROTATION,
    UPPER,
)
from synovia.kernels.math.rotations import apply_t, column, frame_of, identity, matmul, matmul_t, transposed, turn_z
from synovia.kernels.math.trigonometry import PI, coarse_arctan2, sincos
from synovia.kernels.math.vectors import dot, sub
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.problem import open_problem, open_work
from synovia.kernels.tree.variables import block_size

ROOMY = F(0.15)  # distance to a limit (radians or length units): joints that begin closer often end at the limit
TURN_SHARE = F(0.25)  # weight of the entries of a rotation in the features; lengths in length scales have weight 1

Learned = record("Learned", tables_of("learned"), "form")
_open = opener(Learned, "learned", (PROPOSAL_FORM,))


@inline
def near_middle(problem, k, x):
    """Return the angle x of hinge k, shifted by multiples of 2π to be nearest to the middle of its limits."""
    low, high = problem.limits[k, LOWER], problem.limits[k, UPPER]
    middle = F(0.5) * (low + high) if high - low < F(math.inf) else F(0)
    return x - F(2) * PI * math.floor((x - middle) / (F(2) * PI) + F(0.5))


@inline
def room(problem, k, x):
    """Return how far x is within the limits of scalar k; negative outside."""
    return min(x - problem.limits[k, LOWER], problem.limits[k, UPPER] - x)


@device
def seen(problem, targets, form):
    """Return the target of an arm in the frame of its base: (azimuth, rotation, position).

    With FREE_TWIST, rotation and position are those of the last row. Both are rotated by minus the azimuth about z.
    """
    T, t = target_frame(targets, 0)
    if form & FREE_TWIST:
        t = row_target(problem, targets, 0)
        T = matmul_t(T, local_frame(problem, 0)[0])
    B, b = frame_of(problem.tree.fixed, 0)
    T, t = matmul(transposed(B), T), apply_t(B, sub(t, b))
    across = math.sqrt(t[0] * t[0] + t[1] * t[1])
    s, c = (t[1] / across, t[0] / across) if across > F(0) else (F(0), F(1))
    Z = turn_z(identity(), s, c)
    return coarse_arctan2(t[1], t[0]), matmul(transposed(Z), T), apply_t(Z, t)


@inline
def put(features, n, v, share):
    """Write a vector times ``share`` as features n to n + 2; return n + 3."""
    for i in range(3):
        features[0, n + i] = share * v[i]
    return n + 3


@device
def write_features(problem, targets, form, features):
    """Write the features of all targets; return their number, and the azimuth and rotation that ``seen`` returns."""
    n = 0
    azimuth, first = F(0), identity()
    for g in range(problem.goals.shape[0]):
        T, t = target_frame(targets, g)
        if form & FREE_TURN:
            azimuth, T, t = seen(problem, targets, form)
            first = T
        if problem.goals[g, PARTS] & POSITION:
            n = put(features, n, t, F(1) / problem.reach)
            if form & FREE_TURN:  # drop the second component, which is 0
                features[0, n - 2] = features[0, n - 1]
                n -= 1
        if problem.goals[g, PARTS] & ROTATION:
            if form & FREE_TWIST:
                n = put(features, n, column(T, 2), TURN_SHARE)
            else:
                n = put(features, n, column(T, 0), TURN_SHARE)
                n = put(features, n, column(T, 1), TURN_SHARE)
    return n, azimuth, first


@inline
def seen_twist(row, T):
    """Return the angle about z that brings the x and y axes of a proposal closest to the x and y axes of T."""
    x = row[SEEN_ROTATION], row[SEEN_ROTATION + 1], row[SEEN_ROTATION + 2]
    y = row[SEEN_ROTATION + 3], row[SEEN_ROTATION + 4], row[SEEN_ROTATION + 5]
    u, v = column(T, 0), column(T, 1)
    return coarse_arctan2(dot(y, u) - dot(x, v), dot(x, u) + dot(y, v))


@inline
def followed(problem, row, form, k, offset, features, n):
    """Return the value of joint k of an arm for a target with n features, and the distance of the value to its limits.

    For the first joint, and for the last joint if the target determines it, ``ROOMY`` is subtracted from the distance.

    Args:
        problem: The problem.
        row: The proposal.
        form: Bits of ``PROPOSAL_FORM``.
        k: The joint.
        offset: Added to the value: the azimuth of the target, the twist of the last joint, or 0.
        features: The features.
        n: Number of features.
    """
    joints = problem.variables.shape[0]
    x = row[PROPOSED_Q + k] + offset
    for i in range(n):
        x += row[PROPOSED_Q + joints + k * n + i] * features[0, i]
    if k == 0 or (k == joints - 1 and form & FREE_TWIST):
        x = near_middle(problem, k, x)
        return x, room(problem, k, x) - ROOMY
    return x, room(problem, k, x)


@device
def place(problem, row, form, azimuth, T, features, n, q):
    """Write the pose of a proposal for a target to q; return its smallest distance to the limits, see ``followed``.

    For bodies other than arms the distance is infinity. If the distance is below -ROOMY, q is unchanged.
    """
    joints = problem.variables.shape[0]
    least = F(math.inf)
    if form & FREE_TURN:
        twist = seen_twist(row, T) if form & FREE_TWIST else F(0)
        for k in range(joints):
            offset = azimuth if k == 0 else (twist if k == joints - 1 else F(0))
            least = min(least, followed(problem, row, form, k, offset, features, n)[1])
        if not least >= -ROOMY:
            return least
        for k in range(joints):
            offset = azimuth if k == 0 else (twist if k == joints - 1 else F(0))
            x = followed(problem, row, form, k, offset, features, n)[0]
            q[problem.variables[k, BLOCK_Q]] = min(max(x, problem.limits[k, LOWER]), problem.limits[k, UPPER])
        return least
    at = PROPOSED_Q
    for k in range(joints):
        for i in range(block_size(problem.variables, k)):
            q[problem.variables[k, BLOCK_Q] + i] = row[at]
            at += 1
    return least


@apart
def propose(ints, floats, problem, targets, skipped, q):
    """Write to q the pose that fits the targets after the first ``skipped`` fitting poses; return whether it exists.

    Args:
        ints: The packed problem, integers.
        floats: The packed problem, float64 values, with learned starts.
        problem: The tables of the problem.
        targets: (goals, 17), complete.
        skipped: Number of fitting poses to skip.
        q: (nq,); values that are not learned are unchanged.
    """
    learned = _open(ints, floats, ())
    features = stack(problem.limits, 1, MOST_FEATURES)
    n, azimuth, T = write_features(problem, targets, learned.form, features)
    leaves = learned.borders.shape[0]
    node = 0
    while node < leaves - 1:
        node = 2 * node + 1 + (1 if features[0, learned.nodes[node, DIVIDES_BY]] > learned.borders[node] else 0)
    leaf = node - leaves + 1
    first = learned.nodes[leaf, FIRST_PROPOSAL]
    end = learned.nodes[leaf + 1, FIRST_PROPOSAL] if leaf + 1 < leaves else learned.rows.shape[0]
    for tight in range(2):  # poses close to a limit come last
        for r in range(first, end):
            least = place(problem, learned.rows[r], learned.form, azimuth, T, features, n, q)
            if (least >= F(0)) != (tight == 1) and least >= -ROOMY:
                if skipped == 0:
                    return True
                skipped -= 1
    return False


@entry
def describe_poses(ints, floats, starts, targets, out, scratch):
    """Write the targets that poses meet, the poses as proposals, and the features of these targets.

    Args:
        ints: The packed problem, integers; only the form of its proposals is read.
        floats: The packed problem, float64 values.
        starts: (B, nq) poses.
        targets: (B, goals, 17) the targets; written.
        out: (B, width of a proposal + features) the proposals, without slopes, then the features; written.
        scratch: Scratch memory.
    """
    problem, work = open_problem(ints, floats), open_work(ints, scratch)
    form = ints[PROPOSAL_FORM]
    features = stack(starts, 1, MOST_FEATURES)
    last = problem.variables.shape[0] - 1
    for b in range(starts.shape[0]):
        q, row = starts[b], out[b]
        forward(problem.tree, q, work.frames)
        for g in range(problem.goals.shape[0]):
            R, p = goal_frame(problem, work.frames, g)
            set_target(targets[b], g, R, p)
            targets[b, g, GIVEN] = problem.goals[g, PARTS]
        n, azimuth, T = write_features(problem, targets[b], form, features)
        if form & FREE_TWIST:
            s, c = sincos(q[problem.variables[last, BLOCK_Q]])
            T = turn_z(T, -s, c)
        for i in range(3):
            row[SEEN_ROTATION + i], row[SEEN_ROTATION + 3 + i] = column(T, 0)[i], column(T, 1)[i]
        at = PROPOSED_Q
        for k in range(last + 1):
            for i in range(block_size(problem.variables, k)):
                row[at] = q[problem.variables[k, BLOCK_Q] + i]
                at += 1
        if form & FREE_TURN:
            row[PROPOSED_Q] -= azimuth
        if form & FREE_TWIST:
            row[PROPOSED_Q + last] = F(0)
        for i in range(n):
            row[row.shape[0] - n + i] = features[0, i]
    return 0


@entry
def place_proposals(ints, floats, targets, rows, starts, rooms):
    """Write the pose of each proposal for its own target, and the distance of the pose to the limits.

    Args:
        ints: The packed problem, integers; only the form of its proposals is read.
        floats: The packed problem, float64 values.
        targets: (B, goals, 17).
        rows: (B, ...) proposals.
        starts: (B, nq) the poses; written. Values that are not learned are unchanged, and all values of a pose that is
            too far beyond its limits (see ``place``).
        rooms: (B,) the distances that ``place`` returns; written.
    """
    problem = open_problem(ints, floats)
    form = ints[PROPOSAL_FORM]
    features = stack(starts, 1, MOST_FEATURES)
    for b in range(starts.shape[0]):
        n, azimuth, T = write_features(problem, targets[b], form, features)
        rooms[b] = place(problem, rows[b], form, azimuth, T, features, n, starts[b])
    return 0


@entry
def first_proposals(ints, floats, targets, starts):
    """Write the first pose that fits each target, (B, goals, 17), to ``starts``, (B, nq); other rows are unchanged."""
    problem = open_problem(ints, floats)
    for b in range(starts.shape[0]):
        propose(ints, floats, problem, targets[b], 0, starts[b])
    return 0
