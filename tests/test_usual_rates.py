"""Rates that files round are the usual ones; rates that are unusual stay."""

import json

import numpy as np
import pytest

import synovia as sy
from synovia.clips.handfile import read_hand
from synovia.clips.pointfile import read_points
from synovia.errors import FormatError
from synovia.io.tracker import read_tracker

NTSC = 30.0 / 1.001


def bvh(step, frames=4):
    rows = "\n".join(f"0 {k} 0 0 0 0" for k in range(frames))
    return (
        "HIERARCHY\nROOT hips\n{\nOFFSET 0 0 0\n"
        "CHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation Yrotation\n"
        f"End Site\n{{\nOFFSET 0 1 0\n}}\n}}\nMOTION\nFrames: {frames}\nFrame Time: {step}\n{rows}\n"
    )


ROUNDED = [
    ("0.0333333", 30.0), ("0.033333", 30.0), ("0.0333", 30.0), ("0.008333", 120.0), ("0.00833333", 120.0),
    ("8.33333e-03", 120.0), ("0.016667", 60.0), ("0.01667", 60.0), ("0.016666", 60.0), ("0.041667", 24.0),
    ("0.0417", 24.0), ("0.0333667", NTSC), ("0.033367", NTSC), ("0.041708", 24.0 / 1.001), ("0.0138889", 72.0),
    ("0.0111111", 90.0), ("0.00416667", 240.0), ("0.0294118", 34.0),
]  # fmt: skip
PLAIN = ["0.04", "0.02", "0.01", "0.005", "0.0331", "0.0332", "0.012", "0.011", "0.0123", "0.0345", "0.03", "0.1", "1"]


@pytest.mark.parametrize(("step", "fps"), ROUNDED)
def test_a_rounded_frame_time_is_the_usual_rate_and_is_noted(tmp_path, step, fps):
    path = tmp_path / "a.bvh"
    path.write_text(bvh(step), encoding="utf-8")
    motion = sy.load_motion(path)
    assert motion.fps == pytest.approx(fps, rel=1e-12)
    assert motion.notes == (f"Frames are {float(step):.9g} s apart in the file: rounded to {fps:.5g} per second.",)
    assert not sy.load_skeleton(path).notes  # it is about the clip


@pytest.mark.parametrize("step", [*PLAIN, "0.033333333333333333", repr(1 / 31.7), repr(1 / 120.0048)])
def test_other_frame_times_are_taken_as_they_are(tmp_path, step):
    path = tmp_path / "a.bvh"
    path.write_text(bvh(step), encoding="utf-8")
    motion = sy.load_motion(path)
    assert motion.fps == pytest.approx(1.0 / float(step), rel=1e-12)
    assert not motion.notes


@pytest.mark.parametrize("fps", [24.0, 30.0, 60.0, 120.0, NTSC, 29.97, 31.7, 118.3, 33.333333])
@pytest.mark.parametrize("ending", [".bvh", ".glb", ".fbx", ".npz", ".csv"])
def test_rates_that_are_not_rounded_come_back(tmp_path, fps, ending):
    if ending == ".fbx":
        pytest.importorskip("ufbx")
    arm = sy.bundled("arm7")
    own = sy.Motion(arm, [arm.random_pose(k).q for k in range(40)], fps)
    sy.save_motion(own, tmp_path / f"a{ending}", verify=True)
    back = sy.load_motion(tmp_path / f"a{ending}", skeleton=arm if ending == ".csv" else None)
    assert back.fps == pytest.approx(fps, rel=1e-6)
    assert not [note for note in back.notes if "rounded" in note]


@pytest.mark.parametrize("ending", [".glb", ".fbx", ".npz", ".vrma"])
@pytest.mark.parametrize(("step", "fps"), [(0.008333, 120.0), (0.0333333, 30.0)])
def test_files_that_keep_a_rounded_rate_are_read_at_the_usual_one(tmp_path, ending, step, fps):
    """As other programs, or this one before it knew better, wrote them."""
    if ending == ".fbx":
        pytest.importorskip("ufbx")
    body = sy.bundled("humanoid")
    own = sy.Motion(body, np.tile(body.rest_q, (50, 1)), 1.0 / step)
    sy.save_motion(own, tmp_path / f"a{ending}", verify=True)
    back = sy.load_motion(tmp_path / f"a{ending}")
    assert (back.fps, len(back)) == (fps, 50)
    assert any("rounded" in note for note in back.notes)


@pytest.mark.parametrize("mark", [True, False], ids=["written here", "from elsewhere"])
def test_keys_of_a_gltf_whose_step_is_rounded(tmp_path, mark):
    arm = sy.bundled("arm7")
    own = sy.Motion(arm, [arm.random_pose(k).q for k in range(500)], 1.0 / 0.008333)
    path = tmp_path / "a.gltf"
    sy.save_motion(own, path)
    if not mark:
        content = json.loads(path.read_text(encoding="utf-8"))
        del content["animations"][0]["extras"]
        path.write_text(json.dumps(content), encoding="utf-8")
    back = sy.load_motion(path)
    assert (back.fps, len(back)) == (120.0, 500)


@pytest.mark.parametrize(
    ("fps", "digits", "count", "usual"),
    [(30.0, 2, 200, True), (30.0, 3, 3, True), (30.0, 4, 1001, True), (NTSC, 4, 200, True), (120.0, 4, 50, True),
     (29.9, 3, 100, False), (33.0, 3, 60, False), (30.3, 5, 60, False), (31.0, 2, 100, False)],
)  # fmt: skip
def test_times_of_a_table_that_are_rounded(tmp_path, fps, digits, count, usual):
    arm = sy.bundled("arm7")
    times = np.round(np.arange(count) / fps, digits)
    path = tmp_path / "a.csv"
    path.write_text("time,joint1\n" + "".join(f"{time},0.1\n" for time in times), encoding="utf-8")
    motion = sy.formats.read_csv(path, arm)
    points = tmp_path / "points.csv"
    points.write_text(
        "time_ms,a.x,a.y,a.z\n" + "".join(f"{1e3 * time:.{max(digits - 3, 0)}f},1,2,3\n" for time in times)
    )
    for found, notes in ((motion.fps, motion.notes), (read_points(points).fps, read_points(points).notes)):
        if digits < 3 and notes is not motion.notes:
            continue
        assert found == pytest.approx(fps if usual else (count - 1) / times[-1], rel=1e-12)
        assert any("rounded" in note for note in notes) == usual


def test_rates_of_arrays(tmp_path):
    step = 0.0333333
    np.savez(tmp_path / "hand.npz", joints=np.zeros((3, 21, 3)), fps=1.0 / step)
    assert read_hand(tmp_path / "hand.npz").fps == 30.0
    np.savez(tmp_path / "points.npz", positions=np.zeros((3, 4, 3)), fps=1.0 / step)
    assert read_points(tmp_path / "points.npz").fps == 30.0
    np.savez(tmp_path / "single.npz", positions=np.zeros((3, 4, 3)), fps=np.float32(NTSC))
    assert read_points(tmp_path / "single.npz").fps == NTSC
    base = sy.Joint("base", None, sy.Kind.FREE, np.eye(4))
    robot = sy.Skeleton([base, sy.Joint("hip", "base", sy.Kind.HINGE, np.eye(4), axis=np.array([0.0, 1.0, 0.0]))])
    sy.save_motion(sy.Motion(robot, [robot.rest_q] * 3, 1.0 / step), tmp_path / "a.isaac.npz")
    assert read_tracker(tmp_path / "a.isaac.npz", robot).fps == 30.0


@pytest.mark.parametrize(("said", "meant"), [(0.0333333, 30), (1.0 / 30.0, 30), (0.008333, 120), (0.04, 25)])
def test_a_rate_that_may_be_the_time_of_a_frame_is_a_doubt(tmp_path, said, meant):
    np.savez(tmp_path / "hand.npz", joints=np.random.default_rng(1).normal(size=(3, 21, 3)), fps=said)
    found = read_hand(tmp_path / "hand.npz")
    assert found.fps == said
    assert any(note.startswith("Look at it: ") and f"the seconds per frame at {meant}." in note for note in found.notes)


@pytest.mark.parametrize("said", [0.2, 0.5, 1.0, 24.0])
def test_a_slow_rate_is_no_doubt(tmp_path, said):
    np.savez(tmp_path / "hand.npz", joints=np.random.default_rng(1).normal(size=(3, 21, 3)), fps=said)
    assert not any("Look at it" in note for note in read_hand(tmp_path / "hand.npz").notes)


@pytest.mark.parametrize("said", [1e9, 1e-300, 0.0, np.nan])
def test_rates_that_no_clip_has_are_refused_with_the_file(tmp_path, said):
    np.savez(tmp_path / "hand.npz", joints=np.zeros((3, 21, 3)), fps=said)
    with pytest.raises(FormatError, match=r"hand.npz: the frame rate cannot be used: expected 1e-06 to 1e[+]06"):
        read_hand(tmp_path / "hand.npz")
    path = tmp_path / "a.bvh"
    path.write_text(bvh(f"{said:g}"), encoding="utf-8")
    with pytest.raises(FormatError, match=r"a.bvh, line 13: (frame time cannot be used|Frame Time is not a number)"):
        sy.load_motion(path)


@pytest.mark.parametrize(
    ("said", "doubt"), [(50.0, False), (45.0, False), (25.0, True), (0.6, True), (0.02, True), (1000.0, True)]
)
def test_velocities_of_another_rate_are_a_doubt(tmp_path, said, doubt):
    joint = sy.Joint("hip", None, sy.Kind.HINGE, np.eye(4), axis=np.array([0.0, 1.0, 0.0]))
    robot = sy.Skeleton([joint, sy.Joint("foot", "hip", sy.Kind.FIXED, np.eye(4))]).with_root("free")
    q = np.tile(robot.rest_q, (40, 1))
    q[:, -1] = np.sin(np.arange(40) / 7.0)
    path = tmp_path / "a.isaac.npz"
    sy.save_motion(sy.Motion(robot, q, 50.0), path)
    np.savez(path, **(dict(np.load(path)) | {"fps": np.array([said])}))
    notes = [note for note in read_tracker(path, robot).notes if "velocities" in note]
    assert notes == [f"Look at it: the file says {said:g} frames per second, but its velocities fit 50."] * doubt
