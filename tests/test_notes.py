"""Notes: what of a file was not kept is told by the readers of motions, and by every command that reads."""

from pathlib import Path

import numpy as np
import pytest

import synovia as sy
from cli_runs import run
from synovia.clips.pointfile import read_points
from synovia.io.unitree import write_unitree

URDF = """<robot name="r"><link name="a"/><link name="b"/><link name="c"/>
<joint name="j1" type="revolute"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/>
<limit lower="2" upper="-2"/></joint>
<joint name="j2" type="revolute"><parent link="b"/><child link="c"/><origin xyz="1 0 0"/><axis xyz="0 0 1"/>
<limit lower="-1" upper="1"/></joint></robot>"""
REVERSED = "Reversed limits were ignored: 'j1' (2 to -2)."
BVH = """HIERARCHY
ROOT hips
{{
OFFSET 0 1 0
CHANNELS 3 Zrotation Xrotation Yrotation
End Site
{{
OFFSET 0 1 0
}}
}}
MOTION
Frames: {}
Frame Time: 0.1
0 0 0
10 0 0
20 0 0
"""
MORE = "The file announces 2 frames and has 3; these were read."


@pytest.fixture
def robot(tmp_path: Path) -> Path:
    path = tmp_path / "robot.urdf"
    path.write_text(URDF)
    return path


@pytest.fixture
def clip(tmp_path: Path) -> Path:
    path = tmp_path / "clip.bvh"
    path.write_text(BVH.format(2))
    return path


def skeleton_of(path: Path) -> sy.Skeleton:
    with pytest.warns(UserWarning, match="Reversed"):
        return sy.load_skeleton(path)


def test_a_table_tells_of_resting_joints_and_of_times_that_it_loses(robot: Path, tmp_path: Path) -> None:
    skeleton = skeleton_of(robot)
    path = tmp_path / "a.csv"
    path.write_text("time,j2\n0,0.1\n0.1,0.2\n0.2,0.3\n")
    motion = sy.formats.read_csv(path, skeleton)
    assert motion.notes == ("Joints without values in the file stay at rest: 'j1'.",)
    path.write_text("time,j1,j2\n5,0,0.1\n5.1,0,0.2\n5.9,0,0.3\n")
    assert sy.formats.read_csv(path, skeleton).notes == (
        "Times are not evenly spaced (0.1 to 0.8 s); the mean rate is used.",
        "Times begin at 5 s; those of the clip begin at 0.",
    )
    path.write_text("time,j1,j2\n0,0,0.1\n0.033,0,0.2\n0.067,0,0.3\n")  # thirtieths of a second, rounded
    assert sy.formats.read_csv(path, skeleton).notes == (
        "Frames are 0.0335 s apart in the file: rounded to 30 per second.",
    )


@pytest.mark.parametrize(
    ("times", "told"),
    [
        ((0, 0.1, 0.2, 0.3), None),
        ((0, 0.033, 0.067, 0.1), None),  # rounded
        ((0, 0.1, 0.3, 0.4), None),  # a frame is left out
        ((0, 0.1, 0.15, 0.5), "0.05 to 0.35 s"),
    ],
)
@pytest.mark.parametrize("form", ["wide", "long", "long in milliseconds"])
def test_a_table_of_points_tells_of_uneven_times(
    tmp_path: Path, times: tuple[float, ...], told: str | None, form: str
) -> None:
    path, clock = tmp_path / "points.csv", [1000 * time for time in times] if "milli" in form else times
    rows = [f"{time:g},{k},2,3" for k, time in enumerate(clock)]
    if form != "wide":
        head = "time_ms,landmark,x,y,z" if "milli" in form else "time,landmark,x,y,z"
        rows = [row.replace(",", ",hand,", 1) for row in rows]
    path.write_text("\n".join(["time,hand.x,hand.y,hand.z" if form == "wide" else head, *rows]))
    notes = read_points(path).notes
    assert notes == () if told is None else (f"Times are not evenly spaced ({told}); the mean rate is used.",)


def test_mimic_joints_without_a_column_follow(tmp_path: Path) -> None:
    path = tmp_path / "robot.urdf"
    path.write_text(URDF.replace('<limit lower="-1" upper="1"/>', '<limit/><mimic joint="j1" multiplier="-2"/>'))
    skeleton = skeleton_of(path)
    (tmp_path / "a.csv").write_text("time,j1\n0,0.1\n0.1,0.2\n")
    motion = sy.formats.read_csv(tmp_path / "a.csv", skeleton)
    assert motion.notes == ()
    np.testing.assert_allclose(motion.q, [[0.1, -0.2], [0.2, -0.4]])


def test_archives_tell_of_arrays_that_were_not_read_and_keep_notes(clip: Path, tmp_path: Path) -> None:
    motion = sy.load_motion(clip)
    assert motion.notes == (MORE,)
    path = tmp_path / "a.npz"
    sy.save_motion(motion, path)
    assert sy.load_motion(path).notes == motion.notes
    with np.load(path) as content:
        np.savez(path, contacts=np.zeros((3, 2)), **content)
    assert sy.load_motion(path).notes == (MORE, "Arrays that were not read: 'contacts'.")
    points = tmp_path / "points.npz"
    np.savez(points, positions=np.zeros((4, 2, 3)), joints=np.array(["a", "b"]), faces=np.zeros(3))
    assert read_points(points).notes == ("Arrays that were not read: 'faces'.",)


def test_what_a_tracker_archive_has_more_is_told(robot: Path, tmp_path: Path) -> None:
    skeleton = skeleton_of(robot)
    motion = sy.Motion(skeleton, np.array([[0.1, 0.2], [0.3, 0.4]]), 50.0)
    path = tmp_path / "a.isaac.npz"
    sy.save_motion(motion, path)
    assert sy.load_motion(path, skeleton=skeleton).notes == ()
    with np.load(path) as content:
        arrays = dict(content)
    arrays["joint_pos"] = arrays["joint_pos"][:, :1]
    arrays["joint_names"] = arrays["joint_names"][:1]
    arrays["body_pos_w"] = arrays["body_pos_w"] + [0.0, 0.02, 0.0]
    arrays["body_pos_w"][:, 0] -= [0.0, 0.02, 0.0]
    np.savez(path, object_pos=np.zeros((2, 3)), **arrays)
    notes = sy.load_motion(path, skeleton=skeleton).notes
    assert notes[0] == "Joints without values in the file stay at rest: 'j2'."
    assert notes[1].startswith("The positions of bodies in model and file differ by 0.02 m")
    assert notes[2:] == ("Arrays that were not read: 'object_pos'.",)


def test_a_rate_that_is_not_in_the_file_is_told(robot: Path, tmp_path: Path) -> None:
    skeleton = skeleton_of(robot)
    path = tmp_path / "a.unitree.csv"
    write_unitree(sy.Motion(skeleton, np.zeros((2, 2)), 30.0), path)
    (note,) = sy.load_motion(path, skeleton=skeleton).notes
    assert note.startswith("The file does not contain its frame rate: 30 per second is assumed")


def test_every_command_that_reads_tells_the_notes_once(robot: Path, clip: Path, tmp_path: Path) -> None:
    values = tmp_path / "values.csv"
    values.write_text("time,j2\n0,0.1\n0.1,0.2\n")
    out = tmp_path / "out"
    out.mkdir()
    rest = "Joints without values in the file stay at rest: 'j1'."
    for arguments, told in (
        (("solve", robot, "-t", "c=0.5,0.5,0"), [REVERSED]),
        (("bench", robot, "--problems", 2, "--solver", "lm"), [REVERSED]),
        (("convert", clip, "-o", out / "a.npz"), [MORE]),
        (("convert", values, "--model", robot, "-o", out / "b.npz"), [REVERSED, rest]),
        (("animate", values, "--model", robot, "--foot-lock", "-o", out / "c.npz"), [REVERSED, rest]),
        (("render", clip, "-o", out / "a.png", "--size", "80x60"), [MORE]),
        (("render", values, "--model", robot, "-o", out / "b.png", "--size", "80x60"), [REVERSED, rest]),
        (("retarget", clip, robot, "-o", out / "d.npz"), [MORE, REVERSED]),
        (("plot", clip, "-o", out / "a.svg"), [MORE]),
    ):
        ran = run(*arguments)
        for note in told:
            assert ran.err.count(note) == 1, (arguments, ran)


@pytest.mark.slow
def test_many_files_have_notes_in_their_rows_and_those_of_the_model_once(
    robot: Path, clip: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "clips"
    folder.mkdir()
    for name in ("a", "b"):
        (folder / f"{name}.csv").write_text("time,j2\n0,0.1\n0.1,0.2\n")
    ran = run("convert", folder, "--model", robot, "-o", tmp_path / "out", "--format", "npz", "--jobs", "1")
    assert ran.code == 0, ran
    assert ran.err.count(REVERSED) == 1
    ledger = (tmp_path / "out" / "ledger.csv").read_text()
    assert ledger.count("Joints without values in the file stay at rest: 'j1'.") == 2
    (folder / "a.csv").unlink()
    (folder / "b.csv").unlink()
    (folder / "c.bvh").write_text(clip.read_text())
    ran = run("convert", folder, "-o", tmp_path / "more", "--format", "npz", "--jobs", "1")
    assert (tmp_path / "more" / "ledger.csv").read_text().count(MORE) == 1, ran


def test_inspect_shows_the_notes_of_the_model_and_of_each_clip(clip: Path, robot: Path, tmp_path: Path) -> None:
    assert run("inspect", clip).out.count(MORE) == 1
    told = run("inspect", clip, "--json").data
    assert told["notes"] == told["clips"][0]["notes"] == [MORE]
    assert REVERSED in run("inspect", robot).out
    values = tmp_path / "values.csv"
    values.write_text("time,j2\n0,0.1\n0.1,0.2\n")
    ran = run("inspect", values, "--model", robot)
    assert "stay at rest: 'j1'" in ran.out


def test_every_note_of_a_robot_is_a_warning(robot: Path) -> None:
    """Those about an SRDF file and about velocities too."""
    robot.write_text(URDF.replace('lower="-1" upper="1"', 'lower="-1" upper="1" velocity="0"'))
    for text, told in (
        ('<robot name="r"><disable_collisions link1="a" link2="c"', "robot.srdf was ignored"),
        ('<robot name="r"><disable_collisions link1="a" link2="z" reason="Never"/></robot>', "'z'"),
        ('<robot name="r"><disable_collisionss link1="a" link2="c"/><group name="g"/></robot>', "unknown <disable_col"),
    ):
        robot.with_suffix(".srdf").write_text(text)
        with pytest.warns(UserWarning, match="Reversed") as seen:
            skeleton = sy.load_skeleton(robot)
        assert all(note in str(seen[0].message) for note in skeleton.notes)
        assert told in str(seen[0].message)
        assert "'j2' (0)" in str(seen[0].message)
