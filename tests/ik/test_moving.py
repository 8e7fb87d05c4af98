"""``moving=``: only some joints may move, all others keep their values bit for bit."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import synovia as sy

_ONE = np.eye(4) + np.outer((1, 0, 0, 0), (0, 0, 0, 1))  # one along x
BODIES = (*sy.skeletons.bundled_names(), "chain")
ARM = ["left_upper_arm", "left_lower_arm", "left_hand"]
ITERATING = ("lm", "dls", "pinv", "sdls", "transpose", "full-body", "fabrik", "ccd", "particles")


def body_of(name: str) -> sy.Skeleton:
    if name == "chain":
        return sy.Skeleton.chain([(0.05 * k * k, float(k), 0.0) for k in range(9)])
    return sy.bundled(name)


def problem(skeleton: sy.Skeleton, rng: np.random.Generator) -> tuple[int, list[int], sy.Pose, np.ndarray]:
    """Return the joint of a goal, the joints that may move, a start, and a target that these joints can reach."""
    tips = [row for row in range(len(skeleton)) if row not in set(skeleton.parents)]
    while True:
        tip = int(rng.choice(tips))
        above, row = [], skeleton.parents[tip]
        while row >= 0:
            joint = skeleton.joints[row]
            if joint.kind.name in ("HINGE", "SLIDE", "BALL") and joint.mimic is None:
                above.append(row)
            row = skeleton.parents[row]
        if len(above) >= 2:
            break
    some = sorted(rng.choice(above, int(rng.integers(2, len(above) + 1)), replace=False).tolist())
    start = skeleton.random_pose(int(rng.integers(2**31)))
    other = skeleton.random_pose(int(rng.integers(2**31)))
    q = np.array(start.q)
    for row in some:
        q[skeleton.q_slice(row)] = other.q[skeleton.q_slice(row)]
    return tip, some, start, sy.Pose(skeleton, skeleton.follow(q)).position(tip)


def followers(skeleton: sy.Skeleton, rows: list[int]) -> set[int]:
    found = set(rows)
    for _ in skeleton.joints:
        found |= {
            row for row, joint in enumerate(skeleton.joints)
            if joint.mimic is not None and skeleton.index(joint.mimic.leader) in found
        }  # fmt: skip
    return found


@pytest.mark.parametrize("solver", ITERATING)
@pytest.mark.parametrize("name", BODIES)
def test_the_others_keep_their_values_to_the_bit(name: str, solver: str) -> None:
    skeleton, reached = body_of(name), 0
    for seed in range(4):
        tip, some, start, target = problem(skeleton, np.random.default_rng([seed, len(name)]))
        try:
            ik = sy.IK(skeleton, sy.PositionGoal(tip, target), solver, moving=some)
        except sy.errors.UnsupportedError:
            assert solver in ("fabrik", "ccd", "particles", "transpose", "sdls")  # kinds of joints, as without moving=
            with pytest.raises(sy.errors.UnsupportedError):
                sy.IK(skeleton, sy.PositionGoal(tip, target), solver)
            continue
        assert ik.moving <= followers(skeleton, some)
        solution = ik.solve(start=start)
        reached += solution.reached
        for row in set(range(len(skeleton))) - followers(skeleton, some):
            at = skeleton.q_slice(row)
            np.testing.assert_array_equal(solution.q[at], start.inside[0, at])
    if solver in ("lm", "full-body"):
        assert reached >= 3


def test_a_solve_reaches_as_often_as_with_fixed_limits() -> None:
    skeleton = sy.bundled("arm7")
    with_moving = with_limits = 0
    for seed in range(40):
        tip, some, start, target = problem(skeleton, np.random.default_rng(seed))
        tolerance = (1e-4, 1e-3)
        fixed = {
            joint.name: (float(start.q[skeleton.q_slice(row)][0]),) * 2
            for row, joint in enumerate(skeleton.joints) if joint.kind.name == "HINGE" and row not in some
        }  # fmt: skip
        goal = sy.PositionGoal(tip, target)
        with_moving += sy.solve(skeleton, goal, start=start, tolerance=tolerance, moving=some).reached
        limited = skeleton.with_limits(fixed)
        with_limits += sy.solve(limited, goal, start=start.q, tolerance=tolerance).reached
    assert with_moving >= max(with_limits, 38)


@pytest.mark.parametrize("solver", ["two-bone", "segments"])
def test_closed_forms_take_a_limb_that_may_move(solver: str) -> None:
    body = sy.bundled("humanoid")
    wanted = sy.solve(body, sy.PositionGoal("left_hand", (0.4, 1.3, 0.3)), solver, moving=ARM)
    assert wanted.reached
    branches = sy.IK(body, sy.PositionGoal("left_hand", (0.4, 1.3, 0.3)), "segments", moving=ARM).branches()
    assert len(branches) >= 1


def test_the_trunk_moves_without_the_arm_and_a_track_is_smoothed_with_them() -> None:
    body = sy.bundled("humanoid")
    line = np.linspace((0.45, 1.2, 0.2), (0.45, 1.2, 0.35), 20)
    ik = sy.IK(body, sy.PositionGoal("left_hand"), moving=ARM)
    others = np.ones(body.nq, bool)
    for name in ARM:
        others[body.q_slice(name)] = False
    for options in ({}, {"smoothness": 0.05}, {"velocity": 1.0}, {"candidates": 2}):
        clip = ik.track(line, fps=30, **options)
        assert np.ptp(clip.q[:, others], axis=0).max() == 0.0
        assert np.ptp(clip.q, axis=0).max() > 0.05
    many = ik.solve_many(line)
    assert (many.q[:, others] == body.rest_q[others]).all()
    assert many.reached[:10].all()


def test_servo_and_other_problems_made_of_one_keep_it() -> None:
    body = sy.bundled("humanoid")
    ik = sy.IK(body, sy.PositionGoal("left_hand", (0.4, 1.3, 0.3)), "lm", moving=ARM)
    for other in (pickle.loads(pickle.dumps(ik)), copy.copy(ik), ik.problem.with_solver(sy.FullBody())):
        assert other.moving == ik.moving
        assert "moving=" in repr(other)
    servo = sy.Servo(ik, rate=60, velocity=2.0, acceleration=20.0)
    servo.reset()
    for _ in range(60):
        command = servo.step({"left_hand": (0.4, 1.3, 0.3)})
    assert command.reached
    moved = {name for name in body.joint_names if (command.q != body.rest_q)[body.q_slice(name)].any()}
    assert moved <= set(ARM)


def test_a_mimic_joint_means_its_leader() -> None:
    hinge = {"kind": sy.Kind.HINGE, "axis": (0.0, 0.0, 1.0)}
    finger = sy.Skeleton([
        sy.Joint("a", **hinge),
        sy.Joint("b", "a", rest=_ONE, **hinge),
        sy.Joint("c", "b", rest=_ONE, mimic=sy.Mimic("b", 0.5), **hinge),
        sy.Joint("tip", "c", rest=_ONE, tip=True),
    ])  # fmt: skip
    wanted = sy.Pose(finger, {"b": 0.8}).position("tip")
    for moving in (["b"], ["c"], ["b", "c"]):
        solution = sy.solve(finger, sy.PositionGoal("tip", wanted), "lm", moving=moving)
        assert solution.reached
        assert solution.pose["a"] == 0.0
        assert solution.pose["c"] == pytest.approx(0.5 * solution.pose["b"])


def test_a_free_root_moves_only_if_it_is_named() -> None:
    body = sy.bundled("humanoid")
    far = sy.PositionGoal("left_hand", (2.0, 1.3, 0.3))
    kept = sy.solve(body, far, root="free", moving=ARM)
    assert not kept.reached
    assert (kept.q[body.q_slice("hips")] == body.rest_q[body.q_slice("hips")]).all()
    moved = sy.solve(body, far, root="free", moving=["hips"])
    assert moved.reached
    assert {name for name in body.joint_names if (moved.q != body.rest_q)[body.q_slice(name)].any()} == {"hips"}
    arm = sy.bundled("arm7")
    ik = sy.IK(arm, sy.PositionGoal("tool", (3.0, 0.0, 0.5)), root="free", moving=["root"])
    assert ik.solve().reached


def test_a_miss_that_only_fixed_joints_cause_says_so() -> None:
    body = sy.bundled("humanoid")
    goal = sy.PositionGoal("left_hand", (0.6, 1.0, 0.6))
    missed = sy.solve(body, goal, moving=ARM)
    assert not missed.reached
    text = " ".join(missed.explain())
    assert "Only 'left_upper_arm', 'left_lower_arm', 'left_hand' may move. With all joints, the goals are met; " in text
    assert "'spine'" in text
    assert "root='free'" not in text
    away = " ".join(sy.solve(body, sy.PositionGoal("left_hand", (5.0, 1.0, 0.6)), moving=ARM).explain())
    assert "With all joints, the goals are missed too." in away
    none = " ".join(sy.solve(body, goal, "lm", moving=["head"]).explain())
    assert "no joint that may move moves 'left_hand'" in none


@pytest.mark.parametrize(
    ("moving", "words"),
    [
        ("left_hand", r"moving: expected the joints that may move, got 'left_hand'. moving=\['left_hand'\]"),
        ([], "moving: expected at least one joint, or None for all"),
        ([True], r"moving\[0\]: expected the name or row of a joint, got True"),
        (["left_han"], "no joint named 'left_han' in humanoid. Did you mean 'left_hand'"),
        (["left_fingertips"], "moving: expected at least one joint that can move"),
        (7, "moving: expected the joints that may move, got 7"),
        ([99], "99"),
    ],
)
def test_what_cannot_move_is_an_error(moving: object, words: str) -> None:
    with pytest.raises(sy.errors.SynoviaError, match=words):
        sy.IK(sy.bundled("humanoid"), sy.PositionGoal("left_hand"), moving=moving)  # type: ignore[arg-type]


# --- layers of edits ------------------------------------------------------------------------------------------------


def clip() -> sy.Motion:
    body = sy.bundled("humanoid").with_root("free")
    q = np.tile(body.rest_q, (40, 1))
    at = body.q_slice("right_upper_arm")
    q[:, at] = sy.Rotation.from_euler("x", np.linspace(0.0, 0.5, 40)[:, None]).as_quat()
    return sy.Motion(body, q, 30.0)


def moved_in(edited: sy.results.Edited, given: sy.Motion) -> set[str]:
    changed = (edited.motion.q != given.q).any(axis=0)
    return {name for name in given.skeleton.joint_names if changed[given.skeleton.q_slice(name)].any()}


def test_a_layer_moves_only_the_joints_that_may() -> None:
    motion = clip()
    forward = {"left_hand": (-0.2, -0.1, 0.2)}
    layer = sy.Layer(forward, frames=(10, 25), blend=6, relative=True)
    spine = sy.edit(motion, layer.replace(moving=["spine", "chest"]))
    assert moved_in(spine, motion) == {"spine", "chest"}
    arm = sy.edit(motion, layer.replace(moving=ARM))
    assert moved_in(arm, motion) == {"left_upper_arm", "left_lower_arm"}
    assert arm.reached.all()
    kept = sy.edit(motion, sy.Layer({"left_hand": (0.0, 0.0, 3.0)}, frames=(10, 25), relative=True, moving=ARM))
    assert moved_in(kept, motion) <= set(ARM)
    assert not kept.reached[10:26].any()


def test_keys_of_a_layer_move_their_own_joints() -> None:
    motion = clip()
    turned = sy.Layer(
        {"left_hand": (0.0, 0.1, 0.2)}, pose={12: {"head": sy.Rotation.from_euler("y", 0.3).as_quat()}},
        frames=(10, 25), relative=True, moving=ARM,
    )  # fmt: skip
    moved = moved_in(sy.edit(motion, turned), motion)
    assert {"left_upper_arm", "head"} <= moved <= {"left_upper_arm", "left_lower_arm", "head"}


def test_layer_files_keep_the_joints_that_may_move(tmp_path) -> None:
    layer = sy.Layer({"left_hand": (0.0, 0.1, 0.0)}, frames=(3, 6), relative=True, moving=ARM)
    assert "moving=" in repr(layer)
    sy.formats.write_layers(layer, tmp_path / "edit.toml")
    (again,) = sy.formats.read_layers(tmp_path / "edit.toml", sy.bundled("humanoid"))
    assert again.moving == tuple(ARM)
    text = (tmp_path / "edit.toml").read_text().replace('"left_hand"]', '"left_hond"]')
    (tmp_path / "odd.toml").write_text(text)
    with pytest.raises(sy.errors.FormatError, match=r"odd.toml: layers\[0\].*left_hond.*left_hand"):
        sy.formats.read_layers(tmp_path / "odd.toml", sy.bundled("humanoid"))
    with pytest.raises(sy.errors.UnknownNameError, match=r"layers\[0\].*left_hond"):
        sy.edit(clip(), layer.replace(moving=["left_hond"]))
    with pytest.raises(sy.errors.InputError, match="moving: expected at least one joint that can move"):
        sy.edit(clip(), layer.replace(moving=["left_fingertips"]))


def test_limits_of_joints_that_may_not_move_are_no_reason_for_a_miss() -> None:
    arm = sy.bundled("arm7")
    start = arm.rest_q.copy()
    start[arm.q_slice("joint4")] = arm.joints[arm.index("joint4")].limit.upper
    missed = sy.solve(arm, sy.PositionGoal("tool", (0.1, 0.6, 0.1)), start=start, moving=["joint5", "joint6"])
    assert missed.missed
    assert "joint4" in missed.active_limits
    text = " ".join(missed.explain())
    assert "'joint4' at a limit" not in text
    assert "At a limit: 'joint4'" not in text


# --- files and commands ---------------------------------------------------------------------------------------------


def test_goal_files_keep_the_joints_that_may_move(tmp_path) -> None:
    body, place = sy.bundled("humanoid"), tmp_path / "goals.toml"
    sy.write_goals([sy.PositionGoal("left_hand", (0.45, 1.2, 0.2))], place, moving=ARM)
    goals = sy.read_goals(place, body)
    assert tuple(goals.moving or ()) == tuple(ARM)
    ik = sy.IK(body, goals)
    assert {body.joint_names[row] for row in ik.moving} <= set(ARM)
    sy.write_goals(goals, tmp_path / "again.toml")
    assert (tmp_path / "again.toml").read_text() == place.read_text()
    assert sy.IK(body, goals, moving=["spine"]).problem.allowed == ("spine",)
    (tmp_path / "odd.toml").write_text(place.read_text().replace('"left_hand"]', '"left_hond"]'))
    with pytest.raises(sy.errors.FormatError, match=r"odd.toml: moving: .*left_hond.*left_hand"):
        sy.read_goals(tmp_path / "odd.toml", body)
    (tmp_path / "none.toml").write_text(
        'schema = "synovia.goals/1"\nmoving = []\n' + place.read_text().split("]\n", 1)[1]
    )
    with pytest.raises(sy.errors.FormatError, match="moving"):
        sy.read_goals(tmp_path / "none.toml")


def test_commands_move_only_the_joints_that_may(tmp_path) -> None:
    body = sy.bundled("humanoid")
    (tmp_path / "goals.toml").write_text(
        'schema = "synovia.goals/1"\nmoving = ["spine"]\n[[goals]]\nkind = "position"\njoint = "left_hand"\n'
        "position = [0.45, 1.2, 0.2]\n"
    )
    for moving, names in ((), {"spine"}), (ARM, {"left_upper_arm", "left_lower_arm"}):
        outcome = sy.jobs.SolvePose(goals=tmp_path / "goals.toml", moving=moving)("humanoid")
        q = outcome.result.pose.q
        assert {name for name in body.joint_names if (q != body.rest_q)[body.q_slice(name)].any()} == names
