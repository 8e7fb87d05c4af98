"""The model under the live page: no browser, no thread."""

import re
import threading
import tomllib
from pathlib import Path

import numpy as np
import pytest

import synovia as sy
from panels import settled
from synovia.comparison.race import race, trace
from synovia.draw.arcs import limit_arcs, range_lines
from synovia.draw.rods import build, from_z
from synovia.files.poses import load_pose
from synovia.ik.solution import GoalError, miss_text
from synovia.model.change import blend
from synovia.model.rooted import ROOTS, rooted, with_root_values, without_root_values
from synovia.viewer.editing.clip.play import sample
from synovia.viewer.editing.editor import kinds
from synovia.viewer.editing.engine import Engine, Frame
from synovia.viewer.editing.first_goals import add_goals, first_goals
from synovia.viewer.editing.limits import SpeedLimits
from synovia.viewer.editing.session import Session
from synovia.viewer.editing.state import State
from synovia.viewer.editing.undo import Undo
from synovia.viewer.editing.worker import SESSION, Background, Worker
from synovia.viewer.live import Start, opening
from synovia.viewer.page.saving import Files, Recording
from synovia.viewer.panel.body import from_sliders, ranges, to_sliders
from synovia.viewer.panel.why import _legend

GOOD = (0.35, 0.1, 0.7)  # reached from rest without a restart


def _arm(**options: object) -> Session:
    session = Session(sy.bundled("arm7"), **options)
    session.goals.add("position", "tool")
    session.history.mark_first()
    return session


def test_the_body_follows_an_eased_target() -> None:
    session = _arm()
    engine = Engine(session.state)
    session.goals.move(1, GOOD)
    first, moving = engine.step(1.0 / 60.0)
    away = np.linalg.norm(session.goals.editors[0].eased_position - GOOD)
    assert moving
    assert 0.05 < away < np.linalg.norm(first.pose.position("tool") - (0.1, 0.0, 0.822)) * 10
    frame = settled(session)
    assert frame.solution.reached
    np.testing.assert_allclose(frame.pose.position("tool"), GOOD, atol=1e-3)


def limited(frames: list[Frame], fps: float = 60.0) -> tuple[float, float]:
    """The highest velocity and acceleration of frames, from their joint values alone."""
    speeds = np.diff([frame.pose.q for frame in frames], axis=0) * fps
    return np.abs(speeds).max(), np.abs(np.diff(speeds, axis=0)).max() * fps


def test_within_speed_limits_the_body_is_late_and_arrives() -> None:
    session = _arm()
    session.solving.set_limits(SpeedLimits(on=True, velocity=1.0, acceleration=4.0))
    session.goals.move(1, GOOD)
    engine = Engine(session.state)
    frames, moving = [engine.step(1.0 / 60.0)[0]], True
    while moving:
        frame, moving = engine.step(1.0 / 60.0)
        frames.append(frame)
    early, last = frames[10], frames[-1]
    assert early.late
    assert early.state(early.editors[0]) == "quiet"
    assert early.following.lag.position > 0.05
    assert set(early.following.limited.values()) <= {"velocity", "acceleration"}
    assert max(frame.following.speeds["joint2"] for frame in frames) > 0.5
    assert not last.late
    assert last.solution.reached
    assert max(last.following.speeds.values()) == 0.0
    np.testing.assert_allclose(last.pose.position("tool"), GOOD, atol=1e-3)
    fastest, hardest = limited(frames)
    assert fastest <= 1.0 + 1e-9
    assert hardest <= 4.0 + 1e-6


def test_speed_limits_begin_anew_after_an_edit_of_the_pose_and_are_undone() -> None:
    session = _arm()
    session.solving.set_limits(SpeedLimits(on=True, velocity=1.0, acceleration=4.0))
    engine = Engine(session.state)
    session.goals.move(1, GOOD)
    for _ in range(20):
        engine.step(1.0 / 60.0)
    q = np.array(session.body.pose.q)
    q[0] += 1.0
    session.state.put(q)
    frame, _ = engine.step(1.0 / 60.0)
    np.testing.assert_allclose(frame.pose.q, q, atol=4.0 / 60.0**2 + 1e-9)
    session.history.undo()
    session.history.undo()
    assert not session.solving.limits.on
    assert engine.step(1.0 / 60.0)[0].following is None


def test_speed_limits_are_those_of_the_file_and_wait_where_a_clip_plays() -> None:
    ahead = np.eye(4)
    ahead[0, 3] = 0.5
    robot = sy.Skeleton([
        sy.Joint("turn", kind=sy.Kind.HINGE, axis=(0, 0, 1), velocity=2.0),
        sy.Joint("rail", "turn", kind=sy.Kind.SLIDE, axis=(1, 0, 0), rest=ahead),
        sy.Joint("tip", "rail", rest=ahead),
    ])  # fmt: skip
    limits = SpeedLimits(on=True, share=25.0, velocity=3.0)
    assert limits.velocities(robot, 1.0) == {0: 0.5, 1: 3.0 * robot.size}
    session = Session(robot)
    session.goals.add("position", "tip")
    session.solving.set_limits(limits)
    engine = Engine(session.state)
    session.goals.move(1, (0.0, 1.0, 0.0))
    turned = [engine.step(1.0 / 60.0)[0].pose["turn"] for _ in range(60)]
    assert np.abs(np.diff(turned)).max() * 60.0 == pytest.approx(0.5)
    session.animation.new_clip(1.0)
    assert engine.step(1.0 / 60.0)[0].following is None


def test_feet_hold_while_a_body_follows_within_speed_limits() -> None:
    session = Session(sy.bundled("humanoid"), mode="free", solver=sy.FullBody(attempts=1, largest_move=0.1))
    for joint in ("left_foot", "right_foot"):
        session.goals.add("pose", joint)
    hand = session.goals.add("position", "left_hand")
    session.goals.change(hand.key, priority=1)
    session.solving.set_limits(SpeedLimits(on=True))
    engine = Engine(session.state)
    before = engine.step(1.0 / 60.0)[0].pose
    session.goals.move(hand.key, np.add(before.position("left_hand"), (-0.2, 0.2, 0.2)))
    for _ in range(120):
        frame, _ = engine.step(1.0 / 60.0)
        assert np.linalg.norm(frame.pose.position("left_foot") - before.position("left_foot")) < 2e-3
    assert np.linalg.norm(frame.pose.position("left_hand") - before.position("left_hand")) > 0.1


@pytest.mark.parametrize("values", [{"velocity": 0.0}, {"acceleration": np.nan}, {"jerk": -1.0}, {"share": 101.0}])
def test_speed_limits_that_cannot_be_used_are_refused(values: dict[str, float]) -> None:
    with pytest.raises(sy.InputError, match=next(iter(values))):
        SpeedLimits(**values)


def test_a_miss_is_told_and_a_goal_that_is_off_does_not_pull() -> None:
    session = _arm()
    session.goals.move(1, (5.0, 0.0, 0.5))
    frame = settled(session)
    assert frame.missed == {1}
    session.goals.change(1, enabled=False)
    frame = settled(session)
    assert frame.solution is None
    assert not frame.missed


def test_what_a_solver_cannot_honour_is_a_message() -> None:
    session = _arm()
    session.solving.set_solver("dls")
    session.goals.change(1, priority=3)
    frame = settled(session)
    assert "priorit" in frame.trouble
    session.goals.change(1, priority=0)
    assert settled(session).trouble == ""


@pytest.mark.parametrize(
    ("values", "word"), [({"weight": -1.0}, "weight"), ({"priority": -1}, "priority"), ({"kind": "nothing"}, "kind")]
)
def test_refused_values_change_nothing(values: dict, word: str) -> None:
    session = _arm()
    before = session.goals.editors[0].copy()
    with pytest.raises(sy.SynoviaError, match=word):
        session.goals.change(1, **values)
    assert session.goals.editors[0].weight == before.weight
    assert session.goals.editors[0].kind == before.kind


@pytest.mark.parametrize("place", [(np.nan, 0, 0), (np.inf, 0, 0), (1e12, 0, 0), (1, 2), "far"])
def test_targets_out_of_this_world_are_refused(place: object) -> None:
    session = _arm()
    before = session.goals.editors[0].position
    with pytest.raises(sy.SynoviaError):
        session.goals.move(1, place)
    assert session.goals.editors[0].position is before


def test_a_straight_limb_finds_the_way_to_bend() -> None:
    session = Session(sy.Skeleton.chain([(0, 0, 0), (0, 1, 0), (0, 2, 0)]))
    session.goals.add("position", "joint2")
    session.goals.move(1, (0.0, 1.4, 0.0))
    assert settled(session).solution.reached


def test_a_body_that_misses_costs_two_solves_a_step_and_comes_to_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    session = _arm()
    session.goals.add("position", "tool")
    session.goals.move(1, GOOD)
    session.goals.move(2, (0.35, 0.3, 0.7))
    solves: list[int] = []
    plain = sy.IK.solve
    monkeypatch.setattr(sy.IK, "solve", lambda ik, *given, **more: solves.append(1) or plain(ik, *given, **more))
    engine = Engine(session.state)
    for step in range(1, 200):
        frame, moving = engine.step(1.0 / 60.0)
        assert len(solves) <= 2 * step
        if not moving:
            break
    assert frame.missed == {1, 2}
    assert not moving
    place = frame.pose.position("tool")
    np.testing.assert_allclose(engine.step(1.0 / 60.0)[0].pose.position("tool"), place, atol=1e-3)


def test_a_page_at_rest_is_told_so_once_and_sleeps() -> None:
    session, background = _arm(), Background()
    frames: list[Frame] = []
    still = threading.Event()

    def listen(frame: Frame) -> None:
        frames.append(frame)
        if frame.still:
            still.set()

    worker = Worker(session.state, listen, background)
    assert still.wait(300.0)
    steps = worker.frames
    assert not any(frame.still for frame in frames[:-1])
    assert frames[-1].pose is frames[-2].pose
    still.clear()
    assert not still.wait(0.5)
    assert worker.frames == steps
    session.goals.move(1, GOOD)
    assert still.wait(300.0)
    assert frames[-1].solution.reached
    worker.stop()
    background.stop()
    assert background.running(SESSION) == 0


def test_undo_and_reset_bring_back_what_was() -> None:
    session = _arm()
    q = session.body.pose.q.copy()
    session.body.set_root("free")
    session.goals.add("pose", 3)
    bent = session.body.pose[4 + session.body.rooted.added]
    session.body.set_joint(4 + session.body.rooted.added, [0.7])
    session.body.set_joint(4 + session.body.rooted.added, [0.8])  # a slider's drag is one step
    assert session.history.undo()
    assert session.body.pose[4 + session.body.rooted.added] == bent
    assert len(session.goals.editors) == 2
    assert session.history.undo()
    assert len(session.goals.editors) == 1
    assert session.history.undo()
    assert session.body.mode == "fixed"
    np.testing.assert_array_equal(session.body.pose.q, q)
    assert not session.history.undo()
    session.goals.add("pose", 3)
    session.history.reset()
    assert len(session.goals.editors) == 1
    assert session.history.undo()
    assert len(session.goals.editors) == 2


def test_edits_of_one_thing_in_a_row_are_one_step() -> None:
    session = _arm()
    now = [0.0]
    session.history._undo = Undo(lambda: now[0])
    for weight in (2.0, 3.0, 4.0):
        session.goals.change(1, weight=weight)
        now[0] += 0.9
    session.goals.change(1, priority=1)
    session.goals.change(1, priority=2)
    now[0] += 2.0
    with session.history.one_step():
        session.goals.add("position", 3)
        session.goals.move(2, GOOD)
    weights = []
    while session.history.undo():
        weights.append((session.goals.editors[0].weight, session.goals.editors[0].priority))
        assert len(session.goals.editors) == 1
    assert weights == [(4.0, 2), (4.0, 1), (4.0, 0), (1.0, 0)]


def test_undo_and_reset_bring_back_the_clip() -> None:
    arm = sy.bundled("arm7")
    motion = sy.Motion(arm, np.array([arm.random_pose(1).q, arm.random_pose(2).q]), 1.0)
    session = Session(arm, [motion])
    session.animation.set_play(playing=True)
    assert not session.animation.play.playing  # there is nothing to play
    session.animation.set_clip(0)
    session.animation.set_play(playing=True)
    session.history.mark_first()
    session.animation.set_play(weight=0.5)
    session.animation.set_play(speed=2.0)
    session.animation.set_clip(None)
    assert session.history.undo()
    assert session.animation.play.motion is motion
    assert session.history.undo()
    assert (session.animation.play.weight, session.animation.play.speed) == (0.5, 1.0)
    session.animation.set_clip(None)
    session.history.reset()
    assert session.animation.play.playing
    assert session.animation.play.weight == 1.0
    np.testing.assert_array_equal(session.animation.start(0.0).q, motion.q[0])


def test_goals_that_a_clip_turns_off_come_back_also_after_undo() -> None:
    arm = sy.bundled("arm7")
    session = Session(arm, [sy.Motion(arm, np.array([arm.rest_q, arm.rest_q]), 1.0)])
    key = session.goals.add("rest", None).key
    session.animation.set_clip(0)
    session.animation.set_clip(None)
    assert session.goals.editor(key).enabled
    session.history.undo()
    assert not session.goals.editor(key).enabled
    session.animation.set_clip(None)
    assert session.goals.editor(key).enabled
    session.animation.set_clip(0)
    session.history.undo()
    session.goals.change(key, enabled=False)
    session.animation.set_clip(0)
    session.animation.set_clip(None)
    assert not session.goals.editor(key).enabled  # it was off before the clip


def test_what_fails_is_no_step_of_undo() -> None:
    session = Session(sy.Skeleton([sy.Joint("alone")]))
    with pytest.raises(sy.InputError):
        session.animation.new_clip(0.0)
    with pytest.raises(sy.InputError):
        session.goals.add("relative", 0)
    assert not session.history.edited


def test_a_change_on_top_of_a_clip_outlives_another_root() -> None:
    arm = sy.bundled("arm7")
    session = Session(arm, [sy.Motion(arm, np.array([arm.rest_q, arm.rest_q]), 1.0)])
    session.animation.set_clip(0)
    row = arm.index("joint2")
    session.body.set_joint(row, [0.5])
    for mode in ("free", "x,y", "fixed"):
        session.body.set_root(mode)
        assert session.animation.start()[row + session.body.rooted.added] == pytest.approx(0.5)


def test_an_edit_of_one_clip_is_not_keyed_on_another() -> None:
    arm = sy.bundled("arm7")
    clips = [sy.Motion(arm, np.array([arm.rest_q, arm.rest_q]), 1.0, name=name) for name in "ab"]
    session = Session(arm, clips)
    session.animation.auto_key = True
    session.animation.set_clip(0)
    session.body.set_joint(arm.index("joint2"), [0.5])
    session.animation.finish_edit()
    assert [key.frame for key in session.animation.play.keys] == [0]
    session.body.set_joint(arm.index("joint2"), [0.7])
    session.animation.set_clip(1)
    settled(session)
    assert session.layers.all == ()
    assert session.animation.play.keys == ()


def test_a_clip_without_frames_is_refused() -> None:
    arm = sy.bundled("arm7")
    session = Session(arm, [sy.Motion(arm, np.zeros((0, arm.nq)), 30.0, name="nothing")])
    with pytest.raises(sy.InputError, match=r"nothing.*no frames"):
        session.animation.set_clip(0)


@pytest.mark.parametrize("name", ["humanoid", "arm7"])  # with a free root of its own, and without
def test_a_root_that_changes_leaves_the_body_where_it_is(name: str) -> None:
    body = sy.bundled(name)
    session = Session(body)
    session.body.put(body.random_pose(4).q)
    session.body.set_root("x,y,z")
    q = session.body.pose.q.copy()
    q[:3] = 0.3, -0.2, 0.5
    session.body.put(q)
    places = session.body.pose.positions[3:]
    for mode in ("x,z", "fixed", "yaw", "free", "x,y,yaw", "x,y,z", "free", "fixed", "free"):
        session.body.set_root(mode)
        np.testing.assert_allclose(session.body.pose.positions[session.body.rooted.added :], places, atol=1e-12)
    q = session.body.pose.q.copy()
    q[3:7] = 0.0, 0.6, 0.0, 0.8
    session.body.put(q)
    places = session.body.pose.positions[session.body.rooted.added :]
    for mode in ("x,y,yaw", "fixed", "z", "free"):
        session.body.set_root(mode)
        np.testing.assert_allclose(session.body.pose.positions[session.body.rooted.added :], places, atol=1e-12)
    session.body.rest()
    np.testing.assert_allclose(
        session.body.pose.positions[session.body.rooted.added :], body.rest_pose().positions, atol=1e-12
    )


@pytest.mark.parametrize("mode", ROOTS)
def test_roots_move_as_told_and_the_body_stays(mode: str) -> None:
    body = sy.bundled("humanoid")
    pose = body.random_pose(4)
    to = rooted(body, mode)
    q = with_root_values(pose.q, to)
    lifted_pose = sy.Pose(to.skeleton, q)
    np.testing.assert_allclose(lifted_pose.positions[to.added :], pose.positions, atol=1e-12)
    np.testing.assert_array_equal(without_root_values(q, body), pose.q)
    if mode not in ("fixed", "free"):
        q[: to.added] = 0.25 * np.array([axis in "xyz" for axis in mode.split(",")])
        moved = sy.Pose(to.skeleton, q).positions[to.added :] - pose.positions
        expected = [0.25 * (axis in mode.split(",")) for axis in "xyz"]
        np.testing.assert_allclose(moved, np.tile(expected, (len(moved), 1)), atol=1e-12)


def test_joints_stay_within_their_limits() -> None:
    session = _arm()
    row = session.body.given.index("joint4")
    session.body.set_joint(row, [99.0])
    assert session.body.pose["joint4"] == pytest.approx(session.body.given.joints[row].limit.upper)


def test_sliders_and_values_are_one_thing() -> None:
    body = sy.bundled("humanoid")
    for seed in range(5):
        pose = body.random_pose(seed)
        for row, joint in enumerate(body.joints):
            if not joint.kind.q_size:
                continue
            shown = to_sliders(joint.kind, joint.limit, np.atleast_1d(pose[row]))
            assert len(shown) == len(ranges(joint.kind, joint.limit, 1.0))
            for value, (_, low, high, _) in zip(shown, ranges(joint.kind, joint.limit, 1.0), strict=True):
                assert low - 1e-6 <= value <= high + 1e-6
            back = from_sliders(joint.kind, joint.limit, shown)
            given = np.atleast_1d(pose[row])
            if len(back) >= 4:  # q and -q are the same turn
                back[-4:] *= np.sign(back[-4:] @ given[-4:])
            np.testing.assert_allclose(back, given, atol=1e-9)


def test_blending_takes_the_shorter_way_at_even_speed() -> None:
    body = sy.bundled("humanoid")
    a, b = body.random_pose(1).q, body.random_pose(2).q
    np.testing.assert_array_equal(blend(body, a, b, 0.0), a)
    np.testing.assert_array_equal(blend(body, a, b, 1.0), b)
    half = blend(body, a, b, 0.5)
    quarter = blend(body, a, half, 0.5)
    np.testing.assert_allclose(quarter, blend(body, a, b, 0.25), atol=1e-9)
    flipped = b.copy()
    at = body.tables.variables[body.tables.variables[:, 0] == 1, 1][0]
    flipped[at : at + 4] *= -1.0
    turned = blend(body, a, flipped, 0.5)
    assert abs(turned[at : at + 4] @ half[at : at + 4]) == pytest.approx(1.0)


def test_a_clip_plays_underneath_and_goals_hold_on_top() -> None:
    arm = sy.bundled("arm7")
    motion = sy.Motion(arm, np.array([arm.random_pose(1).q, arm.random_pose(2).q]), 1.0)
    session = Session(arm, [motion])
    session.animation.set_clip(0)
    session.animation.set_play(time=0.25)
    frame = settled(session)
    np.testing.assert_allclose(frame.pose.q, sample(motion, 0.25))
    session.goals.add("position", "tool")
    session.goals.move(1, GOOD)
    frame = settled(session)
    np.testing.assert_allclose(frame.pose.position("tool"), GOOD, atol=1e-3)
    saved = Files(session.state).solved_clip([])
    assert len(saved) == 2
    np.testing.assert_allclose(saved.pose(0).position("tool"), GOOD, atol=1e-3)


def test_a_clip_of_another_body_is_refused() -> None:
    other = sy.bundled("humanoid")
    motion = sy.Motion(other, other.rest_q.reshape(1, -1), 30.0)
    with pytest.raises(sy.InputError, match="another skeleton"):
        Session(sy.bundled("arm7"), [motion])


def test_every_kind_of_goal_begins_with_what_is() -> None:
    session = Session(sy.bundled("humanoid"))
    for kind in kinds().values():
        editor = session.goals.add(kind.name, "left_lower_arm")
        assert editor.goal(int).kind.replace("_", " ") == kind.name
    assert len({editor.label for editor in session.goals.editors}) == len(kinds())


def test_goals_come_back_as_they_were(tmp_path: Path) -> None:
    turn = sy.Rotation.from_euler("xyz", [10, 20, 30], degrees=True)
    goals = [
        sy.PositionGoal("tool", (0.3, 0.1, 0.6), weight=2.5, offset=(0.0, 0.0, 0.1), name='t"ö\\'),
        sy.RotationGoal("joint5", turn),
        sy.PoseGoal(2, (0.0, 0.0, 0.3), turn, priority=1),
    ]
    session = Session(sy.bundled("arm7"))
    add_goals(session.goals, goals)
    path = tmp_path / "goals.toml"
    path.write_bytes(Files(session.state).goal_file())
    tomllib.loads(path.read_text(encoding="utf-8"))
    from synovia.files.goals import read_goals

    for before, after in zip(goals, read_goals(path), strict=True):
        assert type(after) is type(before)
        assert (after.weight, after.priority) == (before.weight, before.priority)
        assert session.body.given.index(after.joint) == session.body.given.index(before.joint)
        np.testing.assert_allclose(after.offset, before.offset, atol=1e-12)
        np.testing.assert_allclose(after.target, before.target, atol=1e-12)
    sy.write_goals(goals, tmp_path / "more.toml")
    with pytest.raises(sy.errors.FileError, match="exists"):
        sy.write_goals(goals, tmp_path / "more.toml")


def test_saved_goals_give_the_same_pose_on_the_command_line_and_in_python(tmp_path: Path) -> None:
    from cli_runs import run

    session = _arm()
    session.goals.move(1, GOOD)
    settled(session)
    session.goals.add("aim", "joint3")
    session.goals.add("distance", "tool")
    frame = settled(session)
    goals, start, out = tmp_path / "goals.toml", tmp_path / "pose.json", tmp_path / "out.json"
    goals.write_bytes(Files(session.state).goal_file())
    start.write_bytes(Files(session.state).pose_file())
    result = run("solve", "arm7", "--goals", str(goals), "--start", str(start), "-o", str(out))
    assert result.code == 0
    np.testing.assert_allclose(load_pose(out, session.body.given).q, frame.pose.q, atol=1e-9)
    space: dict = {}
    exec(Files(session.state, "arm7").python_text(), space)
    np.testing.assert_allclose(space["solution"].pose.q, frame.pose.q, atol=1e-9)


@pytest.mark.parametrize("mode", ["x,y", "fixed"])
def test_a_root_that_slid_is_kept(mode: str, tmp_path: Path) -> None:
    import shlex

    from cli_runs import run

    session = _arm()
    session.solving.set_solver(session.solving.solver.replace(seed=5, error_damping=1e-5))
    session.body.set_root("x,y")
    session.goals.move(1, (1.9, 0.1, 0.7))
    settled(session)
    assert session.body.pose["root_x"] > 0.5
    session.body.set_root(mode)
    frame = settled(session)
    goals, start, out = tmp_path / "goals.toml", tmp_path / "pose.json", tmp_path / "out.json"
    goals.write_bytes(Files(session.state).goal_file())
    start.write_bytes(Files(session.state).pose_file())
    lines = Files(session.state, "arm7").command_line().splitlines()
    words = shlex.split(lines[0])[1:]
    assert "error_damping=1e-05" in lines[1]
    assert words[words.index("--seed") + 1] == "5"
    words = [{"goals.toml": str(goals), "pose.json": str(start)}.get(word, word) for word in words]
    assert run(*words, "-o", str(out)).code == 0
    root = words[words.index("--root") + 1]
    again = load_pose(out, session.body.given.with_root(root))
    np.testing.assert_allclose(again.position("tool"), frame.pose.position("tool"), atol=1e-9)
    assert len(lines) == (2 if mode == "x,y" else 3)
    assert f"root={root!r}" in Files(session.state, "arm7").python_text()
    space: dict = {}
    exec(Files(session.state, "arm7").python_text(), space)
    same = [frame.pose.position(name) for name in session.body.given.joint_names]
    np.testing.assert_allclose(
        [space["solution"].pose.position(name) for name in session.body.given.joint_names], same, atol=1e-9
    )


def test_a_saved_motion_is_the_one_that_is_seen() -> None:
    arm = sy.bundled("arm7")
    motion = sy.Motion(arm, np.array([arm.random_pose(seed).q for seed in (1, 2, 3)]), 2.0)
    session = Session(arm, [motion])
    session.animation.set_clip(0)
    session.animation.set_play(weight=0.25, speed=-0.5)
    saved = Files(session.state).solved_clip([])
    assert len(saved) == 5
    assert saved.fps == 2.0
    for frame, seconds in enumerate((1.0, 0.75, 0.5, 0.25, 0.0)):
        np.testing.assert_allclose(saved.q[frame], session.animation.start(seconds).q)
    assert np.abs(saved.q[0] - motion.q[2]).max() > 0.1


def test_what_changes_while_a_motion_is_saved_does_not_change_it(monkeypatch: pytest.MonkeyPatch) -> None:
    arm = sy.bundled("arm7")
    session = Session(arm, [sy.Motion(arm, np.array([arm.rest_q] * 4), 2.0)])
    session.animation.set_clip(0)
    key = session.goals.add("position", "tool").key
    session.goals.move(key, GOOD)
    plain = State.start

    def start(self: State, seconds: float | None = None) -> sy.Pose:
        if session.animation.play.motion is not None and seconds == 0.5:
            session.animation.set_clip(None)
            session.body.set_root("free")
            session.goals.move(key, (0.0, 0.4, 0.6))
        return plain(self, seconds)

    monkeypatch.setattr(State, "start", start)
    saved = Files(session.state).solved_clip([])
    assert saved.q.shape == (4, arm.nq)
    np.testing.assert_allclose(saved.pose(0).position("tool"), GOOD, atol=1e-3)
    np.testing.assert_array_equal(saved.q[1:], [arm.rest_q] * 3)


def test_numbers_of_numpy_are_written_as_plain_ones() -> None:
    session = _arm(tolerance=np.array([0.01, 0.02]))
    assert "tolerance=(0.01, 0.02)" in Files(session.state, "arm7").python_text()
    assert "--tol 0.01," in Files(session.state, "arm7").command_line()
    with pytest.raises(sy.InputError, match="tolerance"):
        _arm(tolerance=(0.01, -1.0))


def test_a_recording_lasts_as_long_as_it_took() -> None:
    arm = sy.bundled("arm7")
    a, b, c = (arm.random_pose(seed) for seed in (1, 2, 3))
    recording = Recording()
    recording.take(b, 0.0)
    assert not recording.rows(1.0)
    recording.start(a, 10.0)
    recording.take(b, 10.51)
    recording.take(c, 10.511)
    recording.stop(12.0)
    recording.take(a, 13.0)
    rows = np.array(recording.rows(14.0))
    assert len(rows) == 61
    np.testing.assert_array_equal(rows[:16], np.tile(a.q, (16, 1)))
    np.testing.assert_array_equal(rows[16:], np.tile(c.q, (45, 1)))
    assert recording.seconds == 2.0


def test_a_joint_is_measured_against_another() -> None:
    session = _arm()
    for row in range(len(session.body.given)):
        assert session.goals.add("relative", row).values["other"] != row
    with pytest.raises(sy.InputError, match="another joint"):
        Session(sy.Skeleton([sy.Joint("alone")])).goals.add("relative", 0)


def test_what_a_contact_keeps_can_be_chosen() -> None:
    session = Session(sy.bundled("humanoid"))
    key = session.goals.add("contact", "left_foot").key
    place = session.goals.editor(key).position
    for keep in ("normal", "point", "normal", "pose"):
        session.goals.change(key, values={**session.goals.editor(key).values, "keep": keep})
        editor = session.goals.editor(key)
        goal = editor.goal(int)
        assert goal.keep == keep
        np.testing.assert_allclose(goal.target[:3, 3], place)
        if keep == "normal":
            np.testing.assert_allclose(goal.target[:3, 2], (0.0, 1.0, 0.0), atol=1e-9)  # at rest it stands


def test_the_error_falls_from_iteration_to_iteration() -> None:
    session = _arm()
    session.goals.move(1, GOOD)
    goals = session.solving.goals()
    run = trace(session.solving.problem, sy.solvers["lm"](), goals, session.body.skeleton.rest_pose())
    assert (np.diff(run.steps) > 0).all()
    assert (np.diff(run.errors) <= 0).all()
    ik = sy.IK(session.body.skeleton, goals, sy.LevenbergMarquardt(attempts=1))
    for steps in (1, 3):
        np.testing.assert_array_equal(ik.errors_after(steps), ik.errors_after(steps, {"tool": [GOOD]}))
    assert run.errors[-1] < 0.5 * run.errors[0]


@pytest.mark.compiled
def test_the_solver_that_holds_a_body_reaches_in_a_race_too() -> None:
    session = opening("humanoid").make()
    hand = session.goals.editors[0]
    session.goals.move(hand.key, hand.position + np.array((-0.2, 0.3, 0.1)))
    assert session.solving.solver.largest_move < 1.0  # the page moves no joint farther in a frame
    solving = session.solving
    runs = race(solving.problem, solving.goals(), [solving.solver], solving.rest())
    assert [run.status for run in runs] == ["reached"]


@pytest.mark.compiled
def test_solvers_without_priorities_race_without_them() -> None:
    session = opening("humanoid").make()
    hand = session.goals.editors[0]
    session.goals.move(hand.key, hand.position + np.array((-0.2, 0.3, 0.1)))
    goals = session.solving.goals()
    assert any(goal.priority for goal in goals)
    racers = [sy.solvers[name]() for name in ("full-body", "lm", "fabrik", "aim")]
    found = race(session.solving.problem, goals, racers, session.solving.rest())
    runs = {run.name: run for run in found}
    assert runs["full-body"].without == ()
    assert runs["lm"].without[0] == "priorities"
    assert set(runs["fabrik"].without) > {"priorities"}  # nor does it know balance
    for name in ("lm", "fabrik"):
        assert runs[name].pose is not None
        assert runs[name].trouble == ""
        assert f"without {runs[name].without[0]}" in _legend([runs[name]])
    assert runs["aim"].trouble


def test_bones_lie_between_their_joints() -> None:
    body = sy.bundled("humanoid")
    from synovia.draw.theme import THEMES

    shape = build(body, THEMES["light"], 2.0)
    positions = body.random_pose(3).positions * 2.0
    place, turn, scale = shape.bone_frames(positions)
    ahead = sy.Rotation.from_quat(turn[:, [1, 2, 3, 0]]).apply([0.0, 0.0, 1.0])
    np.testing.assert_allclose(place + ahead * scale[:, 2:], positions[shape.bones], atol=1e-9)
    down = from_z(np.array([[0.0, 0.0, -1.0], [0.0, 0.0, 0.0]]))
    np.testing.assert_allclose(np.abs(down), [[0, 1, 0, 0], [1, 0, 0, 0]], atol=1e-12)


def test_arcs_of_limits_are_as_wide_as_the_limits() -> None:
    arm = sy.bundled("arm7")
    row = arm.index("joint4")
    arc = limit_arcs(arm, row, 1.0)
    rim = arc[1:-1]
    angle = np.sum(np.arccos(np.clip(np.sum(rim[:, 0] * rim[:, 1], axis=1), -1.0, 1.0)))
    assert angle == pytest.approx(arm.joints[row].limit.upper - arm.joints[row].limit.lower, rel=1e-6)


def test_lines_of_ranges_end_at_their_bounds() -> None:
    """A hinge's arc and the mark at its value, a slide's way from where it is now, a ball's cones."""
    arm = sy.bundled("arm7")
    row, axis = arm.index("joint4"), arm.joints[arm.index("joint4")].rest[:3, :3] @ arm.joints[arm.index("joint4")].axis
    arc, mark = range_lines(arm, row, (-1.5, -0.5), -0.7, 2.0)
    np.testing.assert_allclose(np.linalg.norm(arc[1:-1], axis=1), 2.0)
    turn = sy.Rotation.from_rotvec(1.0 * axis)
    np.testing.assert_allclose(turn.apply(arc[1]), arc[-2], atol=1e-12)
    np.testing.assert_allclose(
        sy.Rotation.from_rotvec(0.8 * axis).apply(arc[1]) / 2.0, mark[1] / np.linalg.norm(mark[1])
    )
    limit = arm.joints[row].limit
    whole, _ = range_lines(arm, row, (-np.inf, np.inf), -0.7, 2.0)
    np.testing.assert_allclose(whole, range_lines(arm, row, (limit.lower, limit.upper), -0.7, 2.0)[0])
    slide = sy.Skeleton([sy.Joint("rail", kind=sy.Kind.SLIDE, axis=(0, 0, 1)), sy.Joint("end", "rail")])
    way, *ends = range_lines(slide, 0, (-0.5, 1.0), 0.2, 1.0)
    np.testing.assert_allclose(way[:, 2], (-0.7, 0.8))
    np.testing.assert_allclose([end.mean(0)[2] for end in ends], (-0.7, 0.8, 0.0), atol=1e-12)
    body = sy.bundled("humanoid")
    (cone,) = range_lines(body, body.index("left_upper_arm"), (-np.inf, 0.6), 0.3, 1.0)
    middle = cone[:-1].mean(0)
    np.testing.assert_allclose(cone @ middle / np.linalg.norm(middle), np.cos(0.6))


@pytest.mark.parametrize(
    ("model", "hand", "foot"),
    [
        ("character/mannequiny.glb", "hand.l", "foot.l"),
        ("robot/g1_29dof.urdf", "left_wrist_yaw_joint", "left_ankle_roll_joint"),
    ],
)
def test_a_biped_begins_with_feet_that_hold_and_hands_that_wake_when_moved(
    shared_data: object, model: str, hand: str, foot: str
) -> None:
    session = Session(sy.load_skeleton(shared_data / model), mode="free")
    first_goals(session.goals)
    on = {editor.label: editor.enabled for editor in session.goals.editors}
    assert len(on) == 4
    assert (on[hand], on[foot]) == (False, True)
    one, other = (editor for editor in session.goals.editors if not editor.enabled)
    session.goals.move(one.key, one.position + 0.05 * session.body.size)
    assert one.enabled
    assert not other.enabled
    frame = settled(session)
    assert frame.solution.reached
    np.testing.assert_allclose(
        other.position, frame.pose.positions[other.row + session.body.rooted.added], atol=1e-3 * session.body.size
    )


def test_what_no_one_can_see_is_left_out_of_a_miss() -> None:
    assert miss_text(GoalError(0.0593, 1e-12), 1.0) == "59.3 mm"
    assert miss_text(GoalError(1e-9, 0.1), 1.0) == "5.7°"
    assert miss_text(GoalError(1e-9, 0.0), 1.0) == "1e-06 mm"
    assert miss_text(GoalError(0.02, 0.1), None) == "0.02 units, 5.7°"


@pytest.mark.compiled
def test_a_body_stands_while_a_hand_is_dragged_beyond_its_reach():
    session = Session(sy.bundled("humanoid"), solver=sy.FullBody(attempts=1, largest_move=0.12), mode="free")
    first_goals(session.goals)
    engine = Engine(session.state)
    frame, _ = engine.step(1 / 60)
    stood = [frame.pose.position(foot) for foot in ("left_foot", "right_foot")]
    hand = next(editor for editor in session.goals.editors if editor.kind == "position")
    session.goals.change(hand.key, enabled=True)
    balance = next(editor for editor in session.goals.editors if editor.kind == "center of mass")
    rng = np.random.default_rng(0)
    velocity = np.zeros(3)
    for _ in range(80):
        velocity = 0.9 * velocity + 0.04 * rng.normal(size=3)
        with session.state.lock:
            hand.position = hand.position + velocity
            session.state.touch()
        before = frame.pose
        frame, _ = engine.step(1 / 60)
        moved = [frame.pose.position(foot) - at for foot, at in zip(("left_foot", "right_foot"), stood, strict=True)]
        assert np.abs(moved).max() < 1e-3
        assert frame.errors[balance.key].position < 1e-3
        assert np.abs(frame.pose.positions - before.positions).max() < 0.6, "a jump"
    going = True
    for _ in range(400):
        if not going:
            break
        frame, going = engine.step(1 / 60)
    assert not going, "it does not come to rest"
    assert frame.missed == {hand.key}


@pytest.mark.compiled
def test_a_head_looks_where_it_is_sent():
    session = Session(sy.bundled("humanoid"), solver=sy.FullBody(attempts=1), mode="free")
    first_goals(session.goals)
    gaze = next(editor for editor in session.goals.editors if editor.kind == "aim")
    session.goals.change(gaze.key, enabled=True)
    with session.state.lock:
        gaze.position = np.array([1.0, 1.5, 2.0])
        session.state.touch()
    engine = Engine(session.state)
    for _ in range(60):
        frame, _ = engine.step(1 / 60)
    assert not frame.missed
    way = gaze.position - frame.pose.position("head")
    assert frame.pose.matrix("head")[:, 2] @ way > 0.999 * np.linalg.norm(way)


def test_the_parts_of_a_session_refer_to_each_other_in_one_direction() -> None:
    session = _arm()
    parts = vars(session)
    below = {
        name: {other for other, one in parts.items() if any(one is value for value in vars(part).values())}
        for name, part in parts.items()
        if name != "state"
    }
    assert set(below) == {
        "history",
        "body",
        "goals",
        "animation",
        "layers",
        "poses",
        "solving",
        "judging",
        "obstacles",
        "hand",
    }
    assert not any(
        session is value for part in parts.values() if hasattr(part, "__dict__") for value in vars(part).values()
    )
    done = {"state"}
    while rest := {name for name in below if name not in done}:
        free = {name for name in rest if below[name] <= done}
        assert free, f"these refer to each other in a circle: {rest}"
        done |= free


def test_only_what_hands_out_the_parts_of_a_session_sees_all_of_it() -> None:
    from synovia import viewer

    folder = Path(viewer.__file__).parent
    seeing = {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*.py")
        if {"editing.session", "Session", ".session"}
        & set(re.findall(r"editing\.session|\bSession\b|\.session\b", path.read_text("utf-8")))
    }
    roots = {"live.py", "editing/session.py", "page/page.py", "panel/__init__.py", "scene/scene.py", "timeline/clip.py"}
    assert seeing == roots


def test_all_parts_change_one_state_under_one_lock() -> None:
    """A change from another thread waits for who holds the lock of any part, and undo takes every part back."""
    session = _arm()
    before = session.state.snapshot()
    changes = [
        lambda: session.body.set_joint(2, [0.4]),
        lambda: session.goals.move(1, GOOD),
        lambda: session.goals.change(1, priority=1),
        lambda: session.animation.new_clip(1.0),
        lambda: session.poses.keep("here"),
        lambda: session.solving.set_solver("dls"),
    ]
    for change in changes:
        done = threading.Event()
        thread = threading.Thread(target=lambda change=change, done=done: (change(), done.set()))
        with session.body.lock, session.animation.lock:
            thread.start()
            assert not done.wait(0.05)
        assert done.wait(300.0)
        thread.join()
    while session.history.undo():
        pass
    after = session.state.snapshot()
    np.testing.assert_array_equal(after.q, before.q)
    assert (after.solver, after.library, after.play.motion) == (before.solver, before.library, before.play.motion)
    assert [(one.priority, one.enabled) for one in after.editors] == [
        (one.priority, one.enabled) for one in before.editors
    ]


WALL = sy.World({"wall": sy.Box(center=(0.45, 0, 0.4), size=(0.02, 0.6, 0.8))})


def test_a_dragged_body_keeps_clear() -> None:
    """A target beyond a wall: the arm stops before it, and the nearest pairs are shown; the solver is one that can."""
    session = _arm(world=WALL)
    engine = Engine(session.state)
    key = session.goals.add("clearance", None).key
    assert session.solving.solver.name == "full-body"
    assert session.goals.editor(key).priority is None
    session.goals.change(key, values={**session.goals.editor(key).values, "distance": 0.01})
    for y in np.linspace(-0.1, 0.1, 8):
        session.goals.move(1, (0.5, y, 0.45))
        for _ in range(4):
            frame, _ = engine.step(1.0 / 60.0)
            assert frame.trouble == ""
            assert min(gap.distance for gap in frame.gaps) >= 0.01 - 2e-4
    frame = settled(session)
    assert any("wall" in gap.names for gap in frame.gaps)
    assert key in frame.errors
    assert key not in frame.missed
    files = Files(session.state, "arm7")
    assert 'kind = "clearance"' in files.goal_file().decode()
    assert "world=world" in files.python_text()
    session.history.undo()
    session.history.undo()
    assert (session.solving.solver.name, len(session.goals.editors)) == ("lm", 1)


def test_clearance_goals_begin_a_page() -> None:
    """Their world is that of the page; a body without shapes gets some if a distance is asked for."""
    goals = [sy.PositionGoal("tool", GOOD), sy.ClearanceGoal(0.01, world=WALL, priority=1)]
    session = opening("arm7", Start(goals=goals)).make()
    assert session.state.world == WALL
    assert [editor.priority for editor in session.goals.editors] == [0, 1]
    assert [goal.kind for goal in session.solving.goals()] == ["position", "clearance"]
    bare = sy.Skeleton.chain([(0, 0, 0), (0, 1, 0), (0, 2, 0), (0, 3, 0)])
    made = opening(bare, Start(clearance=0.01))
    assert any("capsules" in note for note in made.notes)
    assert Engine(made.make().state).step(1.0 / 60.0)[0].trouble == ""


def test_obstacles_can_be_moved() -> None:
    """The body keeps clear of one where it is now, undo brings it back, and code does not name the old file."""
    session = _arm(world=WALL)
    engine = Engine(session.state)
    session.goals.add("clearance", None)
    session.goals.move(1, (0.5, 0.0, 0.45))
    settled(session)
    session.obstacles.move("wall", np.array((0.05, 0.0, 0.0)))
    np.testing.assert_allclose(session.obstacles.place("wall"), (0.05, 0, 0))
    for _ in range(30):
        frame, _ = engine.step(1.0 / 60.0)
    assert min(gap.distance for gap in frame.gaps) >= -1e-4
    assert min(session.state.world.distances(shape, transform=frame.pose.transform(link))["wall"].distance
               for link, shapes in frame.pose.skeleton.shapes.items() for shape in shapes) >= -1e-4  # fmt: skip
    assert "load_world" not in Files(session.state, "arm7").python_text()
    session.history.undo()
    assert session.state.world == WALL
    session.obstacles.move("nothing", np.zeros(3))
