"""What answers leave out: the table of the docs, each case of it made to happen, and its sentence in the answer."""

import re
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import synovia as sy
from cli_runs import run
from synovia.errors import InputError
from synovia.model.finding import VERDICTS

PAGE = (Path(__file__).parents[1] / "docs" / "concepts" / "certificates.md").read_text(encoding="utf-8")
BONE = sy.Capsule(a=(0, 0, 0), b=(1, 0, 0), radius=0.1)
UNSEEN = "Clearance is not checked for links without known shapes"
GONE = '<collision><geometry><mesh filename="absent.stl"/></geometry></collision>'
BALL = '<collision><geometry><sphere radius="0.1"/></geometry></collision>'


def at(x=0.0):
    """Return the transform of a translation."""
    T = np.eye(4)
    T[0, 3] = x
    return T


def arm(*shapes, limit=None, notes=()):
    """Return hinges in a plane, one unit apart, with these shapes, and a tip."""
    joints = [
        sy.Joint(f"l{k}", f"l{k - 1}" if k else None, sy.Kind.HINGE, at(1.0 if k else 0.0), axis=(0, 0, 1),
                 limit=limit, shapes=own)
        for k, own in enumerate(shapes)
    ]  # fmt: skip
    return sy.Skeleton([*joints, sy.Joint("tip", f"l{len(shapes) - 1}", rest=at(1.0))], notes=notes)


HALF = (sy.Capsule(a=(0.3, 0, 0), b=(0.7, 0, 0), radius=0.05),)


def robot(folder, *links, extra=""):
    """Return the path of a robot of links in a row, one unit apart, each with what its element holds."""
    text = "".join(f'<link name="l{k}">{inner}</link>' for k, inner in enumerate(links)) + "".join(
        f'<joint name="j{k}" type="revolute"><parent link="l{k - 1}"/><child link="l{k}"/><axis xyz="0 0 1"/>'
        f'<origin xyz="1 0 0"/><limit lower="-2" upper="2" {extra}/></joint>'
        for k in range(1, len(links))
    )
    path = folder / "robot.urdf"
    path.write_text(f'<robot name="r">{text}</robot>', encoding="utf-8")
    return path


def loaded(path):
    """Return a skeleton and its warnings."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        return sy.load_skeleton(path), " ".join(str(one.message) for one in seen)


def said(answer, status=None):
    """Return the sentences of an answer, which has a status."""
    assert status is None or answer.status.name == status, answer.explain()
    return " ".join(answer.explain())


def clear(body, *goals, **options):
    """Return an answer with clearance."""
    return sy.solve(body, [sy.PositionGoal("tip", (1.0, 1.0, 0.0)), *goals, sy.ClearanceGoal(**options)])


def walk(count=20):
    """Return a body that stands still and lifts a hand."""
    body = sy.bundled("humanoid").with_root("free")
    return sy.Motion(body, [body.rest_q] * count, 30.0)


def collisions(tmp_path):
    return said(sy.solve(arm(HALF, HALF), sy.PositionGoal("tip", (1.0, 1.0, 0.0))), "REACHED")


def bare(tmp_path):
    answer = clear(arm(HALF, (), HALF), distance=0.01)
    assert "not checked for 1 link" in str(answer)
    return said(answer, "REACHED")


def estimated(tmp_path):
    body = sy.with_shapes(loaded(robot(tmp_path, BALL, GONE, BALL))[0])
    return said(sy.solve(body, sy.ClearanceGoal()), "REACHED")


def at_rest(tmp_path):
    turned = at(1.0)
    turned[:3, :3] = sy.Rotation.from_euler("z", 120, degrees=True).as_matrix()
    hinges = [
        sy.Joint(f"l{k}", f"l{k - 1}" if k else None, sy.Kind.HINGE, turned if k else at(), axis=(0, 0, 1),
                 shapes=[sy.Capsule(a=(0, 0, 0), b=(1, 0, 0), radius=0.02)])
        for k in range(4)
    ]  # fmt: skip
    body = sy.Skeleton([*hinges, sy.Joint("tip", "l3", rest=at(1.0))])  # a triangle at rest, which l3 goes along
    return said(sy.solve(body, sy.ClearanceGoal(pairs="self")))


def too_far(tmp_path):
    return said(clear(arm(HALF, HALF, HALF, HALF), distance=3.0))


def unmoved(tmp_path):
    body = sy.Skeleton([sy.Joint("base", shapes=[BONE]), *arm(HALF, HALF).joints])
    body = sy.Skeleton([body.joints[0], *(replace(one, parent=one.parent or "base") for one in body.joints[1:])])
    world = sy.World({"table": sy.Sphere(radius=0.1)})
    goals = [sy.PositionGoal("tip", (1.0, 1.0, 0.0)), sy.ClearanceGoal(0.01, world=world)]
    many = sy.IK(body, goals).solve_many({"tip": [(1.0, 1.0, 0.0)]})
    servo = sy.Servo(body, goals, rate=100, velocity=1.0, acceleration=5.0)
    servo.reset(sy.solve(body, goals).pose)
    found = said(sy.solve(body, goals), "REACHED")
    assert many.notes[0] in found
    assert many.notes[0] in servo.step().explain()
    rooted = sy.solve(body, goals, root="free")
    assert "no joint moves" not in said(rooted)
    return found


def nothing(tmp_path):
    return said(clear(arm(HALF, ()), pairs="self"))


def lost_obstacles(tmp_path):
    stand = GONE.replace("absent", "stand")
    with pytest.warns(UserWarning, match="stand"):
        world = sy.load_world(robot(tmp_path, BALL, stand))
    return said(clear(arm(HALF, HALF), world=world.moved({"l0": (5.0, 5.0, 0.0)})))


def refused(tmp_path):
    body = loaded(robot(tmp_path, BALL, GONE, BALL))[0]
    for make in (
        lambda: sy.solve(body, sy.ClearanceGoal()),
        lambda: sy.IK(body, [sy.PositionGoal("l2"), sy.ClearanceGoal(pairs="world", world=sy.World([BONE]))]),
        lambda: sy.Servo(body, sy.ClearanceGoal(), rate=100, velocity=1.0, acceleration=5.0),
    ):
        with pytest.raises(InputError, match=r"with_shapes\(skeleton\)") as found:
            make()
    sy.IK(body, sy.ClearanceGoal(pairs=[("l0", "l2")]))  # not about that link
    return str(found.value)


def free_root(tmp_path):
    body = sy.bundled("humanoid").with_root("free")
    return said(sy.solve(body, sy.PositionGoal("left_hand", (9.0, 0.0, 0.0)), root="fixed"), "UNREACHABLE")


def conflict(tmp_path):
    goals = [sy.PositionGoal("tip", (1.5, y, 0.0), name=str(y)) for y in (0.2, -0.2)]
    return said(sy.solve(arm((), ()), goals, "lm"), "CONFLICT")


def limited(tmp_path):
    body = arm((), (), limit=sy.Interval(-0.3, 0.3))
    return said(sy.solve(body, sy.PositionGoal("tip", (0.5, 1.0, 0.0)), sy.LevenbergMarquardt()), "LIMITED")


def stalled(tmp_path):
    goal = sy.RotationGoal("tip", sy.Rotation.from_euler("x", 90, degrees=True))  # hinges turn about z
    return said(sy.solve(arm((), ()), goal, sy.LevenbergMarquardt()), "STALLED")


def cut_short(tmp_path):
    goal = sy.PositionGoal("tool", (0.3, 0.3, 0.3))
    return said(sy.solve(sy.bundled("arm7"), goal, deadline=1e-9), "MAX_STEPS")


def skipped(tmp_path):
    ik = sy.IK(sy.bundled("arm7"), sy.PositionGoal("tool"))
    return said(ik.solve_many([(0.4, 0.1, 0.5), (np.nan, 0, 0)], on_error="skip")[1], "INVALID")


def outside(tmp_path):
    body = arm((), (), limit=sy.Interval(-2.0, 2.0))
    return said(sy.solve(body, sy.PositionGoal("tip", (1.0, 1.0, 0.0)), start=[0.0, 3.0]))


def servo(target, ticks=1):
    """Return the command after some ticks towards a target; without one, after it is held."""
    goals = [sy.PositionGoal("tip"), sy.ClearanceGoal(0.01)]
    live = sy.Servo(arm(HALF, (), HALF), goals, rate=50, velocity=3.0, acceleration=20.0)
    live.reset()
    if target is None:
        live.hold()
        return live.step()
    return [live.step({"tip": target}) for _ in range(ticks)][-1]


def ticks_reached(tmp_path):
    return said(servo((2.9, 0.3, 0.0), 100), "REACHED")


def ticks_late(tmp_path):
    return said(servo((1.0, 2.0, 0.0)), "LATE")


def ticks_held(tmp_path):
    return said(servo(None), "HOLDING")


def edited(*layers, motion=None):
    """Return the report on an edit."""
    motion = walk() if motion is None else motion
    return sy.edit(motion, layers).report()


RAISED = sy.Layer({"left_hand": (0.0, 0.05, 0.0)}, frames=(5, 9), relative=True)


def before(tmp_path):
    return edited(RAISED)


def beyond(tmp_path):
    still = walk()
    narrow = still.skeleton.with_limits({"right_hand": sy.SwingTwist((0.1, 0.1), (0.1, 0.1), (-0.1, 0.1))})
    q = still.q.copy()
    q[:, narrow.q_slice("right_hand")] = sy.Rotation.from_euler("x", 60, degrees=True).as_quat()
    return edited(RAISED, motion=sy.Motion(narrow, q, 30.0))


def stretched(tmp_path):
    still = walk()
    scale = np.ones((len(still), len(still.skeleton), 3))
    scale[:, 3] = 1.1
    return edited(RAISED, motion=sy.Motion(still.skeleton, still.q, 30.0, stretch=scale))


def edit_bare(tmp_path):
    still = walk()
    body = sy.with_shapes(still.skeleton, {"left_lower_arm": []})
    return edited(sy.Layer(goals=[sy.ClearanceGoal()], frames=(5, 6)), motion=still.on(body))


def notes_of(judgement, verdict="good"):
    """Return the findings of a judgement, which has a verdict."""
    assert judgement.verdict == verdict, judgement.report()
    return judgement.report()


def overlaps(tmp_path):
    bare_arm = sy.with_shapes(sy.bundled("humanoid"), {"left_lower_arm": []})
    return notes_of(sy.retarget(walk(), bare_arm).judgement)


def no_body(tmp_path):
    still = sy.Motion(arm((), ()), np.zeros((9, 2)), 30.0)
    return notes_of(sy.judge(still))


def a_part(tmp_path):
    still, shared = walk(), ("chest", "left_upper_arm", "left_lower_arm", "left_hand")
    return sy.judge(still, still, {role: (role, role) for role in shared}).report()


def unmatched(tmp_path):
    body = sy.bundled("humanoid_hands").with_root("free")
    return sy.retarget(sy.Motion(body, [body.rest_q] * 9, 30.0), sy.bundled("humanoid")).report()


def in_place(tmp_path):
    return sy.judge(sy.load_motion("examples/walk.bvh")[:40].in_place()).report()


def seam(tmp_path):
    body = sy.bundled("humanoid").with_root("free")
    ends = np.repeat(body.rest_q[None], 40, axis=0)
    turn = sy.Rotation.from_rotvec(np.linspace(0.0, 2.4, 40)[:, None] * [1.0, 0.0, 0.0]).as_quat()
    for side in ("left", "right"):
        ends[:, body.q_slice(f"{side}_upper_arm")] = ends[:, body.q_slice(f"{side}_upper_leg")] = turn
    looped = sy.Motion(body, ends, 30.0).looped()
    sy.save_motion(looped, tmp_path / "loop.npz")
    assert sy.judge(sy.load_motion(tmp_path / "loop.npz")).verdict != "good"
    return sy.judge(looped).report()


def not_begun(tmp_path):
    body = sy.bundled("humanoid").with_root("free")
    report = sy.LiveRetarget(body, sy.bundled("humanoid"), rate=30).report()
    assert report.facts["verdict"] == "look"
    return str(report)


def loaded_notes(tmp_path):
    body, told = loaded(robot(tmp_path, "", "", extra='velocity="0"'))
    assert all(note in told for note in body.notes)
    return told


def loaded_shapes(tmp_path):
    return loaded(robot(tmp_path, GONE, BALL))[1]


def saved(tmp_path):
    tied = sy.Skeleton(
        [sy.Joint("a", kind=sy.Kind.HINGE, axis=(0, 0, 1)), sy.Joint("b", "a", sy.Kind.HINGE, at(1.0), axis=(0, 0, 1))]
    ).with_loops([sy.Coupling({"a": 1, "b": -1})])
    with pytest.warns(UserWarning) as seen:  # noqa: PT030  any
        sy.save_motion(sy.Motion(tied, tied.rest_q[None].repeat(3, 0), 30.0), tmp_path / "a.bvh")
    return " ".join(str(one.message) for one in seen)


def verified(tmp_path):
    sy.save_motion(walk(), tmp_path / "a.bvh")
    return sy.formats.verify_file(walk(), tmp_path / "a.bvh").report()


def doctor(tmp_path, monkeypatch):
    monkeypatch.setattr("synovia.cli.installation._installed", lambda name: None if name == "trimesh" else "1.0")
    found = run("doctor").out
    return next(line for line in found.splitlines() if "[meshes]" in line)


CASES = {
    "Solves": [
        ("Collisions are checked by clearance goals only", collisions), (UNSEEN, bare),
        ("are replaced by capsules, on links", estimated), ("left out because of the rest pose", at_rest),
        ("only keeps them from touching", too_far),
        ("Links that no joint moves are not kept apart from obstacles", unmoved),
        ("keeps nothing apart", nothing),
        ("Shapes were not kept", lost_obstacles),
        ("could not be read", refused), ("while free joints stay in place", free_root), ("near this pose", conflict),
        ("small step within the limits", limited), ("no small step lowers the error", stalled),
        ("Allow more time", cut_short),
        ("expected finite numbers", skipped), ("The start was outside the limits", outside),
    ],
    "Servos": [(UNSEEN, ticks_reached), ("on its way to the goals", ticks_late), ("Holding", ticks_held)],
    "Edits, fits and retargeting": [
        ("as before, bit for bit", before), ("is outside the limits of", beyond),
        ("goals were met on rigid bones", stretched), (UNSEEN, edit_bare),
        ("overlaps are not checked for links without known shapes", overlaps),
        ("only jumps and limits of its joints were judged", no_body), ("only a part is compared", a_part),
        ("not mapped", unmatched), ("its path over the ground is stored separately", in_place),
        ("in the loop, the blend shows", seam), ("0 ticks", not_begun),
    ],
    "Files": [
        ("were ignored", loaded_notes), ("Shapes were not kept", loaded_shapes), ("cannot hold loops", saved),
        ("joints differ by at most", verified), ("missing", doctor),
    ],
}  # fmt: skip
ELSEWHERE = {  # with the files of their tests
    "limits were widened farther than people differ": "clips/test_keypoints.py",
    "faster than their file allows": "hands/test_retarget_hand.py",
    "leave the limits of their own": "hands/test_retarget_hand.py",
}


@pytest.mark.parametrize(
    ("area", "words", "case"),
    [pytest.param(area, words, case, id=f"{area}: {words}") for area, cases in CASES.items() for words, case in cases],
)
def test_an_answer_says_what_was_not_checked(area, words, case, tmp_path, monkeypatch):
    found = case(tmp_path, monkeypatch) if case is doctor else case(tmp_path)
    assert words in found


def test_the_page_and_the_cases_are_the_same():
    """Each sentence of the last column is one that a test makes happen, and the other way round."""
    for area, text in re.findall(r"(?ms)^## (.*?)\n(.*?)(?=^## |\Z)", PAGE):
        rows = [line for line in text.splitlines() if line.startswith("|") and not line.startswith(("|--", "| answer"))]
        words = [word for row in rows for word in re.findall(r'"([^"]+)"', row.rsplit("|", 2)[1])]
        known = [word for word, _ in CASES.get(area, ())]
        assert sorted(word for word in words if word not in ELSEWHERE and word != "file") == sorted(known), area
    for words, file in ELSEWHERE.items():
        assert words in PAGE
        assert words in (Path(__file__).parent / file).read_text(encoding="utf-8")


def test_the_page_has_every_status_and_verdict():
    assert [status.name for status in sy.Status if f"`{status.name}`" not in PAGE] == []
    assert [verdict for verdict in VERDICTS.values() if f"*{verdict}*" not in PAGE and verdict != "failed"] == []


def test_batches_and_tracks_have_the_sentences():
    ik = sy.IK(arm(HALF, (), HALF), [sy.PositionGoal("tip"), sy.ClearanceGoal()])
    assert any(UNSEEN in note for note in ik.solve_many([(2.0, 1.0, 0.0)]).notes)
    assert any(UNSEEN in note for note in ik.track({"tip": [(2.0, 1.0, 0.0)]}).notes)
