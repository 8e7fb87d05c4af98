"""Lines in the scene: what goals ask for, and the path of a joint through the clip."""

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("viser")

from panels import settled
from synovia.draw.theme import THEMES
from synovia.viewer.live import opening
from synovia.viewer.scene.canvas import Canvas
from synovia.viewer.scene.path import ClipPath
from synovia.viewer.scene.sketches import Sketches


class Nodes:
    """Stands for a client's scene; its nodes by name."""

    def __init__(self):
        self.by_name = {}

    def __getattr__(self, _name):
        def add(name, *_, visible=True, **__):
            self.by_name[name] = SimpleNamespace(visible=visible, points=None)
            return self.by_name[name]

        return add


def _canvas(nodes, session, scale, size):
    up = np.array((0.0, 1.0, 0.0))
    return Canvas(SimpleNamespace(scene=nodes), THEMES["light"], scale, size, up, session.state.touch)


@pytest.fixture
def nodes():
    return Nodes()


def test_a_page_shows_the_area_of_support_and_the_line_of_sight(nodes):
    session = opening("humanoid").make()
    lines = Sketches(_canvas(nodes, session, 2.0, 3.4), session.goals)
    frame = settled(session)
    lines.show(frame)
    balance = next(editor for editor in session.goals.editors if editor.label == "balance")
    drawn = nodes.by_name["/sketches/reached"]
    assert drawn.visible
    corners = 2.0 * np.asarray(balance.values["polygon"])
    ends = drawn.points.reshape(-1, 3)
    assert all(np.linalg.norm(corners - end, axis=1).min() < 1e-5 for end in ends[:-2])  # the rim of the soles
    plumb = ends[-2] - ends[-1]
    np.testing.assert_allclose(plumb[[0, 2]], 0.0, atol=1e-6)
    np.testing.assert_allclose(ends[-2], 2.0 * frame.pose.center_of_mass(), atol=1e-5)
    gaze = next(editor for editor in session.goals.editors if editor.label == "gaze")
    sight = nodes.by_name["/sketches/quiet"].points[0]
    np.testing.assert_allclose(sight, 2.0 * np.array([frame.pose.position("head"), gaze.position]), atol=0.2)
    lines.shown = False
    lines.show(frame)
    assert not drawn.visible


def test_the_path_of_a_joint_goes_through_its_keys(nodes):
    session = opening("humanoid").make()
    path = ClipPath(_canvas(nodes, session, 1.0, 1.7), session.animation)
    hand = session.goals.editors[0]
    path.show(hand.row)
    assert not nodes.by_name["/path"].visible
    path.shown = True
    session.animation.new_clip(1.0)
    first = session.body.pose.position("left_hand")
    session.animation.set_play(time=1.0)
    settled(session)
    session.goals.move(hand.key, hand.position + np.array((-0.2, 0.3, 0.0)))
    settled(session)
    last = session.body.pose.position("left_hand")
    session.animation.key()
    path.show(hand.row)
    line = nodes.by_name["/path"]
    assert line.visible
    np.testing.assert_allclose(line.points[[0, -1], [0, 1]], [first, last], atol=1e-3)
    np.testing.assert_allclose(nodes.by_name["/path/keys"].points, [first, last], atol=1e-3)
    sent = line.points
    path.show(hand.row)
    assert line.points is sent  # sent once
    path.show(None)
    assert not line.visible
