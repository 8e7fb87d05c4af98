"""Layers with clearance goals: each frame that a layer changes is clear, measured apart from it, or it is told."""

import numpy as np
import pytest

import synovia as sy
from cli_runs import assert_refused, run

pytestmark = pytest.mark.compiled  # a whole body in many frames

FRAMES, FPS, SLACK = 40, 30.0, 1e-9
HAND, ARM, POST = "left_hand", ("left_shoulder", "left_upper_arm", "left_lower_arm", "left_hand"), "post"


def gaps(motion, pairs=(), world=None):
    """Return the least distance of pairs of links and, with a world, of all links from its obstacles, (T,)."""
    body, out = motion.skeleton, []
    for k in range(len(motion)):
        pose, found = motion.pose(k), [np.inf]
        for a, b in pairs:
            T, S = pose.transform(a), pose.transform(b)
            found += [
                sy.shapes.distance(u, v, transform_a=T, transform_b=S).distance
                for u in body.shapes[a]
                for v in body.shapes[b]
            ]
        for link, shapes in body.shapes.items() if world is not None else ():
            for shape in shapes:
                found += [one.distance for one in world.distances(shape, transform=pose.transform(link)).values()]
        out.append(min(found))
    return np.array(out)


def moved(a, b):
    """Return the joints whose values differ in two clips."""
    names = a.skeleton.joint_names
    return {name for name in names if (a.q[:, at := a.skeleton.q_slice(name)] != b.q[:, at]).any()}


def frames_that_differ(a, b):
    """Return the frames in which two clips differ, (T,)."""
    return (a.q != b.q).any(axis=1)


@pytest.fixture(scope="module")
def swing():
    """A body that swings a straight arm to the front and back."""
    body = sy.bundled("humanoid").with_root("free")
    q = np.repeat(body.rest_q[None], FRAMES, axis=0)
    angles = -0.9 * np.sin(np.linspace(0.0, np.pi, FRAMES))
    q[:, body.q_slice("left_upper_arm")] = sy.Rotation.from_rotvec(np.outer(angles, (0.0, 1.0, 0.0))).as_quat()
    return sy.Motion(body, q, FPS, name="swing")


@pytest.fixture(scope="module")
def post(swing):
    """A ball on the way of the hand."""
    place = swing.pose(14).position(HAND) + np.array((0.0, 0.03, 0.0))
    return sy.World({POST: sy.Sphere(center=place, radius=0.03)})


@pytest.fixture(scope="module")
def inside(swing):
    """The clip, with an elbow that bends until the hand is in the chest."""
    q = swing.q.copy()
    q[:, swing.skeleton.q_slice("left_lower_arm")] = 2.4 * np.sin(np.linspace(0.0, np.pi, FRAMES))[:, None] ** 2
    return sy.Motion(swing.skeleton, q, FPS, name="inside")


def test_a_limb_moves_out_of_an_obstacle(swing, post):
    """Every frame is clear, the arm alone moves, and frames that are clear keep every bit."""
    before = gaps(swing, world=post)
    assert before.min() < 0.0
    edited = sy.edit(swing, sy.Layer(goals=[sy.ClearanceGoal(0.01, world=post)]))
    assert edited.reached.all()
    assert gaps(edited.motion, world=post).min() >= 0.01 - SLACK
    assert moved(swing, edited.motion) <= set(ARM)
    differs = frames_that_differ(swing, edited.motion)
    assert differs[before < 0.01].all()
    assert not differs[before > 0.2].any()
    np.testing.assert_array_equal(edited.acts, differs)
    assert any(HAND in line for line in edited.moved())
    assert not edited.findings


def test_nothing_changes_where_the_clip_is_clear(swing):
    """Bit for bit, and no frame counts as changed."""
    far = sy.World({POST: sy.Sphere(center=(5.0, 1.0, 0.0), radius=0.1)})
    edited = sy.edit(swing, sy.Layer(goals=[sy.ClearanceGoal(0.01, world=far, pairs="world")]))
    assert not edited.acts.any()
    assert edited.reached.all()
    np.testing.assert_array_equal(edited.motion.q, swing.q)


def test_targets_are_met_beside_it(swing, post):
    """Fades are clear, too; other frames keep every bit. The hand comes by the post twice, so the layer has both."""
    way = np.array((-0.03, 0.12, 0.0))
    goals = [sy.ClearanceGoal(0.02, world=post)]
    layer = sy.Layer({HAND: way}, goals, frames=(12, 27), blend=6, relative=True)
    edited = sy.edit(swing, layer)
    assert edited.reached.all()
    first, last = layer.span(FRAMES)
    assert gaps(edited.motion[first : last + 1], world=post).min() >= 0.02 - SLACK
    assert set(np.flatnonzero(frames_that_differ(swing, edited.motion))) <= set(range(first, last + 1))
    went = (edited.motion.positions() - swing.positions())[12:28, swing.skeleton.index(HAND)]
    np.testing.assert_allclose(went, np.tile(way, (16, 1)), atol=1e-3)


def test_a_weight_does_not_weaken_it(swing, post):
    """It has no target that a layer could go half of the way to."""
    edited = sy.edit(swing, sy.Layer(goals=[sy.ClearanceGoal(0.01, world=post)], weight=0.5))
    assert edited.reached.all()
    assert gaps(edited.motion, world=post).min() >= 0.01 - SLACK


def test_a_hand_moves_out_of_the_body(inside):
    """With the pairs of the body itself: the arm moves, the rest does not."""
    pairs = [pair for pair in sy.shapes.self_pairs(inside.skeleton).pairs if set(pair) & set(ARM)]
    assert gaps(inside, pairs).min() < -0.01
    edited = sy.edit(inside, sy.Layer(goals=[sy.ClearanceGoal(0.0)]))
    assert edited.reached.all()
    assert gaps(edited.motion, pairs).min() >= -SLACK
    assert moved(inside, edited.motion) <= set(ARM)
    assert {change.joint for change in edited.changes} <= set(ARM)


def test_frames_outside_the_layer_stay_as_near_as_they_are(swing):
    """A clip that is always too near: frames of the layer are clear, others keep every bit and are not judged."""
    ball = sy.World({POST: sy.Sphere(center=swing.pose(0).position("right_hand"), radius=0.05)})
    layer = sy.Layer(goals=[sy.ClearanceGoal(0.01, world=ball)], frames=(10, 20), blend=5)
    edited = sy.edit(swing, layer)
    first, last = layer.span(FRAMES)
    assert gaps(edited.motion[first : last + 1], world=ball).min() >= 0.01 - SLACK
    np.testing.assert_array_equal(np.flatnonzero(frames_that_differ(swing, edited.motion)), np.arange(first, last + 1))
    assert edited.reached.all()


def test_the_body_moves_if_its_trunk_is_too_near(swing):
    """Feet keep their places."""
    place = swing.pose(0).position("head") - np.array((0.0, 0.0, 0.08))
    wall = sy.World({"wall": sy.HalfSpace(point=place, normal=(0, 0, 1))})
    goal = sy.ClearanceGoal(0.0, world=wall, pairs=[("head", "wall")])
    edited = sy.edit(swing, sy.Layer(goals=[goal], frames=(5, 9)))
    assert edited.reached.all()
    heads = [[one.distance for one in wall.distances(shape, transform=edited.motion.pose(k).transform("head")).values()]
             for k in range(5, 10) for shape in swing.skeleton.shapes["head"]]  # fmt: skip
    assert np.min(heads) >= -SLACK
    foot = swing.skeleton.index("left_foot")
    np.testing.assert_allclose(edited.motion.positions()[:, foot], swing.positions()[:, foot], atol=1e-3)


def test_a_knee_moves_and_its_foot_stands(swing):
    """The leg bends around what is in its way."""
    behind = swing.pose(0).position("left_lower_leg") - np.array((0.0, 0.0, 0.07))
    ball = sy.World({POST: sy.Sphere(center=behind, radius=0.04)})
    edited = sy.edit(swing, sy.Layer(goals=[sy.ClearanceGoal(0.0, world=ball, pairs="world")], frames=(5, 9)))
    assert gaps(swing[5:10], world=ball).min() < 0.0
    assert edited.reached.all()
    assert gaps(edited.motion[5:10], world=ball).min() >= -SLACK
    foot = swing.skeleton.index("left_foot")
    np.testing.assert_allclose(edited.motion.positions()[:, foot], swing.positions()[:, foot], atol=1e-3)


def test_what_cannot_be_clear_is_told():
    """The pairs, their distances and frames; the frames count as missed."""
    arm = sy.bundled("arm7")
    still = sy.Motion(arm, [arm.rest_q] * 8, FPS)
    cell = sy.World({"cell": sy.Sphere(center=arm.rest_pose().position("joint2"), radius=0.3)})
    edited = sy.edit(still, sy.Layer(goals=[sy.ClearanceGoal(0.01, world=cell)], frames=(3, 6), name="out"))
    assert edited.missed_frames == (3, 4, 5, 6)
    found = [one for one in edited.findings if one.cause == "missed"]
    assert {one.layer for one in found} == {"out"}
    assert any("joint2 and cell overlap by" in one.text and one.frames == (3, 4, 5, 6) for one in found)
    assert "should be 10 mm apart" in edited.report()


@pytest.mark.slow
def test_a_layer_above_stays_clear(swing, post):
    """Its target yields; keys alone do not, and the final clip is what is told."""
    clear = sy.Layer(goals=[sy.ClearanceGoal(0.01, world=post)], name="clear")
    into = sy.Layer({HAND: post[POST].solids()[0].center}, frames=(14, 16), blend=4, name="into")
    edited = sy.edit(swing, [clear, into])
    assert gaps(edited.motion, world=post).min() >= 0.01 - SLACK
    assert edited.missed_frames
    assert {one.layer for one in edited.findings if one.cause == "missed"} == {"into"}
    turned = sy.Layer(pose={"left_lower_arm": 0.05}, frames=(14, 16), relative=True, name="keys")
    keyed = sy.edit(swing, [clear, turned])
    near = np.flatnonzero(gaps(keyed.motion, world=post) < 0.01 - SLACK)
    assert set(near) <= {14, 15, 16}
    assert keyed.missed_frames == tuple(near.tolist())


def test_layers_below_stay_met_where_they_can(swing, post):
    """A head that looks at a point still does."""
    looks = sy.Layer(goals=[sy.AimGoal("head", (1.0, 1.5, 3.0))], name="look")
    edited = sy.edit(swing, [looks, sy.Layer(goals=[sy.ClearanceGoal(0.01, world=post)])])
    assert edited.reached.all()
    assert gaps(edited.motion, world=post).min() >= 0.01 - SLACK


def test_targets_of_layers_below_yield(swing, post):
    """Where the hand may not be at its place, it is told to miss it, and the arm alone moves."""
    held = sy.Layer({HAND: (0.0, 0.01, 0.0)}, relative=True, frames=(8, 30), blend=4, name="held")
    below = sy.edit(swing, held).motion
    edited = sy.edit(swing, [held, sy.Layer(goals=[sy.ClearanceGoal(0.01, world=post)])])
    assert gaps(edited.motion, world=post).min() >= 0.01 - SLACK
    assert moved(below, edited.motion) <= set(ARM)
    assert {one.layer for one in edited.findings if one.cause == "missed"} == {"held"}
    away = np.linalg.norm((edited.motion.positions() - below.positions())[:, swing.skeleton.index(HAND)], axis=1)
    assert away.max() < 0.1


def test_files_of_layers_get_their_obstacles_beside_them(swing, post, tmp_path):
    """The same clip as from Python."""
    given = sy.Layer(goals=[sy.ClearanceGoal(0.01, pairs=["self", (HAND, "right_hand")])], frames=(3, 9))
    sy.formats.write_layers(given, tmp_path / "edit.toml")
    (read,) = sy.formats.read_layers(tmp_path / "edit.toml", swing.skeleton, world=post)
    assert read.goals[0].world is post
    assert read.goals[0].pairs == ("self", (HAND, "right_hand"))
    with pytest.raises(sy.InputError, match="world"):
        sy.formats.read_layers(tmp_path / "edit.toml", world="post.toml")
    with pytest.raises(sy.errors.UnsupportedError, match="world"):
        sy.formats.write_layers(sy.Layer(goals=[sy.ClearanceGoal(world=post)]), tmp_path / "other.toml")


def test_a_body_without_shapes_is_refused(swing):
    """With the layer, and how to get shapes."""
    bare = swing.on(sy.with_shapes(swing.skeleton, {name: [] for name in swing.skeleton.shapes}))
    with pytest.raises(sy.InputError, match=r"layers\[0\].*shapes"):
        sy.edit(bare, sy.Layer(goals=[sy.ClearanceGoal()]))


# --- on the command line ----------------------------------------------------------------------------------------------


@pytest.fixture
def desk(swing, inside, post, tmp_path, monkeypatch):
    """A folder with clips, a world and layers, of which one has no clearance goal of its own."""
    monkeypatch.chdir(tmp_path)
    for clip in (swing, inside):
        sy.save_motion(clip, f"{clip.name}.npz")
    sy.save_world(post, "post.toml")
    higher = sy.Layer({HAND: (0.0, 0.01, 0.0)}, frames=(14, 22), blend=4, relative=True)
    wide = sy.Layer(goals=[sy.ClearanceGoal(0.03)], frames=(2, 5), name="wide")
    sy.formats.write_layers([higher, wide], "layers.toml")
    return tmp_path


def test_the_command_keeps_every_layer_clear(desk, swing, post):
    """The same clip as in Python; the report and the JSON object say what is kept."""
    layer = sy.Layer({HAND: (-0.03, 0.12, 0.0)}, [sy.ClearanceGoal(0.02, world=post)], frames=(14, 22), relative=True)
    words = ("edit", "swing.npz", "--offset", f"{HAND}=-0.03,0.12,0@14:22", "--world", "post.toml", "--clearance", 0.02)
    ran = run(*words, "--json", "-o", "out.npz")
    assert (ran.code, ran.data["schema"]) == (0, "synovia.edited/1")
    np.testing.assert_array_equal(sy.load_motion("out.npz").q, sy.edit(swing, layer).motion.q)
    (kept,) = ran.data["clearances"]
    assert (kept["layer"], kept["distance"], kept["frames"]) == (f"offset {HAND}", 0.02, 9)
    assert (kept["missed"], kept["too_near"]) == ([], [])
    assert "kept 20 mm apart in 9 frames" in run(*words).out
    assert run("edit", "swing.npz", "--offset", f"{HAND}=-0.03,0.12,0@14:22", "--json").data["clearances"] == []


def test_the_command_keeps_a_whole_clip_clear(desk, inside, swing, post):
    """Without layers: of itself with a distance, of both with a world."""
    pairs = [pair for pair in sy.shapes.self_pairs(inside.skeleton).pairs if set(pair) & set(ARM)]
    assert run("edit", "inside.npz", "--clearance", 0, "-o", "out.npz").code == 0
    assert gaps(sy.load_motion("out.npz"), pairs).min() >= -SLACK
    assert run("edit", "swing.npz", "--world", "post.toml", "-o", "past.npz").code == 0
    assert gaps(swing, world=post).min() < 0.0
    assert gaps(sy.load_motion("past.npz"), world=post).min() >= -SLACK


@pytest.mark.slow
def test_layers_of_a_file_get_the_world_of_the_command(desk):
    """A goal of the file keeps its own distance, and takes the place of the goal that the world alone adds."""
    words = ("edit", "swing.npz", "--layers", "layers.toml", "--world", "post.toml", "--json")
    found = [(one["layer"], one["distance"]) for one in run(*words).data["clearances"]]
    assert found == [(HAND, 0.0), ("wide", 0.03)]
    found = [(one["layer"], one["distance"]) for one in run(*words, "--clearance", 0.01).data["clearances"]]
    assert found == [(HAND, 0.01), ("wide", 0.03), ("wide", 0.01)]


def test_the_command_tells_what_it_cannot_keep_apart(desk):
    """The pair, its distance and the frames; the exit code is 1."""
    cell = sy.World({"cell": sy.Sphere(center=sy.bundled("arm7").rest_pose().position("joint2"), radius=0.3)})
    sy.save_world(cell, "cell.toml")
    arm = sy.bundled("arm7")
    sy.save_motion(sy.Motion(arm, [arm.rest_q] * 4, FPS), "arm.npz")
    ran = run("edit", "arm.npz", "--world", "cell.toml", "--json")
    (kept,) = ran.data["clearances"]
    assert (ran.code, kept["missed"]) == (1, [0, 1, 2, 3])
    assert all(one["distance"] < 0.0 and one["frames"] == [0, 1, 2, 3] for one in kept["too_near"])
    assert ["joint2", "cell"] in [one["pair"] for one in kept["too_near"]]
    assert "joint2 and cell overlap by" in run("edit", "arm.npz", "--world", "cell.toml").out


@pytest.mark.slow
def test_clearance_is_measured_after_the_tools(desk, post):
    """A clip that is moved to another place has the obstacles where they are."""
    way = post["post"].solids()[0].center
    words = ("edit", "swing.npz", "--world", "post.toml", "--origin", f"{way[0]},0,{way[2]}")
    ran = run(*words, "--json", "-o", "out.npz")
    near = np.flatnonzero(gaps(sy.load_motion("out.npz"), world=post) < -SLACK)
    assert len(near)
    (kept,) = ran.data["clearances"]
    assert (ran.code, kept["missed"]) == (1, near.tolist())
    assert "after the tools" in run(*words).out
    half = run("edit", "swing.npz", "--world", "post.toml", "--slice", "10:30:2", "--json")
    assert (half.code, half.data["clearances"][0]["frames"]) == (0, 10)


def test_options_of_the_command_that_do_not_go_together(desk, swing):
    """A body without shapes, shapes without need, and a goal of a file that needs a world."""
    sy.save_motion(swing.on(sy.with_shapes(swing.skeleton, {link: [] for link in swing.skeleton.shapes})), "bare.npz")
    assert_refused(run("edit", "bare.npz", "--clearance", 0.01), "--shapes")
    assert run("edit", "bare.npz", "--clearance", 0, "--shapes", "--json").data["clearances"]
    assert_refused(run("edit", "bare.npz", "--clearance", "none"), "expected a number", code=2)
    for words in ((), ("--pin", HAND)):
        assert_refused(run("edit", "bare.npz", "--shapes", *words), "expected", code=2)
    sy.formats.write_layers(sy.Layer(goals=[sy.ClearanceGoal(0.01)]), "near.toml")
    with (desk / "near.toml").open("a") as file:
        file.write('pairs = ["world"]\n')
    assert_refused(run("edit", "swing.npz", "--layers", "near.toml"), "--world")
