"""Every verb on skeletons with mimic joints, whose joints, values, velocities and free variables differ in number.

Followers come before and after their leaders, follow other followers, the other way and with offsets, and slides follow
hinges. Ahead of and between them are balls, so that no index of one list is right in another.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import synovia as sy
from synovia.kernels.compiler import compiled
from synovia.model.pose import inside_limits
from synovia.tracking.trajectory import all_variables

FRAMES = 24 if compiled() else 6
FPS = 30.0


def at(x, y, z):
    rest = np.eye(4)
    rest[:3, 3] = x, y, z
    return rest


def hinge(name, parent, offset, axis, low=-2.0, high=2.0, mimic=None, **more):
    limit = sy.Interval(low, high)
    return sy.Joint(name, parent, sy.Kind.HINGE, at(*offset), axis=axis, limit=limit, mimic=mimic, **more)


def slide(name, parent, offset, axis, low=-0.3, high=0.3, mimic=None):
    return sy.Joint(name, parent, sy.Kind.SLIDE, at(*offset), axis=axis, limit=sy.Interval(low, high), mimic=mimic)


def tip(name, parent, offset):
    return sy.Joint(name, parent, sy.Kind.FIXED, at(*offset))


def finger():
    """Leaders before their followers, as in the hands of robots."""
    return sy.Skeleton(
        [
            sy.Joint(
                "wrist",
                None,
                sy.Kind.BALL,
                limit=sy.SwingTwist.about((0, 0, 1), x=(0.8, 0.8), y=(0.8, 0.8), twist=(-1, 1)),
            ),
            hinge("near", "wrist", (0, 0, 0.3), (1, 0, 0), -0.2, 1.4),
            hinge("middle", "near", (0, 0, 0.4), (1, 0, 0), mimic=sy.Mimic("near", 1.1, 0.1)),
            hinge("far", "middle", (0, 0, 0.3), (1, 0, 0), mimic=sy.Mimic("near", 0.6)),
            tip("tip", "far", (0, 0, 0.2)),
            hinge("thumb", "wrist", (0.1, 0, 0.1), (0, 1, 0), -1.0, 1.0),
            hinge("thumb_end", "thumb", (0.3, 0, 0), (0, 1, 0), mimic=sy.Mimic("thumb", 2.5)),
            tip("thumb_tip", "thumb_end", (0.2, 0, 0)),
        ],
        name="finger",
    )


def backwards():
    """Followers above their leaders, the other way and with an offset; one follows a follower."""
    return sy.Skeleton(
        [
            hinge("base", None, (0, 0, 0), (0, 0, 1), mimic=sy.Mimic("elbow", -0.5, 0.2)),
            sy.Joint("shoulder", "base", sy.Kind.BALL, at(0, 0, 0.4)),
            hinge("elbow", "shoulder", (0.4, 0, 0), (0, 1, 0), -1.5, 1.5),
            hinge("twist", "elbow", (0.1, 0, 0), (1, 0, 0), mimic=sy.Mimic("base", -2.0, -0.1)),
            hinge("wrist", "twist", (0.3, 0, 0), (0, 0, 1), -1.2, 1.2),
            tip("tip", "wrist", (0.2, 0.1, 0)),
            hinge("lamp", "base", (0, 0.3, 0), (1, 0, 0), mimic=sy.Mimic("wrist", 0.7)),
            tip("thumb_tip", "lamp", (0, 0.2, 0.1)),
        ],
        name="backwards",
    )


def slides():
    """A slide that follows a hinge, a hinge that follows a slide, and a slide that follows a slide."""
    return sy.Skeleton(
        [
            sy.Joint("foot", None, sy.Kind.FIXED),
            hinge("turn", "foot", (0, 0, 0.1), (0, 0, 1), -2.0, 2.0),
            slide("screw", "turn", (0, 0, 0.1), (0, 0, 1), mimic=sy.Mimic("turn", 0.1, 0.05)),
            slide("out", "screw", (0.2, 0, 0), (1, 0, 0), 0.0, 0.4),
            slide("further", "out", (0.1, 0, 0), (1, 0, 0), mimic=sy.Mimic("out", 0.8)),
            hinge("roll", "further", (0.1, 0, 0), (0, 1, 0), mimic=sy.Mimic("out", 3.0, -0.4)),
            sy.Joint("hand", "roll", sy.Kind.BALL, at(0.2, 0, 0)),
            slide("left", "hand", (0.1, 0.05, 0), (0, 1, 0), 0.0, 0.05),
            tip("tip", "left", (0.1, 0, 0)),
            slide("right", "hand", (0.1, -0.05, 0), (0, -1, 0), mimic=sy.Mimic("left")),
            tip("thumb_tip", "right", (0.1, 0, 0)),
        ],
        name="slides",
    )


def moved():
    """The finger on a base that moves, behind a follower of another branch."""
    given = [joint if joint.parent is not None else replace(joint, parent="tail") for joint in finger().joints]
    tail = hinge("tail", None, (0, 0, 0), (0, 0, 1), mimic=sy.Mimic("thumb", -0.5, 0.3))
    return sy.Skeleton([tail, *given], name="moved").with_root("free")


BODIES = {"finger": finger(), "backwards": backwards(), "slides": slides(), "moved": moved()}
TIPS = "tip", "thumb_tip"
bodies = pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)


def gap(body, q):
    """Return by how much the followers of joint values are off, and how far the values are outside the limits."""
    q = np.atleast_2d(q)
    low, high = body.limits
    assert np.isfinite(q).all()
    return max(
        np.abs(body.follow(q.copy()) - q).max(),
        np.maximum(low - q, q - high).max(),
        np.abs(inside_limits(body, np.ascontiguousarray(q)) - q).max(),
    )


def way(body, frames=FRAMES, share=1.0):
    """Return joint values (T, nq) of a smooth way between two poses."""
    a, b = (body.random_pose(k).q for k in (3, 4))
    u = np.sin(np.linspace(0.0, 2.0, frames))[:, None] * share
    q = (1 - u) * a + u * b
    for at_q in all_variables(body).turn_at.tolist():
        q[:, at_q : at_q + 4] /= np.linalg.norm(q[:, at_q : at_q + 4], axis=1, keepdims=True)
    return body.follow(inside_limits(body, q))


def places(body, q):
    """Return targets (T, 3) of both tips."""
    poses = [sy.Pose(body, row) for row in q]
    return {name: np.array([pose.position(name) for pose in poses]) for name in TIPS}


def goals(kind=sy.PositionGoal):
    return [kind(name) for name in TIPS]


@bodies
def test_variables_and_their_owners_are_in_turn(body):
    """Differences of joint values belong to the joints that they are listed for."""
    variables = all_variables(body)
    a = body.random_pose(1).q
    for row in dict.fromkeys(body.tables.owner.tolist()):
        b = a.copy()
        place = body.q_slice(row)
        b[place] = body.random_pose(2).q[place]
        angles = variables.angles(variables.difference(a[None], body.follow(b)[None]))[0]
        joint = body.joints[row]
        assert (np.flatnonzero(angles > 1e-9).size == 1) == (joint.kind in {sy.Kind.HINGE, sy.Kind.BALL})


@bodies
@pytest.mark.parametrize("solver", [None, "dls", "pinv", "sdls", "full-body", "fabrik", "ccd", "particles"])
def test_track(body, solver):
    q = way(body)
    clip = sy.IK(body, goals(), solver).track(places(body, q), sy.Pose(body, q[0]), fps=FPS)
    assert gap(body, clip.q) < 1e-9
    assert clip.reached.mean() > 0.8
    clip.motion.positions()


@bodies
@pytest.mark.parametrize(
    "options",
    [
        {"candidates": 3},
        {"both_ways": True},
        {"smoothness": 0.2},
        {"velocity": 1.0},
        {"candidates": 2, "both_ways": True, "smoothness": 0.1, "velocity": 2.0},
        {"warm_start": False},
    ],
    ids=str,
)
def test_options_of_track(body, options):
    q = way(body)
    clip = sy.IK(body, goals()).track(places(body, q), sy.Pose(body, q[0]), fps=FPS, **options)
    assert gap(body, clip.q) < 1e-9
    variables = all_variables(body)
    if "velocity" in options:
        most = options["velocity"] / FPS * (1 + 1e-9)
        assert np.abs(variables.difference(clip.q[:-1], clip.q[1:])[:, variables.number_column]).max() <= most
        hinges = [body.q_slice(r).start for r, j in enumerate(body.joints) if j.kind in {sy.Kind.HINGE, sy.Kind.SLIDE}]
        assert np.abs(np.diff(clip.q[:, hinges], axis=0)).max() <= most  # followers too


def test_the_velocity_of_a_follower_limits_its_leader():
    body = finger()
    q = way(body)
    for limited in ({"thumb_end": 0.5}, {"thumb": 0.2}):
        clip = sy.IK(body, goals()).track(places(body, q), sy.Pose(body, q[0]), fps=FPS, velocity=limited)
        assert np.abs(np.diff(clip.q[:, body.q_slice("thumb_end").start])).max() * FPS <= 0.5 * (1 + 1e-9)


@bodies
def test_flips_are_those_of_the_joint_that_turns(body):
    """A restart with far targets is a jump, whichever joint turns."""
    first, last = (places(body, body.random_pose(k).q[None]) for k in (5, 6))
    targets = {name: np.concatenate([np.repeat(first[name], 4, 0), np.repeat(last[name], 4, 0)]) for name in TIPS}
    clip = sy.IK(body, goals(), "full-body").track(targets, body.random_pose(5), fps=FPS)
    assert set(clip.jumps) <= {4}


@bodies
@pytest.mark.parametrize("kind", [sy.PositionGoal, sy.RotationGoal, sy.PoseGoal])
def test_solve_and_its_reports(body, kind):
    wanted = body.random_pose(8)
    ik = sy.IK(body, goals(kind))
    solution = ik.solve({name: wanted.transform(name) for name in TIPS}, body.random_pose(9))
    assert gap(body, solution.pose.q) < 1e-9
    far = ik.solve({name: at(5, 5, 5) for name in TIPS} if kind is not sy.RotationGoal else None)
    assert gap(body, far.pose.q) < 1e-9
    for answer in (solution, far):
        assert isinstance(answer.explain(), list)
        assert isinstance(answer.reasons, tuple)
        str(answer)
        answer.to_dict() if hasattr(answer, "to_dict") else None


@bodies
def test_many_at_once(body):
    q = np.array([body.random_pose(k).q for k in range(8)])
    ik = sy.IK(body, goals())
    many = ik.solve_many(places(body, q), body.random_pose(1))
    alone = [ik.solve({name: p[k] for name, p in places(body, q).items()}, body.random_pose(1)) for k in range(8)]
    np.testing.assert_array_equal(many.q, [solution.pose.q for solution in alone])
    assert gap(body, many.q) < 1e-9


@bodies
@pytest.mark.parametrize("name", TIPS)
def test_simd_is_the_same_or_refused(body, name):
    q = np.array([body.random_pose(k).q for k in range(8)])
    ik = sy.IK(body, sy.PositionGoal(name), "lm")
    try:
        many = ik.solve_many(places(body, q)[name], simd=True)
    except sy.errors.UnsupportedError:
        return
    assert gap(body, many.q) < 1e-9


@bodies
@pytest.mark.parametrize("name", TIPS)
@pytest.mark.parametrize("solver", ["hinges", "two-bone", "segments", "aim"])
def test_closed_forms_and_their_branches(body, name, solver):
    try:
        ik = sy.IK(body, sy.PoseGoal(name) if solver != "aim" else sy.AimGoal(name, (1, 0, 0)), solver)
    except sy.SynoviaError:
        return
    wanted = body.random_pose(8)
    target = wanted.transform(name) if solver != "aim" else (1.0, 2.0, 3.0)
    solution = ik.solve(target)
    assert gap(body, solution.pose.q) < 1e-9
    try:
        found = ik.branches(target)
    except sy.errors.UnsupportedError:
        return
    assert not len(found) or gap(body, found.q) < 1e-9


@bodies
def test_general_goals_levels_and_secondary_objectives(body):
    many = [
        sy.PositionGoal("tip", priority=0, name="first"),
        sy.PositionGoal("thumb_tip", priority=1, name="second"),
        sy.DirectionGoal("tip", (1, 0, 0), (0, 0, 1), priority=2, name="ahead"),
        sy.RestGoal(),
    ]
    wanted = body.random_pose(8)
    targets = {name: wanted.position(name) for name in TIPS}
    solution = sy.IK(body, many, "full-body").solve(dict(zip(("first", "second"), targets.values(), strict=True)))
    assert gap(body, solution.pose.q) < 1e-9

    def gradient(pose):
        return np.ones(pose.skeleton.nv) * 0.01

    moving = sy.IK(body, goals(), sy.LevenbergMarquardt(null_space=sy.NullSpace(gradient=gradient)))
    assert gap(body, moving.solve(targets).pose.q) < 1e-9


@bodies
def test_jacobian_is_the_derivative(body):
    """Columns are velocities of all joints; a follower moves with its leader, so its own column is zero."""
    pose, h = body.random_pose(2), 1e-6
    for name in TIPS:
        J = pose.jacobian(name)
        assert J.shape == (6, body.nv) == (6, len(body.dof_names))
        for row, joint in enumerate(body.joints):
            first = sum(j.kind.v_size for j in body.joints[:row])
            if joint.mimic is not None:
                assert not J[:, first].any()
            elif joint.kind in {sy.Kind.HINGE, sy.Kind.SLIDE}:
                ends = []
                for sign in (-1, 1):
                    q = pose.q.copy()
                    q[body.q_slice(row)] += sign * h
                    ends.append(sy.Pose(body, body.follow(q)).position(name))
                np.testing.assert_allclose(J[:3, first], (ends[1] - ends[0]) / (2 * h), atol=1e-8)


@bodies
def test_clips(body, tmp_path):
    """Files, points and planted feet."""
    q = way(body, 30)
    motion = sy.Motion(body, q, FPS)
    sy.save_motion(motion, tmp_path / "clip.npz")
    np.testing.assert_allclose(sy.load_motion(tmp_path / "clip.npz").positions(), motion.positions(), atol=1e-9)
    locked = sy.foot_lock(motion, feet=["tip"], up="z").motion
    assert gap(locked.skeleton, locked.q) < 1e-9
    fitted = sy.fit_positions(np.stack([*places(body, q).values()], axis=1), body, joints=TIPS, fps=FPS)
    assert gap(fitted.skeleton, fitted.q) < 1e-9


@bodies
def test_comparison(body):
    found = sy.comparison.compare(sy.comparison.make_problems(body, ["tip"], count=6, frames=6), ["lm", "ccd"])
    assert all(row.reached > 0.6 for row in found.rows)


@pytest.mark.slow
@bodies
def test_plots(body, tmp_path):
    pytest.importorskip("matplotlib")
    motion = sy.Motion(body, way(body), FPS)
    sy.plots.plot_joints(motion, tmp_path / "joints.png")
    clip = sy.IK(body, goals()).track(places(body, way(body)), fps=FPS)
    sy.plots.plot_errors(clip, tmp_path / "errors.png")


@pytest.mark.nightly
@bodies
def test_the_plot_of_its_reach(body, tmp_path):
    """Half a minute for each body."""
    pytest.importorskip("matplotlib")
    sy.plots.plot_reach(body, "tip", tmp_path / "reach.png")
    assert (tmp_path / "reach.png").stat().st_size > 0


@bodies
def test_the_live_page(body):
    """Its session: goals, sliders of every joint, keys, mirror images and undo."""
    pytest.importorskip("viser")
    from synovia.viewer.editing.engine import Engine
    from synovia.viewer.editing.session import Session

    session = Session(body, [sy.Motion(body, way(body), FPS)])
    session.animation.set_clip(0)
    for name in TIPS:
        session.goals.add("position", name)
    engine = Engine(session.state)

    def check():
        engine.step(0.1)
        assert gap(session.body.skeleton, session.body.pose.q) < 1e-9

    for row, joint in enumerate(session.body.skeleton.joints):
        if joint.kind in {sy.Kind.HINGE, sy.Kind.SLIDE}:
            session.body.set_joint(row, [0.11])
            check()
    session.animation.key()
    session.animation.set_play(time=0.5)
    session.goals.move(session.goals.editors[0].key, (0.3, 0.2, 0.4))
    check()
    session.animation.key()
    session.poses.mirror()
    check()
    session.history.undo()
    check()
    session.animation.set_clip(None)
    session.body.set_joint(0, [0.2]) if session.body.skeleton.joints[0].kind is sy.Kind.HINGE else session.body.rest()
    check()
    session.body.set_root("free")
    session.goals.move(session.goals.editors[0].key, (0.3, 0.2, 0.4))
    check()


def person():
    """A person whose knees are two hinges that turn together, and whose left toes follow the right ones."""
    body = sy.bundled("humanoid")
    joints = []
    for row, joint in enumerate(body.joints):
        parent = body.joint_names[body.parents[row]] if row else None
        if joint.name.endswith("_lower_leg"):
            half = sy.Interval(0.5 * joint.limit.lower, 0.5 * joint.limit.upper)
            follower = f"{joint.name}_upper"
            joints.append(replace(joint, name=follower, parent=parent, mimic=sy.Mimic(joint.name), velocity=2.0))
            joint, parent = replace(joint, rest=at(0, -0.001, 0), limit=half), follower
        if joint.name == "left_toes":
            joint = replace(joint, mimic=sy.Mimic("right_toes", -0.5, 0.1))
        joints.append(replace(joint, parent=parent))
    roles = {"up": body.up, "forward": body.forward, "meters_per_unit": body.meters_per_unit}
    return sy.Skeleton(joints, name="person", **roles)


def test_retarget():
    body = sy.bundled("humanoid")
    frames = 30
    q = np.tile(body.rest_q, (frames, 1))
    u = np.linspace(0, 2 * np.pi, frames)
    for row in (body.index("left_lower_leg"), body.index("right_lower_leg")):
        low, high = body.limits[0][body.q_slice(row).start], body.limits[1][body.q_slice(row).start]
        q[:, body.q_slice(row).start] = (
            np.clip(0.8 * (1 - np.cos(u)), low, high) if high > 1 else -0.8 * (1 - np.cos(u))
        )
    answer = sy.retarget(sy.Motion(body, q, FPS), person())
    motion = answer.motion
    assert gap(motion.skeleton, motion.q) < 1e-9
    assert sy.judge(motion).verdict in {"good", "look"}
    names = [f"{side}_lower_leg_upper" for side in ("left", "right")]
    steps = [np.abs(np.diff(motion.q[:, motion.skeleton.q_slice(name).start])).max() * FPS for name in names]
    assert max(steps) <= 2.0 * (1 + 1e-9)
    sy.foot_lock(motion)


def robot():
    """A person whose arms are hinges; a lamp on the head follows the left elbow."""
    body = sy.bundled("humanoid")
    joints = []
    for row, joint in enumerate(body.joints):
        parent = body.joint_names[body.parents[row]] if row else None
        if joint.name.endswith("upper_arm"):
            for k, axis in enumerate(np.eye(3)[:2]):
                name = f"{joint.name}_{'xy'[k]}"
                joints.append(sy.Joint(name, parent, sy.Kind.HINGE, joint.rest if k == 0 else np.eye(4), axis=axis))
                parent = name
            joint = sy.Joint(joint.name, parent, sy.Kind.HINGE, axis=(0, 0, 1))
        elif joint.name.endswith("hand"):
            joint = replace(joint, kind=sy.Kind.HINGE, limit=None, axis=(0, 1, 0))
        joints.append(replace(joint, parent=parent))
    lamp = sy.Mimic("left_lower_arm", -0.5)
    joints.insert(6, sy.Joint("lamp", "head", sy.Kind.HINGE, at(0, 0.2, 0), axis=(1, 0, 0), mimic=lamp))
    return sy.Skeleton(joints, up=body.up, forward=body.forward, meters_per_unit=1.0, name="robot")


@pytest.mark.parametrize("feet", [False, True])
def test_retarget_to_arms_of_hinges_whose_followers_are_elsewhere(feet):
    """The arms' angles are found in all frames at once; the lamp kept its old values, which was an error."""
    body = sy.bundled("humanoid")
    q = np.tile(body.rest_q, (20, 1))
    u = np.linspace(0, 2 * np.pi, len(q))
    for name, axis in (("left_upper_arm", (0.3, 0.5, 1.0)), ("right_upper_arm", (1.0, 0.2, -0.4))):
        turn = 0.6 * (1 - np.cos(u))[:, None] * axis
        q[:, body.q_slice(name)] = sy.Rotation.from_rotvec(turn).as_quat()
    elbow = body.q_slice("left_lower_arm").start
    q[:, elbow] = 0.4 * body.limits[1][elbow] * (1 - np.cos(u))
    motion = sy.retarget(sy.Motion(body, inside_limits(body, q), FPS), robot(), hold_feet=feet).motion
    assert gap(motion.skeleton, motion.q) < 1e-9
    assert np.ptp(motion.q[:, motion.skeleton.q_slice("lamp").start]) > 0.1


@bodies
def test_poses_in_files(body, tmp_path):
    pose = body.random_pose(5)
    sy.save_pose(pose, tmp_path / "pose.json")
    np.testing.assert_allclose(sy.load_pose(tmp_path / "pose.json", body).q, pose.q, atol=1e-12)
    assert Path(tmp_path / "pose.json").exists()
