"""``picture``: a still image of a skeleton, its targets and the remaining errors."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar, cast

import numpy as np

from synovia.draw.bodies import Layer, Light, shade
from synovia.draw.camera import Camera, fit
from synovia.draw.camera import look as axes_of
from synovia.draw.floor import background, draw_floor
from synovia.draw.marks import marks_of
from synovia.draw.notes import Notes, Placer, Texts
from synovia.draw.raster import Canvas, require_pillow
from synovia.draw.scene import LOOKS, Mark, Scene, bone_lengths, build_scene, up_of
from synovia.draw.surfaces import Shadow, Skin, shade_mesh
from synovia.draw.theme import Theme, theme_of
from synovia.errors import InputError, UnsupportedError, unknown_name
from synovia.ik import Solution
from synovia.io.base import as_path, write_bytes
from synovia.model import Pose, Skeleton
from synovia.model.angles import value_text
from synovia.model.geometry import Array
from synovia.surface import surface_of_skeleton

if TYPE_CHECKING:
    from PIL import Image

Poses = Skeleton | Pose | Solution | Iterable[Pose]
_T = TypeVar("_T")
_SIZES: Final = (32, 8192)  # width and height, pixels; the samples of a larger image would not fit in memory
# Directions to lights: components along up, to the viewer's right and towards the viewer
_ABOVE: Final = (1.0, -0.42, 0.34)  # for shadows: high at the left, so that they fall to the right
_KEY: Final = (0.80, -0.55, 0.85)  # for the body: lower, so that its front is not dark
_GLASS: Final = 0.5  # opacity of a surface that shows the bones below it
_GHOST: Final = 0.55  # opacity of the pose before the last; each earlier one has three quarters of the next


def picture(
    subject: Poses,
    *,
    targets: Iterable[Mark] = (),
    path: str | os.PathLike[str] | None = None,
    size: tuple[int, int] = (1200, 900),
    view: str | tuple[float, float] | Camera = "three-quarter",
    theme: str = "light",
    title: str | None = None,
    joint_names: bool = False,
    floor: bool = True,
    perspective: bool = True,
    look: str = "surface",
    angles: Iterable[str | int] = (),
    force: bool = False,
) -> Image.Image:
    """Draw a pose and its targets; works without a display or a graphics card.

    Args:
        subject: A skeleton (drawn at rest), a pose, several poses (the last one solid, earlier ones as ghosts), or a
            solution (its pose with a mark for each goal).
        targets: Goals to mark: a green ring if reached, a red ring with the remaining distance if missed.
        path: PNG file to write as well.
        size: Width and height, pixels.
        view: ``"three-quarter"``, ``"front"``, ``"back"``, ``"left"``, ``"right"``, ``"top"``, (azimuth, elevation) in
            degrees, or a ``Camera``. Without a ``Camera``, the image shows all content.
        theme: ``"light"`` or ``"dark"``.
        title: Line of text at the top.
        joint_names: Whether to write the names of joints for which a place is free.
        floor: Whether to draw the floor and the shadow on it.
        perspective: Whether distant objects look smaller.
        look: ``"surface"`` (the skin of a character or the shapes of a robot, from the file of its skeleton),
            ``"bones"`` or ``"both"``. A body without a surface shows its bones.
        angles: Joints whose values are written beside the body, in degrees.
        force: Whether an existing file may be replaced.

    Raises:
        InputError: If an argument cannot be used.
        UnknownNameError: If the view, the theme, the look or a joint does not exist.
        MissingExtraError: If Pillow is not installed.
        UnsupportedError: If the path does not end in ``.png``.
        FileError: If the file exists and ``force`` is not set, or it cannot be written.

    Example:
        >>> from synovia.model import Skeleton
        >>> arm = Skeleton.chain([(0, 0, 0), (0, 1, 0), (0.5, 2, 0)])
        >>> picture(arm, size=(320, 240)).size
        (320, 240)
    """
    require_pillow()
    colours = theme_of(theme)
    where = None if path is None else _png(path)
    pixels = checked_size(size)
    marks = _items(targets, Mark, "synovia.draw.Mark")
    if isinstance(subject, Solution):
        subject.pose.check_finite("solution")
        marks = [*marks_of(subject), *marks]
        subject = subject.pose
    poses = _poses(subject)
    for pose in poses:
        pose.check_finite("picture")
    skins = skins_of([pose.skeleton for pose in poses], look)
    scene = build_scene(poses, marks, colours, joint_names=joint_names, look=look, skins=skins)
    if not isinstance(view, Camera):
        skeleton = poses[-1].skeleton
        axes = axes_of(view, up_of(skeleton), skeleton.forward)
        view = fit(axes, *scene.content, content_window(pixels, scene, title), perspective=perspective)
    table = angle_table(poses[-1], angles)
    image = draw(scene, view, Paper(pixels, colours), Texts(title, table=table), floor=floor)
    if where is not None:
        write_bytes(where, png(image), force=force)
    return image


def angle_table(pose: Pose, joints: Iterable[str | int]) -> list[tuple[str, str]]:
    """Return the names of joints and their values as text.

    Raises:
        UnknownNameError: If a joint does not exist.
    """
    rows = [pose.skeleton.value_index(joint) for joint in joints]
    return [(pose.skeleton.joint_names[row].replace("_", " "), value_text(pose, row)) for row in rows]


def skins_of(skeletons: Iterable[Skeleton], look: str) -> dict[Skeleton, Skin]:
    """Return the surfaces of the skeletons that have one; none for the look ``bones``.

    A ``UserWarning`` says which meshes are not drawn, and why.

    Raises:
        UnknownNameError: If no look has that name.
    """
    if look not in LOOKS:
        raise unknown_name("look", look, LOOKS)
    found: dict[Skeleton, Skin] = {}
    for skeleton in dict.fromkeys(skeletons) if look != "bones" else ():
        surface = surface_of_skeleton(skeleton)
        for note in surface.notes:
            warnings.warn(f"{skeleton.name}: {note}", UserWarning, stacklevel=3)
        if surface.parts:
            found[skeleton] = Skin(surface, whole=surface.covers(bone_lengths(skeleton)))
    return found


def content_window(size: tuple[int, int], scene: Scene, title: str | None) -> tuple[float, float, float, float]:
    """Return the part of the image for bodies (left, top, right, bottom, pixels); texts need the rest."""
    width, height = size
    edge = min(size)
    beside = (0.12 if scene.marks or scene.names else 0.07) * edge
    return beside, (0.14 if title else 0.08) * edge, width - beside, height - 0.11 * edge


class Paper(NamedTuple):
    """An image to draw on.

    Args:
        size: Width and height, pixels.
        theme: Colours.
        samples: Samples of a surface's pixel in each direction.
    """

    size: tuple[int, int]
    theme: Theme
    samples: int = 3


def draw(scene: Scene, camera: Camera, paper: Paper, texts: Texts, *, floor: bool = True) -> Image.Image:
    """Return the image of a scene from a camera; the frames of a film use one camera.

    Args:
        scene: The scene.
        camera: The camera.
        paper: The image.
        texts: What is written at its edges.
        floor: Whether to draw the floor and the shadow on it.
    """
    size, theme, samples = paper
    above, key = (_light_direction(scene.up, camera, *parts) for parts in (_ABOVE, _KEY))
    light = Light(key, scene.up, haze=theme.below)
    ground = background(size, theme)
    worn = scene.skins[-1]
    mesh = None if worn is None else worn[0].at(worn[1])
    if mesh is not None and worn is not None and not worn[0].whole and scene.look == "surface":
        mesh = mesh.with_bodies(scene.solid)  # the bones show where the surface is missing
    if floor:
        shadow = None if mesh is None else Shadow(mesh, above, scene.up, size)
        draw_floor(ground, camera, scene, theme, above, shadow)
    canvas = Canvas(ground)
    for age, (ghost, skin) in enumerate(zip(reversed(scene.ghosts), reversed(scene.skins[:-1]), strict=True)):
        if skin is None:
            layer = shade(ghost, camera, size, light)
        else:
            layer = shade_mesh(skin[0].at(skin[1]).painted(theme.ghost), camera, size, light, None, samples)
        if layer is not None:
            canvas.lay(*layer, opacity=_GHOST * 0.75**age)
    covered = np.zeros((size[1], size[0]), np.float32)
    layers: list[tuple[Layer | None, float]] = []
    if mesh is None or scene.look != "surface":
        layers.append((shade(scene.solid, camera, size, light), 1.0))
    if mesh is not None:
        layer = shade_mesh(mesh, camera, size, light, Shadow(mesh, key, scene.up, size), samples)
        layers.append((layer, _GLASS if scene.look == "both" else 1.0))
    for layer, opacity in layers:
        if layer is None:
            continue
        (left, top), pixels = layer
        canvas.lay((left, top), pixels, opacity)
        part = covered[top : top + pixels.shape[0], left : left + pixels.shape[1]]
        np.maximum(part, pixels[..., 3] / np.float32(255.0), out=part)
    margin = 0.02 * min(size)
    notes = Notes(canvas, camera, Placer(size, covered, margin), theme, min(size) / 900.0)
    notes.write(scene, texts)
    return canvas.image


def png(image: Image.Image) -> bytes:
    """Return an image as the bytes of a PNG file; equal images give equal bytes."""
    out = BytesIO()
    image.save(out, "PNG", compress_level=6)
    return out.getvalue()


def _light_direction(up: Array, camera: Camera, high: float, right: float, near: float) -> Array:
    """Return the unit vector with components along up, to the viewer's right and towards the viewer."""
    across = camera.axes[0] - (camera.axes[0] @ up) * up
    towards = camera.axes[2] - (camera.axes[2] @ up) * up
    light = high * up + right * across + near * towards
    return light / np.linalg.norm(light)


def _poses(subject: object) -> Sequence[Pose]:
    """Return the poses to draw."""
    if isinstance(subject, Skeleton):
        return [subject.rest_pose()]
    if isinstance(subject, Pose):
        return [subject]
    return _items(subject, Pose, "a Skeleton, a Pose or several poses")


def _items(given: object, kind: type[_T], wanted: str) -> Sequence[_T]:
    """Return the items of an argument, all of one class."""
    items: Iterable[object] = cast(Iterable[object], given) if isinstance(given, Iterable) else (given,)
    out: list[_T] = []
    for item in items:
        if not isinstance(item, kind):
            raise InputError("picture: cannot draw this", value=type(item).__name__, expected=wanted)
        out.append(item)
    return out


def checked_size(size: object) -> tuple[int, int]:
    """Return width and height as whole numbers in the supported range."""
    wanted = f"two whole numbers from {_SIZES[0]} to {_SIZES[1]}"
    try:
        given = tuple(cast(Iterable[int], size))
        width, height = (int(n) for n in given)
        exact = (width, height) == given
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError("size", value=size, expected=wanted) from error
    if not exact or not all(_SIZES[0] <= n <= _SIZES[1] for n in (width, height)):
        raise InputError("size", value=size, expected=wanted)
    return width, height


def _png(path: str | os.PathLike[str]) -> Path:
    """Return the path of a PNG file after checking its extension."""
    where = as_path(path)
    if where.suffix.lower() != ".png":
        raise UnsupportedError("pictures are written as PNG", where=str(where), expected="a name that ends in .png")
    return where
