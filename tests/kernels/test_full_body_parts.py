"""A step of a full body, part by part: what is written into the hierarchy, and what each of its rules promises."""

import itertools

import numpy as np
import pytest

import synovia as sy
from beyond import beyond_limits
from parts import Parts
from probes import random_q
from synovia.kernels import layout
from synovia.kernels.compiler.jit import perform
from synovia.kernels.compiler.views import matrix
from synovia.kernels.hierarchy import finish, inequalities, largest_move, newton, polish, soft_edge, step
from synovia.kernels.hierarchy.levels import solve_levels
from synovia.kernels.layout import (
    ACTIVE_SIDE,
    POSE_COLUMN,
    REFERENCE,
    STEP_LOWER,
    STEP_STIFFNESS,
    STEP_UPPER,
)
from synovia.kernels.search.finish import BEST
from synovia.kernels.tree import chart
from trees import random_tree

pytestmark = pytest.mark.parts


class Body(Parts):
    """A problem of a full body with its hierarchy."""

    def __init__(self, skeleton, goals, q=None, **settings):
        """Open both."""
        root = "free" if skeleton.joints[0].kind is sy.Kind.FREE else "fixed"
        super().__init__(skeleton, goals, sy.FullBody(**settings), q, root)
        self.h = finish.open_hierarchy(self.problem, self.work)
        self.h.saved_pose[:] = 0.0
        largest_move.save_pose(self.problem, self.q, self.h.saved_pose)

    def evaluate(self, q=None):
        """Write the errors of the levels; return the largest error in tolerances."""
        return step.evaluate_levels(self.problem, self.work, self.targets, self.q if q is None else q, self.h)

    def assemble(self):
        """Write rows, bounds and references."""
        self.evaluate()
        self.h.e[:] = self.work.e
        step.assemble_levels(self.problem, self.work, self.targets, self.q, self.h)

    def by_column(self, row):
        """Return one of the vectors of the columns, slacks last, in their order."""
        out = np.empty(self.h.v.shape[1])
        out[self.h.v[POSE_COLUMN].astype(int)] = row
        return out


def turn(q):
    """Return a quaternion as a rotation."""
    return sy.Rotation.from_quat(np.asarray(q, float))


def chain(lengths=(1.0, 1.0), begin=(0.0, 0.0, 0.0), **given):
    """Return hinges about z in a row along x, with a tip."""
    joints, at = [], 0.0
    for i, length in enumerate(lengths):
        rest = np.eye(4)
        rest[:3, 3] = (at, 0, 0) if i else begin
        joints.append(sy.Joint(f"j{i}", f"j{i - 1}" if i else None, sy.Kind.HINGE, rest, axis=(0, 0, 1), **given))
        at = length
    rest = np.eye(4)
    rest[0, 3] = at
    return sy.Skeleton([*joints, sy.Joint("tip", joints[-1].name, sy.Kind.FIXED, rest)])


def tree_body(seed, goals=None, free=False, **settings):
    """Return a random tree with goals in three levels, and a posture."""
    rng = np.random.default_rng(seed)
    body = random_tree(rng, joints=8, free=free, limits=True, mimic=bool(seed % 2))
    if goals is None:
        goals = [
            sy.PositionGoal("j7", rng.normal(size=3), priority=0),
            sy.RotationGoal("j6", turn(rng.normal(size=4)).as_matrix(), priority=1),
            sy.PositionGoal("j4", rng.normal(size=3), priority=2, weight=0.3),
            sy.RestGoal(weight=0.5),
        ]
    return rng, Body(body, goals, random_q(body, rng), **settings)


# --- rows, bounds and references ------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_rows_are_the_derivative_of_the_residuals(seed):
    """A small step within the bounds changes each residual by minus the rows' product with it, in every column."""
    rng = np.random.default_rng(seed)
    skeleton = random_tree(rng, joints=8, free=bool(seed % 2), limits=True, mimic=bool(seed % 2))
    q = random_q(skeleton, rng)
    goals = [
        sy.PositionGoal("j7", rng.normal(size=3), offset=rng.normal(size=3), priority=0),
        sy.RotationGoal("j6", sy.Pose(skeleton, q).transform("j6")[:3, :3], priority=1),  # exact at its target alone
        sy.PositionGoal("j4", rng.normal(size=3), priority=2, weight=0.3),
        sy.RestGoal(weight=0.5),
    ]
    body = Body(skeleton, goals, q)
    body.assemble()
    e, h = body.residual(), body.h
    n = body.work.J.shape[1]
    for k in range(n):
        v = int(h.v[POSE_COLUMN, k])
        ends = []
        for side in (-1e-6, 1e-6):
            if not h.v[STEP_LOWER, k] <= side <= h.v[STEP_UPPER, k]:
                side = 0.0
            y = np.zeros(n)
            y[v] = side / h.v[STEP_STIFFNESS, k]
            ends.append((side, body.residual(body.moved(y))))
        (low, before), (high, after) = ends
        if high > low:
            np.testing.assert_allclose(-h.G[:, k] * (high - low), after - before, atol=2e-10)
    np.testing.assert_allclose(h.e, e, atol=1e-15)
    np.testing.assert_array_equal(h.constrains[: len(e)], 1.0)


@pytest.mark.parametrize("seed", range(4))
def test_a_step_to_its_bounds_stays_within_the_limits_and_uses_them(seed):
    """Bounds of hinges and slides are what is left to their limits; columns at a bound that pushes out are fixed."""
    rng, body = tree_body(seed)
    variables, limits = body.problem.variables, body.problem.limits
    pushed = body.q.copy()
    for k in range(len(variables)):  # some at a bound
        if variables[k, layout.BLOCK] == layout.SCALAR and rng.random() < 0.6:
            at = variables[k, layout.BLOCK_Q]
            pushed[at] = limits[k, rng.choice([layout.LOWER, layout.UPPER])]
            if not np.isfinite(pushed[at]):
                pushed[at] = 0.0
    body.q[:] = pushed
    body.assemble()
    h = body.h
    free = int(h.state[layout.FREE_COUNT])
    gradient = h.G.T @ h.e
    for k in range(h.v.shape[1]):
        low, high = h.v[STEP_LOWER, k], h.v[STEP_UPPER, k]
        assert low <= 0.0 <= high
        outwards = (high < 1e-9 and (gradient[k] > 1e-12 or h.v[REFERENCE, k] > 1e-12)) or (
            low > -1e-9 and (gradient[k] < -1e-12 or h.v[REFERENCE, k] < -1e-12)
        )
        assert outwards == (k >= free)
        assert h.v[ACTIVE_SIDE, k] == (0 if k < free else 1 if high < 1e-9 and not h.v[ACTIVE_SIDE, k] < 0 else -1)
    for k in range(len(variables)):
        if variables[k, layout.BLOCK] != layout.SCALAR:
            continue
        unit = 1.0 if limits[k, layout.IS_ANGLE] else 1.0 / body.problem.reach
        at, v = variables[k, layout.BLOCK_Q], variables[k, layout.BLOCK_COLUMN]
        column = int(np.flatnonzero(h.v[POSE_COLUMN] == v)[0])
        stiff = h.v[STEP_STIFFNESS, column]
        assert h.v[STEP_UPPER, column] / stiff == pytest.approx(unit * (limits[k, layout.UPPER] - body.q[at]))
        assert h.v[STEP_LOWER, column] / stiff == pytest.approx(unit * (limits[k, layout.LOWER] - body.q[at]))


@pytest.mark.parametrize("seed", range(4))
def test_the_reference_leads_to_the_posture(seed):
    """A whole step to the reference ends at the posture; each joint goes the share of its weight."""
    rng = np.random.default_rng(seed)
    skeleton = random_tree(rng, joints=8, limits=True, mimic=False)
    wanted = skeleton.random_pose(seed + 1)
    moving = [j.name for j in skeleton.joints if j.kind is not sy.Kind.FIXED]
    goals = [sy.PositionGoal("j7", (1.0, 2.0, 3.0))]
    goals += [sy.RestGoal(pose=wanted, joints=[name], weight=1.0 + i % 2) for i, name in enumerate(moving)]
    body = Body(skeleton, goals, random_q(skeleton, rng))
    total = step.write_references(body.problem, body.q, body.h)
    variables, posture = body.problem.variables, body.problem.posture
    largest = posture[:, layout.REST_WEIGHT].max()
    y, far = np.zeros(body.work.J.shape[1]), 0.0
    for k in range(len(variables)):
        w = posture[k, layout.REST_WEIGHT] / largest
        v = variables[k, layout.BLOCK_COLUMN]
        for c in range(1 if variables[k, layout.BLOCK] == layout.SCALAR else 3):
            whole = body.h.v[REFERENCE, v + c] * (w + step.STAY_WEIGHT) / w
            y[v + c] = whole
            far += w * whole**2
            assert body.h.v[STEP_STIFFNESS, v + c] == pytest.approx(np.sqrt(w + step.STAY_WEIGHT))
    assert total == pytest.approx(np.sqrt(far))
    there = sy.Pose(skeleton, body.moved(y))
    for k in range(len(variables)):
        at = variables[k, layout.BLOCK_Q]
        if variables[k, layout.BLOCK] == layout.SCALAR:
            assert there.q[at] == pytest.approx(wanted.q[at], abs=1e-9)
        else:
            left = turn(there.q[at : at + 4]).inv() * turn(wanted.q[at : at + 4])
            assert left.magnitude() < 1e-7
    body.h.state[layout.NO_POSTURE] = 1.0
    assert step.write_references(body.problem, body.q, body.h) == 0.0
    np.testing.assert_array_equal(body.h.v[REFERENCE, : len(y)], 0.0)
    np.testing.assert_array_equal(body.h.v[STEP_STIFFNESS, : len(y)], 1.0)


def test_a_joint_without_a_posture_stays():
    """Joints that no rest goal names are drawn nowhere, and stand for little beside those that are."""
    arm = chain((1.0, 1.0, 1.0))
    wanted = sy.Pose(arm, np.array([0.3, 0.4, 0.5]))
    goals = [sy.PositionGoal("tip", (1, 1, 0)), sy.RestGoal(pose=wanted, joints=["j1"])]
    body = Body(arm, goals, np.array([0.1, 0.1, 0.1]))
    step.write_references(body.problem, body.q, body.h)
    assert body.h.v[REFERENCE, 1] == pytest.approx(0.3, rel=0.02)
    np.testing.assert_array_equal(body.h.v[REFERENCE, [0, 2]], 0.0)
    assert 0.0 < body.h.v[STEP_STIFFNESS, 0] < 0.2 * body.h.v[STEP_STIFFNESS, 1]


@pytest.mark.parametrize("seed", range(6))
def test_the_way_to_a_rotation_in_a_balls_own_coordinates(seed):
    """A step by what ``ball_reference`` says ends at the wanted rotation, with limits and without."""
    rng = np.random.default_rng(seed)
    limits = [None, sy.SwingTwist.about(rng.normal(size=3), x=(1.1, 1.7), y=(1.4, 0.9), twist=(-1.0, 1.2))]
    for limit in limits:
        skeleton = sy.Skeleton([sy.Joint("b", None, sy.Kind.BALL, limit=limit)])
        body = Body(skeleton, [sy.PositionGoal("b", (0, 0, 1), offset=(0, 0, 1))], skeleton.random_pose(seed).q)
        wanted = skeleton.random_pose(seed + 9).q
        y = step.ball_reference(body.problem.limits, 0, tuple(body.q), tuple(wanted))
        assert (turn(body.moved(y)).inv() * turn(wanted)).magnitude() < 1e-7


def twisting(angle):
    """Return a ball whose swing is limited and whose twist has no ends, at a twist; it may twist by 0.1 radians."""
    skeleton = sy.Skeleton([sy.Joint("b", None, sy.Kind.BALL, limit=sy.SwingTwist(x=(1.0, 1.0), y=(1.0, 1.0)))])
    goals = [sy.PositionGoal("b", (0, 0, 1), offset=(0, 0, 1))]
    return Body(skeleton, goals, twisted(angle), largest_move=0.1, attempts=1)


def twisted(angle):
    """Return a rotation about z as a quaternion."""
    return sy.Rotation.from_euler("z", angle).as_quat()


@pytest.mark.parametrize(("first", "wanted"), [(3.1, -3.0), (-3.0, 3.1), (0.2, 0.4)])
def test_a_twist_without_ends_goes_the_shorter_way(first, wanted):
    """Over half a turn too: to a posture, and back to the largest move."""
    body = twisting(first)
    y = step.ball_reference(body.problem.limits, 0, tuple(body.q), tuple(twisted(wanted)))
    assert np.linalg.norm(y) == pytest.approx(abs((wanted - first + np.pi) % (2 * np.pi) - np.pi))
    body.q[:] = twisted(wanted)
    largest_move.enforce_largest_move(body.problem, body.q, body.h.saved_pose)
    assert (turn(twisted(first)).inv() * turn(body.q)).magnitude() == pytest.approx(0.1, abs=1e-6)
    assert (turn(body.q).inv() * turn(twisted(wanted))).magnitude() == pytest.approx(np.linalg.norm(y) - 0.1, abs=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_errors_of_levels_are_the_lengths_of_their_residuals(seed):
    """Each level has the root of its sum of squares; the last number is that of the posture."""
    _, body = tree_body(seed)
    worst = body.evaluate()
    e, edges = body.residual(), body.problem.levels
    lengths = [np.linalg.norm(e[a:b]) for a, b in itertools.pairwise(edges)]
    np.testing.assert_allclose(body.h.errors[: len(lengths)], lengths, rtol=1e-12)
    assert body.h.errors[len(lengths)] == step.write_references(body.problem, body.q, body.h)
    ratio = body.errors() / [body.problem.tolerance, body.problem.tolerance_angle]
    assert worst == pytest.approx(ratio.max())


@pytest.mark.parametrize("seed", range(3))
def test_a_step_lowers_the_first_level_that_is_missed_and_keeps_the_limits(seed):
    """With a few steps the highest level falls; the step's length is that of its longest part."""
    _, body = tree_body(seed)
    first = None
    for _ in range(6):
        body.evaluate()
        if first is None:
            first = body.h.errors[0]
        before = body.q.copy()
        size = step.take_step(*body.call, body.h, len(body.problem.levels), 0.0)
        assert size == np.abs(body.work.dq).max() <= 0.5 * len(body.problem.levels)
        np.testing.assert_allclose(body.q, moved_from(body, before, body.work.dq), atol=1e-12)
    body.evaluate()
    assert body.h.errors[0] < first
    assert beyond_limits(body.problem, body.q) < 1e-9


def moved_from(body, q, y):
    """Return q after a step."""
    out = q.copy()
    chart.move(body.problem, out, y, 1.0)
    return out


def test_damping_of_a_step_shortens_it():
    """More damping is a shorter step, of the posture too."""
    sizes = []
    for damping in (0.0, 0.5, 50.0):
        _, body = tree_body(1)
        body.evaluate()
        sizes.append(step.take_step(*body.call, body.h, len(body.problem.levels), damping))
    assert sizes[0] > sizes[1] > 5 * sizes[2] > 0


# --- which pose is better -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("errors", "best", "met", "better"),
    [
        ([0.5, 9.0], [0.6, 1.0], 0.0, True),
        ([0.6, 0.0], [0.5, 9.0], 0.0, False),
        ([0.5, 0.9], [0.5, 1.0], 0.0, True),
        ([0.5, 1.0], [0.5, 1.0], 0.0, False),
        ([0.5 + 1e-12, 0.9], [0.5, 1.0], 0.0, True),
        ([np.nan, 0.0], [0.5, 1.0], 0.0, False),
        ([0.5, np.nan], [0.5, 1.0], 0.0, False),
        ([2e-4, 0.9], [1e-5, 1.0], 1e-3, True),  # both within what counts as met
        ([2e-4, 1.1], [5e-4, 1.0], 1e-3, False),
        ([2e-3, 0.9], [1e-5, 1.0], 1e-3, False),
    ],
)
def test_the_first_level_that_differs_decides(errors, best, met, better):
    """Levels are compared from the highest on; a number that is none never wins."""
    body = Body(chain(), [sy.PositionGoal("tip", (1, 1, 0)), sy.RotationGoal("tip", np.eye(3), priority=1)])
    body.h.errors[:2], body.h.best[:2] = errors, best
    assert step.is_better_pose(body.h, 2, met) == better


def test_one_number_for_all_levels():
    """What a level is within its tolerance counts for nothing; an upper level counts for far more than one below."""
    body = Body(chain(), [sy.PositionGoal("tip", (1, 1, 0)), sy.RotationGoal("tip", np.eye(3), priority=1)])
    met = step.smallest_tolerance(body.problem)
    assert met == min(body.problem.tolerance / body.problem.reach, body.problem.tolerance_angle)

    def of(*errors, count=3):
        return step.combined_error(body.problem, np.array([*errors, 5.0]), count)

    assert of(0.9 * met, 0.9 * met) == 0.0
    assert of(0.2, 0.0) == pytest.approx(0.04)
    assert of(0.2, 0.3, count=1) == pytest.approx(0.04)
    assert 0.0 < of(0.0, 0.2) < 0.1 * of(0.2, 0.0)
    assert of(0.2, 0.2) == pytest.approx(of(0.2, 0.0) + of(0.0, 0.2))
    assert of(0.0, 0.4) == pytest.approx(4 * of(0.0, 0.2))


# --- one-sided goals ------------------------------------------------------------------------------------------------


def heavy(free=True):
    """Return a body of balls with masses."""
    joints = [sy.Joint("root", None, sy.Kind.FREE if free else sy.Kind.BALL, mass=2.0, com=(0, 0, 0.5))]
    for i, at in enumerate([(0.4, 0, 1.0), (-0.4, 0.1, 1.0), (0.0, 0.3, 0.5)]):
        rest = np.eye(4)
        rest[:3, 3] = at
        joints.append(sy.Joint(f"a{i}", "root", sy.Kind.BALL, rest, mass=1.0 + i, com=(0.3, 0.1 * i, -0.2)))
    return sy.Skeleton(joints)


def hull(points):
    """Return edges (corner, inward normal) of a convex polygon that runs counterclockwise about z."""
    return [
        (a, np.array([-(b - a)[1], (b - a)[0]]) / np.linalg.norm(b - a))
        for a, b in zip(points, np.roll(points, -1, axis=0), strict=True)
    ]


POLYGONS = {
    "square": [(0, 0), (1, 0), (1, 1), (0, 1)],
    "long": [(0, 0), (3, 0), (3, 0.5), (0, 0.5)],
    "triangle": [(-1, -1), (2, 0), (0, 1.5)],
    "six": [(1, 0), (0.5, 0.9), (-0.5, 0.9), (-1, 0), (-0.5, -0.9), (0.5, -0.9)],
}


@pytest.mark.parametrize("name", POLYGONS)
def test_the_edges_of_a_support_polygon_that_hold_the_centre(name):
    """Inside, the nearest edge and its nearer neighbour; outside, the edge next to the point; at a corner, none."""
    points = np.array(POLYGONS[name], float)
    corners = np.column_stack([points, np.zeros(len(points))])
    body = Body(heavy(), [sy.CenterOfMassGoal(polygon=corners, up=(0, 0, 1))])
    general, rng = body.problem.general, np.random.default_rng(1)
    first = general.ints[0, layout.VERTEX]
    count = general.ints[0, layout.VERTICES]
    own = general.vertices[first : first + count]
    edges = hull(own[:, :2])
    kinds = set()
    for p in rng.uniform(-1.5, 3.5, (100, 2)):
        c = (p[0], p[1], 7.0)
        depths = np.array([n @ (p - a) for a, n in edges])
        for i in range(count):
            depth, inward = inequalities.edge_depth(general, 0, c, i)
            assert depth == pytest.approx(depths[i], abs=1e-12)
            np.testing.assert_allclose(inward, (*edges[i][1], 0.0), atol=1e-12)
        found = inequalities.nearest_edges(general, 0, c, 1e-9)
        nearest = int(np.argmin(depths))
        if depths.min() >= 0:
            before, after = (nearest - 1) % count, (nearest + 1) % count
            other = after if depths[after] < depths[before] else before
            assert set(found) == {nearest, other}
            assert found in [((i) % count, (i + 1) % count) for i in range(count)]
            kinds.add("inside")
            continue
        ways = [own[i, :2] + np.clip(
            (p - own[i, :2]) @ (own[(i + 1) % count, :2] - own[i, :2])
            / ((own[(i + 1) % count, :2] - own[i, :2]) ** 2).sum(), 0, 1)
            * (own[(i + 1) % count, :2] - own[i, :2]) for i in range(count)]  # fmt: skip
        distances = [np.linalg.norm(w - p) for w in ways]
        best = int(np.argmin(distances))
        if min(np.linalg.norm(ways[best] - own[:, :2], axis=1)) < 1e-12:
            assert found == (-1, -1)
            kinds.add("corner")
        elif best == nearest:
            assert nearest in found
            assert -1 in found
            kinds.add("edge")
    assert kinds == {"inside", "corner", "edge"}
    middle = 0.5 * (own[0] + own[1]) - 1e-10 * np.array([*edges[0][1], 0])
    assert -1 not in inequalities.nearest_edges(general, 0, tuple(middle), 1e-9)  # outside by rounding


def test_a_line_and_a_point_have_no_edges():
    """A polygon of fewer than three corners has no inside."""
    body = Body(heavy(), [sy.CenterOfMassGoal(polygon=[(0, 0, 0), (1, 0, 0)], up=(0, 0, 1))])
    assert inequalities.nearest_edges(body.problem.general, 0, (0.5, 0.0, 0.0), 1e-9) == (-1, -1)


def centre_of(pose):
    """Return the centre of mass."""
    masses = np.array([j.mass for j in pose.skeleton.joints])
    places = [pose.transform(j.name) @ [*j.com, 1.0] for j in pose.skeleton.joints]
    return masses @ np.array(places)[:, :3] / masses.sum()


def one_sided(seed, met=True):
    """Return a body with every kind of one-sided goal, met or not, above goals that pull through them."""
    rng = np.random.default_rng(seed)
    skeleton = heavy()
    pose = skeleton.random_pose(seed)
    centre = pose.center_of_mass if not callable(getattr(pose, "center_of_mass", None)) else pose.center_of_mass()
    x, y, _z = np.asarray(centre)
    goals = [
        sy.PlaneGoal("a0", tuple(pose.position("a0") - (0, 0, 0.01)), normal=(0, 0, 1)),
        sy.DistanceGoal("a1", "root", minimum=0.2, maximum=float(np.linalg.norm(pose.position("a1"))) + 0.01),
        sy.CenterOfMassGoal(polygon=[(x - 0.1, y - 0.01, 0), (x + 0.01, y - 0.01, 0), (x + 0.01, y + 0.1, 0),
                                     (x - 0.1, y + 0.1, 0)], up=(0, 0, 1)),
        sy.PositionGoal("a0", tuple(rng.normal(size=3) * 3), priority=1),
        sy.PositionGoal("a1", tuple(rng.normal(size=3) * 3), priority=2),
    ]  # fmt: skip
    return Body(skeleton, goals, pose.q if met else skeleton.random_pose(seed + 50).q)


@pytest.mark.parametrize("seed", range(6))
def test_a_step_of_a_lower_level_stops_where_a_one_sided_goal_would_fail(seed):
    """To first order the plane, the distance and the support polygon all hold after a step that pulls through them."""
    body = one_sided(seed)
    body.assemble()
    h, general = body.h, body.problem.general
    J = body.work.J
    solve_levels(h, body.problem.levels, len(body.problem.levels), 1e-12, 0.0, 0.0, 0.5, True)
    step.to_pose_step(body.work, h)
    y, used = body.work.dq, 0
    slot = 0
    for i in range(len(general.ints)):
        row = general.ints[i, layout.FIRST]
        for side in range(inequalities.slots(general, i)):
            low, high, active = inequalities.slack_bounds(
                body.problem, body.q, body.work.frames, body.targets, i, h.edges[slot + side]
            )
            if active:
                w = general.data[i, layout.WEIGHT] / body.problem.reach
                change = J[row + side] @ y
                assert w * low - 1e-6 <= change <= w * high + 1e-6
                used += min(change - w * low, w * high - change) < 1e-6
        slot += inequalities.slots(general, i)
    assert slot == inequalities.slack_count(general) == 4
    assert inequalities.slack_count(None) == 0


def test_slacks_stop_some_step():
    """In some of the problems above, a slack is what stops the step; without slack columns the rows would be broken."""
    stopped = 0
    for seed in range(6):
        body = one_sided(seed)
        body.assemble()
        h = body.h
        solve_levels(h, body.problem.levels, len(body.problem.levels), 1e-12, 0.0, 0.0, 0.5, True)
        slack = h.v[POSE_COLUMN] >= body.work.dq.shape[0]
        stopped += int((h.v[ACTIVE_SIDE, slack & (h.v[STEP_UPPER] > h.v[STEP_LOWER])] != 0).sum())
    assert stopped > 2


@pytest.mark.parametrize("met", [True, False])
def test_rows_of_one_sided_goals_are_derivatives_met_or_not(met):
    """The row of a goal is minus the derivative of its number: a distance, a depth, the way to an edge."""
    body = one_sided(2, met)
    body.assemble()
    general, J = body.problem.general, body.work.J
    n = J.shape[1]
    slots = []
    slot = 0
    for i in range(len(general.ints)):
        for side in range(inequalities.slots(general, i)):
            slots.append((i, side, body.h.edges[slot + side]))
        slot += inequalities.slots(general, i)

    def numbers(q):
        body.update(q)
        out = []
        for i, _, edge in slots:
            low, high, active = inequalities.slack_bounds(body.problem, q, body.work.frames, body.targets, i, edge)
            out.append((-low if np.isfinite(low) else -high) if active else 0.0)
        return np.array(out)

    columns = [body.work.J[general.ints[i, layout.FIRST] + side].copy() for i, side, _ in slots]
    kept = body.q.copy()
    for v in range(n):
        y = np.zeros(n)
        y[v] = 1e-6
        slope = (numbers(body.moved(y)) - numbers(body.moved(-y))) / 2e-6
        for k, (i, _, edge) in enumerate(slots):
            w = general.data[i, layout.WEIGHT] / body.problem.reach
            if edge >= 0 or inequalities.slots(general, i) == 1:
                assert columns[k][v] == pytest.approx(w * slope[k], abs=1e-7)
    np.testing.assert_array_equal(body.q, kept)


@pytest.mark.parametrize(("away", "edges"), [((-0.3, 0.5), 1), ((0.5, 1.2), 1), ((1.4, 1.5), 0), ((0.4, 0.5), 2)])
def test_a_centre_beside_an_edge_is_led_back_across_it(away, edges):
    """Beside an edge its slack alone leads back inside; beside a corner the goal has its own two rows."""
    skeleton = heavy()
    pose = skeleton.random_pose(3)
    x, y, z = np.asarray(centre_of(pose))
    square = [(x - away[0] + a, y - away[1] + b, 0) for a, b in ((0, 0), (1, 0), (1, 1), (0, 1))]
    goals = [sy.CenterOfMassGoal(polygon=square, up=(0, 0, 1)), sy.PositionGoal("a0", (9, 9, 9), priority=1)]
    body = Body(skeleton, goals, pose.q)
    missed = body.residual()[:2]
    body.assemble()
    h = body.h
    assert (h.edges[:2] >= 0).sum() == edges
    np.testing.assert_allclose(h.e[:2], missed if edges == 0 else 0.0, atol=1e-15)
    assert (np.abs(body.work.J[:2]).max(1) > 1e-3).sum() == (2 if edges == 0 else edges)
    solve_levels(h, body.problem.levels, 1, 1e-12, 0.0, 0.0, 1e9, True)
    step.to_pose_step(body.work, h)
    small = 1e-4
    q = moved_from(body, body.q, small * body.work.dq)
    change = (np.asarray(centre_of(sy.Pose(skeleton, q))) - [x, y, z])[:2] / small
    inside = np.clip(np.array(away) + change, 0.0, 1.0)
    np.testing.assert_allclose(np.array(away) + change, inside, atol=2e-3)


# --- the soft edge of reach -----------------------------------------------------------------------------------------


def test_the_length_of_a_chain():
    """From the first joint that turns to the goal's point; a slide or a free root has no such length."""
    body = Body(chain((1.0, 2.0, 0.5)), [sy.PositionGoal("tip", (1, 1, 0), offset=(0, 0.25, 0))])
    reach, base = soft_edge.chain_length(body.problem, 0)
    assert base == 0
    assert reach == pytest.approx(1.0 + 2.0 + np.hypot(0.5, 0.25))
    body = Body(heavy(), [sy.PositionGoal("a0", (1, 1, 0))])
    assert soft_edge.chain_length(body.problem, 0)[1] == -1
    ball = heavy(free=False)
    reach, base = soft_edge.chain_length(Body(ball, [sy.PositionGoal("a0", (1, 1, 0), offset=(0, 0, 0.5))]).problem, 0)
    assert base == 0
    assert reach == pytest.approx(0.5 + np.linalg.norm([0.4, 0, 1.0]))
    rest = np.eye(4)
    rest[0, 3] = 2.0
    rail = sy.Skeleton(
        [
            sy.Joint("a", None, sy.Kind.HINGE, axis=(0, 0, 1)),
            sy.Joint("b", "a", sy.Kind.SLIDE, rest, axis=(1, 0, 0), limit=sy.Interval(-1, 1)),
            sy.Joint("c", "b", sy.Kind.HINGE, rest, axis=(0, 0, 1)),
            sy.Joint("tip", "c", sy.Kind.FIXED, rest),
        ]
    )
    assert soft_edge.chain_length(Body(rail, [sy.PositionGoal("tip", (1, 1, 0))]).problem, 0)[1] == -1


@pytest.mark.parametrize("far", [1.0, 1.7, 1.81, 1.95, 2.0, 3.0, 40.0])
@pytest.mark.parametrize("share", [0.1, 0.02])
def test_a_target_at_the_edge_of_reach_comes_nearer(far, share):
    """As the formula of the module says: smooth, below the reach, and only beyond (1 - s) R."""
    direction = np.array([0.6, 0.8, 0.0])
    aside = np.array([3.0, -1.0, 0.0])  # where the chain begins: far from the world's origin
    goals = [
        sy.RotationGoal("tip", np.eye(3)),
        sy.PositionGoal("tip", tuple(aside + far * direction), weight=2.0),
        sy.PositionGoal("j1", tuple(aside + 0.3 * direction)),
    ]
    body = Body(chain(begin=tuple(aside)), goals, np.array([0.4, 0.9]), softening=share)
    plain = body.residual()
    e = plain.copy()
    worst = soft_edge.soften(body.problem, body.work.frames, body.targets, share, e)
    begin = (1 - share) * 2.0
    near = far if far <= begin else begin + share * 2.0 * (1 - np.exp((begin - far) / (share * 2.0)))
    assert near <= 2.0
    k = body.problem.goals[1, layout.FIRST_RESIDUAL]
    w = body.problem.goal_data[1, layout.POSITION_WEIGHT] / body.problem.reach
    tip = sy.Pose(body.ik.skeleton, body.q).position("tip") - aside
    np.testing.assert_allclose(e[k : k + 3], w * (near * direction - tip), atol=1e-12)
    others = [i for i in range(len(e)) if not k <= i < k + 3]
    np.testing.assert_array_equal(e[others], plain[others])
    left = np.linalg.norm(near * direction - tip) / body.problem.tolerance if far > begin else 0.0
    assert worst == pytest.approx(left)
    reached = body.evaluate()
    assert reached >= worst
    np.testing.assert_allclose(body.work.e, e, atol=1e-15)


# --- the largest move -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_any_step_within_the_bounds_keeps_the_largest_move(seed):
    """Wherever in its box a small step ends, no joint is farther from its start than the largest move."""
    most = 0.02
    rng, body = tree_body(seed, largest_move=most, attempts=1)
    start = body.q.copy()
    n = body.work.J.shape[1]
    variables, limits = body.problem.variables, body.problem.limits
    corners = 0
    for turn_number in range(8):
        chart.write_bounds(body.problem, body.q, body.work.box)
        largest_move.restrict_step(body.problem, body.q, body.work.box, body.h.saved_pose)
        low, high = body.work.box[:, layout.BOX_LOWER], body.work.box[:, layout.BOX_UPPER]
        assert (low <= 0).all()
        assert (high >= 0).all()
        y = np.where(rng.random(n) < 0.5, low, high) * (1.0 if turn_number % 2 else rng.random(n))
        body.q[:] = body.moved(y)
        for k in range(len(variables)):
            at = variables[k, layout.BLOCK_Q]
            if variables[k, layout.BLOCK] == layout.SCALAR:
                unit = 1.0 if limits[k, layout.IS_ANGLE] else 1.0 / body.problem.reach
                far = unit * abs(body.q[at] - start[at])
                slack = 1e-12
            else:
                far = (turn(start[at : at + 4]).inv() * turn(body.q[at : at + 4])).magnitude()
                slack = (
                    0.75 if limits[k, layout.IS_LIMITED] else 0.02
                ) * most  # to first order; limits' ways are askew
            assert far <= most + slack
            corners += far > 0.8 * most
        largest_move.enforce_largest_move(body.problem, body.q, body.h.saved_pose)
    assert corners > 3


@pytest.mark.parametrize("seed", range(5))
def test_one_direction_of_a_ball_may_take_its_share(seed):
    """From the start, each of a ball's three directions may turn it by the largest move over √3."""
    most = 0.01
    _, body = tree_body(seed, largest_move=most, attempts=1)
    chart.write_bounds(body.problem, body.q, body.work.box)
    before = body.work.box.copy()
    largest_move.restrict_step(body.problem, body.q, body.work.box, body.h.saved_pose)
    start = body.q.copy()
    for k in np.flatnonzero(body.problem.variables[:, layout.BLOCK] != layout.SCALAR):
        at, v = body.problem.variables[k, layout.BLOCK_Q], body.problem.variables[k, layout.BLOCK_COLUMN]
        for c in range(3):
            for side in (layout.BOX_LOWER, layout.BOX_UPPER):
                y = np.zeros(len(before))
                y[v + c] = body.work.box[v + c, side]
                q = body.moved(y)
                turned = (turn(start[at : at + 4]).inv() * turn(q[at : at + 4])).magnitude()
                if abs(before[v + c, side]) > abs(y[v + c]):
                    assert turned == pytest.approx(most / np.sqrt(3), rel=0.05)


def test_the_largest_move_is_used_where_limits_do_not_end_it_before():
    """A hinge may go as far as the largest move from where it began, and back."""
    body = Body(chain(), [sy.PositionGoal("tip", (1, 1, 0))], np.array([0.3, -0.2]), largest_move=0.1, attempts=1)
    body.q += [0.06, 0.0]
    chart.write_bounds(body.problem, body.q, body.work.box)
    largest_move.restrict_step(body.problem, body.q, body.work.box, body.h.saved_pose)
    np.testing.assert_allclose(body.work.box[:, :2], [[-0.16, 0.04], [-0.1, 0.1]])
    body.q[0] = 0.3 + 0.15  # too far: it may come back, no more
    chart.write_bounds(body.problem, body.q, body.work.box)
    largest_move.restrict_step(body.problem, body.q, body.work.box, body.h.saved_pose)
    np.testing.assert_allclose(body.work.box[0, :2], [-0.25, 0.0])


@pytest.mark.parametrize("seed", range(5))
def test_a_ball_that_turned_too_far_comes_back(seed):
    """It ends at the largest move, on the way that it went and within its limit; what is near stays."""
    most = 0.3
    _, body = tree_body(seed, largest_move=most, attempts=1)
    start = body.q.copy()
    far = body.ik.skeleton.random_pose(seed + 70).q
    body.q[:] = far
    largest_move.enforce_largest_move(body.problem, body.q, body.h.saved_pose)
    variables, limits = body.problem.variables, body.problem.limits
    for k in range(len(variables)):
        at = variables[k, layout.BLOCK_Q]
        if variables[k, layout.BLOCK] == layout.SCALAR:
            assert body.q[at] == far[at]
            continue
        a, b, c = (turn(q[at : at + 4]) for q in (start, body.q, far))
        whole = (a.inv() * c).magnitude()
        assert (a.inv() * b).magnitude() == pytest.approx(min(whole, most), abs=1e-6)
        if whole <= most:
            np.testing.assert_array_equal(body.q[at : at + 4], far[at : at + 4])
        if not limits[k, layout.IS_LIMITED] and whole > most:
            np.testing.assert_allclose((a.inv() * b).as_rotvec() / most, (a.inv() * c).as_rotvec() / whole, atol=1e-7)


def test_poses_are_kept_and_told_from_their_start():
    """What was saved comes back; near is within a thousandth of the largest move."""
    _, body = tree_body(3, largest_move=0.5, attempts=1)
    start = body.q.copy()
    assert largest_move.is_near_start(body.problem, body.q, start)
    n = body.work.J.shape[1]
    for v in range(n):
        for size, near in ((3e-4, True), (8e-4, False)):
            chart.write_bounds(body.problem, start, body.work.box)
            y = np.zeros(n)
            y[v] = size if body.work.box[v, layout.BOX_UPPER] > size else -size
            speed = np.linalg.norm(body.work.box[v, layout.VELOCITY :]) or 1.0
            kind = body.problem.variables[body.problem.variables[:, layout.BLOCK_COLUMN] <= v][-1, layout.BLOCK]
            limited = body.problem.limits[
                np.flatnonzero(body.problem.variables[:, layout.BLOCK_COLUMN] <= v)[-1], layout.IS_LIMITED
            ]
            if kind != layout.SCALAR and limited:
                y /= speed
            q = start.copy()
            chart.move(body.problem, q, y, 1.0)
            assert largest_move.is_near_start(body.problem, q, start) == near
    body.q[:] = body.ik.skeleton.random_pose(5).q
    largest_move.restore_pose(body.problem, body.q, body.h.saved_pose)
    for k in range(len(body.problem.variables)):
        at = body.problem.variables[k, layout.BLOCK_Q]
        width = 1 if body.problem.variables[k, layout.BLOCK] == layout.SCALAR else 4
        np.testing.assert_array_equal(body.q[at : at + width], start[at : at + width])


# --- second derivatives ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_geometric_stiffness_is_the_second_derivative_of_the_forces_work(seed):
    """H y·y is the second difference of s·e along every step of hinges and slides, and H is symmetric."""
    rng = np.random.default_rng(seed)
    joints = []
    for i in range(5):
        rest = np.eye(4)
        rest[:3, :3], rest[:3, 3] = turn(rng.normal(size=4)).as_matrix(), rng.normal(size=3)
        kind = sy.Kind.SLIDE if i == 2 else sy.Kind.HINGE
        limit = sy.Interval(-2, 2) if i == 2 else None
        joints.append(sy.Joint(f"j{i}", f"j{i - 1}" if i else None, kind, rest, axis=rng.normal(size=3), limit=limit))
    skeleton = sy.Skeleton(joints)
    goals = [sy.PositionGoal("j4", (9, 9, 9), offset=(0.3, 0.1, 0.2)), sy.PositionGoal("j3", (1, 2, 3), priority=1)]
    body = Body(skeleton, goals, random_q(skeleton, rng))
    body.assemble()
    s = rng.normal(size=len(body.work.e))
    body.h.s[:] = s
    q = body.q.copy()
    newton.geometric_stiffness(*body.call, body.h)
    H = body.work.H.copy()
    np.testing.assert_array_equal(body.q, q)
    np.testing.assert_allclose(H, H.T, atol=1e-12)
    np.testing.assert_allclose(body.work.dq, body.work.J.T @ s, atol=1e-12)
    np.testing.assert_allclose(body.work.J, body.jacobian(), atol=1e-12)
    n, d = len(H), 1e-4
    for y in [*np.eye(n), *rng.normal(size=(4, n))]:
        low, middle, high = (s @ body.residual(body.moved(t * y)) for t in (-d, 0.0, d))
        assert y @ H @ y == pytest.approx((low - 2 * middle + high) / d**2, abs=2e-5)


def test_a_stretched_arm_is_a_minimum_that_newton_keeps():
    """At full stretch towards a far target bending would lose, and the polished pose is exact for any start nearby."""
    target = np.array([3.0, 4.0, 0.0])
    arm = chain((1.0, 1.0, 1.0))
    goals = [sy.PositionGoal("tip", tuple(target), priority=0), sy.RotationGoal("j0", np.eye(3), priority=1)]
    body = Body(arm, goals, np.array([np.arctan2(4, 3) + 0.02, -0.05, 0.03]))
    q = body.q
    _, converged, moved = polish.refine(*body.call, body.h, 1)
    assert converged
    assert moved
    np.testing.assert_allclose(q, [np.arctan2(4, 3), 0.0, 0.0], atol=1e-7)
    before = q.copy()
    _, converged, moved = polish.refine(*body.call, body.h, 1)
    assert converged
    assert not moved
    np.testing.assert_allclose(q, before, atol=1e-9)
    polish.refine(*body.call, body.h, 2)  # the level below may not bend or turn it
    np.testing.assert_allclose(q, before, atol=1e-6)


def test_a_level_below_moves_in_what_is_free():
    """The far target leaves a turn about its line free; the level below takes exactly that."""
    rest = np.eye(4)
    rest[2, 3] = 1.0
    arm = sy.Skeleton(
        [
            sy.Joint("a", None, sy.Kind.BALL),
            sy.Joint("b", "a", sy.Kind.HINGE, rest, axis=(1, 0, 0)),
            sy.Joint("tip", "b", sy.Kind.FIXED, rest),
        ]
    )
    goals = [
        sy.PositionGoal("tip", (0, 0, 5), priority=0),
        sy.DirectionGoal("a", axis=(1, 0, 0), direction=(np.cos(0.4), np.sin(0.4), 0), priority=1),
    ]
    start = np.concatenate([sy.Rotation.from_rotvec([0.02, -0.03, 0.1]).as_quat(), [0.05]])
    body = Body(arm, goals, start)
    finish.refine_all(*body.call, body.h)
    pose = sy.Pose(arm, body.q)
    np.testing.assert_allclose(pose.position("tip"), [0, 0, 2], atol=1e-6)
    np.testing.assert_allclose(pose.transform("a")[:3, 0], [np.cos(0.4), np.sin(0.4), 0], atol=1e-4)


@pytest.mark.parametrize("limit", [0.3, 0.8])
def test_a_polished_level_ends_at_its_limits(limit):
    """Hinges that may turn to ±limit alone: the best pose turns as far as it can, found by brute force."""
    arm = chain((1.0, 1.0), limit=sy.Interval(-limit, limit))
    target = np.array([-1.0, 2.5, 0.0])
    body = Body(arm, [sy.PositionGoal("tip", tuple(target))], np.array([0.2, -0.1]))
    _, converged = finish.refine_all(*body.call, body.h)
    assert converged
    grid = np.linspace(-limit, limit, 401)
    a, b = np.meshgrid(grid, grid, indexing="ij")
    x, y = np.cos(a) + np.cos(a + b), np.sin(a) + np.sin(a + b)
    best = np.hypot(x - target[0], y - target[1]).min()
    tip = sy.Pose(arm, body.q).position("tip")
    assert np.linalg.norm(tip - target) < best + 1e-9
    assert np.abs(body.q).max() <= limit + 1e-12


def test_the_posture_is_polished_where_the_goals_leave_a_choice():
    """Of all poses with the tip as near to the target as it gets, the one nearest to the posture, by brute force."""
    arm = chain((1.0, 1.0, 1.0))
    target, wanted = np.array([1.2, 0.9, 0.4]), np.array([-0.6, 0.9, 1.3])  # beside the plane: it is missed
    goals = [sy.PositionGoal("tip", tuple(target)), sy.RestGoal(pose=sy.Pose(arm, wanted))]
    body = Body(arm, goals, np.array([-0.3, 1.0, 0.6]))
    finish.refine_all(*body.call, body.h)
    np.testing.assert_allclose(sy.Pose(arm, body.q).position("tip"), [1.2, 0.9, 0.0], atol=1e-7)
    heading = np.linspace(-np.pi, np.pi, 20001)  # of the last bone
    x, y = 1.2 - np.cos(heading), 0.9 - np.sin(heading)
    near = x * x + y * y <= 4
    heading, x, y = heading[near], x[near], y[near]
    best = np.inf
    for side in (1, -1):
        bend = side * np.arccos((x * x + y * y - 2) / 2)
        first = np.arctan2(y, x) - bend / 2
        q = np.column_stack([first, bend, heading - first - bend])
        off = np.arctan2(np.sin(q - wanted), np.cos(q - wanted))
        best = min(best, (off**2).sum(axis=1).min())
    assert ((body.q - wanted) ** 2).sum() < best + 1e-5


def test_a_limited_move_is_not_polished():
    """With a largest move an answer stays as it is; it has converged if it is near the start."""
    arm = chain()
    goals = [sy.PositionGoal("tip", (5, 0, 0))]
    for away, converged in ((0.0, 1.0), (0.05, 0.0)):
        body = Body(arm, goals, np.array([0.5 + away, 0.1]), largest_move=0.1, attempts=1)
        body.work.watch[layout.OTHERS : layout.OTHERS + 2] = [0.5, 0.1]
        q = body.q.copy()
        assert perform(finish.first_polish, *body.call) == (0, converged)
        np.testing.assert_array_equal(body.q, q)


def test_a_polish_returns_the_start_if_it_is_as_good():
    """Solving an answer again returns it: the first polish goes back to a start that is no worse."""
    arm = chain()
    body = Body(arm, [sy.PositionGoal("tip", (5, 0, 0))], np.array([0.3, -0.2]))
    start = body.work.watch[layout.OTHERS : layout.OTHERS + 2]
    start[:] = [1e-9, -2e-9]
    _, converged = perform(finish.first_polish, *body.call)
    assert converged
    np.testing.assert_array_equal(body.q, start)
    start[:] = [0.5, -0.5]  # worse: the polished pose stays
    body.q[:] = [0.3, -0.2]
    steps, _ = perform(finish.first_polish, *body.call)
    assert steps > 0
    np.testing.assert_allclose(body.q, 0.0, atol=1e-6)
    start[:] = [np.pi, 0.0]  # a restart led to a worse pose than the polished start
    body.work.watch[layout.OTHERS + 3] = 4.0
    start[:] = [0.5, -0.5]
    body.q[:] = [0.1, 0.2]
    perform(finish.first_polish, *body.call)
    np.testing.assert_allclose(body.q, 0.0, atol=1e-6)


# --- saddles and the best of several poses -------------------------------------------------------------------------


def test_a_chain_that_points_away_is_left_and_a_minimum_is_kept():
    """Pointing straight away from the target every turn helps; pointing at it none does."""
    arm = chain((1.0, 1.0))
    for q, saddle in (([np.pi, 0.0], True), ([0.0, 0.0], False)):
        body = Body(arm, [sy.PositionGoal("tip", (5, 0, 0))], np.array(q))
        body.evaluate()
        body.h.best[:] = body.h.errors
        for v in range(2):
            assert finish.error_falls_along(*body.call, body.h, 1, v) == (saddle or (q[0] > 1 and v == 1))
        largest_move.restore_pose(body.problem, body.q, body.h.saved_pose)
        assert finish.leave_saddle(*body.call, body.h, 1, 1.0) == saddle
        away = body.q - q
        assert (np.abs(away) <= 1.1e-3).all()
        assert bool(np.abs(away).max() > 1e-6) == saddle
        if saddle:
            largest_move.restore_pose(body.problem, body.q, body.h.saved_pose)
            finish.leave_saddle(*body.call, body.h, 1, -1.0)
            np.testing.assert_allclose(body.q - q, -away, atol=1e-12)
        largest_move.restore_pose(body.problem, body.q, body.h.saved_pose)
        finish.refine_all(*body.call, body.h)
        np.testing.assert_allclose(sy.Pose(arm, body.q).position("tip"), [2, 0, 0], atol=1e-6)


def test_a_saddle_beside_a_limit_is_left_to_the_side_that_is_free():
    """A column that a limit holds on one side counts by the other; one that cannot move does not count."""
    arm = chain((1.0,), limit=sy.Interval(-np.pi, np.pi))
    body = Body(arm, [sy.PositionGoal("tip", (5, 0, 0))], np.array([np.pi]))
    body.evaluate()
    body.h.best[:] = body.h.errors
    assert finish.error_falls_along(*body.call, body.h, 1, 0)
    still = chain((1.0,), limit=sy.Interval(1.0, 1.0 + 1e-6))
    body = Body(still, [sy.PositionGoal("tip", (5, 0, 0))], np.array([1.0]))
    body.evaluate()
    body.h.best[:] = body.h.errors
    assert not finish.error_falls_along(*body.call, body.h, 1, 0)


def test_which_answer_counts():
    """Of two answers the better in the first level that differs is taken; clearly better is more than rounding."""
    arm = chain((1.0, 1.0))
    goals = [sy.PositionGoal("tip", (5, 0, 0)), sy.RotationGoal("j1", np.eye(3), priority=1)]
    body = Body(arm, goals)
    near, far = np.array([0.0, 0.0]), np.array([0.5, 0.0])
    assert finish.is_better(body.problem, body.work, body.targets, far, near, body.h)
    assert not finish.is_better(body.problem, body.work, body.targets, near, far, body.h)
    assert not finish.is_better(body.problem, body.work, body.targets, near, near, body.h)
    stored = matrix(body.work.watch, layout.OTHERS, layout.FINALISTS + 1, 4)
    for best, q, clear in (
        (far, near, 1),
        (near, far, 0),
        (near, near, 0),
        (np.array([1e-5, 0.0]), near, 0),  # not clearly
        (np.array([0.5, -0.5]), np.array([-0.5, 0.5]), 0),
        (np.array([-0.5, 0.5]), np.array([0.5, -0.5]), 0),
    ):
        stored[BEST, :2] = best
        assert _performed(finish.is_clearly_better, body, q) == (clear, 0.0)
    turned = sy.RestGoal(pose=sy.Pose(arm, np.array([-0.9, 0.9])))  # the posture alone makes no answer clearly better
    body = Body(arm, [sy.PositionGoal("tip", (5, 0, 0)), turned])
    matrix(body.work.watch, layout.OTHERS, layout.FINALISTS + 1, 4)[BEST, :2] = [0.5, -0.5]
    assert _performed(finish.is_clearly_better, body, np.array([-0.5, 0.5])) == (0, 0.0)
    met = Body(arm, [sy.PositionGoal("tip", (1, 1, 0)), sy.RotationGoal("j1", np.eye(3), priority=1)])
    assert finish.is_better(met.problem, met.work, met.targets, near, np.array([0.0, np.pi / 2]), met.h)


def _performed(algorithm, body, q):
    """Run an algorithm."""
    return perform(algorithm, body.problem, body.work, body.targets, q.copy())


def test_coarse_descents_are_ranked_by_levels():
    """Their cost compares the highest level first, in steps of a thousandth; it says how many steps were taken."""
    arm = chain((1.0, 1.0))
    costs = []
    for target in ((2.2, 0, 0), (2.6, 0, 0)):
        for heading in (np.eye(3), turn([0, 0, 1, 0]).as_matrix()):
            goals = [sy.PositionGoal("tip", target), sy.RotationGoal("j1", heading, priority=1)]
            body = Body(arm, goals, np.array([0.4, -0.3]), max_steps=12)
            steps, cost = _performed(finish.coarse_descent, body, body.q)
            assert 0 < steps <= 12
            costs.append(cost)
    assert costs[0] < costs[1] < costs[2] < costs[3]
    assert costs[1] - costs[0] < 0.01 * (costs[2] - costs[0])
