"""The lights of the pages: an even light at once, and shadows once a page has been drawn.

Without a graphics card, the browser compiles shaders before it draws for the first time. Shadows take half a second of
that. The map of the surroundings, which lights viser's scenes, takes three, so another light takes its place.
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
_PAUSE: Final = 2.0  # seconds after a browser has sent its camera; it draws for the first time in about one


def add_lights(scene: SceneApi, up: Array) -> None:
    """Set the lights that all pages share.

    Args:
        scene: The scene of all browsers.
        up: The direction from the ground to the sky, (3,).
    """
    scene.configure_environment_map(None)
    scene.configure_default_lights(cast_shadow=False)
    add_sky(scene, up)


def add_sky(scene: SceneApi, up: Array) -> None:
    """Add the hemisphere light: the colour of the sky from above, that of the ground from below.

    Args:
        scene: The scene of all browsers, or of one whose page has another upward direction.
        up: The direction from the ground to the sky, (3,).
    """
    scene.add_light_hemisphere("/sky", sky_color=_SKY, ground_color=_GROUND, intensity=_BRIGHTNESS, position=tuple(up))


def add_shadows(client: ClientHandle) -> None:
    """Have the lights of a browser that has just come cast shadows, a moment after its first message."""
    waiting = True

    async def begin(camera: object) -> None:
        nonlocal waiting
        del camera
        if waiting:
            waiting = False
            asyncio.get_running_loop().call_later(_PAUSE, client.scene.configure_default_lights)

    client.camera.on_update(begin)
