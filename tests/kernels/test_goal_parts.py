"""Goals part by part: which targets are refused, second derivatives, limbs that swivel to poles, and blends."""

import itertools
import math

import numpy as np
import pytest

import synovia as sy
from beyond import beyond_limits
from parts import Parts
from probes import random_q
from synovia.kernels import layout
from synovia.kernels.closed_form import blend
from synovia.kernels.goals import aim, curvature, direction, frames, general, partial, swivel
from synovia.kernels.goals.residuals import geometric_jacobian
from synovia.kernels.heuristic import poles
from synovia.kernels.math import spheres
from synovia.kernels.tree.forward import forward
from trees import random_frame, random_tree

pytestmark = pytest.mark.parts


def turn(q):
    """Return a quaternion as a rotation."""
    return sy.Rotation.from_quat(np.asarray(q, float))


def bar(*lengths, kind=sy.Kind.HINGE, **given):
    """Return joints in a row along x, hinges about z, with a tip."""
    joints, at = [], 0.0
    for i, length in enumerate(lengths):
        rest = np.eye(4)
        rest[0, 3] = at
        axis = {"axis": (0, 0, 1)} if kind is sy.Kind.HINGE else {}
        joints.append(sy.Joint(f"j{i}", f"j{i - 1}" if i else None, kind, rest, **axis, **given))
        at = length
    rest = np.eye(4)
    rest[0, 3] = at
    return sy.Skeleton([*joints, sy.Joint("tip", joints[-1].name, sy.Kind.FIXED, rest)])


# --- targets --------------------------------------------------------------------------------------------------------

FAR = 1e15


def target(rotation=None, point=(0.0, 0.0, 0.0), last=(0.0, 0.0, 0.0, 1.0)):
    """Return a transform as the kernels take it."""
    T = np.eye(4)
    T[:3, :3] = np.eye(3) if rotation is None else rotation
    T[:3, 3], T[3] = point, last
    return T.reshape(1, 16)


@pytest.mark.parametrize(
    ("point", "refused"),
    [
        ((1.0, -2.0, 3.0), False),
        ((0.99 * FAR, 0.0, 0.0), False),
        ((0.0, -0.99 * FAR, 0.0), False),
        ((1.01 * FAR, 0.0, 0.0), True),
        ((0.0, -1.01 * FAR, 0.0), True),
        ((0.0, 0.0, 1.01 * FAR), True),
        ((0.9 * FAR, 0.9 * FAR, 0.9 * FAR), True),
        ((0.0, 1e200, 0.0), True),
        ((0.0, 0.0, np.inf), True),
        ((np.nan, 0.0, 0.0), True),
        ((0.0, np.nan, 0.0), True),
        ((0.0, 0.0, np.nan), True),
    ],
)
def test_points_that_are_refused(point, refused):
    """What is not finite or farther than 10^15 units is no position; a rotation goal does not read it."""
    with np.errstate(all="ignore"):
        assert frames.is_invalid(target(point=point), 0, layout.POSITION) == refused
        assert not frames.is_invalid(target(point=point), 0, layout.ROTATION)


def test_rotations_that_are_refused():
    """Each entry and each mirror counts beyond rounding, and the last row of the transform."""
    R = turn([0.1, -0.4, 0.3, 0.8]).as_matrix()
    for given, refused in ((R, False), (R[:, [1, 0, 2]], True), (-R, True), (R * [1, 1, 1 + 1e-4], True),
                           (R * [1 + 1e-4, 1, 1], True), (R * [1, 1 + 1e-4, 1], True), (R * (1 + 1e-6), False),
                           (R * np.nan, True)):  # fmt: skip
        with np.errstate(all="ignore"):
            assert frames.is_invalid(target(given), 0, layout.ROTATION) == refused
            assert not frames.is_invalid(target(given), 0, layout.POSITION)
    for a, b in ((0, 1), (0, 2), (1, 2)):
        skewed = R.copy()
        skewed[:, a] += 1e-4 * R[:, b]
        assert frames.is_invalid(target(skewed), 0, layout.ROTATION)
    for i in range(4):
        last = np.array([0.0, 0.0, 0.0, 1.0])
        last[i] += 1e-3
        assert frames.is_invalid(target(R, last=last), 0, layout.ROTATION)
        assert not frames.is_invalid(target(R, last=last), 0, layout.POSITION)


def test_a_given_rotation_becomes_orthonormal():
    """Rounding goes; the x axis keeps its direction, and what is not given keeps what was there."""
    rng = np.random.default_rng(0)
    R = turn(rng.normal(size=4)).as_matrix()
    rough = R + 1e-6 * rng.normal(size=(3, 3))
    clean = np.reshape(frames.orthonormal(tuple(rough.ravel())), (3, 3))
    np.testing.assert_allclose(clean.T @ clean, np.eye(3), atol=1e-15)
    np.testing.assert_allclose(clean, rough, atol=1e-5)
    np.testing.assert_allclose(clean[:, 0], rough[:, 0] / np.linalg.norm(rough[:, 0]), atol=1e-15)
    assert np.linalg.det(clean) > 0.5
    for what in (layout.POSITION, layout.ROTATION, layout.POSITION | layout.ROTATION):
        out = target(turn([1, 0, 0, 1]).as_matrix(), (7.0, 8.0, 9.0))
        frames.write_given(target(R, (1.0, 2.0, 3.0)), out, 0, what)
        T = out.reshape(4, 4)
        np.testing.assert_allclose(T[:3, 3], (1, 2, 3) if what & layout.POSITION else (7, 8, 9))
        expected = R if what & layout.ROTATION else turn([1, 0, 0, 1]).as_matrix()
        np.testing.assert_allclose(T[:3, :3], expected, atol=1e-15)
        np.testing.assert_array_equal(T[3], [0, 0, 0, 1])


def test_a_direction_needs_a_length():
    """Zero, and what underflows when squared, is no direction."""
    for point, refused in (((0, 0, 0), True), ((0, 1e-150, 0), True), ((0, 0, -1e-90), False), ((3, 4, 0), False)):
        assert direction.is_invalid(target(point=point), 0) == refused


@pytest.mark.parametrize("kind", ["aim", "direction"])
def test_axes_that_keep_their_start(kind):
    """Without a target, an axis goal has one that it meets as it stands."""
    rng = np.random.default_rng(4)
    body = random_tree(rng, joints=5)
    given = {"axis": rng.normal(size=3)}
    goal = sy.AimGoal("j4", (1, 1, 1), **given, offset=(0.1, 0.2, 0.3)) if kind == "aim" else sy.DirectionGoal(
        "j4", **given, direction=(1, 2, 3))  # fmt: skip
    parts = Parts(body, [goal], sy.LevenbergMarquardt(), random_q(body, rng))
    assert parts.errors()[0, 1] > 0.01
    R, p = general.start_target(parts.problem, parts.work.frames, 0)
    frames.set_target(parts.targets, 0, R, p)
    assert parts.errors()[0, 1] < 1e-7
    module = {"aim": aim, "direction": direction}[kind]
    if kind == "aim":  # the axis passes through the offset, and the target is in front of it
        o = (0.3, -0.2, 0.4)
        u, d = module.aim_vectors(parts.problem, parts.work.frames, parts.targets, 0, o)
        point = sy.Pose(body, parts.q).transform("j4") @ [0.1, 0.2, 0.3, 1.0]
        np.testing.assert_allclose(u, point[:3] - o, atol=1e-12)
        np.testing.assert_allclose(d, np.array(p) - o, atol=1e-12)
    else:
        u, d = module.aim_vectors(parts.problem, parts.targets, 0)
        np.testing.assert_allclose(np.cross(d, p), 0.0, atol=1e-9)
        assert np.dot(d, p) > 0
        assert np.linalg.norm(d) == pytest.approx(parts.problem.reach)


def test_an_aim_at_the_point_itself_has_no_direction():
    """Nearer than a millionth of the reach it pulls nowhere; a little farther it does."""
    for away, pulls in ((1e-7, False), (1e-5, True)):
        parts = Parts(bar(1.0), [sy.AimGoal("j0", (0.0, away, 0.0), axis=(1, 0, 0))], sy.LevenbergMarquardt())
        assert (parts.errors()[0, 1] > 1.0) == pulls
        assert bool(np.abs(parts.jacobian()).max() > 0.1) == pulls


# --- derivatives ----------------------------------------------------------------------------------------------------


def pose_goals(rng):
    """Return goals with large errors, and the columns of every kind of joint above them."""
    frame = random_frame(rng)
    return [
        sy.PoseGoal("j6", transform=frame, offset=rng.normal(size=3), weight=0.7),
        sy.PositionGoal("j5", rng.normal(size=3) * 2, weight=0.3),
        sy.RotationGoal("j4", turn(rng.normal(size=4)).as_matrix(), weight=0.5),
    ]


@pytest.mark.parametrize("seed", range(6))
def test_curvature_is_what_the_jacobian_leaves_of_second_differences(seed):
    """Along every column and every pair of columns, H + JᵀJ is the second derivative of e·e / 2."""
    rng = np.random.default_rng(seed)
    free = seed % 2 == 1
    body = random_tree(rng, joints=7, free=free, mimic=seed % 3 == 0, bounded=False)
    parts = Parts(body, pose_goals(rng), sy.LevenbergMarquardt(), random_q(body, rng), "free" if free else "fixed")
    J = parts.jacobian()
    n = J.shape[1]
    H = np.full((n, n), np.nan)
    curvature.curvature(parts.problem, parts.q, parts.work.frames, parts.targets, H)
    np.testing.assert_allclose(H, H.T, atol=1e-11)
    whole, h = H + J.T @ J, 3e-4

    def half(y):
        parts.update(parts.moved(y))
        return 0.5 * (parts.work.e @ parts.work.e)

    middle = half(np.zeros(n))
    for a in range(n):
        for b in range(a + 1):
            y = (np.eye(n)[a] + np.eye(n)[b]) * h
            second = (half(y) - 2 * middle + half(-y)) / h**2
            w = y / h
            assert w @ whole @ w == pytest.approx(second, abs=2e-4 * (1 + np.abs(whole).max()))


@pytest.mark.parametrize("seed", range(4))
def test_both_ways_to_a_jacobian_agree(seed):
    """Partial derivatives of the transforms are the cross products, for all joints, couplings and offsets."""
    rng = np.random.default_rng(seed)
    free = seed % 2 == 0
    body = random_tree(rng, joints=7, free=free)
    goals = [*pose_goals(rng), sy.DistanceGoal("j3", point=(9, 9, 9), maximum=0.1)]
    parts = Parts(body, goals, sy.LevenbergMarquardt(), random_q(body, rng), "free" if free else "fixed")
    geometric_jacobian(*parts.call[:1], parts.q, parts.work.frames, parts.targets, parts.work.J)
    expected = parts.work.J.copy()
    partial.partial_jacobian(parts.problem, parts.q, parts.work.frames, parts.targets, parts.work.J)
    np.testing.assert_allclose(parts.work.J, expected, atol=1e-12)


# --- poles ----------------------------------------------------------------------------------------------------------


def limb(at=(0.0, 0.0, 1.0), bend=0.6, limit=None, kind=sy.Kind.BALL, wrist=True):
    """Return a limb from the origin along x, bent up by the middle joint, with a pole goal and its tip held."""
    upper, lower = np.eye(4), np.eye(4)
    upper[0, 3], lower[0, 3] = 1.0, 1.0
    joints = [sy.Joint("root", None, sy.Kind.BALL, limit=limit)]
    joints.append(sy.Joint("middle", "root", kind, upper, **({"axis": (0, 1, 0)} if kind is sy.Kind.HINGE else {})))
    joints.append(sy.Joint("tip", "middle", sy.Kind.BALL if wrist else sy.Kind.FIXED, lower))
    body = sy.Skeleton(joints)
    half = sy.Rotation.from_rotvec([0, -bend, 0]).as_quat()
    fold = sy.Rotation.from_rotvec([0, 2 * bend, 0]).as_quat()
    q = [*half, *(fold if kind is sy.Kind.BALL else [2 * bend]), *([0, 0, 0, 1] if wrist else [])]
    tip = sy.Pose(body, np.array(q)).position("tip")
    goals = [sy.PositionGoal("tip", tuple(tip)), sy.PoleGoal("middle", at, root="root", tip="tip")]
    return body, np.array(q), goals


def pole_parts(at, **given):
    """Return an opened limb and the term of its pole."""
    body, q, goals = limb(at, **given)
    return Parts(body, goals, sy.Fabrik(), q)


def about_x(angle, size=1.0):
    """Return a pole beside the middle of the limb, turned from +z about x."""
    return (1.0, -size * math.sin(angle), size * math.cos(angle))


def set_pole(parts, at):
    """Move the pole."""
    g = int(parts.problem.general.ints[0, layout.GOAL])
    parts.targets[g, [3, 7, 11]] = at


@pytest.mark.parametrize("angle", [0.0, 0.4, -1.2, 2.5, -3.0])
def test_the_angle_to_a_pole(angle):
    """From the plane of the limb to that of the pole, signed about the line from root to tip."""
    parts = pole_parts(about_x(angle))
    assert swivel.swivel_to_pole(parts.problem, parts.work, parts.targets, 0) == pytest.approx(angle, abs=1e-9)
    assert not swivel.pole_is_held(parts.problem, parts.work)


@pytest.mark.parametrize("angle", [0.3, -1.1, 2.8])
@pytest.mark.parametrize("kind", [sy.Kind.BALL, sy.Kind.HINGE])
def test_a_swivel_turns_the_middle_and_nothing_else(angle, kind):
    """Root and tip stay, the middle turns about their line, and what the tip carries keeps its orientation."""
    parts = pole_parts(about_x(0.0), kind=kind)
    before = sy.Pose(parts.ik.skeleton, parts.q)
    poles.swivel_limb(*parts.call, 0, angle)
    after = sy.Pose(parts.ik.skeleton, parts.q)
    line = sy.Rotation.from_rotvec([angle, 0, 0])
    np.testing.assert_allclose(after.position("middle"), line.apply(before.position("middle")), atol=1e-9)
    np.testing.assert_allclose(after.position("tip"), before.position("tip"), atol=1e-9)
    np.testing.assert_allclose(after.transform("tip")[:3, :3], before.transform("tip")[:3, :3], atol=1e-9)
    np.testing.assert_allclose(parts.work.frames[: len(parts.problem.tree.ints)], _frames(parts), atol=1e-12)


def _frames(parts):
    """Return the frames of the present values."""
    out = np.zeros_like(parts.work.frames)
    forward(parts.problem.tree, parts.q, out)
    return out[: len(parts.problem.tree.ints)]


@pytest.mark.parametrize("angle", [0.2, -2.0])
def test_a_pole_is_approached_as_far_as_limits_allow(angle):
    """Without limits all the way; with a limit on twist and swing as far as the pose goals hold; it says how far."""
    parts = pole_parts(about_x(angle))
    assert poles.approach_pole(*parts.call, 0) == pytest.approx(abs(angle))
    assert abs(swivel.swivel_to_pole(parts.problem, parts.work, parts.targets, 0)) < 1e-7
    assert parts.errors()[0, 0] < 1e-6
    tight = sy.SwingTwist.about((1, 0, 0), x=(1.5, 1.5), y=(1.5, 1.5), twist=(-0.1, 0.1))
    parts = pole_parts(about_x(angle), limit=tight)
    q = parts.q.copy()
    gone = poles.approach_pole(*parts.call, 0)
    assert parts.errors()[0, 0] <= parts.problem.tolerance
    left = abs(swivel.swivel_to_pole(parts.problem, parts.work, parts.targets, 0))
    assert left <= abs(angle) - 0.98 * gone + 1e-9
    if gone == 0.0:
        np.testing.assert_allclose(parts.q, q, atol=1e-12)


def test_a_limb_at_its_pole_stays():
    """Nothing is turned where nothing is wanted, nor where the root is no ball."""
    parts = pole_parts(about_x(0.0))
    q = parts.q.copy()
    assert poles.approach_pole(*parts.call, 0) == pytest.approx(0.0, abs=1e-9)
    np.testing.assert_allclose(parts.q, q, atol=1e-9)
    assert poles.turns_as_ball(parts.problem, 0)
    assert not poles.turns_as_ball(parts.problem, -1)
    hinges = bar(1.0, 1.0)
    other = Parts(hinges, [sy.PositionGoal("tip", (1, 1, 0))], sy.Fabrik())
    assert not any(poles.turns_as_ball(other.problem, i) for i in range(len(other.problem.tree.ints)))


@pytest.mark.parametrize("step", [0.05, -0.05])
@pytest.mark.parametrize("size", [1.0, 0.01])
def test_the_plane_turns_no_faster_than_a_pole_near_the_line_moves(step, size):
    """From frame to frame, a turn is at most RATE times the pole's way across the line, over the limb."""
    parts = pole_parts(about_x(0.0, size))
    swivel.remember_poles(parts.problem.general, parts.problem, parts.work, parts.targets, parts.q)
    set_pole(parts, about_x(step, size))
    wanted = swivel.swivel_to_pole(parts.problem, parts.work, parts.targets, 0)
    most = swivel.RATE * 2 * size * math.sin(0.5 * abs(step)) / 2.0
    assert wanted == pytest.approx(math.copysign(min(abs(step), most), step), rel=1e-6)
    assert swivel.pole_is_held(parts.problem, parts.work) == (most < abs(step))
    swivel.forget_poles(parts.problem.general, parts.problem, parts.work)
    assert swivel.swivel_to_pole(parts.problem, parts.work, parts.targets, 0) == pytest.approx(step, rel=1e-6)
    assert not swivel.pole_is_held(parts.problem, parts.work)


def test_a_straight_limb_is_not_remembered():
    """Its plane is undefined, so that the next frame is free to choose."""
    for bend, known in ((1e-5, False), (0.3, True)):
        parts = pole_parts(about_x(0.0, 0.01), bend=bend)
        swivel.remember_poles(parts.problem.general, parts.problem, parts.work, parts.targets, parts.q)
        row = len(parts.problem.tree.ints) + int(parts.problem.general.ints[0, layout.GOAL])
        assert (parts.work.points[row, layout.KNOWN] != swivel.NO_FRAME) == known


def test_close_to_the_line_a_pole_asks_for_no_more_than_half_the_tolerance():
    """Where the pole hardly defines a plane, the turn that is left out stays small, and grows from nothing."""
    asked = [
        swivel.swivel_to_pole(parts.problem, parts.work, parts.targets, 0)
        for parts in (pole_parts(about_x(1.0, size)) for size in (1e-1, 1.5e-3, 1e-3, 1e-4, 1e-6, 0.0))
    ]
    assert asked[0] == pytest.approx(1.0)
    assert all(a >= b >= 0.0 for a, b in itertools.pairwise(asked))
    assert asked[-1] == 0.0


# --- blends ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weight", [0.0, 0.3, 1.0])
def test_a_blend_goes_a_part_of_the_way(weight):
    """Hinges and slides evenly, balls about one axis; saved values come back as they were."""
    rng = np.random.default_rng(2)
    body = random_tree(rng, joints=7, mimic=False, limits=False)
    parts = Parts(body, [sy.PoseGoal("j6", transform=random_frame(rng))], sy.LevenbergMarquardt(), random_q(body, rng))
    values = np.full((len(parts.problem.variables), 4), np.nan)
    start, end = parts.q.copy(), random_q(body, rng)
    blend.save_values(parts.problem, start, values)
    q = end.copy()
    blend.blend(parts.problem, q, values, weight)
    back = np.zeros_like(end)
    blend.load_values(parts.problem, back, values)
    for k in range(len(parts.problem.variables)):
        at = parts.problem.variables[k, layout.BLOCK_Q]
        if parts.problem.variables[k, layout.BLOCK] == layout.SCALAR:
            assert back[at] == start[at]
            assert q[at] == pytest.approx(start[at] + weight * (end[at] - start[at]))
        else:
            np.testing.assert_array_equal(back[at : at + 4], start[at : at + 4])
            a, b, c = (turn(one[at : at + 4]) for one in (start, q, end))
            np.testing.assert_allclose((a.inv() * b).as_rotvec(), weight * (a.inv() * c).as_rotvec(), atol=1e-9)


def test_a_blend_ends_within_the_limits():
    """Half the way between allowed rotations may leave the limits; the blend does not."""
    limit = sy.SwingTwist(x=(0.05, 0.8), y=(0.05, 0.8), twist=(-0.2, 0.2))
    body = sy.Skeleton([sy.Joint("b", None, sy.Kind.BALL, limit=limit)])
    goals = [sy.PositionGoal("b", (0, 0, 1), offset=(0, 0, 1))]
    for seed in range(20):
        parts = Parts(body, goals, sy.LevenbergMarquardt(), body.random_pose(seed).q)
        values = np.zeros((1, 4))
        blend.save_values(parts.problem, parts.q, values)
        q = body.random_pose(seed + 100).q.copy()
        blend.blend(parts.problem, q, values, 0.5)
        assert beyond_limits(parts.problem, q) < 1e-9


def test_how_far_targets_move():
    """The sum of the ways of all targets from the frame before."""
    rng = np.random.default_rng(3)
    targets = rng.normal(size=(4, 3, 17))
    for b in range(1, 4):
        way = np.linalg.norm(targets[b][:, [3, 7, 11]] - targets[b - 1][:, [3, 7, 11]], axis=1).sum()
        assert blend.motion_of(targets, b) == pytest.approx(way)


# --- spheres --------------------------------------------------------------------------------------------------------


def on_circle(a, ra, b, rb, p, count=20001):
    """Return the point of the intersection of two spheres that is nearest to p, by brute force."""
    u = (b - a) / np.linalg.norm(b - a)
    away = np.linalg.norm(b - a)
    x = (away**2 + ra**2 - rb**2) / (2 * away)
    h = np.sqrt(ra**2 - x**2)
    s = np.cross(u, [1.0, 0.0, 0.0] if abs(u[0]) < 0.8 else [0.0, 1.0, 0.0])
    s /= np.linalg.norm(s)
    t = np.cross(u, s)
    angles = np.linspace(0, 2 * np.pi, count)
    points = a + x * u + h * (np.cos(angles)[:, None] * s + np.sin(angles)[:, None] * t)
    return points[np.argmin(np.linalg.norm(points - p, axis=1))]


@pytest.mark.parametrize("seed", range(6))
def test_the_point_of_two_spheres_nearest_to_a_third(seed):
    """On both spheres, and nearest of all of their circle."""
    rng = np.random.default_rng(seed)
    a, p = rng.normal(size=(2, 3))
    ra, rb = rng.uniform(0.5, 1.5, 2)
    way = rng.normal(size=3)
    b = a + way / np.linalg.norm(way) * rng.uniform(abs(ra - rb) + 0.05, ra + rb - 0.05)
    found = np.array(spheres.nearest_on_circle(tuple(a), ra, tuple(b), rb, tuple(p), (0.0, 0.0, 1.0)))
    assert np.linalg.norm(found - a) == pytest.approx(ra)
    assert np.linalg.norm(found - b) == pytest.approx(rb)
    np.testing.assert_allclose(found, on_circle(a, ra, b, rb, p), atol=1e-3)


@pytest.mark.parametrize(
    ("ra", "rb", "away", "x"),
    [(1.0, 1.0, 2.5, 1.0), (1.0, 1.0, 2.0, 1.0), (3.0, 1.0, 1.0, 3.0), (1.0, 3.0, 1.0, -1.0), (1.0, 2.0, 1.0, -1.0)],
)
def test_spheres_that_do_not_meet(ra, rb, away, x):
    """The point of the first that is nearest to the second: between, or beyond, on the line of the centres."""
    found = spheres.nearest_on_circle((0.0, 0.0, 0.0), ra, (away, 0.0, 0.0), rb, (0.3, 0.4, 0.5), (0.0, 0.0, 1.0))
    np.testing.assert_allclose(found, (x, 0.0, 0.0), atol=1e-12)


def test_a_point_on_the_axis_takes_the_side():
    """Where the nearest point is undefined the side decides; where that is none either, a fixed one that is on both."""
    a, b, middle = (0.0, 0.0, 0.0), (2.0, 0.0, 0.0), (0.7, 0.0, 0.0)
    found = spheres.nearest_on_circle(a, 1.5, b, 1.5, middle, (5.0, 0.0, -2.0))
    np.testing.assert_allclose(found, (1.0, 0.0, -np.sqrt(1.25)), atol=1e-12)
    found = np.array(spheres.nearest_on_circle(a, 1.5, b, 1.5, middle, (3.0, 0.0, 0.0)))
    assert np.linalg.norm(found) == pytest.approx(1.5)
    assert np.linalg.norm(found - b) == pytest.approx(1.5)
    for p, side, expected in (
        ((0.0, 2.0, 0.0), (0.0, 0.0, 1.0), (0.0, 1.5, 0.0)),
        ((0.0, 0.0, 0.0), (0.0, 0.0, -3.0), (0.0, 0.0, -1.5)),
        ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (1.5, 0.0, 0.0)),
    ):
        found = spheres.nearest_on_circle(a, 1.5, (1e-15, 0.0, 0.0), 1.5, p, side)
        np.testing.assert_allclose(found, expected, atol=1e-9)


def test_the_side_to_which_a_joint_bends_at_rest():
    """The middle's way off the line of both bones, turned with the body and onto the present line."""
    base, along = (1.0, 0.5, 0.0), (2.0, 0.0, 0.0)
    R = turn([0.2, -0.1, 0.5, 0.8]).as_matrix()
    there = R @ [3.0, 0.0, 0.0]
    bend = np.array(spheres.bend_at_rest(tuple(R.ravel()), base, along, (0.0, 0.0, 0.0), tuple(there)))
    np.testing.assert_allclose(bend / np.linalg.norm(bend), R @ [0, 1, 0], atol=1e-12)
    other = (R @ sy.Rotation.from_rotvec([0, 0, 0.9]).as_matrix()) @ [2.0, 0.0, 0.0]  # the line turned about z
    bend = np.array(spheres.bend_at_rest(tuple(R.ravel()), base, along, (0.0, 0.0, 0.0), tuple(other)))
    expected = R @ sy.Rotation.from_rotvec([0, 0, 0.9]).as_matrix() @ [0, 1, 0]
    np.testing.assert_allclose(bend / np.linalg.norm(bend), expected, atol=1e-12)
    for straight in ((1.0, 0.0, 0.0), (1.0, 1e-12, 0.0)):
        bend = np.array(spheres.bend_at_rest(tuple(R.ravel()), straight, along, (0.0, 0.0, 0.0), tuple(there)))
        assert np.linalg.norm(bend) > 0.5
        assert abs(bend @ there) < 1e-9
    bend = spheres.bend_at_rest(tuple(np.eye(3).ravel()), base, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (1.0, 0.0, 0.0))
    assert np.isfinite(bend).all()


def test_a_distance_of_zero_has_a_direction_of_length_one():
    """Where the two points are one, any direction will do; its gradient has the length that it has elsewhere."""
    slides = [sy.Joint(f"s{i}", f"s{i - 1}" if i else "base", sy.Kind.SLIDE, axis=np.eye(3)[i]) for i in range(3)]
    body = sy.Skeleton([sy.Joint("base", None), *slides])
    lengths = []
    for away in ((0.0, 0.0, 0.0), (0.3, -0.1, 0.2)):
        parts = Parts(body, [sy.DistanceGoal("s2", "base", minimum=1.0)], sy.LevenbergMarquardt(), away)
        lengths.append(np.linalg.norm(parts.jacobian()))
    assert lengths[0] == pytest.approx(lengths[1])
