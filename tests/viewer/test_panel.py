"""The controls, typed into without a browser."""

import warnings
from dataclasses import replace
from types import SimpleNamespace
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import synovia as sy
from conftest import REPO
from panels import make_page
from synovia.comparison.race import Run
from synovia.viewer.editing.poses import mirror_image
from synovia.viewer.editing.session import Session
from synovia.viewer.editing.undo import Undo
from synovia.viewer.page.saving import Files
from synovia.viewer.page.style import BRANDS, INKS, safe, style
from synovia.viewer.panel import controls
from synovia.viewer.panel.body import BodyTab
from synovia.viewer.panel.controls import angles_of, numbers, turn_of, written
from synovia.viewer.panel.solver import SolverTab
from synovia.viewer.panel.tree import tree_html
from synovia.viewer.panel.why import Why


class Clock:
    """A clock that stands still until it is told otherwise."""

    def __init__(self):
        self.now = 100.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    one = Clock()
    for module in ("synovia.viewer.panel.controls", "synovia.viewer.page.page"):
        monkeypatch.setattr(f"{module}.time", one)
    return one


@pytest.fixture
def arm(monkeypatch, clock):
    session = Session(sy.bundled("arm7"))
    session.goals.add("pose", "tool")
    session.history.mark_first()
    page, by_label, step = make_page(session, monkeypatch)
    step()
    return SimpleNamespace(
        page=page, session=session, editor=session.goals.editors[0], at=by_label, step=step, clock=clock
    )


def test_clearance_has_a_slider_for_its_distance(arm):
    """It changes the goal, follows undo, and has no priority to type: it is a constraint."""
    arm.page.select(arm.session.goals.add("clearance", None).key)
    slider = arm.at["Distance m"]
    assert not arm.at["Priority"].visible
    slider.type(0.02)
    assert arm.session.goals.editors[-1].values["distance"] == 0.02
    arm.step()
    assert slider.value == 0.02
    arm.session.history.undo()
    arm.page.refresh()
    arm.step()
    assert arm.at["Distance m"].value == 0.0


def test_speed_limits_have_a_switch_fields_and_bars(arm):
    switch, velocity, jerk = (arm.at[label] for label in ("Speed limits", "Velocity rad/s", "Jerk rad/s³"))
    assert "Of the file's velocities %" not in arm.at  # this file has none
    assert not velocity.visible
    switch.type(True)
    arm.step()
    assert arm.session.solving.limits.on
    assert velocity.visible
    velocity.type("0.05")
    jerk.type("-2")
    assert arm.session.solving.limits.velocity == 0.05
    assert arm.session.solving.limits.jerk == 0.0
    jerk.type("0")  # the message goes
    arm.session.goals.move(arm.editor.key, (0.35, 0.1, 0.7))
    bars = next(tab for tab in arm.page._tabs if isinstance(tab, SolverTab))._speed._bars
    for _ in range(2):
        arm.step()
    assert bars.visible
    assert 'data-limit="velocity"' in bars.content
    assert bars.content.count("<i style=") == 7
    assert "on its way" in arm.page._status.content
    arm.session.animation.new_clip(1.0)
    arm.step()
    assert "Without a clip" in bars.content
    switch.type(False)
    arm.step()
    assert not bars.visible


def test_a_file_with_velocities_gives_them(monkeypatch):
    session = Session(sy.load_skeleton(REPO / "examples" / "arm.urdf"))
    _, by_label, step = make_page(session, monkeypatch)
    step()
    assert "Velocity rad/s" not in by_label
    by_label["Speed limits"].type(True)
    by_label["Of the file's velocities %"].type("50")
    assert session.solving.limits.velocities(session.body.given, 1.0)[1] == 1.0  # half of 2 rad/s


def test_what_is_typed_key_by_key_is_not_written_over(arm):
    target = arm.at["Target m"]
    text = "-0.25, 0.1, 0.5"
    for end in range(1, len(text) + 1):
        target.type(text[:end])
        arm.step()
        assert target.value == text[:end]
    np.testing.assert_array_equal(arm.editor.position, (-0.25, 0.1, 0.5))
    arm.clock.now += 60.0
    arm.step()
    assert target.value == text
    arm.session.goals.move(arm.editor.key, (0.3, 0.0, 0.5))
    arm.step()
    assert target.value == "0.3, 0, 0.5"


@pytest.mark.parametrize(
    ("label", "text", "word"),
    [
        ("Weight", "", "expected a number"),
        ("Weight", "0", "goal on 'tool': weight: expected a finite number above 0"),
        ("Weight", "nan", "weight: expected a finite number above 0"),
        ("Priority", "1.5", "expected a whole number"),
        ("Target m", "1, 2", "expected 3 numbers"),
        ("Target m", "1e99 0 0", "too far"),
        ("Turn °", "1, inf, 2", "finite numbers"),
        ("error damping", "nan", "error_damping"),
        ("max steps", "1000000", "too large"),
    ],
)
def test_a_field_that_was_refused_shows_what_the_model_has(arm, label, text, word):
    control = arm.at[label]
    before = control.value
    control.type(text)
    arm.step()
    assert control.value == text
    arm.clock.now += controls.PAUSE + 0.1
    arm.step()
    assert control.value == before
    assert word in arm.page.message.text


def test_a_message_goes_when_its_value_is_corrected_and_in_time_at_rest(arm):
    weight = arm.at["Weight"]
    weight.type("-1")
    arm.step()
    assert "weight: expected a finite number above 0" in arm.page._status_text
    weight.type("2")
    arm.step()
    assert "weight" not in arm.page._status_text
    assert arm.editor.weight == 2.0
    weight.type("-1")
    frame = arm.step()
    waits = arm.page._next_update()
    assert 0.0 < waits <= controls.PAUSE + 0.1
    arm.clock.now += 8.1
    arm.page._show_text(frame)
    assert "weight is" not in arm.page._status_text
    arm.clock.now += 8.1
    assert arm.page._next_update() is None


def test_typed_angles_stay_until_something_else_turns_the_target(arm):
    turn = arm.at["Turn °"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for text in ("0, 120, 0", "30, 90, 0", "720, 0, 0"):
            turn.type(text)
            arm.clock.now += 60.0
            arm.step()
            assert turn.value == text
        arm.session.goals.move(arm.editor.key, turn=turn_of((0.0, 90.0, 0.0)))
        arm.step()
    assert turn.value == "0, 90, 0"


def test_a_range_is_set_by_its_slider_or_by_numbers(arm):
    """Degrees; what the limits rule out is refused; the ends of the slider are the joint's own; all is undone."""
    arm.session.history._undo = Undo(now=lambda: 0.0)  # these edits are one step, however long the solver takes
    arm.session.goals.change(arm.editor.key, enabled=False)
    editor = arm.session.goals.add("range", "joint4")
    arm.page.select(editor.key)
    limit = arm.session.body.given.joints[arm.session.body.given.index("joint4")].limit
    assert (editor.values["lower"], editor.values["upper"]) == (limit.lower, limit.upper)  # nothing is asked at first
    slider, typed = arm.at["Range °"], arm.at["Lower, upper"]
    assert slider.min <= np.degrees(limit.lower)
    slider.type((slider.min, -100.0))
    frame = arm.step()
    assert (editor.values["lower"], editor.values["upper"]) == (limit.lower, np.radians(-100.0))
    assert np.degrees(frame.pose["joint4"]) < -99.9
    assert typed.value == written((np.degrees(limit.lower), -100.0), 3)
    typed.type("-130, -110.5")
    arm.step()
    assert editor.values["lower"] == pytest.approx(np.radians(-130.0))
    assert slider.value == pytest.approx((-130.0, -110.5))
    for text, word in (("-100, -110", "lower <= upper"), ("90, 100", "within its limits")):
        typed.type(text)
        arm.step()
        assert word in arm.page.message.text
        assert editor.values["upper"] == pytest.approx(np.radians(-110.5))
    typed.type("-inf, -90")
    assert "sy.RangeGoal('joint4', upper=-1.57" in Files(arm.session.state, "arm7").python_text()
    assert arm.session.history.undo()
    assert arm.session.goals.editor(editor.key).values["upper"] == limit.upper
    with pytest.raises(sy.InputError, match="HINGE, SLIDE or BALL"):
        arm.session.goals.add("range", "tool")


def test_angles_are_those_of_scipy_and_come_back():
    from scipy.spatial.transform import Rotation

    rng = np.random.default_rng(4)
    for angles in [*rng.uniform(-180.0, 180.0, (50, 3)), (0, 90, 20), (10, -90, 20), (0, 0, 0), (180, 0, 0)]:
        turn = turn_of(angles)
        np.testing.assert_allclose(turn, Rotation.from_euler("xyz", angles, degrees=True).as_matrix(), atol=1e-12)
        np.testing.assert_allclose(turn_of(angles_of(turn)), turn, atol=1e-6)


def test_numbers_are_read_as_people_write_them():
    assert numbers(" -0.25;1e-3 , 2 ", 3) == (-0.25, 0.001, 2.0)
    assert numbers("1, 2", 3) is None
    assert numbers("-", 1) is None
    assert written((-0.0, -1e-9, 0.123456789), 5) == "0, 0, 0.12346"
    assert written((1e-9,), None) == "1e-09"


def test_the_page_is_at_rest_until_it_is_due(arm):
    from synovia.viewer.editing.worker import Background, Worker

    pauses, still = iter([0.01, 0.01]), []
    background = Background()
    worker = Worker(arm.session.state, lambda frame: still.append(frame.still), background, lambda: next(pauses, None))
    from browsing import until

    until(lambda: still.count(True) == 3)
    worker.stop()
    background.stop()


def _contrast(one, other):
    lights = []
    for colour in (one, other):
        parts = [int(colour[i : i + 2], 16) / 255.0 for i in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        lights.append(float(np.dot((0.2126, 0.7152, 0.0722), linear)))
    return (max(lights) + 0.05) / (min(lights) + 0.05)


@pytest.mark.parametrize("dark", [False, True])
def test_every_colour_of_text_stands_out(dark):
    viser = pytest.importorskip("viser")
    sent = []
    gui = SimpleNamespace(_websock_interface=SimpleNamespace(queue_message=sent.append))
    viser.GuiApi.configure_theme(gui, brand_color=BRANDS[dark])
    shades = sent[0].colors
    filled, line = (shades[8], shades[4]) if dark else (shades[6], shades[6])
    for colour in (*INKS[dark].values(), filled, line):
        assert _contrast(colour, "#2e2e2e" if dark else "#ffffff") >= 4.5, colour
    assert _contrast(filled, "#000000" if dark else "#ffffff") >= 4.5


def test_a_title_from_a_file_is_text():
    assert "<script" not in style("</style><script>alert(1)</script>\"'")


def test_a_race_is_taken_away_when_its_targets_move_and_its_colours_are_those_of_its_lines(arm, monkeypatch):
    why = next(tab for tab in arm.page._tabs if isinstance(tab, Why))
    x = np.array([1.0, 2.0])
    runs = [
        Run("lm", x, np.array([0.5, 0.4]), None, "reached"),
        Run("two-bone", np.zeros(0), np.zeros(0), None, "", "it is not made for these joints"),
        Run("dls", x, np.array([0.5, 0.3]), None, "reached"),
    ]
    monkeypatch.setattr("synovia.viewer.panel.why.race", lambda *_: iter(runs))
    monkeypatch.setattr(arm.page.host.background, "start", lambda name, action: action() if "race" in name else None)
    arm.page.frame = arm.step()
    why._start()
    table = why._legend.content
    for line in why._plot.series[1:]:
        assert (
            f'{line["stroke"]}">■</span></td><td style="padding-right:.6em;white-space:nowrap">{line["label"]}' in table
        )
    assert table.count("■") == 2
    assert "two-bone</td><td>not supported: it is not made for these joints" in table
    low, high = why._plot.scales["y"]["range"]
    assert high - low <= 1.01
    assert low < np.log10(0.3)
    assert high > np.log10(0.5)
    arm.step()
    assert why._legend.content == table
    arm.session.goals.move(arm.editor.key, (0.3, 0.0, 0.5))
    arm.step()
    assert "■" not in why._legend.content


def test_causes_of_a_miss_are_in_the_scene_until_the_targets_move(arm, monkeypatch):
    shown = []
    monkeypatch.setattr(arm.page.scene.causes, "show", lambda causes: shown.append([one.kind for one in causes]))
    monkeypatch.setattr(arm.page.host.background, "start", lambda name, action: action() if "trace" in name else None)
    why = next(tab for tab in arm.page._tabs if isinstance(tab, Why))
    arm.session.goals.move(arm.editor.key, (0.3, 0.0, 9.0))
    for _ in range(60):
        arm.page.frame = replace(arm.step(), still=True)
    why.show(arm.page.frame)
    assert shown[-1][:2] == ["reach", "proof"]
    arm.at["Causes in the scene"].type(False)
    assert shown[-1] == []
    arm.at["Causes in the scene"].type(True)
    assert shown[-1][:2] == ["reach", "proof"]
    arm.session.goals.move(arm.editor.key, (0.3, 0.0, 0.5))
    arm.step()
    assert shown[-1] == []


def test_what_comes_to_rest_during_a_race_is_explained_after_it(arm, monkeypatch):
    why = next(tab for tab in arm.page._tabs if isinstance(tab, Why))
    monkeypatch.setattr("synovia.viewer.panel.why.trace", lambda *_: Run("lm", np.ones(1), np.ones(1), None, "reached"))
    monkeypatch.setattr(arm.page.host.background, "start", lambda _name, action: action())

    def race(*_):
        arm.session.goals.move(arm.editor.key, (0.3, 0.0, 9.0))
        arm.page.frame = replace(arm.step(), still=True)
        why.show(arm.page.frame)
        assert why._text.content.count("<br>") == 0
        return iter(())

    monkeypatch.setattr("synovia.viewer.panel.why.race", race)
    arm.page.frame = arm.step()
    why._start()
    lines = arm.page.frame.solution.explain()
    assert len(lines) > 1
    assert all(safe(line) in why._text.content for line in lines)


def test_goals_are_not_called_off_while_their_solver_is_made_ready(arm):
    why = next(tab for tab in arm.page._tabs if isinstance(tab, Why))
    why.show(replace(arm.step(), busy=True, solution=None))
    assert "not ready" in why._text.content


def test_files_of_one_name_from_two_pages_are_two_files(arm, monkeypatch, tmp_path):
    arm.page.host = replace(arm.page.host, folder=tmp_path)
    opened = []
    arm.page.navigation.open = opened.append
    for content in (b"first", b"second"):
        arm.at["Open a file"].type(SimpleNamespace(name="../robot .urdf", content=content))
    assert [path.name for path in opened] == ["robot .urdf"] * 2
    assert [path.read_bytes() for path in opened] == [b"first", b"second"]
    assert all(path.is_relative_to(tmp_path) for path in opened)


def test_a_target_that_cannot_be_solved_says_why_in_full(arm):
    arm.session.solving.set_solver("two-bone")
    arm.step()
    why = next(tab for tab in arm.page._tabs if isinstance(tab, Why))
    assert "goal on &#x27;tool&#x27;" in why._text.content
    assert "10" not in why._text.content


def test_a_free_goal_that_is_moved_is_shown_as_enabled(arm):
    arm.editor.enabled, arm.editor.idle = False, True
    arm.session.state.touch(structure=True)
    arm.step()
    assert arm.at["Enabled"].value is False
    arm.at["Target m"].type("0.3, 0, 0.5")
    arm.step()
    assert arm.at["Enabled"].value is True
    assert arm.editor.enabled


def test_axes_and_steps_of_the_gizmos_are_set_by_controls_and_keys(arm):
    handles = arm.page.scene.handles
    arm.at["Axes"].type("world")
    arm.at["Snap"].type(True)
    arm.at["Step m"].type("0.1")
    arm.at["Step °"].type("30")
    assert (handles.local, handles.snap, handles.length) == (False, True, 0.1)
    assert np.degrees(handles.angle) == pytest.approx(30.0)
    arm.at["Step m"].type("0")
    assert "above 0" in arm.page.message.text
    before = arm.editor.position.copy()
    arm.at["Target: up"].type(None)
    assert np.abs(arm.editor.position - before).max() == pytest.approx(0.1)
    arm.at["Axes of the joint or of the world"].type(None)
    arm.at["Snap, on or off"].type(None)
    arm.step()
    assert (arm.at["Axes"].value, arm.at["Snap"].value) == ("joint", False)


@pytest.mark.parametrize("name", ["humanoid", "quadruped", "arm7"])
def test_the_tree_has_each_joint_once_below_its_parent(name):
    body = sy.bundled(name)
    names = dict(enumerate(body.joint_names))
    names[1] = "<b>"
    text = tree_html(body, names, "x")
    root = ET.fromstring(text.replace(" open>", ">").replace('autocomplete="off">', "/>"))
    parents = {}
    for item in root.iter("li"):
        row = int(item.find(".//button").get("data-row"))
        parents[row] = [int(below.find(".//button").get("data-row")) for below in item.findall("./details/ul/li")]
    assert parents == {row: list(body.children[row]) for row in range(len(body))}
    assert "&lt;b&gt;" in text
    assert " open>" in text


def test_a_joint_that_is_chosen_in_the_tree_is_selected_and_named_to_the_browser(arm):
    arm.at["Joint of the tree"].type("3 1")
    assert (arm.page.joint, arm.page.selected) == (3, None)
    arm.at["Find a joint"].type(None)
    arm.step()
    assert 'data-joint="3" data-searches="1"' in arm.page._status.content
    for wrong in ("", "99 2", "-1 3", "joint1"):
        arm.at["Joint of the tree"].type(wrong)
        assert arm.page.joint == 3


@pytest.mark.parametrize(("name", "mode"), [("humanoid", "free"), ("quadruped", "free"), ("arm7", "fixed")])
def test_poses_are_kept_applied_mirrored_saved_and_read_again(name, mode, monkeypatch, tmp_path):
    session = Session(sy.bundled(name), mode=mode)
    session.history.mark_first()
    page, at, step = make_page(session, monkeypatch)
    sent = {}
    page.client.send_file_download = lambda file, content, **_: sent.update({file: content})
    step()
    at["Keep this pose"].type(None)
    assert "name of a pose" in page.message.text
    start = session.body.pose
    q = session.body.given.random_pose(2).q
    session.body.put(np.concatenate([start.q[: -session.body.given.nq or None], q]))
    kept = session.body.pose
    at["Name"].type("wave")
    at["Keep this pose"].type(None)
    step()
    assert (at["Kept"].options, at["Kept"].value) == (("wave",), "wave")
    session.body.rest()
    body = next(tab for tab in page._tabs if isinstance(tab, BodyTab))
    body._use.type("Apply")
    np.testing.assert_allclose(step().pose.q, kept.q, atol=1e-9)
    body._use.type("Mirrored")
    inside = sy.Pose(session.body.skeleton, mirror_image(kept)).inside[0]
    np.testing.assert_allclose(step().pose.positions, sy.Pose(session.body.skeleton, inside).positions, atol=1e-6)
    page.actions.undo()
    np.testing.assert_allclose(step().pose.q, kept.q, atol=1e-9)
    at["Save poses"].type(None)
    body._use.type("Delete")
    step()
    assert at["Kept"].options == ("(none)",)
    body._use.type("Apply")
    assert "no pose was kept" in page.message.text
    page.actions.undo()
    assert set(session.poses.library) == {"wave"}
    session.history.reset()
    assert set(session.poses.library) == {"wave"}, "poses that were kept are no part of the first state"
    page.actions.undo()
    page.actions.redo()
    assert set(session.poses.library) == {"wave"}
    step()
    body._use.type("Delete")
    assert not session.poses.library
    page.host = replace(page.host, folder=tmp_path)
    at["Open a file"].type(SimpleNamespace(name="poses.json", content=sent["poses.json"]))
    assert "wave" in page.message.text
    np.testing.assert_allclose(session.poses.library["wave"].q, q, atol=1e-12)
    at["Open a file"].type(SimpleNamespace(name="p.json", content=Files(Session(session.body.given).state).pose_file()))
    assert set(session.poses.library) == {"wave", "p"}
    for wrong in (
        b"{}",
        b'{"schema": "synovia.poses/1", "poses": {"a": {"nobody": 1}}}',
        b'{"schema": "synovia.poses/1"}',
    ):
        at["Open a file"].type(SimpleNamespace(name="wrong.json", content=wrong))
        assert "wrong.json" in page.message.text
