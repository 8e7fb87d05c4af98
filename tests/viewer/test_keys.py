"""What the keys of the page do, without a browser."""

from types import SimpleNamespace

import numpy as np
import pytest

import synovia as sy
from panels import make_page, settled
from synovia.draw.rods import axes_of
from synovia.model.clip_tools.mirror import Mirror
from synovia.model.geometry import rigid
from synovia.viewer.editing.editor_values import tip_of
from synovia.viewer.editing.first_goals import first_goals
from synovia.viewer.editing.poses import mirror_image
from synovia.viewer.editing.session import Session
from synovia.viewer.live import opening
from synovia.viewer.scene.rings import turned_values


@pytest.fixture
def body(monkeypatch):
    session = Session(sy.bundled("humanoid"), mode="free")
    first_goals(session.goals)
    session.history.mark_first()
    page, by_label, step = make_page(session, monkeypatch)
    step()

    def press(label):
        by_label[label].type(None)
        step()
        return page.message.text

    editors = {editor.label: editor for editor in session.goals.editors}
    return SimpleNamespace(page=page, session=session, press=press, at=by_label, editors=editors)


def test_arrows_move_the_selected_target_and_undo_and_redo_follow(body):
    hand = body.editors["left_hand"]
    body.page.select(hand.key)
    before = hand.position.copy()
    assert not hand.enabled
    body.press("Target: right")
    body.press("Target: away")
    assert hand.enabled
    np.testing.assert_allclose(hand.position - before, (0.01, 0.0, 0.01), atol=1e-12)
    body.press("Undo")
    undone = body.session.goals.find(hand.key)
    np.testing.assert_allclose(undone.position, before, atol=1e-12)
    assert not undone.enabled
    body.press("Redo")
    np.testing.assert_allclose(body.session.goals.find(hand.key).position - before, (0.01, 0.0, 0.01), atol=1e-12)
    assert body.press("Redo") == "No change to redo."


def test_the_hint_goes_with_the_first_change(body):
    assert body.page._hint.visible
    body.page.select(body.editors["left_hand"].key)
    body.press("Target: up")
    assert not body.page._hint.visible


def test_r_gives_a_position_a_rotation_which_arrows_turn(body):
    hand = body.editors["left_hand"]
    body.page.select(hand.key)
    place = hand.position.copy()
    body.press("Move the target")
    assert body.page.scene.targets.gizmo == "move"
    body.press("Turn the target or the joint")
    assert hand.kind == "pose"
    assert body.page.scene.targets.gizmo == "turn"
    before = hand.rotation.copy()
    body.press("Target: right")
    step = hand.rotation @ before.T
    assert np.degrees(np.arccos((np.trace(step) - 1.0) / 2.0)) == pytest.approx(5.0)
    np.testing.assert_allclose(hand.position, place, atol=1e-12)
    body.press("Turn the target or the joint")
    assert body.page.scene.targets.gizmo == ""


def test_tab_goes_through_the_targets_and_on_to_the_controls(body):
    keys = [editor.key for editor in body.session.goals.editors if editor.has_position]
    body.page.select(keys[0])
    body.page.keys.show()
    assert body.at["Previous target"].disabled
    seen = [keys[0]]
    while not body.at["Next target"].disabled:
        body.press("Next target")
        seen.append(body.page.selected)
    assert seen == keys
    body.press("Previous target")
    assert body.page.selected == keys[-2]
    assert not body.at["Next target"].disabled


def test_p_pins_a_joint_where_it_is_and_lets_it_go(body):
    hand = body.editors["right_hand"]
    body.page.select(hand.key)
    assert "held" in body.press("Pin the joint, or let it go")
    assert hand.enabled
    np.testing.assert_allclose(hand.position, body.session.body.pose.position("right_hand"), atol=1e-9)
    assert "free" in body.press("Pin the joint, or let it go")
    assert hand.free


def test_keys_that_have_nothing_to_act_on_say_so(body):
    body.page.select(body.session.goals.add("rest", None).key)
    assert "no target" in body.press("Move the target")
    assert "no clip" in body.press("Play or pause")
    body.page.select(None)
    assert "no target is selected" in body.press("Target: up")


def test_m_mirrors_the_pose_and_the_goals(body):
    session = body.session
    skeleton = session.body.skeleton
    turn = np.sin(0.3), np.cos(0.3)
    q = session.body.pose.q.copy()
    q[skeleton.q_slice("left_upper_arm")] = (turn[0], 0.0, 0.0, turn[1])
    session.body.put(q)
    hand = body.editors["left_hand"]
    session.goals.move(hand.key, session.body.pose.position("left_hand"))
    before = {side: session.body.pose.position(f"{side}_hand") for side in ("left", "right")}
    session.poses.mirror()
    for side, other in (("left", "right"), ("right", "left")):
        np.testing.assert_allclose(
            session.body.pose.position(f"{side}_hand"), before[other] * (-1.0, 1.0, 1.0), atol=1e-9
        )
    assert hand.free
    other = body.editors["right_hand"]
    assert other.enabled
    np.testing.assert_allclose(other.position, session.body.pose.position("right_hand"), atol=1e-9)


@pytest.mark.parametrize("name", ["humanoid", "quadruped", "arm7"])
def test_a_mirror_image_keeps_all_distances_and_twice_is_the_pose(name):
    skeleton = sy.bundled(name).with_root("free")
    pairs = [
        row if pair < 0 else pair for row, pair in enumerate(Mirror.across(skeleton, axes_of(skeleton)[:, 0]).pairs)
    ]
    pose = skeleton.random_pose(3)
    image = sy.Pose(skeleton, mirror_image(pose))
    apart = [np.linalg.norm(at[:, None] - at[None], axis=-1) for at in (pose.positions, image.positions[pairs])]
    np.testing.assert_allclose(apart[0], apart[1], atol=1e-9 * skeleton.size)
    np.testing.assert_allclose(sy.Pose(skeleton, mirror_image(image)).positions, pose.positions, atol=1e-9)
    assert any(pair != row for row, pair in enumerate(pairs)) == (name != "arm7")


def test_hands_of_different_kinds_are_no_counterparts():
    joints = [
        sy.Joint("hips", kind=sy.Kind.BALL, role="hips"),
        sy.Joint("left", "hips", sy.Kind.SLIDE, rigid((0.3, 0.0, 0.0)), (1.0, 0.0, 0.0), role="left_hand"),
        sy.Joint("right", "hips", sy.Kind.BALL, rigid((-0.3, 0.0, 0.0)), role="right_hand"),
    ]
    skeleton = sy.Skeleton(joints)
    assert all(pair in (row, -1) for row, pair in enumerate(Mirror.across(skeleton, axes_of(skeleton)[:, 0]).pairs))
    assert np.isfinite(mirror_image(skeleton.random_pose(1))).all()


@pytest.mark.parametrize(
    ("name", "joint"), [("humanoid", "spine"), ("quadruped", "left_fore_upper_leg"), ("arm7", "joint2")]
)
def test_a_joint_that_is_turned_keeps_its_value_and_its_targets_go_with_it(name, joint):
    session = opening(name).make()
    settled(session)
    row = session.body.given.index(joint)
    at = row + session.body.rooted.added
    turn = (
        (0.2, 0.0, 0.0, np.sqrt(0.96))
        if len(session.body.given.rest_q[session.body.given.q_slice(row)]) == 4
        else (-0.4,)
    )
    before = [session.body.pose.q.copy(), *(editor.position for editor in session.goals.editors)]
    session.body.set_joint(at, turn)
    frame = settled(session)
    assert frame.solution.reached
    np.testing.assert_allclose(session.body.pose.q[session.body.skeleton.q_slice(at)], turn, atol=1e-3)
    moved = [one for one in session.goals.editors if one.enabled and one.row is not None]
    assert all(np.linalg.norm(tip_of(session.body.pose, one, at - row)[0] - one.position) < 1e-3 for one in moved)
    session.body.clear_joint(row)
    settled(session)
    np.testing.assert_allclose(
        session.body.pose.q[session.body.skeleton.q_slice(at)],
        session.body.given.rest_q[session.body.given.q_slice(row)],
        atol=1e-3,
    )
    session.history.undo()
    session.history.undo()
    settled(session)
    after = [session.body.pose.q, *(editor.position for editor in session.goals.editors)]
    for a, b in zip(before, after, strict=True):
        np.testing.assert_allclose(a, b, atol=2e-3)


def test_r_and_arrows_turn_a_joint_without_a_goal_and_alt_r_clears_it(body):
    session, page = body.session, body.page
    page.select_joint(session.body.given.index("left_lower_arm"))
    assert page.selected is None
    rest = session.body.pose["left_lower_arm"]
    body.press("Target: up")
    assert session.body.pose["left_lower_arm"] == pytest.approx(rest + np.radians(5.0), abs=1e-3)
    page.select_joint(session.body.given.index("spine"))
    body.press("Target: right")
    assert session.body.pose["spine"][3] == pytest.approx(np.cos(np.radians(2.5)), abs=1e-3)
    body.press("Set the joint to its rest value")
    np.testing.assert_allclose(session.body.pose["spine"], (0.0, 0.0, 0.0, 1.0), atol=1e-6)
    body.press("Undo")
    assert page.joint == session.body.given.index("spine")
    page.select_joint(session.body.given.index("left_hand"))
    assert page.selected == body.editors["left_hand"].key
    page.select(None)
    assert "no joint is selected" in body.press("Set the joint to its rest value")
    page.select_joint(session.body.given.index("spine"))
    body.press("Move the target")
    assert session.goals.editor(page.selected).row == session.body.given.index("spine")


def test_values_of_a_turned_joint_turn_it_in_world_axes():
    skeleton = sy.bundled("humanoid").with_root("free")
    pose = skeleton.random_pose(5)
    turn = sy.Rotation.from_rotvec((0.1, -0.3, 0.2)).as_matrix()
    for name in ("spine", skeleton.joint_names[0]):
        row = skeleton.index(name)
        frame = pose.frames[row]
        q = pose.q.copy()
        moved = np.array((0.1, 0.2, 0.3))
        q[skeleton.q_slice(row)] = turned_values(q[skeleton.q_slice(row)], frame[:9].reshape(3, 3), turn, moved)
        after = sy.Pose(skeleton, q).frames[row]
        np.testing.assert_allclose(after[:9].reshape(3, 3), turn @ frame[:9].reshape(3, 3), atol=1e-9)
        if name != "spine":
            np.testing.assert_allclose(after[9:], frame[9:] + moved, atol=1e-9)
