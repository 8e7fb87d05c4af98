"""``retarget``: transfer a motion to another body, character or robot."""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, Unpack, cast

import numpy as np

from synovia.arguments import Progress, check_kind, takes
from synovia.bodies.footing import Foothold, standing_lines
from synovia.clips.ends import find_ends
from synovia.compiling import compile_soon
from synovia.errors import InputError
from synovia.ik.solution import length_text
from synovia.model import Kind, Skeleton
from synovia.model.anatomy.contacts import Spans
from synovia.model.anatomy.feet import frames_text, runs
from synovia.model.anatomy.names import SIDES
from synovia.model.clip_tools.path import free_roots
from synovia.model.finding import Finding
from synovia.model.geometry import Array, axis_name, same_side
from synovia.model.motion import InPlace, Motion
from synovia.model.pose import world_frames
from synovia.model.shapes.over_time import TooNear
from synovia.model.shapes.world import World
from synovia.retargeting.alignment import Part
from synovia.retargeting.body import Body
from synovia.retargeting.bones import steadied
from synovia.retargeting.clearance import apart_of, pairs_too_near
from synovia.retargeting.feet import (
    MISSED,
    distances_off,
    on_world,
    over_world,
    rise_of,
    soles_raised,
    solve_feet,
    stand_frames,
)
from synovia.retargeting.follower import Closer, PoseFollower, hurried
from synovia.retargeting.judging import Judgement, aligned, judge
from synovia.retargeting.judging.findings import forced_by_loops, hurried_by_loops, uncertain_rests
from synovia.retargeting.limbs import Follower, keep_velocity, largest_steps
from synovia.retargeting.options import RetargetOptions, checked_options
from synovia.retargeting.pairing import Pairing, paired
from synovia.retargeting.planter import Planter
from synovia.retargeting.props import Prop, hands_apart, keep_props, props_held
from synovia.retargeting.rest_pose import CERTAIN, RestPose, Stance
from synovia.retargeting.root_motion import (
    OnFloor,
    RootMover,
    root_bone,
    without_added,
)
from synovia.text import Report, counted, plain
from synovia.tracking.postprocessing import joint_velocities

_KERNELS: Final = "tree.orient.orient", "tree.bends.bend_shares", "hierarchy.full_body.full_body"  # of a body with feet
_AS_FAST: Final = 0.999  # fraction of its velocity limit: a faster hinge counts as held back by the limit
_OFTEN: Final = 0.02  # share of frames in which a hinge is held back, above which this is reported
_SOURCE: Final = "source: "  # prefix for notes of the source clip among the notes of the result
_NAMED: Final = 5  # largest number of hinges that are listed


@dataclass(frozen=True, eq=False)
class Retargeted:
    """A motion transferred to another body, with a report.

    Args:
        motion: The motion of the target; its skeleton has a free root if the base moves.
        parts: The matched parts, with the rotations between both rest poses.
        source: The body whose motion was transferred.
        target: The body that follows it.
        stance: How the source stands: its rest pose with certainty, and its upward direction.
        target_rest: The target's rest pose, with its certainty.
        scale: Length of the target's legs divided by that of the source's; it scales the path. 1 for a fixed base.
        contacts: Contacts of each foot, (first frame, end), by role.
        missed_frames: Frames in which a foot misses its target.
        worst: Largest distance of a foot from its target, length units of the target.
        original: The motion that was transferred.
        velocity: Highest velocity of each joint of the target, (m,), radians per second; infinite where none is known.
        moves: Whether the base of the target moves; if not, parts move relative to it.
        carried: Roles of the parts that the judgement compares: those of the map, or all that both bodies have.
        added: Number of joints that were added above the root of the given target.
        clearance: Distance that limbs keep from each other, length units; None if they may overlap.
        world: What the feet stand on, in the unit of the target; None for a level floor.
        footholds: Footholds of each foot on the world, one for each contact of ankle or toes, by role; empty on level
            ground.
        forced: Rotation of parts by loops of the target that had to close, largest in each frame, (T,), radians.
        props: Props that the source holds with both hands; the target's hands keep a distance too.
        too_fast: Joints, such as rods, that loops of the target move faster than their velocity limits, by name: ratio
            of velocity to limit in each frame, (T,).

    Example:
        >>> import synovia as sy
        >>> body = sy.bundled("humanoid").with_root("free")
        >>> still = sy.Motion(body, [body.rest_q] * 30, 30.0)
        >>> answer = sy.retarget(still, sy.bundled("humanoid"))
        >>> answer.verdict, len(answer.motion)
        ('good', 30)
    """

    motion: Motion
    parts: tuple[Part, ...]
    source: Body
    target: Body
    stance: Stance
    target_rest: RestPose
    scale: float
    contacts: Mapping[str, Spans]
    missed_frames: tuple[int, ...]
    worst: float
    original: Motion
    velocity: Array
    moves: bool = True
    carried: Collection[str] = ()
    added: int = 0
    clearance: float | None = None
    world: World | None = None
    footholds: Mapping[str, tuple[Foothold, ...]] = field(default_factory=dict[str, tuple[Foothold, ...]])
    forced: Array = field(default_factory=lambda: np.zeros(0))
    too_fast: Mapping[str, Array] = field(default_factory=dict[str, Array])
    props: tuple[Prop, ...] = ()

    def __getitem__(self, frames: slice) -> Retargeted:
        """Return a part of the motion, with its contacts and misses and the same part of the original.

        Args:
            frames: A slice, as for ``motion``. ``worst`` still describes the whole motion.
        """
        motion, kept = self.motion[frames], range(len(self.motion))[frames]
        missed = frozenset(self.missed_frames)
        contacts: dict[str, Spans] = {}
        for role, spans in self.contacts.items():
            standing = np.zeros(len(self.motion), bool)
            for first, end in spans:
                standing[first:end] = True
            contacts[role] = runs(standing[frames])
        lost = tuple(k for k, frame in enumerate(kept) if frame in missed)
        part = replace(self, motion=motion, original=self.original[frames], contacts=contacts, missed_frames=lost)
        fast = {name: ratio[frames] for name, ratio in self.too_fast.items() if ratio[frames].max(initial=0.0) > 1.0}
        return replace(part, forced=self.forced[frames], too_fast=fast, props=self._props_in(kept))

    def _props_in(self, kept: range) -> tuple[Prop, ...]:
        """Return the props that are held in some of the given frames, with spans in these frames."""
        found: list[Prop] = []
        for prop in self.props:
            inside = [k for k, frame in enumerate(kept) if prop.span[0] <= frame < prop.span[1]]
            if inside:
                found.append(replace(prop, span=(inside[0], inside[-1] + 1)))
        return tuple(found)

    @cached_property
    def held_back(self) -> dict[str, float]:
        """For each joint, the share of steps in which its hinge is as fast as its velocity limit allows, largest first.

        Such hinges lag behind the source, and feet may miss their places.
        """
        skeleton, found = self.motion.skeleton, dict[str, float]()
        for row in np.flatnonzero(np.isfinite(self.velocity)).tolist():
            if skeleton.joints[row].kind is Kind.HINGE and len(self.motion) > 1:
                steps = np.abs(np.diff(self.motion.q[:, skeleton.q_slice(row).start])) * self.motion.fps
                found[skeleton.joint_names[row]] = float((steps >= _AS_FAST * self.velocity[row]).mean())
        shares = sorted(found.items(), key=lambda item: -item[1])
        return {name: share for name, share in shares if share > 0.0}

    @cached_property
    def judgement(self) -> Judgement:
        """The judgement of the motion against its original; computed when it is first used."""
        shared = {
            role: (row, self.target.roles[role]) for role, row in self.source.roles.items() if role in self.carried
        }
        named = self.stance.up.name if self.stance.up.given else None
        judgement = judge(
            self.motion, self.original, shared, source_up=named, missed=self.missed_frames, world=self.world
        )
        found = [*uncertain_rests(judgement.findings, self.stance.rest, self.target_rest if self.moves else None)]
        if self.motion.skeleton.loops:
            found += [*forced_by_loops(self.forced), *hurried_by_loops(self.too_fast)]
        for prop in self.props:
            lost, off = prop.lost(self.target, self.motion.frames())
            if lost:
                unit = self.target.skeleton.meters_per_unit
                text = (
                    f"the hands hold one prop, {length_text(prop.distance, unit)} apart, but differ from this by up to"
                )
                found.append(Finding("body", "prop", "look", lost, f"{text} {length_text(off, unit)}"))
        if self.clearance and (near := self._nearness()):
            frames = tuple(sorted({frame for one in self.too_near for frame in one.frames}))
            found.append(Finding("body", "overlap", "look", frames, *near))
        return judgement.with_findings(found)

    @cached_property
    def too_near(self) -> tuple[TooNear, ...]:
        """Links of different limbs that could not be kept apart, the nearest first; empty without a clearance."""
        if self.clearance is None:
            return ()
        return tuple(pairs_too_near(self.target, np.array(self.motion.q), self.clearance))

    @cached_property
    def calibration(self) -> tuple[str, ...]:
        """A sentence about each end of the original that has calibration frames, such as a T-pose."""
        return find_ends(self.original).notes

    @property
    def verdict(self) -> str:
        """``"good"``, ``"look"`` (look at the motion before you use it) or ``"failed"``."""
        return self.judgement.verdict

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is wrong or notable about the motion, the worst first."""
        return self.judgement.findings

    def __repr__(self) -> str:
        """Return a text with the motion, the number of matched parts, and the number of missed frames."""
        missed = f"{counted(len(self.missed_frames), 'frame')} missed"
        return f"Retargeted({self.motion!r}, {counted(len(self.parts), 'part')}, {missed})"

    def joint_map(self) -> dict[str, tuple[str | int, str | int]]:
        """Return the matched joints, (source, target) by role, in the form that ``retarget`` accepts.

        A joint is a name or, if several joints share the name, a row of the given skeleton.
        """
        out: dict[str, tuple[str | int, str | int]] = {}
        for part in self.parts:
            one, two = self.source.skeleton.address(part.source), self.target.skeleton.address(part.target)
            out[part.role] = one, two - self.added if isinstance(two, int) else two
        return out

    def report(self) -> Report:
        """Return the matched parts, the scale, contacts, misses, and the judgement of the motion."""
        bodies = self.source.skeleton.frame_names, self.target.skeleton.frame_names
        rows = [
            (part.role, bodies[0][part.source], bodies[1][part.target], f"{np.degrees(part.angle):.0f}°")
            for part in self.parts
        ]
        lines = aligned([("part", "source", "target", "rest poses differ"), *rows])
        lines += [f"calibration: {note}" for note in self.calibration]
        lines += self.stance.report()
        if self.target_rest.name != "file" or self.target_rest.certainty < CERTAIN:
            pose = self.target_rest
            doubt = f": {pose.doubt}" if pose.certainty < CERTAIN else ""
            lines.append(f"rest pose of the target: {pose.name} (certainty {100.0 * pose.certainty:.0f} %{doubt})")
        scale = f"scale {self.scale:.4g} (length of the legs)" if self.moves else "the base stays where it is"
        lines.append(f"{scale}, {counted(len(self.motion), 'frame')} at {self.motion.fps:g} fps")
        for role, spans in self.contacts.items():
            lines.append(f"{role}: {counted(len(spans), 'contact')}, {counted(sum(b - a for a, b in spans), 'frame')}")
        if slow := [(name, share) for name, share in self.held_back.items() if share >= _OFTEN][:_NAMED]:
            names = self.target.skeleton.joint_names
            named = [f"{name} ({self.velocity[names.index(name)]:.3g} rad/s) in {100.0 * share:.0f} %"
                    for name, share in slow]  # fmt: skip
            lines.append(
                f"at their velocity limits, so that limbs lag: {', '.join(named)} of the frames; velocity= sets others"
            )
        unit = " m" if self.target.skeleton.meters_per_unit == 1.0 else ""
        far = f"feet within {self.worst:.2g}{unit} of their targets"
        if missed := self.missed_frames:
            more = ", ..." if len(missed) > 10 else ""
            far = f"{far}; {counted(len(missed), 'frame')} missed: {', '.join(map(str, missed[:10]))}{more}"
        feet = any(part.role.endswith("_foot") for part in self.parts)
        lines += [far] if self.moves and feet else []
        lines += standing_lines([*self.footholds.values()], self.missed_frames)
        lines += self._nearness()
        judged = self.judgement.report()
        return Report([*lines, judged], {**self._facts(), **judged.facts})

    def _facts(self) -> dict[str, Any]:
        """Return everything but the judgement as plain values; lengths are in the unit of the target's file."""
        names, stance = [body.skeleton.frame_names for body in (self.source, self.target)], self.stance
        return {
            "source": self.source.skeleton.name, "target": self.target.skeleton.name,
            "frames": len(self.motion), "notes": list(self.motion.notes), "fps": self.motion.fps, "scale": self.scale,
            "rest": {
                "pose": stance.rest.name, "certainty": stance.rest.certainty, "checks_deg": dict(stance.rest.checks),
                "considered": {pose.name: pose.certainty for pose in stance.considered},
            },
            "up": {
                "axis": stance.up.name, "certainty": stance.up.certainty, "given": stance.up.given,
                "tilt_deg": stance.up.tilt,
            },
            "facing": stance.forward, "sides_exchanged": stance.exchanged, "path_scale": stance.path_scale,
            "target_rest": {"pose": self.target_rest.name, "certainty": self.target_rest.certainty},
            "parts": [
                {
                    "part": part.role, "source": names[0][part.source], "target": names[1][part.target],
                    "rest_poses_differ_deg": float(np.degrees(part.angle)),
                }
                for part in self.parts
            ],
            "contacts": plain(self.contacts), "missed": list(self.missed_frames), "worst": self.worst,
            "clearance": self.clearance,
            "footholds": {
                role: [plain(hold, "obstacle", "height", "normal", "share", "moved") for hold in holds]
                for role, holds in self.footholds.items()
            },
            "too_near": plain(self.too_near),
        }  # fmt: skip

    def _nearness(self) -> list[str]:
        """Return a line about links that could not be kept apart; an empty list if all could."""
        unit, listed_pairs = self.target.skeleton.meters_per_unit, list[str]()
        for one in self.too_near[:_NAMED]:
            size = f"{length_text(abs(one.distance), unit)} {'inside' if one.distance < 0.0 else 'apart'}"
            listed_pairs.append(f"{one.pair[0]} and {one.pair[1]} ({size}, {frames_text(one.frames)})")
        more = f" and {len(self.too_near) - _NAMED} more pairs" if len(self.too_near) > _NAMED else ""
        return [f"not kept apart: {', '.join(listed_pairs)}{more}"] if listed_pairs else []


@takes(RetargetOptions)
def retarget(
    motion: Motion,
    skeleton: Skeleton | Motion,
    joint_map: Mapping[str, tuple[Any, Any]] | None = None,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
    **options: Unpack[RetargetOptions],
) -> Retargeted:
    """Transfer a motion to another body, character or robot, within its limits.

    Joints are matched by roles, names and shape. Each matched part of the target rotates as that of the source,
    relative to aligned rest poses. Spines and necks with another number of joints share the bend; joints along and
    next to the limbs follow, too. Arms of hinges follow the directions of upper arm and forearm, in all frames at once;
    no hinge turns much farther in a frame than the source's joint, or faster than its velocity limit. The path of the
    hips is scaled by the length of the legs. Finally the feet are corrected: they do not move during a contact, and
    they stand on the floor of the target (height 0). This changes the pose as little as possible and keeps the hands in
    place. Where soles would be below the floor, the body rises, feet turn level, and toes bend up.

    If the target is built like the source, with bones in the same directions at rest, it takes the rest pose that is
    found for the source. If its legs also have the same lengths relative to its size, its feet are where the source has
    them.

    Fingers point like those of the source in the frame of the palm (``Hand.frame``), whatever the rest poses of both
    hands are, and bend about their own axes. A finger that the source lacks follows its neighbour. A finger with
    another number of segments follows the same fractions of its length.

    If the target has shapes (``skeleton.shapes``; ``sy.with_shapes`` makes them), its limbs do not pass through its
    body. Where shapes of different limbs, or of a limb and the trunk, overlap, arms and legs move out of each other, to
    the distance ``clearance``. With 0, they touch: hands that clap or rest on the hips in the source still do. Their
    joints stay as near to the transferred pose as this permits, and leave and return within 0.2 s. Trunk and head
    stay. So do feet that stand; if these overlap, they stand farther apart. Legs come first, and arms move out of
    their way. ``too_near`` lists links that could not be kept apart. Pairs that ``sy.shapes.self_pairs`` leaves out,
    and links of one limb, such as fingers, are not kept apart.

    With a ``world``, the feet stand on what is below them, and on the floor (height 0) where no obstacle is. The sole
    of a foot lies on a step or along a ramp. A foot of which less than 60 % would be on a step moves to where it is, by
    the shortest way, of at most half its length. A surface that is more than 60 % of a leg above the ground of the
    contact before is a wall or a ceiling, and no step. Between contacts, feet clear the edges of steps. The body
    rises and sinks smoothly with its feet, as far as its legs permit. ``footholds`` says where feet stand. The world is
    in the file of the target; ``clearance`` does not keep limbs apart from it.

    If the target has loops (``skeleton.loops``), they are closed in each frame: joints without a role, such as rods,
    follow the others. If loops do not allow the transferred pose, other joints change too, and a finding says how far.
    Another finding names joints that must exceed their velocity limits to close loops.

    If a body has no legs, such as a torso on wheels or a single arm, or if the joint map has no hips, the base of the
    target stays where it is. Then the parts move relative to the joint that carries them: the trunk relative to the
    hips, arms without a trunk relative to the chest.

    Args:
        motion: The motion.
        skeleton: The target body; a free joint is added above its root if it has none and its base moves. If its file
            has no rest pose, give a clip of the body instead, in which a rest pose can be found.
        joint_map: (source joint, target joint) by role instead of the automatic match, each a name or a row;
            ``read_map`` reads a file. Only these parts are carried over. Roles are the names of VRM in snake case, and
            the roles that the file of a body adds, such as a tail. Start from ``Retargeted.joint_map()``.
        rest: Pose of the source that means standing with the arms at the sides or stretched out: ``"file"``, ``"bind"``
            (that of the skin), ``"first"`` (frame), ``"tpose"`` (built from the clip), the number of a frame, a
            ``Pose`` or a pose file. By default the clip and its skeleton show which of these to take; see
            ``Retargeted.stance``.
        up: Axis of the source that points up, for example ``"z"`` or ``"-y"``; None to find it.
        hold_feet: Whether standing feet stay in place. They are corrected unless the legs are those of the source.
        clearance: Least distance between shapes of different limbs of the target, length units; None to let limbs pass
            through each other. It has no effect on a body without shapes.
        world: Steps, ramps and stones on which the feet of the target stand; None for a level floor. See above.
        velocity: Highest velocity of the target's hinges, radians per second, as in ``Motion.slowed``; joints without
            one have that of the file. None for those of the file, which do not hold across cuts of the clip.
        idle_hands: Hands of the target whose source has no fingers, or fingers that stay straight in all frames: as at
            ``"rest"``, or ``"relaxed"``, a little bent.
        root_motion: What a bone on the floor above the hips takes, as characters for game engines have one: the path on
            the floor and the heading (``"root"``), or nothing (``"hips"``). It is the one that clips of the file move,
            or a joint of the skin, or a node with the name of a root; in the result, it is free, and the hips move
            relative to it. With ``"none"``, a body with or without such a bone stays in its place and faces as at rest.
            The result is then an ``InPlace``, whose ``with_root_motion()`` moves as the body does with ``"root"``, and
            it is judged with its way.
        threads: Number of threads for feet and clearance; None for all cores. Results are identical for any number.
        progress: Called with (steps done, all); a frame is two steps.

    Raises:
        InputError: If the two have no part in common, the map has no pairs, there is no such rest pose, or the body of
            the clip is upside down in most frames.
        UnknownNameError: If the map names a part or a joint that does not exist.

    Example:
        >>> import synovia as sy
        >>> answer = sy.retarget(sy.load_motion("walk.bvh"), sy.load_skeleton("character.glb"))  # doctest: +SKIP
        >>> answer.verdict, answer.missed_frames  # doctest: +SKIP
        ('good', ())
        >>> print(answer.report())  # doctest: +SKIP
    """
    check_kind("motion", motion, Motion, "sy.load_motion(path) reads one")
    if not isinstance(skeleton, Motion):
        check_kind("skeleton", skeleton, Skeleton, "sy.load_skeleton(path) reads one")
    chosen = checked_options(options)
    if not len(motion):
        raise InputError("the motion has no frames", where=motion.name, expected="at least one")
    body = skeleton.skeleton if isinstance(skeleton, Motion) else skeleton
    pair = paired(motion, skeleton, joint_map, rest=chosen.rest, up=chosen.up)
    work = stages(motion, pair, body, chosen, threads=threads, progress=progress)
    while True:
        try:
            next(work)
        except StopIteration as end:
            return end.value


def stages(
    motion: Motion,
    pair: Pairing,
    body: Skeleton,
    chosen: Any,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Generator[None, None, Retargeted]:
    """Return the motion of a paired body that follows a clip; this is the work of ``retarget``, in stages.

    Args:
        motion: The clip.
        pair: The two bodies.
        body: The target that was given, without an added root.
        chosen: Options of ``retarget`` as attributes; without ``root_motion``, a bone on the floor moves with the body.
            ``known`` is the ``PoseFollower`` of a live body; None to find floor and bends in the clip.
        threads: As in ``retarget``.
        progress: As in ``retarget``.
    """
    velocity, world, distance = chosen.velocity, chosen.world, chosen.clearance
    source, target, parts, roles = pair.source, pair.target, pair.parts, pair.roles
    own = target.skeleton
    feet = chosen.hold_feet and pair.moves
    alike = pair.same_legs and not own.loops
    passes = 2 if feet and not (alike and world is None) and any(f"{side}_foot" in roles for side in SIDES) else 1
    if passes > 1:
        compile_soon(*_KERNELS)
    frames = motion.frames()
    if not pair.moves:
        frames = steadied(frames, pair.carrier, source.rest)
    limits: Any = {row: joint.velocity for row, joint in enumerate(own.joints) if joint.velocity is not None}
    if isinstance(velocity, Mapping):
        limits |= own.by_row(cast("Mapping[Any, Any]", velocity), "velocity")
    elif velocity is not None:
        limits = velocity
    most = joint_velocities(own, limits)
    bounds = largest_steps(source, target, frames, motion.fps, most, strict=velocity is not None)
    follower = Follower(target, pair.turns, bounds, motion.fps)
    closer, poses = Closer(target, roles), chosen.known
    if poses is None:
        poses = PoseFollower(pair, relaxed=chosen.idle_hands == "relaxed")
        poses.learn(frames)
    poses.reset()
    yield
    q, _ = poses.follow(frames, follower)
    yield
    if progress is not None:
        progress(len(q), passes * len(q))
    q, forced = closer.closed(keep_velocity(target, q, bounds))
    on_floor = feet and not alike and world is None and not own.loops
    mine = frames
    if feet:
        q, mine = soles_raised(target, roles, q, motion.fps) if on_floor else (q, world_frames(own, q))
        rise = rise_of(target, roles, mine) if on_floor and chosen.known is None else 0.0
        mine[..., 9:] += rise * target.basis[:, 1]
        q = target.raised(q, np.full(len(q), rise))
    yield
    paths = Planter(pair, motion.fps).paths(frames, mine) if feet else {}
    yield
    ground = None if world is None else world.matched(own, up=axis_name(target.basis[:, 1]))
    apart = None if distance is None or not own.shapes else apart_of(target, frozenset(roles), distance)
    if apart is not None:
        paths = apart.feet_apart(mine, paths, motion.fps)
    footholds: dict[str, tuple[Foothold, ...]] = {}
    if ground is not None and paths:
        paths, rise, footholds = over_world(ground, target, paths, mine, motion.fps)
        if footholds:
            risen, _ = closer.closed(target.raised(q, rise))
            q, paths = on_world(target, risen, paths, motion.fps, threads)
            mine = world_frames(own, q)
    yield
    alike = alike and not footholds
    if alike:
        paths = {role: path.along(mine, target.roles[role]) for role, path in paths.items()}
    off, tolerance = np.zeros((len(q), len(paths))), MISSED * target.leg
    last = _pass_of(progress, 1, passes) if passes > 1 else None
    if alike and last is not None:  # the world is level
        last(len(q), len(q))
    elif paths and not alike:
        q, off = solve_feet(follower, q, mine, paths, threads, last)
        q, more = closer.closed(q)
        forced = np.maximum(forced, more)
    yield
    held = props_held(source, frames, motion.fps) if {f"{side}_hand" for side in SIDES} <= set(roles) else []
    before = q
    q, props = keep_props(target, q, motion.fps, held, hands_apart(source, frames))
    yield
    if q is not before:
        q, more = closer.closed(keep_velocity(target, q, bounds))
        forced = np.maximum(forced, more)
    if apart is not None:
        q = keep_velocity(target, (yield from apart.moved(q, motion.fps, paths, threads)), bounds)
        q, more = closer.closed(q)
        forced = np.maximum(forced, more)
        off = np.where(stand_frames(paths, len(q)), distances_off(target, q, paths), off)
    elif paths and own.loops:
        off = distances_off(target, q, paths)
    yield
    if on_floor:
        q = keep_velocity(target, soles_raised(target, paths, q, motion.fps)[0], bounds)
    missed = tuple(np.flatnonzero((off > tolerance).any(1)).tolist())
    fast = hurried(own, q, bounds.rows)
    added, parts, way = len(own) - len(body), pair.parts, None
    mode: str | None = chosen.root_motion
    bone = root_bone(target, added) if pair.moves and mode is not None else None
    if pair.moves and mode is not None and (bone is not None or mode == "none"):
        mover, world_q = RootMover(target, bone, mode), world_frames(own, q)
        given = None if bone is None else pair.root_frames(bone, frames, world_q)
        below = ground.ground if ground is not None and footholds else None
        q, way = mover.moved(q, world_q, OnFloor(motion.fps, given, below))
        own = mover.skeleton
        target = replace(target, skeleton=own)
        if bone is not None and added:  # the bone has the path, and not the joint that was added
            q, most = q[:, own.q_slice(added).start :], most[added:]
            parts = tuple(replace(part, target=part.target - added) for part in parts)
            target, added = without_added(target, body), 0
            own = target.skeleton
    found = Motion(
        own,
        _nearest_signs(q, own),
        motion.fps,
        name=f"{motion.name} on {body.name}",
        notes=[note if note.startswith(_SOURCE) else _SOURCE + note for note in motion.notes],
    )
    if way is not None and free_roots(own):
        found = InPlace.made(found, way)
    return Retargeted(
        found,
        parts=parts,
        source=source,
        target=target,
        stance=pair.stance,
        target_rest=pair.target_rest,
        scale=pair.scale,
        contacts={role: path.spans for role, path in paths.items()},
        missed_frames=missed,
        worst=float(off.max(initial=0.0)),
        original=motion,
        velocity=most,
        moves=pair.moves,
        added=added,
        carried=pair.carried,
        clearance=None if apart is None else apart.distance,
        world=ground if paths else None,
        footholds=footholds,
        forced=forced,
        too_fast=fast,
        props=props,
    )


def _pass_of(progress: Progress | None, number: int, passes: int) -> Progress | None:
    """Return the progress callback for one of several passes over all frames."""
    if progress is None:
        return None
    return lambda done, of: progress(number * of + done, passes * of)


def _nearest_signs(q: Array, skeleton: Skeleton) -> Array:
    """Give quaternions signs that do not change between frames, so that joint values can be interpolated."""
    t = skeleton.tables
    for at in t.places[~t.is_number]:
        q[:, at : at + 4] = same_side(q[:, at : at + 4])
    return q
