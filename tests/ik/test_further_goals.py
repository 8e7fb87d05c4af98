"""Goals beyond a place in the world: every Jacobian by central differences, degenerate cases, balance by Pinocchio."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import synovia as sy
from conftest import UNCOMPILED
from probes import Probe, random_q
from trees import random_frame, random_tree

SEEDS = st.integers(0, 2**31 - 1)
TREES = 4 if UNCOMPILED else 10  # of nine joints, for each kind of goal and of root


def some_goal(kind, skeleton, rng):
    """Return a goal of a kind on random joints, with a target that it misses."""
    n = len(skeleton)
    a, b, c = (int(row) for row in n // 3 + rng.permutation(n - n // 3)[:3])
    point, offset = 2 * rng.normal(size=3), 0.3 * rng.normal(size=3)
    frame = random_frame(rng)
    valued = [row for row in range(n) if skeleton.joints[row].kind in (sy.Kind.HINGE, sy.Kind.SLIDE, sy.Kind.BALL)]
    own = valued[int(rng.integers(len(valued)))] if valued else 0
    below = 3.1 if skeleton.joints[own].kind is sy.Kind.BALL else 50.0
    return {
        "aim": lambda: sy.AimGoal(a, point, axis=rng.normal(size=3), offset=offset),
        "level aim": lambda: sy.AimGoal(
            a, point, axis=(0, 0, 1), top=(*rng.normal(size=2), 0), up=rng.normal(size=3), offset=offset
        ),
        "direction": lambda: sy.DirectionGoal(a, rng.normal(size=3), point),
        "pole": lambda: sy.PoleGoal(a, point, root=b, tip=c),
        "too near": lambda: sy.DistanceGoal(a, b, minimum=20.0, offset=offset, other_offset=rng.normal(size=3)),
        "too far": lambda: sy.DistanceGoal(a, point=point, maximum=0.01, offset=offset),
        "plane": lambda: sy.PlaneGoal(a, 20 * point, rng.normal(size=3), offset=offset),
        "range": lambda: sy.RangeGoal(own, lower=below),
        "centre": lambda: sy.CenterOfMassGoal(point),
        "support": lambda: sy.CenterOfMassGoal(polygon=5 + rng.normal(size=(5, 3)), up=rng.normal(size=3)),
        "relative": lambda: sy.RelativeGoal(a, b, transform=frame, offset=offset, other_offset=random_frame(rng)),
        "relative position": lambda: sy.RelativeGoal(a, b, point),
        "relative rotation": lambda: sy.RelativeGoal(a, b, rotation=frame[:3, :3]),
        "normal": lambda: sy.ContactGoal(a, point, normal=rng.normal(size=3), axis=rng.normal(size=3), offset=offset),
    }[kind]()


# rows that are linear in small motions; those of directions are rotation vectors, exact in the gradient
EXACT = {"pole", "too near", "too far", "plane", "range", "centre", "support", "relative position"}
KINDS = [*sorted(EXACT), "aim", "level aim", "direction", "relative", "relative rotation", "normal"]


@pytest.mark.parametrize("free", [False, True], ids=["fixed root", "free root"])
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=TREES)
@given(seed=SEEDS)
def test_jacobians_are_the_derivatives_of_the_residuals(kind, free, seed):
    """Of two goals of a kind with other weights, on trees with coupled joints; directions: the gradient of the cost."""
    rng = np.random.default_rng(seed)
    skeleton = random_tree(rng, free=free, bounded=False, mass=True)
    goals = [some_goal(kind, skeleton, rng), sy.PositionGoal(0, (1, 2, 3), weight=3.0)]
    ik = sy.IK(skeleton, goals, root="free" if free else "fixed")
    probe = Probe(ik, random_q(ik.skeleton, rng))
    if probe.columns == 0:
        return
    J, errors = probe.jacobian()
    e = probe.residual()
    slopes, gradient = probe.differences()
    scale = 1 + np.abs(J).max()
    if kind == "pole" and (scale > 1e3 or abs(errors[0, 1]) > 3.1):
        return  # within the fading or beside the jump at half a turn
    if kind in EXACT:
        np.testing.assert_allclose(slopes, J, atol=2e-6 * scale)
    if kind == "level aim" and _is_steep(ik, probe.q):
        return  # where the roll fades
    np.testing.assert_allclose(gradient, -J.T @ e, atol=2e-6 * scale * (1 + np.abs(e).max()))


def _is_steep(ik, q):
    """Return whether the axis of a goal that has an up is within 12° of it, or nearly a whole half turn away."""
    goal, row = ik.goals[0], ik.problem.goal_joints[0][0]
    frame = sy.Pose(ik.skeleton, q).matrix(row) @ goal.offset[:3, :3]
    return abs(frame[:, 2] @ goal.target[:3, 2]) > 0.97


def probe_of(skeleton, goal, q=None):
    """Return the probe of one goal at joint values, or at rest."""
    ik = sy.IK(skeleton, goal)
    return Probe(ik, (ik.problem.default_start.q if q is None else q).copy())


LIMB = sy.Skeleton.chain([(0, 0, 0), (1, 0, 0.2), (2, 0, 0)])
STRAIGHT = sy.Skeleton.chain([(0, 0, 0), (1, 0, 0), (2, 0, 0)])


@pytest.mark.parametrize(
    ("skeleton", "goal", "wanted"),
    [
        (LIMB, sy.PoleGoal("joint1", (1, 1, 0)), np.pi / 2),
        (LIMB, sy.PoleGoal("joint1", (5, 0, -1)), np.pi),
        (LIMB, sy.PoleGoal("joint1", (5, 0, 0)), 0.0),  # on the line
        (STRAIGHT, sy.PoleGoal("joint1", (1, 1, 0)), 0.0),  # no bend, no plane
        (LIMB, sy.AimGoal("joint2", (9, 0, 0), axis=(1, 0, 0)), 0.0),
        (LIMB, sy.AimGoal("joint2", (-9, 0, 0), axis=(2, 0, 0)), np.pi),
        (LIMB, sy.AimGoal("joint2", (2, 0, 0)), 0.0),  # the point is where the joint is
        (LIMB, sy.ContactGoal("joint2", (2, 0, 0), normal=(0, 0, -1), axis=(0, 0, 1)), np.pi),
        (LIMB, sy.ContactGoal("joint2", (2, 0, 0), normal=(0, 1, 0), axis=(0, 0, 1)), np.pi / 2),
        (LIMB, sy.RelativeGoal("joint2", "joint0", rotation=np.diag([1.0, -1, -1])), np.pi),
    ],
)
def test_angles_at_the_edges(skeleton, goal, wanted):
    """Straight, opposite, on the line: right, or nothing; never NaN."""
    J, errors = probe_of(skeleton, goal).jacobian()
    assert errors[0, 1] == pytest.approx(wanted, abs=1e-7)
    assert np.isfinite(J).all()
    if wanted == 0.0 and goal.kind == "pole":
        assert not J.any()


@pytest.mark.parametrize(
    ("goal", "wanted"),
    [
        (sy.DistanceGoal("joint2", "joint0", minimum=2.5), 0.5),
        (sy.DistanceGoal("joint2", "joint0", minimum=1.5, maximum=2.0), 0.0),
        (sy.DistanceGoal("joint2", point=(2, 0, 3), maximum=1.0), 2.0),
        (sy.DistanceGoal("joint0", point=(0, 0, 0), minimum=0.5), 0.5),  # at one place: any way is out
        (sy.PlaneGoal("joint2", (0, 0, 0.25), (0, 0, 3)), 0.25),
        (sy.PlaneGoal("joint2", (0, 0, -0.25), (0, 0, 3)), 0.0),
    ],
)
def test_one_sided_goals(goal, wanted):
    """Inside they ask nothing: no error and no gradient."""
    J, errors = probe_of(LIMB, goal).jacobian()
    assert errors[0, 0] == pytest.approx(wanted, abs=1e-12)
    assert np.isfinite(J).all()
    if wanted == 0.0:
        assert not J.any()


def _turned(angle):
    """Return the value of a ball that is turned from rest."""
    return sy.Rotation.from_rotvec(angle * np.array([0.6, 0.0, 0.8])).as_quat().tolist()


@pytest.mark.parametrize(
    ("joint", "values", "bounds", "wanted"),
    [
        ("hinge", [-0.4], (-0.5, 0.5), 0.0),
        ("hinge", [0.5], (-0.5, 0.5), 0.0),  # at the edge
        ("hinge", [0.7], (-0.5, 0.5), 0.2),
        ("hinge", [0.7 + 2 * np.pi], (-0.5, 0.5), 0.2 + 2 * np.pi),  # whole turns count
        ("hinge", [-0.7], (-0.5, np.inf), 0.2),
        ("hinge", [-0.7], (-np.inf, 0.5), 0.0),
        ("hinge", [0.1], (0.3, 0.3), 0.2),
        ("follower", [0.4], (-0.5, 0.5), 0.7),  # -2 times the hinge's, less 0.4
        ("slide", [2.5], (-1.0, 1.0), 1.5),
        ("ball", _turned(0.0), (-np.inf, 0.5), 0.0),
        ("ball", _turned(0.0), (0.5, 1.0), 0.5),  # at rest any way is out
        ("ball", _turned(0.8), (0.5, 1.0), 0.0),
        ("ball", _turned(np.pi - 0.1), (-1.0, 1.0), np.pi - 1.1),
        ("ball", _turned(-np.pi - 0.1), (0.0, 1.0), np.pi - 1.1),  # the shorter way round
    ],
)
def test_ranges_of_values(joint, values, bounds, wanted):
    """Of every kind of joint: nothing within, what is missing beyond, as a length or as an angle."""
    rest = np.eye(4)
    rest[0, 3] = 1.0
    kinds = {"hinge": sy.Kind.HINGE, "follower": sy.Kind.HINGE, "slide": sy.Kind.SLIDE, "ball": sy.Kind.BALL}
    own = [(name, sy.Mimic("hinge", -2.0, -0.4) if name == "follower" else None) for name in kinds]
    parents = [None, *kinds]
    skeleton = sy.Skeleton(
        sy.Joint(name, parent, kinds[name], rest, axis=(0, 1, 0), mimic=mimic)
        for (name, mimic), parent in zip(own, parents, strict=False)
    )
    q = skeleton.rest_q.copy()
    q[skeleton.q_slice("hinge" if joint == "follower" else joint)] = values
    J, errors = probe_of(skeleton, sy.RangeGoal(joint, *bounds), skeleton.follow(q)).jacobian()
    assert errors[0].tolist() == pytest.approx([wanted, 0.0] if joint == "slide" else [0.0, wanted], abs=1e-12)
    grows = {"follower": 2.0}.get(joint, 1.0)
    assert np.linalg.norm(J) == pytest.approx(grows if wanted else 0.0, abs=1e-12)


@pytest.mark.parametrize(
    ("polygon", "far"),
    [
        ([(0, 0, 0), (4, 0, 9), (4, 2, 0), (0, 2, 0), (2, 1, 5)], 0.0),  # above it, whatever the heights
        ([(2, 0, 0), (4, 0, 0), (4, 2, 0), (2, 2, 0)], 1.0),  # beside an edge
        ([(4, 5, 0), (4, 6, 0), (6, 5, 0)], 5.0),  # beside a corner
        ([(-2, 0, 0), (2, 0, 0)], 1.0),  # two corners: a line
        ([(1, 3, 7)], 2.0),
    ],
)
def test_support(polygon, far):
    """The centre of mass at (1, 1): nearest points of a hull, of a line and of a point."""
    block = sy.Skeleton([sy.Joint("block", kind=sy.Kind.BALL, mass=2.0, com=(1, 1, 4))], up="z")
    _, errors = probe_of(block, sy.CenterOfMassGoal(polygon=polygon)).jacobian()
    assert errors[0, 0] == pytest.approx(far, abs=1e-12)
    flipped = sy.CenterOfMassGoal(polygon=np.array(polygon), up=(0, 0, -1))
    assert probe_of(block, flipped).jacobian()[1][0, 0] == pytest.approx(far, abs=1e-12)


def test_centre_of_mass_and_its_jacobian_are_those_of_pinocchio(shared_data):
    """G1, all joints moving, in random poses: to 1e-9."""
    pin = pytest.importorskip("pinocchio")
    path = shared_data / "robot" / "g1_29dof.urdf"
    model = pin.buildModelFromUrdf(str(path), pin.JointModelFreeFlyer())  # or the pelvis would not count
    data = model.createData()
    skeleton = sy.load_skeleton(path)
    names = [name for name in model.names[1:] if name in skeleton.joint_names]
    assert len(names) == model.nv - 6
    ik = sy.IK(skeleton, sy.CenterOfMassGoal((0, 0, 0)))
    column = {skeleton.joint_names[row]: v for row, v in zip(skeleton.tables.owner, range(skeleton.nv), strict=True)}
    for seed in range(3):
        pose = skeleton.random_pose(seed)
        probe = Probe(ik, pose.q.copy())
        J, errors = probe.jacobian()
        q = pin.neutral(model)
        for name in names:
            q[model.joints[model.getJointId(name)].idx_q] = pose[name]
        com = pin.centerOfMass(model, data, q)
        np.testing.assert_allclose(pose.center_of_mass(), com, atol=1e-9)
        assert errors[0, 0] == pytest.approx(np.linalg.norm(com), abs=1e-9)
        theirs = pin.jacobianCenterOfMass(model, data, q)
        order = [model.joints[model.getJointId(name)].idx_v for name in sorted(names, key=column.__getitem__)]
        np.testing.assert_allclose(J * ik.reach, theirs[:, order], atol=1e-9)


def test_levels_and_weights():
    """Rows of a level stand together, levels are numbered on, and weights are relative to the largest of a level."""
    from synovia.problem import reduce

    body = sy.bundled("humanoid")
    goals = [
        sy.PositionGoal("head", priority=7, weight=2.0),
        sy.PoseGoal("left_foot"),
        sy.RestGoal(),
        sy.AimGoal("head", priority=7, weight=8.0),
        sy.ContactGoal("right_foot", keep="normal", weight=4.0, axis=(0, 1, 0)),
        sy.PoleGoal("left_lower_leg", priority=3),
    ]
    goals = [goal.resolved(body) for goal in goals]
    tables = reduce(body, goals, [[body.index(joint) for joint in goal.joints] for goal in goals]).goals
    assert tables.table[:, 2:].tolist() == [[13, 2, 3], [0, 0, 6], [0, 0, 0], [16, 2, 3], [6, 0, 6], [12, 1, 1]]
    assert tables.levels.tolist() == [0, 12, 13, 19]
    np.testing.assert_allclose(tables.roots**2, [0.25, 0.25, 0, 1, 1, 1])


def test_rest_goals_make_a_posture():
    """Weights of joints and references by variable; preferred values, stiffness, and a root that was put before."""
    from synovia.problem import reduce

    arm = sy.bundled("arm7")
    goal = sy.RestGoal({arm.joint_names[2]: 0.3}, joints={arm.joint_names[2]: 2.0, arm.joint_names[3]: 0.0}, weight=0.5)
    reduced = reduce(arm, [goal.resolved(arm)], [()])
    stiffness = arm.joints[2].stiffness
    assert reduced.posture[reduced.owner == 2].tolist() == [[1.0 * (1 + stiffness), 0.3, 0, 0, 0]]
    assert not reduced.posture[reduced.owner != 2, 0].any()
    body = sy.bundled("humanoid")
    pose = body.random_pose(3)
    posture = reduce(body, [sy.RestGoal(pose).resolved(body)], [()])
    assert (posture.posture[:, 0] > 0).sum() == len([j for j in body.joints if j.kind.q_size in (1, 4)])
    at = posture.variables[5, 1]
    size = 4 if posture.variables[5, 0] else 1
    np.testing.assert_array_equal(posture.posture[5, 1 : 1 + size], pose.q[at : at + size])


@pytest.mark.compiled
def test_a_body_meets_goals_of_all_kinds_at_once(tmp_path):
    """From one start, by names as targets, in a batch with the same bits; the picture and the sentences know them."""
    body = sy.bundled("humanoid")
    square = [(x, 0, z) for x in (-0.2, 0.2) for z in (-0.1, 0.2)]
    goals = [
        sy.PositionGoal("left_hand"),
        sy.AimGoal("head", name="gaze"),
        sy.PoleGoal("left_lower_arm", name="elbow"),
        sy.ContactGoal("left_foot", keep="normal"),
        sy.ContactGoal("right_foot"),
        sy.RelativeGoal("right_hand", "hips", (-0.2, 0.05, 0.1), name="hand on hip"),
        sy.PlaneGoal("left_lower_leg", (0, 0.2, 0)),
        sy.DistanceGoal("left_hand", "head", minimum=0.3, name="clear"),
        sy.CenterOfMassGoal(polygon=square),
    ]
    ik = sy.IK(body, goals, sy.LevenbergMarquardt(attempts=3), root="free")
    wanted = {"left_hand": (0.5, 1.25, 0.35), "gaze": (0.6, 1.2, 0.8), "elbow": (0.9, 0.9, -0.3)}
    solution = ik.solve(wanted)
    assert solution.reached
    pose = solution.pose
    way = np.array(wanted["gaze"]) - pose.position("head")
    assert pose.matrix("head")[:, 2] @ way == pytest.approx(np.linalg.norm(way), rel=1e-5)
    hand = pose.matrix("hips").T @ (pose.position("right_hand") - pose.position("hips"))
    np.testing.assert_allclose(hand, (-0.2, 0.05, 0.1), atol=ik.tolerance[0])
    assert np.linalg.norm(pose.position("left_hand") - pose.position("head")) > 0.3 - ik.tolerance[0]
    assert abs(pose.center_of_mass()[0]) < 0.2 + ik.tolerance[0]
    np.testing.assert_allclose(
        pose.position("left_foot"), ik.problem.default_start.position("left_foot"), atol=ik.tolerance[0]
    )
    many = ik.solve_many({name: np.array([value, value]) for name, value in wanted.items()})
    np.testing.assert_array_equal(many.q[1], pose.q)
    lost = ik.solve({"left_hand": (3.0, 1.25, 0.35), "gaze": (0.6, 1.2, 0.8)})
    assert not lost.reached
    assert any("hand on hip" in line or "left_hand" in line for line in lost.explain())
    sy.picture(lost, path=tmp_path / "lost.png", size=(320, 240))


def test_what_cannot_be_is_refused():
    """Unknown other joints, no masses, no way up, solvers that cannot honour a goal: each in its own words."""
    body, arm = sy.bundled("humanoid"), sy.Skeleton.chain([(0, 0, 0), (1, 0, 0), (2, 0, 0)])
    with pytest.raises(sy.errors.UnknownNameError, match="Did you mean 'hips'"):
        sy.IK(body, sy.RelativeGoal("left_hand", "hip"))
    with pytest.raises(sy.errors.UnknownNameError, match="Did you mean"):
        sy.IK(body, sy.PoleGoal("left_lower_arm", tip="left_hnd"))
    with pytest.raises(sy.InputError, match="chain: expected joints with masses"):
        sy.IK(arm, sy.CenterOfMassGoal((0, 0, 0)))
    with pytest.raises(sy.InputError, match="up: expected a skeleton whose up axis is known"):
        sy.IK(arm, sy.PlaneGoal("joint2"))
    with pytest.raises(sy.InputError, match=r"tip, got .*tip="):
        sy.IK(body, sy.PoleGoal("chest"))
    with pytest.raises(sy.errors.UnsupportedError, match="ccd does not support"):
        sy.IK(body, sy.AimGoal("head"), "ccd")
    with pytest.raises(sy.InputError, match="minimum <= maximum"):
        sy.DistanceGoal("a", "b", minimum=2, maximum=1)
    with pytest.raises(sy.InputError, match=r"other: expected a joint.*point= for a place"):
        sy.DistanceGoal("a", (0.0, 1.0, 0.0), maximum=1)
    with pytest.raises(sy.InputError, match="target of 'center_of_mass': expected a goal that takes"):
        sy.IK(body, sy.CenterOfMassGoal(polygon=[(0, 0, 0)])).solve({"center_of_mass": (0, 0, 0)})
    with pytest.raises(sy.InputError, match="largest_step is out of range"):
        sy.FullBody(largest_step=0.0)
    level = sy.PositionGoal("head", priority=np.int64(2)).priority
    assert (level, type(level)) == (2, int)
    with pytest.raises(sy.InputError, match="axis: expected a vector"):
        sy.AimGoal("head", axis=(0, 0, 0))
    for bounds, word in (
        ((1.0, 0.5), "lower <= upper"),
        ((np.nan, 0.5), "lower <= upper"),
        ((np.inf, np.inf), "lower <= upper"),
        ((), "a finite lower="),
        (("wide", 0.5), "lower: expected a number, got 'wide'"),
    ):
        with pytest.raises(sy.InputError, match=f"goal on 'knee'.*{word}"):
            sy.RangeGoal("knee", *bounds)
    for joint, bounds, word in (
        ("hips", (0.0, 1.0), "expected a HINGE, SLIDE or BALL, got .*PlaneGoal"),
        ("left_lower_leg", (3.0, 4.0), "bounds: expected values within its limits, "),
        ("left_upper_leg", (-2.0, -1.0), "a turn from rest, 0 to 3.14"),
    ):
        with pytest.raises(sy.InputError, match=word):
            sy.IK(body, sy.RangeGoal(joint, *bounds))
    with pytest.raises(sy.errors.UnsupportedError, match="ccd does not support"):
        sy.IK(body, sy.RangeGoal("left_lower_leg", upper=1.0), "ccd")
    with pytest.raises(sy.InputError, match="where normal= or axis= is given"):
        sy.ContactGoal("foot", keep="point", normal=(0, 1, 0))
    with pytest.raises(sy.InputError, match=r"up: expected polygon= too, got .*no direction"):
        sy.CenterOfMassGoal((0, 1, 0), up=(0, 1, 0))
    for goal in (
        sy.DistanceGoal("left_hand", body.index("left_hand"), minimum=0.1),
        sy.RelativeGoal("left_hand", body.index("left_hand")),
        sy.PoleGoal("left_lower_arm", root="left_elbow"),
    ):
        with pytest.raises(sy.InputError, match=r"goal 'left_\w+': joints: expected different joints, got \['left_"):
            sy.IK(body, goal)
    for words in (["pose"], "", np.array(["pose", "point"])):
        with pytest.raises(sy.InputError, match="parts: expected 'position', "):
            sy.RelativeGoal("left_hand", "hips", parts=words)
        with pytest.raises(sy.InputError, match="keep: expected 'point', "):
            sy.ContactGoal("left_foot", keep=words)
    for joints in (3.5, [["left_hand"]], {2.5: 1.0}):
        with pytest.raises(sy.InputError, match=r"rest goal: joints: expected names or rows of joints, got"):
            sy.RestGoal(joints=joints)
    with pytest.raises(sy.InputError, match="factor of 'head': expected 0 or more, got -1"):
        sy.RestGoal(joints={"head": -1})
    with pytest.raises(sy.InputError, match="two rest goals concern"):
        sy.IK(body, [sy.PositionGoal("head"), sy.RestGoal(), sy.RestGoal()], _All())


def test_rest_goals_take_joints_in_every_fair_form():
    """One joint, several of any collection, numbers of NumPy; and what is printed makes the same goal again."""
    names = ("joint1", "joint3")
    for joints in (names, list(names), iter(names), dict.fromkeys(names, np.float32(1.0))):
        assert sy.RestGoal(joints=joints).parts == {"joint1": 1.0, "joint3": 1.0}
    assert sy.RestGoal(joints="joint1").parts == {"joint1": 1.0}
    assert sy.RestGoal(joints=np.int64(3)).parts == {3: 1.0}
    assert repr(sy.RestGoal({"a": 0.5}, joints=["a"])) == "RestGoal(pose={'a': 0.5}, joints={'a': 1.0})"
    assert repr(sy.CustomGoal(np.sum, tolerance=1.0)) == "CustomGoal(residual=sum, tolerance=1)"


def test_a_plane_without_normal_and_point_is_level_through_the_start():
    """The normal is the upward direction, and not the axis of the joint, wherever the point comes from."""
    arm = sy.bundled("arm7")
    solution = sy.solve(arm, sy.PlaneGoal("joint4", None))
    start = arm.rest_pose().position("joint4")
    np.testing.assert_allclose(solution.targets[0, :3, 2], (0, 0, 1), atol=1e-12)
    np.testing.assert_allclose(solution.targets[0, :3, 3], start, atol=1e-12)


class _All(sy.LevenbergMarquardt):
    """Levenberg-Marquardt that takes rest goals."""

    supported_goals = sy.LevenbergMarquardt.supported_goals | {"rest"}
