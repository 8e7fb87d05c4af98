"""The door: every wrong input is refused in our own words, and leaves the IK as it was; every fair form is accepted."""

import contextlib
import pickle
import threading

import numpy as np
import pytest

import synovia as sy
from synovia.errors import InputError, SynoviaError, UnknownNameError, UnsupportedError

ARM = sy.bundled("arm7")
BODY = sy.bundled("humanoid")
# Uncompiled, NumPy warns of the infinities that the door's own arithmetic is there to find.
pytestmark = pytest.mark.filterwarnings("ignore:(invalid value|overflow|divide by zero):RuntimeWarning")

NAN, INF = float("nan"), float("inf")


def wanted(seed=1):
    """Return the tool's transform at a random pose."""
    return ARM.random_pose(seed).transform("tool")


def spoiled(row, column, value):
    """Return a transform with one wrong entry."""
    frame = wanted()
    frame[row, column] = value
    return frame


MIRRORED = wanted() @ np.diag([1.0, 1.0, -1.0, 1.0])
TARGETS = {
    "text": "tool",
    "list": [1, 2],
    "set": {"tool"},
    "array": np.zeros((4, 4)),
    "number": 3,
    "none": {"tool": None},
    "text value": {"tool": "here"},
    "dict value": {"tool": {}},
    "set value": {"tool": {1.0, 2.0, 3.0}},
    "ragged": {"tool": [[1, 2], [3]]},
    "ragged pair": {"tool": ((0, 0, 1), [[1, 2], [3]])},
    "garbage pair": {"tool": ((0, 0, 1), "x")},
    "three parts": {"tool": ((0, 0, 1), np.eye(3), np.eye(3))},
    "quaternion": {"tool": (0, 0, 0, 1)},
    "pair with quaternion": {"tool": ((0, 0, 1), (0, 0, 0, 1))},
    "short": {"tool": (0, 1)},
    "objects": {"tool": np.full((4, 4), None)},
    "letters": {"tool": np.full((4, 4), "a")},
    "complex": {"tool": wanted() * (1 + 0j)},
    "batch": {"tool": np.repeat(wanted()[None], 3, 0)},
    "nan position": {"tool": spoiled(0, 3, NAN)},
    "inf position": {"tool": spoiled(1, 3, -INF)},
    "nan rotation": {"tool": spoiled(0, 0, NAN)},
    "inf rotation": {"tool": spoiled(2, 1, INF)},
    "no rotation": {"tool": np.diag([2.0, 1.0, 1.0, 1.0])},
    "skewed": {"tool": spoiled(0, 0, wanted()[0, 0] + 1e-3)},
    "zero rotation": {"tool": np.diag([0.0, 0.0, 0.0, 1.0])},
    "mirrored": {"tool": MIRRORED},
    "mirrored list": {"tool": MIRRORED.tolist()},
    "mirrored pair": {"tool": ((0, 0, 1), MIRRORED[:3, :3])},
    "projective": {"tool": spoiled(3, 0, 0.1)},
    "zero last row": {"tool": spoiled(3, 3, 0.0)},
    "position alone": {"tool": (0.3, 0.1, NAN)},
    "unknown": {"tol": wanted()},
    "unknown number": {99: wanted()},
    "joint without goal": {"joint3": wanted()},
    "only one of": {"tool": wanted(), 10: wanted()},
    "too far": {"tool": spoiled(0, 3, 1e200)},
    "masked": {"tool": np.ma.masked_greater(wanted(), 0.2)},
    "masked in a pair": {"tool": (np.ma.array((0.3, 0.1, 0.5), mask=(0, 1, 0)), np.eye(3))},
    "truths": {"tool": np.eye(4, dtype=bool)},
    "numbers as text": {"tool": wanted().astype(str)},
    "many rotations": {"tool": ((0, 0, 1), sy.Rotation.from_rotvec(np.zeros((3, 3))))},
}


@pytest.mark.parametrize("case", TARGETS)
def test_a_wrong_target_is_refused_and_leaves_no_trace(case):
    """An error of ours with a text that says something, and the next answers are those of a fresh IK."""
    goal = sy.PoseGoal("tool", transform=wanted(5))
    ik = sy.IK(ARM, goal)
    before = ik.solve().pose.q
    with pytest.raises(SynoviaError) as caught:
        ik.solve(TARGETS[case])
    assert len(str(caught.value)) > 15
    assert "Traceback" not in str(caught.value)
    np.testing.assert_array_equal(ik.solve().pose.q, before)
    np.testing.assert_array_equal(ik.solve({}).pose.q, before)
    fresh = sy.IK(ARM, goal).solve({"tool": wanted(2)}).pose.q
    np.testing.assert_array_equal(ik.solve({"tool": wanted(2)}).pose.q, fresh)


def test_an_error_names_goal_and_fault():
    """The message says which goal and what about it."""
    ik = sy.IK(ARM, sy.PoseGoal("tool"))
    with pytest.raises(InputError, match=r"'tool'.*finite"):
        ik.solve({"tool": spoiled(0, 3, NAN)})
    with pytest.raises(InputError, match=r"'tool': .*it mirrors"):
        ik.solve({"tool": MIRRORED})
    with pytest.raises(UnknownNameError, match="Did you mean 'tool'"):
        ik.solve({"tol": wanted()})
    with pytest.raises(InputError, match="'tool': expected numbers without masked"):
        ik.solve(TARGETS["masked"])
    with pytest.raises(InputError, match=r"'tool': .*1e\+15 length units .*got \[1e\+200, "):
        ik.solve(TARGETS["too far"])
    with pytest.raises(InputError, match=r"'tool': position: expected .*, got \[1e\+300, 0.0, 0.0\]"):
        sy.IK(ARM, sy.PositionGoal("tool", (1e300, 0, 0))).solve()
    with pytest.raises(InputError, match=r"\(4, 4\).*This is one target"):
        ik.solve_many({"tool": wanted()})
    with pytest.raises(UnknownNameError, match=r"one of fabrik, .*two-bone$"):
        sy.IK(ARM, sy.PoseGoal("tool"), "newton")
    with pytest.raises(InputError, match=r"simd: expected .*, got 'double'"):
        ik.solve_many({"tool": wanted()[None]}, simd="double")
    with pytest.raises(InputError, match=r"velocity of 'joint1': expected .*, got -1\.0"):
        ik.track({"tool": wanted()[None]}, velocity={"joint1": np.float64(-1)})


def test_an_error_in_the_second_target_does_not_leave_the_first_behind():
    """Two goals: a table half written by a failed call is not seen by the next."""
    goals = [sy.PoseGoal("left_hand"), sy.PoseGoal("right_hand")]
    ik = sy.IK(BODY, goals)
    pose = BODY.random_pose(2)
    start = BODY.random_pose(3)
    left = {"left_hand": pose.transform("left_hand")}
    expected = sy.IK(BODY, goals).solve({}, start).pose.q
    for bad in ("x", np.full((4, 4), NAN), np.eye(4) * 2):
        with pytest.raises(SynoviaError):
            ik.solve({**left, "right_hand": bad}, start)
        with pytest.raises(SynoviaError):
            ik.solve({**left, "nobody": pose.transform("left_hand")}, start)
        np.testing.assert_array_equal(ik.solve({}, start).pose.q, expected)
    right = {"right_hand": pose.transform("right_hand")}
    both = ik.solve({**left, **right}, start)
    again = ik.solve(right, start)
    np.testing.assert_array_equal(again.targets[0], ik.solve({}, start).targets[0])
    assert not np.array_equal(again.pose.q, both.pose.q)


def test_two_keys_for_parts_of_one_goal_leave_the_other_goal_its_own():
    """As many keys as goals, yet one goal without: it must not see the target of the call before."""
    arm = sy.IK(ARM, [sy.PoseGoal("tool", name="tip"), sy.PoseGoal("joint4")])
    arm.solve({"tip": wanted(1), "joint4": ARM.random_pose(1).transform("joint4")})
    turn = sy.Rotation.from_matrix(wanted(2)[:3, :3])
    solution = arm.solve({"tip": wanted(2)[:3, 3], "tool": turn})
    np.testing.assert_allclose(solution.targets[0], wanted(2), atol=1e-12)
    np.testing.assert_allclose(solution.targets[1], ARM.rest_pose().transform("joint4"), atol=1e-12)


BAD_IKS = {
    "skeleton": (lambda: sy.IK("arm.urdf", sy.PositionGoal("tool")), "skeleton"),
    "at least one goal": (lambda: sy.IK(ARM, []), "at least one goal"),
    "goals none": (lambda: sy.IK(ARM, None), "goal"),
    "goals number": (lambda: sy.IK(ARM, 3), "goal"),
    "goals text": (lambda: sy.IK(ARM, "tool"), "goal"),
    "goal class": (lambda: sy.IK(ARM, [sy.PositionGoal]), "goal"),
    "root array": (lambda: sy.IK(ARM, sy.PositionGoal("tool"), root=np.zeros(2)), "root"),
    "root none": (lambda: sy.IK(ARM, sy.PositionGoal("tool"), root=None), "root"),
    "root word": (lambda: sy.IK(ARM, sy.PositionGoal("tool"), root="loose"), "root"),
    "solver word": (lambda: sy.IK(ARM, sy.PositionGoal("tool"), "lmm"), "Did you mean 'lm'"),
    "solver number": (lambda: sy.IK(ARM, sy.PositionGoal("tool"), 3), "solver"),
    "solver class": (lambda: sy.IK(ARM, sy.PositionGoal("tool"), sy.LevenbergMarquardt), "solver"),
    "tolerance number": (lambda: sy.IK(ARM, sy.PositionGoal("tool"), tolerance=1e-3), "tolerance"),
    "tolerance zero": (lambda: sy.IK(ARM, sy.PositionGoal("tool"), tolerance=(0, 1)), "tolerance"),
    "tolerance negative": (lambda: sy.IK(ARM, sy.PositionGoal("tool"), tolerance=(1, -1)), "tolerance"),
    "tolerance nan": (lambda: sy.IK(ARM, sy.PositionGoal("tool"), tolerance=(1, NAN)), "tolerance"),
    "tolerance text": (lambda: sy.IK(ARM, sy.PositionGoal("tool"), tolerance="ab"), "tolerance"),
    "unknown joint": (lambda: sy.IK(ARM, sy.PositionGoal("tol")), "Did you mean 'tool'"),
    "joint none": (lambda: sy.IK(ARM, sy.PositionGoal(None)), "no joint"),
    "joint list": (lambda: sy.IK(ARM, sy.PositionGoal(["tool"])), "no joint"),
    "joint float": (lambda: sy.IK(ARM, sy.PositionGoal(1.0)), "no joint"),
    "joint beyond": (lambda: sy.IK(ARM, sy.PositionGoal(11)), "0 to 10"),
    "joint negative": (lambda: sy.IK(ARM, sy.PositionGoal(-1)), "0 to 10"),
    "priority": (lambda: sy.IK(ARM, sy.PositionGoal("tool", priority=1), "lm"), "priorit"),
    "priority float": (lambda: sy.PositionGoal("tool", priority=0.5), "priority"),
    "priority negative": (lambda: sy.PositionGoal("tool", priority=-1), "priority"),
    "weight nan": (lambda: sy.PositionGoal("tool", weight=NAN), "weight"),
    "weight zero": (lambda: sy.PositionGoal("tool", weight=0), "weight"),
    "weight negative": (lambda: sy.PositionGoal("tool", weight=-1), "weight"),
    "weight inf": (lambda: sy.PositionGoal("tool", weight=INF), "weight"),
    "weight none": (lambda: sy.PositionGoal("tool", weight=None), "weight"),
    "weight text": (lambda: sy.PositionGoal("tool", weight="1"), "weight"),
    "weight true": (lambda: sy.PositionGoal("tool", weight=True), "weight"),
    "weight array": (lambda: sy.PositionGoal("tool", weight=np.ones(2)), "weight"),
    "weight huge": (lambda: sy.PositionGoal("tool", weight=10**400), "weight"),
    "position nan": (lambda: sy.PositionGoal("tool", (0, NAN, 0)), "finite"),
    "position shape": (lambda: sy.PositionGoal("tool", (0, 0)), "shape"),
    "position text": (lambda: sy.PositionGoal("tool", "abc"), "expected numbers"),
    "position truths": (lambda: sy.PositionGoal("tool", np.array([True, False, True])), "expected numbers"),
    "position truth": (lambda: sy.PositionGoal("tool", (True, 0.5, 0.2)), "expected numbers"),
    "position numbers as text": (lambda: sy.PositionGoal("tool", ["1", "2", "3"]), "expected numbers"),
    "position masked": (lambda: sy.PositionGoal("tool", np.ma.array((1, 2, 3), mask=(0, 0, 1))), "masked"),
    "distance without bounds": (lambda: sy.DistanceGoal("tool", "base"), "minimum= above 0, a finite maximum="),
    "argument": (lambda: sy.PositionGoal("tool", wieght=2), "Did you mean 'weight'"),
    "arguments": (lambda: sy.PositionGoal("tool", (0, 0, 1), (0, 0, 0, 1)), "at most 2, got 3. It takes joint=,"),
    "rotation list": (lambda: sy.RotationGoal("tool", (0, 0, 0, 1)), "quat_xyzw"),
    "rotation mirror": (lambda: sy.RotationGoal("tool", -np.eye(3)), "mirror"),
    "rotation many": (lambda: sy.RotationGoal("tool", sy.Rotation.from_rotvec(np.zeros((2, 3)))), "shape"),
    "quaternion zero": (lambda: sy.RotationGoal("tool", quat_xyzw=(0, 0, 0, 0)), "unit quaternion"),
    "quaternion nan": (lambda: sy.RotationGoal("tool", quat_wxyz=(NAN, 0, 0, 0)), "finite"),
    "quaternion twice": (
        lambda: sy.RotationGoal("tool", quat_wxyz=(1, 0, 0, 0), quat_xyzw=(0, 0, 0, 1)),
        "only one of",
    ),
    "half a pose": (lambda: sy.PoseGoal("tool", position=(0, 0, 0)), "PositionGoal"),
    "pose and parts": (lambda: sy.PoseGoal("tool", (0, 0, 0), transform=np.eye(4)), "either"),
    "transform": (lambda: sy.PoseGoal("tool", transform=np.eye(4) * 2), "0 0 0 1"),
    "offset": (lambda: sy.PositionGoal("tool", offset=(0, 0)), "offset"),
    "offset ragged": (lambda: sy.PositionGoal("tool", offset=[[1], [2, 3]]), "offset"),
    "offset mirror": (lambda: sy.PoseGoal("tool", offset=np.diag([1, 1, -1, 1])), "mirror"),
    "name list": (lambda: sy.PositionGoal("tool", name=["a"]), "name"),
    "name number": (lambda: sy.PositionGoal("tool", name=3), "name"),
}


@pytest.mark.parametrize("case", BAD_IKS)
def test_a_wrong_problem_is_refused_when_it_is_built(case):
    """Every argument of goals and IK has its own words."""
    build, words = BAD_IKS[case]
    with pytest.raises(SynoviaError, match=words):
        build()


STARTS = {
    "text": "best",
    "short": np.zeros(6),
    "nan": np.full(7, NAN),
    "inf": np.full(7, INF),
    "ragged": [[1], [2, 3]],
    "dict": {"joint1": NAN},
    "number": 3.0,
    "matrix": np.zeros((2, 7)),
    "other skeleton": BODY.rest_pose(),
    "complex": np.zeros(7, complex),
}


@pytest.mark.parametrize("root", ["fixed", "free"])
@pytest.mark.parametrize("case", STARTS)
def test_a_wrong_start_is_refused(case, root):
    """Single, batch and track say the same."""
    ik = sy.IK(ARM, sy.PositionGoal("tool", (0.3, 0.2, 0.4)), root=root)
    expected = ik.solve().pose.q
    with pytest.raises(SynoviaError):
        ik.solve(start=STARTS[case])
    with pytest.raises(SynoviaError):
        ik.track({"tool": np.zeros((3, 3))}, STARTS[case])
    with pytest.raises(SynoviaError):
        ik.solve_many({"tool": np.zeros((3, 3))}, STARTS[case])
    np.testing.assert_array_equal(ik.solve().pose.q, expected)


BATCHES = {
    "none": None,
    "text": "tool",
    "empty": {},
    "number": {"tool": 3},
    "none value": {"tool": None},
    "single rotation": {"tool": sy.Rotation.from_rotvec((0, 0, 1))},
    "wrong shape": {"tool": np.zeros((3, 2))},
    "nan": {"tool": np.repeat(spoiled(0, 3, NAN)[None], 3, 0)},
    "mirrored": {"tool": np.repeat(MIRRORED[None], 3, 0)},
    "pair lengths": {"tool": (np.zeros((3, 3)), np.repeat(np.eye(3)[None], 2, 0))},
    "pair mirrored": {"tool": (np.zeros((9, 3)), np.repeat(-np.eye(3)[None], 9, 0))},
    "different lengths": {"tool": np.repeat(wanted()[None], 3, 0), "joint4": np.repeat(wanted()[None], 2, 0)},
    "unknown": {"tol": np.zeros((3, 3))},
    "text list": {"tool": ["a", "b"]},
    "ragged": {"tool": [[[1, 2], [3]], [[1], [2]]]},
}


@pytest.mark.parametrize("case", BATCHES)
def test_a_wrong_batch_is_refused(case):
    """solve_many and track say the same."""
    ik = sy.IK(ARM, [sy.PoseGoal("tool"), sy.PoseGoal("joint4")])
    with pytest.raises(SynoviaError):
        ik.solve_many(BATCHES[case])
    with pytest.raises(SynoviaError):
        ik.track(BATCHES[case])


@pytest.mark.compiled
def test_the_row_of_a_wrong_target_is_found_in_a_batch():
    """One bad target among hundreds, in any block of any thread, and the right goal is named."""
    ik = sy.IK(ARM, [sy.PoseGoal("tool"), sy.PoseGoal("joint4", name="elbow")])
    frames = np.array([ARM.random_pose(i).transform("tool") for i in range(100)])
    for row in (0, 1, 17, 99):
        bad = frames.copy()
        bad[row, :3, :3] *= 1.01
        for threads in (1, 3):
            with pytest.raises(InputError, match="'elbow'"):
                ik.solve_many({"tool": frames, "elbow": bad}, threads=threads)
        with pytest.raises(InputError, match="'tool'"):
            ik.solve_many({"tool": (bad[:, :3, 3], bad[:, :3, :3]), "elbow": frames})


def test_the_error_of_a_batch_of_three_positions_is_that_of_its_position():
    """Three positions (3, 3) look like one rotation, and a pair of batches like one pair."""
    far = np.repeat(wanted()[None, :3, 3], 3, 0)
    far[2, 0] = 1e300
    turns = sy.Rotation.from_matrix(np.repeat(wanted()[None, :3, :3], 3, 0))
    for goal, targets in ((sy.PositionGoal("tool"), far), (sy.PoseGoal("tool"), (far, turns))):
        ik = sy.IK(ARM, goal)
        for solve in (ik.solve_many, ik.track, lambda given, ik=ik: ik.errors_after(1, given)):
            with pytest.raises(InputError, match=r"within 1e\+15 length units of the origin, got \[1e\+300"):
                solve(targets)


@pytest.mark.parametrize("threads", [0, -1, 2.5, "a", True, NAN])
def test_threads_is_a_whole_number(threads):
    """Anything else is refused."""
    with pytest.raises(InputError, match="threads"):
        sy.IK(ARM, sy.PositionGoal("tool")).solve_many({"tool": np.zeros((3, 3))}, threads=threads)


def test_no_problems_give_no_answers():
    """A batch of none is not an error."""
    many = sy.IK(ARM, sy.PositionGoal("tool")).solve_many({"tool": np.zeros((0, 3))})
    assert len(many) == 0
    assert many.q.shape == (0, 7)
    for place in (0, -1, "a", 1.0, None):
        with pytest.raises(InputError, match="index of a solution"):
            many[place]


def forms(frame):
    """Return every way to write one target."""
    turn = sy.Rotation.from_matrix(frame[:3, :3])
    fortran = np.asfortranarray(frame)
    strided = np.zeros((8, 12))[::2, ::3]
    strided[...] = frame
    read_only = frame.copy()
    read_only.setflags(write=False)
    return {
        "plain": frame,
        "fortran": fortran,
        "strided": strided,
        "read-only": read_only,
        "long double": frame.astype(np.longdouble),
        "list": frame.tolist(),
        "tuples": tuple(map(tuple, frame)),
        "pair of arrays": (frame[:3, 3], frame[:3, :3]),
        "pair of lists": [frame[:3, 3].tolist(), frame[:3, :3].tolist()],
        "pair with Rotation": (tuple(frame[:3, 3]), turn),
        "big-endian": frame.astype(">f8"),
        "float32": frame.astype(np.float32),
    }


def specializations():
    """Return how often each entry point of the solvers has been compiled."""
    from synovia.kernels.jacobian.arm import arm
    from synovia.kernels.jacobian.levenberg import levenberg
    from synovia.kernels.search.classify import classify

    return [len(getattr(kernel, "signatures", ())) for kernel in (arm, classify, levenberg)]


def test_every_form_of_a_target_and_a_start_gives_one_answer():
    """Order, strides, writability and containers change no bit, and compile nothing new."""
    ik = sy.IK(ARM, sy.PoseGoal("tool"))
    start = ARM.random_pose(9)
    frame = wanted(4)
    expected = ik.solve({"tool": frame}, start)
    far = frame.copy()
    far[:3, 3] *= 9
    ik.solve({"tool": far}, start)
    compiled = specializations()
    for name, value in forms(frame).items():
        exact = name not in ("pair with Rotation", "float32")
        got = ik.solve({"tool": value}, start)
        np.testing.assert_allclose(got.pose.q, expected.pose.q, atol=1e-15 if exact else 1e-4, err_msg=name)
        if exact:
            np.testing.assert_array_equal(got.pose.q, expected.pose.q, err_msg=name)
    q = np.zeros(21)[::3]
    q[...] = start.q
    for begin in (start.q, start.q.tolist(), tuple(start.q), q, start.q.astype(np.longdouble)):
        np.testing.assert_array_equal(ik.solve({"tool": frame}, begin).pose.q, expected.pose.q)
    batch = np.repeat(frame[None], 3, 0)
    starts = np.asfortranarray(np.repeat(start.q[None], 3, 0))
    strided = np.zeros((6, 4, 8))[::2, :, ::2]
    strided[...] = batch
    pair = (batch[:, :3, 3], batch[:, :3, :3])
    for many in (batch, np.asfortranarray(batch), batch.tolist(), strided, pair, list(batch)):
        for begin in (start, start.q, starts, starts.tolist()):
            np.testing.assert_array_equal(
                ik.solve_many({"tool": many}, begin).q, np.repeat(expected.pose.q[None], 3, 0)
            )
    assert specializations() == compiled


def test_a_list_of_two_is_a_batch_of_two_and_a_pair_a_pair():
    """Two targets in a list are not mistaken for position and rotation."""
    frames = [wanted(1), wanted(2)]
    ik = sy.IK(ARM, sy.PoseGoal("tool"))
    expected = [ik.solve({"tool": frame}).pose.q for frame in frames]
    np.testing.assert_array_equal(ik.solve_many({"tool": frames}).q, expected)
    np.testing.assert_array_equal(ik.solve_many({"tool": tuple(frames)}).q, expected)
    place = sy.IK(ARM, sy.PositionGoal("tool"))
    points = [frame[:3, 3].tolist() for frame in frames]
    np.testing.assert_array_equal(
        place.solve_many({"tool": points}).q, [place.solve({"tool": point}).pose.q for point in points]
    )


def test_a_pose_goal_given_only_a_part_keeps_the_other():
    """Position alone keeps the goal's own rotation, or that of the start; and the reverse."""
    start = ARM.random_pose(3)
    own = sy.IK(ARM, sy.PoseGoal("tool", transform=wanted(5)))
    free = sy.IK(ARM, sy.PoseGoal("tool"))
    place, turn = wanted(2)[:3, 3], sy.Rotation.from_matrix(wanted(2)[:3, :3])
    for ik, other in ((own, wanted(5)), (free, start.transform("tool"))):
        moved = ik.solve({"tool": place}, start).targets[0]
        np.testing.assert_allclose(moved[:3, 3], place, atol=1e-12)
        np.testing.assert_allclose(moved[:3, :3], other[:3, :3], atol=1e-12)
        turned = ik.solve({"tool": turn}, start).targets[0]
        np.testing.assert_allclose(turned[:3, 3], other[:3, 3], atol=1e-12)
        np.testing.assert_allclose(turned[:3, :3], wanted(2)[:3, :3], atol=1e-12)


def test_goals_of_one_joint_are_told_apart_by_part_or_name():
    """A joint with two goals: the form of the target decides, an ambiguous one is refused, names always work."""
    ik = sy.IK(ARM, [sy.PositionGoal("tool"), sy.RotationGoal("tool")])
    solution = ik.solve({"tool": wanted(2)[:3, 3]})
    np.testing.assert_allclose(solution.targets[0, :3, 3], wanted(2)[:3, 3])
    twins = sy.IK(ARM, [sy.PositionGoal("tool", name="a"), sy.PositionGoal("tool", offset=(0, 0, 0.1), name="b")])
    twins.solve({"a": (0.3, 0, 0.5)})
    with pytest.raises(UnknownNameError, match="2 goals"):
        twins.solve({"tool": (0.3, 0, 0.5)})


def test_a_row_means_the_same_joint_under_a_free_root():
    """The free joint put before the skeleton does not shift what the user counts."""
    chain = sy.Skeleton.chain([(0, 0, 0), (1, 0, 0), (2, 0, 0)])
    by_name = sy.IK(chain, sy.PositionGoal("joint2", (5, 1, 0)), root="free").solve()
    by_row = sy.IK(chain, sy.PositionGoal(2, (5, 1, 0)), root="free").solve({2: (5, 1, 0)})
    np.testing.assert_array_equal(by_row.pose.q, by_name.pose.q)
    assert by_row.reached


def test_an_answer_under_a_free_root_starts_the_next_ik():
    """Its skeleton is another object with the same joints."""
    chain = sy.Skeleton.chain([(0, 0, 0), (1, 0, 0), (2, 0, 0)])
    first = sy.IK(chain, sy.PositionGoal("joint2", (5, 1, 0)), root="free").solve()
    again = sy.IK(chain, sy.PositionGoal("joint2", (5, 1, 0)), root="free").solve(start=first.pose)
    assert again.steps == 0
    np.testing.assert_allclose(again.pose.q, first.pose.q, atol=1e-15)  # quaternions are made exact at the door


def test_a_start_that_changes_later_does_not_change_the_solution():
    """What was clamped is told from the start as it was."""
    q = np.full(7, 9.0)
    solution = sy.IK(ARM, sy.PositionGoal("tool")).solve(start=q)
    q[:] = NAN
    assert len(solution.start_clamped) == 7


@pytest.mark.compiled
def test_one_ik_serves_many_threads():
    """Eight threads with one IK get what one thread gets, bit for bit."""
    ik = sy.IK(ARM, sy.PoseGoal("tool"))
    frames = [wanted(i) for i in range(40)]
    expected = np.array([ik.solve({"tool": frame}).pose.q for frame in frames])
    wrong = []

    def work(offset):
        for _ in range(10):
            for i in np.roll(np.arange(40), offset):
                if i % 7 == 0:
                    with contextlib.suppress(SynoviaError):
                        ik.solve({"tool": MIRRORED})
                if not np.array_equal(ik.solve({"tool": frames[i]}).pose.q, expected[i]):
                    wrong.append(i)

    threads = [threading.Thread(target=work, args=(5 * n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_solver_that_has_no_priorities_says_so_with_the_goal():
    """UnsupportedError, when the IK is built."""
    with pytest.raises(UnsupportedError, match=r"'tool'.*'full-body'"):
        sy.IK(ARM, [sy.PositionGoal("tool", priority=2)], "lm")


@pytest.mark.parametrize("goal", [sy.PoseGoal("tool"), sy.PoseGoal("tool", name="grasp"), sy.PoseGoal(9)])
def test_the_only_goal_takes_a_bare_target(goal):
    """As by name, in a single solve, a batch and a track."""
    ik = sy.IK(ARM, [goal, sy.RestGoal(weight=1e-6)])
    frame, key = wanted(), goal.name or goal.joint
    pair = frame[:3, 3], sy.Rotation.from_matrix(frame[:3, :3])
    for bare in (frame, frame.tolist(), pair, tuple(frame[:3, 3].tolist())):
        assert np.array_equal(ik.solve(bare).pose.q, ik.solve({key: bare}).pose.q)
    frames = np.repeat(frame[None], 3, 0)
    for bare in (frames, frames[:, :3, 3]):
        assert np.array_equal(ik.solve_many(bare).q, ik.solve_many({key: bare}).q)
        assert np.array_equal(ik.track(bare).q, ik.track({key: bare}).q)
    with pytest.raises(InputError, match=r"target of '(grasp|tool|9)'"):
        ik.solve(np.full((4, 4), NAN))


def test_a_bare_target_of_several_goals_is_refused():
    ik = sy.IK(BODY, [sy.PositionGoal("left_hand"), sy.PositionGoal("right_hand")])
    with pytest.raises(InputError, match="dict from joints or goals"):
        ik.solve((0.3, 1.2, 0.4))


@pytest.mark.parametrize("root", ["fixed", "free"])
def test_a_start_may_be_a_word_or_joint_values_by_name(root):
    ik = sy.IK(ARM, sy.PositionGoal("tool", (0.3, 0.2, 0.4)), root=root)
    targets = np.array([(0.3, 0.2, 0.4), (0.3, 0.3, 0.4)])
    assert np.array_equal(ik.solve(start="rest").q, ik.solve().q)
    assert np.array_equal(ik.solve_many(targets, "rest").q, ik.solve_many(targets).q)
    assert np.array_equal(ik.track(targets, "rest").q, ik.track(targets).q)
    bent = {"joint2": 0.5, "joint4": -2.0}
    pose = sy.Pose(ik.skeleton, bent)
    assert np.array_equal(ik.solve(start=bent).q, ik.solve(start=pose).q)
    assert np.array_equal(ik.solve_many(targets, bent).q, ik.solve_many(targets, pose).q)


def test_follow_needs_the_pose_that_it_follows():
    ik = sy.IK(sy.bundled("arm7"), sy.PositionGoal("tool"))
    for value in ("yes", 1, None, []):
        with pytest.raises(sy.InputError, match="follow: expected True or False"):
            ik.solve((0.4, 0.1, 0.5), ik.problem.rest, follow=value)
    with pytest.raises(sy.InputError, match="start: expected the previous pose"):
        ik.solve((0.4, 0.1, 0.5), follow=True)
    assert ik.solve((0.4, 0.1, 0.5), follow=np.False_).reached
    near = ik.solve((0.4, 0.1, 0.5)).pose
    assert ik.solve((0.4, 0.11, 0.5), near, follow=np.True_).reached


@pytest.mark.parametrize("many", [False, True])
def test_a_target_with_a_quaternion_names_its_cure(many):
    arm = sy.bundled("arm7")
    ik = sy.IK(arm, sy.PoseGoal("tool"))
    place, quat = np.array([0.4, 0.1, 0.5]), np.array([0.0, 0.0, 0.0, 1.0])
    if many:
        place, quat = np.tile(place, (3, 1)), np.tile(quat, (3, 1))
    solve = ik.solve_many if many else ik.solve
    for target in ((place, quat), [place.tolist(), quat.tolist()], np.concatenate([place, quat], axis=-1), quat):
        with pytest.raises(sy.InputError, match=r"\(position, sy\.Rotation\.from_quat\(quaternion\)\)"):
            solve({"tool": target})
    assert solve({"tool": (place, sy.Rotation.from_quat(quat))}).status is not None
    clip = sy.Motion(arm, [arm.rest_q] * 4, 30.0)
    with pytest.raises(sy.InputError, match=r"sy\.Rotation\.from_quat"):
        sy.edit(clip, [sy.Layer({"tool": ((0.4, 0.1, 0.5), (0.0, 0.0, 0.0, 1.0))}, frames=(1, 2))])


def test_targets_out_of_a_pickle_are_read_as_fast_as_others() -> None:
    """NumPy gives unpickled arrays a data type of their own, which is equal to the usual one but not the same."""
    ik = sy.IK(sy.bundled("arm7"), sy.PoseGoal("tool"))
    target = pickle.loads(pickle.dumps(ik.skeleton.rest_pose().transform("tool")))
    for given in ({"tool": target}, target):
        workspace = ik.problem.writer.workspace(np.zeros(64))
        ik.problem.writer.fill(given, workspace)
        assert workspace.all_given  # without the checks that others need
        np.testing.assert_array_equal(workspace.table[0, 0, :16].reshape(4, 4), target)
