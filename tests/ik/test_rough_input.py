"""Input as people have it: rounded rotations, batches with bad rows, degrees instead of radians, questions of truth."""

import math
import pickle
import warnings

import numpy as np
import pytest

import synovia as sy
from synovia.errors import InputError
from synovia.ik.status import Status
from synovia.model.geometry import ORTHONORMAL, nearest_rotations

ARM = sy.bundled("arm7")
NAN = math.nan


def wanted(count, decimals=None, first=0):
    """Return transforms of the tool, (B, 4, 4), with rotations rounded to some decimals."""
    frames = np.array([ARM.random_pose(first + k).transform("tool") for k in range(count)])
    if decimals is not None:
        frames[:, :3, :3] = np.round(frames[:, :3, :3], decimals)
    return frames


def error(matrix):
    """Return the largest entry of RᵀR - 1."""
    return np.abs(matrix.T @ matrix - np.eye(3)).max()


def turned(a, b):
    """Return the angle between two rotations, radians."""
    return sy.Rotation.from_matrix(a.T @ b).magnitude()


# --- Rounded rotations -----------------------------------------------------------------------------------------------


def test_the_nearest_rotation_is_that_of_the_singular_values():
    rng = np.random.default_rng(0)
    exact = sy.Rotation.random(200, random_state=1).as_matrix()
    rough = exact + rng.uniform(-2e-4, 2e-4, exact.shape)
    u, _, v = np.linalg.svd(rough)
    near = nearest_rotations(rough)
    np.testing.assert_allclose(near, u @ v, atol=1e-14)
    assert max(map(error, near)) < 2e-15
    for one, same in zip(rough, near, strict=True):
        np.testing.assert_array_equal(nearest_rotations(one[None])[0], same)  # whatever is beside it


@pytest.mark.parametrize("seed", range(6))
def test_a_matrix_of_four_decimals_is_taken_in_every_form(seed):
    """Goals, targets in all forms, batches and tracks give the same answer, near that of the exact rotation."""
    (exact,), (frame,) = wanted(1, first=seed), wanted(1, 4, first=seed)
    assert error(frame[:3, :3]) > ORTHONORMAL
    turn, place = frame[:3, :3], tuple(frame[:3, 3].tolist())
    ik = sy.IK(ARM, sy.PoseGoal("tool"))
    answers = [
        sy.solve(ARM, sy.PoseGoal("tool", transform=frame)),
        sy.solve(ARM, sy.PoseGoal("tool", place, turn)),
        ik.solve({"tool": frame}),
        ik.solve({"tool": frame.tolist()}),
        ik.solve(frame),
        ik.solve({"tool": (place, turn)}),
        ik.solve({"tool": (np.array(place), turn.tolist())}),
        ik.solve_many({"tool": frame[None]})[0],
        ik.solve_many({"tool": (frame[None, :3, 3], frame[None, :3, :3])})[0],
        ik.solve_many([frame.tolist(), wanted(1)[0].tolist()])[0],
    ]
    for answer in answers:
        assert answer.status is answers[0].status
        np.testing.assert_array_equal(answer.q, answers[2].q)
        assert turned(answer.targets[0][:3, :3], exact[:3, :3]) < 2e-4
        assert error(answer.targets[0][:3, :3]) < 1e-14  # solvers see a rotation
    assert ik.track(np.repeat(frame[None], 3, 0)).reached.all()
    alone = sy.IK(ARM, sy.RotationGoal("tool"))
    assert turned(alone.solve({"tool": turn}).pose.matrix("tool"), exact[:3, :3]) < 2e-3


@pytest.mark.parametrize("simd", [False, pytest.param(True, marks=pytest.mark.compiled)])
def test_rounded_and_exact_rotations_stand_side_by_side(simd):
    """Each row is solved as it would be alone, in any block."""
    frames = wanted(300)
    frames[::3, :3, :3] = np.round(frames[::3, :3, :3], 4)
    before = frames.copy()
    ik = sy.IK(ARM, sy.PoseGoal("tool"))
    many = ik.solve_many(frames, simd=simd, threads=2)
    np.testing.assert_array_equal(frames, before)  # the user's array
    assert many.reached.mean() > 0.95
    if not simd:
        for k in (0, 1, 3, 150, 298):
            np.testing.assert_array_equal(many.q[k], ik.solve(frames[k]).q)


@pytest.mark.parametrize("decimals", [1, 2])
def test_a_matrix_far_from_a_rotation_is_refused_with_the_cure(decimals):
    (frame,) = wanted(1, decimals)
    turn = frame[:3, :3]
    assert error(turn) > 1e-3
    ik = sy.IK(ARM, sy.PoseGoal("tool"))
    for call in (
        lambda: sy.RotationGoal("tool", turn),
        lambda: sy.PoseGoal("tool", transform=frame),
        lambda: ik.solve(frame),
        lambda: ik.solve(((0.1, 0.2, 0.3), turn)),
        lambda: ik.solve_many(frame[None]),
        lambda: sy.SwingTwist(x=(1, 1), y=(1, 1), frame=turn),
    ):
        with pytest.raises(InputError, match=r"sy\.Rotation\.from_matrix\(matrix\)"):
            call()
    assert sy.RotationGoal("tool", sy.Rotation.from_matrix(turn)).target is not None


def test_the_rest_of_a_joint_is_exact_or_refused_with_the_cure():
    """A model that is off by rounding would be off in every pose."""
    (frame,) = wanted(1, 4)
    with pytest.raises(InputError, match=r"joint 'a': rotation of rest transform.*Rotation\.from_matrix"):
        sy.Joint("a", rest=frame)


@pytest.mark.parametrize("seed", range(20))
def test_quaternions_of_three_decimals_are_taken(seed):
    exact = sy.Rotation.random(random_state=seed)
    quat = np.round(exact.as_quat(), 3)
    for goal in (
        sy.RotationGoal("tool", quat_xyzw=quat),
        sy.RotationGoal("tool", quat_wxyz=np.roll(quat, 1)),
        sy.PoseGoal("tool", (0, 0, 1), quat_xyzw=quat),
    ):
        assert turned(goal.target[:3, :3], exact.as_matrix()) < 3e-3
        assert error(goal.target[:3, :3]) < 1e-14
    body = sy.bundled("humanoid")
    pose = sy.Pose(body, {"left_upper_arm": quat})
    assert np.linalg.norm(pose["left_upper_arm"]) == pytest.approx(1.0, abs=1e-15)
    start = body.rest_q.copy()
    start[body.q_slice("left_upper_arm")] = quat
    ik = sy.IK(body, sy.PositionGoal("left_hand"))
    place = pose.position("left_hand")
    np.testing.assert_array_equal(ik.solve(place, start).q, ik.solve(place, pose).q)


@pytest.mark.parametrize("scale", [0.99, 1.01, 2.0, 0.0])
def test_a_quaternion_of_another_length_is_refused_with_the_cure(scale):
    quat = scale * sy.Rotation.random(random_state=1).as_quat()
    with pytest.raises(InputError, match=r"quat_xyzw: expected a unit quaternion.*Rotation\.from_quat"):
        sy.RotationGoal("tool", quat_xyzw=quat)


# --- Batches with bad rows --------------------------------------------------------------------------------------------


def spoiled(frame, kind):
    """Return one bad row for a target."""
    bad = frame.copy()
    if kind == "nan":
        bad[0, 3] = NAN
    elif kind == "infinite rotation":
        bad[1, 1] = math.inf
    elif kind == "scaled":
        bad[:3, :3] *= 1.01
    elif kind == "mirrored":
        bad[:3, 0] *= -1.0
    elif kind == "far":
        bad[0, 3] = 1e300
    elif kind == "projective":
        bad[3, 0] = 0.1
    elif kind == "number too large":
        return [[10**400, 0, 0, 0], *bad[1:].tolist()]
    elif kind == "another shape":
        return frame[:3, 3].tolist()
    elif kind == "none":
        return None
    return bad.tolist()


KINDS = [
    "nan",
    "infinite rotation",
    "scaled",
    "mirrored",
    "far",
    "projective",
    "number too large",
    "another shape",
    "none",
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("simd", [False, pytest.param(True, marks=pytest.mark.compiled)])
@pytest.mark.filterwarnings("ignore:(invalid value|overflow|divide by zero):RuntimeWarning")
def test_a_bad_target_is_named_by_its_row_or_skipped(kind, simd):
    frames = wanted(40)
    rows = frames.tolist()
    for b in (7, 31):
        rows[b] = spoiled(frames[b], kind)
    ik = sy.IK(ARM, sy.PoseGoal("tool"))
    with pytest.raises(InputError, match=r"^targets\[7\]: .*'tool'"):
        ik.solve_many({"tool": rows}, simd=simd)
    with pytest.raises(InputError, match=r"^targets\[7\]: .*'tool'"):
        ik.track({"tool": rows})
    some = ik.solve_many({"tool": rows}, simd=simd, on_error="skip")
    good = np.delete(np.arange(40), [7, 31])
    whole = ik.solve_many({"tool": frames[good]}, simd=simd)
    np.testing.assert_array_equal(some.q[good], whole.q)
    np.testing.assert_array_equal(some.status[good], whole.status)
    for b in (7, 31):
        one = some[b]
        assert (one.status, one.reached, bool(one), one.steps) == (Status.INVALID, False, False, 0)
        assert np.isnan(one.q).all()
        assert np.isnan(one.errors).all()
        assert np.isnan(some.q[b]).all()
        assert np.isnan(some.errors[b]).all()
        assert f"targets[{b}]" in one.explain()[1]
        assert f"targets[{b}]" in str(one)
        assert one.reasons == ()
        with pytest.raises(sy.errors.UnsolvedError, match="Invalid"):
            one.raise_for_status()


def test_the_goal_of_a_bad_row_is_named():
    frames = wanted(5)
    goals = [sy.PoseGoal("tool"), sy.PositionGoal("joint4", name="elbow"), sy.DirectionGoal("joint5", (1, 0, 0))]
    ik = sy.IK(ARM, goals)
    places = frames[:, :3, 3].copy()
    ways = np.tile((0.0, 0.0, 1.0), (5, 1))
    ways[3] = 0.0
    targets = {"tool": frames, "elbow": places, "joint5": ways}
    with pytest.raises(InputError, match=r"^targets\[3\]: target of 'joint5'.*longer than 0"):
        ik.solve_many(targets)
    places[1, 2] = NAN
    with pytest.raises(InputError, match=r"^targets\[1\]: target of 'elbow'"):
        ik.solve_many(targets)
    assert ik.solve_many(targets, on_error="skip").status[[1, 3]].tolist() == [Status.INVALID] * 2
    assert (ik.solve_many(targets, on_error="skip").status[[0, 2, 4]] != Status.INVALID).all()


@pytest.mark.parametrize("root", ["fixed", "free"])
def test_a_bad_start_is_named_by_its_row_or_skipped(root):
    body = sy.bundled("humanoid")
    ik = sy.IK(body, sy.PositionGoal("left_hand"), root=root)
    places = np.array([body.random_pose(k).position("left_hand") for k in range(9)])
    starts = np.array([body.random_pose(k).q for k in range(9)])
    at = body.q_slice("left_hand")
    nan, short = starts.copy(), starts.tolist()
    nan[4, 0] = NAN
    long = starts.copy()
    long[4, at] *= 2.0
    short[4] = short[4][:-1]
    for bad in (nan, long, short, [*short[:4], None, *short[5:]]):
        with pytest.raises(InputError, match=r"^starts\[4\]: "):
            ik.solve_many(places, bad)
        some = ik.solve_many(places, bad, on_error="skip")
        assert np.flatnonzero(some.status == Status.INVALID).tolist() == [4]
        assert "starts[4]" in some[4].explain()[1]
        good = np.delete(np.arange(9), 4)
        np.testing.assert_array_equal(some.q[good], ik.solve_many(places[good], starts[good]).q)


def test_batches_of_bad_rows_alone_and_wrong_settings():
    ik = sy.IK(ARM, sy.PositionGoal("tool"))
    none = ik.solve_many(np.full((3, 3), NAN), on_error="skip")
    assert none.status.tolist() == [Status.INVALID] * 3
    assert repr(none) == "<Solutions: 0 of 3 reached>"
    assert len(ik.solve_many(np.zeros((0, 3)), on_error="skip")) == 0
    for wrong in ("ignore", None, True):
        with pytest.raises(InputError, match=r"on_error: expected 'raise' or 'skip'"):
            ik.solve_many(np.zeros((1, 3)), on_error=wrong)
    for shapeless in ({"tool": np.zeros((3, 2))}, {"tool": [None, "a"]}, {}, {"tool": 3}):
        with pytest.raises(InputError):
            ik.solve_many(shapeless, on_error="skip")
    with pytest.raises(InputError, match="start"):
        ik.solve_many(np.zeros((2, 3)), np.full(7, NAN), on_error="skip")  # one start for all


# --- Questions of truth -----------------------------------------------------------------------------------------------


def test_a_solution_is_true_if_it_reached_and_a_batch_is_neither():
    ik = sy.IK(ARM, sy.PositionGoal("tool"))
    assert ik.solve((0.4, 0.1, 0.5))
    assert not ik.solve((9.0, 0.0, 0.0))
    many = ik.solve_many([(0.4, 0.1, 0.5), (9.0, 0.0, 0.0)])
    assert [bool(one) for one in many] == many.reached.tolist() == [True, False]
    for batch in (many, ik.track(np.tile((0.4, 0.1, 0.5), (2, 1))), ik.solve_many(np.zeros((0, 3)))):
        with pytest.raises(InputError, match=r"\.reached\.all\(\)"):
            bool(batch)


# --- Degrees where radians are meant ----------------------------------------------------------------------------------


def hinges(*limits):
    """Return a chain of hinges with these limits."""
    return sy.Skeleton(
        [
            sy.Joint(f"h{k}", k - 1 if k else None, sy.Kind.HINGE, axis=(0, 1, 0), limit=limit)
            for k, limit in enumerate(limits)
        ]
    )


def warned(call):
    """Return the texts of the warnings of a call, and its result."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = call()
    assert all(one.category is UserWarning and one.filename == __file__ for one in caught)  # at the user's line
    return [str(one.message) for one in caught], result


def test_values_in_degrees_bring_a_warning_with_the_joint_and_stay_as_they_are():
    body = hinges(None, sy.Interval(-2.0, 2.0), sy.Interval(-3.0, -0.1))
    ik = sy.IK(body, sy.RotationGoal("h2", np.eye(3)))
    degrees = np.array([0.0, 45.0, -90.0])
    texts, pose = warned(lambda: sy.Pose(body, {"h1": 45.0, "h0": 300.0}))
    assert pose["h1"] == 45.0
    assert [("'h1'" in text, "45 degrees" in text, "h0" in text) for text in texts] == [(True, True, False)]
    for call in (
        lambda: sy.Pose(body, degrees),
        lambda: ik.solve(start=degrees),
        lambda: ik.solve(start=degrees.tolist()),
        lambda: ik.solve_many(np.tile(np.eye(3), (2, 1, 1)), [np.zeros(3), degrees]),
        lambda: ik.track(np.tile(np.eye(3), (2, 1, 1)), degrees),
        lambda: sy.Motion(body, [np.zeros(3), degrees], 30.0),
    ):
        (text,), _ = warned(call)
        assert "'h1'" in text
        assert "'h2'" in text
    for call in (
        lambda: ik.solve(start={"h2": -90}),
        lambda: sy.IK(body, [sy.PositionGoal("h2"), sy.RestGoal({"h2": -90.0})], "full-body"),
        lambda: body.with_limits({"h2": (-90.0, 0.0)}),
    ):
        (text,), _ = warned(call)
        assert "'h2'" in text
        assert "degrees" in text
    assert warned(lambda: body.with_limits({"h2": (-90.0, 0.0)}))[1].joint("h2").limit == sy.Interval(-90.0, 0.0)


def test_a_table_of_a_motion_in_degrees_brings_a_warning(tmp_path):
    body = hinges(sy.Interval(-2.0, 2.0), None)
    path = tmp_path / "clip.csv"
    path.write_text("time,h0,h1\n0.0,0,0\n0.1,60,60\n", encoding="utf-8")
    (text,), motion = warned(lambda: sy.load_motion(path, skeleton=body))
    assert "'h0'" in text
    assert motion.q[1].tolist() == [60.0, 60.0]


def test_values_that_are_no_degrees_bring_no_warning():
    wide = hinges(None, sy.Interval(-6.3, 6.3), sy.Interval(0.0, math.inf), sy.Interval(-2.0, 2.0))
    slide = sy.Skeleton([sy.Joint("s", kind=sy.Kind.SLIDE, axis=(0, 1, 0), limit=sy.Interval(0, 0.1))])
    for call in (
        lambda: sy.Pose(wide, [1e3, 18.0, 90.0, 4.0]),  # a continuous joint, and limits that are left by little
        lambda: sy.Pose(wide, {"h3": 1e6}),
        lambda: sy.Pose(slide, {"s": 90.0}),
        lambda: wide.with_limits({"h0": (-90.0, 90.0), "h2": (0.0, 500.0), "h3": (-4.0, 4.0)}),
        lambda: slide.with_limits({"s": (0.0, 90.0)}),
        lambda: pickle.loads(pickle.dumps(sy.Pose(wide, np.zeros(4)))),
    ):
        assert warned(call)[0] == []


USES = {
    "save_pose": lambda ik, pose, folder: sy.save_pose(pose, folder / "pose.json"),
    "picture": lambda ik, pose, folder: sy.picture(pose),
    "picture of several": lambda ik, pose, folder: sy.picture([pose, ARM.rest_pose()]),
    "start": lambda ik, pose, folder: ik.solve((0.4, 0.1, 0.5), start=pose),
    "start of another problem": lambda ik, pose, folder: sy.solve(ARM, sy.PositionGoal("joint5"), start=pose),
    "starts": lambda ik, pose, folder: ik.solve_many([(0.4, 0.1, 0.5)], pose),
    "track": lambda ik, pose, folder: ik.track([(0.4, 0.1, 0.5)], start=pose),
}


@pytest.mark.slow
@pytest.mark.parametrize("use", USES)
def test_the_pose_of_a_row_that_was_skipped_is_refused_with_the_reason(use, tmp_path):
    ik = sy.IK(ARM, sy.PositionGoal("tool"))
    many = ik.solve_many([(0.4, 0.1, 0.5), (0.4, NAN, 0.5), (0.4, 0.2, 0.5)], on_error="skip")
    USES[use](ik, many[0].pose, tmp_path)
    (tmp_path / "pose.json").unlink(missing_ok=True)
    assert np.isnan(many[1].pose.q).all()
    with pytest.raises(InputError, match=r"row 1 of the batch is invalid: targets\[1\]: target of 'tool'"):
        USES[use](ik, many[1].pose, tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_picture_of_a_solution_that_was_skipped(tmp_path):
    one = sy.IK(ARM, sy.PositionGoal("tool")).solve_many([(NAN,) * 3], on_error="skip")[0]
    with pytest.raises(InputError, match="solution: row 0 of the batch is invalid"):
        sy.picture(one)
    assert one._repr_png_() is None  # notebooks show the text
    assert pickle.loads(pickle.dumps(one.pose)).q.shape == (7,)


@pytest.mark.parametrize(
    ("settings", "hint"),
    [
        ({"x": (103, 17), "y": (0.4, 0.4)}, r"Did you mean degrees, \(1.798, 0.2967\)\?"),
        ({"x": (0.4, 0.4), "y": (0.2, 90)}, r"Did you mean degrees, \(0.003491, 1.571\)\?"),
        ({"x": (0.4, 0.4), "y": (0.4, 0.4), "twist": (-45, 45)}, r"Did you mean degrees, \(-0.7854, 0.7854\)\?"),
    ],
)
def test_limits_of_balls_in_degrees(settings, hint):
    with pytest.raises(InputError, match=hint):
        sy.SwingTwist(**settings)
    with pytest.raises(InputError, match=hint):
        sy.SwingTwist.about((0, 1, 0), **settings)
    with pytest.raises(InputError) as caught:
        sy.SwingTwist(x=(-1.0, 0.4), y=(0.4, 0.4))
    assert "degrees" not in str(caught.value)
