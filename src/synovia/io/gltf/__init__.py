"""glTF 2.0 and GLB: skeletons from skins and node trees, motions from animation clips.

Nothing of a file is trusted: buffers stay inside the file's folder, counts are compared with the bytes that are there
before memory is taken, and every error names the place, for example ``man.glb: nodes[12].rotation``.

References:
    Khronos Group, *glTF 2.0 Specification* (ISO/IEC 12113:2022), sections 3.5 to 3.7, 3.11 and 4.4.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from synovia.io.base import Format
from synovia.io.gltf.animation import read_animations
from synovia.io.gltf.clips import Clips
from synovia.io.gltf.container import looks_like, read_document
from synovia.io.gltf.scene import read_scene
from synovia.io.gltf.write import write_gltf
from synovia.model import Skeleton
from synovia.model.motion import Motion

__all__ = ["FORMAT"]


def read_skeleton(path: Path) -> Skeleton:
    """Return the joints of all skins with all their ancestors, or the default scene's nodes where there is no skin.

    Joints of skins are balls, as are nodes with children where there is no skin; other nodes are fixed unless an
    animation turns them. Nodes that an animation moves by more than 1e-4 of the skeleton's size are free; smaller
    movements, which exporters leave behind, are dropped. Positions at rest are those of the file, also below scaled
    nodes.
    """
    with _quiet():
        return _clips(path).skeleton


def read_motions(path: Path) -> list[Motion]:
    """Return every animation as a motion over its own key times, on the skeleton that ``read_skeleton`` returns.

    Where scale is animated by more than 1e-5, ``Motion.stretch`` holds each node's scale relative to rest, and is None
    otherwise: that is the report that rigid joints alone do not tell the whole clip. With it the exact frames are
    ``G_j = G_parent · X_j(q) · diag(stretch_j)``, where X_j is the joint's rigid transform from its parent.

    Below a node whose scale at rest is not uniform, offsets may depend on the pose: there the joints are free where a
    clip needs it, their values carry all scale, positions are exact as they are, and ``stretch`` is None.
    """
    with _quiet():
        return _clips(path).motions()


def _quiet() -> np.errstate:
    """Let absurd numbers overflow in silence: they end as infinities, which the skeleton and the motion refuse."""
    return np.errstate(over="ignore", invalid="ignore")


def _clips(path: Path) -> Clips:
    """Return everything that the file says about joints."""
    document = read_document(path)
    scene = read_scene(document)
    return Clips(document, scene, read_animations(document, scene.row_of))


FORMAT: Final = Format(
    name="glTF",
    extensions=(".gltf", ".glb", ".vrm"),
    looks_like=looks_like,
    read_skeleton=read_skeleton,
    read_motions=read_motions,
    write_motion=write_gltf,
    copies=True,
)
