"""Sliders of the page on bodies with loops, on a pose and on a clip."""

import numpy as np
import pytest

import synovia as sy
from mechanisms import four_bar, mechanism_of
from panels import settled
from synovia.viewer.editing.first_goals import first_goals
from synovia.viewer.editing.session import Session
from synovia.viewer.page.saving import Files


def gap(session):
    """Return what the loops of the pose lack."""
    return mechanism_of(session.body.skeleton).lacks(session.body.pose.q[None]).max()


@pytest.mark.parametrize("on_a_clip", [False, True])
def test_a_slider_moves_its_joint_and_the_loop_follows(on_a_clip):
    body = four_bar()
    cranks = np.linspace(0.0, 1.5, 31)
    q = [body.rest_q]
    for crank in cranks[1:]:
        q.append(mechanism_of(body).shut_clip(np.array([[crank, *q[-1][1:]]]), [0], q[-1][None])[0])
    session = Session(body, [sy.Motion(body, q, 10.0, name="turn")] if on_a_clip else [])
    first_goals(session.goals)
    if on_a_clip:
        session.animation.set_clip(0)
        session.animation.set_play(time=1.05, playing=False)  # between two frames
    settled(session)
    row = session.body.rooted.added
    session.body.set_joint(row, [0.9])
    settled(session)
    assert session.body.pose["crank"] == pytest.approx(0.9, abs=1e-3)
    assert abs(session.body.pose["coupler"] - body.rest_q[1]) > 0.1
    assert gap(session) <= 1e-9
    if on_a_clip:
        session.animation.key()
        settled(session)
        assert gap(session) <= 1e-9
        saved = Files(session.state).solved_clip([])
        assert mechanism_of(saved.skeleton).lacks(np.array(saved.q)).max() <= 1e-9
    session.body.set_joint(session.body.skeleton.index("rocker"), [40.0])  # beyond what the loop allows
    assert gap(session) <= 1e-9
