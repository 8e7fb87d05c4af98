"""Proofs are true: no reachable target has one, an independent checker accepts them and refuses damaged ones."""

import math
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

import synovia as sy
from synovia.errors import FileError, FormatError, InputError
from synovia.ik.interrupts import Watch, deadline_of
from synovia.ik.proofs.chain import chain_of
from synovia.ik.proofs.check import excludes, out_of_lengths
from synovia.ik.proofs.conditions import conditions_of, implied, join
from synovia.ik.proofs.maps import MOST_PAINTED, ReachMap, axis_of, map_of
from synovia.ik.proofs.search import search, single
from synovia.results import Proof

QUICK = 2_000  # tokens


def place(*point):
    """Return the transform of a translation."""
    T = np.eye(4)
    T[:3, 3] = point
    return T


def random_body(seed, joints):
    """Return a chain of random hinges, slides and balls, with a joint that follows another."""
    rng = np.random.default_rng(seed)
    parts = [sy.Joint("base")]
    for k in range(joints):
        kind = (sy.Kind.HINGE, sy.Kind.HINGE, sy.Kind.HINGE, sy.Kind.SLIDE, sy.Kind.BALL)[rng.integers(5)]
        axis = rng.normal(size=3)
        low, high = np.sort(rng.uniform(-1.5, 1.5, 2))
        scale = 0.2 if kind is sy.Kind.SLIDE else 1.0
        limit = None if kind is sy.Kind.BALL else sy.Interval(scale * low, scale * high)
        rest = place(*rng.uniform(-0.4, 0.4, 3))
        rest[:3, :3] = sy.Rotation.random(random_state=int(rng.integers(1 << 30))).as_matrix()
        more = {} if kind is sy.Kind.BALL else {"axis": axis / np.linalg.norm(axis)}
        parts.append(sy.Joint(f"j{k}", parts[-1].name, kind, rest, limit=limit, **more))
    parts.append(sy.Joint("tip", parts[-1].name, rest=place(*rng.uniform(-0.3, 0.3, 3))))
    return sy.Skeleton(parts)


def chain(body, joint="tip"):
    """Return the chain of a position goal."""
    ik = sy.IK(body, sy.PositionGoal(joint), "lm")
    return chain_of(ik.problem.reduced, body.joint_names, body.rest_pose().q, 0)


@pytest.mark.compiled
@pytest.mark.parametrize("seed", range(12))
def test_no_pose_within_the_limits_is_excluded(seed):
    body = random_body(seed, 3 + seed % 4)
    found = chain(body)
    low, high = body.limits
    rng = np.random.default_rng(seed)
    for k in range(25):
        q = body.random_pose(100 * seed + k).q.copy()
        at = (rng.random(len(q)) < 0.4) & np.isfinite(low) & np.isfinite(high) & (k % 3 == 0)
        q[at] = np.where(rng.random(len(q)) < 0.5, low, high)[at]
        target = sy.Pose(body, q).position("tip").copy()
        assert found.gap(target) <= 1e-9
        assert search(single(found, target, 1e-6), Watch(), QUICK).tokens is None


@pytest.mark.compiled
@pytest.mark.parametrize("seed", range(6))
def test_the_checker_accepts_what_the_search_proves_and_no_reachable_target(seed):
    body = random_body(seed, 4)
    found = chain(body)
    rng = np.random.default_rng(seed)
    proved = 0
    for _ in range(10):
        target = body.rest_pose().position("tip") + rng.uniform(-1.5, 1.5, 3)
        tokens = search(single(found, target, 1e-3), Watch()).tokens
        if tokens is None:
            continue
        proved += 1

        def accepts(point, tokens):
            return excludes(*single(found, point, 1e-3).arrays(), tokens)

        assert accepts(target, tokens)
        for k in range(5):
            reachable = body.random_pose(k).position("tip")
            assert not accepts(reachable, tokens)
        damaged = tokens.copy()
        damaged[rng.integers(len(tokens))] = rng.integers(-3, 4 + 4**3)
        if not np.array_equal(damaged, tokens):  # another proof may hold, but then it proves the same
            assert not accepts(body.random_pose(7).position("tip"), damaged)
        assert not accepts(target, tokens[:-1])
        assert not accepts(target, np.append(tokens, -1))
    assert proved


def test_a_far_target_is_proved_by_lengths_to_the_length_that_is_missing():
    arm = sy.bundled("arm7")
    solution = sy.solve(arm, sy.PositionGoal("tool", (3.0, 0.0, 0.5)))
    proof = solution.proof
    assert proof.kind == "length"
    assert proof.check()
    assert 0.8 * solution.errors[0].position < proof.near <= solution.errors[0].position
    assert "No pose within the joint limits brings 'tool' nearer than" in proof.claim
    assert proof.claim in " ".join(solution.explain())


@pytest.mark.parametrize("seed", range(12))
def test_lengths_exclude_what_the_solver_calls_out_of_reach_and_no_reachable_target(seed):
    body = random_body(seed, 2 + seed % 5)
    found = chain(body)
    lengths = found.fixed, found.kinds, np.stack([found.low, found.high], axis=1)
    for k in range(40):
        reachable = body.random_pose(k).position("tip")
        assert found.length_gap(reachable) <= found.length_rounding(reachable)
        assert not out_of_lengths(*lengths, reachable, 0.0)
    for solver in ("lm", "full-body"):
        ik = sy.IK(body, sy.PositionGoal("tip"), solver)
        rng = np.random.default_rng(seed)
        for size in (0.01, 0.3, 3.0):
            solution = ik.solve(body.random_pose(seed).position("tip") + size * ik.reach * rng.normal(size=3))
            if solution.status is not sy.Status.UNREACHABLE:
                continue
            proof = solution.proof
            assert proof.check()
            assert proof.near <= solution.errors[0].position + 1e-9
            assert not replace(proof, near=proof.near + 1e-6 * ik.reach).sealed().check() or proof.kind != "length"
            assert not replace(proof, targets=body.random_pose(1).position("tip")[None].copy()).sealed().check()
            said = " ".join(solution.explain())
            assert "Not decided" not in said
            assert proof.claim in said


def test_a_chain_with_balls_is_proved_by_lengths_where_a_ball_of_all_poses_is_too_wide():
    kind, limit = sy.Kind, sy.Interval(-0.5, 0.5)
    joints = [
        sy.Joint("a", None, kind.HINGE, axis=(0, 0, 1), limit=limit),
        sy.Joint("b", "a", kind.BALL, place(0.3, 0.2, 0.0)),
        sy.Joint("c", "b", kind.HINGE, place(0.0, 0.4, 0.1), axis=(0, 1, 0), limit=limit),
        sy.Joint("d", "c", kind.BALL, place(0.2, 0.1, 0.1)),
        sy.Joint("tip", "d", rest=place(0.1, 0.3, 0.2)),
    ]
    body = sy.Skeleton(joints)
    found = chain(body)
    reach = sum(float(np.linalg.norm(joint.rest[:3, 3])) for joint in joints)
    shown = 0
    for k in range(40):
        toward = np.random.default_rng(k).normal(size=3)
        target = toward / np.linalg.norm(toward) * 1.02 * reach
        shown += found.gap(target) < 0.0
        solution = sy.solve(body, sy.PositionGoal("tip", target), "lm")
        assert solution.proof.kind == "length" or found.gap(target) > 0.0
        assert solution.proof.check()
    assert shown


def test_a_pose_and_a_goal_that_no_joint_moves_are_proved_by_lengths():
    arm = sy.bundled("arm7")
    assert sy.IK(arm, sy.PoseGoal("tool"), "lm").solve(place(0.0, 3.0, 0.0)).proof.check()
    root = sy.solve(arm, sy.PositionGoal("base", (0.0, 0.5, 0.0)), "lm")
    assert root.status is sy.Status.UNREACHABLE
    assert root.proof.check()
    held = sy.solve(narrow(), sy.PositionGoal("b", (0.0, 0.5, 0.0)), "lm", moving=["b"])
    assert held.status is sy.Status.UNREACHABLE
    assert held.proof.check()
    assert held.proof.near == pytest.approx(held.errors[0].position)
    assert not replace(held.proof, near=held.errors[0].position * 1.001).sealed().check()


@pytest.mark.slow
@pytest.mark.compiled
def test_a_map_with_too_many_boxes_is_given_up_and_not_tried_again():
    kind = sy.Kind
    joints = [
        sy.Joint("a", None, kind.HINGE, axis=(0, 0, 1)),
        sy.Joint("s", "a", kind.BALL, place(0.3, 0.0, 0.0)),
        sy.Joint("e", "s", kind.HINGE, place(0.0, 0.0, 0.36), axis=(0, 1, 0)),
        sy.Joint("tip", "e", rest=place(-0.3, 0.4, -0.4)),
    ]
    body = sy.Skeleton(joints)
    solution = sy.solve(body, sy.PositionGoal("tip", (0.0, 0.0, 0.91)), "lm", proofs=True)
    assert solution.status is not sy.Status.UNREACHABLE
    assert "Not decided for 'tip'" in " ".join(solution.explain())
    area = map_of(chain(body).trimmed())
    assert area.spent == MOST_PAINTED
    assert not area.whole
    again = sy.solve(body, sy.PositionGoal("tip", (0.0, 0.0, 0.91)), "lm")
    assert again.prove() is None
    assert area.spent == MOST_PAINTED
    assert map_of(chain(body).trimmed()) is area


def test_a_closed_form_that_decides_is_named_and_has_a_proof():
    solution = sy.solve(narrow(), sy.PositionGoal("tip", (-0.3, 0.5, 0.0)), "hinges")
    assert solution.status is sy.Status.UNREACHABLE
    assert solution.proof.check()
    solution = sy.solve(narrow(), sy.PositionGoal("tip", (-0.3, 0.5, 0.0)), "hinges")
    assert "The closed form of 'hinges' proves it." in solution.explain()
    assert "Not decided" not in " ".join(solution.explain())


def narrow(low=-0.2, high=0.2):
    """Return two links of 0.5 with narrow limits: lengths alone exclude little."""
    limit = sy.Interval(low, high)
    joints = [
        sy.Joint("a", None, sy.Kind.HINGE, axis=(0, 0, 1), limit=limit),
        sy.Joint("b", "a", sy.Kind.HINGE, place(0.5, 0, 0), axis=(0, 1, 0), limit=limit),
        sy.Joint("tip", "b", rest=place(0.5, 0, 0)),
    ]
    return sy.Skeleton(joints, meters_per_unit=1.0)


def test_limits_put_a_target_out_of_reach_and_without_proofs_nothing_is_claimed():
    goal = sy.PositionGoal("tip", (-0.3, 0.5, 0.0))
    plain = sy.solve(narrow(), goal, "lm")
    assert plain.status is sy.Status.LIMITED
    assert plain.proof is None
    proved = sy.solve(narrow(), goal, "lm", proofs=True)
    assert proved.status is sy.Status.UNREACHABLE
    assert proved.proof.check()
    np.testing.assert_array_equal(proved.q, plain.q)
    later = plain.prove()
    assert later.check()
    assert plain.status is sy.Status.UNREACHABLE
    many = sy.IK(narrow(), sy.PositionGoal("tip"), "lm", proofs=True).solve_many([(-0.3, 0.5, 0.0), (1.0, 0.0, 0.0)])
    assert [one.status.name for one in many] == ["UNREACHABLE", "REACHED"]
    assert many[0].proof.check()


def test_a_proof_is_saved_and_read_and_changes_are_noticed(tmp_path):
    proof = sy.solve(narrow(), sy.PositionGoal("tip", (-0.3, 0.5, 0.0)), "lm", proofs=True).proof
    proof.save(tmp_path / "one.npz")
    with pytest.raises(FileError):
        proof.save(tmp_path / "one.npz")
    read = Proof.load(tmp_path / "one.npz")
    assert read.check()
    assert read.claim == proof.claim
    changes = {
        "targets": proof.targets * 0.5, "low": proof.low * 0.5, "high": proof.high * 2.0, "near": proof.near * 0.5,
        "tokens": proof.tokens[:-1], "fixed": proof.fixed * 0.9, "found": 0.0, "goal": "b", "kinds": 1.0 - proof.kinds,
    }  # fmt: skip
    for name, value in changes.items():
        changed = replace(read, **{name: value})
        assert not changed.check(), name
        changed.save(tmp_path / "changed.npz", force=True)
        assert not Proof.load(tmp_path / "changed.npz").check(), name
    tip = narrow().rest_pose().position("tip")
    for name, value in {
        "targets": tip[None],
        "near": 9.0,
        "tokens": proof.tokens[:0],
        "fixed": proof.fixed * np.nan,
    }.items():
        assert not replace(read, **{name: value}).sealed().check(), name  # refused even with a new hash
    with pytest.raises(FormatError, match="npz"):
        proof.save(tmp_path / "one.json")
    np.savez(tmp_path / "other.npz", schema=np.array("synovia.motion/1"))
    with pytest.raises(FormatError, match="no proof"):
        Proof.load(tmp_path / "other.npz")


@pytest.mark.compiled
def test_a_search_that_finds_a_pose_gives_it_to_the_solver():
    arm = sy.bundled("arm7")
    solver = sy.LevenbergMarquardt(attempts=1, max_steps=1)
    target = arm.random_pose(5).position("tool")
    plain = sy.IK(arm, sy.PositionGoal("tool", target), solver).solve()
    found = sy.IK(arm, sy.PositionGoal("tool", target), solver, proofs=True).solve()
    assert found.status is not sy.Status.UNREACHABLE
    assert found.reached or not plain.reached


@pytest.mark.compiled
def test_joints_that_may_not_move_stay_and_bodies_that_go_anywhere_have_no_proof():
    body = narrow(-3.0, 3.0)
    held = sy.solve(body, sy.PositionGoal("tip", (0.0, 0.5, 0.0)), "lm", proofs=True, moving=["b"])
    assert held.proof.check()
    assert "may not move" in " ".join(held.explain())
    assert "while 'a' stays in place" in held.proof.claim
    free = sy.solve(sy.bundled("humanoid"), sy.PositionGoal("left_hand", (3.0, 1.0, 0.0)), root="free", proofs=True)
    assert free.reached


@pytest.mark.compiled
def test_a_pose_is_proved_by_the_centre_of_its_wrist():
    arm = sy.bundled("arm7")
    ik = sy.IK(arm, sy.PoseGoal("tool"), "lm")
    target = place(0.75, 0.0, 0.6)
    target[:3, :3] = sy.Rotation.from_euler("y", -90, degrees=True).as_matrix()
    solution = ik.solve(target)  # the tool would have to point back to the base
    proof = solution.prove()
    assert proof.check()
    assert "rotation" in proof.given
    assert proof.claim.startswith(f"No pose within the joint limits{proof.given} brings 'tool' nearer than ")
    lazy = sy.IK(arm, sy.PoseGoal("tool"), sy.LevenbergMarquardt(attempts=1, max_steps=1))
    for k in range(40):
        pose = arm.random_pose(k)
        reachable = place(*pose.position("tool"))
        reachable[:3, :3] = pose.rotation("tool").as_matrix()
        missed = lazy.solve(reachable)
        assert missed.reached or missed.prove(deadline=0.05) is None


@pytest.mark.compiled
def test_directions_and_cones_are_proved_together_with_a_position():
    arm = sy.bundled("arm7")
    tool = arm.random_pose(4)
    back = -tool.matrix("tool")[:, 2]
    place_goal = sy.PositionGoal("tool", (0.75, 0.0, 0.6))
    goals = {
        "direction": sy.DirectionGoal("tool", (0, 0, 1), (-1.0, 0.0, 0.0)),
        "cone": sy.DirectionGoal("tool", (0, 0, 1), (-1.0, 0.0, 0.0), cone=0.3),
        "aim": sy.AimGoal("tool", (-0.5, 0.0, 0.6), axis=(0, 0, 1)),
    }
    for name, goal in goals.items():
        solution = sy.solve(arm, [place_goal, goal], "lm", proofs=True)
        assert solution.status is sy.Status.UNREACHABLE, name
        proof = solution.proof
        assert proof.check()
        assert "'tool'" in proof.claim
        wrong = {
            "margins": proof.margins + 2.5,
            "near": 9.0,
            "tokens": proof.tokens[:-1],
            "targets": 0.1 * proof.targets,
        }
        for key, value in wrong.items():
            changed = replace(proof, **{key: value})
            assert not changed.check(), key
            assert not changed.sealed().check(), key
    met = [sy.PositionGoal("tool", tool.position("tool")), sy.DirectionGoal("tool", (0, 0, 1), back, cone=3.1)]
    lazy = sy.IK(arm, met, sy.LevenbergMarquardt(attempts=1, max_steps=1))
    assert lazy.solve().prove() is None


@pytest.mark.compiled
@pytest.mark.parametrize("seed", range(6))
def test_no_conditions_that_a_pose_meets_are_excluded(seed):
    body, rng = random_body(seed, 3 + seed % 4), np.random.default_rng(seed)
    lazy = sy.LevenbergMarquardt(attempts=1, max_steps=1)
    axis = (0.0, 0.0, 1.0)
    for k in range(8):
        pose = body.random_pose(100 * seed + k)
        p, R = pose.position("tip"), pose.matrix("tip")
        bounds = tuple(rng.uniform([-0.3] * 3, [0.0] * 3)), tuple(rng.uniform([0.0] * 3, [0.3] * 3))
        shifted = tuple((0.0, x) for x in bounds[1])
        goals = {
            "pose": [sy.PoseGoal("tip", p, pose.rotation("tip"))],
            "rotation": [sy.RotationGoal("tip", pose.rotation("tip"))],
            "direction": [sy.PositionGoal("tip", p), sy.DirectionGoal("tip", axis, R[:, 2], cone=0.1 * (k % 2))],
            "aim": [sy.PositionGoal("tip", p), sy.AimGoal("tip", p + 0.7 * R[:, 2], axis=axis, cone=0.1 * (k % 2))],
            "bounds": [sy.PositionGoal("tip", p + bounds[0], bounds=tuple((0.0, -x) for x in bounds[0]))],
            "in tool": [sy.PositionGoal("tip", p - R @ bounds[1], bounds=shifted, bounds_frame="tool")],
            "two": [sy.PositionGoal("tip", p), sy.PositionGoal("j1", pose.position("j1"))],
            "aim of a later joint": [
                sy.PositionGoal("j1", pose.position("j1")),
                sy.AimGoal("j2", pose.position("j2") + 9.0 * pose.matrix("j2")[:, 2], axis=axis),
            ],
        }  # fmt: skip
        for name, several in goals.items():
            solution = sy.solve(body, several, lazy if name in ("pose", "rotation") else "full-body")
            q = solution.q.copy()
            conditions = [one for g in range(len(several)) for one in conditions_of(solution, g)]
            assert conditions, name
            joined = join([*conditions, *implied(solution, conditions)])
            assert search(joined.parts, Watch(), QUICK).tokens is None, name
            np.testing.assert_array_equal(q, solution.q)


def six_hinges(seed, width=math.pi):
    """Return an arm of six random hinges within limits of a width."""
    rng, joints = np.random.default_rng(seed), []
    for k in range(6):
        axis, rest = rng.normal(size=3), place(*(rng.uniform(-0.3, 0.3, 3) if k else np.zeros(3)))
        above, limit = joints[-1].name if joints else None, sy.Interval(-width, width)
        joints.append(sy.Joint(f"j{k}", above, sy.Kind.HINGE, rest, axis=axis / np.linalg.norm(axis), limit=limit))
    return sy.Skeleton([*joints, sy.Joint("tip", "j5", rest=place(*rng.uniform(-0.2, 0.2, 3)))])


@pytest.mark.compiled
@pytest.mark.parametrize("seed", range(3))
def test_poses_of_six_joints_that_only_limits_exclude_are_proved(seed):
    wide, narrow = six_hinges(seed), six_hinges(seed, 1.0)
    ik, rng = sy.IK(narrow, sy.PoseGoal("tip"), "lm", proofs=True), np.random.default_rng(seed)
    shown = 0
    for k in range(4):
        q = narrow.random_pose(k).q.copy()
        q[k] = np.copysign(1.0 + 10 ** rng.uniform(-1.5, 0.0), q[k])  # one joint is out of its limits
        target = sy.Pose(wide, q).transform("tip").copy()
        solution = ik.solve(target)
        branches = ik.branches(target)
        assert not (len(branches) and solution.proof), k
        if branches.complete and not len(branches) and not solution.reached:  # it may be reached within tolerances
            shown += 1
            assert solution.status is sy.Status.UNREACHABLE, k
            assert solution.proof.check(), k
            other = narrow.random_pose(k)
            moved = np.array([(other.transform("tip") @ np.linalg.inv(target))[:3, :3]] * len(solution.proof.targets))
            targets = np.einsum("pij,pj->pi", moved, solution.proof.targets)
            targets[0] = other.position("tip")
            assert not replace(solution.proof, targets=targets, margins=10.0 + solution.proof.margins).sealed().check()
    assert shown >= 2


@pytest.mark.compiled
def test_a_pose_within_both_tolerances_is_found_where_the_least_error_is_not():
    wide, narrow = six_hinges(2), six_hinges(2, 1.0)
    plain, ik = (sy.IK(narrow, sy.PoseGoal("tip"), "lm", proofs=proofs) for proofs in (False, True))
    found = 0
    for k in range(10):
        q = narrow.random_pose(k).q.copy()
        q[k % 6] = 1.002
        target = sy.Pose(wide, q).transform("tip").copy()
        missed, solution = plain.solve(target), ik.solve(target, deadline=2.0)
        if not missed.reached and solution.reached:
            found += 1
            error = solution.errors[0]
            assert error.position <= ik.tolerance[0]
            assert error.angle <= ik.tolerance[1]
    assert found


@pytest.mark.compiled
def test_every_target_that_is_called_out_of_reach_has_a_proof():
    arm, man = sy.bundled("arm7"), sy.bundled("humanoid")
    wide = sy.Rotation.from_euler("x", 90, degrees=True)
    box = (0.0, None, (0.0, 0.1))
    hips = sy.PositionGoal("hips", man.rest_pose().position("hips"))
    far = man.rest_pose().position("left_hand") + np.array([3.0, 0.0, 0.0])
    cases = [
        sy.solve(narrow(), sy.RotationGoal("tip", wide), "hinges", moving=["a"]),
        sy.solve(narrow(), sy.RotationGoal("a", wide), "lm", moving=["b"]),
        sy.solve(arm, sy.PositionGoal("tool", (0.2, 0.0, 2.0), bounds=box), "lm"),
        sy.solve(arm, sy.PositionGoal("tool", (0.2, 0.0, 2.0), bounds=(0.1, 0.1, 0.1), bounds_frame="tool"), "lm"),
        sy.solve(man, [hips, sy.PositionGoal("left_hand", far)], "full-body", root="free"),
        sy.solve(arm, sy.PoseGoal("tool", (3.0, 0.0, 0.2), wide), "segments"),
    ]
    for k, solution in enumerate(cases):
        assert solution.status is sy.Status.UNREACHABLE, k
        assert solution.proof is not None, k
        assert solution.proof.check(), k
        assert solution.proof.claim in " ".join(solution.explain()), k


def test_what_is_not_decided_is_said():
    arm = sy.bundled("arm7")
    solution = sy.IK(arm, sy.PositionGoal("tool", (0.0, 0.0, 1.2)), proofs=True).solve(deadline=0.0)
    if solution.proof is None:
        assert "Not decided for 'tool': the smallest miss is between 0 and" in " ".join(solution.explain())
    with pytest.raises(InputError, match="proofs"):
        sy.IK(arm, sy.PositionGoal("tool"), proofs=1)


@pytest.mark.slow
@pytest.mark.compiled
def test_a_map_proves_misses_of_seven_joints_and_no_reachable_target(tmp_path, monkeypatch):
    monkeypatch.setattr("synovia.ik.proofs.maps.folder", lambda: tmp_path / "maps")
    arm = sy.bundled("arm7")
    found = chain(arm, "tool")
    area = ReachMap(found, axis_of(found))
    assert not area.whole
    assert area.excludes(np.array([0.0, 0.0, 9.0]), 0.0) is None  # it is not painted
    while not area.paint(Watch(deadline_of(0.05))):
        pass
    for k in range(300):
        q = arm.random_pose(k).q.copy()
        low, high = arm.limits
        q[k % 7] = (low, high)[k % 2][k % 7] if k % 3 == 0 else q[k % 7]
        assert area.excludes(sy.Pose(arm, q).position("tool").copy(), 0.0) is None
    ik = sy.IK(arm, sy.PositionGoal("tool"), proofs=True)
    kinds = {}
    for target in np.random.default_rng(3).uniform(-1.1, 1.1, (12, 3)):
        solution = ik.solve(target)
        if solution.proof is not None:
            kinds[solution.proof.kind] = solution.proof
    proof = kinds["map"]
    assert proof.check()
    proof.save(tmp_path / "map.npz")
    read = Proof.load(tmp_path / "map.npz")
    assert read.check()
    hole = np.unpackbits(proof.cells, axis=1)
    middle = np.argwhere(hole)[len(np.argwhere(hole)) // 2]
    hole[middle[0] - 2 : middle[0] + 3, middle[1] - 2 : middle[1] + 3] = 0
    reachable = arm.random_pose(3).position("tool").copy()
    for name, value in {
        "cells": np.packbits(hole, axis=1),
        "targets": reachable[None],
        "tokens": proof.tokens[:-1],
        "high": proof.high + 0.5,
    }.items():
        assert not replace(read, **{name: value}).sealed().check(), name


@pytest.mark.compiled
def test_a_map_about_the_first_joint_proves_misses_and_no_reachable_target(tmp_path, monkeypatch):
    monkeypatch.setattr("synovia.ik.proofs.maps.folder", lambda: tmp_path / "maps")
    limit = sy.Interval(-0.3, 0.4)
    joints = [sy.Joint("j0", None, sy.Kind.HINGE, axis=(0, 0, 1))]
    for k in range(1, 4):
        axis = ((0, 1, 0), (0, 0, 1), (1, 0, 0))[k % 3]
        joints.append(sy.Joint(f"j{k}", f"j{k - 1}", sy.Kind.HINGE, place(0.2, 0.05, 0.1), axis=axis, limit=limit))
    body = sy.Skeleton([*joints, sy.Joint("tip", "j3", rest=place(0.2, 0.1, 0.0))])
    found = chain(body)
    area = map_of(found)
    assert area.axis == 0
    assert area.paint(Watch())
    for k in range(200):
        assert area.excludes(body.random_pose(k).position("tip").copy(), 0.0) is None
    solution = sy.IK(body, sy.PositionGoal("tip", (0.05, 0.0, 0.2)), "lm", proofs=True).solve()
    assert solution.proof.kind == "map"
    assert solution.proof.check()
    cells = np.unpackbits(solution.proof.cells, axis=1)
    cells[:, : cells.shape[1] // 2] = 0
    assert not replace(solution.proof, cells=np.packbits(cells, axis=1)).sealed().check()


def five_hinges(width=0.4):
    """Return an arm of five hinges, which has a map."""
    limit = sy.Interval(-0.3, width)
    joints = [sy.Joint("j0", None, sy.Kind.HINGE, axis=(0, 0, 1), limit=limit)]
    for k in range(1, 5):
        axis = ((0, 1, 0), (0, 0, 1), (1, 0, 0))[k % 3]
        joints.append(sy.Joint(f"j{k}", f"j{k - 1}", sy.Kind.HINGE, place(0.2, 0.05, 0.1), axis=axis, limit=limit))
    return sy.Skeleton([*joints, sy.Joint("tip", "j4", rest=place(0.2, 0.1, 0.0))])


@pytest.mark.compiled
def test_threads_paint_a_map_one_after_the_other(tmp_path, monkeypatch):
    from synovia.kernels.proofs import maps

    monkeypatch.setattr("synovia.ik.proofs.maps.folder", lambda: tmp_path / "maps")
    monkeypatch.setattr("synovia.ik.proofs.maps._PORTION", 2_000)
    found, paint, inside, most = chain(five_hinges(2.0)), maps.paint, [], []

    def counted(*arrays):
        inside.append(1)
        most.append(len(inside))
        time.sleep(1e-3)
        code = paint(*arrays)
        inside.pop()
        return code

    monkeypatch.setattr(maps, "paint", counted)
    alone, shared = (ReachMap(found, axis_of(found)) for _ in range(2))
    alone.paint(Watch())
    (file,) = (tmp_path / "maps").iterdir()
    file.unlink()
    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(lambda _: shared.paint(Watch()), range(4)))
    assert max(most) == 1
    assert len(most) > 4
    assert shared.spent == alone.spent
    np.testing.assert_array_equal(shared.cells, alone.cells)


@pytest.mark.compiled
def test_a_map_is_kept_and_a_damaged_file_is_not_used(tmp_path, monkeypatch):
    monkeypatch.setattr("synovia.ik.proofs.maps.folder", lambda: tmp_path / "maps")
    body = five_hinges()
    found = chain(body)
    first = ReachMap(found, axis_of(found))
    assert not first.whole
    assert first.paint(Watch())
    again = ReachMap(found, axis_of(found))
    assert again.whole
    assert again.spent == first.spent
    target = np.array([-0.4, 0.2, 0.1])
    np.testing.assert_array_equal(again.cells, first.cells)
    np.testing.assert_array_equal(again.excludes(target, 0.01)[1], first.excludes(target, 0.01)[1])
    other = chain(body.with_limits({"j4": (-0.3, 0.5)}))
    assert not ReachMap(other, axis_of(other)).whole
    (file,) = (tmp_path / "maps").iterdir()
    whole = file.read_bytes()
    for damaged in (whole[:-40], b"", whole.replace(b"\xff\xff", b"\xff\x00")):
        file.write_bytes(damaged)
        assert not ReachMap(found, axis_of(found)).whole


def test_a_claim_rounds_its_bound_down():
    arm = sy.bundled("arm7")
    for far in np.linspace(2.0, 3.0, 20):
        proof = sy.solve(arm, sy.PositionGoal("tool", (far, 0.1, 0.2)), proofs=True).proof
        number, unit = proof.claim.split(" nearer than ")[1].split()[:2]
        assert float(number) * {"mm": 1e-3, "m": 1.0}[unit] <= proof.near


def test_a_proof_whose_numbers_make_no_sense_is_refused():
    arm = sy.bundled("arm7")
    proof = sy.solve(arm, sy.PositionGoal("tool", (2.0, 0.1, 0.2)), proofs=True).proof
    wrong = [
        {"group": 0, "near": 9.0}, {"group": -1}, {"group": 2}, {"kinds": proof.kinds + 7.0}, {"low": proof.high + 1.0},
        {"low": np.nan * proof.low}, {"cells": np.zeros((3, 3), np.uint8)},
        {"cells": np.ones((3, 3), np.uint8), "plane": np.array([1.0, np.nan, 0.0])},
    ]  # fmt: skip
    assert proof.check()
    for changes in wrong:
        assert not replace(proof, **changes).sealed().check(), changes
