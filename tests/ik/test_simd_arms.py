"""Many problems in lockstep: the same promises as one by one, for any number of threads, in both precisions."""

import numpy as np
import pytest

import synovia as sy
from synovia import Status
from synovia.errors import InputError, UnsupportedError


def slider():
    """An arm with a slide between its hinges."""

    def joint(name, parent, offset, axis, kind=sy.Kind.HINGE, ends=(-2.9, 2.9)):
        rest = np.eye(4)
        rest[:3, 3] = offset
        return sy.Joint(name, parent, kind, rest, axis, sy.Interval(*ends))

    x, y, z = np.eye(3)
    return sy.Skeleton(
        [
            joint("base", None, (0, 0, 0), z),
            joint("shoulder", "base", (0, 0, 0.4), y),
            joint("rail", "shoulder", (0.1, 0, 0.3), z, sy.Kind.SLIDE, (-0.1, 0.4)),
            joint("roll", "rail", (0, 0, 0.2), z),
            joint("pitch", "roll", (0, 0, 0.1), y),
            joint("yaw", "pitch", (0, 0.05, 0.1), x),
        ]
    )


def transforms(body, tip, count):
    return np.stack([body.random_pose(i).transform(tip) for i in range(count)])


ARMS = {"arm7": (lambda: sy.bundled("arm7"), "tool"), "slide": (slider, "yaw")}


@pytest.mark.parametrize("name", ARMS)
def test_a_few_problems_in_a_simd_batch_are_verified(name):
    """Few enough for kernels that run as plain Python: targets that are reached, and one out of reach."""
    body, tip = ARMS[name][0](), ARMS[name][1]
    ik = sy.IK(body, sy.PoseGoal(tip))
    targets = transforms(body, tip, 5)
    targets[2, :3, 3] += 9.0
    many = ik.solve_many({tip: targets}, simd=True)
    assert many.status.tolist() == [Status.UNREACHABLE if b == 2 else Status.REACHED for b in range(5)]
    lower, upper = body.limits
    assert ((many.q >= lower - 1e-9) & (many.q <= upper + 1e-9)).all()
    for b in (0, 1, 3, 4):
        off = many[b].pose.position(tip) - targets[b, :3, 3]
        assert np.linalg.norm(off) <= ik.tolerance[0] * (1 + 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("simd", [True, "single"])
@pytest.mark.parametrize("name", ARMS)
def test_simd_batches_keep_the_promises_of_the_scalar_path(name, simd):
    body, tip = ARMS[name][0](), ARMS[name][1]
    tolerance = (1e-4, 1e-3) if simd == "single" else (1e-6, 1e-6)
    ik = sy.IK(body, sy.PoseGoal(tip), tolerance=tolerance)
    targets = transforms(body, tip, 300)
    targets[::50, :3, 3] += 9.0  # out of reach
    scalar = ik.solve_many({tip: targets})
    many = ik.solve_many({tip: targets}, simd=simd)
    assert (many.status == scalar.status).all()
    assert (many.status[::50] == Status.UNREACHABLE).all()
    lower, upper = body.limits
    assert ((many.q >= lower - 1e-9) & (many.q <= upper + 1e-9)).all()
    for i in np.flatnonzero(many.reached):
        frame = many[i].pose.transform(tip)
        assert np.linalg.norm(frame[:3, 3] - targets[i, :3, 3]) <= tolerance[0] * (1 + 1e-9)
        turn = sy.Rotation.from_matrix(frame[:3, :3].T @ targets[i, :3, :3]).magnitude()
        assert turn <= tolerance[1] * (1 + 1e-6)
    missed = ~many.reached
    np.testing.assert_array_equal(
        many.q[missed], scalar.q[missed], "what a SIMD batch misses is the scalar path's answer"
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ARMS)
def test_close_to_the_target_simd_batches_follow_the_way_of_the_scalar_path(name):
    """They follow the tangent alone, which differs in second order: from 0.01 rad away joints end within 1e-4 of it."""
    body, tip = ARMS[name][0](), ARMS[name][1]
    ik = sy.IK(body, sy.PoseGoal(tip), tolerance=(1e-9, 1e-9))
    lower, upper = body.limits
    rng = np.random.default_rng(3)
    starts = np.stack([body.random_pose(i).q for i in range(100)])
    goals = np.clip(starts + rng.uniform(-0.01, 0.01, starts.shape), lower, upper)
    targets = np.stack([sy.Pose(body, q).transform(tip) for q in goals])
    scalar = ik.solve_many({tip: targets}, starts)
    many = ik.solve_many({tip: targets}, starts, simd=True)
    both = scalar.reached & many.reached & (scalar._rows[:, 3] == 0) & (many._rows[:, 3] == 0)
    assert both.mean() > 0.9
    apart = np.abs(many.q - scalar.q)[both].max(axis=1)
    assert np.percentile(apart, 95) < 1e-4


@pytest.mark.slow
def test_simd_batches_give_the_same_bits_for_any_number_of_threads_and_any_order():
    body = sy.bundled("arm7")
    ik = sy.IK(body, sy.PoseGoal("tool"), tolerance=(1e-6, 1e-6))
    targets = np.concatenate([transforms(body, "tool", 400)] * 6)
    told = []
    one = ik.solve_many({"tool": targets}, simd=True, threads=1, progress=lambda done, all_: told.append((done, all_)))
    assert told[-1] == (2400, 2400)
    assert one.reached.all()
    two = ik.solve_many({"tool": targets}, simd=True, threads=2)
    np.testing.assert_array_equal(one._rows, two._rows)
    back = ik.solve_many({"tool": targets[::-1].copy()}, simd=True, threads=2)
    np.testing.assert_array_equal(one._rows, back._rows[::-1])


@pytest.mark.slow
def test_simd_batches_serve_positions_or_rotations_alone_from_starts_of_their_own():
    body = sy.bundled("arm7")
    targets = transforms(body, "tool", 60)
    starts = np.stack([body.random_pose(1000 + i).q for i in range(60)])
    place = sy.IK(body, sy.PositionGoal("tool")).solve_many({"tool": targets[:, :3, 3]}, starts, simd=True)
    assert place.reached.all()
    turn = sy.IK(body, sy.RotationGoal("tool")).solve_many({"tool": targets[:, :3, :3]}, starts, simd=True)
    assert turn.reached.all()


@pytest.mark.slow
def test_a_refused_target_is_named_as_in_the_scalar_path():
    ik = sy.IK(sy.bundled("arm7"), sy.PositionGoal("tool"))
    targets = np.full((100, 3), 0.3)
    targets[77, 1] = np.nan
    with pytest.raises(InputError) as scalar:
        ik.solve_many({"tool": targets})
    with pytest.raises(InputError) as simd:
        ik.solve_many({"tool": targets}, simd=True)
    assert str(simd.value) == str(scalar.value)


def test_simd_batches_are_for_arms_alone():
    person = sy.IK(sy.bundled("humanoid"), sy.PositionGoal("left_hand"))
    with pytest.raises(UnsupportedError, match="no SIMD kernel"):
        person.solve_many({"left_hand": np.zeros((2, 3))}, simd=True)
    with pytest.raises(InputError, match="simd"):
        person.solve_many({"left_hand": np.zeros((2, 3))}, simd="double")


def test_progress_is_told_in_order():
    ik = sy.IK(sy.bundled("arm7"), sy.PositionGoal("tool"))
    told = []
    ik.solve_many({"tool": np.full((200, 3), 0.3)}, threads=2, progress=lambda done, count: told.append((done, count)))
    assert told == sorted(told)
    assert told[-1] == (200, 200)
