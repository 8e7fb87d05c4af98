"""Films and plots: the right frames for the right time, the same pixels on any number of threads."""

import sys

import numpy as np
import pytest
from PIL import Image

import synovia as sy
from cli_runs import run
from synovia.draw.film import film_frames
from synovia.draw.render import Strip
from synovia.draw.theme import theme_of
from synovia.errors import FileError, InputError, MissingExtraError, UnknownNameError, UnsupportedError

SMALL = (96, 72)


@pytest.fixture(scope="module")
def arm():
    return sy.bundled("arm7")


@pytest.fixture(scope="module")
def swing(arm):
    """An arm that swings for half a second at 120 Hz."""
    u = np.linspace(0.0, 1.0, 61)[:, None]
    q = (1.0 - u) * arm.rest_q + u * arm.random_pose(4).q
    return sy.Motion(arm, q, 120.0, name="swing")


@pytest.fixture(scope="module")
def tracked(arm):
    """A track whose last frames are out of reach."""
    x = np.linspace(0.3, 2.0, 12)
    return sy.IK(arm, sy.PositionGoal("tool")).track({"tool": np.stack([x, 0 * x, 0 * x + 0.4], 1)}, fps=24.0)


def test_frames_are_picked_by_time():
    assert film_frames(61, 120.0, None) == (list(range(0, 61, 4)), 30.0)
    assert film_frames(61, 120.0, 240.0) == (list(range(61)), 120.0)  # else it would play too fast
    assert film_frames(1, 30.0, None) == ([0], 30.0)
    shown, _ = film_frames(1000, 25.0, 10.0, most=8)
    assert (shown[0], len(shown)) == (0, 8)
    assert shown[-1] >= 997


def test_gif_has_the_length_of_the_clip(swing, tmp_path):
    path = tmp_path / "swing.gif"
    seen = []
    sy.render(swing, path, size=SMALL, fps=12.0, progress=lambda done, total: seen.append((done, total)))
    with Image.open(path) as film:
        assert (film.size, film.n_frames) == (SMALL, 7)
        lengths = []
        for k in range(film.n_frames):
            film.seek(k)
            lengths.append(film.info["duration"])
    assert abs(sum(lengths) - 7 / 12 * 1000) <= 10
    assert seen == [(k, 7) for k in range(1, 8)]


def test_no_frame_of_a_gif_is_shorter_than_browsers_show(swing, tmp_path):
    path = tmp_path / "fast.gif"
    sy.render(sy.Motion(swing.skeleton, swing.q[:21], swing.fps), path, size=SMALL, fps=120.0)
    with Image.open(path) as film:
        assert film.n_frames == 9  # 50 in a second
        for k in range(film.n_frames):
            film.seek(k)
            assert film.info["duration"] == 20


def test_same_pixels_on_any_number_of_threads(swing, tmp_path):
    for threads in (1, 3):
        sy.render(swing, tmp_path / f"{threads}.png", size=SMALL, threads=threads)
    assert (tmp_path / "1.png").read_bytes() == (tmp_path / "3.png").read_bytes()
    with Image.open(tmp_path / "1.png") as sheet:
        assert sheet.size == (4 * SMALL[0], 2 * SMALL[1])
        assert len(np.unique(np.asarray(sheet.convert("RGB")).reshape(-1, 3), axis=0)) > 50


def test_film_beside_another_with_targets_and_strip(swing, tracked, tmp_path):
    path = tmp_path / "both.mp4"
    sy.render(tracked, path, next_to=swing, titles=("before", "after"), size=(128, 96), fps=6.0, theme="dark")
    assert path.read_bytes()[4:8] == b"ftyp"
    assert [entry.name for entry in tmp_path.iterdir()] == ["both.mp4"]


def test_two_clips_of_one_body_are_drawn_at_one_scale(tmp_path):
    """Hands that are higher in one of them do not make the other parts smaller; neither does another place."""
    body = sy.bundled("humanoid").with_root("free")
    still = sy.Motion(body, [body.rest_q] * 2, 4.0)
    high = np.array(still.q)
    for side, sign in (("left", 1.0), ("right", -1.0)):
        high[:, body.q_slice(f"{side}_upper_arm")] = sy.Rotation.from_rotvec((0.0, 0.0, 1.4 * sign)).as_quat()
    for other in (sy.Motion(body, high, 4.0), still.moved(origin=(3.0, 0.0, 1.0))):
        path, size = tmp_path / "a.png", (240, 120)
        sy.render(other, path, next_to=still, titles=("x", "x"), captions=False, floor=False, size=size, force=True)
        with Image.open(path) as sheet:
            left, right = (np.asarray(sheet.convert("RGB").crop((x, 80, x + 120, 120)), float) for x in (0, 120))
        assert np.abs(left - right).mean() < 2.0  # of 255: the legs are at the same pixels


def test_a_film_that_ffmpeg_does_not_write_is_an_error(swing, tmp_path, monkeypatch):
    def write_nothing(*_, **__):
        while True:
            yield

    path = tmp_path / "a.mp4"
    path.write_bytes(b"old")
    monkeypatch.setattr("imageio_ffmpeg.write_frames", write_nothing)
    with pytest.raises(FileError, match=r"a\.mp4: film cannot be written"):
        sy.render(swing, path, size=SMALL, fps=4.0, force=True)
    assert path.read_bytes() == b"old"


def test_only_an_mp4_needs_ffmpeg(swing, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    sy.render(swing, tmp_path / "a.gif", size=SMALL, fps=4.0)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[film\]"):
        sy.render(swing, tmp_path / "a.mp4", size=SMALL, fps=4.0)


def test_strip_shows_misses_and_the_cursor():
    errors = np.array([0.1, 0.5, 50.0, 20.0, 0.2])
    theme = theme_of("light")
    strip = Strip(errors, (100, 30), theme)
    first, last = np.asarray(strip.at(0)).astype(int), np.asarray(strip.at(4)).astype(int)
    assert (first != last).any()
    red = (np.abs(first - theme.missed).sum(-1) < 60).any(0)
    assert red[30:75].any()
    assert not red[:15].any()


def test_what_cannot_be_drawn(swing, arm, tmp_path):
    with pytest.raises(UnsupportedError, match="no film"):
        sy.render(swing, tmp_path / "a.avi")
    with pytest.raises(FileError, match="folder"):
        sy.render(swing, tmp_path / "no" / "a.gif")
    with pytest.raises(InputError, match="fps"):
        sy.render(swing, tmp_path / "a.gif", fps=0.0)
    with pytest.raises(InputError, match="fps"):
        sy.render(swing, tmp_path / "a.gif", fps="12")
    with pytest.raises(InputError, match="threads"):
        sy.render(swing, tmp_path / "a.gif", threads=0)
    with pytest.raises(InputError, match="clip: expected a Motion"):
        sy.render(arm, tmp_path / "a.gif")
    with pytest.raises(InputError, match="no frames"):
        sy.render(sy.Motion(arm, np.zeros((0, arm.nq)), 30.0), tmp_path / "a.gif")
    with pytest.raises(UnknownNameError):
        sy.render(swing, tmp_path / "a.gif", view="inside")
    assert list(tmp_path.iterdir()) == []


def test_plots(swing, tracked, arm, tmp_path):
    sy.plots.plot_joints(swing, tmp_path / "joints.png")
    sy.plots.plot_joints(swing, tmp_path / "two.svg", ["joint1", "joint4"])
    sy.plots.plot_errors(tracked, tmp_path / "errors.png")
    sy.plots.plot_reach(arm, "tool", tmp_path / "reach.png")
    text = (tmp_path / "two.svg").read_text(encoding="utf-8")
    assert text.startswith("<?xml")
    for name in ("joints", "errors", "reach"):
        with Image.open(tmp_path / f"{name}.png") as image:
            assert min(image.size) > 200
    with pytest.raises(FileError, match="exists"):
        sy.plots.plot_joints(swing, tmp_path / "joints.png")
    with pytest.raises(InputError, match="extension"):
        sy.plots.plot_joints(swing, tmp_path / "joints.bmp")
    with pytest.raises(InputError, match="hips"):
        sy.plots.plot_feet(swing, tmp_path / "feet.png")


def test_joints_that_cannot_move_are_named_or_have_a_flat_band(arm, tmp_path):
    still = sy.Motion(arm, np.tile(arm.rest_q, (3, 1)), 30.0)
    with pytest.raises(InputError, match="does not move, got 'tool'"):
        sy.plots.plot_joints(still, tmp_path / "tool.png", ["tool"])
    with pytest.raises(InputError, match="no frames"):
        sy.plots.plot_joints(sy.Motion(arm, np.zeros((0, arm.nq)), 30.0), tmp_path / "none.png")
    stiff = sy.Skeleton([sy.Joint("stiff", kind=sy.Kind.HINGE, axis=(0, 0, 1), limit=sy.Interval(0.5, 0.5))])
    sy.plots.plot_joints(
        sy.Motion(stiff, np.full((3, 1), 0.5), 30.0), tmp_path / "stiff.png"
    )  # a warning is an error here
    assert [path.name for path in tmp_path.iterdir()] == ["stiff.png"]


def test_feet_of_a_body(tmp_path):
    body = sy.bundled("humanoid")
    q = np.array([body.random_pose(k).q for k in range(5)])
    sy.plots.plot_feet(sy.Motion(body, q, 30.0), tmp_path / "feet.png")
    assert (tmp_path / "feet.png").stat().st_size > 5000


def test_clearance_of_a_clip(swing, tmp_path):
    """The curves are the distances of the nearest pairs; the command draws the same."""
    world = sy.World({"post": sy.Cylinder(center=(0.5, 0, 0.5), radius=0.05, length=1)})
    sy.save_world(world, tmp_path / "post.toml")
    sy.save_motion(swing, tmp_path / "swing.npz")
    sy.plots.plot_clearance(swing, tmp_path / "a.svg", 0.02, world=world)
    text = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert "post" in text
    words = ("plot", tmp_path / "swing.npz", "--world", tmp_path / "post.toml", "-o")
    assert run(*words, tmp_path / "b.svg", "--clearance", "0.02").code == 0
    assert (tmp_path / "b.svg").stat().st_size == pytest.approx(len(text), rel=0.01)
    assert run(*words, tmp_path / "c.svg").code == 2
    bare = sy.Skeleton.chain([(0, 0, 0), (0, 1, 0)])
    with pytest.raises(InputError, match="with_shapes"):
        sy.plots.plot_clearance(sy.Motion(bare, bare.rest_q[None], 30.0), tmp_path / "d.svg")
    film = ("render", tmp_path / "swing.npz", "--world", tmp_path / "post.toml", "--clearance", "0.02")
    assert run(*film, "-o", tmp_path / "e.png", "--size", "96x72").code == 0


def test_command_line(swing, tmp_path):
    sy.save_motion(swing, tmp_path / "a.npz")
    film = tmp_path / "a.gif"
    assert run("render", tmp_path / "a.npz", "-o", film, "--size", "96x72", "--fps", "8").code == 0
    assert film.read_bytes().startswith(b"GIF")
    assert run("render", tmp_path / "a.npz", "-o", film).code == 3
    assert run("render", tmp_path / "a.npz", "-o", tmp_path / "b.gif", "--size", "big").code == 2
    assert run("plot", tmp_path / "a.npz", "-o", tmp_path / "p.png", "--joint", "joint2").code == 0
    assert run("plot", "arm7", "-o", tmp_path / "r.png", "--reach", "tool").code == 0


@pytest.mark.parametrize(
    ("heights", "wanted"),
    [([0.0, 1.0], [0.0, 1.0]), ([0.0, 0.1], [-0.1, 0.2]), ([0.0, 0.0, 0.0, 5.0], [-0.3, 0.0, 0.3, 5.0]), ([], [])],
)
def test_names_are_moved_apart_as_little_as_possible(heights, wanted):
    from synovia.plots.models import spread

    np.testing.assert_allclose(spread(np.array(heights), 0.3), wanted, atol=1e-12)
