"""Write a motion as one HTML file that plays it without a network, with its surface, a timeline and handles to drag."""

from __future__ import annotations

import base64
import json
import os
import zlib
from collections.abc import Sequence
from importlib.resources import files
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from synovia.arguments import check_kind
from synovia.clips.editing import EditStack
from synovia.draw.loops import bars_of
from synovia.draw.rods import ahead_of, build, colours_of_loops, sizes_of_loops
from synovia.draw.scene import bone_lengths
from synovia.draw.theme import THEMES
from synovia.errors import InputError
from synovia.io.base import as_path, write_bytes
from synovia.model import Kind, Skeleton
from synovia.model.anatomy.up import find_up
from synovia.model.geometry import Array, align_z, as_numbers, dimensions
from synovia.model.limits import Interval, SwingTwist
from synovia.model.loops.tables import moved_by
from synovia.model.motion import Motion
from synovia.model.tree import ancestors
from synovia.surface import Part, surface_of_skeleton
from synovia.surface.textures import corner_steps, jpeg
from synovia.viewer.page.style import palette
from synovia.viewer.timeline.timeline import spans_of

_STEP: Final = 1e-5  # resolution of stored joint values, radians or fractions of the body's size
_SAMPLES: Final = 16  # number of frames to measure size and floor
_MOST_HANDLES: Final = 8
_FEET: Final = ("_foot", "_paw")  # endings of the roles that support the body
_TRAVELS: Final = 0.6  # fraction of the body's size: the camera follows a root with a larger range of motion
_PAGE: Final = "offline_page/page"  # the page's files, without their extensions
_SCRIPTS: Final = ("offline_page/kinematics.js", "offline_page/drawing.js", "timeline/timeline.js", f"{_PAGE}.js")


def write_page(
    motion: Motion, path: str | os.PathLike[str], *, targets: Array | None = None, force: bool = False
) -> None:
    """Write a motion as one HTML file that needs neither a network nor Synovia.

    The page plays the clip with the surface of the body. Hands, feet and head have handles to drag. A small solver in
    the page then moves the joints within their limits and keeps the other feet in place. The solver is a preview
    without statuses or proofs.

    Args:
        motion: The motion.
        path: The file, usually with the extension ``.html``.
        targets: World positions to mark, length units: fixed positions, (k, 3), or positions by frame, (frames, k, 3).
        force: Whether an existing file may be replaced.

    Raises:
        InputError: If the motion has no frames, or the targets have another shape.
        FileError: If the file exists and ``force`` is not set, or it cannot be written.

    Example:
        >>> import synovia as sy
        >>> walk = sy.retarget(sy.load_motion("walk.bvh"), sy.bundled("humanoid")).motion  # doctest: +SKIP
        >>> sy.formats.write_page(walk, "walk.html")  # doctest: +SKIP
    """
    check_kind("motion", motion, Motion, "sy.load_motion(path) reads one")
    write_bytes(as_path(path), page_text(motion, targets).encode(), force=force)


def page_text(motion: Motion, targets: Array | None = None) -> str:
    """Return the text of the page; arguments and errors as in ``write_page``."""
    if not len(motion):
        raise InputError("the motion has no frames", where=motion.name, expected="at least one")
    skeleton = motion.skeleton
    pack = _Pack()
    surface = surface_of_skeleton(skeleton)
    whole = bool(surface.parts) and surface.covers(bone_lengths(skeleton))
    content: dict[str, Any] = {
        "name": motion.name if motion.name == skeleton.name else f"{skeleton.name}: {motion.name}",
        "fps": motion.fps,
        "frames": len(motion),
        "unit": skeleton.meters_per_unit,
        **_view(motion, surface.parts, whole=whole),
        "body": _body(skeleton),
        "handles": _handles(skeleton),
        "feet": [
            {"name": skeleton.joint_names[foot.head], "spans": spans_of(foot.stands)}
            for foot in EditStack(motion).body.feet
        ],
        "bones": _bones(skeleton),
        "whole": whole,
        "surface": _surface(surface.parts, pack),
        "motion": _values(motion, pack),
        "targets": _targets(motion, targets, pack),
        "arrays": pack.arrays,
        "data": pack.text(),
    }
    text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    for sign in "<>&":  # escaped, so that a name from a file cannot end the script
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    folder = files("synovia.viewer")

    def read(name: str) -> str:
        return folder.joinpath(name).read_text(encoding="utf-8")

    colours = f":root{{{palette(dark=False)}}}@media(prefers-color-scheme:dark){{:root{{{palette(dark=True)}}}}}"
    page = read(f"{_PAGE}.html").replace("/*STYLE*/", colours + read(f"{_PAGE}.css") + read("timeline/timeline.css"))
    return page.replace("/*SCRIPT*/", "\n".join(read(name) for name in _SCRIPTS)).replace("/*DATA*/", text)


class _Pack:
    """Arrays as bytes to compress: differences to the previous row, column by column, bytes grouped by significance."""

    def __init__(self) -> None:
        self.arrays: list[dict[str, Any]] = []
        self._data = bytearray()

    def add(self, values: NDArray[Any], kind: str, *, differences: bool = True) -> int:
        """Append an array of unsigned integers and return its index; ``kind`` is u1, u2 or u4."""
        table = np.ascontiguousarray(values.reshape(len(values), -1).astype(f"<{kind}").T)
        if differences:
            table = np.diff(table, axis=1, prepend=np.zeros((len(table), 1), table.dtype))  # modulo 2 ** bits
        raw = np.ascontiguousarray(table).reshape(-1).view(np.uint8).reshape(-1, table.itemsize).T.tobytes()
        self.arrays.append({
            "at": len(self._data), "bytes": table.itemsize, "rows": len(values), "columns": len(table),
            "differences": differences,
        })  # fmt: skip
        self._data += raw
        return len(self.arrays) - 1

    def add_bytes(self, data: bytes) -> int:
        """Append bytes and return their index."""
        return self.add(np.frombuffer(data, np.uint8), "u1", differences=False)

    def text(self) -> str:
        """Return all arrays as text."""
        return base64.b64encode(zlib.compress(bytes(self._data), 9)).decode()


def _view(motion: Motion, parts: Sequence[Part], *, whole: bool) -> dict[str, Any]:
    """Return the data for the camera: axes, floor and size of the body; ``whole``: the surface covers all bones."""
    skeleton = motion.skeleton
    up = find_up(skeleton).vector
    frames = motion.frames()
    positions = frames[..., 9:]
    chosen = np.unique(np.linspace(0, len(motion) - 1, _SAMPLES).astype(int))
    shape = build(skeleton, THEMES["light"], 1.0)
    shown = [positions[frame][shape.joints] for frame in chosen]
    if parts:
        bare = [np.zeros((0, 3))] * len(chosen) if whole else shown  # if the surface is partial, bones are drawn too
        placed = [[part.placed(frames[frame]) for part in parts] for frame in chosen]
        shown = [np.concatenate([joints, *each]) for joints, each in zip(bare, placed, strict=True)]
    axes = align_z(up)  # two axes of the floor, and up
    extents = np.array([np.ptp(points @ axes, axis=0) for points in shown])
    wide, tall = float(extents[:, :2].max()), float(extents[:, 2].max())
    size = float(np.hypot(wide, tall)) or 1.0
    everything = np.concatenate(shown)
    middle = (everything.min(axis=0) + everything.max(axis=0)) / 2.0
    root = positions[:, 0] - np.outer(positions[:, 0] @ up, up)
    follows = bool(np.linalg.norm(np.ptp(root, axis=0)) > _TRAVELS * size)
    return {
        "up": up.tolist(),
        "ahead": ahead_of(skeleton).tolist(),
        "middle": middle.tolist(),
        "wide": wide if follows else float(np.ptp(everything @ axes[:, :2], axis=0).max()),
        "tall": tall,
        "size": size,
        "follows": follows,
        "floor": float(np.quantile([float((points @ up).min()) for points in shown], 0.1)),
    }


def _body(skeleton: Skeleton) -> dict[str, Any]:
    """Return the data of the joints for forward kinematics and limits."""
    limits: list[Any] = []
    tied = {row for tie in skeleton.loops for row in moved_by(skeleton, tie)}  # dragging these would open loops
    for joint in skeleton.joints:
        limit = joint.limit
        if isinstance(limit, Interval):
            limits.append([end if abs(end) < 1e15 else None for end in (limit.lower, limit.upper)])
        elif isinstance(limit, SwingTwist):
            limits.append(limit.row().tolist()[:10])
        else:
            limits.append(None)
    return {
        "names": list(skeleton.joint_names),
        "parents": list(skeleton.parents),
        "kinds": [int(joint.kind) for joint in skeleton.joints],
        "rest": [[*joint.rest[:3, :3].ravel().tolist(), *joint.rest[:3, 3].tolist()] for joint in skeleton.joints],
        "axes": [joint.axis.tolist() for joint in skeleton.joints],
        "limits": limits,
        "coupled": [joint.mimic is not None or row in tied for row, joint in enumerate(skeleton.joints)],
        "masses": [[joint.mass, *joint.com.tolist()] for joint in skeleton.joints],
    }


def _handles(skeleton: Skeleton) -> list[dict[str, Any]]:
    """Return the joints to drag, each with a label and whether it supports the body."""
    roles = skeleton.role_rows
    feet = [role for role in roles if role.endswith(_FEET)]
    chosen = [role for role in ("right_hand", "left_hand", "head") if role in roles] + feet
    out = [
        {
            "row": _end(skeleton, roles[role], role),
            "label": role.replace("_", " ").capitalize(),
            "carries": role in feet,
        }
        for role in chosen
    ]
    if out:
        return out[:_MOST_HANDLES]
    moves = [joint.kind not in (Kind.FIXED, Kind.FREE) for joint in skeleton.joints]
    tips = [row for row in range(len(skeleton)) if not skeleton.children[row]]
    counts = {row: sum(moves[at] for at in ancestors(skeleton.parents, row)) for row in tips}
    least = max(1.0, 0.5 * max(counts.values(), default=0))
    kept = [row for row, count in counts.items() if count >= least][:_MOST_HANDLES]
    return [{"row": row, "label": skeleton.joint_names[row], "carries": False} for row in kept]


def _end(skeleton: Skeleton, row: int, role: str) -> int:
    """Return the joint to drag for a role; for a head, its tip, so that the handle does not hide the face."""
    tips = [child for child in skeleton.children[row] if skeleton.joints[child].tip]
    return tips[0] if role == "head" and tips else row


def _bones(skeleton: Skeleton) -> dict[str, Any]:
    """Return rods [from, to, radius, radius, colour] and balls [point, radius, colour].

    A point is a joint, or [joint, x, y, z] in the frame of a joint; joint -1 is the world.
    """
    shape = build(skeleton, THEMES["light"], 1.0)
    rods = zip(
        shape.parents.tolist(), shape.bones.tolist(), shape.thick.tolist(), shape.bone_colours.tolist(), strict=True
    )
    balls = zip(shape.joints.tolist(), shape.round.tolist(), shape.joint_colours.tolist(), strict=True)
    ties, knots = bars_of(skeleton)
    sizes, colours = sizes_of_loops(skeleton), colours_of_loops(skeleton, THEMES["light"])
    loops = zip(ties, *(part.tolist() for part in (sizes[0], colours[0])), strict=True)
    places = zip(knots, *(part.tolist() for part in (sizes[1], colours[1])), strict=True)
    return {
        "rods": [
            *([parent, row, thick, 0.62 * thick, colour] for parent, row, thick, colour in rods),
            *([_spot(bar.start), _spot(bar.end), thick, thick, colour] for bar, thick, colour in loops),
        ],
        "balls": [
            *([row, radius, colour] for row, radius, colour in balls),
            *([_spot(knot.place), radius, colour] for knot, radius, colour in places),
        ],
    }


def _spot(place: tuple[int, Array]) -> list[float]:
    """Return a point on a joint as [joint, x, y, z]."""
    return [place[0], *place[1].tolist()]


def _surface(parts: Sequence[Part], pack: _Pack) -> dict[str, Any]:
    """Return the triangles of all parts, with a common list of bones: joint and inverse bind transform of each."""
    rows: list[int] = []
    binds: list[list[float]] = []
    listed: list[dict[str, Any]] = []
    images: dict[int, int] = {}
    for part in parts:
        low, high = part.vertices.min(axis=0), part.vertices.max(axis=0)
        span = np.where(high > low, high - low, 1.0)
        weights = np.rint(part.weights * 255.0).astype(np.int64)
        strongest = part.weights.argmax(axis=1)
        weights[np.arange(len(weights)), strongest] += 255 - weights.sum(axis=1)
        wide = "u2" if len(part.vertices) <= 65536 else "u4"
        one: dict[str, Any] = {
            "low": low.tolist(),
            "span": span.tolist(),
            "places": pack.add(np.rint((part.vertices - low) / span * 65535.0), "u2"),
            "faces": pack.add(part.faces, wide),
            "bones": pack.add(part.bones + len(rows), "u2", differences=False),
            "weights": pack.add(weights, "u1", differences=False),
            "colour": list(part.colour),
            "flat": part.flat,
        }
        if part.colours is not None:
            one["colours"] = pack.add(np.rint(np.clip(part.colours, 0.0, 1.0) * 255.0), "u1")
        if part.texture is not None and part.corners is not None:
            if id(part.texture) not in images:
                images[id(part.texture)] = pack.add_bytes(jpeg(part.texture))
            one |= {
                "image": images[id(part.texture)],
                "tint": list(part.tint),
                "corners": pack.add(corner_steps(part), "u4"),
            }
        listed.append(one)
        rows += part.rows.tolist()
        binds += [inverse[:3].ravel().tolist() for inverse in np.linalg.inv(part.bind)]
    return {"rows": rows, "binds": binds, "parts": listed}


def _values(motion: Motion, pack: _Pack) -> dict[str, Any]:
    """Return the joint values as integer multiples of a step above the least value of each column."""
    skeleton = motion.skeleton
    steps = np.full(skeleton.nq, _STEP)
    for row, joint in enumerate(skeleton.joints):
        at = skeleton.q_slice(row)
        if joint.kind in (Kind.SLIDE, Kind.FREE):
            steps[at.start : at.start + (1 if joint.kind is Kind.SLIDE else 3)] *= skeleton.size or 1.0
    low = motion.q.min(axis=0)
    steps = np.maximum(steps, np.ptp(motion.q, axis=0) / 4e9)
    return {
        "low": low.tolist(),
        "steps": steps.tolist(),
        "q": pack.add(np.rint((motion.q - low) / steps), "u4"),
        "rest": skeleton.rest_q.tolist(),
    }


def _targets(motion: Motion, targets: Array | None, pack: _Pack) -> dict[str, Any] | None:
    """Return marked positions: one row per frame, or one row for all frames.

    Raises:
        InputError: If the array has another shape.
    """
    axes = dimensions(targets)
    if targets is None or (axes >= 0 and not np.size(targets)):
        return None
    places = as_numbers(targets, (-1, -1, 3) if axes == 3 else (-1, 3), "targets")
    if axes == 2:
        places = places[None]
    if len(places) not in (1, len(motion)):
        expected = f"(k, 3) or ({len(motion)}, k, 3)"
        raise InputError("targets", value=np.shape(targets), expected=f"an array of shape {expected}")
    low, span = places.min(axis=(0, 1)), np.ptp(places, axis=(0, 1)).max() or 1.0
    whole = np.rint((places - low) / span * 4e9).reshape(len(places), -1)
    return {"low": low.tolist(), "span": float(span), "places": pack.add(whole, "u4"), "count": places.shape[1],
            "colour": list(THEMES["light"].reached)}  # fmt: skip
