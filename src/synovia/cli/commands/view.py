"""``synovia view``: open the live page."""

from __future__ import annotations

import signal
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from synovia.cli.command import refuse
from synovia.cli.declare import with_options
from synovia.cli.output import emit, emit_json, talk
from synovia.cli.running import Terminal, untold
from synovia.jobs.base import UsageError
from synovia.jobs.clearance import CLEARANCE
from synovia.jobs.clips import ClipReader, Roles, body_of, needs_model
from synovia.jobs.options import Number, argument, described, option, said_of
from synovia.jobs.shared import GOALS, JSON, MODEL, ROOT, SOLVER, WORLD
from synovia.jobs.verbs.retarget import Retarget
from synovia.text import printable

if TYPE_CHECKING:
    from synovia.model.motion import Motion
    from synovia.viewer import View as LivePage


@described
class View(Roles):
    """Options of ``synovia view``."""

    file: str = argument(like=MODEL)
    clip: str | None = argument(help="A clip to play: a file, or a name in FILE.", required=False)
    model: str | None = option(default=None, like=said_of(ClipReader, "model"), rank=-1)
    trim: bool = option(default=False, like=said_of(ClipReader, "trim"), rank=-1)
    onto: str | None = option(
        default=None, help="Retarget the clip, or a recording of a hand, to this model, and show both.",
        metavar="MODEL", completes="models",
    )  # fmt: skip
    joint_map: Path | None = option(
        default=..., like=replace(said_of(Retarget, "joint_map"), help="Joint map for --onto.", shown="automatic")
    )
    goals: Path | None = option(default=None, like=replace(GOALS, help="File of goals to start with."))
    solver: str | None = option(default=..., like=SOLVER)
    root: Any = option(default=None, like=ROOT, shown="free for bodies with hands and feet")
    world: str | None = option(default=..., like=WORLD)
    clearance: float | None = option(
        default=None,
        like=replace(
            CLEARANCE,
            help="Add a goal that keeps links at least this far apart from each other, and from --world.",
            shown="",
        ),
    )
    host: str = option(
        default="127.0.0.1", help="Address to serve on; all but local ones need a token.", metavar="ADDRESS"
    )
    port: int = option(
        default=8080, help="Port to try first; 0 for any.", kind=Number(0, 2**16 - 1, whole=True), metavar="N"
    )
    token: str | None = option(
        default=None, help="Secret that opens the page.", metavar="SECRET", shown="random, if needed"
    )
    dark: bool = option(default=False, help="Start in dark mode.")
    shadows: bool = option(default=True, help="Whether the body casts a shadow.")
    browser: bool = option(default=True, help="Open a browser.")
    as_json: bool = option(default=False, like=replace(JSON, help="Print the address as a JSON object."))


@with_options(View)
def view(given: View) -> None:
    """Open a live page: drag a hand, and the body follows.

    With --onto, the page shows the clip and its result on another body side by side; there you edit the joint map and
    the rest pose. A recording of a hand, 21 points over time, plays next to the hand that follows it. The command needs
    the extra [view].

    For example: synovia view character.glb
    """
    from synovia import viewer
    from synovia.clips.handfile import holds_hand
    from synovia.io.load import has_shapes, is_bundled, load_clips

    file, clip, model, trim = given.file, given.clip, given.model, given.trim
    page_options = {name: getattr(given, name) for name in ("host", "port", "token", "dark", "shadows", "browser")}
    if given.onto is not None:
        refuse("expected no --onto with this option.", "goals", "roles", "solver", "root", "world", "clearance")
        if holds_hand(Path(file)):
            refuse(
                "expected a clip of a body with this option, not a recording of a hand.", "joint_map", "model", "trim"
            )
            page = viewer.view(_hand_with_points(Path(file), given.onto, given.loops), **page_options)
            _serve(page, "Open this address in a browser and play the clip. Ctrl+C ends it.", as_json=given.as_json)
            return
        if clip is not None and Path(clip).exists():  # FILE is the model of the clip
            file, clip, model = clip, None, file
        motion = ClipReader(clip=clip, model=model, trim=trim).read(file, Terminal())[0]
        onto = given.onto if given.loops is None else body_of(given.onto, Terminal(), loops=given.loops)
        page = viewer.view_retarget(motion, onto, given.joint_map, **page_options)
        _serve(page, "Open this address in a browser and edit map or rest pose. Ctrl+C ends it.", as_json=given.as_json)
        return
    refuse("expected --onto MODEL with this option.", "joint_map")
    wanted, loops = None, given.loops
    if given.goals is not None:
        from synovia.files.goals import read_goals
        from synovia.io.worlds import read_world

        world = None if given.world is None else read_world(Path(given.world))
        wanted = read_goals(given.goals, world=world)
        if wanted.moving is not None:
            raise UsageError("expected a file without 'moving': on the page, all joints may move.", "--goals")
    shown = None
    body: Any = file
    if model is not None:  # FILE is a clip without a body
        shown = ClipReader(clip=clip, model=model, trim=trim, loops=loops).read(file, Terminal())[0]
        body = shown.skeleton if has_shapes(model) else model
    elif clip is not None and Path(clip).exists():
        shown = ClipReader(model=file if needs_model(clip) else None, trim=trim, loops=loops).read(clip, Terminal())[0]
    elif trim:
        shown = ClipReader(clip=clip, trim=trim, loops=loops).read(file, Terminal())[0]
    if (given.roles is not None or loops is not None) and isinstance(body, str):
        if shown is None and not is_bundled(body) and load_clips(body).motions:
            shown = ClipReader(clip=clip, loops=loops).read(body, Terminal())[0]
        body = given.load_body(body, Terminal())
    page = viewer.view(
        body,
        wanted,
        clip=clip if shown is None else shown,
        solver=given.solver,
        root=given.root,
        world=given.world,
        clearance=given.clearance,
        loops=loops,
        **page_options,
    )
    _serve(
        page, "Open this address in a browser and drag a target, or any joint. Ctrl+C ends it.", as_json=given.as_json
    )


def _hand_with_points(path: Path, onto: str, loops: Path | None) -> Motion:
    """Retarget a recording of a hand to a model, report notes and findings, and return the clip with the points."""
    from synovia.clips.handfile import FPS, read_hand
    from synovia.retargeting.hands import retarget_hand

    host, found = Terminal(), read_hand(path)
    host.note(found.notes)
    answer = retarget_hand(
        found.points, body_of(onto, host, loops=loops), fps=found.fps or FPS, source_side=found.side,
        confidence=found.confidence, name=path.stem,
    )  # fmt: skip
    host.note([*answer.notes, *(str(one) for one in answer.findings)])
    return answer.with_points()


def _serve(page: LivePage, what: str, *, as_json: bool) -> None:
    """Print the address of a page and a hint, and serve the page until the process is interrupted or ended."""
    with page, _ended_by_exceptions():
        if as_json:
            emit_json({"schema": "synovia.view/1", "url": page.url, "notes": list(page.notes)})
        else:
            emit(page.url)
        for line in untold(page.notes):
            talk(printable(line))
        talk(what)
        page.wait()


@contextmanager
def _ended_by_exceptions() -> Generator[None]:
    """Raise SystemExit at SIGTERM and SIGHUP, so that the folder of the page is removed."""

    def end(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    ends = [one for name in ("SIGTERM", "SIGHUP") if (one := getattr(signal, name, None)) is not None]
    before = {one: signal.getsignal(one) for one in ends}
    before = {one: handler for one, handler in before.items() if handler is not signal.SIG_IGN}  # nohup
    for one in before:
        signal.signal(one, end)
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
