"""Hands are recognised: palm, side, thumb, order of fingers, and which joints bend them."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import synovia as sy

ALL = ["thumb", "index", "middle", "ring", "little"]


def place(x: float, y: float, z: float = 0.0) -> NDArray[np.float64]:
    """Return the transform of a place."""
    out = np.eye(4)
    out[:3, 3] = x, y, z
    return out


def robot_hand(*, left: bool, fingers: int, base: NDArray[np.float64], order: list[int]) -> sy.Skeleton:
    """Return a hand whose palm faces z, fingers along y, without names that tell anything.

    Args:
        left: Whether it is a left hand: the thumb is then at negative x.
        fingers: How many fingers, thumb included.
        base: Where it stands.
        order: Order of the fingers in the list of joints; 0 is the thumb.
    """
    side = -1.0 if left else 1.0
    joints = [sy.Joint("k", rest=base)]
    for finger in order:
        bend = np.array((1.0, 0.0, 0.0))  # turns y towards z
        if finger == 0:
            start = place(side * 0.04, -0.05, 0.01)
            c, s = math.cos(-side * 1.0), math.sin(-side * 1.0)
            start[:2, :2] = (c, -s), (s, c)
        else:
            start = place(side * (0.033 - 0.022 * (finger - 1)), 0.0)
        limits = (sy.Interval(-0.3, 0.3), sy.Interval(-0.2, 1.6), sy.Interval(0.0, 1.6))
        axes = (np.array((0.0, 0.0, 1.0)), bend, bend)
        rests = (start, place(0.0, 0.005), place(0.0, 0.04))
        parent = "k"
        for k, (rest, axis, limit) in enumerate(zip(rests, axes, limits, strict=True)):
            name = f"j{finger * 7 % 5}{'abc'[k]}"
            joints.append(sy.Joint(name, parent, kind=sy.Kind.HINGE, rest=rest, axis=axis, limit=limit))
            parent = name
        joints.append(sy.Joint(f"{parent}x", parent, rest=place(0.0, 0.03)))
    return sy.Skeleton(joints, name="machine")


@settings(max_examples=40, deadline=None)
@given(st.booleans(), st.integers(4, 5), st.integers(0, 10_000))
def test_shape_alone_tells_a_hand(left: bool, fingers: int, seed: int) -> None:
    """Side, thumb and order of the fingers do not depend on place, attitude, names and the order of the file."""
    rng = np.random.default_rng(seed)
    base = np.eye(4)
    base[:3, :3] = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    base[:3, 0] *= np.linalg.det(base[:3, :3])
    base[:3, 3] = rng.normal(size=3)
    order = [int(k) for k in rng.permutation(fingers)]
    hand = sy.hand_of(robot_hand(left=left, fingers=fingers, base=base, order=order))
    assert hand.side == ("left" if left else "right")
    assert [finger.name for finger in hand.fingers] == ALL[:fingers]
    assert [finger.joints[0] for finger in hand.fingers] == [f"j{k * 7 % 5}a" for k in range(fingers)]
    for finger in hand.fingers:
        assert finger.flexion == finger.joints[1:]
        assert finger.abduction == finger.joints[:1]
        assert finger.tip == f"{finger.joints[-1]}x"
        assert not finger.estimated
    np.testing.assert_allclose(hand.frame[:3, 2], (0, 0, 1), atol=1e-6)
    np.testing.assert_allclose(hand.frame[:3, 1], (0, 1, 0), atol=1e-6)
    assert hand.notes == ()


def test_hands_of_a_character() -> None:
    """A body has two hands by its roles; one is chosen by its side."""
    body = sy.bundled("humanoid_hands")
    with pytest.raises(sy.errors.UnsupportedError, match=r"2 hands.*left at 'left_hand'.*side"):
        sy.hand_of(body)
    for side in ("left", "right"):
        hand = sy.hand_of(body, side)
        assert hand.side == side
        assert [finger.name for finger in hand.fingers] == ALL
        assert all(
            finger.joints[0] == body.joint_names[body.index(f"{side}_{finger.name}_1")] for finger in hand.fingers
        )
        assert hand.finger("index") is hand.fingers[1]
        assert hand.finger("tail") is None


def test_what_is_no_hand() -> None:
    """Arms and bodies without fingers have none, and the message says what is missing."""
    for name in ("arm7", "humanoid", "quadruped"):
        with pytest.raises(sy.errors.UnsupportedError, match="no hand is found"):
            sy.hand_of(sy.bundled(name))
    with pytest.raises(sy.InputError, match="side"):
        sy.hand_of(sy.bundled("humanoid_hands"), "middle")


def test_a_side_that_nothing_tells_can_be_set() -> None:
    """Joints that turn as far to both sides tell neither how fingers bend nor the side; ``side`` tells both."""
    body = robot_hand(left=False, fingers=5, base=np.eye(4), order=[0, 1, 2, 3, 4])
    joints = [
        sy.Joint(j.name, j.parent, kind=j.kind, rest=j.rest, axis=j.axis,
                 limit=None if j.limit is None else sy.Interval(-1.5, 1.5))
        for j in body.joints
    ]  # fmt: skip
    doubtful = sy.Skeleton(joints, name="machine")
    assert sy.hand_of(doubtful).side is None
    assert any("side= sets it" in note for note in sy.hand_of(doubtful).notes)
    for side, way in (("right", 1.0), ("left", -1.0)):
        hand = sy.hand_of(doubtful, side)
        assert hand.side == side
        assert hand.frame[2, 2] * way > 0.9


def test_a_gripper_says_what_is_chosen() -> None:
    """Two alike fingers: the first is used as the thumb, and the hand has no side."""
    slides = [sy.Joint("a", rest=np.eye(4))]
    for name, x in (("l", 0.03), ("r", -0.03)):
        axis = np.array((math.copysign(1.0, x), 0.0, 0.0))
        rest = place(x, 0.1)
        slides.append(sy.Joint(name, "a", kind=sy.Kind.SLIDE, rest=rest, axis=axis, limit=sy.Interval(0.0, 0.04)))
        slides.append(sy.Joint(f"{name}_tip", name, rest=place(0.0, 0.03)))
    hand = sy.hand_of(sy.Skeleton(slides, name="gripper"))
    assert hand.side is None
    assert [finger.name for finger in hand.fingers] == ["thumb", "index"]
    assert any("first is used as the thumb" in note for note in hand.notes)


@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("file", "side", "roots"),
    [
        ("ability_hand_right", "right", ["thumb_q1", "index_q1", "middle_q1", "ring_q1", "pinky_q1"]),
        ("allegro_hand_right", "right", ["joint_12.0", "joint_0.0", "joint_4.0", "joint_8.0"]),
        ("inspire_hand_right", "right", [f"{n}_proximal_{'yaw_' * (n == 'thumb')}joint" for n in (*ALL[:4], "pinky")]),
        ("leap_hand_right", "right", ["12", "1", "5", "9"]),
        ("shadow_hand_right", "right", ["THJ5", "FFJ4", "MFJ4", "RFJ4", "LFJ5"]),
        ("shadow_hand_left", "left", ["THJ5", "FFJ4", "MFJ4", "RFJ4", "LFJ5"]),
    ],
)
def test_real_hands(shared_data: Path, file: str, side: str, roots: list[str]) -> None:
    """Real hands are recognised with their names, and the same without any."""
    body = sy.load_skeleton(shared_data / "hands" / f"{file}.urdf")
    hand = sy.hand_of(body)
    assert (hand.side, [finger.joints[0] for finger in hand.fingers]) == (side, roots)
    keys = {joint.name: f"n{k}" for k, joint in enumerate(body.joints)}
    bare = [
        sy.Joint(
            keys[joint.name],
            None if body.parents[k] < 0 else f"n{body.parents[k]}",
            kind=joint.kind,
            rest=joint.rest,
            axis=joint.axis,
            limit=joint.limit,
            mimic=None if joint.mimic is None else sy.Mimic(keys[str(joint.mimic.leader)], joint.mimic.ratio),
        )
        for k, joint in enumerate(body.joints)
    ]
    nameless = sy.hand_of(sy.Skeleton(bare, name="machine"))
    assert nameless.side == side
    assert [finger.joints[0] for finger in nameless.fingers] == [keys[root] for root in roots]


def test_a_finger_that_follows_is_coupled() -> None:
    """Joints that follow others are listed with their leaders."""
    body = robot_hand(left=False, fingers=5, base=np.eye(4), order=[0, 1, 2, 3, 4])
    joints = [
        sy.Joint(j.name, j.parent, kind=j.kind, rest=j.rest, axis=j.axis, limit=j.limit, mimic=sy.Mimic("j2b"))
        if j.name == "j2c"
        else j
        for j in body.joints
    ]
    hand = sy.hand_of(sy.Skeleton(joints, name="machine"))
    assert dict(hand.coupled) == {"j2c": "j2b"}


def with_joints(body: sy.Skeleton, more: list[sy.Joint]) -> sy.Skeleton:
    """Return a body with more joints."""
    return sy.Skeleton([*body.joints, *more], name=body.name)


def test_a_motor_is_no_finger() -> None:
    """A joint that carries nothing, at the palm or as leader of fingers, is a drive."""
    body = robot_hand(left=False, fingers=5, base=np.eye(4), order=[0, 1, 2, 3, 4])
    idle = sy.Joint("motor", "k", kind=sy.Kind.HINGE, axis=np.array((0.0, 0.0, 1.0)), limit=sy.Interval(0.0, 1.0))
    hand = sy.hand_of(with_joints(body, [idle]))
    assert [finger.name for finger in hand.fingers] == ALL
    assert any("'motor'" in note and "drive" in note for note in hand.notes)
    lead = sy.Joint("motor", "k", kind=sy.Kind.HINGE, rest=place(0.0, -0.02), axis=np.array((0.0, 1.0, 0.0)),
                    limit=sy.Interval(0.0, 1.0))  # fmt: skip
    joints = [
        sy.Joint(j.name, j.parent, kind=j.kind, rest=j.rest, axis=j.axis, limit=j.limit, mimic=sy.Mimic("motor"))
        if j.name.endswith("c")
        else j
        for j in body.joints
    ]
    hand = sy.hand_of(sy.Skeleton([joints[0], lead, *joints[1:]], name="machine"))
    assert [finger.name for finger in hand.fingers] == ALL


def test_a_bar_that_a_loop_ties_is_no_finger() -> None:
    """Of two chains that a loop ties, the one that reaches farther is the finger."""
    joints = [sy.Joint("k")]
    for name, side in (("r", 1.0), ("l", -1.0)):
        hinge = {"kind": sy.Kind.HINGE, "axis": np.array((0.0, 0.0, side)), "limit": sy.Interval(-0.8, 0.8)}
        joints += [
            sy.Joint(f"{name}_driver", "k", rest=place(side * 0.03, 0.05), **hinge),
            sy.Joint(f"{name}_coupler", f"{name}_driver", rest=place(0.0, 0.04), **hinge),
            sy.Joint(f"{name}_spring", "k", rest=place(side * 0.01, 0.06), **hinge),
            sy.Joint(f"{name}_pad", f"{name}_spring", rest=place(0.0, 0.04), **hinge),
            sy.Joint(f"{name}_pad_tip", f"{name}_pad", rest=place(0.0, 0.04)),
        ]
    ties = [
        sy.Loop(f"{n}_coupler", f"{n}_pad", offset=(-s * 0.02, 0.01, 0.0)) for n, s in (("r", 1.0), ("l", -1.0))
    ]  # fmt: skip
    hand = sy.hand_of(sy.Skeleton(joints, name="gripper").with_loops(ties))
    assert [finger.joints for finger in hand.fingers] == [("r_spring", "r_pad"), ("l_spring", "l_pad")]


def test_joints_that_names_do_not_tell_belong_to_fingers() -> None:
    """Names that tell some fingers, or some joints of each, do not hide the others; four legs are no hand."""
    body = robot_hand(left=True, fingers=5, base=np.eye(4), order=[0, 1, 2, 3, 4])
    told = {"k": "left_wrist", "j0a": "left_thumb_1", "j2b": "left_index_1", "j2c": "left_index_2"}
    for extra in ({}, {"j4b": "left_middle_1", "j1b": "left_ring_1", "j3b": "left_little_1"}):
        names = told | extra
        joints = [
            sy.Joint(names.get(j.name, j.name), names.get(j.parent or "", j.parent), kind=j.kind, rest=j.rest,
                     axis=j.axis, limit=j.limit)
            for j in body.joints
        ]  # fmt: skip
        hand = sy.hand_of(sy.Skeleton(joints, name="machine"))
        assert hand.side == "left"
        assert [len(finger.joints) for finger in hand.fingers] == [3, 3, 3, 3, 3]
    legs = [sy.Joint(f"LF_{j.name}_thigh" if j.name != "k" else "k", None if j.parent is None else
                     (f"LF_{j.parent}_thigh" if j.parent != "k" else "k"), kind=j.kind, rest=j.rest, axis=j.axis,
                     limit=j.limit) for j in body.joints]  # fmt: skip
    with pytest.raises(sy.errors.UnsupportedError, match="no hand is found"):
        sy.hand_of(sy.Skeleton(legs, name="machine"))
