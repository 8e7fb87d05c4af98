"""Two-bone limbs against a derivation of their own: the elbow on the circle in which two spheres meet."""

import json
from dataclasses import replace

import numpy as np
import pytest

import synovia as sy
from synovia.model import Joint, Kind


def at(x, y, z, rotvec=(0.0, 0.0, 0.0)):
    """Return a transform."""
    out = np.eye(4)
    out[:3, :3] = sy.Rotation.from_rotvec(rotvec).as_matrix()
    out[:3, 3] = x, y, z
    return out


def limb(mid, upper=(0.1, -0.4, 0.05), lower=(0.02, -0.35, -0.1), base=None):
    """Return a ball with a hinge or ball below it, on a turned base; the hinge stands across both bones."""
    axis = np.cross(upper, lower)
    axis = axis if np.linalg.norm(axis) > 0.0 else np.array([1.0, 0.0, 0.0])
    return sy.Skeleton(
        [
            Joint("base", rest=at(0.3, 1.0, -0.2, (0.4, -0.7, 0.2)) if base is None else base),
            Joint("hip", "base", Kind.BALL, at(0.1, 0.0, 0.2, (0.2, 0.1, 0.5))),
            Joint("knee", "hip", mid, at(*upper), axis=axis if mid is Kind.HINGE else (0.0, 0.0, 1.0)),
            Joint("foot", "knee", rest=at(*lower)),
        ]
    )


def unit(v):
    """Return v at length one."""
    return v / np.linalg.norm(v)


def rodrigues(axis, angle, v):
    """Return v turned about a unit axis."""
    return v * np.cos(angle) + np.cross(axis, v) * np.sin(angle) + axis * (axis @ v) * (1.0 - np.cos(angle))


def laid_onto(a, b, v):
    """Return v carried by the smallest turn that takes a to b."""
    axis = np.cross(a, b)
    sine = np.linalg.norm(axis)
    return v if sine < 1e-15 else rodrigues(axis / sine, np.arctan2(sine, a @ b), v)


def expected(start, target, *, softening=0.0, pole=None, twist=0.0):
    """Return where knee and foot have to be.

    The knee is on the circle in which the spheres about hip and foot meet; where on it says the pole, or the direction
    in which the start bends, carried along with the line from hip to foot.
    """
    A, B, C = (start.position(name) for name in ("hip", "knee", "foot"))
    a, b = np.linalg.norm(B - A), np.linalg.norm(C - B)
    longest, x = a + b, np.linalg.norm(target - A)
    line = unit(target - A)
    edge = (1.0 - softening) * longest
    d = (
        x
        if x <= edge or softening == 0.0
        else longest - softening * longest * np.exp((edge - x) / (softening * longest))
    )
    d = min(max(d, abs(a - b)), longest)
    along = (d * d + a * a - b * b) / (2.0 * d)
    radius = np.sqrt(max(a * a - along * along, 0.0)) if abs(a - b) < d < longest else 0.0
    before = unit(C - A)
    out = B - A - before * (before @ (B - A))
    side = laid_onto(before, line, unit(out)) if np.linalg.norm(out) > 1e-9 else np.zeros(3)
    if pole is not None:
        side = unit(pole - A - line * (line @ (pole - A)))
    return A + along * line + radius * rodrigues(line, twist, side), A + d * line


CASES = {
    "inside": (0.6, {}),
    "folded": (0.2, {}),
    "softened": (0.775, {"softening": 0.1}),
    "softened, out of reach": (1.2, {"softening": 0.05}),
    "out of reach": (1.5, {}),
    "twisted": (0.5, {"twist": 0.8}),
    "pole": (0.6, {"pole": np.array([0.4, 1.5, 0.9])}),
    "pole, twisted": (0.6, {"pole": np.array([0.4, 1.5, 0.9]), "twist": -2.5}),
    "pole, softened": (0.76, {"pole": np.array([-0.4, 0.5, -0.9]), "softening": 0.2}),
}


def solved(skeleton, start, target, case):
    """Return the solution of a case."""
    goals = [sy.PositionGoal("foot", target)]
    if "pole" in case:
        goals.append(sy.PoleGoal("knee", case["pole"]))
    settings = {key: value for key, value in case.items() if key != "pole"}
    return sy.IK(skeleton, goals, sy.TwoBone(**settings)).solve(start=start)


@pytest.mark.parametrize("mid", [Kind.HINGE, Kind.BALL])
@pytest.mark.parametrize("name", CASES)
def test_knee_and_foot_are_where_two_spheres_meet(name, mid):
    """To 1e-9, from many starts to many directions."""
    distance, case = CASES[name]
    skeleton = limb(mid)
    rng = np.random.default_rng(3)
    for k in range(8):
        start = skeleton.random_pose(k)
        target = start.position("hip") + distance * unit(rng.normal(size=3))
        solution = solved(skeleton, start, target, case)
        knee, foot = expected(start, target, **case)
        np.testing.assert_allclose(solution.pose.position("foot"), foot, rtol=0, atol=1e-9)
        np.testing.assert_allclose(solution.pose.position("knee"), knee, rtol=0, atol=1e-9)
        beyond = distance > 0.8
        assert (solution.status is sy.Status.UNREACHABLE) == beyond
        asks_otherwise = "softening" in case or ("pole" in case and "twist" in case)
        assert solution.reached == (not beyond and not asks_otherwise)


def test_mirrored_and_scaled_parents(tmp_path):
    """glTF nodes that mirror and scale what hangs on them: the limb is the mirrored one, and solved as exactly."""
    for n, scale in enumerate(([-2.0, 2.0, 2.0], [0.01, 0.01, 0.01], [3.0, -3.0, 3.0])):
        nodes = [
            {"name": "base", "scale": scale, "translation": [0.3, 1, -0.2], "rotation": [5, -5, 1, 7], "children": [1]},
            {"name": "hip", "translation": [0.1, 0.0, 0.2], "rotation": [0.1, 0.2, 0.3, 0.9], "children": [2]},
            {"name": "knee", "translation": [0.1, -0.4, 0.05], "rotation": [0.3, 0.0, 0.0, 0.95], "children": [3]},
            {"name": "foot", "translation": [0.02, -0.35, -0.1]},
        ]  # fmt: skip
        for node in nodes[:3]:
            node["rotation"] = unit(np.array(node["rotation"])).tolist()
        path = tmp_path / f"limb{n}.gltf"
        path.write_text(
            json.dumps({"asset": {"version": "2.0"}, "scenes": [{"nodes": [0]}], "scene": 0, "nodes": nodes})
        )
        skeleton = sy.load_skeleton(path)
        size = abs(scale[0])
        for k in range(4):
            start = skeleton.random_pose(k)
            hip = start.position("hip")
            target, pole = hip + size * np.array([0.3, -0.4, 0.2 * k]), hip + size * np.array([1.0, 0.3, 0.2])
            for case in ({}, {"pole": pole}, {"pole": pole, "softening": 0.5}):
                solution = solved(skeleton, start, target, case)
                knee, foot = expected(start, target, **case)
                np.testing.assert_allclose(solution.pose.position("foot"), foot, rtol=0, atol=1e-9 * size)
                np.testing.assert_allclose(solution.pose.position("knee"), knee, rtol=0, atol=1e-9 * size)


@pytest.mark.parametrize("mid", [Kind.HINGE, Kind.BALL])
def test_aligned_and_zero_length_limbs(mid):
    """Straight at the start, straight at the end, a bone of no length, a target in the root: exact, and never NaN."""
    pole = np.array([0.5, 0.6, 0.9])
    straight = limb(mid, upper=(0.0, -0.4, 0.0), lower=(0.0, -0.4, 0.0))
    rest = straight.rest_pose()
    hip, down = rest.position("hip"), unit(rest.position("foot") - rest.position("hip"))
    for target in (hip + 0.8 * down, hip + 0.5 * down, hip - 0.5 * down, hip - 0.8 * down):
        solution = solved(straight, rest, target, {"pole": pole})
        knee, foot = expected(rest, target, pole=pole)
        np.testing.assert_allclose(solution.pose.position("foot"), foot, atol=1e-9)
        # at full extension a rounding of the target, 1e-16, moves the knee by its root
        full = abs(np.linalg.norm(target - hip) - 0.8) < 1e-12
        np.testing.assert_allclose(solution.pose.position("knee"), knee, atol=2e-8 if full else 1e-9)
        plain = solved(straight, rest, target, {}).pose
        np.testing.assert_allclose(plain.position("foot"), target, atol=1e-9)
    solution = solved(straight, rest, hip, {})
    assert solution.reached
    for upper, lower in (((0.0, 0.0, 0.0), (0.0, -0.4, 0.0)), ((0.0, -0.4, 0.0), (0.0, 0.0, 0.0))):
        single = limb(mid, upper, lower)
        start = single.random_pose(5)
        target = start.position("hip") + 0.4 * unit(np.array([1.0, 2.0, -0.5]))
        np.testing.assert_allclose(solved(single, start, target, {}).pose.position("foot"), target, atol=1e-9)
        far = solved(single, start, target + 1.0, {})
        assert far.status is sy.Status.UNREACHABLE
        assert np.isfinite(far.pose.q).all()


def test_the_knee_keeps_calm_near_full_extension_when_softened():
    """Half a millimetre of the target turns no joint of 0.4 m + 0.4 m by half a degree; unsoftened it may by four."""
    skeleton = limb(Kind.HINGE, upper=(0.0, -0.4, 0.0), lower=(0.0, -0.4, 0.0))
    skeleton = sy.Skeleton(
        [replace(j, limit=sy.Interval(0.0, 2.5)) if j.name == "knee" else j for j in skeleton.joints]
    )
    hip = skeleton.rest_pose().position("hip")
    for direction in ([0.2, -1.0, 0.3], [0.0, -1.0, 0.0], [1.0, 0.4, -0.2]):
        targets = hip + np.arange(0.7, 0.85, 0.0005)[:, None] * unit(np.array(direction))
        most = {}
        for softening in (0.0, 0.02):
            ik = sy.IK(skeleton, sy.PositionGoal("foot"), sy.TwoBone(softening=softening))
            q = ik.track({"foot": targets}, start=ik.solve({"foot": targets[0]}).pose).q
            hips = sy.Rotation.from_quat(q[:, skeleton.q_slice("hip")])
            turns = [(hips[:-1].inv() * hips[1:]).magnitude(), np.abs(np.diff(q[:, skeleton.q_slice("knee")][:, 0]))]
            most[softening] = np.degrees(np.max(turns))
        assert most[0.02] < 0.5 < 3.0 < most[0.0]


def test_what_settings_leave_is_told_as_theirs_and_not_as_steps_that_ran_out():
    """A closed form has one step: what ``softening`` leaves, and a plane on its way to a pole, are told by name."""
    skeleton = limb(Kind.BALL)
    hip = skeleton.rest_pose().position("hip")
    foot, pole = sy.PositionGoal("foot", hip + np.array([0.0, -0.765, 0.0])), sy.PoleGoal("knee")
    eased = sy.IK(skeleton, foot, sy.TwoBone(softening=0.1)).solve()
    assert eased.status is sy.Status.STALLED
    assert "softening=0.1" in " ".join(eased.explain())
    assert "more attempts" not in " ".join(eased.explain())
    ik = sy.IK(skeleton, [foot, pole], "two-bone")
    poles = hip + np.array([(0.0, -0.3, -0.02), (0.0, -0.3, 0.02)])
    clip = ik.track({"foot": np.tile(foot.target[:3, 3], (2, 1)), "knee": poles}, ik.solve({"knee": poles[0]}).pose)
    assert clip[1].status is sy.Status.STALLED
    assert "turns towards its pole by at most pace=35 radians" in " ".join(clip[1].explain())
    assert "pace=35" not in " ".join(clip[0].explain())


@pytest.mark.parametrize("aside", [0.0, 1e-3, -1e-5])
def test_a_pole_that_crosses_the_line_swings_the_limb_round_at_its_pace_and_says_what_is_left(aside):
    """At most 5 degrees a millimetre; the foot stays; the residual is the angle that is left, and fades to nothing."""
    skeleton = limb(Kind.HINGE, upper=(0.0, -0.4, 0.0), lower=(0.0, -0.4, 0.0))
    hip = skeleton.rest_pose().position("hip")
    foot = hip + np.array([0.05, -0.6, 0.1])
    line = unit(foot - hip)
    n = unit(np.cross(line, [0.0, 0.0, 1.0]))
    x = np.arange(-100.0, 100.0) * 1e-3
    poles = 0.5 * (hip + foot) + x[:, None] * np.cross(line, n) + aside * n
    ik = sy.IK(skeleton, [sy.PositionGoal("foot"), sy.PoleGoal("knee")], sy.TwoBone())
    start = ik.solve({"foot": foot, "knee": poles[0]})
    clip = ik.track({"foot": np.tile(foot, (len(x), 1)), "knee": poles}, start=start.pose)
    knees = np.array([pose.position("knee") for pose in (clip[b].pose for b in range(len(clip)))]) - hip
    sides = knees - np.outer(knees @ line, line)
    sides /= np.linalg.norm(sides, axis=1, keepdims=True)
    turns = np.degrees(np.arccos(np.clip((sides[1:] * sides[:-1]).sum(axis=1), -1.0, 1.0)))
    assert turns.max() <= 5.0
    assert abs(turns.sum() - 180.0) < 2.0 + 1e3 * abs(aside)
    wanted = poles - hip
    wanted -= np.outer(wanted @ line, line)
    left = np.arccos(np.clip((sides * wanted).sum(axis=1) / np.linalg.norm(wanted, axis=1), -1.0, 1.0))
    off = np.linalg.norm(wanted, axis=1) > 2e-3  # on the line itself there is no angle
    np.testing.assert_allclose(clip.errors[off, 1, 1], left[off], atol=1e-6)
    assert clip.errors[:, 0, 0].max() < 1e-12
    assert clip.reached[0]
    assert clip.reached[-1]
    assert not clip.jumps
    assert all(clip.status[clip.errors[:, 1, 1] > ik.tolerance[1]] != sy.Status.REACHED)


def test_weight_and_twist_mean_the_same_in_every_frame_of_a_track():
    """Half of the way from the start of the track, and one twist from it, however many frames there are."""
    skeleton = limb(Kind.BALL)
    start = skeleton.random_pose(4)
    target = start.position("hip") + np.array([0.3, -0.4, 0.2])
    for settings in ({"weight": 0.5}, {"twist": 0.7}, {"weight": 0.3, "twist": -1.0}):
        ik = sy.IK(skeleton, sy.PositionGoal("foot"), sy.TwoBone(**settings))
        clip = ik.track({"foot": np.tile(target, (6, 1))}, start=start)
        np.testing.assert_allclose(clip.q, np.tile(ik.solve({"foot": target}, start).pose.q, (6, 1)), atol=1e-9)
    whole = sy.IK(skeleton, sy.PositionGoal("foot"), "two-bone").solve({"foot": target}, start).pose
    half = sy.IK(skeleton, sy.PositionGoal("foot"), sy.TwoBone(weight=0.5)).solve({"foot": target}, start)
    back = start.rotation("hip").inv()
    assert (back * half.pose.rotation("hip")).magnitude() == pytest.approx(
        (back * whole.rotation("hip")).magnitude() / 2
    )
    assert any("weight=0.5" in line for line in half.explain())


def test_limits_of_a_body_hold_and_the_wrist_takes_its_rotation():
    """Both hands and both feet of the humanoid: what its limbs can do is done, in the limits, the spine untouched."""
    body = sy.bundled("humanoid")
    limbs = ("left_hand", "right_hand", "left_foot", "right_foot")
    ik = sy.IK(body, [sy.PoseGoal(name) for name in limbs], "two-bone")
    start = body.rest_pose()
    for k in range(20):
        q, other = start.q.copy(), body.random_pose(k)
        for row in ik.moving:
            q[body.q_slice(row)] = other.q[body.q_slice(row)]
        pose = sy.Pose(body, q)
        solution = ik.solve({name: pose.transform(name) for name in limbs}, start)
        assert solution.reached
        assert not ik.problem.outside(solution.pose)
        held = np.ones(body.nq, bool)
        for row in ik.moving:
            held[body.q_slice(row)] = False
        np.testing.assert_array_equal(solution.pose.q[held], start.q[held])


@pytest.mark.parametrize("solver", ["two-bone", "segments"])
def test_a_pole_that_the_limb_cannot_follow_is_refused(solver):
    """On another limb, about another root, or the second of one limb: each is named, as is a pole without a tip."""
    body = sy.bundled("humanoid")
    hand, elbow = sy.PositionGoal("left_hand"), sy.PoleGoal("left_lower_arm")
    for poles, found in (
        ([sy.PoleGoal("right_lower_arm")], "a pole on another joint"),
        ([sy.PoleGoal("left_lower_arm", root="chest")], "a pole with another root"),
        ([elbow, sy.PoleGoal("left_lower_arm", name="second")], "a second pole of its limb"),
    ):
        with pytest.raises(sy.errors.UnsupportedError, match=f"expected a pole on 'left_lower_arm'.*{found}"):
            sy.IK(body, [hand, *poles], solver)
    assert sy.IK(body, [hand, elbow], solver).moving == {body.index("left_upper_arm"), body.index("left_lower_arm")}
    if solver == "two-bone":
        with pytest.raises(
            sy.errors.UnsupportedError, match="expected a PositionGoal or PoseGoal for the tip, got 'only poles'"
        ):
            sy.IK(body, elbow, solver)


def test_joints_that_are_no_limb_and_goals_that_are_no_place_are_refused():
    """With the goal, what was found, what is needed and what to use instead."""
    arm, body = sy.bundled("arm7"), sy.bundled("humanoid")
    for skeleton, goals in (
        (arm, sy.PositionGoal("tool")),
        (body, sy.RotationGoal("head")),
        (body, sy.PoleGoal("left_lower_leg", tip="left_foot")),
        (body, [sy.PositionGoal("left_hand"), sy.PositionGoal("left_fingertips")]),
        (body, [sy.PositionGoal("left_hand"), sy.PositionGoal("head")]),
        (body, [sy.PositionGoal("left_hand"), sy.PoleGoal("left_lower_leg", tip="left_foot")]),
        (body, sy.PositionGoal("left_hand", priority=1)),
    ):
        with pytest.raises(sy.errors.UnsupportedError, match="two-bone"):
            sy.IK(skeleton, goals, "two-bone")


@pytest.mark.parametrize("far", [0.15, 0.797])
@pytest.mark.parametrize("limits", [(0.5, 1.2), (-1.2, -0.5), (0.3, 2.0)])
def test_an_elbow_that_cannot_bend_enough_goes_to_the_end_that_comes_closest(far, limits):
    """Too near or too far for its limits: what is left is the least over all allowed turns of the elbow."""
    bone = np.eye(4)
    bone[0, 3] = 0.4
    limb = sy.Skeleton(
        [
            sy.Joint("shoulder", kind=sy.Kind.BALL),
            sy.Joint("elbow", "shoulder", sy.Kind.HINGE, bone, axis=(0, 0, 1), limit=sy.Interval(*limits)),
            sy.Joint("tip", "elbow", rest=bone, tip=True),
        ]
    )
    target = far * np.array([0.6, 0.0, 0.8])
    solution = sy.solve(limb, sy.PositionGoal("tip", target), "two-bone")
    bends = np.linspace(*limits, 1001)
    least = np.abs(0.8 * np.cos(0.5 * bends) - far).min()
    assert least > 1e-3
    assert np.linalg.norm(solution.pose.position("tip") - target) == pytest.approx(least, abs=1e-6)


def bounded_limb(limit, hand=None):
    """Return a limb of two balls with a hinge between, the limits of the root and of the hand given."""
    return sy.Skeleton(
        [
            Joint("shoulder", kind=Kind.BALL, rest=at(0.1, 1.2, 0.0, (0.2, 0.1, -0.3)), limit=limit),
            Joint("elbow", "shoulder", Kind.HINGE, at(0.3, 0, 0), axis=(0, 0, 1), limit=sy.Interval(0.0, 2.6)),
            Joint("hand", "elbow", Kind.BALL, at(0.25, 0, 0), limit=hand),
        ]
    )


def swivelled(body, pose, target, angle):
    """Return the pose with the limb turned about the line from its root to its tip."""
    line = unit(np.asarray(target) - pose.position("shoulder"))
    own = pose.rotation("shoulder")
    local = sy.Rotation.from_quat(pose["shoulder"]) * own.inv() * sy.Rotation.from_rotvec(angle * line) * own
    return pose.with_values({"shoulder": local.as_quat()})


def off_pole(pose, target, pole):
    """Return the angle between elbow and pole about the line from shoulder to hand."""
    root = pose.position("shoulder")
    line = unit(np.asarray(target) - root)
    a, b = (v - (v @ line) * line for v in (pose.position("elbow") - root, pole - root))
    return np.arctan2(np.linalg.norm(np.cross(a, b)), a @ b)


@pytest.mark.parametrize("seed", range(6))
def test_a_limb_turns_as_near_to_its_pole_as_the_limit_of_its_root_lets_it(seed):
    """Where the limit takes some of the turn, the answer lies on its edge: a little nearer would be outside."""
    rng = np.random.default_rng(seed)
    limit = sy.SwingTwist.about((1, 0, 0), x=(0.9, 0.7), y=(0.8, 1.1), twist=(-0.4, 0.6))
    body = bounded_limb(limit)
    ik = sy.IK(body, [sy.PositionGoal("hand"), sy.PoleGoal("elbow", root="shoulder", tip="hand")], "two-bone")
    inside = body.random_pose(seed)
    target = inside.position("hand")
    met = 0
    for _ in range(8):
        pole = inside.position("shoulder") + rng.normal(size=3)
        solution = ik.solve({"hand": target, "elbow": pole}, inside)
        assert solution.errors[0].position < 1e-9
        assert not ik.problem.outside(solution.pose)
        if off_pole(solution.pose, target, pole) < 1e-6:
            met += 1
            continue
        moved = [swivelled(body, solution.pose, target, side * 1e-4) for side in (1, -1)]
        np.testing.assert_allclose(moved[0].position("hand"), target, atol=1e-9)
        assert ik.problem.outside(min(moved, key=lambda pose: off_pole(pose, target, pole)))
    assert met < 8


@pytest.mark.parametrize("seed", range(4))
def test_a_hand_that_cannot_turn_as_asked_still_goes_to_its_place(seed):
    """The place goes before the rotation, and both limits hold."""
    tighten = sy.SwingTwist.about((1, 0, 0), x=(0.1, 0.1), y=(0.1, 0.1), twist=(-0.1, 0.1))
    body = bounded_limb(sy.SwingTwist.about((1, 0, 0), x=(1.5, 1.5), y=(1.5, 1.5), twist=(-1.0, 1.0)), tighten)
    pose = body.random_pose(seed)
    wanted = pose.transform("hand").copy()
    wanted[:3, :3] = pose.matrix("hand") @ sy.Rotation.from_rotvec((0.0, 2.5, 0.0)).as_matrix()
    ik = sy.IK(body, sy.PoseGoal("hand"), "two-bone")
    solution = ik.solve({"hand": wanted}, pose)
    assert solution.errors[0].position < 1e-9
    assert not solution.reached
    assert not ik.problem.outside(solution.pose)


@pytest.mark.parametrize("seed", range(4))
def test_a_place_behind_the_limits_of_a_limb_is_come_near_and_kept(seed):
    """Root and elbow turn by turns until neither comes nearer; asked again, the answer stays."""
    limit = sy.SwingTwist.about((1, 0, 0), x=(0.5, 0.5), y=(0.5, 0.5), twist=(-0.5, 0.5))
    body = bounded_limb(limit)
    shoulder = body.rest_pose().position("shoulder")
    way = body.rest_pose().matrix("shoulder") @ unit([-0.2, *np.random.default_rng(seed).normal(size=2)])
    target = shoulder + 0.4 * way
    ik = sy.IK(body, sy.PositionGoal("hand"), "two-bone")
    solution = ik.solve({"hand": target})
    assert not ik.problem.outside(solution.pose)
    miss = solution.errors[0].position
    assert miss > 0.05
    for angle in (1e-3, -1e-3):  # neither joint alone comes nearer
        for axis in np.eye(3):
            turn = sy.Rotation.from_quat(solution.pose["shoulder"]) * sy.Rotation.from_rotvec(angle * axis)
            other = solution.pose.with_values({"shoulder": turn.as_quat()})
            assert ik.problem.outside(other) or np.linalg.norm(other.position("hand") - target) > miss - 1e-6
        other = solution.pose.with_values({"elbow": solution.pose["elbow"] + angle})
        assert ik.problem.outside(other) or np.linalg.norm(other.position("hand") - target) > miss - 1e-6
    again = ik.solve({"hand": target}, solution.pose)
    np.testing.assert_allclose(again.pose.q, solution.pose.q, atol=1e-6)


@pytest.mark.parametrize("solver", ["two-bone", "aim"])
def test_a_miss_in_the_middle_ends_neither_a_batch_nor_a_track(solver):
    """Every row gets its own answer, as alone; in a track each begins where the one before ended."""
    body = limb(Kind.HINGE) if solver == "two-bone" else bounded_limb(None)
    if solver == "two-bone":
        ik = sy.IK(body, sy.PositionGoal("foot"), solver)
        root, reach = body.rest_pose().position("hip"), ik.reach
        ways = np.array([unit(w) for w in ((1, -1, 0.2), (1, -1, 0.3), (1, -1, 0.4), (1, -1, 0.5))])
        targets = {"foot": root + ways * reach * np.array([0.7, 1.6, 0.7, 0.8])[:, None]}
        missed = [False, True, False, False]
    else:
        ik = sy.IK(body, sy.AimGoal("shoulder", axis=(1, 0, 0)), sy.Aim(weight=0.5))
        targets = {"shoulder": body.rest_pose().position("shoulder") + np.array([[3.0, z, 0.3] for z in (0, 1, 2, 3)])}
        missed = [True] * 4
    name = next(iter(targets))
    many, clip = ik.solve_many(targets), ik.track(targets)
    assert list(~many.reached) == missed
    assert list(~clip.reached) == missed
    for row, target in enumerate(targets[name]):
        np.testing.assert_allclose(many.q[row], ik.solve({name: target}).pose.q, atol=1e-12)
        assert np.isfinite(clip.q[row]).all()
        error = many.errors[row, 0].max()
        assert clip.errors[row, 0].max() == pytest.approx(error, abs=1e-3)
    broken = targets[name].copy()
    broken[2, 1] = np.nan
    for call in (ik.solve_many, ik.track):
        with pytest.raises(sy.InputError, match=name):
            call({name: broken})
