"""A clip on a body that is built alike is the clip: its own, with other names, axes, sizes, or one longer arm."""

import dataclasses

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import synovia as sy
from people import moved, person

BOW = np.array([1.0, 0.0, 0.0])
CLIPS = (
    "bandai2_walk_turn", "bandai2_walk_turn_lafan1", "bvhtoolbox_walk01", "cmu_07_01_walk", "cmu_jumping_jacks",
    "fair_wave_hello", "lafan1_walk1_head", "pymo_8walk", "rokoko_jesse_dance",
)  # fmt: skip


def variant(body, *, names=False, axes=None, size=1.0, longer=None):
    """Return a body with other names, axes turned by a generator, another size, or a longer forearm and hand.

    Also the rotations (n, 3, 3) from its joints' frames to those of the given body.
    """
    rest = np.array(body.rest_pose().frames)
    turns = np.array([np.eye(3) if axes is None else Rotation.random(random_state=axes).as_matrix() for _ in rest])
    R, places = rest[:, :9].reshape(-1, 3, 3) @ turns, size * rest[:, 9:]
    arm = [body.role_rows[f"{longer}_{part}"] for part in ("lower_arm", "hand")] if longer else []
    joints = []
    for row, (joint, above) in enumerate(zip(body.joints, body.parents, strict=True)):
        own = np.eye(4)
        offset = (places[row] - places[above] if above >= 0 else places[row]) * (1.1 if row in arm else 1.0)
        own[:3, :3], own[:3, 3] = (R[above].T @ R[row], R[above].T @ offset) if above >= 0 else (R[row], offset)
        own[:3, :3] = Rotation.from_matrix(own[:3, :3]).as_matrix()
        parent = None if above < 0 else f"b{above}" if names else body.joints[above].name
        name = f"b{row}" if names else joint.name
        joints.append(dataclasses.replace(
            joint, name=name, parent=parent, rest=own, role=None, body=None, bind=None, limit=None, preferred=None
        ))  # fmt: skip
    return sy.Skeleton(joints, name="variant", up=body.up, forward=body.forward), turns


VARIANTS = {
    "itself": {},
    "other names": {"names": True},
    "other axes": {"axes": 3},
    "half the size": {"size": 0.5},
    "all": {"names": True, "axes": 4, "size": 0.5},
    "a longer arm": {"longer": "left", "axes": 5},
}


def variant_of(body, name):
    """Return a variant by name, and the rotations of its joints' frames."""
    values = dict(VARIANTS[name])
    if "axes" in values:
        values["axes"] = np.random.default_rng(values["axes"])
    return variant(body, **values)


def assert_given_back(answer, clip, turns, size=1.0):
    """Assert that a clip has been given back: orientations exactly, and places relative to the hips."""
    got = answer.motion.frames()[:, answer.added :]
    wanted = clip.frames()
    R = got[..., :9].reshape(*got.shape[:2], 3, 3) @ np.swapaxes(turns, 1, 2)
    np.testing.assert_allclose(R, wanted[..., :9].reshape(R.shape), atol=1e-9)
    if size is not None:
        row = clip.skeleton.role_rows["hips"]
        below = [k for k in range(row + 1, len(clip.skeleton)) if clip.skeleton.joints[k].kind is not sy.Kind.FREE]
        ways = [places[:, below] - places[:, [row]] for places in (got[..., 9:], size * wanted[..., 9:])]
        np.testing.assert_allclose(*ways, atol=1e-5 * clip.skeleton.size)


@pytest.mark.parametrize("name", VARIANTS)
def test_a_made_clip_is_given_back(name):
    source = person(
        neck=2, extra=[("forearm_twist", "lower_arm", (0.12, 0.0, 0.005)), ("tail", "upper_leg", (0, 0, -0.1))]
    )
    clip = moved(source, {
        "base": (0.2, 0.5, 0.1), "spine0": 0.3 * BOW, "spine2": -0.2 * BOW, "neck1": (0.1, 0.2, 0.3), "head": 0.2 * BOW,
        "left_upper_arm": (0.3, 0.4, -1.2), "left_lower_arm": (0.0, -1.0, 0.2), "left_forearm_twist": (0.7, 0.0, 0.0),
        "right_upper_leg": -0.9 * BOW, "right_lower_leg": 0.8 * BOW, "right_toes": -0.3 * BOW, "right_tail": 0.5 * BOW,
    })  # fmt: skip
    body, turns = variant_of(source, name)
    answer = sy.retarget(clip, body)
    assert_given_back(answer, clip, turns, None if name == "a longer arm" else VARIANTS[name].get("size", 1.0))
    assert answer.verdict == "good", answer.findings


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("file", CLIPS)
@pytest.mark.shared_data
def test_shared_clips_are_given_back(shared_data, file, name):
    clip = sy.load_motion(shared_data / f"motion/{file}.bvh")[:60]
    body, turns = variant_of(clip.skeleton, name)
    answer = sy.retarget(clip, body)
    free = any(joint.kind is sy.Kind.FREE for joint in clip.skeleton.joints[2:])  # bones that change their lengths
    assert_given_back(answer, clip, turns, None if free or name == "a longer arm" else VARIANTS[name].get("size", 1.0))
    assert name == "a longer arm" or answer.verdict == "good", answer.findings


def test_a_body_of_other_directions_is_aligned():
    """Arms that hang at rest do not make two bodies alike, though their trees are."""
    hanging = variant(person())[0]
    joints = list(hanging.joints)
    for side, sign in (("left", 1.0), ("right", -1.0)):
        row = hanging.index(f"{side}_upper_arm")
        rest = np.array(joints[row].rest)
        rest[:3, :3] = Rotation.from_rotvec((0.0, 0.0, -1.2 * sign)).as_matrix()
        joints[row] = dataclasses.replace(joints[row], rest=rest)
    clip = moved(person(), {"left_upper_arm": (0.0, 0.0, 0.4)})
    motion = sy.retarget(clip, sy.Skeleton(joints, up="y", forward="z")).motion
    places = motion.positions()[10]
    way = places[motion.skeleton.index("left_lower_arm")] - places[motion.skeleton.index("left_upper_arm")]
    np.testing.assert_allclose(way / np.linalg.norm(way), (np.cos(0.4), np.sin(0.4), 0.0), atol=1e-6)


def test_a_world_moves_the_feet_of_a_body_that_is_built_alike():
    """On steps, feet are corrected: they stand on them."""
    clip = moved(person(), {"left_upper_arm": (0.0, 0.0, 0.4)})
    world = sy.World({"step": sy.Box(size=(2.0, 0.2, 2.0))}, up="y")
    answer = sy.retarget(clip, person(), world=world)
    assert answer.footholds
