"""What happens before and beside the first frame: a solver that is not ready, files that are opened, recent models."""

import logging
import shutil
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("viser")

import fbx_made
import synovia as sy
from browsing import until
from panels import make_page
from synovia.compiling import Compiling
from synovia.model.geometry import rigid
from synovia.viewer import live
from synovia.viewer.editing.editor_values import tip_of
from synovia.viewer.editing.engine import Engine
from synovia.viewer.editing.first_goals import first_goals
from synovia.viewer.editing.goals import limb_of
from synovia.viewer.editing.session import Session
from synovia.viewer.editing.worker import Background, Worker
from synovia.viewer.page.control import Message
from synovia.viewer.page.page import _compiling_note
from synovia.viewer.panel.open import Open
from synovia.viewer.serving.recent import note_recent, recent

WALK = Path("examples/walk.bvh")


def biped():
    session = Session(sy.bundled("humanoid"), (), sy.FullBody(attempts=1), "free")
    first_goals(session.goals)
    return session


def test_the_page_answers_while_the_solver_is_not_ready(monkeypatch):
    """The compiler is slow here by a wait; the body stays meanwhile, and what was moved is solved afterwards."""
    session, ready, frames = biped(), threading.Event(), []
    prepare = Engine.prepare

    def slow(engine):
        assert ready.wait(300.0)
        prepare(engine)

    monkeypatch.setattr(Engine, "prepare", slow)
    background = Background()
    worker = Worker(session.state, frames.append, background)
    until(lambda: len(frames) > 2)
    hand, rest = session.goals.editors[0], session.body.given.rest_pose()
    session.goals.move(hand.key, hand.position + np.array([-0.2, -0.2, 0.2]))
    until(lambda: np.linalg.norm(frames[-1].editors[0].eased_position - hand.position) <= 0.005, "the ball stays")
    assert frames[-1].busy
    assert frames[-1].solution is None
    np.testing.assert_array_equal(frames[-1].pose.position("left_hand"), rest.position("left_hand"))
    ready.set()
    until(lambda: np.linalg.norm(_hand(frames[-1]) - hand.position) <= 0.005, "the hand does not follow")
    assert not frames[-1].busy
    worker.stop()
    background.stop()


def _hand(frame):
    return tip_of(frame.pose, frame.editors[0], frame.added)[0]


def test_a_limb_may_end_in_more_fixed_links_than_python_can_recurse_into():
    joints = [sy.Joint("0", kind=sy.Kind.HINGE, axis=(0.0, 0.0, 1.0))]
    joints += [sy.Joint(str(i), str(i - 1), rest=rigid((0.0, 0.1, 0.0))) for i in range(1, 1500)]
    assert limb_of(sy.Skeleton(joints), 1499) == [0]


def test_the_page_says_what_is_compiled():
    with Compiling() as compiling:
        more = {"compiling": True, "solver": "full-body", "seconds": 35.0}
        logging.getLogger("synovia.kernels").info("compiling", extra=more)
        assert (compiling.words, compiling.seconds) == ("full-body", 35.0)
        assert "full-body" in _compiling_note("full-body", 7.0, 35.0)
        assert "width:20%" in _compiling_note("full-body", 7.0, 35.0)
        logging.getLogger("synovia.kernels").info("compiled", extra=more | {"compiling": False})
        assert compiling.words == ""


def test_recent_models_are_listed_newest_first(tmp_path, monkeypatch):
    monkeypatch.setenv("SYNOVIA_CACHE_DIR", str(tmp_path / "cache"))
    paths = [shutil.copy(WALK, tmp_path / f"{name}.bvh") for name in "abc"]
    assert recent() == []
    for path in (*paths, paths[0], "humanoid"):
        note_recent(path)
    assert [path.name for path in recent()] == ["a.bvh", "c.bvh", "b.bvh"]
    Path(paths[0]).unlink()
    assert [path.name for path in recent()] == ["c.bvh", "b.bvh"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems do not allow such names")
def test_recent_models_may_have_any_name_and_may_be_out_of_reach(tmp_path, monkeypatch):
    monkeypatch.setenv("SYNOVIA_CACHE_DIR", str(tmp_path / "cache"))
    for name in ("a\u2028b.bvh", "caf\udce9.bvh", f"{'x' * 300}.bvh"):  # the last one is too long for a file
        if len(name) < 255:
            shutil.copy(WALK, tmp_path / name)
        note_recent(tmp_path / name)
    assert [path.name for path in recent()] == ["caf\udce9.bvh", "a\u2028b.bvh"]


def opened(monkeypatch, tmp_path):
    """A page of the humanoid, its tab for files, and what it opens."""
    page, controls, _ = make_page(biped(), monkeypatch)
    calls = []
    for name in ("open", "play", "map"):
        setattr(page.navigation, name, lambda path, name=name: calls.append((name, Path(path).name)))
    object.__setattr__(page.host, "folder", tmp_path)
    return page, controls, calls


def sent(name, content):
    return SimpleNamespace(name=name, content=content)


def test_a_model_that_is_sent_is_opened_and_a_clip_is_asked_about(monkeypatch, tmp_path):
    page, controls, calls = opened(monkeypatch, tmp_path)
    tab = next(tab for tab in page._tabs if isinstance(tab, Open))
    tab._received(sent("../../ev il.toml", Path("src/synovia/models/arm7.toml").read_bytes()))
    assert calls == [("open", "ev il.toml")]
    assert [path.parent.parent for path in tmp_path.rglob("ev il.toml")] == [tmp_path]  # in a folder of its own
    tab._received(sent("walk.bvh", WALK.read_bytes()))
    assert calls[1:] == []
    controls["Play it on humanoid"].type(True)
    controls["Map it to humanoid"].type(True)
    controls["Open its own body"].type(True)
    assert calls[1:] == [("play", "walk.bvh"), ("map", "walk.bvh"), ("open", "walk.bvh")]


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("fair däb ✨.toml", "fair däb ✨.toml"),
        ("踊り.toml", "踊り.toml"),
        ("C:\\models\\arm.toml", "C_models_arm.toml"),
        ("a\x00b\n?.toml", "a_b_.toml"),
        ("../..", "file"),
        ("x" * 300 + ".toml", "x" * 55 + ".toml"),
        ("\ud800.toml", "_.toml"),
    ],
)
def test_a_file_keeps_its_name_unless_a_system_forbids_it(monkeypatch, tmp_path, name, kept):
    page, _, calls = opened(monkeypatch, tmp_path)
    tab = next(tab for tab in page._tabs if isinstance(tab, Open))
    content = Path("src/synovia/models/arm7.toml").read_bytes()
    tab._received(sent(name, content))
    assert calls == [("open", kept)]
    (path,) = (path for path in tmp_path.rglob("*") if path.is_file())
    assert (path.name, path.parent.parent) == (kept, tmp_path)


def test_an_fbx_is_a_clip_or_a_character(monkeypatch, tmp_path):
    pytest.importorskip("ufbx")
    page, controls, calls = opened(monkeypatch, tmp_path)
    tab = next(tab for tab in page._tabs if isinstance(tab, Open))
    nodes, takes, mesh = fbx_made.sample()
    tab._received(sent("hero.fbx", fbx_made.binary_of(fbx_made.file_of(nodes, mesh=mesh))))
    assert calls == [("open", "hero.fbx")]
    tab._received(sent("dance.fbx", fbx_made.binary_of(fbx_made.file_of(nodes, takes))))
    controls["Play it on humanoid"].type(True)
    assert calls[1:] == [("play", "dance.fbx")]


def test_a_file_of_no_known_format_is_a_message(monkeypatch, tmp_path):
    page, controls, calls = opened(monkeypatch, tmp_path)
    controls["Open a file"].type(sent("note.txt", b"hello"))
    assert "no known format" in page.message.text
    object.__setattr__(page.host, "folder", tmp_path / "not there")
    controls["Open a file"].type(sent("arm.toml", b"hello"))
    assert "not there" in page.message.text
    assert calls == []


def test_a_clip_of_another_body_plays_on_this_one_and_is_kept_with_keys():
    shown = []
    host = SimpleNamespace(show=shown.append)
    live._Navigation(host, sy.bundled("humanoid")).play(WALK)
    session = shown[0].make()
    assert session.animation.play.motion is not None
    assert session.animation.play.playing
    assert session.solving.solver.name == "full-body"  # also with a clip


def test_an_option_that_no_page_has_is_an_error():
    with pytest.raises(TypeError, match="colour"):
        sy.view("arm7", port=0, colour="red")


def test_a_clip_of_another_body_is_carried_over_with_a_note() -> None:
    examples = Path(__file__).parents[2] / "examples"
    opened = live.opening(examples / "character.glb", live.Start(clip=examples / "walk.bvh"))
    assert any("retargeted from walk.bvh to character.glb; the verdict is 'good'" in note for note in opened.notes)
    session = opened.make()
    assert len(session.animation.play.motion) == len(sy.load_motion(examples / "walk.bvh"))
    own = live.opening(examples / "walk.bvh", live.Start(clip=examples / "walk.bvh"))
    assert not any("retargeted from" in note for note in own.notes)


def test_messages_call_sent_files_by_their_names(tmp_path: Path) -> None:
    message = Message(lambda _: None, tmp_path)
    message.show(f"{tmp_path / 'tmp12' / 'hero.fbx'}: is not an FBX file")
    assert message.text == "hero.fbx: is not an FBX file"
