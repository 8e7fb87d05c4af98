"""Pictures of skeletons, poses and solutions in notebooks.

The classes are in a layer below ``synovia.draw``. So the package registers a drawing function in this module; the
function imports ``synovia.draw`` when a notebook asks for the first picture.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import IO, Any, Final, Protocol

_SIZE: Final = (720, 540)  # width and height, pixels


class Picture(Protocol):
    """An image that can be written, such as an image of Pillow."""

    def save(self, fp: IO[bytes], format: str) -> None:  # noqa: A002 - the word of Pillow
        """Write the image to a file in a format."""
        ...


Draw = Callable[[Any, tuple[int, int]], Picture]  # called with an object and the size in pixels
_draw: list[Draw] = []  # the registered function; at most one


def draw_with(draw: Draw) -> None:
    """Register the function that draws pictures for notebooks.

    Args:
        draw: Returns the picture of a skeleton, pose or solution, or raises a ``MissingExtraError`` or ``InputError``.
    """
    _draw[:] = [draw]
    _png.cache_clear()


class Pictured:
    """Base class of objects that notebooks show as pictures, or as text if they cannot be drawn."""

    __slots__ = ()

    def _repr_png_(self) -> bytes | None:
        """Return the picture as a PNG file; None if it cannot be drawn."""
        return _png(self)

    def _repr_html_(self) -> str | None:
        """Return the text with the picture below; None if the picture cannot be drawn."""
        from base64 import b64encode
        from html import escape

        png = _png(self)
        if png is None:
            return None
        image = f'<img alt="" width="{_SIZE[0]}" src="data:image/png;base64,{b64encode(png).decode()}">'
        return f"<pre>{escape(str(self))}</pre>{image}"


@lru_cache(maxsize=1)  # a notebook asks for both representations, one after the other
def _png(thing: Any) -> bytes | None:
    """Return the picture of an object, as PNG; None if it cannot be drawn."""
    from io import BytesIO

    from synovia.errors import InputError, MissingExtraError

    out = BytesIO()
    try:
        for draw in _draw:
            draw(thing, _SIZE).save(out, "PNG")
    except (MissingExtraError, InputError):  # Pillow is missing; or the object has NaN or is too far away
        return None
    return out.getvalue() or None
