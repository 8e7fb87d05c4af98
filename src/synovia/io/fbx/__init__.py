"""Read and write FBX, binary and ASCII: skeletons and takes. The package ``ufbx`` reads the files.

References:
    Autodesk, *FBX SDK Documentation*: "Computing transformation matrices", "Node transformations"; the file format
    itself is not published.
"""

from __future__ import annotations

from typing import Final

from synovia.io.base import Format
from synovia.io.fbx.meshes import read_skin
from synovia.io.fbx.read import looks_like, read_fbx
from synovia.io.fbx.write import shown_clip, write_fbx

__all__ = ["FORMAT"]

FORMAT: Final = Format(
    name="FBX",
    extensions=(".fbx",),
    looks_like=looks_like,
    read=read_fbx,
    write=write_fbx,
    holds_motions=True,
    copies=True,
    makes_new=True,
    shown=shown_clip,
    read_skin=read_skin,
    keeps="bones with pivots and any order of rotation, bind pose, every take with its layers, animated scale, skins,"
    " blend shapes, colours, images; binary and ASCII",
    extra="fbx",
)
