"""Convert the shapes of bodies and the obstacles of a world to triangles."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from synovia.errors import SynoviaError
from synovia.model import Skeleton
from synovia.model.geometry import frames_to_transforms
from synovia.model.shapes.world import World
from synovia.surface.base import PLAIN, Colour, Part, Surface, limited, rigid_part
from synovia.text import listed


def body_surface(skeleton: Skeleton, colour: Colour = PLAIN) -> Surface:
    """Return the shapes of a body as a surface; notes list the links whose shapes cannot be read.

    Args:
        skeleton: The body.
        colour: Colour of all shapes.
    """
    rest = frames_to_transforms(skeleton.rest_pose().frames)
    parts: list[Part] = []
    lost: dict[str, list[str]] = {}
    for row, joint in enumerate(skeleton.joints):
        for shape in joint.shapes:
            try:
                parts += [
                    rigid_part(vertices, faces, row, rest[row], colour, flat=flat)
                    for vertices, faces, flat in shape.triangles()
                ]
            except SynoviaError as error:
                lost.setdefault(error.what, []).append(str(skeleton.link_key(row)))
    notes = tuple(f"shapes of {listed([*dict.fromkeys(some)])} cannot be shown ({why})" for why, some in lost.items())
    return Surface(limited(parts), notes, partial=bool(lost))


def world_surface(world: World, colours: Iterable[Colour] = (PLAIN,)) -> Surface:
    """Return the obstacles of a world, except half-spaces; the rows of the parts are obstacle indices.

    Args:
        world: The world; ``world.transforms`` has the frames of the rows.
        colours: Colours that obstacles get in rotation.
    """
    tones = tuple(colours)
    parts = [
        rigid_part(vertices, faces, row, np.eye(4), tones[row % len(tones)], flat=flat)
        for row, obstacle in enumerate(world)
        for shape in obstacle.shapes
        for vertices, faces, flat in shape.triangles()
    ]
    return Surface(limited(parts))
