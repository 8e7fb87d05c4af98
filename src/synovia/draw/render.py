"""``render``: a clip as a film, alone or next to another, with its targets and their errors."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Unpack

import numpy as np

from synovia.arguments import Progress, completed, takes
from synovia.draw.camera import Camera, fit
from synovia.draw.camera import look as axes_of
from synovia.draw.film import FASTEST_GIF, SHEET, check_film, film_frames, write_film
from synovia.draw.gaps import Gaps
from synovia.draw.marks import marks_of
from synovia.draw.notes import Texts
from synovia.draw.picture import DrawOptions, Paper, angle_table, appearance, checked_size, content_window, draw
from synovia.draw.raster import Canvas, require_pillow
from synovia.draw.scene import Appearance, Scene, build_scene
from synovia.draw.theme import Theme, theme_of
from synovia.errors import InputError
from synovia.io.base import as_path
from synovia.model import Skeleton
from synovia.model.anatomy.up import SHOWN, find_up
from synovia.model.geometry import Array, is_number
from synovia.model.motion import Motion
from synovia.tracking import Tracked

if TYPE_CHECKING:
    from PIL import Image

Clip = Motion | Tracked
_STRIP: Final = 0.13  # height of the error strip, as a fraction of the film's height
# fraction of the body's size: if the path of the body has a smaller range, the camera does not move
_STAYS: Final = 0.6
_STANDS: Final = 0.1  # fraction of the frames in which the body may go below the floor
_LAG: Final = 0.35  # seconds before and after a frame over which the camera path is smoothed
_DECADES: Final = (-2.0, 3.0)  # range of the error strip: decimal logarithms of the error in tolerances


@takes(DrawOptions)
def render(
    clip: Clip,
    path: str | os.PathLike[str],
    *,
    next_to: Clip | None = None,
    titles: Sequence[str] = (),
    size: tuple[int, int] = (960, 540),
    fps: float | None = None,
    view: str | tuple[float, float] = "three-quarter",
    captions: bool = True,
    threads: int | None = None,
    force: bool = False,
    progress: Progress | None = None,
    **options: Unpack[DrawOptions],
) -> None:
    """Write a clip as an animated GIF, an MP4, or a sheet of stills (PNG); works without a display or a graphics card.

    Args:
        clip: A motion, or the result of ``IK.track``. Targets of a track are rings (green if reached, red and joined
            to their joint if missed), and a strip at the bottom shows the errors of all frames.
        path: ``.gif``, ``.mp4`` or ``.png``.
        next_to: Another clip, shown on the left: for example, the original of a solved clip. Two clips of the same body
            are drawn at the same scale on the same floor.
        titles: A line of text at the top for each clip, the left clip first; with ``next_to``, by default the names of
            the clips and their skeletons.
        size: Width and height of the film, pixels; made even for MP4.
        fps: Frames per second of the film: at most the clip's rate, and at most 50 for a GIF. None for the clip's rate,
            but at most 30.
        view: As in ``picture``.
        captions: Whether to write the time and the number of the frame.
        threads: Number of threads; None for all cores.
        force: Whether an existing file may be replaced.
        progress: Called with the number of drawn frames and of all frames.
        options: As in ``picture``; shapes, world, clearance and angles are those of ``clip``.

    Raises:
        InputError: If an argument cannot be used.
        UnknownNameError: If the view, the theme or the look does not exist.
        MissingExtraError: If Pillow, or ffmpeg for MP4, is not installed.
        UnsupportedError: If no film format has this extension.
        FileError: If the file exists and ``force`` is not set, or it cannot be written.

    Example:
        >>> import synovia as sy
        >>> walk = sy.load_motion("walk.bvh")  # doctest: +SKIP
        >>> sy.render(walk, "walk.gif", fps=12)  # doctest: +SKIP
        >>> sy.render(sy.foot_lock(walk).motion, "compare.png", next_to=walk)  # doctest: +SKIP
    """
    require_pillow()
    where = as_path(path)
    check_film(where, force=force)
    chosen = completed(DrawOptions, options, "render")
    colours, look, world = theme_of(chosen.theme), chosen.look, chosen.world
    width, height = (n - n % 2 for n in checked_size(size))
    clips = [clip] if next_to is None else [next_to, clip]
    motions = [_motion(each) for each in clips]
    if not all(map(len, motions)):
        raise InputError("the clip has no frames", expected="at least one")
    if fps is not None and not (is_number(fps) and 0.0 < fps < math.inf):
        raise InputError("fps is not positive", value=fps, expected="frames per second above 0")
    if threads is not None and threads < 1:
        raise InputError("threads", value=threads, expected="a whole number from 1")
    titles = [titles] if isinstance(titles, str) else titles
    main, ending = motions[-1], where.suffix.lower()
    if fps is not None and ending == ".gif":
        fps = min(fps, FASTEST_GIF)
    shown, rate = film_frames(len(main), main.fps, fps, SHEET if ending == ".png" else None)
    errors = (clip.errors / np.array(clip.ik.tolerance)).max((1, 2)) if isinstance(clip, Tracked) else None
    below = 2 * round(_STRIP * height / 2.0) if errors is not None else 0
    strip = None if errors is None else Strip(errors, (width, below), colours)
    box = (width // len(clips), height - below)
    own = [_name(motion) if next_to is not None else None for motion in motions]
    names = [*titles, *own[len(titles) :]]
    named = [main.skeleton.value_index(joint) for joint in chosen.angles]
    times = [k / main.fps for k in shown]
    paper = Paper(box, colours, samples=2)
    worn = [appearance([motion.skeleton], colours, look=look) for motion in motions[:-1]]
    gaps: Gaps | float | None = Gaps.of_goals(clip.ik) if isinstance(clip, Tracked) else None
    if chosen.clearance is not None:
        gaps, world = chosen.clearance, gaps.world if gaps is not None and world is None else world
    worn.append(appearance([main.skeleton], colours, look=look, shapes=chosen.shapes, world=world, gaps=gaps))
    contents = [_Content.of(each, times, colours, shown) for each, shown in zip(clips, worn, strict=True)]
    shared = _are_one_body(motions)
    panels = [
        (name, own.shots(paper, view, name, contents if shared else [own]))
        for own, name in zip(contents, names, strict=False)
    ]

    def paint(k: int) -> Image.Image:
        """Return one frame of the film."""
        from PIL import Image

        out = Image.new("RGB", (width, height), colours.below)
        time = f"{times[k]:.2f} s   frame {shown[k]}"
        table = angle_table(main.pose(shown[k]), named)
        for place, (name, shots) in enumerate(panels):
            scene, camera = shots[k]
            caption = [time] if captions and not place else []
            caption += [gap.text(scene.distance_text) for gap in scene.gaps[:1]] if captions else []
            texts = Texts(name, "   ".join(caption), table if place == len(panels) - 1 else ())
            out.paste(draw(scene, camera, paper, texts, floor=chosen.floor), (place * box[0], 0))
        if strip is not None:
            out.paste(strip.at(shown[k]), (0, box[1]))
        return out

    write_film(_drawn(paint, len(shown), threads, progress), rate, where, force=force)


def _motion(clip: object) -> Motion:
    """Return the motion of a clip, with the up axis that the motion reveals."""
    motion = clip.motion if isinstance(clip, Tracked) else clip
    if not isinstance(motion, Motion):
        raise InputError("clip", value=type(clip).__name__, expected="a Motion, or the result of IK.track")
    body = motion.skeleton
    up = find_up(body, motion.q)
    if up.certainty < SHOWN or up.nearest == find_up(body).name:
        return motion
    stated = Skeleton(  # only the motion reveals which axis points up
        body.joints, name=body.name, meters_per_unit=body.meters_per_unit, up=up.nearest, forward=body.forward,
        notes=body.notes, source=body.source, excluded_pairs=body.excluded_pairs, loops=body.loops,
    )  # fmt: skip
    return motion.on(stated)


def _name(motion: Motion) -> str:
    """Return the name of a clip and of its skeleton, for a title."""
    skeleton = motion.skeleton.name
    return motion.name if motion.name in ("", skeleton) or not skeleton else f"{skeleton}: {motion.name}"


def _drawn(
    paint: Callable[[int], Image.Image], count: int, threads: int | None, progress: Progress | None
) -> Iterator[Image.Image]:
    """Yield the frames in order; several threads draw a few frames ahead."""
    workers = threads or os.cpu_count() or 1
    with ThreadPoolExecutor(workers) as pool:
        ahead = [pool.submit(paint, k) for k in range(min(2 * workers, count))]
        for k in range(count):
            image = ahead[k % len(ahead)].result()
            if k + len(ahead) < count:
                ahead[k % len(ahead)] = pool.submit(paint, k + len(ahead))
            if progress is not None:
                progress(k + 1, count)
            yield image


def _are_one_body(motions: Sequence[Motion]) -> bool:
    """Return whether all clips have the same joints and lengths, so that they can be compared at one scale."""
    first = motions[0].skeleton
    return all(
        body.joint_names == first.joint_names and np.allclose(body.lengths, first.lengths, rtol=1e-3)
        for body in (motion.skeleton for motion in motions[1:])
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Content:
    """Scenes of a clip for the frames of a film.

    Args:
        skeleton: The body.
        scenes: A scene for each frame of the film.
        path: Displacement of the camera in each frame, (T, 3).
        points: Centres of balls that contain the content of all frames, relative to the path, (n, 3).
        radii: Radii of these balls, (n,).
    """

    skeleton: Skeleton
    scenes: list[Scene]
    path: Array
    points: Array
    radii: Array

    @classmethod
    def of(cls, clip: Clip, times: Sequence[float], theme: Theme, shown: Appearance) -> _Content:
        """Return the content of a film: the scenes of a clip at ``times``, seconds."""
        motion = _motion(clip)
        frames = [min(round(time * motion.fps), len(motion) - 1) for time in times]
        scenes: list[Scene] = []
        for k in frames:
            marks = marks_of(clip[k]) if isinstance(clip, Tracked) else []
            # without labels, which would jump from frame to frame
            unnamed = [replace(mark, label="") for mark in marks]
            scene = build_scene([motion.pose(k)], unnamed, theme, shown=shown)
            scenes.append(replace(scene, gaps=tuple(replace(gap, labelled=False) for gap in scene.gaps)))
        ground = float(np.quantile([scene.ground for scene in scenes], _STANDS))  # ignores a few lower frames
        extent = max(scene.extent for scene in scenes)
        spread = max(extent, *(scene.spread for scene in scenes))
        scenes = [replace(scene, ground=ground, extent=extent, spread=spread) for scene in scenes]
        path = _path(motion)[frames]
        if float(np.ptp(path, axis=0).max()) < _STAYS * extent:
            path = np.repeat(path.mean(axis=0, keepdims=True), len(path), axis=0)
        content = [scene.content for scene in scenes]
        points = np.concatenate([places - shift for (places, _), shift in zip(content, path, strict=True)])
        return cls(motion.skeleton, scenes, path, points, np.concatenate([sizes for _, sizes in content]))

    def shots(
        self, paper: Paper, view: str | tuple[float, float], title: str | None, others: Sequence[_Content]
    ) -> list[tuple[Scene, Camera]]:
        """Return the scene and the camera of each frame, with the same scale and floor for all ``others``."""
        first = [one.scenes[0] for one in others]
        extent, ground = max(scene.extent for scene in first), min(scene.ground for scene in first)
        spread = max(scene.spread for scene in first)
        scenes = [replace(scene, ground=ground, extent=extent, spread=spread) for scene in self.scenes]
        axes = axes_of(view, find_up(self.skeleton).name, self.skeleton.forward)
        points, radii = (
            np.concatenate(parts) for parts in zip(*((one.points, one.radii) for one in others), strict=True)
        )
        camera = fit(axes, points, radii, content_window(paper.size, scenes[0], title))
        cameras = [replace(camera, position=camera.position + shift) for shift in self.path]
        return list(zip(scenes, cameras, strict=True))


def _path(motion: Motion) -> Array:
    """Return the path of the body over the floor, (T, 3), smoothed so that the camera moves evenly."""
    middle, up = motion.positions().mean(1), find_up(motion.skeleton).vector
    middle -= (middle @ up)[:, None] * up
    reach = max(int(_LAG * motion.fps), 1)
    window = np.hanning(2 * reach + 3)[1:-1]
    padded = np.pad(middle, ((reach, reach), (0, 0)), mode="edge")
    smooth = [np.convolve(padded[:, axis], window / window.sum(), mode="valid") for axis in range(3)]
    return np.stack(smooth, axis=1)


class Strip:
    """A diagram of the errors of a clip; drawn once, then each frame adds its cursor.

    Args:
        errors: Largest error of each frame in tolerances, (T,); goals are reached up to 1.
        size: Width and height, pixels.
        theme: Colours.
    """

    def __init__(self, errors: Array, size: tuple[int, int], theme: Theme) -> None:
        """Draw the curve."""
        self._size, self._theme = size, theme
        width, height = size
        self._left, self._right = 0.03 * width, 0.97 * width
        self._top, self._bottom = 0.26 * height, 0.86 * height
        paper = np.full((height, width, 3), theme.paper, np.float32)
        canvas = Canvas(paper)
        thin = max(height / 60.0, 1.0)
        limit = self._height(1.0)
        canvas.line((self._left, limit), (self._right, limit), thin, theme.grid)
        x = np.linspace(self._left, self._right, len(errors))
        y = [self._height(float(error)) for error in errors]
        for k in range(1, len(errors)):
            colour = theme.missed if max(errors[k - 1], errors[k]) > 1.0 else theme.reached
            canvas.line((float(x[k - 1]), y[k - 1]), (float(x[k]), y[k]), 2.0 * thin, colour)
        missed = int((errors > 1.0).sum())
        text = "error by frame; line: tolerance" + (f"; {missed} of {len(errors)} frames missed" if missed else "")
        canvas.text((self._left, 0.14 * height), text, max(0.17 * height, min(11.0, 0.24 * height)), theme.quiet)
        self._image, self._x = canvas.image, x

    def _height(self, error: float) -> float:
        """Return the position of an error, pixels from the top."""
        low, high = _DECADES
        share = (np.clip(np.log10(max(error, 1e-12)), low, high) - low) / (high - low)
        return float(self._bottom - share * (self._bottom - self._top))

    def at(self, frame: int) -> Image.Image:
        """Return the strip with its cursor at a frame."""
        from PIL import ImageDraw

        image = self._image.copy()
        x, thick = float(self._x[frame]), max(self._size[1] / 40.0, 1.0)
        ImageDraw.Draw(image).rectangle(
            (x - thick / 2.0, self._top, x + thick / 2.0, self._bottom + 0.05 * self._size[1]), fill=self._theme.ink
        )
        return image
