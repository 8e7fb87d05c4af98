"""Poles in FABRIK, CCD and particles: chains of any length, degenerate planes, limits, and clips."""

import numpy as np
import pytest

import synovia as sy
from synovia.kernels.goals.swivel import RATE
from synovia.model import Joint, Kind

LIMB = sy.Skeleton.chain([(0, 0, 0), (0.4, 0, 0.05), (0.8, 0, 0)])
BOTH = pytest.mark.parametrize("solver", [sy.Fabrik, sy.Particles, sy.Ccd], ids=["fabrik", "particles", "ccd"])


def at(x, y, z):
    """Return a translation."""
    out = np.eye(4)
    out[:3, 3] = x, y, z
    return out


def off_line(v, line):
    """Return the part of a vector across a line."""
    return v - line * (v @ line) / (line @ line)


def angle(pose, root, middle, tip, pole):
    """Return the angle from the middle joint to the pole about the line root-tip (radians)."""
    r, m, t = (pose.position(joint) for joint in (root, middle, tip))
    u, v = off_line(m - r, t - r), off_line(np.asarray(pole) - r, t - r)
    return float(np.arctan2(np.cross(u, v) @ (t - r) / np.linalg.norm(t - r), u @ v))


def chain(bones, seed):
    """Return a chain of balls that bends."""
    points = np.cumsum(np.random.default_rng(seed).normal(size=(bones + 1, 3)) * 0.3 + (0.7, 0, 0), axis=0)
    return sy.Skeleton.chain(points - points[0])


@pytest.mark.parametrize("bones", [2, 3, 5, *(pytest.param(n, marks=pytest.mark.compiled) for n in (12, 40))])
@BOTH
def test_pole_holds_for_any_chain_length(solver, bones):
    """A pole for every inner joint: all angles vanish together, the tip is at its target."""
    body = chain(bones, bones)
    tip, pole = f"joint{bones}", np.array([0.4 * bones, 3.0, 2.0])
    target = 0.7 * body.rest_pose().position(tip)
    goals = [sy.PositionGoal(tip, target), *[sy.PoleGoal(f"joint{i}", pole) for i in range(1, bones)]]
    solution = sy.solve(body, goals, solver(attempts=3, max_steps=2000))
    assert solution.reached
    for i in range(1, bones):
        measured = angle(solution.pose, f"joint{i - 1}", f"joint{i}", f"joint{i + 1}", pole)
        assert solution.errors[i].angle <= abs(measured) + 1e-9  # less where a joint is close to its line
        r, m, t = solution.pose.positions[i - 1 : i + 2]
        if np.linalg.norm(off_line(m - r, t - r)) > 1e-3 * (np.linalg.norm(m - r) + np.linalg.norm(t - m)):
            assert abs(measured) < 1e-3
    np.testing.assert_allclose(solution.pose.position(tip), target, atol=1.1e-3 * body.size)


@BOTH
@pytest.mark.parametrize("seed", range(4))
def test_pole_of_a_long_limb_leaves_the_tips_rotation_and_what_hangs_below(solver, seed):
    """Root and tip with joints between: the limb turns as one, the tip's own goals hold."""
    body = chain(6, 50 + seed)
    wanted = body.random_pose(seed)
    goals = [
        sy.PoseGoal("joint5", wanted.position("joint5"), wanted.matrix("joint5")),
        sy.PoleGoal("joint2", (1, 5, -2), root="joint0", tip="joint5"),
    ]
    solution = sy.solve(body, goals, solver(), body.random_pose(seed + 9))
    assert solution.reached
    assert abs(angle(solution.pose, "joint0", "joint2", "joint5", (1, 5, -2))) < 1.1e-3


@pytest.mark.parametrize("pole", [(2.0, 0, 0), (-1.0, 0, 0), (0.3, 0, 0)])
def test_pole_on_the_line_keeps_the_bend_plane(pole):
    """Where the pole says nothing the plane is that of the answer without it: no jump."""
    goal = sy.PositionGoal("joint2", (0.6, 0, 0))
    start = LIMB.rest_pose().with_values({"joint0": sy.Rotation.from_rotvec((0.7, 0, 0)).as_quat()})
    plain = sy.solve(LIMB, goal, sy.Fabrik(), start)
    solution = sy.solve(LIMB, [goal, sy.PoleGoal("joint1", pole)], sy.Fabrik(), start)
    assert solution.reached
    np.testing.assert_allclose(solution.pose.positions, plain.pose.positions, atol=2e-3)


def test_joint_on_the_line_of_its_neighbours_is_left_alone():
    """A target out of reach lays the limb straight: there is no plane to turn, and nothing is made up."""
    solution = sy.solve(LIMB, [sy.PositionGoal("joint2", (3, 1, 0)), sy.PoleGoal("joint1", (0, 9, 0))], sy.Fabrik())
    assert solution.status is sy.Status.UNREACHABLE
    assert solution.errors[1].angle < 1e-3


def test_pole_decides_where_the_start_lies_straight():
    """A joint on the axis of its circle bends to the pole, not to any side."""
    straight = sy.Skeleton.chain([(0, 0, 0), (0.4, 0, 0), (0.8, 0, 0)])
    for pole in [(0, 1, 0), (0, -1, 0), (0.5, 0.3, -2)]:
        solution = sy.solve(straight, [sy.PositionGoal("joint2", (0.5, 0, 0)), sy.PoleGoal("joint1", pole)], "fabrik")
        assert solution.reached
        assert off_line(solution.pose.position("joint1"), np.array([1.0, 0, 0])) @ np.array(pole) > 0


def limited(twist, swing=1.2, middle=Kind.HINGE):
    """Return a limb whose root has a limit."""
    hinge = {"axis": (0, 1, 0), "limit": sy.Interval(0.0, 2.5)} if middle is Kind.HINGE else {}
    limit = sy.SwingTwist.about((1, 0, 0), x=(swing, swing), y=(swing, swing), twist=(-twist, twist))
    return sy.Skeleton(
        [
            Joint("root", kind=Kind.BALL, limit=limit),
            Joint("middle", "root", middle, at(0.4, 0, 0.0), **hinge),
            Joint("tip", "middle", Kind.BALL, at(0.4, 0, 0)),
        ]
    )


@BOTH
@pytest.mark.parametrize("middle", [Kind.HINGE, Kind.BALL], ids=["hinge", "ball"])
def test_pole_beyond_the_limits_turns_as_far_as_they_let_it_and_says_so(solver, middle):
    """The place holds, limits hold, the error is the angle that is left; with a wide limit it is none."""
    side = np.array([0.4, 1.0, 0.0])
    for twist, swing, meets in [(0.3, 0.9, False), (3.0, 2.8, True)]:
        body = limited(twist, swing, middle)
        goals = [sy.PositionGoal("tip", (0.65, 0, 0)), sy.PoleGoal("middle", -side)]
        start = body.rest_pose().with_values({"middle": 1.0} if middle is Kind.HINGE else {})
        ik = sy.IK(body, goals, solver(attempts=1))
        solution = ik.solve(start=start)
        assert solution.errors[0].position <= ik.tolerance[0]
        assert ik.problem.outside(solution.pose) == ()
        left = abs(angle(solution.pose, "root", "middle", "tip", -side))
        assert solution.errors[1].angle == pytest.approx(left, abs=1e-9)
        if middle is Kind.HINGE or meets:
            assert solution.reached is meets
            assert (left < 1e-3) is meets
        assert solution.status is not sy.Status.MAX_STEPS  # a limb that no longer turns ends the sweeps
        if middle is Kind.HINGE and not meets:  # at the limit: no farther turn leaves the place
            assert "root" in ik.problem.at_limits(solution.pose)
            without = sy.solve(body, goals[:1], solver(attempts=1), start)
            assert left < abs(angle(without.pose, "root", "middle", "tip", -side)) - 0.1


def plane_turns(tracked):
    """Return the angle (radians) that the bend plane turns from frame to frame."""
    places = sy.Motion(LIMB, tracked.q, 1.0).frames()[..., 9:]
    middle, tip = places[:, LIMB.index("joint1")], places[:, LIMB.index("joint2")]
    sides = middle - tip * ((middle * tip).sum(axis=1) / (tip * tip).sum(axis=1))[:, None]
    sides /= np.linalg.norm(sides, axis=1, keepdims=True)
    return np.arccos(np.clip((sides[1:] * sides[:-1]).sum(axis=1), -1, 1))


@BOTH
@pytest.mark.parametrize(
    "step",
    [pytest.param(step, marks=pytest.mark.compiled) for step in (1e-4, 1e-3)] + [5e-3],
    ids=["0.1 mm", "1 mm", "5 mm"],
)
@pytest.mark.parametrize("beside", [2e-4, *(pytest.param(x, marks=pytest.mark.compiled) for x in (0.0, 3e-3))])
def test_in_track_a_pole_across_the_line_turns_the_plane_at_most_five_degrees_a_millimetre(solver, step, beside):
    """Through the line or close by: the plane turns slowly, says what is left, and has caught up behind."""
    z = np.arange(-0.06, 0.0601, step) if step > 5e-4 else np.arange(-0.005, 0.0601, step)
    poles = np.column_stack([np.full(len(z), 0.35), np.full(len(z), beside), z])
    ik = sy.IK(LIMB, [sy.PositionGoal("joint2", (0.7, 0, 0)), sy.PoleGoal("joint1")], solver())
    tracked = ik.track(
        {"joint1": poles, "joint2": np.tile((0.7, 0, 0), (len(z), 1))}, ik.solve({"joint1": poles[0]}).pose
    )
    turns = plane_turns(tracked)
    assert np.degrees(turns).max() <= 5.0 * step * 1e3 + 0.01
    assert np.degrees(turns).max() <= np.degrees(RATE * step / 0.8) + 0.5
    ends = np.arctan2(z[[0, -1]], beside)
    assert turns.sum() > 0.99 * (ends[1] - ends[0])  # it did come round
    errors = tracked.errors[:, 1, 1]
    assert errors[-1] < 1e-3
    if step < 5e-3:
        assert errors.max() > 1.0  # and said so on the way
        late = tracked[int(errors.argmax())]
        assert late.status is sy.Status.STALLED
        assert "turns towards its pole by at most 50 radians" in " ".join(late.explain())
    for frame in (0, len(z) // 2, len(z) - 1):
        far = abs(angle(sy.Pose(LIMB, tracked.q[frame]), "joint0", "joint1", "joint2", poles[frame]))
        assert errors[frame] <= far + 1e-9


def test_limbs_without_a_ball_at_their_root_are_refused():
    """What cannot turn says so, unless another method ends the solve."""
    arm = sy.bundled("arm7")
    inner = arm.joint_names[3]
    goals = [sy.PositionGoal("tool"), sy.PoleGoal(inner, (1, 1, 1))]
    for solver in ("fabrik", "ccd", "particles"):
        with pytest.raises(sy.errors.UnsupportedError, match="ball joint at its root"):
            sy.IK(arm, goals, solver)


@BOTH
def test_poles_in_a_batch_and_in_other_units(solver):
    """The same bits as one by one, whatever the memory held before, and the same turns at a hundred times the size."""
    small, large = (sy.Skeleton.chain(k * np.array([(0, 0, 0), (0.4, 0, 0.05), (0.8, 0, 0)])) for k in (1, 100))
    rng = np.random.default_rng(3)
    tips, poles = rng.uniform(-0.4, 0.4, (6, 3)) + np.array([0.1, 0, 0]), rng.normal(size=(6, 3))
    answers = []
    for body, k in ((small, 1.0), (large, 100.0)):
        ik = sy.IK(body, [sy.PositionGoal("joint2"), sy.PoleGoal("joint1")], solver(attempts=1))
        ik.track({"joint2": k * tips, "joint1": k * poles})  # leaves its memory behind
        many = ik.solve_many({"joint2": k * tips, "joint1": k * poles})
        for i in range(6):
            one = ik.solve({"joint2": k * tips[i], "joint1": k * poles[i]})
            np.testing.assert_array_equal(one.pose.q, many.q[i])
        answers.append(many.q)
    np.testing.assert_allclose(*answers, atol=1e-6)


@BOTH
@pytest.mark.parametrize("bones", [3, 4, 6])
def test_one_pole_of_a_long_limb_needs_the_turn_of_its_root_alone(solver, bones):
    """Whichever joint of the limb it is for: the turn about the line root-tip leaves all else in place."""
    body = chain(bones, bones)
    tip, pole = f"joint{bones}", np.array([1.0, 5.0, -2.0])
    target = 0.7 * body.rest_pose().position(tip)
    for middle in range(1, bones):
        goals = [sy.PositionGoal(tip, target), sy.PoleGoal(f"joint{middle}", pole, root="joint0", tip=tip)]
        solution = sy.solve(body, goals, solver(attempts=1))
        assert solution.reached
        assert abs(angle(solution.pose, "joint0", f"joint{middle}", tip, pole)) < 1.1e-3


@BOTH
def test_a_pole_that_goes_round_a_limb_of_six_joints_is_followed_in_every_frame(solver):
    """Away from the line nothing holds the plane back."""
    body = chain(6, 6)
    target = 0.7 * body.rest_pose().position("joint6")
    along = target / np.linalg.norm(target)
    across = np.cross(along, (0, 0, 1.0))
    across /= np.linalg.norm(across)
    turns = np.linspace(0, 2 * np.pi, 60)[:, None]
    poles = 0.5 * target + 3.0 * (np.cos(turns) * across + np.sin(turns) * np.cross(along, across))
    goals = [sy.PositionGoal("joint6", target), sy.PoleGoal("joint2", root="joint0", tip="joint6")]
    clip = sy.IK(body, goals, solver(attempts=1)).track({"joint2": poles})
    assert clip.reached.all()
    assert clip.jumps == ()


@BOTH
def test_a_limit_takes_only_its_part_of_a_turn(solver):
    """A root that twists by half a radian turns its limb by that towards a pole at a right angle."""
    twist = sy.SwingTwist(x=(0, 0), y=(0, 0), twist=(-0.5, 0.5), frame=np.eye(3))
    body = sy.Skeleton(
        [
            Joint("root", kind=Kind.BALL, limit=twist),
            Joint("middle", "root", rest=at(0.5, 0, 1)),
            Joint("tip", "middle", rest=at(-0.5, 0, 1)),
        ]
    )
    for side in (1.0, -1.0):
        pole = (0.0, 3.0 * side, 1.0)
        solution = sy.solve(body, [sy.PositionGoal("tip", (0, 0, 2)), sy.PoleGoal("middle", pole)], solver(attempts=1))
        assert not solution.reached
        assert solution.errors[0].position < 1e-9
        left = angle(solution.pose, "root", "middle", "tip", pole)
        assert left == pytest.approx(side * (np.pi / 2 - 0.5), abs=1e-6)


@BOTH
def test_a_limb_turns_as_far_as_its_tip_can_stay(solver):
    """Where limits would take some of the turn and move the tip, the limb turns by no more than they leave."""
    slant = sy.Rotation.from_rotvec((0.0, 0.6, 0.0)).as_matrix()
    limit = sy.SwingTwist(x=(0.3, 0.3), y=(0.25, 0.25), twist=(-1.5, 1.5), frame=slant)
    body = sy.Skeleton(
        [
            Joint("root", kind=Kind.BALL, limit=limit),
            Joint("middle", "root", rest=at(0.5, 0, 1)),
            Joint("tip", "middle", rest=at(-0.5, 0, 1)),
        ]
    )

    def allowed(turn):
        q = sy.Rotation.from_rotvec((0, 0, turn)).as_quat()
        return np.allclose(sy.Pose(body, q).inside, q, atol=1e-9)

    for side in (1.0, -1.0):
        most = max(turn for turn in np.linspace(0.0, 1.5, 301) if allowed(side * turn))
        assert 0.1 < most < 1.2
        pole = (0.0, 3.0 * side, 1.0)
        goals = [sy.PositionGoal("tip", (0, 0, 2)), sy.PoleGoal("middle", pole)]
        solution = sy.solve(body, goals, solver(attempts=1), tolerance=(1e-5, 1e-3))
        assert solution.errors[0].position <= 1e-5
        left = angle(solution.pose, "root", "middle", "tip", pole)
        assert left == pytest.approx(side * (np.pi / 2 - most), abs=0.01)
