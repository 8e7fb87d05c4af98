"""Keypoints to rotations: exact on clean points, calmer than noise, through gaps, with markers and confidence."""

from dataclasses import replace

import numpy as np
import pytest

import jumps
import synovia as sy
from synovia.clips.points import pieces_of, points_of
from synovia.errors import InputError, UnknownNameError
from synovia.model.geometry import rigid
from synovia.tracking.trajectory import Model, Terms, spread
from synovia.tracking.trajectory.solve import _cost, _normal_equations

BODY = sy.bundled("humanoid")


def wander(frames=60, seed=0, size=0.12):
    """Return a smooth motion with a free root: every number swings slowly about the rest pose."""
    body = sy.IK(BODY, sy.PositionGoal("head"), root="free").skeleton
    rng = np.random.default_rng(seed)
    q = np.repeat(body.rest_q[None], frames, axis=0)
    time = np.linspace(0.0, 2.0, frames)[:, None]
    swings = size * sum(rng.normal(size=body.nq) * np.sin(f * time + rng.uniform(0, 6, body.nq)) for f in (1.0, 2.0))
    q += 0.4 * swings
    for row, joint in enumerate(body.joints):
        place = body.q_slice(row)
        if joint.kind.q_size >= 4:
            turn = slice(place.stop - 4, place.stop)
            q[:, turn] /= np.linalg.norm(q[:, turn], axis=1, keepdims=True)
    from synovia.model.pose import inside_limits

    return sy.Motion(body, inside_limits(body, q), 30.0)


@pytest.mark.compiled
def test_clean_points_come_back():
    """Joints meet points that a pose of the skeleton can meet."""
    motion = wander(frames=16)
    fitted = sy.fit_positions(motion.positions(), motion.skeleton, fps=30.0)
    off = np.linalg.norm(fitted.positions() - motion.positions(), axis=-1)
    assert np.median(off) < 1e-3
    assert np.quantile(off, 0.99) < 5e-3
    assert fitted.errors.shape == off.shape
    assert isinstance(fitted, sy.Motion)


@pytest.mark.compiled
def test_noise_is_calmed_and_gaps_are_bridged():
    """A fifth missing, 5 mm of noise: the fit is nearer to the truth than what was seen, missing points included."""
    motion = wander(frames=24, seed=1)
    truth = motion.positions()
    rng = np.random.default_rng(2)
    noise = rng.normal(0, 0.005, truth.shape)
    seen = truth + noise
    seen[rng.random(truth.shape[:2]) < 0.2] = np.nan
    fitted = sy.fit_positions(seen, motion.skeleton, fps=30.0)
    rms = np.sqrt(np.mean(np.sum((fitted.positions() - truth) ** 2, axis=-1)))
    assert rms < 0.7 * np.sqrt(np.mean(np.sum(noise**2, axis=-1)))
    assert fitted.smoothness > 0
    np.testing.assert_array_equal(np.isnan(fitted.errors), np.isnan(seen).any(2))


@pytest.mark.compiled
def test_markers_joints_by_name_and_confidence():
    """Markers beside joints fit as well; a wrong point with no confidence does no harm; a dict names its joints."""
    motion = wander(frames=12)
    names = ["hips", "left_hand", "right_hand", "left_foot", "right_foot", "head"]
    rng = np.random.default_rng(0)
    joints = [name for name in names for _ in range(3)]
    offsets = rng.normal(0, 0.05, (len(joints), 3))
    rows = [motion.skeleton.index(name) for name in joints]
    frames = motion.frames()[:, rows]
    turns = frames[..., :9].reshape(*frames.shape[:2], 3, 3)
    seen = frames[..., 9:] + np.einsum("tkij,kj->tki", turns, offsets)
    seen[:, 4] += 3.0
    confidence = np.ones(len(joints))
    confidence[4] = 0.0
    fitted = sy.fit_positions(
        seen, motion.skeleton, joints, offsets=offsets, confidence=confidence, fps=30, smoothness=0.0
    )
    off = np.linalg.norm(fitted.positions() - motion.positions(), axis=-1)[:, rows]
    assert np.median(off) < 4e-3
    table = {name: motion.positions()[:, motion.skeleton.index(name)] for name in names}
    assert np.nanmedian(sy.fit_positions(table, BODY, smoothness=0.0).errors) < 1e-2


def test_points_that_cannot_be_used_are_refused():
    """Shapes, names, infinities, nothing seen: each says what is wrong."""
    two = np.zeros((2, 2, 3))
    with pytest.raises(InputError, match="one for each joint"):
        sy.fit_positions(two, BODY)
    with pytest.raises(UnknownNameError, match="hed"):
        sy.fit_positions(two, BODY, ["hed", "hips"])
    with pytest.raises(InputError, match="do not match"):
        sy.fit_positions(two, BODY, ["head"])
    with pytest.raises(InputError, match="not finite"):
        sy.fit_positions(two + np.inf, BODY, ["head", "hips"])
    with pytest.raises(InputError, match="no point was seen"):
        sy.fit_positions(two * np.nan, BODY, ["head", "hips"])
    with pytest.raises(InputError, match="confidence"):
        sy.fit_positions(two, BODY, ["head", "hips"], confidence=[1.0, -1.0])
    with pytest.raises(InputError, match="confidence"):
        sy.fit_positions(two, BODY, ["head", "hips"], confidence=[[1.0], [1.0, 1.0]])
    with pytest.raises(InputError, match="smoothness"):
        sy.fit_positions(two, BODY, ["head", "hips"], smoothness=-1.0)
    with pytest.raises(InputError, match="different lengths"):
        sy.fit_positions({"head": np.zeros((2, 3)), "hips": np.zeros((3, 3))}, BODY)
    with pytest.raises(InputError, match="twice"):
        sy.fit_positions({"head": np.zeros((2, 3))}, BODY, ["head"])
    with pytest.raises(InputError, match="fps"):
        sy.fit_positions(two, BODY, ["head", "hips"], fps=0)


def test_cuts_are_found_and_fast_motion_is_none():
    """A pose that is held for one frame before the motion is a piece of its own."""
    time = np.linspace(0, 6, 50)
    places = np.stack([np.sin(time), np.cos(time), time], axis=1)[:, None] * np.ones((1, 3, 1))
    assert pieces_of(places) == [(0, 50)]
    places[0] += 5.0
    assert pieces_of(places) == [(0, 1), (1, 50)]
    assert pieces_of(places[:2]) == [(0, 2)]
    still = np.tile(np.eye(3), (50, 1, 1))
    still[20:] += 1e-6
    assert pieces_of(still) == [(0, 50)], "a step that nobody sees is no cut"


def arm_over_time(*, relative):
    """Return the model of a small arm, terms of every sort on it, and a trajectory of six frames near the reference."""
    arm = sy.Skeleton.chain([(0, 0, 0), (0, 1, 0), (0.5, 1.5, 0), (0.5, 2, 0.5)])
    body = sy.IK(arm, sy.PositionGoal("joint3"), root="free").skeleton
    reference = np.repeat(body.random_pose(4).q[None], 6, axis=0)
    rows = [3, 4]
    goals = [sy.PositionGoal(row) for row in rows]
    model = Model(body, goals, [(row,) for row in rows], free_root=True)
    rng = np.random.default_rng(0)
    targets = np.tile(np.eye(4).ravel(), (6, 2, 1))
    targets[:, :, [3, 7, 11]] = rng.normal(0, 1, (2, 3))
    q = model.move(reference, 1e-4 * rng.normal(size=(6, model.columns)))
    pull, smooth = rng.uniform(0.1, 1, model.columns), rng.uniform(0.1, 1, (4, model.columns))
    terms = Terms(
        targets=targets, weights=rng.uniform(0, 1, (6, 6)), side=np.array([1.0, 0, -1, 0, 1, 0]),
        reference=reference, pull=pull, smooth=smooth, relative=relative,
        still=rng.uniform(0, 9, (5, 6)) if relative else None,
    )  # fmt: skip
    return model, terms, q


def test_the_gradient_of_a_trajectory_is_that_of_its_cost():
    """Every term, by central differences about a trajectory near its reference."""
    model, terms, q = arm_over_time(relative=True)
    rng = np.random.default_rng(1)
    _, gradient = _normal_equations(model, terms, q)
    for t, k in rng.integers(0, (6, model.columns), (25, 2)):
        x = np.zeros((6, model.columns))
        x[t, k] = 1e-5
        slope = (_cost(model, terms, model.move(q, x)) - _cost(model, terms, model.move(q, -x))) / 2e-5
        assert slope == pytest.approx(-2.0 * gradient[t, k], abs=2e-3 * max(1.0, np.abs(gradient).max()))


def test_draws_spread_as_the_terms_leave_a_trajectory_uncertain():
    """Their covariance is the inverse of the matrix, built here from its parts."""
    model, terms, q = arm_over_time(relative=False)
    terms = replace(terms, side=np.zeros(6))
    n = model.columns
    _, J, _ = model.evaluate(q, terms.targets)
    rows = [np.sqrt(terms.weights[t])[:, None] * np.kron(np.eye(6)[t], J[t]) for t in range(6)]
    rows += [np.kron(np.eye(6), np.diag(np.sqrt(terms.pull)))]
    bend = np.diff(np.eye(6), 2, axis=0)
    rows += [np.kron(bend[t], np.diag(np.sqrt(terms.smooth[t]))) for t in range(4)]
    root = np.concatenate(rows)
    draws = spread(model, terms, q, 20000).reshape(20000, 6 * n)
    whitened = draws @ np.linalg.cholesky(root.T @ root)
    np.testing.assert_allclose(whitened.T @ whitened / 20000, np.eye(6 * n), atol=0.06)


@pytest.mark.compiled
@pytest.mark.parametrize("frames", [1, 2, 3])
def test_noise_in_few_frames_is_no_trouble(frames):
    """A motion too short to learn much from is fitted to what was seen."""
    truth = wander(frames=24, seed=1).positions()[:frames]
    seen = truth + np.random.default_rng(2).normal(0, 0.005, truth.shape)
    fitted = sy.fit_positions(seen, wander(frames=2).skeleton, fps=30.0)
    assert np.sqrt(np.mean((fitted.positions() - truth) ** 2)) < 0.008


def test_a_point_that_was_not_seen_leaves_the_others_of_its_frame():
    """One number that is missing hides its own point alone; what is never seen is left out."""
    body = sy.Skeleton.chain([(0, 0, 0), (1, 0, 0), (2, 0, 0)])
    positions = np.random.default_rng(0).normal(size=(4, 3, 3))
    positions[1, 0, 2] = np.nan
    positions[:, 2] = np.nan
    found = points_of(body, positions, None, None, np.array([[1.0, 0.5, 1.0]] * 3 + [[0.0, np.nan, 1.0]]))
    assert list(found.rows) == [0, 1]
    np.testing.assert_allclose(found.weights, [[1.0, 0.5], [0.0, 0.5], [1.0, 0.5], [0.0, 0.0]])
    np.testing.assert_array_equal(found.places[1], [(0, 0, 0), positions[1, 1]])
    np.testing.assert_array_equal(found.places[0], positions[0, :2])


@pytest.mark.parametrize("kind", [sy.Kind.BALL, sy.Kind.HINGE])
def test_a_limb_that_is_hidden_at_the_end_goes_on_half_as_far(kind):
    """It may slow down or turn back; so the guess is between where it was seen last and the line of its turn."""
    places = [(0.0, 0.0, 0.0), (0.4, 0.0, 0.0), (0.8, 0.0, 0.0), (0.0, 0.3, 0.0), (0.0, 0.0, 0.3)]
    body = sy.Skeleton([
        sy.Joint("root", kind=sy.Kind.FREE),
        sy.Joint("knee", parent="root", kind=kind, axis=(0, 0, 1), rest=rigid(places[1])),
        sy.Joint("foot", parent="knee", rest=rigid((0.4, 0.0, 0.0)), tip=True),
        sy.Joint("a", parent="root", rest=rigid(places[3]), tip=True),
        sy.Joint("b", parent="root", rest=rigid(places[4]), tip=True),
    ])  # fmt: skip
    turns = 0.2 * np.arange(12)
    foot = np.array(places[1]) + 0.4 * np.column_stack([np.cos(turns), np.sin(turns), np.zeros(12)])
    points = np.tile(np.array(places), (12, 1, 1))
    points[:, 2] = foot
    points[10:, 2] = points[0, 2] = np.nan
    fitted = sy.fit_positions(points, body, smoothness=1e-4)
    found = fitted.positions()[:, 2] - np.array(places[1])
    angle = np.arctan2(found[:, 1], found[:, 0])
    np.testing.assert_allclose(angle[1:10], turns[1:10], atol=1e-3)
    np.testing.assert_allclose(angle[10:], turns[9] + 0.5 * (turns[10:] - turns[9]), atol=0.03)
    assert angle[0] == pytest.approx(0.1, abs=0.03)


def test_a_fit_keeps_linear_algebra_to_one_thread_and_leaves_the_number_of_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Several threads of BLAS would wait for each other in busy loops."""
    linalg, threads = pytest.importorskip("scipy.linalg"), pytest.importorskip("threadpoolctl")

    def numbers() -> set[int]:
        return {library["num_threads"] for library in threads.threadpool_info() if library["user_api"] == "blas"}

    seen, solve = set(), linalg.solveh_banded
    monkeypatch.setattr(linalg, "solveh_banded", lambda *a, **k: (seen.update(numbers()), solve(*a, **k))[1])
    body = sy.bundled("humanoid")
    names = ["left_hand", "right_hand", "head", "hips"]
    points = np.tile([body.rest_pose().position(name) for name in names], (4, 1, 1))
    with threads.threadpool_limits(limits=2, user_api="blas"):
        if numbers() != {2}:
            pytest.skip("this BLAS does not tell or take a number of threads")
        sy.fit_positions(points, body, names)
        assert seen == {1}
        assert numbers() == {2}


@pytest.mark.compiled
@pytest.mark.slow
def test_a_hit_in_a_calm_clip_stays_sharp():
    """Limbs that move only in some parts of a long clip: the stop is as hard as it was, within what noise shows.

    Sharpness is the largest acceleration of the hand about the stop, relative to the true one.
    """
    motion, hits = jumps.striking()
    body = motion.skeleton
    names = [name for name in body.joint_names if "tip" not in name and "top" not in name]
    rows = [body.index(name) for name in names]
    truth = motion.positions()[:, rows]
    rng = np.random.default_rng(0)
    seen = truth + rng.normal(0.0, 0.003, truth.shape)
    seen[rng.random(truth.shape[:2]) < 0.1] = np.nan
    fitted = sy.fit_positions(seen, body, names, fps=motion.fps)
    hand, found = (clip.positions()[:, body.index("left_hand")] for clip in (motion, fitted))
    for hit in hits:
        around = slice(hit - 3, hit + 4)
        assert np.linalg.norm(found[around] - hand[around], axis=1).max() < 0.02
        hard = [np.linalg.norm(np.diff(places[around], 2, axis=0), axis=1).max() for places in (hand, found)]
        assert 0.75 < hard[1] / hard[0] < 1.5
