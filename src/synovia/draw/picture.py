"""``picture``: a still image of a skeleton, its targets and the remaining errors."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple, TypedDict, TypeVar, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from synovia.arguments import check_kind, completed, takes, warn
from synovia.draw.bodies import Layer, Light, shade
from synovia.draw.camera import Camera, fit
from synovia.draw.camera import look as axes_of
from synovia.draw.floor import background, draw_floor
from synovia.draw.gaps import Gaps
from synovia.draw.marks import marks_of
from synovia.draw.notes import Notes, Placer, Texts
from synovia.draw.obstacles import Surroundings, in_front
from synovia.draw.raster import Canvas, require_pillow
from synovia.draw.scene import LOOKS, Appearance, Mark, Scene, bone_lengths, build_scene
from synovia.draw.surfaces import Mesh, Shadow, Skin, shade_mesh
from synovia.draw.theme import Theme, theme_of
from synovia.errors import InputError, UnsupportedError, unknown_name
from synovia.ik import Solution
from synovia.io.base import as_path, write_bytes
from synovia.model import Pose, Skeleton
from synovia.model.anatomy.up import find_up
from synovia.model.angles import value_text
from synovia.model.geometry import Array
from synovia.model.shapes.world import World
from synovia.options import ANGLES, LOOK, NEAREST, SHAPES, THEME, WORLD
from synovia.surface import Surface, surface_of_skeleton
from synovia.surface.solids import body_surface

if TYPE_CHECKING:
    from PIL import Image

Poses = Skeleton | Pose | Solution | Iterable[Pose]
_T = TypeVar("_T")
_SIZES: Final = (32, 8192)  # width and height, pixels; the samples of a larger image would not fit in memory
# Directions to lights: components along up, to the viewer's right and towards the viewer
_ABOVE: Final = (1.0, -0.42, 0.34)  # light for floor shadows: high at the left, so that shadows fall to the right
_KEY: Final = (0.80, -0.55, 0.85)  # light for the body: lower, so that the body's front is not dark
_GLASS: Final = 0.5  # opacity of a surface with visible bones or shapes inside
_COVER: Final = 0.42  # opacity of the shapes of the body
_WALL: Final = 0.3  # opacity of pieces of half-spaces
_GHOST: Final = 0.55  # opacity of the pose before the last; each earlier pose has 3/4 of the next pose's opacity


class DrawOptions(TypedDict, total=False):
    """Options of ``picture`` and ``render``, with their defaults."""

    theme: Annotated[str, THEME]
    floor: Annotated[bool, True]
    look: Annotated[str, LOOK]
    shapes: Annotated[bool, SHAPES]
    world: Annotated[World | None, WORLD]
    clearance: Annotated[float | None, NEAREST]
    angles: Annotated[Iterable[str | int], ANGLES]


@takes(DrawOptions)
def picture(
    subject: Poses,
    *,
    targets: Iterable[Mark] = (),
    path: str | os.PathLike[str] | None = None,
    size: tuple[int, int] = (1200, 900),
    view: str | tuple[float, float] | Camera = "three-quarter",
    title: str | None = None,
    joint_names: bool = False,
    perspective: bool = True,
    force: bool = False,
    **options: Unpack[DrawOptions],
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
        joint_names: Whether to write the names of joints, where there is free space.
        floor: Whether to draw the floor and the shadow on it.
        perspective: Whether distant objects look smaller.
        look: ``"surface"`` (the skin of a character or the shapes of a robot, from the file of its skeleton),
            ``"bones"`` or ``"both"``. A body without a surface shows its bones.
        shapes: Whether to draw the shapes of the body (``skeleton.shapes``), which are transparent.
        world: Obstacles to draw; unit and up axis are matched to the skeleton (``world.matched``). A half-space whose
            normal points up is the floor; other half-spaces are shown by a transparent piece. None for the obstacles
            of a solution's clearance goals.
        clearance: Least distance of the links from each other and from obstacles, length units. Lines join the nearest
            pairs; lines of pairs nearer than this are red. None for a solution's clearance goals.
        angles: Joints whose values are written next to the body, in degrees.
        force: Whether an existing file may be replaced.

    Raises:
        InputError: If an argument cannot be used, or ``shapes`` is set for a body without shapes.
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
    chosen = completed(DrawOptions, options, "picture")
    colours, world = theme_of(chosen.theme), chosen.world
    where = None if path is None else _png(path)
    pixels = checked_size(size)
    marks = _items(targets, Mark, "synovia.draw.Mark")
    gaps: Gaps | float | None = None
    if isinstance(subject, Solution):
        subject.pose.check_finite("solution")
        marks = [*marks_of(subject), *marks]
        gaps = Gaps.of_goals(subject.ik)
        subject = subject.pose
    poses = _poses(subject)
    for pose in poses:
        pose.check_finite("picture")
    if chosen.clearance is not None:
        gaps, world = chosen.clearance, gaps.world if gaps is not None and world is None else world
    bodies = [pose.skeleton for pose in poses]
    shown = appearance(bodies, colours, look=chosen.look, shapes=chosen.shapes, world=world, gaps=gaps)
    scene = build_scene(poses, marks, colours, joint_names=joint_names, shown=shown)
    if not isinstance(view, Camera):
        skeleton = poses[-1].skeleton
        axes = axes_of(view, find_up(skeleton).name, skeleton.forward)
        view = fit(axes, *scene.content, content_window(pixels, scene, title), perspective=perspective)
    table = angle_table(poses[-1], chosen.angles)
    image = draw(scene, view, Paper(pixels, colours), Texts(title, table=table), floor=chosen.floor)
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


def appearance(
    skeletons: Sequence[Skeleton],
    theme: Theme,
    *,
    look: str,
    shapes: bool = False,
    world: World | None = None,
    gaps: Gaps | float | None = None,
) -> Appearance:
    """Return the options for drawing bodies and the surroundings of the last body; the look ``bones`` has no surfaces.

    A ``UserWarning`` names meshes that cannot be drawn, and why.

    Args:
        skeletons: The bodies.
        theme: Colours.
        look: As in ``picture``.
        shapes: As in ``picture``, for the last body.
        world: As in ``picture``; None for the world of ``gaps``.
        gaps: The pairs of clearance goals, or the least distance of all pairs of the last body; None for no pairs.

    Raises:
        InputError: If ``shapes`` or a distance is given, but the last body has no shapes.
        UnknownNameError: If no look has that name.
    """
    if look not in LOOKS:
        raise unknown_name("look", look, LOOKS)
    last = skeletons[-1] if skeletons else None
    skins: dict[Skeleton, Skin] = {}
    for skeleton in dict.fromkeys(skeletons) if look != "bones" else ():
        surface = surface_of_skeleton(skeleton)
        _warn(skeleton, surface)
        if surface.parts:
            skins[skeleton] = Skin(surface, whole=surface.covers(bone_lengths(skeleton)))
    covers: dict[Skeleton, Skin] = {}
    if shapes and last is not None:
        surface = body_surface(last, theme.cover)
        _warn(last, surface)
        if not surface.parts:
            hint = "sy.with_shapes(skeleton) fits capsules to it"
            raise InputError("shapes", where=last.name, expected="a body with shapes", hint=hint)
        covers[last] = Skin(surface)
    around = None
    if world is not None:
        check_kind("world", world, World, "sy.load_world(path) reads one")
    elif isinstance(gaps, Gaps):
        world = gaps.world
    if gaps is not None and not isinstance(gaps, Gaps):
        gaps = None if last is None else Gaps.of_body(last, gaps, world)
    if world is not None and last is not None:
        around = Surroundings(world.matched(last, up=find_up(last).name), theme, find_up(last).vector)
    return Appearance(look, skins, covers, around, gaps)


def _warn(skeleton: Skeleton, surface: Surface) -> None:
    """Warn about parts of a surface that are not drawn."""
    for note in surface.notes:
        warn(f"{skeleton.name}: {note}")


def content_window(size: tuple[int, int], scene: Scene, title: str | None) -> tuple[float, float, float, float]:
    """Return the part of the image for bodies (left, top, right, bottom, pixels); the rest is for texts."""
    width, height = size
    edge = min(size)
    margin = (0.12 if scene.marks or scene.names else 0.07) * edge
    return margin, (0.14 if title else 0.08) * edge, width - margin, height - 0.11 * edge


class Paper(NamedTuple):
    """An image to draw on.

    Args:
        size: Width and height, pixels.
        theme: Colours.
        samples: Samples per pixel of a surface in each direction.
    """

    size: tuple[int, int]
    theme: Theme
    samples: int = 3


def draw(scene: Scene, camera: Camera, paper: Paper, texts: Texts, *, floor: bool = True) -> Image.Image:
    """Draw the image of a scene from a camera, and return the image.

    Args:
        scene: The scene.
        camera: The camera.
        paper: The image.
        texts: Texts at its edges.
        floor: Whether to draw the floor and the shadow on it.
    """
    size, theme, samples = paper
    above, key = (_light_direction(scene.up, camera, *parts) for parts in (_ABOVE, _KEY))
    light = Light(key, scene.up, haze=theme.below, extent=math.inf if scene.around is None else 1.5 * scene.extent)
    ground = background(size, theme)
    body, glass, obstacles = _meshes(scene)
    whole = body if obstacles is None or body is None else body.joined(obstacles)
    casting = None if scene.around is None else scene.around.cast
    caster = body if casting is None or body is None else body.joined(casting)
    if floor:
        shadow = None if caster is None else Shadow(caster, above, scene.up, size)
        draw_floor(ground, camera, scene, theme, above, shadow)
    canvas = Canvas(ground)
    cast = None if caster is None else Shadow(caster, key, scene.up, size)

    def lay(mesh: Mesh, shadow: Shadow | None, opacity: float = 1.0) -> None:
        """Draw a mesh on the canvas."""
        near = in_front(mesh, camera)
        layer = None if near is None else shade_mesh(near, camera, size, light, shadow, samples)
        _lay(canvas, covered if mesh is body else None, layer, opacity)

    covered = np.zeros((size[1], size[0]), np.float32)
    if obstacles is not None:
        lay(obstacles, cast)
    for age, (ghost, skin) in enumerate(zip(reversed(scene.ghosts), reversed(scene.skins[:-1]), strict=True)):
        opacity = _GHOST * 0.75**age
        if skin is not None or obstacles is not None:
            mesh = Mesh.of_bodies(ghost) if skin is None else skin[0].at(skin[1]).painted(theme.ghost)
            lay(replace(mesh, behind=obstacles), None, opacity)
        else:
            _lay(canvas, None, shade(ghost, camera, size, light), opacity)
    if body is None:
        _lay(canvas, covered, shade(scene.solid, camera, size, light), 1.0)
    else:
        body = replace(body, behind=obstacles)
        lay(body, cast)
    for mesh, opacity in glass:
        lay(replace(mesh, behind=whole), cast, opacity)
    margin = 0.02 * min(size)
    notes = Notes(canvas, camera, Placer(size, covered, margin), theme, min(size) / 900.0)
    notes.write(scene, texts)
    return canvas.image


def _meshes(scene: Scene) -> tuple[Mesh | None, list[tuple[Mesh, float]], Mesh | None]:
    """Return the meshes to draw: body (None for balls and rods), transparent meshes with opacities, and obstacles.

    Shapes are transparent so that bones inside are visible; a surface is transparent so that shapes inside are visible.
    """
    worn = scene.skins[-1]
    skin = None if worn is None else worn[0].at(worn[1])
    obstacles = None if scene.around is None else scene.around.solid
    cover = None if scene.cover is None else scene.cover[0].at(scene.cover[1])
    body, glass = skin, list[tuple[Mesh, float]]()
    if skin is None or worn is None or scene.look != "surface":
        body = None if obstacles is None else Mesh.of_bodies(scene.solid)
        if skin is not None:
            glass.append((skin, _GLASS))
        if cover is not None:
            glass.append((cover, _COVER))
    else:
        if not worn[0].whole:
            body = skin.joined(Mesh.of_bodies(scene.solid))  # bones fill the places without a surface
        if cover is not None:
            body, glass = cover, [(body, _GLASS)] if body is not None else []
    if scene.around is not None and scene.around.walls is not None:
        glass.append((scene.around.walls, _WALL))
    return body, glass, obstacles


def _lay(canvas: Canvas, covered: NDArray[np.float32] | None, layer: Layer | None, opacity: float) -> None:
    """Paste a layer on the canvas, and add its coverage to ``covered``."""
    if layer is None:
        return
    (left, top), pixels = layer
    canvas.lay((left, top), pixels, opacity)
    if covered is not None:
        part = covered[top : top + pixels.shape[0], left : left + pixels.shape[1]]
        np.maximum(part, pixels[..., 3] / np.float32(255.0), out=part)


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
    """Return the items of an argument, after a check that all are of one class."""
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
