"""Write frames to a file atomically: an animated GIF, an MP4, or a sheet of stills as PNG."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from synovia.draw.picture import png
from synovia.errors import FileError, UnsupportedError
from synovia.io.base import check_writable, optional_package, write_bytes

if TYPE_CHECKING:
    from PIL import Image

SUFFIXES: Final = (".gif", ".mp4", ".png")
SHEET: Final = 8  # largest number of stills in a sheet
FASTEST_GIF: Final = 50.0  # frames per second; browsers show faster GIFs at 10 frames per second
_TICK: Final = 0.01  # seconds: the resolution of times in a GIF
_PALETTE: Final = 6  # number of frames from which the palette of a GIF is computed


def check_film(path: Path, *, force: bool) -> None:
    """Check that a film can be written, before anything is drawn.

    Raises:
        UnsupportedError: If no film format has its extension.
        MissingExtraError: If the package for it is not installed.
        FileError: If the path is a folder, the file exists and ``force`` is not set, or its folder does not exist.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise UnsupportedError(
            "no film can be written with this extension",
            where=str(path),
            value=path.suffix or None,
            expected=", ".join(SUFFIXES),
        )
    if path.suffix.lower() == ".mp4":
        _import_ffmpeg()
    check_writable(path, force=force)


def write_film(frames: Iterator[Image.Image], fps: float, path: Path, *, force: bool) -> None:
    """Write a film from frames of equal size.

    Args:
        frames: The frames; all are drawn before ``path`` exists.
        fps: Frames per second.
        path: ``.gif``, ``.mp4``, or ``.png`` for a sheet of all frames.
        force: Whether an existing file may be replaced.
    """
    ending = path.suffix.lower()
    if ending == ".gif":
        data = _gif(list(frames), fps)
    elif ending == ".mp4":
        data = _mp4(frames, fps, path)
    else:
        data = png(sheet(list(frames)))
    write_bytes(path, data, force=force)


def sheet(frames: Sequence[Image.Image]) -> Image.Image:
    """Return stills arranged in a grid with at most four in a row."""
    from PIL import Image

    width, height = frames[0].size
    columns = min(len(frames), 4)
    rows = -(-len(frames) // columns)
    out = Image.new("RGB", (columns * width, rows * height), frames[0].getpixel((0, 0)))
    for k, still in enumerate(frames):
        out.paste(still, (k % columns * width, k // columns * height))
    return out


def _gif(images: Sequence[Image.Image], fps: float) -> bytes:
    """Return an animated GIF with a single palette from frames of the whole film, so that colours do not flicker."""
    from PIL import Image

    together = sheet([images[k] for k in _spread(len(images), min(_PALETTE, len(images)))])
    half = (together.width // 2 or 1, together.height // 2 or 1)  # a quarter of the pixels is enough for the colours
    palette = together.resize(half, Image.Resampling.NEAREST).quantize(256, method=Image.Quantize.MEDIANCUT)
    indexed = [image.quantize(palette=palette, dither=Image.Dither.NONE) for image in images]
    ends = np.rint(np.arange(1, len(images) + 1) / (fps * _TICK))  # rounding ends keeps the total duration
    lengths = (np.diff(ends, prepend=0.0) * _TICK * 1000.0).astype(int).tolist()
    out = BytesIO()
    indexed[0].save(
        out, "GIF", save_all=True, append_images=indexed[1:], duration=lengths, loop=0, disposal=1, optimize=False
    )
    return out.getvalue()


def _mp4(frames: Iterator[Image.Image], fps: float, path: Path) -> bytes:
    """Return a film in H.264, written by ffmpeg to a temporary file; ``path`` is used in messages."""
    first = next(frames)
    with tempfile.TemporaryDirectory() as folder:
        film = Path(folder) / "film.mp4"
        writer = _import_ffmpeg().write_frames(
            str(film), first.size, fps=fps, codec="libx264", pix_fmt_in="rgb24", pix_fmt_out="yuv420p",
            macro_block_size=2, quality=8, ffmpeg_log_level="error", output_params=["-movflags", "+faststart"],
        )  # fmt: skip
        try:
            with closing(writer):
                writer.send(None)
                for image in chain((first,), frames):
                    writer.send(image.tobytes())
            return film.read_bytes()
        except OSError as error:
            raise FileError(f"film cannot be written ({error})", where=str(path)) from error


def _import_ffmpeg() -> Any:
    """Return the package that contains ffmpeg."""
    return optional_package("imageio_ffmpeg", "films as MP4 need ffmpeg", "film")


def film_frames(count: int, rate: float, fps: float | None, most: int | None = None) -> tuple[list[int], float]:
    """Return the frames of a clip that a film shows, and the frame rate of the film.

    Args:
        count: Number of frames of the clip.
        rate: Frames per second of the clip.
        fps: Frames per second of the film, at most the clip's rate; None for the clip's rate, but at most 30.
        most: Largest number of frames, spread over the whole clip; None for no limit.
    """
    wanted = min(rate, 30.0 if fps is None else fps)
    length = (count - 1) / rate
    shown: list[int] = np.rint(np.arange(int(length * wanted + 1e-9) + 1) * rate / wanted).astype(int).tolist()
    if most is not None and len(shown) > most:
        shown = [shown[k] for k in _spread(len(shown), most)]
    return shown, wanted


def _spread(count: int, most: int) -> list[int]:
    """Return ``most`` indices from 0 to ``count - 1``, evenly spaced."""
    return np.linspace(0, count - 1, most).round().astype(int).tolist()
