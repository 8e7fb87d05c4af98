"""Clip tools on recorded clips and on robots: verdicts stay, seams are small, sides change places."""

import numpy as np
import pytest

import synovia as sy
from synovia.model.clip_tools.mirror import Mirror
from synovia.model.pose import inside_limits

pytestmark = pytest.mark.shared_data
CLIPS = [
    "bandai2_walk_turn", "bandai2_walk_turn_lafan1", "bvhtoolbox_walk01", "cmu_07_01_walk", "cmu_jumping_jacks",
    "fair_wave_hello", "lafan1_walk1_head", "pymo_8walk", "rokoko_jesse_dance",
]  # fmt: skip
ORDER = ["good", "look", "failed"]
TOOLS = {
    "resample": lambda clip: clip.resample(0.7 * clip.fps),
    "mirrored": lambda clip: clip.mirrored(),
    "reversed": lambda clip: clip.reversed(),
    "smoothed": lambda clip: clip.smoothed(10.0),
    "looped": lambda clip: clip.looped(10),
    "moved": lambda clip: clip.moved(origin=(1.0, 2.0, 3.0), heading=1.0),
    "retimed": lambda clip: clip.retimed(0.8),
    "joined": lambda clip: sy.concatenate(
        [clip[: len(clip) // 2 + 5], clip[len(clip) // 2 - 5 :]], blend=10, align=True
    ),
}


@pytest.fixture(params=CLIPS)
def clip(request, shared_data):
    return sy.load_motion(shared_data / "motion" / f"{request.param}.bvh")


@pytest.mark.slow
def test_a_clip_is_judged_no_worse_after_a_tool(clip):
    before = sy.judge(clip)
    for name, tool in TOOLS.items():
        after = sy.judge(tool(clip))
        shows = name == "looped" and "the blend shows" in after.report()  # a person is to look at it
        worst = max(ORDER.index(before.verdict), ORDER.index("look") if shows else 0)
        assert ORDER.index(after.verdict) <= worst, (name, after.report())


def steps(clip):
    places = clip.in_place(heading=True).positions()
    return np.linalg.norm(np.diff(places, axis=0, append=places[:1]), axis=2).max(1)


def test_a_loop_has_a_small_seam(clip):
    loop = clip.looped(10)
    assert steps(loop)[-1] <= 2.0 * np.median(steps(clip)[:-1])
    assert steps(loop)[-1] < steps(clip)[-1]
    assert len(loop) >= len(clip) // 2
    assert (len(loop) < len(clip)) == any("are kept" in note for note in loop.notes)


def test_mirrored_twice_is_the_original_and_the_body_stays_upright(clip):
    image = clip.mirrored()
    assert np.abs(image.mirrored().q - clip.q).max() < 1e-9 * max(1.0, np.abs(clip.positions()).max())
    up = clip.positions()
    assert np.allclose(image.positions()[..., 1].min(1), up[..., 1].min(1), atol=0.04 * clip.skeleton.size)
    normal = image.positions()[0].mean(0) - up[0].mean(0)
    assert abs(normal[1]) < 0.02 * clip.skeleton.size
    roles = clip.skeleton.role_rows
    for one, other in (("left_hand", "right_hand"), ("right_foot", "left_foot")):
        apart = [
            np.linalg.norm(places[:, roles[a]] - places[:, roles["hips"]], axis=1)
            for places, a in ((image.positions(), one), (up, other))
        ]
        assert np.abs(apart[0] - apart[1]).max() < 0.04 * clip.skeleton.size


@pytest.mark.parametrize("name", ["bandai2_walk_turn", "rokoko_jesse_dance", "lafan1_walk1_head"])
def test_knees_and_elbows_bend_to_the_same_side_in_the_image(shared_data, name):
    """In these files all bones lie along one axis at rest: the clip alone shows how they are turned."""
    clip = sy.load_motion(shared_data / "motion" / f"{name}.bvh")
    roles = clip.skeleton.role_rows
    for limb in (("upper_leg", "lower_leg", "foot"), ("upper_arm", "lower_arm", "hand")):
        for side in ("left", "right"):
            rows = [roles[f"{side}_{part}"] for part in limb]
            sides = []
            for one in (clip, clip.mirrored()):
                a, b, c = (one.positions()[:, row] for row in rows)
                turns = one.frames()[:, rows[0], :9].reshape(-1, 3, 3)
                sides.append(np.einsum("tji,tj->i", turns, np.cross(b - a, c - b)))
            cosine = sides[0] @ sides[1] / np.prod(np.linalg.norm(sides, axis=1))
            assert cosine > np.cos(np.radians(30.0))


def test_smoothing_takes_jitter_and_leaves_the_motion(clip):
    smooth = clip.smoothed(6.0)
    moved = np.linalg.norm(smooth.positions() - clip.positions(), axis=2)
    assert np.median(moved) < 0.01 * clip.skeleton.size
    jerk = [np.abs(np.diff(one.positions(), 3, axis=0)).mean() for one in (smooth, clip)]
    assert jerk[0] < jerk[1]


@pytest.mark.parametrize("name", ["g1_29dof.urdf", "g1_menagerie_nomesh.xml"])
def test_a_robot_of_hinges_is_mirrored_within_its_limits(shared_data, name):
    if name.endswith(".xml"):
        pytest.importorskip("mujoco")
    robot = sy.load_skeleton(shared_data / "robot" / name).with_root("free")
    rng = np.random.default_rng(0)
    q = np.repeat(robot.rest_q[None], 5, axis=0)
    moving = q.shape[1] - 7
    q[:, 7:] += 0.2 * rng.normal(size=(5, moving))
    q = inside_limits(robot, robot.follow(q))
    clip = sy.Motion(robot, q, 30.0)
    image = clip.mirrored()
    mirror = Mirror.of(robot)
    roles = robot.role_rows
    rows = [row for role, row in roles.items() if role.startswith("left_")]
    pairs = [roles[f"right_{role[5:]}"] for role in roles if role.startswith("left_")]
    assert np.abs(image.positions()[:, rows] - (clip.positions() @ mirror.reflection)[:, pairs]).max() < 1e-3
    assert np.abs(inside_limits(robot, np.array(image.q)) - image.q).max() < 1e-9


def test_a_character_with_scale_keeps_it(shared_data):
    clip = sy.load_motion(shared_data / "character" / "mannequiny.glb")
    assert clip.stretch is not None
    for tool in (clip.mirrored(), clip.resample(60), clip.looped(8), clip[3:20], clip.smoothed(6)):
        assert tool.stretch is not None
        assert tool.notes[: len(clip.notes)] == clip.notes
    image = clip.mirrored().positions() * (-1, 1, 1)
    pairs = list(Mirror.of(clip.skeleton).pairs)
    assert np.abs(image - clip.positions()[:, pairs]).max() < 1e-5 * clip.skeleton.size
