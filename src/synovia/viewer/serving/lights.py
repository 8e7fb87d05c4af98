"""The lights of the pages: an even light at once, and shadows after a page has been drawn.

Without a graphics card, the browser compiles shaders before it draws for the first time. The shaders of shadows take
half a second. Those of the environment map, which usually lights scenes of viser, take three seconds, so a hemisphere
light replaces it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from synovia.model.geometry import Array

if TYPE_CHECKING:
    from viser import ClientHandle, SceneApi

_SKY: Final = (245, 248, 255)
_GROUND: Final = (140, 132, 132)
_BRIGHTNESS: Final = 2.6
_PAUSE: Final = 2.0  # seconds after a browser has sent its camera; the first drawing takes about one second


def add_lights(scene: SceneApi, up: Array) -> None:
    """Set the lights that all pages share.

    Args:
        scene: The scene of all browsers.
        up: Direction from the ground to the sky, (3,).
    """
    scene.configure_environment_map(None)
    scene.configure_default_lights(cast_shadow=False)
    add_sky(scene, up)


def add_sky(scene: SceneApi, up: Array) -> None:
    """Add the hemisphere light, with the colour of the sky from above and the colour of the ground from below.

    Args:
        scene: The scene of all browsers, or of one browser whose page has another upward direction.
        up: Direction from the ground to the sky, (3,).
    """
    scene.add_light_hemisphere("/sky", sky_color=_SKY, ground_color=_GROUND, intensity=_BRIGHTNESS, position=tuple(up))


def add_shadows(client: ClientHandle) -> None:
    """Switch on shadows for a newly connected browser, a moment after it has first sent its camera."""
    waiting = True

    async def begin(camera: object) -> None:
        nonlocal waiting
        del camera
        if waiting:
            waiting = False
            asyncio.get_running_loop().call_later(_PAUSE, client.scene.configure_default_lights)

    client.camera.on_update(begin)
