"""Find what is wrong with a clip: compare its figures with thresholds, and name the cause of each excess."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from synovia.clips.hands.bones import HandBones
from synovia.ik.solution import length_text
from synovia.model import Kind
from synovia.model.anatomy.feet import runs
from synovia.model.anatomy.names import SIDES
from synovia.model.anatomy.up import stands_on_four
from synovia.model.finding import LEVELS, Finding
from synovia.model.geometry import Array, axis_name, axis_vector, between
from synovia.model.shapes.body import unchecked_links
from synovia.retargeting.judging.actor import BONES, Actor, lean
from synovia.retargeting.judging.causes import (
    exchanged_limbs,
    held_by_limit,
    inherited,
    limb_cause,
    sides_of,
    turned_round,
    whole_body,
    whole_limbs,
)
from synovia.retargeting.judging.ground import held_frames, on_the_spot, path_factor, speeds
from synovia.retargeting.judging.measure import MEAN, PATH, Figures, Limb
from synovia.retargeting.rest_pose import CERTAIN, DOUBTFUL, RestPose
from synovia.text import DOUBT, counted, listed

Bools = NDArray[np.bool_]
CAUSES: Final = (
    "up axis", "sides swapped", "mirrored", "rest pose", "direction", "upside down", "scale", "crossed", "overlap",
    "jump", "step", "slide", "height", "contacts", "limits", "not mapped", "calibration pose", "flip", "part",
    "four legs", "missed", "points", "names", "in place", "loops", "fingers", "doubt",
    "prop",
)  # fmt: skip

# unless stated otherwise, pairs are thresholds for "look" and "failed", lengths are in leg lengths, and shares are of
# all frames
_PEAK: Final = ((50.0, 0.1), (80.0, 0.25))  # angle in degrees, and its least duration in seconds; not for head and feet
_FINGERS: Final = (10.0, 45.0)  # degrees: mean angle of the four fingers of a hand
_THUMB: Final = (15.0, 60.0)  # degrees: mean angle of a thumb
_CROSSED: Final = (0.02, 0.1)
_DEEPER: Final = 0.04  # depth of an overlap minus its depth in the source
_OVERLAPS: Final = 0.05  # share of frames with an overlap above which it is reported
_THROUGH: Final = 0.0055  # depth of an overlap of shapes minus its depth in the source: 5 mm for an adult
_INSIDE: Final = (0.07, 0.25)  # depth of an arm in the trunk that is reported even if the source has it, and seconds
_STEP: Final = ((1.5, 15.0), (2.0, 40.0))  # factor of the source's largest step nearby, and degrees added to it
_SLIDE: Final = (0.1, 0.5)  # leg lengths per second: median of the speed minus the source's, during contacts
_DRIFT: Final = (0.06, 0.5)  # the same for the mean velocity, which is small for feet that roll
_STANDS: Final = 0.2  # seconds: slides of feet with less contact in the clip are not judged
_SLIP: Final = 0.1  # displacement during one contact, minus the source's
_HOVER: Final = (0.08, 0.3)  # distance of a planted foot from the ground
_SINKS: Final = 0.03, 0.08  # depth of a sole below the floor, minus the source's; the second value: without a source
_OFTEN: Final = 0.05  # share of frames with such a depth above which it is reported
_RECALL: Final = 0.4  # contacts are reported if precision or recall is lower
_SCALE: Final = (1.7, 4.0)  # ratio between the extents of the two paths
_FORCED: Final = (2.0, 15.0)  # degrees by which loops rotate parts of the body: thresholds for "note" and "look"
_STILL: Final = 0.05  # leg lengths: smaller extents of paths are raised to this before they are compared
_FAST: Final = 15.0  # leg lengths per second: no body moves this fast
_GLIDES: Final = (0.3, 0.2)  # hips: leg lengths per second; feet relative to the hips: fraction of that speed
_LEG: Final = (0.05, 5.0)  # metres: range of leg lengths; a length outside it shows a wrong unit
_DOWN: Final = 0.5  # share of frames with the trunk upside down above which it is reported
_AT_LIMIT: Final = 0.5  # share of frames at a limit above which a note is given
_MANY: Final = 4  # if this many limbs have one cause, or parts jump at once, one finding about the body is reported
_MINOR: Final = ("shoulder", "toes")  # parts whose sides may be exchanged without a visible effect
_FEW: Final = 5  # least number of limbs, without the head, that must be comparable on a whole body
_OF_LIMBS: Final = ("upper_arm", "lower_arm", "upper_leg", "lower_leg")
_SHORT: Final = 0.03  # fraction of the longest limb bone: shorter limb bones are reported
_FIRST: Final = 2  # frames at both ends: jumps to or from a calibration pose are usual there
_FLIPPED: Final = (0.0, 0.05)  # share of frames in which the points are flipped
_MISSED: Final = (0.0, 0.25)  # share of frames in which goals are missed
_APART: Final = (0.15, 0.25)  # leg lengths from the body: a point farther is reported if frequent; in any frame
_OFTEN_APART: Final = (0.02, 0.25)  # share of frames farther than ``_APART[0]``: "look"; than ``_APART[1]``: "failed"
_ON_THE_SPOT: Final = (20.0, 1e4)  # length of steps over that of the path: above, hips only sway, or do not travel
_PATH: Final = 4.0  # length of the steps divided by that of the path: above this, their units differ


def find(figures: Figures) -> tuple[Finding, ...]:
    """Return the findings about a clip, the worst first."""
    swapped = list(_swapped(figures))
    everywhere = any(one.limb == "body" for one in swapped)  # this explains all differences of directions
    found = [
        *swapped, *(() if everywhere else _directions(figures)), *_fingers(figures), *_upside_down(figures),
        *_scales(figures), *_crossings(figures), *_through(figures), *_unchecked(figures), *_jumps(figures),
        *_steps(figures), *_short_limbs(figures),
        *_feet(figures), *_limits(figures), *_unmapped(figures), *_of_parts(figures), *_four_legs(figures),
    ]  # fmt: skip
    return tuple(sorted(found, key=lambda one: -LEVELS.index(one.level)))


def flipped(frames: Sequence[int], count: int) -> Finding | None:
    """Return a finding about fitted points that are flipped in some frames of a clip; None without such frames."""
    level = _level(len(frames) / count, _FLIPPED)
    if level is None:
        return None
    text = "the points are upside down, turned round or mirrored in some frames, unlike the others"
    return Finding("body", "flip", level, tuple(frames), text)


def missed(frames: Sequence[int], count: int) -> Finding | None:
    """Return a finding about goals that are missed in some frames of a clip; None without such frames."""
    level = _level(len(frames) / count, _MISSED)
    if level is None:
        return None
    return Finding("body", "missed", level, tuple(frames), f"goals are missed in {len(frames)} of {count} frames")


def apart(distances: Array, figures: Figures) -> Finding | None:
    """Return a finding about points that are far from the clip that was fitted to them; None if they are near.

    Args:
        distances: Distance of each point in each frame, (T, K), length units; NaN where it was not seen.
        figures: The clip.
    """
    body = figures.motion.skeleton
    leg = 0.5 * body.size if figures.result is None else figures.result.leg
    far = np.nan_to_num(distances).max(axis=1, initial=0.0) / leg
    some, very = far > _APART[0], far > _APART[1]
    if not very.any() and float(some.mean()) <= _OFTEN_APART[0]:
        return None
    level = "failed" if float(very.mean()) > _OFTEN_APART[1] else "look"
    unit = " m" if body.meters_per_unit == 1.0 else ""
    text = f"points are up to {float(far.max()) * leg:.2g}{unit} ({float(far.max()):.2g} leg lengths) from the body"
    return Finding("body", "points", level, _frames(some), text)


def doubts(notes: Iterable[str]) -> list[Finding]:
    """Return a finding for each note of a clip that expresses a doubt."""
    return [Finding("body", "doubt", "look", (), note.removeprefix(DOUBT)) for note in notes if note.startswith(DOUBT)]


def in_place() -> Finding:
    """Return a note about a clip in place, whose path over the ground is stored separately."""
    return Finding(
        "body", "in place", "note", (), "its path over the ground is stored separately and was judged with it"
    )


def forced_by_loops(angles: Array) -> list[Finding]:
    """Return a finding about loops that must rotate parts of the body to close; empty for small rotations.

    Args:
        angles: The largest rotation of a part in each frame, (T,), radians.
    """
    far = np.degrees(angles) > _FORCED[0]
    if not far.any():
        return []
    most = float(angles.max())
    level = "look" if np.degrees(most) > _FORCED[1] else "note"
    text = f"loops do not allow the pose of the source: closing them rotates parts by up to {degrees(most)}"
    return [Finding("body", "loops", level, _frames(far), text)]


def hurried_by_loops(ratios: Mapping[str, Array]) -> list[Finding]:
    """Return a finding about joints that loops move faster than their velocity limits; empty without such joints.

    Args:
        ratios: For each joint that exceeds its velocity limit, by name, the ratio of velocity to limit in each frame,
            (T,).
    """
    if not ratios:
        return []
    fastest = sorted(((float(ratio.max()), name) for name, ratio in ratios.items()), reverse=True)
    names = listed([name for _, name in fastest])
    frames = _frames(np.max([ratio > 1.0 for ratio in ratios.values()], axis=0))
    text = f"loops move {names} faster than their velocity limits, by up to {fastest[0][0]:.3g} times"
    return [Finding("body", "loops", "look", frames, text)]


def uncertain_rests(findings: Sequence[Finding], source: RestPose, target: RestPose | None) -> Iterator[Finding]:
    """Yield findings about uncertain rest poses: "look" if directions differ from the source, else notes.

    An unlikely rest pose of the target is worth a look, too.

    Args:
        findings: The other findings about the clip.
        source: The rest pose of the source.
        target: The rest pose of the target; None if its base does not move.
    """
    off = any(one.cause in ("rest pose", "direction", "up axis") and one.level != "note" for one in findings)
    hints = "--rest (rest=) sets another one", "check which joint is which, or give a clip of the target"
    for rest, what, hint in zip((source, target), ("source", "target"), hints, strict=True):
        if rest is not None and rest.certainty < CERTAIN:
            hardly = rest is target and rest.certainty < DOUBTFUL
            text = f"the rest pose of the {what} is uncertain: {rest.described()}; {hint}"
            yield Finding("body", "rest pose", "look" if off or hardly else "note", (), text)


def _frames(flags: Any) -> tuple[int, ...]:
    """Return the indices of the frames that are set in a mask."""
    return tuple(np.flatnonzero(flags).tolist())


def degrees(angle: float) -> str:
    """Return an angle, given in radians, as text in whole degrees."""
    return f"{np.degrees(angle):.0f}°"


def _level(value: float, bars: tuple[float, float]) -> str | None:
    """Return "failed" or "look" for a value above the second or first threshold; None for smaller values."""
    return "failed" if value > bars[1] else "look" if value > bars[0] else None


def _swapped(figures: Figures) -> Iterator[Finding]:
    """Yield findings about joint maps, or names of joints, that exchange left and right."""
    every = tuple(range(len(figures.motion)))
    for actor, what in ((figures.origin, "source"), (figures.result, "result")):
        if actor is None:
            continue
        moved = what == "result" and figures.origin is not None
        sides = sides_of(actor, moved=moved)
        whole = whole_limbs(sides.swapped)
        body = len(whole) == 2
        for limb in ["body"] if body else [f"left_{part}" for part in whole]:
            kinds = whole if body else [limb.removeprefix("left_")]
            misnamed = [role for kind in kinds for role in sides.misnamed.get(kind, ())]
            said = _said_side(actor, [role for kind in kinds for role in sides.swapped[kind]])
            if misnamed:
                where = "the names" if body else f"the names of the {limb.removeprefix('left_')}s"
                why = "its knees bend and its toes point backwards" if body else _said_side(actor, misnamed)
                text = f"left and right are swapped in {where} of the {what}: {why}"
            else:
                where = "the map" if body else f"the {limb.removeprefix('left_')}s of the map"
                why = f"it calls {said}" if sides.shown else f"its left joints of the {what} are on the right side"
                text = f"left and right are swapped in {where}: {why}"
            yield Finding(limb, "sides swapped", "failed", every, text)
        for role in (role for limb, roles in sides.swapped.items() if limb not in whole for role in roles):
            joint = actor.motion.skeleton.joint_names[actor.rows[role]]
            other = SIDES[role.startswith(SIDES[0])]
            text = f"left and right are swapped in the map: {joint!r} of the {what} is a joint of the {other} side"
            yield Finding(role, "sides swapped", "look" if role.endswith(_MINOR) else "failed", every, text)
        for limb, roles in sides.misnamed.items():
            if limb not in sides.swapped:
                joint = actor.motion.skeleton.joint_names[actor.rows[roles[0]]]
                side = roles[0].split("_", 1)[0]
                text = (
                    f"names of its {limb}s, such as {joint!r} of the {what}, contradict its shape, which was used:"
                    f" by the shape, this joint is {side}"
                )
                yield Finding("body", "names", "note", (), text)
        if moved and not whole and (part := turned_round(actor)):
            text = "its front points away from the toes: check which joint is which, and left and right"
            yield Finding(part, "sides swapped", "failed", every, text)


def _said_side(actor: Actor, roles: Sequence[str]) -> str:
    """Return a text about a joint whose role names the opposite side."""
    role = next((role for role in roles if "_upper_" in role), roles[0])
    side = role.split("_", 1)[0]
    joint = actor.motion.skeleton.joint_names[actor.rows[role]]
    return f"{joint!r} {side}, but toes and knees say {SIDES[side == SIDES[0]]}"


def _peaks(limb: Limb, fps: float) -> tuple[str, Bools] | None:
    """Return the level and a mask of the frames in which an angle is large for long enough; None without any."""
    if limb.limb == "head" or limb.limb.endswith("foot"):
        return None
    best: tuple[str, Bools] | None = None
    for level, (most, seconds) in zip(LEVELS[1:], _PEAK, strict=True):
        off = np.nan_to_num(limb.angles) > np.radians(most)
        for first, end in runs(off):
            if end - first < max(2.0, seconds * fps):
                off[first:end] = False
        if off.any():
            best = level, off
    return best


def _directions(figures: Figures) -> Iterator[Finding]:
    """Yield findings about limbs whose directions differ from those of the source."""
    if figures.result is None or not figures.limbs:
        if figures.source is not None:
            text = "no limb can be compared with the source: directions were not judged"
            yield Finding("body", "not mapped", "look", (), text)
        return
    compared = [limb.limb for limb in figures.limbs if limb.limb != "head"]
    if figures.whole and len(compared) < _FEW:
        named = f" ({', '.join(compared).replace('_', ' ')})" if compared else ""
        text = f"only {counted(len(compared), 'limb')} could be compared{named}: check which joint is which"
        yield Finding("body", "not mapped", "look", (), text)
    fps, turned = figures.motion.fps, figures.turned
    off: dict[str, tuple[str, Bools]] = {}
    for limb in figures.limbs:
        bars = limb.thresholds
        level = _level(limb.mean, bars)
        peaks = _peaks(limb, fps)
        if level is not None:
            off[limb.limb] = level, np.nan_to_num(limb.angles) > bars[0]
        if peaks is not None and (level is None or LEVELS.index(peaks[0]) > LEVELS.index(level)):
            off[limb.limb] = peaks
    limbs = [bone for bone in off if bone != "head" and not bone.endswith("foot")]
    mean = {limb.limb: limb for limb in figures.limbs}
    if limbs and figures.whole:
        bones = {bone: pair for bone, pair in figures.pairs.items() if bone != "head" and not bone.endswith("foot")}
        whole = whole_body(bones, figures.lines, float(np.mean([mean[bone].mean for bone in bones])))
        if whole is not None and (len(limbs) >= _MANY or "trunk" in limbs or whole[0] != "up axis"):
            cause, angle = whole
            text = {
                "up axis": f"the whole body is rotated by {degrees(angle)}: its up axis is not that of the source",
                "sides swapped": "left limbs move like the right limbs of the source, and vice versa",
                "mirrored": "it moves as a mirror image of the source",
            }[cause]
            yield Finding("body", cause, "failed", tuple(range(len(figures.motion))), text)
            return
    for limb, (angle, left) in exchanged_limbs(turned, figures.lines, figures.turn).items():
        text = (
            f"left and right {limb}s are swapped: each moves like the other one of the source ({degrees(angle)} off"
            f" now, {degrees(left)} if they are exchanged)"
        )
        yield Finding(f"{limb}s", "sides swapped", "failed", tuple(range(len(figures.motion))), text)
        off = {bone: found for bone, found in off.items() if not bone.endswith(f"er_{limb}")}
    causes: dict[str, tuple[str, float]] = {}
    for bone in off:
        if not inherited(bone, turned) or bone.replace("lower_", "upper_") not in off:
            causes[bone] = limb_cause(bone, turned, figures.result) or ("direction", 0.0)
    limits = {bone: joint for bone in causes if (joint := held_by_limit(bone, turned, figures.result, off[bone][1]))}
    for bone, (cause, _) in causes.items():  # bones below a bone that a limit holds differ too
        above = bone.replace("lower_", "upper_")
        if above in limits and cause in ("rest pose", "direction"):
            limits.setdefault(bone, limits[above])
    causes = dict.fromkeys(limits, ("limits", 0.0)) | {k: v for k, v in causes.items() if k not in limits}
    far = [bone for bone, (level, _) in off.items() if level == "failed"]
    if "trunk" in far and len(far) > _MANY and not limits:  # one cause for all
        text = (
            f"trunk and limbs are far off the source ({', '.join(far).replace('_', ' ')}): a rest pose or an up axis is"
            " wrong"
        )
        frames = np.any([off[bone][1] for bone in far], axis=0)
        yield Finding("body", "rest pose", "failed", _frames(frames), text)
        return
    for bone, (cause, angle) in causes.items():
        level, frames = off[bone]
        limb = mean[bone]
        what = f"{degrees(limb.mean)} off its source on average, {degrees(limb.largest)} in frame {limb.frame}"
        if bone.endswith("foot") and not np.isfinite(limb.angles).all():
            what = f"heading {what}"
        why = {
            "sides swapped": "; it moves like the other side of the source",
            "mirrored": "; it moves as a mirror image",
            "rest pose": f"; a constant {degrees(angle)}, so its rest pose is off",
            "limits": f"; the limits of {limits.get(bone, '')} prevent a better match",
        }.get(cause, "")
        yield Finding(bone, cause, level, _frames(frames), what + why)


def _fingers(figures: Figures) -> Iterator[Finding]:
    """Yield findings about hands whose finger directions in the palm's frame differ from those of the source."""
    found = {limb.limb: limb for limb in figures.fingers}
    for side, (source, result) in figures.hands.items():
        limbs = [found[f"{side}_{name}"] for name in result.fingers if f"{side}_{name}" in found]
        fingers = [limb for limb in limbs if not limb.limb.endswith("thumb")]
        thumbs = [limb for limb in limbs if limb.limb.endswith("thumb")]
        levels: list[str] = []
        off: list[Limb] = []
        for group, bars in ((fingers, _FINGERS), (thumbs, _THUMB)):
            if group and (level := _level(np.degrees(np.mean([limb.mean for limb in group])), bars)) is not None:
                levels.append(level)
                off += [limb for limb in group if np.degrees(limb.mean) > bars[0]] or group
        if not off:
            continue
        angles = ", ".join(f"{limb.limb.split('_', 1)[1]} {degrees(limb.mean)}" for limb in off)
        text = f"fingers are off their source in the frame of the palm: {angles}"
        text += f" (fingers within {_FINGERS[0]:.0f}° on average, a thumb within {_THUMB[0]:.0f}° are fine)"
        whys = [_why_off(figures, source, result, limb.limb.split("_", 1)[1]) for limb in off]
        text += "".join(f"; {why}" for why in dict.fromkeys(whys) if why)
        frames = np.any([limb.angles > np.radians(_FINGERS[0]) for limb in off], axis=0)
        yield Finding(f"{side}_hand", "fingers", max(levels, key=LEVELS.index), _frames(frames), text)


def _why_off(figures: Figures, source: HandBones, result: HandBones, name: str) -> str:
    """Return why a finger cannot take the direction of the source's finger; "" if its joints do not explain this."""
    skeleton, finger = figures.motion.skeleton, result.fingers[name]
    rows = [row for group in finger.groups for row in group]
    held = [row for row in rows if skeleton.joint_names[row] in figures.at_limits]
    held = [row for row in held if float(figures.at_limits[skeleton.joint_names[row]].mean()) > _AT_LIMIT]
    if held:
        return f"limits of {', '.join(skeleton.joint_names[row] for row in held)} hold it"
    if all(len(group) == 1 for group in finger.groups) and all(skeleton.joints[row].kind is Kind.HINGE for row in rows):
        return "its joints bend it, but do not move it sideways"
    mine, theirs = len(finger.rows), len(source.fingers[name].rows)
    return f"it has {counted(mine, 'segment')}, that of the source {theirs}" if mine != theirs else ""


def _upside_down(figures: Figures) -> Iterator[Finding]:
    """Yield findings about bodies that stand on their heads, and about worlds that are tilted."""
    if figures.result is None or not figures.whole:
        return
    every = tuple(range(len(figures.motion)))
    if figures.origin is not None and figures.source is not None:
        up = figures.origin.up
        name, text = axis_name(up), ""
        leans = between(up, axis_vector(name))
        if leans > 1.0:
            text = f"the source leans by {leans:.0f}° in all frames without falling: its world may be tilted"
        elif not figures.source.skeleton.up and max(up[1], up[2]) < 0.9:  # files have y or z up
            text = f"the source stands along {name}, which files do not use as up axis: the whole clip may be rotated"
        if text:
            yield Finding("body", "up axis", "look", every, text)
    trunks = [limb.mean for limb in figures.limbs if limb.limb == "trunk"]
    leans = (
        0.0 if trunks and trunks[0] < np.radians(MEAN["trunk"][0]) else lean(figures.result)
    )  # a trunk that agrees with the source's leans as much as the source
    if leans and (figures.origin is None or not lean(figures.origin)):
        text = f"it leans by {leans:.0f}° in all frames, without falling: its world may be tilted"
        yield Finding("body", "up axis", "look", every, text)
    trunk = figures.result.bone("trunk")
    if trunk is not None and float(np.mean(down := trunk[:, 2] < -0.3)) > _DOWN:
        text = f"the trunk is upside down in {100.0 * float(np.mean(down)):.0f} % of the frames"
        yield Finding("body", "upside down", "look", _frames(down), text)


def _short_limbs(figures: Figures) -> Iterator[Finding]:
    """Yield findings about limb bones with nearly no length, as in files that have lost their scale."""
    every = tuple(range(len(figures.motion)))
    for actor, what in ((figures.origin, "source"), (figures.result, "result")):
        if actor is None:
            continue
        known = ((bone, actor.length(bone)) for bone in BONES if bone.endswith(_OF_LIMBS))
        lengths = {bone: length for bone, length in known if np.isfinite(length)}
        longest = max(lengths, key=lambda bone: lengths[bone], default="")
        short = [bone for bone, length in lengths.items() if length < _SHORT * lengths[longest]]
        if short:
            skeleton = actor.motion.skeleton
            unit = skeleton.meters_per_unit
            most = length_text(max(lengths[bone] for bone in short), unit)
            text = (
                f"the {what} has bones of nearly no length: {', '.join(short)} are {most} long at most, and {longest}"
                f" {length_text(lengths[longest], unit)}; a scale in its file may be lost"
            )
            yield Finding(short[0], "scale", "look", every, text)


def _scales(figures: Figures) -> Iterator[Finding]:
    """Yield findings about paths that are too long or too short."""
    if not figures.whole:
        return
    every = tuple(range(len(figures.motion)))
    for actor, what in ((figures.origin, "source"), (figures.result, "result")):
        metres = None if actor is None else actor.motion.skeleton.meters_per_unit
        if actor is not None and metres and not _LEG[0] < actor.leg * metres < _LEG[1]:
            text = f"a leg of the {what} is {actor.leg * metres:.3g} m long by the unit of its file"
            yield Finding("body", "scale", "look", every, text)
        if actor is None or len(actor.motion) < 3:
            continue
        usual, glide = speeds(actor)
        glides = glide[0] > _GLIDES[0] and glide[1] < _GLIDES[1]
        if usual > _FAST or glides:
            text = f"the hips of the {what} move at {usual if usual > _FAST else glide[0]:.1f} leg lengths a second"
            text += " and the feet glide with them" if usual <= _FAST else ""
            level = "failed" if usual > _FAST else "look"
            yield Finding("hips", "scale", level, every, f"{text}: path and body may differ in unit")
            return
        if on_the_spot(actor) > _ON_THE_SPOT[1]:
            text = f"the {what} walks on the spot, where feet slide: its path was not judged"
            yield Finding("body", "in place", "note", (), text)
            return
        factor = path_factor(actor)
        if factor is not None and factor > _PATH:
            text = (
                f"the {what} walks on the spot, or its path and body differ in unit:"
                f" the path fits the steps if it is multiplied by {factor:.2g}"
            )
            yield Finding("hips", "scale", "look", every, text)
            return
    if figures.paths is None:
        return
    source, result = figures.paths
    ratio = max(result, _STILL) / max(source, _STILL)
    level = _level(max(ratio, 1.0 / ratio), _SCALE)
    if level is not None:
        text = f"its path is {result / max(source, 1e-9):.3g} times that of the source, in leg lengths"
        yield Finding("hips", "scale", level, every, text)


def _crossings(figures: Figures) -> Iterator[Finding]:
    """Yield findings about crossed legs, and about limbs that penetrate each other or the trunk."""
    if figures.crossed is not None:
        share = float(figures.crossed.mean())
        level = _level(share, _CROSSED)
        if level is not None and int(figures.crossed.sum()) > 1:
            source_too = "" if figures.origin is None else ", those of the source are not"
            level = "look" if figures.origin is None else level
            text = f"the ankles are crossed in {100.0 * share:.0f} % of the frames{source_too}"
            yield Finding("legs", "crossed", level, _frames(figures.crossed), text)
    for one in figures.overlaps:
        deep, source_too = one.depth > one.source + _DEEPER, ""
        least = _OVERLAPS * len(deep)
        if "trunk" in one.limbs:
            least = min(least, _INSIDE[1] * figures.motion.fps)
            inside = np.minimum(one.depth, one.source) > _INSIDE[0]
            source_too = "" if deep.any() else ", as that of the source"
            deep = deep | inside
        if int(deep.sum()) > max(least, min(1, len(deep) - 1)):
            other = one.limbs[1].replace("_", " ")
            text = f"goes through the {other} in {100.0 * float(deep.mean()):.0f} % of the frames{source_too}"
            yield Finding(one.limbs[0], "overlap", "look", _frames(deep), text)


def _through(figures: Figures) -> Iterator[Finding]:
    """Yield findings about limbs whose shapes penetrate the body or each other.

    Without a source, nothing shows whether limbs should touch. So only deep and lasting overlaps are reported.
    """
    leg = 0.0 if figures.result is None else figures.result.leg
    for one in figures.inside:
        sourced = figures.origin is not None
        deep = one.depth > one.source + (_THROUGH if sourced else _DEEPER) * leg
        if int(deep.sum()) <= (0 if sourced else _OVERLAPS * len(deep)):
            continue
        size = length_text(float(one.depth[deep].max()), figures.motion.skeleton.meters_per_unit)
        links = " and ".join(map(str, one.links))
        source_too = (
            ""
            if not sourced
            else ", where those of the source are apart"
            if not one.source[deep].any()
            else (", deeper than in the source")
        )
        text = f"is up to {size} inside the {one.parts[1].replace('_', ' ')} ({links}){source_too}"
        yield Finding(one.parts[0], "overlap", "look", _frames(deep), text)


def _unchecked(figures: Figures) -> Iterator[Finding]:
    """Yield a note about links whose overlaps cannot be checked, because they have no known shape."""
    skeleton = figures.motion.skeleton
    if skeleton.shapes and (unseen := unchecked_links(skeleton)):
        text = f"overlaps are not checked for links without known shapes: {listed(unseen)}"
        yield Finding("body", "overlap", "note", (), text)


def _end_jumps(figures: Figures) -> set[int]:
    """Return the frames near both ends in which the whole source jumps, to or from a pose such as a T-pose."""
    found = [frame for frames in figures.jumps.shared.values() for frame in set(frames)]
    last = len(figures.motion) - _FIRST
    return {frame for frame in found if found.count(frame) >= _MANY and (frame <= _FIRST or frame >= last)}


def _jumps(figures: Figures) -> Iterator[Finding]:
    """Yield findings about jumps. If many parts jump at once, there is one finding about the body.

    Jumps of the result are ignored in frames near the ends in which the whole source jumps, for example from a T-pose.
    """
    ends = _end_jumps(figures)
    limbs = {step.joint: step.limb or step.joint for step in figures.steps} | {PATH: PATH}
    by_frame: dict[int, list[str]] = {}
    for joint, jumped in figures.jumps.own.items():
        for frame in {*jumped} - ends:
            by_frame.setdefault(frame, []).append(limbs[joint])
    by_limb: dict[str, list[int]] = {}
    for frame, parts in by_frame.items():
        for limb in ["body"] if len(set(parts)) >= _MANY else dict.fromkeys(parts):
            by_limb.setdefault(limb, []).append(frame)
    for limb, frames in by_limb.items():
        if limb == PATH and figures.result is not None:
            steps = np.linalg.norm(np.diff(figures.result.hips, axis=0), axis=1)
            size = length_text(float(steps[np.array(frames) - 1].max()), figures.motion.skeleton.meters_per_unit)
        else:
            size = degrees(max(
                (float(step.angles[frame - 1]) for step in figures.steps for frame in frames
                 if limb in ("body", step.limb, step.joint)), default=0.0,
            ))  # fmt: skip
        text = f"jumps by up to {size} in one frame" + (", which the source does not" if figures.origin else "")
        yield Finding("hips" if limb == PATH else limb, "jump", "look", tuple(sorted(frames)), text)
    if ends:
        text = "the clip begins or ends with another pose, such as a T-pose, and jumps from or to it"
        yield Finding("body", "calibration pose", "note", tuple(sorted(ends)), text)
    inside = {(role, frame) for role, frames in figures.jumps.shared.items() for frame in frames if frame not in ends}
    if inside:
        roles = sorted({role for role, _ in inside})
        text = "the source jumps here, and the result with it"
        frames = tuple(sorted({frame for _, frame in inside}))
        yield Finding(roles[0] if len(roles) < _MANY else "body", "jump", "look", frames, text)


def _steps(figures: Figures) -> Iterator[Finding]:
    """Yield findings about joints that rotate farther in one frame than their source."""
    for step in figures.steps:
        if step.source is None or not len(step.angles):
            continue
        padded = np.pad(step.source, 1, mode="edge")
        near = np.max([padded[:-2], padded[1:-1], padded[2:]], axis=0)
        ends = np.isin(np.arange(1, len(step.angles) + 1), [*_end_jumps(figures)])
        levels = [(step.angles > times * near + np.radians(more)) & ~ends for times, more in _STEP]
        if not levels[0].any():
            continue
        level = "failed" if levels[1].any() else "look"
        at = int(np.argmax(np.where(levels[0], step.angles, 0.0)))
        text = (
            f"{step.joint} turns by {degrees(float(step.angles[at]))} in one frame,"
            f" its source by {degrees(float(near[at]))}"
        )
        yield Finding(step.limb, "step", level, tuple((np.flatnonzero(levels[0]) + 1).tolist()), text)


def _feet(figures: Figures) -> Iterator[Finding]:
    """Yield findings about feet that slide, hover or sink, or whose contacts differ from the source's."""
    fps, count = figures.motion.fps, len(figures.motion)
    alone = figures.result if figures.origin is None and figures.feet else None
    shorter = 0.0 if alone is None else on_the_spot(alone)
    low = min((foot.ground for foot in figures.feet), default=0.0)
    source_low = min((foot.source_ground for foot in figures.feet), default=0.0)
    for foot in figures.feet:
        sourced = figures.origin is not None
        frames = np.array([one.end - 1 - one.first for one in foot.held])
        rates = np.array([one.excess for one in foot.held]) * fps / np.maximum(frames, 1)
        level = None
        if int(frames.sum()) > _STANDS * fps:
            own, other = (
                float(np.linalg.norm(np.sum(ways, axis=0))) * fps / float(frames.sum())
                for ways in ([one.way for one in foot.held], [one.source for one in foot.held])
            )
            level = _level(float(np.median(np.repeat(rates, frames))), _SLIDE) or _level(own - other, _DRIFT)
        if level is not None and not sourced:
            level = "look"  # feet may slide on purpose
        slips = [one for one in foot.held if one.excess > _SLIP]
        if shorter > _ON_THE_SPOT[1]:
            level, slips = None, []
        if level is not None or slips:
            bad = slips if level is None else foot.held
            text = f"slides at {foot.slide:.2g} leg lengths a second while it stands"
            text += f", that of the source at {foot.source_slide:.2g}" if sourced else ""
            text += ": it walks on the spot, where feet slide" if shorter > _ON_THE_SPOT[0] else ""
            yield Finding(foot.role, "slide", level or "look", _frames(held_frames(bad, count)), text)
        apart = abs((foot.ground - low) - (foot.source_ground - source_low)) if sourced else 0.0
        off = max(foot.hover, apart)
        level = _level(off, _HOVER)
        if level is not None:
            text = f"is {off:.2g} leg lengths off the ground while it stands"
            high = (
                foot.source_contact & (np.abs(foot.height) > _HOVER[0]) if foot.hover >= apart else foot.source_contact
            )
            yield Finding(foot.role, "height", level, _frames(high), text)
        sunk = foot.depths > np.maximum(foot.source_depths, 0.0) + _SINKS[not sourced]
        if level is None and float(sunk.mean()) > _OFTEN and int(sunk.sum()) > 1:
            source_too = ", and the source's does not" if sourced else ""
            text = f"its sole is up to {float(foot.depths[sunk].max()):.2g} leg lengths below the floor{source_too}"
            yield Finding(foot.role, "height", "look", _frames(sunk), text)
        agreed = foot.agreement(fps) if sourced else None
        if agreed is not None and min(agreed) < _RECALL:
            text = f"precision {agreed[0]:.2f} and recall {agreed[1]:.2f} of its contacts against those of the source"
            yield Finding(foot.role, "contacts", "look", _frames(foot.contact != foot.source_contact), text)


def _limits(figures: Figures) -> Iterator[Finding]:
    """Yield notes about joints that are at a limit in most frames."""
    limbs = {step.joint: step.limb or step.joint for step in figures.steps}
    for joint, at in figures.at_limits.items():
        if float(at.mean()) > _AT_LIMIT and at.any():
            text = f"{joint} is at a limit in {100.0 * float(at.mean()):.0f} % of the frames"
            yield Finding(limbs.get(joint, joint), "limits", "note", _frames(at), text)


def _unmapped(figures: Figures) -> Iterator[Finding]:
    """Yield findings about parts that the joint map does not name.

    If the hips are mapped, the level is "look" for a leg that both bodies have, and for an arm that both have if the
    other arm is mapped. It is also "look" for a leg that one body lacks if the other leg is mapped. All other parts are
    listed in a note.
    """
    if figures.source is None or figures.result is None:
        return
    others: list[str] = []
    fingers: dict[str, list[str]] = {}
    for role in figures.unmapped:
        side, _, part = role.partition("_")
        lonely = side in SIDES and f"{SIDES[1 - SIDES.index(side)]}_{part}" in figures.mapped
        stands = side in SIDES and part in ("upper_leg", "lower_leg")
        limb = stands or (lonely and part in ("upper_arm", "lower_arm"))
        have = limb and figures.have(role)
        if have and "hips" in figures.mapped:
            text = "is not mapped, although the " + ("same part of the other side is" if lonely else "hips are")
            yield Finding(role, "not mapped", "look", (), text)
        elif stands and lonely and not have and (part == "upper_leg" or f"{side}_upper_leg" in figures.mapped):
            text = "one of the bodies does not have it: the other leg moves below hips that do not move"
            yield Finding(role, "not mapped", "look", (), text)
        elif part[-1:].isdigit():
            finger = f"{side}_{part[:-2]}"
            if not any(one.startswith(finger) for one in figures.mapped):
                fingers.setdefault(side, []).append(finger.replace("_", " "))
        else:
            others.append(role.replace("_", " "))
    for side, found in fingers.items():
        some = any(one.startswith(side) and one[-1].isdigit() for one in figures.mapped)
        others += dict.fromkeys(found) if some else [f"{side} fingers"]
    if others:
        yield Finding("body", "not mapped", "note", (), f"not mapped: {', '.join(dict.fromkeys(others))}")


def _of_parts(figures: Figures) -> Iterator[Finding]:
    """Yield findings that say what was judged if the bodies are not whole."""
    if figures.whole:
        yield from _ends_of_legs(figures)
        return
    if figures.source is None:
        seen = "jumps and limits of its joints"
        yield Finding("body", "part", "note", (), f"no body with hips and two legs: only {seen} were judged")
    elif figures.limbs:
        seen = ", ".join(limb.limb.replace("_", " ") for limb in figures.limbs)
        text = f"only a part is compared, relative to its parent joint: {seen}; path, feet and balance are not"
        yield Finding("body", "part", "note", (), text)
    else:
        yield Finding("body", "part", "look", (), "no bone of it could be compared with its source")


def _ends_of_legs(figures: Figures) -> Iterator[Finding]:
    """Yield findings about legs that end at the knee although the source's legs have shins."""
    result, source = figures.result, figures.origin
    if result is None or source is None:
        return
    for shin in (f"{side}_lower_leg" for side in SIDES):
        if result.ends_at_knee(shin) and source.end_row(shin) is not None:
            text = (
                "has no end: nothing is below the knee, so that the body stands on its knees. Add a joint at the ankle"
            )
            yield Finding(shin, "part", "look", (), text)


def _four_legs(figures: Figures) -> Iterator[Finding]:
    """Yield a finding if one body stands on four legs and the other on two."""
    if figures.origin is None or figures.result is None:
        return
    four = [
        stands_on_four(actor.motion.skeleton, {**actor.motion.skeleton.role_rows, **actor.rows})
        for actor in (figures.origin, figures.result)
    ]
    if four[0] != four[1]:
        names = ["the source", "the result"] if four[0] else ["the result", "the source"]
        text = f"at rest, {names[0]} stands on four legs and {names[1]} on two: poses mean different things for them"
        yield Finding("body", "four legs", "look", tuple(range(len(figures.motion))), text)
