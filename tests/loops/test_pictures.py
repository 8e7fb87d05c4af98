"""Pictures and pages of bodies with loops show them: bars to tied places, knots, and rods of distances."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import synovia as sy
from mechanisms import delta_robot, five_bar, four_bar, stewart_platform
from synovia.draw.loops import bars_of, points_of
from synovia.draw.scene import build_scene
from synovia.draw.theme import THEMES
from synovia.viewer.scene.loops import LoopMeshes


def test_bars_lead_from_joints_to_tied_places() -> None:
    """A four-bar shows its coupler and its rocker, which no bone ends, and the pin where they meet."""
    body = four_bar()
    pose = body.random_pose(1)
    ends, knots = points_of(body, np.array(pose.frames))
    np.testing.assert_allclose(ends[:, 0], pose.positions[[body.index("coupler"), body.index("rocker")]], atol=1e-12)
    np.testing.assert_allclose(ends[:, 1], np.repeat(knots, 2, axis=0), atol=1e-9)
    bodies = build_scene([pose], [], THEMES["light"]).solid
    for start, end in ends:
        assert (np.abs(bodies.start - start).max(axis=1) + np.abs(bodies.end - end).max(axis=1)).min() < 1e-9


def test_rods_of_distances_and_bars_that_bones_show_already() -> None:
    """A delta has a rod for each distance; legs of a platform end where they are tied, so it alone has bars."""
    bars, knots = bars_of(delta_robot())
    assert [bar.rod for bar in bars].count(True) == 6
    assert len(knots) == 12
    bars, knots = bars_of(stewart_platform())
    assert {bar.row for bar in bars} == {stewart_platform().index("platform")}
    assert (len(bars), len(knots)) == (6, 6)
    assert bars_of(sy.Skeleton(four_bar().joints).with_loops([sy.Coupling({"crank": 1, "rocker": -1})])) == ([], [])


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_picture_shows_the_pin(theme: str) -> None:
    """The colour of loops is where the bars meet, and nowhere in a picture of the same bars without a loop."""
    pytest.importorskip("PIL")
    body = five_bar()
    warm = []
    for one in (body, body.with_loops([])):
        image = np.asarray(sy.picture(sy.Pose(one, body.rest_q), size=(300, 240), theme=theme).convert("RGB"), float)
        warm.append(int((image[..., 0] > image[..., 2] + 40.0).sum()))
    assert warm[0] > 5
    assert warm[1] == 0


class Meshes:
    """A scene of a page that keeps what is added."""

    def __init__(self) -> None:
        self.nodes: dict[str, Any] = {}

    def add_batched_meshes_simple(self, name: str, *_: Any, **given: Any) -> Any:
        self.nodes[name] = SimpleNamespace(**given, visible=True)
        return self.nodes[name]


def test_the_page_moves_and_hides_them() -> None:
    """Bars and knots of the live page follow a pose, take the colours of the theme, and hide with the bones."""
    body, scene = four_bar(), Meshes()
    meshes = LoopMeshes(scene, body, THEMES["light"], 2.0, np.array(body.rest_pose().frames))  # type: ignore[arg-type]
    pose = body.random_pose(1)
    meshes.move(np.array(pose.frames))
    ends, knots = points_of(body, np.array(pose.frames))
    bars = scene.nodes["/loops/bars"]
    np.testing.assert_allclose(bars.batched_positions, 2.0 * ends[:, 0], atol=1e-5)
    np.testing.assert_allclose(
        bars.batched_scales[:, 2], 2.0 * np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1), rtol=1e-5
    )
    np.testing.assert_allclose(scene.nodes["/loops/knots"].batched_positions, 2.0 * knots, atol=1e-5)
    meshes.set_theme(THEMES["dark"])
    assert scene.nodes["/loops/knots"].batched_colors[0].tolist() == list(THEMES["dark"].loop)
    meshes.show(False)
    assert not bars.visible


def test_a_page_of_one_file_has_them_and_holds_tied_joints(tmp_path: Path) -> None:
    """Its rods and balls have places on joints; dragging moves no joint of a loop."""
    pytest.importorskip("trimesh")
    body = four_bar()
    sy.formats.write_page(sy.Motion(body, [body.rest_q] * 3, 30.0), tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    content = json.loads(found[1])
    spots = [end for rod in content["bones"]["rods"] for end in rod[:2] if isinstance(end, list)]
    assert [body.index("coupler"), 3.0, 0.0, 0.0] in spots
    assert [body.index("rocker"), 2.0, 0.0, 0.0] in spots
    assert all(content["body"]["coupled"])
