"""Joint trajectories of ROS and tables with velocities: fields, units, what independent parsers and MuJoCo read."""

import csv
import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import synovia as sy
from synovia.model.clip_tools.derivatives import accelerations, velocities
from trees import random_tree

ARM = sy.bundled("arm7")


def swing(skeleton, seconds=2.0, fps=50.0, seed=3):
    """Return a motion from rest to a random pose, which begins and ends at rest."""
    share = np.linspace(0, 1, int(seconds * fps) + 1)[:, None]
    share = share**3 * (10 - 15 * share + 6 * share**2)
    ends = skeleton.rest_pose().q, skeleton.random_pose(seed).q
    return sy.Motion(skeleton, (1 - share) * ends[0] + share * ends[1], fps)


@pytest.mark.parametrize("ending", ["json", "yaml"])
def test_points_are_those_of_the_message(tmp_path, ending):
    yaml = pytest.importorskip("yaml") if ending == "yaml" else None
    motion, path = swing(ARM), tmp_path / f"swing.trajectory.{ending}"
    sy.save_motion(motion, path, verify=True)
    content = yaml.safe_load(path.read_text()) if yaml else json.loads(path.read_text())
    assert set(content) == {"header", "joint_names", "points"}
    assert content["header"] == {"stamp": {"sec": 0, "nanosec": 0}, "frame_id": ""}
    assert content["joint_names"] == list(ARM.dof_names)
    fields = {"positions", "velocities", "accelerations", "effort", "time_from_start"}
    assert all(set(point) == fields for point in content["points"])
    table = {name: np.array([point[name] for point in content["points"]]) for name in FILLED}
    assert all(values.dtype == np.float64 for values in table.values())  # YAML reads 1e-05 as text
    assert np.array_equal(table["positions"], motion.q)
    times = [(point["time_from_start"]["sec"], point["time_from_start"]["nanosec"]) for point in content["points"]]
    assert all(0 <= nano < 10**9 for _, nano in times)
    assert np.allclose([sec + nano * 1e-9 for sec, nano in times], motion.times, atol=1e-9)
    t = motion.times / motion.times[-1]
    exact = (motion.q[-1] - motion.q[0]) * (30 * t**2 * (1 - t) ** 2)[:, None] / motion.times[-1]
    assert np.abs(table["velocities"] - exact).max() < 2e-3
    assert not table["velocities"][-1].any()
    assert not table["accelerations"][-1].any()


FILLED = ("positions", "velocities", "accelerations")


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**31), st.floats(1.0, 500.0))
def test_velocities_are_never_above_the_differences(seed, fps):
    rng = np.random.default_rng(seed)
    body = random_tree(rng, 7, free=bool(rng.integers(2)))
    motion = sy.Motion(body, [body.random_pose(k).q for k in range(4)], fps)
    rates, changes = velocities(motion), accelerations(motion)
    assert rates.shape == changes.shape == (4, body.nv)
    for row, joint in enumerate(body.joints):
        first = body.dof_columns[row][0]
        if joint.kind in (sy.Kind.HINGE, sy.Kind.SLIDE) and joint.mimic is None:
            values = motion.q[:, body.q_slice(row).start]
            steps = np.diff(values) * fps
            assert np.abs(rates[:, first]).max() <= np.abs(steps).max() * (1 + 1e-12)
            assert changes[1, first] == pytest.approx((steps[1] - steps[0]) * fps)
        if joint.kind is sy.Kind.BALL:  # SciPy's rotation vectors
            turns = sy.Rotation.from_quat(motion.q[:, body.q_slice(row)])
            steps = (turns[:-1].inv() * turns[1:]).as_rotvec() * fps
            between = np.sort(steps[:2], axis=0)
            assert (rates[1, first : first + 3] >= between[0] - 1e-9 * fps).all()
            assert (rates[1, first : first + 3] <= between[1] + 1e-9 * fps).all()


def test_rates_of_a_cubic_are_exact():
    """A controller that interpolates by polynomials of the fifth degree then moves with the jerk of the clip."""
    t = np.arange(12) / 50
    body = sy.Skeleton([sy.Joint("turn", kind=sy.Kind.HINGE, axis=(0, 0, 1))])
    motion = sy.Motion(body, (0.2 + 0.3 * t + 0.5 * t**2 + 4.0 * t**3)[:, None], 50)
    assert np.allclose(velocities(motion)[:-1, 0], (0.3 + t + 12.0 * t**2)[:-1], atol=1e-9)
    assert np.allclose(accelerations(motion)[:-1, 0], (1.0 + 24.0 * t)[:-1], atol=1e-9)


def test_a_table_with_rates_reads_back(tmp_path):
    body = sy.bundled("humanoid")
    motion = sy.Motion(body, [body.random_pose(k).q for k in range(4)], 30.0)
    path = tmp_path / "clip.rates.csv"
    sy.save_motion(motion, path, verify=True)
    with path.open() as file:
        rows = list(csv.reader(file))
    assert len(rows[0]) == 1 + body.nq + 2 * body.nv
    at = rows[0].index("spine.rx.velocity")
    found = [float(row[at]) for row in rows[1:]]
    assert np.allclose(found, velocities(motion)[:, body.dof_names.index("spine.rx")])
    again = sy.load_motion(path, skeleton=body)
    assert np.array_equal(again.q, motion.q)
    assert again.fps == 30.0
    path.write_text(path.read_text().replace("spine.rx.velocity", "spin.rx.velocity"))
    with pytest.raises(sy.errors.FormatError, match=r"spin\.rx\.velocity"):
        sy.load_motion(path, skeleton=body)


def test_metres_for_slides_and_no_mimic_joints(tmp_path):
    rail = sy.Joint("rail", kind=sy.Kind.SLIDE, axis=(1, 0, 0), limit=sy.Interval(0, 500))
    turn = sy.Joint("turn", "rail", kind=sy.Kind.HINGE, axis=(0, 0, 1))
    other = sy.Joint("other", "turn", kind=sy.Kind.HINGE, axis=(0, 0, 1), mimic=sy.Mimic("turn", 2.0))
    body = sy.Skeleton([rail, turn, other], meters_per_unit=0.001)
    motion = sy.Motion(body, body.follow(np.array([[0, 0, 0], [100.0, 0.1, 0], [100.0, 0.1, 0], [100.0, 0.1, 0]])), 10)
    path = tmp_path / "a.trajectory.json"
    sy.save_motion(motion, path, verify=True)
    content = json.loads(path.read_text())
    assert content["joint_names"] == ["rail", "turn"]
    assert content["points"][1]["positions"] == [pytest.approx(0.1), 0.1]
    again = sy.load_motion(path, skeleton=body)
    assert np.allclose(again.q, motion.q)
    assert again.fps == 10.0


def test_a_clip_that_moves_at_its_end_is_named(tmp_path):
    motion = sy.Motion(ARM, np.linspace(ARM.rest_pose().q, ARM.random_pose(2).q, 20), 30)
    with pytest.warns(UserWarning, match="ends there with velocity 0"):
        sy.save_motion(motion, tmp_path / "a.trajectory.yaml")


def test_a_base_that_stands_elsewhere_is_named(tmp_path):
    body = ARM.with_root("free")
    q = np.zeros((3, body.nq))
    q[:, :7] = 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0
    with pytest.warns(UserWarning, match="leaves out 'root', whose values differ from rest"):
        sy.save_motion(sy.Motion(body, q, 30), tmp_path / "a.trajectory.yaml")


def test_a_body_that_moves_is_refused(tmp_path):
    body = sy.bundled("humanoid")
    motion = sy.Motion(body, [body.random_pose(k).q for k in range(3)], 30.0)
    with pytest.raises(sy.errors.UnsupportedError, match="cannot be in a joint trajectory"):
        sy.save_motion(motion, tmp_path / "a.trajectory.json")
    assert not list(tmp_path.iterdir())


def test_trajectories_of_others_are_read(tmp_path):
    yaml = pytest.importorskip("yaml")
    names = list(reversed(ARM.dof_names))
    values = np.array([ARM.random_pose(k).q for k in range(3)])
    points = [
        {"positions": row[::-1].tolist(), "time_from_start": {"secs": k // 2, "nsecs": (k % 2) * 500_000_000}}
        for k, row in enumerate(values)
    ]
    path = tmp_path / "other.trajectory.yaml"
    path.write_text(yaml.safe_dump({"joint_names": names, "points": points}))
    again = sy.load_motion(path, skeleton=ARM)
    assert np.allclose(again.q, values)
    assert again.fps == pytest.approx(2.0)
    (tmp_path / "plain.json").write_text(json.dumps({"joint_names": names, "points": points}))
    assert np.allclose(sy.load_motion(tmp_path / "plain.json", skeleton=ARM).q, values)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.pop("points"), "not a joint trajectory"),
        (lambda c: c.update(points=[]), "not a joint trajectory"),
        (lambda c: c.update(joint_names=["joint1", "elbow"]), "elbow"),
        (lambda c: c["points"][1].pop("positions"), r"points\[1\]"),
        (lambda c: c["points"][1].update(positions=[1.0]), r"points\[1\].*1 position"),
        (lambda c: c["points"][1].update(positions=["a"] * 7), r"points\[1\]"),
        (lambda c: c["points"][0].update(positions=[float("nan")] * 7), r"points\[0\]"),
        (lambda c: c["points"][0].update(time_from_start=None), r"points\[0\]"),
        (lambda c: c["points"].__setitem__(0, 3), r"points\[0\]"),
    ],
)
def test_damaged_files_end_in_one_error(tmp_path, change, message):
    path = tmp_path / "a.trajectory.json"
    sy.save_motion(swing(ARM), path)
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    with pytest.raises(sy.errors.FormatError, match=message):
        sy.load_motion(path, skeleton=ARM)


def test_the_command_line_writes_and_reads_them(tmp_path):
    sy.save_motion(swing(ARM), tmp_path / "swing.csv")
    sy.formats.write_skeleton(ARM, tmp_path / "arm.toml")
    words = ["convert", "swing.csv", "swing.trajectory.yaml", "--model", "arm.toml"]
    done = subprocess.run(
        [sys.executable, "-m", "synovia", *words], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    again = sy.load_motion(tmp_path / "swing.trajectory.yaml", skeleton=ARM)
    assert np.allclose(again.q, swing(ARM).q, atol=1e-12)


@pytest.mark.parametrize("ending", ["csv", "rates.csv", "trajectory.json", "trajectory.yaml"])
def test_a_file_has_the_joints_that_were_chosen_in_their_order(tmp_path, ending):
    motion, path = swing(ARM), tmp_path / f"two.{ending}"
    with pytest.warns(UserWarning, match="leaves out 'joint1', .*whose values change"):
        sy.save_motion(motion, path, joints=["joint5", "joint2"], verify=True)
    text = path.read_text()
    assert text.index("joint5") < text.index("joint2")
    assert "joint1" not in text
    back = sy.load_motion(path, skeleton=ARM)
    at = [ARM.q_slice(joint).start for joint in ("joint5", "joint2")]
    assert np.allclose(back.q[:, at], motion.q[:, at], atol=1e-12)
    assert np.array_equal(np.delete(back.q, at, axis=1), np.tile(np.delete(ARM.rest_q, at), (len(motion), 1)))


@pytest.mark.parametrize(
    ("name", "joints", "words"),
    [
        ("a.bvh", ["joint1"], "trajectory.json"),
        ("a.csv", "joint1", r"Did you mean \['joint1'\]"),
        ("a.csv", [], "one joint or more"),
        ("a.csv", ["tool"], "joints that move"),
        ("a.csv", ["joint1", "joint1"], "each joint once"),
        ("a.csv", ["joint9"], "Did you mean 'joint7'"),
    ],
)
def test_joints_that_no_file_can_have_are_named(tmp_path, name, joints, words):
    with pytest.raises((sy.InputError, sy.errors.UnknownNameError), match=words):
        sy.save_motion(swing(ARM), tmp_path / name, joints=joints)
    assert not list(tmp_path.iterdir())
