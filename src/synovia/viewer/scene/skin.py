"""The surface of a body in a browser's scene, moved by the joints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from synovia.draw.theme import THEMES, Theme
from synovia.model import Skeleton
from synovia.model.geometry import Array, frames_to_transforms
from synovia.model.shapes.world import World
from synovia.surface import Part, Surface, surface_of_skeleton
from synovia.surface.base import rigid_part
from synovia.viewer.scene.bodies import wxyz
from synovia.viewer.scene.paint import Paint

if TYPE_CHECKING:
    from viser import ClientHandle

_Set = Callable[[int, Array], None]
_NUMBERS: Final = count(1)  # numbers for the names of the surfaces that this process shows
SHOWN: Final = ("surface", "both", "bones")
_QUEUE: Final = attrgetter("_impl.api._queue_scene_message")  # message queue of a mesh; no public name in viser
_TRANSLUCENT: Final = 0.45  # opacity of the surface when the bones inside are shown
_RIGID: Final = 0.999  # weight above which a vertex follows a single joint
_STILL: Final = 1e-5  # scene units, and quaternion components: smaller motions of a bone are not sent


def surface_with(skeleton: Skeleton) -> Surface:
    """Return the surface of a skeleton's file (empty without a file), with the notes of skeleton and surface."""
    found = surface_of_skeleton(skeleton)
    return Surface(found.parts, (*skeleton.notes, *found.notes), found.partial)


@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """Appearance of a body.

    Args:
        surface: Surface of the body.
        dark: Whether the background is dark.
        shadows: Whether the body casts a shadow.
        world: Obstacles around the body; None without any.
    """

    surface: Surface
    dark: bool = False
    shadows: bool = True
    world: World | None = None

    @property
    def theme(self) -> Theme:
        """Colours of the scene."""
        return THEMES["dark" if self.dark else "light"]


class Skin:
    """A surface in one browser's scene.

    Args:
        client: The browser.
        look: Appearance of the body.
        scale: Scene units per length unit.
        world: World frames of the joints, (n, 12), length units.
        name: Name of the body in the scene.
        shown: What is shown first, one of ``SHOWN``.
    """

    def __init__(
        self,
        client: ClientHandle,
        look: Look,
        scale: float,
        world: Array,
        *,
        name: str = "/body",
        shown: str = "both",
    ) -> None:
        """Make the meshes."""
        self._scale, self._hidden, self._paint = scale, shown == "bones", Paint()
        self._parts: list[tuple[Any, Any, tuple[_Set, _Set], Array, Array]] = []
        material: dict[str, Any] = {
            "side": "double",
            "opacity": _TRANSLUCENT if shown == "both" else None,
            "visible": not self._hidden,
            "cast_shadow": look.shadows,
            "receive_shadow": False,
        }
        # Names are unique: for a mesh with the name of a removed mesh, the browser keeps the old material and texture.
        root = f"{name}/surface{next(_NUMBERS)}"
        for number, part in enumerate(look.surface.parts):
            path = f"{root}/{number}"
            material |= {"color": part.colour, "flat_shading": part.flat}
            if part.weights.max(axis=1).min() > _RIGID:
                self._add_rigid(client, path, part, material)
                continue
            weights = np.zeros((len(part.vertices), len(part.rows)), np.float32)
            for k in range(part.bones.shape[1]):
                np.add.at(weights, (np.arange(len(weights)), part.bones[:, k]), part.weights[:, k])
            places, turns = part.bind[:, :3, 3] * scale, wxyz(part.bind[:, :3, :3])
            handle = client.scene.add_mesh_skinned(
                path,
                (part.vertices * scale).astype(np.float32),
                part.faces.astype(np.uint32),
                bone_wxyzs=turns,
                bone_positions=places,
                skin_weights=weights,
                **material,
            )
            self._parts.append((part, handle, bone_setters(handle), places, turns))
            self._paint_mesh(client, path, part)
        self.show(world)

    def _add_rigid(self, client: ClientHandle, name: str, part: Part, material: dict[str, Any]) -> None:
        """Add a part whose vertices follow one joint each: a plain mesh for each joint, which moves as a whole."""
        own = np.take_along_axis(part.bones, part.weights.argmax(axis=1)[:, None], axis=1)[:, 0]
        for bone in np.unique(own[part.faces[:, 0]]).tolist():
            chosen = own[part.faces[:, 0]] == bone
            used, numbers = np.unique(part.faces[chosen], return_inverse=True)
            faces = numbers.reshape(-1, 3)
            bind = part.bind[bone]
            local = (part.vertices[used] - bind[:3, 3]) @ bind[:3, :3]
            handle = client.scene.add_mesh_simple(
                f"{name}/{bone}",
                (local * self._scale).astype(np.float32),
                faces.astype(np.uint32),
                **material,
            )
            one = replace(
                rigid_part(local, faces, int(part.rows[bone]), np.eye(4)),
                colours=None if part.colours is None else part.colours[used],
                corners=None if part.corners is None else part.corners[chosen],
                texture=part.texture,
                tint=part.tint,
            )
            self._paint_mesh(client, f"{name}/{bone}", one)
            never = np.full((1, 3), np.inf), np.full((1, 4), np.inf)  # no real pose, so that the first frame is sent
            self._parts.append((one, handle, _node_setters(handle), *never))

    def _paint_mesh(self, client: ClientHandle, name: str, part: Part) -> None:
        """Add the texture or the colours of a mesh as an HTML element in the panel."""
        element = self._paint.element(name, part)
        if element:
            client.gui.add_html(element)

    def choose(self, shown: str) -> None:
        """Show the surface translucent, opaque, or not at all; ``shown`` is one of ``SHOWN``."""
        self._hidden = shown == "bones"
        for _, handle, *_ in self._parts:
            handle.visible = not self._hidden
            handle.opacity = _TRANSLUCENT if shown == "both" else None

    def show(self, world: Array) -> None:
        """Move the surface with the joints' world frames, (n, 12), length units; send only the bones that moved."""
        if self._hidden:
            return
        frames = frames_to_transforms(world)
        for part, _, (to_place, to_turn), places, turns in self._parts:
            now = frames[part.rows]
            place, turn = now[:, :3, 3] * self._scale, wxyz(now[:, :3, :3])
            for bone in np.flatnonzero(np.abs(place - places).max(axis=1) > _STILL).tolist():
                to_place(bone, place[bone])
                places[bone] = place[bone]
            for bone in np.flatnonzero(np.abs(turn - turns).max(axis=1) > _STILL).tolist():
                to_turn(bone, turn[bone])
                turns[bone] = turn[bone]


def _node_setters(handle: Any) -> tuple[_Set, _Set]:
    """Return functions that set the position and the rotation of a mesh, with the arguments of ``bone_setters``."""
    return lambda _, to: setattr(handle, "position", to), lambda _, to: setattr(handle, "wxyz", to)


def bone_setters(handle: Any) -> tuple[_Set, _Set]:
    """Return two functions that set the position and the rotation of a bone of a skinned mesh, by its number.

    viser's own setters compare before they send, which takes six times as long: too long for sixty bones at 60 frames
    per second. If viser's message queue has another name, viser's own setters are used.
    """
    try:
        from viser._messages import SetBoneOrientationMessage, SetBonePositionMessage

        send, name = _QUEUE(handle), handle.name
    except (ImportError, AttributeError):
        return (
            lambda bone, to: setattr(handle.bones[bone], "position", to),
            lambda bone, to: setattr(handle.bones[bone], "wxyz", to),
        )
    return (
        lambda bone, to: send(SetBonePositionMessage(name, bone, tuple(to.tolist()))),
        lambda bone, to: send(SetBoneOrientationMessage(name, bone, tuple(to.tolist()))),
    )
