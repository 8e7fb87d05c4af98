"""Pictures: what they show, where things land, and that no input makes them fail."""

import math
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synovia.draw import VIEWS, Camera, Mark, picture
from synovia.draw.bodies import Bodies, Light, shade
from synovia.draw.camera import direction, fit, look
from synovia.draw.floor import grid_step
from synovia.draw.notes import Placer
from synovia.draw.picture import png
from synovia.draw.scene import bones_of, build_scene, drawn_joints
from synovia.draw.theme import THEMES
from synovia.errors import FileError, InputError, MissingExtraError, UnknownNameError, UnsupportedError
from synovia.io.bundled import bundled
from synovia.model import Joint, Kind, Pose, Skeleton
from synovia.model.anatomy.up import find_up
from synovia.model.geometry import rigid
from synovia.model.limits import Interval

SMALL = (240, 180)
LIGHT = THEMES["light"]


def turn(axis, degrees: float) -> list[float]:
    a = np.asarray(axis, float) / np.linalg.norm(axis)
    half = math.radians(degrees) / 2.0
    return [*(a * math.sin(half)), math.cos(half)]


def bent(scale: float = 1.0) -> Pose:
    chain = Skeleton.chain(scale * np.array([(0, 0, 0), (0, 1, 0), (0, 1.8, 0), (0.1, 2.4, 0)]), name="arm")
    return chain.rest_pose().with_values({"joint0": turn((0, 0, 1), -30), "joint1": turn((0.3, 0, 1), -50)})


def robot() -> Pose:
    frames = [((0, 0, 0), (0, 0, 1)), ((0, 0, 0.3), (0, 1, 0)), ((0, 0, 0.4), (0, 1, 0)), ((0.3, 0, 0), (1, 0, 0))]
    joints = [
        Joint(f"j{i}", i - 1 if i else None, Kind.HINGE, rigid(at), axis=axis, limit=Interval(-2, 2))
        for i, (at, axis) in enumerate(frames)
    ]
    joints += [Joint("tool", 3, Kind.FIXED, rigid((0.1, 0, 0)), tip=True), Joint("imu", 1, rest=rigid((0.05, 0, 0)))]
    skeleton = Skeleton(joints, name="robot", meters_per_unit=1.0, up="z")
    return skeleton.rest_pose().with_values({"j0": 0.6, "j1": 0.5, "j2": 0.9, "j3": 1.0})


def pixels(pose, **options) -> np.ndarray:
    return np.asarray(picture(pose, size=SMALL, **options), int)


def has_colour(image: np.ndarray, colour) -> bool:
    return bool((np.abs(image - np.array(colour)).max(-1) <= 6).any())


def test_picture_is_an_rgb_image_of_the_size() -> None:
    image = picture(bent(), size=(320, 200))
    assert (image.mode, image.size) == ("RGB", (320, 200))


@pytest.mark.parametrize("theme", THEMES)
def test_same_input_same_bytes(theme: str) -> None:
    pose = robot()
    marks = [Mark(pose.position("tool"), pose.position("tool") + np.array((0.1, 0.2, 0.1)), "tool", False)]
    options = {"targets": marks, "theme": theme, "size": SMALL, "title": "Robot", "joint_names": True}
    assert png(picture(pose, **options)) == png(picture(pose, **options))


@pytest.mark.parametrize("theme", THEMES)
def test_colours_tell_what_was_reached(theme: str) -> None:
    pose, colours = bent(), THEMES[theme]
    at = pose.position("joint3")
    plain = pixels(pose, theme=theme)
    reached = pixels(pose, theme=theme, targets=[Mark(at, at, "tip")])
    missed = pixels(pose, theme=theme, targets=[Mark(at, at + np.array((0.6, 0.3, 0.2)), "tip", reached=False)])
    assert not has_colour(plain, colours.reached)
    assert not has_colour(plain, colours.missed)
    assert has_colour(reached, colours.reached)
    assert not has_colour(reached, colours.missed)
    assert has_colour(missed, colours.missed)
    assert not has_colour(missed, colours.reached)


def test_ghost_and_shadow_and_names_show() -> None:
    pose = bent()
    rest = pose.skeleton.rest_pose()
    alone = pixels(pose, floor=False)
    camera = Camera(*_still(pose))
    assert (pixels([rest, pose], view=camera) != pixels(pose, view=camera)).any()
    assert (pixels(pose) != alone).any()
    assert (pixels(pose, joint_names=True, view=camera) != pixels(pose, view=camera)).any()
    triad = [Mark(pose.position("joint3"), rotation=pose.matrix("joint3"), target_rotation=np.eye(3))]
    assert (pixels(pose, targets=triad, view=camera) != pixels(pose, view=camera)).any()


def _still(pose: Pose):
    camera = fit(look("front", "y", "z"), pose.positions, np.full(len(pose.positions), 0.2), (20, 20, 220, 160))
    return camera.position, camera.axes, camera.focal, camera.centre


@pytest.mark.parametrize("scale", [1e-6, 0.01, 100.0, 1e9])
def test_the_unit_does_not_change_the_picture(scale: float) -> None:
    difference = np.abs(pixels(bent(scale)) - pixels(bent()))
    assert np.mean(difference.max(-1) > 16) < 0.005  # an edge may fall on the other side of a rounding


def test_inches_show_the_same_body_on_another_grid() -> None:
    difference = np.abs(pixels(bent(1.0 / 0.0254), floor=False) - pixels(bent(), floor=False))
    assert np.mean(difference.max(-1) > 16) < 0.005


@pytest.mark.parametrize(
    "points", [[(0, 0, 0), (0, 1, 0)], [(0, 0, 0)] * 3, [(5, 5, 5)] * 2, [(1e6, 0, 0), (1e6, 1, 0)]]
)
@pytest.mark.parametrize("view", VIEWS)
def test_the_smallest_skeletons_can_be_drawn(points, view: str) -> None:
    skeleton = Skeleton.chain(points)
    image = pixels(skeleton, view=view, joint_names=True)
    empty = pixels(skeleton, view=Camera(np.full(3, 9e9), np.eye(3), 1.0, (1e6, 1e6)), floor=False)
    assert (np.abs(image - empty).max(-1) > 40).sum() > 20  # something is there


def test_one_joint_alone_can_be_drawn() -> None:
    skeleton = Skeleton([Joint("only", kind=Kind.FREE)])
    assert pixels(skeleton, targets=[Mark(np.zeros(3), (1, 2, 3), "far", False)]).shape == (180, 240, 3)


@given(
    st.tuples(st.floats(-180, 180), st.floats(-90, 90)),
    st.sampled_from(["x", "y", "z", "-y", None]),
    st.sampled_from(["x", "-z", None]),
    st.booleans(),
    st.integers(0, 1000),
)
def test_all_content_fits_into_the_window(view, up, forward, perspective: bool, seed: int) -> None:
    random = np.random.default_rng(seed)
    points = random.normal(size=(6, 3)) * random.uniform(0.01, 50.0) + random.normal(size=3) * 20.0
    radii = random.uniform(0.0, 0.3, 6) * np.ptp(points)
    axes = look(view, up, forward)
    np.testing.assert_allclose(axes @ axes.T, np.eye(3), atol=1e-12)
    assert np.linalg.det(axes) == pytest.approx(1.0)
    camera = fit(axes, points, radii, (30, 50, 330, 250), perspective=perspective)
    # Points on the balls, sideways from the view: they touch the window's planes or lie inside.
    for offset in (axes[0], -axes[0], axes[1], -axes[1]):
        at, depth, _ = camera.project(points + radii[:, None] * offset)
        assert (depth > 0.0).all()
        assert (at > np.array([30, 50]) - 1e-3).all()
        assert (at < np.array([330, 250]) + 1e-3).all()


@given(st.floats(-170, 170), st.floats(5, 85), st.booleans())
def test_the_map_of_the_ground_agrees_with_the_camera(azimuth: float, elevation: float, perspective: bool) -> None:
    points = np.array([(0.0, 0, 0), (1, 2, 1), (-1, 0.5, 2)])
    camera = fit(
        look((azimuth, elevation), "y", "z"), points, np.full(3, 0.1), (0, 0, 200, 100), perspective=perspective
    )
    origin, right, along = np.array([0.2, -0.1, 0.3]), np.array([0.0, 0, 1]), np.array([1.0, 0, 0])
    forth = camera.plane_to_pixel(origin, right, along)
    for u, v in ((0.0, 0.0), (0.4, -0.3), (-0.2, 0.5)):
        x, y, w = forth @ (u, v, 1.0)
        at, _, _ = camera.project((origin + u * right + v * along)[None, :])
        np.testing.assert_allclose((x / w, y / w), at[0], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("perspective", [True, False])
def test_a_point_without_size_is_in_the_middle(perspective: bool) -> None:
    point = np.array([(3.0, 4.0, 5.0)])
    camera = fit(look("left", "z", "x"), point, np.zeros(1), (20, 20, 120, 80), perspective=perspective)
    at, depth, _ = camera.project(point)
    np.testing.assert_allclose(at, [(70.0, 50.0)], atol=1e-6)
    assert depth[0] > 0.0


def test_nothing_near_the_camera_looks_huge() -> None:
    pose = robot()
    scene = build_scene([pose], [], LIGHT)
    camera = fit(look("top", "z", "x"), *scene.content, (20, 20, 220, 160))
    _, depth, _ = camera.project(pose.positions)
    assert depth.max() < 2.0 * depth.min()


def test_up_stays_up_and_the_left_is_left() -> None:
    for up in "xyz":
        camera = fit(look("front", up, None), np.zeros((1, 3)), np.ones(1), (0, 0, 100, 100))
        at, _, _ = camera.project(np.stack([np.zeros(3), direction(up, "y")]))
        assert at[1, 1] < at[0, 1] - 10
    camera = fit(look("front", "y", "z"), np.zeros((1, 3)), np.ones(1), (0, 0, 100, 100))
    at, depth, _ = camera.project(np.array([(0.5, 0, 0), (0.0, 0, 0.5), (0, 0, 0)]))
    assert at[0, 0] > at[2, 0]  # its left hand (+x) is at the right of who looks at it
    assert depth[1] < depth[2]


def test_up_is_guessed_from_the_head_where_the_file_is_silent() -> None:
    joints = [Joint("root", kind=Kind.FREE), Joint("Head", 0, Kind.BALL, rigid((0.1, 0, 1))), Joint("end", 1)]
    assert find_up(Skeleton(joints)).name == "z"
    assert find_up(Skeleton(joints, up="y")).name == "y"
    assert find_up(Skeleton.chain([(0, 0, 0), (1, 0, 0)])).name == "y"


def _one(start, end, radii, colours) -> Bodies:
    return Bodies(np.array(start, float), np.array(end, float), np.array(radii, float), np.array(colours, float))


def test_what_is_nearer_hides_what_is_behind() -> None:
    camera = Camera(np.array([0.0, 0, 10]), np.eye(3), 100.0, (50.0, 50.0))
    light = Light(np.array([0.0, 0, 1]), np.array([0.0, 1, 0]), (0, 0, 0), depth=0.0)
    balls = _one([(0, 0, 0), (0, 0, 2)], [(0, 0, 0), (0, 0, 2)], [(1, 1), (0.5, 0.5)], [(1, 0, 0), (0, 0, 1)])
    layer = shade(balls, camera, (100, 100), light)
    assert layer is not None
    (left, top), image = layer
    red, _, blue, cover = (int(v) for v in image[50 - top, 50 - left])
    assert blue > red
    assert cover == 255
    red, _, blue, _ = (int(v) for v in image[50 - top, 58 - left])
    assert red > blue
    assert image[0, 0, 3] == 0


@pytest.mark.parametrize("perspective", [True, False])
def test_a_rod_lies_between_its_ends_and_before_a_wall(perspective: bool) -> None:
    camera = Camera(np.array([0.0, 0, 10]), np.eye(3), 100.0 if perspective else 10.0, (50.0, 50.0), perspective)
    light = Light(np.array([0.0, 0, 1]), np.array([0.0, 1, 0]), (0, 0, 0))
    rods = _one([(-2, 0, 0), (0, 0, -5)], [(2, 0, 3), (0, 0, -5)], [(0.3, 0.2), (2.5, 2.5)], [(0, 1, 0), (1, 0, 0)])
    layer = shade(rods, camera, (100, 100), light)
    assert layer is not None
    (left, top), image = layer
    middle, _, _ = camera.project(np.array([(0.0, 0, 1.5)]))
    x, y = (round(float(v)) for v in middle[0])
    assert image[y - top, x - left, 1] > image[y - top, x - left, 0]
    assert image[y - top + 12, x - left, 0] > image[y - top + 12, x - left, 1]


def test_nothing_in_sight_is_nothing_to_draw() -> None:
    camera = Camera(np.array([0.0, 0, 10]), np.eye(3), 100.0, (-9000.0, 50.0))
    light = Light(np.array([0.0, 0, 1]), np.array([0.0, 1, 0]), (0, 0, 0))
    assert shade(_one([(0, 0, 0)], [(0, 0, 0)], [(1, 1)], [(1, 1, 1)]), camera, (100, 100), light) is None


def test_the_ground_is_under_everything_and_steps_are_round() -> None:
    scene = build_scene([robot()], [], LIGHT)
    lowest = min(
        (side @ scene.up - scene.solid.radii[:, k]).min() for k, side in enumerate([scene.solid.start, scene.solid.end])
    )
    assert scene.ground == pytest.approx(lowest)
    for extent in (1e-7, 0.3, 1.0, 7.0, 4e8):
        step = grid_step(extent)
        assert 4.0 < extent / step < 12.0
        assert float(f"{step:.0e}") == pytest.approx(step)


def test_sides_of_the_body_have_their_colours() -> None:
    names = [
        "root",
        "left_upper_arm",
        "RightArm",
        "mixamorig:LeftLeg",
        "arm.R",
        "l_knee",
        "lFoot",
        "shoulder_l",
        "clear",
    ]
    joints = [Joint(n, 0 if i else None, Kind.BALL, rigid((i, 0, 0))) for i, n in enumerate(names)]
    scene = build_scene([Skeleton(joints).rest_pose()], [], LIGHT)
    hues = {i: scene.solid.colours[i] * 255.0 / LIGHT.joint for i in range(len(names))}
    sides = [
        LIGHT.bone,
        LIGHT.left,
        LIGHT.right,
        LIGHT.left,
        LIGHT.right,
        LIGHT.left,
        LIGHT.left,
        LIGHT.left,
        LIGHT.bone,
    ]
    for i, expected in enumerate(sides):
        np.testing.assert_allclose(hues[i], expected, atol=1e-9, err_msg=names[i])


def test_what_places_a_character_in_its_file_is_no_bone() -> None:
    joints = [
        Joint("Armature"),
        Joint("hips", 0, Kind.FREE, rigid((0, 90, 0)), role="hips"),
        Joint("spine", 1, Kind.BALL, rigid((0, 10, 0))),
        Joint("head", 2, Kind.BALL, rigid((0, 40, 0)), role="head"),
        Joint("top", 3, rest=rigid((0, 20, 0)), tip=True),
    ]
    scene = build_scene([Skeleton(joints, up="y").rest_pose()], [], LIGHT, joint_names=True)
    assert scene.ground > 80.0
    assert [name for _, name in scene.names] == ["hips", "spine", "head", "top"]


def test_a_file_that_stores_all_positions_has_bones() -> None:
    """In some files every joint has position channels; the joint above the hips only places the body."""
    names = ("root", "Hips", "Spine", "Neck", "Head", "LeftUpLeg", "LeftLeg", "RightUpLeg", "RightLeg")
    parents = (None, 0, 1, 2, 3, 1, 5, 1, 7)
    places = (
        (0, 0, 0),
        (0, 90, 0),
        (0, 20, 0),
        (0, 30, 0),
        (0, 10, 0),
        (9, -5, 0),
        (0, -40, 0),
        (-9, -5, 0),
        (0, -40, 0),
    )
    joints = [Joint(*each[:2], Kind.FREE, rigid(each[2])) for each in zip(names, parents, places, strict=True)]
    body = Skeleton(joints)
    assert bones_of(body) == list(range(2, 9))
    assert drawn_joints(body).tolist() == [False, *[True] * 8]
    kinds = [Kind.FIXED, *[Kind.BALL] * 8]  # as in a glTF whose armature stands at the origin
    placed = Skeleton([replace(joint, kind=kind) for joint, kind in zip(joints, kinds, strict=True)])
    assert bones_of(placed) == list(range(2, 9))


def test_distances_are_written_for_people() -> None:
    scene = build_scene([robot()], [], LIGHT)
    texts = [scene.distance_text(d) for d in (1.234, 0.1234, 0.00456, 0.0)]
    assert texts == ["1.23 m", "12.3 cm", "4.56 mm", "0 mm"]
    assert build_scene([bent()], [], LIGHT).distance_text(12.345) == "12.3"


@given(st.lists(st.tuples(st.floats(0, 400), st.floats(0, 300)), min_size=1, max_size=12))
def test_labels_do_not_overlap_and_stay_inside(anchors) -> None:
    placer = Placer((400, 300), np.zeros((300, 400), np.float32), 5.0)
    boxes = [placer.place(at, (60.0, 18.0), 8.0, needed=False) for at in anchors]
    found = [box for box in boxes if box is not None]
    for i, a in enumerate(found):
        assert a[0] >= 5.0
        assert a[1] >= 5.0
        assert a[2] <= 395.0 + 1e-9
        assert a[3] <= 295.0 + 1e-9
        for b in found[:i]:
            assert min(a[2], b[2]) <= max(a[0], b[0]) or min(a[3], b[3]) <= max(a[1], b[1])
    assert found


def test_a_needed_label_is_placed_even_without_room() -> None:
    placer = Placer((50, 40), np.ones((40, 50), np.float32), 2.0)
    placer.take((0.0, 0.0, 50.0, 40.0))
    assert placer.place((25.0, 20.0), (30.0, 12.0), 4.0, needed=True) is not None
    assert placer.place((25.0, 20.0), (30.0, 12.0), 4.0, needed=False) is None


def test_a_file_is_written_once_and_replaced_on_request(tmp_path: Path) -> None:
    path = tmp_path / "arm.png"
    image = picture(bent(), size=SMALL, path=path)
    assert path.read_bytes() == png(image)
    with pytest.raises(FileError, match="exists"):
        picture(bent(), size=SMALL, path=path)
    picture(bent(), size=SMALL, path=path, theme="dark", force=True)
    assert path.read_bytes() != png(image)
    with pytest.raises(UnsupportedError, match=r"\.png"):
        picture(bent(), path=tmp_path / "arm.jpg")


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"size": (0, 10)}, InputError, "size"),
        ({"size": (10.5, 100)}, InputError, "size"),
        ({"size": (1, 2, 3)}, InputError, "size"),
        ({"size": 5}, InputError, "size"),
        ({"size": (float("nan"), 100)}, InputError, "size"),
        ({"size": (99999, 100)}, InputError, "size"),
        ({"view": "frnt"}, UnknownNameError, "Did you mean 'front'"),
        ({"view": (0, 91)}, InputError, "elevation"),
        ({"view": (0, float("nan"))}, InputError, "view"),
        ({"theme": "drak"}, UnknownNameError, "Did you mean 'dark'"),
        ({"targets": [1]}, InputError, "Mark"),
        ({"targets": 3}, InputError, "Mark"),
        ({"path": 7}, InputError, "path"),
    ],
)
def test_what_cannot_be_used_is_named(change, error, says: str) -> None:
    with pytest.raises(error, match=says):
        picture(bent(), **change)


@pytest.mark.parametrize("subject", [None, 3, [], [1], "arm"])
def test_only_skeletons_and_poses_are_drawn(subject) -> None:
    with pytest.raises(InputError, match="Skeleton"):
        picture(subject)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Mark((0, 0, float("nan"))),
        lambda: Mark((0, 0)),
        lambda: Mark((0, 0, 0), (0, float("inf"), 0)),
        lambda: Mark((0, 0, 0), rotation=np.ones((3, 3))),
    ],
)
def test_a_mark_refuses_garbage(make: Callable[[], Mark]) -> None:
    with pytest.raises(InputError):
        make()


def test_without_pillow_the_message_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[render\]"):
        picture(bent(), size=SMALL)


def test_a_mark_far_outside_of_the_picture_is_no_trouble() -> None:
    pose = bent()
    camera = Camera(*_still(pose))
    far = [Mark(pose.position("joint3"), (1e7, -1e7, 0), "far", False), Mark((0, 0, 900), (0, 0, 900), "behind")]
    assert (pixels(pose, targets=far[1:], view=camera) == pixels(pose, view=camera)).all()
    assert (pixels(pose, targets=far, view=camera) != pixels(pose, view=camera)).any()


def test_a_path_without_points_draws_nothing() -> None:
    pose, at = bent(), (0.0, 1.0, 0.0)
    empty = Mark(at, paths=[np.zeros((0, 3)), np.zeros((1, 3))])
    assert (pixels(pose, targets=[empty]) == pixels(pose, targets=[Mark(at, paths=[np.zeros((1, 3))])])).all()


def test_long_titles_and_crowds_of_names_fit() -> None:
    points = np.cumsum(np.random.default_rng(4).normal(size=(60, 3)), axis=0)
    image = pixels(
        Skeleton.chain(points), joint_names=True, title="A long title " * 30, theme="dark", perspective=False
    )
    assert np.isfinite(image).all()


def test_hinges_show_their_axes() -> None:
    hinge = robot()
    scene = build_scene([hinge], [], LIGHT)
    rods = np.flatnonzero(np.linalg.norm(scene.solid.end - scene.solid.start, axis=1) > 0)
    along = (scene.solid.end - scene.solid.start)[rods[1]]  # the barrel of j1, the second hinge
    axis = hinge.matrix("j1") @ (0.0, 1.0, 0.0)
    assert abs(along @ axis) == pytest.approx(np.linalg.norm(along))


def test_a_head_has_the_size_of_its_body_and_a_nose_in_front() -> None:
    body = bundled("humanoid")
    short = body.with_joints(
        [replace(j, rest=rigid((0, 0.001, 0))) if j.name == "head_top" else j for j in body.joints]
    )
    for skeleton in (body, short):
        rest = skeleton.rest_pose()
        turned = rest.with_values({"neck": turn((0, 1, 0), 40)})
        for pose, ahead in ((rest, (0, 0, 1)), (turned, (math.sin(math.radians(40)), 0, math.cos(math.radians(40))))):
            scene = build_scene([pose], [], LIGHT)
            head = pose.position("head")
            near = np.linalg.norm(scene.solid.start - head, axis=1) < 0.25
            above = near & (scene.solid.start[:, 1] > head[1] + 0.02)
            centres, radii = scene.solid.start[above], scene.solid.radii[above, 0]
            assert 0.15 < (centres[:, 1] + radii).max() - head[1] < 0.35
            nose = centres[np.argmin(radii)] - centres[np.argmax(radii)]
            flat = nose * (1, 0, 1)
            assert flat @ ahead > 0.95 * np.linalg.norm(flat) > 0.0


def test_up_is_y_where_the_rest_pose_does_not_stand() -> None:
    joints = [
        Joint("Hips", kind=Kind.FREE, role="hips"),
        Joint("Spine", 0, Kind.BALL, rigid((0.5, 0, 0)), role="spine"),
        Joint("Head", 1, Kind.BALL, rigid((0.2, 0, 0)), role="head"),
        Joint("LeftFoot", 0, Kind.BALL, rigid((0.9, 0, 0.1)), role="left_foot"),
        Joint("RightFoot", 0, Kind.BALL, rigid((0.9, 0, -0.1)), role="right_foot"),
    ]
    assert find_up(Skeleton(joints)).name == "y"
    joints[3:] = [replace(joint, rest=rigid((-0.9, 0, 0.1))) for joint in joints[3:]]
    assert find_up(Skeleton(joints)).name == "x"
