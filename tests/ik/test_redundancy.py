"""The intervals of a redundant joint: what is proved, against lists of branches and exact polynomials; and refusals."""

import itertools

import numpy as np
import pytest

import synovia as sy
from synovia.ik.strips import Plane
from synovia.kernels.branches.memory import DEGREE
from synovia.model import Joint, Kind, Mimic

pytestmark = pytest.mark.compiled


def at(rng, scale=0.4):
    """Return a random transform."""
    out = np.eye(4)
    out[:3, :3] = sy.Rotation.random(random_state=rng).as_matrix()
    out[:3, 3] = rng.uniform(-scale, scale, 3)
    return out


def arm_of(seed, *, slide=None, follower=None):
    """Return seven random hinges; one may be a slide, or follow a lever outside the chain."""
    rng = np.random.default_rng(seed)
    joints = [Joint("base"), Joint("lever", "base", Kind.HINGE, axis=(0, 0, 1), limit=sy.Interval(-1.3, 1.2))]
    parent = "base"
    for i in range(7):
        kind = Kind.SLIDE if i == slide else Kind.HINGE
        low, high = (-0.5, 0.5) if i == slide else (-2.9, 2.7)
        mimic = Mimic("lever", -2.0, 0.1) if i == follower else None
        joint = Joint(
            f"j{i}", parent, kind, at(rng), axis=rng.normal(size=3), limit=sy.Interval(low, high), mimic=mimic
        )
        joints.append(joint)
        parent = joint.name
    return sy.Skeleton([*joints, Joint("tool", parent, rest=at(rng))])


@pytest.mark.parametrize(
    ("arm", "joint", "tool"),
    [
        (lambda: sy.bundled("arm7"), "joint1", "tool"),
        (lambda: arm_of(1), "j6", "tool"),
        (lambda: arm_of(2, slide=2), "j0", "tool"),
        (lambda: arm_of(3, follower=2), "j6", "tool"),
    ],
)
def test_proved_intervals_have_as_many_branches_as_are_listed(arm, joint, tool):
    """The lists use other splits of the chain, and sampling knows nothing of the proof."""
    arm = arm()
    ik = sy.IK(arm, sy.PoseGoal(tool))
    rng = np.random.default_rng(0)
    pose = arm.random_pose(5)
    target = pose.transform(tool)
    free = ik.redundancy(target, joint=joint, prove=True)
    assert free.proved > 0.99
    value = pose[joint]
    assert [span.branches for span in free.intervals if span.low <= value <= span.high] == [
        len(ik.branches(target, redundancy={joint: value}))
    ]
    for other in rng.uniform(free.low, free.high, 100):
        count = sum(span.branches for span in free.intervals if span.low < other < span.high)
        assert len(ik.branches(target, redundancy={joint: other})) == count
    sampled = ik.redundancy(target, joint=joint)
    assert sampled.proved == 0.0
    assert len(sampled.intervals) <= len(free.intervals)  # samples may miss some
    assert all(
        a.high <= b.low and (a.high < b.low or a.branches != b.branches) for a, b in itertools.pairwise(free.intervals)
    )
    assert str(free).startswith(f"{joint}, ")


@pytest.mark.parametrize("limits", [(-0.5, 0.5), (-0.4, 0.1)])
def test_a_slide_can_be_the_redundant_joint(limits):
    """The determinant is a polynomial in its value, not a trigonometric one."""
    arm = arm_of(2, slide=0).with_limits({"j0": limits})
    ik = sy.IK(arm, sy.PoseGoal("tool"))
    target = arm.random_pose(4).transform("tool")
    free = ik.redundancy(target, joint="j0", prove=True)
    assert free.proved > 0.9
    for value in np.random.default_rng(1).uniform(*limits, 60):
        count = sum(span.branches for span in free.intervals if span.low < value < span.high)
        assert len(ik.branches(target, redundancy={"j0": value})) == count


def test_the_roots_of_a_known_determinant_are_counted_or_left_undecided():
    """cos(2c) - 1.2 cos(r) - 0.1 sin(r) cos(c) has roots that a fine grid counts, and double roots at some r."""
    r = 2.0 * np.pi * np.arange(32) / 32

    def coefficients(angles):
        out = np.zeros((len(angles), DEGREE + 3), complex)
        out[:, 0], out[:, 1], out[:, 2] = -1.2 * np.cos(angles), -0.1 * np.sin(angles), 1.0
        return out

    plane = Plane(coefficients(r), 8)
    assert plane.noise < 1e-12
    rng = np.random.default_rng(3)
    middles, half = rng.uniform(0.0, 2.0 * np.pi, 400), 10.0 ** rng.uniform(-5, -1, 400)
    found = plane.roots(coefficients(middles), middles, half)
    assert (found >= 0).mean() > 0.6
    c = np.linspace(0.0, 2.0 * np.pi, 20_001)
    waves = np.exp(1j * c[:, None] * np.arange(DEGREE + 3))
    for middle, width, count in zip(middles, half, found, strict=True):
        for angle in middle + width * np.array([-0.999, -0.3, 0.5, 0.999]):
            f = (waves @ coefficients(np.array([angle]))[0]).real
            assert count in (-1, int((np.sign(f[1:]) != np.sign(f[:-1])).sum()))
    assert (plane.roots(coefficients(r[:1]), r[:1], np.array([np.pi])) == -1).all()


def test_a_determinant_that_only_rounding_distinguishes_from_zero_proves_nothing():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(32, DEGREE + 3)) + 1j * rng.normal(size=(32, DEGREE + 3))
    assert Plane(noise, 8).noise > 1e-3
    assert Plane(np.zeros((32, DEGREE + 3), complex), 8).noise == np.inf


def test_a_singular_target_ends_and_proves_nothing_wrong():
    """At the rest pose of this arm two axes coincide, so a joint may have any value, and the lists are unstable."""
    arm = sy.bundled("arm7")
    free = sy.IK(arm, sy.PoseGoal("tool")).redundancy(prove=True)
    assert free.proved < 1.0
    assert len(str(free).splitlines()) < 30


def test_refusals_name_the_cause():
    arm = sy.bundled("arm7")
    target = arm.random_pose(0).transform("tool")
    with pytest.raises(sy.errors.UnsupportedError, match=r"only one PoseGoal.*PositionGoal"):
        sy.IK(arm, sy.PositionGoal("tool")).redundancy(target[:3, 3])
    with pytest.raises(sy.errors.UnsupportedError, match=r"only one PoseGoal.*joint4"):
        sy.IK(arm, [sy.PoseGoal("tool"), sy.PositionGoal("joint4")]).redundancy()
    with pytest.raises(sy.errors.UnsupportedError, match=r"moved by 6 joints.*lists the poses of six joints"):
        sy.IK(arm.with_limits({"joint1": (0, 0)}), sy.PoseGoal("tool")).redundancy(target)
    coupled = arm_of(4)
    joints = [
        Joint(j.name, j.parent, j.kind, j.rest, axis=j.axis, limit=j.limit, mimic=Mimic("j1", 1.0, 0.0))
        if j.name == "j4" else j
        for j in coupled.joints
    ]  # fmt: skip
    with pytest.raises(sy.errors.UnsupportedError, match=r"j1 moves several joints"):
        sy.IK(sy.Skeleton(joints), sy.PoseGoal("tool")).redundancy(np.eye(4))


def test_the_plot_shows_the_intervals(tmp_path):
    pytest.importorskip("matplotlib")
    arm = sy.bundled("arm7")
    ik = sy.IK(arm, sy.PoseGoal("tool"))
    target = arm.random_pose(1).transform("tool")
    found = sy.plots.plot_redundancy(ik, target, tmp_path / "branches.png")
    assert found == ik.redundancy(target)
    assert (tmp_path / "branches.png").stat().st_size > 10_000


def test_of_two_slides_one_is_varied_and_six_joints_with_two_are_refused_by_their_cause():
    rng = np.random.default_rng(1)
    joints = [Joint("base")]
    for i in range(7):
        kind = Kind.SLIDE if i in (0, 3) else Kind.HINGE
        joints.append(Joint(f"j{i}", joints[-1].name, kind, at(rng), axis=rng.normal(size=3), limit=sy.Interval(-1, 1)))
    arm = sy.Skeleton([*joints, Joint("tool", "j6", rest=at(rng))])
    pose = arm.random_pose(1)
    ik = sy.IK(arm, sy.PoseGoal("tool"))
    free = ik.redundancy(pose.transform("tool"))
    assert free.joint in ("j0", "j3")
    assert any(one.low <= float(pose[free.joint]) <= one.high for one in free.intervals)
    six = sy.IK(arm.with_limits({"j6": (0.1, 0.1)}), sy.PoseGoal("tool"))
    with pytest.raises(sy.errors.UnsupportedError, match=r"lists no branches.*at most one slide; 2 joints slide"):
        six.branches(pose.transform("tool"))
