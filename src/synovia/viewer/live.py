"""``view`` and ``view_retarget``: open a page, and switch between pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

from synovia.arguments import check_kind
from synovia.clips import find_ends
from synovia.covers import fitted_text, with_shapes
from synovia.errors import InputError
from synovia.goals import ClearanceGoal, Goal
from synovia.io.base import optional_package
from synovia.io.load import Clips, clip_number, format_of, is_bundled, load_clips, load_model, load_motion
from synovia.io.worlds import read_world
from synovia.model import Pose, Skeleton
from synovia.model.anatomy.up import find_up
from synovia.model.motion import Motion
from synovia.model.pose import inside_limits
from synovia.model.rooted import with_root_values
from synovia.model.shapes.world import World
from synovia.retargeting import Retargeted, retarget
from synovia.solver import Solver, as_solver
from synovia.viewer.editing.clip.play import together
from synovia.viewer.editing.first_goals import add_goals, first_goals, stands
from synovia.viewer.editing.session import Session
from synovia.viewer.editing.state import DRAGGED
from synovia.viewer.retarget.open import retarget_opening
from synovia.viewer.scene.skin import surface_with
from synovia.viewer.serving.recent import note_recent
from synovia.viewer.serving.view import Host, Opening, PageOptions, PageSettings, View, serve

if TYPE_CHECKING:
    from synovia.viewer.page.page import Page


def view(
    model: Any,
    goals: Goal | Iterable[Goal] | None = None,
    *,
    clip: Any = None,
    solver: Solver | str | None = None,
    root: str | None = None,
    tolerance: tuple[float, float] | None = None,
    world: World | str | Path | None = None,
    clearance: float | None = None,
    loops: str | Path | None = None,
    **options: Unpack[PageOptions],
) -> View:
    """Open a live page: you drag targets, and the body follows.

    Args:
        model: A file, the name of a bundled model, a ``Skeleton``, a ``Pose`` to start from, or a ``Motion``. The page
            plays the clip of a BVH or npz file, or the clip that Synovia wrote last into a glTF file.
        goals: Goals to start with; None for goals on hands and feet, or on the tips.
        clip: Clip to play under the goals: a ``Motion``, the result of ``retarget``, a file, or the name or number of a
            clip in the model's file. A clip of another body is retargeted.
        solver: Settings or name of the solver. None for ``full-body`` if there are clearance goals, or if a body with
            two feet has its default goals, which have priorities; else for the default solver.
        root: ``"fixed"``, ``"free"``, or axes along and about which the root moves, such as ``"xz"``; None: free for a
            body with two feet, fixed for others.
        tolerance: As in ``IK``.
        world: Obstacles to show around the body, or a file of obstacles; converted as by ``World.matched``. Clearance
            goals avoid these obstacles.
        clearance: Distance of an additional clearance goal, length units; None for no such goal. Capsules are fitted
            to a body without shapes.
        loops: File of loops of a model file, as in ``load_skeleton``. A ``Skeleton``, ``Pose`` or ``Motion`` already
            has its loops; then the file only appears in the code and the command on the page.
        options: Options of the page: ``host`` (``"127.0.0.1"``; an address that other machines can reach needs a
            token), ``port`` to try first (8080; 0 for any free port), ``token`` that browsers must send (None for a
            random token if the address needs one), ``dark``, ``shadows`` (False is faster without a GPU), and
            ``browser``, whether to open a browser.

    Returns:
        The running page: ``print(view.url)``, ``view.wait()``, ``view.stop()``.

    Raises:
        MissingExtraError: If viser is not installed.
        SynoviaError: If a file, goal or setting cannot be used.

    Example:
        >>> import synovia as sy
        >>> page = sy.view("character.glb")  # doctest: +SKIP
        >>> page.wait()  # doctest: +SKIP
    """
    out = serve(
        opening(model, Start(goals, clip, solver, root, tolerance, world, clearance, loops)), PageSettings(**options)
    )
    if isinstance(model, str | Path):
        note_recent(model)
    return out


def view_retarget(
    clip: Any,
    onto: Any,
    joint_map: Any = None,
    *,
    rest: Pose | None = None,
    **options: Unpack[PageOptions],
) -> View:
    """Open a page with a clip and its retargeted result side by side, to edit the joint map and the rest pose.

    Args:
        clip: The clip: a ``Motion`` or a file.
        onto: The body that follows: a ``Skeleton``, a file, or the name of a bundled model.
        joint_map: (source joint, target joint) by part, or a file of a map; None for the automatic map.
        rest: Rest pose of the clip's skeleton; None for the rest pose of the file.
        options: As in ``view``.

    Returns:
        The running page.

    Raises:
        MissingExtraError: If viser is not installed.
        SynoviaError: If a file or the map cannot be used.
    """
    optional_package("viser", "the live page needs viser", "view")
    return serve(retarget_opening(clip, onto, joint_map, rest, animated), PageSettings(**options))


class Start(NamedTuple):
    """Initial state of a page; the fields are arguments of ``view``, and the frame at which the clip is paused."""

    goals: Goal | Iterable[Goal] | None = None
    clip: Any = None
    solver: Solver | str | None = None
    root: str | None = None
    tolerance: tuple[float, float] | None = None
    world: World | str | Path | None = None
    clearance: float | None = None
    loops: str | Path | None = None
    frame: int | None = None


def opening(model: Any, begin: Start | None = None) -> Opening:
    """Return the functions that create the live pages of a model.

    Args:
        model: As in ``view``.
        begin: Initial state of a page; None for the defaults.
    """
    goals, clip, solver, root, tolerance, world, clearance, loops, frame = begin or Start()
    optional_package("viser", "the live page needs viser", "view")
    from synovia.viewer.page.keys import Keys
    from synovia.viewer.page.page import Model, Page
    from synovia.viewer.panel import tabs
    from synovia.viewer.scene.camera import first_aim

    own, start, (clips, playing), name = _opened(model, loops)
    notes: tuple[str, ...] = ()
    answer: Retargeted | None = None
    if clip is not None:
        clips, playing, notes, answer = _with_clip(clips, clip, own)
    clear = [] if clearance is None else [ClearanceGoal(clearance)]
    wanted = None if goals is None else list(goals) if isinstance(goals, Iterable) else [goals]
    if any(isinstance(goal, ClearanceGoal) for goal in (*(wanted or ()), *clear)):
        shaped = with_shapes(own)
        if (text := fitted_text(own, shaped)) is not None:
            notes = (*notes, f"{own.name}: {text}")
        own = shaped
    skeleton, clips = together(own, clips)
    if solver is None and wanted is None and stands(skeleton):
        solver = DRAGGED
    if solver is None and any(isinstance(goal, ClearanceGoal) for goal in (*(wanted or ()), *clear)):
        solver = DRAGGED
    settings = as_solver(solver)
    if not isinstance(solver, Solver):
        settings = settings.without_restarts()
    mode = root if root is not None else ("free" if stands(skeleton) else "fixed")

    around = _world_of(world, skeleton)
    if around is None:
        given = (goal.world for goal in wanted or () if isinstance(goal, ClearanceGoal) and goal.world is not None)
        around = _world_of(next(given, None), skeleton)

    def make() -> Session:
        session = Session(skeleton, clips, settings, mode, tolerance, world=around)
        if start is not None:
            session.body.put(with_root_values(start.q, session.body.rooted))
        if wanted is None:
            first_goals(session.goals)
        if playing is not None:
            session.judging.answers = {} if answer is None else {playing: answer}
            session.animation.set_clip(playing)  # set after the first goals, which then follow the clip
            session.animation.set_play(time=(frame or 0) / clips[playing].fps, playing=frame is None)
        if wanted is not None:
            add_goals(session.goals, wanted)
        add_goals(session.goals, clear)
        session.history.mark_first()
        return session

    rest = make().body.pose  # raises errors of the arguments now, and not in the browser
    inside_limits(rest.skeleton, rest.q[None])  # compile this kernel now; it moves a body before its solver is ready
    surface = surface_with(skeleton)
    said: list[str] = []
    if playing is not None:
        played = clips[playing]
        about = (note for note in (*played.notes, *find_ends(played).notes) if note not in surface.notes)
        said += [f"{played.name}: {note}" for note in about]
    surface = replace(surface, notes=(*surface.notes, *notes, *said))

    if around is not None:
        surface = replace(surface, notes=(*surface.notes, *around.notes))

    def keys(page: Page) -> Keys:
        session = page.session
        return Keys(page, page.actions, session.goals, session.body, session.hand)

    def give(client: Any, session: Session, host: Host) -> Page:
        return Page(client, session, Model(name, surface, _Navigation(host, own), around, loops), host, tabs, keys)

    return Opening(make, give, lambda session: first_aim(session.state), surface.notes)


def animated(host: Host, body: Skeleton, clip: Motion | Retargeted, frame: int | None = None) -> None:
    """Show the live page of a body that plays a clip or is paused at a frame, with the findings about retargeting."""
    host.show(opening(body, Start(clip=clip, frame=frame)))


class _Navigation:
    """Navigation from the page of a body to other pages.

    Args:
        host: Host of the page.
        body: The body of the page.
    """

    def __init__(self, host: Host, body: Skeleton) -> None:
        """Store host and body."""
        self._host, self._body = host, body

    def open(self, model: str | Path) -> None:
        """Show another model."""
        self._host.show(opening(model))

    def play(self, clip: str | Path) -> None:
        """Retarget a clip to the body and play it."""
        animated(self._host, self._body, _clip_of(clip, self._body))

    def map(self, clip: str | Path) -> None:
        """Show a clip next to its retargeted result on the body, to edit the map."""
        self._host.show(retarget_opening(clip, self._body, None, None, animated))


def _world_of(world: World | str | Path | None, skeleton: Skeleton) -> World | None:
    """Return the obstacles around a body, in its unit and with its axis."""
    if world is None:
        return None
    if isinstance(world, str | Path):
        world = read_world(Path(world))
    check_kind("world", world, World, "sy.load_world(path) reads one")
    return world.matched(skeleton, up=find_up(skeleton).name)


def _opened(model: Any, loops: str | Path | None) -> tuple[Skeleton, Pose | None, Clips, str]:
    """Return skeleton, start pose, clips and file or name of a model; ``loops``: a file of loops of a model file."""
    if isinstance(model, str | Path):
        name = str(model)
        return load_model(name, loops=loops), None, Clips([]) if is_bundled(name) else load_clips(name), name
    if isinstance(model, Skeleton):
        return model, None, Clips([]), _file_of(model)
    if isinstance(model, Motion):
        return model.skeleton, None, Clips([model], 0), _file_of(model.skeleton)
    pose = getattr(model, "pose", model)  # a solution has a pose
    if not isinstance(pose, Pose):
        raise InputError("cannot view this object", value=model, expected="a file, a Skeleton, a Pose or a Motion")
    return pose.skeleton, pose, Clips([]), _file_of(pose.skeleton)


def _file_of(skeleton: Skeleton) -> str:
    """Return the source file of a skeleton, or the skeleton's name if it is bundled or has no file."""
    return skeleton.name if skeleton.source is None or is_bundled(skeleton.name) else str(skeleton.source)


def _clip_of(path: str | Path, body: Skeleton) -> Motion:
    """Read the clip of a file; a file without a skeleton is read on the body."""
    return load_motion(path, skeleton=None if format_of(Path(path)).read_onto is None else body)


def _fitting(clip: Motion, body: Skeleton) -> tuple[Motion, tuple[str, ...], Retargeted | None]:
    """Return a clip for the body, with notes: a clip of another body is retargeted, and the answer returned too.

    Raises:
        SynoviaError: If the clip cannot be retargeted.
    """
    try:
        clip.on(body)
    except InputError:
        answer = retarget(clip, body)
        note = f"{clip.name}: retargeted from {clip.skeleton.name} to {body.name}; the verdict is {answer.verdict!r}"
        return answer.motion, (note,), answer
    return clip, (), None


def _with_clip(
    clips: Sequence[Motion], clip: Any, body: Skeleton
) -> tuple[list[Motion], int, tuple[str, ...], Retargeted | None]:
    """Return the clips, including the requested one, the number of this one, notes, and how it was retargeted."""
    if isinstance(clip, Retargeted):
        return [*clips, clip.motion], len(clips), (), clip
    if not isinstance(clip, int | Motion):
        clip = str(clip)
        if clip not in [motion.name for motion in clips] and (Path(clip).exists() or not clips):
            clip = _clip_of(clip, body)
    if isinstance(clip, Motion):
        fitting, notes, answer = _fitting(clip, body)
        return [*clips, fitting], len(clips), notes, answer
    return list(clips), clip_number(clips, clip, body.name), (), None
