"""Textures in the form that a browser takes: images as JPEG, and coordinates of corners as whole numbers."""

from __future__ import annotations

from io import BytesIO
from typing import Final

import numpy as np
from numpy.typing import NDArray

from synovia.surface.base import Part

CORNER: Final = 16384.0  # steps per width or height of a texture, for the coordinates of corners


def jpeg(image: NDArray[np.uint8]) -> bytes:
    """Return an image, (h, w, 3), as JPEG."""
    from PIL import Image

    out = BytesIO()
    Image.fromarray(image).save(out, "JPEG", quality=88)
    return out.getvalue()


def corner_steps(part: Part) -> NDArray[np.uint32]:
    """Return the texture coordinates of a part's corners as whole numbers of 1 / ``CORNER``, (3 f, 2).

    Textures repeat, so the coordinates of each triangle are shifted to begin in the first copy of the image.
    """
    if part.corners is None:
        return np.zeros((0, 2), np.uint32)
    whole = np.floor(part.corners.min(axis=1, keepdims=True))
    return np.rint((part.corners - whole).reshape(-1, 2) * CORNER).astype(np.uint32)
