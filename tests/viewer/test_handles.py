"""Gizmos: their axes and steps, and what a drag of them does to targets and joints, without a browser."""

from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

import synovia as sy
from panels import settled
from synovia.draw.theme import THEMES
from synovia.viewer.editing.session import Session
from synovia.viewer.scene.bodies import wxyz
from synovia.viewer.scene.canvas import Canvas
from synovia.viewer.scene.handles import Handles, first_length
from synovia.viewer.scene.rings import Rings
from synovia.viewer.scene.targets import SNAPS, Targets


class Node:
    """A node of a scene; ``drag`` is what a mouse does to a gizmo."""

    def __init__(self, *_, **props):
        self.visible, self.color, self.heard = True, None, []
        for name, value in {"position": np.zeros(3), "wxyz": np.array((1.0, 0.0, 0.0, 0.0)), **props}.items():
            setattr(self, name, value)

    def __setattr__(self, name, value):
        """As in viser, a place is an array."""
        self.__dict__[name] = np.array(value) if name in ("position", "wxyz") else value

    def on_update(self, action):
        self.heard.append(action)

    def on_drag(self, *_, **__):
        return lambda action: None

    on_click = on_update

    def remove(self):
        self.heard = []

    def drag(self, position, turn):
        """Drag to a position, (3,), and by a rotation in the scene's axes."""
        to = turn.as_matrix() @ sy.Rotation.from_quat(np.roll(self.wxyz, -1)).as_matrix()
        self.position, self.wxyz = tuple(position), tuple(wxyz(to))
        for phase in ("start", "update", "end"):
            for action in self.heard:
                with pytest.raises(StopIteration):
                    action(SimpleNamespace(phase=phase, target=self)).send(None)


@pytest.fixture
def client():
    nodes = {}

    class Scene:
        def __getattr__(self, _):
            return lambda name, *more, **props: nodes.setdefault(name, Node(*more, **props))

    camera = SimpleNamespace(position=np.array((1.0, 2.0, 3.0)))
    return SimpleNamespace(scene=Scene(), camera=camera, nodes=nodes, atomic=nullcontext)


def make(client, body, **options):
    session = Session(sy.bundled(body) if isinstance(body, str) else body, **options)
    handles = Handles(0.05)
    canvas = Canvas(client, THEMES["light"], 1.0, 1.7, np.array((0.0, 1.0, 0.0)), session.state.touch)
    targets = Targets(canvas, session.goals, session.hand, handles, lambda key: None)
    return session, handles, Rings(canvas, session.body, session.hand, handles), targets


@pytest.mark.parametrize("local", [True, False])
@pytest.mark.parametrize(("snap", "degrees"), [(False, 20.0), (True, 15.0)])
def test_rings_turn_a_ball_in_the_world_by_the_angle_of_the_drag(client, local, snap, degrees):
    session, handles, rings, _ = make(client, "humanoid", mode="free")
    handles.local, handles.snap = local, snap
    row = session.body.given.index("left_upper_arm")
    at = row + session.body.rooted.added
    session.body.set_joint(at, sy.Rotation.from_rotvec((0.1, 0.2, 0.1)).as_quat())
    frame = settled(session)
    rings.show(frame, row)
    before = session.body.pose.frames[at, :9].reshape(3, 3).copy()
    gizmo = client.nodes["/rings"]
    axes = sy.Rotation.from_quat(np.roll(gizmo.wxyz, -1)).as_matrix()
    assert np.allclose(np.abs(axes), np.eye(3)) != local
    gizmo.drag(gizmo.position, sy.Rotation.from_rotvec(np.radians(20.0) * axes[:, 2]))
    turned = sy.Rotation.from_matrix(session.body.pose.frames[at, :9].reshape(3, 3) @ before.T).as_rotvec(degrees=True)
    np.testing.assert_allclose(turned, degrees * axes[:, 2], atol=1e-6)
    session.history.undo()
    np.testing.assert_allclose(session.body.pose.frames[at, :9].reshape(3, 3), before, atol=1e-9)


def test_a_hinge_has_one_ring(client):
    session, handles, rings, _ = make(client, "arm7")
    frame = settled(session)
    row = session.body.given.index("joint2")
    rings.show(frame, row)
    gizmo = client.nodes["/rings"]
    assert gizmo.active_axes == (True, True, False)
    axis = session.body.pose.frames[row, :9].reshape(3, 3) @ session.body.given.joints[row].axis
    gizmo.drag(gizmo.position, sy.Rotation.from_rotvec(np.radians(-33.0) * axis))
    assert np.degrees(session.body.pose["joint2"]) == pytest.approx(-33.0)
    handles.snap = True
    rings.show(settled(session), row)
    gizmo.drag(gizmo.position, sy.Rotation.from_rotvec(np.radians(50.0) * axis))
    assert np.degrees(session.body.pose["joint2"]) == pytest.approx(12.0)  # three steps of 15 degrees
    rings.toggle(row)
    rings.show(settled(session), row)
    assert rings._gizmo is None
    fixed = next(i for i, joint in enumerate(session.body.given.joints) if joint.kind.q_size == 0)
    with pytest.raises(sy.InputError, match="does not move"):
        rings.toggle(fixed)


def test_a_slide_has_an_arrow_along_its_axis(client):
    own, above = np.array((0.6, 0.8, 0.0)), np.eye(4)
    above[2, 3] = 1.0
    joints = [
        sy.Joint(name="base", kind=sy.Kind.FIXED),
        sy.Joint(name="turn", parent=0, kind=sy.Kind.HINGE, axis=(0.0, 0.0, 1.0)),
        sy.Joint(name="slide", parent=1, kind=sy.Kind.SLIDE, axis=own, limit=sy.Interval(-0.2, 0.3)),
        sy.Joint(name="tip", parent=2, kind=sy.Kind.FIXED, rest=above),
    ]
    session, handles, rings, _ = make(client, sy.Skeleton(joints, name="crane"))
    session.body.set_joint(session.body.given.index("turn") + session.body.rooted.added, np.array([0.7]))
    row = session.body.given.index("slide")

    def dragged(along: float, across: float = 0.0) -> float:
        rings.show(settled(session), row)
        gizmo = client.nodes["/rings"]
        axis = sy.Rotation.from_rotvec((0.0, 0.0, 0.7)).apply(own)
        side = np.cross((0.0, 0.0, 1.0), axis)
        gizmo.drag(gizmo.position + along * axis + across * side, sy.Rotation.identity())
        return session.body.pose["slide"]

    assert dragged(0.12, across=0.04) == pytest.approx(0.12)
    gizmo = client.nodes["/rings"]
    assert gizmo.active_axes == (False, False, True)
    assert gizmo.disable_rotations
    handles.snap = True
    assert dragged(0.09) == pytest.approx(0.22)  # two steps of 0.05
    handles.snap = False
    assert dragged(1.0) == pytest.approx(0.3)  # its limit
    assert dragged(-0.1) == pytest.approx(0.2)
    session.history.undo()
    assert session.body.pose["slide"] == pytest.approx(0.3)


def test_a_target_goes_in_steps_along_the_axes_of_the_gizmo(client):
    session, handles, _, targets = make(client, "humanoid", mode="free")
    editor = session.goals.add("pose", "left_hand")
    targets.selected, targets.gizmo, handles.snap = editor.key, "both", True
    turn = sy.Rotation.from_rotvec((0.0, 0.0, 0.5)).as_matrix()
    session.goals.move(editor.key, turn=turn)
    start = editor.position.copy()
    targets.show(settled(session))
    gizmo = client.nodes["/gizmo"]
    gizmo.drag(start + 0.12 * turn[:, 0] + 0.01 * turn[:, 1], sy.Rotation.from_rotvec(np.radians(40.0) * turn[:, 2]))
    np.testing.assert_allclose(editor.position, start + 0.1 * turn[:, 0], atol=1e-9)
    angle = sy.Rotation.from_matrix(editor.rotation @ turn.T).as_rotvec(degrees=True)
    np.testing.assert_allclose(angle, (0.0, 0.0, 45.0), atol=1e-6)
    handles.local = False
    targets.show(settled(session))
    np.testing.assert_allclose(np.abs(gizmo.wxyz), (1.0, 0.0, 0.0, 0.0), atol=1e-9)


def test_ctrl_snaps_a_free_drag(client):
    session, _, _, targets = make(client, "arm7")
    editor = session.goals.add("position", "tool")
    start = editor.position.copy()
    for modifier, by in ((None, 0.07), (SNAPS, 0.05)):
        event = SimpleNamespace(
            phase="start",
            start_position=tuple(start),
            end_position=start + np.array((0.07, 0.0, 0.0)),
            modifier=modifier,
        )
        targets.drag("ball", event, lambda: editor.key)
        targets.drag("ball", SimpleNamespace(**{**vars(event), "phase": "end"}), lambda: editor.key)
        np.testing.assert_allclose(editor.position, start + np.array((by, 0.0, 0.0)), atol=1e-9)
        session.goals.move(editor.key, start)


@pytest.mark.parametrize(
    ("size", "unit", "step"), [(1.7, 1.0, 0.05), (170.0, 0.01, 5.0), (170.0, None, 10.0), (0.1, 1.0, 0.001)]
)
def test_the_first_step_fits_the_body(size, unit, step):
    assert first_length(size, unit) == pytest.approx(step)


def test_the_marker_of_a_tip_has_axes_once_its_goal_has_a_rotation(client):
    session, _, _, targets = make(client, "arm7")
    key = session.goals.add("position", "tool").key
    for kind, axes in (("position", False), ("pose", True), ("position", False)):
        session.goals.change(key, kind=kind)
        targets.show(settled(session))
        assert client.nodes[f"/ghosts/{key}"].show_axes is axes
