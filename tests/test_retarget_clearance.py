"""Retargeted limbs that do not pass through the body, and the judge that sees those that do."""

import numpy as np
import pytest

import synovia as sy
from cli_runs import assert_refused, run
from synovia.errors import InputError
from synovia.model.geometry import matrix_to_quat, rotation_between
from synovia.model.pose import inside_limits
from synovia.model.shapes.over_time import are_near, near_shapes
from synovia.retargeting.clearance import spread
from synovia.retargeting.judging.shaped import limb_pairs

FAR = 0.0055  # of a leg: an overlap that the judge sees


@pytest.fixture(scope="module")
def body():
    return sy.bundled("humanoid")


@pytest.fixture(scope="module")
def slim(body):
    """Return a body whose limbs are so thin that they do not touch."""
    thin = {key: [sy.Sphere(radius=0.001)] for key in body.shapes}
    return sy.with_shapes(body, thin)


@pytest.fixture(scope="module")
def clip(slim):
    """Return a clip in which a forearm enters the belly and leaves it."""
    ways = np.sin(np.linspace(0.0, np.pi, 40))
    hand = np.array([0.30, 0.95, 0.15]) + ways[:, None] * (np.array([0.0, 1.10, 0.05]) - (0.30, 0.95, 0.15))
    other = np.tile((-0.35, 0.95, 0.10), (40, 1))
    ik = sy.IK(slim, [sy.PositionGoal("left_hand"), sy.PositionGoal("right_hand")], sy.FullBody(attempts=1))
    tracked = ik.track({"left_hand": hand, "right_hand": other})
    return sy.Motion(slim, tracked.q, 30.0)


def deepest(answer):
    """Return the deepest overlap of two limbs, leg lengths."""
    skeleton = answer.motion.skeleton
    pairs = limb_pairs(skeleton, answer.target.roles)
    depths = near_shapes(skeleton, answer.motion.frames(), pairs).depths(len(answer.motion), len(pairs))
    return float(depths.max()) / answer.target.leg


def test_limbs_do_not_pass_through_the_body_and_the_rest_stays(clip, body):
    without, kept = sy.retarget(clip, body, clearance=None), sy.retarget(clip, body)
    assert deepest(without) > 5.0 * FAR
    assert deepest(kept) < 1e-4
    assert kept.too_near == ()
    legs = [kept.target.roles[role] for role in ("hips", "chest", "left_foot", "right_foot")]
    np.testing.assert_allclose(
        kept.motion.positions()[:, legs], without.motion.positions()[:, legs], atol=1e-3 * kept.target.leg
    )


def test_the_change_begins_and_ends_slowly(clip, body):
    without, kept = (sy.retarget(clip, body, clearance=value).motion.positions() for value in (None, 0.0))
    change = np.linalg.norm(kept - without, axis=2).max(axis=1)
    assert np.abs(np.diff(change)).max() < 0.35 * change.max()


def _foot_steps(answer):
    """Return by how much each foot turns from frame to frame, (T - 1, 2), degrees."""
    rows = [answer.target.roles[role] for role in ("left_foot", "right_foot")]
    turns = matrix_to_quat(answer.motion.frames()[:, rows, :9].reshape(-1, 2, 3, 3))
    return np.degrees(np.linalg.norm(rotation_between(turns[:-1], turns[1:]), axis=-1))


@pytest.mark.shared_data
@pytest.mark.parametrize("name", ["bvhtoolbox_walk01", "cmu_07_01_walk"])
def test_feet_that_swing_past_the_other_leg_do_not_turn_suddenly(shared_data, body, name):
    walk = sy.load_motion(shared_data / f"motion/{name}.bvh")[:150]
    without, kept = (sy.retarget(walk, body, clearance=value) for value in (None, 0.0))
    assert deepest(without) > FAR > deepest(kept)
    assert (_foot_steps(kept) - _foot_steps(without)).max() < 5.0


def test_the_judge_sees_limbs_inside_the_body(clip, body):
    without, kept = sy.retarget(clip, body, clearance=None), sy.retarget(clip, body)
    found = [one for one in without.findings if one.cause == "overlap" and "inside" in one.text]
    assert found
    assert without.verdict != "good"
    assert "those of the source are apart" in found[0].text
    assert not [one for one in kept.findings if one.cause == "overlap"]


def test_a_distance_is_kept_and_a_body_without_shapes_is_as_before(clip, body):
    near = sy.retarget(clip, body, clearance=0.01)
    pairs = limb_pairs(near.motion.skeleton, near.target.roles)
    listed = {one.pair for one in near.too_near}
    for pair, gap in _gaps(near, pairs, 0.01).items():
        assert gap > 0.01 - 2e-3 * near.target.leg or pair in listed
    bare = sy.with_shapes(body, {key: [] for key in body.shapes})
    one, two = sy.retarget(clip, bare), sy.retarget(clip, bare, clearance=None)
    np.testing.assert_array_equal(one.motion.q, two.motion.q)
    assert one.clearance is None


def _gaps(answer, pairs, within):
    """Return the least distance of each pair of links that comes nearer than a distance."""
    skeleton = answer.motion.skeleton
    near = near_shapes(skeleton, answer.motion.frames(), pairs, within)
    out = {}
    for k, contact in zip(near.pairs.tolist(), near.contacts, strict=True):
        key = tuple(skeleton.link_key(int(row)) for row in pairs[k])
        out[key] = min(out.get(key, np.inf), float(contact[0]))
    return out


def test_results_are_identical_for_any_number_of_threads(clip, body):
    np.testing.assert_array_equal(
        sy.retarget(clip, body, threads=1).motion.q, sy.retarget(clip, body, threads=3).motion.q
    )


@pytest.mark.parametrize("value", ["near", float("nan"), True])
def test_a_clearance_that_is_no_number_is_refused(clip, body, value):
    with pytest.raises(InputError, match="clearance"):
        sy.retarget(clip, body, clearance=value)


def test_a_spread_change_is_no_smaller_and_leaves_far_frames(body):
    skeleton = body
    row = skeleton.index("left_upper_arm")
    q = np.tile(skeleton.rest_q, (60, 1))
    moved = q.copy()
    at = skeleton.q_slice(row)
    moved[30, at] = sy.Rotation.from_euler("y", 0.3).as_quat()
    out, moves = spread(skeleton, q, moved, 4)
    angle = 2.0 * np.arccos(np.clip(np.abs(np.sum(q[:, at] * out[:, at], axis=1)), 0.0, 1.0))
    assert angle[30] >= 0.3 - 1e-6
    assert np.flatnonzero(moves).tolist() == list(range(22, 39))
    np.testing.assert_array_equal(out[~moves], q[~moves])


def test_a_change_of_nothing_changes_no_frame(body):
    """As on a robot whose limbs cannot move apart: no joint differs."""
    q = np.tile(body.rest_q, (10, 1))
    out, moves = spread(body, q, q.copy(), 4)
    assert not moves.any()
    np.testing.assert_array_equal(out, q)


def test_near_links_are_found_with_and_without_depths(clip, body):
    answer = sy.retarget(clip, body, clearance=None)
    skeleton, frames = answer.motion.skeleton, answer.motion.frames()
    pairs = limb_pairs(skeleton, answer.target.roles)
    deep = near_shapes(skeleton, frames, pairs).depths(len(frames), len(pairs)).any(axis=1)
    np.testing.assert_array_equal(are_near(skeleton, frames, pairs, 0.0), deep)
    assert are_near(skeleton, frames, pairs, 0.05).sum() >= deep.sum()


@pytest.mark.parametrize("clearance", [0.0, 0.02])
def test_limits_hold_where_limbs_move_aside(clip, body, clearance):
    motion = sy.retarget(clip, body, clearance=clearance).motion
    np.testing.assert_allclose(inside_limits(motion.skeleton, motion.q), motion.q, rtol=0.0, atol=1e-9)


def test_a_wrong_clearance_of_the_command_is_told_both_forms(tmp_path):
    """A distance, or the word for none; nothing is read before."""
    for word in ("non", "nan", ""):
        ran = run("retarget", tmp_path / "absent.bvh", "humanoid", "--clearance", word)
        assert_refused(ran, "expected a number, or none", code=2)
