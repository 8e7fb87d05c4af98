"""Orientations of parts and swing planes of limbs: against rotations of SciPy, and where no plane is clear."""

import math
from dataclasses import dataclass, field

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from synovia.kernels.tree import swing

STRAIGHT, CLEAR, SURE = 0.07, 0.2, (0.42, 0.26)  # sines of the bend
X, HINGE = np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.0, 1.0])  # bones and hinge of the source at rest
IDENTITY = Rotation.identity()
TURNS = {
    "identity": IDENTITY,
    "half turn across": Rotation.from_rotvec([0.0, math.pi, 0.0]),
    "half turn about the bone": Rotation.from_rotvec([math.pi, 0.0, 0.0]),
    "half turn about the hinge": Rotation.from_rotvec([0.0, 0.0, math.pi]),
    "almost half a turn": Rotation.from_rotvec([0.0, 0.0, math.pi - 1e-9]),
    "tiny": Rotation.from_rotvec([1e-12, -1e-12, 1e-12]),
    "any": Rotation.from_rotvec([0.7, -1.9, 0.4]),
}
WORLDS = {"the same axes": IDENTITY, "other axes": Rotation.from_euler("yzx", (90.0, 180.0, 10.0), degrees=True)}


@dataclass
class Limb:
    """A limb of a source with identity frames and bones along x at rest, and the limb of hinges that follows it.

    Args:
        across: Rotation from the world of the source to that of the target.
        rests: Orientations of upper part, lower part and end of the target at rest.
        points: Whether the limb has the directions of the source's bones; else the orientations of its parts.
        foot: Whether the limb is turned as its end is.
    """

    across: Rotation = IDENTITY
    rests: Rotation = field(default_factory=lambda: Rotation.identity(3))
    points: bool = True
    foot: bool = False

    def __post_init__(self):
        self.bone, self.hinge = self.across.apply(X), self.across.apply(HINGE)  # of the target at rest
        self.rows = np.array([0, 1, 2, 0, 1], np.int32)
        self.ends = Rotation.from_rotvec([[0.1, 0.2, 0.3], [-0.4, 0.0, 0.5]])
        turns = Rotation.concatenate([self.across.inv() * self.rests, self.across, self.ends])
        self.own = turns.as_matrix().reshape(-1, 9)
        self.limbs = np.full((1, swing.LIMB_INTS), -1, np.int32)
        self.limbs[0, [swing.UPPER_PART, swing.LOWER_PART]] = 0, 1
        if self.points:
            self.limbs[0, [swing.START_ROW, swing.MIDDLE_ROW, swing.END_ROW]] = 0, 1, 2
        self.numbers = np.zeros((1, swing.LIMB_WIDTH))
        frame = np.column_stack([self.bone, self.hinge, np.cross(self.bone, self.hinge)])
        rests = self.rests.as_matrix()
        for at, values in (
            (swing.HINGE_AXIS, self.hinge), (swing.UPPER_REST, rests[:2]), (swing.UPPER_BONE, [self.bone, self.bone]),
            (swing.UPPER_FRAME, frame.T @ rests[:2]), (swing.STRAIGHT, [STRAIGHT, CLEAR]), (swing.SURE, SURE),
        ):  # fmt: skip
            self.numbers[0, at : at + np.size(values)] = np.ravel(values)
        if self.foot:
            self.limbs[0, swing.FOOT_PART] = 2
            self.numbers[0, swing.FOOT_REST : swing.FOOT_REST + 9] = rests[2].ravel()
        self.state = np.zeros((1, swing.STATE_WIDTH))

    def step(self, *turns, lengths=(1.0, 1.0)):
        """Return the orientations (3, 3, 3) of the parts for those of the source: upper part, lower part, end."""
        return self.follow(self.frames(*turns, lengths=lengths))

    def frames(self, *turns, lengths=(1.0, 1.0)):
        """Return frames (3, 12) of the source for the orientations of upper part, lower part and end."""
        frames, place = np.zeros((3, 12)), np.zeros(3)
        for k, turn in enumerate((*turns, turns[-1])[:3]):
            frames[k, :9], frames[k, 9:] = turn.as_matrix().ravel(), place
            place = place + np.append(lengths, 0.0)[k] * turn.apply(X)
        return frames

    def follow(self, frames):
        """Return the orientations (3, 3, 3) of the parts for frames (3, 12) of the source."""
        return self.follow_all(frames[None])[0]

    def follow_all(self, frames):
        """Return the orientations (T, 3, 3, 3) of the parts for frames (T, 3, 12) of the source."""
        count, before = len(frames), frames.copy()
        wanted, out = np.full((count, 3, 9), np.nan), np.full((count, 2, 9), np.nan)
        poses = np.full((len(self.limbs), count, swing.POSE_WIDTH), np.nan)
        between = np.zeros((count, 0, 12))
        swing.swing_turns(
            frames, between, self.rows, self.own, self.limbs, self.numbers, self.state, poses, wanted, out
        )  # fmt: skip
        np.testing.assert_array_equal(frames, before)
        parts = wanted.reshape(count, 3, 3, 3)
        np.testing.assert_allclose(out.reshape(count, 2, 3, 3), parts[:, :2] @ self.ends.as_matrix(), atol=1e-12)
        return parts

    def turned(self, parts):
        """Return the directions of both bones and of the hinge by both parts, (2, 3) each."""
        turns = parts[:2] @ np.swapaxes(self.rests.as_matrix()[:2], 1, 2)
        return turns @ self.bone, turns @ self.hinge


def bent(angle, axis=HINGE):
    """Return a rotation by an angle, the hinge's for the elbow."""
    return Rotation.from_rotvec(angle * np.asarray(axis))


def assert_rotations(parts):
    """Assert that matrices (n, 3, 3) are rotations."""
    np.testing.assert_allclose(parts @ np.swapaxes(parts, 1, 2), np.tile(np.eye(3), (len(parts), 1, 1)), atol=1e-9)
    np.testing.assert_allclose(np.linalg.det(parts), 1.0, atol=1e-9)


@pytest.mark.parametrize("points", [True, False], ids=["bones", "orientations"])
@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("name", TURNS)
def test_a_target_that_is_like_its_source_has_the_same_turns(name, world, points):
    across, turn = WORLDS[world], TURNS[name]
    limb = Limb(across, Rotation.random(3, random_state=5), points)
    for elbow in (0.0, 1e-9, 0.1, 1.1, 2.5):
        lower = turn * bent(elbow)
        end = lower * bent(0.3, X)
        parts = limb.step(turn, lower, end)
        for k, own in enumerate((turn, lower, end)):
            wanted = across * own * across.inv() * limb.rests[k]
            assert (Rotation.from_matrix(parts[k]).inv() * wanted).magnitude() < 1e-7, k
        assert_rotations(parts)


def test_random_limbs_have_the_bones_of_the_source_and_the_hinge_across_both():
    rng = np.random.default_rng(0)
    for _ in range(60):
        across = Rotation.random(random_state=rng)
        limb = Limb(across, Rotation.random(3, random_state=rng))
        upper, lower = Rotation.random(2, random_state=rng)
        parts = limb.step(upper, lower, lengths=rng.uniform(0.01, 100.0, 2))
        bones, hinges = limb.turned(parts)
        wanted = across.apply([upper.apply(X), lower.apply(X)])
        np.testing.assert_allclose(bones, wanted, atol=1e-9)
        normal = np.cross(*wanted)
        if np.linalg.norm(normal) >= max(SURE):
            np.testing.assert_allclose(hinges, np.tile(normal / np.linalg.norm(normal), (2, 1)), atol=1e-9)
        assert_rotations(parts)


@pytest.mark.parametrize("foot", [False, True], ids=["upper part", "foot"])
def test_a_straight_limb_is_turned_as_its_upper_part_or_its_foot_is(foot):
    limb = Limb(points=False, foot=foot)
    about = bent(0.6, X)
    _, hinges = limb.turned(limb.step(IDENTITY, IDENTITY, about))
    np.testing.assert_allclose(hinges[0], about.apply(HINGE) if foot else HINGE, atol=1e-12)


def test_a_straight_limb_keeps_its_plane():
    """The angle between the plane and the hinge of the source stays that of the last clear pose."""
    limb = Limb()
    twisted = bent(0.8, X) * bent(1.0) * bent(-0.8, X)  # bends about another axis than the hinge of its upper part
    hinge = limb.turned(limb.step(IDENTITY, twisted))[1][0]
    np.testing.assert_allclose(hinge, bent(0.8, X).apply(HINGE), atol=1e-12)
    for turn in TURNS.values():
        again = limb.turned(limb.step(turn, turn))[1][0]
        np.testing.assert_allclose(again, turn.apply(hinge), atol=1e-7)
    assert limb.state[0, swing.KEPT_ANGLE] == pytest.approx(0.8)


def test_the_plane_turns_over_gradually_as_a_limb_bends():
    limb, angles = Limb(), []
    about = bent(0.8, X)
    for elbow in np.linspace(0.0, 0.25, 60):
        hinge = limb.turned(limb.step(IDENTITY, about * bent(elbow) * about.inv()))[1][0]
        angles.append(math.atan2(-hinge[1], hinge[2]))
    assert angles[0] == 0.0
    assert angles[-1] == pytest.approx(0.8)
    steps = np.diff(angles)
    assert steps.min() >= -1e-12
    assert steps.max() < 0.06


@pytest.mark.parametrize("first", [math.asin(SURE[0]) + 0.01, math.asin(SURE[1]) + 0.01])
def test_a_limb_that_is_bent_a_little_too_far_back_does_not_turn_over(first):
    limb = Limb()
    limb.step(IDENTITY, bent(first))
    for elbow in (0.1, 0.0, -0.1, -0.2, -0.24):
        bones, hinges = limb.turned(limb.step(IDENTITY, bent(elbow)))
        assert hinges[0] @ HINGE > 0.99
        np.testing.assert_allclose(bones[1], bent(elbow).apply(X), atol=1e-12)
    _, hinges = limb.turned(limb.step(IDENTITY, bent(-1.0)))  # no error of a measurement any more
    assert hinges[0] @ HINGE < -0.99


def test_angles_go_on_beyond_a_full_turn():
    """The plane follows a source that bends about an axis that goes round and round its bone."""
    limb = Limb()
    for angle in np.linspace(0.0, 6.0 * math.pi, 100):
        about = bent(angle, X)
        hinge = limb.turned(limb.step(IDENTITY, about * bent(1.2) * about.inv()))[1][0]
        np.testing.assert_allclose(hinge, about.apply(HINGE), atol=1e-9)
    assert limb.state[0, swing.KEPT_ANGLE] == pytest.approx(6.0 * math.pi)


@pytest.mark.parametrize("lengths", [(0.0, 1.0), (1.0, 0.0), (0.0, 0.0), (1e-200, 1.0)])
def test_bones_without_length_follow_the_orientations_of_their_parts(lengths):
    limb, turn = Limb(), TURNS["any"]
    parts = limb.step(turn, turn * bent(0.9), lengths=lengths)
    assert_rotations(parts)
    bones, _ = limb.turned(parts)
    np.testing.assert_allclose(bones, [turn.apply(X), (turn * bent(0.9)).apply(X)], atol=1e-9)


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # of NumPy, where kernels are plain Python
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_number_that_is_not_finite_is_gone_with_its_frame(value):
    limb = Limb()
    limb.step(IDENTITY, bent(0.6))
    before, good = limb.state.copy(), limb.step(IDENTITY, bent(0.6))
    frames = np.tile(np.append(np.eye(3).ravel(), np.zeros(3)), (3, 1))
    frames[1, 9:] = value
    parts = limb.follow(frames)
    assert np.isfinite(parts[2]).all()  # that part has its own frame
    np.testing.assert_array_equal(limb.state, before)
    np.testing.assert_array_equal(limb.step(IDENTITY, bent(0.6)), good)


def test_a_hinge_along_its_bone_gives_a_rotation_all_the_same():
    """As with a foot that is turned so far that the axis of its ankle is along the leg."""
    limb = Limb(points=False, foot=True)
    for elbow in (0.0, 0.1, 1.0):
        parts = limb.step(IDENTITY, bent(elbow), Rotation.from_euler("y", 90.0, degrees=True))
        assert_rotations(parts)
        bones, _ = limb.turned(parts)
        np.testing.assert_allclose(bones, [X, bent(elbow).apply(X)], atol=1e-9)


def test_parts_without_limbs_have_the_turns_of_their_rows():
    limb, turn = Limb(rests=Rotation.random(3, random_state=2)), TURNS["any"]
    limb.limbs, limb.numbers, limb.state = limb.limbs[:0], limb.numbers[:0], limb.state[:0]
    parts = limb.step(turn, turn * bent(1.0), IDENTITY)
    for own, found, rest in zip((turn, turn * bent(1.0), IDENTITY), parts, limb.rests, strict=True):
        np.testing.assert_allclose(found, (own * rest).as_matrix(), atol=1e-12)


def planes_by_interpolation(limb, frames):
    """Return the hinges (T, 3) of a limb of bones along x, by NumPy, from all frames at once."""
    turns = frames[:, :, :9].reshape(-1, 3, 3, 3)
    one, two, own = turns[:, 0, :, 0], turns[:, 1, :, 0], turns[:, 0] @ HINGE
    normal, side = np.cross(one, two), np.cross(one, own)
    bend = np.linalg.norm(normal, axis=1)
    angle = np.arctan2(np.sum(side * normal, axis=1), np.sum(own * normal, axis=1))
    for least in SURE:
        sure = np.flatnonzero(bend >= least)
        if len(sure):
            known = np.interp(np.arange(len(angle)), sure, np.unwrap(angle[sure]))
            angle = angle + np.pi * ((np.cos(angle - known) < 0.0) & (bend < SURE[0]))
            break
    else:
        angle = angle + np.pi * (np.cos(angle) < 0.0)
    clear, between = np.flatnonzero(bend >= CLEAR), np.zeros(len(angle))
    if len(clear):
        between = np.interp(np.arange(len(angle)), clear, np.unwrap(angle[clear]))
    share = np.clip((bend - STRAIGHT) / (CLEAR - STRAIGHT), 0.0, 1.0)
    angle = between + share * ((angle - between + np.pi) % (2.0 * np.pi) - np.pi)
    return np.cos(angle)[:, None] * own + np.sin(angle)[:, None] * side


def bending_clip(limb, seed, count=80, most=1.0):
    """Return frames (count, 3, 12) of a limb that turns, straightens repeatedly, and bends a little too far back."""
    rng = np.random.default_rng(seed)
    t = np.linspace(0.0, 1.0, count)
    elbow = most * np.sin(rng.uniform(3.0, 25.0) * t + rng.uniform(0.0, 6.0)) + rng.uniform(0.0, 0.8) * most
    elbow = np.maximum(elbow, -0.2)
    about, turn = rng.uniform(-3.0, 3.0, 2), rng.uniform(-2.0, 2.0, 3)
    out = []
    for s, angle in zip(t, elbow, strict=True):
        upper, twist = Rotation.from_rotvec(s * turn), bent(about[0] + about[1] * s, X)
        out.append(limb.frames(upper, upper * twist * bent(angle) * twist.inv()))
    return np.array(out)


@pytest.mark.parametrize("most", [1.0, 0.35, 0.2, 0.05], ids=["sure", "almost sure", "clear", "straight"])
def test_a_clip_interpolates_its_planes_between_the_clear_poses(most):
    for seed in range(30):
        limb = Limb()
        frames = bending_clip(limb, seed, most=most)
        parts = limb.follow_all(frames)
        np.testing.assert_allclose(parts[:, 0] @ HINGE, planes_by_interpolation(limb, frames), atol=1e-9)


def test_poses_one_by_one_are_those_of_a_clip_up_to_them():
    """The last pose of a clip has no pose after it, so it is the same in a live body that has seen the others."""
    for seed in range(10):
        limb = Limb()
        frames = bending_clip(limb, seed, count=30)
        for end in range(1, len(frames) + 1):
            live = limb.follow(frames[end - 1])
            whole = Limb()
            np.testing.assert_allclose(live, whole.follow_all(frames[:end])[-1], atol=1e-9)


def test_a_clip_in_two_parts_goes_on_from_the_first():
    limb, whole = Limb(), Limb()
    frames = bending_clip(limb, 3)
    bends = np.linalg.norm(np.cross(frames[:, 0, [0, 3, 6]], frames[:, 1, [0, 3, 6]]), axis=1)
    cut = int(np.flatnonzero(bends[20:] >= SURE[0])[0]) + 21  # after a pose that shows the plane
    parts = np.concatenate([limb.follow_all(frames[:cut]), limb.follow_all(frames[cut:])])
    np.testing.assert_allclose(parts[:cut], whole.follow_all(frames)[:cut], atol=1e-9)
    assert limb.state[0, swing.HAS_KEPT] == 1.0
