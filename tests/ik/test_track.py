"""Targets over time: warm starts, continuity, jumps and misses told by frame, and the same answers as step by step."""

from itertools import product

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import synovia as sy
from synovia.errors import InputError, UnsupportedError
from synovia.ik.status import STATUS
from synovia.model import Joint, Kind
from synovia.tracking.postprocessing import _turned
from synovia.tracking.track import best_path

ARM = sy.bundled("arm7")


def circle(frames, pose, radius=0.08):
    """Return transforms of the tool on a circle through a pose's tool."""
    out = np.repeat(pose.transform("tool")[None], frames, axis=0)
    turn = np.linspace(0, 2 * np.pi, frames)
    out[:, 0, 3] += radius * (np.cos(turn) - 1)
    out[:, 1, 3] += radius * np.sin(turn)
    return out


def start_pose():
    """Return a pose in the middle of the arm's range."""
    return sy.Pose(ARM, [0.2, 0.1, -0.3, -1.9, 0.2, 2.1, 0.6])


@pytest.mark.compiled
def test_every_frame_is_met_and_neighbours_are_close():
    """Small steps of the target give small steps of the pose; nothing is restarted."""
    start = start_pose()
    clip = sy.IK(ARM, sy.PoseGoal("tool")).track({"tool": circle(200, start)}, start, fps=50)
    assert clip.reached.all()
    assert clip.missed_frames == clip.jumps == ()
    assert np.abs(np.diff(clip.q, axis=0)).max() < 0.05
    assert clip.motion.fps == 50
    assert len(clip.motion) == 200


@pytest.mark.compiled
def test_a_track_is_the_same_as_solving_frame_after_frame():
    """Warm starts are the poses of the frames before, bit for bit."""
    start = start_pose()
    targets = circle(60, start)
    ik = sy.IK(ARM, sy.PoseGoal("tool"))
    clip = ik.track({"tool": targets}, start)
    pose = start
    for frame, target in enumerate(targets):
        solution = ik.solve({"tool": target}, pose)
        np.testing.assert_array_equal(solution.pose.q, clip.q[frame])
        pose = solution.pose


@pytest.mark.compiled
def test_frames_out_of_reach_are_listed_and_the_track_goes_on():
    """A stretch of targets beyond reach is missed frame by frame, without chatter, and met again afterwards."""
    start = start_pose()
    targets = circle(60, start)[:, :3, 3].copy()
    targets[20:40] = (3.0, 0.5, 0.5)
    clip = sy.IK(ARM, sy.PositionGoal("tool")).track({"tool": targets}, start)
    assert clip.missed_frames == tuple(range(20, 40))
    assert {clip[b].status for b in clip.missed_frames} == {sy.Status.UNREACHABLE}
    assert set(clip.jumps) <= {20, 40}  # the target leaps there, and a stretched arm may need another start
    assert np.abs(np.diff(clip.q[20:40], axis=0)).max() < 1e-6


@pytest.mark.compiled
def test_a_jump_of_the_target_that_needs_a_restart_is_listed():
    """Frames that only a restart solves are in ``jumps``."""
    ik = sy.IK(ARM, sy.PoseGoal("tool"))
    frames = np.array([ARM.random_pose(i).transform("tool") for i in range(60)])
    clip = ik.track({"tool": frames}, ARM.random_pose(7))
    assert clip.reached.all()
    assert 0 < len(clip.jumps) < 40
    restarted = {b for b in range(1, 60) if clip[b].attempts > 1}
    assert restarted
    assert restarted <= set(clip.jumps)


@pytest.mark.compiled
def test_a_frame_takes_its_time_before_it_is_started_elsewhere():
    """What creeps to a place nearby is not sent to another one: no jumps along a smooth path of five ends."""
    problems = sy.comparison.make_problems(sy.bundled("humanoid"), count=10)
    ik = sy.IK(problems.skeleton, problems.goals, "dls")
    clip = ik.track(problems.of_kind(problems.path))
    assert clip.reached.all()
    assert not clip.jumps
    turns = sy.Rotation.from_quat(clip.q[1:, clip.motion.skeleton.q_slice("spine")])
    assert np.degrees((turns[:-1].inv() * turns[1:]).magnitude().max()) < 20.0
    late = next(
        b for b in range(1, len(clip)) if _restarts(ik, problems, clip, b)
    )  # where a solve of its own does not wait
    assert clip[late].attempts == 1


def _restarts(ik, problems, clip, frame):
    """Return whether a frame is restarted when it is solved by itself from the one before."""
    target = {name: value[frame] for name, value in problems.of_kind(problems.path).items()}
    return ik.solve(target, clip[frame - 1].pose).attempts > 1


@pytest.mark.compiled
def test_goals_without_a_target_stay_where_the_first_start_had_them():
    """What is not targeted is anchored once: a drift within the tolerance of each frame would add up."""
    body = sy.bundled("humanoid")
    start = body.random_pose(3)
    ik = sy.IK(body, [sy.PositionGoal("left_hand"), sy.PoseGoal("right_hand")], tolerance=(1e-2, 1e-2))
    targets = start.position("left_hand") + 0.15 * np.sin(np.linspace(0, 25, 250))[:, None] * np.array([0.0, 0.6, 0.8])
    clip = ik.track({"left_hand": targets}, start)
    anchor = start.transform("right_hand")
    for solution in clip:
        np.testing.assert_allclose(solution.targets[1], anchor, atol=1e-12)
        if solution.reached:
            assert np.linalg.norm(solution.pose.position("right_hand") - anchor[:3, 3]) < 1.01e-2


def test_a_stretched_chain_comes_back_along_its_own_line_without_a_jump():
    """No step begins where the target goes straight back towards the root: it is nudged, not started elsewhere."""
    chain = sy.Skeleton.chain([(0.0, 0, 0), (1.0, 0, 0), (2.0, 0, 0)])
    targets = np.zeros((40, 3))
    targets[:, 0] = np.linspace(2.4, 1.2, 40)
    clip = sy.IK(chain, sy.PositionGoal("joint2")).track({"joint2": targets})
    assert clip.reached[20:].all()
    assert clip.jumps == ()


def test_a_closed_form_that_changes_its_branch_says_where():
    """The shoulder's limit ends one side of the elbow; that step is a jump, and large steps of the target are none."""
    hinge = {"kind": Kind.HINGE, "axis": (0, 0, 1)}
    rest = np.eye(4)
    rest[0, 3] = 1.0
    arm = sy.Skeleton(
        [
            Joint("shoulder", limit=sy.Interval(-0.3, 2.5), **hinge),
            Joint("elbow", "shoulder", rest=rest, limit=sy.Interval(-2.8, 2.8), **hinge),
            Joint("tip", "elbow", rest=rest),
        ]
    )
    ik = sy.IK(arm, sy.PositionGoal("tip"), "hinges")
    for frames in (7, 41):  # more than 0.2 radians a frame, and little
        angles = np.linspace(1.2, 0.0, frames)
        targets = 1.2 * np.column_stack([np.cos(angles), np.sin(angles), 0.0 * angles])
        clip = ik.track({"tip": targets}, [0.3, 1.8])
        assert clip.reached.all()
        changed = np.flatnonzero(np.diff(np.sign(clip.q[:, 1]))) + 1
        assert len(changed) == 1
        assert clip.jumps == tuple(changed)


@pytest.mark.compiled
@pytest.mark.parametrize("weight", [1.0, 0.6])
def test_a_look_that_snaps_from_one_shoulder_to_the_other_is_listed(weight):
    """As the target passes behind the head; with a share of the turn as well."""
    body = sy.bundled("humanoid")
    ik = sy.IK(body, sy.AimGoal("head"), sy.Aim(weight=weight))
    x = np.linspace(-1.0, 1.0, 40)
    clip = ik.track({"head": np.column_stack([x, 0.0 * x + 1.5, 0.0 * x - 3.0])})
    steps = np.abs(np.diff(clip.q, axis=0)).max(axis=1)
    assert clip.jumps == tuple(np.flatnonzero(steps > 0.1) + 1)
    assert len(clip.jumps) == 1


def test_no_frames_give_no_answers():
    """An empty clip is a clip."""
    clip = sy.IK(ARM, sy.PositionGoal("tool")).track({"tool": np.zeros((0, 3))})
    assert len(clip) == 0
    assert clip.missed_frames == clip.jumps == ()


@pytest.mark.parametrize("fps", [0, -1, np.nan, np.inf, "fast"])
def test_impossible_rates_are_refused_before_solving(fps):
    """The rate is checked at the door, not when the motion is asked for."""
    with pytest.raises(InputError, match="fps"):
        sy.IK(ARM, sy.PositionGoal("tool")).track({"tool": np.zeros((2, 3))}, fps=fps)


def test_a_start_outside_limits_is_told_for_the_first_frame_only():
    """Later frames start inside."""
    clip = sy.IK(ARM, sy.PositionGoal("tool")).track({"tool": np.full((3, 3), 0.4)}, np.full(7, 9.0))
    assert clip[0].start_clamped == ("joint1", "joint2", "joint3", "joint4", "joint5", "joint6", "joint7")
    assert clip[1].start_clamped == ()


@pytest.mark.compiled
def test_the_best_of_several_starts_moves_least():
    """From an awkward start and three others, the path that misses least and moves least is taken."""
    start = start_pose()
    ik = sy.IK(ARM, sy.PoseGoal("tool"))
    targets = {"tool": circle(60, start, 0.15)}
    awkward = ARM.random_pose(11)
    told = []
    how = {"candidates": 4, "both_ways": True, "smoothness": 0.0}
    one, best = ik.track(targets, awkward), ik.track(targets, awkward, **how, progress=lambda *done: told.append(done))
    assert best.reached.all()
    assert np.sum(np.diff(best.q, axis=0) ** 2) <= np.sum(np.diff(one.q, axis=0) ** 2)
    assert len(best.jumps) <= len(one.jumps)
    assert told == sorted(told)
    assert told[-1] == (480, 480)
    for threads in (1, 3):
        np.testing.assert_array_equal(ik.track(targets, awkward, **how, threads=threads).q, best.q)

    def stop(done, of):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ik.track(targets, awkward, **how, progress=stop)


@pytest.mark.compiled
def test_smoothness_calms_and_says_what_it_misses():
    """Targets that tremble: accelerations fall, errors are those of the poses, misses are told."""
    start = start_pose()
    ik = sy.IK(ARM, sy.PositionGoal("tool"))
    targets = circle(60, start)[:, :3, 3] + np.random.default_rng(0).normal(0, 0.002, (60, 3))
    rough, calm = ik.track({"tool": targets}, start), ik.track({"tool": targets}, start, smoothness=0.1)
    np.testing.assert_array_equal(calm.q, ik.track({"tool": targets}, start, smoothness=0.1, threads=1).q)
    bend = [np.sum(np.diff(clip.q, 2, axis=0) ** 2) for clip in (rough, calm)]
    assert bend[1] < 0.3 * bend[0]
    off = [np.linalg.norm(s.pose.position("tool") - t) for s, t in zip(calm, targets, strict=True)]
    np.testing.assert_allclose(calm.errors[:, 0, 0], off, atol=1e-12)
    assert set(calm.missed_frames) == set(np.flatnonzero(np.array(off) > ik.tolerance[0]))
    assert calm.smoothed_off == calm.missed_frames
    assert (rough.missed_frames, rough.smoothed_off, calm.late) == ((), (), ())
    told = calm[calm.missed_frames[0]].explain()
    assert "smoothness=" in told[0]
    assert len(told) == 2


@pytest.mark.compiled
def test_velocities_hold_and_what_they_cost_is_told():
    """No joint is faster than it may; frames that are late are missed."""
    start = start_pose()
    ik = sy.IK(ARM, sy.PositionGoal("tool"))
    targets = np.repeat(circle(2, start)[:1, :3, 3], 30, axis=0)
    targets[10:] += (0.0, 0.2, 0.0)
    clip = ik.track({"tool": targets}, start, velocity=0.5)
    assert np.abs(np.diff(clip.q, axis=0)).max() * 30 <= 0.5 + 1e-9
    assert clip.missed_frames
    assert clip.missed_frames[0] == 10
    assert 29 not in clip.missed_frames
    assert clip.late == clip.missed_frames
    assert clip.smoothed_off == ()
    assert "velocity=" in clip[10].explain()[0]
    targets[10] = (9.0, 0.0, 0.0)  # missed without it too
    assert 10 not in ik.track({"tool": targets}, start, velocity=0.5).late
    with pytest.raises(InputError, match="velocity"):
        ik.track({"tool": targets}, start, velocity=-1.0)
    balance = sy.IK(sy.bundled("humanoid"), [sy.PositionGoal("left_hand"), sy.CenterOfMassGoal()])
    with pytest.raises(
        sy.errors.UnsupportedError, match=r"velocity.*expected.*CenterOfMass.*largest_move=velocity / fps"
    ):
        balance.track({"left_hand": np.zeros((2, 3))}, velocity=1.0)


@pytest.mark.compiled
def test_on_the_way_from_pose_to_pose_balls_keep_their_limits():
    """The shortest way between two turns that a limit allows may lead past it."""
    body = sy.bundled("humanoid")
    ik = sy.IK(body, sy.PositionGoal("left_hand"))
    balls = [(body.q_slice(name).start, 0.2) for name in ("chest", "left_shoulder", "left_upper_arm", "left_upper_leg")]
    past = 0
    for seed in range(30):
        before, goal = body.random_pose(2 * seed), body.random_pose(2 * seed + 1)
        q = _turned(ik, before.q, goal.q, balls)
        assert not ik.problem.outside(sy.Pose(body, q))
        for at, step in balls:
            a, b, end = (Rotation.from_quat(x[at : at + 4]) for x in (before.q, q, goal.q))
            assert 0.0 < (a.inv() * b).magnitude() <= step + 1e-9
            straight = goal.q.copy()
            way = (a.inv() * end).as_rotvec()
            straight[at : at + 4] = (a * Rotation.from_rotvec(step / np.linalg.norm(way) * way)).as_quat()
            past += len(ik.problem.outside(sy.Pose(body, straight)))
    assert past


@pytest.mark.compiled
def test_cold_frames_are_those_of_a_batch():
    """Without warm start every frame is the answer from the first start."""
    start = start_pose()
    ik = sy.IK(ARM, sy.PoseGoal("tool"))
    targets = {"tool": circle(20, start)}
    np.testing.assert_array_equal(ik.track(targets, start, warm_start=False).q, ik.solve_many(targets, start).q)


@pytest.mark.compiled
def test_a_clip_follows_another():
    """Targets from a clip's joints bring it back."""
    start = start_pose()
    ik = sy.IK(ARM, sy.PoseGoal("tool"))
    clip = ik.track({"tool": circle(20, start)}, start).motion
    targets = sy.targets_from(clip, {"tool": "tool"}, rotations=True)
    np.testing.assert_allclose(targets["tool"], circle(20, start), atol=2e-4)
    assert ik.track(targets, start).reached.all()


def test_the_path_through_several_tracks_is_the_cheapest_of_all():
    """Against every path: fewest misses first, then least motion, with a price for each change of track."""
    ik = sy.IK(ARM, sy.PositionGoal("tool"))
    rng = np.random.default_rng(4)
    frames, size = 6, 3
    for trial in range(12):
        tracks = [ik.problem.new_rows(frames) for _ in range(size)]
        for k, rows in enumerate(tracks):
            rows[:] = 0.0
            walk = np.cumsum(rng.normal(0.0, 0.05, (frames, 7)), axis=0)
            rows[:, ik.problem.places] = walk + (
                0.4 * k if trial % 2 else 0.0
            )  # tracks that meet, and tracks far apart
            rows[:, STATUS] = rng.choice([0, 4], frames, p=[0.8, 0.2])
        jumps = [rng.random(frames) < 0.3 for _ in range(size)]
        q = np.array([rows[:, ik.problem.places] for rows in tracks])
        missed = np.array([rows[:, STATUS] != 0 for rows in tracks])
        own = np.sum(np.diff(q, axis=1) ** 2, axis=2)
        paths = np.array(list(product(range(size), repeat=frames)))
        at = np.arange(frames)
        motion = np.sum(np.diff(q[paths, at], axis=1) ** 2, axis=(1, 2))
        changed = np.sum(np.diff(paths, axis=1) != 0, axis=1)
        cost = 1e6 * missed[paths, at].sum(axis=1) + motion + np.median(own) * changed
        best = paths[cost.argmin()]
        rows, jumped = best_path(ik.problem, tracks, jumps)
        np.testing.assert_array_equal(rows[:, ik.problem.places], q[best, at])
        for t in range(1, frames):
            a, b = best[t - 1], best[t]
            step = np.sum((q[b, t] - q[a, t - 1]) ** 2)
            far = a != b and step > 9.0 * max(own[a, t - 1], own[b, t - 1])
            assert jumped[t] == (jumps[b][t] or far)
        assert jumped[0] == jumps[best[0]][0]


def test_what_is_not_to_be_smoothed_is_not():
    """Goals that are no place or rotation cannot be smoothed, nor need they be where nobody asks for it."""
    ik = sy.IK(ARM, sy.AimGoal("tool"))
    targets = np.repeat([[1.0, 0.5, 0.3]], 4, axis=0)
    assert ik.track({"tool": targets}).reached.all()
    told = []
    for frames in (2, 4):
        with pytest.raises(UnsupportedError):
            ik.track({"tool": targets[:frames]}, smoothness=0.1, progress=lambda *done: told.append(done))
    assert not told, "it is said before the frames are solved"


@pytest.mark.parametrize("frames", [0, 1, 2])
def test_short_tracks_take_every_option(frames):
    options = {"smoothness": 0.1, "velocity": 1.0, "candidates": 2, "both_ways": True}
    clip = sy.IK(ARM, sy.PositionGoal("tool")).track({"tool": np.full((frames, 3), 0.4)}, **options)
    assert len(clip.q) == frames


ELBOW = sy.Skeleton.chain([(0, 0, 0), (0.4, 0, 0.05), (0.8, 0, 0)])
GENERAL = [
    name
    for name in sy.solvers
    if sy.solvers[name].restrict is sy.Fabrik.restrict and sy.PoleGoal.needs in sy.solvers[name].supported_goals
]
# the two of them that take the most steps would interpret their kernels for minutes
SWEEPS = [pytest.param(name, marks=pytest.mark.compiled) if name in ("transpose", "sdls") else name for name in GENERAL]


def passing(solver, beside, step):
    """Return a track in which a pole passes the line of a limb, beside it, and how far the bend plane turns (radians).

    The turns are those from each frame to the next.
    """
    z = np.arange(-0.3, 0.3, step)
    poles = np.column_stack([np.full(len(z), 0.35), np.full(len(z), beside), z])
    ik = sy.IK(ELBOW, [sy.PositionGoal("joint2", (0.7, 0, 0)), sy.PoleGoal("joint1")], solver)
    clip = ik.track({"joint1": poles}, ik.solve({"joint1": poles[0]}).pose)
    side = np.array([sy.Pose(ELBOW, q).position("joint1")[1:] for q in clip.q])
    turn = np.unwrap(np.arctan2(side[:, 1], side[:, 0]))
    return clip, np.abs(np.diff(turn))


@pytest.mark.parametrize("solver", SWEEPS)
def test_a_pole_that_crosses_the_limb_flips_its_elbow_and_the_frame_is_told(solver):
    """The pole goes on by a centimetre and the elbow by nearly a quarter of a turn or more, with no restart."""
    clip, turns = passing(solver, 3e-4, 0.01)
    flipped = np.flatnonzero(turns > 1.3) + 1
    if solver in ("lm", "dls", "full-body"):  # the others may turn slowly
        assert len(flipped)
    assert set(flipped.tolist()) <= set(clip.jumps)


@pytest.mark.parametrize("solver", SWEEPS)
@pytest.mark.parametrize(("beside", "step"), [(0.005, 0.045), (0.02, 0.07), (0.0003, 0.15)])
def test_a_fast_pole_that_crosses_the_limb_is_told_as_well(solver, beside, step):
    """The pole's way in one frame is as long as its distance from the shoulder; it crosses the limb all the same."""
    clip, turns = passing(solver, beside, step)
    flipped = np.flatnonzero(turns > 1.3) + 1
    if solver in ("lm", "dls", "full-body"):
        assert len(flipped)
    assert set(flipped.tolist()) <= set(clip.jumps)


def swings(clip, rows):
    """Return how far a bent limb swings about the line of its ends in each frame, radians, beyond that line's turn."""
    places = [clip.motion.positions()[:, row] for row in rows]
    line = places[2] - places[0]
    line /= np.linalg.norm(line, axis=1)[:, None]
    side = places[1] - places[0]
    side -= np.sum(side * line, axis=1)[:, None] * line
    bent = np.linalg.norm(side, axis=1) > 0.02 * np.linalg.norm(places[1] - places[0], axis=1)
    out = []
    for a, b, u, v in zip(side[:-1], side[1:], line[:-1], line[1:], strict=True):
        carried = Rotation.align_vectors(v, u)[0].apply(a)
        out.append(np.arctan2(np.linalg.norm(np.cross(carried, b)), carried @ b))
    return np.where(bent[1:] & bent[:-1], out, 0.0)


@pytest.mark.compiled
@pytest.mark.parametrize("solver", [*GENERAL, "segments", "two-bone"])
def test_poles_that_cross_an_arm_anywhere_are_told(solver):
    """Poles cross at any point, speed and distance; some solvers swing the arm a frame after the pole passed."""
    rng = np.random.default_rng(3)
    body = sy.bundled("humanoid")
    roles = "left_upper_arm", "left_lower_arm", "left_hand"
    ik = sy.IK(body, [sy.PositionGoal(roles[2]), sy.PoleGoal(roles[1])], solver)
    for _ in range(6):
        pose = body.random_pose(int(rng.integers(10**6)))
        root, elbow, tip = (pose.position(role) for role in roles)
        length = np.linalg.norm(elbow - root) + np.linalg.norm(tip - elbow)
        turn = Rotation.align_vectors(tip - root, (1.0, 0.0, 0.0))[0]
        along = (np.arange(-4, 5) + rng.random()) * rng.uniform(0.01, 0.1) * length
        way = Rotation.from_rotvec((rng.uniform(0.0, 2.0 * np.pi), 0.0, 0.0)).as_matrix()
        path = along[:, None] * way[:, 1] + rng.choice([0.0, 1e-4, 1e-3, 5e-3]) * length * way[:, 2]
        poles = root + rng.uniform(0.1, 0.9) * (tip - root) + turn.apply(path)
        tips = tip + np.arange(9)[:, None] * rng.normal(size=3) * 2e-3 * length
        start = ik.solve({roles[2]: tip, roles[1]: poles[0]}, start=pose).pose
        clip = ik.track({roles[2]: tips, roles[1]: poles}, start)
        flipped = np.flatnonzero(swings(clip, [body.index(role) for role in roles]) > 1.25) + 1
        assert set(flipped.tolist()) <= set(clip.jumps)


@pytest.mark.parametrize("solver", SWEEPS)
def test_a_pole_that_passes_at_a_distance_is_followed_without_a_jump(solver):
    """The plane turns as the pole goes round: quickly, but as its way says."""
    clip, turns = passing(solver, 0.05, 0.01)
    assert turns.max() > 0.15
    assert clip.jumps == ()


def test_a_leap_of_the_target_is_listed_and_fast_motion_is_not():
    """A hand that goes to the other side of the body in one frame leaps; in several frames, it only moves fast."""
    body = sy.bundled("humanoid")
    ik = sy.IK(body, sy.PositionGoal("left_hand"))
    here, there = (body.random_pose(k).position("left_hand") for k in (1, 4))
    assert np.linalg.norm(there - here) > 0.5
    clip = ik.track({"left_hand": np.array([here, here, there, there])}, ik.solve({"left_hand": here}).pose)
    assert np.abs(np.diff(clip.q, axis=0)).max() > 0.7
    assert clip.jumps == (2,)
    swift = ik.track({"left_hand": np.linspace(here, there, 12)}, ik.solve({"left_hand": here}).pose)
    assert swift.jumps == ()


def test_when_one_of_several_tracks_fails_the_others_end_too():
    """Whatever was to be told fails once, and no frame of the others is told afterwards."""
    body = sy.Skeleton.chain([(0, 0, 0), (1, 0, 0), (2, 0, 0)])
    targets = {"joint2": np.array([(1.2 * np.cos(t), 1.2 * np.sin(t), 0.3) for t in np.linspace(0, 1, 40)])}
    told = []

    def fail_once(done, of):
        told.append(done)
        if len(told) == 5:
            raise ValueError("enough")

    with pytest.raises(ValueError, match="enough"):
        sy.IK(body, sy.PositionGoal("joint2")).track(
            targets, candidates=3, both_ways=True, threads=1, progress=fail_once
        )
    assert len(told) < 20  # of 240; threads that are at a frame may still report it
