"""Mirrored clips: left and right change places, on bodies of every kind, and twice is the original."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

import synovia as sy
from rigs import skeleton_of
from synovia.errors import UnsupportedError
from synovia.model import Joint, Kind, Mimic, Skeleton
from synovia.model.clip_tools.mirror import Mirror
from synovia.model.geometry import rigid
from synovia.model.limits import Interval

EXAMPLES = Path(__file__).parents[2] / "examples"
SIDED = re.compile(r"left|right|[lr](hipj|fem|tib|foot|toe|clav|hum|rad|wri|hand|fing|thu)", re.IGNORECASE)
seeds = st.integers(0, 2**16)


def loose(skeleton):
    """The skeleton without limits, so that a mirror image is never held back."""
    return skeleton.with_limits(
        {row: None for row, joint in enumerate(skeleton.joints) if joint.limit is not None and joint.mimic is None}
    )


def clip_of(skeleton, seed, frames=4):
    q = np.array([skeleton.random_pose(seed + k).q for k in range(frames)])
    rng = np.random.default_rng(seed)
    for row, joint in enumerate(skeleton.joints):
        at = skeleton.q_slice(row)
        if joint.kind is Kind.FREE:
            q[:, at.start : at.start + 3] += rng.normal(size=(frames, 3))
            q[:, at.start + 3 : at.stop] = Rotation.random(frames, random_state=seed).as_quat()
    return sy.Motion(skeleton, q, 30.0, name="clip", notes=["a note"])


def robot(flipped=1.0):
    """Hips with two legs of hinges; axes of the right side are mirrored, or the opposite ones."""
    joints = [Joint("pelvis", kind=Kind.FREE)]
    for side, sign in (("left", 1.0), ("right", -1.0)):
        roll, knee = (0, 0, -flipped * sign), Mimic(f"{side}_knee", -0.5)
        joints += [
            Joint(f"{side}_hip_yaw", "pelvis", Kind.HINGE, rigid((0.1 * sign, 0, 0)), (0, 1, 0), limit=Interval(-7, 7)),
            Joint(f"{side}_hip_roll", f"{side}_hip_yaw", Kind.HINGE, rigid((0, -0.05, 0)), roll),
            Joint(f"{side}_knee", f"{side}_hip_roll", Kind.HINGE, rigid((0, -0.4, 0)), (1, 0, 0)),
            Joint(f"{side}_toe", f"{side}_knee", Kind.HINGE, rigid((0, -0.4, 0)), (1, 0, 0), mimic=knee),
            Joint(f"{side}_pump", f"{side}_knee", Kind.SLIDE, rigid((0.02 * sign, -0.1, 0)), (flipped, 0, 0)),
        ]  # fmt: skip
    return Skeleton(joints, name="robot", up="y", forward="z")


def posed_at_rest(skeleton, values):
    """The same body whose rest pose is another one: one arm hangs, the other does not."""
    rest = Rotation.from_rotvec
    joints = list(skeleton.joints)
    from dataclasses import replace

    for name, turn in values.items():
        row = skeleton.index(name)
        frame = np.array(joints[row].rest)
        frame[:3, :3] = frame[:3, :3] @ rest(turn).as_matrix()
        joints[row] = replace(joints[row], rest=frame, limit=None)
    return skeleton.with_joints(joints)


def reframed(skeleton, seed):
    """The same body whose joints have other axes, each its own, as in the files of many programs."""
    from dataclasses import replace

    turns = Rotation.random(len(skeleton), random_state=seed).as_matrix()
    turns[0] = np.eye(3)
    joints = []
    for row, joint in enumerate(skeleton.joints):
        above = turns[skeleton.parents[row]] if skeleton.parents[row] >= 0 else np.eye(3)
        frame = np.eye(4)
        frame[:3, :3] = above.T @ joint.rest[:3, :3] @ turns[row]
        frame[:3, 3] = above.T @ joint.rest[:3, 3]
        axis = turns[row].T @ joint.axis
        joints.append(replace(joint, rest=frame, axis=axis if joint.axis.any() else joint.axis, limit=None))
    return skeleton.with_joints(joints)


HUMAN = loose(sy.bundled("humanoid").with_root("free"))
BODIES = {
    "human": HUMAN,
    "fixed": loose(sy.bundled("humanoid")),
    "hands": loose(sy.bundled("humanoid_hands").with_root("free")),
    "four legs": loose(sy.bundled("quadruped").with_root("free")),
    "robot": robot(),
    "robot whose axes agree": robot(-1.0),
    "other axes": reframed(HUMAN, 3),
    "root of axes": loose(sy.bundled("humanoid").with_root("x,y,z,yaw")),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BODIES)
@given(seed=seeds)
def test_left_places_are_the_reflected_right_ones_and_twice_is_the_original(name, seed):
    skeleton = BODIES[name]
    clip = clip_of(skeleton, seed)
    image = clip.mirrored()
    pairs = Mirror.of(skeleton).pairs
    there, here = image.positions(), clip.positions() * (-1.0, 1.0, 1.0)
    roles = skeleton.role_rows
    for role, row in roles.items():
        other = role.replace("left", "r_ght").replace("right", "left").replace("r_ght", "right")
        assert pairs[row] == roles[other]
    assert np.abs(there - here[:, list(pairs)]).max() < 1e-9
    assert np.abs(image.mirrored().q - clip.q).max() < 1e-9
    assert (image.name, image.notes, image.fps) == ("clip", ("a note",), 30.0)


@pytest.mark.parametrize("up", ["y", "z"])
def test_the_plane_stands_upright_and_holds_the_upward_axis(up):
    turn = Rotation.from_matrix(np.eye(3) if up == "y" else [[0, 0, 1], [1, 0, 0], [0, 1, 0]])
    base = np.eye(4)
    base[:3, :3] = turn.as_matrix()
    first = HUMAN.joints[0]
    world = Joint("world", rest=base)
    joints = [
        world,
        *(j if k else type(first)(first.name, "world", first.kind, first.rest) for k, j in enumerate(HUMAN.joints)),
    ]
    from dataclasses import replace

    joints = [world] + [
        replace(j, parent="world" if p < 0 else HUMAN.joint_names[p])
        for j, p in zip(HUMAN.joints, HUMAN.parents, strict=True)
    ]
    body = Skeleton(joints, up=up)
    clip = clip_of(body, 1)
    image = clip.mirrored()
    left = np.array((1.0, 0, 0) if up == "y" else (0, 1.0, 0))
    M = np.eye(3) - 2 * np.outer(left, left)
    assert (
        np.abs(image.positions()[:, body.index("left_hand")] - clip.positions()[:, body.index("right_hand")] @ M).max()
        < 1e-9
    )


@pytest.mark.slow
@given(seed=seeds)
def test_a_rest_pose_with_one_arm_down_is_mirrored_by_its_bones(seed):
    """The arm hangs on one side at rest, and its elbow is bent; places are mirrored all the same."""
    body = posed_at_rest(
        HUMAN, {"left_upper_arm": (0.2, 0.0, -1.2), "left_lower_arm": (0.0, 0.9, 0.0), "right_lower_leg": (0.6, 0, 0)}
    )
    clip = clip_of(body, seed)
    image = clip.mirrored()
    here = clip.positions() * (-1.0, 1.0, 1.0)
    for role, row in body.role_rows.items():
        if role.startswith("left_"):
            pair = body.role_rows[f"right_{role[5:]}"]
            assert np.abs(image.positions()[:, row] - here[:, pair]).max() < 1e-5
    assert np.abs(image.mirrored().frames() - clip.frames()).max() < 1e-9


def test_joints_of_one_side_keep_their_values():
    """A sword in the right hand stays there; a tail in the middle is mirrored."""
    joints = list(HUMAN.joints)
    sword = Joint("sword", "right_hand", Kind.HINGE, rigid((0, 0, 0.1)), (0, 1, 0))
    tip = Joint("sword_tip", "sword", rest=rigid((0, 0, 0.5)), tip=True)
    tail = Joint("tail", "hips", Kind.BALL, rigid((0, 0, -0.2)))
    end = Joint("tail_tip", "tail", rest=rigid((0, 0, -0.2)), tip=True)
    body = HUMAN.with_joints([*joints, sword, tip, tail, end])
    clip = clip_of(body, 5)
    image = clip.mirrored()
    assert np.array_equal(image.q[:, body.q_slice("sword")], clip.q[:, body.q_slice("sword")])
    tails = (one.positions()[:, body.index("tail_tip")] for one in (image, clip))
    assert np.abs(next(tails) - next(tails) * (-1, 1, 1)).max() < 1e-9


def test_hinges_stay_in_their_turn():
    """A hinge that has gone round once is one turn on, on the other side too."""
    body = robot()
    clip = clip_of(body, 2)
    q = np.array(clip.q)
    q[:, body.q_slice("left_hip_yaw")] = np.linspace(5.0, 6.9, 4)[:, None]
    image = sy.Motion(body, q, 30.0).mirrored()
    assert np.allclose(image.q[:, body.q_slice("right_hip_yaw")][:, 0], -np.linspace(5.0, 6.9, 4))


@pytest.mark.parametrize(
    ("joint", "change"),
    [
        ("right_knee", {"axis": (0.98, 0.0, 0.199)}),
        ("left_hip_roll", {"axis": (0.0, 0.3, 0.954)}),
        ("right_knee", {"rest": rigid((0.03, -0.4, 0.02), Rotation.from_rotvec((0.1, 0.2, 0.3)).as_matrix())}),
    ],
)
def test_hinges_whose_axes_are_no_mirror_images_are_the_original_twice(joint, change):
    joints = list(robot().joints)
    row = robot().index(joint)
    joints[row] = replace(joints[row], **change)
    clip = clip_of(robot().with_joints(joints), 4)
    assert np.abs(clip.mirrored().mirrored().q - clip.q).max() < 1e-12


def test_a_waist_whose_motors_are_beside_the_middle_is_the_original_twice():
    waist = [
        Joint("waist_roll", "pelvis", Kind.HINGE, rigid((0.07, 0.1, 0)), (0, 0, 1)),
        Joint("waist_yaw", "waist_roll", Kind.HINGE, rigid((-0.05, 0.05, 0)), (0, 1, 0)),
        Joint("chest", "waist_yaw", Kind.HINGE, rigid((-0.02, 0.2, 0)), (1, 0, 0)),
    ]
    clip = clip_of(robot().with_joints([*robot().joints, *waist]), 4)
    image = clip.mirrored()
    assert np.abs(image.mirrored().q - clip.q).max() < 1e-12
    for name, sign in (("waist_roll", -1.0), ("waist_yaw", -1.0), ("chest", 1.0)):
        at = image.skeleton.q_slice(name)
        assert image.q[:, at] == pytest.approx(sign * clip.q[:, at])


@pytest.mark.parametrize("name", ["cmu, acclaim", "t1"])
def test_hips_at_one_place_change_sides_by_their_names(name):
    body = skeleton_of(name)
    pairs = Mirror.of(body).pairs
    assert [pairs[row] == row for row in range(len(body))] == [not SIDED.match(joint) for joint in body.joint_names]


def test_limits_that_differ_hold_the_image_back_and_say_so():
    body = robot().with_limits({"left_knee": (-2.0, 0.2), "right_knee": (-2.0, 2.0)})
    q = np.repeat(body.rest_q[None], 3, axis=0)
    q[:, body.q_slice("right_knee")] = 1.5
    image = sy.Motion(body, body.follow(q), 30.0).mirrored()
    assert np.allclose(image.q[:, body.q_slice("left_knee")], 0.2)
    assert image.notes == ("1 joint was clamped to limits in 3 frames: left_knee.",)


def test_animated_scale_changes_sides():
    stretch = np.ones((4, len(HUMAN), 3))
    stretch[:, HUMAN.index("left_upper_arm")] = (1.0, 2.0, 3.0)
    clip = clip_of(HUMAN, 3)
    clip = sy.Motion(HUMAN, clip.q, 30.0, stretch=stretch)
    image = clip.mirrored()
    assert np.allclose(np.sort(image.stretch[0, HUMAN.index("right_upper_arm")]), (1.0, 2.0, 3.0))
    assert np.allclose(image.stretch[:, HUMAN.index("left_upper_arm")], 1.0)
    here = clip.positions() * (-1.0, 1.0, 1.0)
    assert np.abs(image.positions()[:, HUMAN.index("right_hand")] - here[:, HUMAN.index("left_hand")]).max() < 1e-9


def test_scale_along_oblique_axes_is_told():
    body = BODIES["other axes"]
    stretch = np.ones((4, len(body), 3))
    assert sy.Motion(body, clip_of(body, 1).q, 30.0, stretch=1.5 * stretch).mirrored().notes == ()
    stretch[:, body.index("left_upper_arm"), 0] = 2.0
    image = sy.Motion(body, clip_of(body, 1).q, 30.0, stretch=stretch).mirrored()
    assert "approximately" in image.notes[0]


def test_a_body_without_sides_cannot_be_mirrored():
    arm = sy.bundled("arm7")
    with pytest.raises(UnsupportedError, match=r"both sides: expected roles such as.*with_roles"):
        sy.Motion(arm, [arm.rest_q], 30.0).mirrored()
    nameless = Skeleton(
        [
            Joint("a", kind=Kind.FREE),
            Joint("b", "a", Kind.BALL, rigid((1, 0, 0))),
            Joint("c", "a", Kind.BALL, rigid((-1, 0, 0))),
            Joint("d", "b", rest=rigid((1, 0, 0))),
            Joint("e", "c", rest=rigid((-1, 0, 0))),
        ]
    )
    with pytest.raises(UnsupportedError, match="both sides"):
        clip_of(nameless, 1).mirrored()
    named = nameless.with_roles({"left_upper_arm": "b", "right_upper_arm": "c"})
    clip = clip_of(named, 1)
    assert np.abs(clip.mirrored().positions()[:, 3] - clip.positions()[:, 4] * (-1, 1, 1)).max() < 1e-9


def laid_out(clip, seed):
    """The clip on a body whose file turns each bone along x, as many recorders do: the rest pose tells no turns.

    Returns:
        The clip, and the turn of each joint's frame, (n, 3, 3).
    """
    body, rng = clip.skeleton, np.random.default_rng(seed)
    quarters = [Rotation.from_euler("x", 90 * k, degrees=True).as_matrix() for k in rng.integers(0, 4, len(body))]
    turns = np.tile(np.eye(3), (len(body), 1, 1))
    for row, below in enumerate(body.children):
        if below and row:
            bones = [min((body.joints[child].rest[:3, 3] for child in below), key=lambda bone: abs(bone[0]))]
            across = np.cross(bones[0], (0, np.sqrt(0.5), np.sqrt(0.5)))
            x, y = bones[0] / np.linalg.norm(bones[0]), across / np.linalg.norm(across)
            turns[row] = np.column_stack([x, y, np.cross(x, y)]) @ quarters[row]
    frames = clip.frames()[..., :9].reshape(len(clip), len(body), 3, 3) @ turns
    joints, q = [], np.repeat(body.rest_q[None], len(clip), axis=0)
    for row, joint in enumerate(body.joints):
        above = body.parents[row]
        base = turns[above] if above >= 0 else np.eye(3)
        joints.append(replace(joint, rest=rigid(base.T @ joint.rest[:3, 3]), limit=None))
        at = body.q_slice(row)
        if above >= 0 and at.stop > at.start:
            q[:, at] = Rotation.from_matrix(np.swapaxes(frames[:, above], 1, 2) @ frames[:, row]).as_quat()
    q[:, :7] = clip.q[:, :7]
    return sy.Motion(body.with_joints(joints), q, clip.fps), turns


@pytest.mark.parametrize("seed", range(8))
def test_a_clip_shows_how_bones_are_turned_where_no_body_could_rest(seed):
    """As a skin would show it: the image is turned as that of the same clip on a body with a rest pose."""
    walk = sy.load_motion(EXAMPLES / "walk.bvh")
    clip, turns = laid_out(walk, seed)
    assert np.abs(clip.positions() - walk.positions()).max() < 1e-9
    image, expected = clip.mirrored(), walk.mirrored()
    got, wanted = (one.frames()[..., :9].reshape(len(walk), -1, 3, 3) for one in (image, expected))
    wanted = wanted @ turns
    for row in range(
        1, len(walk.skeleton)
    ):  # relative to the hips: with such a rest pose, the plane may be another one
        if walk.skeleton.joints[row].kind is not Kind.FIXED:
            locals_ = (np.swapaxes(turned[:, 0], 1, 2) @ turned[:, row] for turned in (got, wanted))
            assert np.abs(np.subtract(*locals_)).max() < 1e-6
    assert np.abs(image.mirrored().q - clip.q).max() < 1e-9
    parts = sy.concatenate([clip[:30].mirrored(), clip[30:60].mirrored()])
    assert np.allclose(parts.q, image.q[:60])
