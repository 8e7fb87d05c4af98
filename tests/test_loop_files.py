"""Loops in files: TOML beside a model and in it, errors with their lines, and formats that cannot hold them."""

from pathlib import Path

import numpy as np
import pytest

import synovia as sy
from cli_runs import run
from mechanisms import mechanism_of
from synovia.errors import FormatError

EXAMPLES = Path(__file__).parents[1] / "examples"
HEAD = 'schema = "synovia.loops/1"\n'


def bars() -> sy.Skeleton:
    """Return three bars, of which the second and the third can be pinned."""
    hinge = {"kind": sy.Kind.HINGE, "axis": (0, 0, 1)}

    def bar(name: str, parent: str | None, x: float) -> sy.Joint:
        rest = np.eye(4)
        rest[0, 3] = x
        return sy.Joint(name, parent, rest=rest, **hinge)

    return sy.Skeleton([bar("crank", None, 0), bar("the coupler", "crank", 1), bar("rocker", None, 3)])


TURN = np.array([[0.36, 0.48, -0.8], [-0.8, 0.6, 0.0], [0.48, 0.64, 0.6]])
FRAME = np.block([[TURN, np.array([[1.5], [0], [0]])], [np.zeros((1, 3)), np.ones((1, 1))]])
PIN = sy.Loop("the coupler", "rocker", offset=(2.5, 0, 0), other_offset=FRAME)


def test_a_skeleton_file_holds_loops(tmp_path: Path) -> None:
    ties = [
        PIN,
        sy.Loop("crank", kind="distance", offset=(0.5, 0, 0), other_offset=(0.1, 0, 0), distance=0.4, name="rod"),
        sy.Coupling({"crank": (0.0, 0.0, 1.5), "the coupler": 0.0 + 1e-300, "rocker": (0.1, 0.2)}, name="cam"),
    ]
    skeleton = bars()
    for tie in ties:
        one = skeleton.with_loops([tie])
        sy.formats.write_skeleton(one, tmp_path / "bars.toml", force=True)
        (back,) = sy.load_skeleton(tmp_path / "bars.toml").loops
        assert (back.name, back.names, back.rows, repr(back)) == (tie.name, tie.names, tie.rows, repr(tie))
        if isinstance(tie, sy.Loop):
            assert isinstance(back, sy.Loop)
            assert (back.kind, back.distance) == (tie.kind, tie.distance)
            assert np.abs(back.offset - tie.offset).max() < 1e-15
            assert np.abs(back.other_offset - tie.other_offset).max() < 1e-15
        else:
            assert isinstance(back, sy.Coupling)
            assert (back.terms, back.equals) == (tie.terms, tie.equals)


def test_a_file_of_loops_adds_to_those_of_the_model(tmp_path: Path) -> None:
    sy.formats.write_skeleton(bars().with_loops([PIN]), tmp_path / "bars.toml")
    text = """[[coupling]]\nterms = { crank = 1, "rocker" = [-0.5, 0.1] }\nequals = 0.0\n"""
    (tmp_path / "bars.loops.toml").write_text(HEAD + text)
    found = sy.load_skeleton(tmp_path / "bars.toml").loops
    assert [tie.label for tie in found] == ["the coupler - rocker", "crank - rocker"]
    assert sy.io.load.companions_of(tmp_path / "bars.toml")[0] == tmp_path / "bars.loops.toml"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('schema = "synovia.loops/2"', r"l\.toml: is not a file of loops of this version"),
        (HEAD + "loops = 1", r"line 2: unknown key 'loops'\. Did you mean 'loop'"),
        (HEAD + "[[loop]]\nsecond = 'crank'", "line 2, loop 0: loop has no first"),
        (HEAD + "[[loop]]\nfirst = 'cranc'", r"line 3, loop 0: no joint named 'cranc'.*Did you mean 'crank'|line 2"),
        (HEAD + "[[loop]]\nfirst = 'crank'\nkind = 'pnt'", "line 4, loop 0: kind is not known: expected one of point"),
        (HEAD + "[[loop]]\nfirst = 'crank'\noffsett = [1, 0, 0]", "line 4, loop 0: unknown key 'offsett'"),
        (HEAD + "[[loop]]\nfirst = 'crank'\ndistance = 1", "line 4, loop 0: distance of loop 'crank - world'"),
        (HEAD + "[[loop]]\nname = 'far'\nfirst = 'crank'\nother_offset = [9, 0, 0]", "loop 'far': .*cannot be closed"),
        (
            HEAD + "[[loop]]\nfirst = 'crank'\nsecond = 'crank'",
            "line 2, loop 0: .*frames that joints move relative to each other",
        ),
        (HEAD + "[[coupling]]\nterms = 3", "line 3, coupling 0: terms has the wrong form"),
        (HEAD + "[[coupling]]\nterms = { crank = 'a' }", "line 3, coupling 0: crank is not a number"),
        (HEAD + "[[coupling]]\nterms = { crank = [1, 2, 3, 4, 5] }", "coupling 0: factors of 'crank'"),
        (HEAD + "[[coupling]]\nterms = { knee = 1 }", "line 2, coupling 0: no joint named 'knee'"),
    ],
)
def test_what_is_wrong_with_a_file_of_loops(tmp_path: Path, text: str, says: str) -> None:
    sy.formats.write_skeleton(bars(), tmp_path / "bars.toml")
    (tmp_path / "l.toml").write_text(text)
    with pytest.raises(FormatError, match=says):
        sy.load_skeleton(tmp_path / "bars.toml", loops=tmp_path / "l.toml")


def test_a_file_of_loops_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "l.toml").write_text(HEAD)
    with pytest.raises(FormatError, match=r"These are loops of a model, which --loops and load_skeleton\(path, loops"):
        sy.load_skeleton(tmp_path / "l.toml")


def test_formats_that_cannot_hold_loops_say_so(tmp_path: Path) -> None:
    skeleton = bars().with_loops([PIN])
    motion = sy.Motion(skeleton, np.repeat(skeleton.rest_q[None], 3, axis=0), 30.0)
    with pytest.warns(UserWarning, match="cannot hold loops.*'the coupler - rocker'"):
        sy.save_motion(motion, tmp_path / "bars.bvh")
    sy.save_motion(motion, tmp_path / "bars.npz")
    assert [tie.label for tie in sy.load_motion(tmp_path / "bars.npz").skeleton.loops] == ["the coupler - rocker"]


def test_a_posed_gltf_says_that_it_holds_no_loops(tmp_path: Path) -> None:
    body = sy.load_skeleton(EXAMPLES / "character.glb")
    hinge = next(joint.name for joint in body.joints if joint.kind is sy.Kind.BALL)
    tied = body.with_loops([sy.Loop(hinge, "head", "distance", distance=_apart(body, hinge, "head"))])
    with pytest.warns(UserWarning, match="cannot hold loops"):
        sy.save_pose(tied.rest_pose(), tmp_path / "posed.glb")
    sy.save_pose(tied.rest_pose(), tmp_path / "posed.json")


def _apart(body: sy.Skeleton, first: str, second: str) -> float:
    """Return the distance of two joints at rest."""
    rest = body.rest_pose()
    return float(np.linalg.norm(rest.position(first) - rest.position(second)))


def test_loops_may_be_named_by_roles() -> None:
    body = sy.bundled("humanoid")
    tied = sy.Skeleton(body.joints, loops=[sy.Loop("left_hand", "right_hand", "distance", distance=0.5)])
    assert tied.mechanism is not None
    pose = tied.rest_pose()
    assert np.linalg.norm(pose.position("left_hand") - pose.position("right_hand")) == pytest.approx(0.5)


def test_each_command_that_poses_a_model_takes_a_file_of_loops(tmp_path: Path) -> None:
    """A crank that turns, with the loops beside it: clips that are made, edited and shown are closed."""
    tree, loops = tmp_path / "bars.toml", tmp_path / "pins.toml"
    sy.formats.write_skeleton(bars(), tree)
    text = """[[loop]]\nfirst = "the coupler"\nsecond = "rocker"\noffset = [3, 0, 0]\nother_offset = [2, 0, 0]\n"""
    loops.write_text(HEAD + text)
    body = sy.load_skeleton(tree, loops=loops)
    pose = body.random_pose(1)
    place = ",".join(f"{x:.9g}" for x in pose.position("the coupler"))
    track = f"""schema = "synovia.track/1"\nfps = 10\n[[goals]]\njoint = "the coupler"\n
keys = [{{ time = 0, position = [{body.rest_pose().position("the coupler").tolist()[0]}, 0, 0] }},
        {{ time = 1, position = [{place}] }}]\n"""
    (tmp_path / "track.toml").write_text(track)
    clip, edited, shown = (tmp_path / name for name in ("clip.npz", "edited.npz", "still.png"))
    assert run("animate", tree, "--goals", tmp_path / "track.toml", "--loops", loops, "-o", clip).code in (0, 1)
    motion = sy.load_motion(clip)
    assert [tie.label for tie in motion.skeleton.loops] == ["the coupler - rocker"]
    assert run("edit", clip, "--pin", "rocker@3:5", "-o", edited).code in (0, 1)
    assert mechanism_of(sy.load_motion(edited).skeleton).lacks(np.array(sy.load_motion(edited).q)).max() <= 1e-9
    pair = {"tree": sy.Motion(sy.load_skeleton(tree), motion.q + 0.003, 10.0), "closed": motion}
    sy.save_motion(pair["tree"], tmp_path / "open.npz")
    made = run("convert", tmp_path / "open.npz", tmp_path / "shut.npz", "--loops", loops)
    assert made.code == 0
    assert "were closed in" in made.err
    assert mechanism_of(sy.load_motion(tmp_path / "shut.npz").skeleton).lacks(
        np.array(sy.load_motion(tmp_path / "shut.npz").q)
    ).max() <= 1e-9  # fmt: skip
    assert run("convert", tree, tmp_path / "tied.toml", "--loops", loops).code == 0
    assert len(sy.load_skeleton(tmp_path / "tied.toml").loops) == 1
    assert run("render", clip, "--loops", tmp_path / "none.toml", "-o", shown).code == 3
    told = run("bench", tree, "--loops", loops, "--joint", "the coupler", "--problems", "2", "--solver", "lm", "--json")
    assert told.code == 0
