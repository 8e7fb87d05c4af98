"""``synovia animate``: keyframes, other clips and held feet; reports, files, refusals, and interruptions."""

import io
import json
import logging
import signal
import sys
import time
from importlib.resources import files

import numpy as np
import pytest

import synovia as sy
from browsing import until
from cli_runs import assert_refused, run
from synovia.cli.progress import Bar, CompileNotice, compiling_text
from synovia.clips.pointfile import holds_points, read_points
from synovia.errors import UnknownNameError
from synovia.files.tracks import json_schema, read_track
from synovia.io.base import write_bytes

TRACK = """schema = "synovia.track/1"
fps = 10
interpolation = "cubic"
[[goals]]
joint = "tool"
keys = [
  { time = 0, position = [0.4, 0.1, 0.5], rotation = { euler = "xyz", degrees = [180, 0, 0] } },
  { time = 1, position = [0.4, -0.1, 0.5], rotation = { euler = "xyz", degrees = [180, 0, 90] } },
]
"""


@pytest.fixture
def track(tmp_path):
    path = tmp_path / "track.toml"
    path.write_text(TRACK)
    return path


def test_the_published_schema_is_that_of_the_reader():
    text = files("synovia").joinpath("files", "schemas", "track-1.json").read_text(encoding="utf-8")
    assert json.loads(text) == json_schema()
    assert run("schema", "track").out == text


def test_keys_are_joined_by_lines_curves_and_shortest_turns(track):
    """Keys are met exactly; halfway a turn is half done; the first and last target are the keys'."""
    read = read_track(track)
    frames = read.targets["tool"]
    assert read.frames == 11
    np.testing.assert_allclose(frames[[0, -1], 1, 3], [0.1, -0.1])
    half = sy.Rotation.from_matrix(frames[5, :3, :3]) * sy.Rotation.from_matrix(frames[0, :3, :3]).inv()
    assert half.magnitude() == pytest.approx(np.pi / 4)


def test_what_all_keys_give_makes_the_kind_of_goal(tmp_path):
    """Positions, rotations or both; a goal without keys stays where it is, as a pose."""
    place, turn = "position = [0.4, 0.1, 0.5]", 'rotation = { euler = "x", degrees = [90] }'
    goals = {"a": place, "b": turn, "c": f"{place}, {turn}"}
    entries = [
        f'[[goals]]\njoint = "{j}"\nkeys = [{{ time = 0, {k} }}, {{ time = 1, {k} }}]\n' for j, k in goals.items()
    ]
    path = tmp_path / "track.toml"
    path.write_text(TRACK.split("[[goals]]", maxsplit=1)[0] + "".join(entries) + '[[goals]]\njoint = "d"\n')
    read = read_track(path)
    assert [type(goal) for goal in read.goals] == [sy.PositionGoal, sy.RotationGoal, sy.PoseGoal, sy.PoseGoal]
    assert {name: np.shape(some)[1:] for name, some in read.targets.items()} == {"a": (3,), "b": (3, 3), "c": (4, 4)}
    np.testing.assert_allclose(
        read.targets["b"][0], sy.Rotation.from_euler("x", 90, degrees=True).as_matrix(), atol=1e-15
    )
    np.testing.assert_allclose(read.targets["c"][0][:3, 3], [0.4, 0.1, 0.5])


@pytest.mark.parametrize("way", ["linear", "cubic"])
def test_a_curve_that_overflows_is_refused(track, way):
    place = "position = [{}1e308, 0, 0]"
    keys = f"{{ time = 0, {place.format('')} }}, {{ time = 1, {place.format('-')} }}"
    head = TRACK.split("keys", maxsplit=1)[0].replace("cubic", way)
    track.write_text(f"{head}keys = [{keys}]\n")
    with pytest.raises(sy.errors.FormatError, match="further apart in time"):
        read_track(track)


@pytest.mark.compiled
def test_an_arm_follows_keys_into_a_file(track, tmp_path):
    out = tmp_path / "clip.npz"
    ran = run("animate", "arm7", "--goals", track, "--root", "fixed", "-o", out, "--json")
    assert ran.code == 0
    assert ran.data["schema"] == "synovia.animate/1"
    assert ran.data["track"]["reached"] == 11
    clip = sy.load_motion(out)
    assert len(clip) == 11
    np.testing.assert_allclose(clip.pose(10).position("tool"), (0.4, -0.1, 0.5), atol=1e-3)
    assert_refused(run("animate", "arm7", "--goals", track, "-o", out), "--force")


@pytest.mark.compiled
def test_frames_out_of_reach_are_told(track):
    track.write_text(TRACK.replace("[0.4, -0.1, 0.5]", "[4.0, -0.1, 0.5]"))
    ran = run("animate", "arm7", "--goals", track, "--root", "fixed")
    assert ran.code == 1
    assert "missed: frames" in ran.out


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ("time = 1", "time = -1", ">= 0"),
        ("time = 1,", "time = 0,", "increasing"),
        ("synovia.track/1", "synovia.goals/1", "synovia.track/1"),
        ("time = 1,", "time = 1e9,", "number of frames"),
        ("[0.4, -0.1, 0.5], rotation", "[0.4, -0.1, 0.5], rotatoin", "goals[0].keys[1]: unknown field 'rotatoin'"),
        ("[0.4, -0.1, 0.5], rotation", "[0.4, -0.1, 0.5], rotatoin", "Did you mean 'rotation'?"),
        ('joint = "tool"', 'joint = "tool"\nweight = 0', "weight"),
    ],
)
def test_tracks_that_cannot_be_used_are_refused(track, old, new, word):
    track.write_text(TRACK.replace(old, new))
    assert_refused(run("animate", "arm7", "--goals", track), word)


def test_a_model_without_targets_is_told_what_to_give(tmp_path):
    (tmp_path / "r.urdf").write_text('<robot name="r"><link name="a"/></robot>')
    for model in (tmp_path / "r.urdf", "arm7"):
        ran = run("animate", model)
        assert (ran.code, "--goals" in ran.err) == (2, True)
        assert_refused(run("animate", model, "--foot-lock"), "no motion", "--goals, --follow or --points")
        assert_refused(run("render", model, "-o", tmp_path / "a.gif"), "no motion", "synovia animate")
        assert_refused(run("plot", model, "-o", tmp_path / "a.png"), "no motion", "--reach JOINT")


def test_a_clip_that_misses_its_goals_is_never_good(tmp_path):
    far = tmp_path / "far.toml"
    goal = 'joint = "left_hand"\nkeys = [{ time = 0, position = [5, 1, 0] }, { time = 1, position = [5, 1, 1] }]'
    far.write_text(f'schema = "synovia.track/1"\nfps = 10\n[[goals]]\n{goal}\n')
    missed = run("animate", "humanoid", "--goals", far, "--json")
    assert missed.code == 1
    judgement = missed.data["judgement"]
    assert judgement["verdict"] == "failed"
    assert any(one["cause"] == "missed" and len(one["frames"]) == 11 for one in judgement["findings"])
    assert "verdict: failed" in run("animate", "humanoid", "--goals", far).out


def test_options_that_do_not_go_together(track):
    assert run("animate", "arm7").code == 2
    assert run("animate", "arm7", "--goals", track, "--follow", "clip.bvh").code == 2
    assert run("animate", "arm7", "--points", "points.csv", "--goals", track).code == 2
    assert run("animate", "arm7", "--points", "points.csv", "--velocity", "2").code == 2
    assert run("animate", "arm7", "--goals", track, "--velocity", "fast").code == 2


@pytest.mark.compiled
def test_velocities_starts_and_jobs(track):
    """The same report for any number of threads; a joint that may not move fast makes frames late."""
    words = (
        "animate",
        "arm7",
        "--goals",
        track,
        "--root",
        "fixed",
        "--candidates",
        "3",
        "--velocity",
        "joint1=0.05",
        "--json",
    )
    one, two = (run(*words, "--jobs", jobs) for jobs in (1, 2))
    assert one.code == two.code == 1
    assert one.data == two.data
    assert one.data["track"]["missed"]
    assert one.data["track"]["late"] == one.data["track"]["missed"]
    assert " late: --velocity limits the speed of the joints" in run(*words[:-1]).out


def test_compiling_is_told_once_and_only_when_it_takes_long(monkeypatch):
    """Records of the library's logger, as the compiler makes them; at a terminal or not."""
    kernels, stream = logging.getLogger("synovia.kernels"), io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    for patience, said in ((300.0, False), (0.05, True)):
        monkeypatch.setattr("synovia.cli.progress._COMPILING", patience)
        with CompileNotice():
            for _ in range(2):
                kernels.info("compiling", extra={"compiling": True, "solver": "fabrik", "seconds": 16.0})
                if said:
                    until(lambda: stream.getvalue().endswith("\n"), "it was not said")
                kernels.info("compiled", extra={"compiling": False, "solver": "fabrik", "seconds": 15.2})
            assert stream.getvalue() == (compiling_text("fabrik", 16.0) + "\n") * said
    kernels.info("compiling", extra={"compiling": True})
    assert not kernels.handlers
    assert stream.getvalue().count("doctor --warm") == 1
    assert "fabrik (about 16 s)" in stream.getvalue()


def test_every_kernel_that_takes_long_is_told_with_its_own_time(monkeypatch):
    """The time of the first one alone would promise too much."""
    kernels, stream = logging.getLogger("synovia.kernels"), io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr("synovia.cli.progress._COMPILING", 0.05)
    with CompileNotice():
        for solver, seconds in (("lm", 10.0), ("the verdict on a miss", 11.0)):
            kernels.info("compiling", extra={"compiling": True, "solver": solver, "seconds": seconds})
            until(lambda solver=solver: f"{solver} (about" in stream.getvalue(), "it was not said")
            kernels.info("compiled", extra={"compiling": False, "solver": solver, "seconds": seconds})
    first, second = stream.getvalue().splitlines()
    assert first == compiling_text("lm", 10.0)
    assert second == "Compiling the verdict on a miss (about 11 s)."


def test_at_a_terminal_a_line_counts_the_seconds_of_compiling_and_goes(monkeypatch):
    kernels, stream = logging.getLogger("synovia.kernels"), io.StringIO()
    stream.isatty = lambda: True
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr("synovia.cli.progress._COMPILING", 0.01)
    monkeypatch.setattr("synovia.cli.progress._BRIEF", 0.01)
    monkeypatch.setattr("synovia.cli.progress._TICK", 0.01)
    with CompileNotice():
        for solver, seconds in (("fabrik", 16.0), ("odd", None)):
            kernels.info("compiling", extra={"compiling": True, "solver": solver, "seconds": seconds})
            until(lambda solver=solver: f"compiling {solver} (0 s so far" in stream.getvalue())
            kernels.info("compiled", extra={"compiling": False, "solver": solver, "seconds": 1.0})
    told = stream.getvalue()
    assert "\r\x1b[2Kcompiling fabrik (0 s so far, about 16 s)" in told
    assert "\r\x1b[2Kcompiling odd (0 s so far)" in told
    assert told.endswith("\r\x1b[2K")
    assert told.count("\n") == told.count("doctor --warm") == 1


def test_a_bar_tells_rate_and_time_left(monkeypatch):
    """At a terminal, after a while; elsewhere nothing is written."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr("synovia.cli.progress._PATIENCE", 0.0)
    for tty in (True, False):
        stream = io.StringIO()
        stream.isatty = lambda tty=tty: tty
        monkeypatch.setattr("sys.stderr", stream)
        with Bar("following", count=200) as bar:
            bar(50, 100)
            time.sleep(0.01)
            bar(0.75, text="fitting")
            bar(1.0)
        text = stream.getvalue()
        assert ("frames/s" in text, "100%" in text, "fitting" in text, ":" in text) == (tty,) * 4


def test_points_in_files(tmp_path):
    """CSV and archives say the same; gaps and confidence are read, and joints can be chosen and renamed."""
    path, archive = tmp_path / "points.csv", tmp_path / "points.npz"
    path.write_text("time,a.x,a.y,a.z,b.x,b.y,b.z,b.confidence\n0,1,2,3,4,5,6,0.5\n0.1,,2,3,nan,nan,nan,0\n")
    points = read_points(path)
    assert points.joints == ["a", "b"]
    assert points.fps == pytest.approx(10)
    np.testing.assert_array_equal(points.positions[:, 0], [[1, 2, 3], [np.nan, 2, 3]])
    np.testing.assert_array_equal(points.confidence, [[1, 0.5], [1, 0]])
    chosen = points.chosen({"hand": "b"}, path)
    assert (chosen.joints, chosen.positions.shape, chosen.confidence.tolist()) == (["hand"], (2, 1, 3), [[0.5], [0.0]])
    np.savez(archive, positions=points.positions, joints=points.joints, confidence=points.confidence, fps=10.0)
    again = read_points(archive)
    np.testing.assert_array_equal(again.positions, points.positions)
    np.testing.assert_array_equal(again.confidence, points.confidence)
    assert (again.joints, again.fps) == (["a", "b"], 10.0)
    np.savez(archive, positions=points.positions)
    assert read_points(archive).joints is None
    assert read_points(archive).fps is None
    assert holds_points(archive)
    assert not holds_points(tmp_path / "walk.bvh")
    with pytest.raises(UnknownNameError, match="'a', 'b'"):
        points.chosen({"hand": "c"}, path)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("a.x,a.y,a.z\n1,2,3\n", "first column"),
        ("time,a.x,a.y\n0,1,2\n", "a.z"),
        ("time,a.x,a.y,a.z,a.x\n0,1,2,3,4\n", "is repeated"),
        ("time,a.x,a.y,a.z\n0,1,2\n", "line 2"),
        ("time,a.x,a.y,a.z\n0,1,2,3\n0,1,2,3\n", "increase"),
        ("time,tool.x,tool.y,tool.z\n", "no point was seen"),
        ("time,tol.x,tol.y,tol.z\n0,1,2,3\n", "tool"),
    ],
)
def test_points_that_cannot_be_used_are_refused(tmp_path, text, word):
    path = tmp_path / "points.csv"
    path.write_text(text)
    assert_refused(run("animate", "arm7", "--points", path), word)


@pytest.mark.parametrize(
    ("arrays", "word"),
    [
        ({"positions": np.ones((5, 3))}, "(T, K, 3)"),
        ({"positions": np.array(3.0)}, "(T, K, 3)"),
        ({"positions": np.ones((5, 2, 3)), "joints": np.array(["tool"])}, "joints has the wrong shape"),
        ({"positions": np.ones((5, 1, 3)), "confidence": np.ones(4)}, "confidence has the wrong shape"),
        ({"positions": np.ones((5, 1, 3)), "offsets": np.ones((2, 3))}, "offsets has the wrong shape"),
        ({"positions": np.ones((5, 2, 3))}, "expected 11, one for each joint"),
    ],
)
def test_arrays_of_points_that_cannot_be_used_are_refused(tmp_path, arrays, word):
    path = tmp_path / "points.npz"
    np.savez(path, **arrays)
    assert_refused(run("animate", "arm7", "--points", path), word)
    if len(arrays) == 1:
        np.save(path.with_suffix(".npy"), arrays["positions"])
        assert_refused(run("animate", "arm7", "--points", path.with_suffix(".npy")), word)


@pytest.mark.compiled
def test_an_array_of_points_names_all_joints_in_their_order(tmp_path):
    arm = sy.bundled("arm7")
    path, out = tmp_path / "points.npy", tmp_path / "out.bvh"
    np.save(path, [arm.random_pose(3).positions] * 4)
    assert run("animate", "arm7", "--points", path, "-o", out).code in (0, 1)
    assert len(sy.load_motion(out)) == 4


@pytest.mark.compiled
def test_a_body_passes_through_points(tmp_path):
    """From a clip's joints under other names, through a CSV, and straight from the clip."""
    arm = sy.Skeleton.chain([(0, 0, 0), (0, 1, 0), (0.5, 1.5, 0), (0.5, 2, 0.5)])
    q = np.linspace(arm.random_pose(0).q, arm.random_pose(1).q, 8)
    q = q.reshape(8, -1, 4)
    clip = sy.Motion(arm, (q / np.linalg.norm(q, axis=2, keepdims=True)).reshape(8, -1), 24.0)
    source, model, table, out = (tmp_path / name for name in ("clip.npz", "arm.toml", "points.csv", "out.npz"))
    sy.save_motion(clip, source)
    sy.formats.write_skeleton(arm, model)
    names = arm.joint_names
    lines = ["time," + ",".join(f"p{k}.{axis}" for k in range(len(names)) for axis in "xyz")]
    for t, places in zip(clip.times, clip.positions(), strict=True):
        lines.append(",".join(map(repr, [float(t), *places.ravel().tolist()])))
    table.write_text("\n".join(lines))
    joints = ",".join(f"{name}=p{k}" for k, name in enumerate(names))
    for points, more in ((table, ("--joints", joints)), (source, ())):
        ran = run("animate", model, "--points", points, *more, "-o", out, "--json", "--force")
        assert ran.code == 0, ran
        assert ran.data["fit"]["p99_error"] < 1e-3
        assert ran.data["fps"] == pytest.approx(24)
        np.testing.assert_allclose(sy.load_motion(out).positions()[:, -4:], clip.positions(), atol=2e-3)


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize("ending", [".csv", ".tsv"])
def test_a_folder_with_one_table_of_points_gives_what_the_table_gives(tmp_path, ending):
    arm = sy.bundled("arm7")
    between = "," if ending == ".csv" else "\t"
    rows = [["time", *(f"{name}.{axis}" for name in arm.frame_names for axis in "xyz")]]
    for frame in range(4):
        places = arm.random_pose(frame).positions.ravel().tolist()
        rows.append([repr(frame / 10), *map(repr, places)])
    (tmp_path / "points").mkdir()
    table = tmp_path / "points" / f"a{ending}"
    table.write_text("\n".join(between.join(row) for row in rows))
    alone, made = tmp_path / "alone.bvh", tmp_path / "made"
    assert run("animate", "arm7", "--points", table, "-o", alone).code in (0, 1)
    ran = run("animate", "arm7", "--points", table.parent, "-o", made, "--format", "bvh", "--jobs", "1")
    assert ran.code in (0, 1), ran
    assert (made / "a.bvh").read_bytes() == alone.read_bytes()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")
def test_an_interruption_leaves_the_old_or_the_new_file(tmp_path):
    """At random moments of writing; nothing else is left in the folder."""
    path = tmp_path / "clip.bvh"
    contents = [bytes([letter]) * 200_000 for letter in b"ab"]
    path.write_bytes(contents[0])
    rng = np.random.default_rng(0)

    def interrupt(number, frame):
        raise KeyboardInterrupt

    before, tracer = signal.signal(signal.SIGALRM, interrupt), sys.gettrace()
    sys.settrace(None)  # an interruption inside coverage's own lock would leave it locked
    try:
        for k in range(60):
            try:
                signal.setitimer(signal.ITIMER_REAL, float(rng.uniform(1e-5, 2e-3)))
                write_bytes(path, contents[k % 2], force=True)
                signal.setitimer(signal.ITIMER_REAL, 0.0)
            except KeyboardInterrupt:
                pass
            assert path.read_bytes() in contents
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
        sys.settrace(tracer)
    assert len(list(tmp_path.iterdir())) <= 2  # a file whose name was not known yet may stay
