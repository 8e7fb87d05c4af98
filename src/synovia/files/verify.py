"""Compare a written file with the content in memory."""

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

    The positions of all joints in every frame, the number of frames and the rate are compared. For glTF, positions are
    products of the nodes' matrices, as players compute them.

    Args:
        content: The content that was written.
        path: The file.

    Raises:
        FormatError: If files with this extension cannot hold such content.
        InputError: If the content is not a motion, a pose or a skeleton.

    Example:
        >>> import synovia as sy
        >>> sy.save_motion(motion, "clip.glb", into="character.glb")  # doctest: +SKIP
        >>> print(sy.formats.verify_file(motion, "clip.glb").report())  # doctest: +SKIP
        The file matches the data in memory: joints differ by at most 3.1e-08.
    """
    if isinstance(content, Motion):
        return verify_motion(content, path)
    if isinstance(content, Pose):
        return verify_pose(content, path)
    check_kind("content", content, (Motion, Pose, Skeleton), "give what was written")
    return check_skeleton(content, path)
