"""The colours of an image and their meaning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from synovia.errors import unknown_name

Colour = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Theme:
    """Colours, each red, green and blue from 0 to 255.

    Args:
        above: Background at the top.
        below: Background at the bottom.
        grid: Lines of the floor.
        shadow: Shadow on the floor.
        strength: Darkness of the shadow, 0 to 1.
        bone: Bones in the middle of the body, or of a body without sides.
        left: Bones of the body's left side.
        right: Bones of the body's right side.
        joint: Brightness of joints relative to their bones.
        loop: Tied points and rods of loops.
        ghost: An earlier pose.
        obstacle: Obstacles of a world.
        wall: Pieces of half-spaces.
        cover: Shapes of the body.
        reached: Target that was reached.
        missed: Target that was missed, and the line to it.
        ink: Text.
        quiet: Less important text and lines.
        paper: Background of a label.
    """

    above: Colour
    below: Colour
    grid: Colour
    shadow: Colour
    strength: float
    bone: Colour
    left: Colour
    right: Colour
    joint: float
    loop: Colour
    ghost: Colour
    obstacle: Colour
    wall: Colour
    cover: Colour
    reached: Colour
    missed: Colour
    ink: Colour
    quiet: Colour
    paper: Colour


# The value of each part in the light and in the dark theme
_PARTS: Final[dict[str, tuple[Any, Any]]] = {
    "above": ((252, 253, 254), (18, 22, 30)),
    "below": ((231, 236, 242), (31, 37, 49)),
    "grid": ((150, 164, 182), (96, 112, 138)),
    "shadow": ((44, 58, 84), (4, 6, 10)),
    "strength": (0.55, 0.62),
    "bone": ((150, 169, 192), (150, 170, 196)),
    "left": ((117, 164, 218), (104, 162, 228)),
    "right": ((164, 158, 219), (158, 150, 228)),
    "joint": (0.66, 0.6),
    "loop": ((193, 146, 88), (206, 160, 104)),
    "ghost": ((176, 184, 194), (98, 108, 124)),
    "obstacle": ((214, 191, 158), (158, 138, 110)),
    "wall": ((150, 172, 196), (96, 116, 142)),
    "cover": ((242, 158, 66), (246, 170, 84)),
    "reached": ((0, 158, 136), (45, 212, 180)),
    "missed": ((221, 57, 66), (255, 100, 100)),
    "ink": ((30, 39, 52), (236, 241, 248)),
    "quiet": ((103, 116, 134), (150, 163, 184)),
    "paper": ((255, 255, 255), (27, 32, 42)),
}
THEMES: Final[dict[str, Theme]] = {
    name: Theme(**{part: looks[k] for part, looks in _PARTS.items()}) for k, name in enumerate(("light", "dark"))
}


def theme_of(name: str) -> Theme:
    """Return a theme by name.

    Raises:
        UnknownNameError: If no theme has that name.
    """
    if name not in THEMES:
        raise unknown_name("theme", name, THEMES)
    return THEMES[name]
