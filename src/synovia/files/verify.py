"""``verify_file``: compare a written file with what is in memory."""

from __future__ import annotations

import os

from synovia.arguments import check_kind
from synovia.files.poses import verify_pose
from synovia.io.save import verify_motion
from synovia.io.verify import FileCheck, check_skeleton
from synovia.model import Pose, Skeleton
from synovia.model.motion import Motion


def verify_file(content: Motion | Pose | Skeleton, path: str | os.PathLike[str]) -> FileCheck:
    """Read a file back and compare it with the motion, pose or skeleton that was written to it.

    The places of all joints are compared, at every frame, with the number of frames and the rate. For glTF they are
    products of the nodes' matrices, as any player computes them.

    Args:
        content: What was written.
        path: The file.

    Raises:
        FormatError: If no file of this extension holds such content.
        InputError: If the content is none of the three.

    Example:
        >>> import synovia as sy
        >>> sy.save_motion(motion, "clip.glb", into="character.glb")  # doctest: +SKIP
        >>> print(sy.formats.verify_file(motion, "clip.glb").report())  # doctest: +SKIP
        The file shows what is in memory: joints differ by at most 3.1e-08.
    """
    if isinstance(content, Motion):
        return verify_motion(content, path)
    if isinstance(content, Pose):
        return verify_pose(content, path)
    check_kind("content", content, (Motion, Pose, Skeleton), "give what was written")
    return check_skeleton(content, path)
