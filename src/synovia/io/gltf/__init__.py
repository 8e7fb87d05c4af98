"""Read and write glTF 2.0 and GLB: skeletons from skins and node trees, motions from animation clips.

The reader does not trust the file. Buffers must be in the folder of the file. Counts are compared with the existing
bytes before memory is allocated. Every error names the location, for example ``man.glb: nodes[12].rotation``.

References:
    Khronos Group, *glTF 2.0 Specification* (ISO/IEC 12113:2022), sections 3.5 to 3.7, 3.11 and 4.4.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from synovia.io.base import Contents, Format
from synovia.io.gltf.animation import read_animations
from synovia.io.gltf.container import EXTENSIONS, linked_files, looks_like, read_document
from synovia.io.gltf.scene import read_scene
from synovia.io.gltf.skins import read_skin
from synovia.io.gltf.write import check_gltf, read_gltf_pose, shown_clip, shown_pose, write_gltf, write_gltf_pose
from synovia.io.nodes.clips import Clips

__all__ = ["FORMAT"]


def _read(path: Path) -> Contents:
    """Read the skeleton and the motions of a glTF file.

    The skeleton has the joints of all skins and their ancestors; without skins, it has the nodes of the default scene.
    Joints of skins are balls; so are nodes with children if there is no skin. Other nodes are fixed, unless an
    animation rotates them. Nodes that an animation translates by more than 1e-4 of the skeleton's size are free.
    Smaller translations are artefacts of exporters and are dropped; a note of the motion gives the difference. Rest
    positions are those of the file, also below scaled nodes.

    Each animation becomes a motion over its own key times. The main motion is the one that Synovia wrote last, if any.
    If scale is animated by more than 1e-5, ``Motion.stretch`` has the scale of each node relative to rest. The exact
    frames, whose positions ``Motion.positions`` returns, are then ``G_j = G_parent · X_j(q) · diag(stretch_j)``, where
    X_j is the rigid transform of the joint from its parent.

    Below a node with a nonuniform rest scale, offsets may depend on the pose. There, joints are free if a clip requires
    it, their values include all scale, positions are exact, and ``stretch`` is None.
    """
    document = read_document(path)
    scene = read_scene(document)
    animations = read_animations(document, scene.row_of)
    clips = Clips(path, scene, animations, lambda count, animation: document.spend(count, animation.place))
    return Contents(clips.skeleton, clips.motions, clips.written)


FORMAT: Final = Format(
    name="glTF",
    extensions=EXTENSIONS,
    looks_like=looks_like,
    read=_read,
    write=write_gltf,
    holds_motions=True,
    copies=True,
    makes_new=True,
    check=check_gltf,
    companions=linked_files,
    shown=shown_clip,
    read_skin=read_skin,
    write_pose=write_gltf_pose,
    read_pose=read_gltf_pose,
    shown_pose=shown_pose,
    keeps="nodes, skins, all interpolations, sparse and external buffers, animated scale; roles of a VRM; in a copy"
    " everything else, in a new file the skin of an FBX or the shapes of the body; a"
    " `.vrm` is written only as a copy of one",
)
