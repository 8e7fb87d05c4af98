"""Learned starts: solves without a start begin at them, and nothing else changes."""

import dataclasses
import io
import zipfile

import numpy as np
import pytest

import synovia as sy
from cli_runs import assert_refused, run
from synovia.errors import FileError, FormatError, InputError, SynoviaError, UnsupportedError
from synovia.learning import LEAF, divide

pytestmark = (
    pytest.mark.compiled
)  # learning tries thousands of solves; ``test_propose`` has the kernels as plain Python
ARM, GOAL = sy.bundled("arm7"), sy.PoseGoal("tool")
BODY = sy.bundled("humanoid")
HANDS = [sy.PositionGoal("left_hand"), sy.PositionGoal("right_hand")]
FINE = (1e-6, 1e-6)


@pytest.fixture(scope="module")
def starts():
    """Return a few starts of the arm."""
    return sy.learn_starts(ARM, GOAL, samples=2048, threads=1)


@pytest.fixture(scope="module")
def targets():
    """Return targets that the arm reaches, (N, 4, 4)."""
    return np.stack([ARM.random_pose(10_000 + k).transform("tool") for k in range(60)])


def problems(starts, solver="lm"):
    """Return the problem with starts and without."""
    return [sy.IK(ARM, GOAL, solver, tolerance=FINE, starts=one) for one in (starts, None)]


def test_solves_take_fewer_steps_and_attempts(starts, targets):
    with_starts, without = (ik.solve_many(targets) for ik in problems(starts))
    assert with_starts.reached.all()
    assert with_starts.steps.mean() < 0.6 * without.steps.mean()
    assert (with_starts.attempts == 1).mean() > (without.attempts == 1).mean() + 0.2
    for q in with_starts.q:
        pose = sy.Pose(ARM, q)
        assert np.array_equal(pose.inside, pose.values[None])


@pytest.mark.parametrize("solver", ["lm", "dls", "full-body", "pinv"])
def test_one_by_one_as_in_a_batch(starts, targets, solver):
    ik = sy.IK(ARM, GOAL, solver, starts=starts)
    many = ik.solve_many(targets[:8], threads=2)
    for k, target in enumerate(targets[:8]):
        one = ik.solve(target)
        assert np.array_equal(one.q, many.q[k])
        assert one.reached


def test_a_given_start_changes_nothing(starts, targets):
    learned, plain = problems(starts)
    start = ARM.random_pose(3)
    for target in targets[:5]:
        a, b = (ik.solve(target, start) for ik in (learned, plain))
        assert np.array_equal(a.q, b.q)
        assert (a.status, a.steps, a.attempts) == (b.status, b.steps, b.attempts)
        a, b = (ik.solve_many(target[None], "rest") for ik in (learned, plain))
        assert np.array_equal(a.q, b.q)


@pytest.mark.parametrize("place", [(3.0, 0.0, 0.5), (0.0, 0.0, 0.05), (0.0, 0.0, 1.6), (0.9, 0.0, 0.9)])
def test_a_miss_has_the_same_status(starts, place):
    target = np.eye(4)
    target[:3, 3] = place
    a, b = (ik.solve(target) for ik in problems(starts))
    assert a.status == b.status
    assert abs(a.errors[0].position - b.errors[0].position) < 0.01


def test_simd_lanes_begin_there_too(starts, targets):
    learned, plain = (ik.solve_many(targets, simd=True) for ik in problems(starts))
    assert learned.reached.all()
    assert learned.steps.mean() < 0.7 * plain.steps.mean()


def test_a_track_restarts_there(starts, targets):
    learned, plain = problems(starts)
    frames = np.stack([targets[0], targets[0], targets[1], targets[1]])  # a jump, after which most frames restart
    track = learned.track(frames)
    assert track.reached.all()
    first = [ik.track(frames[:1], start=ARM.rest_pose()).q for ik in (learned, plain)]
    assert np.abs(first[0] - first[1]).max() < 1e-9 or track.reached[0]


def test_the_same_seed_gives_the_same_file(starts, tmp_path):
    again = sy.learn_starts(ARM, GOAL, samples=2048, threads=2)
    starts.save(tmp_path / "a.npz")
    again.save(tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    other = sy.learn_starts(ARM, GOAL, samples=2048, seed=1)
    assert not np.array_equal(other.rows, starts.rows)
    assert other.key == starts.key


def test_saved_starts_are_the_same(starts, targets, tmp_path):
    starts.save(tmp_path / "arm.npz")
    with pytest.raises(FileError, match="exists"):
        starts.save(tmp_path / "arm.npz")
    with pytest.raises(FormatError, match=r"\.npz"):
        starts.save(tmp_path / "arm.json")
    found = sy.formats.load_starts(tmp_path / "arm.npz")
    assert repr(found) == repr(starts)
    assert found.key == starts.key
    a, b = (sy.IK(ARM, GOAL, "lm", starts=one).solve_many(targets[:5]).q for one in (found, starts))
    assert np.array_equal(a, b)
    with zipfile.ZipFile(tmp_path / "arm.npz") as archive:
        assert not any(b"pickle" in archive.read(name)[:200] for name in archive.namelist())


@pytest.mark.parametrize(
    ("skeleton", "goals", "said"),
    [
        (ARM, sy.PositionGoal("tool"), "goals differ"),
        (ARM, sy.PoseGoal("joint5"), "goals differ"),
        (ARM, sy.PoseGoal("tool", offset=(0.0, 0.0, 0.1)), "place of 'pose of tool'"),
        (ARM.with_limits({"joint3": (-1.0, 1.0)}), GOAL, "limits of 'joint3'"),
        (BODY, HANDS, "goals differ"),
        (ARM.with_limits({"joint4": (-1.0, -1.0)}), GOAL, "limits of 'joint4'|'joint4' does not move"),
    ],
)
def test_other_problems_are_refused(starts, skeleton, goals, said):
    with pytest.raises(InputError, match=said) as refused:
        sy.IK(skeleton, goals, "lm", starts=starts)
    assert "learn_starts" in str(refused.value)


def longer(rest):
    """Return the transform of a joint that is a centimetre farther away."""
    out = np.array(rest)
    out[:3, 3] += (0.0, 0.0, 0.01)
    return out


def test_a_longer_link_is_refused(starts):
    joints = [
        dataclasses.replace(joint, rest=longer(joint.rest)) if joint.name == "joint5" else joint for joint in ARM.joints
    ]
    with pytest.raises(InputError, match="place of 'joint5'"):
        sy.IK(sy.Skeleton(joints, name="arm7"), GOAL, "lm", starts=starts)


@pytest.mark.parametrize(
    ("skeleton", "goals", "said"),
    [
        (BODY, [sy.CenterOfMassGoal((0.0, 1.0, 0.0))], "PositionGoal, RotationGoal or PoseGoal"),
        (
            BODY,
            [sy.PositionGoal(row) for row in ("left_hand", "right_hand", "left_foot", "right_foot", "head")],
            "four|4",
        ),
    ],
)
def test_what_cannot_be_learned(skeleton, goals, said):
    with pytest.raises(UnsupportedError, match=said):
        sy.learn_starts(skeleton, goals, samples=64)


@pytest.mark.parametrize("value", [0, 1.5, "many", 2**30])
def test_bad_numbers_of_samples(value):
    with pytest.raises(InputError, match="samples"):
        sy.learn_starts(ARM, GOAL, samples=value)


def test_closed_forms_have_no_start(starts):
    with pytest.raises(UnsupportedError, match="closed form"):
        sy.IK(ARM, GOAL, "segments", starts=starts)
    with pytest.raises(InputError, match="starts"):
        sy.IK(ARM, GOAL, "lm", starts="arm.npz")


def test_damaged_files(starts, tmp_path):
    starts.save(tmp_path / "arm.npz")
    data = (tmp_path / "arm.npz").read_bytes()
    rng = np.random.default_rng(0)
    path = tmp_path / "damaged.npz"
    for k in range(60):
        broken = bytearray(data[: rng.integers(len(data))] if k % 3 == 0 else data)
        for _ in range(rng.integers(1, 20)):
            if broken:
                broken[rng.integers(len(broken))] = rng.integers(256)
        path.write_bytes(broken)
        said = ""
        try:
            sy.formats.load_starts(path)
        except SynoviaError as error:
            said = str(error)
        assert not said or str(path) in said


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("borders", lambda a: a[:-1], "power of two"),
        ("features", lambda a: a + np.uint8(200), "feature"),
        ("counts", lambda a: a + np.uint8(1), "poses"),
        ("rows", lambda a: a[:, :-1], "numbers each"),
        ("rows", lambda a: a * np.float32(np.nan), "finite"),
        ("limits", lambda a: a + 1.0, "key"),
        ("schema", lambda a: np.array("synovia.motion/1"), "learned starts of this version"),
        ("rows", lambda a: a.astype(np.float64), "float32"),
    ],
)
def test_files_that_do_not_fit_together(starts, tmp_path, name, change, said):
    starts.save(tmp_path / "arm.npz")
    with np.load(tmp_path / "arm.npz") as archive:
        content = {key: archive[key] for key in archive.files}
    content[name] = change(content[name])
    memory = io.BytesIO()
    np.savez(memory, **content)
    (tmp_path / "other.npz").write_bytes(memory.getvalue())
    with pytest.raises(FormatError, match=said):
        sy.formats.load_starts(tmp_path / "other.npz")


def test_two_hands_of_a_body():
    starts = sy.learn_starts(BODY, HANDS, samples=4096)
    learned, plain = (sy.IK(BODY, HANDS, "full-body", starts=one) for one in (starts, None))
    wanted = [BODY.random_pose(500 + k) for k in range(30)]
    given = {name: np.stack([pose.position(name) for pose in wanted]) for name in ("left_hand", "right_hand")}
    a, b = learned.solve_many(given), plain.solve_many(given)
    assert a.reached.sum() >= b.reached.sum()
    assert a.steps.mean() < b.steps.mean()


def test_leaves_hold_equal_shares():
    features = np.random.default_rng(0).random((8 * LEAF, 3))
    order, axes, borders = divide(features, 8)
    assert sorted(order.ravel().tolist()) == list(range(8 * LEAF))
    for leaf in range(8):  # every sample goes down to its own leaf
        for sample in order[leaf]:
            node = 0
            while node < 7:
                node = 2 * node + 1 + int(features[sample, axes[node]] > borders[node])
            assert node - 7 == leaf


def test_a_copy_keeps_them(starts, targets):
    import pickle

    ik = problems(starts)[0]
    again = pickle.loads(pickle.dumps(ik))
    assert np.array_equal(again.solve(targets[0]).q, ik.solve(targets[0]).q)
    assert ik.problem.with_solver(sy.DampedLeastSquares()).starts is starts


def test_on_the_command_line(tmp_path):
    file = tmp_path / "arm.npz"
    learned = run("learn", "arm7", "-o", file, "--position", "--samples", 2048, "--json")
    assert learned.code == 0
    assert learned.data["schema"] == "synovia.starts-learned/1"
    assert learned.data["goals"] == ["position of tool"]
    assert_refused(run("learn", "arm7", "-o", file), "exists")
    solved = run("solve", "arm7", "-t", "tool=0.4,0.1,0.5", "--starts", file, "--json")
    assert (solved.code, solved.data["status"]) == (0, "REACHED")
    assert_refused(run("solve", "arm7", "-t", "joint5=0.1,0.1,0.5", "--starts", file), "goals differ")
    assert_refused(run("solve", "arm7", "-t", "tool=0.4,0.1,0.5", "--starts", tmp_path / "none.npz"), "none.npz")
    (tmp_path / "t.csv").write_text("tool.x,tool.y,tool.z\n0.4,0.1,0.5\n0.3,0.2,0.6\n", encoding="utf-8")
    table = run("solve", "arm7", "--targets", tmp_path / "t.csv", "--starts", file, "-o", tmp_path / "a.csv")
    assert table.code == 0
    bench = run("bench", "arm7", "--starts", file, "--solver", "lm", "--problems", 5, "--json")
    assert [row["solver"] for row in bench.data["solvers"]] == ["lm", "lm + starts"]


def test_plot(starts, tmp_path):
    pytest.importorskip("matplotlib")
    ik = sy.IK(ARM, GOAL, "lm", starts=starts)
    sy.plots.plot_starts(ik, tmp_path / "starts.png")
    assert (tmp_path / "starts.png").stat().st_size > 10_000
    with pytest.raises(InputError, match="no starts"):
        sy.plots.plot_starts(sy.IK(ARM, GOAL), tmp_path / "none.png")
