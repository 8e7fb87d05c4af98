"""All branches of chains of six joints against descents from many poses, and what the list claims about itself."""

import itertools

import numpy as np
import pytest

import synovia as sy
from synovia.model import Joint, Kind, Mimic

pytestmark = pytest.mark.compiled  # each takes many seconds as plain Python

DESCENTS = 120  # from random poses, to a branch that the list must have
POSES = 6
NEAR = 1e-3  # radians or lengths; near a double root the tolerance of a descent is a long path


def at(rng, scale=0.4):
    """Return a random transform."""
    out = np.eye(4)
    out[:3, :3] = sy.Rotation.random(random_state=rng).as_matrix()
    out[:3, 3] = rng.uniform(-scale, scale, 3)
    return out


def chain(seed, kinds, limits=(-np.pi, np.pi)):
    """Return a chain with random axes, base and tool; slides are limited to half a length unit."""
    rng = np.random.default_rng(seed)
    joints = [Joint("base", rest=at(rng))]
    for i, kind in enumerate(kinds):
        bounds = limits if kind is Kind.HINGE else (-0.5, 0.5)
        joints.append(
            Joint(f"j{i}", joints[-1].name, kind, at(rng), axis=rng.normal(size=3), limit=sy.Interval(*bounds))
        )
    return sy.Skeleton([*joints, Joint("tool", joints[-1].name, rest=at(rng))])


def hinges(*slides):
    """Return the kinds of six joints; those at the given places are slides."""
    return [Kind.SLIDE if i in slides else Kind.HINGE for i in range(6)]


def ur(limit=2 * np.pi, seed=None):
    """Return an arm of the build of a UR5e; with a seed its axes are a little off, as after calibration."""
    rng = np.random.default_rng(seed)
    h = np.pi / 2
    joints, rest = [Joint("base")], np.eye(4)
    rows = ((0, h, 0.1625), (-0.425, 0, 0), (-0.3922, 0, 0), (0, h, 0.1333), (0, -h, 0.0997), (0, 0, 0.0996))
    for i, (a, alpha, d) in enumerate(rows):
        joints.append(
            Joint(f"j{i}", joints[-1].name, Kind.HINGE, rest, axis=(0, 0, 1), limit=sy.Interval(-limit, limit))
        )
        if seed is not None:
            a, alpha, d = a + 5e-4 * rng.normal(), alpha + 1e-3 * rng.normal(), d + 5e-4 * rng.normal()
        rest = np.eye(4)
        rest[:3, :3] = sy.Rotation.from_euler("x", alpha).as_matrix()
        rest[:3, 3] = a, 0, d
    return sy.Skeleton([*joints, Joint("tool", joints[-1].name, rest=rest)])


def locked(seed, joint):
    """Return the bundled arm of seven hinges with one joint locked."""
    arm = sy.bundled("arm7")
    return arm.with_limits({joint: (arm.random_pose(seed)[joint],) * 2})


def exact(ik, pose):
    """Return the branches of a pose's target: it is one of them; each is exact, within the limits and listed once."""
    lower, upper = pose.skeleton.limits
    target = pose.transform("tool")
    branches = ik.branches(target)
    for branch in branches:
        np.testing.assert_allclose(branch.pose.transform("tool"), target, atol=1e-9)
    q = branches.q
    assert ((q >= lower) & (q <= upper)).all()
    for i in range(len(q)):
        assert np.abs(np.delete(q, i, axis=0) - q[i]).max(axis=1, initial=0.0).min(initial=np.inf) > 1e-7
    away = np.linalg.norm(q - pose.skeleton.rest_pose().q, axis=1)
    assert (np.diff(away) > -1e-9).all() or any(joint.kind is Kind.SLIDE for joint in pose.skeleton.joints)
    if branches.complete:
        assert np.abs(q - pose.q).max(axis=1).min() < NEAR
    return branches


def missed_by(branches, skeleton, target):
    """Return whether descents from random poses find what is no branch, up to whole turns."""
    ik = sy.IK(skeleton, sy.PoseGoal("tool"), sy.LevenbergMarquardt(attempts=1), tolerance=(1e-10, 1e-10))
    starts = [skeleton.random_pose(900 + i).q for i in range(DESCENTS)]
    found = ik.solve_many(np.tile(target, (DESCENTS, 1, 1)), starts, threads=1)
    turns = [joint.kind is Kind.HINGE for joint in skeleton.joints if joint.kind.q_size]
    for q in found.q[found.reached]:
        away = branches.q - q
        away[:, turns] = (away[:, turns] + np.pi) % (2 * np.pi) - np.pi
        if np.abs(away).max(axis=1).min(initial=np.inf) >= NEAR:
            return True
    return False


CHAINS = {
    "random": lambda k: chain(k, hinges()),
    "narrow": lambda k: chain(k, hinges(), (-1.5, 2.0)),
    "slide": lambda k: chain(k, hinges(k % 6)),
    "calibrated": lambda k: ur(np.pi, seed=k),
    **{f"locked{i}": lambda k, i=i: locked(k, f"joint{i}") for i in range(1, 8)},
}


@pytest.mark.parametrize("name", list(CHAINS))
def test_six_joints_list_every_branch(name):
    """No descent finds another branch where the list claims to be complete, and it nearly always does."""
    complete = 0
    for k in range(POSES):
        skeleton = CHAINS[name](k)
        pose = skeleton.random_pose(100 + k)
        branches = exact(sy.IK(skeleton, sy.PoseGoal("tool")), pose)
        complete += branches.complete
        if branches.complete:
            assert not missed_by(branches, skeleton, pose.transform("tool"))
    assert complete >= POSES - 1


@pytest.mark.nightly
@pytest.mark.parametrize("name", list(CHAINS))
def test_six_joints_list_every_branch_of_many_targets(name):
    """As above, for more chains and targets."""
    complete = count = 0
    for k in range(25):
        skeleton = CHAINS[name](1000 + k)
        ik = sy.IK(skeleton, sy.PoseGoal("tool"))
        for j in range(8):
            pose = skeleton.random_pose(50 * k + j)
            branches = exact(ik, pose)
            count += 1
            complete += branches.complete
            if branches.complete:
                assert not missed_by(branches, skeleton, pose.transform("tool"))
    assert complete >= 0.95 * count


def test_a_target_out_of_reach_has_no_branch_and_that_is_proved():
    skeleton = chain(3, hinges())
    target = np.eye(4)
    target[:3, 3] = 9.0, 0.0, 0.0
    branches = sy.IK(skeleton, sy.PoseGoal("tool")).branches(target)
    assert len(branches) == 0
    assert branches.complete


def test_the_default_solver_lists_the_branches_of_closed_forms():
    arm = ur()
    target = arm.random_pose(4).transform("tool")
    plain, closed = (sy.IK(arm, sy.PoseGoal("tool"), solver).branches(target) for solver in (None, "segments"))
    np.testing.assert_array_equal(plain.q, closed.q)
    assert plain.complete
    assert closed.complete


def test_whole_turns_are_listed_on_request():
    """Limits of ±2π hold each value of a hinge twice."""
    arm = ur()
    ik = sy.IK(arm, sy.PoseGoal("tool"))
    pose = arm.random_pose(4)
    plain, turns = (ik.branches(pose.transform("tool"), turns=turns) for turns in (False, True))
    assert len(turns) == 2**6 * len(plain)
    q = turns.q
    assert (np.abs(q) <= 2 * np.pi).all()
    assert len(np.unique(np.round(q, 6), axis=0)) == len(q)
    assert np.abs(q - pose.q).max(axis=1).min() < 1e-6
    assert (np.diff(np.linalg.norm(q, axis=1)) > -1e-9).all()
    for branch in list(turns)[:: len(turns) // 9]:
        np.testing.assert_allclose(branch.pose.transform("tool"), pose.transform("tool"), atol=1e-9)


def test_branches_of_a_singular_pose_are_not_claimed_to_be_complete():
    """With a straight wrist the fourth and the sixth joint may turn against each other."""
    arm = ur(np.pi)
    pose = sy.Pose(arm, {"j0": 0.3, "j1": -1.0, "j2": 1.2, "j3": 0.4, "j4": 0.0, "j5": 0.2})
    assert not sy.IK(arm, sy.PoseGoal("tool")).branches(pose.transform("tool")).complete
    bent = chain(5, hinges()).with_limits({"j4": (0.2, 0.2)})
    with pytest.raises(sy.errors.UnsupportedError, match="lists no branches"):
        sy.IK(bent, sy.PoseGoal("tool")).branches(pose.transform("tool"))


def structured(seed, arm):
    """Return a chain of hinges with right and half-right angles, some coaxial, whose wrist is spherical if ``arm``."""
    rng = np.random.default_rng(seed)
    joints = [Joint("base")]
    for i in range(6):
        rest = np.eye(4)
        angle = rng.choice([-90, -45, 0, 45, 90])
        if arm:
            angle = (0, 90, 0, 90, -90, 90)[i]
        rest[:3, :3] = sy.Rotation.from_euler(rng.choice(["x", "y"]), angle, degrees=True).as_matrix()
        if not (arm and i > 3):
            rest[rng.integers(3), 3] = rng.choice([0.2, 0.3, 0.5])
        low, high = np.sort(rng.uniform(-3.1, 3.1, 2))
        limit = sy.Interval(-np.pi, np.pi) if rng.random() < 0.5 else sy.Interval(low, high)
        joints.append(Joint(f"j{i}", joints[-1].name, Kind.HINGE, rest, axis=(0, 0, 1), limit=limit))
    rest = np.eye(4)
    rest[2, 3] = 0.1
    return sy.Skeleton([*joints, Joint("tool", "j5", rest=rest)])


@pytest.mark.parametrize("arm", [False, True])
def test_a_complete_list_has_the_pose_of_the_target_on_structured_arms(arm):
    """Also if the pose is singular, or joints are at their limits, or the arm is singular in every pose."""
    for seed in range(25):
        skeleton = structured(seed, arm)
        ik = sy.IK(skeleton, sy.PoseGoal("tool"))
        rng = np.random.default_rng(seed)
        lower, upper = skeleton.limits
        for k in range(4):
            q = rng.uniform(lower, upper)
            if k == 1:
                q = np.clip(np.round(q / (np.pi / 4)) * np.pi / 4, lower, upper)
            elif k:
                held = rng.random(6) < 0.5
                q[held] = np.where(rng.random(6) < 0.5, lower, upper)[held]
            branches = ik.branches(sy.Pose(skeleton, q).transform("tool"))
            assert ((branches.q >= lower) & (branches.q <= upper)).all()
            if branches.complete:
                away = (branches.q - q + np.pi) % (2 * np.pi) - np.pi
                assert np.abs(away).max(axis=1).min(initial=np.inf) < NEAR


def coaxial(spherical):
    """Return an arm whose first two axes are one, so that it is singular in every pose."""
    rng = np.random.default_rng(2)
    joints = [Joint("base")]
    turn = sy.Rotation.from_euler("x", 90, degrees=True).as_matrix()
    for i in range(6):
        rest = at(rng)
        if i == 1:
            rest = np.eye(4)
            rest[2, 3] = 0.2
        elif i > 3 and spherical:
            rest = np.eye(4)
            rest[:3, :3] = turn if i == 4 else turn.T
        joints.append(
            Joint(f"j{i}", joints[-1].name, Kind.HINGE, rest, axis=(0, 0, 1), limit=sy.Interval(-np.pi, np.pi))
        )
    return sy.Skeleton([*joints, Joint("tool", "j5", rest=at(rng))])


@pytest.mark.parametrize("spherical", [False, True])
def test_arms_that_are_singular_in_every_pose_are_never_complete(spherical):
    skeleton = coaxial(spherical)
    ik = sy.IK(skeleton, sy.PoseGoal("tool"))
    far = np.eye(4)
    far[:3, 3] = 9.0, 0.0, 0.0
    targets = [skeleton.random_pose(k).transform("tool") for k in range(POSES)]
    assert not any(ik.branches(target).complete for target in [*targets, far])


@pytest.mark.parametrize("excess", [0.0, 5e-10])
@pytest.mark.parametrize("build", [lambda: ur(np.pi), lambda: chain(5, hinges()), lambda: ur(np.pi, seed=2)])
def test_joints_at_their_limits_count_as_within(build, excess):
    """An excess of less than 1e-9 is rounding: the branch is listed, and its joints are clamped."""
    body = build()
    for k in range(POSES):
        pose = body.random_pose(20 + k)
        low, high = pose.q - 0.4, pose.q + 0.4
        low[::2], high[1::2] = pose.q[::2] + excess, pose.q[1::2] - excess
        narrow = body.with_limits({f"j{i}": (low[i], high[i]) for i in range(6)})
        branches = sy.IK(narrow, sy.PoseGoal("tool")).branches(pose.transform("tool"))
        assert np.abs(branches.q - pose.q).max(axis=1).min(initial=np.inf) < 1e-8
        assert ((branches.q >= low) & (branches.q <= high)).all()
        assert branches.complete


def test_a_hinge_at_its_limit_counts_as_within():
    joints = [Joint("base"), Joint("a", "base", Kind.HINGE, axis=(0, 0, 1), limit=sy.Interval(0.7, 1.5))]
    reach = np.eye(4)
    reach[0, 3] = 1.0
    body = sy.Skeleton([*joints, Joint("tool", "a", rest=reach)])
    ik = sy.IK(body, sy.PositionGoal("tool"), sy.Hinges(), tolerance=(1e-12, 1e-12))
    for angle, side in ((0.7, -1), (1.5, 1)):
        branches = ik.branches((np.cos(angle + side * 5e-10), np.sin(angle + side * 5e-10), 0.0))
        np.testing.assert_array_equal(branches.q, [[angle]])


@pytest.mark.parametrize("flips", list(itertools.product([False, True], repeat=2)))
def test_parallel_axes_may_point_either_way(flips):
    """The second to fourth axis of an arm are parallel; the third and the fourth may point the other way."""
    arm = ur(np.pi)
    joints = [
        Joint(joint.name, joint.parent, joint.kind, joint.rest, axis=(0, 0, -1), limit=joint.limit)
        if (joint.name, True) in zip(("j2", "j3"), flips, strict=True)
        else joint
        for joint in arm.joints
    ]
    flipped = sy.Skeleton(joints)
    ik = sy.IK(flipped, sy.PoseGoal("tool"), "segments")
    for k in range(POSES):
        pose = flipped.random_pose(k)
        target = pose.transform("tool")
        assert ik.solve(target).reached
        branches = ik.branches(target)
        assert branches.complete
        assert np.abs(branches.q - pose.q).max(axis=1).min() < 1e-6


def test_a_determinant_that_is_zero_but_for_rounding_proves_nothing():
    """The arm has a pose from which two motions keep the tool in place; there the determinant vanishes everywhere."""

    def step(axis, angle, place):
        out = np.eye(4)
        out[:3, :3] = sy.Rotation.from_euler(axis, angle, degrees=True).as_matrix()
        out[:3, 3] = place
        return out

    rests = [
        step("z", 30, (0, -0.094886632026, 0)),
        step("z", 90, (0.18490291315, 0, 0)),
        step("z", 90, (-0.2, 0.3, -0.2)),
        step("y", 30, (0.5, 0.2, 0.5)),
        step("y", 30, (-0.408525407512, 0.285692457159, 0.264555208311)),
        step("z", 180, (0.1, -0.1, 0.4)),
        step("y", 45, (0, 0, 0)),
    ]
    joints = [Joint("base")]
    for i in range(6):
        limit = sy.Interval(-2 * np.pi, 2 * np.pi)
        joints.append(Joint(f"j{i}", joints[-1].name, Kind.HINGE, rests[i], axis=(0, 0, 1), limit=limit))
    arm = sy.Skeleton([*joints, Joint("tool", "j5", rest=rests[6])])
    ik = sy.IK(arm, sy.PoseGoal("tool"))
    for first, last in itertools.product((-1.36893593, 0.3, 1.1), (-3.40647318, 0.4)):
        pose = sy.Pose(arm, [np.pi, first, np.pi, np.pi, 2.5, last])
        assert not ik.branches(pose.transform("tool")).complete


def test_a_singular_branch_outside_the_limits_leaves_the_list_unproved():
    """Rounding moves a double root by more than it moves others, so limits may cut it."""
    arm = ur(np.pi)
    pose = sy.Pose(arm, {"j0": 0.3, "j1": -1.0, "j2": 1.2, "j3": 0.4, "j4": 0.0, "j5": 0.2})
    target = pose.transform("tool")
    narrow = arm.with_limits({"j0": (2.9, 3.0), "j5": (2.0, 2.1)})
    branches = sy.IK(narrow, sy.PoseGoal("tool")).branches(target)
    assert not len(branches)
    assert not branches.complete


def test_a_redundant_joint_at_its_limit_counts_as_within():
    arm = sy.bundled("arm7")
    pose = arm.random_pose(3)
    value = pose["joint7"]
    held = arm.with_limits({"joint7": (value, value + 0.5), "joint2": (pose["joint2"] + 5e-10, 1.7)})
    ik = sy.IK(held, sy.PoseGoal("tool"))
    target = pose.transform("tool")
    branches = ik.branches(target, redundancy={"joint7": value - 5e-10})
    assert np.abs(branches.q - pose.q).max(axis=1).min(initial=np.inf) < 1e-7
    assert branches.q[:, -1].min() >= value
    free = ik.redundancy(target, joint="joint7")
    assert free.intervals[0].low == value


def test_followers_of_joints_elsewhere_count_as_joints():
    """A joint of the chain that follows a joint outside of it, with a ratio, is solved by its leader."""
    skeleton = chain(8, hinges())
    joints = list(skeleton.joints)
    joints.insert(1, Joint("lever", "base", Kind.HINGE, axis=(0, 0, 1), limit=sy.Interval(-1.5, 1.5)))
    at_j2 = next(i for i, joint in enumerate(joints) if joint.name == "j2")
    follower = joints[at_j2]
    joints[at_j2] = Joint(
        "j2", "j1", Kind.HINGE, follower.rest, axis=follower.axis, limit=follower.limit, mimic=Mimic("lever", -2.0, 0.1)
    )
    arm = sy.Skeleton(joints)
    ik = sy.IK(arm, sy.PoseGoal("tool"))
    for k in range(POSES):
        pose = arm.random_pose(k)
        branches = ik.branches(pose.transform("tool"))
        assert branches.complete
        assert np.abs(branches.q - pose.q).max(axis=1).min() < 1e-6
        for branch in branches:
            np.testing.assert_allclose(branch.pose.transform("tool"), pose.transform("tool"), atol=1e-9)


def test_only_clear_branches_are_listed_with_a_clearance_goal():
    arm = sy.with_shapes(ur(np.pi, seed=2), {"j2": [sy.Sphere(center=(0, 0, 0), radius=0.05)]})
    pose = arm.random_pose(6)
    goal = sy.PoseGoal("tool", transform=pose.transform("tool"))
    every = sy.IK(arm, goal).branches()
    ball = sy.World({"ball": sy.Sphere(center=every[0].pose.position("j2"), radius=0.02)})
    clear = sy.IK(arm, [goal, sy.ClearanceGoal(0.01, world=ball)]).branches()
    kept = [q for q, branch in zip(every.q, every, strict=True) if np.linalg.norm(
        branch.pose.position("j2") - every[0].pose.position("j2")) > 0.08]  # fmt: skip
    np.testing.assert_allclose(clear.q, kept, atol=1e-8)
    assert clear.complete


@pytest.mark.parametrize("joint", ["joint7", "joint3", None])
def test_the_intervals_of_a_redundant_joint_are_those_that_have_branches(joint):
    """A pose's own value is in an interval with as many branches as it has; outside of all intervals there are none."""
    arm = sy.bundled("arm7")
    ik = sy.IK(arm, sy.PoseGoal("tool"))
    for k in range(3):
        pose = arm.random_pose(k)
        target = pose.transform("tool")
        free = ik.redundancy(target, joint=joint)
        assert free.joint == (joint or "joint7")
        value = pose[free.joint]
        branches = ik.branches(target, redundancy={free.joint: value})
        assert np.abs(branches.q - pose.q).max(axis=1).min() < 1e-6
        np.testing.assert_allclose(branches.q[:, arm.q_slice(free.joint)], value)
        assert [span.branches for span in free.intervals if span.low <= value <= span.high] == [len(branches)]
        rng = np.random.default_rng(k)
        for other in rng.uniform(*(limit[arm.q_slice(free.joint)][0] for limit in arm.limits), 10):
            count = sum(span.branches for span in free.intervals if span.low < other < span.high)
            assert len(ik.branches(target, redundancy={free.joint: other})) == count
        assert all(a.high <= b.low for a, b in itertools.pairwise(free.intervals))


def test_a_redundancy_that_cannot_be_used_is_refused():
    arm = sy.bundled("arm7")
    ik = sy.IK(arm, sy.PoseGoal("tool"))
    with pytest.raises(sy.errors.InputError, match="limits"):
        ik.branches(np.eye(4), redundancy={"joint7": 9.0})
    with pytest.raises(sy.errors.InputError, match="one joint"):
        ik.branches(np.eye(4), redundancy={"joint7": 0.0, "joint1": 0.0})
    with pytest.raises(sy.errors.UnsupportedError, match="chain"):
        ik.branches(np.eye(4), redundancy={"base": 0.0})
    with pytest.raises(sy.errors.UnsupportedError, match="seven"):
        sy.IK(ur(), sy.PoseGoal("tool")).redundancy(np.eye(4))


def test_joints_that_do_not_move_keep_the_value_of_the_start():
    """Six of seven joints that may move have the branches of an arm whose seventh joint is locked there."""
    arm = sy.bundled("arm7")
    pose = arm.random_pose(3)
    six = [f"joint{i}" for i in (1, 2, 3, 4, 6, 7)]
    branches = sy.IK(arm, sy.PoseGoal("tool"), moving=six).branches(pose.transform("tool"), start=pose)
    np.testing.assert_allclose(branches.q[0], pose.q, atol=1e-7)
    body = arm.with_limits({"joint5": (pose["joint5"],) * 2})
    others = sy.IK(body, sy.PoseGoal("tool"), "full-body").branches(pose.transform("tool"), start=pose)
    np.testing.assert_allclose(branches.q, others.q, atol=1e-7)
    with pytest.raises(sy.errors.UnsupportedError, match="lists no branches"):
        sy.IK(body, sy.PoseGoal("tool"), root="free").branches(pose.transform("tool"))
