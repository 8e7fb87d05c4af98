"""Pictures of skeletons, poses and solutions in notebooks."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from io import BytesIO
from typing import Any, Final

from synovia.errors import InputError, MissingExtraError

_SIZE: Final = (720, 540)  # pixels


class Pictured:
    """Base of classes that notebooks show as pictures, or as text if they cannot be drawn."""

    __slots__ = ()

    def _repr_png_(self) -> bytes | None:
        """Return the picture as a PNG file, None if pictures cannot be drawn."""
        return _png(self)

    def _repr_html_(self) -> str | None:
        """Return the text and the picture below it, None if pictures cannot be drawn."""
        from base64 import b64encode
        from html import escape

        png = _png(self)
        if png is None:
            return None
        image = f'<img alt="" width="{_SIZE[0]}" src="data:image/png;base64,{b64encode(png).decode()}">'
        return f"<pre>{escape(str(self))}</pre>{image}"


@lru_cache(maxsize=1)  # a notebook asks for both forms, one after the other
def _png(thing: Any) -> bytes | None:
    """Return the picture of an object, as PNG."""
    draw = import_module("synovia.draw")  # imported by name, from a higher layer
    out = BytesIO()
    try:
        draw.picture(thing, size=_SIZE).save(out, "PNG")
    except (MissingExtraError, InputError):  # it cannot be drawn: NaN, or too far away
        return None
    return out.getvalue()
