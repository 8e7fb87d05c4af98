"""Landmarks of pose detectors: recognised, turned upright, refused where nothing can be known, and fitted."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

import landmark_tables as tables
import synovia as sy
from beyond import beyond_limits
from cli_runs import assert_refused, run
from synovia.clips.fit import Fitted
from synovia.clips.keypoints import find_flips
from synovia.clips.landmarks import PRESETS, as_landmarks, named_landmarks
from synovia.clips.loosened import loosened
from synovia.clips.markerfile import read_c3d
from synovia.clips.pointfile import PointFile, read_points
from synovia.clips.seen import only_seen
from synovia.clips.upright import forwardness, make_upright
from synovia.errors import FormatError, InputError, UnknownNameError

REPO = Path(__file__).parents[2]
MEDIAPIPE = [
    "nose",
    "left_eye_inner",
    "left_eye",
    "left_eye_outer",
    "right_eye_inner",
    "right_eye",
    "right_eye_outer",
    "left_ear",
    "right_ear",
    "mouth_left",
    "mouth_right",
    "left_shoulder",
    "right_shoulder",
    "left_elbow",
    "right_elbow",
    "left_wrist",
    "right_wrist",
    "left_pinky",
    "right_pinky",
    "left_index",
    "right_index",
    "left_thumb",
    "right_thumb",
    "left_hip",
    "right_hip",
    "left_knee",
    "right_knee",
    "left_ankle",
    "right_ankle",
    "left_heel",
    "right_heel",
    "left_foot_index",
    "right_foot_index",
]
OPENPOSE = [
    "Nose",
    "Neck",
    "RShoulder",
    "RElbow",
    "RWrist",
    "LShoulder",
    "LElbow",
    "LWrist",
    "MidHip",
    "RHip",
    "RKnee",
    "RAnkle",
    "LHip",
    "LKnee",
    "LAnkle",
    "REye",
    "LEye",
    "REar",
    "LEar",
    "LBigToe",
    "LSmallToe",
    "LHeel",
    "RBigToe",
    "RSmallToe",
    "RHeel",
]
SMPL = [
    "pelvis",
    "left_hip",
    "right_hip",
    "spine1",
    "left_knee",
    "right_knee",
    "spine2",
    "left_ankle",
    "right_ankle",
    "spine3",
    "left_foot",
    "right_foot",
    "neck",
    "left_collar",
    "right_collar",
    "head",
    "left_shoulder",
    "right_shoulder",
    "left_elbow",
    "right_elbow",
    "left_wrist",
    "right_wrist",
    "left_hand",
    "right_hand",
]
H36M = [
    "Hip",
    "RHip",
    "RKnee",
    "RFoot",
    "LHip",
    "LKnee",
    "LFoot",
    "Spine",
    "Thorax",
    "Nose",
    "HeadTop",
    "LShoulder",
    "LElbow",
    "LWrist",
    "RShoulder",
    "RElbow",
    "RWrist",
]


@pytest.fixture(scope="module")
def walk():
    motion = sy.load_motion(REPO / "examples" / "walk.bvh")
    return sy.Motion(motion.skeleton, motion.q[20:80:3], motion.fps / 3)


@pytest.mark.compiled
@pytest.mark.parametrize(("preset", "scale"), [("mediapipe", 1.0), ("coco", 850.0), ("openpose", 850.0)])
def test_a_camera_s_table_becomes_an_upright_motion(walk, preset, scale):
    """y down, hips at the origin, noise, a tenth missing, no body, no preset: limbs and trunk point as in the clip."""
    seen = tables.seen_by_camera(tables.landmarks(walk, preset), scale)
    fitted = sy.fit_keypoints(seen, fps=walk.fps)
    assert (tables.angles(walk, fitted) < 10.0).all()
    assert any("-y of the points is up" in note for note in fitted.notes)
    assert any("metres" in note for note in fitted.notes)
    assert fitted.skeleton.up == "y"
    way = np.ptp(fitted.positions()[:, 0], axis=0)  # the hips walk, though they stand still in the table
    assert way.max() > 0.8 * np.ptp(walk.positions()[:, 0], axis=0).max() / 1.2


@pytest.mark.compiled
def test_a_body_of_its_own_follows_with_its_own_lengths(walk):
    body = sy.bundled("humanoid")
    seen = tables.landmarks(walk, "smpl", centred=False)[:8]
    fitted = sy.fit_keypoints(1.7 * seen, SMPL, body=body, fps=walk.fps, smoothness=1e-4)
    assert (tables.angles(sy.Motion(walk.skeleton, walk.q[:8], walk.fps), fitted) < 10.0).all()
    assert fitted.skeleton.joint_names == body.joint_names
    np.testing.assert_allclose(fitted.skeleton.lengths, body.lengths)
    fitted = sy.fit_keypoints(1700.0 * seen, SMPL, body=body, fps=walk.fps, smoothness=1e-4)
    assert any("scaled by" in note for note in fitted.notes)


@pytest.mark.parametrize(
    ("names", "preset"), [(MEDIAPIPE, "mediapipe"), (OPENPOSE, "openpose"), (SMPL, "smpl"), (H36M, "h36m")]
)
def test_names_of_detectors_mean_the_landmarks_of_their_preset(names, preset):
    """Names and order tell the same; landmarks that no preset uses may have a name."""
    found = named_landmarks(names)
    for own, known in zip(found, PRESETS[preset], strict=True):
        assert not known or known in (own, "spine", "chest", "neck", "hand"), (own, known)


def test_numbers_and_lengths_tell_presets_apart(walk):
    for preset in ("coco", "h36m", "smpl", "openpose", "mediapipe"):
        marks = as_landmarks(tables.landmarks(walk, preset), None, None)
        assert marks is not None
        assert marks.preset == preset
    assert as_landmarks(np.ones((4, 12, 3)), None, None) is None
    shuffled = tables.landmarks(walk, "coco")[:, ::-1]
    by_number = as_landmarks(shuffled, [str(k) for k in reversed(range(17))], None)
    np.testing.assert_array_equal(by_number.places["left_knee"], shuffled[:, ::-1][:, 13])
    with pytest.raises(UnknownNameError, match="Did you mean 'coco'"):
        sy.fit_keypoints(shuffled, preset="cocoa")
    with pytest.raises(InputError, match="has 33 points"):
        sy.fit_keypoints(shuffled, preset="mediapipe")
    with pytest.raises(InputError, match=r"may be COCO.*or Human3\.6M"):
        sy.fit_keypoints(np.random.default_rng(0).normal(size=(9, 17, 3)))


@pytest.mark.parametrize("preset", ["mediapipe", "coco", "openpose", "smpl"])
def test_up_and_mirror_images(walk, preset):
    """Every upward axis is found; one negated axis is undone if that axis is up; other mirror images are questions."""
    places = tables.landmarks(walk, preset)
    marks = as_landmarks(places, None, None, preset)
    assert forwardness(marks) > 0.5
    for axes in ([1, -1, -1], [1, -1, 1]):
        upright = make_upright(as_landmarks(places * axes, None, None, preset))
        back = upright.marks.places["left_knee"]
        np.testing.assert_allclose(back, marks.places["left_knee"], atol=1e-12)
        assert upright.notes
    with pytest.raises(InputError, match="mirror image"):
        make_upright(as_landmarks(places * [-1, 1, 1], None, None, preset))
    back = make_upright(as_landmarks(places * [-1, 1, 1], None, None, preset), mirror="x").marks
    np.testing.assert_allclose(back.places["left_knee"], marks.places["left_knee"])
    swapped = make_upright(as_landmarks(places * [-1, 1, 1], None, None, preset), mirror="names").marks
    np.testing.assert_allclose(swapped.places["right_knee"], marks.places["left_knee"] * [-1, 1, 1])
    lying = as_landmarks(places[:, :, [1, 0, 2]] * [1, 1, -1], None, None, preset)
    with pytest.raises(InputError, match="which axis points up"):
        make_upright(lying)
    stood = make_upright(lying, up="x").marks.places
    assert (stood["neck"] - stood["hips"])[:, 1].min() > 0.0
    with pytest.raises(InputError, match="flat"):
        make_upright(as_landmarks(places * [1, 1, 0], None, None, preset))


def test_z_up_is_taken_from_a_laboratory_but_not_from_a_camera(walk):
    for preset, fine in (("smpl", True), ("coco", False)):
        marks = as_landmarks(tables.landmarks(walk, preset) @ tables.AXES["z"], None, None, preset)
        if fine:
            assert "z of the points is up" in make_upright(marks).notes[0]
        else:
            with pytest.raises(InputError, match="--up"):
                make_upright(marks)


def test_a_body_that_lies_in_half_of_a_clip_does_not_stand_up(walk):
    """Who lies on the face in a part of the frames, and stands in the others, lies there: up is y, or a question."""
    y_up = make_upright(as_landmarks(tables.landmarks(walk, "smpl"), None, None, "smpl")).marks
    for share in (0.3, 0.55):
        turned = {name: at.copy() for name, at in y_up.places.items()}
        for at in turned.values():
            at[: int(share * len(at))] @= tables.AXES["z"]
        found = dataclasses.replace(y_up, places=turned)
        if share > 0.5:
            with pytest.raises(InputError, match="which axis points up"):
                make_upright(found)
        else:
            np.testing.assert_allclose(make_upright(found).turn, np.eye(3), atol=1e-12)


@pytest.mark.compiled
def test_own_joints_upside_down_are_turned(walk):
    """Points of a body's joints by their names: a handstand in every frame is told and turned."""
    body = sy.bundled("humanoid")
    names = [name for name in body.joint_names if name in walk.skeleton.joint_names]
    places = walk.positions()[:6, [walk.skeleton.index(name) for name in names]]
    down = sy.fit_keypoints(places * [1, -1, -1], names, body=body, smoothness=1e-6)
    same = sy.fit_keypoints(places, names, body=body, smoothness=1e-6)
    assert not same.notes
    assert "-y of the points is up" in down.notes[0]
    np.testing.assert_allclose(down.positions(), same.positions(), atol=1e-4)
    kept = sy.fit_keypoints(places * [1, -1, -1], names, body=body, up="y", smoothness=1e-6)
    assert kept.positions()[0, 4, 1] < kept.positions()[0, 0, 1]


@pytest.mark.compiled
def test_own_joints_of_another_size_are_followed_by_direction_and_mirrored_ones_are_refused(walk):
    body = sy.bundled("humanoid")
    names = [name for name in body.joint_names if name in walk.skeleton.joint_names]
    places = walk.positions()[:6, [walk.skeleton.index(name) for name in names]]
    fitted = sy.fit_keypoints(1000.0 * places, names, body=body, smoothness=1e-4)
    assert any("scaled by" in note for note in fitted.notes)
    assert (tables.angles(sy.Motion(walk.skeleton, walk.q[:6], walk.fps), fitted) < 10.0).all()
    with pytest.raises(InputError, match="mirror image"):
        sy.fit_keypoints(places * [-1, 1, 1], names, body=body)
    hands = [k for k, name in enumerate(names) if name.endswith(("_hand", "_foot"))]
    few = sy.fit_keypoints(
        1000.0 * places[:, hands], [names[k] for k in hands], body=body, meters_per_unit=1e-3, smoothness=1e-4
    )
    assert np.median(few.errors) < 0.02


@pytest.mark.parametrize(("left", "widens"), [(0.01, True), (0.05, False)])
def test_a_point_that_no_fit_comes_near_does_not_keep_limits_from_giving_way(left, widens):
    """The head is off in every frame, more than the wrist that a limit of the elbow holds back."""
    body = sy.bundled("humanoid")
    at, elbow = body.q_slice("left_lower_arm"), body.joints[body.index("left_lower_arm")].limit
    q = np.tile(body.rest_q, (30, 1))
    q[:, at] = elbow.upper
    errors = np.tile((0.005, 0.105, 0.005), (30, 1))
    errors[10:20, 2] = 0.06

    def fit(free):
        found, values = errors.copy(), q.copy()
        found[10:20, 2] = left
        values[:, at] += 0.2
        return Fitted.made(sy.Motion(free, values, 30.0), found, 1.0)

    fitted, notes = loosened(Fitted.made(sy.Motion(body, q, 30.0), errors, 1.0), body, fit)
    assert bool(notes) == widens
    assert (fitted.skeleton.joints[body.index("left_lower_arm")].limit.upper > elbow.upper) == widens


@pytest.mark.compiled
def test_limits_of_a_body_made_to_measure_give_way_to_the_points(walk):
    """A kick to the side, and arms behind the back: points without noise determine the limbs."""
    body = sy.bundled("humanoid").with_root("free")
    free = body.with_limits({joint.name: None for joint in body.joints if joint.limit is not None})
    t = np.linspace(0.0, 1.0, 24)
    q = np.tile(free.rest_q, (len(t), 1))
    rise = np.sin(np.pi * t)[:, None]
    turns = {
        "left_upper_leg": [0.0, 0.0, 95.0],
        "right_upper_arm": [0.0, -75.0, -40.0],
        "right_upper_leg": [40.0, 0, 0],
    }
    for joint, most in turns.items():
        q[:, free.q_slice(joint)] = sy.Rotation.from_rotvec(rise * most, degrees=True).as_quat()
    q[:, free.q_slice("right_lower_arm")] = 0.3
    kick = sy.Motion(free, q, 30.0)
    parts = ("upper_arm", "lower_arm", "hand", "upper_leg", "lower_leg", "foot", "toes")
    marks = ("shoulder", "elbow", "wrist", "hip", "knee", "ankle", "foot_index")
    names = {f"{side}_{mark}": f"{side}_{part}" for side in ("left", "right")
             for mark, part in zip(marks, parts, strict=True)}  # fmt: skip
    points = kick.positions()[:, [free.index(joint) for joint in names.values()]]
    fitted = sy.fit_keypoints(points, list(names), fps=30.0)
    for side in ("left", "right"):
        for one, two in (parts[:2], parts[1:3], parts[3:5], parts[4:6]):
            ways = [clip.positions()[:, clip.skeleton.index(f"{side}_{two}")]
                    - clip.positions()[:, clip.skeleton.index(f"{side}_{one}")] for clip in (kick, fitted)]  # fmt: skip
            cosine = np.sum(ways[0] * ways[1], axis=1) / np.prod(np.linalg.norm(ways, axis=2), axis=0)
            assert np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0))).max() < 1.0, (side, one)
    told = [note for note in fitted.notes if "contradict limits" in note]
    assert len(told) == 1
    assert "left upper leg" in told[0]
    assert beyond_limits(fitted.skeleton.tables, fitted.q) < 1e-6  # the widened limits contain the motion
    own = sy.fit_keypoints(points, list(names), fps=30.0, body=sy.bundled("humanoid"))  # limits of a model hold
    assert not any("contradict" in note for note in own.notes)
    assert sy.judge(own).verdict != "good"
    assert (
        sy.fit_keypoints(walk.positions(), list(walk.skeleton.joint_names), fps=walk.fps, body=walk.skeleton).notes
        == ()
    )


def long_table(places, names, more=""):
    """Return a long table; a point that was not seen has no row."""
    lines = [f"frame,time,landmark,x,y,z,visibility{',person' if more else ''}"]
    for t, row in enumerate(places.tolist()):
        for name, (x, y, z) in zip(names, row, strict=True):
            if np.isfinite(x):
                lines.append(f"{t},{t / 30},{name},{x},{y},{z},0.5{more if t % 2 else more.replace('1', '2')}")
    return "\n".join(lines) + "\n"


def test_long_and_wide_tables_say_the_same(walk, tmp_path):
    seen = tables.seen_by_camera(tables.landmarks(walk, "mediapipe"))[:5]
    path = tmp_path / "points.csv"
    path.write_text(long_table(seen, MEDIAPIPE))
    points = read_points(path)
    order = [points.joints.index(name) for name in MEDIAPIPE]
    np.testing.assert_allclose(points.positions[:, order], seen)
    assert points.fps == pytest.approx(30.0)
    assert set(np.unique(points.confidence)) == {0.0, 0.5}
    heads = (
        "time," + ",".join(f"{name}_{part}" for name in MEDIAPIPE for part in ("x", "y", "z", "visibility")),
        "frame," + ",".join(f"{part}{k}" for k in range(33) for part in "xyzv"),
        "Frame;" + ";".join(f"{name} {part}" for name in MEDIAPIPE for part in ("X", "Y", "Z", "score")),
    )
    for head in heads:
        mark = ";" if ";" in head else ","
        rows = [
            [str(t)] + ["" if np.isnan(v) else repr(v) for point in row for v in (*point, 0.5)]
            for t, row in enumerate(seen.tolist())
        ]
        path.write_text("\n".join([head, *map(mark.join, rows)]))
        wide = read_points(path)
        np.testing.assert_array_equal(wide.positions, seen)
        assert (wide.confidence == 0.5).all()
        assert named_landmarks(wide.joints)[11] in ("left_shoulder", "")
        assert wide.fps == (1.0 if head.startswith("time") else None)


@pytest.mark.parametrize("clock", ["frame", "time", "time_ms"])
def test_frames_that_are_left_out_are_gaps(tmp_path, clock):
    """Detectors write no rows while they see nobody."""
    path, frames = tmp_path / "points.csv", [0, 1, 2, 3, 7, 8, 9]
    of_frame = {"frame": str, "time": lambda t: repr(t / 30.0), "time_ms": lambda t: str(round(t / 0.03))}[clock]
    path.write_text(f"{clock},landmark,x,y,z\n" + "".join(f"{of_frame(t)},nose,{t},0,0\n" for t in frames))
    long = read_points(path)
    path.write_text(f"{clock},nose.x,nose.y,nose.z\n" + "".join(f"{of_frame(t)},{t},0,0\n" for t in frames))
    for points in (long, read_points(path)):
        x = points.positions[:, 0, 0]
        np.testing.assert_array_equal(np.flatnonzero(np.isfinite(x)), frames)
        np.testing.assert_array_equal(x[frames], frames)
        np.testing.assert_array_equal(points.confidence[:, 0] > 0.0, np.isfinite(x))
        assert points.fps == (None if clock == "frame" else pytest.approx(30.0))


@pytest.mark.parametrize("frames", [[0, 2, 4, 6], [0, 1, 900, 901], [0, 3, 5, 11]])
def test_numbers_of_frames_may_only_tell_the_order(tmp_path, frames):
    path = tmp_path / "points.csv"
    path.write_text("frame,nose.x,nose.y,nose.z\n" + "".join(f"{t},{t},0,0\n" for t in frames))
    np.testing.assert_array_equal(read_points(path).positions[:, 0, 0], frames)


def test_points_are_chosen_for_joints():
    file = PointFile(np.arange(9.0).reshape(1, 3, 3), ["P", "Q", "P"], confidence=np.array([1.0, 2.0, 3.0]))
    chosen = file.chosen({"a": "P", "b": "P"}, Path("points.csv"))
    assert chosen.joints == ["a", "b", "a", "b"]
    np.testing.assert_array_equal(chosen.confidence, [1.0, 1.0, 3.0, 3.0])
    with pytest.raises(UnknownNameError, match="R"):
        file.chosen({"a": "R"}, Path("points.csv"))


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"names": H36M[:-1]}, "names do not match"),
        ({"names": [*H36M, "Hand"]}, "names do not match"),
        ({"names": list(range(17))}, "names do not match"),
        ({"names": ["²"] * 17}, "not recognised"),
        ({"names": H36M, "fps": 0}, "fps"),
        ({"names": H36M, "fps": "30"}, "fps"),
        ({"names": H36M, "meters_per_unit": -1.0}, "meters_per_unit"),
        ({"names": H36M, "confidence": [[1.0], [1.0, 1.0]]}, "confidence"),
        ({"names": H36M, "offsets": np.zeros((17, 3))}, "offsets"),
    ],
)
def test_arguments_that_cannot_be_used_are_refused(walk, settings, word):
    with pytest.raises(InputError, match=word):
        sy.fit_keypoints(tables.landmarks(walk, "h36m")[:3], **settings)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("frame,landmark,x,y,z,person\n0,nose,1,2,3,a\n1,nose,1,2,3,b\n", "several people"),
        ("frame,landmark,x,y,z\n0,nose,1,2,3\n0,nose,1,2,4\n", "two rows in one frame"),
        ("frame,x,y,z\n0,1,2,3\n", "names of the points"),
        ("landmark,x,y,z\nnose,1,2,3\n", "frame or time"),
        ("frame,landmark,x,y,z\n0,nose,1,b,3\n", "line 2: cell is not a number"),
        ("frame,landmark,x,y,z\n,nose,1,2,3\n", "no frame or time"),
        ("frame,landmark,x,y,z\n", "no rows"),
        ("frame,nose_x,nose_y,nose_score\n0,1,2,1\n", "need their depth"),
    ],
)
def test_tables_that_are_refused(tmp_path, text, word):
    path = tmp_path / "points.csv"
    path.write_text(text)
    with pytest.raises(FormatError, match=word):
        read_points(path)


def test_a_long_table_cannot_ask_for_more_than_it_holds(tmp_path):
    path = tmp_path / "points.csv"
    path.write_text("frame,landmark,x,y,z\n" + "".join(f"{k},p{k},0,0,0\n" for k in range(4000)))
    with pytest.raises(FormatError, match="too many points"):
        read_points(path)


def test_arrays_with_confidence_and_archives_of_other_names(walk, tmp_path):
    places = tables.landmarks(walk, "coco")[:3].astype(np.float32)
    np.save(tmp_path / "a.npy", np.concatenate([places, np.full((3, 17, 1), 0.25, np.float32)], axis=2))
    np.savez(tmp_path / "a.npz", keypoints=places)
    points = read_points(tmp_path / "a.npy")
    np.testing.assert_array_equal(points.positions, places)
    assert (np.asarray(points.confidence) == 0.25).all()
    np.testing.assert_array_equal(read_points(tmp_path / "a.npz").positions, places)


def trc(places, names):
    """Return markers as the text of a TRC file, millimetres; gaps are empty cells."""
    head = ["PathFileType\t4\t(X/Y/Z)\ta.trc", "DataRate\tCameraRate\tNumFrames\tNumMarkers\tUnits\tOrigDataRate"]
    head += [f"50.00\t50.00\t{len(places)}\t{len(names)}\tmm\t50.00", "Frame#\tTime\t" + "\t\t\t".join(names)]
    head += ["\t\t" + "\t".join(f"{axis}{k + 1}" for k in range(len(names)) for axis in "XYZ"), ""]
    rows = [
        "\t".join([str(t + 1), str(t / 50.0), *("" if np.isnan(v) else repr(v) for v in row)])
        for t, row in enumerate(places.reshape(len(places), 3 * len(names)).tolist())
    ]
    return "\n".join([*head, *rows])


@pytest.mark.compiled
def test_markers_of_a_laboratory(walk, tmp_path):
    """Millimetres and z up are read from the file and the body; a gap stays a gap."""
    names = [name for name in SMPL if "spine" not in name]
    columns = [SMPL.index(name) for name in names]
    places = 1000.0 * (tables.landmarks(walk, "smpl", centred=False)[:, columns] @ tables.AXES["z"])
    places[3, 2] = np.nan
    (tmp_path / "a.trc").write_text(trc(places, names))
    points = read_points(tmp_path / "a.trc")
    np.testing.assert_allclose(points.positions, places)
    assert (points.joints, points.fps, points.meters_per_unit) == (names, 50.0, 0.001)
    ran = run("animate", "--points", tmp_path / "a.trc", "-o", tmp_path / "a.bvh", "--json")
    assert ran.code == 0, ran
    assert any("z of the points is up" in note for note in ran.data["fit"]["notes"])
    assert (tables.angles(walk, sy.load_motion(tmp_path / "a.bvh")) < 10.0).all()
    (tmp_path / "b.trc").write_text(trc(places, names).replace("\t", ","))
    np.testing.assert_allclose(read_points(tmp_path / "b.trc").positions, places)
    (tmp_path / "a.trc").write_text(trc(places[:0], names))
    assert_refused(run("animate", "--points", tmp_path / "a.trc"), "no frames")
    (tmp_path / "a.trc").write_text("PathFileType\t4\n")
    assert_refused(run("animate", "--points", tmp_path / "a.trc"), "TRC")


def skin(motion):
    """Return markers (T, K, 3) and their names on a person that walks, metres, z up; joints are inside."""
    order = [name or "nose" for name in PRESETS["mediapipe"]]
    places = dict(zip(order, np.moveaxis(tables.landmarks(motion, "mediapipe", centred=False), 1, 0), strict=True))
    hips = 0.5 * (places["left_hip"] + places["right_hip"])
    neck = 0.5 * (places["left_shoulder"] + places["right_shoulder"])
    left, up = tables.unit(places["left_hip"] - places["right_hip"]), tables.unit(neck - hips)
    up = tables.unit(up - np.sum(up * left, axis=1, keepdims=True) * left)
    ahead = np.cross(left, up)
    at = {"C7": neck, "STRN": neck - 0.1 * up + 0.1 * ahead}
    for side, letter, sign in (("left", "L", 1.0), ("right", "R", -1.0)):
        out = sign * left
        at[f"{letter}ASI"] = hips + 0.125 * out + 0.075 * up + 0.0475 * ahead
        at[f"{letter}PSI"] = hips + 0.05 * out + 0.075 * up - 0.1 * ahead
        at[f"{letter}KNE"] = places[f"{side}_knee"] + 0.05 * out
        at[f"{letter}ANK"] = places[f"{side}_ankle"] + 0.04 * out
        at[f"{letter}TOE"], at[f"{letter}HEE"] = places[f"{side}_toe"], places[f"{side}_heel"]
        at[f"{letter}SHO"] = places[f"{side}_shoulder"] + 0.04 * up
        at[f"{letter}ELB"] = places[f"{side}_elbow"]
        at[f"{letter}WRA"] = places[f"{side}_wrist"] + 0.02 * ahead
        at[f"{letter}WRB"] = places[f"{side}_wrist"] - 0.02 * ahead
    return np.stack(list(at.values()), axis=1) @ tables.AXES["z"], list(at)


@pytest.mark.compiled
def test_markers_on_the_skin_give_the_joints_beneath(walk, tmp_path):
    """Plug-in Gait with the name of a person, millimetres and a gap."""
    places, names = skin(walk)
    places[2, 4] = np.nan
    (tmp_path / "gait.trc").write_text(trc(1000.0 * places, [f"anna:{name}" for name in names]))
    ran = run("animate", "--points", tmp_path / "gait.trc", "-o", tmp_path / "a.bvh", "--json")
    assert ran.code == 0, ran
    assert ran.data["fit"]["notes"][0] == "markers of motion capture"
    assert "z of the points is up" in ran.data["fit"]["notes"][1]
    assert (tables.angles(walk, sy.load_motion(tmp_path / "a.bvh")) < 10.0).all()


@pytest.mark.compiled
@pytest.mark.parametrize("frames", [1, 2, 4])
def test_few_frames(walk, frames):
    fitted = sy.fit_keypoints(tables.landmarks(walk, "coco")[:frames])
    assert len(fitted) == frames
    assert np.isfinite(fitted.q).all()


def test_c3d_has_labelled_markers_alone(tmp_path):
    """Units and gaps are kept; analog channels, computed angles and unlabelled points are not."""
    ezc3d = pytest.importorskip("ezc3d")
    places = np.random.default_rng(0).normal(size=(6, 3, 3))
    places[2, 1] = np.nan
    content = ezc3d.c3d()
    content["parameters"]["POINT"]["RATE"]["value"] = [60.0]
    content["parameters"]["POINT"]["UNITS"]["value"] = ["mm"]
    content["parameters"]["POINT"]["LABELS"]["value"] = ["LKNE", "RKNE", "LHip", "*3", "LKneeAngles"]
    content.add_parameter("POINT", "ANGLES", ["LKneeAngles"])
    points = np.ones((4, 5, 6))
    points[:3, :3] = places.transpose(2, 1, 0)
    content["data"]["points"] = points
    content["parameters"]["ANALOG"]["RATE"]["value"] = [60.0]
    content["parameters"]["ANALOG"]["LABELS"]["value"] = ["force"]
    content["data"]["analogs"] = np.ones((1, 1, 6))
    content.write(str(tmp_path / "a.c3d"))
    markers = read_c3d(tmp_path / "a.c3d")
    assert markers.names == ["LKNE", "RKNE", "LHip"]
    np.testing.assert_allclose(markers.positions, places, atol=1e-6)
    assert (markers.fps, markers.meters_per_unit) == (60.0, 0.001)
    lost = "1 points without a label, 1 computed results (angles, forces, ...), 1 analog channels"
    assert markers.notes == (f"Only labelled markers were read; not kept: {lost}.",)
    data = bytearray((tmp_path / "a.c3d").read_bytes())
    data[2:200] = b"\xff" * 198
    (tmp_path / "a.c3d").write_bytes(data)
    with pytest.raises(FormatError, match="not a readable C3D"):
        read_c3d(tmp_path / "a.c3d")


def test_a_file_that_is_no_c3d(tmp_path):
    (tmp_path / "a.c3d").write_bytes(b"no markers")
    assert_refused(run("animate", "--points", tmp_path / "a.c3d"), "C3D")


@pytest.mark.parametrize("preset", ["mediapipe", "coco", "openpose", "smpl", "h36m"])
def test_flips_of_the_cloud_are_found_with_their_frames(walk, preset):
    """Upside down, turned round, sides exchanged, mirrored in depth; noise and gaps are no flips."""
    places = tables.landmarks(walk, preset)
    for seen in (places, tables.seen_by_camera(places, 1.0) * [1, -1, -1]):
        assert find_flips(as_landmarks(seen, None, None, preset), walk.fps) == ()
    ways = [[1, -1, -1], [-1, 1, -1], [-1, 1, 1]]
    ways += [] if preset in ("smpl", "h36m") else [[1, 1, -1]]  # nothing but the knees tells forward in these
    for signs in ways:
        for frames in ((7,), (3, 4, 5, 12), (0, 1), (len(places) - 1,)):
            bad = places.copy()
            bad[list(frames)] *= signs
            assert find_flips(as_landmarks(bad, None, None, preset), walk.fps) == frames, (signs, frames)


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize(("count", "verdict", "code"), [(1, "look", 0), (6, "failed", 1), (0, "good", 0)])
def test_a_cloud_that_flips_is_no_success(walk, tmp_path, count, verdict, code):
    places = tables.landmarks(
        sy.Motion(walk.skeleton, np.tile(walk.q[:8], (3, 1))[np.r_[:8, 14:7:-1, :7]], walk.fps), "smpl"
    )
    frames = [4, 9, 10, 13, 17, 20][:count]
    places[frames] *= [-1, 1, 1]
    np.save(tmp_path / "points.npy", places)
    call = "animate", "--points", tmp_path / "points.npy", "--preset", "smpl", "--fps", walk.fps
    ran = run(*call, "--json")
    assert ran.code == code
    found = [one for one in ran.data["judgement"]["findings"] if one["cause"] == "flip"]
    assert [one["frames"] for one in found] == ([frames] if frames else [])
    assert ran.data["judgement"]["verdict"] == verdict or not frames
    if count != 6:  # the text: of one that is mirrored, and of none
        said = run(*call).out
        assert "verdict: " in said
        assert ("mirrored in" in said) == bool(frames)


def test_options_of_points(tmp_path):
    path = tmp_path / "points.npy"
    np.save(path, np.ones((2, 17, 3)))
    assert run("animate", "arm7", "--body", "auto", "--points", path).code == 2
    assert run("animate", "--body", "auto").code == 2
    assert run("animate", "walk.bvh", "--preset", "coco", "--foot-lock").code == 2
    assert run("animate", "--points", path, "--preset", "coco", "--up", "up").code == 2
    assert_refused(run("animate", "arm7", "--points", path, "--preset", "coco"), "no joint for")


MARKS = ("shoulder", "elbow", "wrist", "hip", "knee", "ankle", "foot_index")


def marks_of(turns):
    """Return landmarks of a body that turns joints to and fro, (T, 14, 3), and their names."""
    body = sy.bundled("humanoid").with_root("free")
    rise = np.sin(np.pi * np.linspace(0.0, 1.0, 40))[:, None]
    q = np.tile(body.rest_q, (40, 1))
    for joint, most in turns.items():
        at = body.q_slice(joint)
        ball = at.stop - at.start > 1
        q[:, at] = sy.Rotation.from_rotvec(rise * most, degrees=True).as_quat() if ball else np.radians(rise * most)
    parts = ("upper_arm", "lower_arm", "hand", "upper_leg", "lower_leg", "foot", "toes")
    names = {f"{side}_{mark}": f"{side}_{part}" for side in ("left", "right")
             for mark, part in zip(MARKS, parts, strict=True)}  # fmt: skip
    places = sy.Motion(body, q, 30.0).positions()[:, [body.index(joint) for joint in names.values()]]
    return places, list(names)


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        (("shoulder", "elbow", "wrist"), "the arms"), (("hip", "knee", "ankle", "foot_index"), "the legs"),
        (("elbow", "wrist"), "the elbows"), (("knee", "ankle", "foot_index"), "the knees"),
        (("ankle", "foot_index"), "the ankles"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("onto", [False, True])
def test_points_whose_sides_are_exchanged_in_a_part_of_the_body_are_refused(parts, said, onto):
    places, names = marks_of({"left_upper_leg": [40.0, 0.0, 0.0], "right_upper_arm": [0.0, -40.0, -30.0]})
    other = {"left": "right", "right": "left"}
    wrong = [
        f"{other[side]}_{part}" if part in parts else name for name in names for side, part in [name.split("_", 1)]
    ]
    body = sy.bundled("humanoid") if onto else None
    with pytest.raises(sy.InputError, match=f"left and right of {said} are exchanged in the points"):
        sy.fit_keypoints(places, wrong, fps=30.0, body=body)


def test_limits_that_give_way_farther_than_people_differ_are_not_good():
    """A knee that bends forward by a quarter turn."""
    places, names = marks_of({"right_lower_leg": -100.0})
    fitted = sy.fit_keypoints(places, names, fps=30.0, mirror="none")
    assert any("limits were widened farther than people differ: right lower leg" in note for note in fitted.notes)
    assert sy.judge(fitted).verdict != "good"


def at_a_desk(walk, seed, *, hips):
    """Landmarks of a walk whose legs a detector invents, with or without the hips; their names, and the confidence."""
    names = list(PRESETS["mediapipe"])
    points = tables.landmarks(walk, "mediapipe", centred=hips) * (1.0, -1.0, -1.0)
    words = ("knee", "ankle", "heel", "toe") if hips else ("hip", "knee", "ankle", "heel", "toe")
    hidden = [k for k, name in enumerate(names) if name.endswith(words)]
    confidence = np.full(points.shape[:2], 0.98)
    confidence[:, hidden] = 0.05
    rng = np.random.default_rng(seed)
    points[:, hidden] += rng.normal(0.0, 0.5, (len(points), len(hidden), 3))
    return points, confidence, hidden


@pytest.mark.compiled
@pytest.mark.parametrize("gone", [False, True])
@pytest.mark.parametrize("hips", [True, False])
def test_legs_that_are_not_seen_rest_whatever_a_detector_invents(walk, hips, gone):
    """A person at a desk: hidden points are invented with a low confidence, or missing."""
    points, confidence, hidden = at_a_desk(walk, 3, hips=hips)
    if gone:
        points[:, hidden] = np.nan
    made = sy.fit_keypoints(points, preset="mediapipe", confidence=confidence, fps=walk.fps)
    assert any("not seen" in note and "rest" in note for note in made.notes)
    q, body = np.array(made.q), made.skeleton
    for part in ("lower_leg", "foot"):
        at = body.q_slice(body.index(f"left_{part}"))
        assert np.ptp(q[:, at], axis=0).max() < 0.05, part
    places = made.positions()
    path = places[:, body.index("hips")]
    if hips:
        assert np.ptp(path, axis=0).max() < 0.05
    rest = body.rest_pose().position("hips")[1]
    assert abs(float(np.median(path[:, 1])) - rest) < 0.1
    seen = walk.positions() @ tables.to_y_up(walk).T
    for a, b in (("left_upper_arm", "left_lower_arm"), ("right_lower_arm", "right_hand")):
        own = tables.unit(places[:, body.index(b)] - places[:, body.index(a)])
        true = tables.unit(seen[:, walk.skeleton.index(b)] - seen[:, walk.skeleton.index(a)])
        assert np.degrees(np.arccos(np.clip(np.sum(own * true, 1), -1.0, 1.0))).mean() < 3.0


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("parts", "unseen"),
    [
        (("shoulder", "elbow", "wrist", "hip"), "legs are not seen"),
        (("shoulder", "elbow", "wrist", "ear", "nose"), "hips and legs are not seen"),
        (("shoulder", "right_elbow", "right_wrist", "ear"), "left arm is not seen"),
        (("hip", "knee", "ankle", "toe"), "shoulders are not seen"),
    ],
)
@pytest.mark.parametrize("named", [True, False])
def test_single_limbs_and_upper_bodies_are_followed(walk, parts, unseen, named):
    """Bones between points that are seen point as in the clip, whether the others are missing or without a place."""
    names, points = list(PRESETS["mediapipe"]), tables.landmarks(walk, "mediapipe", centred=False)
    seen = [k for k, name in enumerate(names) if name.endswith(parts)]
    if named:
        made = sy.fit_keypoints(points[:, seen], [names[k] for k in seen], fps=walk.fps)
    else:
        hidden = [k for k in range(len(names)) if k not in seen]
        points[:, hidden] = np.nan
        made = sy.fit_keypoints(points, preset="mediapipe", fps=walk.fps)
    assert any(unseen in note for note in made.notes)
    places, body, limbs = made.positions(), made.skeleton, 0
    for first, last, upper, lower in (
        ("left_shoulder", "left_elbow", "left_upper_arm", "left_lower_arm"),
        ("right_elbow", "right_wrist", "right_lower_arm", "right_hand"),
        ("left_hip", "left_knee", "left_upper_leg", "left_lower_leg"),
    ):
        if {names.index(first), names.index(last)} <= set(seen):
            own = tables.unit(places[:, body.index(lower)] - places[:, body.index(upper)])
            true = tables.unit(points[:, names.index(last)] - points[:, names.index(first)])
            assert np.degrees(np.arccos(np.clip(np.sum(own * true, 1), -1.0, 1.0))).mean() < 3.0
            limbs += 1
        else:
            at = body.q_slice(body.index(lower))
            assert np.ptp(np.array(made.q)[:, at], axis=0).max() < 0.05
    assert limbs


@pytest.mark.compiled
def test_limbs_that_are_not_seen_keep_the_pose_of_rest(walk):
    """Who sits at a desk: thighs ahead in all frames, whatever a detector invents; of another body it is an error."""
    body = sy.bundled("humanoid")
    turn = sy.Rotation.from_euler("x", -80, degrees=True)
    seat = sy.Pose(body, {"left_upper_leg": turn.as_quat(), "right_upper_leg": turn.as_quat()})
    points, confidence, _ = at_a_desk(walk, 5, hips=False)
    given = {"preset": "mediapipe", "confidence": confidence, "fps": walk.fps}
    for own in ({}, {"body": body}):
        made = sy.fit_keypoints(points, rest=seat, **given, **own)
        at, kept = made.skeleton.q_slice("left_upper_leg"), body.q_slice("left_upper_leg")
        np.testing.assert_allclose(np.array(made.q)[:, at], np.tile(seat.q[kept], (len(made), 1)), atol=1e-12)
    for wrong in (sy.bundled("arm7").rest_pose(), "seat.toml", "sit"):
        with pytest.raises((InputError, TypeError), match="rest"):
            sy.fit_keypoints(points, rest=wrong, **given)


@pytest.mark.compiled
def test_a_limb_that_is_hidden_for_a_while_rests_meanwhile(walk, tmp_path):
    """As a pose or its file says, and continuously; "keep" stays near where it is seen; short gaps change nothing."""
    body = sy.bundled("humanoid")
    lowered = sy.Pose(body, {"left_upper_arm": sy.Rotation.from_euler("z", -70, degrees=True).as_quat()})
    sy.save_pose(lowered, tmp_path / "low.json")
    names, fps = list(PRESETS["mediapipe"]), 30.0
    points = tables.landmarks(walk.resample(fps), "mediapipe", centred=False)
    points = np.concatenate([points, points[::-1]])
    arm = [k for k, name in enumerate(names) if name in ("left_elbow", "left_wrist", "left_index", "left_pinky")]
    count = len(points)
    gap = slice(count // 4, count // 4 + 45)
    points[gap, arm] = np.nan
    points[count - 20 : count - 16, arm] = np.nan
    found = {
        rest: sy.fit_keypoints(points, preset="mediapipe", body=body, fps=fps, rest=rest)
        for rest in ("keep", None, "rest", str(tmp_path / "low.json"))
    }
    np.testing.assert_array_equal(found["keep"].q, found[None].q)
    at = found["keep"].skeleton.q_slice("left_upper_arm")
    for rest, pose in (("rest", body.rest_pose()), (str(tmp_path / "low.json"), lowered)):
        q, kept = np.array(found[rest].q), np.array(found["keep"].q)
        changed = np.flatnonzero((q != kept).any(1))
        assert gap.start + 8 <= changed[0] < gap.start + 12
        assert gap.stop + 12 < changed[-1] < gap.stop + 18
        assert abs(q[gap.stop - 1, at] @ pose.q[body.q_slice("left_upper_arm")]) > 1.0 - 1e-12
        places = found[rest].positions()[:, found[rest].skeleton.index("left_hand")]
        assert np.linalg.norm(np.diff(places, axis=0), axis=1).max() * fps < 6.0  # metres per second
        assert any("hidden for 0.3 s or more: left arm in" in note for note in found[rest].notes)


def test_points_that_do_not_show_what_is_up_are_a_question(walk):
    names, points = list(PRESETS["mediapipe"]), tables.landmarks(walk, "mediapipe", centred=False)
    seen = [k for k, name in enumerate(names) if name.endswith(("shoulder", "elbow", "wrist"))]
    with pytest.raises(InputError, match="which axis points up"):
        sy.fit_keypoints(points[:, seen], [names[k] for k in seen], fps=walk.fps)
    points[:, [k for k, name in enumerate(names) if not name.startswith("left")]] = np.nan
    with pytest.raises(InputError, match="both shoulders"):
        sy.fit_keypoints(points, preset="mediapipe", fps=walk.fps)


def test_a_point_that_flickers_is_seen_until_its_confidence_is_low():
    count = 60
    names = ["left_shoulder", "right_shoulder", "left_hip", "right_hip", "left_knee", "right_knee", "nose"]
    at = {"shoulder": 1.4, "hip": 0.9, "knee": 0.5}
    points = np.zeros((count, len(names), 3))
    for k, name in enumerate(names):
        side = 0.2 if name.startswith("left") else -0.2 if name.startswith("right") else 0.0
        points[:, k] = (side, at.get(name.rpartition("_")[2], 1.6), 0.1 * (name == "nose"))
    confidence = np.full(points.shape[:2], 0.9)
    knee = names.index("left_knee")
    confidence[:, knee] = np.where(np.arange(count) % 2, 0.5, 0.3)  # between both thresholds now and then
    confidence[20:40, knee] = np.where(np.arange(20) % 2, 0.3, 0.05)
    marks = as_landmarks(points, names, confidence)
    seen = np.isfinite(only_seen(marks).marks.places["left_knee"]).all(1)
    assert seen[:20].all()
    assert not seen[20:40].any()
    assert seen[41:].all()
    (note,) = only_seen(marks).notes
    assert note == f"landmarks of low confidence were left out: left knee in {100 * (~seen).mean():.0f} % of the frames"
