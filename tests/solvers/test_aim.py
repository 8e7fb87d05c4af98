"""Aim against a derivation of its own: the joint's frame is built from two directions, not turned by angles."""

import json

import numpy as np
import pytest

import synovia as sy
from synovia.model import Joint, Kind

AXIS, EYE, TOP = np.array([0.1, 0.2, 1.0]), np.array([0.03, 0.08, 0.1]), np.array([0.2, 1.0, -0.1])
UP = np.array([0.1, 1.0, 0.3])


def unit(v):
    """Return v at length one."""
    return np.asarray(v, float) / np.linalg.norm(v)


def at(x, y, z, rotvec=(0.0, 0.0, 0.0)):
    """Return a transform."""
    out = np.eye(4)
    out[:3, :3] = sy.Rotation.from_rotvec(rotvec).as_matrix()
    out[:3, 3] = x, y, z
    return out


def body(base=None):
    """Return a neck and a head, balls, on a base."""
    base = at(0.3, 1.0, -0.2, (0.4, -0.7, 0.2)) if base is None else base
    return sy.Skeleton(
        [
            Joint("base", rest=base),
            Joint("neck", "base", Kind.BALL, at(0.0, 0.4, 0.0, (0.1, 0.2, 0.3))),
            Joint("head", "neck", Kind.BALL, at(0.0, 0.1, 0.02, (0.0, 0.2, 0.1))),
        ]
    )


def ahead(axis, eye, distance):
    """Return the point of the axis at a distance from the joint's centre, by Pythagoras: the foot, then on."""
    a = unit(axis)
    foot = eye - a * (a @ eye)
    return foot + a * np.sqrt(distance**2 - foot @ foot)


def triad(first, second):
    """Return the frame (columns) whose first axis is a direction and whose second is nearest to another."""
    x = unit(first)
    y = unit(second - x * (x @ second))
    return np.column_stack([x, y, np.cross(x, y)])


def smallest(a, b):
    """Return the smallest turn of a to b, as two reflections: in the plane across a, then in that across a + b."""
    u, v = unit(a), unit(unit(a) + unit(b))
    mirror = lambda n: np.eye(3) - 2.0 * np.outer(n, n)  # noqa: E731
    return mirror(v) @ mirror(u)


def expected(before, centre, target, *, axis=AXIS, eye=EYE, up=None, top=TOP, twist=0.0):
    """Return the rotation matrix that the joint has to have, from the one that it had."""
    way = target - centre
    point = ahead(axis, eye, np.linalg.norm(way))
    if up is None:
        return smallest(before @ point, way) @ before
    line = unit(way)
    rolled = sy.Rotation.from_rotvec(twist * line).apply(up)
    return triad(line, rolled) @ triad(point, top).T


CASES = {
    "smallest turn": {},
    "through the centre": {"eye": np.zeros(3)},
    "rolled up": {"up": UP},
    "rolled up through the centre": {"up": UP, "eye": np.zeros(3)},
    "rolled and twisted": {"up": UP, "twist": -2.4},
    "rolled to a side": {"up": np.array([1.0, 0.0, -2.0]), "top": np.array([0.0, 0.0, 1.0]), "axis": (1, 0, 0)},
}


def solved(skeleton, start, target, case, name="head", size=1.0):
    """Return the solution of a case."""
    case = {"axis": AXIS, "eye": EYE, "top": TOP, **case}
    goal = sy.AimGoal(name, axis=case["axis"], offset=size * case["eye"])
    up = case.get("up")
    settings = {"up": tuple(up), "top": tuple(case["top"])} if up is not None else {}
    ik = sy.IK(skeleton, goal, sy.Aim(**settings, twist=case.get("twist", 0.0)))
    return ik.solve({name: target}, start)


def check(skeleton, start, target, case, name="head", size=1.0):
    """Check that the joint has the rotation that is expected, to 1e-9, and that nothing else has moved."""
    solution = solved(skeleton, start, target, case, name, size)
    wanted = dict(case)
    wanted["eye"] = size * wanted.get("eye", EYE)
    R = expected(start.matrix(name), start.position(name), np.asarray(target), **wanted)
    assert solution.reached
    np.testing.assert_allclose(solution.pose.matrix(name), R, rtol=0, atol=1e-9)
    np.testing.assert_allclose(solution.pose.position(name), start.position(name), rtol=0, atol=1e-12 * size)


@pytest.mark.parametrize("name", CASES)
def test_the_joint_stands_as_two_directions_say(name):
    """The line of sight and the roll, to 1e-9, from many starts to targets all around."""
    skeleton = body()
    rng = np.random.default_rng(11)
    for k in range(12):
        start = skeleton.random_pose(k)
        check(skeleton, start, start.position("head") + rng.uniform(0.3, 4.0) * unit(rng.normal(size=3)), CASES[name])


def test_mirrored_and_scaled_parents(tmp_path):
    """glTF nodes that mirror and scale what hangs on them: the aim and its roll are as exact."""
    for n, scale in enumerate(([-2.0, 2.0, 2.0], [0.01, 0.01, 0.01], [3.0, -3.0, 3.0])):
        nodes = [
            {"name": "base", "scale": scale, "translation": [0.3, 1, -0.2], "rotation": [5, -5, 1, 7], "children": [1]},
            {"name": "neck", "translation": [0.1, 0.0, 0.2], "rotation": [0.1, 0.2, 0.3, 0.9], "children": [2]},
            {"name": "head", "translation": [0.1, -0.4, 0.05], "rotation": [0.3, 0.0, 0.0, 0.95], "children": [3]},
            {"name": "crown", "translation": [0.02, 0.35, -0.1]},
        ]  # fmt: skip
        for node in nodes[:3]:
            node["rotation"] = unit(node["rotation"]).tolist()
        path = tmp_path / f"head{n}.gltf"
        path.write_text(
            json.dumps({"asset": {"version": "2.0"}, "scenes": [{"nodes": [0]}], "scene": 0, "nodes": nodes})
        )
        skeleton, size = sy.load_skeleton(path), abs(scale[0])
        for k in range(4):
            start = skeleton.random_pose(k)
            target = start.position("head") + size * np.array([0.5, -0.4, 0.3 * k - 0.2])
            for case in CASES.values():
                check(skeleton, start, target, case, size=size)


def test_aligned_targets_stay_and_opposite_ones_turn_half_round():
    """On the line of sight nothing moves; behind, any half turn will do, always the same; ``up`` decides the roll."""
    skeleton = body()
    start = skeleton.random_pose(3)
    R, centre = start.matrix("head"), start.position("head")
    before = R @ ahead(AXIS, EYE, 2.0)
    for way in (before, -before):
        plain = solved(skeleton, start, centre + way, {})
        assert plain.reached
        ray = plain.pose.matrix("head") @ unit(AXIS)
        eye = centre + plain.pose.matrix("head") @ EYE
        np.testing.assert_allclose(ray, unit(centre + way - eye), atol=1e-9)
        np.testing.assert_array_equal(plain.pose.q, solved(skeleton, start, centre + way, {}).pose.q)
        check(skeleton, start, centre + way, CASES["rolled up"])
    np.testing.assert_allclose(solved(skeleton, start, centre + before, {}).pose.q, start.q, atol=1e-9)
    turned = sy.Rotation.from_matrix(solved(skeleton, start, centre - before, {}).pose.matrix("head") @ R.T)
    assert turned.magnitude() == pytest.approx(np.pi, abs=1e-9)


def test_where_up_or_top_lies_on_the_line_of_sight_the_roll_stays_that_of_the_smallest_turn():
    """There is no roll to choose; nothing jumps."""
    skeleton = body()
    start = skeleton.random_pose(5)
    centre = start.position("head")
    for case, way in (
        ({"up": UP, "eye": np.zeros(3)}, 2.0 * UP),
        ({"up": UP, "top": AXIS, "eye": np.zeros(3)}, np.array([1.0, 0.4, -0.2])),
    ):
        solution = solved(skeleton, start, centre + way, case)
        R = expected(start.matrix("head"), centre, centre + way, eye=np.zeros(3))
        assert solution.reached
        np.testing.assert_allclose(solution.pose.matrix("head"), R, atol=1e-9)


def test_a_target_in_the_joint_or_nearer_than_its_eye_moves_nothing_or_misses_and_says_so():
    """Zero length: any direction will do. Inside the eye's circle no turn aims: a miss, a number, no REACHED."""
    skeleton = body()
    start = skeleton.random_pose(7)
    centre = start.position("head")
    still = solved(skeleton, start, centre, {"eye": np.zeros(3), "up": UP})
    np.testing.assert_allclose(still.pose.q, start.q, atol=1e-12)
    inside = solved(skeleton, start, centre + np.array([0.0, 0.01, 0.0]), {"axis": (1, 0, 0)})
    assert not inside.reached
    assert np.isfinite(inside.pose.q).all()
    assert inside.errors[0].angle > 1e-3


def test_a_chain_shares_its_turn_from_the_root_on():
    """Each joint its part of the smallest turn that would aim from there, the last the rest with the roll."""
    skeleton = body()
    rng = np.random.default_rng(2)
    for k in range(6):
        start = skeleton.random_pose(k)
        target = start.position("head") + 2.0 * unit(rng.normal(size=3))
        goal = sy.AimGoal("head", axis=AXIS, offset=EYE)
        ik = sy.IK(skeleton, goal, sy.Aim(shares=(2.0, 1.0), up=tuple(UP), top=tuple(TOP)))
        pose = ik.solve({"head": target}, start).pose
        neck, R = start.position("neck"), start.matrix("head")
        a, e = R @ unit(AXIS), start.position("head") + R @ EYE - neck
        whole = smallest(ahead(a, e, np.linalg.norm(target - neck)), target - neck)
        part = sy.Rotation.from_rotvec(sy.Rotation.from_matrix(whole).as_rotvec() / 3.0).as_matrix()
        np.testing.assert_allclose(pose.matrix("neck"), part @ start.matrix("neck"), atol=1e-9)
        centre = neck + part @ (start.position("head") - neck)
        np.testing.assert_allclose(pose.matrix("head"), expected(part @ R, centre, target, up=UP), atol=1e-9)


def nearest_by_trying(limit, axis, eye, target):
    """Return the smallest angle between the axis and the way to the target, over a grid of all allowed rotations."""
    ways = np.linspace(0.0, 2.0 * np.pi, 48, endpoint=False)
    disc = np.concatenate([r * np.column_stack([np.cos(ways), np.sin(ways), 0.0 * ways]) for r in np.linspace(0, 1, 9)])
    half = np.where(disc[:, :2] < 0.0, [limit.x[0], limit.y[0]], [limit.x[1], limit.y[1]])
    swings = sy.Rotation.from_rotvec(np.column_stack([half * disc[:, :2], disc[:, 2]]))
    frame = np.array(limit.frame)
    seen = swings.inv().apply(frame.T @ target)
    way = [sy.Rotation.from_rotvec((0.0, 0.0, -t)).apply(seen) - frame.T @ eye for t in np.linspace(*limit.twist, 40)]
    cosine = np.array(way) @ (frame.T @ axis) / np.linalg.norm(way, axis=-1)
    return np.arccos(np.clip(cosine, -1.0, 1.0)).min()


@pytest.mark.compiled
def test_within_the_limits_of_a_ball_nothing_comes_nearer():
    """Round and flat ellipses, narrow and beyond 90 degrees, axes along the bone, across it and beside the joint."""
    rng = np.random.default_rng(4)
    missed = 0
    for k in range(60):
        widest = (0.5, 1.5, 3.1)[k % 3]
        limit = sy.SwingTwist.about(
            rng.normal(size=3),
            x=tuple(rng.uniform(0.0, widest, 2)),
            y=tuple(rng.uniform(0.0, widest, 2) * (k % 5 > 0)),
            twist=tuple(np.sort(rng.uniform(-3.1, 3.1, 2)) * (1.0, 0.2)[k % 2]),
        )
        axis = unit(rng.normal(size=3)) if k % 4 else np.array(limit.frame)[:, k // 4 % 3]
        eye = np.zeros(3) if k % 2 else 0.1 * rng.normal(size=3)
        skeleton = sy.Skeleton([Joint("base"), Joint("head", "base", Kind.BALL, limit=limit)])
        target = rng.uniform(0.5, 3.0) * unit(rng.normal(size=3))
        ik = sy.IK(skeleton, sy.AimGoal("head", axis=axis, offset=eye), "aim")
        solution = ik.solve({"head": target}, skeleton.random_pose(k))
        assert not ik.problem.outside(solution.pose)
        assert solution.errors[0].angle < nearest_by_trying(limit, axis, eye, target) + np.radians(0.03)
        again = ik.solve({"head": target}, solution.pose)
        moved = solution.pose.rotation("head").inv() * again.pose.rotation("head")  # q and -q are the same turn
        assert moved.magnitude() < 2e-6
        missed += not solution.reached
        allowed = skeleton.random_pose(1000 + k)
        seen = allowed.matrix("head") @ (eye + 2.0 * axis)
        assert ik.solve({"head": seen}, skeleton.random_pose(k)).reached
    assert missed > 20


def test_a_head_looks_back_as_far_as_its_neck_allows():
    """Exactly behind: a turn to a side and a lean, 134 degrees off, not the 159 of half a turn cut by the limits."""
    body = sy.bundled("humanoid")
    for weight in (1.0, 1.0 - 1e-12):  # not settled by descent: the formula alone
        goal = sy.AimGoal("head", axis=(0, 0, 1))  # it may roll
        solution = sy.IK(body, goal, sy.Aim(weight=weight)).solve({"head": (0.0, 1.5, -3.0)})
        assert np.degrees(solution.errors[0].angle) == pytest.approx(134.267, abs=1e-3)
