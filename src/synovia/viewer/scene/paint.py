"""Textures and vertex colours on the live page, which viser's meshes do not support.

A hidden element of the panel holds the colours of one mesh; ``page/browser.js`` finds the element and applies the
colours to the mesh with that name. Without such an element, the whole mesh has its mean colour.
"""

from __future__ import annotations

import json
from base64 import b64encode
from html import escape
from typing import Any, Final

import numpy as np

from synovia.surface import Part
from synovia.surface.textures import CORNER, corner_steps, jpeg

_MOST: Final = 300_000  # largest number of painted triangles of a mesh; a corner takes 11 bytes


class Paint:
    """The elements that paint the meshes of one body; each texture is sent once."""

    def __init__(self) -> None:
        """Start without textures."""
        self._images: dict[int, str] = {}

    def element(self, node: str, part: Part) -> str:
        """Return the HTML element that paints a mesh; empty if the mesh has only one colour.

        Args:
            node: Name of the mesh in the scene.
            part: The mesh, with the same vertices and triangles, in the same order, as the mesh in the scene.
        """
        counts = {"node": node, "vertices": len(part.vertices), "faces": len(part.faces)}
        if len(part.faces) > _MOST:
            return ""
        if part.texture is not None and part.corners is not None:
            first = id(part.texture) not in self._images
            name = self._images.setdefault(id(part.texture), f"{node} texture")
            image = _text(jpeg(part.texture)) if first else ""
            values = {"image": name, "tint": list(part.tint), "steps": CORNER}
            return _hidden(counts | values, _text(corner_steps(part).astype("<u4").tobytes()), image)
        if part.colours is not None:
            colours = np.rint(np.clip(part.colours, 0.0, 1.0) * 255.0).astype(np.uint8)
            return _hidden(counts, _text(colours.tobytes()))
        return ""


def _text(data: bytes) -> str:
    """Return bytes as base64 text."""
    return b64encode(data).decode("ascii")


def _hidden(mesh: dict[str, Any], values: str, image: str = "") -> str:
    """Return a hidden element that holds a description of the mesh, its corners or colours, and its image if any."""
    described = escape(json.dumps(mesh), quote=True)
    return (
        f'<div hidden class="synovia-paint" data-mesh="{described}" data-values="{values}" data-image="{image}"></div>'
    )
