"""Lights of the page: quick to draw at first, and shadows where they are wanted."""

import asyncio
from types import SimpleNamespace

import pytest

from synovia.viewer import live
from synovia.viewer.serving import lights


@pytest.mark.parametrize("shadows", [True, False])
def test_a_page_has_plain_light_at_first(shadows, monkeypatch) -> None:
    """The map of the surroundings is never made, and a light from sky and floor takes its place."""
    told = []
    monkeypatch.setattr("viser.SceneApi.configure_environment_map", lambda scene, hdri: told.append(hdri))
    monkeypatch.setattr("viser.SceneApi.add_light_hemisphere", lambda scene, name, **_: told.append(name))
    monkeypatch.setattr("viser.SceneApi.configure_default_lights", lambda scene, cast_shadow: told.append(cast_shadow))
    with live.view("arm7", port=0, shadows=shadows):
        assert told == [None, False, "/sky"]


@pytest.mark.parametrize("cameras", [0, 1, 3])
def test_shadows_come_once_after_the_first_message(cameras, monkeypatch) -> None:
    monkeypatch.setattr(lights, "_PAUSE", 0.0)
    told, heard = [], []
    client = SimpleNamespace(
        scene=SimpleNamespace(configure_default_lights=lambda: told.append("shadows")),
        camera=SimpleNamespace(on_update=heard.append),
    )
    lights.add_shadows(client)

    async def visit() -> None:
        for _ in range(cameras):
            await heard[0](None)
        await asyncio.sleep(0.05)

    asyncio.run(visit())
    assert told == ["shadows"][: min(cameras, 1)]
