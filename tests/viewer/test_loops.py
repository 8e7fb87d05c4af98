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


def test_code_and_command_of_the_page_name_the_file_of_loops(tmp_path):
    """What a page of a body with loops from a file of its own shows solves with these loops."""
    import shlex

    from cli_runs import run

    body = four_bar()
    tree, pins = tmp_path / "bars.toml", tmp_path / "pins.toml"
    sy.formats.write_skeleton(body.with_loops([]), tree)
    pins.write_text(
        'schema = "synovia.loops/1"\n[[loop]]\nname = "pin"\nfirst = "coupler"\nsecond = "rocker"\n'
        "offset = [3, 0, 0]\nother_offset = [2, 0, 0]\n"
    )
    own = sy.load_skeleton(tree, loops=pins)
    session = Session(own, [])
    first_goals(session.goals)
    settled(session)
    files = Files(session.state, str(tree), pins)
    goals, start, out = tmp_path / "goals.toml", tmp_path / "pose.json", tmp_path / "out.json"
    goals.write_bytes(files.goal_file())
    start.write_bytes(files.pose_file())
    words = shlex.split(files.command_line().splitlines()[0])[1:]
    words = [{"goals.toml": str(goals), "pose.json": str(start)}.get(word, word) for word in words]
    assert run(*words, "-o", str(out)).code == 0
    assert mechanism_of(own).lacks(sy.load_pose(out, own).q[None]).max() <= 1e-9
    space: dict = {}
    exec(files.python_text(), space)
    assert [tie.label for tie in space["body"].loops] == ["pin"]


def test_a_page_reads_a_file_of_loops_and_names_the_file_of_a_skeleton(tmp_path):
    """``view(loops=)`` reads loops as ``load_skeleton`` does; a skeleton of a file is named by its file."""
    pytest.importorskip("viser")
    from synovia.viewer.live import Start, _opened, opening

    tree, pins = tmp_path / "bars.toml", tmp_path / "pins.toml"
    sy.formats.write_skeleton(four_bar().with_loops([]), tree)
    pins.write_text(
        'schema = "synovia.loops/1"\n[[loop]]\nfirst = "coupler"\nsecond = "rocker"\n'
        "offset = [3, 0, 0]\nother_offset = [2, 0, 0]\n"
    )
    assert len(opening(tree, Start(loops=pins)).make().body.given.loops) == 1
    assert _opened(sy.load_skeleton(tree), None)[3] == str(tree)
    assert _opened(sy.bundled("arm7"), None)[3] == "arm7"
